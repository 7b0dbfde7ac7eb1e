package broker

import (
	"fmt"
	"time"

	"dlq/backends/message"
)

// Sent is what became of one message of a send.
type Sent struct {
	// Seq is the number that it has in the entity it was sent to, and ID its message id; of
	// a duplicate, those of the first.
	Seq       int64
	ID        message.Value
	Duplicate bool  // it was accepted and dropped
	Err       error // why it was refused
}

// Send puts messages into a queue or topic and returns when they are durable, in one commit:
// all or none. Err says why a message was refused, or [ErrNotSent] if another was. What the
// broker owns is ignored. A message whose ScheduledEnqueueTime lies ahead waits until then.
func (e *Engine) Send(a Address, msgs []*message.Message) ([]Sent, error) {
	parts, size := contents(msgs) // before the engine is locked
	t, err := e.begin()
	if err != nil {
		return nil, err
	}
	ent, err := e.destination(a)
	if err == nil {
		err = e.room(size)
	}
	if err != nil {
		t.end()
		return nil, err
	}
	ent.accessed = t.now
	sent := make([]Sent, len(msgs))
	if t.check(ent, msgs, parts, sent) {
		for i, m := range msgs {
			sent[i] = t.deliver(ent, m, parts[i])
		}
	}
	return sent, t.commit()
}

// check fills in why messages are refused, and reports whether none is.
func (t *tx) check(ent *entity, msgs []*message.Message, parts []content, sent []Sent) bool {
	ok := true
	var size int64
	for i, m := range msgs {
		size += parts[i].headSize + parts[i].bodySize
		sent[i].Err = t.accepts(ent, m, &parts[i], size)
		ok = ok && sent[i].Err == nil
	}
	for i := range sent {
		if !ok && sent[i].Err == nil {
			sent[i].Err = ErrNotSent
		}
	}
	return ok
}

// contents are the contents of messages, and how many bytes all of them have.
func contents(msgs []*message.Message) (parts []content, size int64) {
	parts = make([]content, len(msgs))
	for i, m := range msgs {
		if m != nil {
			parts[i] = newContent(m)
			size += parts[i].headSize + parts[i].bodySize
		}
	}
	return parts, size
}

// deliver stores a message that the entity accepts wherever it comes to rest.
func (t *tx) deliver(ent *entity, m *message.Message, c content) Sent {
	r, _ := t.route(ent, m, &c) // accepts has looked
	if first := r.duplicate; len(r.arrivals) == 0 && first != nil {
		t.batch.Follow() // it says that the first is there, which may not be durable yet
		return Sent{Seq: int64(first.Seq), ID: first.ID, Duplicate: true}
	}
	t.land(r, c, 0)
	return Sent{Seq: int64(r.arrivals[0].seq), ID: m.ID}
}

// route finds where a message that is sent to an entity comes to rest.
func (t *tx) route(ent *entity, m *message.Message, c *content) (*router, error) {
	r := t.router(c.headSize + c.bodySize)
	due := t.due(ent, m)
	r.arrive(ent, copyOf{m: m, expires: t.expires(m, due)}, due)
	return r, r.err
}

// due is when a message becomes active; zero: now.
func (t *tx) due(ent *entity, m *message.Message) time.Time {
	at := m.ScheduledEnqueueTime
	switch {
	case at == nil && ent.p.Delay > 0:
		return t.now.Add(ent.p.Delay)
	case at == nil || !at.After(t.now):
		return time.Time{}
	}
	// Rounded up to what the store keeps: never early.
	return at.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond)
}

// expires is when a message's own time to live ends, which begins when it is active.
func (t *tx) expires(m *message.Message, due time.Time) time.Time {
	switch {
	case m.TTL == nil:
		return time.Time{}
	case due.IsZero():
		return t.now.Add(*m.TTL)
	}
	return due.Add(*m.TTL)
}

// ValidateSend returns what Send would refuse the message with.
func (e *Engine) ValidateSend(a Address, m *message.Message) error {
	t, err := e.begin()
	if err != nil {
		return err
	}
	defer t.end()
	ent, err := e.destination(a)
	if err == nil {
		err = e.room(0)
	}
	if err != nil || m == nil {
		return err
	}
	c := newContent(m)
	return t.accepts(ent, m, &c, c.headSize+c.bodySize)
}

// destination returns the entity that an address names, if it can be sent to.
func (e *Engine) destination(a Address) (*entity, error) {
	ent, err := e.target(a)
	if err == nil && !ent.sends() {
		return nil, fmt.Errorf("%w: %s is %s", ErrDisabled, a.Name, ent.p.Status)
	}
	return ent, err
}

