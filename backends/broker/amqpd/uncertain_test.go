package amqpd

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// Nobody is told an outcome of a write that may have taken effect or not: rejected, a peer would
// take it for one that has not. The connection ends instead.
func TestUncertainWriteHasNoOutcome(t *testing.T) {
	for name, act := range map[string]func(p *txPeer, tx []byte){
		"send": func(p *txPeer, _ []byte) { p.transfer(0, p.id, encoded(p, "a")) },
		"settle": func(p *txPeer, _ []byte) {
			p.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, State: &amqp.Accepted{}}, nil)
		},
		"commit": func(p *txPeer, tx []byte) { p.say(0x32, message.Binary(tx), message.Bool(false)) },
		"schedule": func(p *txPeer, _ []byte) {
			p.send(0, &amqp.Attach{
				Name: "m", Handle: 5, Source: &amqp.Source{}, Target: &amqp.Target{Address: message.String("orders/$management")},
			}, nil)
			want[*amqp.Attach](p.peer)
			p.transfer(5, p.id, scheduleRequest(p, encoded(p, "later")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Bool
			fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				if broken.Load() && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo) {
					return errors.New("injected")
				}
				return nil
			}))
			s, err := store.Open(fs, "data")
			if err != nil {
				t.Fatal(err)
			}
			engine, err := broker.Open(broker.Options{Store: s})
			if err != nil {
				t.Fatal(err)
			}
			b := newBench(t, func(o *Options) { o.Engine = engine })
			defer func() { _ = engine.Close() }() // says what failed
			b.engine = engine
			b.create("orders", broker.Queue, nil)
			p := b.coordinated()
			p.first()
			tx := p.declare()
			p.wantIn(p.sendIn(0, tx, "staged"), tx)
			broken.Store(true)
			act(p, tx)
			p.wantError(want[*amqp.Close](p.peer).Error, "amqp:internal-error")
		})
	}
}

func valued(t testing.TB, properties message.Properties, v []byte) []byte {
	t.Helper()
	payload, err := amqp.AppendMessage(nil, &message.Message{Properties: properties, Body: message.Body{Kind: message.ValueBody, Sections: [][]byte{v}}})
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// scheduleRequest is a request to schedule a message.
func scheduleRequest(t testing.TB, m []byte) []byte {
	t.Helper()
	v, err := amqp.AppendValue(nil, message.Map{{Key: message.String("messages"), Value: message.List{
		message.Map{{Key: message.String("message"), Value: message.Binary(m)}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return valued(t, message.Properties{{Name: "operation", Value: message.String("com.microsoft:schedule-message")}}, v)
}
