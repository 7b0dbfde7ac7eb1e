package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dlq/backends/message"
)

// newSQS opens an engine with the SQS-style queue "jobs" as the bench's queue: a visibility
// timeout of 30 s, as the service has it, and no redrive policy.
func newSQS(t testing.TB, change func(*Properties)) *bench {
	t.Helper()
	b := newBench(t)
	b.queue.Name = "jobs"
	b.create("jobs", change)
	return b
}

// create makes an SQS-style queue. change may be nil.
func (b *bench) create(name string, change func(*Properties)) {
	b.Helper()
	p := Defaults(Queue, SQS)
	if change != nil {
		change(&p)
	}
	if err := b.e.Create(name, Queue, p); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) pass(d time.Duration) { b.now = b.now.Add(d) }

// take receives up to n messages as a ReceiveMessage without VisibilityTimeout does.
func (b *bench) take(a Address, n int) []*message.Message {
	b.Helper()
	return b.takeWith(a, ReceiveOptions{Max: n})
}

func (b *bench) takeWith(a Address, o ReceiveOptions) []*message.Message {
	b.Helper()
	msgs, err := b.e.Receive(a, o)
	if err != nil {
		b.Fatal(err)
	}
	return msgs
}

// wantBodies takes ten messages and compares what came, in that order.
func (b *bench) wantBodies(a Address, want ...string) []*message.Message {
	b.Helper()
	msgs := b.take(a, 10)
	if got := bodies(msgs); !slices.Equal(got, want) {
		b.Errorf("received %v from %s, want %v", got, a.Name, want)
	}
	return msgs
}

func bodies(msgs []*message.Message) []string {
	var out []string
	for _, m := range msgs {
		out = append(out, string(m.Body.Bytes()))
	}
	return out
}

// receipt is what a receipt handle stands for.
func receipt(m *message.Message) Delivery {
	return Delivery{m.Broker.SequenceNumber, m.Broker.LockToken}
}

// remove is DeleteMessage, visible is ChangeMessageVisibility.
func (b *bench) remove(m *message.Message) error {
	b.Helper()
	errs, err := b.e.SettleDelivery(b.queue, Outcome{Action: Complete}, receipt(m))
	if err != nil {
		b.Fatal(err)
	}
	return errs[0]
}

func (b *bench) visible(m *message.Message, d time.Duration) error {
	b.Helper()
	errs, err := b.e.Extend(b.queue, d, receipt(m))
	if err != nil {
		b.Fatal(err)
	}
	return errs[0]
}

func (b *bench) want(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("err = %v, want %v", err, want)
	}
}

func (b *bench) info(name string) Info {
	b.Helper()
	i, err := b.e.Entity(name)
	if err != nil {
		b.Fatal(err)
	}
	return i
}

// ApproximateReceiveCount rises by one on each receive and is 1 on the first;
// ApproximateFirstReceiveTimestamp is set then and never again.
// Source: sqs-wire.md 4.1.
func TestReceiveCounts(t *testing.T) {
	b := newSQS(t, nil)
	b.send("a")
	b.pass(time.Second)
	first := b.now
	for n := range 3 {
		m := b.receive(b.queue)
		if m == nil || m.Broker.DeliveryCount != uint32(n+1) || !m.Broker.FirstReceived.Equal(first) || !m.Broker.EnqueuedTime.Equal(epoch) {
			t.Fatalf("receive %d: %+v", n+1, m)
		}
		b.pass(time.Minute)
	}
}

// A received message is hidden until receive time + timeout, and then it is served before what
// was sent after it.
// Source: sqs-wire.md 4.1, [LS test_inflight_message_requeue].
func TestTimeoutReturnsInSentOrder(t *testing.T) {
	b := newSQS(t, nil)
	b.send("a", "b", "c")
	b.receive(b.queue)
	b.pass(30*time.Second - time.Millisecond)
	if got := bodies(b.take(b.queue, 1)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("before the timeout: %v", got)
	}
	b.pass(time.Millisecond)
	b.wantBodies(b.queue, "a", "c")
}

// VisibilityTimeout 0 is a value: the message is counted, given once in the call, and stays
// visible for the next. Its receipt deletes it nevertheless.
// Source: sqs-wire.md 2.9, 2.10.
func TestReceiveWithoutHiding(t *testing.T) {
	b := newSQS(t, nil)
	b.send("a", "b")
	for n := range 2 {
		msgs := b.takeWith(b.queue, ReceiveOptions{Max: 10, Lock: new(time.Duration)})
		if got := bodies(msgs); !slices.Equal(got, []string{"a", "b"}) || msgs[0].Broker.DeliveryCount != uint32(n+1) {
			t.Fatalf("receive %d: %v, count %d", n+1, got, msgs[0].Broker.DeliveryCount)
		}
		if n == 1 {
			b.want(b.remove(msgs[0]), nil)
		}
	}
	if i := b.info("jobs"); i.InFlight != 0 {
		t.Errorf("%d are in flight", i.InFlight)
	}
	b.wantContents(b.queue, "b/2")
}

