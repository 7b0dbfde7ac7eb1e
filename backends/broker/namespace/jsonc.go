package namespace

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The bounds of a file.
const (
	maxFileBytes = 16 << 20
	maxDepth     = 32
)

// place is where something stands in a file.
type place struct {
	src string
	at  int
}

// SyntaxError is a mistake in a file with its place, counted from 1; columns are bytes.
type SyntaxError struct {
	Line, Column int
	Err          error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %v", e.Line, e.Column, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// errorf returns an error about what stands there.
func (p place) errorf(format string, args ...any) error {
	before := p.src[:p.at]
	return &SyntaxError{1 + strings.Count(before, "\n"), p.at - strings.LastIndexByte(before, '\n'), fmt.Errorf(format, args...)}
}

// kind is what a value of JSON is.
type kind string

const (
	object  kind = "an object"
	list    kind = "a list"
	text    kind = "text"
	number  kind = "a number"
	boolean kind = "true or false"
	null    kind = "null"
)

// node is a value with its place.
type node struct {
	place
	kind    kind
	text    string // of text its characters, of a number or a boolean how it is written
	members []member
	items   []*node
}

// member is one name of an object with its value.
type member struct {
	place
	name  string
	value *node
}

// parser reads JSON with comments (// and /* */) and with commas behind the last element, as
// .NET reads a configuration file.
type parser struct {
	src   string
	at    int
	depth int
}

func parseJSON(src []byte) (*node, error) {
	p := &parser{src: strings.TrimPrefix(string(src), "\ufeff")}
	if len(src) > maxFileBytes {
		return nil, fmt.Errorf("the file has %d bytes; at most %d are read", len(src), maxFileBytes)
	}
	if !utf8.ValidString(p.src) {
		return nil, fmt.Errorf("the file is not UTF-8")
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	n, err := p.value()
	if err != nil {
		return nil, err
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.at < len(p.src) {
		return nil, p.place().errorf("there is more behind the end of the value")
	}
	return n, nil
}

func (p *parser) place() place { return place{p.src, p.at} }

// next reports whether b comes next, and if so goes on behind it.
func (p *parser) next(b byte) bool {
	if p.at < len(p.src) && p.src[p.at] == b {
		p.at++
		return true
	}
	return false
}

// space skips white space and comments.
func (p *parser) space() error {
	for p.at < len(p.src) {
		rest := p.src[p.at:]
		switch {
		case strings.ContainsRune(" \t\r\n", rune(rest[0])):
			p.at++
		case strings.HasPrefix(rest, "//"):
			line, _, _ := strings.Cut(rest, "\n")
			p.at += len(line)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 2 {
				return p.place().errorf("the comment has no end")
			}
			p.at += end + 2
		default:
			return nil
		}
	}
	return nil
}

func (p *parser) value() (*node, error) {
	n := &node{place: p.place()}
	if p.at == len(p.src) {
		return nil, n.errorf("the file ends where a value is missing")
	}
	switch c := p.src[p.at]; c {
	case '{', '[':
		if p.depth++; p.depth > maxDepth {
			return nil, n.errorf("objects and lists are nested more than %d deep", maxDepth)
		}
		defer func() { p.depth-- }()
		p.at++
		if c == '{' {
			return n, p.object(n)
		}
		return n, p.list(n)
	case '"':
		n.kind = text
		var err error
		n.text, err = p.text()
		return n, err
	}
	return n, p.word(n)
}

// object reads the members of an object up to its end.
func (p *parser) object(n *node) error {
	n.kind = object
	for {
		if err := p.space(); err != nil {
			return err
		}
		if p.next('}') {
			return nil
		}
		m := member{place: p.place()}
		if p.at == len(p.src) || p.src[p.at] != '"' {
			return m.errorf("want a name in quotes, or }")
		}
		var err error
		if m.name, err = p.text(); err != nil {
			return err
		}
		for _, other := range n.members {
			if strings.EqualFold(other.name, m.name) {
				return m.errorf("%q stands here twice", m.name)
			}
		}
		if err := p.space(); err != nil {
			return err
		}
		if !p.next(':') {
			return p.place().errorf("want a colon behind %q", m.name)
		}
		if err := p.space(); err != nil {
			return err
		}
		if m.value, err = p.value(); err != nil {
			return err
		}
		n.members = append(n.members, m)
		if done, err := p.separator('}'); done || err != nil {
			return err
		}
	}
}

// list reads the elements of a list up to its end.
func (p *parser) list(n *node) error {
	n.kind = list
	for {
		if err := p.space(); err != nil {
			return err
		}
		if p.next(']') {
			return nil
		}
		item, err := p.value()
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
		if done, err := p.separator(']'); done || err != nil {
			return err
		}
	}
}

// separator reads the comma behind an element, or the end of what it belongs to.
func (p *parser) separator(end byte) (done bool, err error) {
	if err := p.space(); err != nil {
		return false, err
	}
	switch {
	case p.next(end):
		return true, nil
	case p.next(','):
		return false, nil
	}
	return false, p.place().errorf("want a comma or %c", end)
}

// text reads a string in quotes.
func (p *parser) text() (string, error) {
	start := p.place()
	for end := p.at + 1; end < len(p.src); end++ {
		switch p.src[end] {
		case '\\':
			end++
		case '"':
			var s string
			err := json.Unmarshal([]byte(p.src[p.at:end+1]), &s)
			if err != nil {
				return "", start.errorf("text with a line break or an unknown \\ in it")
			}
			p.at = end + 1
			return s, nil
		}
	}
	return "", start.errorf("the text has no end")
}

// word reads a number, true, false or null.
func (p *parser) word(n *node) error {
	end := p.at
	for end < len(p.src) && !strings.ContainsRune(" \t\r\n,:{}[]\"/", rune(p.src[end])) {
		end++
	}
	n.text = p.src[p.at:end]
	var v any
	if err := json.Unmarshal([]byte(n.text), &v); err != nil && n.text != "" {
		return n.errorf("%.40q is no value; text stands in quotes", n.text)
	}
	switch v.(type) {
	case bool:
		n.kind = boolean
	case float64:
		n.kind = number
	default:
		n.kind = null
		if n.text == "" {
			return n.errorf("want a value here, not %q", p.src[p.at])
		}
	}
	p.at = end
	return nil
}
