package sqlfilter

import (
	"cmp"
	"math"
	"strings"
	"time"

	"dlq/backends/message"
)

// kind is the type of a value in an expression: fewer than a message has, because all
// integers are long and all fractions are double.
type kind uint8

const (
	nullKind     kind = iota // null, or a property that is not there
	boolKind                 // a: 0 or 1
	longKind                 // a
	doubleKind               // a: the bits
	textKind                 // s
	timeKind                 // a: Unix seconds, b: nanoseconds
	durationKind             // a: nanoseconds
	guidKind                 // a, b: the two halves, network order
	otherKind                // binary, list, map: is there, compares with nothing
	anyKind                  // known only when a message is there; never the kind of a value
	quantityKind             // a number, a time or a duration: likewise
)

// noun names the kind in an error message.
func (k kind) noun() string {
	return [...]string{
		"NULL", "TRUE or FALSE", "a number", "a number", "text", "a time", "a duration",
		"a GUID", "a binary", "any", "a number",
	}[k]
}

func (k kind) numeric() bool { return k == longKind || k == doubleKind }

// compares reports whether values of the two static kinds can compare.
func (k kind) compares(other kind) bool {
	switch {
	case k == other, k.numeric() && other.numeric():
		return true
	case k == anyKind || other == anyKind || k == nullKind || other == nullKind:
		return true
	case k == quantityKind:
		return other.numeric() || other == timeKind || other == durationKind
	}
	return other == quantityKind && quantityKind.compares(k)
}

// value is one operand during evaluation. It is a plain struct and no interface, so that
// reading a property does not allocate.
type value struct {
	kind kind
	a, b int64
	s    string
}

func boolValue(b bool) value {
	if b {
		return value{kind: boolKind, a: 1}
	}
	return value{kind: boolKind}
}

func longValue(n int64) value             { return value{kind: longKind, a: n} }
func doubleValue(f float64) value         { return value{kind: doubleKind, a: int64(math.Float64bits(f))} }
func textValue(s string) value            { return value{kind: textKind, s: s} }
func durationValue(d time.Duration) value { return value{kind: durationKind, a: int64(d)} }
func (v value) double() float64           { return math.Float64frombits(uint64(v.a)) }
func (v value) isNull() bool              { return v.kind == nullKind }
func optionalText(p *string) value {
	if p == nil {
		return value{}
	}
	return textValue(*p)
}

// timeValue makes the zero time null.
func timeValue(t time.Time) value {
	if t.IsZero() {
		return value{}
	}
	return value{kind: timeKind, a: t.Unix(), b: int64(t.Nanosecond())}
}

func (v value) time() time.Time { return time.Unix(v.a, v.b).UTC() }

// guidValue keeps the two halves as they compare: unsigned, high half first.
func guidValue(u message.UUID) value {
	v := value{kind: guidKind}
	for i := range 8 {
		v.a = v.a<<8 | int64(u[i])
		v.b = v.b<<8 | int64(u[8+i])
	}
	return v
}

// fromMessage turns a message's value into an expression's.
func fromMessage(v message.Value) value {
	if s, ok := v.(message.String); ok { // nearly always
		return textValue(string(s))
	}
	switch v := v.(type) {
	case nil, message.Null:
		return value{}
	case message.Symbol:
		return textValue(string(v))
	case message.Char:
		return textValue(string(rune(v)))
	case message.Bool:
		return boolValue(bool(v))
	case message.Float:
		return doubleValue(float64(v))
	case message.Double:
		return doubleValue(float64(v))
	case message.Ulong:
		if v > math.MaxInt64 {
			return doubleValue(float64(v))
		}
		return longValue(int64(v))
	case message.Timestamp:
		return timeValue(v.Time())
	case message.UUID:
		return guidValue(v)
	case message.Decimal32:
		return fromDecimal(v[:])
	case message.Decimal64:
		return fromDecimal(v[:])
	case message.Decimal128:
		return fromDecimal(v[:])
	case message.Described:
		return fromDescribed(v)
	}
	if n, ok := message.Integer(v); ok {
		return longValue(n)
	}
	return value{kind: otherKind}
}

// ticksToUnix are the 100 ns ticks of .NET from year 1 to 1970.
const ticksToUnix = 621355968000000000

// fromDescribed reads the described types that .NET clients send for the types AMQP lacks, and those
// of SQS.
func fromDescribed(d message.Described) value {
	name, _ := d.Descriptor.(message.Symbol)
	n, isInt := message.Integer(d.Value)
	switch {
	case name == timespanType && isInt && n <= math.MaxInt64/100 && n >= math.MinInt64/100:
		return value{kind: durationKind, a: n * 100}
	case name == offsetType && isInt && n >= 0:
		n -= ticksToUnix
		return timeValue(time.Unix(n/1e7, n%1e7*100))
	case name == uriType, isSQS(name, sqsString):
		if s, ok := d.Value.(message.String); ok {
			return textValue(string(s))
		}
	case isSQS(name, sqsNumber):
		s, _ := d.Value.(message.String)
		if v := parseNumber(string(s)); !v.isNull() {
			return v
		}
	}
	return value{kind: otherKind}
}

// compareValues orders two values. ok is false when the outcome is unknown: one is null, or
// the types do not compare. With coerce, text that reads as the other's type is converted.
func compareValues(x, y value, coerce bool) (order int, ok bool) {
	if x.kind != y.kind {
		return compareMixed(x, y, coerce)
	}
	switch x.kind {
	case textKind:
		return strings.Compare(x.s, y.s), true
	case boolKind, longKind, durationKind:
		return cmp.Compare(x.a, y.a), true
	case timeKind:
		return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)), true
	case guidKind:
		return cmp.Or(cmp.Compare(uint64(x.a), uint64(y.a)), cmp.Compare(uint64(x.b), uint64(y.b))), true
	case doubleKind:
		return compareDoubles(x.double(), y.double())
	}
	return 0, false
}

func compareMixed(x, y value, coerce bool) (order int, ok bool) {
	switch {
	case x.kind == longKind && y.kind == doubleKind:
		return compareDoubles(float64(x.a), y.double())
	case x.kind == doubleKind && y.kind == longKind:
		return compareDoubles(x.double(), float64(y.a))
	case coerce && x.kind == textKind:
		if c, ok := convertText(x.s, y.kind); ok {
			return compareValues(c, y, false)
		}
	case coerce && y.kind == textKind:
		if c, ok := convertText(y.s, x.kind); ok {
			return compareValues(x, c, false)
		}
	}
	return 0, false
}

// compareDoubles leaves a comparison with NaN unknown: it is neither equal nor different.
func compareDoubles(x, y float64) (order int, ok bool) {
	return cmp.Compare(x, y), x == x && y == y
}
