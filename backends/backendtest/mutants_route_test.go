package backendtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// routing is a fault in what Route answers.
func routing(change func(to backends.EntityID, got []backends.EntityID, err error) ([]backends.EntityID, error)) func(*faulty) {
	return func(b *faulty) {
		b.route = func(ctx context.Context, to backends.EntityID, m *message.Message) ([]backends.EntityID, error) {
			got, err := b.real.Route(ctx, to, m)
			return change(to, got, err)
		}
	}
}

func routeMutants() []mutant {
	return []mutant{
		{name: "claims to route", caught: []string{"capabilities"}, fault: routing(
			func(backends.EntityID, []backends.EntityID, error) ([]backends.EntityID, error) {
				return nil, errors.ErrUnsupported
			})},
		{name: "names the topic for its subscriptions", caught: []string{"route/topic", "route/unrouted", "context/route"}, fault: routing(
			func(to backends.EntityID, _ []backends.EntityID, _ error) ([]backends.EntityID, error) {
				return []backends.EntityID{to}, nil
			})},
		{name: "sends what it routes", caught: []string{"route/queue"}, fault: func(b *faulty) {
			b.route = func(ctx context.Context, to backends.EntityID, m *message.Message) ([]backends.EntityID, error) {
				got, err := b.real.Route(ctx, to, m)
				return got, errors.Join(err, b.real.Send(ctx, to, []*message.Message{m}))
			}
		}},
		{name: "counts no second copy", caught: []string{"route/topic"}, fault: routing(
			func(_ backends.EntityID, got []backends.EntityID, err error) ([]backends.EntityID, error) {
				return slices.Compact(got), err
			})},
		{name: "tells no duplicates", caught: []string{"route/duplicate"}, fault: routing(
			func(to backends.EntityID, got []backends.EntityID, err error) ([]backends.EntityID, error) {
				if backends.IsCode(err, backends.Duplicate) {
					return []backends.EntityID{to}, nil
				}
				return got, err
			})},
		{name: "remembers ids for ever", caught: []string{"route/duplicate"}, harness: func(h *Harness) {
			queue := h.Queue
			h.Queue = func(t testing.TB, o QueueOptions) backends.EntityID {
				o.DuplicateWindow *= 100
				return queue(t, o)
			}
		}, fault: func(b *faulty) {
			b.describe(func(e *backends.Entity) {
				if e.Deduplication.Window > time.Hour {
					e.Deduplication.Window /= 100
				}
			})
		}},
		{name: "keeps to itself that it wants sessions", caught: []string{"lease/session"}, fault: func(b *faulty) {
			b.describe(func(e *backends.Entity) { e.RequiresSession = false })
		}},
		{name: "loses what nobody gets", caught: []string{"route/unrouted"}, fault: moving(
			func(_ *faulty, mv *backends.Move) { mv.AllowUnrouted = true })},
		{name: "loses duplicates", caught: []string{"route/duplicate"}, fault: losing(backends.Duplicate)},
		{name: "moves nothing that nobody gets", caught: []string{"route/unrouted"}, fault: moving(
			func(_ *faulty, mv *backends.Move) { mv.AllowUnrouted = false })},
	}
}
