package resubmit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/local"
	"dlq/backends/message"
)

// BenchmarkResubmit measures a journalled resubmit against the same loop without plan, journal and report: batches of
// the same size, as many at a time. It reports messages per second of both and their ratio, from the
// same run; the target is 0.7. On disk both wait for syncs; in memory only the journal does.
func BenchmarkResubmit(b *testing.B) {
	for _, where := range []string{"memory", "disk"} {
		for _, way := range []struct {
			name string
			wrap func(backends.Backend) backends.Backend
			raw  func(context.Context, backends.Backend) error
		}{
			{"move", func(l backends.Backend) backends.Backend { return l }, rawMove},
			{"send", func(l backends.Backend) backends.Backend { return plainBackend{l} }, rawSend},
		} {
			b.Run(where+"/"+way.name, func(b *testing.B) {
				const n = 10_000
				var raw, ours, running time.Duration
				for b.Loop() {
					backend := deadLetters(b, where == "disk", n)
					began := time.Now()
					if err := way.raw(b.Context(), backend); err != nil {
						b.Fatal(err)
					}
					raw += time.Since(began)
					closeBackend(b, backend)

					backend = deadLetters(b, where == "disk", n)
					j, err := OpenJournals(b.TempDir(), nil)
					if err != nil {
						b.Fatal(err)
					}
					env := Env{Backend: way.wrap(backend), Journals: j}
					began = time.Now()
					p, err := NewPlan(b.Context(), env, Spec{Kind: Resubmit, From: dead, Selection: Selection{All: true}})
					if err != nil {
						b.Fatal(err)
					}
					planned := time.Now()
					r, err := Run(b.Context(), env, p, nil)
					if err != nil || r.Done != n {
						b.Fatal(r.Summary(), err)
					}
					ours += time.Since(began)
					running += time.Since(planned)
					closeBackend(b, backend)
				}
				total := float64(n * b.N)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(total/raw.Seconds(), "raw-msg/s")
				b.ReportMetric(total/ours.Seconds(), "msg/s")
				b.ReportMetric(raw.Seconds()/ours.Seconds(), "ratio")
				b.ReportMetric(raw.Seconds()/running.Seconds(), "ratio-of-run")
			})
		}
	}
}

