package broker

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// Moving to another queue leaves the stored body where it is.
func TestMoveCopiesNoBody(t *testing.T) {
	b := newBench(t)
	if err := b.e.Create("other", Queue, Defaults(Queue, ServiceBus)); err != nil {
		t.Fatal(err)
	}
	b.send("a")
	before, err := b.e.store.State(store.Key{Queue: 1, Seq: 1})
	if err != nil {
		t.Fatal(err)
	}
	as := &message.Message{ID: message.String("changed"), Body: message.DataBody([]byte("a"))}
	b.ok(b.e.Move(b.queue, []Move{{Seq: 1, To: Address{Name: "other"}, As: as}}))
	after, err := b.e.store.State(store.Key{Queue: 2, Seq: 1})
	if err != nil {
		t.Fatal(err)
	}
	if after.Body != before.Body {
		t.Errorf("the body was record %d and is now %d", before.Body, after.Body)
	}
	b.wantContents(Address{Name: "other"}, "a/0")
}

// A damaged record is an error for that message, and no other message is served for it.
func TestDamageIsNotServed(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	batch := b.e.store.NewBatch()
	batch.DeleteBody(2) // of the first message: heads and bodies are numbered in turn
	if err := b.e.store.ApplyLazily(batch); err != nil {
		t.Fatal(err)
	}
	page, err := b.e.Peek(b.queue, PeekOptions{Max: 10})
	if err != nil || len(page) != 2 || string(page[1].Body.Bytes()) != "b" {
		t.Fatalf("peek past a damaged message: %v, %v", page, err)
	}
	if bad := page[0]; !bad.Broker.BodyOmitted || len(bad.System) != 1 || bad.System[0].Name != DamagedAttribute {
		t.Errorf("the damaged message is shown as %+v", bad)
	}
	if m := b.receive(b.queue); m == nil || string(m.Body.Bytes()) != "b" {
		t.Errorf("received %v, want the message behind the damaged one", m)
	}
	if m := b.receive(b.queue); m != nil {
		t.Errorf("received %v, though only a damaged message is left", m)
	}
	b.now = b.now.Add(time.Hour)
	b.crash()
	b.wantContents(dead(b.queue)) // nothing was counted against it
}

// A state record that is missing costs its own message and no other.
func TestMissingState(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	batch := b.e.store.NewBatch()
	batch.DeleteState(store.Key{Queue: 1, Seq: 1})
	if err := b.e.store.ApplyLazily(batch); err != nil {
		t.Fatal(err)
	}
	if m := b.receive(b.queue); m == nil || string(m.Body.Bytes()) != "b" {
		t.Fatalf("received %v, want the message behind the damaged one", m)
	}
	if errs, err := b.e.SettleBySequence(b.queue, Outcome{Action: Complete}, 1); err != nil || !errors.Is(errs[0], ErrDamaged) {
		t.Errorf("complete the damaged message: %v, %v", errs, err)
	}
}

// What cannot be read stays when others are deleted.
func TestDeleteBatchPassesOverDamage(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	batch := b.e.store.NewBatch()
	batch.DeleteState(store.Key{Queue: 1, Seq: 1})
	b.ok(nil, b.e.store.ApplyLazily(batch))
	if n, err := b.e.DeleteBatch(b.queue, DeleteBatchOptions{Max: 10}); err != nil || n != 1 {
		t.Errorf("%d were deleted, %v; want the one that can be read", n, err)
	}
	errs, err := b.e.SettleBySequence(b.queue, Outcome{Action: Complete}, 1)
	b.wantRefused(ErrDamaged, errs, err)
}

// A damaged state record costs its own message and no other when the store is opened.
func TestDamagedState(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	if err := b.e.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := pebble.Open("data", &pebble.Options{FS: b.fs, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	key := append([]byte{'M'}, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	if err := errors.Join(db.Set(key, []byte("nonsense"), pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	b.open()
	page, err := b.e.Peek(b.queue, PeekOptions{Max: 10})
	if err != nil || len(page) != 2 || page[0].Broker.SequenceNumber != 1 || !page[0].Broker.BodyOmitted {
		t.Fatalf("peek: %v, %v", page, err)
	}
	if m := b.receive(b.queue); m == nil || string(m.Body.Bytes()) != "b" {
		t.Errorf("received %v, want the message behind the damaged one", m)
	}
	b.send("c") // overwrites nothing of what is there
	b.wantContents(b.queue, "/0", "b/0", "c/0")
}

// quiet drops what pebble logs.
type quiet struct{}

func (quiet) Infof(string, ...any) {}

func (quiet) Errorf(string, ...any) {}

func (quiet) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
