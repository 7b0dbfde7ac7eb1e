package broker

import (
	"context"
	"errors"
	"slices"
	"time"

	"dlq/backends/message"
)

// Waiter is somebody who wants to know when there is something to receive. The engine never
// waits; a server does, and asks again when it is woken. Its methods may be called
// concurrently.
type Waiter struct {
	e    *Engine
	a    Address
	wake func()

	// Under the engine's lock.
	in      *queue       // waits there; nil: it does not
	session message.UUID // it receives from this session; zero: from none, or waits for one
	woken   bool         // and has not said since what came of it
	of      *queue       // where it was woken for something; nil: nowhere
	closed  bool
}

// NewWaiter returns a waiter that is not armed. wake is called at most once for each time
// that it is armed, on the goroutine of whoever made a message available and not under the
// engine's lock: it must not block.
func (e *Engine) NewWaiter(a Address, wake func()) *Waiter {
	return &Waiter{e: e, a: a, wake: wake}
}

// Arm asks to be woken when Receive, of the session if that is not zero, or else
// AcceptSession may return what it did not before: at once, if it may now. One message wakes
// one waiter, those that have waited longest first. A waiter that was woken and takes nothing
// is to be armed again, passed or closed.
func (w *Waiter) Arm(session message.UUID) {
	e := w.e
	e.mu.Lock()
	w.woken = false
	q, err := e.find(w.a)
	switch {
	case w.closed || w.in != nil:
		e.unlock()
	case err != nil || e.closed || w.servable(q, session):
		w.wakes(q)
		e.unlock()
		w.wake()
	default:
		q.engine = e
		w.in, w.session = q, session
		q.waiters = append(q.waiters, w)
		e.unlock()
	}
}

// Pass wakes the next waiter in the place of this one, which was woken and cannot receive
// now.
func (w *Waiter) Pass() {
	w.e.mu.Lock()
	w.pass()
	w.e.unlock()
}

func (w *Waiter) pass() {
	if !w.woken {
		return
	}
	w.woken = false
	if w.of != nil {
		w.of.offer()
	}
}

// Close ends the waiting.
func (w *Waiter) Close() {
	w.e.mu.Lock()
	w.closed = true
	if w.in != nil {
		w.in.of.accessed = w.e.readClock()
		w.in.waiters = slices.DeleteFunc(w.in.waiters, func(other *Waiter) bool { return other == w })
		w.in = nil
	}
	w.pass()
	w.e.unlock()
}

// servable reports whether the queue has something for a waiter.
func (w *Waiter) servable(q *queue, session message.UUID) bool {
	if !session.IsZero() {
		s := w.e.sessions[session]
		return s == nil || s.g.ready.Len() > 0
	}
	return q.available() > 0
}

// wakes notes that it is woken for what is in a queue.
func (w *Waiter) wakes(q *queue) { w.in, w.woken, w.of = nil, true, q }

// free is how many receivers could be served, about, if they might hold any number of messages.
func (q *queue) free() int {
	if q.groups != nil {
		return q.turns.Len()
	}
	return q.ready.Len()
}

// available is how many receivers can be served now, about.
func (q *queue) available() int {
	if q.of.p.MaxInFlight == 0 {
		return q.free()
	}
	return min(q.free(), max(q.of.p.MaxInFlight-len(q.locked), 0))
}

// crowded reports whether somebody cannot be served because so many messages are locked.
func (q *queue) crowded() bool { return q.available() < q.free() }

// offer notes that there is one more for those who wait.
func (q *queue) offer() {
	if len(q.waiters) > 0 {
		q.offered++
		q.stir()
	}
}

// stir notes that there may be something for those who wait.
func (q *queue) stir() {
	if len(q.waiters) > 0 && !q.stirred {
		q.stirred = true
		q.engine.stirred = append(q.engine.stirred, q)
	}
}

// woken returns the waiters that are to be woken for what has become available in a queue. What
// was there before has woken others, who are on their way.
func (q *queue) woken() []*Waiter {
	left := min(q.available(), q.offered)
	q.offered = 0
	if q.groups == nil { // all wait for the same; there may be very many
		n := min(left, len(q.waiters))
		due := slices.Clone(q.waiters[:n])
		clear(q.waiters[:n])
		q.waiters = q.waiters[n:]
		for _, w := range due {
			w.wakes(q)
		}
		return due
	}
	var due []*Waiter
	q.waiters = slices.DeleteFunc(q.waiters, func(w *Waiter) bool {
		if left <= 0 && w.session.IsZero() || !w.servable(q, w.session) {
			return false
		}
		if w.session.IsZero() {
			left--
		}
		w.wakes(q)
		due = append(due, w)
		return true
	})
	return due
}

