package local

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends"
	"dlq/backends/backendtest"
	"dlq/backends/broker"
)

// TestConformanceOfSQSQueues runs the suite on queues of the SQS dialect, each with a dead-letter queue
// that its redrive policy names.
func TestConformanceOfSQSQueues(t *testing.T) {
	backendtest.Run(t, func(t testing.TB) backendtest.Harness {
		fs := vfs.NewCrashableMem()
		h := harness(func(now func() time.Time) Options {
			return Options{Dir: "data", FS: fs, Now: now}
		}, func() {
			fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
		})
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
