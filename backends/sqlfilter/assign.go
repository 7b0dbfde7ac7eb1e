package sqlfilter

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dlq/backends/message"
)

// The types by which .NET clients send what AMQP lacks.
const (
	timespanType = message.Symbol("com.microsoft:timespan")        // ticks of 100 ns
	offsetType   = message.Symbol("com.microsoft:datetime-offset") // ticks since year 1
	uriType      = message.Symbol("com.microsoft:uri")
)

// The types of attributes of SQS that no type of AMQP stands for: what has a label behind a dot, and
// numbers that are no 64-bit integers. The value is the text as it was sent.
const (
	sqsString = "sqs:String"
	sqsNumber = "sqs:Number"
)

// isSQS reports whether a descriptor is that of a type, with whatever label.
func isSQS(descriptor message.Value, t string) bool {
	name, _ := descriptor.(message.Symbol)
	rest, ok := strings.CutPrefix(string(name), t)
	return ok && (rest == "" || rest[0] == '.')
}

// message returns the value as an application property that did not exist before has it: one
// type for each kind. It is nil for a value that an expression cannot hold.
func (v value) message() message.Value {
	switch v.kind {
	case nullKind:
		return message.Null{}
	case boolKind:
		return message.Bool(v.a != 0)
	case longKind:
		return message.Long(v.a)
	case doubleKind:
		return message.Double(v.double())
	case textKind:
		return message.String(v.s)
	case timeKind:
		return message.TimestampOf(v.time())
	case durationKind:
		return message.Described{Descriptor: timespanType, Value: message.Long(v.a / 100)}
	case guidKind:
		var u message.UUID
		for i := range 8 {
			u[i], u[8+i] = byte(v.a>>(56-8*i)), byte(v.b>>(56-8*i))
		}
		return u
	}
	return nil
}

func (n *userName) set(m *message.Message, v message.Value) (fault string) {
	i := userIndex(m, n.name)
	switch {
	case v == nil:
		return "the value cannot become a property"
	case i < 0:
		m.Properties = append(m.Properties, message.Attribute{Name: n.name, Value: v})
		return ""
	}
	p := &m.Properties[i]
	converted, ok := convert(v, p.Value)
	if !ok {
		return fmt.Sprintf("%s does not convert to %s, the type that the property has", describe(v), typeName(p.Value))
	}
	p.Value = converted
	return ""
}

func (n *userName) remove(m *message.Message) {
	if i := userIndex(m, n.name); i >= 0 {
		m.Properties.Delete(m.Properties[i].Name)
	}
}

// describe shows a value in an error.
func describe(v message.Value) string {
	text, ok := fromMessage(v).text()
	if !ok {
		return "a value of type " + typeName(v)
	}
	return typeName(v) + " " + clip(visible(text))
}

// typeName is the AMQP type, or which described type it is.
func typeName(v message.Value) string {
	if d, ok := v.(message.Described); ok {
		return clip(visible(message.FormatValue(d.Descriptor)))
	}
	return message.KindOf(v).String()
}

// convert gives v the type of like. ok is false where that would not be the same value any
// more; only what a floating or decimal type cannot hold exactly is rounded, and a time loses
// what is finer than its type. A null has no type, so that it takes and gives any.
func convert(v, like message.Value) (out message.Value, ok bool) {
	x, model := fromMessage(v), fromMessage(like)
	if x.isNull() || model.isNull() || sameType(v, like) {
		return v, true
	}
	if x.kind == otherKind || model.kind == otherKind && !isDecimal(like) {
		return nil, false
	}
	switch like := like.(type) {
	case message.String, message.Symbol, message.Char:
		return convertToText(x, message.KindOf(like))
	case message.Bool:
		isTrue := strings.EqualFold(x.s, "true")
		return message.Bool(isTrue), x.kind == textKind && (isTrue || strings.EqualFold(x.s, "false"))
	case message.Described:
		return convertToDescribed(x, like, model.kind)
	case message.Timestamp, message.UUID:
		if x.kind == textKind {
			x, _ = convertText(x.s, model.kind)
		}
		return x.message(), x.kind == model.kind
	}
	return convertToNumber(x, like)
}

