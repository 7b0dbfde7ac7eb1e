package store

import (
	"bytes"
	"errors"
	"testing"

	"dlq/backends/message"
)

// TestRecentIsTheStore writes more than what is held in memory and reads it back: what was
// written last, what was overwritten or removed since, and what is held no more.
func TestRecentIsTheStore(t *testing.T) {
	s, err := OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	apply := func(f func(*Batch)) {
		t.Helper()
		b := s.NewBatch()
		f(b)
		if err := s.ApplyLazily(b); err != nil {
			t.Fatal(err)
		}
	}
	const n = 4000 // 5 KiB each, which is 20 MB
	body := func(id uint64) message.Body {
		return message.DataBody(bytes.Repeat([]byte{byte(id), byte(id >> 8)}, 2500))
	}
	key := func(id uint64) Key { return Key{Queue: 1, Seq: id} }
	for id := uint64(1); id <= n; id++ {
		apply(func(b *Batch) {
			b.PutBody(id, body(id))
			b.PutHead(id, message.AppendHead(nil, &message.Message{ID: message.Ulong(id)}))
			b.PutState(key(id), &State{Head: id, Body: id})
			if id > 1 {
				b.PutState(key(id-1), &State{Head: id - 1, Body: id - 1, Deliveries: 7})
			}
			if id%5 == 0 {
				b.DeleteState(key(id - 1))
				b.DeleteHead(id - 1)
				b.DeleteBody(id - 1)
			}
		})
	}
	apply(func(b *Batch) { b.PutBody(n+1, message.DataBody(make([]byte, largest))) }) // too large to be held
	if held := len(s.recent.segments) * segmentBytes; held != mostSegments*segmentBytes {
		t.Errorf("%d bytes are held", held)
	}
	if _, ok := s.recent.get(contentSlot(prefixBody, 1)); ok {
		t.Error("the first body is held still")
	}
	if _, ok := s.recent.get(contentSlot(prefixBody, n)); !ok {
		t.Error("the last body is not held")
	}
	for _, together := range []int{1, 10} {
		r := s.Reader(together)
		for id := uint64(1); id <= n; id++ {
			st, err := r.State(key(id))
			m, _, headErr := r.Head(id)
			got, bodyErr := r.Body(id)
			if id%5 == 4 {
				for _, err := range []error{err, headErr, bodyErr} {
					if !errors.Is(err, ErrNotFound) {
						t.Fatalf("%d was removed: %v", id, err)
					}
				}
				continue
			}
			deliveries := map[bool]uint32{true: 7}[id < n]
			if err := errors.Join(err, headErr, bodyErr); err != nil || st.Deliveries != deliveries || m.ID != message.Ulong(id) || !message.EqualBodies(got, body(id)) {
				t.Fatalf("%d: %+v, %v", id, st, err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, err := s.Body(n + 1); err != nil || got.Len() != largest {
		t.Errorf("the large one has %d bytes, %v", got.Len(), err)
	}
}
