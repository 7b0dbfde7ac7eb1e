package payload

import (
	"encoding/json"
)

// maxJSONDepth is how deep JSON may be nested to count as JSON.
const maxJSONDepth = 1000

// Step is one step of a path into JSON. It has the fields of sqlfilter.Step, so that one
// converts to the other.
type Step struct {
	Key     string // member of an object
	Index   int    // element of an array, from 0
	IsIndex bool
}

// Find returns the value at a path in a JSON text, as it is written; no step means the
// whole. Of members with the same name the last one counts, as with encoding/json. ok is false
// if there is nothing at the path or doc is not one JSON value. It reads doc once, without
// building anything from it.
func Find(doc []byte, path []Step) (raw []byte, ok bool) {
	s := scanner{b: doc}
	if !s.document(path) || !s.found {
		return nil, false
	}
	return doc[s.from:s.to], true
}

// validJSON reports whether doc is one JSON value. Like encoding/json it does not look at
// whether strings are UTF-8.
func validJSON(doc []byte) bool {
	s := scanner{b: doc}
	return s.document(nil)
}

// scanner checks JSON (RFC 8259) and notes where the value at a path is.
type scanner struct {
	b        []byte
	i        int
	found    bool
	from, to int
}

func (s *scanner) document(path []Step) bool {
	s.space()
	ok := s.value(path, true, 0)
	s.space()
	return ok && s.i == len(s.b)
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// at moves past c if it is next.
func (s *scanner) at(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// value moves past a value. It leads to the wanted one if onPath is set, and is it if path
// is empty then.
func (s *scanner) value(path []Step, onPath bool, depth int) bool {
	if s.i == len(s.b) || depth > maxJSONDepth {
		return false
	}
	from, target := s.i, onPath && len(path) == 0
	if onPath {
		s.found = false // also what an earlier member of this name led to
	}
	var ok bool
	switch s.b[s.i] {
	case '{':
		s.i++
		ok = s.object(path, onPath && !target, depth)
	case '[':
		s.i++
		ok = s.array(path, onPath && !target, depth)
	case '"':
		s.i++
		ok = s.text()
	case 't':
		ok = s.word("true")
	case 'f':
		ok = s.word("false")
	case 'n':
		ok = s.word("null")
	default:
		ok = s.number()
	}
	if target && ok {
		s.found, s.from, s.to = true, from, s.i
	}
	return ok
}

func (s *scanner) object(path []Step, onPath bool, depth int) bool {
	onPath = onPath && !path[0].IsIndex
	s.space()
	if s.at('}') {
		return true
	}
	for {
		s.space()
		from := s.i
		if !s.at('"') || !s.text() {
			return false
		}
		key := s.b[from:s.i]
		s.space()
		if !s.at(':') {
			return false
		}
		s.space()
		next := path
		here := onPath && isKey(key, path[0].Key)
		if here {
			next = path[1:]
		}
		if !s.value(next, here, depth+1) {
			return false
		}
		s.space()
		if s.at('}') {
			return true
		}
		if !s.at(',') {
			return false
		}
	}
}

// isKey reports whether a JSON string, with its quotes, is key.
func isKey(quoted []byte, key string) bool {
	inner := quoted[1 : len(quoted)-1]
	if len(inner) < len(key) {
		return false
	}
	for _, c := range inner {
		if c == '\\' {
			var s string
			return json.Unmarshal(quoted, &s) == nil && s == key
		}
	}
	return string(inner) == key
}

func (s *scanner) array(path []Step, onPath bool, depth int) bool {
	onPath = onPath && path[0].IsIndex
	s.space()
	if s.at(']') {
		return true
	}
	for i := 0; ; i++ {
		s.space()
		next := path
		here := onPath && i == path[0].Index
		if here {
			next = path[1:]
		}
		if !s.value(next, here, depth+1) {
			return false
		}
		s.space()
		if s.at(']') {
			return true
		}
		if !s.at(',') {
			return false
		}
	}
}

// text moves past the rest of a string, behind its first quote.
func (s *scanner) text() bool {
	for b, i := s.b, s.i; i < len(b); {
		c := b[i]
		i++
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		s.i = i
		switch {
		case c == '"':
			return true
		case c < 0x20 || !s.escape():
			return false
		}
		i = s.i
	}
	return false
}

func (s *scanner) escape() bool {
	if s.i == len(s.b) {
		return false
	}
	c := s.b[s.i]
	s.i++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if s.i == len(s.b) || !isHex(s.b[s.i]) {
				return false
			}
			s.i++
		}
		return true
	}
	return false
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

func (s *scanner) number() bool {
	s.at('-')
	if !s.at('0') && !s.digits() {
		return false
	}
	if s.at('.') && !s.digits() {
		return false
	}
	if s.at('e') || s.at('E') {
		if !s.at('+') {
			s.at('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}
