package backendtest

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// purging is a fault in what Purge returns.
func purging(change func(n int64) int64) func(*faulty) {
	return func(b *faulty) {
		b.purge = func(ctx context.Context, id backends.EntityID) (int64, error) {
			n, err := b.real.Purge(ctx, id)
			return change(n), err
		}
	}
}

func adminMutants() []mutant {
	return []mutant{
		{name: "claims to purge", caught: []string{"capabilities"}, fault: func(b *faulty) {
			b.purge = func(context.Context, backends.EntityID) (int64, error) { return 0, errors.ErrUnsupported }
		}},
		{name: "counts one purged message too many", caught: []string{
			"purge/missing-entity", "purge/all-but-locked", "purge/dead-letters", "purge/while-others-send", "context/purge",
		}, fault: purging(func(n int64) int64 { return n + 1 })},
		{name: "purges what is locked", caught: []string{"purge/all-but-locked"}, fault: func(b *faulty) {
			var h handed
			b.onLease = h.watch
			b.purge = func(ctx context.Context, id backends.EntityID) (int64, error) {
				for _, m := range h.order {
					_ = h.by[m.Broker.LockToken].settle(ctx, complete, m)
				}
				return b.real.Purge(ctx, id)
			}
		}},
		{name: "purges what is active only", caught: []string{"purge/all-but-locked"}, fault: func(b *faulty) {
			b.purge = func(ctx context.Context, id backends.EntityID) (int64, error) {
				l, err := b.real.Lease(ctx, id, backends.LeaseOptions{})
				for n := int64(0); ; n++ {
					if err != nil {
						return n, err
					}
					m, end := l.Next(ctx)
					if errors.Is(end, io.EOF) {
						return n, nil
					}
					err = l.Settle(ctx, complete, m)
				}
			}
		}},
		{name: "purges the entity for its dead letters", caught: []string{"purge/dead-letters"}, fault: func(b *faulty) {
			b.purge = func(ctx context.Context, id backends.EntityID) (int64, error) {
				return b.real.Purge(ctx, id.MainQueue())
			}
		}},
		{name: "purges the dead letters too", caught: []string{"purge/dead-letters"}, fault: func(b *faulty) {
			b.purge = func(ctx context.Context, id backends.EntityID) (int64, error) {
				_, _ = b.real.Purge(ctx, id.DeadLetters())
				return b.real.Purge(ctx, id)
			}
		}},
		{name: "claims to create", caught: []string{"capabilities"}, fault: func(b *faulty) {
			b.create = func(context.Context, string) error { return errors.ErrUnsupported }
		}},
		{name: "creates what exists", caught: []string{"create/queue"}, fault: func(b *faulty) {
			b.create = func(ctx context.Context, name string) error {
				_, _ = b.real.Purge(ctx, backends.EntityID{Name: name})
				if err := b.real.CreateQueue(ctx, name); !backends.IsCode(err, backends.AlreadyExists) {
					return err
				}
				return nil
			}
		}},
		{name: "does not create", caught: []string{"create/queue"}, fault: func(b *faulty) {
			made := map[string]bool{"queue1": true}
			b.create = func(_ context.Context, name string) error {
				if made[name] {
					return fail("create", backends.EntityID{Name: name}, backends.AlreadyExists, nil)
				}
				made[name] = true
				return nil
			}
		}},
		{name: "creates, and says that it failed", caught: []string{"create/queue", "context/create"}, fault: func(b *faulty) {
			b.create = func(ctx context.Context, name string) error {
				if ctx.Err() != nil {
					return b.real.CreateQueue(ctx, name)
				}
				return errors.Join(b.real.CreateQueue(ctx, name), fail("create", backends.EntityID{}, backends.Unavailable, nil))
			}
		}},
		{name: "claims to validate", caught: []string{"capabilities"}, fault: func(b *faulty) {
			b.validate = func(context.Context, backends.EntityID, *message.Message) error { return errors.ErrUnsupported }
		}},
		{name: "finds everything valid", caught: []string{"validate/agrees-with-send", "context/validate"}, fault: func(b *faulty) {
			b.validate = func(context.Context, backends.EntityID, *message.Message) error { return nil }
		}},
		{name: "finds maps invalid and sends them", caught: []string{"validate/agrees-with-send"}, fault: func(b *faulty) {
			b.validate = func(ctx context.Context, id backends.EntityID, m *message.Message) error {
				for _, p := range m.Properties {
					if message.KindOf(p.Value) == message.KindMap {
						return fail("validate", id, backends.NotCarried, nil)
					}
				}
				return b.real.ValidateSend(ctx, id, m)
			}
		}},
		{name: "validates by sending", caught: []string{"validate/no-side-effects"}, fault: func(b *faulty) {
			b.validate = func(ctx context.Context, id backends.EntityID, m *message.Message) error {
				return b.real.Send(ctx, id, []*message.Message{m})
			}
		}},
		{name: "validates by correcting", caught: []string{"validate/no-side-effects"}, fault: func(b *faulty) {
			b.validate = func(ctx context.Context, id backends.EntityID, m *message.Message) error {
				m.Subject = nil
				return b.real.ValidateSend(ctx, id, m)
			}
		}},
	}
}

