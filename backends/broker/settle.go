package broker

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// Action is what becomes of a message.
type Action uint8

const (
	Complete Action = iota + 1 // it is gone
	Abandon                    // it is free again, and a failed delivery is counted
	Defer                      // it waits for those who ask for its number
	Bury                       // it goes to the dead-letter sub-queue
)

// Outcome is an action with its arguments.
type Outcome struct {
	Action              Action
	Reason, Description string              // for Bury, at most 4,096 characters each
	Set                 []message.Attribute // application properties to set, unless completed
}

const maxReason = 4096

func (o Outcome) validate(q *queue) error {
	switch {
	case o.Action < Complete || o.Action > Bury:
		return fmt.Errorf("%w: unknown action %d", ErrInvalid, o.Action)
	case o.Action == Bury && q.sub != Main:
		return fmt.Errorf("%w: a dead letter cannot be dead-lettered again", ErrInvalid)
	case o.Action > Abandon && !q.of.p.SubQueues:
		return fmt.Errorf("%w: %s can neither defer nor dead-letter by request; its redrive policy moves messages", ErrUnsupported, q.of.name)
	case utf8.RuneCountInString(o.Reason) > maxReason, utf8.RuneCountInString(o.Description) > maxReason:
		return fmt.Errorf("%w: a dead-letter reason and description have at most %d characters each", ErrInvalid, maxReason)
	}
	if err := message.Check(&message.Message{Properties: o.Set}); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// Settle decides over messages by their lock tokens and returns when that is durable, in
// one commit. errs[i] is [ErrLockLost] or [ErrSessionLockLost] for a token that stands for no
// lock any more.
func (e *Engine) Settle(a Address, o Outcome, tokens ...message.UUID) (errs []error, err error) {
	return e.each(a, tokens, func(t *tx, l *lock) error {
		if err := errors.Join(o.validate(l.q), l.undecided()); err != nil {
			return err
		}
		e.drop(l)
		t.settle(l.q, l.seq, &l.st, o)
		return nil
	}, (*tx).commit)
}

// SettleDelivery is Settle for deliveries: where the entity allows stale tokens, it settles a
// message whose lock has expired, too, unless it was received again. errs[i] is [ErrNoMessage]
// for one that is gone.
func (e *Engine) SettleDelivery(a Address, o Outcome, deliveries ...Delivery) (errs []error, err error) {
	return e.eachDelivery(a, deliveries, func(t *tx, q *queue, l *lock, seq uint64, st *store.State) error {
		if err := o.validate(q); err != nil {
			return err
		}
		if l != nil {
			e.drop(l)
		} else {
			e.leave(q, seq, st)
		}
		t.settle(q, seq, st, o)
		return nil
	}, (*tx).commit)
}

// SettleBySequence decides over messages that nobody holds, as if they had been received
// and settled, in one commit. errs[i] is [ErrNoMessage] or [ErrLocked]. A scheduled message
// can only be completed, which cancels it.
func (e *Engine) SettleBySequence(a Address, o Outcome, seqs ...int64) (errs []error, err error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, err
	}
	if err := o.validate(q); err != nil {
		t.end()
		return nil, err
	}
	errs = make([]error, len(seqs))
	seen := make(map[int64]bool, len(seqs))
	for i, n := range seqs {
		if seen[n] {
			errs[i] = fmt.Errorf("%w: %d is named twice", ErrNoMessage, n)
			continue
		}
		seen[n] = true // the store does not show yet what this command did to it
		st, err := t.unheld(q, uint64(n))
		if err == nil && st.State == message.Scheduled && o.Action != Complete {
			err = fmt.Errorf("%w: message %d is scheduled; it can only be completed, which cancels it", ErrInvalid, n)
		}
		if errs[i] = err; err == nil {
			e.leave(q, uint64(n), &st)
			t.settle(q, uint64(n), &st, o)
		}
	}
	return errs, t.commit()
}

// CancelScheduled removes messages that wait for their time, all or none, and returns when that
// is durable. The error is [ErrNoMessage] if one of them does not wait any more.
func (e *Engine) CancelScheduled(a Address, seqs ...int64) error {
	t, q, err := e.on(a)
	if err != nil {
		return err
	}
	for _, n := range seqs {
		if q.scheduled[uint64(n)] == nil {
			t.end()
			return fmt.Errorf("%w: %d is not scheduled", ErrNoMessage, n)
		}
	}
	states := map[uint64]store.State{} // also those that are named twice
	for _, n := range seqs {
		st, err := t.state(q.key(uint64(n)))
		if err != nil {
			t.end()
			return unavailable(err)
		}
		states[uint64(n)] = st
	}
	for seq, st := range states {
		e.leave(q, seq, &st)
		t.settle(q, seq, &st, Outcome{Action: Complete})
	}
	return t.commit()
}

// unheld returns the state of a message that is there and that nobody holds.
func (t *tx) unheld(q *queue, seq uint64) (store.State, error) {
	if q.locked[seq] != nil {
		return store.State{}, fmt.Errorf("%w: message %d", ErrLocked, seq)
	}
	if _, ok := q.damaged[seq]; ok {
		return store.State{}, fmt.Errorf("%w: %d", ErrDamaged, seq)
	}
	if !q.has(seq) {
		return store.State{}, fmt.Errorf("%w: %d", ErrNoMessage, seq)
	}
	st, err := t.state(q.key(seq))
	return st, unavailable(err)
}

// settle does to a message, which stands in no set now, what the outcome says.
func (t *tx) settle(q *queue, seq uint64, st *store.State, o Outcome) {
	if o.Action == Complete {
		t.remove(q, seq, st)
		return
	}
	overlay := message.Properties(slices.Clone(st.Overlay)) // others may have a copy of the state
	for _, a := range o.Set {
		overlay.Set(a.Name, a.Value)
	}
	st.Overlay = overlay
	switch o.Action {
	case Abandon:
		t.fail(q, seq, st)
	case Defer:
		st.State = message.Deferred
		t.free(q, seq, st)
	case Bury:
		t.bury(q, seq, st, cause{o.Reason, o.Description})
	}
}
