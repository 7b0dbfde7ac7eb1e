package amqpd

import (
	"testing"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// A sender counts its deliveries from where it says, and credit is measured by that count
// (part 2, 2.6.7).
func TestCreditFromInitialDeliveryCount(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, nil)
	p := b.begin()
	const first = 1<<32 - 3
	p.send(0, &amqp.Attach{
		Name: "s", Role: amqp.RoleSender, Source: &amqp.Source{}, Target: &amqp.Target{Address: message.String("orders")},
		InitialDeliveryCount: amqp.Some[uint32](first),
	}, nil)
	want[*amqp.Attach](p)
	f, _ := p.next()
	flow, ok := f.(*amqp.Flow)
	if !ok || flow.DeliveryCount != amqp.Some[uint32](first) {
		t.Fatalf("got %+v, want a flow from the delivery count %d", f, uint32(first))
	}
	for id := range uint32(intakeCredit / 2) {
		p.transfer(0, id, encoded(t, "a"))
	}
	for {
		f, _ := p.next()
		if flow, ok := f.(*amqp.Flow); ok && flow.Handle.Set {
			if sum := flow.DeliveryCount.Value + flow.LinkCredit.Value; sum-uint32(1<<32-3) < intakeCredit+intakeCredit/2 {
				t.Errorf("after %d deliveries the flow is %+v", intakeCredit/2, flow)
			}
			return
		}
	}
}

// Disabled for one side, an entity goes on for the other, whose links attach again.
func TestDisablingOneSide(t *testing.T) {
	for _, test := range []struct {
		status             broker.Status
		sending, receiving message.Symbol
	}{
		{broker.ReceiveDisabled, detachForced, "com.microsoft:entity-disabled"},
		{broker.SendDisabled, "com.microsoft:entity-disabled", detachForced},
		{broker.Disabled, "com.microsoft:entity-disabled", "com.microsoft:entity-disabled"},
	} {
		b := newBench(t, nil)
		b.create("orders", broker.Queue, nil)
		p := b.begin()
		p.sender(0, "orders")
		p.receiver(1, "orders", 0)
		err := b.engine.Change("orders", func(p *broker.Properties) error {
			p.Status = test.status
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			d := want[*amqp.Detach](p)
			condition := test.sending
			if d.Handle == 1 {
				condition = test.receiving
			}
			if d.Error == nil || d.Error.Condition != condition {
				t.Errorf("%v: the link %d was detached for %v, want %s", test.status, d.Handle, d.Error, condition)
			}
		}
	}
}

// However large the messages are that wait, few bytes of them are fetched at once: the window of
// a peer that does not read keeps back what was.
func TestFewBytesAreFetchedAtOnce(t *testing.T) {
	for _, mode := range []uint8{amqp.SenderUnsettled, amqp.SenderSettled} {
		b := newBench(t, nil)
		b.create("orders", broker.Queue, func(p *broker.Properties) { p.MaxMessageBytes = 1 << 20 })
		const n = 16
		body := message.DataBody(make([]byte, 512<<10))
		for range n {
			if _, err := b.engine.Send(broker.Address{Name: "orders"}, []*message.Message{{Body: body}}); err != nil {
				t.Fatal(err)
			}
		}
		p := b.open()
		p.send(0, &amqp.Begin{IncomingWindow: 4, OutgoingWindow: 1000}, nil)
		want[*amqp.Begin](p)
		p.send(0, &amqp.Attach{
			Name: "r", Handle: 0, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: message.String("orders")}, Target: &amqp.Target{},
			SenderMode: amqp.Some(mode),
		}, nil)
		want[*amqp.Attach](p)
		p.send(0, &amqp.Flow{
			NextIncomingID: amqp.Some[uint32](0), IncomingWindow: 20, Handle: amqp.Some[uint32](0), LinkCredit: amqp.Some[uint32](n),
		}, nil)
		for range 20 {
			want[*amqp.Transfer](p)
		}
		info, err := b.engine.Entity("orders")
		if err != nil {
			t.Fatal(err)
		}
		if taken := info.InFlight + n - info.Active; taken > 4 {
			t.Errorf("mode %d: %d messages of 512 KiB were fetched", mode, taken)
		}
	}
}
