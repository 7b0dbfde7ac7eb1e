package broker

import (
	"fmt"
	"testing"
	"time"

	"dlq/backends/message"
)

// waiters arms waiters and returns them with how often they were woken, in the order in which
// they wait.
func (b *bench) waiters(a Address, n int) (ws []*Waiter, woken func() []int64) {
	var counts []func() int64
	for range n {
		w, count := b.waiting(a, message.UUID{})
		ws, counts = append(ws, w), append(counts, count.Load)
	}
	return ws, func() (out []int64) {
		for _, count := range counts {
			out = append(out, count())
		}
		return out
	}
}

// Whatever makes messages receivable wakes one waiter for each of them, or for each group of
// which a receive could have the first, those first that have waited longest.
// Source: sqs-wire.md 2.11, 4.5.
func TestOneWakeUpForEachMessage(t *testing.T) {
	later := func(b *bench, d time.Duration) {
		b.pass(d)
		b.ok(nil, b.e.Tick())
	}
	for _, c := range []struct {
		name   string
		fifo   bool
		change func(*Properties)
		before func(b *bench) []*message.Message // what is received before
		after  func(b *bench, held []*message.Message)
		want   int
	}{
		{
			"sends in a row", false, nil, nil,
			func(b *bench, _ []*message.Message) {
				b.send("a")
				b.send("b")
			}, 2,
		},
		{
			"one send of several", false, nil, nil,
			func(b *bench, _ []*message.Message) { b.send("a", "b") }, 2,
		},
		{
			"a release", false, nil,
			func(b *bench) []*message.Message { b.send("a", "b"); return b.take(b.queue, 2) },
			func(b *bench, held []*message.Message) { b.want(b.visible(held[1], 0), nil) }, 1,
		},
		{
			"a late release", false, nil,
			func(b *bench) []*message.Message { b.send("a"); return b.take(b.queue, 1) },
			func(b *bench, held []*message.Message) { later(b, 30*time.Second); b.want(b.visible(held[0], 0), nil) }, 1,
		},
		{
			"timeouts", false, nil,
			func(b *bench) []*message.Message { b.send("a", "b"); return b.take(b.queue, 2) },
			func(b *bench, held []*message.Message) {
				b.want(b.visible(held[1], time.Hour), nil)
				later(b, 30*time.Second)
			}, 1,
		},
		{
			"ends of delays", false, func(p *Properties) { p.Delay = time.Minute },
			func(b *bench) []*message.Message {
				b.send("a", "b")
				b.pass(time.Second)
				b.send("c")
				return nil
			},
			func(b *bench, _ []*message.Message) { later(b, 59*time.Second) }, 2,
		},
		{
			"messages of one group", true, nil, nil,
			func(b *bench, _ []*message.Message) { b.group("g", "a", "b", "c") }, 1,
		},
		{
			"messages of two groups", true, nil, nil,
			func(b *bench, _ []*message.Message) { b.group("g", "a", "b"); b.group("h", "c") }, 2,
		},
		{
			"a message of a locked group", true, nil,
			func(b *bench) []*message.Message { b.group("g", "a"); return b.take(b.queue, 1) },
			func(b *bench, _ []*message.Message) { b.group("g", "b") }, 0,
		},
		{
			"the delete of some of a group", true, nil,
			func(b *bench) []*message.Message { b.group("g", "a", "b", "c"); return b.take(b.queue, 2) },
			func(b *bench, held []*message.Message) { b.want(b.remove(held[0]), nil) }, 0,
		},
		{
			"the delete of all of a group", true, nil,
			func(b *bench) []*message.Message { b.group("g", "a", "b", "c"); return b.take(b.queue, 2) },
			func(b *bench, held []*message.Message) {
				b.want(b.remove(held[0]), nil)
				b.want(b.remove(held[1]), nil)
			}, 1,
		},
		{
			"the release of the first of a group", true, nil,
			func(b *bench) []*message.Message { b.group("g", "a", "b"); return b.take(b.queue, 2) },
			func(b *bench, held []*message.Message) { b.want(b.visible(held[0], 0), nil) }, 1,
		},
		{
			"the release of the second of a group", true, nil,
			func(b *bench) []*message.Message { b.group("g", "a", "b"); return b.take(b.queue, 2) },
			func(b *bench, held []*message.Message) { b.want(b.visible(held[1], 0), nil) }, 0,
		},
		{
			"the timeout of a group", true, nil,
			func(b *bench) []*message.Message { b.group("g", "a", "b"); return b.take(b.queue, 2) },
			func(b *bench, _ []*message.Message) { later(b, 30*time.Second) }, 1,
		},
		{
			"the end of a delay that held back its group", true, func(p *Properties) { p.Delay = time.Minute },
			func(b *bench) []*message.Message { b.group("g", "a", "b"); return nil },
			func(b *bench, _ []*message.Message) { later(b, time.Minute) }, 1,
		},
		{
			"the end of what held back a group", true, retained(time.Minute),
			func(b *bench) []*message.Message {
				b.group("g", "a")
				b.pass(time.Second)
				b.group("g", "b")
				held := b.take(b.queue, 1)
				b.want(b.visible(held[0], time.Hour), nil)
				return held
			},
			func(b *bench, _ []*message.Message) { later(b, time.Minute-time.Second+time.Millisecond) }, 1,
		},
	} {
		b := newSQS(t, c.change)
		if c.fifo {
			b = newFIFO(t, c.change)
		}
		var held []*message.Message
		if c.before != nil {
			held = c.before(b)
		}
		_, woken := b.waiters(b.queue, 4)
		c.after(b, held)
		want := make([]int64, 4)
		for i := range c.want {
			want[i] = 1
		}
		if got := woken(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the waiters were woken %v times, want %v", c.name, got, want)
		}
	}
}

