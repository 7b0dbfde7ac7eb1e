package broker

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// The model knows what the documentation says and nothing of how the engine works: a flat
// list of messages, each found by its id, changed by the plainest code there is.

type modelMessage struct {
	id, body    string
	queue       string
	dead        bool
	seq         int64 // as the engine gave it
	state       message.State
	count       uint32
	token       message.UUID // zero: free
	lockedUntil time.Time
	due         time.Time
	enqueued    time.Time
	reason      string
}

const (
	modelLock  = 30 * time.Second
	modelCount = 3
)

type machine struct {
	fs      *vfs.MemFS
	e       *Engine
	now     time.Time
	made    int
	used    map[string]int64 // highest number seen, by queue
	msgs    map[string]*modelMessage
	expired []message.UUID // tokens that must not work any more
}

var modelQueues = []string{"a", "b"}

func newMachine(t *rapid.T) *machine {
	m := &machine{fs: vfs.NewCrashableMem(), now: epoch, used: map[string]int64{}, msgs: map[string]*modelMessage{}}
	m.open(t)
	for _, q := range modelQueues {
		if err := m.e.Create(q, Queue, defaultsWith(func(p *Properties) { p.LockDuration, p.MaxDeliveryCount = modelLock, modelCount })); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *machine) open(t *rapid.T) {
	s, err := store.Open(m.fs, "data")
	if err != nil {
		t.Fatal(err)
	}
	if m.e, err = Open(Options{Store: s, Now: func() time.Time { return m.now }}); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) address(t *rapid.T) Address {
	return Address{Name: rapid.SampledFrom(modelQueues).Draw(t, "queue"), Sub: rapid.SampledFrom([]Sub{Main, DeadLetter}).Draw(t, "sub")}
}

// in returns the messages of a queue that f accepts, in the order of their numbers.
func (m *machine) in(a Address, f func(*modelMessage) bool) []*modelMessage {
	var out []*modelMessage
	for _, x := range m.msgs {
		if x.queue == a.Name && x.dead == (a.Sub == DeadLetter) && f(x) {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(x, y *modelMessage) int { return int(x.seq - y.seq) })
	return out
}

func all(*modelMessage) bool       { return true }
func free(x *modelMessage) bool    { return x.token.IsZero() }
func held(x *modelMessage) bool    { return !x.token.IsZero() }
func waiting(x *modelMessage) bool { return free(x) && x.state == message.Active }

// pick draws one of xs, or nil when there is none.
func pick(t *rapid.T, xs []*modelMessage) *modelMessage {
	if len(xs) == 0 {
		return nil
	}
	return rapid.SampledFrom(xs).Draw(t, "message")
}

func (m *machine) send(t *rapid.T) {
	q := rapid.SampledFrom(modelQueues).Draw(t, "queue")
	var msgs []*message.Message
	for range rapid.IntRange(1, 3).Draw(t, "n") {
		m.made++
		x := &modelMessage{id: fmt.Sprint("m", m.made), queue: q, enqueued: m.now}
		x.body = "body of " + x.id
		msg := &message.Message{ID: message.String(x.id), Body: message.DataBody([]byte(x.body))}
		if rapid.IntRange(0, 3).Draw(t, "scheduled") == 0 {
			x.state, x.due = message.Scheduled, m.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "in"))*time.Second)
			msg.ScheduledEnqueueTime = &x.due
		}
		m.msgs[x.id] = x
		msgs = append(msgs, msg)
	}
	m.ok(t, "send")(refusals(m.e.Send(Address{Name: q}, msgs)))
}

// ok returns a check that a call and all its items succeeded.
func (m *machine) ok(t *rapid.T, what string) func([]error, error) {
	return func(errs []error, err error) {
		for _, e := range append(errs, err) {
			if e != nil {
				t.Fatalf("%s: %v", what, e)
			}
		}
	}
}

