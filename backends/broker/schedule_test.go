package broker

import (
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
