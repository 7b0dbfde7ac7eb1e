package message

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseProperty(t *testing.T) {
	for text, want := range map[string]Attribute{
		"region=eu":                         {"region", String("eu")},
		"region=":                           {"region", String("")},
		"a=b=c":                             {"a", String("b=c")},
		"n:int=-5":                          {"n", Int(-5)},
		"n:ubyte=255":                       {"n", Ubyte(255)},
		"n:ulong=18446744073709551615":      {"n", Ulong(math.MaxUint64)},
		"n:long=-9223372036854775808":       {"n", Long(math.MinInt64)},
		"x:double=-0":                       {"x", Double(math.Copysign(0, -1))},
		"x:float=1e-3":                      {"x", Float(0.001)},
		"retried:bool=true":                 {"retried", Bool(true)},
		"gone:null=":                        {"gone", Null{}},
		"gone:null=null":                    {"gone", Null{}},
		"c:char=é":                          {"c", Char('é')},
		"at:timestamp=2026-01-02T15:04:05Z": {"at", Timestamp(1767366245000)},
		"at:timestamp=2026-01-02T17:04:05.123+02:00": {"at", Timestamp(1767366245123)},
		"at:timestamp=-1": {"at", Timestamp(-1)},
		"id:uuid=12345678-9abc-def0-1234-56789ABCDEF0": {"id", UUID{0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0}},
		"raw:binary=AP8=":                {"raw", Binary{0, 0xff}},
		"d:decimal32=01020304":           {"d", Decimal32{1, 2, 3, 4}},
		"s:symbol=x-opt":                 {"s", Symbol("x-opt")},
		"s:string=a:int=1":               {"s", String("a:int=1")},
		"Diagnostic-Id=00-ab":            {"Diagnostic-Id", String("00-ab")},
		"NServiceBus.Time:Sent=x":        {"NServiceBus.Time:Sent", String("x")},
		"cloudEvents:type:string=placed": {"cloudEvents:type", String("placed")},
		"n:sqs:Number=5":                 {"n", Long(5)},
		"n:sqs:Number=05":                {"n", Described{Symbol("sqs:Number"), String("05")}},
		"n:sqs:Number=-1.5e3":            {"n", Described{Symbol("sqs:Number"), String("-1.5e3")}},
		"n:sqs:Number.int=5":             {"n", Described{Symbol("sqs:Number.int"), String("5")}},
		"a:b:sqs:String=x=y":             {"a:b", String("x=y")},
		"s:sqs:String.zone=eu":           {"s", Described{Symbol("sqs:String.zone"), String("eu")}},
		"raw:sqs:Binary=AP8=":            {"raw", Binary{0, 0xff}},
		"raw:sqs:Binary.png=AP8=":        {"raw", Described{Symbol("sqs:Binary.png"), Binary{0, 0xff}}},
		"n:Number:string=5":              {"n:Number", String("5")},
	} {
		got, err := ParseProperty(text)
		if err != nil || got.Name != want.Name || !EqualValues(got.Value, want.Value) {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestParsePropertyRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "name=value",
		"region":                         "name=value",
		"=x":                             "name is empty",
		":int=5":                         "name is empty",
		"n:integer=5":                    `unknown type "integer"; the types are null bool`,
		"n:int=5x":                       `property "n": "5x" is not a int: invalid syntax`,
		"n:int=2147483648":               "out of range",
		"n:ubyte=-1":                     "invalid syntax",
		"n:ubyte=256":                    "out of range",
		"x:float=1e39":                   "out of range",
		"b:bool=yes":                     "is not a bool",
		"n:null=0":                       "no value",
		"c:char=ab":                      "one character",
		"c:char=":                        "one character",
		"c:char=\xff":                    "one character",
		"at:timestamp=yesterday":         "2006-01-02",
		"id:uuid=123456789abcdef0":       "8-4-4-4-12",
		"id:uuid=12345678-9abc-def0-123": "8-4-4-4-12",
		"id:uuid=--345678-9abc-def0-1234-56789abcdef0": "want 32 hexadecimal digits",
		"d:decimal64=0102":    "want 16 hexadecimal digits",
		"d:decimal64=zz":      "is not a decimal64",
		"raw:binary=%":        "is not a binary",
		"l:list=[]":           "no text form",
		"m:described=x":       "no text form",
		"n:Number=1":          `unknown type "Number"; the types are null bool`,
		"n:String.zone=1":     `write n:String.zone:string=…`,
		"n:Int=1":             `unknown type "Int"`,
		"n:sqs:number=1":      `unknown type "sqs:number"`,
		"n:sqs:Map=1":         `for SQS sqs:String sqs:Number sqs:Binary`,
		":sqs:Number=1":       "name is empty",
		"n:sqs:Number=one":    `"one" is not a sqs:Number: write a decimal number`,
		"n:sqs:Number=":       "invalid syntax",
		"n:sqs:Number=1e999":  "out of range",
		"n:sqs:Number.x=0x1":  "decimal number",
		"raw:sqs:Binary.x=AP": "base64",
	} {
		got, err := ParseProperty(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v and the error %v, want one that says %q", text, got, err, want)
		}
	}
}

// TestTextRoundTrip: what FormatValue writes of a primitive, ParseValue reads back.
func TestTextRoundTrip(t *testing.T) {
	at := func(year int) Value { return TimestampOf(time.Date(year, 2, 3, 4, 5, 6, 7e6, time.UTC)) }
	values := append(everyValue(),
		Ubyte(0), Uint(0), Ulong(0), Byte(127), Short(32767), Int(0), Long(math.MaxInt64),
		Float(math.SmallestNonzeroFloat32), Float(math.MaxFloat32), Float(0.1), Float(float32(math.Inf(1))),
		Double(math.SmallestNonzeroFloat64), Double(math.MaxFloat64), Double(0.1), Double(math.NaN()),
		Char(0), Char('\U0001f4a3'), Char('�'), UUID{}, Decimal64{}, Binary{1, 2, 3, 4}, String("a=b:c\n"), Symbol(""),
		Timestamp(0), at(1), at(1969), at(9999), at(10000), at(-44), Timestamp(math.MaxInt64), Timestamp(math.MinInt64))
	kinds := map[Kind]bool{}
	for _, v := range values {
		k := KindOf(v)
		if k == 0 || k >= KindList {
			continue
		}
		kinds[k] = true
		got, err := ParseValue(k, FormatValue(v))
		if err != nil || !EqualValues(got, v) {
			t.Errorf("%v %q: read back as %v, %v", k, FormatValue(v), got, err)
		}
	}
	if want := int(KindList - KindNull); len(kinds) != want {
		t.Errorf("%d of %d primitive kinds were tried", len(kinds), want)
	}
}

// FuzzParseProperty: what was read is read again from its text form.
func FuzzParseProperty(f *testing.F) {
	for _, s := range []string{
		"a=b", "n:int=5", "at:timestamp=2026-01-02T15:04:05Z", "x:double=NaN", "x:float=-0x1p-149", "c:char=é", "b:bool=T",
		"raw:binary=AP8=", "id:uuid=12345678-9abc-def0-1234-56789abcdef0", "d:decimal128=000102030405060708090a0b0c0d0e0f", "a:B:symbol==",
		"n:sqs:Number.float=1.50", "raw:sqs:Binary.png=AP8=", "n:sqs:Number=05",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseProperty(s)
		if err != nil {
			return
		}
		written := p.Name + ":" + KindOf(p.Value).String() + "=" + FormatValue(p.Value)
		if t, text, ok := FormatSQSValue(p.Value); ok {
			written = p.Name + ":" + t + "=" + text
		}
		again, err := ParseProperty(written)
		if err != nil || again.Name != p.Name || !EqualValues(again.Value, p.Value) {
			t.Errorf("%q is %v, written %q, and read again %v, %v", s, p, written, again, err)
		}
	})
}

