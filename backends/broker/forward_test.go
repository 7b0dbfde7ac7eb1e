package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dlq/backends/message"
)

// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-auto-forwarding
func TestForwarding(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, func(p *Properties) { p.DefaultTTL = time.Hour })
	b.make("start", Queue, func(p *Properties) { p.ForwardTo, p.AutoDeleteOnIdle = "end", 5*time.Minute })
	b.post("end", says("before"))
	m := says("a")
	m.TTL = new(2 * time.Hour)
	b.post("start", m)
	b.wantContents(Address{Name: "start"})
	page, err := b.e.Peek(Address{Name: "end"}, PeekOptions{Max: 10})
	if err != nil || len(page) != 2 {
		t.Fatal(page, err)
	}
	got := page[1].Broker
	if got.SequenceNumber != 2 || got.EnqueuedSequenceNumber != 1 || !got.ExpiresAt.Equal(b.now.Add(time.Hour)) {
		t.Errorf("forwarded as %+v, want number 2, source number 1, an hour to live", got)
	}
	b.pass(time.Hour)
	if _, err := b.e.Entity("start"); err != nil {
		t.Errorf("an entity that forwards is never idle: %v", err)
	}
}

// Each forward is a hop, and there are four at most.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-auto-forwarding#considerations
func TestForwardingHops(t *testing.T) {
	b := newBench(t)
	b.make("q6", Queue, nil)
	for n := 5; n >= 1; n-- {
		b.make(fmt.Sprint("q", n), Queue, func(p *Properties) { p.ForwardTo = fmt.Sprint("q", n+1) })
	}
	b.post("q2", says("four hops"))
	b.wantContents(Address{Name: "q6"}, "four hops/0")
	b.post("q1", says("five"))
	b.wantContents(Address{Name: "q6"}, "four hops/0")
	b.wantDead(transfer("q5"), cause{"MaxTransferHopCountExceeded", "The maximum number of allowed hops when forwarding between queues. Value is set to 4."})
	// A circle ends the same way.
	if err := b.e.Change("q6", func(p *Properties) error { p.ForwardTo = "q1"; return nil }); err != nil {
		t.Fatal(err)
	}
	b.post("q6", says("round and round"))
	var info Info
	total := int64(0)
	for n := 1; n <= 6; n++ {
		info, _ = b.e.Entity(fmt.Sprint("q", n))
		total += info.TransferDeadLetter
	}
	if total != 3 { // with the one that lay in q6
		t.Errorf("%d messages in transfer dead-letter queues, want 3", total)
	}
}

// The destination gives a new number and enqueued time, keeps the number of the source, and
// nothing is left there. The delivery count begins anew.
// Source: servicebus-wire.md section 10, "Auto-forward".
func TestForwardedMessageIsNew(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, nil)
	b.make("start", Queue, nil)
	for _, s := range []string{"x", "y", "a"} {
		b.post("start", says(s))
	}
	b.ok(b.e.SettleBySequence(at("start"), Outcome{Action: Complete}, 1, 2))
	b.settle(at("start"), Abandon, b.receive(at("start")))
	b.pass(time.Minute)
	b.change("start", func(p *Properties) { p.ForwardTo = "end" })
	b.crash()
	b.ok(nil, b.e.Tick())
	b.wantContents(at("start"))
	b.wantContents(at("end"), "a/0")
	got := b.peek(at("end"))[0].Broker
	if got.SequenceNumber != 1 || got.EnqueuedSequenceNumber != 3 || !got.EnqueuedTime.Equal(b.now) || got.DeadLetterSource != "" {
		t.Errorf("arrived as %+v", got)
	}
}

// What lay there before the entity forwarded, what was locked or scheduled then, follows, in
// order; what is deferred stays.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-auto-forwarding, "removes messages that are placed in the first queue".
func TestBacklogIsForwarded(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, nil)
	later := says("scheduled")
	later.ScheduledEnqueueTime = new(b.now.Add(time.Minute))
	b.send("locked", "a", "b", "deferred")
	b.post("orders", later)
	held := b.receive(b.queue)
	b.ok(b.e.SettleBySequence(b.queue, Outcome{Action: Defer}, 4))
	b.change("orders", func(p *Properties) { p.ForwardTo = "end" })
	b.ok(nil, b.e.Tick())
	b.wantContents(at("end"), "a/0", "b/0")
	b.settle(b.queue, Abandon, held)
	b.pass(time.Minute)
	b.wantContents(at("end"), "a/0", "b/0", "locked/0", "scheduled/0")
	b.wantContents(b.queue, "deferred/0")
}

