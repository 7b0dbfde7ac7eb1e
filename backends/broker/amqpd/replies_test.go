package amqpd

import (
	"testing"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// Replies for which nobody comes, since the link that asked has gone, are forgotten: a connection
// that lives long has many of them in time.
func TestRepliesOfLinksThatHaveGone(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, nil)
	p := b.begin()
	body, err := amqp.AppendValue(nil, message.Map{})
	if err != nil {
		t.Fatal(err)
	}
	for id := range uint32(2 * maxOrphans) {
		p.sender(0, "orders/$management")
		p.transfer(0, id, valued(t, message.Properties{{Name: "operation", Value: message.String("none")}}, body))
		want[*amqp.Disposition](p)
		p.send(0, &amqp.Detach{Handle: 0, Closed: true}, nil)
		want[*amqp.Detach](p)
	}
}

// What is staged in a transaction makes room for other deliveries.
func TestStagedDeliveriesMakeRoom(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Limits.Unsettled = 1 })
	b.create("orders", broker.Queue, nil)
	p := b.coordinated()
	p.sender(0, "orders")
	for range 2 {
		p.transfer(0, p.id, encoded(t, "a"))
		p.id++
		want[*amqp.Disposition](p.peer)
	}
	tx := p.declare()
	p.receiver(1, "orders", 2)
	want[*amqp.Transfer](p.peer)
	p.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, State: &amqp.Transactional{ID: tx, Outcome: &amqp.Accepted{}}}, nil)
	for range 2 { // the answer and the next delivery, in either order
		f, _ := p.next()
		switch f.(type) {
		case *amqp.Disposition, *amqp.Transfer:
		default:
			t.Fatalf("got %T %+v", f, f)
		}
	}
}

// A transaction is not committed without a part of it that failed and of which nobody was told.
func TestSettledFailureDoomsTransaction(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, nil)
	p := b.coordinated()
	p.sender(0, "orders")
	tx := p.declare()
	p.wantIn(p.sendIn(0, tx, "a"), tx)
	p.send(0, &amqp.Transfer{
		DeliveryID: amqp.Some(p.id), DeliveryTag: []byte("x"), Settled: amqp.Some(true), State: &amqp.Transactional{ID: tx},
	}, []byte("no message"))
	p.id++
	if s, ok := p.discharge(tx, false).(*amqp.Rejected); !ok {
		t.Errorf("the commit was answered with %+v", s)
	}
	b.wantBodies(broker.Address{Name: "orders"})
}
