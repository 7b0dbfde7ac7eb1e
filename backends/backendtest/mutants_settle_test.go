package backendtest

import (
	"context"
	"errors"
	"unicode/utf8"

	"dlq/backends"
	"dlq/backends/message"
)

// onOutcome is a fault in the arguments of settling, with a lease and without.
func onOutcome(change func(o *backends.Outcome)) func(*faulty) {
	return func(b *faulty) {
		b.onLease = func(l *faultyLease) {
			settle := l.settle
			l.settle = func(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
				change(&o)
				return settle(ctx, o, msgs...)
			}
		}
		b.direct = func(ctx context.Context, id backends.EntityID, o backends.Outcome, seqs ...int64) error {
			change(&o)
			return b.real.SettleDirect(ctx, id, o, seqs...)
		}
	}
}

// instead is a fault that takes one action for another.
func instead(of, do backends.Action) func(*faulty) {
	return onOutcome(func(o *backends.Outcome) {
		if o.Action == of {
			o.Action = do
		}
	})
}

func settleMutants() []mutant {
	return []mutant{
		{
			name: "does not complete", caught: []string{"settle/complete", "send/receive-complete", "deadletter/lease", "concurrency/all-accounted-for"},
			fault: onSettle(func(_ *faultyLease, settle settleFunc) settleFunc {
				return func(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
					if o.Action == backends.Complete {
						return nil
					}
					return settle(ctx, o, msgs...)
				}
			}),
		},
		{name: "defers for completing", caught: []string{"direct/complete-any-state", "direct/defer"}, fault: instead(backends.Complete, backends.Defer)},
		{name: "completes its neighbours too", caught: []string{"settle/complete"}, fault: func(b *faulty) {
			var h handed
			b.onLease = func(l *faultyLease) {
				h.watch(l)
				settle := l.settle
				l.settle = func(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
					if o.Action == backends.Complete {
						_ = settle(ctx, o, h.order...)
						return nil
					}
					return settle(ctx, o, msgs...)
				}
			}
		}},
		{
			name: "stops a batch at the first failure", caught: []string{"settle/batch-by-index"},
			fault: onSettle(func(_ *faultyLease, settle settleFunc) settleFunc {
				return func(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
					errs := make([]error, len(msgs))
					for i, m := range msgs {
						if errs[i] = settle(ctx, o, m); errs[i] != nil {
							break
						}
					}
					return backends.Batch(errs)
				}
			}),
		},
		{name: "settles what another lease holds", caught: []string{"settle/not-ours"}, fault: func(b *faulty) {
			var h handed
			b.onLease = func(l *faultyLease) {
				h.watch(l)
				own := l.settle
				l.settle = func(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
					if len(msgs) == 1 {
						if holder := h.by[msgs[0].Broker.LockToken]; holder != l {
							return holder.settle(ctx, o, msgs...)
						}
					}
					return own(ctx, o, msgs...)
				}
			}
		}},
		{name: "abandons at release only", caught: []string{"settle/abandon"}, fault: func(b *faulty) {
			b.onLease = func(l *faultyLease) {
				settle, release := l.settle, l.release
				var later []*message.Message
				l.settle = func(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
					if o.Action == backends.Abandon {
						later = append(later, msgs...)
						return nil
					}
					return settle(ctx, o, msgs...)
				}
				l.release = func(ctx context.Context) error {
					_ = settle(ctx, abandon, later...)
					return release(ctx)
				}
			}
		}},
		{
			name: "buries for another reason", caught: []string{"lease/expired-too-often", "settle/abandon-too-often"},
			fault: receiving(func(_ backends.EntityID, m *message.Message) {
				if m.DeadLetterReason() == "MaxDeliveryCountExceeded" {
					m.Properties.Set(message.DeadLetterReasonProperty, message.String("MaxDeliveryCount"))
				}
			}),
		},
		{
			name: "describes another reason", caught: []string{"lease/expired-too-often", "settle/abandon-too-often"},
			fault: receiving(func(_ backends.EntityID, m *message.Message) {
				m.Properties.Set(message.DeadLetterDescriptionProperty, message.String("Message could not be consumed after 10 delivery attempts"))
			}),
		},
		{
			name: "sets no properties", caught: []string{"settle/sets-properties", "deadletter/settle", "direct/dead-letter", "direct/abandon"},
			fault: onOutcome(func(o *backends.Outcome) { o.Set = nil }),
		},
		{name: "sets properties anew", caught: []string{"settle/sets-properties"}, fault: receiving(func(_ backends.EntityID, m *message.Message) {
			if m.Broker.DeliveryCount > 0 {
				m.Properties.Delete("kept")
			}
		})},
		{
			name: "abandons for deferring", caught: []string{"settle/defer", "direct/defer", "entities/counts", "peek/all-states"},
			fault: instead(backends.Defer, backends.Abandon),
		},
		{
			name: "completes for dead-lettering", caught: []string{"deadletter/settle", "deadletter/lease", "direct/dead-letter", "peek/dead-letters", "entities/counts"},
			fault: instead(backends.DeadLetter, backends.Complete),
		},
		{
			name: "completes for abandoning", caught: []string{"settle/abandon", "settle/twice", "direct/abandon", "lease/once-in-a-sweep"},
			fault: instead(backends.Abandon, backends.Complete),
		},
		{
			name: "forgets the reason", caught: []string{"deadletter/settle", "deadletter/texts", "direct/dead-letter"},
			fault: onOutcome(func(o *backends.Outcome) { o.Reason = "" }),
		},
		{name: "cuts descriptions at 4,096 bytes", caught: []string{"deadletter/texts"}, fault: onOutcome(func(o *backends.Outcome) {
			o.Description = o.Description[:min(len(o.Description), 4096)]
		})},
		{name: "cuts descriptions that are too long", caught: []string{"deadletter/texts"}, fault: onOutcome(func(o *backends.Outcome) {
			for utf8.RuneCountInString(o.Description) > 4096 {
				o.Description = o.Description[:len(o.Description)-1]
			}
		})},
		{
			name: "drops properties of dead letters", caught: []string{"deadletter/settle"},
			fault: receiving(func(id backends.EntityID, m *message.Message) {
				if id.Sub == backends.DeadLetterQueue {
					m.Properties.Delete("tenant")
				}
			}),
		},
		{name: "takes a dead-letter queue for its entity", caught: []string{"deadletter/lease", "entities/describe"}, fault: func(b *faulty) {
			b.lease = func(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
				return b.real.Lease(ctx, id.MainQueue(), opts)
			}
		}},
		{
			name: "says that dead letters go elsewhere", caught: []string{"deadletter/settle", "deadletter/texts", "deadletter/lease", "settle/abandon-too-often"},
			fault: func(b *faulty) { b.describe(func(e *backends.Entity) { e.DeadLetters = e.ID }) },
		},
		{name: "loses a dead letter that fails too often", caught: []string{"deadletter/never-leaves-by-failing"}, fault: func(b *faulty) {
			failures := 0
			b.onLease = func(l *faultyLease) {
				settle := l.settle
				l.settle = func(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
					if o.Action == backends.Abandon && l.id.Sub == backends.DeadLetterQueue {
						if failures++; failures > 3 {
							o = complete
						}
					}
					return settle(ctx, o, msgs...)
				}
			}
		}},
		{
			name: "dead-letters a dead letter", caught: []string{"deadletter/not-again"},
			fault: onSettle(func(l *faultyLease, settle settleFunc) settleFunc {
				return func(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
					if o.Action == backends.DeadLetter && l.id.Sub == backends.DeadLetterQueue {
						o = backends.Outcome{Action: backends.Abandon}
					}
					return settle(ctx, o, msgs...)
				}
			}),
		},
		{
			name: "loses a dead letter that is dead-lettered", caught: []string{"deadletter/not-again"},
			fault: onSettle(func(l *faultyLease, settle settleFunc) settleFunc {
				return func(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
					if o.Action == backends.DeadLetter && l.id.Sub == backends.DeadLetterQueue {
						_ = settle(ctx, complete, msgs...)
						return errors.New("it is a dead letter")
					}
					return settle(ctx, o, msgs...)
				}
			}),
		},
	}
}
