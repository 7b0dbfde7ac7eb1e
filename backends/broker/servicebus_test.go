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

// The rules of Service Bus entities, a test each. What the bench calls "orders" dead-letters
// at the third failed delivery.

// make creates an entity of Service Bus. change may be nil.
func (b *bench) make(name string, kind Kind, change func(*Properties), rules ...Rule) {
	b.Helper()
	p := Defaults(kind, ServiceBus)
	if change != nil {
		change(&p)
	}
	if err := b.e.Create(name, kind, p, rules...); err != nil {
		b.Fatal(err)
	}
}

// post sends one message and returns its number.
func (b *bench) post(name string, m *message.Message) int64 {
	b.Helper()
	sent, err := b.e.Send(Address{Name: name}, []*message.Message{m})
	if err != nil || sent[0].Err != nil {
		b.Fatalf("send to %s: %v, %v", name, err, sent)
	}
	return sent[0].Seq
}

func says(text string) *message.Message {
	return &message.Message{ID: message.String(text), Body: message.DataBody([]byte(text))}
}

func inSession(id, text string) *message.Message {
	m := says(text)
	m.SessionID = &id
	return m
}

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

func transfer(name string) Address { return Address{Name: name, Sub: TransferDeadLetter} }

// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration
func TestTimeToLive(t *testing.T) {
	for name, c := range map[string]struct {
		message, entity time.Duration
		lives           time.Duration
	}{
		"of the message": {message: time.Minute, lives: time.Minute},
		"of the entity":  {entity: time.Minute, lives: time.Minute},
		"the lesser":     {message: time.Hour, entity: time.Minute, lives: time.Minute},
		"none":           {lives: 1000 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.make("q", Queue, func(p *Properties) { p.DefaultTTL, p.DeadLetterOnExpiration = c.entity, true })
			m := says("a")
			if c.message > 0 {
				m.TTL = &c.message
			}
			b.post("q", m)
			b.pass(c.lives - time.Millisecond)
			if got := b.receive(Address{Name: "q"}); got == nil {
				t.Fatal("it is gone a millisecond too early")
			} else if err := b.e.Release(Address{Name: "q"}, got.Broker.LockToken); err != nil {
				t.Fatal(err)
			}
			if c.message+c.entity == 0 {
				return
			}
			b.pass(time.Millisecond)
			b.wantDead(dead(Address{Name: "q"})) // nobody has received: it moves only then
			if got := b.receive(Address{Name: "q"}); got != nil {
				t.Errorf("received %v after its time", got.ID)
			}
			b.wantDead(dead(Address{Name: "q"}), cause{"TTLExpiredException", "The message expired and was dead lettered."})
		})
	}
}