// unlock lets go of the engine's lock and then tells those who wait what has happened.
func (e *Engine) unlock() {
	var due []*Waiter
	for _, q := range e.stirred {
		q.stirred = false
		due = append(due, q.woken()...)
	}
	clear(e.stirred)
	e.stirred = e.stirred[:0]
	changed := e.changed
	e.changed = nil
	if first := e.timers.first(); first != nil && !e.runsUntil.IsZero() && first.at.Before(e.runsUntil) {
		e.runsUntil = first.at
		e.hurry()
	}
	e.mu.Unlock()
	for _, w := range due {
		w.wake()
	}
	for _, f := range changed {
		f()
	}
}

// hurry has Run look again at what is due.
func (e *Engine) hurry() {
	select {
	case e.earlier <- struct{}{}:
	default: // it has not looked yet
	}
}

// watch is somebody who wants to know when an entity changes.
type watch struct{ f func() }

// OnChange has f called, at most once, when the entity is changed or deleted, or is gone
// already, and returns what ends that. f is called on the goroutine of whoever changed it
// and not under the engine's lock: it must not block. An entity that is watched is in use,
// so that it is not deleted for being idle.
func (e *Engine) OnChange(name string, f func()) (cancel func()) {
	e.mu.Lock()
	ent := e.entity(name)
	if ent == nil {
		e.unlock()
		f()
		return func() {}
	}
	w := &watch{f}
	if ent.watches == nil {
		ent.watches = map[*watch]struct{}{}
	}
	ent.watches[w] = struct{}{}
	e.unlock()
	return func() {
		e.mu.Lock()
		if _, there := ent.watches[w]; there {
			delete(ent.watches, w)
			ent.accessed = e.readClock()
		}
		e.unlock()
	}
}

// tell calls those who watch an entity when the lock is let go.
func (e *Engine) tell(ent *entity) {
	for w := range ent.watches {
		e.changed = append(e.changed, w.f)
	}
	ent.watches = nil
	e.wakeAll(ent)
}

// wakeAll wakes all who wait at an entity when the lock is let go: what they wait for may
// never come.
func (e *Engine) wakeAll(ent *entity) {
	for _, q := range ent.subs {
		for _, w := range q.waiters {
			w.wakes(q)
			e.changed = append(e.changed, w.wake)
		}
		q.waiters = nil
	}
}

// wakeReferred wakes those who wait in a queue for the dead letters of others when the lock is
// let go: the queue that they mean may be another from now on. nil is none.
func (e *Engine) wakeReferred(ent *entity) {
	if ent == nil {
		return
	}
	q := ent.subs[Main]
	q.waiters = slices.DeleteFunc(q.waiters, func(w *Waiter) bool {
		if w.a.Sub == Main {
			return false
		}
		w.wakes(q)
		e.changed = append(e.changed, w.wake)
		return true
	})
}

// soonest has Run look again if something expires before it would.
func (e *Engine) soonest(at time.Time) {
	if e.runsUntil.Sub(e.latest) > time.Second && at.Before(e.runsUntil) {
		e.runsUntil = at
		select {
		case e.earlier <- struct{}{}:
		default: // it has not looked yet
		}
	}
}

// expireAll ends the messages whose time to live is over, some of each entity, and reports
// whether there are others that will expire.
func (e *Engine) expireAll() (more bool, err error) {
	t, err := e.begin()
	if err != nil {
		return false, err
	}
	for _, ent := range e.byID {
		q := ent.subs[Main]
		if ent.p.Retention > 0 || q.expiring.Len() == 0 {
			continue
		}
		if err = t.expireReady(q); err != nil {
			break
		}
		more = more || q.expiring.Len() > 0
	}
	return more, errors.Join(err, t.flush())
}

// Run makes what is due happen at its time, for a server whose clients wait for it, until ctx
// ends. Messages whose time to live is over leave within a second of it, though nobody
// receives from their entity. It returns nil then, or the error that stopped the engine; what fails because
// something cannot be read is tried again. Only one may run.
func (e *Engine) Run(ctx context.Context) error {
	const never = 24 * time.Hour
	timer := time.NewTimer(never)
	defer timer.Stop()
	for {
		expiring, err := e.expireAll()
		e.mu.Lock()
		if stopped := e.closed || e.store.Failure() != nil; err != nil && stopped {
			e.runsUntil = time.Time{}
			e.unlock()
			return err
		}
		now := e.readClock()
		until := now.Add(never)
		if expiring {
			until = now.Add(time.Second)
		}
		if first := e.timers.first(); first != nil && first.at.Before(until) {
			until = first.at
		}
		e.runsUntil = until
		e.unlock()
		timer.Reset(max(until.Sub(now), time.Millisecond))
		select {
		case <-timer.C:
		case <-e.earlier:
		case <-ctx.Done():
			e.mu.Lock()
			e.runsUntil = time.Time{}
			e.unlock()
			return nil
		}
	}
}
