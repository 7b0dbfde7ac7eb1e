package broker

import (
	"slices"
	"strconv"
	"time"

	"dlq/backends/message"
)

// What the reference model does as time goes by.

func itoa(n int) string { return strconv.Itoa(n) }

// happening is something that comes at its time.
type happening struct {
	at time.Time
	do func()
}

// due returns everything that will happen by itself.
func (r *ref) due() (all []happening) {
	add := func(at time.Time, do func()) { all = append(all, happening{at, do}) }
	for _, e := range r.entities {
		for _, x := range e.msgs {
			if x.state == message.Scheduled {
				add(x.due, func() { r.activate(x) })
			}
			if x.held() && !(e.p.RequiresSession && x.sub == Main) {
				add(x.until, func() { r.lapse(x) })
			}
			if e.p.Retention > 0 { // after it, not at it
				add(x.enqueued.Add(e.p.Retention+time.Millisecond), func() { r.fact("retention ended"); r.remove(x) })
			}
		}
		for _, g := range e.groups {
			if !g.until.IsZero() {
				add(g.until, func() { r.unlock(e, g, true) })
			}
		}
		waits := slices.ContainsFunc(e.msgs, func(x *refMessage) bool { return x.state == message.Scheduled })
		if e.p.AutoDeleteOnIdle > 0 && e.p.ForwardTo == "" && !waits {
			add(r.used(e).Add(e.p.AutoDeleteOnIdle), func() { r.fact("deleted when idle"); r.delete(e) })
		}
	}
	if r.tx != nil && !r.tx.ended && !r.tx.until.IsZero() {
		add(r.tx.until, func() { r.fact("transaction timed out"); r.tx.end() })
	}
	return all
}

// used is when an entity was last used; a topic, when it or one of its subscriptions was.
func (r *ref) used(e *refEntity) time.Time {
	at := e.accessed
	if e.kind == Topic {
		for _, sub := range r.subscriptions(e) {
			if sub.accessed.After(at) {
				at = sub.accessed
			}
		}
	}
	return at
}

// advance makes everything happen up to a time, each at its own.
func (r *ref) advance(to time.Time) {
	r.drain()
	defer r.drain()
	for {
		all := r.due()
		first := slices.MinFunc(append(all, happening{at: to.Add(1)}), func(a, b happening) int { return a.at.Compare(b.at) }).at
		if first.After(to) {
			break
		}
		r.now = later(r.now, first)
		r.atOnce(func() {
			for _, h := range all {
				if h.at.Equal(first) {
					h.do()
				}
			}
		})
	}
	r.now = to
}

// atOnce runs what happens at one moment and has no order.
func (r *ref) atOnce(f func()) {
	r.wave++
	r.turn++
	r.together = true
	f()
	r.together = false
}

// drain forwards what lies in an entity that forwards: what came before it did, or was locked
// then.
func (r *ref) drain() {
	for _, e := range r.entities {
		if e.p.ForwardTo == "" {
			continue
		}
		for _, x := range e.in(Main, (*refMessage).ready) {
			r.fact("forwarded from a backlog")
			r.handOn(x, e.p.ForwardTo, refCopy{m: x.m, hops: x.hops, expires: x.expires, source: x.source})
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lapse is that a lock expires.
func (r *ref) lapse(x *refMessage) {
	if x.held() && slices.Contains(x.of.msgs, x) {
		r.fact("lock expired")
		r.release(x)
		r.fail(x)
		r.turns(x.of)
	}
}

// activate is that a scheduled message becomes active: with a new number, because its place
// is that of its activation; one of SQS, which was delayed, keeps its place.
// Source: servicebus-wire, section 10, "Sequence numbers".
func (r *ref) activate(x *refMessage) {
	if !slices.Contains(x.of.msgs, x) {
		return
	}
	if x.of.p.DelayKeepsPlace {
		r.fact("delay ended")
		x.state, x.due = message.Active, time.Time{}
		r.turns(x.of)
		return
	}
	r.fact("schedule came due")
	x.of.accessed = later(x.of.accessed, r.now)
	out := &route{}
	r.pass(x.of, refCopy{m: x.m, hops: x.hops, expires: x.expires, source: x.source, from: x.from}, &number{}, out)
	r.remove(x)
	r.land(out)
}

// restarted is that the engine was opened anew: groups take turns in the order of their first
// messages.
func (r *ref) restarted(now time.Time) {
	for _, e := range r.entities {
		e.accessed = now
		for _, x := range e.msgs {
			x.since = now // it is not stored: the twelve hours of an extended lock begin anew
		}
		for _, g := range e.groups {
			g.turn = 0
		}
		for _, x := range e.in(Main, (*refMessage).ready) {
			if g := e.group(x.group()); g.turn == 0 && e.grouped() && e.open(g) {
				r.turn++
				g.turn = r.turn
			}
		}
	}
}
