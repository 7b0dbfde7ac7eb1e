package amqp

import (
	"bytes"
	"reflect"
	"testing"

	"dlq/backends/message"
)

// performatives are one of each kind with every field, and one with as few as may be.
func performatives() []Performative {
	state := &Transactional{ID: []byte{1, 2}, Outcome: &Modified{
		DeliveryFailed: Some(true), UndeliverableHere: Some(false), Annotations: message.Map{{Key: message.Symbol("a"), Value: message.Int(1)}},
	}}
	failure := &Error{Condition: "amqp:not-found", Description: "no such queue", Info: message.Map{{Key: message.Symbol("n"), Value: message.Long(300)}}}
	source := &Source{
		Address: message.String("orders"), Durable: message.Uint(1), ExpiryPolicy: message.Symbol("never"), Timeout: message.Uint(5),
		Dynamic: message.Bool(true), DynamicProperties: message.Map{{Key: message.Symbol("a"), Value: message.String("b")}},
		DistributionMode: message.Symbol("move"), Filter: message.Map{{Key: message.Symbol("f"), Value: message.Described{Descriptor: message.Ulong(1), Value: message.Null{}}}},
		DefaultOutcome: message.Described{Descriptor: message.Ulong(0x26), Value: message.List(nil)}, Outcomes: SymbolArray("amqp:accepted:list"),
		Capabilities: message.Symbol("queue"),
	}
	return []Performative{
		&Open{
			ContainerID: "c", Hostname: "h", MaxFrameSize: Some[uint32](65536), ChannelMax: Some[uint16](4998), IdleTimeout: Some[uint32](30000),
			OutgoingLocales: message.Symbol("en-US"), IncomingLocales: SymbolArray("en-US", "de-DE"), OfferedCapabilities: message.Symbol("o"),
			DesiredCapabilities: message.Symbol("d"), Properties: message.Map{{Key: message.Symbol("product"), Value: message.String("dlq")}},
		},
		&Open{},
		&Begin{RemoteChannel: Some[uint16](3), NextOutgoingID: 1, IncomingWindow: 5000, OutgoingWindow: 1 << 31, HandleMax: Some[uint32](255)},
		&Begin{},
		&Attach{
			Name: "l", Handle: 7, Role: RoleReceiver, SenderMode: Some[uint8](1), ReceiverMode: Some[uint8](0), Source: source,
			Target:    &Target{Address: message.String("t"), Capabilities: message.Symbol("topic")},
			Unsettled: message.Map{{Key: message.Binary("t"), Value: message.Null{}}}, IncompleteUnsettled: true,
			InitialDeliveryCount: Some[uint32](9), MaxMessageSize: Some[uint64](1 << 40), Properties: message.Map{{Key: message.Symbol("p"), Value: message.Uint(1)}},
		},
		&Attach{Coordinator: &Coordinator{Capabilities: SymbolArray("amqp:local-transactions")}},
		&Attach{},
		&Flow{
			NextIncomingID: Some[uint32](1), IncomingWindow: 2, NextOutgoingID: 3, OutgoingWindow: 4, Handle: Some[uint32](5), DeliveryCount: Some[uint32](6),
			LinkCredit: Some[uint32](1<<32 - 1), Available: Some[uint32](8), Drain: true, Echo: true,
		},
		&Flow{},
		&Transfer{
			Handle: 1, DeliveryID: Some[uint32](300), DeliveryTag: bytes.Repeat([]byte{1}, 300), MessageFormat: Some[uint32](0x80013700), Settled: Some(false),
			More: true, ReceiverMode: Some[uint8](1), State: state, Resume: true, Aborted: true, Batchable: true,
		},
		&Transfer{},
		&Disposition{Role: RoleReceiver, First: 1, Last: Some[uint32](2), Settled: true, State: &Rejected{Error: failure}, Batchable: true},
		&Disposition{State: &Received{SectionNumber: 1, SectionOffset: 1 << 33}},
		&Disposition{State: &Declared{ID: []byte{9}}},
		&Disposition{State: &Accepted{}},
		&Disposition{State: &Released{}},
		&Disposition{},
		&Detach{Handle: 1, Closed: true, Error: failure},
		&Detach{},
		&End{Error: failure},
		&End{},
		&Close{Error: failure},
		&Close{},
		&SASLMechanisms{Mechanisms: []message.Symbol{"PLAIN", "ANONYMOUS"}},
		&SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("\x00u\x00p"), Hostname: "h"},
		&SASLInit{Mechanism: "ANONYMOUS"},
		&SASLOutcome{Code: 1},
	}
}

