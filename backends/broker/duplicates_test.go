package broker

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"dlq/backends/message"
)

// A message whose id was seen in the window is accepted and dropped, also after the first is
// gone and after a restart; one millisecond after the window it is new.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection
func TestDuplicateDetection(t *testing.T) {
	b := newBench(t)
	b.make("q", Queue, func(p *Properties) { p.DetectDuplicates, p.DuplicateWindow = true, time.Minute })
	a := Address{Name: "q"}
	first := b.post("q", says("a"))
	send := func() Sent {
		t.Helper()
		sent, err := b.e.Send(a, []*message.Message{says("a")})
		if err != nil || sent[0].Err != nil {
			t.Fatal(sent, err)
		}
		return sent[0]
	}
	if s := send(); !s.Duplicate || s.Seq != first {
		t.Errorf("at once: %+v", s)
	}
	b.settle(a, Complete, b.receive(a))
	b.crash()
	b.pass(time.Minute)
	if s := send(); !s.Duplicate {
		t.Errorf("at the end of the window, after a restart, the first completed: %+v", s)
	}
	b.pass(time.Millisecond)
	if s := send(); s.Duplicate {
		t.Errorf("after the window: %+v", s)
	}
	// In one call, scheduled ones too; and without an id there is no duplicate.
	later := says("later")
	later.ScheduledEnqueueTime = new(b.now.Add(time.Hour))
	sent, err := b.e.Send(a, []*message.Message{later, says("later"), {}, {}})
	if err != nil || sent[0].Duplicate || !sent[1].Duplicate || sent[2].Duplicate || sent[3].Duplicate {
		t.Errorf("sent %+v, %v", sent, err)
	}
	// A move never drops a message.
	b.post("orders", says("later"))
	errs, err := b.e.Move(b.queue, []Move{{Seq: 1, To: a, As: says("later")}})
	if err != nil || !errors.Is(errs[0], ErrDuplicate) {
		t.Errorf("move: %v, %v", errs, err)
	}
	b.wantContents(b.queue, "later/0")
}

// detecting makes a queue that detects duplicates for a minute.
func (b *bench) detecting(name string, change func(*Properties)) {
	b.make(name, Queue, func(p *Properties) {
		p.DetectDuplicates, p.DuplicateWindow = true, time.Minute
		if change != nil {
			change(p)
		}
	})
}

// again sends a message and reports whether it was a duplicate.
func (b *bench) again(name string, m *message.Message) bool {
	b.Helper()
	sent, err := b.e.Send(at(name), []*message.Message{m})
	if err != nil || sent[0].Err != nil {
		b.Fatal(sent, err)
	}
	return sent[0].Duplicate
}

// The window begins when the first message is received and is not prolonged by duplicates.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection#duplicate-detection-window-size
func TestDuplicatesDoNotProlong(t *testing.T) {
	b := newBench(t)
	b.detecting("q", nil)
	b.again("q", says("a"))
	for range 3 {
		b.pass(20 * time.Second)
		if !b.again("q", says("a")) {
			t.Errorf("at %v it was no duplicate", b.now.Sub(epoch))
		}
		b.crash()
	}
	b.pass(time.Millisecond)
	if b.again("q", says("a")) {
		t.Error("a duplicate has prolonged the window")
	}
	b.wantContents(at("q"), "a/0", "a/0")
}

// An id is known in its own entity alone, compares exactly, and as the value that it is.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection
func TestDuplicatesArePerEntity(t *testing.T) {
	b := newBench(t)
	b.detecting("q", nil)
	b.detecting("r", nil)
	for i, id := range []message.Value{message.String("a"), message.String("A"), message.String("1"), message.Binary("b"), message.UUID{1}} {
		if b.again("q", &message.Message{ID: id}) || b.again("r", &message.Message{ID: id}) {
			t.Errorf("id %d is a duplicate", i)
		}
		if !b.again("q", &message.Message{ID: id}) {
			t.Errorf("id %d is none", i)
		}
	}
	b.send("a", "a")
	b.wantContents(b.queue, "a/0", "a/0") // which does not ask
}

// Completed, dead-lettered, expired, cancelled: the id is remembered whatever became of the
// message.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection
func TestDuplicatesOutliveMessages(t *testing.T) {
	b := newBench(t)
	b.detecting("q", nil)
	expiring, scheduled := says("expired"), says("cancelled")
	expiring.TTL, scheduled.ScheduledEnqueueTime = new(time.Second), new(b.now.Add(time.Hour))
	for _, m := range []*message.Message{says("completed"), says("dead-lettered"), expiring, scheduled} {
		b.again("q", m)
	}
	b.ok(b.e.SettleBySequence(at("q"), Outcome{Action: Complete}, 1, 4))
	b.ok(b.e.SettleBySequence(at("q"), Outcome{Action: Bury}, 2))
	b.pass(time.Second)
	b.receive(at("q"))
	b.wantContents(at("q"))
	b.restart()
	for _, id := range []string{"completed", "dead-lettered", "expired", "cancelled"} {
		if !b.again("q", says(id)) {
			t.Errorf("%s is forgotten", id)
		}
	}
}