// What is given back is forwarded at once, though the clock stands between two milliseconds.
func TestBacklogIsForwardedAtOnce(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, nil)
	b.send("a")
	held := b.receive(b.queue)
	b.change("orders", func(p *Properties) { p.ForwardTo = "end" })
	b.pass(time.Millisecond / 2)
	b.settle(b.queue, Abandon, held)
	if at, ok := b.e.Due(); !ok || at.After(b.now) {
		t.Errorf("the backlog is due at %v, and it is %v", at, b.now)
	}
	b.wantContents(at("end"), "a/0")
}

// A stop does not end the forwarding of a backlog, however large.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-auto-forwarding; reliability.md.
func TestBacklogSurvivesAStop(t *testing.T) {
	for name, stop := range map[string]func(*bench){"clean": (*bench).restart, "crash": (*bench).crash} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.make("end", Queue, nil)
			b.ok(refusals(b.e.Send(b.queue, slices.Repeat([]*message.Message{says("a")}, 2500))))
			b.change("orders", func(p *Properties) { p.ForwardTo = "end" })
			stop(b)
			for range 5 {
				b.pass(10 * time.Millisecond)
				b.ok(nil, b.e.Tick())
			}
			if there, here := b.info("end").Active, b.info("orders").Active; there != 2500 || here != 0 {
				t.Errorf("%d messages were forwarded, %d were not", there, here)
			}
		})
	}
}

// The name of a destination that is gone does not come to mean a subscription, which nothing
// else can send to.
func TestDestinationIsNoSubscription(t *testing.T) {
	b := newBench(t)
	b.make("news/all", Queue, nil)
	b.make("start", Queue, func(p *Properties) { p.ForwardTo = "news/all" })
	b.ok(nil, b.e.Delete("news/all"))
	b.make("news", Topic, nil)
	b.make("news/Subscriptions/all", Subscription, nil)
	b.post("start", says("a"))
	b.wantContents(at("news/all"))
	b.wantDead(transfer("start"), causeNoDestination("news/all"))
}

// A forwarded message has the time to live that it had left, or less where the destination
// says so.
// Source: servicebus-wire.md section 10, "TTL re-derived from remainder".
func TestTimeToLiveOfForwarded(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, nil)
	m := says("a")
	m.TTL = new(time.Hour)
	b.post("orders", m)
	b.pass(40 * time.Minute)
	b.change("orders", func(p *Properties) { p.ForwardTo = "end" })
	b.ok(nil, b.e.Tick())
	if got := b.peek(at("end"))[0].Broker.ExpiresAt; !got.Equal(epoch.Add(time.Hour)) {
		t.Errorf("expires at %v, want %v", got, epoch.Add(time.Hour))
	}
}

// Topics and subscriptions are links of a chain like queues; a topic's copies are no hop.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-auto-forwarding#considerations
func TestChainThroughTopics(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, nil)
	b.make("t1", Topic, nil)
	b.make("t2", Topic, nil)
	b.make("t2/Subscriptions/s", Subscription, func(p *Properties) { p.ForwardTo = "end" })
	b.make("t1/Subscriptions/s", Subscription, func(p *Properties) { p.ForwardTo = "t2" })
	b.make("start", Queue, func(p *Properties) { p.ForwardTo = "t1" })
	b.post("start", says("a")) // three hops
	b.wantContents(at("end"), "a/0")
	if got := b.peek(at("end"))[0].Broker.EnqueuedSequenceNumber; got != 1 {
		t.Errorf("the number at the source is %d, want that in t2/s", got)
	}
	for _, name := range []string{"start", "t1/s", "t2/s"} {
		b.wantContents(at(name))
	}
}

