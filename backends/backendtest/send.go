package backendtest

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

func sendCases() []testCase {
	return []testCase{
		{"send/receive-complete", sendReceiveComplete},
		{"send/order", sendOrder},
		{"send/nothing", sendNothing},
		{"send/ignores-broker-part", sendIgnoresBroker},
		{"send/keeps-its-own-copy", sendKeepsOwnCopy},
		{"send/body-limit", sendBodyLimit},
		{"send/missing-entity", sendMissingEntity},
	}
}

// missing is the name of an entity that no harness makes.
var missing = backends.EntityID{Name: "no-such-entity"}

func sendReceiveComplete(f *fixture) {
	id := f.queue()
	before := f.h.Now()
	f.send(id, texts("a", "b", "c")...)
	s := f.lease(id, backends.LeaseOptions{})
	msgs := s.rest()
	got := bodies(msgs)
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "b", "c"}) {
		f.Fatalf("received %s, want what was sent: a, b, c", list(got))
	}
	seen := map[int64]bool{}
	for _, m := range msgs {
		b := m.Broker
		f.wantCount(m, 1, 0)
		if b.State != message.Active || b.BodyOmitted || b.BodySize != 1 {
			f.Errorf("%s has the broker part %+v", describe(m), b)
		}
		// A minute is for the difference between the clocks of a service and its tester.
		if d := b.EnqueuedTime.Sub(before); d < -time.Minute || d > time.Minute {
			f.Errorf("%s was enqueued at %v, sent at %v", describe(m), b.EnqueuedTime, before)
		}
		if seq := b.SequenceNumber; seq != 0 && seen[seq] {
			f.Errorf("%s has the sequence number of another", describe(m))
		}
		seen[b.SequenceNumber] = true
	}
	s.settle(complete, msgs...)
	s.release()
	f.holds(id)
	f.expire(id)
	f.holds(id)
}

// sendOrder holds for services that number their messages; others promise no order.
func sendOrder(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b", "c")...)
	f.send(id, texts("d")...)
	s := f.lease(id, backends.LeaseOptions{})
	msgs := s.rest()
	if len(msgs) > 0 && msgs[0].Broker.SequenceNumber == 0 {
		f.Skip("the service does not number its messages")
	}
	if got := bodies(msgs); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		f.Errorf("received %s, want the order in which they were sent", list(got))
	}
	if !slices.IsSortedFunc(msgs, bySequence) {
		f.Errorf("the sequence numbers do not ascend")
	}
	// What was let go takes its old place.
	s.settle(abandon, msgs[1])
	s.release()
	if got := bodies(f.drain(id)); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		f.Errorf("after a release, received %s, want the same order", list(got))
	}
}

func bySequence(a, b *message.Message) int {
	return cmp.Compare(a.Broker.SequenceNumber, b.Broker.SequenceNumber)
}

func sendNothing(f *fixture) {
	id := f.queue()
	if err := f.b.Send(f.ctx, id, nil); err != nil {
		f.Errorf("send of no messages: %v", err)
	}
	s := f.lease(id, backends.LeaseOptions{})
	if err := s.Settle(f.ctx, complete); err != nil {
		f.Errorf("settle of no messages: %v", err)
	}
	s.end("nothing was sent")
}

func sendIgnoresBroker(f *fixture) {
	id := f.queue()
	m := text("a")
	m.Broker = message.Broker{
		SequenceNumber:         1 << 40,
		EnqueuedSequenceNumber: 1 << 41,
		EnqueuedTime:           f.h.Now().Add(-1000 * time.Hour),
		ExpiresAt:              f.h.Now().Add(-time.Hour),
		DeliveryCount:          99,
		State:                  message.Deferred,
		LockToken:              message.UUID{1},
		LockedUntil:            f.h.Now().Add(time.Hour),
		DeadLetterSource:       "elsewhere",
		BodyOmitted:            true,
		BodySize:               77,
	}
	f.send(id, m)
	s := f.lease(id, backends.LeaseOptions{})
	got := s.next()
	sent, b := m.Broker, got.Broker
	if b.SequenceNumber == sent.SequenceNumber || b.EnqueuedSequenceNumber == sent.EnqueuedSequenceNumber ||
		b.EnqueuedTime.Equal(sent.EnqueuedTime) || b.ExpiresAt.Equal(sent.ExpiresAt) ||
		b.State != message.Active || b.LockToken == sent.LockToken || b.DeadLetterSource != "" ||
		b.BodyOmitted || b.BodySize != 1 {
		f.Errorf("the broker part of the sender has come through: %+v", b)
	}
	f.wantCount(got, 1, 0)
	s.settle(complete, got)
}

// sendKeepsOwnCopy: a caller may go on with its message, whose byte slices alone are shared.
func sendKeepsOwnCopy(f *fixture) {
	id := f.queue()
	m := text("a")
	m.Properties.Set("tier", message.String("gold"))
	before := m.Clone()
	f.send(id, m)
	if d := message.Diff(before, m); d != nil || m.Broker != before.Broker {
		f.Errorf("send has changed the message of its caller: %v", d)
	}
	m.Properties[0].Value = message.String("lead")
	m.Body.Sections[0] = []byte("b")
	s := f.lease(id, backends.LeaseOptions{})
	got := s.next()
	if d := diff(before, got); d != nil {
		f.Errorf("what the caller did after send has changed the message that was sent: %v", d)
	}
	s.settle(complete, got)
}

func sendBodyLimit(f *fixture) {
	id := f.h.Queue(f, QueueOptions{MaxBodyBytes: 4 << 10})
	limit := f.entity(id).Limits.MaxBodyBytes
	if limit == 0 {
		f.Skip("the entity declares no limit")
	}
	largest := &message.Message{Body: message.DataBody(bytes.Repeat([]byte("x"), int(limit)))}
	tooLarge := &message.Message{Body: message.DataBody(bytes.Repeat([]byte("x"), int(limit)+1))}
	f.send(id, largest)
	if msgs := f.drain(id); len(msgs) != 1 || diff(largest, msgs[0]) != nil {
		f.Fatalf("a body at the limit of %d bytes has not come through whole", limit)
	}
	f.wantCode("send one byte over the limit", f.b.Send(f.ctx, id, []*message.Message{tooLarge}), backends.TooLarge)
	f.holds(id)

	// In a batch: nothing is sent, so every message is named, and the fault has its index.
	batch := []*message.Message{text("a"), tooLarge, text("b")}
	errs := backends.ItemErrors(f.b.Send(f.ctx, id, batch), len(batch))
	for i, err := range errs {
		if err == nil {
			f.Errorf("index %d of a batch with one too large: no error, though nothing may be sent", i)
		} else if backends.IsCode(err, backends.TooLarge) != (i == 1) {
			f.Errorf("index %d of a batch in which 1 is too large: %v", i, err)
		}
	}
	f.holds(id)
}

func sendMissingEntity(f *fixture) {
	f.wantCode("send", f.b.Send(f.ctx, missing, texts("a")), backends.NotFound)
	err := backends.Batch(backends.ItemErrors(f.b.Send(f.ctx, missing, texts("a", "b")), 2))
	f.wantItems("send of two", err, map[int]backends.Code{0: backends.NotFound, 1: backends.NotFound})
}
