package broker

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"dlq/backends/message"
	"dlq/backends/sqlfilter"
)

func correlation(name string, v message.Value) sqlfilter.Correlation {
	return sqlfilter.Correlation{Properties: message.Properties{{Name: name, Value: v}}}
}

func newSessions(t *testing.T) (*bench, Address) {
	b := newBench(t)
	b.make("sessions", Queue, func(p *Properties) { p.RequiresSession, p.MaxDeliveryCount = true, 2 })
	return b, Address{Name: "sessions"}
}

func (b *bench) accept(a Address, id *string) Session {
	b.Helper()
	s, err := b.e.AcceptSession(a, id)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// One receiver at a time holds a session and gets its messages in their order.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-sessions
func TestSessionIsExclusive(t *testing.T) {
	b, a := newSessions(t)
	for _, m := range []*message.Message{inSession("x", "x1"), inSession("y", "y1"), inSession("x", "x2")} {
		b.post("sessions", m)
	}
	if _, err := b.e.Receive(a, ReceiveOptions{}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("receive without a session: %v", err)
	}
	x := b.accept(a, nil)
	if x.ID != "x" || !x.LockedUntil.Equal(b.now.Add(time.Minute)) {
		t.Errorf("the next session is %+v", x)
	}
	if _, err := b.e.AcceptSession(a, new("x")); !errors.Is(err, ErrLocked) {
		t.Errorf("accept a session that is held: %v", err)
	}
	if y := b.accept(a, nil); y.ID != "y" {
		t.Errorf("then %+v", y)
	}
	if _, err := b.e.AcceptSession(a, nil); !errors.Is(err, ErrNoSession) {
		t.Errorf("then: %v", err)
	}
	if got := bodies(b.takeWith(a, ReceiveOptions{Max: 10, Session: x.Token})); !slices.Equal(got, []string{"x1", "x2"}) {
		t.Errorf("received %v", got)
	}
	b.accept(a, new("empty")) // one without messages can be held, too
	if _, err := b.e.AcceptSession(b.queue, nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a queue without sessions: %v", err)
	}
}

// Giving a session back counts nothing; its expiry counts for each message that was locked.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-sessions
func TestSessionLockEnds(t *testing.T) {
	b, a := newSessions(t)
	b.post("sessions", inSession("x", "a"))
	b.post("sessions", inSession("x", "b"))
	s := b.accept(a, nil)
	m := b.takeWith(a, ReceiveOptions{Session: s.Token})[0]
	if err := b.e.ReleaseSession(a, s.Token); err != nil {
		t.Fatal(err)
	}
	b.wantContents(a, "a/0", "b/0")
	if errs, err := b.e.Settle(a, Outcome{Action: Complete}, m.Broker.LockToken); err != nil || !errors.Is(errs[0], ErrSessionLockLost) {
		t.Errorf("settle after it: %v, %v", errs, err)
	}
	for n := 1; n <= 2; n++ {
		s = b.accept(a, nil)
		m = b.takeWith(a, ReceiveOptions{Session: s.Token})[0]
		b.pass(50 * time.Second)
		if until, err := b.e.RenewSession(a, s.Token); err != nil || !until.Equal(b.now.Add(time.Minute)) {
			t.Errorf("renewed until %v, %v", until, err)
		}
		if errs, err := b.e.Renew(a, m.Broker.LockToken); err != nil || !errors.Is(errs[0], ErrUnsupported) {
			t.Errorf("renew a message of a session: %v, %v", errs, err)
		}
		b.pass(59 * time.Second)
		if _, err := b.e.SessionState(a, s.Token); err != nil {
			t.Errorf("a second before its end: %v", err)
		}
		b.pass(time.Second)
		if _, err := b.e.SessionState(a, s.Token); !errors.Is(err, ErrSessionLockLost) {
			t.Errorf("at its end: %v", err)
		}
	}
	b.wantContents(a, "b/0")
	b.wantDead(dead(a), causeDeliveries(2))
}

// The state of a session outlives its messages and the process, and the lock a clean stop.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-sessions#message-session-state
func TestSessionState(t *testing.T) {
	b, a := newSessions(t)
	s := b.accept(a, new("x"))
	if state, err := b.e.SessionState(a, s.Token); err != nil || state != nil {
		t.Errorf("a new session has the state %v, %v", state, err)
	}
	if err := b.e.SetSessionState(a, s.Token, []byte{}); err != nil {
		t.Fatal(err)
	}
	if state, err := b.e.SessionState(a, s.Token); err != nil || state == nil || len(state) != 0 {
		t.Errorf("an empty state is %v, %v; it is not none", state, err)
	}
	if err := b.e.SetSessionState(a, s.Token, []byte("half way")); err != nil {
		t.Fatal(err)
	}
	if err := b.e.Close(); err != nil {
		t.Fatal(err)
	}
	b.open()
	if state, err := b.e.SessionState(a, s.Token); err != nil || string(state) != "half way" {
		t.Errorf("after a clean stop: %q, %v", state, err)
	}
	b.crash()
	b.pass(time.Hour)
	if ids, err := b.e.Sessions(a, time.Time{}); err != nil || !slices.Equal(ids, []string{"x"}) {
		t.Errorf("listed %v, %v", ids, err)
	}
	if _, err := b.e.AcceptSession(a, nil); !errors.Is(err, ErrNoSession) {
		t.Errorf("a session with a state alone is not next: %v", err)
	}
	s = b.accept(a, new("x"))
	if err := b.e.SetSessionState(a, s.Token, nil); err != nil {
		t.Fatal(err)
	}
	if ids, err := b.e.Sessions(a, time.Time{}); err != nil || len(ids) != 0 {
		t.Errorf("listed %v, %v", ids, err)
	}
}

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

// What a transaction holds happens all or not at all.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-transactions
func TestTransaction(t *testing.T) {
	b := newBench(t)
	b.make("out", Queue, nil)
	out := Address{Name: "out"}
	b.send("a", "b")
	begin := func() (*Transaction, *message.Message) {
		t.Helper()
		x, m, before := b.e.Begin(), b.receive(b.queue), b.contents(out)
		if _, err := x.Send(out, nil, []*message.Message{says("from " + string(m.Body.Bytes()))}); err != nil {
			t.Fatal(err)
		}
		if errs, err := x.Settle(b.queue, Outcome{Action: Complete}, m.Broker.LockToken); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		b.wantContents(out, before...) // not before the commit
		if errs, err := b.e.Settle(b.queue, Outcome{Action: Complete}, m.Broker.LockToken); err != nil || !errors.Is(errs[0], ErrLocked) {
			t.Errorf("settle beside the transaction: %v, %v", errs, err)
		}
		return x, m
	}
	x, m := begin()
	if err := x.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := x.Commit(); !errors.Is(err, ErrTransaction) {
		t.Errorf("commit after a rollback: %v", err)
	}
	if err := b.e.Release(b.queue, m.Broker.LockToken); err != nil { // it kept its lock
		t.Fatal(err)
	}
	b.wantContents(b.queue, "a/0", "b/0")

	x, _ = begin()
	b.pass(time.Minute) // its lock expires
	if err := x.Commit(); !errors.Is(err, ErrLockLost) {
		t.Errorf("commit without the lock: %v", err)
	}
	b.wantContents(out)
	b.wantContents(b.queue, "a/1", "b/0")

	x, m = begin()
	b.ok(b.e.Renew(b.queue, m.Broker.LockToken))
	if err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	b.crash()
	b.wantContents(out, "from a/0")
	b.wantContents(b.queue, "b/0")

	x, m = begin()
	for range 3 { // longer than two minutes
		b.pass(50 * time.Second)
		b.ok(b.e.Renew(b.queue, m.Broker.LockToken))
	}
	if err := x.Commit(); !errors.Is(err, ErrTransaction) {
		t.Errorf("commit after two minutes: %v", err)
	}
	b.wantContents(out, "from a/0")
}

// A send via another entity is forwarded from it at the commit and counts as a hop.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-transactions#transfers-and-send-via
func TestSendVia(t *testing.T) {
	b := newBench(t)
	b.make("end", Queue, nil)
	b.make("via", Queue, nil)
	via := func(id string) error {
		x := b.e.Begin()
		if errs, err := x.Send(Address{Name: "end"}, &Address{Name: "via"}, []*message.Message{says(id)}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		if id == "disabled" {
			if err := b.e.Change("end", func(p *Properties) error { p.Status = Disabled; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		return x.Commit()
	}
	if err := errors.Join(via("a"), via("disabled")); err != nil {
		t.Fatal(err)
	}
	b.wantContents(Address{Name: "via"})
	b.wantDead(transfer("via"), causeDestinationDisabled("end"))
	if err := b.e.Change("end", func(p *Properties) error { p.Status = Enabled; return nil }); err != nil {
		t.Fatal(err)
	}
	if got := b.receive(Address{Name: "end"}); got.Broker.EnqueuedSequenceNumber != 1 {
		t.Errorf("arrived as %+v", got.Broker)
	}
	x := b.e.Begin()
	if _, err := x.Send(Address{Name: "nowhere"}, &Address{Name: "via"}, []*message.Message{says("b")}); !errors.Is(err, ErrNoEntity) {
		t.Errorf("a destination that is missing: %v", err)
	}
	if _, err := x.Send(Address{Name: "end"}, nil, make([]*message.Message, maxStaged+1)); !errors.Is(err, ErrInvalid) {
		t.Errorf("more than %d operations: %v", maxStaged, err)
	}
}

// Status, quota, immutability, case.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/entity-suspend
func TestEntityRules(t *testing.T) {
	b := newBench(t)
	b.send("a")
	set := func(f func(*Properties)) error {
		return b.e.Change("ORDERS", func(p *Properties) error { f(p); return nil })
	}
	for status, c := range map[Status]struct{ in, out error }{
		Enabled: {}, Disabled: {ErrDisabled, ErrDisabled}, SendDisabled: {ErrDisabled, nil}, ReceiveDisabled: {nil, ErrDisabled},
	} {
		if err := set(func(p *Properties) { p.Status = status }); err != nil {
			t.Fatal(err)
		}
		if err := b.e.ValidateSend(b.queue, says("b")); !errors.Is(err, c.in) {
			t.Errorf("%s: send %v", status, err)
		}
		if _, err := b.e.Peek(b.queue, PeekOptions{Max: 1}); !errors.Is(err, c.out) {
			t.Errorf("%s: peek %v", status, err)
		}
		if _, err := b.e.Receive(b.queue, ReceiveOptions{Lock: new(time.Duration)}); !errors.Is(err, c.out) {
			t.Errorf("%s: receive %v", status, err)
		}
	}
	if err := set(func(p *Properties) { p.Status, p.MaxSize = Enabled, 10 }); err != nil {
		t.Fatal(err)
	}
	if sent, err := b.e.Send(b.queue, []*message.Message{says("b")}); err != nil || !errors.Is(sent[0].Err, ErrQuota) {
		t.Errorf("over the quota: %v, %v", sent, err)
	}
	b.settle(b.queue, Complete, b.receive(b.queue)) // which goes on
	if err := set(func(p *Properties) { p.RequiresSession = true }); !errors.Is(err, ErrInvalid) {
		t.Errorf("change what is fixed: %v", err)
	}
	if err := b.e.Create("Orders", Topic, Defaults(Topic, ServiceBus)); !errors.Is(err, ErrExists) {
		t.Errorf("the same name in another case: %v", err)
	}
	if err := b.e.Create("nowhere/Subscriptions/s", Subscription, Defaults(Subscription, ServiceBus)); !errors.Is(err, ErrNoEntity) {
		t.Errorf("a subscription without its topic: %v", err)
	}
}

// An entity that is not used is deleted; use of a subscription is use of its topic.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration#temporary-entities
func TestAutoDeleteOnIdle(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, func(p *Properties) { p.AutoDeleteOnIdle = 5 * time.Minute })
	b.make("topic/Subscriptions/s", Subscription, nil)
	for range 3 {
		b.pass(4 * time.Minute)
		if _, err := b.e.Peek(Address{Name: "topic/s"}, PeekOptions{Max: 1}); err != nil {
			t.Fatal(err)
		}
	}
	b.pass(5*time.Minute - time.Millisecond)
	if _, err := b.e.Entity("topic"); err != nil {
		t.Errorf("a millisecond early: %v", err)
	}
	b.pass(time.Millisecond)
	if _, err := b.e.Entity("topic/s"); !errors.Is(err, ErrNoEntity) {
		t.Errorf("after five minutes: %v", err)
	}
}

// A deleted entity takes its messages along, and one that is made under its name has none of
// them, whenever the process dies in between.
func TestDeleteAndCreateAgain(t *testing.T) {
	b := newBench(t)
	for range 5 {
		msgs := make([]*message.Message, 1000)
		for i := range msgs {
			msgs[i] = says("old")
		}
		b.ok(refusals(b.e.Send(b.queue, msgs)))
	}
	held := b.receive(b.queue)
	if err := b.e.Delete("orders"); err != nil {
		t.Fatal(err)
	}
	b.crash()
	b.make("orders", Queue, nil)
	b.wantContents(b.queue)
	if errs, err := b.e.Settle(b.queue, Outcome{Action: Complete}, held.Broker.LockToken); err != nil || !errors.Is(errs[0], ErrLockLost) {
		t.Errorf("settle with a token of the old: %v, %v", errs, err)
	}
	for range 10 { // what is left of the old goes bit by bit
		b.pass(time.Second)
		if err := b.e.Tick(); err != nil {
			t.Fatal(err)
		}
	}
	if n := contentsLeft(t, b); n != 0 {
		t.Errorf("%d heads and bodies are left of it", n)
	}
	if seq := b.post("orders", says("new")); seq != 1 {
		t.Errorf("the first number of the new one is %d", seq)
	}
}

func contentsLeft(t *testing.T, b *bench) (n int) {
	for _, err := range b.e.store.Content() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// A move never loses a message in a topic.
func TestMoveToTopic(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/some", Subscription, nil, Rule{Name: "r", Filter: Filter{Kind: SQLFilter, SQL: "n = 1"}})
	b.send("a")
	mv := Move{Seq: 1, To: Address{Name: "topic"}, As: says("a")}
	if errs, err := b.e.Move(b.queue, []Move{mv}); err != nil || !errors.Is(errs[0], ErrUnrouted) {
		t.Errorf("no rule lets it through: %v, %v", errs, err)
	}
	b.wantContents(b.queue, "a/0")
	mv.As.Properties.Set("n", message.Int(1))
	if routes, err := b.e.Route(mv.To, mv.As); err != nil || fmt.Sprint(routes) != "[{topic/Subscriptions/some 0}]" {
		t.Errorf("route %v, %v", routes, err)
	}
	b.ok(b.e.Move(b.queue, []Move{mv}))
	b.wantContents(Address{Name: "topic/some"}, "a/0")
	b.wantContents(b.queue)
}
