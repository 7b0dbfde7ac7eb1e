package sqsmsg

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxAttributes = 10
	maxName       = 256 // characters, of names and of types
)

// ValidText reports whether s is UTF-8 of the characters that SQS takes: tab, line feed, carriage
// return and U+0020 on, without surrogates, U+FFFE and U+FFFF.
func ValidText(s []byte) bool {
	for len(s) >= 8 { // most bytes are ASCII, and most texts have nothing but
		if notPlain(s[0]) || notPlain(s[1]) || notPlain(s[2]) || notPlain(s[3]) ||
			notPlain(s[4]) || notPlain(s[5]) || notPlain(s[6]) || notPlain(s[7]) {
			break
		}
		s = s[8:]
	}
	for len(s) > 0 {
		if !notPlain(s[0]) {
			s = s[1:]
			continue
		}
		r, size := utf8.DecodeRune(s)
		if r == utf8.RuneError && size == 1 || !validRune(r) {
			return false
		}
		s = s[size:]
	}
	return true
}

func notPlain(c byte) bool { return c < ' ' || c >= utf8.RuneSelf }

func validRune(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000
}

// InvalidError says what is wrong with message attributes, in words that the service uses.
type InvalidError struct {
	Text    string
	TooMany bool // there are more than ten
}

func (e *InvalidError) Error() string { return e.Text }

func invalid(format string, args ...any) *InvalidError {
	return &InvalidError{Text: fmt.Sprintf(format, args...)}
}

// CheckAttributes reports the first thing that the service would not take: an [InvalidError].
func CheckAttributes(as []Attribute) error {
	if len(as) > maxAttributes {
		return &InvalidError{Text: fmt.Sprintf("Number of message attributes [%d] exceeds the allowed maximum [%d].", len(as), maxAttributes), TooMany: true}
	}
	for i, a := range as {
		for _, other := range as[:i] {
			if other.Name == a.Name {
				return invalid("Message (user) attribute name '%s' is there twice.", a.Name)
			}
		}
		if err := a.check(); err != nil {
			return err
		}
	}
	return nil
}

func (a Attribute) check() error {
	if err := checkName(a.Name); err != nil {
		return err
	}
	kind := kindOf(a.Type)
	switch {
	case a.Type == "":
		return invalid("Message (user) attribute '%s' must contain a non-empty message attribute type.", a.Name)
	case utf8.RuneCountInString(a.Type) > maxName:
		return invalid("Message (user) attribute '%s' has a type of more than %d characters.", a.Name, maxName)
	case kind != typeString && kind != typeNumber && kind != typeBinary:
		return invalid("The message attribute '%s' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String.", a.Name)
	case len(a.Value) == 0:
		return invalid("Message (user) attribute '%s' must contain a non-empty value of type '%s'.", a.Name, kind)
	case kind != typeBinary && !ValidText(a.Value):
		return invalid("Invalid characters found in the value of the message attribute '%s'.", a.Name)
	case kind == typeNumber && !isNumber(string(a.Value)):
		return invalid("Can't cast the value of message (user) attribute '%s' to a number.", a.Name)
	}
	return nil
}

// isNumber reports whether the service takes s for a number.
func isNumber(s string) bool {
	if strings.ContainsAny(s, "_xXpPnN") { // forms that only Go reads
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// checkName checks the name of an attribute. Letters beyond ASCII are taken, as they are by the
// service, whatever its documentation says.
func checkName(name string) error {
	lower := strings.ToLower(name)
	switch {
	case name == "":
		return invalid("The message attribute name must not be empty.")
	case utf8.RuneCountInString(name) > maxName:
		return invalid("The message attribute name '%s…' has more than %d characters.", string([]rune(name)[:32]), maxName)
	case strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon."):
		return invalid("You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These strings are reserved for internal use.")
	case name[0] == '.' || name[len(name)-1] == '.' || strings.Contains(name, ".."):
		return invalid("The message attribute name '%s' must not begin or end with a period, nor have two of them in succession.", name)
	}
	for _, r := range name {
		if r != '_' && r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return invalid("The message attribute name '%s' can contain letters, digits, hyphens, underscores and periods alone.", name)
		}
	}
	return nil
}

// MatchNames returns what reports whether a receive asks for an attribute: by its name, by the
// beginning of its name before ".*", or with all by All, .* or *.
func MatchNames(patterns []string) func(name string) bool {
	var exact, prefixes []string
	for _, p := range patterns {
		switch {
		case p == "All" || p == ".*" || p == "*":
			return func(string) bool { return true }
		case strings.HasSuffix(p, ".*"):
			prefixes = append(prefixes, strings.TrimSuffix(p, ".*"))
		default:
			exact = append(exact, p)
		}
	}
	return func(name string) bool {
		for _, p := range exact {
			if name == p {
				return true
			}
		}
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				return true
			}
		}
		return false
	}
}
