package throttle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dlq/backends"
	"dlq/backends/backendtest"
	"dlq/backends/broker"
	"dlq/backends/local"
	"dlq/backends/message"
)

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(testing.TB) backendtest.Harness {
		return backendtest.Decorate(harness(), func(b backends.Backend) backends.Backend { return New(b, 1e6) })
	})
}

// harness is a local backend in memory on a clock of its own.
func harness() backendtest.Harness {
	var clock atomic.Int64
	clock.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	now := func() time.Time { return time.Unix(0, clock.Load()) }
	var b *local.Backend
	queues := 0
	return backendtest.Harness{
		Open: func(t testing.TB) backends.Backend {
			var err error
			if b, err = local.Open(t.Context(), local.Options{Now: now}); err != nil {
				t.Fatal(err)
			}
			return b
		},
		Queue: func(t testing.TB, o backendtest.QueueOptions) backends.EntityID {
			queues++
			id := backends.EntityID{Name: fmt.Sprintf("queue-%d", queues)}
			if err := b.CreateQueueWith(t.Context(), id.Name, properties(o)); err != nil {
				t.Fatal(err)
			}
			return id
		},
		Now:     now,
		Advance: func(_ testing.TB, d time.Duration) { clock.Add(int64(d)) },
	}
}

// instant is a backend whose every call succeeds at once, so that all time is the decorator's.
type instant struct{ backends.Backend }

func (instant) Send(context.Context, backends.EntityID, []*message.Message) error { return nil }
func (instant) Lease(context.Context, backends.EntityID, backends.LeaseOptions) (backends.Lease, error) {
	return instantLease{}, nil
}

func (instant) LeaseDeferred(context.Context, backends.EntityID, ...int64) (backends.Lease, error) {
	return instantLease{}, nil
}

func (instant) SettleDirect(context.Context, backends.EntityID, backends.Outcome, ...int64) error {
	return nil
}
func (instant) Move(context.Context, backends.EntityID, []backends.Move) error { return nil }
func (instant) Purge(context.Context, backends.EntityID) (int64, error)        { return 7, nil }
func (instant) CreateQueue(context.Context, string) error                      { return nil }
func (instant) ValidateSend(context.Context, backends.EntityID, *message.Message) error {
	return nil
}

type instantLease struct{}

func (instantLease) Next(context.Context) (*message.Message, error) { return &message.Message{}, nil }

func (instantLease) Settle(context.Context, backends.Outcome, ...*message.Message) error {
	return nil
}
func (instantLease) Release(context.Context) error { return nil }

// TestWhatCounts: after the burst is used, a call costs as many tenths of a second as messages.
func TestWhatCounts(t *testing.T) {
	id := backends.EntityID{Name: "q"}
	complete := backends.Outcome{Action: backends.Complete}
	for _, c := range []struct {
		name     string
		messages int
		call     func(ctx context.Context, b *Backend, l, deferred backends.Lease) error
	}{
		{"send", 3, func(ctx context.Context, b *Backend, _, _ backends.Lease) error {
			return b.Send(ctx, id, make([]*message.Message, 3))
		}},
		{"send more than the burst", 25, func(ctx context.Context, b *Backend, _, _ backends.Lease) error {
			return b.Send(ctx, id, make([]*message.Message, 25))
		}},
		{"send nothing", 0, func(ctx context.Context, b *Backend, _, _ backends.Lease) error { return b.Send(ctx, id, nil) }},
		{"lease", 0, func(ctx context.Context, b *Backend, _, _ backends.Lease) error {
			_, err := b.Lease(ctx, id, backends.LeaseOptions{})
			return err
		}},
		{"next", 1, func(ctx context.Context, _ *Backend, l, _ backends.Lease) error { _, err := l.Next(ctx); return err }},
		{"next deferred", 1, func(ctx context.Context, _ *Backend, _, d backends.Lease) error { _, err := d.Next(ctx); return err }},
		{"settle", 4, func(ctx context.Context, _ *Backend, l, _ backends.Lease) error {
			return l.Settle(ctx, complete, make([]*message.Message, 4)...)
		}},
		{"settle deferred", 2, func(ctx context.Context, _ *Backend, _, d backends.Lease) error {
			return d.Settle(ctx, complete, make([]*message.Message, 2)...)
		}},
		{"release", 0, func(ctx context.Context, _ *Backend, l, _ backends.Lease) error { return l.Release(ctx) }},
		{"settle directly", 2, func(ctx context.Context, b *Backend, _, _ backends.Lease) error {
			return b.SettleDirect(ctx, id, complete, 1, 2)
		}},
		{"move", 2, func(ctx context.Context, b *Backend, _, _ backends.Lease) error {
			return b.Move(ctx, id, make([]backends.Move, 2))
		}},
		{"purge", 1, func(ctx context.Context, b *Backend, _, _ backends.Lease) error {
			n, err := b.Purge(ctx, id)
			return errors.Join(err, wantPurged(n))
		}},
		{"create", 0, func(ctx context.Context, b *Backend, _, _ backends.Lease) error { return b.CreateQueue(ctx, "q") }},
		{"validate", 0, func(ctx context.Context, b *Backend, _, _ backends.Lease) error { return b.ValidateSend(ctx, id, nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				b := New(instant{}, 10)
				l, err := b.Lease(ctx, id, backends.LeaseOptions{})
				deferred, err2 := b.LeaseDeferred(ctx, id, 1)
				if err := errors.Join(err, err2, b.Send(ctx, id, make([]*message.Message, 10))); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				if err := c.call(ctx, b, l, deferred); err != nil {
					t.Fatal(err)
				}
				if took, want := time.Since(start), time.Duration(c.messages)*100*time.Millisecond; took != want {
					t.Errorf("took %v, want %v", took, want)
				}
				// With a context that is done, what would have to wait fails and costs nothing.
				canceled, cancel := context.WithCancel(ctx)
				cancel()
				if err := c.call(canceled, b, l, deferred); errors.Is(err, context.Canceled) != (c.messages > 0) {
					t.Errorf("canceled: %v", err)
				}
			})
		})
	}
}

