package amqpd

import (
	"errors"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/message"
)

const sessionFilterName = message.Symbol("com.microsoft:session-filter")

// sessionFilter returns the session that an attach asks for: nil is the next that is free.
func sessionFilter(a *amqp.Attach) (id *string, wanted bool) {
	if a.Source == nil {
		return nil, false
	}
	v, wanted := a.Source.Filter.Get(sessionFilterName)
	if !wanted {
		return nil, false
	}
	if d, ok := v.(message.Described); ok { // as Go sends it; others send the plain value
		v = d.Value
	}
	if s, ok := text(v); ok {
		return &s, true
	}
	return nil, true
}

// withSession returns the source of an attach with the session that was locked, in the form
// in which the peer asked for one: each kind of peer reads only its own.
func withSession(source *amqp.Source, id string) *amqp.Source {
	granted := *source
	granted.Filter = append(message.Map(nil), source.Filter...)
	for i, p := range granted.Filter {
		if p.Key != sessionFilterName {
			continue
		}
		granted.Filter[i].Value = message.String(id)
		if d, ok := p.Value.(message.Described); ok {
			granted.Filter[i].Value = message.Described{Descriptor: d.Descriptor, Value: message.String(id)}
		}
	}
	return &granted
}

// acceptance is the wait of a link for a session.
type acceptance struct {
	o      *outlet
	attach *amqp.Attach
	id     *string // nil: the next that is free
	info   broker.Info
	timer  *time.Timer
	trying bool
	again  bool
}

func newAcceptance(o *outlet, a *amqp.Attach, id *string, info broker.Info) *acceptance {
	w := &acceptance{o: o, attach: a, id: id, info: info, trying: true}
	w.timer = time.AfterFunc(timeout(a.Properties), w.expired)
	return w
}

// woken tries again. The caller holds the lock.
func (w *acceptance) woken() {
	if w.trying {
		w.again = true
		return
	}
	w.trying = true
	w.o.s.c.begin(w.try)
}

// try locks a session, or waits on.
func (w *acceptance) try() {
	c := w.o.s.c
	for {
		session, err := c.srv.engine.AcceptSession(w.o.addr, w.id)
		c.mu.Lock()
		switch {
		case w.o.left || w.o.refused || w.o.accept != w: // the peer did not wait
			c.mu.Unlock()
			if err == nil {
				_ = c.srv.engine.ReleaseSession(w.o.addr, session.Token) // a lock that is gone is free
			}
			return
		case err == nil:
			w.granted(session)
		case !errors.Is(err, broker.ErrNoSession):
			w.refused(c.srv.failed(sessionTaken(err, w.id), path(w.o.addr)))
		case w.again:
			w.again = false
			c.mu.Unlock()
			continue
		default:
			w.trying = false
			w.o.waiter.Arm(zeroUUID)
		}
		c.flushLocked()
		c.mu.Unlock()
		return
	}
}

// takenError says that another receiver holds a session.
type takenError struct{ id string }

func (e *takenError) Error() string {
	return "The requested session '" + e.id + "' cannot be accepted. It may be locked by another receiver."
}

func sessionTaken(err error, id *string) error {
	if id != nil && errors.Is(err, broker.ErrLocked) {
		return &takenError{*id}
	}
	return err
}

// granted answers the attach. The caller holds the lock.
func (w *acceptance) granted(session broker.Session) {
	o := w.o
	w.timer.Stop()
	o.accept = nil
	o.session = &heldSession{o: o, id: session.ID, token: session.Token, lock: w.info.LockDuration}
	o.session.watch(session.LockedUntil)
	w.attach.Source = withSession(w.attach.Source, session.ID)
	o.answer(w.attach, message.Map{
		{Key: message.Symbol("com.microsoft:locked-until-utc"), Value: message.Long(ticks(session.LockedUntil))},
	})
	o.kick()
}

func (w *acceptance) refused(why failure) {
	w.timer.Stop()
	w.o.accept = nil
	w.o.s.refuse(w.attach, w.o, why)
}

// expired gives up: no session came free in the time that the peer gave.
func (w *acceptance) expired() {
	c := w.o.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.o.accept == w && !w.o.left && !w.o.refused {
		w.refused(c.srv.failed(errTimeout, path(w.o.addr)))
		c.flushLocked()
	}
}

// errTimeout says that an operation took longer than the peer wants to wait.
var errTimeout = errors.New("the operation did not complete within its time")

// cancel ends the wait because the link has gone.
func (w *acceptance) cancel() { w.timer.Stop() }

// ticks is a time in units of 100 ns since the year 1.
func ticks(t time.Time) int64 { return t.UnixMilli()*10_000 + 621_355_968_000_000_000 }

// heldSession is the session that a link holds the lock of.
type heldSession struct {
	o     *outlet
	id    string
	token message.UUID
	lock  time.Duration
	timer *time.Timer // under the connection's lock
}

// watch looks at the time when the lock ends whether it does. The caller holds the lock.
func (h *heldSession) watch(until time.Time) {
	wait := max(until.Sub(h.o.s.c.srv.now()), 0) + time.Millisecond
	h.timer = time.AfterFunc(wait, h.check)
}

// check detaches the link if its session's lock is lost, and looks again later if it was
// renewed. Source: https://learn.microsoft.com/azure/service-bus-messaging/message-sessions
func (h *heldSession) check() {
	lost := h.lost()
	c := h.o.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.o.left || h.o.refused {
		return
	}
	if !lost {
		h.timer = time.AfterFunc(min(h.lock/4, lockCheck), h.check)
		return
	}
	h.o.detach(c.srv.failed(broker.ErrSessionLockLost, path(h.o.addr)))
	c.flushLocked()
}

// lost reports whether the lock is gone.
func (h *heldSession) lost() bool {
	_, err := h.o.s.c.srv.engine.SessionState(h.o.addr, h.token)
	return errors.Is(err, broker.ErrSessionLockLost)
}

// release gives the session back, with what was received in it.
func (h *heldSession) release() {
	h.timer.Stop()
	err := h.o.s.c.srv.engine.ReleaseSession(h.o.addr, h.token)
	if err != nil && !errors.Is(err, broker.ErrSessionLockLost) && !errors.Is(err, broker.ErrNoEntity) {
		h.o.s.c.srv.log("release a session of %s: %v", path(h.o.addr), err)
	}
}

// session finds the session that a link of the connection holds, by its id, or by the name
// of the link where the peer sends no id.
func (c *conn) session(a broker.Address, id *string, name string) (token message.UUID, sessionID string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		for _, l := range s.links {
			o, isOutlet := l.(*outlet)
			if !isOutlet || o.session == nil || o.left || !sameAddress(o.addr, a) {
				continue
			}
			if id != nil && o.session.id == *id || id == nil && o.name == name {
				return o.session.token, o.session.id, true
			}
		}
	}
	return token, "", false
}
