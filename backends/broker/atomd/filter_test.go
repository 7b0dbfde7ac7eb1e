package atomd

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"dlq/backends/broker"
	"dlq/backends/message"
)

const pair = `<KeyValueOfstringanyType><Key>k</Key><Value xmlns:i="http://www.w3.org/2001/XMLSchema-instance" xmlns:x="http://www.w3.org/2001/XMLSchema" i:type="x:%s">%s</Value></KeyValueOfstringanyType>`

// TestTypedValues reads values with their types, and writes them with the same.
func TestTypedValues(t *testing.T) {
	for _, tt := range []struct {
		typ, text string
		want      message.Value
		written   string // "": as it was read
	}{
		{"string", "a &lt; b", message.String("a < b"), ""},
		{"string", "", message.String(""), ""},
		{"string", " s ", message.String(" s "), ""},
		{"boolean", "true", message.Bool(true), ""},
		{"boolean", "0", message.Bool(false), "false"},
		{"int", "-7", message.Int(-7), ""},
		{"int", "2147483647", message.Int(1<<31 - 1), ""},
		{"long", "9223372036854775807", message.Long(1<<63 - 1), ""},
		{"long", "1", message.Long(1), ""},
		{"short", "-3", message.Short(-3), ""},
		{"byte", "-3", message.Byte(-3), ""},
		{"unsignedByte", "3", message.Ubyte(3), ""},
		{"unsignedShort", "3", message.Ushort(3), ""},
		{"unsignedInt", "3", message.Uint(3), ""},
		{"unsignedLong", "18446744073709551615", message.Ulong(1<<64 - 1), ""},
		{"double", "100.100000", message.Double(100.1), "100.1"},
		{"double", "1", message.Double(1), "1"},
		{"double", "-1.5E300", message.Double(-1.5e300), "-1.5e+300"},
		{"double", "INF", message.Double(math.Inf(1)), ""},
		{"double", "-INF", message.Double(math.Inf(-1)), ""},
		{"float", "0.5", message.Float(0.5), ""},
		{"dateTime", "2001-01-01T01:02:03Z", message.Timestamp(978310923000), ""},
		{"dateTime", "2001-01-01T02:02:03.5+01:00", message.Timestamp(978310923500), "2001-01-01T01:02:03.5Z"},
		{"dateTime", "2001-01-01T01:02:03", message.Timestamp(978310923000), "2001-01-01T01:02:03Z"},
		{"duration", "PT1M30S", message.Described{Descriptor: timespan, Value: message.Long(900_000_000)}, ""},
		{"duration", "PT0.5S", message.Described{Descriptor: timespan, Value: message.Long(5_000_000)}, ""},
		{"guid", "6f9619ff-8b86-d011-b42d-00c04fc964ff", message.UUID{0x6f, 0x96, 0x19, 0xff, 0x8b, 0x86, 0xd0, 0x11, 0xb4, 0x2d, 0x00, 0xc0, 0x4f, 0xc9, 0x64, 0xff}, ""},
	} {
		t.Run(tt.typ+" "+tt.text, func(t *testing.T) {
			root, err := parse(fmt.Appendf(nil, pair, tt.typ, tt.text))
			if err != nil {
				t.Fatal(err)
			}
			_, got, err := readPair(root)
			if err != nil || got != tt.want {
				t.Fatalf("read %#v, %v; want %#v", got, err, tt.want)
			}
			if tt.written == "" {
				tt.written = tt.text
			}
			w := newWriter()
			writePair(w, "k", got)
			want := fmt.Sprintf(`<Value i:type="d6p1:%s" xmlns:d6p1="http://www.w3.org/2001/XMLSchema">%s</Value>`, tt.typ, tt.written)
			if written := string(w.bytes()); !strings.Contains(written, want) {
				t.Errorf("wrote %s, want %s", written, want)
			}
		})
	}
}

// TestValuesRefused refuses what is not of its type, and types that nobody knows.
func TestValuesRefused(t *testing.T) {
	for _, tt := range [][2]string{
		{"int", "2147483648"},
		{"int", "1.5"},
		{"int", ""},
		{"long", "9223372036854775808"},
		{"boolean", "yes"},
		{"dateTime", "yesterday"},
		{"duration", "1 minute"},
		{"double", "much"},
		{"guid", "none"},
		{"unsignedByte", "-1"},
		{"anyURI", "http://x"},
		{"base64Binary", "AA=="},
	} {
		root, err := parse(fmt.Appendf(nil, pair, tt[0], tt[1]))
		if err != nil {
			t.Fatal(err)
		}
		if _, v, err := readPair(root); err == nil {
			t.Errorf("%s %q was read as %#v", tt[0], tt[1], v)
		}
	}
	for _, text := range []string{"<a/>", "<a><Key>k</Key></a>", "<a><Value>v</Value></a>"} {
		root, err := parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, v, err := readPair(root); err == nil {
			t.Errorf("%s was read as %#v", text, v)
		}
	}
}

// TestFilters reads filters as each SDK writes them.
func TestFilters(t *testing.T) {
	const instance = "http://www.w3.org/2001/XMLSchema-instance"
	for _, tt := range []struct{ name, body, kind string }{
		{"Go", `<Filter xmlns:i="` + instance + `" i:type="SqlFilter"><SqlExpression>a = 1</SqlExpression><CompatibilityLevel>0</CompatibilityLevel></Filter>`, "sql"},
		{"JS", `<Filter p4:type="SqlFilter" xmlns:p4="` + instance + `"><SqlExpression>a = 1</SqlExpression></Filter>`, "sql"},
		{"Python", `<ns1:Filter xmlns:ns1="urn:x" xmlns:xsi="` + instance + `" xsi:type="CorrelationFilter"><ns1:CorrelationId>c</ns1:CorrelationId></ns1:Filter>`, "correlation"},
		{".NET", `<Filter d1p1:type="FalseFilter" xmlns:d1p1="` + instance + `"><SqlExpression>1=0</SqlExpression></Filter>`, "false"},
		{"Java", `<x:Filter xmlns:x="urn:x" xmlns:t="` + instance + `" t:type="x:TrueFilter"><x:SqlExpression>1=1</x:SqlExpression></x:Filter>`, "true"},
		{"nothing", `<Filter/>`, "true"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, err := parse([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			f, err := readFilter(root)
			if err != nil || f.Kind != broker.FilterKind(tt.kind) {
				t.Fatalf("read %+v, %v; want a filter of the kind %s", f, err, tt.kind)
			}
		})
	}
}
