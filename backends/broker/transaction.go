package broker

import (
	"errors"
	"fmt"
	"time"

	"dlq/backends/message"
)

// Transaction is a group of sends and settlements, of any entities, that happen all or not at
// all. What is sent shows to nobody before the commit, and what is settled stays locked. Its
// methods may be called concurrently.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-transactions
type Transaction struct {
	e     *Engine
	sends []stagedSend
	locks []stagedSettle
	timer *timer // ends it; nil: nothing is staged
	ended error  // why it takes no more
}

type stagedSend struct {
	to, via Address // via has no name if the message is sent directly
	m       *message.Message
}

type stagedSettle struct {
	l *lock
	o Outcome
}

const (
	maxStaged      = 100             // operations in a transaction
	maxTransaction = 2 * time.Minute // from the first operation on
)

// Begin begins a transaction, which ends by itself two minutes after its first operation.
func (e *Engine) Begin() *Transaction { return &Transaction{e: e} }

// happen is that the transaction takes too long.
func (x *Transaction) happen(t *tx) error {
	x.timer = nil
	x.end(fmt.Errorf("%w: it took longer than %v", ErrTransaction, maxTransaction))
	return nil
}

// end lets go of what is staged. The messages stay locked.
func (x *Transaction) end(why error) {
	for _, s := range x.locks {
		if s.l.x == x {
			s.l.x = nil
		}
	}
	x.e.timers.remove(x.timer)
	x.timer, x.sends, x.locks, x.ended = nil, nil, nil, why
}

// stage begins an operation of n parts.
func (x *Transaction) stage(n int) (*tx, error) {
	t, err := x.e.begin()
	if err != nil {
		return nil, err
	}
	switch {
	case x.ended != nil:
		err = x.ended
	case len(x.sends)+len(x.locks)+n > maxStaged:
		err = fmt.Errorf("%w: a transaction has at most %d operations", ErrInvalid, maxStaged)
	}
	if err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// staged lets go of the lock after an operation. The first that staged something sets the time
// that the transaction has.
func (x *Transaction) staged(t *tx) {
	if x.timer == nil && len(x.sends)+len(x.locks) > 0 {
		x.timer = x.e.timers.add(t.now.Add(maxTransaction), x)
	}
	t.end()
}

// Send stages messages for an entity. With via, they are forwarded from that entity when the
// transaction is committed, which counts as a hop; a destination that cannot take them then,
// such as one that is disabled, leaves them in its transfer dead-letter queue. errs[i] is as of
// [Engine.Send]; if there is one, nothing was staged.
func (x *Transaction) Send(a Address, via *Address, msgs []*message.Message) (errs []error, err error) {
	parts, size := contents(msgs)
	t, err := x.stage(len(msgs))
	if err != nil {
		return nil, err
	}
	defer x.staged(t)
	find := x.e.destination
	if via != nil {
		find = x.e.target // one that is disabled refuses the transfer, not the send
	}
	ent, err := find(a)
	var from Address
	if err == nil && via != nil {
		from = *via
		_, err = x.e.destination(from)
	}
	if err == nil {
		err = x.e.room(size)
	}
	if err != nil {
		return nil, err
	}
	sent := make([]Sent, len(msgs))
	ok := t.check(ent, msgs, parts, sent)
	errs = make([]error, len(msgs))
	for i := range sent {
		errs[i] = sent[i].Err
		if ok {
			x.sends = append(x.sends, stagedSend{a, from, msgs[i].Clone()})
		}
	}
	return errs, nil
}

// Settle stages what becomes of messages, by their lock tokens. Until the transaction ends
// nobody else can settle them. errs[i] is as of [Engine.Settle].
func (x *Transaction) Settle(a Address, o Outcome, tokens ...message.UUID) (errs []error, err error) {
	t, err := x.stage(len(tokens))
	if err != nil {
		return nil, err
	}
	defer x.staged(t)
	q, err := x.e.find(a)
	if err != nil {
		return nil, err
	}
	q.of.accessed = t.now
	if err := o.validate(q); err != nil {
		return nil, err
	}
	errs = make([]error, len(tokens))
	for i, token := range tokens {
		l, err := x.e.live(q, token)
		if err == nil {
			err = l.undecided()
		}
		if errs[i] = err; err == nil {
			l.x = x
			x.locks = append(x.locks, stagedSettle{l, o})
		}
	}
	return errs, nil
}

// Rollback forgets what was staged. The messages that were to be settled stay locked, with
// the time that their locks have left.
func (x *Transaction) Rollback() error {
	t, err := x.e.begin()
	if err != nil {
		return err
	}
	defer t.end()
	if x.ended != nil {
		return x.ended
	}
	if x.e.sabotaged("rollback-leaks") {
		for _, s := range x.sends {
			t.sendStaged(s)
		}
	}
	x.end(fmt.Errorf("%w: it was rolled back", ErrTransaction))
	return t.write()
}

// Commit makes everything happen and returns when it is durable. If anything cannot happen
// any more, such as that a lock was lost, nothing does, and the error says why.
func (x *Transaction) Commit() error {
	t, err := x.e.begin()
	if err != nil {
		return err
	}
	if x.ended != nil {
		t.end()
		return x.ended
	}
	sends, locks := x.sends, x.locks
	refused := errors.Join(x.still(t)...)
	if refused != nil {
		x.end(fmt.Errorf("%w: %w", ErrTransaction, refused))
		err := x.ended
		t.end()
		return err
	}
	x.end(fmt.Errorf("%w: it was committed", ErrTransaction))
	t.remember()
	for _, s := range locks {
		t.e.drop(s.l)
		t.settle(s.l.q, s.l.seq, &s.l.st, s.o)
	}
	for _, s := range sends {
		t.sendStaged(s)
	}
	return t.commit()
}

// still reports what of the staged cannot happen any more.
func (x *Transaction) still(t *tx) (errs []error) {
	for _, s := range x.locks {
		if x.e.locks[s.l.token] != s.l {
			errs = append(errs, fmt.Errorf("message %d: %w", s.l.seq, ErrLockLost))
		}
	}
	size := map[*entity]int64{}
	for _, s := range x.sends {
		c := newContent(s.m)
		if s.via.Name != "" { // it is the via entity that takes it
			if _, err := x.e.destination(s.via); err != nil {
				errs = append(errs, err)
			}
			continue
		}
		ent, err := x.e.destination(s.to)
		if err == nil {
			size[ent] += c.headSize + c.bodySize
			err = t.accepts(ent, s.m, &c, size[ent])
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// sendStaged sends what Send staged and still has looked at.
func (t *tx) sendStaged(s stagedSend) {
	c := newContent(s.m)
	if s.via.Name == "" {
		ent, _ := t.e.destination(s.to)
		ent.accessed = t.now
		t.deliver(ent, s.m, c)
		return
	}
	via, _ := t.e.destination(s.via)
	via.accessed = t.now
	r := t.router(c.headSize + c.bodySize)
	a := &arrival{ent: via}
	r.arrivals = []*arrival{a}
	r.forward(via, s.to.Name, copyOf{m: s.m, expires: t.expires(s.m, time.Time{}), arrivals: []*arrival{a}}, 0)
	t.land(r, c, 0)
}
