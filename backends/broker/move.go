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
	// AllowUnrouted lets a topic have the message though no rule lets it through: it is gone
	// then.
	AllowUnrouted bool
}

// Move takes messages that nobody holds out of a queue or sub-queue and sends them, as
// given, to other entities. Each is in one atomic commit: after a crash it is in exactly
// one of the two places. The body is not copied where it is unchanged. errs[i] says why move i
// did not happen: [ErrNoMessage], [ErrLocked], [ErrNoEntity], [ErrDuplicate], [ErrUnrouted],
// or what Send refuses.
func (e *Engine) Move(a Address, moves []Move) (errs []error, err error) {
	same := e.sameBodies(a, moves)
	t, q, err := e.on(a)
	if err != nil {
		return nil, err
	}
	errs = make([]error, len(moves))
	t.remember()
	for i, mv := range moves {
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
	if mv.As == nil {
		return fmt.Errorf("%w: there is no message", ErrInvalid)
	}
	c := newContent(mv.As)
	grows := c.headSize + c.bodySize
	if dst == q.of && !mv.Keep {
		grows -= old.HeadSize + old.BodySize
	}
	if err := t.accepts(dst, mv.As, &c, grows); err != nil {
		return err
	}
	if sameBody {
		c.body, c.shared, c.newBody = old.Body, old.Shared, message.Body{}
	}
	dst.accessed = t.now
	r := t.router(c.headSize + c.bodySize)
	due := t.due(dst, mv.As)
	r.arrive(dst, copyOf{m: mv.As, expires: t.expires(mv.As, due), from: uint64(mv.Seq)}, due)
	switch {
	case r.err != nil:
		return r.err
	case r.duplicate != nil:
		return ErrDuplicate
	case len(r.landings) == 0 && !mv.AllowUnrouted:
		return ErrUnrouted
	}
	if mv.Keep {
		t.copy(q, mv, &old, r, c, sameBody)
		return nil
	}
	t.e.leave(q, uint64(mv.Seq), &old)
	t.unlist(q, uint64(mv.Seq), &old)
	t.unuse(old.Head, t.batch.DeleteHead)
	if !sameBody {
		t.unuse(old.Body, t.batch.DeleteBody)
	}
	t.land(r, c, 0)
	return nil
}

// copy stores a copy beside its source, which is marked if they share their body from now on.
func (t *tx) copy(q *queue, mv Move, old *store.State, r *router, c content, sameBody bool) {
	if sameBody && len(r.landings) > 0 {
		old.Shared = true
		t.put(q.key(uint64(mv.Seq)), old)
		c.shared = true
		t.land(r, c, 1)
		return
	}
	if sameBody { // and nobody takes it
		c.body, c.newBody = 0, message.Body{}
	}
	t.land(r, c, 0)
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
		if err != nil || st.BodySize != int64(mv.As.Body.Len()) {
			continue
		}
		body, err := view.Body(st.Body)
		same[i] = err == nil && message.EqualBodies(body, mv.As.Body)
	}
	return same
}
