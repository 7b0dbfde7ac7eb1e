package textview

import (
	"strings"
	"unicode/utf8"
)

// What a tab becomes: in one line a visible mark, in a block an indent of a
// fixed size. Tab stops would make a line depend on the width of all before it.
const (
	lineTab  = "^I"
	blockTab = "    "
)

// Sanitise returns s as one line that is safe to write to a terminal. Tabs and
// line breaks become visible too. Clean text is returned as it is, without an
// allocation. It takes linear time and is idempotent.
func Sanitise(s string) string { return sanitise(s, lineTab) }

// SanitiseLines returns the lines of s, each safe to write to a terminal. A
// line ends at LF or CRLF; a CR anywhere else is shown. A tab becomes four
// spaces. A line break at the very end begins no further line, and an empty
// text has no lines.
//
// It walks the whole of s: for bodies that may be long use [View].
func SanitiseLines(s string) []string {
	if s == "" {
		return nil
	}
	s = strings.TrimSuffix(s, "\n")
	lines := make([]string, 0, 1+strings.Count(s, "\n"))
	for line := range strings.SplitSeq(s, "\n") {
		lines = append(lines, sanitise(strings.TrimSuffix(line, "\r"), blockTab))
	}
	return lines
}

// sanitise replaces in s what must not reach a terminal, and tabs by tab.
func sanitise(s, tab string) string {
	clean := cleanPrefix(s)
	if clean == len(s) {
		return s
	}
	b := make([]byte, 0, len(s)+len(s)/4+16)
	for {
		b = append(b, s[:clean]...)
		s = s[clean:]
		if s == "" {
			return string(b)
		}
		n, _ := unit(s)
		if s[0] == '\t' {
			b = append(b, tab...)
		} else {
			b = appendEscape(b, s[:n])
		}
		s = s[n:]
		clean = cleanPrefix(s)
	}
}

// cleanPrefix returns the length of the longest prefix of s, in whole units,
// that needs no replacement.
func cleanPrefix(s string) int {
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && s[i] >= ' ' && s[i] < 0x7f {
			i++
		}
		if i == len(s) {
			return i
		}
		if i > start && s[i] >= utf8.RuneSelf {
			i-- // what follows may be a mark on this letter
		}
		n, ok := unit(s[i:])
		if !ok {
			return i
		}
		i += n
	}
	return len(s)
}

// appendEscape appends the visible form of the one character in s, or of the
// one byte that is not UTF-8.
func appendEscape(b []byte, s string) []byte {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && size == 1:
		return appendHex(append(b, '<'), s[0])
	case r < ' ' || r == 0x7f:
		return append(b, '^', byte(r)^0x40)
	case r < 0xa0:
		return appendHex(append(b, '<'), byte(r))
	}
	b = append(b, "<U+"...)
	digits := 4
	for r>>(4*digits) != 0 {
		digits++
	}
	for digits--; digits >= 0; digits-- {
		b = append(b, hexDigits[r>>(4*digits)&0xf])
	}
	return append(b, '>')
}

const hexDigits = "0123456789ABCDEF"

// appendHex appends c as two digits and the closing bracket.
func appendHex(b []byte, c byte) []byte {
	return append(b, hexDigits[c>>4], hexDigits[c&0xf], '>')
}
