package sqsmsg

import (
	"encoding/binary"
	"unicode/utf8"
)

// ValidText reports whether s is UTF-8 of the characters that SQS takes, which are those of XML:
// U+0009, U+000A, U+000D, U+0020 to U+D7FF, U+E000 to U+FFFD and U+10000 to U+10FFFF. The empty
// text is valid.
func ValidText(s []byte) bool {
	for len(s) > 0 {
		s = skipPlain(s)
		for n := 0; n < 8 && len(s) > 0; n++ { // a byte that is not plain is seldom alone
			size := charSize(s)
			if size == 0 {
				return false
			}
			s = s[size:]
		}
	}
	return true
}

// skipPlain skips printable ASCII, and DEL, eight bytes at a time: nearly all of nearly every body.
func skipPlain(s []byte) []byte {
	for len(s) >= 32 {
		if odd(s)|odd(s[8:])|odd(s[16:])|odd(s[24:]) != 0 {
			break
		}
		s = s[32:]
	}
	for len(s) >= 8 && odd(s) == 0 {
		s = s[8:]
	}
	return s
}

// odd is not zero if one of the first eight bytes of s is below U+0020 or beyond ASCII. To subtract
// sets the top bit of the lowest byte that is too small; what it borrows from the bytes above
// matters no more.
func odd(s []byte) uint64 {
	const spaces, tops = 0x2020202020202020, 0x8080808080808080
	w := binary.LittleEndian.Uint64(s)
	return (w | (w - spaces)) & tops
}

// charSize is how many bytes the first character of s has, or 0 if SQS does not take it.
func charSize(s []byte) int {
	if c := s[0]; c < utf8.RuneSelf {
		if c >= ' ' || c == '\t' || c == '\n' || c == '\r' {
			return 1
		}
		return 0
	}
	r, size := utf8.DecodeRune(s)
	if r == utf8.RuneError && size == 1 || r == 0xfffe || r == 0xffff {
		return 0
	}
	return size
}
