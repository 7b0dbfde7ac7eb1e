package amqpd

import (
	"testing"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/message"
)

func faulty(t *testing.T, spec string) *bench {
	t.Helper()
	f, err := ParseFaults(spec)
	if err != nil {
		t.Fatal(err)
	}
	return newBench(t, func(o *Options) { o.Faults = f })
}

// The link of a session ends only when what it settles is settled: also if that is what ends it.
func TestDetachingWhatSettlesInASession(t *testing.T) {
	b := faulty(t, "detach/settle=first:1")
	b.create("steps", broker.Queue, func(p *broker.Properties) { p.RequiresSession = true })
	id := "one"
	if _, err := b.engine.Send(broker.Address{Name: "steps"}, []*message.Message{{SessionID: &id}}); err != nil {
		t.Fatal(err)
	}
	p := b.begin()
	p.send(0, &amqp.Attach{Name: "r", Role: amqp.RoleReceiver, Target: &amqp.Target{}, Source: &amqp.Source{
		Address: message.String("steps"), Filter: message.Map{{Key: sessionFilterName, Value: message.String(id)}},
	}}, nil)
	want[*amqp.Attach](p)
	p.credit(0, 0, 1, false)
	want[*amqp.Transfer](p)
	p.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, State: &amqp.Accepted{}}, nil)
	p.wantError(want[*amqp.Detach](p).Error, "amqp:link:detach-forced")
}

// What a peer sends can fail on demand, too, and is not stored then.
func TestStrikingSends(t *testing.T) {
	b := faulty(t, "throttle/send=at:2")
	b.create("orders", broker.Queue, nil)
	p := b.begin()
	p.sender(0, "orders")
	for id := range uint32(3) {
		p.transfer(0, id, encoded(t, "abc"[id:id+1]))
		d := want[*amqp.Disposition](p)
		rejected, ok := d.State.(*amqp.Rejected)
		if ok != (id == 1) {
			t.Errorf("delivery %d was answered with %+v", id, d.State)
		}
		if ok {
			p.wantError(rejected.Error, "com.microsoft:server-busy")
		}
	}
	b.wantBodies(broker.Address{Name: "orders"}, "a", "c")
}

func TestStrikingAttaches(t *testing.T) {
	for spec, condition := range map[string]message.Symbol{
		"throttle/attach=at:1":       "com.microsoft:server-busy",
		"detach/attach=at:1":         "amqp:link:detach-forced",
		"error/attach=at:1@orders":   "amqp:internal-error",
		"delay/attach=10ms:at:1":     "",
		"throttle/attach=at:1@other": "",
	} {
		t.Run(spec, func(t *testing.T) {
			b := faulty(t, spec)
			b.create("orders", broker.Queue, nil)
			p := b.begin()
			p.sender(0, "orders")
			if condition != "" {
				p.wantError(want[*amqp.Detach](p).Error, condition)
			}
			if a := p.receiver(1, "orders", 0); a.Source == nil {
				t.Errorf("the second attach was refused, too: %+v", a)
			}
		})
	}
}
