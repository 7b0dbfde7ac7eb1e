package broker

import (
	"container/heap"
	"errors"
	"fmt"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// lock is one held message. It belongs to its token, whoever shows it.
type lock struct {
	token message.UUID
	q     *queue
	seq   uint64
	state message.State // Active or Deferred: where it goes when it is free again
	until time.Time
	timer *timer
}

// hold puts a message under a lock in memory.
func (e *Engine) hold(q *queue, seq uint64, state message.State, token message.UUID, until time.Time) *lock {
	l := &lock{token: token, q: q, seq: seq, state: state, until: until}
	l.timer = e.timers.add(&timer{at: until, q: q, seq: seq, lock: l})
	e.forget(q, seq)
	q.locked[seq] = l
	if state == message.Deferred {
		q.heldAside++
	}
	e.locks[token] = l
	return l
}

// drop ends a lock in memory. The message is nowhere then, until the caller puts it somewhere.
func (e *Engine) drop(l *lock) {
	e.timers.remove(l.timer)
	delete(e.locks, l.token)
	delete(l.q.locked, l.seq)
	if l.state == message.Deferred {
		l.q.heldAside--
	}
}

// live returns the lock that a token stands for in this queue.
func (e *Engine) live(q *queue, token message.UUID) (*lock, error) {
	l := e.locks[token]
	if l == nil || l.q != q {
		return nil, ErrLockLost
	}
	return l, nil
}

// Renew makes locks last for the queue's lock duration from now. errs[i] is [ErrLockLost]
// for a lock that is gone.
func (e *Engine) Renew(a Address, tokens ...message.UUID) (errs []error, err error) {
	return e.each(a, tokens, func(t *tx, l *lock, st *store.State) error {
		l.until = t.now.Add(l.q.of.LockDuration)
		l.timer.at = l.until
		heap.Fix(&e.timers, l.timer.index)
		st.LockedUntil = l.until
		t.batch.PutState(l.q.key(l.seq), st)
		return nil
	}, (*tx).flush)
}

// Release lets go of locks at once and counts no delivery. A lock that is gone already is
// passed over.
func (e *Engine) Release(a Address, tokens ...message.UUID) error {
	_, err := e.each(a, tokens, func(t *tx, l *lock, st *store.State) error {
		e.drop(l)
		t.free(l.q, l.seq, st)
		return nil
	}, (*tx).flush)
	return err
}

// each runs f on every lock that is live, then ends the command with finish.
func (e *Engine) each(a Address, tokens []message.UUID, f func(*tx, *lock, *store.State) error, finish func(*tx) error) ([]error, error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(tokens))
	for i, token := range tokens {
		l, err := e.live(q, token)
		if err != nil {
			errs[i] = err
			continue
		}
		st, err := e.store.State(q.key(l.seq))
		if err != nil {
			errs[i] = fmt.Errorf("message %d: %w", l.seq, err)
			continue
		}
		errs[i] = f(t, l, &st)
	}
	return errs, finish(t)
}

// free makes a message deliverable again: an active one at its place in the order, a
// deferred one to those who ask for its number.
func (t *tx) free(q *queue, seq uint64, st *store.State) {
	st.Token, st.LockedUntil = message.UUID{}, time.Time{}
	q.free(st.State).Insert(seq)
	t.batch.PutState(q.key(seq), st)
}

// fail counts a failed delivery of a message that nobody holds any more. In a main queue
// the count that reaches the maximum moves the message in the same commit; in a dead-letter
// sub-queue nothing is counted.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#maximum-delivery-count
func (t *tx) fail(q *queue, seq uint64, st *store.State) {
	if q.sub == Main {
		st.Deliveries++
		if st.Deliveries >= q.of.MaxDeliveryCount {
			t.bury(q, seq, st, reasonMaxDeliveryCount, descriptionMaxDeliveryCount(q.of.MaxDeliveryCount))
			return
		}
	}
	t.free(q, seq, st)
}

// timer is something that happens at a time: a lock expires, or a scheduled message is due.
type timer struct {
	at    time.Time
	q     *queue
	seq   uint64
	lock  *lock // nil: the message becomes active
	index int   // in the heap
}

// timers is a heap with the earliest on top; equal times go by queue and number, so that
// one history has one outcome.
type timers []*timer

func (h timers) Len() int { return len(h) }
func (h timers) Less(i, j int) bool {
	a, b := h[i], h[j]
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	if a.q != b.q {
		return a.q.key(0).Queue < b.q.key(0).Queue || a.q.of == b.q.of && a.q.sub < b.q.sub
	}
	return a.seq < b.seq
}

func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timers) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timers) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}

func (h *timers) add(t *timer) *timer {
	heap.Push(h, t)
	return t
}

func (h *timers) remove(t *timer) { heap.Remove(h, t.index) }

// advance makes true what has happened since the last command, in the order of time.
func (t *tx) advance() error {
	e := t.e
	for len(e.timers) > 0 && !e.timers[0].at.After(t.now) {
		due := e.timers[0]
		st, err := e.store.State(due.q.key(due.seq))
		if err != nil && !isDamage(err) {
			return errors.Join(unavailable(err), t.write())
		}
		if due.lock != nil {
			e.drop(due.lock)
		} else {
			e.forget(due.q, due.seq)
		}
		switch {
		case err != nil:
			due.q.damaged[due.seq] = struct{}{}
		case due.lock != nil:
			t.fail(due.q, due.seq, &st)
		default:
			t.activate(due.q, due.seq, &st)
		}
	}
	return t.write()
}

// write writes what advance has gathered at once, because the command that follows reads
// states from the store.
func (t *tx) write() error {
	if t.batch.Empty() {
		return nil
	}
	err := t.e.store.ApplyLazily(t.batch)
	t.batch = t.e.store.NewBatch()
	return unavailable(err)
}

// isDamage tells a record that is broken or missing from a store that cannot be read.
func isDamage(err error) bool {
	return errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrNotFound) || errors.Is(err, message.ErrCorrupt)
}
