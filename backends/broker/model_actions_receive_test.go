package broker

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"dlq/backends/message"
)

// The actions of the machine that receive.

// receivable returns an address that messages might be received from.
func (m *machine) receivable(t *rapid.T) Address {
	e := pick(t, "entity", m.ref.entities)
	if rapid.Bool().Draw(t, "main") {
		return Address{Name: e.name}
	}
	return Address{e.name, pick(t, "sub", e.subs())}
}

func (m *machine) receive(t *rapid.T) { m.receiveFrom(t, m.receivable(t), ReceiveOptions{}) }

func (m *machine) receiveSeveral(t *rapid.T) {
	m.receiveFrom(t, m.receivable(t), ReceiveOptions{Max: rapid.IntRange(2, 6).Draw(t, "max")})
}

// receiveAfter receives from above a number, or for another time than usual, or not at all.
func (m *machine) receiveAfter(t *rapid.T) {
	a := m.receivable(t)
	e := m.ref.entity(a.Name)
	o := ReceiveOptions{Max: 2, After: max(0, e.highest-int64(rapid.IntRange(0, 4).Draw(t, "below the last")))}
	if rapid.Bool().Draw(t, "lock") && !e.p.RequiresSession {
		d := time.Duration(rapid.IntRange(0, 50).Draw(t, "lock for")) * time.Second
		o.Lock = &d
	}
	m.receiveFrom(t, a, o)
}

func (m *machine) receiveAndDelete(t *rapid.T) {
	m.receiveFrom(t, m.receivable(t), ReceiveOptions{Max: rapid.IntRange(1, 3).Draw(t, "max"), Delete: true})
}

// receiveInSession receives what is left in a session that is locked.
func (m *machine) receiveInSession(t *rapid.T) {
	e, _ := m.locked(t)
	m.receiveFrom(t, Address{Name: e.name}, ReceiveOptions{Max: rapid.IntRange(1, 4).Draw(t, "max")})
}

// receiveFrom receives with the engine and with the model. In an entity with sessions it uses
// the lock of one, if there is one.
func (m *machine) receiveFrom(t *rapid.T, a Address, o ReceiveOptions) {
	e := m.ref.entity(a.Name)
	if a.Sub == Main {
		o.Session = m.session(t, e)
	}
	m.receiveWith(t, a, o)
}

func (m *machine) receiveWith(t judge, a Address, o ReceiveOptions) {
	got, err := m.e.Receive(a, o)
	left := map[int64]bool{}
	page, peekErr := m.e.Peek(a, PeekOptions{Max: 1000, NoBody: true})
	for _, x := range slices.Concat(page, got) {
		left[x.Broker.SequenceNumber] = true // or given, which is not moved away
	}
	group := func(i int) string {
		if i < len(got) {
			return message.Str(got[i].SessionID)
		}
		return noGroup
	}
	wanted, wantErr := m.ref.receive(a, o, hint{group, func(no int64) bool { return peekErr == nil && !left[no] }})
	want(t, "receive from "+a.Name, err, wantErr)
	m.took(t, a, o, got, wanted)
}

// session returns the token of a session that somebody has locked, or of one that was lost.
func (m *machine) session(t *rapid.T, e *refEntity) message.UUID {
	var tokens []message.UUID
	for _, g := range e.groups {
		if !g.until.IsZero() {
			tokens = append(tokens, g.token)
		}
	}
	for _, l := range m.ref.lost {
		if l.seq == 0 && l.at.Name == e.name && len(tokens) < 3 {
			tokens = append(tokens, l.token)
		}
	}
	if len(tokens) == 0 {
		return message.UUID{}
	}
	return pick(t, "session", tokens)
}

// took compares what was received, and learns the tokens.
func (m *machine) took(t judge, a Address, o ReceiveOptions, got []*message.Message, wanted []*refMessage) {
	if len(got) != len(wanted) {
		t.Fatalf("received %d messages from %v, want %d", len(got), a, len(wanted))
	}
	for i, x := range wanted {
		b := got[i].Broker
		m.saw("took %d %v;", b.SequenceNumber, b.LockToken)
		if b.SequenceNumber != x.no.n || !message.EqualBodies(got[i].Body, x.m.Body) {
			t.Fatalf("received number %d from %v, want %d", b.SequenceNumber, a, x.no.n)
		}
		if o.Delete {
			m.durable = true
			continue
		}
		x.token = b.LockToken
		shown := *got[i]
		shown.Broker.LockToken = message.UUID{}
		if why := x.differs(&shown, a.Sub); why != "" {
			t.Fatalf("received number %d from %v: %s", b.SequenceNumber, a, why)
		}
		if x.held() && x.token.IsZero() {
			t.Fatalf("received number %d from %v without a token", b.SequenceNumber, a)
		}
	}
}

// receiveDeferred receives messages by their numbers, all or none of which can be given.
func (m *machine) receiveDeferred(t *rapid.T) {
	first := pick(t, "message", m.messages(deferred))
	a, e := first.address(), first.of
	xs := []*refMessage{first}
	if rapid.IntRange(0, 2).Draw(t, "another") == 0 {
		if x := pick(t, "another", e.in(a.Sub, func(x *refMessage) bool { return x.no.n != 0 })); x != first {
			xs = append(xs, x)
		}
	}
	seqs := make([]int64, len(xs))
	for i, x := range xs {
		seqs[i] = x.no.n
	}
	o := ReceiveOptions{Delete: rapid.IntRange(0, 4).Draw(t, "delete") == 0}
	if a.Sub == Main {
		o.Session = m.session(t, e)
	}
	wantErr := m.ref.receiveDeferred(a, o, xs)
	got, err := m.e.ReceiveDeferred(a, o, seqs...)
	want(t, "receive deferred", err, wantErr)
	if wantErr == nil {
		m.took(t, a, o, got, xs)
	}
}

