package backendtest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

func describing(change func(e *backends.Entity)) func(*faulty) {
	return func(b *faulty) { b.describe(change) }
}

// asking is a fault in the query of Entities.
func asking(change func(q *backends.EntityQuery)) func(*faulty) {
	return func(b *faulty) {
		b.entities = func(ctx context.Context, q backends.EntityQuery) iter.Seq2[backends.Entity, error] {
			change(&q)
			return b.real.Entities(ctx, q)
		}
	}
}

// listing is a fault in what the iterators of Entities and Peek yield.
func listing(entities func([]backends.Entity) []backends.Entity, msgs func([]*message.Message) []*message.Message) func(*faulty) {
	return func(b *faulty) {
		b.entities = func(ctx context.Context, q backends.EntityQuery) iter.Seq2[backends.Entity, error] {
			return relist(b.real.Entities(ctx, q), entities)
		}
		b.peek = func(ctx context.Context, id backends.EntityID, opts backends.PeekOptions) iter.Seq2[*message.Message, error] {
			return relist(b.real.Peek(ctx, id, opts), msgs)
		}
	}
}

func relist[T any](seq iter.Seq2[T, error], change func([]T) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var all []T
		var failed error
		for v, err := range seq {
			if failed = err; err == nil {
				all = append(all, v)
			}
		}
		for _, v := range change(all) {
			if !yield(v, nil) {
				return
			}
		}
		if failed != nil {
			var none T
			yield(none, failed)
		}
	}
}

// iterating is a fault in how Entities and Peek yield.
func iterating(entities func(seq iter.Seq2[backends.Entity, error]) iter.Seq2[backends.Entity, error],
	peek func(seq iter.Seq2[*message.Message, error]) iter.Seq2[*message.Message, error],
) func(*faulty) {
	return func(b *faulty) {
		b.entities = func(ctx context.Context, q backends.EntityQuery) iter.Seq2[backends.Entity, error] {
			return entities(b.real.Entities(ctx, q))
		}
		b.peek = func(ctx context.Context, id backends.EntityID, opts backends.PeekOptions) iter.Seq2[*message.Message, error] {
			return peek(b.real.Peek(ctx, id, opts))
		}
	}
}

// goOn ignores a break.
func goOn[T any](seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			yield(v, err)
		}
	}
}

// failTwice yields its error a second time.
func failTwice[T any](seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			if !yield(v, err) || err != nil && !yield(v, err) {
				return
			}
		}
	}
}

func entityMutants() []mutant {
	id := func(msgs []*message.Message) []*message.Message { return msgs }
	return []mutant{
		{
			name: "calls a queue a topic", caught: []string{"entities/describe", "create/queue"},
			fault: describing(func(e *backends.Entity) { e.Kind = backends.Topic }),
		},
		{
			name: "names an entity by its dead letters", caught: []string{"entities/describe", "entities/order"},
			fault: describing(func(e *backends.Entity) { e.ID = e.ID.DeadLetters() }),
		},
		{
			name: "makes up the oldest dead letter", caught: []string{"entities/describe"},
			fault: describing(func(e *backends.Entity) { e.Oldest = time.Unix(1, 0) }),
		},
		{
			name: "tells the newest for the oldest dead letter", caught: []string{"entities/describe"},
			fault: describing(func(e *backends.Entity) {
				if !e.Oldest.IsZero() {
					e.Oldest = e.Oldest.Add(time.Hour)
				}
			}),
		},
		{
			name: "counts one active message too many", caught: []string{"entities/counts"},
			fault: describing(func(e *backends.Entity) { e.Counts.Active++ }),
		},
		{
			name: "counts dead letters as active", caught: []string{"entities/counts"},
			fault: describing(func(e *backends.Entity) { e.Counts.Active += e.Counts.DeadLetter }),
		},
		{
			name: "counts deferred messages as active", caught: []string{"entities/counts", "settle/defer"},
			fault: describing(func(e *backends.Entity) { e.Counts.Active, e.Counts.Deferred = e.Counts.Active+e.Counts.Deferred, 0 }),
		},
		{
			name: "counts what it purged", caught: []string{"purge/all-but-locked"},
			fault: describing(func(e *backends.Entity) { e.Counts.Scheduled = max(1, e.Counts.Scheduled) }),
		},
		{
			name: "counts what was deferred once", caught: []string{"direct/defer", "deferred/exactly-these", "purge/all-but-locked"},
			fault: describing(func(e *backends.Entity) { e.Counts.Deferred = max(1, e.Counts.Deferred) }),
		},
		{
			name: "does not say where its counts are from", caught: []string{"entities/counts"},
			fault: describing(func(e *backends.Entity) { e.Counts.Source = "" }),
		},
		{name: "tells zero for what it left out", caught: []string{"entities/no-counts"}, fault: func(b *faulty) {
			b.entities = func(ctx context.Context, q backends.EntityQuery) iter.Seq2[backends.Entity, error] {
				return relist(b.real.Entities(ctx, q), func(es []backends.Entity) []backends.Entity {
					for i := range es {
						if q.NoCounts {
							es[i].Counts = backends.Counts{}
						}
					}
					return es
				})
			}
		}},
		{
			name: "lists entities backwards", caught: []string{"entities/order"},
			fault: listing(func(es []backends.Entity) []backends.Entity { slices.Reverse(es); return es }, id),
		},
		{
			name: "lists dead-letter queues", caught: []string{"entities/order"},
			fault: listing(func(es []backends.Entity) []backends.Entity {
				var all []backends.Entity
				for _, e := range es {
					dead := e
					dead.ID = e.ID.DeadLetters()
					all = append(all, e, dead)
				}
				return all
			}, id),
		},
		{
			name: "lists an entity twice", caught: []string{"entities/order"},
			fault: listing(func(es []backends.Entity) []backends.Entity { return append(es, es[len(es)-1]) }, id),
		},
		{name: "ignores Names", caught: []string{"entities/names"}, fault: asking(func(q *backends.EntityQuery) { q.Names = nil })},
		{name: "ignores Prefix", caught: []string{"entities/prefix"}, fault: asking(func(q *backends.EntityQuery) { q.Prefix = "" })},
		{
			name: "yields its error twice", caught: []string{"entities/names", "peek/missing-entity"},
			fault: iterating(failTwice[backends.Entity], failTwice[*message.Message]),
		},
		{
			name: "goes on after a break", caught: []string{"entities/break", "peek/in-the-loop"},
			fault: iterating(goOn[backends.Entity], goOn[*message.Message]),
		},
		{name: "holds a lock in the loop", caught: []string{"entities/break", "peek/in-the-loop"}, fault: func(b *faulty) {
			lock := make(chan struct{}, 1)
			iterating(locked[backends.Entity](lock), locked[*message.Message](lock))(b)
			b.send = func(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
				select {
				case lock <- struct{}{}:
					defer func() { <-lock }()
				case <-b.stop:
				}
				return b.real.Send(ctx, id, msgs)
			}
		}},
	}
}

