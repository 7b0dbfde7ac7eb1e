package backendtest

import (
	"bytes"
	"math"
	"strings"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

func carryCases() []testCase {
	return []testCase{
		{"carry/bodies", carryBodies},
		{"carry/properties", carryProperties},
		{"carry/property-order", carryPropertyOrder},
		{"carry/annotations", carryAnnotations},
		{"carry/identifiers", carryIdentifiers},
		{"carry/sections", carrySections},
	}
}

// specimen is a message and the name of what is special in it: the name of a property, or of
// a field of Message, by which a service that cannot carry it has to refuse it. It is empty
// where there is more than one thing to name.
type specimen struct {
	name string
	m    *message.Message
}

// carried sends each specimen alone. What arrives is equal in every section, or the message
// was refused as NotCarried, by name; it is never changed.
func (f *fixture) carried(specimens []specimen) {
	f.Helper()
	id := f.queue()
	for _, sp := range specimens {
		err := f.b.Send(f.ctx, id, []*message.Message{sp.m})
		if backends.IsCode(err, backends.NotCarried) {
			if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(sp.name)) {
				f.Errorf("%s is refused without its name: %v", sp.name, err)
			}
			continue
		}
		if err != nil {
			f.Errorf("send with %s: %v", sp.name, err)
			continue
		}
		got := f.drain(id)
		if len(got) != 1 {
			f.Errorf("sent one message with %s, received %d", sp.name, len(got))
			continue
		}
		if d := diff(sp.m, got[0]); d != nil {
			f.Errorf("with %s these differ: %v", sp.name, d)
		}
	}
	f.holds(id) // nor has anything arrived that was refused
}

func carryBodies(f *fixture) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	const data, value, sequence = message.Data, message.ValueBody, message.Sequence
	var specimens []specimen
	for _, body := range []struct {
		kind     message.BodyKind
		sections [][]byte
	}{
		{data, nil},
		{data, [][]byte{{}}},
		{data, [][]byte{{0}}},
		{data, [][]byte{[]byte("\xff\xfe not UTF-8 \xc3(")}},
		{data, [][]byte{[]byte("\x1b]0;title\a\x1b[2J\r\n\u202e")}},
		{data, [][]byte{all}},
		{data, [][]byte{bytes.Repeat(all, 256)}},
		{data, [][]byte{[]byte("one"), {}, []byte("three")}},
		{data, bytes.SplitAfter(bytes.Repeat([]byte("ab"), 100), []byte("b"))},
		{value, [][]byte{{0x40}}},                       // null
		{value, [][]byte{{0xa1, 2, 'h', 'i'}}},          // a short string
		{value, [][]byte{{0xb1, 0, 0, 0, 2, 'h', 'i'}}}, // the same in its long form
		{value, [][]byte{{0xc0, 3, 1, 0x54, 7}}},        // a list
		{sequence, [][]byte{{0x45}}},
		{sequence, [][]byte{{0x45}, {0xc0, 3, 1, 0x54, 7}, {0x45}}},
	} {
		specimens = append(specimens, specimen{"body", &message.Message{Body: message.Body{Kind: body.kind, Sections: body.sections}}})
	}
	f.carried(specimens)
}

// values returns at least one value of every kind, with the ends of its range.
func values() []message.Value {
	type m = message.Pair
	uuid := message.UUID{0: 0x12, 15: 0xff}
	return []message.Value{
		message.Null{},
		message.Bool(true), message.Bool(false),
		message.Ubyte(0), message.Ubyte(math.MaxUint8), message.Ushort(math.MaxUint16),
		message.Uint(0), message.Uint(7), message.Uint(math.MaxUint32), message.Ulong(0), message.Ulong(math.MaxUint64),
		message.Byte(math.MinInt8), message.Short(math.MinInt16),
		message.Int(-1), message.Int(math.MinInt32), message.Long(-1), message.Long(math.MinInt64), message.Long(math.MaxInt64),
		message.Float(1.5), message.Float(float32(math.Inf(-1))),
		message.Double(0.1), message.Double(math.Copysign(0, -1)), message.Double(math.NaN()),
		message.Decimal32{1, 2, 3, 4},
		message.Decimal64{1, 2, 3},
		message.Decimal128{15: 9},
		message.Char('é'), message.Char('\U0001f4a3'),
		message.Timestamp(0), message.Timestamp(-1), message.Timestamp(1767366245123),
		uuid,
		message.Binary{},
		message.Binary{0, 0xff},
		message.String(""), message.String("naïve \x00 \u202e"), message.String("\xff not UTF-8"),
		message.String(strings.Repeat("long ", 1000)),
		message.Symbol(""), message.Symbol("x-opt-thing"),
		message.List{},
		message.List{message.Int(1), message.Null{}, message.List{message.String("deep")}},
		message.Map{},
		message.Map{m{Key: message.Symbol("z"), Value: message.Int(1)}, m{Key: message.Ulong(2), Value: message.Null{}}},
		message.Array{Elem: message.KindInt},
		message.Array{Elem: message.KindString, Items: []message.Value{message.String("a"), message.String("")}},
		message.Array{Elem: message.KindInt, Descriptor: message.Ulong(5), Items: []message.Value{message.Int(1)}},
		message.Described{Descriptor: message.Symbol("com.microsoft:timespan"), Value: message.Long(10_000_000)},
		message.Described{Descriptor: message.Ulong(0x77), Value: message.List{message.Int(1)}},
	}
}

