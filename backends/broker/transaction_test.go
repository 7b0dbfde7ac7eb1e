package broker

import (
	"errors"
	"fmt"
	"slices"
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

// Every action can be part of a transaction, of any entities and their sub-queues, and happens
// with the others or not at all, whatever the process does.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-transactions#operations-within-a-transaction-scope
func TestTransactionAcrossEntities(t *testing.T) {
	for name, commits := range map[string]bool{"commit": true, "crash before": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.make("topic", Topic, nil)
			b.make("topic/Subscriptions/s", Subscription, nil)
			b.make("out", Queue, nil)
			b.send("complete", "abandon", "defer", "bury", "dead")
			b.ok(b.e.SettleBySequence(b.queue, Outcome{Action: Bury}, 5))
			x := b.e.Begin()
			for _, action := range []Action{Complete, Abandon, Defer, Bury} {
				b.ok(x.Settle(b.queue, Outcome{Action: action, Reason: "r"}, b.receive(b.queue).Broker.LockToken))
			}
			b.ok(x.Settle(dead(b.queue), Outcome{Action: Complete}, b.receive(dead(b.queue)).Broker.LockToken))
			b.ok(x.Send(at("topic"), nil, []*message.Message{says("copied")}))
			b.ok(x.Send(at("out"), nil, []*message.Message{says("sent")}))
			b.wantContents(at("out"))
			b.wantContents(b.queue, "complete/0", "abandon/0", "defer/0", "bury/0")
			if commits {
				b.ok(nil, x.Commit())
			}
			b.crash()
			b.pass(time.Minute)
			if !commits {
				b.wantContents(at("out"))
				b.wantContents(at("topic/s"))
				b.wantContents(dead(b.queue), "dead/0")
				if n := b.info("orders").Active; n != 4 {
					t.Errorf("%d messages are left, want all", n)
				}
				return
			}
			b.wantContents(at("out"), "sent/0")
			b.wantContents(at("topic/s"), "copied/0")
			b.wantContents(b.queue, "abandon/1", "defer/0")
			b.wantDead(dead(b.queue), cause{"r", ""})
		})
	}
}

// One lock that is lost takes everything back, the other messages stay locked and can still be
// settled.
// Source: servicebus-wire.md section 7, "Effects are staged"; issue 3, "committed or rolled back whole".
func TestTransactionLosesALock(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	lost, kept := b.receive(b.queue), b.receive(b.queue)
	x := b.e.Begin()
	b.ok(x.Send(b.queue, nil, []*message.Message{says("c")}))
	b.ok(x.Settle(b.queue, Outcome{Action: Complete}, lost.Broker.LockToken, kept.Broker.LockToken))
	b.pass(59 * time.Second)
	b.ok(b.e.Renew(b.queue, kept.Broker.LockToken))
	b.pass(time.Second)
	err := x.Commit()
	b.want(err, ErrLockLost)
	b.want(err, ErrTransaction)
	b.wantContents(b.queue, "a/1", "b/0")
	b.settle(b.queue, Complete, kept)
	b.crash()
	b.wantContents(b.queue, "a/1")
}

// A session that is given back, or an entity that is deleted, takes its locks out of the
// transactions that hold them.
// Source: servicebus-wire.md section 10, "Delete: locks void".
func TestTransactionLosesMore(t *testing.T) {
	b, a := newSessions(t)
	b.post("sessions", inSession("s", "a"))
	s := b.accept(a, nil)
	x := b.e.Begin()
	b.ok(x.Settle(a, Outcome{Action: Complete}, b.takeWith(a, ReceiveOptions{Session: s.Token})[0].Broker.LockToken))
	b.ok(nil, b.e.ReleaseSession(a, s.Token))
	b.want(x.Commit(), ErrTransaction)
	b.wantContents(a, "a/0")

	b.send("b")
	x = b.e.Begin()
	b.ok(x.Settle(b.queue, Outcome{Action: Complete}, b.receive(b.queue).Broker.LockToken))
	b.ok(x.Send(a, nil, []*message.Message{inSession("s", "c")}))
	b.ok(nil, b.e.Delete("orders"))
	b.want(x.Commit(), ErrTransaction)
	b.wantContents(a, "a/0")
}