func sameType(a, b message.Value) bool {
	x, described := a.(message.Described)
	if y, ok := b.(message.Described); ok && described {
		return message.EqualValues(x.Descriptor, y.Descriptor)
	}
	return message.KindOf(a) == message.KindOf(b)
}

func isDecimal(v message.Value) bool {
	k := message.KindOf(v)
	return k == message.KindDecimal32 || k == message.KindDecimal64 || k == message.KindDecimal128
}

// text writes a value as text that reads back as it; ok is false if it has no such form.
func (v value) text() (text string, ok bool) {
	switch v.kind {
	case nullKind, otherKind:
		return "", false
	case textKind:
		return v.s, true
	case durationKind:
		return formatDuration(time.Duration(v.a)), true
	}
	return message.FormatValue(v.message()), true
}

func convertToText(x value, k message.Kind) (out message.Value, ok bool) {
	text, ok := x.text()
	if !ok || k == message.KindSymbol && strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return nil, false
	}
	out, err := message.ParseValue(k, text)
	return out, err == nil
}

func convertToDescribed(x value, like message.Described, k kind) (out message.Value, ok bool) {
	if isSQS(like.Descriptor, sqsNumber) {
		return convertToSQSNumber(x, like.Descriptor)
	}
	if x.kind == textKind && k != textKind {
		x, _ = convertText(x.s, k)
	}
	if x.kind != k {
		return nil, false
	}
	d := message.Described{Descriptor: like.Descriptor}
	switch k {
	case durationKind:
		d.Value = message.Long(x.a / 100)
	case timeKind:
		ticks, ok := x.ticks()
		if !ok {
			return nil, false
		}
		d.Value = message.Long(ticks)
	case textKind: // a URI, or text of SQS
		d.Value = message.String(x.s)
	default:
		return nil, false
	}
	return d, true
}

// convertToSQSNumber keeps the text of a number as it is.
func convertToSQSNumber(x value, descriptor message.Value) (out message.Value, ok bool) {
	number := x
	if x.kind == textKind {
		number = parseNumber(x.s)
	}
	text, ok := x.text()
	return message.Described{Descriptor: descriptor, Value: message.String(text)}, ok && number.kind.numeric()
}

// ticks returns a time in units of 100 ns since the year 1; ok is false beyond the year 9999.
func (v value) ticks() (n int64, ok bool) {
	const first, last = -62135596800, 253402300799
	return v.a*1e7 + v.b/100 + ticksToUnix, v.a >= first && v.a <= last
}

// convertToNumber makes x, a number or text that reads as one, a number of the type of like.
func convertToNumber(x value, like message.Value) (out message.Value, ok bool) {
	if x.kind == textKind {
		x = parseNumber(x.s)
	}
	if !x.kind.numeric() {
		return nil, false
	}
	switch k := message.KindOf(like); k {
	case message.KindDouble:
		return message.Double(x.asDouble()), true
	case message.KindFloat:
		f := x.asDouble()
		return message.Float(f), !math.IsInf(float64(float32(f)), 0) || math.IsInf(f, 0)
	case message.KindDecimal32, message.KindDecimal64, message.KindDecimal128:
		return convertToDecimal(x, k)
	}
	text := strconv.FormatInt(x.a, 10)
	if f := x.asDouble(); x.kind == doubleKind {
		if f != math.Trunc(f) {
			return nil, false
		}
		text = strconv.FormatFloat(f+0, 'f', 0, 64) // + 0 takes the sign from -0
	}
	out, err := message.ParseValue(message.KindOf(like), text)
	return out, err == nil
}

func convertToDecimal(x value, k message.Kind) (out message.Value, ok bool) {
	size := 4 << (k - message.KindDecimal32)
	b := toDecimal(x, size)
	switch {
	case b == nil:
		return nil, false
	case size == 4:
		return message.Decimal32(b), true
	case size == 8:
		return message.Decimal64(b), true
	}
	return message.Decimal128(b), true
}

// parseNumber reads text as a long, else as a double, else as null.
func parseNumber(s string) value {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return longValue(n)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "+-.eE0123456789") != "" { // no hexadecimal, no Inf
		return value{}
	}
	return doubleValue(f)
}

