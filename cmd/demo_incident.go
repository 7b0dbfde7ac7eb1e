package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/export"
)

// What stands here uses only what any backend has: send, lease, settle. The story itself is
// in demo_waves.go.

// seedIncident fills b, whose clock is clock, with the incident as seen from now. The same
// corpus gives the same incident, but for the times.
func seedIncident(ctx context.Context, b backends.Backend, clock *demoClock, corpus fs.FS, now time.Time) error {
	creator, ok := backends.As[backends.QueueCreator](b)
	if !ok {
		return errors.New("the backend of a demo has to make queues")
	}
	s := &incident{now: now, rng: rand.New(rand.NewPCG(2026, 11))}
	if err := s.read(corpus); err != nil {
		return err
	}
	for _, w := range s.waves() {
		s.add(w)
	}
	slices.SortStableFunc(s.events, func(a, b event) int { return a.at.Compare(b.at) })
	made := map[string]bool{}
	for _, e := range s.events {
		clock.set(e.at)
		if !made[e.queue] {
			if err := creator.CreateQueue(ctx, e.queue); err != nil {
				return err
			}
			made[e.queue] = true
		}
		if err := e.do(ctx, b, backends.EntityID{Name: e.queue}); err != nil {
			return fmt.Errorf("seed %s: %w", e.queue, err)
		}
	}
	clock.set(now)
	return nil
}

// read reads the corpus: one message a file.
func (s *incident) read(corpus fs.FS) error {
	s.samples = map[string]*message.Message{}
	return fs.WalkDir(corpus, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".json" {
			return err
		}
		file, err := corpus.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		m, err := export.NewReader(file).Read()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.samples[strings.TrimSuffix(path.Base(name), ".json")] = m
		return nil
	})
}

// event is one thing that happened to a queue.
type event struct {
	at    time.Time
	queue string
	do    func(context.Context, backends.Backend, backends.EntityID) error
}

// incident is the script while it is being written.
type incident struct {
	now     time.Time
	rng     *rand.Rand
	samples map[string]*message.Message // the corpus, by name
	events  []event
}

// wave is a number of messages of one kind, spread over a time.
type wave struct {
	queue       string
	count       int
	from, until time.Duration                // before now
	make        func(i int) *message.Message // the i-th of them
	lives       time.Duration                // from sending to the end
	end         ending                       // nil: they stay where they are
	together    int                          // how many end at the same time; 0: each for itself
}

// ending is how messages die.
type ending func(ctx context.Context, b backends.Backend, id backends.EntityID, msgs []*message.Message) error

// add writes a wave into the script.
func (s *incident) add(w wave) {
	step := (w.from - w.until) / time.Duration(max(w.count, 1))
	var dying []*message.Message
	for i := range w.count {
		m := w.make(i)
		jitter := time.Duration(s.rng.Int64N(int64(step) + 1)).Truncate(time.Millisecond)
		at := s.now.Add(-w.from + time.Duration(i)*step + jitter)
		s.event(at, w.queue, func(ctx context.Context, b backends.Backend, id backends.EntityID) error {
			return b.Send(ctx, id, []*message.Message{m})
		})
		dying = append(dying, m)
		if w.end == nil || len(dying) < w.together && i < w.count-1 {
			continue
		}
		batch := dying
		dying = nil
		s.event(at.Add(w.lives), w.queue, func(ctx context.Context, b backends.Backend, id backends.EntityID) error {
			return w.end(ctx, b, id, batch)
		})
	}
}

func (s *incident) event(at time.Time, queue string, do func(context.Context, backends.Backend, backends.EntityID) error) {
	s.events = append(s.events, event{at, queue, do})
}

// buried dead-letters messages as a consumer does that knows why.
func buried(why func(*message.Message) (reason, description string)) ending {
	return func(ctx context.Context, b backends.Backend, id backends.EntityID, msgs []*message.Message) error {
		return leased(ctx, b, id, msgs, func(l backends.Lease, got []*message.Message) error {
			return settleEach(ctx, l, got, func(m *message.Message) backends.Outcome {
				reason, description := why(m)
				return backends.Outcome{Action: backends.DeadLetter, Reason: reason, Description: description}
			})
		})
	}
}

// maxDeliveries is how often the broker tries by default.
const maxDeliveries = 10

// exhausted abandons messages until the broker gives them up; with the last attempt the
// consumer leaves in their headers why.
func exhausted(headers func() []message.Attribute) ending {
	return func(ctx context.Context, b backends.Backend, id backends.EntityID, msgs []*message.Message) error {
		for range maxDeliveries - 1 {
			err := leased(ctx, b, id, msgs, func(l backends.Lease, got []*message.Message) error {
				return l.Settle(ctx, backends.Outcome{Action: backends.Abandon}, got...)
			})
			if err != nil {
				return err
			}
		}
		return leased(ctx, b, id, msgs, func(l backends.Lease, got []*message.Message) error {
			return settleEach(ctx, l, got, func(*message.Message) backends.Outcome {
				return backends.Outcome{Action: backends.Abandon, Set: headers()}
			})
		})
	}
}

// settleEach settles every message with an outcome of its own.
func settleEach(ctx context.Context, l backends.Lease, msgs []*message.Message, outcome func(*message.Message) backends.Outcome) error {
	for _, m := range msgs {
		if err := l.Settle(ctx, outcome(m), m); err != nil {
			return err
		}
	}
	return nil
}

// leased locks just these messages and hands them to settle.
func leased(ctx context.Context, b backends.Backend, id backends.EntityID, msgs []*message.Message, settle func(backends.Lease, []*message.Message) error) (err error) {
	lease, err := b.Lease(ctx, id, backends.LeaseOptions{Max: len(msgs), Want: func(got *message.Message) bool {
		return slices.ContainsFunc(msgs, func(m *message.Message) bool { return message.EqualValues(m.ID, got.ID) })
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Release(ctx)) }()
	got := make([]*message.Message, len(msgs))
	for i := range got {
		if got[i], err = lease.Next(ctx); err != nil {
			return fmt.Errorf("%d of %d messages are not there: %w", len(msgs)-i, len(msgs), err)
		}
	}
	return settle(lease, got)
}
