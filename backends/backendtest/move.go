package backendtest

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

func moveCases() []testCase {
	return []testCase{
		{"move/missing-source", moveMissingSource},
		{"move/unedited", moveUnedited},
		{"move/edited", moveEdited},
		{"move/body-kinds", moveBodyKinds},
		{"move/keep", moveKeep},
		{"move/within-a-queue", moveWithin},
		{"move/missing-destination", moveMissingDestination},
		{"move/locked", moveLocked},
		{"move/refused", moveRefused},
		{"move/batch-by-index", moveBatch},
		{"move/deferred-and-scheduled", moveStates},
		{"move/later", moveLater},
		{"move/once", moveOnce},
	}
}

// move moves what must be movable.
func (f *fixture) move(from backends.EntityID, moves ...backends.Move) {
	f.Helper()
	if err := capability[backends.Mover](f).Move(f.ctx, from, moves); err != nil {
		f.Fatalf("move: %v", err)
	}
}

// deadLetter makes one dead letter that has failed once before, and returns it as received.
func (f *fixture) deadLetter(id backends.EntityID, m *message.Message) (dlq backends.EntityID, got *message.Message) {
	f.Helper()
	f.send(id, m)
	s := f.lease(id, backends.LeaseOptions{})
	s.settle(abandon, s.next())
	s.release()
	s = f.lease(id, backends.LeaseOptions{})
	f.bury(id, s, backends.Outcome{Action: backends.DeadLetter, Reason: "Tested", Description: "for a move"}, s.next())
	s.release()
	dlq = f.entity(id).DeadLetters
	s = f.lease(dlq, backends.LeaseOptions{})
	got = s.next()
	s.release()
	return dlq, got
}

func moveMissingSource(f *fixture) {
	m := capability[backends.Mover](f)
	id := f.queue()
	moves := []backends.Move{{Seq: noSuchSequence, To: id, As: text("a")}}
	f.wantCode("move from nowhere", m.Move(f.ctx, missing, moves), backends.NotFound)
	f.wantItems("move of what is not there", m.Move(f.ctx, id, moves), map[int]backends.Code{0: backends.NotFound})
	f.holds(id)
}

// moveUnedited is the plain resubmit: from the dead-letter queue back to its entity.
func moveUnedited(f *fixture) {
	capability[backends.Mover](f)
	id := f.queue()
	highest := f.sent(id, text("first"))[0]
	f.drain(id)
	sent := richMessage()
	dlq, letter := f.deadLetter(id, sent)
	highest = max(highest, letter.Broker.SequenceNumber)
	as := letter.Clone()
	as.Properties.Delete(message.DeadLetterReasonProperty)
	as.Properties.Delete(message.DeadLetterDescriptionProperty)
	f.h.Advance(f, time.Hour)
	f.move(dlq, backends.Move{Seq: letter.Broker.SequenceNumber, To: id, As: as})
	f.holds(dlq)
	s := f.lease(id, backends.LeaseOptions{})
	got := s.next()
	s.end("it was moved once")
	if d := diff(sent, got); d != nil {
		f.Errorf("moved unedited, it differs from what was sent in %v", d)
	}
	b := got.Broker
	f.wantCount(got, 1, 0)
	if b.SequenceNumber <= highest || !b.EnqueuedTime.After(letter.Broker.EnqueuedTime) {
		f.Errorf("moved, it has kept what the old place knew of it: %+v, before %+v", b, letter.Broker)
	}
}

func moveEdited(f *fixture) {
	capability[backends.Mover](f)
	from, to := f.queue(), f.queue()
	dlq, letter := f.deadLetter(from, richMessage())
	as := letter.Clone()
	as.Body = message.DataBody([]byte("corrected"))
	as.Subject = new("Corrected")
	as.Properties = message.Properties{{Name: "attempt", Value: message.Int(4)}}
	as.ID = message.UUID{1}
	f.move(dlq, backends.Move{Seq: letter.Broker.SequenceNumber, To: to, As: as})
	f.holds(dlq)
	f.holds(from)
	s := f.lease(to, backends.LeaseOptions{})
	if d := diff(as, s.next()); d != nil {
		f.Errorf("moved and edited, it differs from the edit in %v", d)
	}
	s.end("it was moved once")
}