func TestFormatCompound(t *testing.T) {
	for want, v := range map[string]Value{
		"":                                nil,
		"[]":                              List{},
		"[1, null, [x]]":                  List{Int(1), Null{}, List{String("x")}},
		"array<int>[1, 2]":                Array{Elem: KindInt, Items: []Value{Int(1), Int(2)}},
		"{k: 1, 2: true}":                 Map{{Symbol("k"), Long(1)}, {Int(2), Bool(true)}},
		"com.microsoft:timespan(5)":       Described{Symbol("com.microsoft:timespan"), Long(5)},
		"119([2026-01-02T15:04:05.000Z])": Described{Ulong(119), List{Timestamp(1767366245000)}},
	} {
		if got := FormatValue(v); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestInteger(t *testing.T) {
	for _, c := range []struct {
		v    Value
		want int64
		ok   bool
	}{
		{Ubyte(1), 1, true},
		{Ushort(2), 2, true},
		{Uint(3), 3, true},
		{Ulong(4), 4, true},
		{Byte(-1), -1, true},
		{Short(-2), -2, true},
		{Int(-3), -3, true},
		{Long(-4), -4, true},
		{Ulong(math.MaxInt64), math.MaxInt64, true},
		{Bool(true), 0, false},
		{Double(1), 0, false},
		{String("1"), 0, false},
		{Timestamp(1), 0, false},
		{nil, 0, false},
	} {
		if n, ok := Integer(c.v); n != c.want || ok != c.ok {
			t.Errorf("%v %v: got %d, %v", KindOf(c.v), c.v, n, ok)
		}
	}
	if _, ok := Integer(Ulong(math.MaxInt64 + 1)); ok {
		t.Error("a ulong beyond int64 was taken for an integer")
	}
}

func TestRandomUUID(t *testing.T) {
	seen := map[UUID]bool{}
	for range 100 {
		u := RandomUUID()
		if s := u.String(); s[14] != '4' || !strings.Contains("89ab", s[19:20]) {
			t.Fatalf("%s is not of version 4", s)
		}
		seen[u] = true
	}
	if len(seen) != 100 {
		t.Errorf("of 100 UUIDs %d are different", len(seen))
	}
}

func TestKindNames(t *testing.T) {
	seen := map[string]bool{}
	for k := KindNull; k <= KindDescribed; k++ {
		name := k.String()
		if back, ok := ParseKind(name); !ok || back != k || seen[name] {
			t.Errorf("kind %d is named %q, which names %d", k, name, back)
		}
		seen[name] = true
	}
	for _, name := range []string{"", "none", "integer", "Int", "unknown"} {
		if k, ok := ParseKind(name); ok {
			t.Errorf("%q names the kind %v", name, k)
		}
	}
	if got := Kind(99).String(); got != "unknown" {
		t.Errorf("a kind that does not exist is named %q", got)
	}
}
