package backendtest

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

func peekCases() []testCase {
	return []testCase{
		{"peek/missing-entity", peekMissingEntity},
		{"peek/all-states", peekAllStates},
		{"peek/from-and-max", peekFromMax},
		{"peek/no-body", peekNoBody},
		{"peek/whole-message", peekWholeMessage},
		{"peek/no-side-effects", peekNoSideEffects},
		{"peek/dead-letters", peekDeadLetters},
		{"peek/in-the-loop", peekInTheLoop},
	}
}

// noSuchSequence is a number that no message has.
const noSuchSequence = 1 << 50

// farOff is when what is scheduled comes due: no case but its own lets as much time pass.
const farOff = 1000 * time.Hour

// peek returns what a peek shows.
func (f *fixture) peek(id backends.EntityID, opts backends.PeekOptions) []*message.Message {
	f.Helper()
	var msgs []*message.Message
	for m, err := range capability[backends.Peeker](f).Peek(f.ctx, id, opts) {
		if err != nil {
			f.Fatalf("peek %v: %v", id, err)
		}
		msgs = append(msgs, m)
	}
	return msgs
}

func peekMissingEntity(f *fixture) {
	p := capability[backends.Peeker](f)
	for _, id := range []backends.EntityID{missing, missing.DeadLetters()} {
		yields := 0
		for m, err := range p.Peek(f.ctx, id, backends.PeekOptions{}) {
			yields++
			f.wantCode("peek", err, backends.NotFound)
			if m != nil {
				f.Errorf("the error comes with %s", describe(m))
			}
		}
		if yields != 1 {
			f.Errorf("peek at a missing entity yields %d times, want once", yields)
		}
	}
}

// mixture makes a queue that holds a message in every state, and returns the sweep that
// holds the locked one.
func (f *fixture) mixture() (backends.EntityID, *sweep) {
	f.Helper()
	id := f.queue()
	f.deferred(id, text("deferred"))
	later := text("scheduled")
	later.ScheduledEnqueueTime = new(f.h.Now().Add(farOff))
	f.send(id, text("locked"), later, text("active"))
	s := f.lease(id, backends.LeaseOptions{Max: 1})
	if got := s.next(); string(got.Body.Bytes()) != "locked" {
		f.Fatalf("received %s first", describe(got))
	}
	return id, s
}

func peekAllStates(f *fixture) {
	capability[backends.Peeker](f)
	id, _ := f.mixture()
	msgs := f.peek(id, backends.PeekOptions{})
	if !slices.IsSortedFunc(msgs, bySequence) {
		f.Errorf("the messages do not come in the order of their sequence numbers")
	}
	states := map[string]message.State{}
	for _, m := range msgs {
		states[string(m.Body.Bytes())] = m.Broker.State
		if !m.Broker.LockToken.IsZero() {
			f.Errorf("%s shows a lock token to one who holds no lock", describe(m))
		}
	}
	want := map[string]message.State{"deferred": message.Deferred, "locked": message.Active, "scheduled": message.Scheduled, "active": message.Active}
	for body, state := range want {
		if got, ok := states[body]; !ok || got != state {
			f.Errorf("the %s message: shown %v, in the state %v, want %v", body, ok, got, state)
		}
	}
	if len(msgs) != len(want) {
		f.Errorf("peek shows %d messages, want %d", len(msgs), len(want))
	}
}

func peekFromMax(f *fixture) {
	capability[backends.Peeker](f)
	id := f.queue()
	f.send(id, texts("a", "b", "c", "d", "e")...)
	var seqs []int64
	for _, m := range f.peek(id, backends.PeekOptions{}) {
		seqs = append(seqs, m.Broker.SequenceNumber)
	}
	if len(seqs) != 5 {
		f.Fatalf("peek shows %d messages, want 5", len(seqs))
	}
	for _, c := range []struct {
		opts backends.PeekOptions
		want []string
	}{
		{backends.PeekOptions{From: seqs[2]}, []string{"c", "d", "e"}},
		{backends.PeekOptions{From: seqs[2] + 1}, []string{"d", "e"}},
		{backends.PeekOptions{From: seqs[0] - 1}, []string{"a", "b", "c", "d", "e"}},
		{backends.PeekOptions{From: seqs[4] + 1}, []string{}},
		{backends.PeekOptions{Max: 2}, []string{"a", "b"}},
		{backends.PeekOptions{Max: 5}, []string{"a", "b", "c", "d", "e"}},
		{backends.PeekOptions{From: seqs[1], Max: 3}, []string{"b", "c", "d"}},
	} {
		if got := bodies(f.peek(id, c.opts)); !slices.Equal(got, c.want) {
			f.Errorf("peek with %+v shows %s, want %s", c.opts, list(got), list(c.want))
		}
	}
	// More than any page holds.
	f.drain(id)
	const many = 700
	for range many / 100 {
		f.send(id, texts(slices.Repeat([]string{"x"}, 100)...)...)
	}
	if n := len(f.peek(id, backends.PeekOptions{NoBody: true})); n != many {
		f.Errorf("peek shows %d of %d messages", n, many)
	}
}

