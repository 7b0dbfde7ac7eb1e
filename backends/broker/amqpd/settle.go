package amqpd

import (
	"errors"
	"fmt"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// decision is what the peer wants to become of one delivery.
type decision struct {
	id      uint32
	token   message.UUID
	state   amqp.State // as the peer said it, and as it is answered
	outcome broker.Outcome
	release bool // free it, and count nothing
	settled bool // the peer waits for no answer
	err     error
}

// onDisposition takes what the peer says of deliveries.
func (s *session) onDisposition(d *amqp.Disposition) {
	if d.Role == amqp.RoleSender {
		return // of its own deliveries, which were settled when they were answered
	}
	last := d.Last.Or(d.First)
	span := last - d.First + 1
	if span == 0 || span > uint32(s.c.srv.limits.Unsettled) {
		s.end("amqp:invalid-field", fmt.Sprintf("a disposition of the deliveries %d to %d", d.First, last))
		return
	}
	if _, ok := d.State.(*amqp.Received); ok || d.State == nil && !d.Settled {
		return // how far it is, which decides nothing
	}
	tx, _ := d.State.(*amqp.Transactional)
	var strange run
	for id := d.First; ; id++ {
		u, known := s.unsettled[id]
		switch {
		case !known && !d.Settled:
			strange.add(s, id)
		case known && tx != nil:
			s.stage(id, u, tx, d.Settled)
		case known:
			delete(s.unsettled, id)
			u.from.decide(decide(id, u.token, d))
		}
		if id == last {
			break
		}
	}
	strange.tell(s)
}

// run is a run of deliveries that the server does not know: whoever waits is to be told, in
// one frame.
type run struct {
	first, n uint32
}

func (r *run) add(s *session, id uint32) {
	if r.n > 0 && id != r.first+r.n {
		r.tell(s)
	}
	if r.n == 0 {
		r.first = id
	}
	r.n++
}

func (r *run) tell(s *session) {
	if r.n == 0 {
		return
	}
	lost := s.c.srv.failed(broker.ErrLockLost, "")
	s.send(&amqp.Disposition{
		Role: amqp.RoleSender, First: r.first, Last: amqp.Some(r.first + r.n - 1), Settled: true, State: &amqp.Rejected{Error: lost.amqpError()},
	}, nil)
	r.n = 0
}

// decide reads what an outcome asks for.
func decide(id uint32, token message.UUID, d *amqp.Disposition) decision {
	one := decision{id: id, token: token, settled: d.Settled}
	one.outcome, one.release, one.state, one.err = outcomeOf(d.State)
	return one
}

// errOutcome says that an outcome is none that a receiver can ask for.
var errOutcome = errors.New("no outcome that a receiver can ask for")

// outcomeOf translates an outcome, and returns the state that answers it. Source:
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-protocol-guide
func outcomeOf(state amqp.State) (o broker.Outcome, release bool, answer amqp.State, err error) {
	switch state := state.(type) {
	case *amqp.Accepted:
		return broker.Outcome{Action: broker.Complete}, false, accepted, nil
	case *amqp.Released, nil: // settled without an outcome: nothing was done with it
		return broker.Outcome{}, true, &amqp.Released{}, nil
	case *amqp.Modified:
		o := broker.Outcome{Action: broker.Abandon, Set: properties(state.Annotations)}
		if state.UndeliverableHere.Value {
			o.Action = broker.Defer
		}
		return o, false, &amqp.Modified{DeliveryFailed: state.DeliveryFailed, UndeliverableHere: state.UndeliverableHere}, nil
	case *amqp.Rejected:
		return bury(state.Error), false, &amqp.Rejected{}, nil
	}
	return o, false, nil, errOutcome
}

// properties are the application properties that a map asks to set.
func properties(m message.Map) []message.Attribute {
	var set []message.Attribute
	for _, p := range m {
		if name, ok := text(p.Key); ok && p.Value != (message.Null{}) {
			set = append(set, message.Attribute{Name: name, Value: p.Value})
		}
	}
	return set
}

// bury reads reason and description of a dead letter from the error of a rejection. Other
// entries become application properties.
func bury(why *amqp.Error) broker.Outcome {
	o := broker.Outcome{Action: broker.Bury}
	if why == nil {
		return o
	}
	for _, p := range properties(why.Info) {
		s, isText := text(p.Value)
		switch {
		case p.Name == message.DeadLetterReasonProperty && isText:
			o.Reason = s
		case p.Name == message.DeadLetterDescriptionProperty && isText:
			o.Description = s
		default:
			o.Set = append(o.Set, p)
		}
	}
	if len(why.Info) == 0 && why.Condition != "com.microsoft:dead-letter" {
		o.Reason, o.Description = string(why.Condition), why.Description
	}
	return o
}

// decide queues a decision. The caller holds the lock.
func (o *outlet) decide(d decision) {
	o.pending--
	if o.decided.add(d) {
		o.s.c.begin(o.settle)
	}
}

// settle carries out decisions until there are none.
func (o *outlet) settle() {
	c := o.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	o.decided.work(c, o.carryOut, o.tell)
	o.unstick()
}

// unstick goes on where there were too many deliveries that were not settled. The caller holds
// the lock.
func (o *outlet) unstick() {
	if o.stuck {
		o.stuck = false
		o.kick()
	}
}

// carryOut settles a batch, runs of the same kind together, in the order in which they were
// decided.
func (o *outlet) carryOut(batch []decision) {
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && alike(batch[0], batch[n]) {
			n++
		}
		o.carryOutAlike(batch[:n])
		batch = batch[n:]
	}
}