// A message is in one transaction at a time, and outside of it nobody settles it; renewing is
// allowed.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-transactions#operations-within-a-transaction-scope
func TestTransactionHoldsItsMessages(t *testing.T) {
	b := newBench(t)
	b.send("a")
	token := b.receive(b.queue).Broker.LockToken
	x, y := b.e.Begin(), b.e.Begin()
	b.ok(x.Settle(b.queue, Outcome{Action: Complete}, token))
	b.wantRefused(ErrLocked, ignoring(x.Settle(b.queue, Outcome{Action: Abandon}, token)), nil)
	b.wantRefused(ErrLocked, ignoring(y.Settle(b.queue, Outcome{Action: Complete}, token)), nil)
	b.want(b.e.Release(b.queue, token), nil)
	b.wantContents(b.queue, "a/0")
	b.ok(b.e.Renew(b.queue, token))
	b.ok(nil, x.Rollback())
	b.ok(y.Settle(b.queue, Outcome{Action: Complete}, token))
	b.ok(nil, y.Commit())
	b.wantContents(b.queue)
}

// Two minutes after its first operation a transaction has ended, to the millisecond, however
// long it was open before; what it held is free again.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-transactions#timeout
func TestTransactionTimeout(t *testing.T) {
	b := newBench(t)
	for late, want := range map[time.Duration]error{0: ErrTransaction, -time.Millisecond: nil} {
		x := b.e.Begin()
		b.pass(time.Hour)
		_, err := x.Send(at("nowhere"), nil, []*message.Message{says("a")})
		b.want(err, ErrNoEntity)
		_, err = x.Settle(b.queue, Outcome{Action: Complete}, message.UUID{1})
		b.ok(nil, err) // which says that there is no such lock
		if due, ok := b.e.Due(); ok {
			t.Errorf("it ends at %v though nothing was staged", due)
		}
		b.pass(time.Hour)
		b.ok(x.Send(b.queue, nil, []*message.Message{says("a")}))
		b.pass(time.Minute)
		b.ok(x.Send(b.queue, nil, []*message.Message{says("b")}))
		b.pass(time.Minute + late)
		b.want(x.Commit(), want)
	}
	b.wantContents(b.queue, "a/0", "b/0")
	x := b.e.Begin()
	b.ok(nil, x.Commit())
	_, err := x.Send(b.queue, nil, []*message.Message{says("c")})
	b.want(err, ErrTransaction) // it was committed
	b.want(x.Rollback(), ErrTransaction)
}

// A transaction has at most 100 operations; the one too many stages nothing and the others can
// be committed.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
func TestTransactionSize(t *testing.T) {
	b := newBench(t)
	x := b.e.Begin()
	b.ok(x.Send(b.queue, nil, slices.Repeat([]*message.Message{says("a")}, 100)))
	_, err := x.Send(b.queue, nil, []*message.Message{says("b")})
	b.want(err, ErrInvalid)
	b.ok(nil, x.Commit())
	if n := b.info("orders").Active; n != 100 {
		t.Errorf("%d messages were sent", n)
	}
}

