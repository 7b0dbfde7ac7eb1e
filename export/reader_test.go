package export

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"dlq/backends/message"
)

func readAll(src io.Reader) (ms []*message.Message, err error) {
	r := NewReader(src)
	for {
		m, err := r.Read()
		if errors.Is(err, io.EOF) {
			return ms, nil
		}
		if err != nil {
			return ms, err
		}
		ms = append(ms, m)
	}
}

func TestReaderForms(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     int
	}{
		{"nothing", "", 0},
		{"white space", " \r\n\t", 0},
		{"empty array", "[]", 0},
		{"empty array with spaces", "\n[ ]\n", 0},
		{"lines", "{}\n{}\n", 2},
		{"no last line end", "{}\n{}", 2},
		{"blank lines and CRLF", "\r\n{}\r\n\r\n{}\r\n", 2},
		{"array", "[{},{}]", 2},
		{"array in lines", "[\n{},\n{}\n]\n", 2},
		{"indented objects", "{\n  \"messageId\": \"}\\\"{\"\n}\n{\n}\n", 2},
		{"byte order mark", "\ufeff{}\n", 1},
		{"byte order mark and array", "\ufeff[{}]", 1},
		{"keys in any order", `{"body":"x","properties":{},"messageId":"1"}`, 1},
	} {
		for _, in := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in)), iotest.DataErrReader(strings.NewReader(tt.in))} {
			ms, err := readAll(in)
			if err != nil || len(ms) != tt.want {
				t.Errorf("%s: %d messages, %v", tt.name, len(ms), err)
			}
		}
	}
}

func TestReaderErrors(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"unknown key", "{}\n{\"boddy\":1}", `line 2, column 10: unknown key "boddy"`},
		{"repeated key", `{"subject":"a","subject":"b"}`, `line 1, column 16: the key "subject" comes twice`},
		{"repeated property", `{"properties":{"a":"1","a":"2"}}`, `the key "a" comes twice`},
		{"text twice", `{"to":"a","toBase64":"YQ=="}`, `to and toBase64 say the same`},
		{"user twice", `{"userId":"a","userIdBase64":"YQ=="}`, `userId and userIdBase64 say the same`},
		{"body twice", `{"body":"a","bodyBase64":"YQ=="}`, "the body is given twice"},
		{"body and kind", `{"body":"a","bodyKind":"data"}`, "the body is given twice"},
		{"kind alone", `{"bodyKind":"value"}`, "only go together"},
		{"unknown kind", `{"bodyKind":"odd","bodySectionsBase64":[]}`, `unknown bodyKind "odd"`},
		{"not an object", "{}\n5", `line 2, column 1: want a message, which begins with '{', found '5'`},
		{"commas between lines", "{},\n{}", `found ','; the file must be NDJSON or one JSON array`},
		{"no comma in array", "[{}\n{}]", `line 2, column 1: want ',' or ']'`},
		{"array not closed", "[{}", "is the file whole?"},
		{"array ends in comma", "[{},", "is the file whole?"},
		{"trailing comma", "[{},]", "want a message"},
		{"text behind array", "[{}]{}", "behind the array"},
		{"cut off", "{}\n{\"body\":\"abc", "is the file whole?"},
		{"cut off line", "{\"body\":\"abc\n{}", `line 1, column 13: the line ends in the middle of a text`},
		{"UTF-16", "\xff\xfe{\x00}\x00", "the file is UTF-16; save it as UTF-8"},
		{"not UTF-8", "{\"body\":\"\xff\"}", "not UTF-8"},
		{"lone surrogate", `{"body":"\ud800"}`, "is not a character"},
		{"half a pair", `{"body":"\ud83dx"}`, "is not a character"},
		{"bad escape", `{"body":"\x"}`, `unknown escape`},
		{"bad base64", `{"bodyBase64":"YQ"}`, "not standard Base64"},
		{"bare number", `{"messageId":5}`, `the number 5 needs a type: write {"type":"int","value":5}`},
		{"unknown type", `{"messageId":{"type":"int64","value":5}}`, `unknown type "int64"`},
		{"out of range", `{"messageId":{"type":"ubyte","value":256}}`, `"256" is not a ubyte: value out of range`},
		{"no type", `{"messageId":{"value":5}}`, "the value has no type"},
		{"null with a value", `{"messageId":{"type":"null","value":"x"}}`, `"x" is not a null`},
		{"no value", `{"messageId":{"type":"int"}}`, `the int needs exactly one "value"`},
		{"fraction", `{"messageId":{"type":"int","value":1.5}}`, "is not a int"},
		{"string as number", `{"messageId":{"type":"symbol","value":5}}`, "a symbol is written as a text"},
		{"binary as text", `{"messageId":{"type":"binary","value":"a"}}`, `a binary needs "base64"`},
		{"elem of a list", `{"messageId":{"type":"list","elem":"int","value":[]}}`, `only an array has "elem"`},
		{"array without elem", `{"messageId":{"type":"array","value":[]}}`, `an array needs "elem"`},
		{"array of two types", `{"messageId":{"type":"array","elem":"list","value":["a"]}}`, "is not a list"},
		{"described without descriptor", `{"messageId":{"type":"described","value":"a"}}`, `needs a "descriptor"`},
		{"bits of an int", `{"messageId":{"type":"int","bits":"00"}}`, `only float and double have "bits"`},
		{"short bits", `{"messageId":{"type":"float","bits":"00"}}`, `8 hexadecimal digits`},
		{"pair without key", `{"footer":[{"value":1}]}`, "needs a type"},
		{"pair without value", `{"footer":[{"key":"a"}]}`, `a pair needs "key" and "value"`},
		{"property without name", `{"properties":[{"value":"a"}]}`, `a property needs "name" and "value"`},
		{"priority", `{"priority":256}`, "not a whole number"},
		{"ttl", `{"ttl":"5 minutes"}`, "write it as 1h2m3s"},
		{"time", `{"created":"yesterday"}`, "write it as 2006-01-02"},
		{"state", `{"state":"dead"}`, "the states are"},
		{"bool", `{"durable":1}`, "want true or false"},
		{"token", `{"lockToken":"x"}`, "8-4-4-4-12"},
		{"leading zero", `{"priority":01}`, "want a value here"},
		{"missing colon", `{"body" "x"}`, `want ':' behind a key, found '"'`},
		{"deep value", `{"messageId":` + strings.Repeat(`{"type":"list","value":[`, 100) + strings.Repeat(`]}`, 100) + `}`, "nested deeper than 64"},
		{"deep JSON", `{"messageId":{"value":` + strings.Repeat(`[`, 100_000) + strings.Repeat(`]`, 100_000) + `}}`, "nested deeper than 64"},
	} {
		r := NewReader(strings.NewReader(tt.in))
		var err error
		for err == nil {
			_, err = r.Read()
		}
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %s", tt.name, err, tt.want)
		}
		if _, again := r.Read(); !errors.Is(again, err) {
			t.Errorf("%s: the error does not stick: %v", tt.name, again)
		}
	}
}

