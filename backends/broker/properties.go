package broker

import "time"

// Kind is what an entity is.
type Kind string

// The kinds of entities.
const (
	Queue        Kind = "queue"
	Topic        Kind = "topic"        // holds no messages but scheduled ones: it copies them to its subscriptions
	Subscription Kind = "subscription" // receives from its topic what its rules let through
)

// Dialect says whose property names, defaults and ranges an entity has. It decides nothing
// else: where the services behave differently, a property of the entity says how.
type Dialect string

// The dialects.
const (
	ServiceBus Dialect = "servicebus"
	SQS        Dialect = "sqs" // queues only
)

// Status is what an entity lets through.
type Status string

// The states of an entity. Administration always works.
const (
	Enabled         Status = "Active"
	Disabled        Status = "Disabled"        // neither in nor out, peek included
	SendDisabled    Status = "SendDisabled"    // nothing in
	ReceiveDisabled Status = "ReceiveDisabled" // nothing out, peek included
)

// Permission says which queues may name a queue as the target of their redrive policy.
type Permission string

// The permissions of a redrive allow policy.
const (
	AllowAll     Permission = "allowAll"
	DenyAll      Permission = "denyAll"
	AllowByQueue Permission = "byQueue"
)

// Redrive is where a queue's dead letters go when its dead-letter queue is a queue of its
// own: a redrive policy.
type Redrive struct {
	// Target is the name of a queue; "": the entity has no redrive policy. In a queue that is
	// named REGION/ACCOUNT/name, one without region and account is taken to be there, too.
	Target      string
	MaxReceives int // 1 to 1000: a message received that often moves when a receive selects it again
}

// RedriveAllow is a redrive allow policy: who may name this queue as a target.
type RedriveAllow struct {
	Permission Permission // "" is AllowAll
	Sources    []string   // names of queues like [Redrive.Target], for AllowByQueue: 1 to 10
}

