package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/message"
)

// The costs at 1,000 and at 1,000,000 messages stand side by side: what is random is a read of
// any message, what is in order is the head of a queue, or a page.
//
//	go test -run - -bench 'Depth|Open' ./backends/broker/store

var depths = []int{1_000, 1_000_000}

// populated opens a store with messages of a kilobyte, numbered from 1.
func populated(b *testing.B, fs FS, dir string, depth int) *Store {
	s, err := Open(fs, dir)
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, 1024)
	rnd := rand.New(rand.NewPCG(1, 2))
	const perBatch = 1000
	for from := 0; from < depth; from += perBatch {
		batch := s.NewBatch()
		for seq := uint64(from) + 1; seq <= uint64(from+perBatch); seq++ {
			for i := range 128 { // half of it is text, so to say
				body[i*8] = byte(rnd.Uint32())
				body[i*8+3] = byte(rnd.Uint32())
			}
			batch.PutBody(seq, message.DataBody(body))
			batch.PutHead(seq, message.AppendHead(nil, &message.Message{ID: message.String(fmt.Sprintf("message-%d", seq))}))
			batch.PutState(Key{1, 0, seq}, &State{Head: seq, Body: seq, BodySize: 1024, Enqueued: time.UnixMilli(1_700_000_000_000).UTC()})
		}
		if err := s.ApplyLazily(batch); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// places are the file systems to measure on.
func places(b *testing.B) map[string]func(*testing.B) (FS, string) {
	return map[string]func(*testing.B) (FS, string){
		"memory": func(*testing.B) (FS, string) { return vfs.NewMem(), "data" },
		"disk":   func(b *testing.B) (FS, string) { return vfs.Default, b.TempDir() },
	}
}

// BenchmarkDepth prints, for each kind of read, what it costs at 1,000 messages, at
// 1,000,000, and the ratio.
func BenchmarkDepth(b *testing.B) {
	for _, place := range []string{"memory", "disk"} {
		b.Run(place, func(b *testing.B) {
			stores := map[int]*Store{}
			for _, depth := range depths {
				fs, dir := places(b)[place](b)
				s := populated(b, fs, dir, depth)
				settle(s)
				b.Cleanup(func() { _ = s.Close() })
				stores[depth] = s
			}
			for _, r := range reads() {
				b.Run(r.name, func(b *testing.B) {
					cost := map[int]float64{}
					for _, depth := range depths {
						cost[depth] = r.measure(b, stores[depth], depth)
					}
					b.ReportMetric(cost[depths[0]], "ns/1k")
					b.ReportMetric(cost[depths[1]], "ns/1M")
					b.ReportMetric(cost[depths[1]]/cost[depths[0]], "ratio")
					b.ReportMetric(0, "ns/op")
				})
			}
		})
	}
}

// settle waits until nothing has been written or compacted for a second.
func settle(s *Store) {
	for idle, tries := 0, 0; idle < 10 && tries < 600; tries++ {
		if m := s.db.Metrics(); m.Compact.NumInProgress > 0 || m.Flush.NumInProgress > 0 {
			idle = 0
		}
		idle++
		time.Sleep(100 * time.Millisecond)
	}
}

type read struct {
	name string
	one  func(b *testing.B, s *Store, depth, i int, rnd *rand.Rand)
}

// measure returns the best of three rounds, because others use the machine too. Each reads
// what was not read before.
func (r read) measure(b *testing.B, s *Store, depth int) float64 {
	rnd := rand.New(rand.NewPCG(3, 4))
	n := max(b.N, 2000)
	best := math.Inf(1)
	for round := range 3 {
		began := time.Now()
		for i := range n {
			r.one(b, s, depth, round*n+i, rnd)
		}
		best = min(best, float64(time.Since(began).Nanoseconds())/float64(n))
	}
	return best
}

func reads() []read {
	point := func(b *testing.B, s *Store, seq uint64) {
		st, err := s.State(Key{1, 0, seq})
		if err != nil {
			b.Fatal(err)
		}
		v := s.Snapshot()
		defer v.Close()
		if _, _, err = v.Head(st.Head); err != nil {
			b.Fatal(err)
		}
		if _, err = v.Body(st.Body); err != nil {
			b.Fatal(err)
		}
	}
	return []read{
		{"in order", func(b *testing.B, s *Store, depth, i int, _ *rand.Rand) {
			point(b, s, uint64(i%depth)+1)
		}},
		{"random", func(b *testing.B, s *Store, depth, _ int, rnd *rand.Rand) {
			point(b, s, rnd.Uint64N(uint64(depth))+1)
		}},
		{"state", func(b *testing.B, s *Store, depth, i int, rnd *rand.Rand) {
			if _, err := s.State(Key{1, 0, uint64(i%depth) + 1}); err != nil {
				b.Fatal(err)
			}
		}},
		{"page of 100", func(b *testing.B, s *Store, depth, i int, _ *rand.Rand) {
			v := s.Snapshot()
			defer v.Close()
			n := 0
			for m, err := range v.StatesFrom(Key{1, 0, uint64(i*100%depth) + 1}) {
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := v.Head(m.Head); err != nil {
					b.Fatal(err)
				}
				if _, err := v.Body(m.Body); err != nil {
					b.Fatal(err)
				}
				if n++; n == 100 {
					break
				}
			}
		}},
	}
}

// BenchmarkOpen is a restart with 1,000,000 messages, after a kill and after a clean stop:
// opening, and reading all states.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := populated(b, vfs.Default, dir, depths[1])
	for _, how := range []string{"after a clean stop", "after a kill"} {
		if how == "after a kill" {
			s = populated(b, vfs.Default, dir+"/killed", depths[1])
			s.abandon()
			dir += "/killed"
		} else if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.Run(how, func(b *testing.B) {
			began := time.Now()
			s, err := Open(vfs.Default, dir)
			if err != nil {
				b.Fatal(err)
			}
			opened := time.Since(began)
			n := 0
			for _, err := range s.States() {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64(opened.Microseconds())/1000, "ms/open")
			b.ReportMetric(float64((time.Since(began)-opened).Microseconds())/1000, "ms/states")
			b.ReportMetric(float64(n), "messages")
			b.ReportMetric(0, "ns/op")
			_ = s.Close()
		})
	}
}

// abandon lets go of the files as the end of the process would.
func (s *Store) abandon() {
	s.fs.stop(fmt.Errorf("killed"))
	_ = s.Close()
}
