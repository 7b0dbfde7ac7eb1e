package broker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// Session is a session that a receiver has locked.
type Session struct {
	ID          string
	Token       message.UUID // stands for the lock
	LockedUntil time.Time
}

// sessionLock is the lock of a session, which ends by itself.
type sessionLock struct {
	q *queue
	g *group
}

// happen is that the lock expires. A delivery of each message that it held has failed.
func (s *sessionLock) happen(t *tx) error { return t.endSession(s, (*tx).lapse) }

// AcceptSession locks a session of an entity that requires them, for as long as the entity's
// locks last, and returns its lock. One that is named need hold no messages. id nil takes the
// next in turn that is free and has a message. The error is [ErrLocked] or [ErrNoSession].
func (e *Engine) AcceptSession(a Address, id *string) (Session, error) {
	t, q, err := e.on(a)
	if err != nil {
		return Session{}, err
	}
	g, err := t.choose(q, id)
	var kept store.Session
	if err == nil {
		kept, err = t.kept(q, g)
	}
	if err != nil { // what has expired has gone all the same
		if flushed := t.flush(); flushed != nil {
			return Session{}, flushed
		}
		return Session{}, err
	}
	g.token, g.until = e.newID(), t.now.Add(q.of.p.LockDuration)
	s := &sessionLock{q, g}
	g.timer = e.timers.add(g.until, s)
	e.sessions[g.token] = s
	q.turnOf(g)
	t.putSession(kept, g)
	return Session{g.id, g.token, g.until}, t.flush()
}

func (t *tx) choose(q *queue, id *string) (*group, error) {
	switch {
	case q.sub != Main || !q.of.p.RequiresSession:
		return nil, fmt.Errorf("%w: %s has no sessions", ErrUnsupported, q.of.name)
	case !q.of.receives():
		return nil, fmt.Errorf("%w: %s is %s", ErrDisabled, q.of.name, q.of.p.Status)
	}
	if id == nil {
		if err := t.expireReady(q); err != nil {
			return nil, err
		}
		_, g, ok := q.turns.Min()
		if !ok {
			return nil, ErrNoSession
		}
		return g, nil
	}
	if len(*id) > maxIDLength {
		return nil, fmt.Errorf("%w: the session id has %d bytes; %d are allowed", ErrInvalid, len(*id), maxIDLength)
	}
	g := q.session(*id)
	if !g.token.IsZero() && !t.e.sabotaged("session-shared") {
		return nil, fmt.Errorf("%w: session %q", ErrLocked, *id)
	}
	return g, nil
}

// held returns the session that a token stands for in this queue.
func (e *Engine) held(q *queue, token message.UUID) (*sessionLock, error) {
	s := e.sessions[token]
	if s == nil || s.q != q {
		return nil, ErrSessionLockLost
	}
	return s, nil
}

// onSession begins a command on a session that a token stands for.
func (e *Engine) onSession(a Address, token message.UUID) (*tx, *sessionLock, error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, nil, err
	}
	s, err := e.held(q, token)
	if err != nil {
		t.end()
		return nil, nil, err
	}
	return t, s, nil
}

// RenewSession makes the lock of a session, and of what was received in it, last for the
// entity's lock duration from now, and returns until when that is.
func (e *Engine) RenewSession(a Address, token message.UUID) (time.Time, error) {
	t, s, err := e.onSession(a, token)
	if err != nil {
		return time.Time{}, err
	}
	kept, err := t.kept(s.q, s.g)
	if err != nil {
		t.end()
		return time.Time{}, err
	}
	s.g.until = t.now.Add(s.q.of.p.LockDuration)
	e.timers.move(s.g.timer, s.g.until)
	t.extendHeld(s)
	t.putSession(kept, s.g)
	return s.g.until, t.flush()
}

// ReleaseSession frees a session and what was received in it at once, and counts nothing.
func (e *Engine) ReleaseSession(a Address, token message.UUID) error {
	t, s, err := e.onSession(a, token)
	if err != nil {
		return err
	}
	err = t.endSession(s, (*tx).letGo)
	return errors.Join(err, t.flush())
}

// endSession ends the lock of a session; end ends each lock in it.
func (t *tx) endSession(s *sessionLock, end func(*tx, *lock)) error {
	q, g := s.q, s.g
	kept, err := t.kept(q, g)
	damage := isDamage(err) // and shows to whoever asks for the state
	if err != nil && !damage {
		return err
	}
	var seqs []uint64
	g.hidden.Scan(func(seq uint64) bool { seqs = append(seqs, seq); return true })
	for _, seq := range seqs {
		if l := q.locked[seq]; l != nil {
			end(t, l)
		}
	}
	t.e.timers.remove(g.timer)
	delete(t.e.sessions, g.token)
	g.token, g.until, g.timer = message.UUID{}, time.Time{}, nil
	if !damage {
		t.putSession(kept, g)
	}
	q.turnOf(g)
	return nil
}

