package broker

import (
	"slices"
	"testing"
	"time"

	"dlq/backends/message"
)

func retained(d time.Duration) func(*Properties) {
	return func(p *Properties) { p.Retention = d }
}

// A message is removed when now > sent time + retention, by time alone, not at that moment and
// not by a receive. Nothing is dead-lettered.
// Source: sqs-wire.md 4.1.
func TestRetention(t *testing.T) {
	b := newRedrive(t, 5, retained(time.Hour))
	b.send("a")
	b.pass(time.Millisecond)
	b.send("b")
	b.pass(time.Hour - time.Millisecond)
	b.wantContents(b.queue, "a/0", "b/0")
	if at, ok := b.e.Due(); !ok || !at.Equal(epoch.Add(time.Hour+time.Millisecond)) {
		t.Errorf("the next thing happens at %v, %v", at, ok)
	}
	b.pass(time.Millisecond)
	b.wantContents(b.queue, "b/0")
	b.pass(time.Millisecond)
	if i := b.info("jobs"); i.Active != 0 || i.Size != 0 {
		t.Errorf("%d messages of %d bytes are left", i.Active, i.Size)
	}
	b.wantContents(jobsDLQ)
}

// Being in flight saves no message, and neither does extending; its receipt then stands for
// nothing, which a server answers with success.
// Source: sqs-wire.md 4.1, [LS test_message_retention_with_inflight].
func TestRetentionInFlight(t *testing.T) {
	b := newSQS(t, retained(time.Minute))
	b.send("a")
	m := b.receive(b.queue)
	b.want(b.visible(m, time.Hour), nil)
	b.pass(time.Minute + time.Millisecond)
	b.wantContents(b.queue)
	b.want(b.remove(m), ErrNoMessage)
	b.want(b.visible(m, time.Minute), ErrNoMessage)
	errs, err := b.e.Settle(b.queue, Outcome{Action: Complete}, m.Broker.LockToken)
	if err != nil {
		t.Fatal(err)
	}
	b.want(errs[0], ErrLockLost)
	if i := b.info("jobs"); i.InFlight != 0 || i.Active != 0 {
		t.Errorf("in flight %d, active %d", i.InFlight, i.Active)
	}
	b.pass(2 * time.Hour) // the timer of its timeout brings nothing back
	b.wantContents(b.queue)
}

// Retention counts from the sent time for delayed messages, too, and ends even them.
// Source: sqs-wire.md 4.1.
func TestRetentionOfDelayed(t *testing.T) {
	b := newSQS(t, retained(time.Minute))
	due := func(d time.Duration, body string) *message.Message {
		return &message.Message{ScheduledEnqueueTime: new(b.now.Add(d)), Body: message.DataBody([]byte(body))}
	}
	b.ok(refusals(b.e.Send(b.queue, []*message.Message{due(time.Second, "soon"), due(2*time.Minute, "late")})))
	b.pass(time.Minute)
	b.wantContents(b.queue, "soon/0", "late/0")
	b.pass(time.Millisecond)
	b.wantContents(b.queue)
	b.pass(time.Hour)
	b.wantContents(b.queue)
	if i := b.info("jobs"); i.Delayed != 0 {
		t.Errorf("%d are delayed", i.Delayed)
	}
}

// probe is an event that looks.
type probe func(t *tx)

func (p probe) happen(t *tx) error { p(t); return nil }

// What has ended while nobody came is removed in parts, before anything else can happen.
func TestRetentionOfMany(t *testing.T) {
	b := newSQS(t, retained(time.Minute))
	const many = 2500
	b.ok(refusals(b.e.Send(b.queue, slices.Repeat([]*message.Message{says("a")}, many))))
	b.pass(time.Minute + time.Millisecond)
	left := []int{}
	for range 4 {
		b.e.timers.add(b.now, probe(func(*tx) { left = append(left, b.e.entity("jobs").subs[Main].ready.Len()) }))
	}
	b.pass(time.Hour)
	if i := b.info("jobs"); i.Active != 0 || i.Size != 0 {
		t.Errorf("%d messages of %d bytes are left", i.Active, i.Size)
	}
	if left[0] != many-1000 {
		t.Errorf("in the same moment %v messages were left, want that 1000 are removed at a time", left)
	}
	b.restart()
	b.wantContents(b.queue)
}

