package sqsmsg

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// ValidText reports whether s is UTF-8 of the characters that SQS takes, which are those of XML:
// U+0009, U+000A, U+000D, U+0020 to U+D7FF, U+E000 to U+FFFD and U+10000 to U+10FFFF. The empty
// text is valid.
func ValidText(s []byte) bool {
	for {
		s = skipPlain(s)
		// What is not plain is seldom alone in a script of its own.
		for len(s) >= 2 && s[0] >= 0xc2 && s[0] <= 0xdf && s[1]&0xc0 == 0x80 {
			s = s[2:]
		}
		if len(s) == 0 {
			return true
		}
		size := charSize(s)
		if size == 0 {
			return false
		}
		s = s[size:]
	}
}

// skipPlain skips U+0020 to U+007F, which is nearly all of nearly every body: 32 bytes at a time,
// then eight, then up to the first other byte. Less than eight bytes are left alone.
func skipPlain(s []byte) []byte {
	for len(s) >= 32 {
		p := (*[32]byte)(s)
		if odd(p[:8])|odd(p[8:16])|odd(p[16:24])|odd(p[24:]) != 0 {
			break
		}
		s = s[32:]
	}
	for len(s) >= 8 {
		if m := odd(s); m != 0 {
			return s[bits.TrailingZeros64(m)/8:]
		}
		s = s[8:]
	}
	return s
}

// odd has the top bit of the first of eight bytes that is below U+0020 or beyond ASCII, and is
// zero if there is none. To subtract sets that bit of a byte that is too small; what is borrowed
// for it spoils the bytes behind it alone.
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
