package throttle

import (
	"cmp"
	"context"
	"math"

	"golang.org/x/time/rate"

	"dlq/backends"
	"dlq/backends/message"
)

// Backend is a backend with a limit. All its methods may be called concurrently: they
// share the limit.
type Backend struct {
	backends.Decorator
	limiter *rate.Limiter
}

var (
	_ backends.DirectSettler    = (*Backend)(nil)
	_ backends.DeferredReceiver = (*Backend)(nil)
	_ backends.Mover            = (*Backend)(nil)
	_ backends.Purger           = (*Backend)(nil)
)

// New limits b to perSecond messages a second. What was not used for a while can be used at
// once, up to one second's worth; so in t seconds no more than perSecond * (t + 1) messages
// go through, and one call with more than that waits until all of them may. 0 or less is no
// limit.
//
// A call waits before it begins. When ctx is done first, or its deadline is too near to
// wait for, nothing has happened, and the error wraps that of ctx. Calls that wait go
// ahead in the order in which they came.
func New(b backends.Backend, perSecond float64) *Backend {
	limit := rate.Limit(perSecond)
	if perSecond <= 0 {
		limit = rate.Inf
	}
	burst := int(min(max(math.Ceil(perSecond), 1), math.MaxInt32))
	return &Backend{backends.Decorator{Backend: b}, rate.NewLimiter(limit, burst)}
}

// wait returns when n messages may go through.
func (b *Backend) wait(ctx context.Context, op string, id backends.EntityID, n int) error {
	for n > 0 {
		some := min(n, b.limiter.Burst()) // more than that the limiter refuses to wait for
		if err := b.limiter.WaitN(ctx, some); err != nil {
			// Without an error of its own, ctx has a deadline that is too near.
			cause := cmp.Or(ctx.Err(), context.DeadlineExceeded)
			return &backends.Error{Op: op, Entity: id, Code: backends.Throttled, Err: cause}
		}
		n -= some
	}
	return nil
}

// Send waits for all messages, and sends them in one call: a batch is refused as a whole.
func (b *Backend) Send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	if err := b.wait(ctx, "send to", id, len(msgs)); err != nil {
		return err
	}
	return b.Decorator.Send(ctx, id, msgs)
}

// SettleDirect waits for all messages.
func (b *Backend) SettleDirect(ctx context.Context, id backends.EntityID, o backends.Outcome, seqs ...int64) error {
	if err := b.wait(ctx, "settle in", id, len(seqs)); err != nil {
		return err
	}
	return b.Decorator.SettleDirect(ctx, id, o, seqs...)
}

// Move waits for all messages.
func (b *Backend) Move(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
	if err := b.wait(ctx, "move from", from, len(moves)); err != nil {
		return err
	}
	return b.Decorator.Move(ctx, from, moves)
}

// Purge counts as one message, for nobody knows before how many it will remove.
func (b *Backend) Purge(ctx context.Context, id backends.EntityID) (int64, error) {
	if err := b.wait(ctx, "purge", id, 1); err != nil {
		return 0, err
	}
	return b.Decorator.Purge(ctx, id)
}

// Lease returns a lease with the same limit.
func (b *Backend) Lease(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
	l, err := b.Decorator.Lease(ctx, id, opts)
	return b.limited(id, l, err)
}

// LeaseDeferred returns a lease with the same limit.
func (b *Backend) LeaseDeferred(ctx context.Context, id backends.EntityID, seqs ...int64) (backends.Lease, error) {
	l, err := b.Decorator.LeaseDeferred(ctx, id, seqs...)
	return b.limited(id, l, err)
}

func (b *Backend) limited(id backends.EntityID, l backends.Lease, err error) (backends.Lease, error) {
	if err != nil {
		return nil, err
	}
	return &lease{l, b, id}, nil
}

// lease is a lease with a limit. Release never waits.
type lease struct {
	backends.Lease
	b  *Backend
	id backends.EntityID
}

// Next counts as one message, though it passes over any number that Want refuses.
func (l *lease) Next(ctx context.Context) (*message.Message, error) {
	if err := l.b.wait(ctx, "receive from", l.id, 1); err != nil {
		return nil, err
	}
	return l.Lease.Next(ctx)
}

// Settle waits for all messages, whose locks the lease keeps alive meanwhile.
func (l *lease) Settle(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
	if err := l.b.wait(ctx, "settle in", l.id, len(msgs)); err != nil {
		return err
	}
	return l.Lease.Settle(ctx, o, msgs...)
}
