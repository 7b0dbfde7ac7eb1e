package tui

import (
	"context"
	"fmt"
	"iter"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/resubmit"
)

func TestRowStoreKeepsRows(t *testing.T) {
	s := newRowStore()
	for i := range 3 * chunkRows / 2 {
		at := s.add(rowData{
			seq:         int64(i + 1),
			enqueued:    begin.Add(time.Duration(i) * time.Second),
			id:          fmt.Sprintf("id-%d", i),
			reason:      "Reason",
			description: fmt.Sprintf("description %d", i/2),
			subject:     "S",
			size:        int64(i),
			deliveries:  uint32(i),
			state:       message.Deferred,
			signature:   resubmit.Signature{ID: fmt.Sprint(i % 3)},
		})
		if at != i {
			t.Fatalf("row %d was put at %d", i, at)
		}
	}
	for _, i := range []int{0, 1, chunkRows - 1, chunkRows, s.Len() - 1} {
		r := s.at(i)
		when, ok := s.enqueued(i)
		if r.seq != int64(i+1) || s.id(i) != fmt.Sprintf("id-%d", i) || s.reason(i) != "Reason" || s.subject(i) != "S" ||
			s.description(i) != fmt.Sprintf("description %d", i/2) || !ok || !when.Equal(begin.Add(time.Duration(i)*time.Second)) ||
			r.state != message.Deferred || int(r.size) != i || s.groups[r.group].ID != fmt.Sprint(i%3) {
			t.Errorf("row %d came back as %+v %q %q", i, r, s.id(i), s.description(i))
		}
	}
	if len(s.groups) != 3 {
		t.Errorf("%d groups, want 3", len(s.groups))
	}
}

func TestRowStoreSaturates(t *testing.T) {
	s := newRowStore()
	i := s.add(rowData{id: strings.Repeat("é", maxID), size: math.MaxInt64, deliveries: math.MaxUint32})
	if r := s.at(i); r.size != math.MaxUint32 || r.deliveries != math.MaxUint16 {
		t.Errorf("size %d, deliveries %d", r.size, r.deliveries)
	}
	if id := s.id(i); len(id) > maxID || strings.ContainsRune(id, '\uFFFD') {
		t.Errorf("the id was cut to %d bytes, %q", len(id), id)
	}
	if _, ok := s.enqueued(i); ok {
		t.Error("a message without a time got one")
	}
}

// A text beyond the table of known ones is kept too, only not once for all.
func TestInternTableBeyondItsBound(t *testing.T) {
	var table internTable
	var at []uint32
	for i := range maxKnown + 10 {
		at = append(at, table.add(fmt.Sprint(i)))
	}
	for i, h := range at {
		if got := table.text(h); got != fmt.Sprint(i) {
			t.Fatalf("text %d came back as %q", i, got)
		}
	}
	if table.add("7") != at[7] {
		t.Error("a known text was stored again")
	}
}

func TestMarks(t *testing.T) {
	var m marks
	for _, i := range []int{0, 63, 64, 1000} {
		m.set(i, true)
		m.set(i, true)
	}
	m.set(63, false)
	m.set(5000, false)
	var got []int
	for i := range m.all {
		got = append(got, i)
	}
	if fmt.Sprint(got) != "[0 64 1000]" || m.n != 3 || m.has(63) || !m.has(64) || m.has(99999) {
		t.Errorf("marks are %v, n is %d", got, m.n)
	}
}

// fakePeeker yields as many messages as it is told without storing them.
type fakePeeker struct {
	backends.Backend
	n int
}

func (f fakePeeker) Peek(_ context.Context, _ backends.EntityID, opts backends.PeekOptions) iter.Seq2[*message.Message, error] {
	return func(yield func(*message.Message, error) bool) {
		for i := max(int(opts.From), 1); i <= f.n; i++ {
			m := &message.Message{
				ID:      message.String(fmt.Sprintf("%08x-4b7e-4c4e-9d5b-%012x", i*7919, i)),
				Subject: ptr("OrderPlaced"),
				Broker: message.Broker{
					SequenceNumber: int64(i), EnqueuedTime: begin.Add(time.Duration(i) * time.Millisecond),
					DeliveryCount: 10, BodyOmitted: true, BodySize: 2048,
				},
			}
			m.Properties.Set(message.DeadLetterReasonProperty, message.String("ProcessingError"))
			m.Properties.Set(message.DeadLetterDescriptionProperty, message.String(fmt.Sprintf("order %d: payment service answered 503 after %d ms", i, 3000+i%100)))
			if !yield(m, nil) {
				return
			}
		}
	}
}

// fill opens a list of n messages.
func fill(b *testing.B, n int) *app {
	b.Helper()
	a := newApp(b.Context(), Deps{Backend: fakePeeker{n: n}, Getenv: withColour})
	a.stack = []screen{newLetters(a.ui, backends.EntityID{Name: "orders", Sub: backends.DeadLetterQueue})}
	a.Update(msgSize(200, 50))
	s := a.top().(*letters)
	for cmd := s.Init(); cmd != nil; {
		cmd = s.Update(cmd())
	}
	if s.Len() != n {
		b.Fatalf("%d rows, want %d", s.Len(), n)
	}
	return a
}

// One key and the frame after it, at 200×50. Targets: 1 ms for the frame, 16 ms for a key
// at a million rows, and the same at a hundred rows.
func BenchmarkKey(b *testing.B) {
	for _, n := range []int{100, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			a := fill(b, n)
			keys := []string{"down", " ", "pgdown", "up"}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				a.Update(keyMsg(keys[i%len(keys)]))
				a.View()
			}
		})
	}
}

// The keys whose work grows with the list, at a million rows.
func BenchmarkWholeListKey(b *testing.B) {
	a := fill(b, 1_000_000)
	for _, k := range []string{"a", "i", "u", "o"} {
		b.Run(k, func(b *testing.B) {
			for b.Loop() {
				a.Update(keyMsg(k))
				a.View()
			}
		})
	}
	b.Run("g", func(b *testing.B) {
		s := a.top().(*letters)
		for b.Loop() {
			newGroups(a.ui, s).Init()
		}
	})
}

// What a million rows hold on to. Target: 300 MB.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		var m runtime.MemStats
		a := fill(b, 1_000_000)
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys)/1e6, "MB-of-the-system") // at the peak, garbage included
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB-held")
		runtime.KeepAlive(a)
	}
}