// peek looks at a page in the middle, of one session or of all.
func (m *machine) peek(t *rapid.T) {
	a := m.receivable(t)
	e := m.ref.entity(a.Name)
	from := rapid.Int64Range(0, e.highest+1).Draw(t, "from")
	o := PeekOptions{From: from, Max: rapid.IntRange(1, 4).Draw(t, "max")}
	if rapid.Bool().Draw(t, "of a session") {
		id := "s1"
		o.Session = &id
	}
	got, err := m.e.Peek(a, o)
	if e.p.Status == Disabled || e.p.Status == ReceiveDisabled {
		want(t, "peek", err, ErrDisabled)
		return
	}
	want(t, "peek", err, nil)
	wanted := e.in(a.Sub, func(x *refMessage) bool {
		return x.no.n >= from && (o.Session == nil || x.m.SessionID != nil && x.group() == *o.Session)
	})
	wanted = wanted[:min(len(wanted), o.Max)]
	if len(got) != len(wanted) {
		t.Fatalf("a page of %v from %d has %d messages, want %d", a, from, len(got), len(wanted))
	}
	for i, x := range wanted {
		if got[i].Broker.SequenceNumber != x.no.n {
			t.Fatalf("a page of %v from %d shows %d, want %d", a, from, got[i].Broker.SequenceNumber, x.no.n)
		}
	}
}

// acceptSession locks a session by its name, whether it has messages or not.
func (m *machine) acceptSession(t *rapid.T) {
	e := pick(t, "entity", m.entities(func(e *refEntity) bool { return e.p.RequiresSession }))
	id := pick(t, "session", []string{"s1", "s2", "s3", "", "s4"})
	m.accept(t, e, &id)
}

func (m *machine) acceptNextSession(t *rapid.T) {
	m.accept(t, pick(t, "entity", m.entities(func(e *refEntity) bool { return e.p.RequiresSession })), nil)
}

func (m *machine) accept(t *rapid.T, e *refEntity, id *string) {
	got, err := m.e.AcceptSession(Address{Name: e.name}, id)
	g, wantErr := m.ref.accept(e, id, got.ID)
	want(t, "accept a session of "+e.name, err, wantErr)
	if wantErr != nil {
		return
	}
	if got.ID != g.id || !got.LockedUntil.Equal(g.until) || got.Token.IsZero() {
		t.Fatalf("accepted %+v of %s, want %q until %v", got, e.name, g.id, g.until)
	}
	m.saw("accepted %v;", got)
	g.token = got.Token
}

// locked draws a session that somebody holds.
func (m *machine) locked(t *rapid.T) (*refEntity, *refGroup) {
	type pair struct {
		e *refEntity
		g *refGroup
	}
	var all []pair
	for _, e := range m.ref.entities {
		for _, g := range e.groups {
			if !g.until.IsZero() {
				all = append(all, pair{e, g})
			}
		}
	}
	p := pick(t, "session", all)
	return p.e, p.g
}

func (m *machine) renewSession(t *rapid.T) {
	e, g := m.locked(t)
	m.ref.renewSession(e, g)
	until, err := m.e.RenewSession(Address{Name: e.name}, g.token)
	if want(t, "renew a session", err, nil); !until.Equal(g.until) {
		t.Fatalf("the session is renewed until %v, want %v", until, g.until)
	}
}

func (m *machine) releaseSession(t *rapid.T) {
	e, g := m.locked(t)
	want(t, "release a session", m.e.ReleaseSession(Address{Name: e.name}, g.token), nil)
	m.ref.unlock(e, g, false)
}

func (m *machine) setSessionState(t *rapid.T) {
	e, g := m.locked(t)
	state := pick(t, "state", [][]byte{nil, {}, []byte("state"), []byte("another")})
	want(t, "set a session's state", m.e.SetSessionState(Address{Name: e.name}, g.token, state), nil)
	g.state, g.updated, m.durable = state, m.now, true
}

func (m *machine) sessionState(t *rapid.T) {
	e, g := m.locked(t)
	got, err := m.e.SessionState(Address{Name: e.name}, g.token)
	want(t, "session state", err, nil)
	if string(got) != string(g.state) || (got == nil) != (g.state == nil) {
		t.Fatalf("session %q keeps %q, want %q", g.id, got, g.state)
	}
	ids, err := m.e.Sessions(Address{Name: e.name}, m.now.Add(-10*time.Second))
	want(t, "sessions", err, nil)
	for _, g := range e.groups {
		recent, listed := g.state != nil && g.updated.After(m.now.Add(-10*time.Second)), false
		for _, id := range ids {
			listed = listed || id == g.id
		}
		if recent != listed {
			t.Fatalf("session %q was updated %v and is listed %v", g.id, g.updated, listed)
		}
	}
}

// useLostSession: a session whose lock is gone gives nothing and takes nothing.
func (m *machine) useLostSession(t *rapid.T) {
	var all []refToken
	for _, l := range m.ref.lost {
		if l.seq == 0 && m.ref.entity(l.at.Name) != nil {
			all = append(all, l)
		}
	}
	l := pick(t, "lost", all)
	_, err := m.e.RenewSession(l.at, l.token)
	want(t, "renew a lost session", err, ErrSessionLockLost)
	want(t, "release a lost session", m.e.ReleaseSession(l.at, l.token), ErrSessionLockLost)
	want(t, "set the state of a lost session", m.e.SetSessionState(l.at, l.token, []byte("lost")), ErrSessionLockLost)
	_, err = m.e.SessionState(l.at, l.token)
	want(t, "read the state of a lost session", err, ErrSessionLockLost)
}
