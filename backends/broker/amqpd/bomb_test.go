package amqpd

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// bomb is what a hostile peer sends, and how it is answered.
type bomb struct {
	name string
	send func(p *peer)
	// condition of the detach, end or close that answers, or of the rejection; "": the
	// connection is cut, or the bomb does nothing.
	condition message.Symbol
}

// frameOf is a frame with any header.
func frameOf(size uint32, offset, kind byte, channel uint16, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, size)
	b = append(b, offset, kind, byte(channel>>8), byte(channel))
	return append(b, body...)
}

// whole is a frame around a body.
func whole(body []byte) []byte { return frameOf(uint32(len(body)+8), 2, 0, 0, body) }

// deep is a value nested in descriptors.
func deep(n int) []byte {
	return append(bytes.Repeat([]byte{0x00, 0x44}, n), 0x40)
}

// messageWith is a message whose application properties hold a value.
func messageWith(value []byte) []byte {
	name := append([]byte{0xa1, 1}, 'n')
	content := append(binary.BigEndian.AppendUint32(nil, 2), append(name, value...)...)
	b := []byte{0x00, 0x53, 0x74, 0xd1}
	b = binary.BigEndian.AppendUint32(b, uint32(len(content)))
	return append(b, content...)
}

// bombs are the table of the limits: each on a connection with a session and a link that
// sends.
func bombs() []bomb {
	body := func(payload []byte) func(*peer) {
		return func(p *peer) {
			const most = 60_000
			for id, first := uint32(0), true; len(payload) > 0; first = false {
				part := payload[:min(most, len(payload))]
				payload = payload[len(part):]
				tr := &amqp.Transfer{More: len(payload) > 0}
				if first {
					tr.DeliveryID, tr.DeliveryTag = amqp.Some(id), []byte("t")
				}
				p.send(0, tr, part)
			}
		}
	}
	raw := func(b []byte) func(*peer) { return func(p *peer) { p.write(b) } }
	transferOf := func(extra []byte) []byte { // of a link's fields that no encoder would write
		return whole(append([]byte{0x00, 0x53, 0x14}, extra...))
	}
	return []bomb{
		{"a frame of 4 GiB", raw(frameOf(1<<32-1, 2, 0, 0, nil)), "amqp:connection:framing-error"},
		{"a frame of 65,537 bytes", raw(frameOf(65_537, 2, 0, 0, nil)), "amqp:connection:framing-error"},
		{"a frame of 7 bytes", raw(frameOf(7, 2, 0, 0, nil)), "amqp:connection:framing-error"},
		{"a body behind the frame", raw(frameOf(16, 255, 0, 0, make([]byte, 8))), "amqp:connection:framing-error"},
		{"a body inside the header", raw(frameOf(16, 1, 0, 0, make([]byte, 8))), "amqp:connection:framing-error"},
		{"a frame of an unknown type", raw(frameOf(16, 2, 7, 0, make([]byte, 8))), "amqp:connection:framing-error"},
		{"a SASL frame", raw(frameOf(8, 2, 1, 0, nil)), "amqp:connection:framing-error"},
		{"no performative", raw(whole([]byte{0x00, 0x53, 0x99, 0x45})), "amqp:decode-error"},
		{"a performative nested 33 deep", raw(whole(deep(33))), "amqp:decode-error"},
		{"a list of 4 billion", raw(transferOf([]byte{0xd0, 0, 0, 0, 8, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})), "amqp:decode-error"},
		{"a list longer than its frame", raw(transferOf([]byte{0xd0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1})), "amqp:decode-error"},
		{"a transfer without a handle", raw(transferOf([]byte{0x45})), "amqp:decode-error"},
		{"a channel above the maximum", func(p *peer) { p.send(4999, &amqp.Begin{}, nil) }, "amqp:connection:framing-error"},
		{"a channel without a session", func(p *peer) { p.send(7, &amqp.Flow{}, nil) }, "amqp:illegal-state"},
		{"a handle above the maximum", func(p *peer) {
			p.send(0, &amqp.Attach{Name: "x", Handle: handleMax + 1, Target: &amqp.Target{Address: message.String("orders")}}, nil)
		}, "amqp:connection:framing-error"},
		{"a handle in use", func(p *peer) { p.send(0, &amqp.Attach{Name: "x"}, nil) }, "amqp:session:handle-in-use"},
		{"a handle that is not attached", func(p *peer) { p.send(0, &amqp.Transfer{Handle: 9}, nil) }, "amqp:session:unattached-handle"},
		{"a disposition of 4 billion", func(p *peer) {
			p.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, Last: amqp.Some[uint32](1<<32 - 1), Settled: true}, nil)
		}, "amqp:invalid-field"},
		{"a message nested 33 deep", body(messageWith(deep(33))), "amqp:decode-error"},
		{"a message nested a million deep", body(messageWith(deep(1_000_000))), "amqp:decode-error"},
		{"a message with a list of 4 billion", body(messageWith([]byte{0xd0, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff})), "amqp:decode-error"},
		{"a message with 65,537 nulls in an array", body(messageWith([]byte{0xf0, 0, 0, 0, 5, 0, 1, 0, 1, 0x40})), "amqp:decode-error"},
		{"a message of 10,001 sections", body(bytes.Repeat([]byte{0x00, 0x53, 0x75, 0xa0, 0x00}, 10_001)), "amqp:decode-error"},
		{"a delivery without a tag", func(p *peer) { p.send(0, &amqp.Transfer{DeliveryID: amqp.Some[uint32](0)}, nil) }, "amqp:invalid-field"},
	}
}

