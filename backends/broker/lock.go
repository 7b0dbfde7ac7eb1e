package broker

import (
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
	st    store.State // as it is stored; its State says where it goes when it is free again
	since time.Time
	until time.Time
	timer *timer       // nil: it ends with the lock of its session
	g     *group       // session or message group; nil: none
	x     *Transaction // that has decided over it; nil: none
}

// hold puts a free message under a lock. In a locked session it shares the session's lock.
func (e *Engine) hold(q *queue, seq uint64, st *store.State) *lock {
	l := &lock{token: st.Token, q: q, seq: seq, st: *st, until: st.LockedUntil, g: q.group(st)}
	if q.of.p.Retention == 0 {
		q.expiring.Delete(expiry{q.expiresAt(st), seq})
	}
	q.ready.Delete(seq)
	q.deferred.Delete(seq)
	if l.g != nil {
		l.g.ready.Delete(seq)
		l.g.hidden.Insert(seq)
		q.turnOf(l.g)
	}
	if l.g == nil || l.g.token.IsZero() {
		at := l.until
		if e.sabotaged("expiry-early") {
			at = at.Add(-time.Second)
		}
		l.timer = e.timers.add(at, l)
	}
	q.locked[seq] = l
	if l.st.State == message.Deferred {
		q.heldAside++
	}
	e.locks[l.token] = l
	return l
}

// drop ends a lock in memory. The message is nowhere then, until the caller puts it somewhere.
func (e *Engine) drop(l *lock) {
	e.timers.remove(l.timer)
	if !e.sabotaged("lost-lock-settles") {
		delete(e.locks, l.token)
	}
	if l.q.crowded() {
		l.q.offer()
	}
	delete(l.q.locked, l.seq)
	if l.st.State == message.Deferred {
		l.q.heldAside--
	}
	if l.g != nil {
		l.g.hidden.Delete(l.seq)
		l.q.turnOf(l.g)
	}
}

// happen is that the lock expires.
func (l *lock) happen(t *tx) error {
	t.lapse(l)
	return nil
}

// lapse ends a lock whose time is over: a delivery has failed.
func (t *tx) lapse(l *lock) {
	t.e.drop(l)
	t.fail(l.q, l.seq, &l.st)
}

// letGo ends a lock and counts nothing.
func (t *tx) letGo(l *lock) {
	t.e.drop(l)
	t.free(l.q, l.seq, &l.st)
}

// live returns the lock that a token stands for in this queue.
func (e *Engine) live(q *queue, token message.UUID) (*lock, error) {
	l := e.locks[token]
	switch {
	case l != nil && l.q == q:
		return l, nil
	case q.groups != nil && q.of.p.RequiresSession:
		return nil, ErrSessionLockLost
	}
	return nil, ErrLockLost
}

// undecided returns an error if a transaction has decided over the message. Its lock can still
// be renewed.
func (l *lock) undecided() error {
	if l.x != nil {
		return fmt.Errorf("%w: a transaction has decided over it", ErrLocked)
	}
	return nil
}

// Renew makes locks last for the queue's lock duration from now. errs[i] is [ErrLockLost]
// for a lock that is gone, and [ErrUnsupported] for one that lasts as long as its session's.
func (e *Engine) Renew(a Address, tokens ...message.UUID) (errs []error, err error) {
	return e.each(a, tokens, func(t *tx, l *lock) error {
		if l.timer == nil {
			return fmt.Errorf("%w: renew the lock of the session", ErrUnsupported)
		}
		t.extend(l, l.q.of.p.LockDuration)
		return nil
	}, (*tx).flush)
}

func (t *tx) extend(l *lock, d time.Duration) {
	l.until = t.now.Add(d)
	t.e.timers.move(l.timer, l.until)
	l.st.LockedUntil = l.until
	t.put(l.q.key(l.seq), &l.st)
}

// Delivery is one delivery of a message: the lock token that it came with, and its sequence
// number, by which it is found when the lock is gone.
type Delivery struct {
	Seq   int64
	Token message.UUID
}

// maxHold is the longest time that deliveries can be extended to, from the receive on.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html
const maxHold = 12 * time.Hour

