package message

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// AppendValue appends the binary form of v: its kind in one byte, then its content. A nil
// Value is kind 0.
func AppendValue(dst []byte, v Value) []byte {
	dst = append(dst, byte(KindOf(v)))
	return appendContent(dst, v)
}

func appendContent(dst []byte, v Value) []byte {
	switch v := v.(type) {
	case Bool:
		if v {
			return append(dst, 1)
		}
		return append(dst, 0)
	case Ubyte, Ushort, Uint, Byte, Short, Int, Long:
		n, _ := Integer(v)
		return binary.AppendVarint(dst, n)
	case Ulong:
		return binary.AppendUvarint(dst, uint64(v))
	case Float:
		return binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(v)))
	case Double:
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(float64(v)))
	case Decimal32:
		return append(dst, v[:]...)
	case Decimal64:
		return append(dst, v[:]...)
	case Decimal128:
		return append(dst, v[:]...)
	case Char:
		return binary.AppendVarint(dst, int64(v))
	case Timestamp:
		return binary.AppendVarint(dst, int64(v))
	case UUID:
		return append(dst, v[:]...)
	case Binary:
		return appendBytes(dst, v)
	case String:
		return appendString(dst, string(v))
	case Symbol:
		return appendString(dst, string(v))
	case List:
		return appendValues(dst, v)
	case Map:
		return appendMap(dst, v)
	case Array:
		dst = AppendValue(append(dst, byte(v.Elem)), v.Descriptor)
		return appendValues(dst, v.Items)
	case Described:
		return AppendValue(AppendValue(dst, v.Descriptor), v.Value)
	}
	return dst // nil and Null have no content
}

func appendValues(dst []byte, vs []Value) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(vs)))
	for _, v := range vs {
		dst = AppendValue(dst, v)
	}
	return dst
}

func appendMap(dst []byte, m Map) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(m)))
	for _, p := range m {
		dst = AppendValue(AppendValue(dst, p.Key), p.Value)
	}
	return dst
}

// decoder reads from b and remembers the first error, after which it yields zeroes.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
		d.b = nil
	}
}

// done returns the error of the decoding, which bytes left over are too.
func (d *decoder) done() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail("%d bytes left over", len(d.b))
	}
	return d.err
}

func (d *decoder) version(want byte) {
	if v := d.byte(); v != want {
		d.fail("version %d, want %d", v, want)
	}
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail("cut short")
		return make([]byte, min(max(n, 0), 16)) // the fixed-size readers index into it
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) byte() byte { return d.take(1)[0] }

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("bad number")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uvarintMax(limit uint64) uint64 {
	v := d.uvarint()
	if v > limit {
		d.fail("number %d over %d", v, limit)
		return 0
	}
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail("bad number")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// integer reads a signed number within a type's range.
func (d *decoder) integer(lo, hi int64) int64 {
	n := d.varint()
	if n < lo || n > hi {
		d.fail("number %d out of range", n)
		return 0
	}
	return n
}

// count reads a number of items, each of which takes at least one byte.
func (d *decoder) count() int {
	return int(d.uvarintMax(uint64(len(d.b))))
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail("cut short")
		return nil
	}
	return d.take(int(n))
}

func (d *decoder) string() string { return string(d.bytes()) }

func (d *decoder) millis() *time.Time {
	return new(time.UnixMilli(d.varint()).UTC())
}

func (d *decoder) instant() time.Time {
	sec := d.varint()
	return time.Unix(sec, int64(d.uvarintMax(999_999_999))).UTC()
}

func (d *decoder) attributes() []Attribute {
	n := d.count()
	out := make([]Attribute, 0, min(n, 64)) // a lying count must not allocate
	for i := 0; i < n && d.err == nil; i++ {
		name := d.string()
		out = append(out, Attribute{name, d.value(0)})
	}
	return out
}

func (d *decoder) mapValue(depth int) Map {
	n := d.count()
	out := make(Map, 0, min(n, 64))
	for i := 0; i < n && d.err == nil; i++ {
		key := d.value(depth + 1)
		out = append(out, Pair{key, d.value(depth + 1)})
	}
	return out
}

func (d *decoder) values(depth int) []Value {
	n := d.count()
	out := make([]Value, 0, min(n, 64))
	for i := 0; i < n && d.err == nil; i++ {
		out = append(out, d.value(depth+1))
	}
	return out
}

func (d *decoder) value(depth int) Value {
	if depth > maxDepth {
		d.fail("nested deeper than %d", maxDepth)
		return nil
	}
	switch k := Kind(d.byte()); k {
	case 0:
		return nil
	case KindNull:
		return Null{}
	case KindBool:
		return Bool(d.byte() != 0)
	case KindUbyte:
		return Ubyte(d.integer(0, math.MaxUint8))
	case KindUshort:
		return Ushort(d.integer(0, math.MaxUint16))
	case KindUint:
		return Uint(d.integer(0, math.MaxUint32))
	case KindUlong:
		return Ulong(d.uvarint())
	case KindByte:
		return Byte(d.integer(math.MinInt8, math.MaxInt8))
	case KindShort:
		return Short(d.integer(math.MinInt16, math.MaxInt16))
	case KindInt:
		return Int(d.integer(math.MinInt32, math.MaxInt32))
	case KindLong:
		return Long(d.varint())
	case KindChar:
		return Char(d.integer(math.MinInt32, math.MaxInt32))
	case KindTimestamp:
		return Timestamp(d.varint())
	default:
		return d.wideValue(k, depth)
	}
}

// wideValue reads what is not a small number.
func (d *decoder) wideValue(k Kind, depth int) Value {
	switch k {
	case KindFloat:
		return Float(math.Float32frombits(binary.BigEndian.Uint32(d.take(4))))
	case KindDouble:
		return Double(math.Float64frombits(binary.BigEndian.Uint64(d.take(8))))
	case KindDecimal32:
		return Decimal32(d.take(4))
	case KindDecimal64:
		return Decimal64(d.take(8))
	case KindDecimal128:
		return Decimal128(d.take(16))
	case KindUUID:
		return UUID(d.take(16))
	case KindBinary:
		return Binary(d.bytes())
	case KindString:
		return String(d.string())
	case KindSymbol:
		return Symbol(d.string())
	case KindList:
		return List(d.values(depth))
	case KindMap:
		return d.mapValue(depth)
	case KindArray:
		elem := Kind(d.byte())
		descriptor := d.value(depth + 1)
		return Array{elem, descriptor, d.values(depth)}
	case KindDescribed:
		descriptor := d.value(depth + 1)
		return Described{descriptor, d.value(depth + 1)}
	}
	d.fail("unknown kind %d", k)
	return nil
}