// target returns the entity that an address names, if such an entity can be sent to.
func (e *Engine) target(a Address) (*entity, error) {
	q, err := e.find(a)
	switch {
	case err != nil:
		return nil, err
	case a.Sub != Main:
		return nil, fmt.Errorf("%w: a dead-letter sub-queue cannot be sent to; send to the queue itself", ErrInvalid)
	case q.of.kind == Subscription:
		return nil, fmt.Errorf("%w: a subscription cannot be sent to; send to its topic", ErrInvalid)
	}
	return q.of, nil
}

// room refuses what would fill the disk, so that there is room to receive and settle. The
// disk is asked once for every megabyte or so, and every time while it is full.
func (e *Engine) room(size int64) error {
	const step = 1 << 20
	if e.unasked += size; e.unasked < step && e.asked {
		return nil
	}
	e.unasked, e.asked = 0, false
	if free, known := e.store.Room(); known && free < e.reserve {
		return fmt.Errorf("%w: %d MiB are free and %d MiB are kept for receiving and settling; free some space", ErrFull, free>>20, e.reserve>>20)
	}
	e.asked = true
	return nil
}

// maxHeadBytes bounds everything of a message but its body and its application properties, as it is stored.
const maxHeadBytes = 256 << 10

// maxIDLength bounds message ids, session ids and partition keys, in characters.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
const maxIDLength = 128

// accepts checks a message against the rules of the entity, which is to hold size more bytes.
func (t *tx) accepts(ent *entity, m *message.Message, c *content, size int64) error {
	if err := checkMessage(m); err != nil {
		return err
	}
	properties := propertiesSize(m)
	switch {
	case c.headSize-int64(properties) > maxHeadBytes:
		return fmt.Errorf("%w: all sections but the body and the application properties have %d bytes, %s takes %d", ErrTooLarge, c.headSize-int64(properties), ent.name, maxHeadBytes)
	case properties > maxProperties && (ent.p.SubQueues || ent.kind == Topic):
		return fmt.Errorf("%w: the application properties have %d bytes, %s takes %d", ErrTooLarge, properties, ent.name, maxProperties)
	case c.bodySize+int64(properties) > ent.p.MaxMessageBytes:
		return fmt.Errorf("%w: body and properties have %d bytes, %s takes %d", ErrTooLarge, c.bodySize+int64(properties), ent.name, ent.p.MaxMessageBytes)
	case !ent.sized(size):
		return fmt.Errorf("%w: %s holds %d of %d bytes", ErrQuota, ent.name, ent.size, ent.p.MaxSize)
	case (ent.p.RequiresSession || ent.p.Groups) && m.SessionID == nil:
		return fmt.Errorf("%w: %s requires sessions", ErrNeedsSession, ent.name)
	case ent.p.Groups && ent.p.DeduplicationID && deduplicationID(&ent.p, m) == "":
		return fmt.Errorf("%w: %s takes only messages with a deduplication id, or needs ContentBasedDeduplication", ErrInvalid, ent.name)
	}
	if ent.kind != Topic || !ent.p.FilterBeforePublishing {
		return nil
	}
	_, err := t.route(ent, m, c)
	return err
}

// checkMessage checks what no entity takes.
func checkMessage(m *message.Message) error {
	if m == nil {
		return fmt.Errorf("%w: there is no message", ErrInvalid)
	}
	if err := message.Check(m); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	switch {
	case m.Broker.BodyOmitted && len(m.Body.Sections) == 0:
		return fmt.Errorf("%w: the message was read without its body; read it whole before sending it", ErrInvalid)
	case m.SessionID != nil && len(*m.SessionID) > maxIDLength:
		return fmt.Errorf("%w: the session id has %d bytes; %d are allowed", ErrInvalid, len(*m.SessionID), maxIDLength)
	case m.ScheduledEnqueueTime != nil && m.ScheduledEnqueueTime.UTC().Year() > 9999: // the last that the services have
		return fmt.Errorf("%w: a message can be scheduled until the end of the year 9999", ErrInvalid)
	case m.TTL != nil && *m.TTL <= 0:
		return fmt.Errorf("%w: a time to live of %v is over before it begins", ErrInvalid, *m.TTL)
	}
	for _, id := range [...]struct {
		name  string
		value message.Value
	}{{"message id", m.ID}, {"correlation id", m.CorrelationID}} {
		switch v := id.value.(type) {
		case message.String:
			if id.name == "message id" && len(v) > maxIDLength {
				return fmt.Errorf("%w: the message id has %d bytes; %d are allowed", ErrInvalid, len(v), maxIDLength)
			}
		case nil, message.Ulong, message.UUID, message.Binary:
		default: // AMQP 1.0 part 3, 3.2.11 to 3.2.14
			return fmt.Errorf("%w: the %s is a %s; it can be a string, ulong, uuid or binary", ErrInvalid, id.name, message.KindOf(id.value))
		}
	}
	return nil
}
