package amqpd

import (
	"testing"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// txPeer is a peer with a link to the coordinator on handle 9, and ids for its deliveries.
type txPeer struct {
	*peer
	id uint32
}

func (b *bench) coordinated() *txPeer {
	b.Helper()
	p := &txPeer{peer: b.begin()}
	p.send(0, &amqp.Attach{Name: "tx", Handle: 9, Source: &amqp.Source{}, Coordinator: &amqp.Coordinator{}}, nil)
	if a := want[*amqp.Attach](p.peer); a.Coordinator == nil {
		p.Fatalf("the attach is %+v", a)
	}
	return p
}

// first sends a message to the queue orders over link 0 and receives it over link 1.
func (p *txPeer) first() *amqp.Transfer {
	p.Helper()
	p.sender(0, "orders")
	p.transfer(0, p.id, encoded(p, "first"))
	p.id++
	want[*amqp.Disposition](p.peer)
	p.receiver(1, "orders", 1)
	return want[*amqp.Transfer](p.peer)
}

// say sends a message whose body is a described list to the coordinator.
func (p *txPeer) say(descriptor uint64, fields ...message.Value) {
	p.Helper()
	v, err := amqp.AppendValue(nil, message.Described{Descriptor: message.Ulong(descriptor), Value: message.List(fields)})
	if err != nil {
		p.Fatal(err)
	}
	p.transfer(9, p.id, valued(p, nil, v))
	p.id++
}

// control says something, and returns how it was answered.
func (p *txPeer) control(descriptor uint64, fields ...message.Value) amqp.State {
	p.Helper()
	p.say(descriptor, fields...)
	return want[*amqp.Disposition](p.peer).State
}

func (p *txPeer) declare() []byte {
	p.Helper()
	d, ok := p.control(0x31).(*amqp.Declared)
	if !ok || len(d.ID) == 0 {
		p.Fatal("no transaction was declared")
	}
	return d.ID
}

func (p *txPeer) discharge(id []byte, fail bool) amqp.State {
	p.Helper()
	return p.control(0x32, message.Binary(id), message.Bool(fail))
}

// sendIn sends a message on a link as part of a transaction.
func (p *txPeer) sendIn(handle uint32, id []byte, body string) amqp.State {
	p.Helper()
	p.send(0, &amqp.Transfer{
		Handle: handle, DeliveryID: amqp.Some(p.id), DeliveryTag: []byte{byte(p.id)}, State: &amqp.Transactional{ID: id},
	}, encoded(p, body))
	p.id++
	return want[*amqp.Disposition](p.peer).State
}

func (p *txPeer) wantIn(s amqp.State, id []byte) {
	p.Helper()
	tx, ok := s.(*amqp.Transactional)
	if !ok || string(tx.ID) != string(id) || !isAccepted(tx.Outcome) {
		p.Fatalf("it was answered with %+v, want acceptance in the transaction", s)
	}
}

func (b *bench) wantBodies(a broker.Address, want ...string) {
	b.Helper()
	page, err := b.engine.Peek(a, broker.PeekOptions{Max: 100})
	if err != nil {
		b.Fatal(err)
	}
	var got []string
	for _, m := range page {
		got = append(got, string(m.Body.Bytes()))
	}
	if len(got) != len(want) {
		b.Fatalf("%s holds %q, want %q", path(a), got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			b.Fatalf("%s holds %q, want %q", path(a), got, want)
		}
	}
}

// Source: AMQP 1.0 part 4; https://learn.microsoft.com/azure/service-bus-messaging/service-bus-transactions
func TestTransaction(t *testing.T) {
	orders, other := broker.Address{Name: "orders"}, broker.Address{Name: "other"}
	setUp := func(t *testing.T) (*bench, *txPeer, *amqp.Transfer) {
		b := newBench(t, nil)
		b.create("orders", broker.Queue, nil)
		b.create("other", broker.Queue, nil)
		p := b.coordinated()
		received := p.first()
		p.sender(2, "other")
		return b, p, received
	}
	settleIn := func(p *txPeer, received *amqp.Transfer, id []byte) amqp.State {
		p.send(0, &amqp.Disposition{
			Role: amqp.RoleReceiver, First: received.DeliveryID.Value, State: &amqp.Transactional{ID: id, Outcome: &amqp.Accepted{}},
		}, nil)
		return want[*amqp.Disposition](p.peer).State
	}
	t.Run("commit", func(t *testing.T) {
		b, p, received := setUp(t)
		id := p.declare()
		p.wantIn(p.sendIn(2, id, "second"), id)
		p.wantIn(settleIn(p, received, id), id)
		b.wantBodies(orders, "first")
		b.wantBodies(other)
		if s := p.discharge(id, false); !isAccepted(s) {
			t.Fatalf("the commit was answered with %+v", s)
		}
		b.wantBodies(orders)
		b.wantBodies(other, "second")
		r, ok := p.discharge(id, false).(*amqp.Rejected)
		if !ok {
			t.Fatal("a transaction could be discharged twice")
		}
		p.wantError(r.Error, "amqp:transaction:unknown-id")
	})
	t.Run("rollback", func(t *testing.T) {
		b, p, received := setUp(t)
		id := p.declare()
		p.wantIn(p.sendIn(2, id, "second"), id)
		p.wantIn(settleIn(p, received, id), id)
		if s := p.discharge(id, true); !isAccepted(s) {
			t.Fatalf("the rollback was answered with %+v", s)
		}
		b.wantBodies(orders, "first")
		b.wantBodies(other)
	})
	t.Run("the connection ends", func(t *testing.T) {
		b, p, received := setUp(t)
		id := p.declare()
		p.wantIn(p.sendIn(2, id, "second"), id)
		p.wantIn(settleIn(p, received, id), id)
		p.send(0, &amqp.Close{}, nil)
		want[*amqp.Close](p.peer)
		b.wantBodies(orders, "first")
		b.wantBodies(other)
	})
	t.Run("pipelined", func(t *testing.T) {
		// The frame that ends a transaction may follow at once on what belongs to it.
		b, p, _ := setUp(t)
		id := p.declare()
		for range 3 {
			p.send(0, &amqp.Transfer{
				Handle: 2, DeliveryID: amqp.Some(p.id), DeliveryTag: []byte{byte(p.id)}, Settled: amqp.Some(true), State: &amqp.Transactional{ID: id},
			}, encoded(t, "m"))
			p.id++
		}
		if s := p.discharge(id, false); !isAccepted(s) {
			t.Fatalf("the commit was answered with %+v", s)
		}
		b.wantBodies(other, "m", "m", "m")
	})
	t.Run("unknown", func(t *testing.T) {
		_, p, received := setUp(t)
		for _, s := range []amqp.State{p.sendIn(2, []byte("none"), "m"), settleIn(p, received, []byte("none"))} {
			r, ok := s.(*amqp.Rejected)
			if !ok {
				t.Fatalf("it was answered with %+v", s)
			}
			p.wantError(r.Error, "amqp:transaction:unknown-id")
		}
	})
	t.Run("two entities received from", func(t *testing.T) {
		_, p, received := setUp(t)
		p.transfer(2, p.id, encoded(t, "m"))
		p.id++
		want[*amqp.Disposition](p.peer)
		p.receiver(3, "other", 1)
		second := want[*amqp.Transfer](p.peer)
		id := p.declare()
		p.wantIn(settleIn(p, received, id), id)
		r, ok := settleIn(p, second, id).(*amqp.Rejected)
		if !ok {
			t.Fatal("a transaction spans two queues")
		}
		p.wantError(r.Error, "amqp:not-allowed")
	})
	t.Run("by way of another", func(t *testing.T) {
		b, p, _ := setUp(t)
		p.send(0, &amqp.Attach{
			Name: "via", Handle: 4, Source: &amqp.Source{}, Target: &amqp.Target{Address: message.String("orders")},
			Properties: message.Map{{Key: message.Symbol("com.microsoft:transfer-destination-address"), Value: message.String("other")}},
		}, nil)
		want[*amqp.Attach](p.peer)
		id := p.declare()
		p.wantIn(p.sendIn(4, id, "via"), id)
		if s := p.discharge(id, false); !isAccepted(s) {
			t.Fatalf("the commit was answered with %+v", s)
		}
		b.wantBodies(other, "via")
	})
}
