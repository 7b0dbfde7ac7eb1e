package backendtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"dlq/backends"
	"dlq/backends/message"
)

// refLease is a sweep, or with only set a lease of deferred messages.
type refLease struct {
	r        *reference
	id       backends.EntityID
	opts     backends.LeaseOptions
	only     []*item
	seen     map[*item]bool
	handed   int
	released bool
}

func (r *reference) Lease(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
	return r.lease(ctx, id, opts, nil)
}

func (r *reference) LeaseDeferred(ctx context.Context, id backends.EntityID, seqs ...int64) (backends.Lease, error) {
	return r.lease(ctx, id, backends.LeaseOptions{}, seqs)
}

func (r *reference) lease(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions, deferred []int64) (backends.Lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := r.enter(ctx, "lease", id)
	if err != nil {
		return nil, err
	}
	l := &refLease{r: r, id: id, opts: opts, seen: map[*item]bool{}}
	for _, seq := range deferred {
		it := q.find(id.Sub, seq)
		if it == nil || it.m.Broker.State != message.Deferred {
			return nil, fail("lease", id, backends.NotFound, fmt.Errorf("no deferred message %d", seq))
		}
		l.only = append(l.only, it)
	}
	r.leases[l] = true
	return l, nil
}

func (l *refLease) Next(ctx context.Context) (*message.Message, error) {
	for {
		m, err := l.lockOne(ctx)
		if err != nil {
			return nil, err
		}
		if l.opts.Want == nil || l.opts.Want(m) {
			l.handed++
			return m, nil
		}
	}
}

func (l *refLease) lockOne(ctx context.Context) (*message.Message, error) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	q, err := l.r.enter(ctx, "receive", l.id)
	if err != nil {
		return nil, err
	}
	if l.released {
		return nil, fail("receive", l.id, backends.LockLost, errors.New("the lease was released"))
	}
	if l.opts.Max > 0 && l.handed >= l.opts.Max {
		return nil, io.EOF
	}
	for _, it := range q.items {
		if it.sub != l.id.Sub || it.holder != nil || l.seen[it] || !l.covers(it) {
			continue
		}
		l.seen[it], it.holder = true, l
		l.r.tokens++
		binary.BigEndian.PutUint64(it.m.Broker.LockToken[8:], l.r.tokens)
		it.m.Broker.LockedUntil = l.r.now.Add(q.opts.LockDuration)
		return it.m.Clone(), nil
	}
	return nil, io.EOF
}

func (l *refLease) covers(it *item) bool {
	if l.only != nil {
		return slices.Contains(l.only, it)
	}
	s := l.opts.Session
	return it.m.Broker.State == message.Active && (s == nil || it.m.SessionID != nil && *s == *it.m.SessionID)
}

func (l *refLease) Settle(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	q, err := l.r.enter(ctx, "settle", l.id)
	if err != nil {
		return err
	}
	errs := make([]error, len(msgs))
	for i, m := range msgs {
		it := q.find(l.id.Sub, m.Broker.SequenceNumber)
		if it == nil || it.holder != l || it.m.Broker.LockToken != m.Broker.LockToken {
			errs[i] = fail("settle", l.id, backends.LockLost, nil)
			continue
		}
		errs[i] = q.settle(it, o)
	}
	return backends.Batch(errs)
}

func (l *refLease) Release(context.Context) error {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	l.release()
	return nil
}

func (l *refLease) release() {
	l.released = true
	delete(l.r.leases, l)
	q := l.r.find(l.id.Name)
	if q == nil {
		return // deleted
	}
	for _, it := range q.items {
		if it.holder == l && it.m.Broker.LockedUntil.After(l.r.now) {
			q.unlock(it)
		}
	}
}
