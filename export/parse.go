package export

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// SyntaxError says where in its input a message could not be read, and why.
type SyntaxError struct {
	Line, Column int // from 1; the column counts bytes
	Msg          string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// parser reads JSON from b front to back. It is stricter than encoding/json: repeated keys,
// text that is not UTF-8 and lone surrogates, which would be changed silently, are errors.
type parser struct {
	b []byte
	i int
}

// fail returns the error msg at offset at.
func (p *parser) fail(at int, format string, args ...any) error {
	before := p.b[:min(at, len(p.b))]
	return &SyntaxError{
		Line:   1 + bytes.Count(before, []byte{'\n'}),
		Column: len(before) - bytes.LastIndexByte(before, '\n'),
		Msg:    fmt.Sprintf(format, args...),
	}
}

// next skips white space and returns the byte there, or 0 at the end.
func (p *parser) next() byte {
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (p *parser) expect(c byte, where string) error {
	got := p.next()
	if got != c {
		if p.i >= len(p.b) {
			return p.fail(p.i, "the text ends in the middle of a message; is the file whole?")
		}
		return p.fail(p.i, "want %q %s, found %q", c, where, got)
	}
	p.i++
	return nil
}

// end checks that nothing but white space is left.
func (p *parser) end() error {
	if p.next() != 0 || p.i < len(p.b) {
		return p.fail(p.i, "unexpected text behind the value")
	}
	return nil
}

// object reads an object; member reads the value of each key.
func (p *parser) object(member func(key string) error) error {
	if err := p.expect('{', "here"); err != nil {
		return err
	}
	var names nameSet
	for first := true; ; first = false {
		if p.next() == '}' && first {
			break
		}
		at := p.i
		key, err := p.text()
		if err != nil {
			return err
		}
		if !names.add(key) {
			return p.fail(at, "the key %q comes twice; keep one of them", key)
		}
		if err := p.expect(':', "behind a key"); err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
		if p.next() == '}' {
			break
		}
		if err := p.expect(',', "or '}' behind a member"); err != nil {
			return err
		}
	}
	p.i++
	return nil
}

// nameSet finds repeated names: one by one while they are few.
type nameSet struct {
	few  [fewNames]string
	n    int // of few
	many map[string]struct{}
}

func (s *nameSet) add(name string) bool {
	if s.many == nil {
		for _, other := range s.few[:s.n] {
			if other == name {
				return false
			}
		}
		if s.n < fewNames {
			s.few[s.n] = name
			s.n++
			return true
		}
		s.many = make(map[string]struct{}, 4*fewNames)
		for _, other := range s.few {
			s.many[other] = struct{}{}
		}
	}
	if _, twice := s.many[name]; twice {
		return false
	}
	s.many[name] = struct{}{}
	return true
}

// array reads an array; item reads each item.
func (p *parser) array(item func() error) error {
	if err := p.expect('[', "here"); err != nil {
		return err
	}
	for first := true; ; first = false {
		if p.next() == ']' && first {
			break
		}
		if err := item(); err != nil {
			return err
		}
		if p.next() == ']' {
			break
		}
		if err := p.expect(',', "or ']' behind an item"); err != nil {
			return err
		}
	}
	p.i++
	return nil
}

// text reads a string.
func (p *parser) text() (string, error) {
	raw, escaped, err := p.rawText()
	if err != nil || !escaped {
		return string(raw), err
	}
	b, err := p.unescape(raw)
	return string(b), err
}

// textBytes reads a string into bytes of its own.
func (p *parser) textBytes() ([]byte, error) {
	raw, escaped, err := p.rawText()
	if err != nil {
		return nil, err
	}
	if !escaped {
		return append(make([]byte, 0, len(raw)), raw...), nil
	}
	return p.unescape(raw)
}

// rawText returns what stands between the quotes of a string, and leaves p.i behind it.
func (p *parser) rawText() (raw []byte, escaped bool, err error) {
	if err := p.expect('"', "at the start of a text"); err != nil {
		return nil, false, err
	}
	start, ascii := p.i, true
	for b, i := p.b, start; i < len(b); i++ {
		c := b[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			continue
		}
		p.i = i
		switch {
		case c == '"':
			raw = b[start:i]
			if !ascii && !utf8.Valid(raw) {
				return nil, false, p.fail(start, "the text is not UTF-8; save the file as UTF-8")
			}
			p.i++
			return raw, escaped, nil
		case c == '\\':
			escaped = true
			i++
		case c < 0x20:
			return nil, false, p.fail(i, "a text contains a raw control character or line break; is the line cut off?")
		default:
			ascii = false
		}
	}
	p.i = len(p.b)
	return nil, false, p.fail(p.i, "the text ends in the middle of a message; is the file whole?")
}

// unescape resolves the escapes of raw, which ends right before the quote behind p.i.
func (p *parser) unescape(raw []byte) ([]byte, error) {
	base := p.i - 1 - len(raw)
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		n := bytes.IndexByte(raw[i:], '\\')
		if n < 0 {
			return append(out, raw[i:]...), nil
		}
		out = append(out, raw[i:i+n]...)
		i += n + 2 // rawText has seen a byte behind each backslash
		switch c := raw[i-1]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, n := escapedRune(raw[i:])
			if n == 0 {
				return nil, p.fail(base+i-2, "%q is not a character; a byte sequence that is not UTF-8 belongs into the Base64 form", raw[i-2:min(i+4, len(raw))])
			}
			out = utf8.AppendRune(out, r)
			i += n
		default:
			return nil, p.fail(base+i-2, "unknown escape %q", raw[i-2:i])
		}
	}
	return out, nil
}

