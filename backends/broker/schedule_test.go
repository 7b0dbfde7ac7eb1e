package broker

import (
	"slices"
	"testing"
	"time"

	"dlq/backends/message"
)

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

// A scheduled message of a topic waits at the topic and is copied when it is due.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-sequencing#scheduled-messages
func TestScheduledAtTopic(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/s", Subscription, nil)
	m := says("a")
	m.ScheduledEnqueueTime = new(b.now.Add(time.Hour))
	b.post("topic", m)
	if info, _ := b.e.Entity("topic"); info.Scheduled != 1 || info.Active != 0 {
		t.Errorf("counts %d scheduled, %d active", info.Scheduled, info.Active)
	}
	b.crash()
	b.pass(time.Hour)
	b.wantContents(Address{Name: "topic/s"}, "a/0")
}

// scheduled is a message that is due after a while.
func (b *bench) scheduled(text string, d time.Duration) *message.Message {
	m := says(text)
	m.ScheduledEnqueueTime = new(b.now.Add(d))
	return m
}

// A time that is past or now is at once, and counts as not scheduled.
// Source: servicebus-wire.md section 10, "past time ⇒ at once".
func TestScheduledForThePast(t *testing.T) {
	b := newBench(t)
	b.post("orders", b.scheduled("past", -time.Hour))
	b.post("orders", b.scheduled("now", 0))
	if info := b.info("orders"); info.Scheduled != 0 || info.Active != 2 {
		t.Errorf("counts %+v", info)
	}
	if m := b.receive(b.queue); string(m.Body.Bytes()) != "past" || m.Broker.SequenceNumber != 1 {
		t.Errorf("received %+v", m)
	}
}

// Activation is at its millisecond, never early, and in the order of the times; it happens by
// itself, after a crash too.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-sequencing#scheduled-messages
func TestActivation(t *testing.T) {
	b := newBench(t)
	b.post("orders", b.scheduled("third", 3*time.Second))
	b.post("orders", b.scheduled("first", time.Second))
	b.post("orders", b.scheduled("second", 2*time.Second-time.Microsecond))
	b.restart()
	if at, ok := b.e.Due(); !ok || !at.Equal(epoch.Add(time.Second)) {
		t.Errorf("due at %v", at)
	}
	b.pass(2*time.Second - time.Millisecond)
	if m, next := b.receive(b.queue), b.receive(b.queue); string(m.Body.Bytes()) != "first" || next != nil {
		t.Errorf("received %s and %v", m.Body.Bytes(), next)
	}
	b.restart()
	b.pass(time.Second + time.Millisecond)
	if got := bodies(b.takeWith(b.queue, ReceiveOptions{Max: 9})); !slices.Equal(got, []string{"second", "third"}) {
		t.Errorf("received %v", got)
	}
	if m := b.peek(b.queue)[2]; !m.Broker.EnqueuedTime.Equal(epoch.Add(3*time.Second)) || m.Broker.State != message.Active || m.Broker.SequenceNumber != 6 {
		t.Errorf("activated as %+v", m.Broker)
	}
}

// A scheduled message has a number by which it can be cancelled until it is active; after that
// the number is gone. It can be neither received nor deferred nor dead-lettered.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-sequencing#scheduled-messages
func TestCancel(t *testing.T) {
	b := newBench(t)
	cancelled, late := b.post("orders", b.scheduled("a", time.Minute)), b.post("orders", b.scheduled("b", time.Minute))
	for _, action := range []Action{Abandon, Defer, Bury} {
		b.wantRefused(ErrInvalid, ignoring(b.e.SettleBySequence(b.queue, Outcome{Action: action}, cancelled)), nil)
	}
	_, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, cancelled)
	b.want(err, ErrNoMessage)
	b.ok(b.e.SettleBySequence(b.queue, Outcome{Action: Complete}, cancelled))
	b.crash()
	b.pass(time.Minute)
	b.wantRefused(ErrNoMessage, ignoring(b.e.SettleBySequence(b.queue, Outcome{Action: Complete}, cancelled, late)), nil)
	b.wantContents(b.queue, "b/0")
}

// A schedule of a topic can be cancelled there before anybody gets a copy.
// Source: servicebus-wire.md section 10, "held at the topic".
func TestCancelAtTopic(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/s", Subscription, nil)
	seq := b.post("topic", b.scheduled("a", time.Minute))
	b.ok(b.e.SettleBySequence(at("topic"), Outcome{Action: Complete}, seq))
	b.pass(time.Minute)
	b.wantContents(at("topic/s"))
	if n := contentsLeft(t, b); n != 0 {
		t.Errorf("%d contents are left", n)
	}
}

// What is scheduled at a topic is for the subscriptions and rules of its activation.
// Source: servicebus-wire.md section 10, "fan out on activation".
func TestRulesAtActivation(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/gone", Subscription, nil)
	b.make("topic/Subscriptions/closed", Subscription, nil)
	b.post("topic", b.scheduled("a", time.Minute))
	b.make("topic/Subscriptions/late", Subscription, nil)
	b.ok(nil, b.e.RemoveRule("topic/Subscriptions/closed", DefaultRule))
	b.ok(nil, b.e.Delete("topic/Subscriptions/gone"))
	b.pass(time.Minute)
	b.wantContents(at("topic/late"), "a/0")
	b.wantContents(at("topic/closed"))
}

// A scheduled message of an entity that forwards waits there, and is forwarded when it is due.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-auto-forwarding
func TestScheduledIsForwarded(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, nil)
	b.make("start", Queue, func(p *Properties) { p.ForwardTo = "end" })
	b.post("start", b.scheduled("a", time.Minute))
	if info := b.info("start"); info.Scheduled != 1 {
		t.Errorf("counts %+v", info)
	}
	b.restart()
	b.pass(time.Minute)
	b.wantContents(at("end"), "a/0")
	if got := b.peek(at("end"))[0].Broker; got.EnqueuedSequenceNumber != 2 || !got.EnqueuedTime.Equal(b.now) {
		t.Errorf("arrived as %+v; want the number of its activation", got)
	}
}

// Scheduled messages take part in the size of the entity and none in its active count.
// Source: servicebus-wire.md section 10, "counted ScheduledMessageCount".
func TestScheduledIsCounted(t *testing.T) {
	b := newBench(t)
	b.post("orders", b.scheduled("a", time.Minute))
	before := b.info("orders")
	if before.Scheduled != 1 || before.Active != 0 || before.Size == 0 {
		t.Errorf("counts %+v", before)
	}
	b.pass(time.Minute)
	if after := b.info("orders"); after.Scheduled != 0 || after.Active != 1 || after.Size != before.Size {
		t.Errorf("counts %+v after the activation", after)
	}
}
