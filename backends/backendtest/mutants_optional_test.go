package backendtest

import (
	"context"
	"errors"
	"slices"

	"dlq/backends"
	"dlq/backends/message"
)

func directMutants() []mutant {
	return []mutant{
		{name: "claims to settle directly", caught: []string{"capabilities"}, fault: func(b *faulty) {
			b.direct = func(context.Context, backends.EntityID, backends.Outcome, ...int64) error {
				return errors.ErrUnsupported
			}
		}},
		{
			name: "settles nothing directly", caught: []string{"direct/complete-any-state", "direct/dead-letter", "direct/defer", "direct/abandon"},
			fault: func(b *faulty) {
				b.direct = func(context.Context, backends.EntityID, backends.Outcome, ...int64) error { return nil }
			},
		},
		{name: "settles directly what is active only", caught: []string{"direct/complete-any-state", "direct/defer"}, fault: func(b *faulty) {
			b.direct = func(ctx context.Context, id backends.EntityID, o backends.Outcome, seqs ...int64) error {
				for m := range b.real.Peek(ctx, id, backends.PeekOptions{}) {
					if slices.Contains(seqs, m.Broker.SequenceNumber) && m.Broker.State != message.Active {
						return fail("settle", id, backends.NotFound, nil)
					}
				}
				return b.real.SettleDirect(ctx, id, o, seqs...)
			}
		}},
		{name: "settles directly in the wrong place", caught: []string{"direct/complete-any-state"}, fault: func(b *faulty) {
			b.direct = func(ctx context.Context, id backends.EntityID, o backends.Outcome, seqs ...int64) error {
				return b.real.SettleDirect(ctx, id.MainQueue(), o, seqs...)
			}
		}},
		{name: "does not mind a lock", caught: []string{"direct/locked", "direct/batch-by-index", "move/locked", "move/batch-by-index"}, fault: func(b *faulty) {
			b.errs = func(err error) error { return dropItems(err, backends.Locked) }
		}},
		{name: "takes a lock away", caught: []string{"direct/locked", "move/locked"}, fault: func(b *faulty) {
			var h handed
			b.onLease = h.watch
			b.direct = func(ctx context.Context, id backends.EntityID, o backends.Outcome, seqs ...int64) error {
				err := b.real.SettleDirect(ctx, id, o, seqs...)
				h.releaseAll(ctx)
				return err
			}
			b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
				err := b.real.Move(ctx, from, moves)
				h.releaseAll(ctx)
				return err
			}
		}},
		{name: "claims to receive deferred messages", caught: []string{"capabilities"}, fault: func(b *faulty) {
			b.deferred = func(context.Context, backends.EntityID, ...int64) (backends.Lease, error) {
				return nil, errors.ErrUnsupported
			}
		}},
		{name: "receives the active for the deferred", caught: []string{"deferred/missing", "deferred/exactly-these", "deferred/release"}, fault: func(b *faulty) {
			b.deferred = func(ctx context.Context, id backends.EntityID, _ ...int64) (backends.Lease, error) {
				return b.real.Lease(ctx, id, backends.LeaseOptions{})
			}
		}},
		{name: "receives other deferred messages too", caught: []string{"deferred/exactly-these"}, fault: func(b *faulty) {
			b.deferred = func(ctx context.Context, id backends.EntityID, seqs ...int64) (backends.Lease, error) {
				if len(seqs) > 1 {
					seqs = append(seqs, seqs[0]+1)
				}
				return b.real.LeaseDeferred(ctx, id, seqs...)
			}
		}},
		{name: "makes active what it received deferred", caught: []string{"deferred/release"}, fault: func(b *faulty) {
			b.deferred = func(ctx context.Context, id backends.EntityID, seqs ...int64) (backends.Lease, error) {
				l, err := b.real.LeaseDeferred(ctx, id, seqs...)
				if err != nil {
					return nil, err
				}
				return reviving{l, func() {
					for m := range b.real.Peek(ctx, id, backends.PeekOptions{}) {
						if m.Broker.State == message.Deferred {
							_ = b.real.Move(ctx, id, []backends.Move{{Seq: m.Broker.SequenceNumber, To: id, As: m}})
						}
					}
				}}, nil
			}
		}},
	}
}

// reviving does something after a release.
type reviving struct {
	backends.Lease
	after func()
}

func (r reviving) Release(ctx context.Context) error {
	defer r.after()
	return r.Lease.Release(ctx)
}

func (h *handed) releaseAll(ctx context.Context) {
	for _, l := range h.by {
		_ = l.release(ctx)
	}
}

// moving is a fault in what is asked of Move.
func moving(change func(b *faulty, mv *backends.Move)) func(*faulty) {
	return func(b *faulty) {
		b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
			moves = slices.Clone(moves)
			for i := range moves {
				as := moves[i].As.Clone()
				moves[i].As = as
				change(b, &moves[i])
			}
			return b.real.Move(ctx, from, moves)
		}
	}
}

// losing is a move that completes the source when it fails with the code.
func losing(code backends.Code) func(*faulty) {
	return func(b *faulty) {
		b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
			err := b.real.Move(ctx, from, moves)
			for i, e := range backends.ItemErrors(err, len(moves)) {
				if backends.IsCode(e, code) {
					_ = b.real.SettleDirect(ctx, from, complete, moves[i].Seq)
				}
			}
			return err
		}
	}
}

