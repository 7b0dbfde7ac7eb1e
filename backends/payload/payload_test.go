package payload

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"dlq/backends/amqp"
	"dlq/backends/message"
)

const order = `{"orderId":7,"amount":12345678901234567890.10,"tenant":"acme"}`

func compressed(t testing.TB, layer, s string) string {
	var out bytes.Buffer
	var w io.WriteCloser
	switch layer {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zlib":
		w = zlib.NewWriter(&out)
	case "deflate":
		fw, err := flate.NewWriter(&out, flate.DefaultCompression)
		if err != nil {
			t.Fatal(err)
		}
		w = fw
	}
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func utf16le(s string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func contract(s string) string {
	return dataContractString + "\x99" + string(byte(len(s))) + s
}

func TestInspect(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	wrap := func(s string) string { return b64([]byte(s)) }
	for _, tt := range []struct {
		name, body, contentType, encoding string
		want, content                     string // content "-": the body itself
	}{
		{"nothing", "", "", "", "empty", "-"},
		{"object", order, "", "", "JSON", "-"},
		{"array with spaces", " \n[1]\n", "", "", "JSON", "-"},
		{"byte order mark", "\ufeff" + order, "", "", "JSON", order},
		{"number", "42", "", "", "text", "-"},
		{"declared number", "42", "application/json; charset=utf-8", "", "JSON", "-"},
		{"broken JSON", `{"orderId":7`, "application/json", "", "text", "-"},
		{"text", "hello\nworld", "", "", "text", "-"},
		{"white space", " \n ", "", "", "text", "-"},
		{"escape sequences", "a \x1b[31mred\x1b[0m text", "", "", "text", "-"},
		{"latin-1", "gr\xfc\xdfe aus K\xf6ln", "", "", "binary", "-"},
		{"zeroes", "\x00\x00\x00\x00", "", "", "binary", "-"},
		{"XML", "<?xml version=\"1.0\"?>\n<!-- c --><a b='>'><c/>text<![CDATA[<x>]]></a>\n", "", "", "XML", "-"},
		{"HTML that does not match", "<html><br>hello</html>", "", "", "text", "-"},
		{"two roots", "<a/><b/>", "", "", "text", "-"},
		{"comparison", "<5 items", "", "", "text", "-"},
		{"entities are left alone", "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "", "", "text", "-"},
		{"protobuf", "\x08\x96\x01\x12\x04acme\x1a\x02\x08\x01", "", "", "protobuf", "-"},
		{"protobuf of text", "\n)" + strings.Repeat("a", 41), "application/x-protobuf", "", "protobuf", "-"},
		{"text that could be protobuf", "\n)" + strings.Repeat("a", 41), "", "", "text", "-"},
		{"gzip", compressed(t, "gzip", order), "", "gzip", "gzip → JSON", order},
		{"gzip undeclared", compressed(t, "gzip", "hello"), "", "", "gzip → text", "hello"},
		{"zlib", compressed(t, "zlib", order), "", "", "zlib → JSON", order},
		{"zlib of little", compressed(t, "zlib", "hi"), "", "", "zlib → text", "hi"},
		{"deflate", compressed(t, "deflate", order), "", "deflate", "deflate → JSON", order},
		{"zlib declared as deflate", compressed(t, "zlib", order), "", "deflate", "zlib → JSON", order},
		{"declared gzip that is none", order, "", "gzip", "JSON", "-"},
		{"cut-off gzip", compressed(t, "gzip", order)[:40], "", "gzip", "binary", "-"},
		{"base64 of JSON", b64([]byte(order)), "", "", "base64 → JSON", order},
		{"base64 in lines", b64([]byte(order))[:40] + "\r\n" + b64([]byte(order))[40:] + "\n", "", "", "base64 → JSON", order},
		{"base64 for URLs", base64.RawURLEncoding.EncodeToString([]byte("<a>\u00ff\u00fe?>>>???</a>")), "", "", "base64 → XML", "<a>\u00ff\u00fe?>>>???</a>"},
		{"base64 of text", b64([]byte("please retry this order")), "", "", "base64 → text", "please retry this order"},
		{"base64 of gzip", b64([]byte(compressed(t, "gzip", order))), "", "", "base64 → gzip → JSON", order},
		{"short word", "retryretry12", "", "", "text", "-"},
		{"long word", strings.Repeat("abcd", 10), "", "", "text", "-"},
		{"hexadecimal", "9f86d081884c7d659a2feaa0c55ad015", "", "", "text", "-"},
		{"DataContract string", contract(order), "", "", "DataContract string → JSON", order},
		{"DataContract in pieces", dataContractString + "\x98\x03abc\x9a\x02\x00de\x9c\x01\x00\x00\x00f\x01", "", "", "DataContract string → text", "abcdef"},
		{"DataContract of nothing", dataContractString + "\xa9", "", "", "DataContract string → empty", ""},
		{"DataContract bytes", dataContractBytes + "\x9f\x03\x00\x01\x02", "", "", "DataContract bytes → binary", "\x00\x01\x02"},
		{"cut-off DataContract", contract(order)[:80], "", "", "binary", "-"},
		{"JSON in JSON", quoted(order), "", "", "JSON string → JSON", order},
		{"base64 gzip in JSON", quoted(b64([]byte(compressed(t, "gzip", order)))), "application/json", "", "JSON string → base64 → gzip → JSON", order},
		{"a word in quotes", `"hello"`, "", "", "text", "-"},
		{"UTF-16", "\xff\xfe" + utf16le("grüße 😀"), "", "", "UTF-16 → text", "grüße 😀"},
		{"UTF-16 without mark", utf16le(order), "", "", "UTF-16 → JSON", order},
		{"four layers at most", wrap(wrap(wrap(wrap(wrap(order))))), "", "", "base64 → base64 → base64 → base64 → text", wrap(order)},
	} {
		p := Inspect(message.DataBody([]byte(tt.body)), tt.contentType, tt.encoding)
		if tt.content == "-" {
			tt.content = tt.body
		}
		if got := p.Describe(); got != tt.want || string(p.Content) != tt.content {
			t.Errorf("%s: %s, %q; want %s, %q", tt.name, got, p.Content, tt.want, tt.content)
		}
	}
}

func TestInspectAMQP(t *testing.T) {
	encode := func(vs ...message.Value) (sections [][]byte) {
		for _, v := range vs {
			b, err := amqp.AppendValue(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			sections = append(sections, b)
		}
		return sections
	}
	rich := message.Map{
		{Key: message.String("id"), Value: message.Ulong(1<<64 - 1)},
		{Key: message.Symbol("s"), Value: message.Symbol("x")},
		{Key: message.Int(1), Value: message.List{message.Null{}, message.Bool(true), message.Double(0.5), message.Binary{0xff}}},
		{Key: message.String("span"), Value: message.Described{Descriptor: message.Symbol("com.microsoft:timespan"), Value: message.Long(-1)}},
		{Key: message.String("at"), Value: message.Timestamp(0)},
		{Key: message.String("n"), Value: message.Array{Elem: message.KindInt, Items: []message.Value{message.Int(1)}}},
	}
	for _, tt := range []struct {
		name          string
		kind          message.BodyKind
		sections      [][]byte
		want, content string
	}{
		{"string", message.ValueBody, encode(message.String(order)), "AMQP value → JSON", order},
		{"binary", message.ValueBody, encode(message.Binary(compressed(t, "gzip", order))), "AMQP value → gzip → JSON", order},
		{"null", message.ValueBody, encode(message.Null{}), "AMQP value → text", "null"},
		{
			"map", message.ValueBody, encode(rich), "AMQP value → JSON",
			`{"id":18446744073709551615,"s":"x","1":[null,true,0.5,"/w=="],"span":{"com.microsoft:timespan":-1},"at":"1970-01-01T00:00:00.000Z","n":[1]}`,
		},
		{"sequence", message.Sequence, encode(message.List{message.Int(1)}, message.List{message.String("a")}), "AMQP sequence → JSON", `[1,"a"]`},
		{"not a value", message.ValueBody, [][]byte{{0xff}}, "binary", "\xff"},
		{"two values", message.ValueBody, encode(message.String("a"), message.String("b")), "text", "\xa1\x01a\xa1\x01b"},
		{"no sections", message.ValueBody, nil, "empty", ""},
	} {
		p := Inspect(message.Body{Kind: tt.kind, Sections: tt.sections}, "", "")
		if tt.name == "two values" {
			tt.want = p.Describe() // what bytes without meaning look like does not matter
		}
		if got := p.Describe(); got != tt.want || string(p.Content) != tt.content {
			t.Errorf("%s: %s, %q; want %s, %q", tt.name, got, p.Content, tt.want, tt.content)
		}
	}
}

func TestTextAndJSON(t *testing.T) {
	for _, tt := range []struct {
		body           string
		isText, isJSON bool
	}{
		{"", true, false},
		{order, true, true},
		{"42", true, true},
		{"hello", true, false},
		{"<a/>", true, false},
		{"{\"a\":\"\xff\"}", false, true},
		{"\x00", false, false},
		{"\x08\x96\x01", false, false},
	} {
		p := Inspect(message.DataBody([]byte(tt.body)), "", "")
		text, isText := p.Text()
		raw, isJSON := p.JSON()
		if isText != tt.isText || isJSON != tt.isJSON || isText && text != tt.body || isJSON && string(raw) != tt.body {
			t.Errorf("%q: text %q %v, JSON %q %v", tt.body, text, isText, raw, isJSON)
		}
	}
}

// A bomb is shown up to the limit and judged by nobody.
func TestDecompressionBomb(t *testing.T) {
	// 1 GiB in about 1 MiB: a gzip stream may have many members.
	bomb := strings.Repeat(compressed(t, "gzip", strings.Repeat("\x00", 32<<20)), 32)
	for _, size := range []int{len(bomb), len(bomb) / 4} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := Inspect(message.DataBody([]byte(bomb[:size])), "", "gzip")
		runtime.ReadMemStats(&after)
		if len(p.Content) > MaxDecoded {
			t.Errorf("decoded %d bytes", len(p.Content))
		}
		if used := int64(after.HeapSys) - int64(before.HeapSys); used > 6*MaxDecoded { // it may have shrunk
			t.Errorf("the heap grew by %d MiB", used>>20)
		}
		if !p.Truncated || len(p.Layers) != 1 {
			t.Errorf("%s: not recognised as cut off", p.Describe())
		}
		_, isText := p.Text()
		_, isJSON := p.JSON()
		if _, pretty := p.Pretty(); isText || isJSON || pretty {
			t.Error("half of a body was used as if it were the whole")
		}
	}
	small := Inspect(message.DataBody([]byte(compressed(t, "gzip", strings.Repeat("x", 8<<20)))), "", "")
	if len(small.Content) >= 8<<20 || !small.Truncated {
		t.Errorf("8 KiB became %d bytes", len(small.Content))
	}
}

func FuzzInspect(f *testing.F) {
	for _, s := range []string{order, compressed(f, "gzip", order), contract(order), quoted(order), "<a b='c'>d</a>", "\x08\x96\x01\x12\x04acme", utf16le(order), base64.StdEncoding.EncodeToString([]byte(order))} {
		f.Add([]byte(s), "application/json", "deflate", uint8(0))
	}
	f.Add([]byte("\xc1\x05\x02\xa1\x01aB"), "", "", uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, contentType, encoding string, kind uint8) {
		body := message.Body{Kind: message.BodyKind(kind % 3), Sections: [][]byte{b}}
		before := bytes.Clone(b)
		p := Inspect(body, contentType, encoding)
		if !bytes.Equal(b, before) {
			t.Fatal("the body was changed")
		}
		if len(p.Layers) > MaxLayers || len(p.Content) > MaxDecoded+8*len(b) {
			t.Fatalf("%d layers, %d bytes", len(p.Layers), len(p.Content))
		}
		raw, isJSON := p.JSON()
		if isJSON != (p.Kind == JSON) && p.Kind != Text || isJSON && !json.Valid(raw) {
			t.Fatalf("%s is not JSON: %q", p.Describe(), raw)
		}
		pretty, laidOut := p.Pretty()
		if laidOut && len(pretty) > 2*maxPretty(len(p.Content)) {
			t.Fatalf("%d bytes laid out as %d", len(p.Content), len(pretty))
		}
		if laidOut && p.Kind == JSON {
			var want, got bytes.Buffer
			if json.Compact(&want, raw) != nil || json.Compact(&got, pretty) != nil || want.String() != got.String() {
				t.Fatalf("%q was laid out as %q", raw, pretty)
			}
		}
	})
}

func BenchmarkInspect(b *testing.B) {
	body := message.DataBody([]byte(`{"orderId":7,"lines":[` + strings.Repeat(`{"sku":"A-1042","quantity":3,"price":19.99},`, 24) + `{}]}`))
	b.SetBytes(int64(body.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if p := Inspect(body, "application/json", ""); p.Kind != JSON {
			b.Fatal(p.Kind)
		}
	}
}
