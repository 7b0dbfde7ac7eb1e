package broker

import (
	"fmt"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// Send puts messages into a queue and returns when they are durable, in one commit: all or
// none. errs[i] says why message i was refused, or [ErrNotSent] if another was. What the
// broker owns is ignored. A message whose ScheduledEnqueueTime lies ahead waits until then.
func (e *Engine) Send(a Address, msgs []*message.Message) (errs []error, err error) {
	t, err := e.begin()
	if err != nil {
		return nil, err
	}
	q, err := e.destination(a)
	if err != nil {
		t.end()
		return nil, err
	}
	errs = make([]error, len(msgs))
	refused := false
	for i, m := range msgs {
		errs[i] = q.of.accepts(m)
		refused = refused || errs[i] != nil
	}
	for i, m := range msgs {
		switch {
		case !refused:
			t.put(q, m)
		case errs[i] == nil:
			errs[i] = ErrNotSent
		}
	}
	return errs, t.commit()
}

// ValidateSend returns what Send would refuse the message with.
func (e *Engine) ValidateSend(a Address, m *message.Message) error {
	t, err := e.begin()
	if err != nil {
		return err
	}
	defer t.end()
	q, err := e.destination(a)
	if err != nil {
		return err
	}
	return q.of.accepts(m)
}

// destination returns the queue that an address names, if it can be sent to.
func (e *Engine) destination(a Address) (*queue, error) {
	q, err := e.find(a)
	if err == nil && q.sub != Main {
		return nil, fmt.Errorf("%w: a dead-letter sub-queue cannot be sent to; send to the queue itself", ErrInvalid)
	}
	return q, err
}

// accepts checks a message against the rules of the queue.
func (ent *entity) accepts(m *message.Message) error {
	if m == nil {
		return fmt.Errorf("%w: there is no message", ErrInvalid)
	}
	if err := message.Check(m); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if n := len(message.AppendHead(nil, m)); n > maxHeadBytes {
		return fmt.Errorf("%w: all sections but the body have %d bytes, %s takes %d", ErrTooLarge, n, ent.Name, maxHeadBytes)
	}
	if n := int64(m.Body.Len()); n > ent.MaxBodyBytes {
		return fmt.Errorf("%w: the body has %d bytes, %s takes %d", ErrTooLarge, n, ent.Name, ent.MaxBodyBytes)
	}
	if m.Broker.BodyOmitted && len(m.Body.Sections) == 0 {
		return fmt.Errorf("%w: the message was read without its body; read it whole before sending it", ErrInvalid)
	}
	for _, id := range [...]struct {
		name  string
		value message.Value
	}{{"message id", m.ID}, {"correlation id", m.CorrelationID}} {
		switch id.value.(type) {
		case nil, message.String, message.Ulong, message.UUID, message.Binary:
		default: // AMQP 1.0 part 3, 3.2.11 to 3.2.14
			return fmt.Errorf("%w: the %s is a %s; it can be a string, ulong, uuid or binary", ErrInvalid, id.name, message.KindOf(id.value))
		}
	}
	return nil
}

// maxHeadBytes bounds everything of a message but its body, as it is stored.
const maxHeadBytes = 256 << 10

// put stores a new message at the end of a queue.
func (t *tx) put(q *queue, m *message.Message) {
	st := store.State{Head: t.content(), Body: t.content(), BodySize: int64(m.Body.Len())}
	t.batch.PutBody(st.Body, m.Body)
	t.enqueue(q, m, &st)
}

// enqueue stores the head and the state of a message whose body is stored already.
func (t *tx) enqueue(q *queue, m *message.Message, st *store.State) {
	seq := t.number(q.of)
	t.batch.PutHead(st.Head, m)
	st.Enqueued = t.now
	start := t.now
	if at := m.ScheduledEnqueueTime; at != nil && at.After(t.now) {
		// Rounded up to what the store keeps: never early.
		st.Due = at.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond)
		start = st.Due
	}
	if m.TTL != nil {
		st.Expires = start.Add(*m.TTL)
	}
	if !st.Due.IsZero() {
		st.State = message.Scheduled
		t.e.schedule(q, seq, st.Due)
		t.batch.PutState(q.key(seq), st)
		return
	}
	t.free(q, seq, st)
}
