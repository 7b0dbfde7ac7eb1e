package sqsd

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The bounds of a JSON document.
const (
	maxJSONDepth   = 64
	maxJSONMembers = 10_000 // of all objects and arrays together
)

var errJSONEnd = errors.New("it ends too early")

// jsonReader reads one JSON document once, from the front. It is made for requests: every string
// that it returns is a copy, and what nobody asks for is checked and skipped. Twice the same
// member in an object is an error, since two readers could understand it differently.
type jsonReader struct {
	b       []byte
	at      int
	depth   int
	members int
}

// object reads an object and calls member with each name, in their order; member reads the value.
func (r *jsonReader) object(member func(name string) error) error {
	if err := r.expect('{'); err != nil {
		return err
	}
	if err := r.enter(); err != nil {
		return err
	}
	var seen nameSet
	if r.peek() == '}' {
		r.at++
		return r.leave()
	}
	for {
		name, err := r.quoted()
		if err != nil {
			return err
		}
		if !seen.add(name) {
			return fmt.Errorf("the member %q is there twice", name)
		}
		if err := r.expect(':'); err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
		if more, err := r.more('}'); err != nil || !more {
			return errors.Join(err, r.leave())
		}
	}
}

// array reads an array and calls item for each; item reads it.
func (r *jsonReader) array(item func() error) error {
	if err := r.expect('['); err != nil {
		return err
	}
	if err := r.enter(); err != nil {
		return err
	}
	if r.peek() == ']' {
		r.at++
		return r.leave()
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if more, err := r.more(']'); err != nil || !more {
			return errors.Join(err, r.leave())
		}
	}
}

// text reads a scalar as the text of it: the service takes a number or a truth value where a
// string is due, and a string where a number is. ok is false for null.
func (r *jsonReader) text() (s string, ok bool, err error) {
	switch c := r.peek(); {
	case c == '"':
		s, err = r.quoted()
		return s, err == nil, err
	case c == '{' || c == '[':
		return "", false, errors.New("it has an object or an array where a text or a number is due")
	case c == 'n':
		return "", false, r.word("null")
	case c == 't':
		return "true", true, r.word("true")
	case c == 'f':
		return "false", true, r.word("false")
	}
	s, err = r.number()
	return s, err == nil, err
}

// skip reads a value that nobody asks for.
func (r *jsonReader) skip() error {
	switch r.peek() {
	case '{':
		return r.object(func(string) error { return r.skip() })
	case '[':
		return r.array(r.skip)
	}
	_, _, err := r.text()
	return err
}

// isNull reads a null if there is one.
func (r *jsonReader) isNull() (bool, error) {
	if r.peek() != 'n' {
		return false, nil
	}
	return true, r.word("null")
}

// end is an error if something follows.
func (r *jsonReader) end() error {
	if r.peek() != 0 || r.at < len(r.b) {
		return errors.New("something follows its end")
	}
	return nil
}

func (r *jsonReader) enter() error {
	if r.depth++; r.depth > maxJSONDepth {
		return fmt.Errorf("it is nested deeper than %d", maxJSONDepth)
	}
	return nil
}

func (r *jsonReader) leave() error {
	r.depth--
	return nil
}

// more reads the comma before another member, or the end.
func (r *jsonReader) more(end byte) (bool, error) {
	if r.members++; r.members > maxJSONMembers {
		return false, fmt.Errorf("it has more than %d members", maxJSONMembers)
	}
	switch c := r.peek(); c {
	case ',':
		r.at++
		return true, nil
	case end:
		r.at++
		return false, nil
	}
	return false, r.unexpected()
}

