package backends

import (
	"context"
	"iter"

	"dlq/backends/message"
)

// PeekOptions narrow a peek. The zero value browses everything from the start.
type PeekOptions struct {
	// From is the first sequence number to show; messages below it are passed over.
	From int64
	// Max ends the iteration after that many messages. 0: no bound.
	Max int
	// NoBody leaves the bodies out: [message.Broker.BodyOmitted] is set, and the size given.
	NoBody bool
}

// Peeker browses without side effects: no lock, no count, no order changes. Service Bus
// and dlq's broker have it. SQS has not, and it is never imitated there.
type Peeker interface {
	// Peek yields the messages of the entity in the order of their sequence numbers, locked,
	// deferred and scheduled ones too. It reads page by page, so that memory does not grow
	// with the depth, and sees later changes in pages it has not read. It yields (nil, err)
	// once and stops; breaking out releases what is held.
	Peek(ctx context.Context, id EntityID, opts PeekOptions) iter.Seq2[*message.Message, error]
}

// DirectSettler settles messages by sequence number, without a lease. dlq's broker has it.
type DirectSettler interface {
	// SettleDirect applies o to each message atomically and returns when that is durable. The
	// error is a [BatchError] by index: [NotFound] for a message that is gone, [Locked] while
	// another receiver holds it. Side effects on other messages: none.
	SettleDirect(ctx context.Context, id EntityID, o Outcome, seqs ...int64) error
}

// DeferredReceiver locks deferred messages, which a sweep never meets.
type DeferredReceiver interface {
	// LeaseDeferred returns a lease that hands out exactly these deferred messages. One
	// that does not exist or is not deferred is [NotFound], here or at Next.
	LeaseDeferred(ctx context.Context, id EntityID, seqs ...int64) (Lease, error)
}

// Move is one message to move: from where it lies, changed or not, to an entity.
type Move struct {
	Seq int64 // in the entity that Move is called with
	To  EntityID
	// As is what to put there. Its broker-owned part is ignored. If its body is that of the
	// source (same kind, same bytes), no body is copied.
	As *message.Message
	// Keep leaves the source where it is: a copy.
	Keep bool
	// AllowUnrouted lets a topic have the message though no rule lets it through: then it is
	// gone.
	AllowUnrouted bool
}

// Mover moves messages between entities of one namespace, each in one atomic commit: at
// every instant, and after every crash, it is in exactly one of the two places.
type Mover interface {
	// Move returns when all moves are durable. The error is a [BatchError] by index:
	// [NotFound] for a source that is gone or a destination that does not exist, [Locked] for
	// a source that another receiver holds, whatever Send refuses, and what Send would accept and
	// drop: [Duplicate] and [Unrouted]. Nothing has happened to a message that is named.
	Move(ctx context.Context, from EntityID, moves []Move) error
}

// Purger removes everything from an entity at once.
type Purger interface {
	// Purge removes what is in the entity (its active, deferred and scheduled messages),
	// except what another receiver holds under a lock, and returns how many it removed. It
	// removes nothing that arrives after the call began. On an error n were removed.
	Purge(ctx context.Context, id EntityID) (n int64, err error)
}

// QueueCreator makes queues with the service's defaults.
type QueueCreator interface {
	// CreateQueue makes a queue. One that exists already is [AlreadyExists].
	CreateQueue(ctx context.Context, name string) error
}

// SendValidator says before anything is sent what Send would refuse.
type SendValidator interface {
	// ValidateSend returns nil if Send to the entity would accept m as far as can be known
	// without sending it, or the error that Send would give. Side effects: none.
	ValidateSend(ctx context.Context, id EntityID, m *message.Message) error
}

// Router tells who would get a message. dlq's broker has it.
type Router interface {
	// Route returns where the copies of m would come to rest if it was sent to the entity now,
	// behind forwarding and the rules of topics, in no order; an entity that would get several is named as often.
	// A dead-letter sub-queue among them says that this copy would die on arrival. None at all:
	// no rule lets the message through. It is [Duplicate] if the entity, or one behind it, would
	// drop the message for its id. Side effects: none.
	Route(ctx context.Context, to EntityID, m *message.Message) ([]EntityID, error)
}

// Capabilities is what a backend can do, for showing it to a user. It is derived by
// [Probe] from the very assertions that the code makes, and never stored.
type Capabilities struct {
	Peek, DirectSettle, ReceiveDeferred, Move, Purge, CreateQueue, ValidateSend, AdminEntities, Route bool
}

// Probe reports the optional interfaces that b has.
func Probe(b Backend) Capabilities {
	return Capabilities{
		Peek:            has[Peeker](b),
		DirectSettle:    has[DirectSettler](b),
		ReceiveDeferred: has[DeferredReceiver](b),
		Move:            has[Mover](b),
		Purge:           has[Purger](b),
		CreateQueue:     has[QueueCreator](b),
		ValidateSend:    has[SendValidator](b),
		AdminEntities:   has[EntityAdmin](b),
		Route:           has[Router](b),
	}
}

func has[T any](b Backend) bool {
	_, ok := As[T](b)
	return ok
}
