package broker

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"dlq/backends/message"
)

// A released message counts nothing and is back at its place.
func TestReleaseCountsNothing(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	m := b.receive(b.queue)
	if err := b.e.Release(b.queue, m.Broker.LockToken); err != nil {
		t.Fatal(err)
	}
	b.wantContents(b.queue, "a/0", "b/0")
	if again := b.receive(b.queue); string(again.Body.Bytes()) != "a" || again.Broker.LockToken == m.Broker.LockToken {
		t.Errorf("got %q under token %v", again.Body.Bytes(), again.Broker.LockToken)
	}
}

// A clean stop keeps locks; their tokens settle afterwards.
func TestLockSurvivesCleanStop(t *testing.T) {
	b := newBench(t)
	b.send("a")
	m := b.receive(b.queue)
	if err := b.e.Close(); err != nil {
		t.Fatal(err)
	}
	b.open()
	if other := b.receive(b.queue); other != nil {
		t.Errorf("the message was free after a clean stop")
	}
	b.settle(b.queue, Complete, m)
	b.wantContents(b.queue)
}

// Properties to modify become application properties.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-transfers-locks-settlement
func TestAbandonModifiesProperties(t *testing.T) {
	b := newBench(t)
	b.send("a")
	m := b.receive(b.queue)
	b.ok(b.e.Settle(b.queue, Outcome{Action: Abandon, Set: []message.Attribute{{Name: "tries", Value: message.Int(1)}}}, m.Broker.LockToken))
	b.crash()
	if v, _ := b.receive(b.queue).Properties.Get("tries"); v != message.Int(1) {
		t.Errorf("tries is %v", v)
	}
}

// A lock belongs to its token and its queue, and a lost one changes nothing.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-transfers-locks-settlement#peeklock
func TestLostLockChangesNothing(t *testing.T) {
	b := newBench(t)
	b.make("other", Queue, nil)
	b.send("a", "b")
	m, next := b.receive(b.queue), b.receive(b.queue)
	if string(next.Body.Bytes()) != "b" {
		t.Errorf("the second receiver got %s, want the next message", next.Body.Bytes())
	}
	lost := func(a Address, token message.UUID) {
		t.Helper()
		for _, action := range []Action{Complete, Abandon, Defer, Bury} {
			if errs, err := b.e.Settle(a, Outcome{Action: action}, token); err != nil || !errors.Is(errs[0], ErrLockLost) {
				t.Errorf("settle: %v, %v", errs, err)
			}
		}
		if errs, err := b.e.Renew(a, token); err != nil || !errors.Is(errs[0], ErrLockLost) {
			t.Errorf("renew: %v, %v", errs, err)
		}
	}
	lost(Address{Name: "other"}, m.Broker.LockToken)
	lost(dead(b.queue), m.Broker.LockToken)
	b.settle(b.queue, Complete, next)
	lost(b.queue, next.Broker.LockToken)
	b.pass(time.Minute)
	lost(b.queue, m.Broker.LockToken)
	b.wantContents(b.queue, "a/1") // the expiry, and nothing else
	if again := b.receive(b.queue); again == nil || again.Broker.LockToken == m.Broker.LockToken {
		t.Error("a message that is locked again has the old token")
	}
}

// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-deferral
func TestDeferred(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	b.settle(b.queue, Defer, b.receive(b.queue))
	if m := b.receive(b.queue); string(m.Body.Bytes()) != "b" {
		t.Fatalf("received %s, want b: a is deferred", m.Body.Bytes())
	}
	if _, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 1, 2); !errors.Is(err, ErrNoMessage) {
		t.Errorf("one that is not deferred: %v", err)
	}
	got, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 1)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if _, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 1); !errors.Is(err, ErrLocked) {
		t.Errorf("one that is locked: %v", err)
	}
	b.settle(b.queue, Abandon, got[0]) // stays deferred, and counts
	got, err = b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 1)
	if err != nil || got[0].Broker.DeliveryCount != 1 || got[0].Broker.SequenceNumber != 1 {
		t.Errorf("again: %+v, %v", got, err)
	}
	b.settle(b.queue, Complete, got[0])
}

