package message

import "time"

// Message is one message with all its sections. The zero value is an empty message
// that can be sent.
//
// A Message is not safe for concurrent change. Its byte slices are shared between
// clones and must be treated as read-only; replace a slice, never write into it.
//
// Pointers tell "absent" from "empty": AMQP distinguishes a null from an empty string,
// and so do round trips.
type Message struct {
	// Header section (AMQP 1.0 part 3, 3.2.1), as far as the sender owns it.

	Durable       bool
	Priority      *uint8         // nil: not set, which means 4
	TTL           *time.Duration // time to live from enqueue, in whole milliseconds; nil: the entity's default
	FirstAcquirer bool

	DeliveryAnnotations Map // for the next hop only; brokers may drop them
	Annotations         Map // message annotations the sender set, such as x-opt-partition-key

	// Properties section (3.2.4).

	ID               Value // String, Ulong, UUID or Binary; nil: none
	UserID           []byte
	To               *string
	Subject          *string // "label" in older Service Bus documentation
	ReplyTo          *string
	CorrelationID    Value // String, Ulong, UUID or Binary; nil: none
	ContentType      *string
	ContentEncoding  *string
	AbsoluteExpiry   *time.Time // as the sender stated it; the broker's own is Broker.ExpiresAt
	Created          *time.Time // as the sender stated it; the broker's own is Broker.EnqueuedTime
	SessionID        *string    // group-id; an SQS message group
	GroupSequence    *uint32
	ReplyToSessionID *string // reply-to-group-id

	Properties Properties // application properties (3.2.5), in the order they came

	Body   Body
	Footer Map

	// ScheduledEnqueueTime asks the broker to keep the message back until then. On a
	// message that was read it is what the sender asked for; a resubmit clears it.
	ScheduledEnqueueTime *time.Time

	// Broker is what the broker owns. Send ignores it.
	Broker Broker

	// System holds what only one service has, in the order to show it. Send ignores
	// attributes that the service does not let a sender set.
	System []Attribute
}

// Broker is the part of a message that its broker owns and that no sender can set.
type Broker struct {
	SequenceNumber         int64 // unique and ascending within an entity; 0: the service has none
	EnqueuedSequenceNumber int64 // the number before forwarding or fan-out; 0: never forwarded
	EnqueuedTime           time.Time
	FirstReceived          time.Time // zero: never, or the service does not tell
	ExpiresAt              time.Time // zero: never
	DeliveryCount          uint32    // failed deliveries so far
	State                  State
	LockToken              UUID      // zero: not locked by the reader
	LockedUntil            time.Time // zero: not locked
	DeadLetterSource       string    // entity that dead-lettered it, set when the dead letter was forwarded
	BodyOmitted            bool      // the reader asked for no body: Body is empty, BodySize is not
	BodySize               int64     // bytes of the body at the broker
}

// State is where a message stands in its entity.
type State uint8

// The values are those of the x-opt-message-state annotation of Azure Service Bus.
const (
	Active    State = 0
	Deferred  State = 1
	Scheduled State = 2
)

func (s State) String() string {
	switch s {
	case Active:
		return "active"
	case Deferred:
		return "deferred"
	case Scheduled:
		return "scheduled"
	}
	return "unknown"
}

// Attribute is one named value in a section that keeps its order.
type Attribute struct {
	Name  string
	Value Value
}

// The application properties in which Service Bus keeps why a message died, and the
// annotations that a sender may set.
const (
	DeadLetterReasonProperty      = "DeadLetterReason"
	DeadLetterDescriptionProperty = "DeadLetterErrorDescription"

	PartitionKeyAnnotation    = Symbol("x-opt-partition-key")
	ViaPartitionKeyAnnotation = Symbol("x-opt-via-partition-key")
)

// DeadLetterReason returns why the message was dead-lettered, or "".
func (m *Message) DeadLetterReason() string { return m.Properties.text(DeadLetterReasonProperty) }

// DeadLetterDescription returns the error description it was dead-lettered with, or "".
func (m *Message) DeadLetterDescription() string {
	return m.Properties.text(DeadLetterDescriptionProperty)
}

// Clone returns a copy whose sections can be replaced and whose property lists can be
// changed without touching m. Body bytes and values are shared: they are read-only.
func (m *Message) Clone() *Message {
	c := *m
	c.Properties = append(Properties(nil), m.Properties...)
	c.Annotations = append(Map(nil), m.Annotations...)
	c.DeliveryAnnotations = append(Map(nil), m.DeliveryAnnotations...)
	c.Footer = append(Map(nil), m.Footer...)
	c.System = append([]Attribute(nil), m.System...)
	c.Body.Sections = append([][]byte(nil), m.Body.Sections...)
	return &c
}

// Str returns what p points to, or "" when it is absent.
func Str(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
