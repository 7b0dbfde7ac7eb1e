package broker

import (
	"fmt"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// shelf is where heads and bodies are.
type shelf interface {
	Head(id uint64) (m *message.Message, size int, err error)
	Body(id uint64) (message.Body, error)
}

// read puts a message together from its stored parts, and says how many bytes those have.
func read(view shelf, s store.Message, noBody bool) (m *message.Message, size int, err error) {
	m, size, err = view.Head(s.Head)
	if err != nil {
		return nil, 0, fmt.Errorf("message %d: %w", s.Seq, err)
	}
	overlaid(m, &s.State)
	m.Broker = message.Broker{
		SequenceNumber: int64(s.Seq), EnqueuedSequenceNumber: int64(s.EnqueuedSeq), EnqueuedTime: s.Enqueued,
		ExpiresAt: s.Expires, DeliveryCount: s.Deliveries, State: s.State.State, FirstReceived: s.Received,
		LockToken: s.Token, LockedUntil: s.LockedUntil, BodyOmitted: noBody, BodySize: s.BodySize, DeadLetterSource: s.Source,
	}
	if noBody {
		return m, size, nil
	}
	if m.Body, err = view.Body(s.Body); err != nil {
		return nil, 0, fmt.Errorf("message %d: %w", s.Seq, err)
	}
	return m, size + m.Body.Len(), nil
}

// lifeEnd is when a message expires, in a queue with a retention after that; zero: never.
func lifeEnd(st *store.State, retention time.Duration) time.Time {
	if retention > 0 {
		return st.Enqueued.Add(retention)
	}
	return st.Expires
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
	From    int64 // first sequence number
	Max     int   // messages in a page, at least 1
	NoBody  bool
	Session *string // only messages of this session
}

// maxPageBytes bounds what one page of a peek holds, about, unless a single message is larger.
const maxPageBytes = 8 << 20

// Peek returns a page of messages in the order of their sequence numbers, whatever their
// state, and changes nothing. A page may be short; it is empty only at the end. The lock
// tokens are not shown. One that cannot be read is shown with [DamagedAttribute] alone. It
// takes O(log n) and the page, however deep the queue is; with a session, the messages of
// others in between too.
func (e *Engine) Peek(a Address, o PeekOptions) ([]*message.Message, error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, err
	}
	if !q.of.receives() {
		t.end()
		return nil, fmt.Errorf("%w: %s is %s", ErrDisabled, a.Name, q.of.p.Status)
	}
	retention := q.of.p.Retention
	view, done := e.view()
	from := q.key(max(uint64(max(o.From, 0)), q.lowest()))
	t.end()
	defer done()

	var page []*message.Message
	size := 0
	for s, err := range view.StatesFrom(from) {
		var m *message.Message
		var n int
		if err == nil && o.Session != nil && (s.Session == nil || *s.Session != *o.Session) {
			continue
		}
		if err == nil {
			m, n, err = read(view, s, o.NoBody)
		}
		switch {
		case isDamage(err):
			m = damaged(s, err)
		case err != nil:
			return page, unavailable(err)
		default:
			m.Broker.ExpiresAt = lifeEnd(&s.State, retention)
		}
		m.Broker.LockToken = message.UUID{}
		page = append(page, m)
		if size += n; len(page) >= o.Max || size >= maxPageBytes {
			break
		}
	}
	return page, nil
}
