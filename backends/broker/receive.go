package broker

import (
	"fmt"
	"slices"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// ReceiveOptions say what to receive.
type ReceiveOptions struct {
	Max   int   // messages at most; 0 is 1
	Bytes int64 // beyond so many, no other message is taken; 0: whatever they have
	After int64 // only those with a higher sequence number
	// Except names messages that are passed over, by their sequence numbers; of a session or a
	// message group nothing behind them is received, either. nil: none. It must not call the
	// engine.
	Except func(seq int64) bool
	// Lock is how long the locks last; nil: as long as the entity says. 0 leaves the messages
	// where they are, for all to receive.
	Lock *time.Duration
	// Delete removes the messages at once instead of locking them, and waits until that is
	// durable.
	Delete bool
	// Session is the lock of the session to receive from, in an entity that requires one.
	Session message.UUID
}

// Receive locks the first free messages and returns them whole, with their lock tokens, or
// none. What has expired is dead-lettered or removed before, and what has been received as
// often as a redrive policy allows moves to the queue that the policy names. It waits for
// nothing.
func (e *Engine) Receive(a Address, o ReceiveOptions) ([]*message.Message, error) {
	var below uint64
	return e.receive(a, o, func(k *taker) error {
		if below == 0 { // before what expires can come back here by forwarding
			below = k.q.of.next
		}
		if err := k.t.expireReady(k.q); err != nil {
			return err
		}
		k.below = below
		return k.free()
	})
}

// ReceiveDeferred locks deferred messages by their sequence numbers and returns them whole,
// all or none. The error is [ErrNoMessage] or [ErrLocked].
func (e *Engine) ReceiveDeferred(a Address, o ReceiveOptions, seqs ...int64) ([]*message.Message, error) {
	return e.receive(a, o, func(k *taker) error {
		q := k.q
		if q.sub == Main && q.of.p.RequiresSession {
			s, err := e.held(q, o.Session)
			if err != nil {
				return err
			}
			k.session = s.g
		}
		for i, n := range seqs {
			if l := q.locked[uint64(n)]; l != nil && l.st.State == message.Deferred {
				return fmt.Errorf("%w: message %d", ErrLocked, n)
			}
			if !q.deferred.Contains(uint64(n)) || slices.Contains(seqs[:i], n) {
				return fmt.Errorf("%w: %d is not deferred", ErrNoMessage, n)
			}
			st, err := k.r.State(q.key(uint64(n)))
			if err != nil {
				return fmt.Errorf("message %d: %w", n, err)
			}
			if k.session != nil && message.Str(st.Session) != k.session.id {
				return fmt.Errorf("%w: %d is of another session", ErrNoMessage, n)
			}
		}
		for _, n := range seqs {
			if _, err := k.take(uint64(n)); err != nil {
				return err
			}
		}
		return nil
	})
}

// receive runs commands that take messages until one finds some, or there are none.
func (e *Engine) receive(a Address, o ReceiveOptions, take func(*taker) error) ([]*message.Message, error) {
	for {
		msgs, again, err := e.receiveOnce(a, o, take)
		if err != nil || len(msgs) > 0 || !again {
			return msgs, err
		}
	}
}

// receiveOnce runs a command that takes messages, and reads them. again: there may be some
// behind those that were moved, expired or damaged.
func (e *Engine) receiveOnce(a Address, o ReceiveOptions, take func(*taker) error) (msgs []*message.Message, again bool, err error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, false, err
	}
	if err := q.receives(o.Session); err != nil {
		t.end()
		return nil, false, err
	}
	r, done := e.reader(o.Max)
	defer done()
	k := &taker{t: t, q: q, o: o, r: r}
	if err := take(k); err != nil && k.count() == 0 { // else it shows again at the next call
		if t.batch.Empty() {
			t.end()
			return nil, false, err
		}
		if flushed := t.flush(); flushed != nil {
			return nil, false, flushed
		}
		return nil, false, err
	}
	if o.Delete {
		return k.whole, k.tired(), t.commit()
	}
	retention := q.of.p.Retention
	if err := t.flush(); err != nil {
		return nil, false, err
	}
	out := make([]*message.Message, 0, len(k.taken))
	for _, s := range k.taken { // what is locked stays, so it is read without a snapshot
		m, _, err := read(r, s, false)
		switch {
		case isDamage(err):
			err = e.giveUp(a, s)
		case err == nil:
			m.Broker.ExpiresAt = lifeEnd(&s.State, retention)
			out = append(out, m)
		}
		if err != nil {
			return out, false, unavailable(err)
		}
	}
	return out, k.tired() || len(k.taken) > 0, nil
}