// The timeout of a receive is that receive's alone; without one it is the queue's, which may be 0.
// Source: API_ReceiveMessage, VisibilityTimeout.
func TestTimeoutOfOneReceive(t *testing.T) {
	b := newSQS(t, nil)
	b.send("a")
	b.takeWith(b.queue, ReceiveOptions{Lock: new(5 * time.Second)})
	b.pass(5 * time.Second)
	b.wantBodies(b.queue, "a")
	b.pass(30*time.Second - time.Millisecond)
	b.wantBodies(b.queue)
	if err := b.e.Change("jobs", func(p *Properties) error { p.LockDuration = 0; return nil }); err != nil {
		t.Fatal(err)
	}
	b.wantBodies(b.queue) // the change does not touch what is in flight: 2.6
	b.pass(time.Millisecond)
	b.wantBodies(b.queue, "a")
	b.wantBodies(b.queue, "a")
}

// A standard queue's receipt works after the visibility timeout, unless the message was
// received again: then it does nothing. A restart changes none of this.
// Source: sqs-wire.md 2.10, 2.11, [LS test_delete_after_visibility_timeout].
func TestLateReceipt(t *testing.T) {
	b := newSQS(t, nil)
	b.send("deleted", "hidden", "again")
	old := b.take(b.queue, 3)
	b.pass(time.Minute)
	if err := b.e.Close(); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.want(b.remove(old[0]), nil)
	b.want(b.visible(old[1], 10*time.Second), nil)
	again := b.wantBodies(b.queue, "again")
	b.want(b.remove(old[2]), ErrLockLost)
	b.want(b.visible(old[2], 0), ErrLockLost)
	b.pass(time.Minute)
	b.want(b.remove(old[2]), ErrLockLost) // though nobody holds it now
	b.want(b.visible(old[2], time.Second), ErrLockLost)
	b.wantContents(b.queue, "hidden/1", "again/2")
	b.want(b.remove(again[0]), nil)
	b.wantBodies(b.queue, "hidden")
}

// A receipt of a FIFO queue is good until its timeout, and longer when it was extended.
// Source: sqs-wire.md 2.10, [LS] "The receipt handle has expired".
func TestLateReceiptFIFO(t *testing.T) {
	b := newFIFO(t, nil)
	b.group("g", "a", "b")
	msgs := b.take(b.queue, 2)
	b.want(b.visible(msgs[1], time.Minute), nil)
	b.pass(45 * time.Second)
	b.want(b.remove(msgs[0]), ErrLockLost)
	b.want(b.visible(msgs[0], time.Second), ErrLockLost)
	b.want(b.remove(msgs[1]), nil)
	b.wantContents(b.queue, "a/1")
	m := b.takeWith(b.queue, ReceiveOptions{Lock: new(time.Duration)})
	b.want(b.remove(m[0]), ErrLockLost) // it expired at once
}

// A receipt of what is gone says so, again and again, whatever took it.
// Source: sqs-wire.md 2.10: already deleted or purged is a success, which the server answers.
func TestReceiptOfWhatIsGone(t *testing.T) {
	b := newSQS(t, nil)
	b.send("a", "b")
	msgs := b.take(b.queue, 2)
	b.want(b.remove(msgs[0]), nil)
	if _, err := b.e.Purge(t.Context(), b.queue, PurgeOptions{InFlight: true}); err != nil {
		t.Fatal(err)
	}
	for _, m := range msgs {
		for range 2 {
			b.want(b.remove(m), ErrNoMessage)
			b.want(b.visible(m, time.Second), ErrNoMessage)
		}
	}
}

// A receipt that is given twice in one call has one outcome.
// Source: sqs-wire.md 2.10: what is deleted already is a success.
func TestReceiptTwiceInOneCall(t *testing.T) {
	for _, late := range []bool{false, true} {
		b := newSQS(t, nil)
		b.send("a", "b")
		msgs := b.take(b.queue, 2)
		if late {
			b.pass(time.Minute)
		}
		hidden, deleted := receipt(msgs[0]), receipt(msgs[1])
		b.ok(b.e.Extend(b.queue, time.Hour, hidden, hidden))
		b.ok(b.e.SettleDelivery(b.queue, Outcome{Action: Complete}, deleted, deleted))
		b.pass(time.Hour - time.Millisecond)
		b.wantBodies(b.queue)
		b.pass(time.Millisecond)
		b.wantBodies(b.queue, "a")
		forged := Delivery{Seq: hidden.Seq, Token: deleted.Token}
		errs, err := b.e.SettleDelivery(b.queue, Outcome{Action: Complete}, forged, forged)
		b.wantRefused(ErrLockLost, errs, err)
	}
}