// peek passes white space and returns the next byte; 0 at the end.
func (r *jsonReader) peek() byte {
	for r.at < len(r.b) {
		switch c := r.b[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

func (r *jsonReader) expect(c byte) error {
	if r.peek() != c || r.at >= len(r.b) {
		return r.unexpected()
	}
	r.at++
	return nil
}

func (r *jsonReader) unexpected() error {
	if r.at >= len(r.b) {
		return errJSONEnd
	}
	return fmt.Errorf("%q is unexpected at byte %d", r.b[r.at], r.at)
}

func (r *jsonReader) word(w string) error {
	if len(r.b)-r.at < len(w) || string(r.b[r.at:r.at+len(w)]) != w {
		return r.unexpected()
	}
	r.at += len(w)
	return nil
}

// number reads a number as it is written.
func (r *jsonReader) number() (string, error) {
	start := r.at
	if r.at < len(r.b) && r.b[r.at] == '-' {
		r.at++
	}
	digits := func() bool {
		from := r.at
		for r.at < len(r.b) && r.b[r.at] >= '0' && r.b[r.at] <= '9' {
			r.at++
		}
		return r.at > from
	}
	lead := r.at
	if !digits() || r.b[lead] == '0' && r.at > lead+1 {
		return "", r.unexpected()
	}
	if r.at < len(r.b) && r.b[r.at] == '.' {
		r.at++
		if !digits() {
			return "", r.unexpected()
		}
	}
	if r.at < len(r.b) && (r.b[r.at] == 'e' || r.b[r.at] == 'E') {
		r.at++
		if r.at < len(r.b) && (r.b[r.at] == '+' || r.b[r.at] == '-') {
			r.at++
		}
		if !digits() {
			return "", r.unexpected()
		}
	}
	return string(r.b[start:r.at]), nil
}

// quoted reads a string. A surrogate without its other half is kept as three bytes that are not
// UTF-8, so that whoever looks for characters that are not allowed finds it.
func (r *jsonReader) quoted() (string, error) {
	if err := r.expect('"'); err != nil {
		return "", err
	}
	start := r.at
	for r.at < len(r.b) { // most strings have no escapes
		switch c := r.b[r.at]; {
		case c == '"':
			r.at++
			return string(r.b[start : r.at-1]), nil
		case c == '\\':
			return r.escaped(start)
		case c < ' ':
			return "", r.unexpected()
		}
		r.at++
	}
	return "", errJSONEnd
}

// escaped reads the rest of a string that has an escape.
func (r *jsonReader) escaped(start int) (string, error) {
	out := append(make([]byte, 0, 2*(r.at-start)+64), r.b[start:r.at]...)
	for r.at < len(r.b) {
		c := r.b[r.at]
		switch {
		case c == '"':
			r.at++
			return string(out), nil
		case c < ' ':
			return "", r.unexpected()
		case c != '\\':
			out = append(out, c)
			r.at++
			continue
		}
		var err error
		if out, err = r.escape(out); err != nil {
			return "", err
		}
	}
	return "", errJSONEnd
}

// escape reads one escape.
func (r *jsonReader) escape(out []byte) ([]byte, error) {
	r.at++
	if r.at >= len(r.b) {
		return nil, errJSONEnd
	}
	c := r.b[r.at]
	r.at++
	switch c {
	case '"', '\\', '/':
		return append(out, c), nil
	case 'b':
		return append(out, '\b'), nil
	case 'f':
		return append(out, '\f'), nil
	case 'n':
		return append(out, '\n'), nil
	case 'r':
		return append(out, '\r'), nil
	case 't':
		return append(out, '\t'), nil
	case 'u':
	default:
		r.at--
		return nil, r.unexpected()
	}
	u, err := r.unit()
	if err != nil {
		return nil, err
	}
	if !utf16.IsSurrogate(u) {
		return utf8.AppendRune(out, u), nil
	}
	if r.at+1 < len(r.b) && r.b[r.at] == '\\' && r.b[r.at+1] == 'u' {
		back := r.at
		r.at += 2
		low, err := r.unit()
		if err != nil {
			return nil, err
		}
		if whole := utf16.DecodeRune(u, low); whole != utf8.RuneError {
			return utf8.AppendRune(out, whole), nil
		}
		r.at = back
	}
	return append(out, 0xe0|byte(u>>12), 0x80|byte(u>>6)&0x3f, 0x80|byte(u)&0x3f), nil
}

// unit reads the four digits of an escape.
func (r *jsonReader) unit() (rune, error) {
	if len(r.b)-r.at < 4 {
		r.at = len(r.b)
		return 0, errJSONEnd
	}
	n, err := strconv.ParseUint(string(r.b[r.at:r.at+4]), 16, 16)
	if err != nil {
		return 0, r.unexpected()
	}
	r.at += 4
	return rune(n), nil
}

// nameSet tells when a name comes a second time. Most objects have few.
type nameSet struct {
	few  []string
	many map[string]struct{}
}

func (s *nameSet) add(name string) bool {
	const few = 16
	if s.many == nil {
		for _, other := range s.few {
			if other == name {
				return false
			}
		}
		if s.few = append(s.few, name); len(s.few) <= few {
			return true
		}
		s.many = make(map[string]struct{}, 2*few)
		for _, other := range s.few {
			s.many[other] = struct{}{}
		}
		return true
	}
	if _, there := s.many[name]; there {
		return false
	}
	s.many[name] = struct{}{}
	return true
}
