package backendtest

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// handed remembers who was given what, for mutants that mix up their leases.
type handed struct {
	mu    sync.Mutex
	by    map[message.UUID]*faultyLease
	order []*message.Message
}

func (h *handed) watch(l *faultyLease) {
	next := l.next
	l.next = func(ctx context.Context) (*message.Message, error) {
		m, err := next(ctx)
		if err == nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.by == nil {
				h.by = map[message.UUID]*faultyLease{}
			}
			h.by[m.Broker.LockToken] = l
			h.order = append(h.order, m.Clone())
		}
		return m, err
	}
}

func leaseMutants() []mutant {
	return []mutant{
		{name: "waits at the end", caught: []string{"lease/end"}, fault: onNext(func(l *faultyLease, next nextFunc) nextFunc {
			return func(ctx context.Context) (*message.Message, error) {
				m, err := next(ctx)
				if errors.Is(err, io.EOF) {
					<-l.b.stop
				}
				return m, err
			}
		})},
		{name: "says nothing at the end", caught: []string{"lease/end"}, fault: func(b *faulty) {
			b.errs = func(err error) error {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
		}},
		{name: "ends once", caught: []string{"lease/end"}, fault: onNext(func(l *faultyLease, next nextFunc) nextFunc {
			ended := false
			return func(ctx context.Context) (*message.Message, error) {
				if ended {
					return nil, fail("receive", l.id, backends.Unavailable, nil)
				}
				m, err := next(ctx)
				ended = err != nil
				return m, err
			}
		})},
		{name: "gives no lock token", caught: []string{"lease/locks"}, fault: receiving(func(_ backends.EntityID, m *message.Message) {
			m.Broker.LockToken = message.UUID{}
		})},
		{name: "does not say until when", caught: []string{"lease/locks"}, fault: receiving(func(_ backends.EntityID, m *message.Message) {
			m.Broker.LockedUntil = time.Time{}
		})},
		{name: "hands out what another holds", caught: []string{
			"lease/competing", "lease/max", "lease/want", "lease/release", "deferred/competing", "concurrency/all-accounted-for",
		}, fault: func(b *faulty) {
			var h handed
			b.onLease = func(l *faultyLease) {
				h.watch(l)
				next, given := l.next, 0
				l.next = func(ctx context.Context) (*message.Message, error) {
					m, err := next(ctx)
					h.mu.Lock()
					defer h.mu.Unlock()
					for errors.Is(err, io.EOF) && given < len(h.order) {
						given++
						if other := h.order[given-1]; h.by[other.Broker.LockToken] != l {
							return other.Clone(), nil
						}
					}
					return m, err
				}
			}
		}},
		{name: "locks ahead of next", caught: []string{"lease/locks-nothing-before-next"}, fault: func(b *faulty) {
			b.onLease = func(l *faultyLease) {
				next := l.next
				first, err := next(context.Background())
				l.next = func(ctx context.Context) (*message.Message, error) {
					if first == nil && err == nil {
						return next(ctx)
					}
					m, e := first, err
					first, err = nil, nil
					return m, e
				}
			}
		}},
		{name: "sweeps again", caught: []string{"lease/once-in-a-sweep"}, fault: onNext(func(l *faultyLease, next nextFunc) nextFunc {
			again := false
			return func(ctx context.Context) (*message.Message, error) {
				m, err := next(ctx)
				if errors.Is(err, io.EOF) && !again {
					again = true
					second, _ := l.b.real.Lease(ctx, l.id, l.opts)
					next, l.release = second.Next, second.Release
					return next(ctx)
				}
				return m, err
			}
		})},
		{name: "ignores Max", caught: []string{"lease/max", "lease/want-and-max"}, fault: func(b *faulty) {
			b.lease = func(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
				opts.Max = 0
				return b.real.Lease(ctx, id, opts)
			}
		}},
		{name: "counts what Want refused", caught: []string{"lease/want-and-max"}, fault: func(b *faulty) {
			b.lease = func(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
				want, n := opts.Want, 0
				opts.Want = func(m *message.Message) bool {
					n++
					return want == nil || want(m) && (opts.Max == 0 || n <= opts.Max)
				}
				return b.real.Lease(ctx, id, opts)
			}
		}},
		{name: "ignores Want", caught: []string{"lease/want", "lease/want-and-max"}, fault: func(b *faulty) {
			b.lease = func(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
				opts.Want = nil
				return b.real.Lease(ctx, id, opts)
			}
		}},
		{name: "asks Want without the body", caught: []string{"lease/want"}, fault: func(b *faulty) {
			b.lease = func(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
				if want := opts.Want; want != nil {
					opts.Want = func(m *message.Message) bool {
						m = m.Clone()
						m.Body = message.DataBody(nil)
						return want(m)
					}
				}
				return b.real.Lease(ctx, id, opts)
			}
		}},
		{name: "abandons what Want refused", caught: []string{"lease/want"}, fault: func(b *faulty) {
			b.lease = func(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
				opts.Want = nil
				return b.real.Lease(ctx, id, opts)
			}
			b.onLease = func(l *faultyLease) {
				next := l.next
				l.next = func(ctx context.Context) (*message.Message, error) {
					for {
						m, err := next(ctx)
						if err != nil || l.opts.Want == nil || l.opts.Want(m) {
							return m, err
						}
						_ = l.settle(ctx, abandon, m)
					}
				}
			}
		}},
		{name: "ignores the session", caught: []string{"lease/session"}, fault: func(b *faulty) {
			b.lease = func(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
				opts.Session = nil
				return b.real.Lease(ctx, id, opts)
			}
		}},
		{name: "does not release", caught: []string{"lease/release", "lease/want", "context/release"}, fault: func(b *faulty) {
			b.onLease = func(l *faultyLease) { l.release = func(context.Context) error { return nil } }
		}},
		{name: "releases by abandoning", caught: []string{"lease/release"}, fault: func(b *faulty) {
			b.onLease = func(l *faultyLease) {
				next, settle, release := l.next, l.settle, l.release
				var got []*message.Message
				l.next = func(ctx context.Context) (*message.Message, error) {
					m, err := next(ctx)
					if err == nil {
						got = append(got, m)
					}
					return m, err
				}
				l.release = func(ctx context.Context) error {
					_ = settle(ctx, abandon, got...)
					return release(ctx)
				}
			}
		}},
		{name: "releases once", caught: []string{"lease/release"}, fault: func(b *faulty) {
			b.onLease = func(l *faultyLease) {
				release, done := l.release, false
				l.release = func(ctx context.Context) error {
					if done {
						return fail("release", l.id, backends.LockLost, nil)
					}
					done = true
					return release(ctx)
				}
			}
		}},
		{name: "hangs in release", caught: []string{"lease/release", "context/release"}, fault: func(b *faulty) {
			b.onLease = func(l *faultyLease) {
				release := l.release
				l.release = func(ctx context.Context) error { <-b.stop; return release(ctx) }
			}
		}},
		{name: "forgets a release that was canceled", caught: []string{"context/release"}, fault: func(b *faulty) {
			b.onLease = func(l *faultyLease) {
				release, begun := l.release, false
				l.release = func(ctx context.Context) error {
					if begun || ctx.Err() != nil {
						begun = true
						return ctx.Err()
					}
					return release(ctx)
				}
			}
		}},
		{name: "goes on after release", caught: []string{"lease/after-release"}, fault: func(b *faulty) {
			b.onLease = func(l *faultyLease) {
				release := l.release
				l.release = func(ctx context.Context) error {
					if again, err := b.real.Lease(ctx, l.id, l.opts); err == nil {
						l.next = again.Next
					}
					return release(ctx)
				}
			}
		}},
		{name: "does not renew", caught: []string{"lease/keeps-its-locks"}, harness: func(h *Harness) { h.AdvanceSlowly = h.Advance }},
		{name: "settles what it lost", caught: []string{
			"lease/expired-lock", "lease/after-release", "settle/twice", "settle/not-ours", "settle/batch-by-index", "deferred/competing",
		}, fault: func(b *faulty) {
			b.errs = func(err error) error { return dropItems(err, backends.LockLost) }
		}},
		{
			name: "settles by number", caught: []string{"lease/expired-lock", "settle/twice"},
			fault: onSettle(func(l *faultyLease, settle settleFunc) settleFunc {
				return func(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
					if err := settle(ctx, o, msgs...); err == nil {
						return nil
					}
					return l.b.real.SettleDirect(ctx, l.id, o, sequences(msgs)...)
				}
			}),
		},
		{name: "counts no failures", caught: []string{
			"lease/expired-lock", "settle/twice", "settle/abandon", "settle/abandon-too-often", "lease/expired-too-often", "restart/killed",
		}, fault: receiving(func(_ backends.EntityID, m *message.Message) { m.Broker.DeliveryCount = 0 })},
		{name: "counts every delivery", caught: []string{
			"send/receive-complete", "send/ignores-broker-part", "lease/want", "lease/release", "settle/abandon", "peek/no-side-effects",
			"deadletter/never-leaves-by-failing", "move/unedited", "restart/closed",
		}, fault: receiving(func(_ backends.EntityID, m *message.Message) { m.Broker.DeliveryCount++ })},
		{
			name: "allows one delivery more than it declares", caught: []string{"lease/expired-too-often", "settle/abandon-too-often"},
			fault: func(b *faulty) { b.describe(func(e *backends.Entity) { e.Limits.MaxDeliveryCount-- }) },
		},
	}
}
