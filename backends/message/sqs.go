package message

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sqsPrefix stands before the type of a message attribute of SQS that has no kind of its own. Such
// a value is kept as a Described with that symbol.
const sqsPrefix = "sqs:"

// IsSQSType reports whether t is the type of a message attribute of SQS as a person writes it,
// such as sqs:Number, sqs:Number.float or sqs:Binary.png, with a label that has a text form: no
// '=', ':' or double quote, and nothing that does not print or ends in a space.
func IsSQSType(t string) bool {
	_, label, ok := cutSQSType(t)
	return ok && !strings.ContainsAny(label, `=:"`) && strings.TrimSpace(label) == label && utf8.ValidString(label) &&
		!strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) })
}

// cutSQSType splits a type into String, Number or Binary and its label, which begins with a dot.
func cutSQSType(t string) (kind, label string, ok bool) {
	t, ours := strings.CutPrefix(t, sqsPrefix)
	for _, kind := range [...]string{"String", "Number", "Binary"} {
		if label, ok := strings.CutPrefix(t, kind); ok && (label == "" || label[0] == '.') {
			return kind, label, ours
		}
	}
	return "", "", false
}

// ParseSQSValue reads the text form of a value of a type for which [IsSQSType] holds: of a Binary it
// is base64. It returns what a message with that attribute holds when it comes from SQS: a String, a
// Binary, a Long for a whole number in its usual form, else a Described with the type.
func ParseSQSValue(t, text string) (Value, error) {
	kind, label, ok := cutSQSType(t)
	if !ok {
		return nil, fmt.Errorf("%q is no type of SQS", t)
	}
	v := Value(String(text))
	switch kind {
	case "Binary":
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a %s: write it in base64", text, t)
		}
		v = Binary(b)
	case "Number":
		if err := checkNumber(text); err != nil {
			return nil, fmt.Errorf("%q is not a %s: %w", text, t, err)
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && label == "" && strconv.FormatInt(n, 10) == text {
			return Long(n), nil
		}
	}
	if label == "" && kind != "Number" {
		return v, nil
	}
	return Described{Descriptor: Symbol(t), Value: v}, nil
}

// checkNumber refuses the hexadecimal digits, infinities and underscores that ParseFloat reads.
func checkNumber(text string) error {
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return errors.New("write a decimal number")
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return errors.Unwrap(err)
	}
	return nil
}

// FormatSQSValue returns the type and the text form of a value that [ParseSQSValue] reads, for those
// that no kind stands for; ok is false for every other.
func FormatSQSValue(v Value) (t, text string, ok bool) {
	d, _ := v.(Described)
	symbol, _ := d.Descriptor.(Symbol)
	kind, _, _ := cutSQSType(string(symbol))
	switch d.Value.(type) {
	case String:
		ok = kind != "Binary"
	case Binary:
		ok = kind == "Binary"
	}
	if !ok || !IsSQSType(string(symbol)) {
		return "", "", false
	}
	return string(symbol), FormatValue(d.Value), true
}
