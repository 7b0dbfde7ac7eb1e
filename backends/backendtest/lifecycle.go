package backendtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"dlq/backends"
	"dlq/backends/message"
)

func lifecycleCases() []testCase {
	return []testCase{
		{"concurrency/all-accounted-for", concurrency},
		{"close/twice", closeTwice},
		{"close/used-after", closeUsedAfter},
		{"restart/closed", restartClosed},
		{"restart/killed", restartKilled},
		{"restart/sequence-numbers", restartSequences},
	}
}

// concurrency lets senders and receivers work at once: each message is completed once.
func concurrency(f *fixture) {
	id := f.queue()
	const senders, batches, receivers = 4, 10, 4
	var sending, receiving sync.WaitGroup
	var sent atomic.Bool
	for s := range senders {
		sending.Go(func() {
			for b := range batches {
				m := texts(fmt.Sprintf("%d-%d-x", s, b), fmt.Sprintf("%d-%d-y", s, b))
				if err := f.b.Send(f.ctx, id, m); err != nil {
					f.Errorf("send: %v", err)
				}
			}
		})
	}
	var mu sync.Mutex
	seen := map[string]int{}
	for range receivers {
		receiving.Go(func() {
			for {
				last := sent.Load()
				msgs, err := f.sweepOnce(id)
				if err != nil {
					f.Errorf("a sweep among others: %v", err)
					return
				}
				mu.Lock()
				twice := false
				for _, body := range bodies(msgs) {
					seen[body]++
					twice = twice || seen[body] > 1
				}
				mu.Unlock()
				if twice || last && len(msgs) == 0 {
					return
				}
				runtime.Gosched()
			}
		})
	}
	sending.Wait()
	sent.Store(true)
	receiving.Wait()
	for body, times := range seen {
		if times != 1 {
			f.Errorf("the message %q was completed %d times", body, times)
		}
	}
	if want := senders * batches * 2; len(seen) != want {
		f.Errorf("%d messages were received, want %d", len(seen), want)
	}
	f.holds(id)
}

// sweepOnce completes a few messages, for a goroutine that must not end the case.
func (f *fixture) sweepOnce(id backends.EntityID) ([]*message.Message, error) {
	l, err := f.b.Lease(f.ctx, id, backends.LeaseOptions{Max: 5})
	if err != nil {
		return nil, err
	}
	s := &sweep{f: f, Lease: l}
	var msgs []*message.Message
	for range 5 {
		m, err := s.Next(f.ctx)
		if err != nil {
			break // the end; any other error shows in the sum
		}
		msgs = append(msgs, m)
	}
	return msgs, errors.Join(s.Settle(f.ctx, complete, msgs...), s.Release(f.ctx))
}

func closeTwice(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b")...)
	f.lease(id, backends.LeaseOptions{}).next()
	for _, when := range []string{"close", "close again"} {
		if err := f.promptly(when, f.b.Close); err != nil {
			f.Errorf("%s: %v", when, err)
		}
	}
}

// closeUsedAfter: a closed backend answers every call with an error.
func closeUsedAfter(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b")...)
	s := f.lease(id, backends.LeaseOptions{})
	m := s.next()
	if err := f.b.Close(); err != nil {
		f.Fatalf("close: %v", err)
	}
	ctx, d := f.ctx, backends.Decorator{Backend: f.b}
	for what, call := range map[string]func() error{
		"entities": func() error {
			for _, err := range d.Entities(ctx, backends.EntityQuery{}) {
				return err
			}
			return nil
		},
		"lease": func() error {
			l, err := d.Lease(ctx, id, backends.LeaseOptions{})
			if err == nil {
				_, err = l.Next(ctx)
			}
			return err
		},
		"send":   func() error { return d.Send(ctx, id, texts("b")) },
		"next":   func() error { _, err := s.Next(ctx); return err },
		"settle": func() error { return s.Settle(ctx, complete, m) },
		"peek": func() error {
			for _, err := range d.Peek(ctx, id, backends.PeekOptions{}) {
				return err
			}
			return nil
		},
		"settle directly":  func() error { return d.SettleDirect(ctx, id, complete, 1) },
		"receive deferred": func() error { return f.firstDeferred(d, id, 1) },
		"move":             func() error { return d.Move(ctx, id, []backends.Move{{Seq: 1, To: id, As: text("a")}}) },
		"purge":            func() error { _, err := d.Purge(ctx, id); return err },
		"create":           func() error { return d.CreateQueue(ctx, id.Name+"-2") },
		"validate":         func() error { return d.ValidateSend(ctx, id, text("a")) },
	} {
		if err := f.promptly(what+" after close", call); err == nil {
			f.Errorf("%s after close: no error", what)
		}
	}
	_ = f.promptly("release after close", func() error { return s.Release(context.Background()) })
}