// The fifth hop of a dead letter counts like any other; a forwarded dead letter has hops left
// from where it died.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-auto-forwarding#considerations
func TestHopsOfDeadLetters(t *testing.T) {
	b := newBench(t)
	b.make("grave", Queue, nil)
	b.make("q4", Queue, func(p *Properties) { p.ForwardDeadLettersTo = "grave" })
	b.make("q5", Queue, func(p *Properties) { p.ForwardDeadLettersTo = "grave" })
	b.make("q3", Queue, func(p *Properties) { p.ForwardTo = "q4" })
	b.make("q2", Queue, func(p *Properties) { p.ForwardTo = "q3" })
	b.make("q1", Queue, func(p *Properties) { p.ForwardTo = "q2" })
	b.post("q1", says("a"))
	b.ok(b.e.SettleBySequence(at("q4"), Outcome{Action: Bury, Reason: "why"}, 1))
	b.wantContents(at("grave"), "a/0") // the fourth hop
	b.change("q4", func(p *Properties) { p.ForwardTo = "q5" })
	b.post("q1", says("b"))
	b.ok(b.e.SettleBySequence(at("q5"), Outcome{Action: Bury, Reason: "why"}, 1))
	b.wantContents(at("grave"), "a/0")
	b.wantDead(transfer("q5"), cause{"why", ""})
}

// A destination must exist when it is set and cannot be the entity itself, a subscription or
// one with sessions at the source. It may be deleted later, and the rest of the source can
// still be changed then.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-auto-forwarding#considerations
func TestDestinationIsChecked(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/s", Subscription, nil)
	for _, name := range []string{"nowhere", "ORDERS", "topic/Subscriptions/s"} {
		for _, set := range []func(*Properties){
			func(p *Properties) { p.ForwardTo = name },
			func(p *Properties) { p.ForwardDeadLettersTo = name },
		} {
			b.want(b.e.Change("orders", func(p *Properties) error { set(p); return nil }), ErrInvalid)
			if name != "ORDERS" {
				b.want(b.e.Create("new", Queue, defaultsWith(set)), ErrInvalid)
			}
		}
	}
	b.want(b.e.Create("new", Queue, defaultsWith(func(p *Properties) { p.ForwardTo, p.RequiresSession = "orders", true })), ErrInvalid)
	b.make("sessions", Queue, func(p *Properties) { p.RequiresSession = true })
	b.make("start", Queue, func(p *Properties) { p.ForwardTo = "sessions" })
	b.ok(nil, b.e.Delete("sessions"))
	b.change("start", func(p *Properties) { p.UserMetadata = "still mine" })
}

// A message of a session reaches a destination with sessions.
// Source: servicebus-wire.md section 10, "not from session entities (dest may be)".
func TestForwardToSessions(t *testing.T) {
	b, a := newSessions(t)
	b.make("start", Queue, func(p *Properties) { p.ForwardTo = "sessions" })
	b.post("start", inSession("s", "a"))
	if got := bodies(b.takeWith(a, ReceiveOptions{Session: b.accept(a, nil).Token})); !slices.Equal(got, []string{"a"}) {
		t.Errorf("received %v", got)
	}
}

// What cannot be forwarded lies in the transfer dead-letter queue for good: the destination
// that comes back does not bring it.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-auto-forwarding#considerations
func TestTransferDeadLettersStay(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, nil)
	b.make("start", Queue, func(p *Properties) { p.ForwardTo, p.DefaultTTL = "end", time.Minute })
	b.change("end", func(p *Properties) { p.Status = Disabled })
	b.post("start", says("a"))
	b.change("end", func(p *Properties) { p.Status = Enabled })
	b.pass(1000 * time.Hour)
	b.receive(at("start"))
	b.post("start", says("b"))
	b.wantContents(at("end"), "b/0")
	b.wantDead(transfer("start"), causeDestinationDisabled("end"))
	b.wantContents(dead(at("start")))
}

// A destination that only takes nothing out, or is short of room by a byte, is told apart from
// one that takes nothing in.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/entity-suspend
func TestForwardToReceiveDisabled(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, func(p *Properties) { p.Status = ReceiveDisabled })
	b.make("start", Queue, func(p *Properties) { p.ForwardTo = "end" })
	b.post("start", says("a"))
	size := b.info("end").Size
	b.change("end", func(p *Properties) { p.Status, p.MaxSize = Enabled, 3*size-1 })
	b.post("start", says("b"))
	b.post("start", says("c"))
	b.wantContents(at("end"), "a/0", "b/0")
	b.wantDead(transfer("start"), causeDestinationFull("end"))
}