func carryProperties(f *fixture) {
	var specimens []specimen
	for _, v := range values() {
		name := "p-" + message.KindOf(v).String()
		specimens = append(specimens, specimen{name, &message.Message{
			Body:       message.DataBody([]byte("a")),
			Properties: message.Properties{{Name: name, Value: v}},
		}})
	}
	f.carried(specimens)
}

func carryPropertyOrder(f *fixture) {
	m := text("a")
	for _, name := range []string{"z", "a", "A", "m", "with space", "ключ", "0"} {
		m.Properties.Set(name, message.String(name))
	}
	f.carried([]specimen{{"", m}})
}

func carryAnnotations(f *fixture) {
	specimens := []specimen{
		{"annotations", &message.Message{Annotations: message.Map{
			{Key: message.PartitionKeyAnnotation, Value: message.String("customer-7")},
			{Key: message.ViaPartitionKeyAnnotation, Value: message.String("customer-8")},
		}}},
		{"deliveryAnnotations", &message.Message{DeliveryAnnotations: message.Map{
			{Key: message.Symbol("x-hop"), Value: message.Int(1)},
		}}},
	}
	for _, v := range values() {
		kind := message.KindOf(v).String()
		specimens = append(specimens, specimen{"x-" + kind, &message.Message{
			Annotations: message.Map{{Key: message.Symbol("x-" + kind), Value: v}},
		}}, specimen{"footer", &message.Message{
			Footer: message.Map{{Key: message.Symbol("x-" + kind), Value: v}},
		}})
	}
	f.carried(specimens)
}

// carryIdentifiers: the types that the standard allows in a message-id and a correlation-id.
func carryIdentifiers(f *fixture) {
	var specimens []specimen
	for _, v := range []message.Value{
		message.String("order-1"), message.String(""), message.Ulong(0), message.Ulong(math.MaxUint64),
		message.UUID{1, 2, 3},
		message.UUID{},
		message.Binary{0, 1, 0xff},
		message.Binary{},
	} {
		specimens = append(specimens,
			specimen{"ID", &message.Message{ID: v, Body: message.DataBody([]byte("a"))}},
			specimen{"CorrelationID", &message.Message{CorrelationID: v, Body: message.DataBody([]byte("a"))}})
	}
	f.carried(specimens)
}

// carrySections sets each field alone, with what is there but empty told from what is absent.
func carrySections(f *fixture) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.UTC)
	day := 24 * time.Hour
	specimens := []specimen{
		{"", &message.Message{}},
		{"Durable", &message.Message{Durable: true}},
		{"Priority", &message.Message{Priority: new(uint8(0))}},
		{"Priority", &message.Message{Priority: new(uint8(9))}},
		{"TTL", &message.Message{TTL: &day}},
		{"FirstAcquirer", &message.Message{FirstAcquirer: true}},
		{"UserID", &message.Message{UserID: []byte{}}},
		{"UserID", &message.Message{UserID: []byte{0xff, 0}}},
		{"AbsoluteExpiry", &message.Message{AbsoluteExpiry: new(at.Add(1000 * day))}},
		{"Created", &message.Message{Created: &at}},
		{"GroupSequence", &message.Message{GroupSequence: new(uint32(0))}},
		{"GroupSequence", &message.Message{GroupSequence: new(uint32(math.MaxUint32))}},
	}
	for _, s := range []string{"", "some text, é"} {
		specimens = append(specimens,
			specimen{"To", &message.Message{To: &s}},
			specimen{"Subject", &message.Message{Subject: &s}},
			specimen{"ReplyTo", &message.Message{ReplyTo: &s}},
			specimen{"ContentType", &message.Message{ContentType: &s}},
			specimen{"ContentEncoding", &message.Message{ContentEncoding: &s}},
			specimen{"SessionID", &message.Message{SessionID: &s}},
			specimen{"ReplyToSessionID", &message.Message{ReplyToSessionID: &s}})
	}
	specimens = append(specimens, specimen{"", richMessage()})
	f.carried(specimens)
}

// richMessage has most of what services carry, as a sender in the field fills it.
func richMessage() *message.Message {
	return &message.Message{
		ID:            message.String("3f0c"),
		CorrelationID: message.String("checkout-17"),
		Subject:       new("OrderPlaced"),
		ContentType:   new("application/json"),
		ReplyTo:       new("replies"),
		TTL:           new(72 * time.Hour),
		Properties: message.Properties{
			{Name: "tenant", Value: message.String("eu-1")},
			{Name: "attempt", Value: message.Int(3)},
			{Name: "at", Value: message.Timestamp(1767366245123)},
		},
		Body: message.DataBody([]byte("{\"order\":1,\xff\x00}")),
	}
}
