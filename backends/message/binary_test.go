package message

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"
)

// everyValue holds one value of each kind, and the odd ones of some.
func everyValue() []Value {
	return []Value{
		nil,
		Null{},
		Bool(true), Bool(false), Ubyte(255), Ushort(65535), Uint(math.MaxUint32),
		Ulong(math.MaxUint64), Byte(-128), Short(-32768), Int(math.MinInt32), Long(math.MinInt64),
		Float(float32(math.NaN())), Double(math.Inf(-1)), Double(math.Copysign(0, -1)),
		Decimal32{1, 2, 3, 4},
		Decimal64{7: 1},
		Decimal128{15: 9},
		Char('é'), Timestamp(-1),
		UUID{1, 2, 3},
		Binary{},
		Binary{0, 255},
		String(""), String("\xff\x00"), Symbol("x-opt"),
		List{},
		List{Int(1), List{String("a")}},
		Map{{Symbol("k"), Long(1)}, {Int(2), Null{}}},
		Array{Elem: KindInt},
		Array{Elem: KindString, Descriptor: Symbol("d"), Items: []Value{String("a")}},
		Described{Symbol("com.microsoft:timespan"), Long(5)},
	}
}

func fullMessage() *Message {
	at := time.UnixMilli(1700000000123).UTC()
	m := &Message{
		Durable: true, Priority: new(uint8(0)), TTL: new(90 * time.Second), FirstAcquirer: true,
		DeliveryAnnotations: Map{{Symbol("d"), Int(1)}}, Annotations: Map{{PartitionKeyAnnotation, String("p")}},
		ID: Ulong(7), UserID: []byte{}, To: new(""), Subject: new("s"), ReplyTo: new("r"),
		CorrelationID: UUID{9}, ContentType: new("application/json"), ContentEncoding: new("gzip"),
		AbsoluteExpiry: &at, Created: &at, SessionID: new("session"), GroupSequence: new(uint32(math.MaxUint32)),
		ReplyToSessionID: new("rs"), Footer: Map{{Symbol("f"), Bool(true)}}, ScheduledEnqueueTime: &at,
		System: []Attribute{{"SentTimestamp", Long(1)}},
		Body:   Body{Kind: Sequence, Sections: [][]byte{{0xc0, 1, 0}, {}}},
		Broker: Broker{
			SequenceNumber: 1 << 50, EnqueuedSequenceNumber: 3, EnqueuedTime: at.Add(5), ExpiresAt: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
			DeliveryCount: 10, State: Deferred, LockToken: UUID{1}, LockedUntil: at, DeadLetterSource: "a", BodyOmitted: true, BodySize: 99,
		},
	}
	for i, v := range everyValue() {
		m.Properties.Set(string(rune('a'+i)), v)
	}
	return m
}

func TestBinaryLosesNothing(t *testing.T) {
	for name, m := range map[string]*Message{"full": fullMessage(), "zero": {}} {
		got, err := Decode(Append(nil, m))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := Diff(m, got); len(d) > 0 {
			t.Errorf("%s: changed: %v", name, d)
		}
		if got.Broker != m.Broker {
			t.Errorf("%s: broker = %+v, want %+v", name, got.Broker, m.Broker)
		}
	}
}

func TestBinaryTellsAbsentFromEmpty(t *testing.T) {
	m := &Message{UserID: []byte{}, Subject: new(""), Body: DataBody(nil)}
	got, err := Decode(Append(nil, m))
	if err != nil {
		t.Fatal(err)
	}
	if got.UserID == nil || got.Subject == nil || got.To != nil || len(got.Body.Sections) != 1 {
		t.Errorf("got UserID %v, Subject %v, To %v, %d sections", got.UserID, got.Subject, got.To, len(got.Body.Sections))
	}
}

func TestBinaryRefusesDamage(t *testing.T) {
	b := Append(nil, fullMessage())
	for n := range b {
		if _, err := Decode(b[:n]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d of %d bytes: err = %v", n, len(b), err)
		}
	}
	deep := bytes.Repeat([]byte{byte(KindList), 1}, maxDepth+2)
	d := &decoder{b: deep}
	if d.value(0); !errors.Is(d.err, ErrCorrupt) {
		t.Errorf("deep nesting: err = %v", d.err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Append(nil, fullMessage()))
	f.Add(Append(nil, &Message{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("err = %v", err)
			}
			return
		}
		again, err := Decode(Append(nil, m))
		if err != nil {
			t.Fatalf("what was decoded does not encode: %v", err)
		}
		if d := Diff(m, again); len(d) > 0 {
			t.Fatalf("changed: %v", d)
		}
	})
}

func BenchmarkAppendHead(b *testing.B) {
	m := fullMessage()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendHead(buf[:0], m)
	}
}