// receives reports why the queue lets nothing out.
func (q *queue) receives(session message.UUID) error {
	ent := q.of
	switch {
	case ent.kind == Topic:
		return fmt.Errorf("%w: a topic cannot be received from; receive from its subscriptions", ErrUnsupported)
	case !ent.receives():
		return fmt.Errorf("%w: %s is %s", ErrDisabled, ent.name, ent.p.Status)
	case ent.p.MaxInFlight > 0 && len(q.locked) >= ent.p.MaxInFlight:
		return fmt.Errorf("%w: %d", ErrInFlight, len(q.locked))
	case q.sub == Main && ent.p.RequiresSession && session.IsZero():
		return fmt.Errorf("%w: %s requires sessions; accept one first", ErrUnsupported, ent.name)
	case (q.sub != Main || !ent.p.RequiresSession) && !session.IsZero():
		return fmt.Errorf("%w: %s has no sessions", ErrUnsupported, ent.name)
	}
	return nil
}

// giveUp lets go of a message that cannot be read and sets it aside: nobody gets it, so nobody
// could let it go, and it must not stand in the way of the others.
func (e *Engine) giveUp(a Address, s store.Message) error {
	if err := e.Release(a, s.Token); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if ent := e.byID[s.Queue]; ent != nil {
		e.quarantine(ent.subs[s.Sub], s.Seq, &s.State)
	}
	return nil
}

// quarantine sets a message aside that nobody holds and that cannot be read. st is its state,
// nil if that may be what cannot be read.
func (e *Engine) quarantine(q *queue, seq uint64, st *store.State) {
	if !q.has(seq) || q.locked[seq] != nil {
		return
	}
	if st == nil {
		stored, err := e.store.State(q.key(seq))
		if st = &stored; err != nil {
			for _, g := range q.groups { // it is not known of which
				if g.ready.Contains(seq) || g.hidden.Contains(seq) {
					st.Session = &g.id
				}
			}
		}
	}
	e.leave(q, seq, st)
	q.damaged[seq] = struct{}{}
}

// taker takes messages for one call of receive.
type taker struct {
	t       *tx
	q       *queue
	o       ReceiveOptions
	r       *store.Reader
	below   uint64 // numbers from here on were given in this call, by a redrive to itself; 0: none
	session *group
	passed  int   // messages that were moved or removed instead
	bytes   int64 // of those that were taken
	taken   []store.Message
	whole   []*message.Message // instead of taken, when they are removed
}

func (k *taker) most() int  { return max(k.o.Max, 1) }
func (k *taker) count() int { return len(k.taken) + len(k.whole) }
func (k *taker) full() bool {
	most := k.q.of.p.MaxInFlight
	return k.count() >= k.most() || k.o.Bytes > 0 && k.bytes >= k.o.Bytes || most > 0 && len(k.q.locked) >= most || k.tired()
}

// tired reports whether the command has moved or removed so much on the way that others
// should have their turn.
func (k *taker) tired() bool { return k.passed >= 1000 }

