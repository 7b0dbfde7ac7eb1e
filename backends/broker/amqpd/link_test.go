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
