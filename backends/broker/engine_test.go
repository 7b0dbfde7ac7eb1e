package broker

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// bench is an engine on a file system in memory and a clock that stands still.
type bench struct {
	testing.TB
	fs    *vfs.MemFS
	now   time.Time
	e     *Engine
	ids   byte
	queue Address
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newBench opens an engine with one queue: three deliveries, a lock of a minute.
func newBench(t testing.TB) *bench {
	b := &bench{TB: t, fs: vfs.NewCrashableMem(), now: epoch, queue: Address{Name: "orders"}}
	b.open()
	t.Cleanup(func() { _ = b.e.Close() })
	if err := b.e.CreateQueue(b.queue.Name, Properties{MaxDeliveryCount: 3}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) open() {
	b.Helper()
	s, err := store.Open(b.fs, "data")
	if err != nil {
		b.Fatal(err)
	}
	if b.e, err = Open(Options{Store: s, Now: func() time.Time { return b.now }}); err != nil {
		b.Fatal(err)
	}
}

// crash ends the engine as a loss of power would: what was not synced is gone.
func (b *bench) crash() {
	image := b.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
	dead := b.e
	b.Cleanup(func() { _ = dead.Close() })
	b.fs = image
	b.open()
}

func (b *bench) send(bodies ...string) {
	b.Helper()
	msgs := make([]*message.Message, len(bodies))
	for i, s := range bodies {
		msgs[i] = &message.Message{ID: message.String(s), Body: message.DataBody([]byte(s))}
	}
	b.ok(b.e.Send(b.queue, msgs))
}

// ok fails the test on an error of a call or of any of its items.
func (b *bench) ok(errs []error, err error) {
	b.Helper()
	if err := errors.Join(append(errs, err)...); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) receive(a Address) *message.Message {
	b.Helper()
	m, err := b.e.Receive(a, 0)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

func (b *bench) settle(a Address, action Action, m *message.Message) {
	b.Helper()
	b.ok(b.e.Settle(a, Outcome{Action: action}, m.Broker.LockToken))
}

func (b *bench) contents(a Address) []string {
	b.Helper()
	var out []string
	page, err := b.e.Peek(a, PeekOptions{Max: 1000})
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range page {
		out = append(out, fmt.Sprintf("%s/%d", m.Body.Bytes(), m.Broker.DeliveryCount))
	}
	return out
}

func (b *bench) wantContents(a Address, want ...string) {
	b.Helper()
	if got := b.contents(a); !slices.Equal(got, want) {
		b.Errorf("%s sub %d holds %v, want %v (body/deliveries)", a.Name, a.Sub, got, want)
	}
}

func dead(a Address) Address { return Address{Name: a.Name, Sub: DeadLetter} }

// A message is delivered exactly MaxDeliveryCount times; the abandon that makes the count
// reach it moves the message, in that commit.
// Source: service-bus-dead-letter-queues, "Maximum delivery count".
func TestAbandonMovesAtTheMaximum(t *testing.T) {
	b := newBench(t)
	b.send("a")
	for range 3 {
		b.settle(b.queue, Abandon, b.receive(b.queue))
	}
	b.crash() // the acknowledged abandon was the move
	b.wantContents(b.queue)
	b.wantContents(dead(b.queue), "a/3")
	m := b.receive(dead(b.queue))
	if r, d := m.DeadLetterReason(), m.DeadLetterDescription(); r != "MaxDeliveryCountExceeded" || d != "Message could not be consumed after 3 delivery attempts." {
		t.Errorf("reason %q, description %q", r, d)
	}
}

// An expired lock is a failed delivery, at the time it expires and not when one looks.
func TestExpiryCountsAndMoves(t *testing.T) {
	b := newBench(t)
	b.send("a")
	for i := range 3 {
		b.receive(b.queue)
		b.now = b.now.Add(time.Minute - time.Millisecond)
		b.wantContents(b.queue, fmt.Sprintf("a/%d", i)) // never early
		b.now = b.now.Add(time.Millisecond)
	}
	b.wantContents(b.queue)
	b.wantContents(dead(b.queue), "a/3")
}

// In a dead-letter sub-queue neither abandon nor expiry counts, and nothing moves.
func TestDeadLettersAreNotCounted(t *testing.T) {
	b := newBench(t)
	b.send("a")
	b.ok(b.e.Settle(b.queue, Outcome{Action: Bury, Reason: "r"}, b.receive(b.queue).Broker.LockToken))
	for range 5 {
		b.settle(dead(b.queue), Abandon, b.receive(dead(b.queue)))
		b.receive(dead(b.queue))
		b.now = b.now.Add(time.Hour)
	}
	b.wantContents(dead(b.queue), "a/0")
}

// A released message counts nothing and is back at its place.
func TestReleaseCountsNothing(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	m := b.receive(b.queue)
	if err := b.e.Release(b.queue, m.Broker.LockToken); err != nil {
		t.Fatal(err)
	}
	b.wantContents(b.queue, "a/0", "b/0")
	if again := b.receive(b.queue); string(again.Body.Bytes()) != "a" || again.Broker.LockToken == m.Broker.LockToken {
		t.Errorf("got %q under token %v", again.Body.Bytes(), again.Broker.LockToken)
	}
}

// A scheduled message gets a new number when it is due, so that it stands behind what
// arrived before, and is enqueued then.
func TestScheduledMessage(t *testing.T) {
	b := newBench(t)
	due := epoch.Add(time.Hour)
	b.ok(b.e.Send(b.queue, []*message.Message{{Body: message.DataBody([]byte("later")), ScheduledEnqueueTime: &due, TTL: new(time.Minute)}}))
	b.send("now")
	b.now = due.Add(-time.Millisecond)
	if m := b.receive(b.queue); string(m.Body.Bytes()) != "now" {
		t.Fatalf("received %q, want the one that is not scheduled", m.Body.Bytes())
	}
	b.now = due.Add(time.Second)
	m := b.receive(b.queue)
	for m != nil && string(m.Body.Bytes()) != "later" {
		m = b.receive(b.queue)
	}
	if m == nil || m.Broker.SequenceNumber != 3 || !m.Broker.EnqueuedTime.Equal(due) || !m.Broker.ExpiresAt.Equal(due.Add(time.Minute)) {
		t.Errorf("the scheduled message came as %+v", m)
	}
}

// A cancelled schedule wakes nothing.
func TestCancelledSchedule(t *testing.T) {
	b := newBench(t)
	due := epoch.Add(time.Hour)
	b.ok(b.e.Send(b.queue, []*message.Message{{ScheduledEnqueueTime: &due}}))
	b.ok(b.e.SettleBySequence(b.queue, Outcome{Action: Complete}, 1))
	b.now = due.Add(time.Hour)
	b.wantContents(b.queue)
}

// Sequence numbers are never used again: not after everything is gone, not after a crash.
func TestNumbersAreNeverReused(t *testing.T) {
	b := newBench(t)
	var highest int64
	for range 3 {
		b.send("a", "b")
		for m := b.receive(b.queue); m != nil; m = b.receive(b.queue) {
			if m.Broker.SequenceNumber <= highest {
				t.Fatalf("number %d was given, up to %d were used", m.Broker.SequenceNumber, highest)
			}
			highest = m.Broker.SequenceNumber
			b.settle(b.queue, Complete, m)
		}
		b.crash()
	}
}

// A clean stop keeps locks; their tokens settle afterwards.
func TestLockSurvivesCleanStop(t *testing.T) {
	b := newBench(t)
	b.send("a")
	m := b.receive(b.queue)
	if err := b.e.Close(); err != nil {
		t.Fatal(err)
	}
	b.open()
	if other := b.receive(b.queue); other != nil {
		t.Errorf("the message was free after a clean stop")
	}
	b.settle(b.queue, Complete, m)
	b.wantContents(b.queue)
}

// The clock of a machine may be set back; locks do not get longer by that, and time does
// not run twice.
func TestClockGoesBack(t *testing.T) {
	b := newBench(t)
	b.send("a")
	b.now = epoch.Add(-time.Hour)
	m := b.receive(b.queue)
	if want := epoch.Add(time.Minute); !m.Broker.LockedUntil.Equal(want) {
		t.Errorf("locked until %v, want %v", m.Broker.LockedUntil, want)
	}
}

// Moving to another queue leaves the stored body where it is.
func TestMoveCopiesNoBody(t *testing.T) {
	b := newBench(t)
	if err := b.e.CreateQueue("other", Properties{}); err != nil {
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

func TestPropertiesAreValidated(t *testing.T) {
	b := newBench(t)
	for name, p := range map[string]Properties{
		"lock too long":  {LockDuration: 5*time.Minute + 1},
		"lock too short": {LockDuration: time.Microsecond},
		"count negative": {MaxDeliveryCount: -1},
		"body too large": {MaxBodyBytes: 1 << 40},
	} {
		if err := b.e.CreateQueue("q", p); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	for _, name := range []string{"", "a b", "a//b", "/a", "ü", "a\x1b[31m"} {
		if err := b.e.CreateQueue(name, Properties{}); !errors.Is(err, ErrInvalid) {
			t.Errorf("name %q: err = %v", name, err)
		}
	}
	if err := b.e.CreateQueue("ORDERS", Properties{}); !errors.Is(err, ErrExists) {
		t.Errorf("same name in other case: err = %v", err)
	}
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
	if _, err := b.e.Peek(b.queue, PeekOptions{Max: 1}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("peek of a damaged message: err = %v", err)
	}
	page, err := b.e.Peek(b.queue, PeekOptions{From: 2, Max: 1})
	if err != nil || len(page) != 1 || string(page[0].Body.Bytes()) != "b" {
		t.Errorf("the message behind it: %v, %v", page, err)
	}
}
