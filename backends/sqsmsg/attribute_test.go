package sqsmsg

import (
	"math"
	"reflect"
	"testing"

	"dlq/backends/message"
)

func described(descriptor, text string) message.Value {
	return message.Described{Descriptor: message.Symbol(descriptor), Value: message.String(text)}
}

// kept are attributes as they are on the wire and the values that they are kept as.
var kept = []struct {
	kind, text string
	want       message.Value
}{
	{"String", "Bar", message.String("Bar")},
	{"String", "", message.String("")},
	{"String", "5", message.String("5")},
	{"String", "not \xff UTF-8", message.String("not \xff UTF-8")},
	{"Binary", "\x00\xff", message.Binary("\x00\xff")},
	{"Binary", "", message.Binary("")},

	{"Number", "0", message.Long(0)},
	{"Number", "-7", message.Long(-7)},
	{"Number", "1493147359900", message.Long(1493147359900)},
	{"Number", "9223372036854775807", message.Long(math.MaxInt64)},
	{"Number", "-9223372036854775808", message.Long(math.MinInt64)},
	{"Number", "9223372036854775808", described("sqs:Number", "9223372036854775808")},
	{"Number", "-9223372036854775809", described("sqs:Number", "-9223372036854775809")},
	{"Number", "1234567890123456789012", described("sqs:Number", "1234567890123456789012")},
	{"Number", "-0", described("sqs:Number", "-0")},
	{"Number", "+5", described("sqs:Number", "+5")},
	{"Number", "007", described("sqs:Number", "007")},
	{"Number", "1.0", described("sqs:Number", "1.0")},
	{"Number", "230.000000000000000001", described("sqs:Number", "230.000000000000000001")},
	{"Number", "1e3", described("sqs:Number", "1e3")},
	{"Number", "1_000", described("sqs:Number", "1_000")},
	{"Number", " 1", described("sqs:Number", " 1")},
	{"Number", "", described("sqs:Number", "")},
	{"Number", "world", described("sqs:Number", "world")},

	{"Number.int", "5", described("sqs:Number.int", "5")},
	{"String.json", "{}", described("sqs:String.json", "{}")},
	{"String.", "x", described("sqs:String.", "x")},
	{"String.ø", "x", described("sqs:String.ø", "x")},
	{"StringList", "x", described("sqs:StringList", "x")},
	{"number", "5", described("sqs:number", "5")},
	{"sqs:String", "x", described("sqs:sqs:String", "x")},
	{"", "x", described("sqs:", "x")},
	{"Binary.gif", "GIF8", message.Described{Descriptor: message.Symbol("sqs:Binary.gif"), Value: message.Binary("GIF8")}},
	{"Binaries", "x", described("sqs:Binaries", "x")},
}

func TestFromAttribute(t *testing.T) {
	for _, tt := range kept {
		a := Attribute{Name: "name", Type: tt.kind, Value: []byte(tt.text)}
		p := FromAttribute(a)
		if p.Name != "name" || !message.EqualValues(p.Value, tt.want) {
			t.Errorf("%s %q is kept as %q = %#v, want %#v", tt.kind, tt.text, p.Name, p.Value, tt.want)
		}
		back, ok := ToAttribute(p)
		if !ok || !reflect.DeepEqual(back, a) {
			t.Errorf("%s %q came back as %s %q, %v", tt.kind, tt.text, back.Type, back.Value, ok)
		}
	}
}

// What is kept goes through the store and the files as a property does.
func TestFromAttributeStored(t *testing.T) {
	var m message.Message
	for _, tt := range kept {
		a := FromAttribute(Attribute{Name: tt.kind + tt.text, Type: tt.kind, Value: []byte(tt.text)})
		m.Properties = append(m.Properties, a)
	}
	if err := message.Check(&m); err != nil {
		t.Fatal(err)
	}
	stored, err := message.Decode(message.Append(nil, &m))
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range kept {
		a, ok := ToAttribute(stored.Properties[i])
		if !ok || a.Type != tt.kind || string(a.Value) != tt.text {
			t.Errorf("%s %q came out of the store as %s %q, %v", tt.kind, tt.text, a.Type, a.Value, ok)
		}
	}
}