func TestReaderLimit(t *testing.T) {
	line := `{"body":"` + strings.Repeat("x", 200_000) + `"}` + "\n"
	r := NewReader(strings.NewReader("{}\n" + line))
	r.MaxMessage = 100_000
	if _, err := r.Read(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(); err == nil || !strings.Contains(err.Error(), "line 2, column 1: the message takes more than 100000 bytes") {
		t.Errorf("over the limit: %v", err)
	}
	ms, err := readAll(strings.NewReader(line + line + "{}"))
	if err != nil || len(ms) != 3 {
		t.Errorf("under it: %d messages, %v", len(ms), err)
	}
}

func TestReaderPassesErrorsOn(t *testing.T) {
	broken := errors.New("disk on fire")
	r := NewReader(io.MultiReader(strings.NewReader("{}\n{\"body\""), iotest.ErrReader(broken)))
	if _, err := r.Read(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// The buffer follows the messages: a large one does not stay for the small ones behind it.
func TestReaderMemory(t *testing.T) {
	large := `{"body":"` + strings.Repeat("x", 8<<20) + `"}` + "\n"
	const n = 20_000
	small := strings.Repeat(`{"subject":"`+strings.Repeat("x", 1000)+`"}`+"\n", n)
	r := NewReader(strings.NewReader(large + small))
	for range n {
		if _, err := r.Read(); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.buf) > 1<<20 {
		t.Errorf("the buffer holds %d bytes", len(r.buf))
	}
}

func FuzzReader(f *testing.F) {
	for _, v := range oddValues() {
		b, err := AppendJSON(nil, &message.Message{ID: v, Properties: message.Properties{{Name: "p", Value: v}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("[{},\n{\"body\":\"\\ud83d\\ude00\"}]"))
	f.Add([]byte(`{"bodyKind":"data","bodySectionsBase64":["YQ==",""],"state":"deferred","ttl":"1s","toBase64":"/w=="}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		ms, err := readAll(bytes.NewReader(in))
		var syntax *SyntaxError
		if err != nil && !errors.As(err, &syntax) {
			t.Fatalf("%T %v", err, err)
		}
		for _, m := range ms {
			b, err := AppendJSON(nil, m)
			if err != nil {
				t.Fatalf("what was read cannot be written: %v", err)
			}
			again, err := ParseJSON(b)
			if err != nil || len(message.Diff(m, again)) != 0 {
				t.Fatalf("%s: %v, differs in %q", b, err, message.Diff(m, again))
			}
		}
	})
}

func ExampleReader() {
	r := NewReader(strings.NewReader(`{"messageId":"order-7","body":"hello"}`))
	m, err := r.Read()
	fmt.Println(message.FormatValue(m.ID), string(m.Body.Bytes()), err)
	_, err = r.Read()
	fmt.Println(err)
	// Output:
	// order-7 hello <nil>
	// EOF
}
