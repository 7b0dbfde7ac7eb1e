package broker

import (
	"time"

	"github.com/tidwall/btree"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// queue is the index of one sub-queue: which messages there are and which can be
// delivered. It holds sequence numbers, not messages.
type queue struct {
	of  *entity
	sub Sub

	ready     btree.Set[uint64]   // active and free, in the order of delivery
	deferred  btree.Set[uint64]   // deferred and free
	locked    map[uint64]*lock    // active or deferred, and held
	scheduled map[uint64]*timer   // waiting to become active
	damaged   map[uint64]struct{} // cannot be read: shown, and never delivered
	heldAside int64               // how many of locked are deferred

	groups map[string]*group         // sessions or message groups; nil: it has none
	turns  btree.Map[uint64, *group] // the groups that have something to deliver, by their turn
	turn   uint64                    // the last turn given
	firsts btree.Set[uint64]         // of each message group that has a turn, what comes first

	expiring btree.BTreeG[expiry] // what time removes, the earliest first
	sweeper  *timer               // of a queue with a retention: when the first expires

	waiters []*Waiter // the longest waiting first
	engine  *Engine   // of the waiters
	stirred bool      // there may be something for them
	offered int       // so many more than when they were last woken
}

func newQueue(of *entity, sub Sub) *queue {
	q := &queue{
		of: of, sub: sub, locked: map[uint64]*lock{}, scheduled: map[uint64]*timer{}, damaged: map[uint64]struct{}{},
		expiring: *btree.NewBTreeGOptions(expiry.before, btree.Options{NoLocks: true}),
	}
	if sub == Main && (of.p.RequiresSession || of.p.Groups) {
		q.groups = map[string]*group{}
	}
	return q
}

func (q *queue) key(seq uint64) store.Key {
	return store.Key{Queue: q.of.id, Sub: uint8(q.sub), Seq: seq}
}

// active counts the active messages, free or locked, and those that cannot be read.
func (q *queue) active() int64 {
	return int64(q.ready.Len()) + int64(len(q.locked)+len(q.damaged)) - q.heldAside
}

// deferredCount counts the deferred messages, free or locked.
func (q *queue) deferredCount() int64 { return int64(q.deferred.Len()) + q.heldAside }

// all counts every message here.
func (q *queue) all() int64 { return q.active() + q.deferredCount() + int64(len(q.scheduled)) }

// lowest returns a sequence number that no message here lies below: where a search begins
// that is to pass over nothing that is gone.
func (q *queue) lowest() uint64 {
	low := q.of.next
	for _, set := range [...]*btree.Set[uint64]{&q.ready, &q.deferred} {
		if seq, ok := set.Min(); ok {
			low = min(low, seq)
		}
	}
	if len(q.locked)+len(q.scheduled)+len(q.damaged) > 1000 {
		return 0 // finding it would cost more than it saves
	}
	for seq := range q.locked {
		low = min(low, seq)
	}
	for seq := range q.scheduled {
		low = min(low, seq)
	}
	for seq := range q.damaged {
		low = min(low, seq)
	}
	return low
}

// has reports whether the message is here, in whatever state.
func (q *queue) has(seq uint64) bool {
	_, isLocked := q.locked[seq]
	_, isScheduled := q.scheduled[seq]
	return isLocked || isScheduled || q.ready.Contains(seq) || q.deferred.Contains(seq)
}

// enter puts a message that is in no set where its state says, free.
func (e *Engine) enter(q *queue, seq uint64, st *store.State) {
	switch st.State {
	case message.Deferred:
		q.deferred.Insert(seq)
	case message.Scheduled:
		q.scheduled[seq] = e.timers.add(st.Due, dueMessage{q, seq})
		if g := q.group(st); g != nil && q.of.p.Groups {
			g.hidden.Insert(seq) // a delayed message holds back those behind it
			q.turnOf(g)
		}
	default:
		q.ready.Insert(seq)
		if g := q.group(st); g == nil {
			q.offer()
		} else {
			g.ready.Insert(seq)
			q.stir() // for who receives from this session
			q.turnOf(g)
		}
		if q.sub == Main && q.of.p.ForwardTo != "" {
			e.timers.add(e.latest, backlog{q.of})
		}
	}
	e.expire(q, seq, st)
}

// leave takes a message that nobody holds out of every set. st is what enter was given.
func (e *Engine) leave(q *queue, seq uint64, st *store.State) {
	q.ready.Delete(seq)
	q.deferred.Delete(seq)
	if t := q.scheduled[seq]; t != nil {
		e.timers.remove(t)
		delete(q.scheduled, seq)
	}
	if g := q.group(st); g != nil {
		g.ready.Delete(seq)
		g.hidden.Delete(seq)
		q.turnOf(g)
	}
	q.expiring.Delete(expiry{q.expiresAt(st), seq})
}

// expiry is a message that time removes.
type expiry struct {
	at  int64 // milliseconds since the epoch
	seq uint64
}

func (a expiry) before(b expiry) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// expiresAt is the moment that a message is filed under: the end of its life, or in a queue
// with a retention, which can be changed, its beginning.
func (q *queue) expiresAt(st *store.State) int64 {
	if q.of.p.Retention > 0 {
		return st.Enqueued.UnixMilli()
	}
	return st.Expires.UnixMilli()
}

// expire files a free message under the end of its life, if it has one. Dead letters and
// deferred messages have none; with a retention every message has one, held or not.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration
func (e *Engine) expire(q *queue, seq uint64, st *store.State) {
	switch {
	case q.of.p.Retention > 0:
		q.expiring.Set(expiry{q.expiresAt(st), seq})
		e.timeSweep(q)
	case q.sub == Main && !st.Expires.IsZero() && (st.State == message.Active || e.sabotaged("ttl-deferred")):
		q.expiring.Set(expiry{q.expiresAt(st), seq})
		e.soonest(st.Expires)
	}
}

// timeSweep sets the timer of a queue with a retention to the end of its oldest message.
func (e *Engine) timeSweep(q *queue) {
	first, ok := q.expiring.Min()
	if !ok || q.of.p.Retention == 0 {
		return
	}
	at := time.UnixMilli(first.at).Add(q.of.p.Retention + time.Millisecond).UTC() // after it, not at it
	switch {
	case q.sweeper == nil:
		q.sweeper = e.timers.add(at, sweep{q})
	case at.Before(q.sweeper.at):
		e.timers.move(q.sweeper, at)
	}
}