func (m *machine) receive(t *rapid.T) {
	a := m.address(t)
	got, err := one(m.e.Receive(a, ReceiveOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	want := m.in(a, waiting)
	switch {
	case got == nil && len(want) == 0:
	case got == nil || len(want) == 0 || got.ID != message.String(want[0].id):
		t.Fatalf("received %v, want the first of %d", got, len(want))
	default:
		want[0].token, want[0].lockedUntil = got.Broker.LockToken, m.now.Add(modelLock)
	}
}

func (m *machine) receiveDeferred(t *rapid.T) {
	a := m.address(t)
	x := pick(t, m.in(a, func(x *modelMessage) bool { return free(x) && x.state == message.Deferred }))
	if x == nil {
		return
	}
	got, err := one(m.e.ReceiveDeferred(a, ReceiveOptions{}, x.seq))
	if err != nil {
		t.Fatal(err)
	}
	x.token, x.lockedUntil = got.Broker.LockToken, m.now.Add(modelLock)
}

func (m *machine) settle(t *rapid.T) {
	a := m.address(t)
	x := pick(t, m.in(a, held))
	if x == nil {
		return
	}
	o := m.outcome(t)
	errs, err := m.e.Settle(a, o, x.token)
	if a.Sub == DeadLetter && o.Action == Bury {
		if err != nil || errs[0] == nil {
			t.Fatalf("a dead letter was dead-lettered: %v, %v", errs, err)
		}
		return
	}
	m.ok(t, "settle")(errs, err)
	m.expired = append(m.expired, x.token)
	m.apply(x, o)
}

func (m *machine) settleBySequence(t *rapid.T) {
	a := m.address(t)
	x := pick(t, m.in(a, all))
	if x == nil {
		return
	}
	o := m.outcome(t)
	errs, err := m.e.SettleBySequence(a, o, x.seq)
	if held(x) || x.state == message.Scheduled && o.Action != Complete || a.Sub == DeadLetter && o.Action == Bury {
		if err == nil && errs[0] == nil {
			t.Fatalf("%v of message %s was allowed", o, x.id)
		}
		return
	}
	m.ok(t, "settle by sequence")(errs, err)
	m.apply(x, o)
}

func (m *machine) outcome(t *rapid.T) Outcome {
	return Outcome{Action: rapid.SampledFrom([]Action{Complete, Abandon, Defer, Bury}).Draw(t, "action"), Reason: "why"}
}

func (m *machine) apply(x *modelMessage, o Outcome) {
	x.token, x.lockedUntil = message.UUID{}, time.Time{}
	switch o.Action {
	case Complete:
		delete(m.msgs, x.id)
	case Abandon:
		m.countFailure(x)
	case Defer:
		x.state = message.Deferred
	case Bury:
		x.dead, x.state, x.reason = true, message.Active, o.Reason
	}
}

func (m *machine) countFailure(x *modelMessage) {
	if x.dead {
		return
	}
	if x.count++; x.count >= modelCount {
		x.dead, x.state, x.reason = true, message.Active, "MaxDeliveryCountExceeded"
	}
}

func (m *machine) release(t *rapid.T) {
	a := m.address(t)
	if x := pick(t, m.in(a, held)); x != nil {
		if err := m.e.Release(a, x.token); err != nil {
			t.Fatal(err)
		}
		m.expired = append(m.expired, x.token)
		x.token, x.lockedUntil = message.UUID{}, time.Time{}
	}
}

func (m *machine) renew(t *rapid.T) {
	a := m.address(t)
	if x := pick(t, m.in(a, held)); x != nil {
		m.ok(t, "renew")(m.e.Renew(a, x.token))
		x.lockedUntil = m.now.Add(modelLock)
	}
}

// settleLost: a token whose lock is gone is refused everywhere and changes nothing.
func (m *machine) settleLost(t *rapid.T) {
	if len(m.expired) == 0 {
		return
	}
	token := rapid.SampledFrom(m.expired).Draw(t, "token")
	errs, err := m.e.Settle(m.address(t), Outcome{Action: Complete}, token)
	if err != nil || errs[0] == nil {
		t.Fatalf("a lost lock settled: %v, %v", errs, err)
	}
}

func (m *machine) move(t *rapid.T) {
	a := m.address(t)
	x := pick(t, m.in(a, all))
	if x == nil {
		return
	}
	to := rapid.SampledFrom(modelQueues).Draw(t, "to")
	keep := rapid.Bool().Draw(t, "keep")
	m.made++
	id := fmt.Sprint("m", m.made)
	body := x.body
	if rapid.Bool().Draw(t, "edit") || keep {
		body = "body of " + id
	}
	errs, err := m.e.Move(a, []Move{{Seq: x.seq, To: Address{Name: to}, Keep: keep, As: &message.Message{ID: message.String(id), Body: message.DataBody([]byte(body))}}})
	if held(x) {
		if err == nil && errs[0] == nil {
			t.Fatalf("a held message was moved")
		}
		return
	}
	m.ok(t, "move")(errs, err)
	if !keep {
		delete(m.msgs, x.id)
	}
	m.msgs[id] = &modelMessage{id: id, body: body, queue: to, enqueued: m.now}
}

func (m *machine) purge(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "rarely") > 0 {
		return
	}
	a := m.address(t)
	gone := m.in(a, free)
	n, err := m.e.Purge(context.Background(), a, PurgeOptions{})
	if err != nil || n != int64(len(gone)) {
		t.Fatalf("purged %d, want %d; %v", n, len(gone), err)
	}
	for _, x := range gone {
		delete(m.msgs, x.id)
	}
}

func (m *machine) advance(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 40_000).Draw(t, "ms")) * time.Millisecond)
	for _, x := range m.msgs {
		if held(x) && !x.lockedUntil.After(m.now) {
			m.expired = append(m.expired, x.token)
			x.token, x.lockedUntil = message.UUID{}, time.Time{}
			m.countFailure(x)
		}
		if x.state == message.Scheduled && !x.due.After(m.now) {
			x.state, x.enqueued, x.due, x.seq = message.Active, x.due, time.Time{}, 0
		}
	}
}