func TestPerformativesRoundTrip(t *testing.T) {
	for _, p := range performatives() {
		b, err := AppendFrame(nil, FrameAMQP, 513, p, []byte("payload"))
		if err != nil {
			t.Fatalf("%T: %v", p, err)
		}
		h, err := ParseFrameHeader(b, uint32(len(b)))
		if err != nil || int(h.Size) != len(b) || h.Channel != 513 || h.Offset != FrameHeaderSize {
			t.Fatalf("%T: header %+v, %v", p, h, err)
		}
		got, payload, err := DecodePerformative(b[h.Offset:])
		if err != nil || string(payload) != "payload" {
			t.Fatalf("%T: payload %q, %v", p, payload, err)
		}
		if !reflect.DeepEqual(got, p) {
			t.Errorf("%T came back as %+v, want %+v", p, got, p)
		}
	}
}

// Some peers look for every field of these, also those that are null at the end.
func TestFieldsAtTheEndAreWritten(t *testing.T) {
	for _, test := range []struct {
		p    Performative
		want byte
	}{{&Open{}, 10}, {&Begin{}, 8}, {&Attach{}, 14}} {
		b, err := AppendFrame(nil, FrameAMQP, 0, test.p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if fields := b[FrameHeaderSize+5]; fields != test.want { // behind the descriptor, the constructor and the size
			t.Errorf("%T has %d fields, want %d", test.p, fields, test.want)
		}
	}
}

// Descriptors may be symbols, and fields of later versions are passed over.
func TestOtherEncodings(t *testing.T) {
	symbolic := append([]byte{0x00, 0xa3, 14}, "amqp:end:list\x00"[:13]...)
	symbolic[2] = 13
	p, _, err := DecodePerformative(append(symbolic, 0x45))
	if _, ok := p.(*End); !ok || err != nil {
		t.Errorf("a symbolic descriptor gave %T, %v", p, err)
	}
	longer := []byte{0x00, 0x53, 0x17, 0xc0, 4, 3, 0x40, 0x41, 0x43}
	if p, rest, err := DecodePerformative(longer); err != nil || len(rest) != 0 {
		t.Errorf("a list with more fields gave %T, %d bytes left, %v", p, len(rest), err)
	}
}

func TestFrameHeaderIsRefused(t *testing.T) {
	for _, b := range [][]byte{
		{0, 0, 0, 7, 2, 0, 0, 0}, {0, 0, 0, 8, 1, 0, 0, 0}, {0, 0, 0, 8, 3, 0, 0, 0}, {0, 0, 0, 8, 2, 2, 0, 0}, {0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0},
	} {
		if h, err := ParseFrameHeader(b, 1000); err == nil {
			t.Errorf("% x was taken as %+v", b, h)
		}
	}
}

// What was decoded is encoded to something that is decoded alike.
func FuzzPerformative(f *testing.F) {
	for _, p := range performatives() {
		b, err := AppendFrame(nil, FrameAMQP, 0, p, []byte("x"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < FrameHeaderSize {
			return
		}
		h, err := ParseFrameHeader(b, 1<<20)
		if err != nil || int(h.Size) > len(b) {
			return
		}
		p, payload, err := DecodePerformative(b[h.Offset:h.Size])
		if err != nil {
			return
		}
		again, err := AppendFrame(nil, h.Type, h.Channel, p, payload)
		if err != nil {
			t.Fatalf("%T was decoded and cannot be encoded: %v", p, err)
		}
		q, rest, err := DecodePerformative(again[FrameHeaderSize:])
		if err != nil || !bytes.Equal(rest, payload) || spelling(p) != spelling(q) {
			t.Fatalf("%+v came back as %+v (%v)", p, q, err)
		}
	})
}

// spelling is how a performative is written, which is equal for what means the same: a NaN
// equals no other, and an empty binary may be absent.
func spelling(p Performative) string {
	b, err := AppendFrame(nil, FrameAMQP, 0, p, nil)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func FuzzControl(f *testing.F) {
	f.Add([]byte{0x00, 0x53, 0x31, 0x45})
	f.Add([]byte{0x00, 0x53, 0x32, 0xc0, 5, 2, 0xa0, 1, 7, 0x41})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeControl(b)
		if err == nil && c == nil {
			t.Error("neither a control message nor an error")
		}
	})
}