// What is received and deleted is gone when the call returns, whatever happens.
func TestReceiveAndDelete(t *testing.T) {
	b := newBench(t)
	b.send("a", "b", "c")
	if got := bodies(b.takeWith(b.queue, ReceiveOptions{Max: 2, Delete: true})); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("received %v", got)
	}
	b.crash()
	b.wantContents(b.queue, "c/0")
}

// A message is locked for the entity's lock duration to the millisecond; a second receiver gets
// the next message, and each lock has a token of its own.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-transfers-locks-settlement#peeklock
func TestCompetingReceivers(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	m, next := b.receive(b.queue), b.receive(b.queue)
	if string(next.Body.Bytes()) != "b" || m.Broker.LockToken == next.Broker.LockToken {
		t.Errorf("the second receiver got %s under the token %v", next.Body.Bytes(), next.Broker.LockToken)
	}
	if want := b.now.Add(time.Minute); !m.Broker.LockedUntil.Equal(want) {
		t.Errorf("locked until %v, want %v", m.Broker.LockedUntil, want)
	}
	if third := b.receive(b.queue); third != nil {
		t.Errorf("the third receiver got %s", third.Body.Bytes())
	}
	b.pass(time.Minute - time.Millisecond)
	b.settle(b.queue, Complete, m)
	b.pass(time.Millisecond)
	b.wantRefused(ErrLockLost, ignoring(b.e.Settle(b.queue, Outcome{Action: Complete}, next.Broker.LockToken)), nil)
	b.wantContents(b.queue, "b/1")
}

func ignoring(errs []error, _ error) []error { return errs }

// An abandoned message and one whose lock has expired are delivered again before those behind
// them.
// Source: servicebus-wire.md section 10, "Ordering".
func TestReturnsAtItsPlace(t *testing.T) {
	for name, give := range map[string]func(*bench, *message.Message){
		"abandoned": func(b *bench, m *message.Message) { b.settle(b.queue, Abandon, m) },
		"expired":   func(b *bench, _ *message.Message) { b.pass(time.Minute) },
		"released":  func(b *bench, m *message.Message) { b.ok(nil, b.e.Release(b.queue, m.Broker.LockToken)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.send("a", "b", "c")
			b.settle(b.queue, Complete, b.receive(b.queue))
			m := b.receive(b.queue)
			give(b, m)
			again := b.receive(b.queue)
			if string(again.Body.Bytes()) != "b" || again.Broker.SequenceNumber != m.Broker.SequenceNumber {
				t.Errorf("received %s, number %d; want b again", again.Body.Bytes(), again.Broker.SequenceNumber)
			}
		})
	}
}

// Renewing makes a lock last for the lock duration from then on, as often as one likes, and
// counts nothing; a lost lock cannot be renewed, and one lost lock of several fails alone.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-transfers-locks-settlement#renew-locks
func TestRenew(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	lost, m := b.receive(b.queue), b.receive(b.queue)
	b.settle(b.queue, Complete, lost)
	for range 5 {
		b.pass(time.Minute - time.Millisecond)
		errs, err := b.e.Renew(b.queue, lost.Broker.LockToken, m.Broker.LockToken)
		if err != nil || !errors.Is(errs[0], ErrLockLost) || errs[1] != nil {
			t.Fatalf("renew: %v, %v", errs, err)
		}
		if got := b.peek(b.queue)[0].Broker; !got.LockedUntil.Equal(b.now.Add(time.Minute)) || got.DeliveryCount != 0 {
			t.Errorf("renewed to %v with the count %d", got.LockedUntil, got.DeliveryCount)
		}
	}
	b.settle(b.queue, Complete, m)
	b.wantContents(b.queue)
}

