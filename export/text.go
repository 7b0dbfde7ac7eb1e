package export

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendString appends s, which is UTF-8, as a JSON string. What could steer a terminal
// or hide from the eye is escaped.
func appendString(dst []byte, s string) []byte {
	return appendText(dst, []byte(s)) // the compiler sees that nothing writes to it, and does not copy
}

// appendText is appendString for bytes.
func appendText(dst, s []byte) []byte {
	const chunkSize = 256
	dst = append(dst, '"')
	for len(s) > 0 {
		// Nearly all text is plain, and JSON in JSON is full of quotes: both are written
		// straight into room made before, the rest one by one.
		chunk := s[:min(len(s), chunkSize)]
		dst = slices.Grow(dst, 2*len(chunk)+1)
		room := dst[len(dst) : len(dst)+2*len(chunk)]
		in, out := 0, 0
		for ; in < len(chunk); in++ {
			c := chunk[in]
			if plainASCII[c] {
				room[out] = c
				out++
			} else if c == '"' || c == '\\' {
				room[out], room[out+1] = '\\', c
				out += 2
			} else {
				break
			}
		}
		dst = dst[:len(dst)+out]
		if s = s[in:]; in < len(chunk) {
			n := 1
			if s[0] < utf8.RuneSelf {
				dst = appendEscape(dst, s[0])
			} else if r, size := utf8.DecodeRune(s); mustEscape(r) {
				dst, n = appendRuneEscape(dst, r), size
			} else {
				dst, n = append(dst, s[:size]...), size
			}
			s = s[n:]
		}
	}
	return append(dst, '"')
}

// plainASCII says which bytes stand for themselves in a JSON string: ASCII that is no
// control character, quote or backslash. Nothing writes to it.
var plainASCII = func() (plain [256]bool) {
	for c := 0x20; c < 0x7f; c++ {
		plain[c] = c != '"' && c != '\\'
	}
	return plain
}()

// mustEscape reports whether r, which is not ASCII, is a control, format, or line
// separator character. The comparisons cover almost all text without a table.
func mustEscape(r rune) bool {
	switch {
	case r < 0xa0:
		return true
	case r < 0x600 && r != 0xad, r > 0x206f && r < 0xfeff:
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

func appendRuneEscape(dst []byte, r rune) []byte {
	if r >= 0x10000 {
		r -= 0x10000
		dst = appendUnit(dst, 0xd800+r>>10)
		r = 0xdc00 + r&0x3ff
	}
	return appendUnit(dst, r)
}

func appendUnit(dst []byte, u rune) []byte {
	return append(dst, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
