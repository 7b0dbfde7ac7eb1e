package amqpd

import (
	"testing"

	"dlq/backends/amqp"
	"dlq/backends/broker"
)

// TestMessageWithoutSession checks that a message that belongs to no session is rejected as the
// service does, by which SDKs know that another attempt is of no use.
func TestMessageWithoutSession(t *testing.T) {
	b := newBench(t, nil)
	b.create("visits", broker.Queue, func(p *broker.Properties) { p.RequiresSession = true })
	p := b.begin()
	p.sender(0, "visits")
	p.transfer(0, 0, encoded(t, "m"))
	d := want[*amqp.Disposition](p)
	rejected, ok := d.State.(*amqp.Rejected)
	if !ok {
		t.Fatalf("the outcome is %#v", d.State)
	}
	p.wantError(rejected.Error, "amqp:not-allowed")
}
