package message

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ParseProperty reads "name=value" or "name:type=value" as the command line writes a
// typed property: without a type the value is a string. The types are the AMQP names of
// the primitives ("n:int=5", "at:timestamp=2026-01-02T15:04:05Z", "raw:binary=BASE64"), and those
// of SQS ("n:sqs:Number.float=1.50", see [ParseSQSValue]).
//
// A colon may be part of a name. What stands behind the last one is refused if it is a word in lower
// case that names no type, or differs from a type by case alone or by the "sqs:" that it lacks: it is
// more likely a typing error. A name that ends so can be written with its type.
func ParseProperty(s string) (Attribute, error) {
	name, text, ok := strings.Cut(s, "=")
	if !ok {
		return Attribute{}, fmt.Errorf("property %q: write name=value or name:type=value", s)
	}
	name, t := cutType(name)
	if name == "" {
		return Attribute{}, fmt.Errorf("property %q: the name is empty", s)
	}
	var v Value
	var err error
	kind, known := ParseKind(t)
	switch {
	case t == "":
		v = String(text)
	case known:
		v, err = ParseValue(kind, text)
	case IsSQSType(t):
		v, err = ParseSQSValue(t, text)
	default:
		return Attribute{}, fmt.Errorf("property %q: unknown type %q; the types are %s, and for SQS sqs:String sqs:Number sqs:Binary, which take labels as in sqs:Number.float; if it is part of the name, write %s:%s:string=…",
			s, t, primitiveNames(), name, t)
	}
	if err != nil {
		return Attribute{}, fmt.Errorf("property %q: %w", name, err)
	}
	return Attribute{name, v}, nil
}

// cutType splits what stands before the '=' of a property into the name and what is, or was likely
// meant as, the type; "" for none.
func cutType(s string) (name, t string) {
	if i := strings.LastIndex(s, ":"+sqsPrefix); i >= 0 && !strings.Contains(s[i+1+len(sqsPrefix):], ":") {
		return s[:i], s[i+1:]
	}
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, ""
	}
	word := s[i+1:]
	_, kind := ParseKind(strings.ToLower(word))
	_, _, forSQS := cutSQSType(sqsPrefix + word)
	lower := strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
	if kind || lower || forSQS {
		return s[:i], word
	}
	return s, ""
}

// ParseValue reads the text form of a primitive, as [FormatValue] writes it. Compound
// kinds have no text form.
func ParseValue(k Kind, s string) (Value, error) {
	v, err := parsePrimitive(k, s)
	if err != nil {
		var ne *strconv.NumError
		if errors.As(err, &ne) {
			err = ne.Err
		}
		return nil, fmt.Errorf("%q is not a %s: %w", s, k, err)
	}
	return v, nil
}

func parsePrimitive(k Kind, s string) (Value, error) {
	switch k {
	case KindNull:
		if s != "" && s != "null" {
			return nil, errors.New("a null has no value")
		}
		return Null{}, nil
	case KindBool:
		b, err := strconv.ParseBool(s)
		return Bool(b), err
	case KindUbyte, KindUshort, KindUint, KindUlong:
		return parseUnsigned(k, s)
	case KindByte, KindShort, KindInt, KindLong:
		return parseSigned(k, s)
	case KindFloat:
		f, err := strconv.ParseFloat(s, 32)
		return Float(f), err
	case KindDouble:
		f, err := strconv.ParseFloat(s, 64)
		return Double(f), err
	case KindDecimal32, KindDecimal64, KindDecimal128, KindUUID:
		return parseFixed(k, s)
	case KindChar:
		r, n := utf8.DecodeRuneInString(s)
		if n != len(s) || n == 0 || r == utf8.RuneError && n == 1 {
			return nil, errors.New("want one character")
		}
		return Char(r), nil
	case KindTimestamp:
		return parseTimestamp(s)
	case KindBinary:
		b, err := base64.StdEncoding.DecodeString(s)
		return Binary(b), err
	case KindString:
		return String(s), nil
	case KindSymbol:
		return Symbol(s), nil
	}
	return nil, errors.New("the type has no text form; the types are " + primitiveNames())
}

func parseUnsigned(k Kind, s string) (Value, error) {
	bits := map[Kind]int{KindUbyte: 8, KindUshort: 16, KindUint: 32, KindUlong: 64}[k]
	n, err := strconv.ParseUint(s, 10, bits)
	switch k {
	case KindUbyte:
		return Ubyte(n), err
	case KindUshort:
		return Ushort(n), err
	case KindUint:
		return Uint(n), err
	}
	return Ulong(n), err
}

