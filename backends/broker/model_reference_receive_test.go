package broker

import (
	"slices"
	"time"

	"dlq/backends/message"
)

// What the reference model does when messages are received and settled.

// hint says which group the engine took the i-th message of a call from. It decides between
// groups that became free at the same moment, which have no order.
type hint struct {
	group func(i int) string
	gone  func(no int64) bool // whether a message has left the queue
}

// noGroup is where a call gave no more messages; "" is a group.
const noGroup = "\x00"

// prefers tells whether the engine has turned to a group to have its first message moved away,
// which shows only there, or else for the i-th message that it gave.
func (h hint) prefers(e *refEntity, g *refGroup, i int) int {
	first := e.in(Main, func(x *refMessage) bool { return x.group() == g.id })[0]
	switch {
	case e.p.Redrive.Target != "" && int(first.count) >= e.p.Redrive.MaxReceives && h.gone(first.no.n) && !h.gives(g, i):
		return 2
	case h.group(i) == g.id:
		return 1
	}
	return 0
}

// gives tells whether the engine gave the i-th or a later message from a group: that is then
// when it turned to it.
func (h hint) gives(g *refGroup, i int) bool {
	for ; h.group(i) != noGroup; i++ {
		if h.group(i) == g.id {
			return true
		}
	}
	return false
}

// receives returns why an address lets nothing out, or nil.
func (r *ref) receives(a Address, session message.UUID) error {
	e := r.entity(a.Name)
	sessions := e.p.RequiresSession && a.Sub == Main
	switch {
	case e.kind == Topic:
		return ErrUnsupported
	case e.p.Status == Disabled, e.p.Status == ReceiveDisabled:
		return ErrDisabled
	case e.full(a.Sub):
		return ErrInFlight
	case sessions == session.IsZero():
		return ErrUnsupported
	}
	return nil
}

// full reports whether as many messages are in flight as there may be.
func (e *refEntity) full(sub Sub) bool {
	return e.p.MaxInFlight > 0 && len(e.in(sub, held)) >= e.p.MaxInFlight
}

// receive picks the messages of a receive call and puts them under locks that have no token yet.
func (r *ref) receive(a Address, o ReceiveOptions, which hint) ([]*refMessage, error) {
	e := r.entity(a.Name)
	e.accessed = r.now
	if err := r.receives(a, o.Session); err != nil {
		return nil, err
	}
	r.expire(e, a.Sub)
	g := e.byToken(o.Session)
	switch {
	case e.p.RequiresSession && a.Sub == Main && g == nil:
		return nil, ErrSessionLockLost
	case e.p.Groups && a.Sub == Main:
		return r.receiveGroups(e, o, which), nil
	}
	var taken []*refMessage
	for _, x := range e.in(a.Sub, (*refMessage).ready) {
		if x.no.n > o.After && (g == nil || x.group() == g.id) && len(taken) < max(o.Max, 1) && !e.full(a.Sub) && !r.redrive(x) {
			r.take(x, o)
			taken = append(taken, x)
		}
	}
	return taken, nil
}

// receiveGroups takes messages group by group, in their turns: of each those in front of its
// first that is locked or delayed.
// Source: AWS, "FIFO queue delivery logic"; sqs-wire 4.4.
func (r *ref) receiveGroups(e *refEntity, o ReceiveOptions, which hint) (taken []*refMessage) {
	visited := map[string]bool{}
	r.together = true // what several groups have moved away has no order
	r.wave++
	most := max(o.Max, 1)
	if !o.Delete && (o.Lock == nil || *o.Lock > 0) {
		most = min(most, e.p.MaxInFlight-len(e.in(Main, held)))
	}
	for len(taken) < most {
		g := e.nextGroup(visited, func(g *refGroup) int { return which.prefers(e, g, len(taken)) })
		if g == nil {
			break
		}
		visited[g.id] = true
		for _, x := range e.in(Main, func(x *refMessage) bool { return x.group() == g.id }) {
			if !x.ready() || len(taken) == most {
				break
			}
			if x.no.n <= o.After || r.redrive(x) {
				continue
			}
			taken = append(taken, x)
			if e.p.GroupHeadOnly {
				break
			}
		}
	}
	if len(visited) > 1 && len(taken) > 1 {
		r.fact("received from several groups")
	}
	r.together = false
	for _, x := range taken { // a group that this call locks gives several
		r.take(x, o)
	}
	for _, x := range taken { // and one that is open still goes behind the others
		if g := e.group(x.group()); g.turn != 0 {
			r.turn++
			g.turn = r.turn
		}
	}
	return taken
}

// nextGroup returns the group whose turn it is; among those that became free together, the
// most preferred.
func (e *refEntity) nextGroup(but map[string]bool, preference func(*refGroup) int) *refGroup {
	var best *refGroup
	for _, g := range e.groups {
		if g.turn == 0 || but[g.id] {
			continue
		}
		if best == nil || g.turn < best.turn || g.turn == best.turn && preference(g) > preference(best) {
			best = g
		}
	}
	return best
}

