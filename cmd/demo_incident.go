package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/export"
)

// The incident, as hours before now: at 3h10m the payment provider began to time out, at
// 1h25m it was back. Payments died after ten deliveries, orders gave up on payments, and
// parcels waited longer than they lived. A deployment five hours ago broke a template,
// and one order has been poisonous all the time. What stands here uses only what any
// backend has: send, lease, settle.

// seedIncident fills b, whose clock is clock, with the incident as seen from now. The same
// corpus gives the same incident, but for the times.
func seedIncident(ctx context.Context, b backends.Backend, clock *demoClock, corpus fs.FS, now time.Time) error {
	samples, err := readCorpus(corpus)
	if err != nil {
		return err
	}
	creator, ok := backends.As[backends.QueueCreator](b)
	if !ok {
		return errors.New("the backend of a demo has to make queues")
	}
	s := &incident{now: now, rng: rand.New(rand.NewPCG(2026, 11))}
	s.write(samples)
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

// readCorpus returns the messages of the corpus in the order of their files.
func readCorpus(corpus fs.FS) ([]*message.Message, error) {
	var out []*message.Message
	return out, fs.WalkDir(corpus, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		file, err := corpus.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		for in := export.NewReader(file); ; {
			m, err := in.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			out = append(out, m)
		}
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
	now    time.Time
	rng    *rand.Rand
	events []event
}

// wave is a number of messages of one kind, spread over a time.
type wave struct {
	queue       string
	count       int
	from, until time.Duration // before now
	make        func(i int) *message.Message
	lives       time.Duration // from its sending to its end
	end         ending        // nil: it stays where it is
}

// ending is how a message dies.
type ending func(ctx context.Context, b backends.Backend, id backends.EntityID, m *message.Message) error

// add writes a wave into the script.
func (s *incident) add(w wave) {
	step := (w.from - w.until) / time.Duration(max(w.count, 1))
	for i := range w.count {
		m := w.make(i)
		jitter := time.Duration(s.rng.Int64N(int64(step) + 1)).Truncate(time.Millisecond)
		at := s.now.Add(-w.from + time.Duration(i)*step + jitter)
		s.events = append(s.events, event{at, w.queue, func(ctx context.Context, b backends.Backend, id backends.EntityID) error {
			return b.Send(ctx, id, []*message.Message{m})
		}})
		if w.end != nil {
			s.events = append(s.events, event{at.Add(w.lives), w.queue, func(ctx context.Context, b backends.Backend, id backends.EntityID) error {
				return w.end(ctx, b, id, m)
			}})
		}
	}
}

// buried dead-letters a message as a consumer does that knows why.
func buried(reason string, description func(*message.Message) string) ending {
	return func(ctx context.Context, b backends.Backend, id backends.EntityID, m *message.Message) error {
		return settleByID(ctx, b, id, m.ID, backends.Outcome{
			Action: backends.DeadLetter, Reason: reason, Description: description(m),
		})
	}
}

// maxDeliveries is how often the broker tries by default.
const maxDeliveries = 10

// exhausted abandons a message until the broker gives it up; the consumer leaves in its
// headers why.
func exhausted(headers func(*message.Message) []message.Attribute) ending {
	return func(ctx context.Context, b backends.Backend, id backends.EntityID, m *message.Message) error {
		set := headers(m)
		for range maxDeliveries {
			err := settleByID(ctx, b, id, m.ID, backends.Outcome{Action: backends.Abandon, Set: set})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// settleByID leases the one message with that ID and settles it.
func settleByID(ctx context.Context, b backends.Backend, id backends.EntityID, want message.Value, o backends.Outcome) (err error) {
	lease, err := b.Lease(ctx, id, backends.LeaseOptions{Max: 1, Want: func(m *message.Message) bool {
		return message.EqualValues(m.ID, want)
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Release(ctx)) }()
	m, err := lease.Next(ctx)
	if err != nil {
		return fmt.Errorf("message %s: %w", message.FormatValue(want), err)
	}
	return lease.Settle(ctx, o, m)
}

// always is a description without particulars.
func always(text string) func(*message.Message) string {
	return func(*message.Message) string { return text }
}