func moveMutants() []mutant {
	return []mutant{
		{name: "claims to move", caught: []string{"capabilities"}, fault: func(b *faulty) {
			b.move = func(context.Context, backends.EntityID, []backends.Move) error { return errors.ErrUnsupported }
		}},
		{name: "copies for moving", caught: []string{
			"move/unedited", "move/edited", "move/body-kinds", "move/within-a-queue", "move/locked", "move/batch-by-index",
			"move/deferred-and-scheduled", "move/later", "move/once",
		}, fault: moving(func(_ *faulty, mv *backends.Move) { mv.Keep = true })},
		{name: "moves for copying", caught: []string{"move/keep"}, fault: moving(func(_ *faulty, mv *backends.Move) { mv.Keep = false })},
		{name: "loses what it cannot place", caught: []string{"move/missing-destination"}, fault: losing(backends.NotFound)},
		{name: "loses what the destination refuses", caught: []string{"move/refused"}, fault: losing(backends.TooLarge)},
		{name: "abandons what it cannot place", caught: []string{"move/missing-destination"}, fault: func(b *faulty) {
			b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
				err := b.real.Move(ctx, from, moves)
				if err != nil {
					o := abandon
					o.Set = []message.Attribute{{Name: "tried", Value: message.Bool(true)}}
					_ = b.real.SettleDirect(ctx, from, o, moves[0].Seq)
				}
				return err
			}
		}},
		{name: "sends, then completes", caught: []string{"move/missing-source", "move/locked", "move/batch-by-index", "move/once"}, fault: func(b *faulty) {
			b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
				errs := make([]error, len(moves))
				for i, mv := range moves {
					if errs[i] = b.real.Send(ctx, mv.To, []*message.Message{mv.As}); errs[i] == nil {
						errs[i] = first(b.real.SettleDirect(ctx, from, complete, mv.Seq))
					}
				}
				return backends.Batch(errs)
			}
		}},
		{name: "completes, then sends", caught: []string{"move/missing-destination", "move/refused", "move/keep"}, fault: func(b *faulty) {
			b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
				errs := make([]error, len(moves))
				for i, mv := range moves {
					if errs[i] = first(b.real.SettleDirect(ctx, from, complete, mv.Seq)); errs[i] == nil {
						errs[i] = b.real.Send(ctx, mv.To, []*message.Message{mv.As})
					}
				}
				return backends.Batch(errs)
			}
		}},
		{name: "loses half when canceled", caught: []string{"context/move"}, fault: func(b *faulty) {
			b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
				if ctx.Err() != nil {
					_ = b.real.SettleDirect(context.Background(), from, complete, moves[0].Seq)
				}
				return b.real.Move(ctx, from, moves)
			}
		}},
		{name: "moves without the edit", caught: []string{"move/edited"}, fault: func(b *faulty) {
			b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
				for m := range b.real.Peek(ctx, from, backends.PeekOptions{}) {
					for i := range moves {
						if moves[i].Seq == m.Broker.SequenceNumber {
							moves[i].As = m
						}
					}
				}
				return b.real.Move(ctx, from, moves)
			}
		}},
		{name: "keeps the old body when its bytes are the same", caught: []string{"move/body-kinds"}, fault: func(b *faulty) {
			b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
				for m := range b.real.Peek(ctx, from, backends.PeekOptions{}) {
					for i, mv := range moves {
						if mv.Seq == m.Broker.SequenceNumber && string(mv.As.Body.Bytes()) == string(m.Body.Bytes()) {
							as := mv.As.Clone()
							as.Body = m.Body
							moves[i].As = as
						}
					}
				}
				return b.real.Move(ctx, from, moves)
			}
		}},
		{name: "moves with the old delivery count", caught: []string{"move/unedited"}, fault: func(b *faulty) {
			moved := false
			moving(func(*faulty, *backends.Move) { moved = true })(b)
			b.received = func(_ backends.EntityID, m *message.Message) {
				if moved {
					m.Broker.DeliveryCount++
				}
			}
		}},
		{name: "moves with the old enqueued time", caught: []string{"move/unedited"}, fault: func(b *faulty) {
			var old message.Broker
			moving(func(_ *faulty, mv *backends.Move) { old = mv.As.Broker })(b)
			b.received = func(_ backends.EntityID, m *message.Message) {
				if old.SequenceNumber != 0 {
					m.Broker.EnqueuedTime = old.EnqueuedTime
				}
			}
		}},
		{name: "loses what is moved within a queue", caught: []string{"move/within-a-queue"}, fault: func(b *faulty) {
			b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
				if moves[0].To == from {
					return b.real.SettleDirect(ctx, from, complete, moves[0].Seq)
				}
				return b.real.Move(ctx, from, moves)
			}
		}},
		{name: "moves all or nothing", caught: []string{"move/batch-by-index"}, fault: func(b *faulty) {
			b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
				var errs []error
				for _, mv := range moves {
					_, err := b.real.Purge(ctx, mv.To)
					errs = append(errs, err)
				}
				if err := backends.Batch(errs); err != nil {
					return err
				}
				return b.real.Move(ctx, from, moves)
			}
		}},
		{name: "moves what is active only", caught: []string{"move/deferred-and-scheduled"}, fault: func(b *faulty) {
			b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
				for m := range b.real.Peek(ctx, from, backends.PeekOptions{From: moves[0].Seq, Max: 1}) {
					if m.Broker.State != message.Active {
						return fail("move", from, backends.NotFound, nil)
					}
				}
				return b.real.Move(ctx, from, moves)
			}
		}},
		{
			name: "moves at once what is for later", caught: []string{"move/later"},
			fault: moving(func(_ *faulty, mv *backends.Move) { mv.As.ScheduledEnqueueTime = nil }),
		},
		{name: "moves to the other place too", caught: []string{"move/edited", "move/keep"}, fault: func(b *faulty) {
			b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
				return errors.Join(b.real.Move(ctx, from, moves), b.real.Send(ctx, moves[0].To, []*message.Message{moves[0].As}))
			}
		}},
	}
}

// first returns the error of the one message of a batch.
func first(err error) error { return backends.ItemErrors(err, 1)[0] }
