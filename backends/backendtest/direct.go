package backendtest

import (
	"errors"
	"slices"

	"dlq/backends"
	"dlq/backends/message"
)

func directCases() []testCase {
	return []testCase{
		{"direct/missing-entity", directMissingEntity},
		{"direct/complete-any-state", directComplete},
		{"direct/dead-letter", directDeadLetter},
		{"direct/defer", directDefer},
		{"direct/abandon", directAbandon},
		{"direct/locked", directLocked},
		{"direct/batch-by-index", directBatch},
	}
}

// sent sends messages to an empty queue and returns their sequence numbers, in that order.
func (f *fixture) sent(id backends.EntityID, msgs ...*message.Message) []int64 {
	f.Helper()
	f.send(id, msgs...)
	s := f.lease(id, backends.LeaseOptions{})
	seqs := sequences(s.rest())
	s.release()
	if len(seqs) != len(msgs) {
		f.Fatalf("sent %d messages, received %d", len(msgs), len(seqs))
	}
	return seqs
}

func sequences(msgs []*message.Message) []int64 {
	seqs := make([]int64, len(msgs))
	for i, m := range msgs {
		seqs[i] = m.Broker.SequenceNumber
	}
	return seqs
}

func (f *fixture) settleDirect(id backends.EntityID, o backends.Outcome, seqs ...int64) {
	f.Helper()
	err := capability[backends.DirectSettler](f).SettleDirect(f.ctx, id, o, seqs...)
	if cannot(o.Action, err) {
		f.Skipf("the service cannot %v", o.Action)
	}
	if err != nil {
		f.Fatalf("%v directly: %v", o.Action, err)
	}
}

// cannot reports whether an error says that the service has no such outcome, which it may not
// have of these two.
func cannot(a backends.Action, err error) bool {
	return (a == backends.Defer || a == backends.DeadLetter) && errors.Is(err, errors.ErrUnsupported)
}

func directMissingEntity(f *fixture) {
	d := capability[backends.DirectSettler](f)
	f.wantCode("complete directly", d.SettleDirect(f.ctx, missing, complete, 1), backends.NotFound)
}

// directComplete takes its sequence numbers from a peek, as its users do.
func directComplete(f *fixture) {
	capability[backends.DirectSettler](f)
	capability[backends.Peeker](f)
	id, held := f.mixture()
	held.release()
	f.send(id, text("kept"))
	for _, m := range f.peek(id, backends.PeekOptions{}) {
		if string(m.Body.Bytes()) != "kept" {
			f.settleDirect(id, complete, m.Broker.SequenceNumber)
		}
	}
	if got := bodies(f.peek(id, backends.PeekOptions{})); !slices.Equal(got, []string{"kept"}) {
		f.Errorf("completed all but one, there are %s", list(got))
	}
	f.h.Advance(f, 2*farOff)
	f.holds(id, "kept")

	dlq := f.dead(id, texts("x", "y")...)
	s := f.lease(dlq, backends.LeaseOptions{})
	seqs := sequences(s.rest())
	s.release()
	f.settleDirect(dlq, complete, seqs...)
	f.holds(dlq)
	f.holds(id)
}

func directDeadLetter(f *fixture) {
	capability[backends.DirectSettler](f)
	id := f.queue()
	seqs := f.sent(id, texts("a", "b")...)
	f.settleDirect(id, backends.Outcome{
		Action: backends.DeadLetter, Reason: "Chosen", Description: "by hand",
		Set: []message.Attribute{{Name: "by", Value: message.String("us")}},
	}, seqs[0])
	f.holds(id, "b")
	got := f.drain(f.entity(id).DeadLetters)
	if len(got) != 1 || string(got[0].Body.Bytes()) != "a" {
		f.Fatalf("the dead letters are %s, want a", list(bodies(got)))
	}
	by, _ := got[0].Properties.Get("by")
	if got[0].DeadLetterReason() != "Chosen" || got[0].DeadLetterDescription() != "by hand" || by != message.String("us") {
		f.Errorf("the dead letter has the properties %v", got[0].Properties)
	}
}

func directDefer(f *fixture) {
	capability[backends.DirectSettler](f)
	id := f.queue()
	seqs := f.sent(id, texts("a", "b")...)
	f.settleDirect(id, backends.Outcome{Action: backends.Defer}, seqs[1])
	f.holds(id, "a")
	if n := f.entity(id).Counts.Deferred; n >= 0 && n != 1 {
		f.Errorf("the entity counts %d deferred messages, want 1", n)
	}
	f.settleDirect(id, complete, seqs[1])
	if n := f.entity(id).Counts.Deferred; n > 0 {
		f.Errorf("completed, and still counted as deferred")
	}
}

func directAbandon(f *fixture) {
	capability[backends.DirectSettler](f)
	id := f.queue()
	seqs := f.sent(id, texts("a", "b")...)
	o := abandon
	o.Set = []message.Attribute{{Name: "seen", Value: message.Bool(true)}}
	f.settleDirect(id, o, seqs[0])
	msgs := f.drain(id)
	if len(msgs) != 2 {
		f.Errorf("one of two messages was abandoned, and there are %d", len(msgs))
	}
	for _, m := range msgs {
		_, seen := m.Properties.Get("seen")
		if seen != (string(m.Body.Bytes()) == "a") {
			f.Errorf("%s has the property: %v", describe(m), seen)
		}
	}
}

