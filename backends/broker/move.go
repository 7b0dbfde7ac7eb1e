package broker

import (
	"fmt"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// Move is one message to move or to copy.
type Move struct {
	Seq  int64
	To   Address // the message arrives there as a new one
	As   *message.Message
	Keep bool // leave the source where it is
}

// Move takes messages that nobody holds out of a queue or sub-queue and puts them, as
// given, at the end of others. Each is in one atomic commit: after a crash it is in exactly
// one of the two places. The body is not copied where it is unchanged, except for Keep.
// errs[i] says why move i did not happen: [ErrNoMessage], [ErrLocked], [ErrNoEntity], or
// what Send refuses.
func (e *Engine) Move(a Address, moves []Move) (errs []error, err error) {
	same := e.sameBodies(a, moves)
	t, q, err := e.on(a)
	if err != nil {
		return nil, err
	}
	errs = make([]error, len(moves))
	seen := make(map[int64]bool, len(moves))
	for i, mv := range moves {
		if seen[mv.Seq] && !mv.Keep {
			errs[i] = fmt.Errorf("%w: %d is named twice", ErrNoMessage, mv.Seq)
			continue
		}
		seen[mv.Seq] = true
		errs[i] = t.move(q, mv, same[i])
	}
	return errs, t.commit()
}

func (t *tx) move(q *queue, mv Move, sameBody bool) error {
	dst, err := t.e.destination(mv.To)
	if err != nil {
		return err
	}
	old, err := t.unheld(q, uint64(mv.Seq))
	if err != nil {
		return err
	}
	if err := dst.of.accepts(mv.As); err != nil {
		return err
	}
	st := store.State{Head: t.content(), Body: old.Body, BodySize: int64(mv.As.Body.Len()), EnqueuedSeq: uint64(mv.Seq)}
	if mv.Keep || !sameBody {
		st.Body = t.content()
		t.batch.PutBody(st.Body, mv.As.Body)
	}
	if !mv.Keep {
		t.e.forget(q, uint64(mv.Seq))
		t.batch.DeleteState(q.key(uint64(mv.Seq)))
		t.batch.DeleteHead(old.Head)
		if !sameBody {
			t.batch.DeleteBody(old.Body)
		}
	}
	t.enqueue(dst, mv.As, &st)
	return nil
}

// sameBodies tells which moves leave the body as it is. Bodies never change, so this is
// done before the engine is locked; what cannot be read counts as changed, and the move
// itself says what is wrong.
func (e *Engine) sameBodies(a Address, moves []Move) []bool {
	same := make([]bool, len(moves))
	e.mu.Lock()
	q, err := e.find(a)
	if err != nil || e.closed {
		e.mu.Unlock()
		return same
	}
	view, done := e.view()
	e.mu.Unlock()
	defer done()
	for i, mv := range moves {
		if mv.As == nil {
			continue
		}
		st, err := view.State(q.key(uint64(mv.Seq)))
		if err != nil || mv.Keep || st.BodySize != int64(mv.As.Body.Len()) {
			continue
		}
		body, err := view.Body(st.Body)
		same[i] = err == nil && message.EqualBodies(body, mv.As.Body)
	}
	return same
}
