package sqsmsg

import (
	"strings"
	"testing"
)

func TestCheckAttributesYMQ(t *testing.T) {
	name := InvalidError{Text: "Invalid message attribute name."}
	noValue := InvalidError{Text: "No message attribute value provided.", Combination: true}
	tooMany := InvalidError{Text: "Message has more than 10 attributes.", TooMany: true, Combination: true}
	for _, tt := range []struct {
		as   []Attribute
		want InvalidError
	}{
		{nil, InvalidError{}},
		{many(10), InvalidError{}},
		{many(11), tooMany},
		{append(many(11), text("n", "String", "")), noValue}, // an earlier part of the server looks for it
		{append(many(10), text("n", "String", "\x00")), tooMany},
		{[]Attribute{text("n", "", "v")}, InvalidError{Text: "No message attribute data type provided.", Combination: true}},
		{[]Attribute{text("n", strings.Repeat("t", 256), "v")}, InvalidError{}},
		{[]Attribute{text("n", strings.Repeat("t", 257), "v")}, InvalidError{Text: "Message attribute data type is too long."}},
		{[]Attribute{text("n", "Any", "v")}, InvalidError{}},
		{[]Attribute{text("n", "Number", "world")}, InvalidError{}},
		{[]Attribute{text("n", "Binary", "\x00\xff")}, InvalidError{}},
		{[]Attribute{text("n", "String", "")}, noValue},
		{[]Attribute{text("n", "Binary", "")}, noValue},
		{[]Attribute{text("n", "String", "v"), text("n", "Number", "1")}, InvalidError{Text: "Duplicated message attribute name.", Combination: true}},
		{[]Attribute{text("n", "String", "a\x08")}, InvalidError{Text: `Message attribute "n" validation failed: character 0x00000008 is not allowed.`}},
		{[]Attribute{text("n", "String", "\xff")}, InvalidError{Text: `Message attribute "n" validation failed: nonunicode characters are not allowed.`}},
		{[]Attribute{text("", "String", "v")}, name},
	} {
		checkInvalid(t, CheckAttributesYMQ, tt.as, tt.want)
	}
}

func TestCheckAttributesYMQName(t *testing.T) {
	for _, name := range []string{
		"OK", "alpha-num", "with.period", "with_underscore", "not.prefix.ya", "ya", "yandex", "yarn.x", strings.Repeat("n", 256),
	} {
		checkInvalid(t, CheckAttributesYMQ, []Attribute{text(name, "String", "v")}, InvalidError{})
	}
	for _, name := range []string{
		"aWs.trololo", "aws.", "amazon.33", "invalid_characters!", "space ", ".StartsWithPeriod", "EndsWithPeriod.", "Two..Periods",
		"ya.reserved", "YC.reserved", "YANDEX.reserved", "ø", "ключ", "n\xff", strings.Repeat("n", 257), ".",
	} {
		checkInvalid(t, CheckAttributesYMQ, []Attribute{text(name, "String", "v")}, InvalidError{Text: "Invalid message attribute name."})
	}
}
