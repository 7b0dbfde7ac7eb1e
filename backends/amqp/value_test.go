package amqp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"dlq/backends/message"
)

// values has every type with the values at which its encoding changes form.
func values() []message.Value {
	long := strings.Repeat("x", 256)
	wide := make(message.List, 256)
	for i := range wide {
		wide[i] = message.Ubyte(i)
	}
	return []message.Value{
		message.Null{},
		message.Bool(true), message.Bool(false),
		message.Ubyte(0), message.Ubyte(255), message.Byte(-128), message.Byte(127),
		message.Ushort(0), message.Ushort(65535), message.Short(-32768), message.Short(32767),
		message.Uint(0), message.Uint(1), message.Uint(255), message.Uint(256), message.Uint(math.MaxUint32),
		message.Int(0), message.Int(-128), message.Int(127), message.Int(128), message.Int(math.MinInt32),
		message.Ulong(0), message.Ulong(255), message.Ulong(256), message.Ulong(math.MaxUint64),
		message.Long(0), message.Long(-128), message.Long(128), message.Long(math.MinInt64),
		message.Float(1.5), message.Float(math.Float32frombits(0x7fc00001)), message.Float(math.Inf(-1)),
		message.Double(0), message.Double(math.Copysign(0, -1)), message.Double(math.NaN()), message.Double(math.Pi),
		message.Decimal32{1, 2, 3, 4},
		message.Decimal64{7: 5},
		message.Decimal128{15: 9},
		message.Char('é'), message.Char(0x1f600), message.Char(-1),
		message.Timestamp(0), message.Timestamp(-1), message.Timestamp(math.MaxInt64),
		message.UUID{0: 1, 15: 2},
		message.Binary{},
		message.Binary("\x00\xff"), message.Binary(long),
		message.String(""), message.String("grüß"), message.String("\xff\xfe"), message.String(long),
		message.Symbol(""), message.Symbol("x-opt-seq"), message.Symbol(long),
		message.List{},
		message.List{message.Null{}, message.List{message.Int(1)}},
		wide,
		message.Map{},
		message.Map{{Key: message.Symbol("k"), Value: message.Int(1)}, {Key: message.Int(2), Value: message.Null{}}},
		message.Map{{Key: message.String("twice"), Value: message.Int(1)}, {Key: message.String("twice"), Value: message.Int(2)}},
		message.Array{Elem: message.KindInt},
		message.Array{Elem: message.KindNull, Items: []message.Value{message.Null{}, message.Null{}}},
		message.Array{Elem: message.KindBool, Items: []message.Value{message.Bool(true), message.Bool(false)}},
		message.Array{Elem: message.KindString, Items: []message.Value{message.String(""), message.String(long)}},
		message.Array{Elem: message.KindList, Items: []message.Value{message.List{}, message.List{message.Int(1)}}},
		message.Array{Elem: message.KindMap, Items: []message.Value{message.Map{}}},
		message.Array{Elem: message.KindArray, Items: []message.Value{message.Array{Elem: message.KindUUID}}},
		message.Array{Elem: message.KindLong, Descriptor: message.Symbol("com.microsoft:timespan"), Items: []message.Value{message.Long(7)}},
		message.Array{Elem: message.KindLong, Descriptor: message.Ulong(1)},
		message.Described{Descriptor: message.Symbol("com.microsoft:uri"), Value: message.String("https://example.com/")},
		message.Described{Descriptor: message.Ulong(0x137000000c), Value: message.Described{Descriptor: message.Ulong(1), Value: message.List{}}},
	}
}

func TestRoundTrip(t *testing.T) {
	for _, v := range values() {
		b, err := AppendValue([]byte("before"), v)
		if err != nil {
			t.Errorf("%s %q: %v", message.KindOf(v), message.FormatValue(v), err)
			continue
		}
		got, rest, err := DecodeValue(append(b[len("before"):], "behind"...))
		if err != nil || string(rest) != "behind" || !message.EqualValues(got, v) {
			t.Errorf("%s %q: came back as %#v, rest %q, %v", message.KindOf(v), message.FormatValue(v), got, rest, err)
		}
	}
}

