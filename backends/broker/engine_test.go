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

// make creates an entity of Service Bus. change may be nil.
func (b *bench) make(name string, kind Kind, change func(*Properties), rules ...Rule) {
	b.Helper()
	p := Defaults(kind, ServiceBus)
	if change != nil {
		change(&p)
	}
	if err := b.e.Create(name, kind, p, rules...); err != nil {
		b.Fatal(err)
	}
}

// post sends one message and returns its number.
func (b *bench) post(name string, m *message.Message) int64 {
	b.Helper()
	sent, err := b.e.Send(Address{Name: name}, []*message.Message{m})
	if err != nil || sent[0].Err != nil {
		b.Fatalf("send to %s: %v, %v", name, err, sent)
	}
	return sent[0].Seq
}

func says(text string) *message.Message {
	return &message.Message{ID: message.String(text), Body: message.DataBody([]byte(text))}
}

// peek shows everything that a queue holds.
func (b *bench) peek(a Address) []*message.Message {
	b.Helper()
	page, err := b.e.Peek(a, PeekOptions{Max: 1000})
	if err != nil {
		b.Fatal(err)
	}
	return page
}

// change changes the properties of an entity.
func (b *bench) change(name string, f func(*Properties)) {
	b.Helper()
	if err := b.e.Change(name, func(p *Properties) error { f(p); return nil }); err != nil {
		b.Fatal(err)
	}
}

// restart stops the engine and opens it again.
func (b *bench) restart() {
	b.Helper()
	if err := b.e.Close(); err != nil {
		b.Fatal(err)
	}
	b.open()
}

// wantRefused fails the test unless each item of a call was refused with that error.
func (b *bench) wantRefused(want error, errs []error, err error) {
	b.Helper()
	if err != nil || len(errs) == 0 {
		b.Fatalf("the call: %v, %v; want %v of its items", errs, err, want)
	}
	for _, got := range errs {
		if !errors.Is(got, want) {
			b.Errorf("err = %v, want %v", got, want)
		}
	}
}

// at is the main queue of an entity.
func at(name string) Address { return Address{Name: name} }
