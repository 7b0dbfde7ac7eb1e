package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// The benchmarks run what they are compared with beside the engine, in the same run, because
// only ratios of one run count. Messages have bodies of 1 KiB.

var kilobyte = message.DataBody(make([]byte, 1024))

var benchQueue = Address{Name: "q"}

func openDisk(b *testing.B, dir string) *Engine {
	s, err := store.Open(vfs.Default, dir)
	if err != nil {
		b.Fatal(err)
	}
	e, err := Open(Options{Store: s})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// benchEngine opens an engine on disk with one queue of any size.
func benchEngine(b *testing.B) *Engine {
	e := openDisk(b, b.TempDir())
	b.Cleanup(func() { _ = e.Close() })
	createBig(b, e)
	return e
}

func createBig(b *testing.B, e *Engine) {
	if err := e.Create(benchQueue.Name, Queue, defaultsWith(func(p *Properties) { p.MaxSize = 0 })); err != nil {
		b.Fatal(err)
	}
}

func sendOne(e *Engine) error {
	sent, err := e.Send(benchQueue, []*message.Message{{ID: message.String("id"), Body: kilobyte}})
	if err == nil {
		err = sent[0].Err
	}
	return err
}

// fill sends messages a thousand at a time.
func fill(b *testing.B, e *Engine, depth int) {
	for n := 0; n < depth; n += 1000 {
		msgs := make([]*message.Message, min(1000, depth-n))
		for i := range msgs {
			msgs[i] = &message.Message{Body: kilobyte}
		}
		if _, err := e.Send(benchQueue, msgs); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSend is a durable enqueue by one and by 100 writers. Beside it: the key-value
// store doing the same writes with the same syncs, and a file made beforehand to which
// writers append in groups that share a sync, which is as fast as a disk goes.
func BenchmarkSend(b *testing.B) {
	for _, writers := range []int{1, 100} {
		b.Run(fmt.Sprintf("engine/writers=%d", writers), func(b *testing.B) {
			e := benchEngine(b)
			inParallel(b, writers, func() error { return sendOne(e) })
		})
		b.Run(fmt.Sprintf("pebble/writers=%d", writers), func(b *testing.B) {
			put := pebbleWriter(b)
			inParallel(b, writers, func() error { return put(func(*pebble.Batch, []byte) error { return nil }) })
		})
		b.Run(fmt.Sprintf("file/writers=%d", writers), func(b *testing.B) {
			g := newGroupFile(b)
			inParallel(b, writers, g.append)
		})
	}
}

// BenchmarkSendSettle is a durable enqueue, a receive, and a durable settlement. Beside it:
// the key-value store doing the same writes.
func BenchmarkSendSettle(b *testing.B) {
	for _, c := range []struct {
		name   string
		action Action
		writes func(*pebble.Batch, []byte) error // what settles, on the keys of one message
	}{
		{"complete", Complete, func(batch *pebble.Batch, key []byte) error {
			for _, prefix := range "BHM" {
				if err := batch.Delete(fmt.Appendf(nil, "%c%s", prefix, key), nil); err != nil {
					return err
				}
			}
			return nil
		}},
		{"deadletter", Bury, func(batch *pebble.Batch, key []byte) error {
			if err := batch.Delete(fmt.Appendf(nil, "M%s", key), nil); err != nil {
				return err
			}
			return batch.Set(fmt.Appendf(nil, "D%s", key), make([]byte, 60), nil)
		}},
	} {
		const writers = 100
		b.Run(c.name+"/engine", func(b *testing.B) {
			e := benchEngine(b)
			inParallel(b, writers, func() error {
				if err := sendOne(e); err != nil {
					return err
				}
				m, err := one(e.Receive(benchQueue, ReceiveOptions{}))
				if err != nil {
					return err
				}
				_, err = e.Settle(benchQueue, Outcome{Action: c.action, Reason: "reason"}, m.Broker.LockToken)
				return err
			})
		})
		b.Run(c.name+"/pebble", func(b *testing.B) {
			put := pebbleWriter(b)
			inParallel(b, writers, func() error { return put(c.writes) })
		})
	}
}

// pebbleWriter returns what writes the records of a message, synced, and then, if settle
// writes anything, its lock, not synced, and what settles it, synced.
func pebbleWriter(b *testing.B) func(settle func(*pebble.Batch, []byte) error) error {
	db, err := pebble.Open(b.TempDir(), &pebble.Options{MemTableSize: 16 << 20, Logger: silent{}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	var n atomic.Uint64
	value := make([]byte, 1040)
	return func(settle func(*pebble.Batch, []byte) error) error {
		key := binary.BigEndian.AppendUint64(nil, n.Add(1))
		batch := db.NewBatch()
		for _, r := range [...]struct {
			prefix string
			size   int
		}{{"B", 1034}, {"H", 12}, {"M", 30}} {
			if err := batch.Set(append([]byte(r.prefix), key...), value[:r.size], nil); err != nil {
				return err
			}
		}
		if err := batch.Commit(pebble.Sync); err != nil {
			return err
		}
		batch = db.NewBatch()
		if err := settle(batch, key); err != nil || batch.Empty() {
			return err
		}
		if err := db.Set(append([]byte("M"), key...), value[:50], pebble.NoSync); err != nil {
			return err
		}
		return batch.Commit(pebble.Sync)
	}
}

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(f string, args ...any) {
	panic(fmt.Sprintf(f, args...))
}

// groupFile is a file of zeros that is overwritten from its start, whose writers share syncs.
type groupFile struct {
	f       *os.File
	size    int64
	mu      sync.Mutex
	pending []chan error
	busy    bool
	at      int64
	record  []byte
}

func newGroupFile(b *testing.B) *groupFile {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	g := &groupFile{f: f, size: 256 << 20, record: make([]byte, 1100)}
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < g.size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros, at); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	return g
}

func (g *groupFile) append() error {
	done := make(chan error, 1)
	g.mu.Lock()
	g.pending = append(g.pending, done)
	if g.busy {
		g.mu.Unlock()
		return <-done
	}
	g.busy = true
	for len(g.pending) > 0 {
		group := g.pending
		g.pending = nil
		g.mu.Unlock()
		buf := make([]byte, 0, len(group)*len(g.record))
		for range group {
			buf = append(buf, g.record...)
		}
		if g.at+int64(len(buf)) > g.size {
			g.at = 0
		}
		_, err := g.f.WriteAt(buf, g.at)
		g.at += int64(len(buf))
		if err == nil {
			err = g.f.Sync()
		}
		for _, c := range group {
			c <- err
		}
		g.mu.Lock()
	}
	g.busy = false
	g.mu.Unlock()
	return <-done
}

func inParallel(b *testing.B, writers int, f func() error) {
	b.SetParallelism(max(1, writers/runtime.GOMAXPROCS(0)))
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

var depths = []int{1_000, 1_000_000}

// BenchmarkDepth shows what costs the same however deep the queue is: receive, settlement
// (two syncs, of a send and of a completion, so that the depth stays), a page of 100 from the
// middle, and the counts.
func BenchmarkDepth(b *testing.B) {
	for _, depth := range depths {
		dir := b.TempDir()
		e := openDisk(b, dir)
		createBig(b, e)
		fill(b, e, depth)
		// What the store has still to do for the filling is no cost of what follows: a look at
		// everything gives it the time.
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
		e = openDisk(b, dir)
		for from := int64(0); from < int64(depth); from += 1000 {
			if _, err := e.Peek(benchQueue, PeekOptions{From: from, Max: 1000}); err != nil {
				b.Fatal(err)
			}
		}
		run := func(name string, f func() error) {
			b.Run(fmt.Sprintf("%s/depth=%d", name, depth), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := f(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("receive+release", func() error {
			m, err := one(e.Receive(benchQueue, ReceiveOptions{}))
			if err != nil {
				return err
			}
			return e.Release(benchQueue, m.Broker.LockToken)
		})
		run("receive+complete+send", func() error {
			m, err := one(e.Receive(benchQueue, ReceiveOptions{}))
			if err != nil {
				return err
			}
			if _, err := e.Settle(benchQueue, Outcome{Action: Complete}, m.Broker.LockToken); err != nil {
				return err
			}
			return sendOne(e)
		})
		run("peek100", func() error {
			page, err := e.Peek(benchQueue, PeekOptions{From: int64(depth / 2), Max: 100})
			if err == nil && len(page) != 100 {
				err = fmt.Errorf("%d messages", len(page))
			}
			return err
		})
		run("count", func() error {
			_, err := e.Entity(benchQueue.Name)
			return err
		})
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemory reports how many bytes of memory a stored message costs beyond the cache,
// and how long an engine with a million takes to open, after a clean stop and after a kill.
func BenchmarkMemory(b *testing.B) {
	const n = 1_000_000
	dir, killed := b.TempDir(), b.TempDir()
	e := openDisk(b, dir)
	createBig(b, e)
	empty := heapBytes()
	fill(b, e, n)
	b.Run("bytes", func(b *testing.B) {
		for b.Loop() {
			b.ReportMetric(float64(heapBytes()-empty)/n, "B/message")
		}
	})
	// What a killed process leaves. The store may remove a file while it is copied.
	for err := error(fs.ErrNotExist); errors.Is(err, fs.ErrNotExist); {
		if err = errors.Join(os.RemoveAll(killed), os.CopyFS(killed, os.DirFS(dir))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			b.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("open/clean", func(b *testing.B) {
		for b.Loop() {
			e := openDisk(b, dir)
			b.StopTimer()
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("open/killed", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			image := b.TempDir()
			if err := os.CopyFS(image, os.DirFS(killed)); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			e := openDisk(b, image)
			b.StopTimer()
			_ = e.Close()
			_ = os.RemoveAll(image)
			b.StartTimer()
		}
	})
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkWaiters wakes one of many waiters for each message.
func BenchmarkWaiters(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(itoa(n), func(b *testing.B) {
			w := newBench(b)
			var next *Waiter
			for range n {
				var own *Waiter
				own = w.e.NewWaiter(w.queue, func() { next = own })
				own.Arm(message.UUID{})
			}
			w.send("m")
			for b.Loop() {
				m, _ := one(w.e.Receive(w.queue, ReceiveOptions{}))
				next.Arm(message.UUID{})
				_ = w.e.Release(w.queue, m.Broker.LockToken)
			}
		})
	}
}
