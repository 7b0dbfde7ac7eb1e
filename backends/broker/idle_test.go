package broker

import (
	"errors"
	"testing"
	"time"

	"dlq/backends/message"
)

const idleTime = 5 * time.Minute

// lives reports whether there is an entity, which does not use it.
func (b *bench) lives(name string) bool {
	b.Helper()
	_, err := b.e.Entity(name)
	if err != nil && !errors.Is(err, ErrNoEntity) {
		b.Fatal(err)
	}
	return err == nil
}

// wantIdleFromNow checks that an entity was used last just now.
func (b *bench) wantIdleFromNow(name, use string) {
	b.Helper()
	b.pass(idleTime - time.Millisecond)
	if !b.lives(name) {
		b.Errorf("%s was deleted though it had been used: %s", name, use)
		return
	}
	b.pass(time.Millisecond)
	if b.lives(name) {
		b.Errorf("%s is there %v after its last use: %s", name, idleTime, use)
	}
}

func TestUseKeepsFromIdleness(t *testing.T) {
	a := Address{Name: "short"}
	for use, f := range map[string]func(b *bench){
		"a send":    func(b *bench) { b.post("short", says("m")) },
		"a receive": func(b *bench) { b.takeWith(a, ReceiveOptions{}) },
		"a peek":    func(b *bench) { b.peek(a) },
		"a change":  func(b *bench) { b.change("short", func(p *Properties) { p.UserMetadata = "x" }) },
		"a move to": func(b *bench) {
			b.post("orders", says("m"))
			b.ok(b.e.Move(b.queue, []Move{{Seq: 1, To: a, As: says("m")}}))
		},
		"a scheduled": func(b *bench) {
			seq := b.post("short", b.scheduled("m", time.Hour))
			b.ok(nil, b.e.CancelScheduled(a, seq))
		},
		"a waiter": func(b *bench) {
			w, _ := b.waiting(a, message.UUID{})
			b.pass(time.Hour)
			b.ok(nil, b.e.Tick())
			w.Close()
		},
		"a transaction": func(b *bench) {
			x := b.e.Begin()
			b.ok(x.Send(a, nil, []*message.Message{says("m")}))
			b.pass(time.Minute)
			b.ok(nil, x.Commit())
		},
	} {
		t.Run(use, func(t *testing.T) {
			b := newBench(t)
			b.make("short", Queue, func(p *Properties) { p.AutoDeleteOnIdle = idleTime })
			b.pass(idleTime / 2)
			f(b)
			b.wantIdleFromNow("short", use)
		})
	}
}

// A scheduled message keeps its entity until it is active, and that is use, too.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration#idleness
func TestScheduledMessagesKeepFromIdleness(t *testing.T) {
	for _, kind := range []Kind{Queue, Topic} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t)
			b.make("short", kind, func(p *Properties) { p.AutoDeleteOnIdle = idleTime })
			b.post("short", b.scheduled("m", time.Hour))
			b.pass(time.Hour - time.Second)
			if !b.lives("short") {
				t.Fatal("it was deleted with a scheduled message")
			}
			b.pass(time.Second)
			b.wantIdleFromNow("short", "an activation")
		})
	}
}

// Whoever looks at the rules of a subscription does not use it; whoever changes them does.
func TestRulesAndIdleness(t *testing.T) {
	const name = "topic/Subscriptions/short"
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make(name, Subscription, func(p *Properties) { p.AutoDeleteOnIdle = idleTime })
	b.pass(idleTime / 2)
	b.ok(nil, b.e.AddRule(name, Rule{Name: "more"}))
	b.pass(idleTime / 2)
	if _, err := b.e.Rules(name); err != nil {
		t.Fatal(err)
	}
	b.pass(idleTime / 2)
	if b.lives(name) {
		t.Error("a look at the rules was use")
	}
}