func directLocked(f *fixture) {
	d := capability[backends.DirectSettler](f)
	id := f.queue()
	f.send(id, text("a"))
	s := f.lease(id, backends.LeaseOptions{})
	m := s.next()
	for _, a := range []backends.Action{backends.Complete, backends.Abandon, backends.Defer, backends.DeadLetter} {
		err := d.SettleDirect(f.ctx, id, backends.Outcome{Action: a}, m.Broker.SequenceNumber)
		if cannot(a, err) {
			continue
		}
		f.wantItems(a.String()+" directly while another holds it", err, map[int]backends.Code{0: backends.Locked})
	}
	s.settle(complete, m) // the lock is untouched
	f.wantItems("complete directly what is gone", d.SettleDirect(f.ctx, id, complete, m.Broker.SequenceNumber),
		map[int]backends.Code{0: backends.NotFound})
}

func directBatch(f *fixture) {
	d := capability[backends.DirectSettler](f)
	id := f.queue()
	seqs := f.sent(id, texts("a", "b", "c", "d")...)
	s := f.lease(id, backends.LeaseOptions{})
	held := s.next()
	err := d.SettleDirect(f.ctx, id, complete, seqs[1], noSuchSequence, held.Broker.SequenceNumber, seqs[2], seqs[1])
	f.wantItems("complete of five directly", err,
		map[int]backends.Code{1: backends.NotFound, 2: backends.Locked, 4: backends.NotFound})
	s.release()
	f.holds(id, "a", "d")
}

func deferredCases() []testCase {
	return []testCase{
		{"deferred/missing", deferredMissing},
		{"deferred/exactly-these", deferredExactly},
		{"deferred/release", deferredRelease},
		{"deferred/competing", deferredCompeting},
	}
}

func deferredMissing(f *fixture) {
	r := capability[backends.DeferredReceiver](f)
	id := f.queue()
	f.wantCode("receive deferred from nowhere", f.firstDeferred(r, missing, 1), backends.NotFound)
	f.wantCode("receive deferred, no such message", f.firstDeferred(r, id, noSuchSequence), backends.NotFound)
	seqs := f.sent(id, text("a"))
	f.wantCode("receive deferred what is active", f.firstDeferred(r, id, seqs[0]), backends.NotFound)
	f.holds(id, "a")
}

func (f *fixture) firstDeferred(r backends.DeferredReceiver, id backends.EntityID, seqs ...int64) error {
	l, err := r.LeaseDeferred(f.ctx, id, seqs...)
	return f.firstError(l, err)
}

// leaseDeferred begins a lease over deferred messages, which must be there.
func (f *fixture) leaseDeferred(id backends.EntityID, seqs ...int64) *sweep {
	f.Helper()
	l, err := capability[backends.DeferredReceiver](f).LeaseDeferred(f.ctx, id, seqs...)
	if err != nil {
		f.Fatalf("receive deferred: %v", err)
	}
	return f.sweep(l)
}

func deferredExactly(f *fixture) {
	capability[backends.DeferredReceiver](f)
	id := f.queue()
	one, two, three := f.deferred(id, text("one")), f.deferred(id, text("two")), f.deferred(id, text("three"))
	f.send(id, text("active"))
	s := f.leaseDeferred(id, one, three)
	msgs := s.rest()
	got := bodies(msgs)
	slices.Sort(got)
	if !slices.Equal(got, []string{"one", "three"}) {
		f.Fatalf("asked for one and three, got %s", list(got))
	}
	s.settle(complete, msgs...)
	s.release()
	s = f.leaseDeferred(id, two)
	s.settle(backends.Outcome{Action: backends.DeadLetter, Reason: "Late"}, s.next())
	s.release()
	f.holds(f.entity(id).DeadLetters, "two")
	f.holds(id, "active")
	if n := f.entity(id).Counts.Deferred; n > 0 {
		f.Errorf("%d deferred messages are counted after all were settled", n)
	}
}

// deferredRelease: what is let go is deferred as before, and can be had again.
func deferredRelease(f *fixture) {
	capability[backends.DeferredReceiver](f)
	id := f.queue()
	seq := f.deferred(id, text("a"))
	for range 3 {
		s := f.leaseDeferred(id, seq)
		if m := s.next(); string(m.Body.Bytes()) != "a" || m.Broker.State != message.Deferred {
			f.Errorf("received %s in the state %v", describe(m), m.Broker.State)
		}
		s.release()
		f.holds(id)
	}
}

func deferredCompeting(f *fixture) {
	r := capability[backends.DeferredReceiver](f)
	id := f.queue()
	seq := f.deferred(id, text("a"))
	s := f.leaseDeferred(id, seq)
	m := s.next()
	l, err := r.LeaseDeferred(f.ctx, id, seq)
	if err == nil {
		var other *message.Message
		if other, err = f.sweep(l).Next(f.ctx); err == nil {
			f.Errorf("%s is handed out to two", describe(other))
		}
	}
	s.settle(complete, m)
	f.wantCode("complete a deferred message twice", s.Settle(f.ctx, complete, m), backends.LockLost)
}
