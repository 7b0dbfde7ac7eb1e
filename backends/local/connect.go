package local

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"dlq/backends"
	"dlq/backends/message"
)

// Connect opens a broker as [Open] does or, when its directory has an owner that stays, works
// with it through that. If that owner ends, the calls underway and the leases end with it, and
// the next call finds the next owner, or makes this process the owner.
func Connect(ctx context.Context, o Options) (backends.Backend, error) {
	if o.Dir == "" || o.FS != nil {
		return Open(ctx, o)
	}
	b, err := reach(ctx, o)
	if err != nil {
		return nil, err
	}
	if c, ok := b.(*client); ok {
		return &connection{o: o, turn: make(chan struct{}, 1), at: c, now: c}, nil
	}
	return b, nil
}

// reach returns a [Backend] or a [client].
func reach(ctx context.Context, o Options) (everything, error) {
	var c *client
	release, err := own(ctx, o.Dir, o.Command, func() (bool, error) {
		var err error
		c, err = dial(ctx, o.Dir)
		return c != nil, err
	})
	switch {
	case err != nil:
		return nil, err
	case c != nil:
		return c, nil
	}
	return openOwned(o, release)
}

// connection is a broker whose owner may change. It begins with that of another process.
type connection struct {
	o    Options
	turn chan struct{} // taken by who looks for the next owner

	mu     sync.Mutex
	at     *client // nil: this process is the owner
	now    everything
	past   []*client // owners that have gone; what is still open at them ends with Close
	closed bool
}

var _ everything = (*connection)(nil)

// current returns the broker where it is now.
func (c *connection) current(ctx context.Context) (everything, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	at, now, closed := c.at, c.now, c.closed
	c.mu.Unlock()
	switch {
	case closed:
		return nil, openError(backends.Unavailable, errors.New("it was closed"))
	case at == nil || !at.isGone():
		return now, nil
	}
	next, err := reach(ctx, c.o)
	if err != nil {
		return nil, fmt.Errorf("%v, through which this went, has ended: %w", at.owner, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.past = append(c.past, at)
	c.at, _ = next.(*client)
	c.now = next
	return next, nil
}

// Close gives the directory back if this process has become its owner.
func (c *connection) Close() error {
	c.turn <- struct{}{} // who looks for an owner takes two seconds at most
	defer func() { <-c.turn }()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	err := c.now.Close()
	for _, p := range c.past {
		err = errors.Join(err, p.Close())
	}
	return err
}

// again makes a call that its owner did not begin a second time, at the next one.
func again[T any](ctx context.Context, c *connection, call func(everything) (T, error)) (T, error) {
	var gone *ownerGone
	for tried := false; ; tried = true {
		b, err := c.current(ctx)
		if err != nil {
			var none T
			return none, err
		}
		v, err := call(b)
		if tried || !errors.As(err, &gone) {
			return v, err
		}
	}
}

// onlyError is again for calls that return nothing else.
func onlyError(ctx context.Context, c *connection, call func(everything) error) error {
	_, err := again(ctx, c, func(b everything) (struct{}, error) { return struct{}{}, call(b) })
	return err
}

// eachAgain is again for iterations that have shown nothing yet.
func eachAgain[T any](ctx context.Context, c *connection, call func(everything) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		stopped, shown := false, false
		err := onlyError(ctx, c, func(b everything) error {
			for v, err := range call(b) {
				if err != nil && !shown {
					return err
				}
				shown = true
				if !yield(v, err) {
					stopped = true
					return nil
				}
			}
			return nil
		})
		if err != nil && !stopped {
			var none T
			yield(none, err)
		}
	}
}

func (c *connection) Entities(ctx context.Context, q backends.EntityQuery) iter.Seq2[backends.Entity, error] {
	return eachAgain(ctx, c, func(b everything) iter.Seq2[backends.Entity, error] { return b.Entities(ctx, q) })
}

func (c *connection) Peek(ctx context.Context, id backends.EntityID, o backends.PeekOptions) iter.Seq2[*message.Message, error] {
	return eachAgain(ctx, c, func(b everything) iter.Seq2[*message.Message, error] { return b.Peek(ctx, id, o) })
}

func (c *connection) Lease(ctx context.Context, id backends.EntityID, o backends.LeaseOptions) (backends.Lease, error) {
	return again(ctx, c, func(b everything) (backends.Lease, error) { return b.Lease(ctx, id, o) })
}

func (c *connection) LeaseDeferred(ctx context.Context, id backends.EntityID, seqs ...int64) (backends.Lease, error) {
	return again(ctx, c, func(b everything) (backends.Lease, error) { return b.LeaseDeferred(ctx, id, seqs...) })
}

func (c *connection) Send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	return onlyError(ctx, c, func(b everything) error { return b.Send(ctx, id, msgs) })
}

func (c *connection) ValidateSend(ctx context.Context, id backends.EntityID, m *message.Message) error {
	return onlyError(ctx, c, func(b everything) error { return b.ValidateSend(ctx, id, m) })
}

func (c *connection) Route(ctx context.Context, to backends.EntityID, m *message.Message) ([]backends.EntityID, error) {
	return again(ctx, c, func(b everything) ([]backends.EntityID, error) { return b.Route(ctx, to, m) })
}

func (c *connection) SettleDirect(ctx context.Context, id backends.EntityID, o backends.Outcome, seqs ...int64) error {
	return onlyError(ctx, c, func(b everything) error { return b.SettleDirect(ctx, id, o, seqs...) })
}

func (c *connection) Move(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
	return onlyError(ctx, c, func(b everything) error { return b.Move(ctx, from, moves) })
}

func (c *connection) Purge(ctx context.Context, id backends.EntityID) (int64, error) {
	return again(ctx, c, func(b everything) (int64, error) { return b.Purge(ctx, id) })
}

func (c *connection) CreateQueue(ctx context.Context, name string) error {
	return onlyError(ctx, c, func(b everything) error { return b.CreateQueue(ctx, name) })
}

func (c *connection) CreateEntity(ctx context.Context, e backends.NewEntity) (backends.EntityDescription, error) {
	return again(ctx, c, func(b everything) (backends.EntityDescription, error) { return b.CreateEntity(ctx, e) })
}

func (c *connection) DescribeEntity(ctx context.Context, id backends.EntityID) (backends.EntityDescription, error) {
	return again(ctx, c, func(b everything) (backends.EntityDescription, error) { return b.DescribeEntity(ctx, id) })
}

func (c *connection) ChangeEntity(ctx context.Context, id backends.EntityID, settings ...backends.Setting) error {
	return onlyError(ctx, c, func(b everything) error { return b.ChangeEntity(ctx, id, settings...) })
}

func (c *connection) DeleteEntity(ctx context.Context, id backends.EntityID) error {
	return onlyError(ctx, c, func(b everything) error { return b.DeleteEntity(ctx, id) })
}

func (c *connection) AddRule(ctx context.Context, subscription backends.EntityID, r backends.Rule) error {
	return onlyError(ctx, c, func(b everything) error { return b.AddRule(ctx, subscription, r) })
}

func (c *connection) RemoveRule(ctx context.Context, subscription backends.EntityID, name string) error {
	return onlyError(ctx, c, func(b everything) error { return b.RemoveRule(ctx, subscription, name) })
}