// take is that a message is delivered.
func (r *ref) take(x *refMessage, o ReceiveOptions) {
	if x.of.p.CountOnReceive {
		x.count++
		if x.received.IsZero() {
			x.received = r.now
		}
	}
	if o.Delete {
		r.remove(x)
		return
	}
	d := x.of.p.LockDuration
	if o.Lock != nil {
		d = *o.Lock
	}
	if d > 0 {
		x.until, x.since = r.now.Add(d), r.now
	}
	if g := x.of.byToken(o.Session); g != nil {
		x.until = g.until
	}
	r.turns(x.of)
}

// receiveDeferred takes deferred messages by their numbers, all or none.
// Source: servicebus-wire 6.3, "receive-by-sequence-number".
func (r *ref) receiveDeferred(a Address, o ReceiveOptions, xs []*refMessage) error {
	e := r.entity(a.Name)
	e.accessed = r.now
	if err := r.receives(a, o.Session); err != nil {
		return err
	}
	g := e.byToken(o.Session)
	if e.p.RequiresSession && a.Sub == Main && g == nil {
		return ErrSessionLockLost
	}
	for _, x := range xs {
		switch {
		case deferred(x) && x.held():
			return ErrLocked
		case !deferred(x), g != nil && x.group() != g.id:
			return ErrNoMessage
		}
	}
	for _, x := range xs {
		r.take(x, o)
	}
	return nil
}

// remove takes a message for good out of its entity.
func (r *ref) remove(x *refMessage) {
	r.lose(x)
	x.until, x.staged = time.Time{}, nil
	x.of.msgs = slices.DeleteFunc(x.of.msgs, func(y *refMessage) bool { return y == x })
	r.turns(x.of)
}

// release lets go of a lock and counts nothing.
func (r *ref) release(x *refMessage) {
	r.lose(x)
	x.until, x.staged = time.Time{}, nil
	if !x.of.p.StaleTokens {
		x.token = message.UUID{}
	}
	r.turns(x.of)
}

// refuses returns why nobody can do that to a message of a sub-queue.
func (e *refEntity) refuses(sub Sub, o Outcome) error {
	switch {
	case o.Action == Bury && sub != Main:
		return ErrInvalid
	case !e.p.SubQueues && o.Action != Complete && o.Action != Abandon:
		return ErrUnsupported
	}
	return nil
}

// settle is that somebody decides over a message.
func (r *ref) settle(x *refMessage, o Outcome) {
	r.release(x)
	if o.Action == Complete {
		r.remove(x)
		return
	}
	x.m = x.m.Clone()
	for _, a := range o.Set {
		x.m.Properties.Set(a.Name, a.Value)
	}
	switch o.Action {
	case Abandon:
		r.fail(x)
	case Defer:
		x.state = message.Deferred
	case Bury:
		r.bury(x, o.Reason, o.Description)
	}
	r.turns(x.of)
}

// settleFree is that somebody decides over a message that nobody holds: it is taken and put
// back, so a group that it was all of goes behind the others.
func (r *ref) settleFree(x *refMessage, o Outcome) {
	r.remove(x)
	x.of.msgs = append(x.of.msgs, x)
	r.settle(x, o)
}

// fail counts a delivery that has failed. The one that reaches the maximum moves the message,
// and one that has expired meanwhile expires now.
// Source: service-bus-dead-letter-queues, "Maximum delivery count"; message-expiration, "takes
// immediate effect".
func (r *ref) fail(x *refMessage) {
	if x.sub != Main || x.of.p.CountOnReceive {
		return
	}
	if x.count++; int(x.count) >= x.of.p.MaxDeliveryCount {
		r.fact("delivered too often")
		r.bury(x, "MaxDeliveryCountExceeded", "Message could not be consumed after "+itoa(x.of.p.MaxDeliveryCount)+" delivery attempts.")
		return
	}
	if x.state == message.Active && !x.expires.IsZero() && !x.expires.After(r.now) {
		r.fact("expired under its lock")
		r.end(x)
	}
}

// end is that a message has expired.
func (r *ref) end(x *refMessage) {
	if x.of.p.DeadLetterOnExpiration {
		r.fact("expired and dead-lettered")
		r.bury(x, "TTLExpiredException", "The message expired and was dead lettered.")
		return
	}
	r.fact("expired and removed")
	r.remove(x)
}

// bury moves a free message to the dead-letter sub-queue, or to where that is forwarded.
func (r *ref) bury(x *refMessage, reason, description string) {
	x.blame(reason, description)
	if x.of.p.ForwardDeadLettersTo != "" {
		c := refCopy{m: x.m, hops: x.hops, source: x.of.name, buried: true}
		if x.m.TTL != nil {
			c.expires = r.now.Add(*x.m.TTL)
		}
		r.handOn(x, x.of.p.ForwardDeadLettersTo, c)
		return
	}
	x.sub, x.state, x.expires = DeadLetter, message.Active, time.Time{}
}

