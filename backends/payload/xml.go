package payload

import "bytes"

// maxXMLDepth is how deep elements may be nested to count as XML.
const maxXMLDepth = 1000

// tokenKind is what an XML token is.
type tokenKind uint8

const (
	xmlText      tokenKind = iota // CDATA too
	xmlStart                      // <a …>
	xmlEnd                        // </a>
	xmlEmpty                      // <a …/>
	xmlOther                      // declaration, comment, document type
	xmlMalformed                  // a '<' that begins none of these
)

const cdata = "<![CDATA["

// nextXML splits the first token off b, which is not empty. It resolves nothing: no
// entities, no document type, so that nothing in b can make it large.
func nextXML(b []byte) (token, rest []byte, kind tokenKind) {
	if b[0] != '<' {
		n := bytes.IndexByte(b, '<')
		if n < 0 {
			n = len(b)
		}
		return b[:n], b[n:], xmlText
	}
	for _, special := range []struct{ start, end string }{{"<!--", "-->"}, {cdata, "]]>"}, {"<?", "?>"}, {"<!", ">"}} {
		if bytes.HasPrefix(b, []byte(special.start)) {
			n := bytes.Index(b[len(special.start):], []byte(special.end))
			if n < 0 {
				return b, nil, xmlMalformed
			}
			n += len(special.start) + len(special.end)
			if special.start == cdata {
				return b[:n], b[n:], xmlText
			}
			return b[:n], b[n:], xmlOther
		}
	}
	end := tagEnd(b)
	if end < 0 || len(elementName(b[:end])) == 0 {
		return b, nil, xmlMalformed
	}
	switch token, rest = b[:end], b[end:]; {
	case token[1] == '/':
		kind = xmlEnd
	case token[len(token)-2] == '/':
		kind = xmlEmpty
	default:
		kind = xmlStart
	}
	return token, rest, kind
}

// tagEnd returns the index behind the tag that b begins with, or -1. A '>' in quotes does
// not end it.
func tagEnd(b []byte) int {
	quote := byte(0)
	for i, c := range b {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return i + 1
		case c == '<' && i > 0:
			return -1
		}
	}
	return -1
}

// elementName returns the name in a tag, or "" if there is none.
func elementName(tag []byte) []byte {
	name := bytes.TrimPrefix(tag[1:], []byte("/"))
	if c := name[0]; c != '_' && c != ':' && c < 0x80 && (c|0x20 < 'a' || c|0x20 > 'z') {
		return nil
	}
	return name[:bytes.IndexAny(name, " \t\r\n/>")]
}

// isXML reports whether b is one element whose tags match, with what XML allows around it.
func isXML(b []byte) bool {
	var open [][]byte
	elements := 0
	for len(b) > 0 {
		token, rest, kind := nextXML(b)
		b = rest
		switch kind {
		case xmlMalformed:
			return false
		case xmlText:
			if len(open) == 0 && blank(token) < len(token) {
				return false
			}
		case xmlStart, xmlEmpty:
			if len(open) == 0 {
				elements++
			}
			if kind == xmlStart {
				open = append(open, elementName(token))
			}
			if len(open) > maxXMLDepth || elements > 1 {
				return false
			}
		case xmlEnd:
			if len(open) == 0 || !bytes.Equal(open[len(open)-1], elementName(token)) {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return elements == 1 && len(open) == 0
}

// xml lays out XML that isXML has accepted. An element with text of its own stays on one
// line up to its end: white space there may mean something.
func (l *layout) xml(b []byte) bool {
	const none = -1
	depth, inline := 0, none // inline is the depth inside of the element with text
	b = trimText(b)
	for len(b) > 0 {
		token, rest, kind := nextXML(b)
		b = rest
		if kind == xmlText {
			if inline == none && blank(token) < len(token) {
				inline = depth
			}
			if inline != none {
				l.b = append(l.b, token...)
			}
			continue
		}
		if kind == xmlEnd {
			depth--
		}
		if inline == none && !l.line(depth) {
			return false
		}
		l.b = append(l.b, token...)
		switch kind {
		case xmlStart:
			depth++
			if inline == none && staysOnLine(b) {
				inline = depth
			}
		case xmlEnd:
			if depth < inline {
				inline = none
			}
		}
	}
	return len(l.b) <= l.limit
}

// staysOnLine reports whether b, behind a start tag, begins with text or with the end tag.
func staysOnLine(b []byte) bool {
	next := b[blank(b):]
	return len(next) > 0 && (next[0] != '<' || bytes.HasPrefix(next, []byte("</")) || bytes.HasPrefix(next, []byte(cdata)))
}