func closeBackend(b *testing.B, l backends.Backend) {
	b.Helper()
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// deadLetters opens a broker with n dead letters of 1 KiB in orders.
func deadLetters(b *testing.B, disk bool, n int) *local.Backend {
	b.Helper()
	var o local.Options
	if disk {
		o.Dir = b.TempDir()
	}
	l, err := local.Open(b.Context(), o)
	if err == nil {
		err = l.CreateQueue(b.Context(), orders.Name)
	}
	if err != nil {
		b.Fatal(err)
	}
	for at := 0; at < n; at += 500 {
		var msgs []*message.Message
		for i := range 500 {
			m := &message.Message{ID: message.String(fmt.Sprint("id-", at+i)), Body: message.DataBody(make([]byte, 1024))}
			m.Properties.Set("n", message.Int(at+i))
			msgs = append(msgs, m)
		}
		if err := l.Send(b.Context(), orders, msgs); err != nil {
			b.Fatal(err)
		}
	}
	var seqs []int64
	for m, err := range l.Peek(b.Context(), orders, backends.PeekOptions{NoBody: true}) {
		if err != nil {
			b.Fatal(err)
		}
		if seqs = append(seqs, m.Broker.SequenceNumber); len(seqs) == 500 {
			if err := l.SettleDirect(b.Context(), orders, backends.Outcome{Action: backends.DeadLetter, Reason: "R"}, seqs...); err != nil {
				b.Fatal(err)
			}
			seqs = seqs[:0]
		}
	}
	return l
}

// inBatches gives batches of fifty to four workers.
func inBatches(feed func(emit func(*message.Message)) error, work func([]*message.Message) error) error {
	ch := make(chan []*message.Message)
	var workers sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range defaultConcurrency {
		workers.Go(func() {
			for batch := range ch {
				if err := work(batch); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	var batch []*message.Message
	err := feed(func(m *message.Message) {
		if batch = append(batch, m); len(batch) == maxBatch {
			ch <- batch
			batch = nil
		}
	})
	if len(batch) > 0 {
		ch <- batch
	}
	close(ch)
	workers.Wait()
	return errors.Join(err, failed)
}

func rawMove(ctx context.Context, b backends.Backend) error {
	p, _ := backends.As[backends.Peeker](b)
	mover, _ := backends.As[backends.Mover](b)
	return inBatches(func(emit func(*message.Message)) error {
		for m, err := range p.Peek(ctx, dead, backends.PeekOptions{}) {
			if err != nil {
				return err
			}
			emit(m)
		}
		return nil
	}, func(batch []*message.Message) error {
		moves := make([]backends.Move, len(batch))
		for i, m := range batch {
			moves[i] = backends.Move{Seq: m.Broker.SequenceNumber, To: orders, As: Outgoing(m)}
		}
		return mover.Move(ctx, dead, moves)
	})
}

func rawSend(ctx context.Context, b backends.Backend) error {
	lease, err := b.Lease(ctx, dead, backends.LeaseOptions{})
	if err != nil {
		return err
	}
	err = inBatches(func(emit func(*message.Message)) error {
		for {
			m, err := lease.Next(ctx)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			emit(m)
		}
	}, func(batch []*message.Message) error {
		out := make([]*message.Message, len(batch))
		for i, m := range batch {
			out[i] = Outgoing(m)
		}
		if err := b.Send(ctx, orders, out); err != nil {
			return err
		}
		return lease.Settle(ctx, backends.Outcome{Action: backends.Complete}, batch...)
	})
	return errors.Join(err, lease.Release(ctx))
}

// BenchmarkMemory resubmits 300 messages of 1 MiB and reports the highest live heap: it is bound by the batches in flight, not
// by the number or the sum of the messages. The broker's own memory, which is on disk here, is part of it.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		dir := b.TempDir()
		l, err := local.Open(b.Context(), local.Options{Dir: dir})
		if err == nil {
			err = l.CreateQueue(b.Context(), orders.Name)
		}
		if err != nil {
			b.Fatal(err)
		}
		const n = 300
		for i := range n {
			m := &message.Message{ID: message.String(fmt.Sprint(i)), Body: message.DataBody(make([]byte, 1<<20))}
			if err := l.Send(b.Context(), orders, []*message.Message{m}); err != nil {
				b.Fatal(err)
			}
		}
		j, err := OpenJournals(b.TempDir(), nil)
		if err != nil {
			b.Fatal(err)
		}
		env := Env{Backend: l, Journals: j}
		var peak, before runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var highest uint64
		to := backends.EntityID{Name: "big"}
		p, err := NewPlan(b.Context(), env, Spec{Kind: Resubmit, From: orders, To: &to, Selection: Selection{All: true}})
		if err != nil {
			b.Fatal(err)
		}
		r, err := Run(b.Context(), env, p, func(Progress) {
			runtime.GC()
			runtime.ReadMemStats(&peak)
			highest = max(highest, peak.HeapAlloc)
		})
		if err != nil || r.Done != n {
			b.Fatal(r.Summary(), err)
		}
		b.ReportMetric(float64(highest-min(before.HeapAlloc, highest))/(1<<20), "peak-MiB")
		closeBackend(b, l)
	}
}

// BenchmarkPlan measures the look before a resubmit, in messages per second: without the answer to who would get
// each message, with it for a queue, and for a topic with ten subscriptions.
func BenchmarkPlan(b *testing.B) {
	const n = 100_000
	l := deadLetters(b, false, n)
	defer closeBackend(b, l)
	topic := backends.EntityID{Name: "news"}
	entities := []backends.NewEntity{{ID: topic, Kind: backends.Topic}}
	for i := range 10 {
		rule := backends.Rule{Name: "r", Filter: fmt.Sprintf("n IS NULL OR n %% 10 <> %d", i)}
		entities = append(entities, backends.NewEntity{ID: backends.EntityID{Name: fmt.Sprintf("news/s%d", i)}, Kind: backends.Subscription, Rules: []backends.Rule{rule}})
	}
	for _, e := range entities {
		if _, err := l.CreateEntity(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
	unrouted := struct {
		backends.Backend
		backends.Peeker
		backends.Mover
		backends.SendValidator
	}{l, l, l, l}
	for _, c := range []struct {
		name    string
		backend backends.Backend
		to      backends.EntityID
	}{{"unrouted", unrouted, orders}, {"queue", l, orders}, {"topic", l, topic}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				p, err := NewPlan(b.Context(), Env{Backend: c.backend}, Spec{Kind: Resubmit, From: dead, To: &c.to, Selection: Selection{All: true}})
				if err != nil || p.Matched != n {
					b.Fatal(p, err)
				}
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}