// Without dead-lettering what expires is removed; locked and deferred messages do not expire,
// and nothing does in a dead-letter queue.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration
func TestWhatDoesNotExpire(t *testing.T) {
	b := newBench(t)
	for _, s := range []string{"removed", "locked", "deferred", "dead"} {
		m := says(s)
		m.TTL = new(time.Minute)
		b.post("orders", m)
	}
	if _, err := b.e.SettleBySequence(b.queue, Outcome{Action: Defer}, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.SettleBySequence(b.queue, Outcome{Action: Bury}, 4); err != nil {
		t.Fatal(err)
	}
	b.pass(30 * time.Second)
	held := b.takeWith(b.queue, ReceiveOptions{Max: 1, After: 1})
	b.pass(45 * time.Second)
	if got := b.receive(b.queue); got != nil {
		t.Errorf("received %v, which had expired", got.ID)
	}
	b.wantContents(b.queue, "locked/0", "deferred/0")
	b.wantContents(dead(b.queue), "dead/0")
	b.settle(b.queue, Abandon, held[0]) // no longer locked, it expires like any other
	if got := b.receive(b.queue); got != nil {
		t.Errorf("received %v, which had expired", got.ID)
	}
	b.wantContents(b.queue, "deferred/0")
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

// Properties to modify become application properties.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-transfers-locks-settlement
func TestAbandonModifiesProperties(t *testing.T) {
	b := newBench(t)
	b.send("a")
	m := b.receive(b.queue)
	b.ok(b.e.Settle(b.queue, Outcome{Action: Abandon, Set: []message.Attribute{{Name: "tries", Value: message.Int(1)}}}, m.Broker.LockToken))
	b.crash()
	if v, _ := b.receive(b.queue).Properties.Get("tries"); v != message.Int(1) {
		t.Errorf("tries is %v", v)
	}
}

// A lock belongs to its token and its queue, and a lost one changes nothing.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-transfers-locks-settlement#peeklock
func TestLostLockChangesNothing(t *testing.T) {
	b := newBench(t)
	b.make("other", Queue, nil)
	b.send("a", "b")
	m, next := b.receive(b.queue), b.receive(b.queue)
	if string(next.Body.Bytes()) != "b" {
		t.Errorf("the second receiver got %s, want the next message", next.Body.Bytes())
	}
	lost := func(a Address, token message.UUID) {
		t.Helper()
		for _, action := range []Action{Complete, Abandon, Defer, Bury} {
			if errs, err := b.e.Settle(a, Outcome{Action: action}, token); err != nil || !errors.Is(errs[0], ErrLockLost) {
				t.Errorf("settle: %v, %v", errs, err)
			}
		}
		if errs, err := b.e.Renew(a, token); err != nil || !errors.Is(errs[0], ErrLockLost) {
			t.Errorf("renew: %v, %v", errs, err)
		}
	}
	lost(Address{Name: "other"}, m.Broker.LockToken)
	lost(dead(b.queue), m.Broker.LockToken)
	b.settle(b.queue, Complete, next)
	lost(b.queue, next.Broker.LockToken)
	b.pass(time.Minute)
	lost(b.queue, m.Broker.LockToken)
	b.wantContents(b.queue, "a/1") // the expiry, and nothing else
	if again := b.receive(b.queue); again == nil || again.Broker.LockToken == m.Broker.LockToken {
		t.Error("a message that is locked again has the old token")
	}
}

// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-deferral
func TestDeferred(t *testing.T) {
	b := newBench(t)
	b.send("a", "b")
	b.settle(b.queue, Defer, b.receive(b.queue))
	if m := b.receive(b.queue); string(m.Body.Bytes()) != "b" {
		t.Fatalf("received %s, want b: a is deferred", m.Body.Bytes())
	}
	if _, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 1, 2); !errors.Is(err, ErrNoMessage) {
		t.Errorf("one that is not deferred: %v", err)
	}
	got, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 1)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if _, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 1); !errors.Is(err, ErrLocked) {
		t.Errorf("one that is locked: %v", err)
	}
	b.settle(b.queue, Abandon, got[0]) // stays deferred, and counts
	got, err = b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 1)
	if err != nil || got[0].Broker.DeliveryCount != 1 || got[0].Broker.SequenceNumber != 1 {
		t.Errorf("again: %+v, %v", got, err)
	}
	b.settle(b.queue, Complete, got[0])
}

// What is received and deleted is gone when the call returns, whatever happens.
func TestReceiveAndDelete(t *testing.T) {
	b := newBench(t)
	b.send("a", "b", "c")
	if got := bodies(b.takeWith(b.queue, ReceiveOptions{Max: 2, Delete: true})); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("received %v", got)
	}
	b.crash()
	b.wantContents(b.queue, "c/0")
}

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