// kept reads what is stored of a session beside its messages and its lock. It is read before
// anything changes, since it may fail.
func (t *tx) kept(q *queue, g *group) (store.Session, error) {
	s := store.Session{Entity: q.of.id, ID: g.id}
	if !g.kept {
		return s, nil
	}
	old, err := t.e.store.Session(q.of.id, g.id)
	s.HasState, s.State, s.Updated = true, old.State, old.Updated
	return s, unavailable(err)
}

// putSession stores a session with its lock, as long as it has that or a state.
func (t *tx) putSession(s store.Session, g *group) {
	if s.Token, s.LockedUntil = g.token, g.until; s.Token.IsZero() && !s.HasState {
		t.batch.DeleteSession(s.Entity, s.ID)
		return
	}
	t.batch.PutSession(s)
}

// loadSession puts a stored session into the index.
func (e *Engine) loadSession(q *queue, s store.Session) {
	g := q.session(s.ID)
	g.kept, g.updated = s.HasState, s.Updated
	if !s.LockedUntil.IsZero() {
		g.token, g.until = s.Token, s.LockedUntil
		if longest := e.latest.Add(maxLockDuration); g.until.After(longest) {
			g.until = longest // it was taken under a clock that ran ahead
		}
		held := &sessionLock{q, g}
		g.timer = e.timers.add(g.until, held)
		e.sessions[g.token] = held
	}
	q.turnOf(g)
}

// SessionState returns what the holder of a session has kept with it, or nil.
func (e *Engine) SessionState(a Address, token message.UUID) ([]byte, error) {
	t, s, err := e.onSession(a, token)
	if err != nil {
		return nil, err
	}
	defer t.end()
	if !s.g.kept {
		return nil, nil
	}
	kept, err := e.store.Session(s.q.of.id, s.g.id)
	if err != nil {
		return nil, unavailable(err)
	}
	return append([]byte{}, kept.State...), nil
}

// SetSessionState keeps something with a session and returns when it is durable. It stays when
// the session has no messages, until it is set to nil. It has at most as many bytes as a
// message of the entity.
func (e *Engine) SetSessionState(a Address, token message.UUID, state []byte) error {
	t, s, err := e.onSession(a, token)
	if err != nil {
		return err
	}
	if most := s.q.of.p.MaxMessageBytes; int64(len(state)) > most {
		t.end()
		return fmt.Errorf("%w: the session state has %d bytes, %s takes %d", ErrTooLarge, len(state), a.Name, most)
	}
	g := s.g
	g.kept, g.updated = state != nil, t.now
	t.batch.PutSession(store.Session{
		Entity: s.q.of.id, ID: g.id, HasState: g.kept, State: state, Updated: g.updated, Token: g.token, LockedUntil: g.until,
	})
	return t.commit()
}

// Sessions lists sessions by their ids: those with active messages or a state, or, if updated
// is not zero, those whose state was set after it.
func (e *Engine) Sessions(a Address, updated time.Time) ([]string, error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, err
	}
	defer t.end()
	if q.sub != Main || !q.of.p.RequiresSession {
		return nil, fmt.Errorf("%w: %s has no sessions", ErrUnsupported, a.Name)
	}
	var ids []string
	for id, g := range q.groups {
		switch {
		case !updated.IsZero() && g.kept && g.updated.After(updated):
		case updated.IsZero() && (g.kept || q.activeIn(g)):
		default:
			continue
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

// activeIn reports whether a session has an active message, free or locked.
func (q *queue) activeIn(g *group) bool {
	if g.ready.Len() > 0 {
		return true
	}
	active := false
	g.hidden.Scan(func(seq uint64) bool {
		l := q.locked[seq]
		active = l != nil && l.st.State == message.Active
		return !active
	})
	return active
}

// extendHeld makes what was received in a session be locked as long as the session.
func (t *tx) extendHeld(s *sessionLock) {
	s.g.hidden.Scan(func(seq uint64) bool {
		if l := s.q.locked[seq]; l != nil {
			l.until, l.st.LockedUntil = s.g.until, s.g.until
			t.put(s.q.key(seq), &l.st)
		}
		return true
	})
}
