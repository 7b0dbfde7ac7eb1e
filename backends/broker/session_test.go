package broker

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"dlq/backends/message"
)

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

func inSession(id, text string) *message.Message {
	m := says(text)
	m.SessionID = &id
	return m
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

// A session whose name is empty is a session; names compare with case and have at most 128
// characters.
// Source: servicebus-wire.md sections 3.5 and 9.6.
func TestSessionNames(t *testing.T) {
	b, a := newSessions(t)
	b.post("sessions", inSession("", "none"))
	b.post("sessions", inSession("x", "small"))
	b.post("sessions", inSession("X", "large"))
	for id, want := range map[string]string{"": "none", "x": "small", "X": "large"} {
		s := b.accept(a, &id)
		if got := bodies(b.takeWith(a, ReceiveOptions{Max: 9, Session: s.Token})); s.ID != id || !slices.Equal(got, []string{want}) {
			t.Errorf("session %q is %q and holds %v", id, s.ID, got)
		}
	}
	long := strings.Repeat("x", 129)
	_, err := b.e.AcceptSession(a, &long)
	b.want(err, ErrInvalid)
	b.want(b.e.ValidateSend(a, inSession(long, "a")), ErrInvalid)
	b.want(b.e.ValidateSend(a, says("a")), ErrInvalid)
}

// The next session is one that is free and has an available message: not one that is held, or
// whose messages are all deferred, scheduled or of the past, or that has a state alone.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-sessions
func TestNextSession(t *testing.T) {
	b, a := newSessions(t)
	held := b.accept(a, new("held"))
	b.post("sessions", inSession("held", "a"))
	b.post("sessions", inSession("deferred", "b"))
	b.ok(b.e.SettleBySequence(a, Outcome{Action: Defer}, 2))
	later := inSession("later", "c")
	later.ScheduledEnqueueTime = new(b.now.Add(time.Hour))
	b.post("sessions", later)
	b.ok(nil, b.e.SetSessionState(a, b.accept(a, new("kept")).Token, []byte("state")))
	_, err := b.e.AcceptSession(a, nil)
	b.want(err, ErrNoSession)
	b.ok(nil, b.e.ReleaseSession(a, held.Token))
	if s := b.accept(a, nil); s.ID != "held" {
		t.Errorf("the next is %q", s.ID)
	}
	b.pass(time.Hour)
	b.accept(a, new("held"))
	if s := b.accept(a, nil); s.ID != "later" {
		t.Errorf("the next is %q", s.ID)
	}
}

// Messages of a session come in order, one that was given back before those behind it, however
// the others are settled; other sessions are not held up.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-sessions#first-in-first-out-fifo-pattern
func TestSessionKeepsItsOrder(t *testing.T) {
	b, a := newSessions(t)
	for _, s := range []string{"a", "b", "c"} {
		b.post("sessions", inSession("x", s))
		b.post("sessions", inSession("y", s+s))
	}
	s := b.accept(a, new("x")).Token
	got := b.takeWith(a, ReceiveOptions{Max: 2, Session: s})
	b.settle(a, Abandon, got[0])
	if next := bodies(b.takeWith(a, ReceiveOptions{Max: 9, Session: s})); !slices.Equal(next, []string{"a", "c"}) {
		t.Errorf("received %v, want a again before c; b is locked", next)
	}
	if other := bodies(b.takeWith(a, ReceiveOptions{Max: 9, Session: b.accept(a, nil).Token})); !slices.Equal(other, []string{"aa", "bb", "cc"}) {
		t.Errorf("the other session gave %v", other)
	}
}

// Settlement in a session works like any other, and what it dead-letters is no session's any
// more: the dead-letter queue is read without one, and the message keeps its session id.
// Source: operator.md T11; https://learn.microsoft.com/azure/service-bus-messaging/message-sessions
func TestDeadLettersOfSessions(t *testing.T) {
	b, a := newSessions(t)
	b.post("sessions", inSession("x", "a"))
	s := b.accept(a, nil).Token
	m := b.takeWith(a, ReceiveOptions{Session: s})[0]
	b.ok(b.e.Settle(a, Outcome{Action: Bury, Reason: "why"}, m.Broker.LockToken))
	got := b.receive(dead(a))
	if message.Str(got.SessionID) != "x" || got.DeadLetterReason() != "why" {
		t.Errorf("the dead letter is %+v", got)
	}
	_, err := b.e.Receive(dead(a), ReceiveOptions{Session: s})
	b.want(err, ErrUnsupported)
	_, err = b.e.AcceptSession(dead(a), nil)
	b.want(err, ErrUnsupported)
	b.pass(time.Minute) // its own lock, not the session's
	b.wantContents(dead(a), "a/0")
}

// The lock of a session is renewed as a whole, with what was received in it; it belongs to its
// token and its entity.
// Source: servicebus-wire.md section 10, "Sessions".
func TestRenewSession(t *testing.T) {
	b, a := newSessions(t)
	b.make("other", Queue, func(p *Properties) { p.RequiresSession = true })
	b.post("sessions", inSession("x", "a"))
	s := b.accept(a, nil)
	m := b.takeWith(a, ReceiveOptions{Session: s.Token})[0]
	if !m.Broker.LockedUntil.Equal(s.LockedUntil) {
		t.Errorf("the message is locked until %v, its session until %v", m.Broker.LockedUntil, s.LockedUntil)
	}
	for range 3 {
		b.pass(time.Minute - time.Millisecond)
		until, err := b.e.RenewSession(a, s.Token)
		if got := b.peek(a)[0].Broker.LockedUntil; err != nil || !got.Equal(until) || !until.Equal(b.now.Add(time.Minute)) {
			t.Errorf("renewed to %v, the message to %v, %v", until, got, err)
		}
	}
	for _, stranger := range []message.UUID{{}, {1}, m.Broker.LockToken} {
		_, err := b.e.RenewSession(a, stranger)
		b.want(err, ErrSessionLockLost)
		b.want(b.e.ReleaseSession(a, stranger), ErrSessionLockLost)
		b.want(b.e.SetSessionState(a, stranger, nil), ErrSessionLockLost)
	}
	_, err := b.e.RenewSession(at("other"), s.Token)
	b.want(err, ErrSessionLockLost)
	b.settle(a, Complete, m)
}

// When the lock of a session expires, the delivery of each message that was locked in it has
// failed, of one that was deferred too, and of no other; the token is worth nothing from then on.
// Source: servicebus-wire.md section 10, "Session lock expiry raises counts of locked messages".
func TestSessionLockExpires(t *testing.T) {
	b, a := newSessions(t)
	b.change("sessions", func(p *Properties) { p.MaxDeliveryCount = 5 })
	for _, s := range []string{"locked", "deferred", "completed", "free"} {
		b.post("sessions", inSession("x", s))
	}
	b.ok(b.e.SettleBySequence(a, Outcome{Action: Defer}, 2))
	s := b.accept(a, nil)
	got := b.takeWith(a, ReceiveOptions{Max: 2, Session: s.Token})
	b.settle(a, Complete, got[1])
	if _, err := b.e.ReceiveDeferred(a, ReceiveOptions{Session: s.Token}, 2); err != nil {
		t.Fatal(err)
	}
	b.pass(time.Minute)
	b.wantContents(a, "locked/1", "deferred/1", "free/0")
	_, err := b.e.Receive(a, ReceiveOptions{Session: s.Token})
	b.want(err, ErrSessionLockLost)
	_, err = b.e.ReceiveDeferred(a, ReceiveOptions{Session: s.Token}, 2)
	b.want(err, ErrSessionLockLost)
	b.wantRefused(ErrSessionLockLost, ignoring(b.e.Settle(a, Outcome{Action: Complete}, got[0].Broker.LockToken)), nil)
	if again := b.accept(a, nil); again.Token == s.Token {
		t.Error("the session has the old token")
	}
}

// A deferred message is received in its own session alone.
// Source: servicebus-wire.md section 10, "With sessions session lock is needed".
func TestDeferredInSession(t *testing.T) {
	b, a := newSessions(t)
	b.post("sessions", inSession("x", "a"))
	b.ok(b.e.SettleBySequence(a, Outcome{Action: Defer}, 1))
	_, err := b.e.ReceiveDeferred(a, ReceiveOptions{}, 1)
	b.want(err, ErrUnsupported)
	_, err = b.e.ReceiveDeferred(a, ReceiveOptions{Session: b.accept(a, new("y")).Token}, 1)
	b.want(err, ErrNoMessage)
	m, err := b.e.ReceiveDeferred(a, ReceiveOptions{Session: b.accept(a, new("x")).Token}, 1)
	if err != nil {
		t.Fatal(err)
	}
	b.settle(a, Complete, m[0])
}

// Sessions are listed that have active messages, free or locked, or a state; or those whose
// state was set after a time.
// Source: servicebus-wire.md section 6.3, "get-message-sessions".
func TestSessionsAreListed(t *testing.T) {
	b, a := newSessions(t)
	list := func(after time.Time, want ...string) {
		t.Helper()
		if got, err := b.e.Sessions(a, after); err != nil || !slices.Equal(got, want) {
			t.Errorf("listed %v, %v; want %v", got, err, want)
		}
	}
	for _, id := range []string{"free", "locked", "deferred"} {
		b.post("sessions", inSession(id, id))
	}
	b.ok(b.e.SettleBySequence(a, Outcome{Action: Defer}, 3))
	b.takeWith(a, ReceiveOptions{Session: b.accept(a, new("locked")).Token})
	b.accept(a, new("empty"))
	b.pass(time.Second)
	b.ok(nil, b.e.SetSessionState(a, b.accept(a, new("kept")).Token, []byte("s")))
	list(time.Time{}, "free", "kept", "locked")
	list(b.now.Add(-time.Second), "kept")
	list(b.now)
	b.crash()
	list(time.Time{}, "free", "kept", "locked")
	_, err := b.e.Sessions(b.queue, time.Time{})
	b.want(err, ErrUnsupported)
}

// The state of a session has at most as many bytes as a message, is the holder's to read and
// set, and is durable when that is acknowledged.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-sessions#message-session-state
func TestSessionStateIsKept(t *testing.T) {
	b, a := newSessions(t)
	b.change("sessions", func(p *Properties) { p.MaxMessageBytes = 1024 })
	s := b.accept(a, new("x"))
	b.want(b.e.SetSessionState(a, s.Token, make([]byte, 1025)), ErrTooLarge)
	b.ok(nil, b.e.SetSessionState(a, s.Token, make([]byte, 1024)))
	b.ok(nil, b.e.ReleaseSession(a, s.Token))
	b.want(b.e.SetSessionState(a, s.Token, []byte("late")), ErrSessionLockLost)
	_, err := b.e.SessionState(a, s.Token)
	b.want(err, ErrSessionLockLost)
	b.crash()
	b.pass(time.Minute) // that it was given back need not be known after a crash
	if state, err := b.e.SessionState(a, b.accept(a, new("x")).Token); err != nil || len(state) != 1024 {
		t.Errorf("the next holder reads %d bytes, %v", len(state), err)
	}
	if state, err := b.e.SessionState(a, b.accept(a, new("y")).Token); err != nil || state != nil {
		t.Errorf("another session has the state %v, %v", state, err)
	}
}

// A session and its messages are still held after a clean stop, with the same tokens, and end
// together.
// Source: reliability.md; doc.go, "What is durable".
func TestSessionSurvivesAStop(t *testing.T) {
	b, a := newSessions(t)
	b.post("sessions", inSession("x", "a"))
	b.post("sessions", inSession("x", "b"))
	s := b.accept(a, nil)
	got := b.takeWith(a, ReceiveOptions{Max: 2, Session: s.Token})
	b.restart()
	_, err := b.e.AcceptSession(a, new("x"))
	b.want(err, ErrLocked)
	b.settle(a, Complete, got[0])
	b.pass(time.Minute)
	b.restart()
	b.wantContents(a, "b/1")
	b.accept(a, new("x"))
}

// Peek needs no session, and can be narrowed to one.
// Source: servicebus-wire.md section 6.3, "Session entity".
func TestPeekSession(t *testing.T) {
	b, a := newSessions(t)
	for _, id := range []string{"x", "y", "x"} {
		b.post("sessions", inSession(id, id))
	}
	page, err := b.e.Peek(a, PeekOptions{Max: 9, Session: new("x")})
	if err != nil || len(page) != 2 || page[1].Broker.SequenceNumber != 3 {
		t.Errorf("peeked %v, %v", page, err)
	}
	if all := b.peek(a); len(all) != 3 {
		t.Errorf("peeked %d without a session", len(all))
	}
}

// A queue without sessions keeps the session id of a message and delivers it like any other.
// Source: servicebus-wire.md section 3.5, "Session receiver on a plain entity".
func TestSessionIDOnAPlainQueue(t *testing.T) {
	b := newBench(t)
	b.post("orders", inSession("x", "a"))
	if m := b.receive(b.queue); message.Str(m.SessionID) != "x" {
		t.Errorf("session %q", message.Str(m.SessionID))
	}
	_, err := b.e.Receive(b.queue, ReceiveOptions{Session: message.UUID{1}})
	b.want(err, ErrUnsupported)
}