func moveBodyKinds(f *fixture) {
	capability[backends.Mover](f)
	from, to := f.queue(), f.queue()
	for _, body := range []message.Body{
		{},
		{Kind: message.Data, Sections: [][]byte{{}}},
		{Kind: message.Data, Sections: [][]byte{[]byte("\xff\x00"), {}, bytes.Repeat([]byte("z"), 100_000)}},
		{Kind: message.ValueBody, Sections: [][]byte{{0x40}}},
		{Kind: message.Sequence, Sections: [][]byte{{0x45}, {0x45}}},
	} {
		sent := &message.Message{ID: message.String("a"), Body: body}
		seq := f.sent(from, sent)[0]
		f.move(from, backends.Move{Seq: seq, To: to, As: sent})
		f.holds(from)
		if got := f.drain(to); len(got) != 1 || diff(sent, got[0]) != nil {
			f.Errorf("a %v body of %d sections has not been moved unchanged", body.Kind, len(body.Sections))
		}
	}
	// The same bytes in another section are another body.
	seq := f.sent(from, &message.Message{Body: message.DataBody([]byte("ab"))})[0]
	as := &message.Message{Body: message.Body{Kind: message.Data, Sections: [][]byte{[]byte("a"), []byte("b")}}}
	f.move(from, backends.Move{Seq: seq, To: to, As: as})
	if got := f.drain(to); len(got) != 1 || diff(as, got[0]) != nil {
		f.Errorf("a body that was edited into two sections has not come through")
	}
}

func moveKeep(f *fixture) {
	capability[backends.Mover](f)
	from, to := f.queue(), f.queue()
	dlq, letter := f.deadLetter(from, richMessage())
	f.move(dlq, backends.Move{Seq: letter.Broker.SequenceNumber, To: to, As: text("copy"), Keep: true})
	f.holds(to, "copy")
	s := f.lease(dlq, backends.LeaseOptions{})
	kept := s.next()
	if d := message.Diff(letter, kept); d != nil || kept.Broker.SequenceNumber != letter.Broker.SequenceNumber {
		f.Errorf("copied, the source has changed in %v", d)
	}
	s.end("the source is there once")
}

func moveWithin(f *fixture) {
	capability[backends.Mover](f)
	id := f.queue()
	seqs := f.sent(id, texts("a", "b")...)
	f.move(id, backends.Move{Seq: seqs[0], To: id, As: text("a")})
	got := f.drain(id)
	if names := bodies(got); !slices.Equal(names, []string{"b", "a"}) {
		f.Errorf("a was moved behind b, received %s", list(names))
	}
}

func moveMissingDestination(f *fixture) {
	m := capability[backends.Mover](f)
	id := f.queue()
	dlq, letter := f.deadLetter(id, richMessage())
	for _, keep := range []bool{false, true} {
		err := m.Move(f.ctx, dlq, []backends.Move{{Seq: letter.Broker.SequenceNumber, To: missing, As: text("a"), Keep: keep}})
		f.wantItems("move to nowhere", err, map[int]backends.Code{0: backends.NotFound})
	}
	f.unchanged(dlq, letter)
}

// unchanged checks that the entity holds that one message as it was, and ends it.
func (f *fixture) unchanged(id backends.EntityID, before *message.Message) {
	f.Helper()
	s := f.lease(id, backends.LeaseOptions{})
	got := s.next()
	count := before.Broker.DeliveryCount
	if f.h.CountsReceives {
		count++ // this receive
	}
	if d := message.Diff(before, got); d != nil || got.Broker.SequenceNumber != before.Broker.SequenceNumber ||
		got.Broker.DeliveryCount != count {
		f.Errorf("%s was to be left alone and has changed: %v, %+v, before %+v", describe(before), d, got.Broker, before.Broker)
	}
	s.end("it is there once")
	s.settle(complete, got)
	s.release()
}

func moveLocked(f *fixture) {
	m := capability[backends.Mover](f)
	from, to := f.queue(), f.queue()
	f.send(from, text("a"))
	s := f.lease(from, backends.LeaseOptions{})
	held := s.next()
	moves := []backends.Move{{Seq: held.Broker.SequenceNumber, To: to, As: text("a")}}
	f.wantItems("move of what another holds", m.Move(f.ctx, from, moves), map[int]backends.Code{0: backends.Locked})
	f.holds(to)
	s.settle(abandon, held) // its lock is untouched
	s.release()
	f.move(from, moves...)
	f.holds(from)
	f.holds(to, "a")
}

