package broker

import (
	"slices"
	"time"

	"dlq/backends/message"
)

// What the reference model does when messages come in.

// refSent is what a send is expected to say of one message.
type refSent struct {
	err error // matched with errors.Is
	dup *refSeen
	no  *number // in the entity that it was sent to
}

// accepts returns why an entity refuses a message, or nil.
func (r *ref) accepts(e *refEntity, m *message.Message) error {
	properties := 0
	for _, p := range m.Properties {
		if s, ok := p.Value.(message.String); ok {
			properties += len(s)
		}
	}
	_, identified := duplicateKeyOf(e, m)
	switch {
	case int64(m.Body.Len()) > e.p.MaxMessageBytes, properties > 64<<10 && (e.p.SubQueues || e.kind == Topic):
		return ErrTooLarge
	case e.grouped() && m.SessionID == nil, e.p.Groups && !identified:
		return ErrInvalid
	}
	if e.p.FilterBeforePublishing {
		if out := r.routed(e, m, nil); out.fails {
			return ErrFilter
		}
	}
	return nil
}

// opens returns why an address cannot be sent to, or nil.
func (r *ref) opens(a Address) error {
	e := r.entity(a.Name)
	switch {
	case e == nil:
		return ErrNoEntity
	case a.Sub != Main, e.kind == Subscription:
		return ErrInvalid
	case e.p.Status == Disabled, e.p.Status == SendDisabled:
		return ErrDisabled
	}
	return nil
}

// routed works out where a message comes to rest.
func (r *ref) routed(e *refEntity, m *message.Message, from *number) *route {
	var due, expires time.Time
	switch at := m.ScheduledEnqueueTime; {
	case at == nil && e.p.Delay > 0:
		due = r.now.Add(e.p.Delay)
	case at != nil && at.After(r.now):
		due = *at
	}
	if m.TTL != nil {
		if expires = r.now.Add(*m.TTL); !due.IsZero() {
			expires = due.Add(*m.TTL)
		}
	}
	out := &route{}
	r.arrive(e, refCopy{m: m, expires: expires, from: from}, due, out)
	return out
}

// send sends messages, all or none.
func (r *ref) send(a Address, msgs []*message.Message) ([]refSent, error) {
	if err := r.opens(a); err != nil {
		return nil, err
	}
	e := r.entity(a.Name)
	e.accessed = r.now
	sent := make([]refSent, len(msgs))
	refused := false
	for i, m := range msgs {
		sent[i].err = r.accepts(e, m)
		refused = refused || sent[i].err != nil
	}
	for i, m := range msgs {
		switch {
		case !refused:
			sent[i] = r.deliver(e, m)
		case sent[i].err == nil:
			sent[i].err = ErrNotSent
		}
	}
	return sent, nil
}

func (r *ref) deliver(e *refEntity, m *message.Message) refSent {
	out := r.routed(e, m, nil)
	if out.first == nil {
		return refSent{dup: out.dup}
	}
	r.land(out)
	return refSent{no: out.first}
}

// move takes a message out of its queue, or copies it, and sends it on as given.
func (r *ref) move(x *refMessage, mv Move) error {
	if err := r.opens(mv.To); err != nil {
		return err
	}
	to := r.entity(mv.To.Name)
	if x.held() {
		return ErrLocked
	}
	if err := r.accepts(to, mv.As); err != nil {
		return err
	}
	out := r.routed(to, mv.As, x.no)
	switch {
	case out.fails:
		return ErrFilter
	case out.dup != nil:
		r.fact("move refused: duplicate")
		return ErrDuplicate
	case len(out.landings) == 0 && !mv.AllowUnrouted:
		r.fact("move refused: unrouted")
		return ErrUnrouted
	}
	if !mv.Keep {
		r.remove(x)
	}
	r.land(out)
	return nil
}

// A transaction: what it will do when it is committed.
type refTransaction struct {
	sends   []refStagedSend
	settles []refStagedSettle
	until   time.Time // zero: nothing was staged
	ended   bool
}

type refStagedSend struct {
	to  Address
	via *Address
	m   *message.Message
}

type refStagedSettle struct {
	x        *refMessage
	o        Outcome
	decision int
}

const (
	refTransactionTime = 2 * time.Minute
	refTransactionSize = 100
)

func (r *ref) begin() { r.tx = &refTransaction{} }

func (x *refTransaction) end() {
	for _, s := range x.settles {
		if s.x.staged == x {
			s.x.staged = nil
		}
	}
	x.ended = true
}

// stage reports why a transaction takes no more.
func (r *ref) stage() error {
	if r.tx.ended {
		return ErrTransaction
	}
	return nil
}

// staged is that something was staged: its time begins with the first.
func (r *ref) staged() {
	if r.tx.until.IsZero() {
		r.tx.until = r.now.Add(refTransactionTime)
	}
}

// commit does what was staged, or nothing if any of it cannot happen any more.
func (r *ref) commit() error {
	x := r.tx
	r.tx = nil
	if x.ended {
		return ErrTransaction
	}
	lost := slices.ContainsFunc(x.settles, func(s refStagedSettle) bool {
		return s.x.staged != x || s.x.decision != s.decision // even if locked, and decided over, again
	})
	x.end()
	if lost {
		r.fact("transaction lost a lock")
		return ErrTransaction
	}
	for _, s := range x.sends {
		if s.via != nil {
			if r.opens(*s.via) != nil {
				return ErrTransaction
			}
			continue
		}
		if r.opens(s.to) != nil || r.accepts(r.entity(s.to.Name), s.m) != nil {
			return ErrTransaction
		}
	}
	if len(x.sends) > 0 && len(x.settles) > 0 {
		r.fact("sent and settled in one transaction")
	}
	for _, s := range x.settles {
		r.settle(s.x, s.o)
	}
	for _, s := range x.sends {
		r.commitSend(s)
	}
	return nil
}

// commitSend sends a staged message. Sent via an entity, it is forwarded from there.
func (r *ref) commitSend(s refStagedSend) {
	if s.via == nil {
		r.entity(s.to.Name).accessed = r.now
		r.deliver(r.entity(s.to.Name), s.m)
		return
	}
	out := &route{}
	c := refCopy{m: s.m}
	if s.m.TTL != nil {
		c.expires = r.now.Add(*s.m.TTL)
	}
	via := r.entity(s.via.Name)
	via.accessed = r.now
	r.forward(via, s.to.Name, c, &number{}, out)
	r.land(out)
}

// moveBack is what a move task does: free messages, the oldest first, arrive anew at one
// queue or each where it came from. It fails at the first that came from nowhere.
// Source: sqs-wire 2.14.
func (r *ref) moveBack(from *refEntity, to string) (moved int, failed bool) {
	for _, x := range from.in(Main, (*refMessage).ready) {
		name := to
		if name == "" {
			name = x.source
		}
		target := r.entity(name)
		if target == nil {
			return moved, true
		}
		r.wave++
		r.fact("moved back by a task")
		y := &refMessage{m: x.m.Clone(), of: target, wave: r.wave, no: &number{}, from: x.no, enqueued: r.now}
		y.m.ID = anyID
		if target.p.DeduplicationID {
			y.m.System = []message.Attribute{{Name: DeduplicationIDAttribute, Value: message.String(anyReason)}}
		}
		r.remove(x)
		target.msgs = append(target.msgs, y)
		r.turns(target)
		moved++
	}
	return moved, false
}