// A lock belongs to its token: a new connection, or the process after a restart, settles with
// it, until the moment that it would have expired.
// Source: servicebus-wire.md section 5, "Locks live by token, not by link".
func TestTokenSettlesFromAnywhere(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	b.ok(nil, b.e.Close())
	b.open()
	a, late := b.receive(b.queue), b.receive(b.queue)
	b.pass(59 * time.Second)
	b.restart()
	b.settle(b.queue, Complete, a)
	b.pass(time.Second)
	b.restart()
	b.wantRefused(ErrLockLost, ignoring(b.e.Settle(b.queue, Outcome{Action: Complete}, late.Broker.LockToken)), nil)
	b.wantContents(b.queue, "b/1")
}

// Every settlement is durable when it is acknowledged.
// Source: reliability.md; issue 3, "Acknowledged means synced".
func TestSettlementsSurviveACrash(t *testing.T) {
	b := newBench(t)
	b.send("complete", "abandon", "defer", "bury")
	for _, action := range []Action{Complete, Abandon, Defer, Bury} {
		m := b.takeWith(b.queue, ReceiveOptions{After: int64(action) - 1})[0]
		b.settle(b.queue, action, m)
	}
	b.crash()
	b.wantContents(b.queue, "abandon/1", "defer/0")
	b.wantContents(dead(b.queue), "bury/0")
	if info := b.info("orders"); info.Active != 1 || info.Deferred != 1 || info.DeadLetter != 1 {
		t.Errorf("counts %+v", info)
	}
}

// Abandon, defer and dead-letter set application properties, of any type; a property that is
// there is replaced, the others and the body stay.
// Source: servicebus-wire.md section 5, "merged into the message's application properties".
func TestPropertiesToModify(t *testing.T) {
	b := newBench(t)
	for _, action := range []Action{Abandon, Defer, Bury} {
		m := says(fmt.Sprint(action))
		m.Properties = message.Properties{{Name: "kept", Value: message.Long(1)}, {Name: "tries", Value: message.Int(1)}}
		b.post("orders", m)
		set := []message.Attribute{{Name: "tries", Value: message.Int(2)}, {Name: "at", Value: message.Timestamp(5)}}
		b.ok(b.e.Settle(b.queue, Outcome{Action: action, Set: set}, b.takeWith(b.queue, ReceiveOptions{After: int64(action) - 2})[0].Broker.LockToken))
	}
	b.crash()
	for _, m := range append(b.peek(b.queue), b.peek(dead(b.queue))...) {
		want := message.Properties{{Name: "kept", Value: message.Long(1)}, {Name: "tries", Value: message.Int(2)}, {Name: "at", Value: message.Timestamp(5)}}
		if !slices.Equal(m.Properties, want) || len(m.Body.Bytes()) == 0 {
			t.Errorf("%s has the properties %v, want %v", m.Body.Bytes(), m.Properties, want)
		}
	}
}

// One token that is lost does not keep the others of a call from being settled, and a token
// settles once.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-transfers-locks-settlement
func TestSettleSeveral(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	x, y := b.receive(b.queue).Broker.LockToken, b.receive(b.queue).Broker.LockToken
	errs, err := b.e.Settle(b.queue, Outcome{Action: Complete}, x, message.UUID{1}, x, y)
	if err != nil || errs[0] != nil || !errors.Is(errs[1], ErrLockLost) || !errors.Is(errs[2], ErrLockLost) || errs[3] != nil {
		t.Errorf("settled %v, %v", errs, err)
	}
	b.wantContents(b.queue)
}

