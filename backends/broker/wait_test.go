package broker

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// waiting arms a waiter and returns it with the number of its wake-ups.
func (b *bench) waiting(a Address, session message.UUID) (*Waiter, *atomic.Int64) {
	var woken atomic.Int64
	w := b.e.NewWaiter(a, func() { woken.Add(1) })
	w.Arm(session)
	return w, &woken
}

func (b *bench) wantWoken(woken *atomic.Int64, want int64, after string) {
	b.Helper()
	if got := woken.Load(); got != want {
		b.Errorf("after %s a waiter was woken %d times, want %d", after, got, want)
	}
}

func TestWaiterIsWoken(t *testing.T) {
	b := newBench(t)
	none := message.UUID{}
	dead := Address{Name: "orders", Sub: DeadLetter}
	wake := func(after string, a Address, f func()) {
		t.Helper()
		w, woken := b.waiting(a, none)
		defer w.Close()
		b.wantWoken(woken, 0, "nothing")
		f()
		b.wantWoken(woken, 1, after)
	}
	var m *message.Message
	wake("a send", b.queue, func() { b.send("a") })
	m = b.receive(b.queue)
	wake("a release", b.queue, func() { b.ok(nil, b.e.Release(b.queue, m.Broker.LockToken)) })
	m = b.receive(b.queue)
	wake("an abandon", b.queue, func() { b.settle(b.queue, Abandon, m) })
	m = b.receive(b.queue)
	wake("an expired lock", b.queue, func() {
		b.now = b.now.Add(time.Minute)
		b.ok(nil, b.e.Tick())
	})
	m = b.receive(b.queue)
	wake("a dead letter", dead, func() { b.settle(b.queue, Bury, m) })
	b.post("orders", b.scheduled("later", time.Hour))
	wake("a message that is due", b.queue, func() {
		b.now = b.now.Add(time.Hour)
		b.ok(nil, b.e.Tick())
	})
	m = b.receive(b.queue)
	b.settle(b.queue, Complete, m)
	wake("a change", b.queue, func() { b.change("orders", func(p *Properties) { p.UserMetadata = "x" }) })
	wake("a deletion", b.queue, func() { b.ok(nil, b.e.Delete("orders")) })
	_, woken := b.waiting(b.queue, none)
	b.wantWoken(woken, 1, "waiting for an entity that is gone")
	b.make("other", Queue, nil)
	wake("the end of the engine", at("other"), func() { b.ok(nil, b.e.Close()) })
	_, woken = b.waiting(at("other"), none)
	b.wantWoken(woken, 1, "waiting at an engine that is closed")
}

// One message wakes one waiter, and whoever cannot take it hands the wake-up on.
func TestWaitersTakeTurns(t *testing.T) {
	b := newBench(t)
	none := message.UUID{}
	first, firstWoken := b.waiting(b.queue, none)
	second, secondWoken := b.waiting(b.queue, none)
	b.send("a")
	b.wantWoken(firstWoken, 1, "the first message")
	b.wantWoken(secondWoken, 0, "the first message")
	first.Close()
	b.wantWoken(secondWoken, 1, "the first has gone")
	third, thirdWoken := b.waiting(b.queue, none)
	b.wantWoken(thirdWoken, 1, "arming while there is something")
	third.Pass()
	second.Pass() // nobody is left
	b.receive(b.queue)
	second.Arm(none)
	third.Arm(none)
	b.send("b", "c", "d")
	b.wantWoken(secondWoken, 2, "three messages")
	b.wantWoken(thirdWoken, 2, "three messages")
	second.Close()
	third.Close()
}

func TestWaiterOfSession(t *testing.T) {
	b := newBench(t)
	b.make("steps", Queue, func(p *Properties) { p.RequiresSession = true })
	a := Address{Name: "steps"}
	one, two := "one", "two"
	held := b.accept(a, &one)
	_, inSession := b.waiting(a, held.Token)
	_, forNext := b.waiting(a, message.UUID{})
	b.post("steps", &message.Message{SessionID: &one})
	b.wantWoken(inSession, 1, "a message of its session")
	b.wantWoken(forNext, 0, "a message of a session that is held")
	b.post("steps", &message.Message{SessionID: &two})
	b.wantWoken(inSession, 1, "a message of another session")
	b.wantWoken(forNext, 1, "a message of a free session")
	b.accept(a, &two)
	_, forNext = b.waiting(a, message.UUID{})
	b.wantWoken(forNext, 0, "all sessions with messages are held")
	b.ok(nil, b.e.ReleaseSession(a, held.Token))
	b.wantWoken(forNext, 1, "a session was given back")
}

// Whatever the order in which messages come and receivers look, every message is received.
func TestNoWakeUpIsLost(t *testing.T) {
	const receivers, messages = 8, 400
	b := newBench(t)
	var (
		got  atomic.Int64
		all  sync.WaitGroup
		done = make(chan struct{})
	)
	for range receivers {
		all.Go(func() {
			ready := make(chan struct{}, 1)
			w := b.e.NewWaiter(b.queue, func() { ready <- struct{}{} })
			defer w.Close()
			for {
				w.Arm(message.UUID{})
				select {
				case <-ready:
				case <-done:
					return
				}
				page, err := b.e.Receive(b.queue, ReceiveOptions{Max: 2, Delete: true})
				if err != nil {
					t.Error(err)
					return
				}
				if len(page) > 0 && got.Add(int64(len(page))) == messages {
					close(done)
				}
			}
		})
	}
	for range 4 {
		all.Go(func() {
			for range messages / 4 {
				b.send("m")
			}
		})
	}
	all.Wait()
	if got.Load() != messages {
		t.Errorf("%d of %d messages were received", got.Load(), messages)
	}
}

