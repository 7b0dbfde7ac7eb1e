package sqsmsg

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// many are n sound attributes.
func many(n int) []Attribute {
	as := make([]Attribute, n)
	for i := range as {
		as[i] = text("a"+strconv.Itoa(i), "String", "v")
	}
	return as
}

const (
	textDots  = "Message (user) attribute name must not "
	textChars = "' is invalid. Attribute name can contain A-Z, a-z, 0-9, underscore (_), hyphen (-), and period (.) characters."
	textType  = "' is invalid. You must use only the following supported type prefixes: Binary, Number, String."
	textOwn   = "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These strings are reserved for internal use."
)

func TestCheckAttributesName(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"n", ""},
		{"Az09_-.z", ""},
		{"attr.1øßä", ""}, // AWS takes it
		{"ключ", ""},
		{"-", ""},
		{"aws", ""},
		{"awsome.x", ""},
		{"amazon", ""},
		{"my.aws.", textDots + "end with character '.'."},
		{"x.amazon.y", ""},
		{strings.Repeat("n", 256), ""},
		{strings.Repeat("ø", 256), ""},
		{strings.Repeat("n", 257), "Message (user) attribute name must be shorter than 256 bytes."},
		{"", "The request must contain non-empty message (user) attribute names."},
		{"aws.x", textOwn},
		{"aWs.-Invalid-attr", textOwn},
		{"AMAZON.-Invalid-attr", textOwn},
		{"AWS.", textOwn},
		{".x", textDots + "begin with character '.'."},
		{".", textDots + "begin with character '.'."},
		{"x.", textDots + "end with character '.'."},
		{"x..y", textDots + "have successive '.' characters."},
		{"Invalid-!-attr", "Message (user) attribute name 'Invalid-!-attr" + textChars},
		{"Invalid-\"-attr", "Message (user) attribute name 'Invalid-\"-attr" + textChars},
		{"Invalid-§-attr", "Message (user) attribute name 'Invalid-§-attr" + textChars},
		{"Invalid-(-attr", "Message (user) attribute name 'Invalid-(-attr" + textChars},
		{"Invalid-?-attr", "Message (user) attribute name 'Invalid-?-attr" + textChars},
		{"with space", "Message (user) attribute name 'with space" + textChars},
		{"n\xff", "Message (user) attribute name 'n\xff" + textChars},
	} {
		checkInvalid(t, CheckAttributes, []Attribute{text(tt.name, "String", "v")}, InvalidError{Text: tt.want})
	}
}

func TestCheckAttributesValue(t *testing.T) {
	const cast = "Can't cast the value of message (user) attribute 'n' to a number."
	const chars = "The value of message (user) attribute 'n' contains invalid characters. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
	for _, tt := range []struct{ kind, value, want string }{
		{"String", "Valida", ""},
		{"String", "\t\r\n", ""},
		{"String.json", "{}", ""},
		{"String.", "x", ""},
		{"Number.java.lang.Long", "5", ""},
		{"Binary", "\x00\xff", ""},
		{"Binary.gif", "\x00", ""},
		{"String." + strings.Repeat("l", 249), "v", ""},
		{"String." + strings.Repeat("l", 250), "v", "Message (user) attribute type must be shorter than 256 bytes."},
		{"", "v", "The message (user) attribute 'n' must contain a non-empty message attribute type."},
		{"Invalid", "v", "The type of message (user) attribute 'n" + textType},
		{"string", "v", "The type of message (user) attribute 'n" + textType},
		{"StringList", "v", "The type of message (user) attribute 'n" + textType},
		{".String", "v", "The type of message (user) attribute 'n" + textType},
		{"String.\x01", "v", "The type of message (user) attribute 'n' contains invalid characters."},
		{"String.\xff", "v", "The type of message (user) attribute 'n' contains invalid characters."},
		{"String", "", "Message (user) attribute 'n' must contain a non-empty value of type 'String'."},
		{"String.json", "", "Message (user) attribute 'n' must contain a non-empty value of type 'String.json'."},
		{"Number", "", "Message (user) attribute 'n' must contain a non-empty value of type 'Number'."},
		{"Binary", "", "Message (user) attribute 'n' must contain a non-empty value of type 'Binary'."},
		{"String", "Invalid-\x08,\x0b", chars},
		{"String", "\xff", chars},
		{"Number", "5\x00", chars},
		{"Number", "world", cast},
		{"Number.int", "12312312a", cast},
	} {
		checkInvalid(t, CheckAttributes, []Attribute{text("n", tt.kind, tt.value)}, InvalidError{Text: tt.want})
	}
}

func TestCheckAttributesList(t *testing.T) {
	bad, worse := text("bad", "String", ""), text("", "String", "")
	for _, tt := range []struct {
		as   []Attribute
		want InvalidError
	}{
		{nil, InvalidError{}},
		{many(10), InvalidError{}},
		{many(11), InvalidError{Text: "Number of message attributes [11] exceeds the allowed maximum [10].", TooMany: true}},
		{append(many(11), bad), InvalidError{Text: "Number of message attributes [12] exceeds the allowed maximum [10].", TooMany: true}},
		{append(many(3), bad, worse), InvalidError{Text: "Message (user) attribute 'bad' must contain a non-empty value of type 'String'."}},
		{append(many(3), many(1)...), InvalidError{Text: "Message (user) attribute name 'a0' is not unique."}},
		{append(many(3), text("A0", "String", "v")), InvalidError{}}, // names are case-sensitive
	} {
		checkInvalid(t, CheckAttributes, tt.as, tt.want)
	}
}

// checkInvalid checks what a check says; nothing if want has no text.
func checkInvalid(t *testing.T, check func([]Attribute) error, as []Attribute, want InvalidError) {
	t.Helper()
	err := check(as)
	if want.Text == "" {
		if err != nil {
			t.Errorf("%v: %v", as, err)
		}
		return
	}
	var bad *InvalidError
	if !errors.As(err, &bad) || *bad != want || err.Error() != want.Text {
		t.Errorf("%v: %+v, want %+v", as, err, want)
	}
}

func TestIsNumber(t *testing.T) {
	for _, s := range []string{
		"0", "-0", "+0", "00", "0.0", "0e9", "7", "-7", "+7", "007", "1.", ".5", "-.5", "1e5", "1E+5", "1.5e-5",
		"230.000000000000000001", "1e126", "-1e126", "1e-128", "-1e-128", "0e999999999999",
		"99999999999999999999999999999999999999", strings.Repeat("9", 126), "0." + strings.Repeat("0", 127) + "1",
	} {
		if !isNumber(s) {
			t.Errorf("%q is no number", s)
		}
	}
	for _, s := range []string{
		"", "-", "+", ".", "-.", "e5", ".e5", "1e", "1e+", "1e5.0", "1e5e5", "1.2.3", "--1", "+-1", "1-", "1 ", " 1", "\n1",
		"0x10", "0b1", "0o7", "1_000", "1p5", "NaN", "nan", "Inf", "-Inf", "Infinity", "infinity", "1,5", "١", "½", "world",
		"1e127", "-1e127", "1e-129", "1e400", "1e-400", "1e999999999999", strings.Repeat("9", 128),
	} {
		if isNumber(s) {
			t.Errorf("%q is a number", s)
		}
	}
}
