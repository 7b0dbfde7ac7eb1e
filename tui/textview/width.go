package textview

import (
	"math"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// ellipsis stands for what [Truncate] cut off.
const ellipsis = "…"

// Width returns how many terminal cells s takes once it is sanitised.
func Width(s string) int {
	_, cells := fit(s, math.MaxInt, lineTab)
	return cells
}

// Truncate returns s, sanitised and cut with an ellipsis to at most so many
// cells. It reads no more of s than fits, so that a long text costs no more
// than a short one.
func Truncate(s string, cells int) string {
	n, _ := fit(s, cells, lineTab)
	if n == len(s) {
		return Sanitise(s)
	}
	room := cells - unitWidth(ellipsis)
	if room < 0 {
		return ""
	}
	n, _ = fit(s[:n], room, lineTab)
	return Sanitise(s[:n]) + ellipsis
}

// Pad returns s, sanitised, in exactly so many cells: cut with an ellipsis when
// it is longer and filled with spaces when it is shorter.
func Pad(s string, cells int) string {
	if n, used := fit(s, cells, lineTab); n == len(s) && used == cells {
		return Sanitise(s)
	}
	return string(AppendPad(nil, s, cells))
}

// AppendPad appends what [Pad] returns to dst. It is for tables, which fill one
// buffer with a whole screen.
func AppendPad(dst []byte, s string, cells int) []byte {
	n, used := fit(s, cells, lineTab)
	tail := ""
	if n < len(s) {
		room := cells - unitWidth(ellipsis)
		n, used = fit(s[:n], max(room, 0), lineTab)
		if room >= 0 {
			tail, used = ellipsis, used+cells-room
		}
	}
	dst = append(dst, Sanitise(s[:n])...)
	dst = append(dst, tail...)
	return appendSpaces(dst, cells-used)
}

// appendSpaces appends n spaces, or none when n is negative.
func appendSpaces(dst []byte, n int) []byte {
	const blank = "                                                                "
	for ; n > len(blank); n -= len(blank) {
		dst = append(dst, blank...)
	}
	return append(dst, blank[:max(n, 0)]...)
}

// fit returns the length of the longest prefix of s, in whole units, that takes
// at most so many cells when it is sanitised, and the cells it takes.
func fit(s string, cells int, tab string) (n, used int) {
	for n < len(s) {
		if isPlain(s[n]) && (n+1 == len(s) || s[n+1] < utf8.RuneSelf) {
			if used >= cells {
				return n, used
			}
			n++
			used++
			continue
		}
		size, ok := unit(s[n:])
		width := 0
		switch {
		case ok:
			width = unitWidth(s[n : n+size])
		case s[n] == '\t':
			width = len(tab)
		default:
			width = escapeWidth(s[n : n+size])
		}
		if width > cells-used {
			return n, used
		}
		n += size
		used += width
	}
	return n, used
}

// isPlain reports whether c is a printable ASCII character.
func isPlain(c byte) bool { return c >= ' ' && c < 0x7f }

// unitWidth returns the cells of one clean unit. A unit is never wider than two
// cells, and the sum over the units of a text is never less than what the
// renderer counts: it may join units into one grapheme, but splits none.
//
// Segmenting a single character into graphemes is needless and five times as
// dear; for the common scripts both ways of counting agree, which a test checks.
// Latin is left out: where RUNEWIDTH_EASTASIAN is set they differ there.
func unitWidth(s string) int {
	if r, n := utf8.DecodeRuneInString(s); n == len(s) && r >= 0x0400 && isCommon(r) {
		return ansi.WcWidth.StringWidth(s)
	}
	return ansi.GraphemeWidth.StringWidth(s)
}

// escapeWidth returns the cells of the visible form of the one character in s.
func escapeWidth(s string) int {
	var b [16]byte
	return len(appendEscape(b[:0], s))
}
