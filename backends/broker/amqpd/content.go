package amqpd

import (
	"fmt"
	"math"
	"slices"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/message"
)

// batchFormat is the message format of a delivery that holds several messages, each whole in
// a data section of its own.
const batchFormat = 0x80013700

// The annotations that the broker owns, and those that a sender may set.
const (
	annSequence         = message.Symbol("x-opt-sequence-number")
	annEnqueuedTime     = message.Symbol("x-opt-enqueued-time")
	annLockedUntil      = message.Symbol("x-opt-locked-until")
	annState            = message.Symbol("x-opt-message-state")
	annEnqueuedSequence = message.Symbol("x-opt-enqueue-sequence-number")
	annDeadLetterSource = message.Symbol("x-opt-deadletter-source")
	annPartitionID      = message.Symbol("x-opt-partition-id")
	annLockToken        = message.Symbol("x-opt-lock-token")
	annScheduled        = message.Symbol("x-opt-scheduled-enqueue-time")
)

// deliveryOptions say how a message is shown.
type deliveryOptions struct {
	peeked bool // it is shown, not handed out
	noBody bool
}

// appendDelivery appends a message as the service delivers it: what the broker owns is in
// annotations of fixed types, which some peers rely on. Source:
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-protocol-guide#message-annotations
func appendDelivery(dst []byte, m *message.Message, o deliveryOptions) ([]byte, error) {
	out := *m
	b := &m.Broker
	if !b.LockToken.IsZero() { // beside the delivery tag, which a reply of $management has not
		out.DeliveryAnnotations = append(message.Map{{Key: annLockToken, Value: b.LockToken}}, m.DeliveryAnnotations...)
	}
	out.Annotations = make(message.Map, 0, len(m.Annotations)+8)
	out.Annotations = append(out.Annotations,
		message.Pair{Key: annSequence, Value: message.Long(b.SequenceNumber)},
		message.Pair{Key: annEnqueuedTime, Value: message.TimestampOf(b.EnqueuedTime)},
	)
	if o.peeked || b.State != message.Active {
		out.Annotations = append(out.Annotations, message.Pair{Key: annState, Value: message.Int(b.State)})
	}
	if b.EnqueuedSequenceNumber != 0 {
		out.Annotations = append(out.Annotations, message.Pair{Key: annEnqueuedSequence, Value: message.Long(b.EnqueuedSequenceNumber)})
	}
	if !b.LockedUntil.IsZero() {
		out.Annotations = append(out.Annotations, message.Pair{Key: annLockedUntil, Value: message.TimestampOf(b.LockedUntil)})
	}
	if m.ScheduledEnqueueTime != nil {
		out.Annotations = append(out.Annotations, message.Pair{Key: annScheduled, Value: message.TimestampOf(*m.ScheduledEnqueueTime)})
	}
	if b.DeadLetterSource != "" {
		out.Annotations = append(out.Annotations, message.Pair{Key: annDeadLetterSource, Value: message.String(b.DeadLetterSource)})
	}
	for _, p := range m.Annotations {
		if !owned(p.Key) {
			out.Annotations = append(out.Annotations, p)
		}
	}
	if !b.ExpiresAt.IsZero() { // as the broker sees it; what the sender says of it is the sender's
		created, expires := b.EnqueuedTime, b.ExpiresAt
		ttl := expires.Sub(created)
		out.Created, out.AbsoluteExpiry, out.TTL = &created, &expires, &ttl
	}
	if o.noBody {
		out.Body = message.Body{}
	}
	return amqp.AppendMessage(dst, &out)
}

// owned reports whether an annotation is the broker's.
func owned(key message.Value) bool {
	switch key {
	case annSequence, annEnqueuedTime, annLockedUntil, annState, annEnqueuedSequence, annDeadLetterSource,
		annPartitionID, annLockToken, annScheduled:
		return true
	}
	return false
}

// decodeSent reads the messages of a delivery: one, or as many as a batch holds. They keep
// slices of the payload.
func decodeSent(format uint32, payload []byte) ([]*message.Message, error) {
	m, err := amqp.DecodeMessage(payload)
	if err != nil {
		return nil, err
	}
	if format != batchFormat {
		if err := sent(m); err != nil {
			return nil, err
		}
		return []*message.Message{m}, nil
	}
	if m.Body.Kind != message.Data {
		return nil, fmt.Errorf("a batch has a body of data, not of a %s", m.Body.Kind)
	}
	all := make([]*message.Message, len(m.Body.Sections))
	for i, section := range m.Body.Sections {
		one, err := amqp.DecodeMessage(section)
		if err == nil {
			err = sent(one)
		}
		if err != nil {
			return nil, fmt.Errorf("message %d of the batch: %w", i, err)
		}
		all[i] = one
	}
	return all, nil
}

// sent takes out of a message that a peer sends what the broker owns, and reads what it asks
// the broker for. It refuses what could be stored but not be delivered.
func sent(m *message.Message) error {
	for _, n := range [...]int{len(m.DeliveryAnnotations), len(m.Annotations), len(m.Properties)} {
		if n > mostPairs {
			return fmt.Errorf("%w: a section of %d pairs, at most %d", amqp.ErrLimit, n, mostPairs)
		}
	}
	m.Broker = message.Broker{}
	m.DeliveryAnnotations = slices.DeleteFunc(m.DeliveryAnnotations, func(p message.Pair) bool { return owned(p.Key) })
	kept := m.Annotations[:0]
	for _, p := range m.Annotations {
		if at, ok := p.Value.(message.Timestamp); ok && p.Key == annScheduled {
			t := at.Time()
			m.ScheduledEnqueueTime = &t
		}
		if p.Key == message.PartitionKeyAnnotation && !isText(p.Value) {
			return fmt.Errorf("%w: the partition key is a %s", amqp.ErrMalformed, message.KindOf(p.Value))
		}
		if !owned(p.Key) {
			kept = append(kept, p)
		}
	}
	if m.Annotations = kept; len(kept) == 0 {
		m.Annotations = nil
	}
	// A time to live beyond what the header can say shows in the difference of two times.
	if m.TTL != nil && *m.TTL == math.MaxUint32*time.Millisecond && m.AbsoluteExpiry != nil && m.Created != nil {
		if ttl := m.AbsoluteExpiry.Sub(*m.Created); ttl > *m.TTL {
			ttl = ttl.Truncate(time.Millisecond)
			m.TTL = &ttl
		}
	}
	return nil
}

// mostPairs leaves room in a section for what the broker adds on delivery.
const mostPairs = amqp.MaxCount/2 - 64

// isText reports whether a partition key is one that the SDK for Go, which takes it for a
// string, can read.
func isText(v message.Value) bool {
	switch v.(type) {
	case message.String, message.Null:
		return true
	}
	return false
}

// swapped exchanges the order of bytes in which RFC 9562 writes a UUID, and $management with
// it, for that in which .NET does, and delivery tags with it. It is its own inverse.
func swapped(u message.UUID) message.UUID {
	u[0], u[1], u[2], u[3] = u[3], u[2], u[1], u[0]
	u[4], u[5] = u[5], u[4]
	u[6], u[7] = u[7], u[6]
	return u
}

// lockTag returns the delivery tag of a lock token.
func lockTag(token message.UUID) message.UUID { return swapped(token) }
