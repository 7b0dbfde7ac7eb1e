package message

import (
	"crypto/rand"
	"math"
	"time"
)

// Value is one typed value: exactly the types of this file, which are those of AMQP 1.0
// (part 1, 1.6). The set is closed, so a switch over it can be complete. A nil Value
// means that there is none, which is not the same as [Null].
type Value interface{ kind() Kind }

// The primitive types. Named after AMQP, not Go: Long is 64 bits everywhere.
type (
	Null       struct{}
	Bool       bool
	Ubyte      uint8
	Ushort     uint16
	Uint       uint32
	Ulong      uint64
	Byte       int8
	Short      int16
	Int        int32
	Long       int64
	Float      float32
	Double     float64
	Decimal32  [4]byte  // IEEE 754-2008 bits, network order
	Decimal64  [8]byte  // IEEE 754-2008 bits, network order
	Decimal128 [16]byte // IEEE 754-2008 bits, network order
	Char       rune     // one Unicode code point
	Timestamp  int64    // milliseconds since the Unix epoch, may be negative
	UUID       [16]byte // network order (RFC 9562)
	Binary     []byte   // read-only
	String     string   // UTF-8 by the standard; kept as it came if it is not
	Symbol     string   // ASCII by the standard; kept as it came if it is not
)

// The compound types.
type (
	// List is a sequence of values of any types.
	List []Value
	// Map keeps its pairs in the order they came. Keys are unique by the standard; if
	// they are not, all pairs are kept.
	Map []Pair
	// Array is a sequence of values of one type, which an empty array has too.
	Array struct {
		Elem       Kind    // type of the items
		Descriptor Value   // descriptor of the item type; nil: not described
		Items      []Value // all of kind Elem
	}
	// Described is a value with a descriptor that gives it a meaning, such as
	// com.microsoft:timespan.
	Described struct {
		Descriptor Value // Symbol or Ulong
		Value      Value
	}
)

// Pair is one entry of a [Map].
type Pair struct{ Key, Value Value }

// Kind names the type of a [Value].
type Kind uint8

// The kinds, in the order of the types above. The numbers are part of the stored
// record: new kinds go at the end.
const (
	KindNull Kind = iota + 1
	KindBool
	KindUbyte
	KindUshort
	KindUint
	KindUlong
	KindByte
	KindShort
	KindInt
	KindLong
	KindFloat
	KindDouble
	KindDecimal32
	KindDecimal64
	KindDecimal128
	KindChar
	KindTimestamp
	KindUUID
	KindBinary
	KindString
	KindSymbol
	KindList
	KindMap
	KindArray
	KindDescribed
)

// kindNames are the names of the AMQP types, indexed by Kind.
var kindNames = [...]string{
	"none", "null", "bool", "ubyte", "ushort", "uint", "ulong", "byte",
	"short", "int", "long", "float", "double", "decimal32", "decimal64", "decimal128", "char",
	"timestamp", "uuid", "binary", "string", "symbol", "list", "map", "array", "described",
}

// String returns the AMQP name of the type, such as "ulong".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// ParseKind returns the kind with the given AMQP name; ok is false if there is none.
func ParseKind(name string) (k Kind, ok bool) {
	for i, n := range kindNames {
		if i > 0 && n == name {
			return Kind(i), true
		}
	}
	return 0, false
}

// KindOf returns the kind of v, or 0 for a nil Value.
func KindOf(v Value) Kind {
	if v == nil {
		return 0
	}
	return v.kind()
}

func (Null) kind() Kind       { return KindNull }
func (Bool) kind() Kind       { return KindBool }
func (Ubyte) kind() Kind      { return KindUbyte }
func (Ushort) kind() Kind     { return KindUshort }
func (Uint) kind() Kind       { return KindUint }
func (Ulong) kind() Kind      { return KindUlong }
func (Byte) kind() Kind       { return KindByte }
func (Short) kind() Kind      { return KindShort }
func (Int) kind() Kind        { return KindInt }
func (Long) kind() Kind       { return KindLong }
func (Float) kind() Kind      { return KindFloat }
func (Double) kind() Kind     { return KindDouble }
func (Decimal32) kind() Kind  { return KindDecimal32 }
func (Decimal64) kind() Kind  { return KindDecimal64 }
func (Decimal128) kind() Kind { return KindDecimal128 }
func (Char) kind() Kind       { return KindChar }
func (Timestamp) kind() Kind  { return KindTimestamp }
func (UUID) kind() Kind       { return KindUUID }
func (Binary) kind() Kind     { return KindBinary }
func (String) kind() Kind     { return KindString }
func (Symbol) kind() Kind     { return KindSymbol }
func (List) kind() Kind       { return KindList }
func (Map) kind() Kind        { return KindMap }
func (Array) kind() Kind      { return KindArray }
func (Described) kind() Kind  { return KindDescribed }

// Time returns the instant a timestamp stands for, in UTC.
func (t Timestamp) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// TimestampOf returns t as an AMQP timestamp, which drops what is finer than a
// millisecond.
func TimestampOf(t time.Time) Timestamp { return Timestamp(t.UnixMilli()) }

// IsZero reports whether the UUID is all zeroes, which stands for none.
func (u UUID) IsZero() bool { return u == UUID{} }

// RandomUUID returns a new UUID from the system's source of secrets, which nobody can guess
// (RFC 9562, version 4).
func RandomUUID() (u UUID) {
	rand.Read(u[:]) // never fails
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// Get returns the value of the first pair with the symbol key and whether it is there.
func (m Map) Get(key Symbol) (Value, bool) {
	for _, p := range m {
		if k, ok := p.Key.(Symbol); ok && k == key {
			return p.Value, true
		}
	}
	return nil, false
}

// EqualValues reports whether a and b have the same type and the same value. Floats
// compare by bits, so that a NaN equals itself and 0 differs from -0: this is the
// equality of a round trip, not of arithmetic.
func EqualValues(a, b Value) bool {
	if KindOf(a) != KindOf(b) {
		return false
	}
	switch a := a.(type) {
	case nil:
		return true
	case Float:
		return math.Float32bits(float32(a)) == math.Float32bits(float32(b.(Float)))
	case Double:
		return math.Float64bits(float64(a)) == math.Float64bits(float64(b.(Double)))
	case Binary:
		return string(a) == string(b.(Binary))
	case List:
		return equalLists(a, b.(List))
	case Array:
		b := b.(Array)
		return a.Elem == b.Elem && EqualValues(a.Descriptor, b.Descriptor) && equalLists(a.Items, b.Items)
	case Map:
		return equalMaps(a, b.(Map))
	case Described:
		b := b.(Described)
		return EqualValues(a.Descriptor, b.Descriptor) && EqualValues(a.Value, b.Value)
	}
	return a == b
}

func equalLists(a, b []Value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !EqualValues(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalMaps(a, b Map) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !EqualValues(a[i].Key, b[i].Key) || !EqualValues(a[i].Value, b[i].Value) {
			return false
		}
	}
	return true
}
