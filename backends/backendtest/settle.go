package backendtest

import (
	"errors"
	"fmt"
	"strings"

	"dlq/backends"
	"dlq/backends/message"
)

func settleCases() []testCase {
	return []testCase{
		{"settle/complete", settleComplete},
		{"settle/twice", settleTwice},
		{"settle/batch-by-index", settleBatch},
		{"settle/not-ours", settleNotOurs},
		{"settle/abandon", settleAbandon},
		{"settle/abandon-too-often", settleAbandonTooOften},
		{"settle/sets-properties", settleSets},
		{"settle/defer", settleDefer},
	}
}

// settleComplete: gone for good, and gone alone.
func settleComplete(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b", "c")...)
	s := f.lease(id, backends.LeaseOptions{})
	for _, m := range s.rest() {
		if string(m.Body.Bytes()) == "b" {
			s.settle(complete, m)
		}
	}
	s.release()
	f.holds(id, "a", "c")
	f.expire(id)
	f.holds(id)
}

func settleTwice(f *fixture) {
	id := f.queue()
	f.send(id, text("a"))
	s := f.lease(id, backends.LeaseOptions{})
	m := s.next()
	s.settle(abandon, m)
	f.wantItems("complete after abandon", s.Settle(f.ctx, complete, m), map[int]backends.Code{0: backends.LockLost})
	f.wantItems("abandon after abandon", s.Settle(f.ctx, abandon, m), map[int]backends.Code{0: backends.LockLost})
	s.release()

	s = f.lease(id, backends.LeaseOptions{})
	m = s.next()
	f.wantCount(m, 2, 1)
	s.settle(complete, m)
	for _, o := range []backends.Outcome{complete, abandon} {
		f.wantItems(o.Action.String()+" after complete", s.Settle(f.ctx, o, m), map[int]backends.Code{0: backends.LockLost})
	}
	s.release()
	f.holds(id)
}

func settleBatch(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b", "c", "d")...)
	s := f.lease(id, backends.LeaseOptions{})
	msgs := s.rest()
	if len(msgs) != 4 {
		f.Fatalf("received %d messages, want 4", len(msgs))
	}
	s.settle(complete, msgs[1], msgs[3])
	f.wantItems("complete of four, 1 and 3 for the second time", s.Settle(f.ctx, complete, msgs...),
		map[int]backends.Code{1: backends.LockLost, 3: backends.LockLost})
	s.release()
	f.holds(id) // 0 and 2 are complete all the same
}

// settleNotOurs: a lease settles what its own Next returned, and nothing else.
func settleNotOurs(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b")...)
	one, two := f.lease(id, backends.LeaseOptions{}), f.lease(id, backends.LeaseOptions{})
	m := one.next()
	two.next()
	f.wantCode("complete what another lease holds", two.Settle(f.ctx, complete, m), backends.LockLost)
	two.release()
	one.release()
	f.holds(id, "a", "b")
}

func settleAbandon(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b")...)
	sweeper := f.lease(id, backends.LeaseOptions{})
	m := sweeper.next()
	name := string(m.Body.Bytes())
	sweeper.settle(abandon, m)
	s := f.lease(id, backends.LeaseOptions{}) // free at once, while the sweep goes on
	for _, got := range s.rest() {
		if string(got.Body.Bytes()) == name {
			f.wantCount(got, 2, 1)
		} else {
			f.wantCount(got, 1, 0)
		}
	}
	s.release()
	f.holds(id, "a", "b")
}

func settleAbandonTooOften(f *fixture) {
	id := f.queue()
	limit := f.entity(id).Limits.MaxDeliveryCount
	if limit == 0 {
		f.Skip("the entity declares no limit of deliveries")
	}
	f.send(id, text("a"))
	for i := range limit {
		s := f.lease(id, backends.LeaseOptions{})
		m := s.next()
		f.wantCount(m, uint32(i)+1, uint32(i))
		s.settle(abandon, m)
		s.release()
	}
	f.diedOfDeliveries(id, limit)
}

// diedOfDeliveries checks that the one message of id is a dead letter, and says why.
func (f *fixture) diedOfDeliveries(id backends.EntityID, deliveries int) {
	f.Helper()
	f.holds(id)
	s := f.lease(f.entity(id).DeadLetters, backends.LeaseOptions{})
	m := s.next()
	if string(m.Body.Bytes()) != "a" {
		f.Errorf("the dead letter is %s, want a", describe(m))
	}
	f.wantCount(m, uint32(deliveries)+1, uint32(deliveries))
	s.end("it is there once")
	if f.h.CountsReceives {
		return // such a service gives no reason
	}
	if got, want := m.DeadLetterReason(), "MaxDeliveryCountExceeded"; got != want {
		f.Errorf("the reason is %q, want %q", got, want)
	}
	want := fmt.Sprintf("Message could not be consumed after %d delivery attempts.", deliveries)
	if got := m.DeadLetterDescription(); got != want {
		f.Errorf("the description is %q, want %q", got, want)
	}
}

// settleSets: Set adds and replaces, and leaves the other properties alone.
func settleSets(f *fixture) {
	id := f.queue()
	m := text("a")
	m.Properties.Set("kept", message.Int(1))
	m.Properties.Set("replaced", message.Int(2))
	f.send(id, m)
	s := f.lease(id, backends.LeaseOptions{})
	got := s.next()
	o := abandon
	o.Set = []message.Attribute{{Name: "replaced", Value: message.Symbol("new")}, {Name: "added", Value: message.Long(3)}}
	f.canSettle(s, o, got)
	s.release()
	want := m.Clone()
	want.Properties.Set("replaced", message.Symbol("new"))
	want.Properties.Set("added", message.Long(3))
	s = f.lease(id, backends.LeaseOptions{})
	got = s.next()
	if d := diff(want, got); d != nil {
		f.Errorf("after an abandon that sets properties these differ: %v", d)
	}
	s.settle(complete, got)
}

