package local

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// releaseWait bounds a release, which does not look at the caller's context: see [lease].
const releaseWait = 3 * time.Second

// remoteLease is a lease that the owner holds for this process. It ends with its connection,
// however this process ends; calls on it go over other connections, so that cancelling one of
// them does not end the lease.
type remoteLease struct {
	c      *client
	anchor *wire // carries nothing but the lease's beginning and end
	handle uint64
	id     backends.EntityID
	opts   backends.LeaseOptions

	released atomic.Bool

	// These belong to the one caller of Next.
	ahead  []*message.Message // locked by the owner and not yet handed out
	then   error              // what follows them; nil: more can come
	batch  uint64             // how many batches have come
	most   int                // in the next batch: few at first, so that a short sweep locks little
	handed int
}

func (c *client) Lease(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
	req := &request{Op: opLease, Entity: id, Session: opts.Session}
	if opts.Want == nil {
		req.Max = opts.Max // otherwise only this side knows what counts
	}
	return c.lease(ctx, req, opts)
}

func (c *client) LeaseDeferred(ctx context.Context, id backends.EntityID, seqs ...int64) (backends.Lease, error) {
	return c.lease(ctx, &request{Op: opLeaseDeferred, Entity: id, Seqs: seqs}, backends.LeaseOptions{})
}

func (c *client) lease(ctx context.Context, req *request, opts backends.LeaseOptions) (backends.Lease, error) {
	w, r, err := c.stream(ctx, req, func(reply) bool { return true })
	if err != nil {
		if w != nil {
			c.put(w)
		}
		return nil, err
	}
	if w == nil { // canceled when the answer was there
		return nil, ctx.Err()
	}
	l := &remoteLease{c: c, anchor: w, handle: r.Lease, id: req.Entity, opts: opts, most: 1}
	c.mu.Lock()
	c.leases[l] = struct{}{}
	c.mu.Unlock()
	return l, nil
}

// Next returns what was locked ahead, or asks for more: twice as many each time, up to what
// the owner gives at once.
func (l *remoteLease) Next(ctx context.Context) (*message.Message, error) {
	for {
		m, err := l.next(ctx)
		if err != nil {
			return nil, err
		}
		if l.opts.Want == nil || l.opts.Want(m) {
			l.handed++
			return m, nil
		}
	}
}

func (l *remoteLease) next(ctx context.Context) (*message.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch {
	case l.released.Load():
		return nil, lost(opNext, l.id)
	case l.opts.Max > 0 && l.handed >= l.opts.Max:
		return nil, io.EOF
	}
	if len(l.ahead) == 0 && l.then == nil {
		if err := l.fetch(ctx); err != nil {
			return nil, err
		}
	}
	if len(l.ahead) > 0 {
		m := l.ahead[0]
		l.ahead[0] = nil
		l.ahead = l.ahead[1:]
		return m, nil
	}
	err := l.then
	l.then = nil // who asks again may get more
	return nil, err
}

// fetch gets a batch.
func (l *remoteLease) fetch(ctx context.Context) error {
	req := &request{Op: opNext, Entity: l.id, Lease: l.handle, Batch: l.batch + 1, Max: l.most}
	r, err := l.c.ask(ctx, req)
	if err != nil && !errors.Is(err, io.EOF) && len(r.Messages) == 0 {
		return err
	}
	l.batch++
	l.most = min(2*l.most, maxBatch)
	l.ahead, l.then = r.Messages, err
	if len(r.Messages) == 0 && err == nil {
		l.then = failed(req, backends.Unavailable, errors.New("the owner gave neither a message nor an end"))
	}
	return nil
}

func (l *remoteLease) Settle(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
	req := &request{Op: opSettle, Entity: l.id, Lease: l.handle, Outcome: o, Tokens: make([]message.UUID, len(msgs))}
	for i, m := range msgs {
		if m != nil { // else the zero token, which stands for no lock
			req.Tokens[i] = m.Broker.LockToken
		}
	}
	if err := message.Check(&message.Message{Properties: o.Set}); err != nil {
		return failed(req, backends.Invalid, err)
	}
	return l.c.change(ctx, req)
}

// Release asks the owner to unlock what is held. Where that fails the connection ends, which
// says the same; with very many locks the owner goes on by itself when this side has waited
// long enough.
func (l *remoteLease) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWait)
	defer cancel()
	return l.release(ctx)
}

func (l *remoteLease) release(ctx context.Context) error {
	if l.released.Swap(true) {
		return nil
	}
	l.c.mu.Lock()
	delete(l.c.leases, l)
	l.c.mu.Unlock()
	req := &request{Op: opRelease, Entity: l.id, Lease: l.handle}
	frame, err := encode(req)
	if err != nil {
		return err
	}
	w, _, err := l.c.exchange(ctx, l.anchor, req, frame, func(reply) bool { return true })
	if w != nil {
		l.c.put(w)
	}
	var gone *ownerGone
	if errors.As(err, &gone) || errors.Is(err, context.DeadlineExceeded) {
		return nil // and with it the locks
	}
	return err
}
