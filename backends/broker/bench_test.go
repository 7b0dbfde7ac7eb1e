package broker

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

func openOnDisk(b *testing.B) *Engine {
	s, err := store.Open(vfs.Default, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	e, err := Open(Options{Store: s})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	if err := e.CreateQueue("q", Defaults(Queue, ServiceBus)); err != nil {
		b.Fatal(err)
	}
	return e
}

var kilobyte = message.DataBody(make([]byte, 1024))

// BenchmarkSend is a durable enqueue by one and by 100 writers; the floor beside it is the
// key-value store doing the same writes with the same syncs.
func BenchmarkSend(b *testing.B) {
	for _, writers := range []int{1, 100} {
		b.Run(fmt.Sprintf("engine/writers=%d", writers), func(b *testing.B) {
			e := openOnDisk(b)
			inParallel(b, writers, func() error {
				errs, err := e.Send(Address{Name: "q"}, []*message.Message{{ID: message.String("id"), Body: kilobyte}})
				if err == nil {
					err = errs[0]
				}
				return err
			})
		})
		b.Run(fmt.Sprintf("pebble/writers=%d", writers), func(b *testing.B) {
			db, err := pebble.Open(b.TempDir(), &pebble.Options{MemTableSize: 16 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			var n atomic.Uint64
			value := make([]byte, 1024)
			inParallel(b, writers, func() error {
				batch := db.NewBatch()
				i := n.Add(1)
				for _, prefix := range "BHM" {
					size := map[rune]int{'B': 1024, 'H': 20, 'M': 30}[prefix]
					if err := batch.Set(fmt.Appendf(nil, "%c%012d", prefix, i), value[:size], nil); err != nil {
						return err
					}
				}
				return batch.Commit(pebble.Sync)
			})
		})
	}
}

func inParallel(b *testing.B, writers int, f func() error) {
	b.SetParallelism(writers)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := f(); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkReceiveComplete costs the same at every depth.
func BenchmarkReceiveComplete(b *testing.B) {
	for _, depth := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			e := fill(b, depth)
			a := Address{Name: "q"}
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				m, err := e.Receive(a, 0)
				if err != nil || m == nil {
					b.Fatal(m, err)
				}
				if _, err := e.Settle(a, Outcome{Action: Complete}, m.Broker.LockToken); err != nil {
					b.Fatal(err)
				}
				if _, err := e.Send(a, []*message.Message{{Body: kilobyte}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fill opens an engine in memory, so that syncs do not hide what is compared.
func fill(b *testing.B, depth int) *Engine {
	s, err := store.OpenMemory()
	if err != nil {
		b.Fatal(err)
	}
	e, err := Open(Options{Store: s})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	if err := e.CreateQueue("q", Defaults(Queue, ServiceBus)); err != nil {
		b.Fatal(err)
	}
	for n := 0; n < depth; n += 1000 {
		msgs := make([]*message.Message, min(1000, depth-n))
		for i := range msgs {
			msgs[i] = &message.Message{Body: kilobyte}
		}
		if _, err := e.Send(Address{Name: "q"}, msgs); err != nil {
			b.Fatal(err)
		}
	}
	return e
}

// BenchmarkPeekPage reads 100 messages from the middle of a queue.
func BenchmarkPeekPage(b *testing.B) {
	for _, depth := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			e := fill(b, depth)
			b.ReportAllocs()
			for b.Loop() {
				if page, err := e.Peek(Address{Name: "q"}, PeekOptions{From: int64(depth / 2), Max: 100}); err != nil || len(page) != 100 {
					b.Fatal(len(page), err)
				}
			}
		})
	}
}
