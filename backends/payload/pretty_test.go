package payload

import (
	"strings"
	"testing"

	"dlq/backends/message"
)

func TestPretty(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"JSON", `{"z":1.10, "a":[1,{"b":"x, \"y\" {"}],"e":{ },"f":[],"n":12345678901234567890}`, `{
  "z": 1.10,
  "a": [
    1,
    {
      "b": "x, \"y\" {"
    }
  ],
  "e": {},
  "f": [],
  "n": 12345678901234567890
}`},
		{"XML", `<?xml version="1.0"?><s:Envelope xmlns:s="x"><s:Body><id n="1>2">7</id><empty></empty><none/>` +
			`<p>mixed <b>text</b></p><c><![CDATA[<x>]]></c></s:Body></s:Envelope>`, `<?xml version="1.0"?>
<s:Envelope xmlns:s="x">
  <s:Body>
    <id n="1>2">7</id>
    <empty></empty>
    <none/>
    <p>mixed <b>text</b></p>
    <c><![CDATA[<x>]]></c>
  </s:Body>
</s:Envelope>`},
		{"protobuf", "\x08\x96\x01\x12\x04acme\x1a\x04\x08\x01\x10\x02\x22\x02\xff\xfe\x29\x00\x00\x00\x00\x00\x00\xf0\x3f\x35\x00\x00\x80\x3f\x3a\x00", `1: 150
2: "acme"
3 {
  1: 1
  2: 2
}
4: 0xfffe
5: 4607182418800017408 or 1
6: 1065353216 or 1
7: ""`},
	} {
		p := Inspect(message.DataBody([]byte(tt.body)), "", "")
		got, ok := p.Pretty()
		if !ok || string(got) != tt.want {
			t.Errorf("%s: %v\n got %s\nwant %s", tt.name, ok, got, tt.want)
		}
	}
}

// What cannot be laid out, or not at a bearable size, is shown as it is.
func TestPrettyLeavesAlone(t *testing.T) {
	deep := strings.Repeat("[", 900) + strings.Repeat("1,", 1<<20) + "1" + strings.Repeat("]", 900)
	for _, body := range []string{"", "hello", "\x00\xff", `{"broken":`, deep} {
		p := Inspect(message.DataBody([]byte(body)), "", "")
		if got, ok := p.Pretty(); ok || string(got) != body {
			t.Errorf("%.20q (%s) became %d bytes", body, p.Kind, len(got))
		}
	}
}
