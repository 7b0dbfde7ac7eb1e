package sqlfilter

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pattern is a compiled LIKE pattern: % stands for any run of characters, _ for one. It is
// immutable. A character is a Unicode code point, or one byte of invalid UTF-8.
type Pattern struct {
	// segments are the parts between the % signs. The first is anchored at the start of the
	// text and the last at its end; a pattern without % is one segment that is both.
	segments []segment
	fold     bool
}

// segment is a part of a pattern without %.
type segment struct {
	text string // with a placeholder of one byte where any holds
	any  []int  // byte offsets in text of the _ wildcards, ascending; nil: text is literal
}

// PatternOptions change how a pattern is read. The zero value is LIKE without ESCAPE.
type PatternOptions struct {
	Escape   rune // makes the character behind it literal; 0: none
	FoldCase bool // letters match in either case; LIKE itself never folds
}

// CompilePattern reads a LIKE pattern. The only error is an escape character with nothing
// behind it.
func CompilePattern(pattern string, opts PatternOptions) (*Pattern, error) {
	p := &Pattern{fold: opts.FoldCase}
	var text strings.Builder
	var wild []int
	cut := func() {
		p.segments = append(p.segments, segment{text.String(), wild})
		text.Reset()
		wild = nil
	}
	for i := 0; i < len(pattern); {
		r, n := utf8.DecodeRuneInString(pattern[i:])
		switch {
		case opts.Escape != 0 && r == opts.Escape:
			i += n
			if i == len(pattern) {
				return nil, errors.New("the pattern ends in its escape character; double it to match it")
			}
			_, n = utf8.DecodeRuneInString(pattern[i:])
			text.WriteString(pattern[i : i+n])
		case r == '%':
			cut()
		case r == '_':
			wild = append(wild, text.Len())
			text.WriteByte('_')
		default:
			text.WriteString(pattern[i : i+n])
		}
		i += n
	}
	cut()
	return p, nil
}

// Match reports whether the whole of s fits the pattern. It takes time proportional to
// len(s) for a pattern without _, and never more than len(s) times the pattern's length;
// it does not allocate.
func (p *Pattern) Match(s string) bool {
	first, rest := p.segments[0], p.segments[1:]
	n, ok := p.prefix(first, s)
	if !ok {
		return false
	}
	if len(rest) == 0 {
		return n == len(s)
	}
	s = s[n:]
	last := len(rest) - 1
	// Each inner segment takes its leftmost place: what is left for the others is then longest.
	for _, seg := range rest[:last] {
		at, n := p.find(seg, s)
		if at < 0 {
			return false
		}
		s = s[at+n:]
	}
	return p.suffix(rest[last], s)
}

// literal reports whether the bytes of the segment can be compared as they are.
func (p *Pattern) literal(seg segment) bool { return seg.any == nil && !p.fold }

// prefix reports whether s begins with the segment, and how many bytes that takes.
func (p *Pattern) prefix(seg segment, s string) (n int, ok bool) {
	if p.literal(seg) {
		return len(seg.text), strings.HasPrefix(s, seg.text)
	}
	wild := seg.any
	for i := 0; i < len(seg.text); {
		if n == len(s) {
			return 0, false
		}
		isWild := len(wild) > 0 && wild[0] == i
		if a, b := s[n], seg.text[i]; a < utf8.RuneSelf && b < utf8.RuneSelf { // the usual case, without decoding
			if isWild {
				wild = wild[1:]
			} else if a != b && (!p.fold || !foldsTo(rune(a), rune(b))) {
				return 0, false
			}
			i++
			n++
			continue
		}
		have, haveLen := utf8.DecodeRuneInString(s[n:])
		if isWild {
			wild = wild[1:]
			i++
			n += haveLen
			continue
		}
		want, wantLen := utf8.DecodeRuneInString(seg.text[i:])
		if s[n:n+haveLen] != seg.text[i:i+wantLen] && (!p.fold || !foldsTo(have, want)) {
			return 0, false
		}
		i += wantLen
		n += haveLen
	}
	return n, true
}

// find returns the leftmost place of the segment in s and its length there, or -1.
func (p *Pattern) find(seg segment, s string) (at, n int) {
	if p.literal(seg) {
		return strings.Index(s, seg.text), len(seg.text)
	}
	var head string // what the segment begins with, if a fast search can look for that
	if !p.fold {
		head = seg.text[:seg.any[0]]
	}
	for at <= len(s) {
		next := strings.Index(s[at:], head)
		if next < 0 {
			break
		}
		at += next
		if n, ok := p.prefix(seg, s[at:]); ok {
			return at, n
		}
		_, step := utf8.DecodeRuneInString(s[at:])
		at += max(step, 1)
	}
	return -1, 0
}

// suffix reports whether s ends with the segment.
func (p *Pattern) suffix(seg segment, s string) bool {
	if p.literal(seg) {
		return strings.HasSuffix(s, seg.text)
	}
	// A segment has one length in characters, so there is one place where it can begin.
	at := len(s)
	for range utf8.RuneCountInString(seg.text) {
		if at == 0 {
			return false
		}
		_, n := utf8.DecodeLastRuneInString(s[:at])
		at -= n
	}
	n, ok := p.prefix(seg, s[at:])
	return ok && at+n == len(s)
}

// foldsTo compares two characters without case. An invalid byte equals nothing but itself,
// which the caller has compared already.
func foldsTo(a, b rune) bool {
	if a == utf8.RuneError || b == utf8.RuneError {
		return false
	}
	for r := unicode.SimpleFold(a); r != a; r = unicode.SimpleFold(r) {
		if r == b {
			return true
		}
	}
	return false
}