// Extend makes locks last for d from now, 0 to 12 hours after the receive. 0 lets go at once
// and counts nothing. Where the entity allows stale tokens, a delivery whose lock has expired
// is locked again. errs[i] is [ErrLockLost] or [ErrNoMessage].
func (e *Engine) Extend(a Address, d time.Duration, deliveries ...Delivery) (errs []error, err error) {
	return e.eachDelivery(a, deliveries, func(t *tx, q *queue, l *lock, seq uint64, st *store.State) error {
		switch {
		case d < 0 || d > maxHold || l != nil && t.now.Add(d).Sub(l.since) > maxHold:
			return fmt.Errorf("%w: a lock lasts 0 to %v from the receive on", ErrInvalid, maxHold)
		case l != nil && l.timer == nil:
			return fmt.Errorf("%w: renew the lock of the session", ErrUnsupported)
		case l != nil && d > 0:
			t.extend(l, d)
		case l != nil:
			t.letGo(l)
		case d > 0:
			st.LockedUntil = t.now.Add(d)
			e.leave(q, seq, st)
			e.expire(q, seq, st)
			e.hold(q, seq, st).since = t.now
			t.put(q.key(seq), st)
		}
		return nil
	}, (*tx).flush)
}

// Release lets go of locks at once and counts no delivery. A lock that is gone already is
// passed over.
func (e *Engine) Release(a Address, tokens ...message.UUID) error {
	_, err := e.each(a, tokens, func(t *tx, l *lock) error {
		if err := l.undecided(); err != nil {
			return err
		}
		if e.sabotaged("count-on-release") {
			t.lapse(l)
			return nil
		}
		t.letGo(l)
		return nil
	}, (*tx).flush)
	return err
}

// each runs f on every lock that is live, then ends the command with finish.
func (e *Engine) each(a Address, tokens []message.UUID, f func(*tx, *lock) error, finish func(*tx) error) ([]error, error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(tokens))
	for i, token := range tokens {
		l, err := e.live(q, token)
		if err == nil {
			err = f(t, l)
		}
		errs[i] = err
	}
	return errs, finish(t)
}

// eachDelivery is each for deliveries; f gets no lock for one that is stale and allowed. One that
// is named again has the outcome that it had the first time.
func (e *Engine) eachDelivery(a Address, ds []Delivery, f func(*tx, *queue, *lock, uint64, *store.State) error, finish func(*tx) error) ([]error, error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(ds))
	named := make(map[Delivery]int, len(ds))
	for i, d := range ds {
		if first, again := named[d]; again {
			errs[i] = errs[first] // the store does not show yet what this command did to it
			continue
		}
		named[d] = i
		l, st, err := t.delivered(q, d)
		if err == nil {
			err = f(t, q, l, uint64(d.Seq), &st)
		}
		errs[i] = err
	}
	return errs, finish(t)
}

// delivered finds a delivery, under its lock or, where the entity allows it, without one.
func (t *tx) delivered(q *queue, d Delivery) (*lock, store.State, error) {
	seq := uint64(d.Seq)
	l, err := t.e.live(q, d.Token)
	if err == nil && l.seq != seq {
		return nil, store.State{}, fmt.Errorf("%w: the token is of another message", ErrInvalid)
	}
	if err != nil && !q.has(seq) {
		t.batch.Follow() // that it is gone may not be durable yet
		return nil, store.State{}, fmt.Errorf("%w: %d", ErrNoMessage, seq)
	}
	if err == nil {
		return l, l.st, l.undecided()
	}
	if !q.of.p.StaleTokens || q.locked[seq] != nil {
		return nil, store.State{}, err
	}
	st, stateErr := t.e.store.State(q.key(seq))
	switch {
	case stateErr != nil:
		return nil, st, fmt.Errorf("message %d: %w", seq, stateErr)
	case st.Token != d.Token || d.Token.IsZero(): // zero: it was never received
		return nil, st, ErrLockLost
	}
	return nil, st, nil
}

// free makes a message that stands nowhere deliverable again: an active one at its place in
// the order, a deferred one to those who ask for its number.
func (t *tx) free(q *queue, seq uint64, st *store.State) {
	if !q.of.p.StaleTokens {
		st.Token = message.UUID{}
	}
	st.LockedUntil = time.Time{}
	t.e.enter(q, seq, st)
	t.put(q.key(seq), st)
}

// fail counts a failed delivery of a message that nobody holds any more, unless the entity
// counts deliveries when they are made. The count that reaches the maximum moves the message
// in the same commit, and so does one that has expired under its lock. In a dead-letter
// sub-queue nothing is counted.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#maximum-delivery-count
// and https://learn.microsoft.com/azure/service-bus-messaging/message-expiration
func (t *tx) fail(q *queue, seq uint64, st *store.State) {
	if q.sub == Main && !q.of.p.CountOnReceive {
		st.Deliveries++
		if int(st.Deliveries) >= q.of.p.MaxDeliveryCount {
			t.bury(q, seq, st, causeDeliveries(q.of.p.MaxDeliveryCount))
			return
		}
	}
	if q.over(st, t.now) {
		t.expired(q, seq, st)
		return
	}
	t.free(q, seq, st)
}
