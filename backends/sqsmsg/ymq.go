package sqsmsg

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// CheckAttributesYMQ reports the first thing that Yandex Message Queue would not take, as an
// [*InvalidError]. It takes what AWS does not: any type, and any text under Number. It does not
// take letters beyond ASCII in names, nor the prefixes of Yandex.
// Source: https://github.com/ydb-platform/ydb/blob/main/ydb/core/ymq/http/http.cpp (names, types
// and whether there is a value, before all else) and
// https://github.com/ydb-platform/ydb/blob/main/ydb/core/ymq/actor/send_message.cpp
func CheckAttributesYMQ(as []Attribute) error {
	for i, a := range as {
		switch {
		case !validNameYMQ(a.Name):
			return invalid("Invalid message attribute name.")
		case a.Type == "":
			return combination("No message attribute data type provided.")
		case len(a.Type) > maxName:
			return invalid("Message attribute data type is too long.")
		case len(a.Value) == 0:
			return combination("No message attribute value provided.")
		case twice(as[:i], a.Name):
			return combination("Duplicated message attribute name.")
		}
	}
	if len(as) > maxAttributes {
		bad := combination("Message has more than %d attributes.", maxAttributes)
		bad.TooMany = true
		return bad
	}
	for _, a := range as {
		if a.Binary() {
			continue
		}
		if problem := InvalidTextYMQ(a.Value); problem != "" {
			return invalid("Message attribute \"%s\" validation failed: %s.", a.Name, problem)
		}
	}
	return nil
}

func combination(format string, args ...any) *InvalidError {
	bad := invalid(format, args...)
	bad.Combination = true
	return bad
}

// validNameYMQ reports whether YMQ takes a name, which it gives no reasons for.
func validNameYMQ(name string) bool {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-."
	return name != "" && len(name) <= maxName &&
		name[0] != '.' && name[len(name)-1] != '.' && !strings.Contains(name, "..") &&
		strings.Trim(name, letters) == "" &&
		!reserved(name, "aws.", "amazon.", "ya.", "yc.", "yandex.")
}

// InvalidTextYMQ is what YMQ says of a text that it does not take, as the end of a sentence; ""
// for a text that is valid, which is the same as to [ValidText].
func InvalidTextYMQ(s []byte) string {
	if ValidText(s) {
		return ""
	}
	for size := charSize(s); size > 0; size = charSize(s) { // ends: there is a character that is not valid
		s = s[size:]
	}
	r, size := utf8.DecodeRune(s)
	if r == utf8.RuneError && size <= 1 {
		return "nonunicode characters are not allowed"
	}
	return fmt.Sprintf("character 0x%08X is not allowed", r)
}
