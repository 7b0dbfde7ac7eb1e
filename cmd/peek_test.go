package cmd

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/local"
	"dlq/backends/message"
)

// endless is a backend whose dead letters are made while they are read.
type endless struct {
	backends.Backend
	depth int
}

func (endless) Close() error { return nil }

func (endless) Entities(context.Context, backends.EntityQuery) iter.Seq2[backends.Entity, error] {
	return func(yield func(backends.Entity, error) bool) {
		id := backends.EntityID{Name: "orders"}
		yield(backends.Entity{ID: id, Kind: backends.Queue, DeadLetters: id.DeadLetters()}, nil)
	}
}

func (e endless) Peek(_ context.Context, _ backends.EntityID, opts backends.PeekOptions) iter.Seq2[*message.Message, error] {
	return func(yield func(*message.Message, error) bool) {
		for seq := max(opts.From, 1); seq <= int64(e.depth); seq++ {
			m := text(fmt.Sprintf("order-%d", seq), strings.Repeat("x", 1024))
			m.Broker.SequenceNumber = seq
			if !yield(m, nil) {
				return
			}
		}
	}
}

// heapMeter is a writer that measures what is alive while it is written to.
type heapMeter struct {
	written, next int
	highest       uint64
}

func (h *heapMeter) Write(p []byte) (int, error) {
	if h.written += len(p); h.written >= h.next {
		h.next = h.written + 8<<20
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		h.highest = max(h.highest, stats.HeapAlloc)
	}
	return len(p), nil
}

// peekInto lists the dead letters of orders and returns what was alive at most meanwhile.
func peekInto(tb testing.TB, b backends.Backend, format string) *heapMeter {
	tb.Helper()
	var meter heapMeter
	a := &app{
		args: []string{"peek", "orders", "-o", format}, getenv: func(string) string { return "" },
		now: time.Now, opened: b,
	}
	a.out = bufio.NewWriterSize(&meter, outBuffer)
	a.err = testWriter{tb}
	if code := a.main(tb.Context()); code != exitDone {
		tb.Fatalf("exit code %d", code)
	}
	return &meter
}

type testWriter struct{ testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.Logf("%s", p)
	return len(p), nil
}

// TestPeekStreams: the memory of a listing does not grow with the depth of the queue.
func TestPeekStreams(t *testing.T) {
	const slack = 1 << 20
	for _, format := range []string{"table", "json", "jsonl"} {
		shallow := peekInto(t, endless{depth: 1000}, format).highest
		deep := peekInto(t, endless{depth: 50_000}, format).highest
		if deep > shallow+slack {
			t.Errorf("%s: %d bytes alive at a depth of 50,000, %d at 1,000", format, deep, shallow)
		}
	}
}

// BenchmarkPeek streams 100,000 messages of 1 KiB from the engine on disk. "live-KiB" is
// what the listing keeps alive beyond what the open broker does.
func BenchmarkPeek(b *testing.B) {
	for _, depth := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			backend := deadLettersOnDisk(b, depth)
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			var highest uint64
			for b.Loop() {
				highest = max(highest, peekInto(b, backend, "jsonl").highest)
			}
			b.ReportMetric(float64(highest-min(highest, before.HeapAlloc))/1024, "live-KiB")
			b.ReportMetric(float64(depth)*float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

func deadLettersOnDisk(b *testing.B, depth int) backends.Backend {
	b.Helper()
	backend, err := local.Open(b.Context(), local.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { backend.Close() })
	const batch = 1000
	if err := backend.CreateQueue(b.Context(), "orders"); err != nil {
		b.Fatal(err)
	}
	for i := 0; i < depth; i += batch {
		msgs := make([]*message.Message, batch)
		seqs := make([]int64, batch)
		for j := range msgs {
			msgs[j] = text(fmt.Sprintf("order-%d", i+j), strings.Repeat("x", 1024))
			seqs[j] = int64(i + j + 1)
		}
		if err := backend.Send(b.Context(), backends.EntityID{Name: "orders"}, msgs); err != nil {
			b.Fatal(err)
		}
		o := backends.Outcome{Action: backends.DeadLetter, Reason: "Broken"}
		if err := backend.SettleDirect(b.Context(), backends.EntityID{Name: "orders"}, o, seqs...); err != nil {
			b.Fatal(err)
		}
	}
	return keptOpen{backends.Decorator{Backend: backend}}
}
