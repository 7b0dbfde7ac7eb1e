package local

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"dlq/backends"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// lease is a sweep over a queue. It remembers how far it came, so that a message which
// returns to the queue behind it is not handed out twice.
type lease struct {
	b    *Backend
	id   backends.EntityID
	addr broker.Address
	opts backends.LeaseOptions
	// next locks the next message of the sweep; nil: there is none.
	next func() (*message.Message, error)
	stop chan struct{} // closed by Release

	mu       sync.Mutex
	held     map[message.UUID]struct{}
	handed   int
	released bool
}

// Lease begins a sweep. It keeps its locks alive by renewing them at a third of their time.
func (b *Backend) Lease(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
	if opts.Session != nil {
		return nil, &backends.Error{Op: "lease session of", Entity: id, Code: backends.Unsupported, Err: errors.ErrUnsupported}
	}
	var after int64
	return b.lease(ctx, id, opts, func(a broker.Address) (*message.Message, error) {
		m, err := b.engine.Receive(a, after)
		if m != nil {
			after = m.Broker.SequenceNumber
		}
		return m, err
	})
}

// LeaseDeferred begins a sweep over exactly these deferred messages.
func (b *Backend) LeaseDeferred(ctx context.Context, id backends.EntityID, seqs ...int64) (backends.Lease, error) {
	return b.lease(ctx, id, backends.LeaseOptions{}, func(a broker.Address) (*message.Message, error) {
		if len(seqs) == 0 {
			return nil, nil
		}
		seq := seqs[0]
		seqs = seqs[1:]
		return b.engine.ReceiveDeferred(a, seq)
	})
}

func (b *Backend) lease(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions, next func(broker.Address) (*message.Message, error)) (*lease, error) {
	a, err := address(ctx, "receive from", id)
	if err != nil {
		return nil, err
	}
	info, err := b.engine.Queue(a)
	if err != nil {
		return nil, wrap("receive from", id, err)
	}
	l := &lease{
		b: b, id: id, addr: a, opts: opts, stop: make(chan struct{}), held: map[message.UUID]struct{}{},
		next: func() (*message.Message, error) { return next(a) },
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, wrap("receive from", id, broker.ErrUnavailable)
	}
	b.leases[l] = struct{}{}
	go l.keepAlive(info.LockDuration / 3)
	return l, nil
}

// keepAlive renews what is held until the lease is released. A lock that is lost shows
// when it is settled.
func (l *lease) keepAlive(every time.Duration) {
	tick := time.NewTicker(max(every, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			l.renew()
		}
	}
}

func (l *lease) renew() {
	// In chunks, so that a sweep which holds very many does not stop the engine for long.
	for chunk := range slices.Chunk(l.tokens(), 1000) {
		errs, err := l.b.engine.Renew(l.addr, chunk...)
		if err != nil {
			return // it shows when something is settled
		}
		l.mu.Lock()
		for i, err := range errs {
			if errors.Is(err, broker.ErrLockLost) {
				delete(l.held, chunk[i])
			}
		}
		l.mu.Unlock()
	}
}

func (l *lease) tokens() []message.UUID {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]message.UUID, 0, len(l.held))
	for t := range l.held {
		out = append(out, t)
	}
	return out
}

func (l *lease) Next(ctx context.Context) (*message.Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, err := l.take()
		if err != nil {
			return nil, err
		}
		if l.opts.Want == nil || l.opts.Want(m) {
			l.mu.Lock()
			l.handed++
			l.mu.Unlock()
			return m, nil
		}
	}
}

// take locks one message, and notes that it is held before Release can miss it.
func (l *lease) take() (*message.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return nil, wrap("receive from", l.id, broker.ErrLockLost)
	}
	if l.opts.Max > 0 && l.handed >= l.opts.Max {
		return nil, io.EOF
	}
	m, err := l.next()
	if err != nil {
		return nil, wrap("receive from", l.id, err)
	}
	if m == nil {
		return nil, io.EOF
	}
	l.held[m.Broker.LockToken] = struct{}{}
	return m, nil
}

func (l *lease) Settle(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	tokens := make([]message.UUID, len(msgs))
	l.mu.Lock()
	for i, m := range msgs {
		if m == nil {
			continue // like a message that is not ours
		}
		// A token that is not ours becomes the zero token, which stands for no lock.
		if _, ours := l.held[m.Broker.LockToken]; ours {
			tokens[i] = m.Broker.LockToken
		}
	}
	l.mu.Unlock()
	errs, err := l.b.engine.Settle(l.addr, outcome(o), tokens...)
	if err == nil {
		l.mu.Lock()
		for i, t := range tokens {
			if errs[i] == nil {
				delete(l.held, t)
			}
		}
		l.mu.Unlock()
	}
	return wrapAll(o.Action.String(), l.id, errs, err)
}

// Release unlocks what is held. It does not look at ctx: it is one short command, and
// leaving locks behind because a caller was cancelled helps nobody.
func (l *lease) Release(context.Context) error {
	l.mu.Lock()
	if l.released {
		l.mu.Unlock()
		return nil
	}
	l.released = true
	close(l.stop)
	l.mu.Unlock()
	l.b.mu.Lock()
	delete(l.b.leases, l)
	l.b.mu.Unlock()
	return wrap("release", l.id, l.b.engine.Release(l.addr, l.tokens()...))
}

func outcome(o backends.Outcome) broker.Outcome {
	action := map[backends.Action]broker.Action{
		backends.Complete: broker.Complete, backends.Abandon: broker.Abandon,
		backends.Defer: broker.Defer, backends.DeadLetter: broker.Bury,
	}[o.Action]
	return broker.Outcome{Action: action, Reason: o.Reason, Description: o.Description, Set: o.Set}
}