func peekNoBody(f *fixture) {
	capability[backends.Peeker](f)
	id := f.queue()
	body := bytes.Repeat([]byte("x"), 5000)
	m := richMessage()
	m.Body = message.DataBody(body)
	f.send(id, m)
	bare := m.Clone()
	bare.Body = message.Body{}
	got := f.first(f.peek(id, backends.PeekOptions{NoBody: true}))
	if !got.Broker.BodyOmitted || got.Body.Len() != 0 || got.Broker.BodySize != int64(len(body)) {
		f.Errorf("without its body: omitted %v, %d bytes, size %d", got.Broker.BodyOmitted, got.Body.Len(), got.Broker.BodySize)
	}
	if d := diff(bare, got); d != nil {
		f.Errorf("without the body these differ too: %v", d)
	}
}

func peekWholeMessage(f *fixture) {
	capability[backends.Peeker](f)
	id := f.queue()
	m := richMessage()
	m.Body = message.DataBody(bytes.Repeat([]byte("\x00\xff"), 20_000))
	f.send(id, m)
	got := f.first(f.peek(id, backends.PeekOptions{}))
	if d := diff(m, got); d != nil {
		f.Errorf("what is shown differs from what was sent: %v", d)
	}
	if got.Broker.BodyOmitted || got.Broker.BodySize != int64(m.Body.Len()) {
		f.Errorf("omitted %v, size %d, want the whole body of %d", got.Broker.BodyOmitted, got.Broker.BodySize, m.Body.Len())
	}
}

func peekNoSideEffects(f *fixture) {
	capability[backends.Peeker](f)
	id, held := f.mixture()
	before := f.entity(id).Counts
	for range 2 * f.entity(id).Limits.MaxDeliveryCount {
		f.peek(id, backends.PeekOptions{})
		f.peek(id, backends.PeekOptions{Max: 1})
	}
	after := f.entity(id).Counts
	before.AsOf, after.AsOf = time.Time{}, time.Time{}
	if before != after {
		f.Errorf("peeking has changed the counts from %+v to %+v", before, after)
	}
	held.release()
	s := f.lease(id, backends.LeaseOptions{})
	msgs := s.rest()
	if got := bodies(msgs); !slices.Equal(got, []string{"locked", "active"}) {
		f.Errorf("after peeking, received %s", list(got))
	}
	for _, m := range msgs {
		if m.Broker.DeliveryCount != 0 {
			f.Errorf("%s was peeked at, and counts %d failed deliveries", describe(m), m.Broker.DeliveryCount)
		}
	}
}

func peekDeadLetters(f *fixture) {
	capability[backends.Peeker](f)
	id := f.queue()
	dlq := f.dead(id, texts("a", "b")...)
	if got := bodies(f.peek(dlq, backends.PeekOptions{})); !slices.Equal(got, []string{"a", "b"}) {
		f.Errorf("the dead-letter queue shows %s", list(got))
	}
	if got := f.peek(id, backends.PeekOptions{}); len(got) != 0 {
		f.Errorf("dead letters are shown among the living: %s", list(bodies(got)))
	}
}

// peekInTheLoop: the body of the loop may call the backend, and may break out.
func peekInTheLoop(f *fixture) {
	p := capability[backends.Peeker](f)
	id := f.queue()
	f.send(id, texts("a", "b", "c")...)
	err := f.promptly("a peek with calls in its loop", func() error {
		for _, err := range p.Peek(f.ctx, id, backends.PeekOptions{}) {
			if err != nil {
				return err
			}
			return f.b.Send(f.ctx, id, texts("d"))
		}
		return errors.New("nothing is shown")
	})
	if err != nil {
		f.Errorf("a peek with calls in its loop: %v", err)
	}
	f.holds(id, "a", "b", "c", "d")
}

func scheduleCases() []testCase {
	return []testCase{{"schedule/until-due", scheduleUntilDue}}
}

func scheduleUntilDue(f *fixture) {
	id := f.queue()
	later := text("later")
	later.ScheduledEnqueueTime = new(f.h.Now().Add(10 * time.Minute).UTC().Truncate(time.Millisecond))
	past := text("past")
	past.ScheduledEnqueueTime = new(f.h.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond))
	err := f.b.Send(f.ctx, id, []*message.Message{later})
	if backends.IsCode(err, backends.NotCarried) {
		f.Skip("the service cannot schedule")
	}
	if err != nil {
		f.Fatalf("send: %v", err)
	}
	f.send(id, past)
	f.holds(id, "past")
	f.h.Advance(f, 9*time.Minute)
	f.holds(id)
	c := f.entity(id).Counts
	if n := max(c.Scheduled, 0) + max(c.Delayed, 0); n != 1 && (c.Scheduled >= 0 || c.Delayed >= 0) {
		f.Errorf("the entity counts %d scheduled and delayed messages, want 1", n)
	}
	f.h.Advance(f, 2*time.Minute)
	got := f.drain(id)
	if len(got) != 1 {
		f.Fatalf("received %d messages when one was due", len(got))
	}
	if d := diff(later, got[0]); d != nil || got[0].Broker.State != message.Active {
		f.Errorf("when due it is %v, and differs from what was sent in %v", got[0].Broker.State, d)
	}
}