// Only what came with a receive settles: a message that nobody has received has no receipt.
func TestForgedReceipt(t *testing.T) {
	b := newSQS(t, nil)
	b.send("a")
	for name, f := range map[string]func() ([]error, error){
		"delete": func() ([]error, error) {
			return b.e.SettleDelivery(b.queue, Outcome{Action: Complete}, Delivery{Seq: 1})
		},
		"hide": func() ([]error, error) { return b.e.Extend(b.queue, time.Minute, Delivery{Seq: 1}) },
	} {
		if errs, err := f(); err != nil || !errors.Is(errs[0], ErrLockLost) {
			t.Errorf("%s with an empty token: %v, %v", name, errs, err)
		}
	}
	b.wantBodies(b.queue, "a")
}

// ChangeMessageVisibility 0 releases at once and counts nothing; a changed timeout holds for
// this delivery, and the next receive has the queue's again.
// Source: sqs-wire.md 2.11, [LS].
func TestChangeVisibility(t *testing.T) {
	b := newSQS(t, nil)
	b.send("a", "b")
	m := b.receive(b.queue)
	b.want(b.visible(m, 0), nil)
	b.wantContents(b.queue, "a/1", "b/0")
	msgs := b.wantBodies(b.queue, "a", "b")
	b.want(b.visible(msgs[0], 2*time.Minute), nil)
	b.want(b.visible(msgs[1], time.Second), nil) // shorter, too
	b.pass(time.Second)
	b.wantBodies(b.queue, "b")
	b.pass(2*time.Minute - time.Second - time.Millisecond)
	b.wantBodies(b.queue, "b")
	b.pass(time.Millisecond)
	b.wantBodies(b.queue, "a")
	b.pass(30 * time.Second)
	b.wantBodies(b.queue, "a", "b")
}

// A message is hidden for 12 hours at most, counted from the receive.
// Source: API_ChangeMessageVisibility; sqs-wire.md 2.11.
func TestVisibilityHasATotal(t *testing.T) {
	b := newSQS(t, nil)
	b.send("a")
	m := b.receive(b.queue)
	b.want(b.visible(m, 12*time.Hour), nil)
	for elapsed := time.Hour; elapsed < 12*time.Hour; elapsed += time.Hour {
		b.pass(time.Hour)
		b.want(b.visible(m, 12*time.Hour-elapsed), nil)
	}
	b.pass(time.Minute)
	b.want(b.visible(m, time.Hour-time.Minute+time.Millisecond), ErrInvalid)
	b.want(b.visible(m, 12*time.Hour+1), ErrInvalid)
	b.want(b.visible(m, -1), ErrInvalid)
	b.pass(time.Hour - time.Minute - time.Millisecond)
	b.wantBodies(b.queue) // the refused changes changed nothing
	b.pass(time.Millisecond)
	b.wantBodies(b.queue, "a")
}

// At most so many messages are in flight, however many a call asks for. Deleting or releasing
// one makes room.
// Source: sqs-wire.md 2.9 and 4.1, OverLimit; a server answers it for FIFO with no messages.
func TestInFlightLimit(t *testing.T) {
	b := newSQS(t, func(p *Properties) { p.MaxInFlight = 3 })
	b.send("a", "b", "c", "d", "e")
	msgs := b.take(b.queue, 2)
	msgs = append(msgs, b.wantBodies(b.queue, "c")...)
	full := func() {
		t.Helper()
		if got, err := b.e.Receive(b.queue, ReceiveOptions{}); len(got) > 0 || !errors.Is(err, ErrInFlight) {
			t.Errorf("received %v, %v with three in flight", bodies(got), err)
		}
	}
	full()
	b.want(b.remove(msgs[1]), nil)
	b.wantBodies(b.queue, "d")
	full()
	b.want(b.visible(msgs[0], 0), nil)
	b.wantBodies(b.queue, "a")
	full()
}

