package broker

import (
	"fmt"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// Receive locks the first free message whose sequence number is above after, and returns
// it whole, with its lock token. It returns nil when there is none. The lock lasts for the
// queue's lock duration unless renewed. It waits for nothing.
func (e *Engine) Receive(a Address, after int64) (*message.Message, error) {
	return e.lock(a, func(q *queue) (uint64, message.State, error) {
		var seq uint64
		q.ready.Ascend(uint64(after)+1, func(s uint64) bool { seq = s; return false })
		return seq, message.Active, nil
	})
}

// ReceiveDeferred locks a deferred message by its sequence number and returns it whole.
func (e *Engine) ReceiveDeferred(a Address, seq int64) (*message.Message, error) {
	return e.lock(a, func(q *queue) (uint64, message.State, error) {
		if q.deferred.Contains(uint64(seq)) {
			return uint64(seq), message.Deferred, nil
		}
		if l := q.locked[uint64(seq)]; l != nil && l.state == message.Deferred {
			return 0, 0, ErrLocked
		}
		return 0, 0, fmt.Errorf("%w: %d is not deferred", ErrNoMessage, seq)
	})
}

// lock holds the message that pick names, if it names one.
func (e *Engine) lock(a Address, pick func(*queue) (uint64, message.State, error)) (*message.Message, error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, err
	}
	held, err := t.take(q, pick)
	if err != nil || held == nil {
		t.end()
		return nil, err
	}
	view, done := e.view()
	defer done()
	if err := t.flush(); err != nil {
		return nil, err
	}
	m, _, err := read(view, *held, false)
	if !isDamage(err) {
		return m, unavailable(err)
	}
	// Nobody gets it, so nobody could let it go; and it must not stand in the way of the others.
	if err := e.Release(a, held.Token); err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.quarantine(held.Key)
	e.mu.Unlock()
	return e.lock(a, pick)
}

// quarantine sets a message aside that nobody holds and that cannot be read.
func (e *Engine) quarantine(k store.Key) {
	q := e.byID[k.Queue].subs[k.Sub]
	if q.has(k.Seq) && q.locked[k.Seq] == nil {
		e.forget(q, k.Seq)
		q.damaged[k.Seq] = struct{}{}
	}
}

// take locks the message that pick names; nil: it names none.
func (t *tx) take(q *queue, pick func(*queue) (uint64, message.State, error)) (*store.Message, error) {
	for {
		seq, state, err := pick(q)
		if err != nil || seq == 0 {
			return nil, err
		}
		st, err := t.e.store.State(q.key(seq))
		if isDamage(err) {
			t.e.quarantine(q.key(seq))
			continue
		}
		if err != nil {
			return nil, unavailable(err)
		}
		st.Token, st.LockedUntil = t.e.newID(), t.now.Add(q.of.LockDuration)
		t.e.hold(q, seq, state, st.Token, st.LockedUntil)
		t.batch.PutState(q.key(seq), &st)
		return &store.Message{Key: q.key(seq), State: st}, nil
	}
}

// read puts a message together from its stored parts, and says how many bytes those have.
func read(view store.Snapshot, s store.Message, noBody bool) (m *message.Message, size int, err error) {
	m, size, err = view.Head(s.Head)
	if err != nil {
		return nil, 0, fmt.Errorf("message %d: %w", s.Seq, err)
	}
	for _, a := range s.Overlay {
		m.Properties.Set(a.Name, a.Value)
	}
	m.Broker = message.Broker{
		SequenceNumber: int64(s.Seq), EnqueuedSequenceNumber: int64(s.EnqueuedSeq), EnqueuedTime: s.Enqueued,
		ExpiresAt: s.Expires, DeliveryCount: s.Deliveries, State: s.State.State,
		LockToken: s.Token, LockedUntil: s.LockedUntil, BodyOmitted: noBody, BodySize: s.BodySize,
	}
	if noBody {
		return m, size, nil
	}
	if m.Body, err = view.Body(s.Body); err != nil {
		return nil, 0, fmt.Errorf("message %d: %w", s.Seq, err)
	}
	return m, size + m.Body.Len(), nil
}

// DamagedAttribute is the system attribute of a message that is there and cannot be read.
const DamagedAttribute = "Damaged"

// damaged stands for a message that cannot be read, so that the others can be shown. It
// counts as read without its body, and nothing sends such a message.
func damaged(s store.Message, err error) *message.Message {
	return &message.Message{
		System: []message.Attribute{{Name: DamagedAttribute, Value: message.String(err.Error())}},
		Broker: message.Broker{
			SequenceNumber: int64(s.Seq), EnqueuedTime: s.Enqueued, DeliveryCount: s.Deliveries, State: s.State.State,
			BodyOmitted: true, BodySize: s.BodySize,
		},
	}
}

// PeekOptions narrow a page of a peek.
type PeekOptions struct {
	From   int64 // first sequence number
	Max    int   // messages in a page, at least 1
	NoBody bool
}

// maxPageBytes bounds what one page of a peek holds, about, unless a single message is larger.
const maxPageBytes = 8 << 20

// Peek returns a page of messages in the order of their sequence numbers, whatever their
// state, and changes nothing. A page may be short; it is empty only at the end. The lock
// tokens are not shown. One that cannot be read is shown with [DamagedAttribute] alone. It
// takes O(log n) and the page, however deep the queue is.
func (e *Engine) Peek(a Address, o PeekOptions) ([]*message.Message, error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, err
	}
	view, done := e.view()
	from := q.key(max(uint64(max(o.From, 0)), q.lowest()))
	t.end()
	defer done()

	var page []*message.Message
	size := 0
	for s, err := range view.StatesFrom(from) {
		var m *message.Message
		var n int
		if err == nil {
			m, n, err = read(view, s, o.NoBody)
		}
		switch {
		case isDamage(err):
			m = damaged(s, err)
		case err != nil:
			return page, unavailable(err)
		}
		m.Broker.LockToken = message.UUID{}
		page = append(page, m)
		if size += n; len(page) >= o.Max || size >= maxPageBytes {
			break
		}
	}
	return page, nil
}