// Test 18: whatever a peer sends is answered with the right error, costs next to nothing, and
// no other peer notices.
func TestBombs(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, nil)
	healthy := b.begin()
	healthy.sender(0, "orders")
	for n, bomb := range bombs() {
		t.Run(bomb.name, func(t *testing.T) {
			p := b.begin()
			p.TB = t
			p.sender(0, "orders")
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			bomb.send(p)
			got := p.conditionOfEnd()
			runtime.ReadMemStats(&after)
			if got != bomb.condition {
				t.Errorf("it was answered with %q, want %q", got, bomb.condition)
			}
			// A delivery of two megabytes arrives before it is decoded, and the test's peer is here, too.
			if made := after.TotalAlloc - before.TotalAlloc; made > 16<<20 {
				t.Errorf("it took %d bytes", made)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 1<<20 {
				t.Errorf("it holds %d bytes", kept)
			}
			healthy.transfer(0, uint32(n), encoded(t, "m"))
			if d := want[*amqp.Disposition](healthy); !isAccepted(d.State) {
				t.Errorf("another peer got %+v", d)
			}
		})
	}
}

func isAccepted(s amqp.State) bool {
	_, ok := s.(*amqp.Accepted)
	return ok
}

// conditionOfEnd returns the condition of the first frame that ends something or rejects it.
func (p *peer) conditionOfEnd() message.Symbol {
	p.Helper()
	of := func(e *amqp.Error) message.Symbol {
		if e == nil {
			return "no error"
		}
		return e.Condition
	}
	for {
		switch f, _ := p.next(); f := f.(type) {
		case nil:
			return ""
		case *amqp.Close:
			return of(f.Error)
		case *amqp.End:
			return of(f.Error)
		case *amqp.Detach:
			return of(f.Error)
		case *amqp.Disposition:
			if r, ok := f.State.(*amqp.Rejected); ok {
				return of(r.Error)
			}
			return "accepted"
		}
	}
}

// Deliveries that the server does not know are answered together.
func TestUnknownDeliveries(t *testing.T) {
	b := newBench(t, nil)
	p := b.begin()
	p.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: 5, Last: amqp.Some[uint32](100_004), State: &amqp.Accepted{}}, nil)
	d := want[*amqp.Disposition](p)
	if r, ok := d.State.(*amqp.Rejected); !ok || d.First != 5 || d.Last.Value != 100_004 || !d.Settled {
		t.Errorf("the answer is %+v", d)
	} else {
		p.wantError(r.Error, "com.microsoft:message-lock-lost")
	}
}