// restart stops and starts the engine: by Close, or by a crash behind which everything is
// synced. Both keep every state, locks too.
func (m *machine) restart(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "rarely") > 0 {
		return
	}
	if rapid.Bool().Draw(t, "crash") {
		m.send(t)  // its sync covers everything before
		m.check(t) // learns its numbers
		dead := m.e
		m.fs = m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
		_ = dead.Close()
	} else if err := m.e.Close(); err != nil {
		t.Fatal(err)
	}
	m.open(t)
}

// check compares everything that can be seen with the model.
func (m *machine) check(t *rapid.T) {
	for _, name := range modelQueues {
		var fresh []*modelMessage
		for _, sub := range []Sub{Main, DeadLetter} {
			fresh = append(fresh, m.checkQueue(t, Address{name, sub})...)
		}
		m.checkFresh(t, name, fresh)
	}
	m.checkCounts(t)
}

func (m *machine) checkQueue(t *rapid.T, a Address) (fresh []*modelMessage) {
	want := m.in(a, all)
	var last int64
	for from := int64(0); ; {
		page, err := m.e.Peek(a, PeekOptions{From: from, Max: 7})
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, got := range page {
			x := m.msgs[message.FormatValue(got.ID)]
			if x == nil || !slices.Contains(want, x) {
				t.Fatalf("%v holds %v, which it should not", a, got.ID)
			}
			want = slices.DeleteFunc(want, func(y *modelMessage) bool { return y == x })
			if got.Broker.SequenceNumber <= last {
				t.Fatalf("number %d after %d", got.Broker.SequenceNumber, last)
			}
			last = got.Broker.SequenceNumber
			if x.seq == 0 {
				x.seq = last
				fresh = append(fresh, x)
			}
			m.checkMessage(t, x, got)
		}
		from = last + 1
	}
	if len(want) > 0 {
		t.Fatalf("%v has lost %d messages, the first is %s", a, len(want), want[0].id)
	}
	return fresh
}