func TestOnChange(t *testing.T) {
	b := newBench(t)
	calls := 0
	cancel := b.e.OnChange("ORDERS", func() { calls++ })
	b.send("a")
	b.change("orders", func(p *Properties) { p.UserMetadata = "x" })
	b.change("orders", func(p *Properties) { p.UserMetadata = "y" })
	if calls != 1 {
		t.Errorf("two changes were told %d times, want once", calls)
	}
	cancel()
	cancel = b.e.OnChange("orders", func() { calls++ })
	cancel()
	b.ok(nil, b.e.Delete("orders"))
	if calls != 1 {
		t.Errorf("a change was told to someone who had gone")
	}
	b.e.OnChange("orders", func() { calls++ })
	if calls != 2 {
		t.Error("that the entity is gone was not told")
	}
}

// Whoever watches an entity uses it.
func TestWatchedEntityIsNotIdle(t *testing.T) {
	b := newBench(t)
	b.make("short", Queue, func(p *Properties) { p.AutoDeleteOnIdle = 5 * time.Minute })
	cancel := b.e.OnChange("short", func() {})
	b.now = b.now.Add(time.Hour)
	if err := b.e.Exists(Address{Name: "short"}); err != nil {
		t.Fatal(err)
	}
	cancel()
	b.now = b.now.Add(4 * time.Minute)
	if err := b.e.Exists(Address{Name: "short"}); err != nil {
		t.Errorf("it was deleted before it was idle for long enough: %v", err)
	}
	b.now = b.now.Add(6 * time.Minute)
	if err := b.e.Exists(Address{Name: "short"}); !errors.Is(err, ErrNoEntity) {
		t.Errorf("an idle entity is there still: %v", err)
	}
}

// running returns an engine that runs until the test ends. Time is that of the test's bubble.
func running(t *testing.T) *Engine {
	s, err := store.Open(vfs.NewMem(), "data")
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- e.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := errors.Join(<-ended, e.Close()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// awaken waits until there is something to receive, and returns how long that took.
func awaken(e *Engine, a Address) time.Duration {
	began, woken := time.Now(), make(chan struct{})
	w := e.NewWaiter(a, func() { close(woken) })
	defer w.Close()
	w.Arm(message.UUID{})
	<-woken
	return time.Since(began)
}

// Run makes things happen at their time though no command comes.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := running(t)
		a := Address{Name: "orders"}
		if err := e.Create(a.Name, Queue, Defaults(Queue, ServiceBus)); err != nil {
			t.Fatal(err)
		}
		for _, d := range []time.Duration{time.Hour, time.Minute} { // the second is due before the first
			due := time.Now().Add(d)
			if _, err := e.Send(a, []*message.Message{{ScheduledEnqueueTime: &due}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []time.Duration{time.Minute, time.Hour} {
			if took := awaken(e, a); took > want || took < want-2*time.Minute {
				t.Errorf("woken after %v, want about %v", took, want)
			}
			if _, err := e.Receive(a, ReceiveOptions{Delete: true}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestCancelScheduled(t *testing.T) {
	b := newBench(t)
	one := b.post("orders", b.scheduled("one", time.Hour))
	two := b.post("orders", b.scheduled("two", 2*time.Hour))
	b.want(b.e.CancelScheduled(b.queue, one, 99), ErrNoMessage)
	b.wantContents(b.queue, "one/0", "two/0")
	b.ok(nil, b.e.CancelScheduled(b.queue, one, one))
	b.wantContents(b.queue, "two/0")
	b.now = b.now.Add(2 * time.Hour)
	b.want(b.e.CancelScheduled(b.queue, two), ErrNoMessage)
}

func TestDeleteBatch(t *testing.T) {
	b := newBench(t)
	b.send("old", "held")
	b.receive(b.queue) // old is held now
	b.post("orders", b.scheduled("scheduled", time.Hour))
	b.now = b.now.Add(time.Second)
	limit := b.now
	b.send("new")
	del := func(o DeleteBatchOptions, want int) {
		t.Helper()
		got, err := b.e.DeleteBatch(b.queue, o)
		if err != nil || got != want {
			t.Errorf("%d were deleted (%v), want %d", got, err, want)
		}
	}
	del(DeleteBatchOptions{Max: 10, Before: limit}, 1)
	b.wantContents(b.queue, "old/0", "scheduled/0", "new/0")
	del(DeleteBatchOptions{Max: 10, Before: limit}, 0)
	b.send("newer")
	del(DeleteBatchOptions{Max: 1}, 1)
	b.wantContents(b.queue, "old/0", "scheduled/0", "newer/0")
}

// A message expires in a running engine though nobody receives from its queue.
func TestRunExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := running(t)
		p := Defaults(Queue, ServiceBus)
		p.DeadLetterOnExpiration = true
		if err := e.Create("orders", Queue, p); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // Run has nothing to wait for
		ttl := 10 * time.Second
		if _, err := e.Send(Address{Name: "orders"}, []*message.Message{{TTL: &ttl}}); err != nil {
			t.Fatal(err)
		}
		if took := awaken(e, Address{Name: "orders", Sub: DeadLetter}); took < ttl || took > ttl+2*time.Second {
			t.Errorf("it expired after %v", took)
		}
	})
}
