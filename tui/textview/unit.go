package textview

import (
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks one base may carry. Real scripts need
// three or four; more is text that climbs over its neighbours.
const maxMarks = 4

// unit reads the smallest piece of s that is shown as a whole, from a place
// where a piece begins. When ok, the n bytes are safe as they stand: one base
// character with its marks. When not ok, they are one character, or one byte
// that is not UTF-8, which has to be escaped.
//
// It looks at no more than a bounded number of bytes and needs nothing of what
// stood before: a mark at the start of a unit has no base and is therefore not
// ok. Both are what lets a long text be cut anywhere between two units. s is
// not empty.
func unit(s string) (n int, ok bool) {
	r, n := utf8.DecodeRuneInString(s)
	if !isBase(r) || r == utf8.RuneError && n <= 1 {
		return n, false
	}
	if isRegional(r) {
		if second, size := utf8.DecodeRuneInString(s[n:]); isRegional(second) {
			n += size // two regional indicators are one flag
		}
	}
	for marks := 0; marks < maxMarks && n < len(s) && s[n] >= utf8.RuneSelf; marks++ {
		mark, size := utf8.DecodeRuneInString(s[n:])
		if !isMark(mark) && !(isPresentation(mark) && unicode.In(r, unicode.So, unicode.Sm)) {
			break
		}
		r = mark
		n += size
	}
	return n, true
}

// isBase reports whether r may be shown and takes cells of its own. It decides
// what is allowed; whatever Unicode adds tomorrow is escaped until Go knows it.
func isBase(r rune) bool {
	if r < 0x7f {
		return r >= ' '
	}
	return isCommon(r) || unicode.IsGraphic(r) && !isMark(r) && !isInvisible(r)
}

// isCommon is the shortcut for the scripts most text is written in: ranges in
// which every character is a base. A test compares it with the tables.
func isCommon(r rune) bool {
	switch {
	case r < 0x0300:
		return r > 0x00a0 && r != 0x00ad // Latin, without the soft hyphen
	case r < 0x0500:
		return r >= 0x0400 && r <= 0x0482 || r >= 0x048a // Cyrillic
	case r < 0x3100:
		return r >= 0x30a1 || r >= 0x3041 && r <= 0x3096 // kana
	default:
		return r >= 0x4e00 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7a3 // Han, Hangul
	}
}

// isMark reports whether r joins the character before it instead of taking
// cells. Beside the marks proper these are the conjoining vowels and finals of
// Hangul and the skin tones of emoji, which pile up just as well.
func isMark(r rune) bool {
	switch {
	case r < 0x0300, isCommon(r):
		return false
	case r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7ff, r >= 0x1f3fb && r <= 0x1f3ff:
		return !isInvisible(r) && unicode.IsGraphic(r)
	}
	return unicode.Is(unicode.M, r) && !isInvisible(r)
}

// isInvisible reports whether r is graphic by its category and yet shows
// nothing: fillers, joiners and selectors. Selectors alone can carry a whole
// hidden text, one byte in each.
func isInvisible(r rune) bool {
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// isPresentation reports whether r chooses the text or the emoji form of the
// symbol before it. Only there it is let through: the warning sign in plain
// messages is written with it.
func isPresentation(r rune) bool { return r == 0xfe0e || r == 0xfe0f }

// isRegional reports whether r is one half of a flag.
func isRegional(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }
