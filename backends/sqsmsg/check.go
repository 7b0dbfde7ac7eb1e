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
	maxName       = 256 // characters of a name, and of a type
)

// InvalidError says what is wrong with message attributes, in the words of the service.
type InvalidError struct {
	Text string // of the answer, whose code is InvalidParameterValue
	// TooMany says that there are more than ten.
	TooMany bool
	// Combination says that the code is InvalidParameterCombination. Only YMQ has it.
	Combination bool
}

func (e *InvalidError) Error() string { return e.Text }

func invalid(format string, args ...any) *InvalidError {
	return &InvalidError{Text: fmt.Sprintf(format, args...)}
}

// CheckAttributes reports the first thing that AWS would not take, as an [*InvalidError]. Their
// order does not matter to it, nor the size of the message.
//
// The texts for too many attributes, an unknown type, an empty value and a number that is none are
// those that AWS was seen to give. The others follow them in style.
func CheckAttributes(as []Attribute) error {
	if len(as) > maxAttributes {
		return &InvalidError{
			Text:    fmt.Sprintf("Number of message attributes [%d] exceeds the allowed maximum [%d].", len(as), maxAttributes),
			TooMany: true,
		}
	}
	for i, a := range as {
		bad := checkName(a.Name)
		if bad == nil && twice(as[:i], a.Name) {
			bad = invalid("Message (user) attribute name '%s' is not unique.", a.Name)
		}
		if bad == nil {
			bad = checkType(a)
		}
		if bad == nil {
			bad = checkValue(a)
		}
		if bad != nil {
			return bad
		}
	}
	return nil
}

// twice reports whether a name is there before.
func twice(before []Attribute, name string) bool {
	for _, a := range before {
		if a.Name == name {
			return true
		}
	}
	return false
}

func checkName(name string) *InvalidError {
	switch {
	case name == "":
		return invalid("The request must contain non-empty message (user) attribute names.")
	case utf8.RuneCountInString(name) > maxName:
		return invalid("Message (user) attribute name must be shorter than %d bytes.", maxName)
	case reserved(name, "aws.", "amazon."):
		return invalid("You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These strings are reserved for internal use.")
	case name[0] == '.':
		return invalid("Message (user) attribute name must not begin with character '.'.")
	case name[len(name)-1] == '.':
		return invalid("Message (user) attribute name must not end with character '.'.")
	case strings.Contains(name, ".."):
		return invalid("Message (user) attribute name must not have successive '.' characters.")
	}
	for _, r := range name {
		// AWS documents A to Z, and takes ø, ß and ä; it does not take §.
		if r != '_' && r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return invalid("Message (user) attribute name '%s' is invalid. Attribute name can contain A-Z, a-z, 0-9, underscore (_), hyphen (-), and period (.) characters.", name)
		}
	}
	return nil
}

// reserved reports whether a name begins with one of the prefixes, in any case.
func reserved(name string, prefixes ...string) bool {
	for _, p := range prefixes {
		if len(name) >= len(p) && strings.EqualFold(name[:len(p)], p) {
			return true
		}
	}
	return false
}

func checkType(a Attribute) *InvalidError {
	kind := kindOf(a.Type)
	switch {
	case a.Type == "":
		return invalid("The message (user) attribute '%s' must contain a non-empty message attribute type.", a.Name)
	case kind != typeString && kind != typeNumber && kind != typeBinary:
		return invalid("The type of message (user) attribute '%s' is invalid. You must use only the following supported type prefixes: Binary, Number, String.", a.Name)
	case utf8.RuneCountInString(a.Type) > maxName:
		return invalid("Message (user) attribute type must be shorter than %d bytes.", maxName)
	case !ValidText([]byte(a.Type)):
		return invalid("The type of message (user) attribute '%s' contains invalid characters.", a.Name)
	}
	return nil
}

func checkValue(a Attribute) *InvalidError {
	switch {
	case len(a.Value) == 0:
		return invalid("Message (user) attribute '%s' must contain a non-empty value of type '%s'.", a.Name, a.Type)
	case a.Binary():
		return nil
	case !ValidText(a.Value):
		return invalid("The value of message (user) attribute '%s' contains invalid characters. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF", a.Name)
	case kindOf(a.Type) == typeNumber && !isNumber(string(a.Value)):
		return invalid("Can't cast the value of message (user) attribute '%s' to a number.", a.Name)
	}
	return nil
}

// isNumber reports whether s is a decimal number in the documented range: 0, or 10^-128 to 10^126
// with either sign. How many digits it has does not matter, though 38 are documented.
func isNumber(s string) bool {
	mantissa, ok := splitNumber(s)
	if !ok {
		return false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return false // beyond the range of a float64, which is wider
	}
	if f < 0 {
		f = -f
	}
	return f >= 1e-128 && f <= 1e126 || f == 0 && !strings.ContainsAny(mantissa, "123456789")
}

// splitNumber returns the digits of a number before its exponent. ok is false for what is no
// decimal number, such as the hexadecimal digits and infinities that ParseFloat reads.
func splitNumber(s string) (mantissa string, ok bool) {
	mantissa, exponent := trimSign(s), ""
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		mantissa, exponent = mantissa[:i], trimSign(mantissa[i+1:])
		if exponent == "" {
			return "", false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	return mantissa, whole+fraction != "" && digits(whole) && digits(fraction) && digits(exponent)
}

func trimSign(s string) string {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[1:]
	}
	return s
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }
