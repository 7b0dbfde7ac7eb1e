package backendtest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

func leaseCases() []testCase {
	return []testCase{
		{"lease/missing-entity", leaseMissingEntity},
		{"lease/end", leaseEnd},
		{"lease/locks", leaseLocks},
		{"lease/competing", leaseCompeting},
		{"lease/locks-nothing-before-next", leaseLocksLate},
		{"lease/once-in-a-sweep", leaseOnce},
		{"lease/max", leaseMax},
		{"lease/want", leaseWant},
		{"lease/want-and-max", leaseWantMax},
		{"lease/session", leaseSession},
		{"lease/release", leaseRelease},
		{"lease/after-release", leaseAfterRelease},
		{"lease/keeps-its-locks", leaseKeepsLocks},
		{"lease/expired-lock", leaseExpiredLock},
		{"lease/expired-too-often", leaseExpiredTooOften},
	}
}

// firstError returns the error of a lease that may show at once or at the first Next.
func (f *fixture) firstError(l backends.Lease, err error) error {
	if err != nil {
		return err
	}
	_, err = f.sweep(l).Next(f.ctx)
	return err
}

func leaseMissingEntity(f *fixture) {
	f.wantCode("lease", f.firstError(f.b.Lease(f.ctx, missing, backends.LeaseOptions{})), backends.NotFound)
	f.wantCode("lease of dead letters",
		f.firstError(f.b.Lease(f.ctx, missing.DeadLetters(), backends.LeaseOptions{})), backends.NotFound)
}

func leaseEnd(f *fixture) {
	id := f.queue()
	s := f.lease(id, backends.LeaseOptions{})
	err := f.promptly("next on an empty queue", func() error { _, err := s.Next(f.ctx); return err })
	if !errors.Is(err, io.EOF) {
		f.Errorf("next on an empty queue: got %v, want io.EOF", err)
	}
	s.release()

	f.send(id, text("a"))
	s = f.lease(id, backends.LeaseOptions{})
	s.settle(complete, s.next())
	s.end("there was one message")
	s.end("the end stays the end")
}

func leaseLocks(f *fixture) {
	id := f.queue()
	limits := f.entity(id).Limits
	f.send(id, text("a"), text("b"))
	s := f.lease(id, backends.LeaseOptions{})
	now := f.h.Now()
	a, b := s.next(), s.next()
	if a.Broker.LockToken.IsZero() || a.Broker.LockToken == b.Broker.LockToken {
		f.Errorf("the lock tokens are %v and %v", a.Broker.LockToken, b.Broker.LockToken)
	}
	until := a.Broker.LockedUntil
	if late := now.Add(limits.LockDuration + time.Minute); !until.After(now) || until.After(late) {
		f.Errorf("locked at %v until %v, with a lock duration of %v", now, until, limits.LockDuration)
	}
}

// leaseCompeting: two receivers that take turns never see the same message.
func leaseCompeting(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b", "c", "d", "e", "f")...)
	one, two := f.lease(id, backends.LeaseOptions{}), f.lease(id, backends.LeaseOptions{})
	var got []string
	for range 3 {
		got = append(got, bodies([]*message.Message{one.next(), two.next()})...)
	}
	one.end("all are locked")
	two.end("all are locked")
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "b", "c", "d", "e", "f"}) {
		f.Errorf("two competing leases got %s, want each message once", list(got))
	}
}

func leaseLocksLate(f *fixture) {
	id := f.queue()
	f.send(id, text("a"))
	f.lease(id, backends.LeaseOptions{})
	f.holds(id, "a")
}

// leaseOnce: what a sweep let go is free for others but does not come back to itself.
func leaseOnce(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b")...)
	s := f.lease(id, backends.LeaseOptions{})
	s.settle(abandon, s.next())
	s.settle(abandon, s.next())
	s.end("both were handed out before")
	f.holds(id, "a", "b")
}

func leaseMax(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b", "c")...)
	s := f.lease(id, backends.LeaseOptions{Max: 2})
	if n := len(s.rest()); n != 2 {
		f.Fatalf("a lease with Max 2 handed out %d messages", n)
	}
	s.end("Max is reached")
	if n := len(f.drain(id)); n != 1 {
		f.Errorf("another lease found %d messages, want the one beyond Max", n)
	}
}

func leaseWant(f *fixture) {
	id := f.queue()
	for _, body := range []string{"a", "b", "c", "d"} {
		m := text(body)
		m.Properties.Set("wanted", message.Bool(body == "b" || body == "d"))
		f.send(id, m)
	}
	seen := map[string]bool{}
	s := f.lease(id, backends.LeaseOptions{Want: func(m *message.Message) bool {
		seen[string(m.Body.Bytes())] = true
		v, _ := m.Properties.Get("wanted")
		return v == message.Bool(true)
	}})
	got := s.rest()
	names := bodies(got)
	slices.Sort(names)
	if !slices.Equal(names, []string{"b", "d"}) {
		f.Fatalf("the lease handed out %s, want what Want accepts: b, d", list(names))
	}
	if len(seen) != 4 || !seen["a"] || !seen["c"] {
		f.Errorf("Want has seen the bodies %v, want all four", seen)
	}
	f.holds(id) // what Want refused stays locked
	s.settle(complete, got...)
	s.release()

	s = f.lease(id, backends.LeaseOptions{})
	rest := s.rest()
	names = bodies(rest)
	slices.Sort(names)
	if !slices.Equal(names, []string{"a", "c"}) {
		f.Errorf("after the release there are %s, want what Want refused: a, c", list(names))
	}
	for _, m := range rest {
		f.wantCount(m, 2, 0) // it was only passed over
	}
}

func leaseWantMax(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b1", "a2", "b2", "b3")...)
	s := f.lease(id, backends.LeaseOptions{Max: 2, Want: func(m *message.Message) bool {
		return m.Body.Bytes()[0] == 'b'
	}})
	for _, m := range s.rest() {
		if m.Body.Bytes()[0] != 'b' {
			f.Errorf("%s was refused and handed out", describe(m))
		}
		s.settle(complete, m)
	}
	s.release()
	if n := len(f.drain(id)); n != 3 {
		f.Errorf("%d messages are left, want 3: Max counts what is handed out", n)
	}
}

func leaseSession(f *fixture) {
	id := f.h.Queue(f, QueueOptions{Sessions: true})
	session := "customer-1"
	for _, body := range []string{"a", "b", "c"} {
		m := text(body)
		m.SessionID = new("customer-2")
		if body == "b" {
			m.SessionID = &session
		}
		f.send(id, m)
	}
	l, err := f.b.Lease(f.ctx, id, backends.LeaseOptions{Session: &session})
	if errors.Is(err, errors.ErrUnsupported) {
		f.Skip("the service has no sessions")
	}
	if err != nil {
		f.Fatalf("lease of a session: %v", err)
	}
	if !f.entity(id).RequiresSession {
		f.Errorf("a queue of sessions does not say that it takes nothing else")
	}
	if got := bodies(f.sweep(l).rest()); !slices.Equal(got, []string{"b"}) {
		f.Errorf("the lease of a session handed out %s, want b alone", list(got))
	}
}

func leaseRelease(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b", "c")...)
	s := f.lease(id, backends.LeaseOptions{})
	s.settle(complete, s.next())
	s.rest()
	f.holds(id) // held by s
	s.release()
	other := f.lease(id, backends.LeaseOptions{})
	free := other.rest()
	if len(free) != 2 {
		f.Fatalf("after the release %d messages are free, want 2", len(free))
	}
	for _, m := range free {
		f.wantCount(m, 2, 0)
	}
	// Again: nothing happens, not to those who hold the messages now either.
	s.release()
	other.settle(complete, free...)
}

func leaseAfterRelease(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b")...)
	s := f.lease(id, backends.LeaseOptions{})
	m := s.next()
	s.release()
	if m, err := s.Next(f.ctx); err == nil {
		f.Errorf("next after release handed out %s", describe(m))
	}
	f.wantCode("settle after release", s.Settle(f.ctx, complete, m), backends.LockLost)
	f.holds(id, "a", "b")
}

func leaseKeepsLocks(f *fixture) {
	if f.h.AdvanceSlowly == nil {
		f.Skip("the harness cannot let time pass slowly")
	}
	id := f.queue()
	f.send(id, texts("a", "b")...)
	s := f.lease(id, backends.LeaseOptions{Want: func(m *message.Message) bool { return string(m.Body.Bytes()) == "a" }})
	msgs := s.rest()
	f.h.AdvanceSlowly(f, 3*f.entity(id).Limits.LockDuration)
	f.holds(id) // both still locked, the wanted and the unwanted
	s.settle(complete, msgs...)
	s.release()
	f.holds(id, "b")
}

func leaseExpiredLock(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b")...)
	late := f.lease(id, backends.LeaseOptions{})
	lost := late.next()
	f.expire(id)
	for _, o := range []backends.Outcome{complete, abandon, {Action: backends.DeadLetter, Reason: "late"}} {
		err := late.Settle(f.ctx, o, lost)
		if o.Action == backends.DeadLetter && errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		f.wantItems(o.Action.String()+" after the lock expired", err, map[int]backends.Code{0: backends.LockLost})
	}
	s := f.lease(id, backends.LeaseOptions{})
	msgs := s.rest()
	if len(msgs) != 2 {
		f.Fatalf("after one lock of two messages expired, %d are free, want 2", len(msgs))
	}
	for _, m := range msgs {
		if bytes.Equal(m.Body.Bytes(), lost.Body.Bytes()) {
			f.wantCount(m, 2, 1)
		} else {
			f.wantCount(m, 1, 0)
		}
	}
	// Another holds it now: the late one still cannot touch it.
	f.wantCode("complete what another holds", late.Settle(f.ctx, complete, lost), backends.LockLost)
	late.release()
	f.holds(id)
	s.settle(complete, msgs...)
}

func leaseExpiredTooOften(f *fixture) {
	id := f.queue()
	limit := f.entity(id).Limits.MaxDeliveryCount
	if limit == 0 {
		f.Skip("the entity declares no limit of deliveries")
	}
	f.send(id, text("a"))
	for range limit {
		f.lease(id, backends.LeaseOptions{}).next()
		f.expire(id)
	}
	f.diedOfDeliveries(id, limit)
}