func (m *machine) checkMessage(t *rapid.T, x *modelMessage, got *message.Message) {
	b := got.Broker
	if b.SequenceNumber != x.seq || b.State != x.state || b.DeliveryCount != x.count || !b.LockedUntil.Equal(x.lockedUntil) ||
		!b.EnqueuedTime.Equal(x.enqueued) && x.state != message.Scheduled || got.DeadLetterReason() != x.reason {
		t.Fatalf("message %s is %+v with reason %q, want %+v", x.id, b, got.DeadLetterReason(), *x)
	}
	if body := string(got.Body.Bytes()); body != x.body {
		t.Fatalf("message %s has the body %q", x.id, body)
	}
}

// checkFresh: numbers that were given since the last check are above all earlier ones.
func (m *machine) checkFresh(t *rapid.T, queue string, fresh []*modelMessage) {
	highest := m.used[queue]
	for _, x := range fresh {
		if x.seq <= m.used[queue] {
			t.Fatalf("message %s has number %d, which was used before: %d is the highest", x.id, x.seq, m.used[queue])
		}
		highest = max(highest, x.seq)
	}
	m.used[queue] = highest
}

// checkCounts: what is reported equals a full scan.
func (m *machine) checkCounts(t *rapid.T) {
	infos, err := m.e.Entities()
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		main, dead := Address{Name: info.Name}, Address{Name: info.Name, Sub: DeadLetter}
		count := func(a Address, s message.State) int64 {
			return int64(len(m.in(a, func(x *modelMessage) bool { return x.state == s })))
		}
		letters := m.in(dead, all)
		if info.Active != count(main, message.Active) || info.Deferred != count(main, message.Deferred) ||
			info.Scheduled != count(main, message.Scheduled) || info.DeadLetter != int64(len(letters)) {
			t.Fatalf("%s reports %+v, holds %d dead letters", info.Name, info, len(letters))
		}
		if len(letters) > 0 && !info.OldestDeadLetter.Equal(letters[0].enqueued) {
			t.Fatalf("%s: oldest dead letter of %v, want %v", info.Name, info.OldestDeadLetter, letters[0].enqueued)
		}
	}
}

// TestModel runs random histories against the model: 10^5 steps, 10^6 with DLQ_FULL=1, 10^4
// with -short. A failure prints the seed that repeats it.
func TestModel(t *testing.T) {
	setFlags(t, map[string]string{"rapid.checks": strconv.Itoa(size(55, 550, 5500)), "rapid.steps": "200", "rapid.nofailfile": "true"})
	steps := 0
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		defer func() { _ = m.e.Close() }()
		actions := map[string]func(*rapid.T){
			"send": m.send, "receive": m.receive, "receive deferred": m.receiveDeferred, "settle": m.settle,
			"settle by sequence": m.settleBySequence, "settle lost": m.settleLost, "release": m.release,
			"renew": m.renew, "move": m.move, "purge": m.purge, "advance": m.advance, "restart": m.restart,
		}
		for name := range maps.Keys(actions) {
			f := actions[name]
			actions[name] = func(t *rapid.T) { steps++; f(t) }
		}
		actions[""] = m.check
		t.Repeat(actions)
	})
	t.Logf("%d steps", steps)
}

// size picks how much a test does: with -short, as the race detector gets it; usually; and
// with DLQ_FULL=1.
func size(short, usual, full int) int {
	switch {
	case os.Getenv("DLQ_FULL") != "":
		return full
	case testing.Short():
		return short
	}
	return usual
}

// setFlags sets flags of the property tester that the command line did not set.
func setFlags(t *testing.T, values map[string]string) {
	flag.Visit(func(f *flag.Flag) { delete(values, f.Name) })
	for name, value := range values {
		old := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(name, old) })
	}
}