// interrupted prepares a queue with a message in every state, one of them in mid-lease and one
// completed, restarts the backend, and returns the queue.
func (f *fixture) interrupted(kill bool) backends.EntityID {
	f.Helper()
	if f.h.Restart == nil {
		f.Skip("the data does not outlive the backend")
	}
	id := f.queue()
	f.dead(id, text("dead"))
	f.send(id, texts("completed", "held", "active")...)
	s := f.lease(id, backends.LeaseOptions{Want: func(m *message.Message) bool { return string(m.Body.Bytes()) != "active" }})
	for _, m := range s.rest() {
		if string(m.Body.Bytes()) == "completed" {
			s.settle(complete, m)
		}
	}
	f.b = f.h.Restart(f, f.b, kill)
	return id
}

// restartClosed: Close lets go of leases, and nothing is counted.
func restartClosed(f *fixture) {
	id := f.interrupted(false)
	f.holds(f.entity(id).DeadLetters, "dead")
	s := f.lease(id, backends.LeaseOptions{})
	msgs := s.rest()
	names := bodies(msgs)
	slices.Sort(names)
	if !slices.Equal(names, []string{"active", "held"}) {
		f.Errorf("after close and open the queue holds %s, want active and held", list(names))
	}
	for _, m := range msgs {
		f.wantCount(m, 2, 0)
	}
}

// restartKilled: a lock either survives and runs out, or is free early; both count once.
func restartKilled(f *fixture) {
	id := f.interrupted(true)
	f.holds(f.entity(id).DeadLetters, "dead")
	got := map[string]*message.Message{}
	early := f.lease(id, backends.LeaseOptions{})
	for _, m := range early.rest() {
		got[string(m.Body.Bytes())] = m
		early.settle(complete, m)
	}
	early.release()
	f.expire(id)
	for _, m := range f.drain(id) {
		body := string(m.Body.Bytes())
		if _, twice := got[body]; twice {
			f.Errorf("%s came back after it was completed", describe(m))
		}
		got[body] = m
	}
	held, ok := got["held"]
	if _, active := got["active"]; !ok || !active || len(got) != 2 {
		f.Errorf("after a kill the queue held %s, want active and held", list(slices.Sorted(maps.Keys(got))))
	} else {
		f.wantCount(held, 2, 1)
	}
}

// restartSequences: a number that was used is never used again, though its message is gone.
func restartSequences(f *fixture) {
	if f.h.Restart == nil {
		f.Skip("the data does not outlive the backend")
	}
	id := f.queue()
	used := f.sent(id, texts("a", "b", "c")...)
	if used[0] == 0 {
		f.Skip("the service does not number its messages")
	}
	f.drain(id)
	for _, kill := range []bool{false, true} {
		f.b = f.h.Restart(f, f.b, kill)
		next := f.sent(id, text("d"))[0]
		if highest := slices.Max(used); next <= highest {
			f.Errorf("after a restart the sequence number %d was given, up to %d were used", next, highest)
		}
		used = append(used, next)
		f.drain(id)
	}
}