// A scheduled message counts from when it was sent, not from its activation, where it is not
// looked at again.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection; servicebus-wire.md section 10, "scheduled count too".
func TestScheduledDuplicates(t *testing.T) {
	b := newBench(t)
	b.detecting("q", nil)
	m := says("a")
	m.ScheduledEnqueueTime = new(b.now.Add(30 * time.Second))
	b.again("q", m)
	b.pass(45 * time.Second)
	b.wantContents(at("q"), "a/0") // it is no duplicate of itself
	if !b.again("q", says("a")) {
		t.Error("the id is forgotten at the activation")
	}
	b.pass(15*time.Second + time.Millisecond)
	if b.again("q", says("a")) {
		t.Error("the window began at the activation")
	}
}

// A topic that detects duplicates drops them before they are copied.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection#enable-duplicate-detection
func TestDuplicatesOfTopics(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, func(p *Properties) { p.DetectDuplicates = true })
	b.make("topic/Subscriptions/s", Subscription, nil)
	b.make("topic/Subscriptions/none", Subscription, nil, Rule{Name: "r", Filter: Filter{Kind: FalseFilter}})
	b.again("topic", says("a"))
	if !b.again("topic", says("a")) {
		t.Error("the topic took it twice")
	}
	b.wantContents(at("topic/s"), "a/0")
}

// A refused call and a rollback leave no id behind.
// Source: servicebus-wire.md section 7, "rollback discards".
func TestRefusedIDsAreForgotten(t *testing.T) {
	b := newBench(t)
	b.detecting("q", nil)
	b.wantRefused(ErrInvalid, ignoring(refusals(b.e.Send(at("q"), []*message.Message{nil}))), nil)
	sent, err := b.e.Send(at("q"), []*message.Message{says("a"), nil})
	if err != nil || !errors.Is(sent[0].Err, ErrNotSent) {
		t.Fatal(sent, err)
	}
	x := b.e.Begin()
	b.ok(x.Send(at("q"), nil, []*message.Message{says("b")}))
	b.ok(nil, x.Rollback())
	if b.again("q", says("a")) || b.again("q", says("b")) {
		t.Error("an id is known of a message that was never there")
	}
}

// Two messages of one transaction, and one that was committed, are duplicates like any.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection
func TestDuplicatesInATransaction(t *testing.T) {
	b := newBench(t)
	b.detecting("q", nil)
	x := b.e.Begin()
	b.ok(x.Send(at("q"), nil, []*message.Message{says("a"), says("a")}))
	b.ok(nil, x.Commit())
	b.wantContents(at("q"), "a/0")
	if !b.again("q", says("a")) {
		t.Error("an id of a transaction is not known")
	}
}

// In a partitioned entity the partition key is part of the id.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection, "MessageId + PartitionKey".
func TestDuplicatesByPartition(t *testing.T) {
	b := newBench(t)
	b.detecting("q", func(p *Properties) { p.Partitioning = true })
	in := func(key string) *message.Message {
		m := says("a")
		m.Annotations = message.Map{{Key: message.PartitionKeyAnnotation, Value: message.String(key)}}
		return m
	}
	if b.again("q", in("x")) || b.again("q", in("y")) || !b.again("q", in("x")) {
		t.Error("the partition key is not looked at")
	}
}

// The window is 20 seconds to 7 days and can be changed; whether there is one cannot. The official
// emulator has shorter ones, so the engine takes them too.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection#duplicate-detection-window-size
func TestDuplicateWindow(t *testing.T) {
	b := newBench(t)
	b.detecting("q", nil)
	for _, w := range []time.Duration{time.Second - 1, 7*day + 1} {
		b.want(b.e.Change("q", func(p *Properties) error { p.DuplicateWindow = w; return nil }), ErrInvalid)
	}
	b.want(b.e.Change("q", func(p *Properties) error { return p.Set(Queue, "DuplicateDetectionHistoryTimeWindow", "PT19S") }), ErrInvalid)
	b.want(b.e.Change("q", func(p *Properties) error { p.DetectDuplicates = false; return nil }), ErrInvalid)
	b.again("q", says("a"))
	b.change("q", func(p *Properties) { p.DuplicateWindow = 20 * time.Second })
	b.pass(20*time.Second + time.Millisecond)
	if b.again("q", says("a")) {
		t.Error("the old window holds")
	}
	b.change("q", func(p *Properties) { p.DuplicateWindow = 7 * day })
	b.pass(7 * day)
	if !b.again("q", says("a")) {
		t.Error("the new window does not hold")
	}
}

// Ids are forgotten in step with those that come, and none before its time.
// Source: issue 3, "surviving restart"; the store must not grow without bounds.
func TestOldIDsAreForgotten(t *testing.T) {
	b := newBench(t)
	b.detecting("q", nil)
	count := func() (n int) {
		for range b.e.store.SeenBefore(b.e.entity("q").id, b.now.Add(time.Hour)) {
			n++
		}
		return n
	}
	for i := range 1000 {
		b.again("q", says(fmt.Sprint(i)))
		b.pass(100 * time.Millisecond)
	}
	if n := count(); n < 600 || n > 600+128 {
		t.Errorf("%d ids are remembered; 600 came in the last minute", n)
	}
	if !b.again("q", says("401")) || b.again("q", says("399")) {
		t.Error("the wrong ids are remembered")
	}
}
