package backends

import (
	"context"
	"iter"
	"time"

	"dlq/backends/message"
)

// Backend is one message service, opened. All methods may be called concurrently.
// Retries are not a driver's business: a [Backend] that retries is a decorator.
//
// Every method returns soon after ctx is done, with an error that wraps ctx.Err(). Then
// the outcome of a call that changes something is unknown unless its comment says more.
type Backend interface {
	// Entities yields the entities that match q, in the order of their names, in which a slash
	// comes first: a topic is followed by its subscriptions. It reads page by page and blocks
	// for one page at a time. It yields (Entity{}, err) once and stops. Side effects on
	// messages: none.
	Entities(ctx context.Context, q EntityQuery) iter.Seq2[Entity, error]

	// Lease begins one sweep over the messages of id, locking forward. It takes no lock
	// before the first Next. A missing entity is [NotFound], here or at the first Next.
	Lease(ctx context.Context, id EntityID, opts LeaseOptions) (Lease, error)

	// Send puts messages into the entity and returns when the service has acknowledged
	// them: acknowledged means durable, as far as the service promises it. What the broker
	// owns ([message.Message.Broker]) is ignored. A value or a size that the service cannot
	// carry is refused before anything is sent: then every message of the call is named, those
	// that were not at fault with [NotTried]. The error is a [BatchError] that names each message which was not accepted, by its index;
	// those it does not name were accepted, and those it marks [Unknown] may have been.
	Send(ctx context.Context, id EntityID, msgs []*message.Message) error

	// Close releases everything, leases too. It is idempotent, and bounded to a few seconds.
	Close() error
}

// Lease is one sweep over an entity's messages under peek-lock. It hands out each
// message at most once, and keeps the locks of what it handed out alive by itself; a lock
// that is lost all the same shows in Settle's error. Other receivers do not see what it
// holds. Methods may be called concurrently, except that Next has one caller at a time.
type Lease interface {
	// Next locks and returns the next message that the lease's Want accepts. What Want
	// refuses stays locked, without its body, until Release: let go earlier, it would come
	// straight back. Next returns io.EOF at the end of the sweep, when no message is free;
	// it does not wait for messages to arrive.
	Next(ctx context.Context) (*message.Message, error)

	// Settle decides what becomes of messages that Next returned, and returns when the
	// service has acknowledged it. The error is a [BatchError] by index; a message whose
	// lock was lost or that was settled before is [LockLost], and nothing has changed.
	// errors.ErrUnsupported where the service has no such outcome. Side effects on other
	// messages: none.
	Settle(ctx context.Context, o Outcome, msgs ...*message.Message) error

	// Release lets go of everything that is still held, so that others can receive it at
	// once where the service allows it. Counting of deliveries is the service's: dlq's
	// broker counts nothing. It is idempotent and bounded to a few seconds even when ctx
	// has no deadline.
	Release(ctx context.Context) error
}

// LeaseOptions narrow a lease. The zero value sweeps everything.
type LeaseOptions struct {
	// Session restricts the lease to one session and locks that. nil: the entity's
	// messages without regard to sessions, where the service allows it.
	Session *string
	// Max ends the sweep after that many messages were handed out. 0: no bound.
	Max int
	// Want picks the messages to hand out. nil: all. It must not keep the message that it
	// is shown, nor call the lease.
	Want func(*message.Message) bool
}

// Action is what Settle does.
type Action uint8

const (
	// Complete removes the message for good.
	Complete Action = iota + 1
	// Abandon returns it to the entity. A failed delivery is counted, outside dead-letter
	// sub-queues, and the message may be dead-lettered by that.
	Abandon
	// Defer sets it aside: only [DeferredReceiver] can get it then.
	Defer
	// DeadLetter moves it to the entity's dead-letter sub-queue.
	DeadLetter
)

func (a Action) String() string {
	if a > DeadLetter {
		return "unknown"
	}
	return [...]string{"none", "complete", "abandon", "defer", "dead-letter"}[a]
}

// Outcome is an action with its arguments.
type Outcome struct {
	Action Action
	// Reason and Description say why, for DeadLetter: at most 4,096 characters each.
	Reason, Description string
	// Set holds application properties to set, for Abandon, Defer and DeadLetter.
	Set []message.Attribute
}

// EntityQuery narrows Entities. The zero value asks for all entities with their counts.
type EntityQuery struct {
	// Prefix keeps the entities whose name begins with it, compared as the service compares
	// names.
	Prefix string
	// Names keeps exactly these. An unknown one is [NotFound], named. Empty: all.
	Names []string
	// NoCounts leaves the counts out, where they cost a call for each entity.
	NoCounts bool
}

// EntityKind is what an entity is.
type EntityKind string

const (
	Queue        EntityKind = "queue"
	Topic        EntityKind = "topic"
	Subscription EntityKind = "subscription"
)

// Entity is a queue, topic or subscription. Its sub-queues are not entities of their own.
type Entity struct {
	ID     EntityID // always of the main sub-queue
	Kind   EntityKind
	Counts Counts
	// DeadLetters is where the entity's dead letters go: its own sub-queue, or another
	// queue named by a redrive policy. Zero: nowhere.
	DeadLetters EntityID
	// Sources are the entities whose dead letters come here, where the service tells.
	Sources []EntityID
	// Oldest is the enqueued time of the oldest dead letter; zero if there is none or the
	// service does not tell.
	Oldest time.Time
	Limits Limits
	// RequiresSession says that the entity takes only messages with a session id, or a
	// message group.
	RequiresSession bool
	Deduplication   Deduplication
}

// Resolve returns where the messages of a sub-queue of the entity lie: in the sub-queue, or,
// if they are dead letters, in the queue that a redrive policy names. The dead letters of such a
// queue are what it holds itself, unless it has a policy of its own.
func (e Entity) Resolve(sub Sub) EntityID {
	switch {
	case sub != DeadLetterQueue || e.DeadLetters == (EntityID{}) && len(e.Sources) == 0:
		return EntityID{Name: e.ID.Name, Sub: sub}
	case e.DeadLetters != (EntityID{}):
		return e.DeadLetters
	}
	return e.ID
}

// Deduplication is how an entity recognises a message that it has had, which it accepts and
// drops.
type Deduplication struct {
	// Window is how long it remembers a message. 0: it detects no duplicates.
	Window time.Duration
	// Attribute is the system attribute that it goes by. "": the message id.
	Attribute string
}

// Counts are how many messages an entity holds. A negative number means unknown.
type Counts struct {
	Active, DeadLetter, TransferDeadLetter, Scheduled, Deferred int64
	// Delayed are held back by a delay of their entity, and not among Active. InFlight are held
	// by receivers, active ones among them.
	Delayed, InFlight int64
	// Summed says that a topic, which holds nothing but scheduled messages, has the sums of
	// its subscriptions' counts.
	Summed bool
	// Source says where the numbers come from, such as "exact" or "runtime properties";
	// when they are unknown, why.
	Source string
	// AsOf is when they were true.
	AsOf time.Time
}

// Limits are what an entity accepts. Zero means that no limit is known.
type Limits struct {
	// MaxBodyBytes is the largest body that passes in a message which holds nothing else.
	MaxBodyBytes int64
	// LockDuration is how long a lock lasts unless renewed.
	LockDuration time.Duration
	// MaxDeliveryCount is how often a message is delivered before it is dead-lettered.
	MaxDeliveryCount int
}
