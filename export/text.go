package export

import (
	"unicode"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendString appends s, which is UTF-8, as a JSON string. What could steer a terminal
// or hide from the eye is escaped.
func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
			continue
		}
		r, n := decodeRune(s[i:])
		if mustEscape(r) {
			dst = append(dst, s[start:i]...)
			dst = appendRuneEscape(dst, r)
			start = i + n
		}
		i += n
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// decodeRune decodes the first rune of either form of text without converting the whole.
func decodeRune[T string | []byte](s T) (rune, int) {
	var b [utf8.UTFMax]byte
	return utf8.DecodeRune(b[:copy(b[:], s)])
}

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
	case '"', '\\':
		return append(dst, '\\', c)
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
