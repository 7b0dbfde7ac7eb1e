package sqsd

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"

	"dlq/backends/sqsmsg"
)

// encoder writes an answer in the protocol of its request. A member has two names where the
// protocols differ; in XML a list is flat: its items are repeated, with no element around them.
type encoder struct {
	buf   []byte
	xml   bool
	comma bool // JSON: a member precedes in this object
	// listed writes names with their values as lists of objects, as the Query protocol has them
	// for who asks for its answers in JSON.
	listed bool
}

// pair is a name and a value, such as an attribute of a queue or a tag.
type pair struct{ name, value string }

// str writes a text member.
func (e *encoder) str(name, v string) {
	if e.xml {
		e.open(name)
		e.buf = appendXMLText(e.buf, v)
		e.close(name)
		return
	}
	e.key(name)
	e.buf = appendJSONString(e.buf, v)
}

// opt writes a text member that is left out when it is empty.
func (e *encoder) opt(name, v string) {
	if v != "" {
		e.str(name, v)
	}
}

// num writes a number, which is none in quotes: the SDK for Go fails on that.
func (e *encoder) num(name string, n int64) {
	if e.xml {
		e.open(name)
		e.buf = strconv.AppendInt(e.buf, n, 10)
		e.close(name)
		return
	}
	e.key(name)
	e.buf = strconv.AppendInt(e.buf, n, 10)
}

// flag writes a truth value.
func (e *encoder) flag(name string, v bool) {
	if e.xml {
		e.open(name)
		e.buf = strconv.AppendBool(e.buf, v)
		e.close(name)
		return
	}
	e.key(name)
	e.buf = strconv.AppendBool(e.buf, v)
}

// list writes n objects. An empty list is left out: clients in PHP and .NET trip over it.
func (e *encoder) list(name, xmlName string, n int, item func(i int)) {
	if n == 0 {
		return
	}
	if e.xml {
		for i := range n {
			e.open(xmlName)
			item(i)
			e.close(xmlName)
		}
		return
	}
	e.key(name)
	e.buf = append(e.buf, '[')
	for i := range n {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.object(func() { item(i) })
	}
	e.buf = append(e.buf, ']')
	e.comma = true
}

// texts writes a list of texts.
func (e *encoder) texts(name, xmlName string, list []string) {
	if len(list) == 0 {
		return
	}
	if e.xml {
		for _, v := range list {
			e.str(xmlName, v)
		}
		return
	}
	e.key(name)
	e.buf = append(e.buf, '[')
	for i, v := range list {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = appendJSONString(e.buf, v)
	}
	e.buf = append(e.buf, ']')
}

// pairs writes names with their texts: in JSON an object of them, in XML an element for each,
// in which key and value have names of their own.
func (e *encoder) pairs(name, xmlName, key, value string, list []pair) {
	if len(list) == 0 {
		return
	}
	if e.xml {
		for _, p := range list {
			e.open(xmlName)
			e.str(key, p.name)
			e.str(value, p.value)
			e.close(xmlName)
		}
		return
	}
	if e.listed {
		e.list(name, "", len(list), func(i int) {
			e.str(key, list[i].name)
			e.str(value, list[i].value)
		})
		return
	}
	e.key(name)
	e.object(func() {
		for _, p := range list {
			e.str(p.name, p.value)
		}
	})
	e.comma = true
}

// attributes writes message attributes.
func (e *encoder) attributes(list []sqsmsg.Attribute) {
	if len(list) == 0 {
		return
	}
	if e.xml {
		for _, a := range list {
			e.open("MessageAttribute")
			e.str("Name", a.Name)
			e.open("Value")
			e.attributeValue(a)
			e.close("Value")
			e.close("MessageAttribute")
		}
		return
	}
	if e.listed {
		e.list("MessageAttributes", "", len(list), func(i int) {
			e.str("Name", list[i].Name)
			e.key("Value")
			e.object(func() { e.attributeValue(list[i]) })
			e.comma = true
		})
		return
	}
	e.key("MessageAttributes")
	e.object(func() {
		for _, a := range list {
			e.key(a.Name)
			e.object(func() { e.attributeValue(a) })
			e.comma = true
		}
	})
	e.comma = true
}

func (e *encoder) attributeValue(a sqsmsg.Attribute) {
	e.str("DataType", a.Type)
	if a.Binary() {
		e.str("BinaryValue", base64.StdEncoding.EncodeToString(a.Value))
		return
	}
	e.str("StringValue", string(a.Value))
}

// object writes what members writes as a JSON object.
func (e *encoder) object(members func()) {
	e.buf = append(e.buf, '{')
	e.comma = false
	members()
	e.buf = append(e.buf, '}')
}

func (e *encoder) key(name string) {
	if e.comma {
		e.buf = append(e.buf, ',')
	}
	e.comma = true
	e.buf = appendJSONString(e.buf, name)
	e.buf = append(e.buf, ':')
}

func (e *encoder) open(name string) {
	e.buf = append(e.buf, '<')
	e.buf = append(e.buf, name...)
	e.buf = append(e.buf, '>')
}

func (e *encoder) close(name string) {
	e.buf = append(e.buf, '<', '/')
	e.buf = append(e.buf, name...)
	e.buf = append(e.buf, '>')
}

// empty writes an element without content.
func (e *encoder) empty(name string) {
	e.buf = append(e.buf, '<')
	e.buf = append(e.buf, name...)
	e.buf = append(e.buf, '/', '>')
}

const hexDigits = "0123456789abcdef"

// appendJSONString writes s in quotes. What is not UTF-8, which only an error text can quote,
// becomes U+FFFD.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			if c >= utf8.RuneSelf {
				dst = append(dst, "\ufffd"...)
				break
			}
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i += size
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// appendXMLText writes s as the content of an element. A carriage return is escaped, since a
// parser would make it a line feed and the MD5 of a body would be wrong; quotes are, as the
// service does. What XML cannot hold becomes U+FFFD.
func appendXMLText(dst []byte, s string) []byte {
	start := 0
	for i := 0; i < len(s); {
		size, replaced := 1, ""
		switch c := s[i]; {
		case c == '&':
			replaced = "&amp;"
		case c == '<':
			replaced = "&lt;"
		case c == '>':
			replaced = "&gt;"
		case c == '"':
			replaced = "&quot;"
		case c == '\r':
			replaced = "&#xD;"
		case c >= utf8.RuneSelf:
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 || r == 0xfffe || r == 0xffff {
				replaced = "\ufffd"
			}
		case c < ' ' && c != '\t' && c != '\n':
			replaced = "\ufffd"
		}
		if replaced != "" {
			dst = append(append(dst, s[start:i]...), replaced...)
			start = i + size
		}
		i += size
	}
	return append(dst, s[start:]...)
}
