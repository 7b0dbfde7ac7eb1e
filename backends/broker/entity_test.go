package broker

import (
	"errors"
	"testing"
	"time"

	"dlq/backends/message"
)

func TestPropertiesAreValidated(t *testing.T) {
	b := newBench(t)
	for name, change := range map[string]func(*Properties){
		"lock too long":  func(p *Properties) { p.LockDuration = 5*time.Minute + 1 },
		"lock too short": func(p *Properties) { p.LockDuration = time.Microsecond },
		"count negative": func(p *Properties) { p.MaxDeliveryCount = -1 },
		"body too large": func(p *Properties) { p.MaxMessageBytes = 1 << 40 },
	} {
		if err := b.e.Create("q", Queue, defaultsWith(change)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	for _, name := range []string{"", "a b", "a//b", "/a", "ü", "a\x1b[31m"} {
		if err := b.e.Create(name, Queue, Defaults(Queue, ServiceBus)); !errors.Is(err, ErrInvalid) {
			t.Errorf("name %q: err = %v", name, err)
		}
	}
	if err := b.e.Create("ORDERS", Queue, Defaults(Queue, ServiceBus)); !errors.Is(err, ErrExists) {
		t.Errorf("same name in other case: err = %v", err)
	}
}

// Status, quota, immutability, case.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/entity-suspend
func TestEntityRules(t *testing.T) {
	b := newBench(t)
	b.send("a")
	set := func(f func(*Properties)) error {
		return b.e.Change("ORDERS", func(p *Properties) error { f(p); return nil })
	}
	for status, c := range map[Status]struct{ in, out error }{
		Enabled: {}, Disabled: {ErrDisabled, ErrDisabled}, SendDisabled: {ErrDisabled, nil}, ReceiveDisabled: {nil, ErrDisabled},
	} {
		if err := set(func(p *Properties) { p.Status = status }); err != nil {
			t.Fatal(err)
		}
		if err := b.e.ValidateSend(b.queue, says("b")); !errors.Is(err, c.in) {
			t.Errorf("%s: send %v", status, err)
		}
		if _, err := b.e.Peek(b.queue, PeekOptions{Max: 1}); !errors.Is(err, c.out) {
			t.Errorf("%s: peek %v", status, err)
		}
		if _, err := b.e.Receive(b.queue, ReceiveOptions{Lock: new(time.Duration)}); !errors.Is(err, c.out) {
			t.Errorf("%s: receive %v", status, err)
		}
	}
	if err := set(func(p *Properties) { p.Status, p.MaxSize = Enabled, 10 }); err != nil {
		t.Fatal(err)
	}
	if sent, err := b.e.Send(b.queue, []*message.Message{says("b")}); err != nil || !errors.Is(sent[0].Err, ErrQuota) {
		t.Errorf("over the quota: %v, %v", sent, err)
	}
	b.settle(b.queue, Complete, b.receive(b.queue)) // which goes on
	if err := set(func(p *Properties) { p.RequiresSession = true }); !errors.Is(err, ErrInvalid) {
		t.Errorf("change what is fixed: %v", err)
	}
	if err := b.e.Create("Orders", Topic, Defaults(Topic, ServiceBus)); !errors.Is(err, ErrExists) {
		t.Errorf("the same name in another case: %v", err)
	}
	if err := b.e.Create("nowhere/Subscriptions/s", Subscription, Defaults(Subscription, ServiceBus)); !errors.Is(err, ErrNoEntity) {
		t.Errorf("a subscription without its topic: %v", err)
	}
}

// An entity that is not used is deleted; use of a subscription is use of its topic.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration#temporary-entities
func TestAutoDeleteOnIdle(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, func(p *Properties) { p.AutoDeleteOnIdle = 5 * time.Minute })
	b.make("topic/Subscriptions/s", Subscription, nil)
	for range 3 {
		b.pass(4 * time.Minute)
		if _, err := b.e.Peek(Address{Name: "topic/s"}, PeekOptions{Max: 1}); err != nil {
			t.Fatal(err)
		}
	}
	b.pass(5*time.Minute - time.Millisecond)
	if _, err := b.e.Entity("topic"); err != nil {
		t.Errorf("a millisecond early: %v", err)
	}
	b.pass(time.Millisecond)
	if _, err := b.e.Entity("topic/s"); !errors.Is(err, ErrNoEntity) {
		t.Errorf("after five minutes: %v", err)
	}
}

// A deleted entity takes its messages along, and one that is made under its name has none of
// them, whenever the process dies in between.
func TestDeleteAndCreateAgain(t *testing.T) {
	b := newBench(t)
	for range 5 {
		msgs := make([]*message.Message, 1000)
		for i := range msgs {
			msgs[i] = says("old")
		}
		b.ok(refusals(b.e.Send(b.queue, msgs)))
	}
	held := b.receive(b.queue)
	if err := b.e.Delete("orders"); err != nil {
		t.Fatal(err)
	}
	b.crash()
	b.make("orders", Queue, nil)
	b.wantContents(b.queue)
	if errs, err := b.e.Settle(b.queue, Outcome{Action: Complete}, held.Broker.LockToken); err != nil || !errors.Is(errs[0], ErrLockLost) {
		t.Errorf("settle with a token of the old: %v, %v", errs, err)
	}
	for range 10 { // what is left of the old goes bit by bit
		b.pass(time.Second)
		if err := b.e.Tick(); err != nil {
			t.Fatal(err)
		}
	}
	if n := contentsLeft(t, b); n != 0 {
		t.Errorf("%d heads and bodies are left of it", n)
	}
	if seq := b.post("orders", says("new")); seq != 1 {
		t.Errorf("the first number of the new one is %d", seq)
	}
}

func contentsLeft(t *testing.T, b *bench) (n int) {
	for _, err := range b.e.store.Content() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