// The queue's delay counts from when a message was sent; a message's own delay, 0 too, comes
// before it. A delayed message keeps its place, its number and its sent time.
// Source: sqs-wire.md 2.7, 4.1; API_SendMessage, DelaySeconds.
func TestDelay(t *testing.T) {
	b := newSQS(t, func(p *Properties) { p.Delay = 10 * time.Second })
	own := func(body string, d time.Duration) {
		due := b.now.Add(d)
		m := &message.Message{Body: message.DataBody([]byte(body)), ScheduledEnqueueTime: &due}
		b.ok(refusals(b.e.Send(b.queue, []*message.Message{m})))
	}
	b.send("queue")
	own("long", time.Minute)
	own("none", 0)
	if i := b.info("jobs"); i.Delayed != 2 || i.Active != 1 || i.Scheduled != 0 {
		t.Errorf("delayed %d, active %d, scheduled %d; want 2, 1, 0", i.Delayed, i.Active, i.Scheduled)
	}
	b.wantBodies(b.queue, "none")
	b.pass(10*time.Second - time.Millisecond)
	b.wantBodies(b.queue)
	b.pass(time.Millisecond)
	b.wantBodies(b.queue, "queue")
	b.pass(50 * time.Second)
	msgs := b.wantBodies(b.queue, "queue", "long", "none")
	for i, m := range msgs {
		if m.Broker.SequenceNumber != int64(i+1) || !m.Broker.EnqueuedTime.Equal(epoch) {
			t.Errorf("%s has number %d and was sent at %v", m.Body.Bytes(), m.Broker.SequenceNumber, m.Broker.EnqueuedTime)
		}
	}
}

// A delay outlives a crash.
func TestDelaySurvivesACrash(t *testing.T) {
	b := newSQS(t, func(p *Properties) { p.Delay = 10 * time.Second })
	b.send("a")
	b.crash()
	b.pass(9 * time.Second)
	b.wantBodies(b.queue)
	b.pass(time.Second)
	b.wantBodies(b.queue, "a")
}

// The counts of a queue are those of a scan of its messages, whatever was done to it.
// ApproximateNumberOfMessages is Active less InFlight; in a FIFO queue messages of a locked
// group that were not received themselves count as visible.
// Source: sqs-wire.md 2.5, [LS test_fifo_approximate_number_of_messages_not_visible].
func TestCountsEqualAScan(t *testing.T) {
	for seed := range uint64(size(20, 200, 2000)) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		b := newBench(t)
		fifo := seed%2 == 1
		suffix := map[bool]string{true: ".fifo"}[fifo]
		change := func(p *Properties) {
			p.setFIFO(fifo)
			p.ContentDeduplication, p.Retention = fifo, 10*time.Minute
		}
		b.create("dlq"+suffix, change)
		b.queue.Name = "jobs" + suffix
		b.create(b.queue.Name, func(p *Properties) {
			change(p)
			p.Redrive = Redrive{"dlq" + suffix, 2}
		})
		var held []*message.Message
		for step := range 150 {
			switch n := rnd.IntN(10); {
			case n < 3:
				m := &message.Message{Body: message.DataBody(fmt.Append(nil, seed, step)), SessionID: new(fmt.Sprint(rnd.IntN(3)))}
				if n == 0 && !fifo {
					m.ScheduledEnqueueTime = new(b.now.Add(time.Minute))
				}
				b.ok(refusals(b.e.Send(b.queue, []*message.Message{m})))
			case n < 6:
				held = append(held, b.take(b.queue, rnd.IntN(3)+1)...)
			case n == 6 && len(held) > 0:
				_ = b.remove(held[rnd.IntN(len(held))]) // late or not
			case n == 7 && len(held) > 0:
				_ = b.visible(held[rnd.IntN(len(held))], time.Duration(rnd.IntN(50))*time.Second)
			default:
				b.pass(time.Duration(rnd.IntN(60)) * time.Second)
			}
			for _, name := range []string{b.queue.Name, "dlq" + suffix} {
				got := b.info(name)
				page, err := b.e.Peek(Address{Name: name}, PeekOptions{Max: 1000})
				if err != nil {
					t.Fatal(err)
				}
				var active, delayed, inFlight int64
				for _, m := range page {
					switch {
					case m.Broker.State == message.Scheduled:
						delayed++
						continue
					case m.Broker.LockedUntil.After(b.now):
						inFlight++
					}
					active++
				}
				if got.Active != active || got.Delayed != delayed || got.InFlight != inFlight || got.Scheduled+got.Deferred+got.DeadLetter != 0 {
					t.Fatalf("seed %d, step %d: %s counts active %d, delayed %d, in flight %d; a scan finds %d, %d, %d",
						seed, step, name, got.Active, got.Delayed, got.InFlight, active, delayed, inFlight)
				}
			}
		}
		_ = b.e.Close()
	}
}