// A deferred message keeps its number and is never received, whatever happens to those around
// it, until somebody asks for its number.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-deferral
func TestDeferredWaits(t *testing.T) {
	b := newBench(t)
	b.send("a")
	b.settle(b.queue, Defer, b.receive(b.queue))
	b.crash()
	b.pass(1000 * time.Hour)
	if m := b.receive(b.queue); m != nil {
		t.Errorf("received %s, which is deferred", m.Body.Bytes())
	}
	if m := b.peek(b.queue)[0]; m.Broker.State != message.Deferred || m.Broker.SequenceNumber != 1 {
		t.Errorf("it is %+v", m.Broker)
	}
	if _, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 1, 7); !errors.Is(err, ErrNoMessage) {
		t.Errorf("one that is there and one that is not: %v", err)
	}
	m, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 1)
	if err != nil {
		t.Fatal(err) // the call before locked nothing
	}
	b.settle(b.queue, Defer, m[0]) // again
	b.wantContents(b.queue, "a/0")
}

// The lock of a deferred message expires like any other; the message stays deferred, and dies
// of too many deliveries.
// Source: servicebus-wire.md section 10, "Deferred".
func TestDeferredDiesToo(t *testing.T) {
	b := newBench(t)
	b.send("a")
	b.settle(b.queue, Defer, b.receive(b.queue))
	for range 3 {
		if _, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 1); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Minute)
	}
	if m := b.wantDead(dead(b.queue), causeDeliveries(3))[0]; m.Broker.State != message.Active {
		t.Errorf("in the dead-letter queue it is %v", m.Broker.State)
	}
	b.receive(dead(b.queue))
}

// Received and deleted by number, a deferred message is gone.
// Source: servicebus-wire.md section 10, "Deferred".
func TestReceiveAndDeleteDeferred(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	b.settle(b.queue, Defer, b.receive(b.queue))
	got, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{Delete: true}, 1)
	if err != nil || string(got[0].Body.Bytes()) != "a" || !got[0].Broker.LockToken.IsZero() {
		t.Errorf("received %v, %v", got, err)
	}
	b.crash()
	b.wantContents(b.queue, "b/0")
}

// A deferred message can be dead-lettered and deferred ones do not stand in each other's way.
// Source: servicebus-wire.md section 10, "Deferred".
func TestDeadLetterDeferred(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	b.ok(b.e.SettleBySequence(b.queue, Outcome{Action: Defer}, 1, 2))
	got, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 2, 1)
	if err != nil || len(got) != 2 || string(got[0].Body.Bytes()) != "b" {
		t.Fatal(got, err)
	}
	b.ok(b.e.Settle(b.queue, Outcome{Action: Bury, Reason: "r"}, got[0].Broker.LockToken))
	b.wantContents(b.queue, "a/0")
	b.wantDead(dead(b.queue), cause{"r", ""})
}

// A peek shows every state in the order of the numbers, shows no token, and neither locks nor
// counts.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-browsing
func TestPeekShowsEverything(t *testing.T) {
	b := newBench(t)
	b.send("locked", "deferred", "free")
	later := says("scheduled")
	later.ScheduledEnqueueTime = new(b.now.Add(time.Hour))
	b.post("orders", later)
	b.receive(b.queue)
	b.ok(b.e.SettleBySequence(b.queue, Outcome{Action: Defer}, 2))
	for range 3 {
		b.wantContents(b.queue, "locked/0", "deferred/0", "free/0", "scheduled/0")
	}
	var states []message.State
	for _, m := range b.peek(b.queue) {
		states = append(states, m.Broker.State)
		if !m.Broker.LockToken.IsZero() {
			t.Errorf("the token of %s is shown", m.Body.Bytes())
		}
	}
	if want := []message.State{message.Active, message.Deferred, message.Active, message.Scheduled}; !slices.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
	if page, err := b.e.Peek(b.queue, PeekOptions{From: 5, Max: 10}); err != nil || len(page) != 0 {
		t.Errorf("beyond the last: %v, %v", page, err)
	}
	if m := b.receive(b.queue); string(m.Body.Bytes()) != "free" {
		t.Errorf("received %s after the peeks", m.Body.Bytes())
	}
}