// Who asks and takes no answers is hung up on before they fill the memory.
func TestRepliesThatNobodyTakes(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Limits.Outgoing = 100_000 })
	b.create("orders", broker.Queue, nil)
	p := b.begin()
	p.sender(0, "orders")
	p.transfer(0, 0, encoded(t, string(make([]byte, 50_000))))
	want[*amqp.Disposition](p)
	p.receiver(1, "orders/$management", 0)
	p.sender(2, "orders/$management")
	value, err := amqp.AppendValue(nil, message.Map{{Key: message.String("message-count"), Value: message.Int(1)}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := amqp.AppendMessage(nil, &message.Message{
		Properties: message.Properties{{Name: "operation", Value: message.String("com.microsoft:peek-message")}},
		Body:       message.Body{Kind: message.ValueBody, Sections: [][]byte{value}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for id := range uint32(3) {
		p.transfer(2, 1+id, request)
	}
	for {
		switch f, _ := p.next(); f := f.(type) {
		case *amqp.Close:
			p.wantError(f.Error, "amqp:resource-limit-exceeded")
			return
		case nil:
			t.Fatal("the connection ended without a word")
		}
	}
}

// Credit without end costs nothing, and more credit later is counted as the standard says.
func TestCreditWithoutEnd(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, nil)
	p := b.begin()
	p.sender(0, "orders")
	p.receiver(1, "orders", 1<<32-1)
	for id := range uint32(3) {
		p.transfer(0, id, encoded(t, "m"))
		var got, answered bool
		for !got || !answered {
			switch f, _ := p.next(); f.(type) {
			case *amqp.Transfer:
				got = true
			case *amqp.Disposition:
				answered = true
			case nil:
				t.Fatal("the connection ended")
			}
		}
	}
	// A flow that crossed the last delivery counts from before it.
	p.credit(1, 2, 1, false)
	p.transfer(0, 3, encoded(t, "m"))
	want[*amqp.Disposition](p)
	p.credit(1, 3, 1, true)
	want[*amqp.Transfer](p)
}

// The limits of a server, one by one.
func TestLimits(t *testing.T) {
	t.Run("connections", func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Limits.Connections = 1 })
		b.open()
		p := b.dial(amqp.ProtocolHeader)
		p.header(amqp.ProtocolHeader)
		want[*amqp.Open](p)
		p.wantError(want[*amqp.Close](p).Error, "amqp:resource-limit-exceeded")
	})
	t.Run("links", func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Limits.Links = 1 })
		b.create("orders", broker.Queue, nil)
		p := b.begin()
		p.sender(0, "orders")
		p.sender(1, "orders")
		p.wantError(want[*amqp.Detach](p).Error, "amqp:resource-limit-exceeded")
	})
	t.Run("unsettled", func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Limits.Unsettled = 2 })
		b.create("orders", broker.Queue, nil)
		p := b.begin()
		p.sender(0, "orders")
		for id := range uint32(3) {
			p.transfer(0, id, encoded(t, "m"))
			want[*amqp.Disposition](p)
		}
		p.receiver(1, "orders", 10)
		first := want[*amqp.Transfer](p)
		want[*amqp.Transfer](p)
		p.send(0, &amqp.Flow{IncomingWindow: 100, Handle: amqp.Some[uint32](1), DeliveryCount: amqp.Some[uint32](2), LinkCredit: amqp.Some[uint32](8), Echo: true}, nil)
		if f, _ := p.next(); f == nil {
			t.Fatal("the connection ended")
		} else if _, ok := f.(*amqp.Flow); !ok {
			t.Errorf("a third delivery came: %+v", f)
		}
		p.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: first.DeliveryID.Value, Settled: true, State: &amqp.Accepted{}}, nil)
		want[*amqp.Transfer](p)
	})
	t.Run("a message", func(t *testing.T) {
		b := newBench(t, nil)
		b.create("orders", broker.Queue, func(p *broker.Properties) { p.MaxMessageBytes = 2048 })
		p := b.begin()
		p.sender(0, "orders")
		p.transfer(0, 0, encoded(t, string(make([]byte, 4096))))
		d, ok := want[*amqp.Disposition](p).State.(*amqp.Rejected)
		if !ok {
			t.Fatal("a message that is too large was accepted")
		}
		p.wantError(d.Error, "amqp:link:message-size-exceeded")
		p.transfer(0, 1, encoded(t, "small"))
		if d := want[*amqp.Disposition](p); !isAccepted(d.State) {
			t.Errorf("the next was answered with %+v", d)
		}
	})
	t.Run("more than a connection may hold", func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Limits.Held = 1000 })
		b.create("orders", broker.Queue, nil)
		p := b.begin()
		p.sender(0, "orders")
		payload := encoded(t, string(make([]byte, 100_000)))
		p.send(0, &amqp.Transfer{DeliveryID: amqp.Some[uint32](0), DeliveryTag: []byte("a"), More: true}, payload[:50_000])
		p.send(0, &amqp.Transfer{}, payload[50_000:])
		if d := want[*amqp.Disposition](p); !isAccepted(d.State) {
			t.Errorf("it was answered with %+v", d)
		}
	})
	t.Run("credit of a sender", func(t *testing.T) {
		b := newBench(t, nil)
		p := b.begin()
		p.send(0, &amqp.Attach{Name: "c", Coordinator: &amqp.Coordinator{}, Source: &amqp.Source{}}, nil)
		want[*amqp.Attach](p)
		for id := range uint32(intakeCredit + 1) {
			// Parts of one delivery after another, none of which is ever whole, would be one credit each.
			p.send(0, &amqp.Transfer{DeliveryID: amqp.Some(id), DeliveryTag: []byte("a"), Aborted: true}, nil)
		}
		p.send(0, &amqp.Flow{IncomingWindow: 1, Echo: true}, nil)
		if f, _ := p.next(); f == nil {
			t.Error("aborted deliveries used up the credit for good")
		}
	})
}

// A peer that never reads holds up nobody but itself.
func TestPeerThatNeverReads(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Limits.WriteTimeout = 300 * time.Millisecond; o.Limits.Outgoing = 1 << 20 })
	b.create("orders", broker.Queue, nil)
	b.create("other", broker.Queue, nil)
	sender := b.begin()
	sender.sender(0, "orders")
	sender.sender(1, "other")
	payload := encoded(t, string(make([]byte, 50_000)))
	for id := range uint32(200) {
		sender.transfer(0, id, payload)
		want[*amqp.Disposition](sender)
	}
	deaf := b.begin()
	deaf.receiver(0, "orders", 1000)
	for id := uint32(200); id < 300; id++ {
		sender.transfer(1, id, payload)
		if d := want[*amqp.Disposition](sender); !isAccepted(d.State) {
			t.Fatalf("another queue answered with %+v", d)
		}
	}
	// Once the deaf peer is cut off, its messages are there for others when their locks expire.
	info, err := b.engine.Entity("orders")
	if err != nil || info.Active != 200 {
		t.Errorf("%d messages are there (%v), want 200", info.Active, err)
	}
}
