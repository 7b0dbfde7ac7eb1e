package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dlq/backends/message"
)

func dead(a Address) Address { return Address{Name: a.Name, Sub: DeadLetter} }

func transfer(name string) Address { return Address{Name: name, Sub: TransferDeadLetter} }

// wantDead compares the reasons and descriptions of what a sub-queue holds.
func (b *bench) wantDead(a Address, want ...cause) []*message.Message {
	b.Helper()
	page, err := b.e.Peek(a, PeekOptions{Max: 100})
	if err != nil {
		b.Fatal(err)
	}
	var got []cause
	for _, m := range page {
		got = append(got, cause{m.DeadLetterReason(), m.DeadLetterDescription()})
	}
	if !slices.Equal(got, want) {
		b.Errorf("%s/%d holds dead letters of %q, want %q", a.Name, a.Sub, got, want)
	}
	return page
}

// A message is delivered exactly MaxDeliveryCount times; the abandon that makes the count
// reach it moves the message, in that commit.
// Source: service-bus-dead-letter-queues, "Maximum delivery count".
func TestAbandonMovesAtTheMaximum(t *testing.T) {
	b := newBench(t)
	b.send("a")
	for range 3 {
		b.settle(b.queue, Abandon, b.receive(b.queue))
	}
	b.crash() // the acknowledged abandon was the move
	b.wantContents(b.queue)
	b.wantContents(dead(b.queue), "a/3")
	m := b.receive(dead(b.queue))
	if r, d := m.DeadLetterReason(), m.DeadLetterDescription(); r != "MaxDeliveryCountExceeded" || d != "Message could not be consumed after 3 delivery attempts." {
		t.Errorf("reason %q, description %q", r, d)
	}
}

// An expired lock is a failed delivery, at the time it expires and not when one looks.
func TestExpiryCountsAndMoves(t *testing.T) {
	b := newBench(t)
	b.send("a")
	for i := range 3 {
		b.receive(b.queue)
		b.now = b.now.Add(time.Minute - time.Millisecond)
		b.wantContents(b.queue, fmt.Sprintf("a/%d", i)) // never early
		b.now = b.now.Add(time.Millisecond)
	}
	b.wantContents(b.queue)
	b.wantContents(dead(b.queue), "a/3")
}

// In a dead-letter sub-queue neither abandon nor expiry counts, and nothing moves.
func TestDeadLettersAreNotCounted(t *testing.T) {
	b := newBench(t)
	b.send("a")
	b.ok(b.e.Settle(b.queue, Outcome{Action: Bury, Reason: "r"}, b.receive(b.queue).Broker.LockToken))
	for range 5 {
		b.settle(dead(b.queue), Abandon, b.receive(dead(b.queue)))
		b.receive(dead(b.queue))
		b.now = b.now.Add(time.Hour)
	}
	b.wantContents(dead(b.queue), "a/0")
}

// Dead-lettering keeps number, enqueued time and count, sets reason and description, and the
// sub-queue can be neither created nor deleted nor sent to, nor dead-letter again.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues
func TestDeadLetterQueueIsASubQueue(t *testing.T) {
	b := newBench(t)
	b.send("a")
	m := b.receive(b.queue)
	o := Outcome{Action: Bury, Reason: "why", Description: "how", Set: []message.Attribute{{Name: "extra", Value: message.Int(1)}}}
	b.ok(b.e.Settle(b.queue, o, m.Broker.LockToken))
	got := b.wantDead(dead(b.queue), cause{"why", "how"})[0]
	if v, _ := got.Properties.Get("extra"); v != message.Int(1) || got.Broker.SequenceNumber != m.Broker.SequenceNumber || !got.Broker.EnqueuedTime.Equal(m.Broker.EnqueuedTime) {
		t.Errorf("dead-lettered as %+v with extra %v", got.Broker, v)
	}
	if _, err := b.e.Send(dead(b.queue), []*message.Message{says("b")}); !errors.Is(err, ErrInvalid) {
		t.Errorf("send to it: %v", err)
	}
	if err := b.e.Create("orders/$DeadLetterQueue", Queue, Defaults(Queue, ServiceBus)); !errors.Is(err, ErrInvalid) {
		t.Errorf("create it: %v", err)
	}
	if err := b.e.Delete("orders/$DeadLetterQueue"); !errors.Is(err, ErrNoEntity) {
		t.Errorf("delete it: %v", err)
	}
	again := b.receive(dead(b.queue))
	if errs, err := b.e.Settle(dead(b.queue), Outcome{Action: Bury}, again.Broker.LockToken); err != nil || !errors.Is(errs[0], ErrInvalid) {
		t.Errorf("dead-letter it again: %v, %v", errs, err)
	}
	x := b.e.Begin() // it takes part in transactions
	if errs, err := x.Settle(dead(b.queue), Outcome{Action: Complete}, again.Broker.LockToken); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	if err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	b.wantDead(dead(b.queue))
}

