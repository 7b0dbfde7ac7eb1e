package broker

import (
	"errors"
	"testing"
	"time"

	"dlq/backends/message"
)

// What a transaction holds happens all or not at all.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-transactions
func TestTransaction(t *testing.T) {
	b := newBench(t)
	b.make("out", Queue, nil)
	out := Address{Name: "out"}
	b.send("a", "b")
	begin := func() (*Transaction, *message.Message) {
		t.Helper()
		x, m, before := b.e.Begin(), b.receive(b.queue), b.contents(out)
		if _, err := x.Send(out, nil, []*message.Message{says("from " + string(m.Body.Bytes()))}); err != nil {
			t.Fatal(err)
		}
		if errs, err := x.Settle(b.queue, Outcome{Action: Complete}, m.Broker.LockToken); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		b.wantContents(out, before...) // not before the commit
		if errs, err := b.e.Settle(b.queue, Outcome{Action: Complete}, m.Broker.LockToken); err != nil || !errors.Is(errs[0], ErrLocked) {
			t.Errorf("settle beside the transaction: %v, %v", errs, err)
		}
		return x, m
	}
	x, m := begin()
	if err := x.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := x.Commit(); !errors.Is(err, ErrTransaction) {
		t.Errorf("commit after a rollback: %v", err)
	}
	if err := b.e.Release(b.queue, m.Broker.LockToken); err != nil { // it kept its lock
		t.Fatal(err)
	}
	b.wantContents(b.queue, "a/0", "b/0")

	x, _ = begin()
	b.pass(time.Minute) // its lock expires
	if err := x.Commit(); !errors.Is(err, ErrLockLost) {
		t.Errorf("commit without the lock: %v", err)
	}
	b.wantContents(out)
	b.wantContents(b.queue, "a/1", "b/0")

	x, m = begin()
	b.ok(b.e.Renew(b.queue, m.Broker.LockToken))
	if err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	b.crash()
	b.wantContents(out, "from a/0")
	b.wantContents(b.queue, "b/0")

	x, m = begin()
	for range 3 { // longer than two minutes
		b.pass(50 * time.Second)
		b.ok(b.e.Renew(b.queue, m.Broker.LockToken))
	}
	if err := x.Commit(); !errors.Is(err, ErrTransaction) {
		t.Errorf("commit after two minutes: %v", err)
	}
	b.wantContents(out, "from a/0")
}

// A send via another entity is forwarded from it at the commit and counts as a hop.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-transactions#transfers-and-send-via
func TestSendVia(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, nil)
	b.make("via", Queue, nil)
	via := func(id string) error {
		x := b.e.Begin()
		if errs, err := x.Send(Address{Name: "end"}, &Address{Name: "via"}, []*message.Message{says(id)}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		if id == "disabled" {
			if err := b.e.Change("end", func(p *Properties) error { p.Status = Disabled; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		return x.Commit()
	}
	if err := errors.Join(via("a"), via("disabled")); err != nil {
		t.Fatal(err)
	}
	b.wantContents(Address{Name: "via"})
	b.wantDead(transfer("via"), causeDestinationDisabled("end"))
	if err := b.e.Change("end", func(p *Properties) error { p.Status = Enabled; return nil }); err != nil {
		t.Fatal(err)
	}
	if got := b.receive(Address{Name: "end"}); got.Broker.EnqueuedSequenceNumber != 1 {
		t.Errorf("arrived as %+v", got.Broker)
	}
	x := b.e.Begin()
	if _, err := x.Send(Address{Name: "nowhere"}, &Address{Name: "via"}, []*message.Message{says("b")}); !errors.Is(err, ErrNoEntity) {
		t.Errorf("a destination that is missing: %v", err)
	}
	if _, err := x.Send(Address{Name: "end"}, nil, make([]*message.Message, maxStaged+1)); !errors.Is(err, ErrInvalid) {
		t.Errorf("more than %d operations: %v", maxStaged, err)
	}
}
