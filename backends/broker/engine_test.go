package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

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
	if err := b.e.Create(b.queue.Name, Queue, defaultsWith(func(p *Properties) { p.MaxDeliveryCount = 3 })); err != nil {
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
	b.ok(refusals(b.e.Send(b.queue, msgs)))
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
	m, err := one(b.e.Receive(a, ReceiveOptions{}))
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
	b.ok(refusals(b.e.Send(b.queue, []*message.Message{{Body: message.DataBody([]byte("later")), ScheduledEnqueueTime: &due, TTL: new(time.Minute)}})))
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
	b.ok(refusals(b.e.Send(b.queue, []*message.Message{{ScheduledEnqueueTime: &due}})))
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

func TestPropertiesAreValidated(t *testing.T) {
	b := newBench(t)
	for name, change := range map[string]func(*Properties){
		"lock too long":  func(p *Properties) { p.LockDuration = 5*time.Minute + 1 },
		"lock too short": func(p *Properties) { p.LockDuration = time.Microsecond },
		"count negative": func(p *Properties) { p.MaxDeliveryCount = -1 },
		"body too large": func(p *Properties) { p.MaxMessageBytes = 1 << 40 },
	} {
		if err := b.e.Create("q", Queue, defaultsWith(change)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	for _, name := range []string{"", "a b", "a//b", "/a", "ü", "a\x1b[31m"} {
		if err := b.e.Create(name, Queue, Defaults(Queue, ServiceBus)); !errors.Is(err, ErrInvalid) {
			t.Errorf("name %q: err = %v", name, err)
		}
	}
	if err := b.e.Create("ORDERS", Queue, Defaults(Queue, ServiceBus)); !errors.Is(err, ErrExists) {
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

func (quiet) Infof(string, ...any)         {}
func (quiet) Errorf(string, ...any)        {}
func (quiet) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// A send whose sync fails is uncertain, since the message can be there after a restart; what
// follows is refused and has certainly not happened.
func TestFailedSyncIsUncertain(t *testing.T) {
	fail := false
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fail && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo) {
			return errors.New("injected")
		}
		return nil
	}))
	s, err := store.Open(fs, "data")
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Create("q", Queue, Defaults(Queue, ServiceBus)); err != nil {
		t.Fatal(err)
	}
	fail = true
	send := func() error {
		_, err := refusals(e.Send(Address{Name: "q"}, []*message.Message{{}}))
		return err
	}
	if err := send(); !errors.Is(err, ErrUncertain) {
		t.Errorf("the send whose sync failed: %v", err)
	}
	if err := send(); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUncertain) {
		t.Errorf("the send after it: %v", err)
	}
	_ = e.Close() // says what failed; the point is that it returns
}

// What arrives in a dead-letter sub-queue while it is purged stays, though its number is low.
func TestPurgeLeavesNewcomers(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	b.ok(b.e.SettleBySequence(b.queue, Outcome{Action: Bury}, 2))
	ctx := hookContext{t.Context(), func() { b.ok(b.e.SettleBySequence(b.queue, Outcome{Action: Bury}, 1)) }}
	n, err := b.e.Purge(ctx, dead(b.queue), PurgeOptions{})
	if err != nil || n != 1 {
		t.Errorf("purged %d, %v; want 1", n, err)
	}
	b.wantContents(dead(b.queue), "a/0")
}

// hookContext does something when it is asked for its error.
type hookContext struct {
	context.Context
	hook func()
}

func (c hookContext) Err() error {
	c.hook()
	return c.Context.Err()
}

// What could not be read again is refused when it is sent.
func TestUnstorableIsRefused(t *testing.T) {
	b := newBench(t)
	var deep message.Value = message.Null{}
	for range 70 {
		deep = message.List{deep}
	}
	for name, m := range map[string]*message.Message{
		"nil":        nil,
		"deep":       {Properties: message.Properties{{Name: "p", Value: deep}}},
		"body kind":  {Body: message.Body{Kind: 9}},
		"large head": {Subject: new(strings.Repeat("x", maxHeadBytes))},
	} {
		errs, err := refusals(b.e.Send(b.queue, []*message.Message{m}))
		if err != nil || errs[0] == nil {
			t.Errorf("%s: %v, %v", name, errs, err)
		}
	}
	b.send("a")
	errs, err := b.e.SettleBySequence(b.queue, Outcome{Action: Bury, Set: []message.Attribute{{Name: "p", Value: deep}}}, 1)
	if err == nil && errs[0] == nil {
		t.Error("a dead-lettering with a property that cannot be stored was accepted")
	}
	b.crash()
	b.wantContents(b.queue, "a/0")
}

// A lock taken under a clock that ran ahead lasts no longer than a lock.
func TestLockFromTheFuture(t *testing.T) {
	b := newBench(t)
	b.now = epoch.AddDate(14, 0, 0)
	b.send("a")
	b.receive(b.queue)
	b.send("b") // its sync covers the lock
	b.now = epoch
	b.crash()
	b.now = epoch.Add(maxLockDuration)
	if m := b.receive(b.queue); m == nil || string(m.Body.Bytes()) != "a" {
		t.Errorf("received %v the longest lock after the restart", m)
	}
}

// Readers at work when the engine closes finish; later ones are told.
func TestCloseWhileReading(t *testing.T) {
	b := newBench(t)
	for range 20 {
		b.send("a", "b", "c")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				if _, err := b.e.Peek(b.queue, PeekOptions{Max: 100}); err != nil {
					if !errors.Is(err, ErrUnavailable) {
						t.Errorf("peek: %v", err)
					}
					return
				}
			}
		})
	}
	wg.Go(func() { _ = b.e.Close() })
	if err := b.e.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// defaultsWith are the properties of a queue, changed.
func defaultsWith(change func(*Properties)) Properties {
	p := Defaults(Queue, ServiceBus)
	change(&p)
	return p
}

// refusals returns what a send refused, message by message.
func refusals(sent []Sent, err error) ([]error, error) {
	errs := make([]error, len(sent))
	for i, s := range sent {
		errs[i] = s.Err
	}
	return errs, err
}

// one returns the first of the messages that were received, or nil.
func one(msgs []*message.Message, err error) (*message.Message, error) {
	if len(msgs) == 0 {
		return nil, err
	}
	return msgs[0], err
}