// settleDefer: set aside, a message is met by no sweep, not after its lock either.
func settleDefer(f *fixture) {
	id := f.queue()
	f.deferred(id, text("a"))
	f.send(id, text("b"))
	f.holds(id, "b")
	f.expire(id)
	f.holds(id)
	if n := f.entity(id).Counts.Deferred; n != 1 && n >= 0 {
		f.Errorf("the entity counts %d deferred messages, want 1", n)
	}
}

func deadLetterCases() []testCase {
	return []testCase{
		{"deadletter/settle", deadLetterSettle},
		{"deadletter/texts", deadLetterTexts},
		{"deadletter/lease", deadLetterLease},
		{"deadletter/never-leaves-by-failing", deadLetterFails},
		{"deadletter/not-again", deadLetterAgain},
	}
}

func deadLetterSettle(f *fixture) {
	id := f.queue()
	m := richMessage()
	f.send(id, m, text("b"))
	s := f.lease(id, backends.LeaseOptions{Want: func(got *message.Message) bool { return got.Subject != nil }})
	o := backends.Outcome{
		Action: backends.DeadLetter, Reason: "CardDeclined", Description: "the bank said no, twice",
		Set: []message.Attribute{{Name: "tries", Value: message.Ubyte(2)}},
	}
	f.canSettle(s, o, s.next())
	s.release()
	f.holds(id, "b")
	want := m.Clone()
	want.Properties.Set("tries", message.Ubyte(2))
	s = f.lease(f.entity(id).DeadLetters, backends.LeaseOptions{})
	got := s.next()
	if r, d := got.DeadLetterReason(), got.DeadLetterDescription(); r != o.Reason || d != o.Description {
		f.Errorf("the dead letter says %q and %q, want %q and %q", r, d, o.Reason, o.Description)
	}
	stripped := got.Clone()
	stripped.Properties.Delete(message.DeadLetterReasonProperty)
	stripped.Properties.Delete(message.DeadLetterDescriptionProperty)
	if d := diff(want, stripped); d != nil {
		f.Errorf("the dead letter differs from what was sent in %v", d)
	}
	s.end("there is one dead letter")
	s.settle(complete, got)
}

// deadLetterTexts: 4,096 characters, not bytes, are carried whole; more are refused.
func deadLetterTexts(f *fixture) {
	id := f.queue()
	f.send(id, text("a"))
	s := f.lease(id, backends.LeaseOptions{})
	m := s.next()
	longest := strings.Repeat("é", 4096)
	for _, o := range []backends.Outcome{
		{Action: backends.DeadLetter, Reason: longest + "x"},
		{Action: backends.DeadLetter, Description: longest + "x"},
	} {
		if err := s.Settle(f.ctx, o, m); !errors.Is(err, errors.ErrUnsupported) {
			f.wantCode("dead-letter with 4,097 characters", err, backends.Invalid)
		}
	}
	f.canSettle(s, backends.Outcome{Action: backends.DeadLetter, Reason: longest, Description: longest}, m)
	s.release()
	got := f.first(f.drain(f.entity(id).DeadLetters))
	if got.DeadLetterReason() != longest || got.DeadLetterDescription() != longest {
		f.Errorf("a reason and a description of 4,096 characters have not come through whole")
	}
}

func deadLetterLease(f *fixture) {
	id := f.queue()
	dlq := f.dead(id, texts("a", "b")...)
	f.holds(id)
	s := f.lease(dlq, backends.LeaseOptions{})
	s.settle(complete, s.next())
	s.release()
	if n := len(f.drain(dlq)); n != 1 {
		f.Errorf("%d dead letters are left, want 1", n)
	}
	f.holds(id)
}

// deadLetterFails: neither abandon nor expiry counts in a dead-letter queue, and no number
// of them removes anything.
func deadLetterFails(f *fixture) {
	id := f.queue()
	limit := f.entity(id).Limits.MaxDeliveryCount
	dlq := f.dead(id, text("a"))
	if dlq.Sub != backends.DeadLetterQueue {
		f.Skip("dead letters are in a queue like others")
	}
	for i := range 2*limit + 2 {
		s := f.lease(dlq, backends.LeaseOptions{})
		m := s.next()
		if m.Broker.DeliveryCount != 0 {
			f.Fatalf("after %d failures the count is %d, want 0", i, m.Broker.DeliveryCount)
		}
		if i%2 == 0 {
			s.settle(abandon, m)
			s.release()
		} else {
			f.expire(id)
		}
	}
	f.holds(dlq, "a")
}

// deadLetterAgain: a dead letter cannot be dead-lettered, and is not lost by trying.
func deadLetterAgain(f *fixture) {
	id := f.queue()
	dlq := f.dead(id, text("a"))
	if dlq.Sub != backends.DeadLetterQueue {
		f.Skip("dead letters are in a queue like others")
	}
	s := f.lease(dlq, backends.LeaseOptions{})
	m := s.next()
	if err := s.Settle(f.ctx, backends.Outcome{Action: backends.DeadLetter, Reason: "again"}, m); err != nil {
		s.settle(complete, m) // refused: still held
	} else {
		f.drain(dlq)
		f.Errorf("a dead letter was dead-lettered")
	}
	s.release()
	f.holds(dlq)
	f.holds(id)
}