// moveRefused: what Send refuses, Move refuses, and leaves the source where it is.
func moveRefused(f *fixture) {
	m := capability[backends.Mover](f)
	from, to := f.queue(), f.h.Queue(f, QueueOptions{MaxBodyBytes: 4 << 10})
	limit := f.entity(to).Limits.MaxBodyBytes
	if limit == 0 {
		f.Skip("the entity declares no limit")
	}
	dlq, letter := f.deadLetter(from, richMessage())
	as := &message.Message{Body: message.DataBody(make([]byte, limit+1))}
	err := m.Move(f.ctx, dlq, []backends.Move{{Seq: letter.Broker.SequenceNumber, To: to, As: as}})
	f.wantItems("move of a body over the limit", err, map[int]backends.Code{0: backends.TooLarge})
	f.holds(to)
	f.unchanged(dlq, letter)
}

func moveBatch(f *fixture) {
	m := capability[backends.Mover](f)
	from, one, two := f.queue(), f.queue(), f.queue()
	seqs := f.sent(from, texts("a", "b", "c", "d", "e")...)
	s := f.lease(from, backends.LeaseOptions{Max: 1})
	held := s.next()
	err := m.Move(f.ctx, from, []backends.Move{
		{Seq: seqs[1], To: one, As: text("b")},
		{Seq: seqs[2], To: missing, As: text("c")},
		{Seq: held.Broker.SequenceNumber, To: one, As: text("a")},
		{Seq: noSuchSequence, To: two, As: text("x")},
		{Seq: seqs[3], To: two, As: text("d")},
		{Seq: seqs[1], To: two, As: text("b")}, // moved already
	})
	f.wantItems("move of six", err, map[int]backends.Code{
		1: backends.NotFound, 2: backends.Locked, 3: backends.NotFound, 5: backends.NotFound,
	})
	s.release()
	f.holds(one, "b")
	f.holds(two, "d")
	f.holds(from, "a", "c", "e")
}

// moveStates: a message is moved from where it lies, whatever its state there.
func moveStates(f *fixture) {
	capability[backends.Mover](f)
	capability[backends.Peeker](f)
	from, held := f.mixture()
	held.release()
	to := f.queue()
	for _, m := range f.peek(from, backends.PeekOptions{}) {
		as := m.Clone()
		as.ScheduledEnqueueTime = nil
		f.move(from, backends.Move{Seq: m.Broker.SequenceNumber, To: to, As: as})
	}
	if left := f.peek(from, backends.PeekOptions{}); len(left) != 0 {
		f.Errorf("all was moved, and %s are left", list(bodies(left)))
	}
	f.h.Advance(f, 2*farOff)
	f.holds(from)
	f.holds(to, "deferred", "scheduled", "locked", "active")
}

// moveLater: what is put at the destination may be scheduled, as in a send.
func moveLater(f *fixture) {
	capability[backends.Mover](f)
	from, to := f.queue(), f.queue()
	seq := f.sent(from, text("a"))[0]
	as := text("a")
	as.ScheduledEnqueueTime = new(f.h.Now().Add(10 * time.Minute))
	f.move(from, backends.Move{Seq: seq, To: to, As: as})
	f.holds(from)
	f.holds(to)
	f.h.Advance(f, 11*time.Minute)
	f.holds(to, "a")
}

// moveOnce: of many who move the same message, one does.
func moveOnce(f *fixture) {
	m := capability[backends.Mover](f)
	from, to := f.queue(), f.queue()
	seqs := f.sent(from, texts("a", "b", "c", "d")...)
	var moved atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var moves []backends.Move
			for _, seq := range seqs {
				moves = append(moves, backends.Move{Seq: seq, To: to, As: text("m")})
			}
			for _, err := range backends.ItemErrors(m.Move(f.ctx, from, moves), len(moves)) {
				if err == nil {
					moved.Add(1)
				} else if !backends.IsCode(err, backends.NotFound) {
					f.Errorf("move of what another moves: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if n := moved.Load(); n != 4 {
		f.Errorf("four messages were moved %d times", n)
	}
	f.holds(from)
	f.holds(to, "m", "m", "m", "m")
}