// escapedRune decodes the digits behind \u, and the second half of a surrogate pair with
// them. It returns how many bytes it used: 0 if they are no character.
func escapedRune(b []byte) (rune, int) {
	first, ok := unit(b)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(first) {
		return first, 4
	}
	if len(b) < 10 || b[4] != '\\' || b[5] != 'u' {
		return 0, 0
	}
	second, ok := unit(b[6:])
	r := utf16.DecodeRune(first, second)
	if !ok || r == utf8.RuneError {
		return 0, 0
	}
	return r, 10
}

func unit(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n), err == nil
}

// literal reads a number, true, false or null as it is written.
func (p *parser) literal() (string, error) {
	p.next()
	start := p.i
	for p.i < len(p.b) {
		switch c := p.b[p.i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '-', c == '+', c == '.', c == 'E':
			p.i++
			continue
		}
		break
	}
	lit := p.b[start:p.i]
	if !json.Valid(lit) {
		return "", p.fail(start, "want a value here")
	}
	return string(lit), nil
}

// number reads a number, which may be written as a text to keep all its digits.
func (p *parser) number() (string, error) {
	if p.next() == '"' {
		return p.text()
	}
	return p.literal()
}

func (p *parser) integer(bits int) (int64, error) {
	p.next()
	at := p.i
	lit, err := p.number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(lit, 10, bits)
	if err != nil {
		return 0, p.fail(at, "%q is not a whole number of %d bits", lit, bits)
	}
	return n, nil
}

func (p *parser) unsigned(bits int) (uint64, error) {
	p.next()
	at := p.i
	lit, err := p.number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(lit, 10, bits)
	if err != nil {
		return 0, p.fail(at, "%q is not a whole number from 0 of %d bits", lit, bits)
	}
	return n, nil
}

func (p *parser) boolean() (bool, error) {
	p.next()
	at := p.i
	lit, err := p.literal()
	if err != nil {
		return false, err
	}
	if lit != "true" && lit != "false" {
		return false, p.fail(at, "want true or false")
	}
	return lit == "true", nil
}

// base64 reads a string of standard Base64.
func (p *parser) base64() ([]byte, error) {
	p.next()
	at := p.i
	raw, escaped, err := p.rawText()
	if err != nil {
		return nil, err
	}
	if escaped { // "\/" is legal, if unusual
		if raw, err = p.unescape(raw); err != nil {
			return nil, err
		}
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(raw)))
	n, err := base64.StdEncoding.Strict().Decode(out, raw)
	if err != nil {
		return nil, p.fail(at, "the text is not standard Base64")
	}
	return out[:n], nil
}

// skip reads past one value of any form. The depth is that of the JSON, not of values.
func (p *parser) skip(depth int) error {
	if depth > 4*MaxDepth {
		return p.fail(p.i, "%v", errDepth)
	}
	switch p.next() {
	case '{':
		return p.object(func(string) error { return p.skip(depth + 1) })
	case '[':
		return p.array(func() error { return p.skip(depth + 1) })
	case '"':
		_, _, err := p.rawText()
		return err
	}
	_, err := p.literal()
	return err
}