// The bytes are those of the standard's own tables: part 1, section 1.6.
func TestEncoding(t *testing.T) {
	for _, tt := range []struct {
		v    message.Value
		want string
	}{
		{message.Null{}, "40"},
		{message.Bool(true), "41"},
		{message.Uint(0), "43"},
		{message.Uint(7), "5207"},
		{message.Uint(300), "700000012c"},
		{message.Ulong(0x24), "5324"},
		{message.Int(-1), "54ff"},
		{message.Long(1000), "8100000000000003e8"},
		{message.Ushort(1), "600001"},
		{message.Timestamp(1), "830000000000000001"},
		{message.String("hi"), "a1026869"},
		{message.Symbol("s"), "a30173"},
		{message.Binary{1}, "a00101"},
		{message.List{}, "45"},
		{message.List{message.Int(1), message.Null{}}, "c0040254" + "0140"},
		{message.Map{{Key: message.String("a"), Value: message.Bool(false)}}, "c10502a1016142"},
		{message.Array{Elem: message.KindLong, Items: []message.Value{message.Long(2)}}, "e00a01810000000000000002"},
		{message.Described{Descriptor: message.Ulong(0x70), Value: message.List{}}, "00537045"},
	} {
		b, err := AppendValue(nil, tt.v)
		if got := hex.EncodeToString(b); err != nil || got != tt.want {
			t.Errorf("%v: %s, %v; want %s", tt.v, got, err, tt.want)
		}
	}
}

