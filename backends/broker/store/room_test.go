package store

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker/store/storetest"
	"dlq/backends/message"
)

func TestRoomIsUnknownInMemory(t *testing.T) {
	s, err := OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if free, known := s.Room(); known || free != 0 {
		t.Errorf("in memory: %d, %t", free, known)
	}
}

// TestFullDisk fills a disk as the engine does: sends stop at the reserve, receive and
// complete go on, and once there is space again so do sends, without a restart.
func TestFullDisk(t *testing.T) {
	const reserve, disk = 96 << 20, 160 << 20
	quota := storetest.NewQuota(vfs.NewMem(), disk)
	s, err := Open(quota, "data", MemTable(4<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.fs.keep = reserve / 4
	commit := func(b *Batch) {
		t.Helper()
		wait, err := s.Apply(b)
		if err == nil {
			err = wait()
		}
		if err != nil {
			free, _ := s.Room()
			t.Fatalf("%v, with %d bytes free", err, free)
		}
	}
	var next, first uint64 = 1, 1
	send := func() bool {
		if free, known := s.Room(); !known || free < reserve {
			return false
		}
		b := s.NewBatch()
		b.PutState(Key{1, 0, next}, &State{Head: next, Body: next})
		b.PutHead(next, message.AppendHead(nil, &message.Message{}))
		b.PutBody(next, message.DataBody(incompressible(next, 4<<10)))
		commit(b)
		next++
		return true
	}
	complete := func() {
		k := Key{1, 0, first}
		st, err := s.State(k)
		if err != nil {
			t.Fatalf("message %d: %v", first, err)
		}
		b := s.NewBatch()
		st.Deliveries++ // a lock
		b.PutState(k, &st)
		commit(b)
		b = s.NewBatch()
		b.DeleteState(k)
		b.DeleteHead(st.Head)
		b.DeleteBody(st.Body)
		commit(b)
		first++
	}
	for send() {
		if next > 1_000_000 {
			t.Fatal("the disk never fills")
		}
	}
	stored := next - first
	if stored < 1000 {
		t.Fatalf("it was full after %d messages", stored)
	}
	for range stored * 9 / 10 {
		complete()
		send() // refused until there is room; never harmful
	}
	for first < next-100 {
		complete()
	}
	// What was deleted is given back by the compactions that follow.
	if err := s.db.Compact(t.Context(), []byte{prefixBody}, []byte{prefixState + 1}, false); err != nil && !errors.Is(err, pebble.ErrClosed) {
		t.Fatal(err)
	}
	s.db.TestOnlyWaitForCleaning() // files are removed in the background
	if !send() {
		t.Errorf("still refused with %d of %d bytes used", quota.Used(), disk)
	}
	if err := s.Failure(); err != nil {
		t.Error(err)
	}
	for seq := first; seq < next; seq++ {
		if _, err := s.State(Key{1, 0, seq}); err != nil {
			t.Errorf("message %d: %v", seq, err)
		}
	}
}

func incompressible(seed uint64, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = byte(seed >> 56)
	}
	return b
}

// BenchmarkRoom is what the check before a write costs.
func BenchmarkRoom(b *testing.B) {
	s, err := Open(vfs.Default, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if _, known := s.Room(); !known {
			b.Fatal("unknown")
		}
	}
}