func wantPurged(n int64) error {
	if n != 0 && n != 7 {
		return fmt.Errorf("purged %d messages, want 7", n)
	}
	return nil
}

// TestRate: from many at once, no more than the rate goes through, and no less.
func TestRate(t *testing.T) {
	for _, perSecond := range []float64{0.5, 1, 3, 50} {
		t.Run(fmt.Sprint(perSecond), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(instant{}, perSecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var through atomic.Int64
				for range 8 {
					go func() {
						for b.Send(ctx, backends.EntityID{}, make([]*message.Message, 1)) == nil {
							through.Add(1)
						}
					}()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				most := int64(perSecond*60 + max(perSecond, 1))
				if n := through.Load(); n > most || n < int64(perSecond*60) {
					t.Errorf("%d messages in a minute, want %v to %d", n, perSecond*60, most)
				}
			})
		})
	}
}

func TestNoLimit(t *testing.T) {
	for _, perSecond := range []float64{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			b, start := New(instant{}, perSecond), time.Now()
			for range 1000 {
				if err := b.Send(t.Context(), backends.EntityID{}, make([]*message.Message, 1000)); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("New(b, %v) made a million messages wait for %v", perSecond, took)
			}
		})
	}
}

// TestWaitEndsWithContext: the wait is cut short, and what did not happen is not charged twice.
func TestWaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(instant{}, 1)
		one := make([]*message.Message, 1)
		if err := b.Send(t.Context(), backends.EntityID{}, one); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		start := time.Now()
		err := b.Send(ctx, backends.EntityID{Name: "q"}, one)
		if !errors.Is(err, context.Canceled) || !backends.IsCode(err, backends.Throttled) || time.Since(start) != 300*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		near, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := b.Send(near, backends.EntityID{Name: "q"}, one); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a deadline too near: %v", err)
		}
		if err := b.Send(t.Context(), backends.EntityID{}, one); err != nil || time.Since(start) != time.Second {
			t.Errorf("sent after %v: %v, want after 1s", time.Since(start), err)
		}
	})
}

// TestCapabilities: what the wrapped backend lacks, the decorator lacks too.
func TestCapabilities(t *testing.T) {
	bare := struct{ backends.Backend }{instant{}}
	if got := backends.Probe(New(bare, 1)); got != (backends.Capabilities{}) {
		t.Errorf("around a bare backend: %+v", got)
	}
	if err := New(bare, 0).Move(t.Context(), backends.EntityID{Name: "q"}, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("move around a bare backend: %v", err)
	}
}

// properties are those of a queue with what the suite asks for; zero means the default.
func properties(o backendtest.QueueOptions) broker.Properties {
	p := broker.Defaults(broker.Queue, broker.ServiceBus)
	p.LockDuration = cmp.Or(o.LockDuration, p.LockDuration)
	p.MaxDeliveryCount = cmp.Or(o.MaxDeliveryCount, p.MaxDeliveryCount)
	p.MaxMessageBytes = cmp.Or(o.MaxBodyBytes, p.MaxMessageBytes)
	p.RequiresSession = o.Sessions
	return p
}