// Other encoders choose other forms; each constructor must be read.
func TestDecodeForms(t *testing.T) {
	for _, tt := range []struct {
		hex  string
		want message.Value
	}{
		{"5601", message.Bool(true)},
		{"5600", message.Bool(false)},
		{"7000000005", message.Uint(5)},
		{"7100000005", message.Int(5)},
		{"800000000000000005", message.Ulong(5)},
		{"8100000000000000ff", message.Long(255)},
		{"b000000001ff", message.Binary{0xff}},
		{"b100000001" + "41", message.String("A")},
		{"b30000000141", message.Symbol("A")},
		{"c00100", message.List{}},
		{"d00000000400000000", message.List{}},
		{"d0000000050000000141", message.List{message.Bool(true)}},
		{"c10100", message.Map{}},
		{"d1000000060000000240" + "41", message.Map{{Key: message.Null{}, Value: message.Bool(true)}}},
		{"f0000000050000000245", message.Array{Elem: message.KindList, Items: []message.Value{message.List{}, message.List{}}}},
		{"e0020341", message.Array{Elem: message.KindBool, Items: []message.Value{message.Bool(true), message.Bool(true), message.Bool(true)}}},
		{"e004025501ff", message.Array{Elem: message.KindLong, Items: []message.Value{message.Long(1), message.Long(-1)}}},
		{"e0020043", message.Array{Elem: message.KindUint}},
		{"e00702005370a0" + "0000", message.Array{Elem: message.KindBinary, Descriptor: message.Ulong(0x70), Items: []message.Value{message.Binary{}, message.Binary{}}}},
	} {
		b, err := hex.DecodeString(tt.hex)
		if err != nil {
			t.Fatal(err)
		}
		v, rest, err := DecodeValue(b)
		if err != nil || len(rest) != 0 || !message.EqualValues(v, tt.want) {
			t.Errorf("%s: %#v, rest %x, %v; want %#v", tt.hex, v, rest, err, tt.want)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, tt := range []struct{ name, hex string }{
		{"nothing", ""},
		{"unknown constructor", "ff"},
		{"undefined zero width", "46"},
		{"undefined variable", "a2" + "00"},
		{"short int", "710000"},
		{"short string", "a1054142"},
		{"no value for the descriptor", "005370"},
		{"bool of 2", "5602"},
		{"odd map", "c10302" + "40"},
		{"odd map count", "c1020140"},
		{"list with bytes behind", "c0020040"},
		{"list too short", "c0020240"},
		{"list without count", "c000"},
		{"array without constructor", "e00100"},
		{"array of unknown", "e0020002"},
		{"array of described described", "e006010053700053"},
		{"array with bytes behind", "e003004000"},
	} {
		b, err := hex.DecodeString(tt.hex)
		if err != nil {
			t.Fatal(err)
		}
		if v, rest, err := DecodeValue(b); !errors.Is(err, ErrMalformed) || v != nil || !bytes.Equal(rest, b) {
			t.Errorf("%s: %v, %v", tt.name, v, err)
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	deep := message.Value(message.List{})
	for range MaxDepth + 1 {
		deep = message.List{deep}
	}
	for _, tt := range []struct {
		name string
		v    message.Value
		want error
	}{
		{"none", nil, ErrUnencodable},
		{"none in a list", message.List{nil}, ErrUnencodable},
		{"none as a key", message.Map{{Value: message.Null{}}}, ErrUnencodable},
		{"array of two kinds", message.Array{Elem: message.KindInt, Items: []message.Value{message.Long(1)}}, ErrUnencodable},
		{"array of described", message.Array{Elem: message.KindDescribed}, ErrUnencodable},
		{"array of nothing", message.Array{}, ErrUnencodable},
		{"too deep", deep, ErrLimit},
		{"long symbol", message.Symbol(strings.Repeat("s", MaxSymbol+1)), ErrLimit},
		{"long list", make(message.List, MaxCount+1), ErrLimit},
		{"many nulls", message.Array{Elem: message.KindNull, Items: nulls(MaxZeroWidth + 1)}, ErrLimit},
	} {
		if b, err := AppendValue([]byte{1}, tt.v); !errors.Is(err, tt.want) || len(b) != 1 {
			t.Errorf("%s: %x, %v; want %v", tt.name, b, err, tt.want)
		}
	}
}

func nulls(n int) []message.Value {
	vs := make([]message.Value, n)
	for i := range vs {
		vs[i] = message.Null{}
	}
	return vs
}

// nest wraps inner into depth lists, each holding the next.
func nest(depth int) []byte {
	b := []byte{codeList0}
	for range depth - 1 {
		size := len(b) + 4
		b = append([]byte{codeList32, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size), 0, 0, 0, 1}, b...)
	}
	return b
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestDepthLimit(t *testing.T) {
	// An empty list0 is a scalar form: it nests nothing.
	if _, _, err := DecodeValue(nest(MaxDepth + 1)); err != nil {
		t.Errorf("depth %d: %v", MaxDepth, err)
	}
	if _, _, err := DecodeValue(nest(MaxDepth + 2)); !errors.Is(err, ErrLimit) {
		t.Errorf("depth %d: %v", MaxDepth+1, err)
	}
}

// Each bomb is refused at once and for next to nothing.
func TestBombs(t *testing.T) {
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	greedy := []byte{} // each list claims all bytes behind it as items, and its first item does too
	for range MaxDepth {
		greedy = append(greedy, codeList32, 0, 0, 0xf0, 0, 0, 0, 0xe0, 0)
	}
	for _, tt := range []struct {
		name string
		b    []byte
	}{
		{"described 10^6 deep", bytes.Repeat([]byte{0x00, 0x44}, 1_000_000)},
		{"descriptors 10^6 deep", make([]byte, 1_000_000)},
		{"list8 10^6 deep", bytes.Repeat([]byte{codeList8, 0xff, 1}, 1_000_000)},
		{"count 2^32-1", unhex("d000000005ffffffff40")},
		{"size 2^32-1", unhex("d0ffffffff0000000140")},
		{"string 2^32-1", unhex("b1ffffffff40")},
		{"array of 2^32-1 nulls", unhex("f000000005ffffffff40")},
		{"array of 65,536 nulls", unhex("f0000000050001000040")},
		{"array of 65,536 empty lists", unhex("f0000000050001000045")},
		{"two arrays of 600 nulls", unhex("c01502f0000000050000025840f0000000050000025840")},
		{"described arrays of nulls", unhex("f0000000080000ffff00" + "534043")},
		{"greedy lists", append(greedy, bytes.Repeat([]byte{0x40}, 0x10000)...)},
	} {
		start := time.Now()
		var err error
		n := allocated(func() { _, _, err = DecodeValue(tt.b) })
		if !errors.Is(err, ErrLimit) && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if limit := uint64(32*len(tt.b) + 64<<10); n > min(limit, 4<<20) {
			t.Errorf("%s: %d bytes allocated for %d", tt.name, n, len(tt.b))
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("%s took %v", tt.name, d)
		}
	}
}

// The shapes that cost most memory for their bytes stay under the bound.
func TestAllocationBound(t *testing.T) {
	const n = 20_000
	array := func(code byte, item ...byte) []byte {
		size := 5 + n*len(item)
		b := []byte{codeArray32, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size), 0, 0, n >> 8, n & 0xff, code}
		return append(b, bytes.Repeat(item, n)...)
	}
	list := func(item ...byte) []byte {
		size := 4 + n*len(item)
		b := []byte{codeList32, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size), 0, 0, n >> 8, n & 0xff}
		return append(b, bytes.Repeat(item, n)...)
	}
	for _, tt := range []struct {
		name string
		b    []byte
	}{
		{"ubyte", array(codeUbyte, 0xff)},
		{"empty binary", array(codeBinary8, 0)},
		{"empty string", array(codeString8, 0)},
		{"binary", array(codeBinary8, 1, 1)},
		{"string", array(codeString8, 2, 'a', 'b')},
		{"short", array(codeShort, 1, 1)},
		{"lists of one", array(codeList8, 2, 1, 0x40)},
		{"maps of one", array(codeMap8, 3, 2, 0x40, 0x40)},
		{"empty arrays", array(codeArray8, 2, 0, 0x40)},
		{"described", list(0, 0x44, 0x40)},
		{"nested", list(codeList8, 2, 1, 0x40)},
		{"described arrays", array(codeArray8, 4, 0, 0, 0x44, 0x40)},
	} {
		var err error
		got := allocated(func() { _, _, err = DecodeValue(tt.b) })
		if limit := uint64(32*len(tt.b) + 64<<10); err != nil || got > limit {
			t.Errorf("array of %s: %d bytes allocated for %d, at most %d: %v", tt.name, got, len(tt.b), limit, err)
		}
	}
}

func FuzzDecodeValue(f *testing.F) {
	for _, v := range values() {
		b, err := AppendValue(nil, v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, rest, err := DecodeValue(b)
		if err != nil {
			if v != nil || len(rest) != len(b) {
				t.Fatalf("an error came with a value: %v", v)
			}
			return
		}
		if n := nodes(v); n > len(b)+MaxZeroWidth {
			t.Fatalf("%d values from %d bytes", n, len(b))
		}
		again, err := AppendValue(nil, v)
		if err != nil {
			t.Fatalf("%#v cannot be encoded: %v", v, err)
		}
		v2, rest, err := DecodeValue(again)
		if err != nil || len(rest) != 0 || !message.EqualValues(v, v2) {
			t.Fatalf("%#v came back as %#v: %v", v, v2, err)
		}
	})
}

func nodes(v message.Value) int {
	n := 1
	switch v := v.(type) {
	case message.List:
		for _, item := range v {
			n += nodes(item)
		}
	case message.Array:
		for _, item := range v.Items {
			n += nodes(item)
		}
	case message.Map:
		for _, p := range v {
			n += nodes(p.Key) + nodes(p.Value)
		}
	case message.Described:
		n += nodes(v.Descriptor) + nodes(v.Value)
	}
	return n
}

func BenchmarkDecodeValue(b *testing.B) {
	m := message.Map{}
	for _, k := range []string{"tenant", "attempt", "traceparent", "order-id"} {
		m = append(m, message.Pair{Key: message.String(k), Value: message.String("some usual value")},
			message.Pair{Key: message.Symbol(k), Value: message.Long(123456789)})
	}
	enc, err := AppendValue(nil, m)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(enc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := DecodeValue(enc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendValue(b *testing.B) {
	v := message.Value(message.Map{{Key: message.String("tenant"), Value: message.String("acme")}, {Key: message.Symbol("n"), Value: message.Long(1 << 40)}})
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		var err error
		if buf, err = AppendValue(buf[:0], v); err != nil {
			b.Fatal(err)
		}
	}
}