func TestToAttributeForeign(t *testing.T) {
	for _, tt := range []struct {
		v          message.Value
		kind, text string
	}{
		{message.Ubyte(255), "Number", "255"},
		{message.Ushort(65535), "Number", "65535"},
		{message.Uint(4294967295), "Number", "4294967295"},
		{message.Ulong(math.MaxUint64), "Number", "18446744073709551615"},
		{message.Byte(-128), "Number", "-128"},
		{message.Short(-32768), "Number", "-32768"},
		{message.Int(-1), "Number", "-1"},
		{message.Float(0.1), "Number", "0.1"},
		{message.Double(-2.5), "Number", "-2.5"},
		{message.Double(1e21), "Number", "1e+21"},
		{message.Double(0), "Number", "0"},
		{message.Double(1e127), "String", "1e+127"},
		{message.Double(1e-200), "String", "1e-200"},
		{message.Double(math.NaN()), "String", "NaN"},
		{message.Double(math.Inf(-1)), "String", "-Inf"},
		{message.Float(math.Inf(1)), "String", "+Inf"},
		{message.Bool(true), "String", "true"},
		{message.Char('я'), "String", "я"},
		{message.Timestamp(0), "String", "1970-01-01T00:00:00.000Z"},
		{message.UUID{15: 1}, "String", "00000000-0000-0000-0000-000000000001"},
		{message.Symbol("s"), "String", "s"},
		{message.Decimal32{0x32, 0x80, 0, 1}, "String", "32800001"},
		{message.Decimal64{}, "String", "0000000000000000"},
		{message.Decimal128{}, "String", "00000000000000000000000000000000"},
		// Type and value of SQS, described by hand: as good as those of FromAttribute.
		{described("sqs:String", "x"), "String", "x"},
		{described("sqs:Number", "5"), "Number", "5"},
	} {
		a, ok := ToAttribute(message.Attribute{Name: "n", Value: tt.v})
		if !ok || a.Name != "n" || a.Type != tt.kind || string(a.Value) != tt.text {
			t.Errorf("%s %v is %q %s %q, %v, want %s %q", message.KindOf(tt.v), tt.v, a.Name, a.Type, a.Value, ok, tt.kind, tt.text)
		}
		if err := CheckAttributes([]Attribute{a}); err != nil {
			t.Errorf("%s %v: %v", message.KindOf(tt.v), tt.v, err)
		}
	}
}

func TestToAttributeNone(t *testing.T) {
	for _, v := range []message.Value{
		nil,
		message.Null{},
		message.List{message.Long(1)},
		message.Map{{Key: message.Symbol("k"), Value: message.Long(1)}},
		message.Array{Elem: message.KindLong},
		described("com.microsoft:uri", "https://example.com"),
		message.Described{Descriptor: message.Symbol("com.microsoft:timespan"), Value: message.Long(1)},
		message.Described{Descriptor: message.Ulong(1), Value: message.String("x")},
		message.Described{Descriptor: message.String("sqs:String"), Value: message.String("x")},
		message.Described{Value: message.String("x")},
		message.Described{Descriptor: message.Symbol("sqs:Number"), Value: message.Long(5)},
		message.Described{Descriptor: message.Symbol("sqs:Number"), Value: message.Binary("5")},
		described("sqs:Binary.gif", "GIF8"),
	} {
		if a, ok := ToAttribute(message.Attribute{Name: "n", Value: v}); ok {
			t.Errorf("%#v is the attribute %s %q", v, a.Type, a.Value)
		}
	}
}

func FuzzAttribute(f *testing.F) {
	for _, tt := range kept {
		f.Add("name", tt.kind, []byte(tt.text))
	}
	f.Fuzz(func(t *testing.T, name, kind string, value []byte) {
		a := Attribute{Name: name, Type: kind, Value: value}
		p := FromAttribute(a)
		b, ok := ToAttribute(p)
		if !ok || b.Name != name || b.Type != kind || string(b.Value) != string(value) {
			t.Fatalf("%q %q %q is kept as %#v and came back as %q %q %q, %v", name, kind, value, p.Value, b.Name, b.Type, b.Value, ok)
		}
		if one, two := AttributesMD5([]Attribute{a}), AttributesMD5([]Attribute{b}); one != two {
			t.Fatalf("the sum of %q %q %q was %s and is %s", name, kind, value, one, two)
		}
		if again := FromAttribute(b); !message.EqualValues(p.Value, again.Value) {
			t.Fatalf("%q %q is kept as %#v, then as %#v", kind, value, p.Value, again.Value)
		}
	})
}