func parseSigned(k Kind, s string) (Value, error) {
	bits := map[Kind]int{KindByte: 8, KindShort: 16, KindInt: 32, KindLong: 64}[k]
	n, err := strconv.ParseInt(s, 10, bits)
	switch k {
	case KindByte:
		return Byte(n), err
	case KindShort:
		return Short(n), err
	case KindInt:
		return Int(n), err
	}
	return Long(n), err
}

func parseFixed(k Kind, s string) (Value, error) {
	digits := s
	if k == KindUUID {
		if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return nil, errors.New("write it as 8-4-4-4-12 hexadecimal digits")
		}
		digits = strings.ReplaceAll(s, "-", "")
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil, err
	}
	size := map[Kind]int{KindDecimal32: 4, KindDecimal64: 8, KindDecimal128: 16, KindUUID: 16}[k]
	if len(b) != size {
		return nil, fmt.Errorf("want %d hexadecimal digits", 2*size)
	}
	switch k {
	case KindDecimal32:
		return Decimal32(b), nil
	case KindDecimal64:
		return Decimal64(b), nil
	case KindDecimal128:
		return Decimal128(b), nil
	}
	return UUID(b), nil
}

// parseTimestamp reads RFC 3339 or, for instants that it cannot write, a plain number of
// milliseconds since the epoch.
func parseTimestamp(s string) (Value, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return Timestamp(ms), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return nil, errors.New("write it as 2006-01-02T15:04:05.000Z")
	}
	return TimestampOf(t), nil
}

// FormatValue returns the text form of v: what [ParseValue] reads back for a primitive,
// and a readable form for a compound. It is not safe for a terminal: a string may hold
// anything.
func FormatValue(v Value) string {
	switch v := v.(type) {
	case nil:
		return ""
	case Null:
		return "null"
	case Bool:
		return strconv.FormatBool(bool(v))
	case Float:
		return strconv.FormatFloat(float64(v), 'g', -1, 32)
	case Double:
		return strconv.FormatFloat(float64(v), 'g', -1, 64)
	case Decimal32:
		return hex.EncodeToString(v[:])
	case Decimal64:
		return hex.EncodeToString(v[:])
	case Decimal128:
		return hex.EncodeToString(v[:])
	case Char:
		return string(rune(v))
	case Timestamp:
		return formatTimestamp(v)
	case UUID:
		return v.String()
	case Binary:
		return base64.StdEncoding.EncodeToString(v)
	case String:
		return string(v)
	case Symbol:
		return string(v)
	case List:
		return "[" + joinValues(v) + "]"
	case Array:
		return "array<" + v.Elem.String() + ">[" + joinValues(v.Items) + "]"
	case Map:
		return formatMap(v)
	case Described:
		return FormatValue(v.Descriptor) + "(" + FormatValue(v.Value) + ")"
	}
	return fmt.Sprint(v) // the integers
}

// formatTimestamp falls back to milliseconds where RFC 3339 has no form: years beyond 9999.
func formatTimestamp(t Timestamp) string {
	const minMS, maxMS = -62135596800000, 253402300799999 // years 1 and 9999
	if t < minMS || t > maxMS {
		return strconv.FormatInt(int64(t), 10)
	}
	return t.Time().Format("2006-01-02T15:04:05.000Z")
}

func joinValues(vs []Value) string {
	parts := make([]string, len(vs))
	for i, v := range vs {
		parts[i] = FormatValue(v)
	}
	return strings.Join(parts, ", ")
}

func formatMap(m Map) string {
	parts := make([]string, len(m))
	for i, p := range m {
		parts[i] = FormatValue(p.Key) + ": " + FormatValue(p.Value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// String returns the usual form with hyphens, in lower case.
func (u UUID) String() string {
	var b [36]byte
	hex.Encode(b[:8], u[:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:], u[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

func primitiveNames() string {
	return strings.Join(kindNames[KindNull:KindList], " ")
}

// Integer returns the value of any of the eight integer types; ok is false for another
// type and for a ulong beyond the range of int64.
func Integer(v Value) (n int64, ok bool) {
	switch v := v.(type) {
	case Ubyte:
		return int64(v), true
	case Ushort:
		return int64(v), true
	case Uint:
		return int64(v), true
	case Ulong:
		return int64(v), v <= math.MaxInt64
	case Byte:
		return int64(v), true
	case Short:
		return int64(v), true
	case Int:
		return int64(v), true
	case Long:
		return int64(v), true
	}
	return 0, false
}
