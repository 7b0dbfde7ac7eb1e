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
	lock *time.Duration // how long locks last; nil: as long as the entity says
	// next locks the next messages of the sweep, or none at its end.
	next  func() ([]*message.Message, error)
	stop  chan struct{} // closed by Release
	after int64         // how far the sweep has come in a session

	mu       sync.Mutex
	ahead    []*message.Message     // locked and not yet handed out
	sessions []message.UUID         // locks of the sessions that the sweep has come to
	held     map[message.UUID]int64 // by the token of the lock: the message's number
	handed   int
	released bool
}

// Lease begins a sweep. It keeps its locks alive by renewing them at a third of their time.
func (b *Backend) Lease(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
	l, info, err := b.lease(ctx, id, opts)
	if err != nil {
		return nil, err
	}
	main := id.Sub == backends.Main
	switch {
	case main && info.RequiresSession:
		l.next = l.sessionBySession
	case opts.Session != nil:
		return nil, &backends.Error{Op: "lease session of", Entity: id, Code: backends.Unsupported, Err: errors.ErrUnsupported}
	case info.Groups:
		l.next = l.groupByGroup()
	default:
		l.next = l.oneByOne()
	}
	return l, b.begin(l, info)
}

// oneByOne goes forward in the order of the numbers.
func (l *lease) oneByOne() func() ([]*message.Message, error) {
	var after int64
	return func() ([]*message.Message, error) {
		msgs, err := l.b.engine.Receive(l.addr, broker.ReceiveOptions{After: after, Lock: l.lock})
		if len(msgs) > 0 {
			after = msgs[0].Broker.SequenceNumber
		}
		return msgs, err
	}
}

// groupByGroup takes as many as it can at once: what is locked in a message group holds back
// what lies behind it, but not for the very call that locks it. The order is not that of the
// numbers, so it remembers all that it has met.
func (l *lease) groupByGroup() func() ([]*message.Message, error) {
	const most = 1000
	met := map[int64]struct{}{}
	o := broker.ReceiveOptions{Max: most, Lock: l.lock, Except: func(seq int64) bool {
		_, again := met[seq]
		return again
	}}
	return func() ([]*message.Message, error) {
		if l.opts.Max > 0 {
			o.Max = min(most, l.opts.Max-l.handed)
		}
		msgs, err := l.b.engine.Receive(l.addr, o)
		for _, m := range msgs {
			met[m.Broker.SequenceNumber] = struct{}{}
		}
		return msgs, err
	}
}

// sessionBySession goes through one session, or through each that is free. It keeps their
// locks until the end, so that none is met twice.
func (l *lease) sessionBySession() ([]*message.Message, error) {
	for {
		if n := len(l.sessions); n > 0 {
			msgs, err := l.b.engine.Receive(l.addr, broker.ReceiveOptions{Session: l.sessions[n-1], After: l.after})
			if len(msgs) > 0 {
				l.after = msgs[0].Broker.SequenceNumber
			}
			if err != nil || len(msgs) > 0 || l.opts.Session != nil {
				return msgs, err
			}
		}
		s, err := l.b.engine.AcceptSession(l.addr, l.opts.Session)
		if errors.Is(err, broker.ErrNoSession) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		l.sessions, l.after = append(l.sessions, s.Token), 0
	}
}

// LeaseDeferred begins a sweep over exactly these deferred messages.
func (b *Backend) LeaseDeferred(ctx context.Context, id backends.EntityID, seqs ...int64) (backends.Lease, error) {
	l, info, err := b.lease(ctx, id, backends.LeaseOptions{})
	if err != nil {
		return nil, err
	}
	l.next = func() ([]*message.Message, error) {
		if len(seqs) == 0 {
			return nil, nil
		}
		seq := seqs[0]
		seqs = seqs[1:]
		return b.engine.ReceiveDeferred(l.addr, broker.ReceiveOptions{}, seq)
	}
	return l, b.begin(l, info)
}

// lease makes a lease that has still to begin.
func (b *Backend) lease(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (*lease, broker.Info, error) {
	a, err := address(ctx, "receive from", id)
	if err != nil {
		return nil, broker.Info{}, err
	}
	info, err := b.engine.Entity(id.Name)
	if err == nil {
		err = b.engine.Exists(a)
	}
	if err == nil && id.Sub == backends.DeadLetterQueue && info.Redrive.Target != "" {
		info, err = b.engine.Entity(info.Redrive.Target) // that is where the sweep is
	}
	var lock *time.Duration
	if err == nil && info.LockDuration == 0 { // a receive would leave messages visible
		info.LockDuration = 30 * time.Second
		lock = &info.LockDuration
	}
	return &lease{b: b, id: id, addr: a, opts: opts, lock: lock, stop: make(chan struct{}), held: map[message.UUID]int64{}}, info, wrap("receive from", id, err)
}

// begin keeps the locks of a lease alive until it is released.
func (b *Backend) begin(l *lease, info broker.Info) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return wrap("receive from", l.id, broker.ErrUnavailable)
	}
	b.leases[l] = struct{}{}
	go l.keepAlive(info.LockDuration / 3)
	return nil
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
	l.mu.Lock()
	sessions := slices.Clone(l.sessions)
	l.mu.Unlock()
	for _, s := range sessions {
		_, _ = l.b.engine.RenewSession(l.addr, s) // one that is lost shows when something is settled
	}
	if len(sessions) > 0 {
		return
	}
	// In chunks, so that a sweep which holds very many does not stop the engine for long.
	for chunk := range slices.Chunk(l.tokens(), 1000) {
		errs, err := l.extend(chunk)
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

// extend makes locks last as long as they did at first, from now on.
func (l *lease) extend(tokens []message.UUID) ([]error, error) {
	if l.lock == nil {
		return l.b.engine.Renew(l.addr, tokens...)
	}
	deliveries := make([]broker.Delivery, len(tokens))
	l.mu.Lock()
	for i, t := range tokens {
		deliveries[i] = broker.Delivery{Seq: l.held[t], Token: t}
	}
	l.mu.Unlock()
	return l.b.engine.Extend(l.addr, *l.lock, deliveries...)
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
	if len(l.ahead) == 0 {
		msgs, err := l.next()
		for _, m := range msgs {
			l.held[m.Broker.LockToken] = m.Broker.SequenceNumber
		}
		if err != nil {
			return nil, wrap("receive from", l.id, err)
		}
		if l.ahead = msgs; len(msgs) == 0 {
			return nil, io.EOF
		}
	}
	m := l.ahead[0]
	l.ahead = l.ahead[1:]
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
	err := l.b.engine.Release(l.addr, l.tokens()...)
	for _, s := range l.sessions {
		if lost := l.b.engine.ReleaseSession(l.addr, s); lost != nil && !errors.Is(lost, broker.ErrSessionLockLost) {
			err = errors.Join(err, lost)
		}
	}
	return wrap("release", l.id, err)
}

func outcome(o backends.Outcome) broker.Outcome {
	action := map[backends.Action]broker.Action{
		backends.Complete: broker.Complete, backends.Abandon: broker.Abandon,
		backends.Defer: broker.Defer, backends.DeadLetter: broker.Bury,
	}[o.Action]
	return broker.Outcome{Action: action, Reason: o.Reason, Description: o.Description, Set: o.Set}
}