// contextCaseNames are the cases about one call each, all but that of Release, which has no
// error to give.
func contextCaseNames() []string {
	var names []string
	for _, c := range contextCases() {
		if c.name != "context/release" {
			names = append(names, c.name)
		}
	}
	return names
}

func lifecycleMutants() []mutant {
	return []mutant{
		{name: "ignores the context", caught: contextCaseNames(), fault: func(b *faulty) { b.ctx = context.WithoutCancel }},
		{name: "hangs when canceled", caught: contextCaseNames(), fault: func(b *faulty) {
			b.ctx = func(ctx context.Context) context.Context {
				if ctx.Err() != nil {
					<-b.stop
				}
				return ctx
			}
		}},
		{name: "hides why it ended", caught: contextCaseNames(), fault: func(b *faulty) {
			b.errs = func(err error) error {
				if errors.Is(err, context.Canceled) {
					return errors.New("the operation was canceled")
				}
				return err
			}
		}},
		{name: "looks at the context once", caught: []string{"context/peek", "context/entities"}, fault: func(b *faulty) {
			b.ctx = func(ctx context.Context) context.Context {
				if ctx.Err() != nil {
					return ctx
				}
				return context.WithoutCancel(ctx)
			}
		}},
		{name: "ends a lease with a context", caught: []string{"context/lease"}, fault: onNext(func(l *faultyLease, next nextFunc) nextFunc {
			return func(ctx context.Context) (*message.Message, error) {
				if ctx.Err() != nil {
					_ = l.release(context.Background())
				}
				return next(ctx)
			}
		})},
		{name: "settles wrongly when canceled", caught: []string{"context/settle"}, fault: onSettle(func(_ *faultyLease, settle settleFunc) settleFunc {
			return func(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
				if err := ctx.Err(); err != nil {
					_ = settle(context.Background(), abandon, msgs...)
					return err
				}
				return settle(ctx, o, msgs...)
			}
		})},
		{name: "fails to close twice", caught: []string{"close/twice"}, fault: func(b *faulty) {
			closed := false
			b.close = func() error {
				if closed {
					return fail("close", backends.EntityID{}, backends.Unavailable, nil)
				}
				closed = true
				return b.real.Close()
			}
		}},
		{name: "hangs in close", caught: []string{"close/twice"}, fault: func(b *faulty) {
			b.close = func() error { <-b.stop; return b.real.Close() }
		}},
		{name: "works when closed", caught: []string{"close/used-after"}, fault: func(b *faulty) { b.close = func() error { return nil } }},
		{name: "panics when closed", caught: []string{"close/used-after"}, fault: func(b *faulty) {
			b.close = func() error { b.send = nil; return b.real.Close() }
		}},
		{name: "keeps its leases when closed", caught: []string{"restart/closed"}, harness: func(h *Harness) {
			restart := h.Restart
			h.Restart = func(t testing.TB, b backends.Backend, _ bool) backends.Backend { return restart(t, b, true) }
		}},
		{name: "abandons when closed", caught: []string{"restart/closed"}, harness: func(h *Harness) {
			restart := h.Restart
			h.Restart = func(t testing.TB, b backends.Backend, _ bool) backends.Backend {
				b = restart(t, b, true)
				h.Advance(t, time.Hour)
				return b
			}
		}},
		{name: "loses a message in a crash", caught: []string{"restart/killed"}, harness: restarting(func(w *world) {
			for _, q := range w.queues {
				q.items = slices.DeleteFunc(q.items, func(it *item) bool { return string(it.m.Body.Bytes()) == "held" })
			}
		})},
		{name: "loses a dead letter in a crash", caught: []string{"restart/killed", "restart/closed"}, harness: restarting(func(w *world) {
			for _, q := range w.queues {
				q.items = slices.DeleteFunc(q.items, func(it *item) bool { return it.sub == backends.DeadLetterQueue })
			}
		})},
		{name: "frees early without counting", caught: []string{"restart/killed"}, harness: restarting(func(w *world) {
			for _, q := range w.queues {
				for _, it := range q.items {
					q.unlock(it)
				}
			}
		})},
		{name: "brings back what was completed", caught: []string{"restart/killed", "restart/closed"}, harness: restarting(func(w *world) {
			for _, q := range w.queues {
				q.add(text("completed"), w.now)
			}
		})},
		{name: "uses numbers again", caught: []string{"restart/sequence-numbers"}, harness: restarting(func(w *world) {
			for _, q := range w.queues {
				q.last = 0
				for _, it := range q.items {
					q.last = max(q.last, it.m.Broker.SequenceNumber)
				}
			}
		})},
	}
}

// restarting is a fault in what survives a restart.
func restarting(change func(w *world)) func(*Harness) {
	return func(h *Harness) {
		restart := h.Restart
		h.Restart = func(t testing.TB, b backends.Backend, kill bool) backends.Backend {
			b = restart(t, b, kill)
			change(b.(*reference).world)
			return b
		}
	}
}