// Properties are how an entity behaves. [Defaults] makes them; what does not apply to an
// entity's kind or dialect stays zero. The comments name the property as the services do;
// (a) marks what cannot be changed after creation.
type Properties struct {
	Dialect Dialect // (a)
	// CaseSensitive makes the name compare with case, as SQS does. (a)
	CaseSensitive bool
	Status        Status
	UserMetadata  string // Service Bus: at most 1024 characters
	// AutoDeleteOnIdle deletes the entity after that long without use; 0: never. Sends,
	// receives, peeks and changes are use; so are scheduled messages, as long as there are any
	// and when they become active, and whoever waits or watches. Service Bus.
	AutoDeleteOnIdle time.Duration
	// MaxSize bounds the bytes that an entity holds with its sub-queues: Service Bus
	// MaxSizeInMegabytes; 0: no bound.
	MaxSize int64
	// MaxMessageBytes bounds a message: Service Bus MaxMessageSizeInKilobytes, SQS
	// MaximumMessageSize.
	MaxMessageBytes int64

	// LockDuration is how long a lock lasts unless renewed: Service Bus LockDuration, SQS
	// VisibilityTimeout, where 0 leaves a received message visible.
	LockDuration time.Duration
	// LocksEndWithConnection frees a message when the connection that received it breaks, as
	// documented; the recorded service keeps the lock until it expires. Service Bus.
	LocksEndWithConnection bool
	// StaleTokens lets the last token given for a message settle it after its lock has
	// expired, until it is received again: an SQS standard queue's receipt handle.
	StaleTokens bool
	// CountOnReceive counts a delivery when it is made, as SQS does. Otherwise one is counted
	// when it has failed: abandoned, or its lock expired.
	CountOnReceive bool
	// MaxInFlight bounds how many messages are locked at once; 0: no bound. SQS: 120,000.
	MaxInFlight int

	// SubQueues gives the entity a dead-letter sub-queue and a transfer dead-letter
	// sub-queue, as Service Bus has them. (a)
	SubQueues bool
	// MaxDeliveryCount is how often a message is delivered before it moves to the
	// dead-letter sub-queue. Service Bus.
	MaxDeliveryCount int
	// Redrive names another queue for dead letters. SQS RedrivePolicy.
	Redrive      Redrive
	RedriveAllow RedriveAllow // SQS RedriveAllowPolicy
	// RedriveKeepsAge keeps the enqueued time when a redrive policy moves a message; else the
	// move is when it was enqueued. SQS standard: true; SQS FIFO and YMQ: false.
	RedriveKeepsAge bool
	// RedriveKeepsCount keeps the delivery count over that move. SQS: true; YMQ: false.
	RedriveKeepsCount bool

	// DefaultTTL bounds the time to live of messages; 0: no bound. Service Bus
	// DefaultMessageTimeToLive.
	DefaultTTL time.Duration
	// DeadLetterOnExpiration dead-letters what expires; else it is removed. Service Bus
	// DeadLetteringOnMessageExpiration.
	DeadLetterOnExpiration bool
	// Retention is how long a message is kept from its enqueued time on, in flight or not;
	// 0: no bound. It replaces times to live. SQS MessageRetentionPeriod.
	Retention time.Duration

	// Delay holds every message back for that long unless it has a delay of its own. SQS
	// DelaySeconds.
	Delay time.Duration
	// DelayKeepsPlace keeps sequence number and enqueued time of a message whose delay ends,
	// as SQS does; else both are those of its activation, as for scheduled messages of
	// Service Bus.
	DelayKeepsPlace bool
	ReceiveWait     time.Duration // SQS ReceiveMessageWaitTimeSeconds; for servers, the engine never waits

	// RequiresSession: every message belongs to a session, which one receiver at a time
	// locks. Service Bus. (a)
	RequiresSession bool
	// Groups: messages of one group are delivered in order, and none while an earlier one is
	// locked or delayed. SQS FifoQueue. (a)
	Groups bool
	// GroupHeadOnly delivers one message of a group in a receive call. YMQ.
	GroupHeadOnly bool

	// DetectDuplicates drops a message whose id was seen in the last DuplicateWindow. Service
	// Bus RequiresDuplicateDetection; always with Groups. (a)
	DetectDuplicates bool
	DuplicateWindow  time.Duration // Service Bus: 20 s to 7 days; SQS: 5 min
	// DeduplicationID takes the id from the system attribute [DeduplicationIDAttribute], else
	// it is the message id.
	DeduplicationID bool
	// ContentDeduplication takes the SHA-256 of the body for a missing id. SQS
	// ContentBasedDeduplication.
	ContentDeduplication bool
	// DeduplicationPerGroup scopes ids to their group. SQS DeduplicationScope=messageGroup. The
	// service lets that be changed, and then goes on as the queue was created; a server that
	// shows the new value keeps it in Extra. (a)
	DeduplicationPerGroup bool

	// ForwardTo and ForwardDeadLettersTo name the entity that messages or dead letters are
	// transferred to. Service Bus; the second is ForwardDeadLetteredMessagesTo.
	ForwardTo, ForwardDeadLettersTo string
	// DeadLetterOnFilterError dead-letters what a rule fails on; else it is dropped for the
	// subscription. Service Bus DeadLetteringOnFilterEvaluationExceptions.
	DeadLetterOnFilterError bool
	// FilterBeforePublishing refuses a message that a rule of the topic fails on. Service Bus
	// FilteringMessagesBeforePublishing.
	FilterBeforePublishing bool

	// Kept and shown, without effect here.

	BatchedOperations, Partitioning, SupportOrdering bool
	// Extra holds what a server keeps with the entity, such as tags, a policy or a duration as
	// it was written, by name. It is set in Create and Change, and [Properties.List] and
	// [Properties.Set] pass over it.
	Extra map[string]string
}

// DeduplicationIDAttribute is the system attribute that holds a message's deduplication id
// where that is not its message id.
const DeduplicationIDAttribute = "MessageDeduplicationId"