// alike reports whether two decisions can be carried out in one call.
func alike(a, b decision) bool {
	return a.err == nil && b.err == nil && a.release == b.release && a.outcome.Action == b.outcome.Action &&
		(a.release || a.outcome.Action == broker.Complete)
}

func (o *outlet) carryOutAlike(run []decision) {
	if run[0].err != nil {
		return
	}
	if err := o.strike(OpSettle); err != nil {
		run[0].err = err
		if run = run[1:]; len(run) == 0 {
			return
		}
	}
	tokens := make([]message.UUID, len(run))
	for i := range run {
		tokens[i] = run[i].token
	}
	engine := o.s.c.srv.engine
	var errs []error
	var err error
	if run[0].release {
		err = engine.Release(o.addr, tokens...)
	} else {
		errs, err = engine.Settle(o.addr, run[0].outcome, tokens...)
	}
	o.s.c.unsure(err)
	for i := range run {
		if run[i].err = err; err == nil && i < len(errs) {
			run[i].err = errs[i]
		}
	}
}

// tell answers decisions, runs of the same answer in one frame. The caller holds the lock.
func (o *outlet) tell(batch []decision) {
	if o.refused || o.left {
		return
	}
	for i := 0; i < len(batch); {
		d := &batch[i]
		n := 1
		if d.err == nil && d.state == accepted && !d.settled {
			for i+n < len(batch) && batch[i+n].err == nil && batch[i+n].state == accepted && !batch[i+n].settled && batch[i+n].id == d.id+uint32(n) {
				n++
			}
		}
		if !d.settled && !errors.Is(d.err, errForced) { // else the link ends instead
			reply := &amqp.Disposition{Role: amqp.RoleSender, First: d.id, Settled: true, State: d.state}
			if n > 1 {
				reply.Last = amqp.Some(d.id + uint32(n) - 1)
			}
			if d.err != nil {
				reply.State = &amqp.Rejected{Error: o.lost(d.err).amqpError()}
			}
			o.s.send(reply, nil)
		}
		i += n
	}
}

// lost is the failure of a settlement. In a session, a lock is lost with the session's.
func (o *outlet) lost(err error) failure {
	if o.session != nil && errors.Is(err, broker.ErrLockLost) && !errors.Is(err, broker.ErrSessionLockLost) && o.session.lost() {
		err = broker.ErrSessionLockLost
	}
	return o.s.c.srv.failed(err, path(o.addr))
}