// free takes the first free messages in the order of delivery.
func (k *taker) free() error {
	q := k.q
	switch {
	case q.groups == nil:
		return k.from(&q.ready, k.below)
	case q.of.p.RequiresSession:
		s := k.t.e.sessions[k.o.Session]
		if s == nil || s.q != q {
			return ErrSessionLockLost
		}
		return k.from(&s.g.ready, k.below)
	}
	// Groups take turns: those that have one when it begins, since a group that stays open has
	// another behind them. One that is locked by this very call gives several.
	last, next := q.turn, uint64(0)
	for {
		var g *group
		q.turns.Ascend(next, func(turn uint64, first *group) bool { g, next = first, turn+1; return false })
		if g == nil || next > last+1 {
			return nil
		}
		limit := k.below
		if held, any := g.hidden.Min(); any {
			limit = min(limit, held)
		}
		before := k.count()
		err := k.from(&g.ready, limit)
		if k.count() > before {
			q.served(g)
		}
		if err != nil || k.full() {
			return err
		}
	}
}

// orderedSet is a set of sequence numbers.
type orderedSet interface {
	Ascend(from uint64, f func(uint64) bool)
}

// from takes messages of a set whose numbers are below a limit.
func (k *taker) from(set orderedSet, limit uint64) error {
	next := uint64(k.o.After) + 1
	for !k.full() {
		var seq uint64
		set.Ascend(next, func(s uint64) bool { seq = s; return false })
		if seq == 0 || seq >= limit {
			return nil
		}
		next = seq + 1
		if k.o.Except != nil && k.o.Except(int64(seq)) {
			if k.q.groups != nil {
				return nil
			}
			continue
		}
		took, err := k.take(seq)
		if err != nil || took && k.q.of.p.GroupHeadOnly && k.q.groups != nil {
			return err
		}
	}
	return nil
}

// take takes one free message, unless it turns out to be damaged, expired or received too often.
func (k *taker) take(seq uint64) (bool, error) {
	t, q := k.t, k.q
	st, err := k.r.State(q.key(seq))
	switch {
	case isDamage(err):
		t.e.quarantine(q, seq, nil)
		return false, nil
	case err != nil:
		return false, unavailable(err)
	case q.over(&st, t.now):
		t.expired(q, seq, &st)
		k.passed++
		return false, nil
	case t.redrive(q, seq, &st):
		k.passed++
		return false, nil
	}
	k.bytes += st.HeadSize + st.BodySize
	if q.of.p.CountOnReceive {
		st.Deliveries++
		if st.Received.IsZero() {
			st.Received = t.now
		}
	}
	if k.o.Delete {
		return k.remove(seq, &st)
	}
	st.Token = t.e.newID()
	switch s := t.e.sessions[k.o.Session]; {
	case s != nil:
		st.LockedUntil = s.g.until
	case k.o.Lock == nil:
		st.LockedUntil = t.now.Add(q.of.p.LockDuration)
	default:
		st.LockedUntil = t.now.Add(*k.o.Lock)
	}
	if st.LockedUntil.After(t.now) {
		t.e.hold(q, seq, &st).since = t.now
	} else {
		st.LockedUntil = time.Time{}
		if q.groups == nil {
			q.offer() // it is there for the next who waits
		}
	}
	t.put(q.key(seq), &st)
	k.taken = append(k.taken, store.Message{Key: q.key(seq), State: st})
	return true, nil
}

// remove takes a message for good. It is read before, so that one that cannot be read is not
// lost.
func (k *taker) remove(seq uint64, st *store.State) (bool, error) {
	m, _, err := read(k.r, store.Message{Key: k.q.key(seq), State: *st}, false)
	if isDamage(err) {
		k.t.e.quarantine(k.q, seq, st)
		return false, nil
	}
	if err != nil {
		return false, unavailable(err)
	}
	k.t.e.leave(k.q, seq, st)
	k.t.remove(k.q, seq, st)
	k.whole = append(k.whole, m)
	return true, nil
}
