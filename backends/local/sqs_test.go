package local

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends"
	"dlq/backends/backendtest"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// A sweep over dead letters keeps its locks by the timeout of the queue that they lie in, also
// where that is 0: a sweep hides what it goes through.
func TestSweepByTheTimeoutOfTheDeadLetterQueue(t *testing.T) {
	for _, timeout := range []time.Duration{30 * time.Second, 0} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			b, err := Open(ctx, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = b.Close() }()
			p := broker.Defaults(broker.Queue, broker.SQS)
			p.LockDuration = timeout
			dlq := backends.EntityID{Name: "jobs-dlq"}
			err = b.CreateQueueWith(ctx, dlq.Name, p)
			p.LockDuration, p.Redrive = 12*time.Hour, broker.Redrive{Target: dlq.Name, MaxReceives: 1}
			err = errors.Join(err, b.CreateQueueWith(ctx, "jobs", p), b.Send(ctx, dlq, []*message.Message{{}, {}}))
			if err != nil {
				t.Fatal(err)
			}
			l, err := b.Lease(ctx, backends.EntityID{Name: "jobs"}.DeadLetters(), backends.LeaseOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var msgs []*message.Message
			for m, err := l.Next(ctx); !errors.Is(err, io.EOF); m, err = l.Next(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				msgs = append(msgs, m)
			}
			time.Sleep(10 * time.Minute) // of virtual time
			if err := l.Settle(ctx, backends.Outcome{Action: backends.Complete}, msgs...); err != nil || len(msgs) != 2 {
				t.Errorf("settling %d messages after ten minutes: %v", len(msgs), err)
			}
		})
	}
}

// TestConformanceOfSQSQueues runs the suite on queues of the SQS dialect, each with a dead-letter queue
// that its redrive policy names.
func TestConformanceOfSQSQueues(t *testing.T) {
	backendtest.Run(t, func(t testing.TB) backendtest.Harness {
		fs := vfs.NewCrashableMem()
		h := harness(func(now func() time.Time) Options {
			return Options{Dir: "data", FS: fs, Now: now}
		}, func() {
			fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
		}, nil)
		open, restart := h.Open, h.Restart
		var b *Backend
		h.Open = func(t testing.TB) backends.Backend {
			b = open(t).(*Backend)
			return b
		}
		h.Restart = func(t testing.TB, old backends.Backend, kill bool) backends.Backend {
			b = restart(t, old, kill).(*Backend)
			return b
		}
		n := 0
		h.Queue = func(t testing.TB, o backendtest.QueueOptions) backends.EntityID {
			n++
			id := backends.EntityID{Name: fmt.Sprintf("queue-%d", n)}
			p := broker.Defaults(broker.Queue, broker.SQS)
			p.LockDuration = cmp.Or(o.LockDuration, p.LockDuration)
			p.MaxMessageBytes = max(min(cmp.Or(o.MaxBodyBytes, p.MaxMessageBytes), p.MaxMessageBytes), 1024)
			if err := b.CreateQueueWith(t.Context(), id.Name+"-dlq", p); err != nil {
				t.Fatal(err)
			}
			p.Redrive = broker.Redrive{Target: id.Name + "-dlq", MaxReceives: cmp.Or(o.MaxDeliveryCount, 10)}
			if err := b.CreateQueueWith(t.Context(), id.Name, p); err != nil {
				t.Fatal(err)
			}
			return id
		}
		h.CountsReceives = true
		return h
	})
}