// A change of the retention holds for the messages that are there.
// Source: sqs-wire.md 2.6 [SDK].
func TestRetentionChanges(t *testing.T) {
	b := newSQS(t, retained(time.Hour))
	set := func(d time.Duration) {
		t.Helper()
		if err := b.e.Change("jobs", func(p *Properties) error { p.Retention = d; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	b.send("a")
	set(2 * time.Hour)
	b.pass(time.Hour + time.Minute)
	b.wantContents(b.queue, "a/0")
	b.send("b")
	b.receive(b.queue)
	set(time.Hour)
	b.wantContents(b.queue, "b/0")
	m := b.receive(b.queue)
	if end := b.now.Add(time.Hour); m == nil || !m.Broker.ExpiresAt.Equal(end) {
		t.Errorf("%+v does not end at %v", m, end)
	}
}

// On standard queues the time in the source counts in the dead-letter queue; on FIFO queues the
// retention begins with the move.
// Source: sqs-wire.md 4.2 [DOC sqs-dead-letter-queues, "message retention periods"].
func TestRetentionOfDeadLetters(t *testing.T) {
	move := func(b *bench) {
		b.take(b.queue, 1)
		b.pass(40 * time.Minute)
		b.wantBodies(b.queue)
	}
	b := newRedrive(t, 1, retained(time.Hour))
	b.send("a")
	move(b)
	b.wantContents(jobsDLQ, "a/1")
	b.pass(20*time.Minute + time.Millisecond)
	b.wantContents(jobsDLQ)

	b, dlq := newRedriveFIFO(t, 1)
	if err := b.e.Change(dlq.Name, func(p *Properties) error { p.Retention = time.Hour; return nil }); err != nil {
		t.Fatal(err)
	}
	b.group("g", "a")
	move(b)
	b.pass(time.Hour)
	b.wantContents(dlq, "a/1")
	b.pass(time.Millisecond)
	b.wantContents(dlq)
}

// A message that is older than its dead-letter queue keeps them is gone with the move.
// Source: sqs-wire.md 4.2 [DOC]: the retention of a dead-letter queue should be the longer one.
func TestDeadLetterIsTooOld(t *testing.T) {
	b := newRedrive(t, 1, retained(time.Hour))
	if err := b.e.Change(jobsDLQ.Name, func(p *Properties) error { p.Retention = time.Minute; return nil }); err != nil {
		t.Fatal(err)
	}
	b.send("a")
	b.receive(b.queue)
	b.pass(30 * time.Minute)
	b.wantBodies(b.queue)
	b.wantContents(jobsDLQ)
}

// Where retention takes the message that locks a group, the next one comes.
// Source: sqs-wire.md 4.1, 4.4.
func TestRetentionUnlocksTheGroup(t *testing.T) {
	b := newFIFO(t, retained(time.Minute))
	b.group("g", "a")
	b.pass(30 * time.Second)
	b.group("g", "b")
	b.want(b.visible(b.take(b.queue, 1)[0], time.Hour), nil)
	b.pass(30*time.Second + time.Millisecond)
	b.wantBodies(b.queue, "b")
}

// Retention goes on over a restart, for what is in flight as well.
func TestRetentionSurvivesARestart(t *testing.T) {
	b := newSQS(t, retained(time.Minute))
	b.send("a", "b")
	m := b.receive(b.queue)
	b.want(b.visible(m, time.Hour), nil)
	if err := b.e.Close(); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.wantContents(b.queue, "a/1", "b/0")
	b.pass(time.Minute + time.Millisecond)
	b.wantContents(b.queue)
	b.want(b.remove(m), ErrNoMessage)
}

// PurgeQueue takes what is visible, delayed and in flight.
// Source: sqs-wire.md 2.12.
func TestPurgeInFlight(t *testing.T) {
	b := newSQS(t, nil)
	b.send("a", "b")
	b.ok(refusals(b.e.Send(b.queue, []*message.Message{{ScheduledEnqueueTime: new(b.now.Add(time.Minute))}})))
	b.receive(b.queue)
	if n, err := b.e.Purge(t.Context(), b.queue, PurgeOptions{InFlight: true}); err != nil || n != 3 {
		t.Errorf("purged %d, %v; want 3", n, err)
	}
	b.pass(time.Hour)
	b.wantContents(b.queue)
	if i := b.info("jobs"); i.Active+i.InFlight+i.Delayed != 0 || i.Size != 0 {
		t.Errorf("%+v", i)
	}
	b.send("c")
	b.receive(b.queue)
	if n, err := b.e.Purge(t.Context(), b.queue, PurgeOptions{}); err != nil || n != 0 {
		t.Errorf("purged %d, %v though the one message is in flight", n, err)
	}
}