// While as many messages are in flight as may be, nobody is woken, and nobody who arms again
// and again. Whatever ends a lock makes room for one.
// Source: sqs-wire.md 2.9: a FIFO queue answers then with no messages.
func TestRoomInFlightWakes(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		limit := func(p *Properties) { p.MaxInFlight = 2 }
		b := newSQS(t, limit)
		send := func(bodies ...string) { b.send(bodies...) }
		if fifo {
			b = newFIFO(t, limit)
			send = func(bodies ...string) {
				for _, body := range bodies {
					b.group("group of "+body, body)
				}
			}
		}
		send("a", "b", "c", "d", "e")
		held := b.wantBodies(b.queue, "a", "b")
		ws, woken := b.waiters(b.queue, 4)
		want := func(after string, want ...int64) {
			t.Helper()
			if got := woken(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("FIFO %v, %s: the waiters were woken %v times, want %v", fifo, after, got, want)
			}
		}
		want("a full queue", 0, 0, 0, 0)
		send("f")
		want("a send", 0, 0, 0, 0)
		errs, err := b.e.SettleDelivery(b.queue, Outcome{Action: Complete}, receipt(held[0]), receipt(held[1]))
		b.ok(errs, err)
		want("two deletes", 1, 1, 0, 0)
		held = b.wantBodies(b.queue, "c", "d")
		ws[0].Close()
		ws[1].Close()
		want("closing while it is full", 1, 1, 0, 0)
		b.pass(29 * time.Second)
		b.want(b.visible(held[0], time.Hour), nil)
		b.pass(time.Second)
		b.ok(nil, b.e.Tick())
		want("a timeout", 1, 1, 1, 0)
		ws[2].Pass()
		want("handing on", 1, 1, 1, 1)
		ws[2].Arm(message.UUID{})
		want("arming while there is room", 1, 1, 2, 1)
		b.take(b.queue, 1)
		ws[2].Arm(message.UUID{})
		ws[3].Arm(message.UUID{})
		b.change(b.queue.Name, func(p *Properties) { p.MaxInFlight = 3 })
		want("a higher limit", 1, 1, 3, 2)
	}
}

// Who waits for the dead letters of a queue looks again when they come to be in another queue,
// or in none.
func TestRedrivePolicyWakes(t *testing.T) {
	for name, change := range map[string]func(*bench){
		"another target": func(b *bench) {
			b.create("other", nil)
			b.change("jobs", func(p *Properties) { p.Redrive.Target = "other" })
		},
		"no policy":     func(b *bench) { b.change("jobs", func(p *Properties) { p.Redrive = Redrive{} }) },
		"no queue":      func(b *bench) { b.ok(nil, b.e.Delete("jobs")) },
		"no dead queue": func(b *bench) { b.ok(nil, b.e.Delete(jobsDLQ.Name)) },
	} {
		b := newRedrive(t, 1, nil)
		var woken []func() int64
		for _, a := range []Address{dead(b.queue), dead(jobsDLQ)} {
			_, count := b.waiting(a, message.UUID{})
			woken = append(woken, count.Load)
		}
		_, direct := b.waiting(jobsDLQ, message.UUID{})
		b.change("orders", func(p *Properties) { p.UserMetadata = "x" })
		b.change("jobs", func(p *Properties) { p.LockDuration = time.Second })
		for i, want := range []int64{0, 1} {
			if i == 1 {
				change(b)
			}
			for _, count := range woken {
				if got := count(); got != want {
					t.Errorf("%s: %d wake-ups of who waits for dead letters, want %d", name, got, want)
				}
			}
		}
		if got, gone := direct.Load(), name == "no dead queue"; (got == 1) != gone {
			t.Errorf("%s: %d wake-ups of who waits at the dead-letter queue itself", name, got)
		}
	}
}

// A waiter that was woken for dead letters hands that on where they are, though the policy has
// come to name another queue.
func TestPassAfterAChange(t *testing.T) {
	b := newRedrive(t, 1, nil)
	b.create("other", nil)
	w, woken := b.waiting(dead(b.queue), message.UUID{})
	_, direct := b.waiting(jobsDLQ, message.UUID{})
	b.queue = jobsDLQ
	b.send("a")
	b.wantWoken(woken, 1, "a send")
	b.wantWoken(direct, 0, "a send")
	b.change("jobs", func(p *Properties) { p.Redrive.Target = "other" })
	w.Close()
	b.wantWoken(direct, 1, "the first has gone")
}

// A message that is moved to a dead-letter queue wakes who waits there.
func TestRedriveWakes(t *testing.T) {
	b := newRedrive(t, 1, nil)
	b.send("a")
	b.receive(b.queue)
	_, woken := b.waiters(jobsDLQ, 2)
	b.pass(time.Minute)
	b.wantBodies(b.queue)
	if got := woken(); got[0] != 1 || got[1] != 0 {
		t.Errorf("the waiters were woken %v times", got)
	}
}
