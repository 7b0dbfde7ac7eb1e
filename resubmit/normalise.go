package resubmit

import (
	"strings"
	"unicode/utf8"
)

// normalise replaces what differs between two failures of the same kind by placeholders:
// {url} {path} {guid} {time} {hex} {n}, and {id} for a quoted text that holds a digit. Runs of spaces
// become one. It reads the text once from the left; each step looks ahead only over what it then
// consumes, or over a bounded number of bytes.
func normalise(s string) string {
	var b strings.Builder
	b.Grow(min(len(s), 2*maxDetail))
	prev := byte(' ') // the last byte that was taken from s
	for i := 0; i < len(s); {
		n, with := token(s[i:], prev)
		if n == 0 {
			_, n = utf8.DecodeRuneInString(s[i:])
			with = s[i : i+n]
		}
		prev = s[i+n-1]
		if isSpace(s[i]) {
			with = " "
			if b.Len() == 0 || strings.HasSuffix(b.String(), " ") {
				with = ""
			}
		}
		b.WriteString(with)
		i += n
	}
	return strings.TrimSuffix(b.String(), " ")
}

// token returns how many bytes at the beginning of s are one token, and what to write for it.
// prev is the byte before s.
func token(s string, prev byte) (n int, with string) {
	c := s[0]
	switch {
	case isSpace(c):
		for n < len(s) && isSpace(s[n]) {
			n++
		}
		return n, " "
	case c == '\'' || c == '"' || c == '`':
		return quoted(s, prev)
	case isWordByte(prev):
		return 0, ""
	}
	if n := pathLen(s); n > 0 {
		return n, "{path}"
	}
	if !isWordByte(c) {
		return 0, ""
	}
	return word(s)
}

// quoted replaces a short quoted text that holds a digit: an id, not a name. An apostrophe
// within a word begins nothing.
func quoted(s string, prev byte) (int, string) {
	const longest = 128
	if isWordByte(prev) {
		return 0, ""
	}
	digit := false
	for i := 1; i < len(s) && i < longest; i++ {
		switch {
		case s[i] == s[0] && digit:
			return i + 1, s[:1] + "{id}" + s[:1]
		case s[i] == s[0], s[i] == '\n':
			return 0, ""
		case isDigit(s[i]):
			digit = true
		}
	}
	return 0, ""
}

// word reads a word and says what it stands for.
func word(s string) (int, string) {
	if n := urlLen(s); n > 0 {
		return n, "{url}"
	}
	if isGUID(s) {
		return 36, "{guid}"
	}
	if n := timeLen(s); n > 0 {
		return n, "{time}"
	}
	n, digits, hexes := 0, 0, 0
	for n < len(s) && isWordByte(s[n]) {
		switch {
		case isDigit(s[n]):
			digits++
			hexes++
		case isHex(s[n]):
			hexes++
		}
		n++
	}
	text := s[:n]
	switch {
	case digits == 0:
		return n, text
	case digits == n:
		return n + fractionLen(s[n:]), "{n}"
	case hexes == n && n >= 8, n > 2 && (strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X")):
		return n, "{hex}"
	case n >= 20 && digits >= 4:
		return n, "{id}"
	}
	return n, foldDigits(text)
}

// foldDigits replaces each run of digits in a word: "order1234" becomes "order{n}", while the
// short numbers that belong to a name ("Int32", "utf8") stay.
func foldDigits(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		n := 0
		for i+n < len(s) && isDigit(s[i+n]) {
			n++
		}
		switch {
		case n > 2:
			b.WriteString("{n}")
			i += n
		case n > 0:
			b.WriteString(s[i : i+n])
			i += n
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return b.String()
}

// fractionLen returns the length of what continues a number: decimals, groups of thousands, dotted
// versions and addresses ("10.0.0.1:5671").
func fractionLen(s string) int {
	n := 0
	for n+1 < len(s) && (s[n] == '.' || s[n] == ',' || s[n] == ':') && isDigit(s[n+1]) {
		n++
		for n < len(s) && isDigit(s[n]) {
			n++
		}
	}
	return n
}

func isGUID(s string) bool {
	if len(s) < 36 || len(s) > 36 && isWordByte(s[36]) {
		return false
	}
	for i := range 36 {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (s[i] == '-') || !dash && !isHex(s[i]) {
			return false
		}
	}
	return true
}

// timeLen recognises 2026-01-02 and what follows it of a time: T15:04:05.000Z, +02:00.
func timeLen(s string) int {
	const date = "dddd-dd-dd"
	if !shaped(s, date) || len(s) > len(date) && isDigit(s[len(date)]) {
		return 0
	}
	n := len(date)
	for _, sep := range [...]string{"T", "t", " "} {
		if shaped(s[n:], sep+"dd:dd") {
			n += len("Tdd:dd")
			break
		}
	}
	if n == len(date) {
		return n
	}
	if shaped(s[n:], ":dd") {
		n += 3
	}
	if n+1 < len(s) && (s[n] == '.' || s[n] == ',') && isDigit(s[n+1]) {
		for n++; n < len(s) && isDigit(s[n]); n++ {
		}
	}
	switch {
	case shaped(s[n:], "Z"), shaped(s[n:], "z"):
		n++
	case shaped(s[n:], "+dd:dd"), shaped(s[n:], "-dd:dd"):
		n += 6
	}
	return n
}

// shaped reports whether s begins like the pattern, in which d stands for a digit.
func shaped(s, pattern string) bool {
	if len(s) < len(pattern) {
		return false
	}
	for i := range len(pattern) {
		if pattern[i] == 'd' && !isDigit(s[i]) || pattern[i] != 'd' && s[i] != pattern[i] {
			return false
		}
	}
	return true
}

// urlLen recognises scheme://, and takes all up to a space, quote or closing bracket.
func urlLen(s string) int {
	const longestScheme = 12
	i := 0
	for i < len(s) && i < longestScheme && (isLetter(s[i]) || i > 0 && (isDigit(s[i]) || s[i] == '+')) {
		i++
	}
	if i < 2 || !strings.HasPrefix(s[i:], "://") {
		return 0
	}
	return endOfPlace(s, i+3)
}

// pathLen recognises /a/b, C:\a and \\host\a.
func pathLen(s string) int {
	switch {
	case len(s) > 3 && isLetter(s[0]) && s[1] == ':' && s[2] == '\\':
		return endOfPlace(s, 3)
	case strings.HasPrefix(s, `\\`) && len(s) > 2 && isWordByte(s[2]):
		return endOfPlace(s, 2)
	case s[0] == '/' && len(s) > 1 && isWordByte(s[1]):
		if end := endOfPlace(s, 1); strings.Count(s[:end], "/") > 1 {
			return end
		}
	}
	return 0
}

// endOfPlace returns where a URL or path that continues at i ends; the stop of a sentence is not part of it.
func endOfPlace(s string, i int) int {
	for i < len(s) && !isSpace(s[i]) && !strings.ContainsRune("'\"`<>|)]},;", rune(s[i])) {
		i++
	}
	for i > 0 && (s[i-1] == '.' || s[i-1] == ':') {
		i--
	}
	return i
}

func isSpace(c byte) bool  { return c == ' ' || c >= '\t' && c <= '\r' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isHex(c byte) bool    { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// isWordByte reports whether c belongs to a word; all of UTF-8 beyond ASCII does.
func isWordByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c >= utf8.RuneSelf }
