package store

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"dlq/backends/message"
)

// The fuzz targets of the records beside states and entities. Whatever bytes are stored,
// reading them never panics; what can be read is written so that it reads as the same.

// rewritten writes something and reads it again.
func rewritten[T any](t *testing.T, s *Store, put func(*Batch), read func() (T, error)) T {
	t.Helper()
	b := s.NewBatch()
	put(b)
	if err := s.ApplyLazily(b); err != nil {
		t.Fatal(err)
	}
	v, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func memory(f *testing.F) *Store {
	s, err := OpenMemory()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	return s
}

func FuzzDecodeSession(f *testing.F) {
	s := memory(f)
	for i, x := range []Session{
		{},
		{HasState: true, State: []byte{}, Updated: at},
		{HasState: true, State: []byte("state"), Updated: at, Token: message.UUID{1}, LockedUntil: at.Add(time.Minute)},
	} {
		x.Entity, x.ID = 1, string(rune('a'+i))
		key := ownedKey(prefixSession, 1, []byte(x.ID))
		b := s.NewBatch()
		b.PutSession(x)
		if err := s.ApplyLazily(b); err != nil {
			f.Fatal(err)
		}
		value, err := get(s.db, key)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(x.ID), value)
	}
	f.Fuzz(func(t *testing.T, id, value []byte) {
		x, err := decodeSession(ownedKey(prefixSession, 7, id), value)
		if err != nil {
			wantCorrupt(t, err)
			return
		}
		again := rewritten(t, s, func(b *Batch) { b.PutSession(x) }, func() (Session, error) { return s.Session(7, x.ID) })
		if !reflect.DeepEqual(again, x) {
			t.Fatalf("got %+v, want %+v", again, x)
		}
	})
}

func wantCorrupt(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrCorrupt) {
		t.Fatalf("error %v, want one that says that the record is corrupt", err)
	}
}

func FuzzDecodeSeen(f *testing.F) {
	s := memory(f)
	for _, x := range []Seen{{}, {At: at, Seq: 9}, {At: at, Seq: 1 << 40, ID: message.String("id")}, {At: at, Seq: 1, ID: message.Ulong(3)}} {
		b := s.NewBatch()
		b.PutSeen(1, []byte("id"), x)
		if err := s.ApplyLazily(b); err != nil {
			f.Fatal(err)
		}
		value, err := get(s.db, ownedKey(prefixSeen, 1, []byte("id")))
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte("id"), value)
	}
	f.Fuzz(func(t *testing.T, id, value []byte) {
		x, err := decodeSeen(value)
		if err != nil {
			wantCorrupt(t, err)
			return
		}
		again := rewritten(t, s, func(b *Batch) { b.PutSeen(7, id, x) }, func() (Seen, error) { return s.Seen(7, id) })
		if !again.At.Equal(x.At) || again.Seq != x.Seq || !message.EqualValues(again.ID, x.ID) {
			t.Fatalf("got %+v, want %+v", again, x)
		}
	})
}

func FuzzDecodeNamed(f *testing.F) {
	s := memory(f)
	f.Add([]byte("$default"), message.AppendAttributes(nil, nil))
	f.Add([]byte("high"), message.AppendAttributes(nil, []message.Attribute{
		{Name: "kind", Value: message.String("sql")}, {Name: "created", Value: message.Long(1)}, {Name: "param:@x", Value: message.Null{}},
	}))
	f.Fuzz(func(t *testing.T, name, value []byte) {
		x, err := decodeNamed(ownedKey(prefixRule, 7, name), value)
		if err != nil {
			wantCorrupt(t, err)
			return
		}
		for _, kind := range []struct {
			put  func(*Batch, Named)
			all  func(*Store) func(func(Named, error) bool)
			gone func(*Batch)
		}{
			{(*Batch).PutRule, func(s *Store) func(func(Named, error) bool) { return s.Rules() }, func(b *Batch) { b.DeleteRule(7, x.Name) }},
			{(*Batch).PutTask, func(s *Store) func(func(Named, error) bool) { return s.Tasks() }, func(b *Batch) { b.DeleteTask(7, x.Name) }},
		} {
			again := rewritten(t, s, func(b *Batch) { kind.put(b, x) }, func() (got Named, err error) {
				for got, err = range kind.all(s) {
					break
				}
				return got, err
			})
			if again.Entity != 7 || again.Name != x.Name || !bytes.Equal(message.AppendAttributes(nil, again.Attributes), message.AppendAttributes(nil, x.Attributes)) {
				t.Fatalf("got %+v, want %+v", again, x)
			}
			rewritten(t, s, kind.gone, func() (struct{}, error) { return struct{}{}, nil })
		}
	})
}