// handOn forwards a message that lies in an entity. Where that cannot be, it goes to one of the
// entity's sub-queues and is the message that it was.
func (r *ref) handOn(x *refMessage, to string, c refCopy) {
	out := &route{}
	r.forward(x.of, to, c, x.no, out)
	if len(out.landings) == 1 && out.landings[0].no == x.no {
		x.sub, x.state, x.expires = out.landings[0].sub, message.Active, time.Time{}
		x.blame(out.landings[0].reason, out.landings[0].description)
		return
	}
	r.remove(x)
	r.land(out)
}

// expire ends free messages whose time to live is over, which is done when somebody receives.
// Source: servicebus-wire, section 10, "TTL".
func (r *ref) expire(e *refEntity, sub Sub) {
	if sub != Main || e.p.Retention > 0 {
		return
	}
	r.atOnce(func() { r.expireReady(e) })
}

func (r *ref) expireReady(e *refEntity) {
	ready := e.in(Main, (*refMessage).ready)
	// Of two with the same id, the one that expired first is forwarded, the other a duplicate.
	slices.SortStableFunc(ready, func(a, b *refMessage) int { return a.expires.Compare(b.expires) })
	for _, x := range ready {
		if x.expires.IsZero() || x.expires.After(r.now) {
			continue
		}
		r.end(x)
		r.turns(e)
	}
}

// redrive moves a message that was received often enough, when a receive selects it.
// Source: sqs-wire 4.2.
func (r *ref) redrive(x *refMessage) bool {
	p := x.of.p
	target := r.entity(p.Redrive.Target)
	if target == nil || int(x.count) < p.Redrive.MaxReceives {
		return false
	}
	r.fact("redriven")
	if !r.together {
		r.wave++
	}
	y := *x
	y.of, y.no, y.from, y.wave, y.source = target, &number{}, x.no, r.wave, x.of.name
	y.token = message.UUID{}
	if !p.RedriveKeepsAge {
		y.enqueued = r.now
	}
	if !p.RedriveKeepsCount {
		y.count, y.received = 0, time.Time{}
	}
	if target.p.DeduplicationID {
		y.m = x.m.Clone()
		y.m.System = slices.DeleteFunc(y.m.System, func(a message.Attribute) bool { return a.Name == DeduplicationIDAttribute })
		y.m.System = append(y.m.System, message.Attribute{Name: DeduplicationIDAttribute, Value: message.String(message.FormatValue(x.m.ID))})
	}
	r.remove(x)
	target.msgs = append(target.msgs, &y)
	r.turns(target)
	return true
}

// stale returns the message that a delivery can still settle though its lock is over.
func (r *ref) stale(e *refEntity, d Delivery) (*refMessage, error) {
	for _, x := range e.in(Main, all) {
		if x.no.n != d.Seq {
			continue
		}
		if x.staged != nil && x.token == d.Token {
			return nil, ErrLocked
		}
		if x.token == d.Token && (x.held() || e.p.StaleTokens) {
			r.fact("stale token accepted")
			return x, nil
		}
		return nil, ErrLockLost
	}
	return nil, ErrNoMessage
}

const refLongestHold = 12 * time.Hour

// extend makes the lock of a message last for d from now; 0 lets go.
func (r *ref) extend(x *refMessage, d time.Duration) error {
	switch {
	case d < 0, d > refLongestHold, x.held() && r.now.Add(d).Sub(x.since) > refLongestHold:
		return ErrInvalid
	case d == 0 && x.held():
		r.release(x)
	case d > 0:
		if !x.held() {
			x.since = r.now
		}
		x.until = r.now.Add(d)
	}
	r.turns(x.of)
	return nil
}

// accept locks a session; id nil: the next in turn.
func (r *ref) accept(e *refEntity, id *string, got string) (*refGroup, error) {
	e.accessed = r.now
	switch {
	case !e.p.RequiresSession:
		return nil, ErrUnsupported
	case e.p.Status == Disabled, e.p.Status == ReceiveDisabled:
		return nil, ErrDisabled
	}
	theEngines := func(g *refGroup) int {
		if g.id == got {
			return 1
		}
		return 0
	}
	var g *refGroup
	if id == nil {
		r.expire(e, Main)
		if g = e.nextGroup(nil, theEngines); g == nil {
			return nil, ErrNoSession
		}
		r.fact("next session accepted")
	} else if g = e.group(*id); !g.until.IsZero() {
		return nil, ErrLocked
	}
	g.until = r.now.Add(e.p.LockDuration)
	r.turns(e)
	return g, nil
}

// unlock ends the lock of a session, and of what was received in it.
// Source: servicebus-wire, section 10: an expiry counts, a close does not.
func (r *ref) unlock(e *refEntity, g *refGroup, counts bool) {
	for _, x := range e.in(Main, held) {
		if x.group() != g.id {
			continue
		}
		r.release(x)
		if counts {
			r.fact("session expired over a message")
			r.fail(x)
		}
	}
	r.lost = append(r.lost, refToken{Address{Name: e.name}, 0, g.token})
	g.token, g.until = message.UUID{}, time.Time{}
	r.turns(e)
}

func (r *ref) renewSession(e *refEntity, g *refGroup) {
	g.until = r.now.Add(e.p.LockDuration)
	for _, x := range e.in(Main, held) {
		if x.group() == g.id {
			x.until = g.until
		}
	}
}
