package store

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dlq/backends/message"
)

var at = time.UnixMilli(1_700_000_000_123).UTC()

func fullState() State {
	return State{
		Head: 1 << 40, Body: 7, BodySize: 1 << 31, State: message.Deferred, Deliveries: 9, Enqueued: at, EnqueuedSeq: 3,
		Expires: at.Add(1), Due: at.Add(time.Hour), Token: message.UUID{1, 2}, LockedUntil: at.Add(time.Minute),
		Overlay: []message.Attribute{{Name: "a", Value: message.Binary{1}}, {Name: "b", Value: message.Int(-1)}},
	}
}

func TestStateLosesNothing(t *testing.T) {
	full := fullState()
	full.Expires = at.Add(time.Millisecond) // the record keeps milliseconds
	for name, want := range map[string]State{"full": full, "zero": {}} {
		got, err := decodeState(want.append(nil))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, want)
		}
	}
}

func TestEntityLosesNothing(t *testing.T) {
	want := Entity{
		ID: 3, Kind: "queue", Name: "Orders", Created: at, Modified: at.Add(time.Hour),
		Properties: []message.Attribute{{Name: "LockDuration", Value: message.String("PT1M")}},
	}
	got, err := decodeEntity(3, want.append(nil))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The checksum covers the key: a record in the place of another is damage.
func TestMisplacedRecordIsDamage(t *testing.T) {
	value := sealed([]byte("key"), []byte("value"))
	if got, err := unsealed([]byte("key"), value); err != nil || string(got) != "value" {
		t.Errorf("in its place: %q, %v", got, err)
	}
	if _, err := unsealed([]byte("kez"), value); !errors.Is(err, ErrCorrupt) {
		t.Errorf("in another's place: %v", err)
	}
	for i := range value {
		value[i] ^= 1
		if _, err := unsealed([]byte("key"), value); !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d flipped: %v", i, err)
		}
		value[i] ^= 1
	}
	if _, err := unsealed([]byte("key"), value[:3]); !errors.Is(err, ErrCorrupt) {
		t.Errorf("cut short: %v", err)
	}
}

// A damaged state comes with its key, and those behind it come too.
func TestScanPassesDamage(t *testing.T) {
	s, err := OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	b := s.NewBatch()
	for seq := uint64(1); seq <= 3; seq++ {
		b.PutState(Key{Queue: 1, Seq: seq}, &State{Head: seq})
	}
	if err := s.ApplyLazily(b); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Set(Key{Queue: 1, Seq: 2}.bytes(), []byte("nonsense"), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	var sound, damaged []uint64
	for m, err := range s.States() {
		if errors.Is(err, ErrCorrupt) {
			damaged = append(damaged, m.Seq)
		} else if err == nil {
			sound = append(sound, m.Seq)
		} else {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(sound, []uint64{1, 3}) || !reflect.DeepEqual(damaged, []uint64{2}) {
		t.Errorf("sound %v, damaged %v", sound, damaged)
	}
}

// After a failed sync every write is refused, also once the disk is well again, and Close
// returns.
func TestFailureIsSticky(t *testing.T) {
	failing := false
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing && op.Kind != errorfs.OpFileClose && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("injected")
		}
		return nil
	}))
	s, err := Open(fs, "data")
	if err != nil {
		t.Fatal(err)
	}
	write := func() error {
		b := s.NewBatch()
		b.PutNext(1, 2)
		wait, err := s.Apply(b)
		if err == nil {
			err = wait()
		}
		return err
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	failing = true
	if err := write(); err == nil || errors.Is(err, ErrFailed) {
		t.Errorf("the write that failed: %v", err)
	}
	failing = false
	if err := write(); !errors.Is(err, ErrFailed) {
		t.Errorf("the write after it: %v", err)
	}
	if !errors.Is(s.Failure(), ErrFailed) {
		t.Errorf("failure: %v", s.Failure())
	}
	_ = s.Close() // it says what failed; the point is that it returns
}

func FuzzDecodeState(f *testing.F) {
	full := fullState()
	f.Add(full.append(nil))
	f.Add((&State{}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeState(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("err = %v", err)
			}
			return
		}
		again, err := decodeState(s.append(nil))
		if err != nil || !bytes.Equal(again.append(nil), s.append(nil)) {
			t.Fatalf("got %+v, %v; want %+v", again, err, s)
		}
	})
}

func FuzzDecodeEntity(f *testing.F) {
	f.Add((&Entity{Name: "orders", Created: at}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEntity(1, b)
		if err != nil {
			return
		}
		if again, err := decodeEntity(1, e.append(nil)); err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("got %+v, %v; want %+v", again, err, e)
		}
	})
}
