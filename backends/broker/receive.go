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
	t, err := e.begin()
	if err != nil {
		return nil, err
	}
	m, view, err := t.take(a, pick)
	if err != nil || m == nil {
		t.end()
		return nil, err
	}
	defer func() { _ = view.Close() }()
	if err := t.flush(); err != nil {
		return nil, err
	}
	return read(view, *m, false)
}

func (t *tx) take(a Address, pick func(*queue) (uint64, message.State, error)) (*store.Message, store.Snapshot, error) {
	q, err := t.e.find(a)
	if err != nil {
		return nil, store.Snapshot{}, err
	}
	seq, state, err := pick(q)
	if err != nil || seq == 0 {
		return nil, store.Snapshot{}, err
	}
	st, err := t.e.store.State(q.key(seq))
	if err != nil {
		return nil, store.Snapshot{}, unavailable(err)
	}
	st.Token, st.LockedUntil = t.e.newID(), t.now.Add(q.of.LockDuration)
	t.e.hold(q, seq, state, st.Token, st.LockedUntil)
	t.batch.PutState(q.key(seq), &st)
	return &store.Message{Key: q.key(seq), State: st}, t.e.store.Snapshot(), nil
}

// read puts a message together from its stored parts.
func read(view store.Snapshot, s store.Message, noBody bool) (*message.Message, error) {
	m, err := view.Head(s.Head)
	if err != nil {
		return nil, unavailable(fmt.Errorf("message %d: %w", s.Seq, err))
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
		return m, nil
	}
	if m.Body, err = view.Body(s.Body); err != nil {
		return nil, unavailable(fmt.Errorf("message %d: %w", s.Seq, err))
	}
	return m, nil
}

// PeekOptions narrow a page of a peek.
type PeekOptions struct {
	From   int64 // first sequence number
	Max    int   // messages in a page, at least 1
	NoBody bool
}

// maxPageBytes bounds the bodies that one page of a peek holds, unless a single message is
// larger.
const maxPageBytes = 8 << 20

// Peek returns a page of messages in the order of their sequence numbers, whatever their
// state, and changes nothing. A page may be short; it is empty only at the end. The lock
// tokens are not shown. It takes O(log n) and the page, however deep the queue is.
func (e *Engine) Peek(a Address, o PeekOptions) ([]*message.Message, error) {
	t, err := e.begin()
	if err != nil {
		return nil, err
	}
	q, err := e.find(a)
	if err != nil {
		t.end()
		return nil, err
	}
	view := e.store.Snapshot()
	t.end()
	defer func() { _ = view.Close() }()

	var page []*message.Message
	size := 0
	for s, err := range view.StatesFrom(q.key(uint64(max(o.From, 0)))) {
		if err != nil {
			return page, unavailable(err)
		}
		m, err := read(view, s, o.NoBody)
		if err != nil {
			return page, err
		}
		m.Broker.LockToken = message.UUID{}
		page = append(page, m)
		if size += m.Body.Len(); len(page) >= o.Max || size >= maxPageBytes {
			break
		}
	}
	return page, nil
}
