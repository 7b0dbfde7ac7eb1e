package broker

import (
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// dueMessage is that a scheduled or delayed message becomes active.
type dueMessage struct {
	q   *queue
	seq uint64
}

// happen makes the message active. A scheduled one gets a new sequence number, because its
// place in the order is that of its activation; a delayed one of SQS keeps its place.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-sequencing#scheduled-messages
func (d dueMessage) happen(t *tx) error {
	q := d.q
	st, m, err := t.waiting(q, d.seq)
	if isDamage(err) {
		t.e.quarantine(q, d.seq, nil)
		return nil
	}
	if err != nil {
		return unavailable(err)
	}
	t.e.leave(q, d.seq, &st)
	if q.of.p.DelayKeepsPlace {
		st.State, st.Due = message.Active, time.Time{}
		t.free(q, d.seq, &st)
		return nil
	}
	if t.now.After(q.of.accessed) { // not due since before the engine was opened
		q.of.accessed = t.now
	}
	t.unlist(q, d.seq, &st)
	r := t.router(st.HeadSize + st.BodySize)
	a := &arrival{ent: q.of}
	r.arrivals = []*arrival{a}
	r.pass(q.of, copyOf{
		m: m, hops: st.Hops, expires: st.Expires, source: st.Source, overlay: st.Overlay,
		from: st.EnqueuedSeq, arrivals: []*arrival{a},
	})
	t.land(r, contentOf(&st), 0)
	return nil
}

// backlog are messages that lie in an entity which forwards: they came before it did, or were
// locked then.
type backlog struct{ ent *entity }

// happen forwards some of them.
func (b backlog) happen(t *tx) error {
	const some, pause = 1000, 10 * time.Millisecond
	q := b.ent.subs[Main]
	for range some {
		seq, ok := q.ready.Min()
		if !ok || b.ent.p.ForwardTo == "" || t.e.byID[b.ent.id] != b.ent {
			return nil
		}
		st, err := t.state(q.key(seq))
		var m *message.Message
		if err == nil {
			m, err = t.head(&st)
		}
		if isDamage(err) {
			t.e.quarantine(q, seq, nil)
			continue
		}
		if err != nil {
			return unavailable(err)
		}
		t.e.leave(q, seq, &st)
		t.unlist(q, seq, &st)
		r := t.router(st.HeadSize + st.BodySize)
		c := copyOf{
			m: m, hops: st.Hops, expires: st.Expires, source: st.Source, overlay: st.Overlay, from: seq,
			deliveries: st.Deliveries, enqueued: st.Enqueued, before: st.EnqueuedSeq,
		}
		r.forward(b.ent, b.ent.p.ForwardTo, c, seq)
		t.land(r, contentOf(&st), 0)
	}
	t.e.timers.add(t.now.Add(pause), b)
	return nil
}

// waiting reads a scheduled message; the head only where it goes on from here.
func (t *tx) waiting(q *queue, seq uint64) (store.State, *message.Message, error) {
	st, err := t.state(q.key(seq))
	if err != nil || q.of.kind != Topic && q.of.p.ForwardTo == "" {
		return st, &message.Message{SessionID: st.Session}, err
	}
	m, err := t.head(&st)
	return st, m, err
}

// sweep is that messages of a queue with a retention have reached their end.
type sweep struct{ q *queue }

// happen removes them, held or not, some at a time. A lock on one is lost.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
func (s sweep) happen(t *tx) error {
	const some = 1000
	q := s.q
	for range some {
		first, ok := q.expiring.Min()
		if !ok || !time.UnixMilli(first.at).Add(q.of.p.Retention).Before(t.now) {
			q.sweeper = nil
			t.e.timeSweep(q)
			return nil
		}
		st, err := t.state(q.key(first.seq))
		if err != nil && !isDamage(err) {
			return unavailable(err)
		}
		q.expiring.Delete(first)
		if err != nil {
			continue
		}
		if l := q.locked[first.seq]; l != nil {
			t.e.drop(l)
		} else {
			t.e.leave(q, first.seq, &st)
		}
		t.remove(q, first.seq, &st)
	}
	q.sweeper = t.e.timers.add(t.now, s)
	return nil
}

// expireReady dead-letters or removes what has expired in a queue, some of it at a time: the
// services do so only while somebody receives there. What it leaves, take finds.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration
func (t *tx) expireReady(q *queue) error {
	if q.of.p.Retention > 0 {
		return nil
	}
	const some = 1000
	for range some {
		first, ok := q.expiring.Min()
		if !ok || time.UnixMilli(first.at).After(t.now) {
			return nil
		}
		st, err := t.state(q.key(first.seq))
		if isDamage(err) {
			q.expiring.Delete(first)
			t.e.quarantine(q, first.seq, nil)
			continue
		}
		if err != nil {
			return unavailable(err)
		}
		t.expired(q, first.seq, &st)
	}
	return nil
}

// over reports whether the time to live of a free message is over. Dead letters and deferred
// messages have none.
func (q *queue) over(st *store.State, now time.Time) bool {
	return q.sub == Main && st.State == message.Active && q.of.p.Retention == 0 && !st.Expires.IsZero() && !st.Expires.After(now)
}

// expired ends a free message whose time to live is over.
func (t *tx) expired(q *queue, seq uint64, st *store.State) {
	t.e.leave(q, seq, st)
	if q.of.p.DeadLetterOnExpiration {
		t.bury(q, seq, st, causeExpired)
		return
	}
	t.remove(q, seq, st)
}

// bury moves a message that stands in no set to the dead-letter sub-queue of its entity, or
// to where that forwards its dead letters. In the sub-queue it keeps its sequence number, its
// enqueued time and its count, and expires no more.
func (t *tx) bury(q *queue, seq uint64, st *store.State, why cause) {
	ent := q.of
	st.Overlay = withReason(st.Overlay, why)
	if ent.p.ForwardDeadLettersTo != "" && q.sub == Main {
		if m, err := t.head(st); err == nil { // else it stays here, where it is shown as damaged
			t.unlist(q, seq, st)
			r := t.router(st.HeadSize + st.BodySize)
			c := copyOf{
				m: m, hops: st.Hops, expires: t.expires(m, time.Time{}), source: ent.name, buried: true, overlay: st.Overlay, from: seq,
				deliveries: st.Deliveries, enqueued: st.Enqueued, before: st.EnqueuedSeq,
			}
			r.forward(ent, ent.p.ForwardDeadLettersTo, c, seq)
			t.land(r, contentOf(st), 0)
			return
		}
	}
	t.unlist(q, seq, st)
	st.State, st.Expires, st.Due = message.Active, time.Time{}, time.Time{}
	st.Token, st.LockedUntil = message.UUID{}, time.Time{}
	t.list(ent.subs[DeadLetter], seq, st)
}