// settable is a system property that an action can change.
type settable struct {
	*systemName
	assign func(*message.Message, value) (fault string) // the value has the kind of the property, or is null
}

func (n *settable) remove(m *message.Message) { n.assign(m, value{}) }

func (n *settable) set(m *message.Message, v message.Value) (fault string) {
	x := fromMessage(v)
	switch {
	case x.kind == n.kind || x.isNull():
	case n.kind == textKind && x.kind == guidKind: // newid()
		x = textValue(message.FormatValue(v))
	case x.kind == textKind && (n.kind == timeKind || n.kind == durationKind):
		var ok bool
		if x, ok = convertText(x.s, n.kind); ok {
			break
		}
		fallthrough
	default:
		return fmt.Sprintf("%s does not fit sys.%s, which is %s", describe(v), n.name, n.kind.noun())
	}
	return n.assign(m, x)
}

// maxIDLength is the service's limit for ids and keys, in characters.
const maxIDLength = 128

// setter returns how an action changes the system property of that name. It is nil for one
// that belongs to the broker.
func setter(name string) func(m *message.Message, v value) (fault string) {
	type m = *message.Message
	switch name {
	case "ContentType":
		return textSetter(0, func(m m) **string { return &m.ContentType })
	case "CorrelationId":
		return idSetter(0, func(m m) *message.Value { return &m.CorrelationID })
	case "ForcePersistence":
		return func(m m, v value) string { m.Durable = v.a != 0; return "" }
	case "Label", "Subject":
		return textSetter(0, func(m m) **string { return &m.Subject })
	case "MessageId":
		return idSetter(maxIDLength, func(m m) *message.Value { return &m.ID })
	case "PartitionKey":
		return annotationSetter(message.PartitionKeyAnnotation)
	case "ReplyTo":
		return textSetter(0, func(m m) **string { return &m.ReplyTo })
	case "ReplyToSessionId":
		return textSetter(maxIDLength, func(m m) **string { return &m.ReplyToSessionID })
	case "ScheduledEnqueueTimeUtc":
		return func(m, value) string { return "" } // see Apply
	case "SessionId":
		return textSetter(maxIDLength, func(m m) **string { return &m.SessionID })
	case "TimeToLive":
		return setTimeToLive
	case "To":
		return textSetter(0, func(m m) **string { return &m.To })
	case "ViaPartitionKey":
		return annotationSetter(message.ViaPartitionKeyAnnotation)
	}
	return nil
}

// tooLong returns what is wrong with a text of more characters than limit; 0 is no limit.
func tooLong(s string, limit int) (fault string) {
	if n := utf8.RuneCountInString(s); limit > 0 && n > limit {
		return fmt.Sprintf("the value has %d characters; the limit is %d", n, limit)
	}
	return ""
}

func textSetter(limit int, field func(*message.Message) **string) func(*message.Message, value) string {
	return func(m *message.Message, v value) (fault string) {
		if fault = tooLong(v.s, limit); fault == "" {
			*field(m) = nil
			if !v.isNull() {
				*field(m) = &v.s
			}
		}
		return fault
	}
}

func idSetter(limit int, field func(*message.Message) *message.Value) func(*message.Message, value) string {
	return func(m *message.Message, v value) (fault string) {
		if fault = tooLong(v.s, limit); fault == "" {
			*field(m) = nil
			if !v.isNull() {
				*field(m) = message.String(v.s)
			}
		}
		return fault
	}
}

func annotationSetter(key message.Symbol) func(*message.Message, value) string {
	return func(m *message.Message, v value) (fault string) {
		if fault = tooLong(v.s, maxIDLength); fault != "" {
			return fault
		}
		var kept message.Map
		for _, p := range m.Annotations {
			if p.Key != key {
				kept = append(kept, p)
			}
		}
		if !v.isNull() {
			kept = append(kept, message.Pair{Key: key, Value: message.String(v.s)})
		}
		m.Annotations = kept
		return ""
	}
}

func setTimeToLive(m *message.Message, v value) (fault string) {
	if v.isNull() {
		m.TTL = nil
		return ""
	}
	ttl := time.Duration(v.a).Truncate(time.Millisecond)
	if ttl <= 0 {
		return "a time to live is at least a millisecond"
	}
	m.TTL = &ttl
	return ""
}