// Source: https://learn.microsoft.com/azure/service-bus-messaging/enable-dead-letter
func TestForwardDeadLetters(t *testing.T) {
	b := newBench(t)
	b.make("graveyard", Queue, nil)
	b.make("q", Queue, func(p *Properties) { p.ForwardDeadLettersTo, p.MaxDeliveryCount = "graveyard", 1 })
	b.post("q", says("a"))
	b.settle(Address{Name: "q"}, Abandon, b.receive(Address{Name: "q"}))
	b.wantDead(dead(Address{Name: "q"}))
	m := b.wantDead(Address{Name: "graveyard"}, causeDeliveries(1))[0]
	if m.Broker.DeadLetterSource != "q" || m.Broker.DeliveryCount != 0 || m.Broker.EnqueuedSequenceNumber != 1 {
		t.Errorf("arrived as %+v", m.Broker)
	}
	// A destination that is gone: the transfer dead-letter queue, with the reason it died of.
	if err := b.e.Delete("graveyard"); err != nil {
		t.Fatal(err)
	}
	b.post("q", says("b"))
	b.settle(Address{Name: "q"}, Abandon, b.receive(Address{Name: "q"}))
	b.wantDead(transfer("q"), causeDeliveries(1))
}

// What cannot be delivered lies in the transfer dead-letter queue of the source.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#sending-to-a-disabled-or-full-entity
func TestTransferDeadLetterQueue(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, nil)
	b.make("start", Queue, func(p *Properties) { p.ForwardTo = "end" })
	set := func(f func(*Properties)) {
		t.Helper()
		if err := b.e.Change("end", func(p *Properties) error { f(p); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	set(func(p *Properties) { p.Status = SendDisabled })
	b.post("start", says("a"))
	set(func(p *Properties) { p.Status, p.MaxSize = Enabled, 1 })
	b.post("start", says("b"))
	if err := b.e.Delete("end"); err != nil {
		t.Fatal(err)
	}
	b.post("start", says("c"))
	b.crash()
	page := b.wantDead(transfer("start"), causeDestinationDisabled("end"), causeDestinationFull("end"), causeNoDestination("end"))
	if info, err := b.e.Entity("start"); err != nil || info.TransferDeadLetter != 3 || info.Active != 0 || info.DeadLetter != 0 {
		t.Errorf("counts %+v, %v", info, err)
	}
	held := b.receive(transfer("start")) // it is under peek-lock like any other
	b.settle(transfer("start"), Complete, held)
	b.wantContents(transfer("start"), "b/0", "c/0")
	if got := page[0].Broker.SequenceNumber; got != 1 {
		t.Errorf("number %d, want that of the source", got)
	}
}

// Application properties have at most 64 KB when they are sent, and with what is added on the
// way; session entities take nothing without a session.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues
func TestRefusedOnTheWay(t *testing.T) {
	b := newBench(t)
	b.make("sessions", Queue, func(p *Properties) { p.RequiresSession = true })
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/grows", Subscription, nil, Rule{Name: "r", Action: "SET more = '" + strings.Repeat("x", 900) + "'"})
	b.make("topic/Subscriptions/sessions", Subscription, func(p *Properties) { p.RequiresSession = true })
	b.make("start", Queue, func(p *Properties) { p.ForwardTo = "sessions" })

	large := says("large")
	large.Properties.Set("p", message.String(strings.Repeat("x", maxProperties)))
	if sent, err := b.e.Send(b.queue, []*message.Message{large}); err != nil || !errors.Is(sent[0].Err, ErrTooLarge) {
		t.Errorf("a send over 64 KB: %v, %v", sent, err)
	}
	if sent, err := b.e.Send(Address{Name: "sessions"}, []*message.Message{says("a")}); err != nil || !errors.Is(sent[0].Err, ErrInvalid) {
		t.Errorf("a send without a session: %v, %v", sent, err)
	}
	almost := inSession("s", "almost")
	almost.Properties.Set("p", message.String(strings.Repeat("x", maxProperties-100)))
	b.post("topic", almost)
	b.wantDead(dead(Address{Name: "topic/grows"}), cause{"HeaderSizeExceeded", "The size quota for this stream has been exceeded."})
	b.post("topic", says("b"))
	b.post("start", says("c"))
	noSession := cause{"Session ID is null.", "Session enabled entity doesn't allow a message whose session identifier is null."}
	b.wantDead(dead(Address{Name: "topic/sessions"}), noSession)
	b.wantDead(dead(Address{Name: "start"}), noSession)
}

// The loop of the documentation, receive and abandon until nothing comes, ends with an empty
// queue, and each message was delivered exactly MaxDeliveryCount times.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#maximum-delivery-count
func TestReceiveAndAbandonLoopEnds(t *testing.T) {
	for _, most := range []int{1, 2, 10} {
		b := newBench(t)
		b.change("orders", func(p *Properties) { p.MaxDeliveryCount = most })
		b.send("a", "b")
		deliveries := 0
		for m := b.receive(b.queue); m != nil && deliveries < 100; m = b.receive(b.queue) {
			deliveries++
			b.settle(b.queue, Abandon, m)
		}
		if deliveries != 2*most {
			t.Errorf("MaxDeliveryCount %d: %d deliveries of two messages", most, deliveries)
		}
		b.wantContents(b.queue)
		b.wantDead(dead(b.queue), causeDeliveries(most), causeDeliveries(most))
	}
}

// Neither receive, renew, release, peek, defer nor settlement by a lost token counts a delivery.
// Source: servicebus-wire.md section 10, "Delivery count".
func TestWhatCountsNoDelivery(t *testing.T) {
	b := newBench(t)
	b.change("orders", func(p *Properties) { p.MaxDeliveryCount = 1 })
	b.send("a")
	for range 5 {
		m := b.receive(b.queue)
		b.ok(b.e.Renew(b.queue, m.Broker.LockToken))
		b.peek(b.queue)
		b.ok(nil, b.e.Release(b.queue, m.Broker.LockToken))
		b.wantRefused(ErrLockLost, ignoring(b.e.Settle(b.queue, Outcome{Action: Abandon}, m.Broker.LockToken)), nil)
	}
	b.settle(b.queue, Defer, b.receive(b.queue))
	b.wantContents(b.queue, "a/0")
	b.wantContents(dead(b.queue))
}

// The message moves when the count reaches the maximum, at the time that the lock expires, with
// nobody there to receive; a restart in between changes nothing.
// Source: servicebus-wire.md section 10, "Delivery count".
func TestExpiryMovesByItself(t *testing.T) {
	b := newBench(t)
	b.change("orders", func(p *Properties) { p.MaxDeliveryCount = 1 })
	b.send("a")
	b.receive(b.queue)
	b.restart()
	if at, ok := b.e.Due(); !ok || !at.Equal(epoch.Add(time.Minute)) {
		t.Errorf("due at %v, %t", at, ok)
	}
	b.pass(time.Minute)
	b.ok(nil, b.e.Tick())
	if info := b.info("orders"); info.Active != 0 || info.DeadLetter != 1 {
		t.Errorf("counts %+v", info)
	}
}

// A maximum that was lowered holds at the next failure; nothing moves by the change alone.
// Source: servicebus-wire.md section 10, "when an increment makes it reach".
func TestMaximumIsLowered(t *testing.T) {
	b := newBench(t)
	b.change("orders", func(p *Properties) { p.MaxDeliveryCount = 10 })
	b.send("a")
	for range 4 {
		b.settle(b.queue, Abandon, b.receive(b.queue))
	}
	b.change("orders", func(p *Properties) { p.MaxDeliveryCount = 2 })
	b.wantContents(b.queue, "a/4")
	b.settle(b.queue, Abandon, b.receive(b.queue))
	b.wantDead(dead(b.queue), causeDeliveries(2))
}

// An application's dead letter keeps its count and has the reason and description that it was
// given, up to 4,096 characters each, or none.
// Source: servicebus-wire.md section 10, "DLQ"; section 5, "rejected without error".
func TestApplicationDeadLetters(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("ä", 4096)
	for _, c := range []cause{{"InvalidOperationException", "at Orders.Handle()"}, {}, {long, long}} {
		b.send("a")
		b.settle(b.queue, Abandon, b.receive(b.queue))
		b.ok(b.e.Settle(b.queue, Outcome{Action: Bury, Reason: c.reason, Description: c.description}, b.receive(b.queue).Broker.LockToken))
		b.wantContents(dead(b.queue), "a/1")
		got := b.wantDead(dead(b.queue), c)[0]
		if _, there := got.Properties.Get(message.DeadLetterReasonProperty); there != (c.reason != "") {
			t.Errorf("reason %q: property there: %t", c.reason, there)
		}
		b.settle(dead(b.queue), Complete, b.receive(dead(b.queue)))
	}
	b.send("a")
	m := b.receive(b.queue)
	b.wantRefused(ErrInvalid, ignoring(b.e.Settle(b.queue, Outcome{Action: Bury, Reason: long + "x"}, m.Broker.LockToken)), nil)
	b.settle(b.queue, Complete, m) // the refusal left it locked
}

// The sub-queue is under peek-lock like any queue: exclusive, renewable, deferrable, to be
// received by number and received and deleted. Its locks last as long as those of the entity.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#the-dead-letter-queue
func TestSubQueuesHavePeekLock(t *testing.T) {
	b := newBench(t)
	b.make("start", Queue, func(p *Properties) { p.ForwardTo = "orders" })
	b.change("orders", func(p *Properties) { p.Status = SendDisabled })
	for _, s := range []string{"a", "b", "c"} {
		b.post("start", says(s))
	}
	b.change("orders", func(p *Properties) { p.Status = Enabled })
	b.send("a", "b", "c")
	b.ok(b.e.SettleBySequence(b.queue, Outcome{Action: Bury}, 1, 2, 3))
	for _, a := range []Address{dead(b.queue), transfer("start")} {
		x, y := b.receive(a), b.receive(a)
		if string(x.Body.Bytes())+string(y.Body.Bytes()) != "ab" || !x.Broker.LockedUntil.Equal(b.now.Add(time.Minute)) {
			t.Errorf("received %s and %s, locked until %v", x.Body.Bytes(), y.Body.Bytes(), x.Broker.LockedUntil)
		}
		b.ok(b.e.Renew(a, x.Broker.LockToken))
		b.settle(a, Defer, x)
		deferred, err := b.e.ReceiveDeferred(a, ReceiveOptions{}, x.Broker.SequenceNumber)
		if err != nil {
			t.Fatal(err)
		}
		b.settle(a, Complete, deferred[0])
		b.settle(a, Abandon, y)
		if got := bodies(b.takeWith(a, ReceiveOptions{Max: 5, Delete: true})); !slices.Equal(got, []string{"b", "c"}) {
			t.Errorf("received and deleted %v", got)
		}
		b.crash()
		b.wantContents(a)
	}
}

// Nothing can be sent to a sub-queue, scheduled in it or moved to it, and neither sub-queue can
// be created, changed or deleted on its own; a dead letter cannot be dead-lettered.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#the-dead-letter-queue
func TestSubQueuesAreNotEntities(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	b.ok(b.e.SettleBySequence(b.queue, Outcome{Action: Bury}, 1))
	for _, a := range []Address{dead(b.queue), transfer("orders")} {
		_, err := b.e.Send(a, []*message.Message{says("c")})
		b.want(err, ErrInvalid)
		b.want(b.e.ValidateSend(a, says("c")), ErrInvalid)
		_, err = b.e.Route(a, says("c"))
		b.want(err, ErrInvalid)
		_, err = b.e.Begin().Send(a, nil, []*message.Message{says("c")})
		b.want(err, ErrInvalid)
		b.wantRefused(ErrInvalid, ignoring(b.e.Move(b.queue, []Move{{Seq: 2, To: a, As: says("b")}})), nil)
		_, err = b.e.SettleBySequence(a, Outcome{Action: Bury}, 1)
		b.want(err, ErrInvalid)
		_, err = b.e.AcceptSession(a, nil)
		b.want(err, ErrUnsupported)
	}
	for _, name := range []string{"orders/$DeadLetterQueue", "orders/$Transfer/$DeadLetterQueue"} {
		b.want(b.e.Create(name, Queue, Defaults(Queue, ServiceBus)), ErrInvalid)
		b.want(b.e.Change(name, func(*Properties) error { return nil }), ErrNoEntity)
		b.want(b.e.Delete(name), ErrNoEntity)
	}
	b.wantContents(dead(b.queue), "a/0")
}

// Nothing cleans a dead-letter queue up: no time to live, no idle time of its own.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#the-dead-letter-queue
func TestDeadLettersStay(t *testing.T) {
	b := newBench(t)
	b.change("orders", func(p *Properties) { p.DefaultTTL, p.DeadLetterOnExpiration = time.Second, true })
	b.send("a")
	b.pass(time.Second)
	if m := b.receive(b.queue); m != nil {
		t.Fatalf("received %s after its time", m.Body.Bytes())
	}
	for range 3 {
		b.pass(5000 * time.Hour)
		m := b.receive(dead(b.queue))
		if m == nil || !m.Broker.ExpiresAt.IsZero() {
			t.Fatalf("the dead letter is %+v", m)
		}
		b.settle(dead(b.queue), Abandon, m)
		b.restart()
	}
	b.wantDead(dead(b.queue), causeExpired)
}

// A topic has no dead-letter queue; a subscription has.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#dlq-message-count
func TestTopicHasNoDeadLetters(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/s", Subscription, nil)
	_, err := b.e.Receive(dead(at("topic")), ReceiveOptions{})
	b.want(err, ErrNoEntity)
	b.post("topic", says("a"))
	b.ok(b.e.Settle(at("topic/s"), Outcome{Action: Bury, Reason: "r"}, b.receive(at("topic/s")).Broker.LockToken))
	b.wantDead(dead(at("topic/s")), cause{"r", ""})
	if info := b.info("topic"); !info.Summed || info.DeadLetter != 1 {
		t.Errorf("the topic counts %+v", info)
	}
}

// The texts, letter by letter: people filter on them.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#moving-messages-to-the-dlq
func TestReasonTexts(t *testing.T) {
	for got, want := range map[cause]cause{
		causeExpired:        {"TTLExpiredException", "The message expired and was dead lettered."},
		causeHeaderSize:     {"HeaderSizeExceeded", "The size quota for this stream has been exceeded."},
		causeNoSession:      {"Session ID is null.", "Session enabled entity doesn't allow a message whose session identifier is null."},
		causeHops:           {"MaxTransferHopCountExceeded", "The maximum number of allowed hops when forwarding between queues. Value is set to 4."},
		causeDeliveries(10): {"MaxDeliveryCountExceeded", "Message could not be consumed after 10 delivery attempts."},
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Dead letters of every cause go where the entity forwards them: those that the application and
// the broker made, and those that never came in.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/enable-auto-forward; servicebus-wire.md section 10, "With ForwardDeadLetteredMessagesTo".
func TestEveryDeadLetterIsForwarded(t *testing.T) {
	b := newBench(t)
	b.make("graveyard", Queue, nil)
	to := func(p *Properties) { p.ForwardDeadLettersTo, p.MaxDeliveryCount = "graveyard", 1 }
	b.make("q", Queue, func(p *Properties) { to(p); p.DeadLetterOnExpiration = true })
	b.make("sessions", Queue, func(p *Properties) { p.RequiresSession = true })
	b.make("forwards", Queue, func(p *Properties) { to(p); p.ForwardTo = "sessions" })
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/fails", Subscription, to, Rule{Name: "r", Filter: Filter{Kind: SQLFilter, SQL: "10 / n = 5"}})
	b.make("topic/Subscriptions/sessions", Subscription, func(p *Properties) { to(p); p.RequiresSession = true })

	buried := func(source string, seq int64, reason string) {
		t.Helper()
		page := b.peek(at("graveyard"))
		got := page[len(page)-1]
		if got.Broker.DeadLetterSource != source || got.Broker.EnqueuedSequenceNumber != seq || got.DeadLetterReason() != reason {
			t.Errorf("buried %q from %q, number %d there; want %q, %q, %d", got.DeadLetterReason(), got.Broker.DeadLetterSource, got.Broker.EnqueuedSequenceNumber, reason, source, seq)
		}
		b.wantContents(dead(at(source)))
	}
	b.post("q", says("a"))
	b.settle(at("q"), Bury, b.receive(at("q")))
	buried("q", 1, "")
	short := says("b")
	short.TTL = new(time.Second)
	b.post("q", short)
	b.pass(time.Second)
	b.receive(at("q"))
	buried("q", 2, "TTLExpiredException")
	b.post("forwards", says("c"))
	buried("forwards", 1, "Session ID is null.")

	zero := says("d")
	zero.Properties.Set("n", message.Int(0))
	b.post("topic", zero)
	if got := len(b.peek(at("graveyard"))); got != 5 {
		t.Errorf("%d messages are buried, want those of both subscriptions, too", got)
	}
	b.wantContents(dead(at("topic/fails")))
	b.wantContents(dead(at("topic/sessions")))
}

// What was dead-lettered and cannot be forwarded keeps the reason that it died of.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#dead-lettering-in-auto-forward-scenarios
func TestDeadLetterCannotBeForwarded(t *testing.T) {
	b := newBench(t)
	b.make("graveyard", Queue, func(p *Properties) { p.RequiresSession = true })
	b.make("q", Queue, func(p *Properties) { p.ForwardDeadLettersTo = "graveyard" })
	b.post("q", says("a"))
	b.ok(b.e.SettleBySequence(at("q"), Outcome{Action: Bury, Reason: "why"}, 1))
	b.wantDead(dead(at("q")), cause{"why", ""}) // it has no session
	b.change("graveyard", func(p *Properties) { p.Status = Disabled })
	b.post("q", inSession("s", "b"))
	b.ok(b.e.SettleBySequence(at("q"), Outcome{Action: Bury, Reason: "why"}, 2))
	b.wantDead(transfer("q"), cause{"why", ""})
}

// Application properties may have 64 KB when they are sent, to a queue or a topic, and not a
// byte more; what an abandon added counts on the way, once.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
func TestPropertiesHave64KB(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("graveyard", Queue, nil)
	b.make("q", Queue, func(p *Properties) { p.ForwardDeadLettersTo = "graveyard" })
	sized := func(n int) *message.Message {
		m := says("a")
		m.Properties.Set("p", message.String(strings.Repeat("x", n-1)))
		return m
	}
	for _, name := range []string{"orders", "topic"} {
		b.post(name, sized(64<<10))
		b.wantRefused(ErrTooLarge, ignoring(refusals(b.e.Send(at(name), []*message.Message{sized(64<<10 + 1)}))), nil)
	}
	o := Outcome{Action: Bury, Description: strings.Repeat("d", 4096-len(message.DeadLetterDescriptionProperty))}
	b.post("q", sized(60<<10))
	b.ok(b.e.SettleBySequence(at("q"), o, 1))
	b.wantContents(at("graveyard"), "a/0")
	b.post("q", sized(60<<10+1))
	b.ok(b.e.SettleBySequence(at("q"), o, 2))
	b.wantContents(at("graveyard"), "a/0")
	b.wantContents(dead(at("q")), "a/0") // a byte too many
}