func locked[T any](lock chan struct{}) func(iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(seq iter.Seq2[T, error]) iter.Seq2[T, error] {
		return func(yield func(T, error) bool) {
			lock <- struct{}{}
			defer func() { <-lock }()
			seq(yield)
		}
	}
}

// peeking is a fault in the options of Peek, and showing one in what it shows.
func peeking(change func(id *backends.EntityID, o *backends.PeekOptions)) func(*faulty) {
	return func(b *faulty) {
		b.peek = func(ctx context.Context, id backends.EntityID, opts backends.PeekOptions) iter.Seq2[*message.Message, error] {
			change(&id, &opts)
			return b.real.Peek(ctx, id, opts)
		}
	}
}

func showing(change func([]*message.Message) []*message.Message) func(*faulty) {
	return listing(func(es []backends.Entity) []backends.Entity { return es }, change)
}

func eachShown(change func(m *message.Message)) func(*faulty) {
	return showing(func(msgs []*message.Message) []*message.Message {
		for _, m := range msgs {
			change(m)
		}
		return msgs
	})
}

func hiding(hidden func(m *message.Message) bool) func(*faulty) {
	return showing(func(msgs []*message.Message) []*message.Message { return slices.DeleteFunc(msgs, hidden) })
}

func peekMutants() []mutant {
	return []mutant{
		{
			name: "hides deferred messages", caught: []string{"peek/all-states"},
			fault: hiding(func(m *message.Message) bool { return m.Broker.State == message.Deferred }),
		},
		{
			name: "hides scheduled messages", caught: []string{"peek/all-states"},
			fault: hiding(func(m *message.Message) bool { return m.Broker.State == message.Scheduled }),
		},
		{
			name: "hides locked messages", caught: []string{"peek/all-states"},
			fault: hiding(func(m *message.Message) bool { return string(m.Body.Bytes()) == "locked" }),
		},
		{
			name: "shows every message as active", caught: []string{"peek/all-states"},
			fault: eachShown(func(m *message.Message) { m.Broker.State = message.Active }),
		},
		{
			name: "shows the lock token of another", caught: []string{"peek/all-states"},
			fault: eachShown(func(m *message.Message) { m.Broker.LockToken = message.UUID{1} }),
		},
		{
			name: "shows messages backwards", caught: []string{"peek/all-states", "peek/from-and-max", "peek/dead-letters"},
			fault: showing(func(msgs []*message.Message) []*message.Message { slices.Reverse(msgs); return msgs }),
		},
		{
			name: "ignores From", caught: []string{"peek/from-and-max"},
			fault: peeking(func(_ *backends.EntityID, o *backends.PeekOptions) { o.From = 0 }),
		},
		{
			name: "begins behind From", caught: []string{"peek/from-and-max"},
			fault: peeking(func(_ *backends.EntityID, o *backends.PeekOptions) { o.From++ }),
		},
		{
			name: "ignores the Max of a peek", caught: []string{"peek/from-and-max"},
			fault: peeking(func(_ *backends.EntityID, o *backends.PeekOptions) { o.Max = 0 }),
		},
		{
			name: "shows one page", caught: []string{"peek/from-and-max"},
			fault: showing(func(msgs []*message.Message) []*message.Message { return msgs[:min(len(msgs), 250)] }),
		},
		{
			name: "shows bodies that are not wanted", caught: []string{"peek/no-body"},
			fault: peeking(func(_ *backends.EntityID, o *backends.PeekOptions) { o.NoBody = false }),
		},
		{
			name: "does not tell the size of a body", caught: []string{"peek/no-body", "peek/whole-message"},
			fault: eachShown(func(m *message.Message) { m.Broker.BodySize = 0 }),
		},
		{name: "leaves out more than the body", caught: []string{"peek/no-body"}, fault: eachShown(func(m *message.Message) {
			if m.Broker.BodyOmitted {
				m.Properties = nil
			}
		})},
		{name: "cuts long bodies in a peek", caught: []string{"peek/whole-message"}, fault: eachShown(func(m *message.Message) {
			m.Body = message.DataBody(m.Body.Bytes()[:min(m.Body.Len(), 1<<15)])
		})},
		{name: "peeks by receiving", caught: []string{"peek/no-side-effects", "peek/all-states"}, fault: func(b *faulty) {
			b.peek = func(ctx context.Context, id backends.EntityID, _ backends.PeekOptions) iter.Seq2[*message.Message, error] {
				return func(yield func(*message.Message, error) bool) {
					l, err := b.real.Lease(ctx, id, backends.LeaseOptions{})
					for err == nil {
						var m *message.Message
						if m, err = l.Next(ctx); err != nil {
							return
						}
						_ = l.Settle(ctx, abandon, m)
						if !yield(m, nil) {
							return
						}
					}
				}
			}
		}},
		{name: "peeks under a lock that it keeps", caught: []string{"peek/no-side-effects"}, fault: func(b *faulty) {
			b.peek = func(ctx context.Context, id backends.EntityID, opts backends.PeekOptions) iter.Seq2[*message.Message, error] {
				if l, err := b.real.Lease(ctx, id, backends.LeaseOptions{Max: 1}); err == nil {
					_, _ = l.Next(ctx)
				}
				return b.real.Peek(ctx, id, opts)
			}
		}},
		{name: "changes the counts by peeking", caught: []string{"peek/no-side-effects"}, fault: func(b *faulty) {
			peeks := int64(0)
			b.describe(func(e *backends.Entity) { e.Counts.Active += peeks })
			b.peek = func(ctx context.Context, id backends.EntityID, opts backends.PeekOptions) iter.Seq2[*message.Message, error] {
				peeks++
				return b.real.Peek(ctx, id, opts)
			}
		}},
		{
			name: "shows the living among the dead", caught: []string{"peek/dead-letters"},
			fault: peeking(func(id *backends.EntityID, _ *backends.PeekOptions) { *id = id.MainQueue() }),
		},
		{name: "yields a message with its error", caught: []string{"peek/missing-entity"}, fault: func(b *faulty) {
			b.peek = func(ctx context.Context, id backends.EntityID, opts backends.PeekOptions) iter.Seq2[*message.Message, error] {
				return func(yield func(*message.Message, error) bool) {
					for m, err := range b.real.Peek(ctx, id, opts) {
						if err != nil {
							m = &message.Message{}
						}
						if !yield(m, err) {
							return
						}
					}
				}
			}
		}},
		{
			name: "does not schedule", caught: []string{"schedule/until-due", "entities/counts", "peek/all-states"},
			fault: sending(func(m *message.Message) { m.ScheduledEnqueueTime = nil }),
		},
		{name: "delivers too late", caught: []string{"schedule/until-due"}, fault: sending(func(m *message.Message) {
			if m.ScheduledEnqueueTime != nil {
				m.ScheduledEnqueueTime = new(m.ScheduledEnqueueTime.Add(time.Hour))
			}
		})},
		{
			name: "delivers what is scheduled as scheduled", caught: []string{"schedule/until-due"},
			fault: receiving(func(_ backends.EntityID, m *message.Message) {
				if m.ScheduledEnqueueTime != nil {
					m.Broker.State = message.Scheduled
				}
			}),
		},
		{name: "claims to peek", caught: []string{"capabilities"}, fault: func(b *faulty) {
			b.peek = func(context.Context, backends.EntityID, backends.PeekOptions) iter.Seq2[*message.Message, error] {
				return func(yield func(*message.Message, error) bool) { yield(nil, errors.ErrUnsupported) }
			}
		}},
	}
}