// A message that its entity refuses is refused when it is sent, and stages nothing; what makes
// it impossible later makes the commit fail whole.
// Source: issue 3, "committed or rolled back whole".
func TestTransactionIsRefused(t *testing.T) {
	b := newBench(t)
	x := b.e.Begin()
	errs, err := x.Send(b.queue, nil, []*message.Message{says("a"), nil})
	if err != nil || !errors.Is(errs[0], ErrNotSent) || !errors.Is(errs[1], ErrInvalid) {
		t.Errorf("staged %v, %v", errs, err)
	}
	b.ok(nil, x.Commit())
	b.wantContents(b.queue)

	b.make("other", Queue, nil)
	for _, set := range []func(*Properties){
		func(p *Properties) { p.Status = Disabled },
		func(p *Properties) { p.Status, p.MaxSize = Enabled, 1 },
	} {
		x = b.e.Begin()
		b.ok(x.Send(b.queue, nil, []*message.Message{says("a")}))
		b.change("orders", func(p *Properties) { p.Status, p.MaxSize = Enabled, 0 })
		b.ok(x.Send(at("other"), nil, []*message.Message{says("b")}))
		b.change("orders", set)
		b.want(x.Commit(), ErrTransaction)
		b.wantContents(at("other"))
		b.change("orders", func(p *Properties) { p.Status, p.MaxSize = Enabled, 0 })
	}
	b.wantContents(b.queue)
}

// The caller may change its message after it was staged.
// Source: backends/message, "Clone".
func TestStagedMessageIsACopy(t *testing.T) {
	b := newBench(t)
	m := says("a")
	x := b.e.Begin()
	b.ok(x.Send(b.queue, nil, []*message.Message{m}))
	m.Properties.Set("late", message.Int(1))
	b.ok(nil, x.Commit())
	if got := b.peek(b.queue)[0].Properties; len(got) != 0 {
		t.Errorf("sent with %v", got)
	}
}

// A scheduled message and its time to live begin at the commit.
// Source: servicebus-wire.md section 7, "sends invisible until commit".
func TestTransactionBeginsAtCommit(t *testing.T) {
	b := newBench(t)
	m := says("a")
	m.TTL = new(time.Minute)
	x := b.e.Begin()
	b.ok(x.Send(b.queue, nil, []*message.Message{m, b.scheduled("b", 90*time.Second)}))
	b.pass(100 * time.Second)
	b.ok(nil, x.Commit())
	if got := b.peek(b.queue); !got[0].Broker.ExpiresAt.Equal(b.now.Add(time.Minute)) || !got[0].Broker.EnqueuedTime.Equal(b.now) || got[1].Broker.State != message.Active {
		t.Errorf("%+v and %+v", got[0].Broker, got[1].Broker)
	}
}

// A send via another entity to one that is disabled is accepted, and is in the transfer
// dead-letter queue of the first after the commit; it never shows in the first itself. One to
// an entity that is missing or full is refused.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#dead-lettering-in-send-via-scenarios
func TestSendViaToDisabled(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, func(p *Properties) { p.Status = Disabled })
	via := at("orders")
	x := b.e.Begin()
	b.ok(x.Send(at("end"), &via, []*message.Message{says("a")}))
	b.wantContents(b.queue)
	b.ok(nil, x.Commit())
	b.crash()
	b.wantContents(b.queue)
	b.wantDead(transfer("orders"), causeDestinationDisabled("end"))
	b.change("end", func(p *Properties) { p.Status, p.MaxSize = Enabled, 1 })
	b.wantRefused(ErrQuota, ignoring(b.e.Begin().Send(at("end"), &via, []*message.Message{says("a")})), nil)
	b.change("orders", func(p *Properties) { p.Status = SendDisabled })
	_, err := b.e.Begin().Send(at("end"), &via, []*message.Message{says("a")})
	b.want(err, ErrDisabled)
}

// A send via another entity counts as a hop of the chain behind it.
// Source: issue 3, "counts as one hop".
func TestSendViaIsAHop(t *testing.T) {
	b := newBench(t)
	b.make("q5", Queue, nil)
	for n := 4; n >= 1; n-- {
		b.make(fmt.Sprint("q", n), Queue, func(p *Properties) { p.ForwardTo = fmt.Sprint("q", n+1) })
	}
	via := at("orders")
	x := b.e.Begin()
	b.ok(x.Send(at("q2"), &via, []*message.Message{says("four")}))
	b.ok(x.Send(at("q1"), &via, []*message.Message{says("five")}))
	b.ok(nil, x.Commit())
	b.wantContents(at("q5"), "four/0")
	b.wantDead(transfer("q4"), causeHops)
}
