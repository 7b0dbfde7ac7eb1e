package broker

import (
	"context"
	"strconv"
	"testing"
	"time"

	"dlq/backends/message"
)

// A purge takes what is in flight without anybody getting it on the way, such as a poll that waits.
// Source: sqs-wire.md 2.12.
func TestPurgeLetsNobodyReceive(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		b := newSQS(t, nil)
		if fifo {
			b = newFIFO(t, nil)
			b.group("g", "a")
			b.group("h", "b")
		} else {
			b.send("a", "b")
		}
		if held := b.take(b.queue, 2); len(held) != 2 {
			t.Fatalf("%d messages are held", len(held))
		}
		var got []*message.Message
		w := b.e.NewWaiter(b.queue, func() { got = append(got, b.take(b.queue, 10)...) })
		w.Arm(message.UUID{})
		n, err := b.e.Purge(t.Context(), b.queue, PurgeOptions{InFlight: true})
		w.Close()
		if err != nil || n != 2 || len(got) != 0 {
			t.Errorf("FIFO %v: %d were purged, %v, and %d were received while they were", fifo, n, err, len(got))
		}
	}
}

// meanwhile does something when it is asked for the second time whether it has ended.
type meanwhile struct {
	context.Context
	do    func()
	asked int
}

func (m *meanwhile) Err() error {
	if m.asked++; m.asked == 2 {
		m.do()
	}
	return m.Context.Err()
}

// A purge ends with its queue: one that is made under the same name has messages with the same
// numbers, and none of them is its business.
func TestPurgeSparesTheNextQueue(t *testing.T) {
	b := newSQS(t, nil)
	many := func(n int) {
		msgs := make([]*message.Message, n)
		for i := range msgs {
			msgs[i] = &message.Message{ID: message.String(strconv.Itoa(i)), Body: message.DataBody([]byte("x"))}
		}
		b.ok(refusals(b.e.Send(b.queue, msgs)))
	}
	many(1010)
	ctx := &meanwhile{Context: t.Context(), do: func() {
		b.ok(nil, b.e.Delete(b.queue.Name))
		b.ok(nil, b.e.Create(b.queue.Name, Queue, Defaults(Queue, SQS)))
		many(1005)
	}}
	if _, err := b.e.Purge(ctx, b.queue, PurgeOptions{InFlight: true}); err != nil {
		t.Fatal(err)
	}
	info, err := b.e.Entity(b.queue.Name)
	if err != nil || info.Active != 1005 {
		t.Errorf("the new queue has %d messages, %v; want 1005", info.Active, err)
	}
}

// What a receive with no visibility timeout leaves where it is wakes the next who waits.
// Source: sqs-wire.md 2.9, 4.5.
func TestReceiveWithoutLockWakesTheNext(t *testing.T) {
	b := newSQS(t, nil)
	_, woken := b.waiters(b.queue, 3)
	b.send("a")
	var open int64
	for want := int64(1); want <= 3; want++ {
		b.takeWith(b.queue, ReceiveOptions{Lock: new(time.Duration)})
		open = 0
		for _, n := range woken() {
			open += n
		}
		if open != min(want+1, 3) {
			t.Errorf("after %d receives %d waiters were woken", want, open)
		}
	}
}