// One copy for all rules without an action that match, one for each with an action; nothing
// where none matches.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/topic-filters
func TestTopic(t *testing.T) {
	b := newBench(t)
	sql := func(s string) Filter { return Filter{Kind: SQLFilter, SQL: s} }
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/all", Subscription, nil)
	b.make("topic/Subscriptions/none", Subscription, nil, Rule{Name: "r", Filter: Filter{Kind: FalseFilter}})
	b.make("topic/Subscriptions/several", Subscription, nil,
		Rule{Name: "plain1", Filter: sql("n > 1")}, Rule{Name: "plain2", Filter: sql("n > 2")},
		Rule{Name: "act1", Filter: sql("n > 3"), Action: "SET n = 0; REMOVE x"}, Rule{Name: "act2", Action: "SET sys.Label = 'changed'"})
	b.make("topic/Subscriptions/correlated", Subscription, nil, Rule{Name: "r", Filter: Filter{Kind: CorrelationFilter, Correlation: correlation("n", message.Int(5))}})
	m := says("a")
	m.Properties = message.Properties{{Name: "n", Value: message.Int(5)}, {Name: "x", Value: message.String("y")}}
	b.post("topic", m)
	b.crash() // rules and copies are kept

	b.wantContents(Address{Name: "topic/all"}, "a/0")
	b.wantContents(Address{Name: "topic/none"})
	b.wantContents(Address{Name: "topic/correlated"}, "a/0")
	page, err := b.e.Peek(Address{Name: "topic/several"}, PeekOptions{Max: 10})
	if err != nil || len(page) != 3 {
		t.Fatalf("%d copies, want one for the plain rules and two for the others; %v", len(page), err)
	}
	got := map[string]string{}
	for _, m := range page {
		name, _ := m.Properties.Get("RuleName")
		n, _ := m.Properties.Get("n")
		_, x := m.Properties.Get("x")
		got[fmt.Sprint(name)] = fmt.Sprintf("n=%v x=%t label=%q", n, x, message.Str(m.Subject))
		if m.Broker.EnqueuedSequenceNumber != 1 || string(m.Body.Bytes()) != "a" {
			t.Errorf("a copy is %+v", m.Broker)
		}
	}
	want := map[string]string{"<nil>": `n=5 x=true label=""`, "act1": `n=0 x=false label=""`, "act2": `n=5 x=true label="changed"`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("copies %v, want %v", got, want)
	}
	if info, err := b.e.Entity("topic"); err != nil || !info.Summed || info.Active != 5 {
		t.Errorf("the topic counts %+v, %v; want the sum of 5", info.Active, err)
	}
}

// A rule that fails on a message: dead-lettered with the exception, dropped, or refused.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#errors-while-processing-subscription-rules
func TestRuleThatFails(t *testing.T) {
	b := newBench(t)
	fails := Rule{Name: "r", Filter: Filter{Kind: SQLFilter, SQL: "10 / n = 5"}}
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/kept", Subscription, nil, fails)
	b.make("topic/Subscriptions/dropped", Subscription, func(p *Properties) { p.DeadLetterOnFilterError = false }, fails)
	b.make("topic/Subscriptions/action", Subscription, nil, Rule{Name: "r", Action: "SET n = 'text'"})
	zero := says("a")
	zero.Properties = message.Properties{{Name: "n", Value: message.Int(0)}}
	b.post("topic", zero)
	reasons := func(name string) (out []string) {
		page, _ := b.e.Peek(dead(Address{Name: name}), PeekOptions{Max: 10})
		for _, m := range page {
			out = append(out, m.DeadLetterReason())
			if m.DeadLetterDescription() == "" {
				t.Errorf("a dead letter of %s has no description", name)
			}
		}
		return out
	}
	if got := reasons("topic/kept"); !slices.Equal(got, []string{"FilterException"}) {
		t.Errorf("kept: %v", got)
	}
	if got := reasons("topic/action"); !slices.Equal(got, []string{"RuleActionException"}) {
		t.Errorf("action: %v", got)
	}
	b.wantContents(dead(Address{Name: "topic/dropped"}))
	if err := b.e.Change("topic", func(p *Properties) error { p.FilterBeforePublishing = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if sent, err := b.e.Send(Address{Name: "topic"}, []*message.Message{zero}); err != nil || !errors.Is(sent[0].Err, ErrFilter) {
		t.Errorf("filtered before publishing: %v, %v", sent, err)
	}
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
