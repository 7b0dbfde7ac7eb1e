package amqpd

import (
	"errors"
	"fmt"
	"strings"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// transaction is one that a peer has declared.
type transaction struct {
	*broker.Transaction
	on *intake // the link that controls it: when that goes, it is rolled back
	// received is the queue or topic whose messages it settles.
	received string
	size     int64 // bytes of the messages that it sends
}

// maxTransactions is how many a connection may have open.
const maxTransactions = 1000

var (
	errUnknownTransaction = errors.New("the transaction is unknown, or has ended")
	errSpan               = notAllowed("Local transactions cannot span multiple top-level entities such as queue or topic.")
)

// control carries out what came on a link to the coordinator (part 4, 4.3).
func (l *intake) control(in *arrival) {
	outcome, err := l.controlled(in)
	if err == nil {
		in.outcome = outcome
		return
	}
	f := l.s.c.srv.failed(err, "")
	switch {
	case errors.Is(err, errUnknownTransaction):
		f.condition = "amqp:transaction:unknown-id"
	case errors.Is(err, errRolledBack):
		f.condition = "amqp:transaction:rollback"
	}
	in.outcome = &amqp.Rejected{Error: f.amqpError()}
}

// errRolledBack says that a commit failed, so that nothing happened.
var errRolledBack = errors.New("the transaction was rolled back")

func (l *intake) controlled(in *arrival) (amqp.State, error) {
	m, err := amqp.DecodeMessage(in.payload)
	if err == nil && len(m.Body.Sections) != 1 {
		err = errors.New("a message to the coordinator has one value")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	what, err := amqp.DecodeControl(m.Body.Sections[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	c := l.s.c
	discharge, ok := what.(*amqp.Discharge)
	if !ok {
		return l.declare()
	}
	c.mu.Lock()
	tx := c.txns[string(discharge.ID)]
	delete(c.txns, string(discharge.ID))
	c.mu.Unlock()
	switch {
	case tx == nil:
		return nil, errUnknownTransaction
	case discharge.Fail:
		err = tx.Rollback()
	default:
		if err = tx.Commit(); err != nil && !c.unsure(err) {
			err = fmt.Errorf("%w: %w", errRolledBack, err)
		}
	}
	return accepted, err
}

func (l *intake) declare() (amqp.State, error) {
	c := l.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.txns) >= maxTransactions {
		return nil, fmt.Errorf("%w: %d transactions are open on this connection", broker.ErrQuota, maxTransactions)
	}
	if l.left {
		return nil, errUnknownTransaction
	}
	id := message.RandomUUID()
	if c.txns == nil {
		c.txns = map[string]*transaction{}
	}
	c.txns[string(id[:])] = &transaction{Transaction: c.srv.engine.Begin(), on: l}
	return &amqp.Declared{ID: id[:]}, nil
}

// rollBack ends the transactions of a link to the coordinator that has gone. The caller
// holds the lock.
func (l *intake) rollBack() {
	for id, tx := range l.s.c.txns {
		if tx.on == l {
			delete(l.s.c.txns, id)
			_ = tx.Rollback() // it may have ended by itself
		}
	}
}

// doom rolls back a transaction of which a part failed that nobody is told of: it must not be
// committed without it. The caller holds the lock.
func (c *conn) doom(id []byte) {
	if tx := c.txns[string(id)]; tx != nil {
		delete(c.txns, string(id))
		_ = tx.Rollback() // it may have ended by itself
	}
}

// stage makes a delivery part of a transaction. The caller holds the lock.
func (l *intake) stage(in *arrival, state *amqp.Transactional) {
	err := l.stageMessages(in, state)
	if err != nil {
		if in.settled {
			l.s.c.doom(state.ID)
		}
		l.decide(in, err)
		return
	}
	in.outcome = &amqp.Transactional{ID: state.ID, Outcome: accepted}
}

func (l *intake) stageMessages(in *arrival, state *amqp.Transactional) error {
	tx := l.s.c.txns[string(state.ID)]
	if tx == nil {
		return errUnknownTransaction
	}
	if l.decode(in); in.failed != nil {
		return in.failed
	}
	if len(in.messages) == 0 {
		return nil
	}
	if tx.size += in.size; tx.size > l.s.c.srv.limits.Held {
		return fmt.Errorf("%w: the messages of one transaction have at most %d bytes", broker.ErrQuota, l.s.c.srv.limits.Held)
	}
	return l.sendIn(tx.Transaction, in.messages)
}

// stage makes what becomes of a delivery part of a transaction. The caller holds the lock.
func (s *session) stage(id uint32, u unsettled, state *amqp.Transactional, settled bool) {
	answer, err := s.stageOutcome(u, state)
	if err == nil {
		delete(s.unsettled, id)
		u.from.pending--
		u.from.unstick()
	}
	if settled {
		if err != nil {
			s.c.doom(state.ID)
		}
		return
	}
	d := &amqp.Disposition{Role: amqp.RoleSender, First: id, Settled: true}
	if err != nil {
		d.State = &amqp.Rejected{Error: u.from.lost(err).amqpError()}
	} else {
		d.State = &amqp.Transactional{ID: append([]byte(nil), state.ID...), Outcome: answer}
	}
	s.send(d, nil)
}

func (s *session) stageOutcome(u unsettled, state *amqp.Transactional) (amqp.State, error) {
	tx := s.c.txns[string(state.ID)]
	if tx == nil {
		return nil, errUnknownTransaction
	}
	outcome, release, answer, err := outcomeOf(state.Outcome)
	if err != nil || release {
		return nil, errOutcome
	}
	entity, _, _ := strings.Cut(strings.ToLower(u.from.addr.Name), strings.ToLower(subscriptions))
	if tx.received != "" && tx.received != entity {
		return nil, errSpan
	}
	errs, err := tx.Settle(u.from.addr, outcome, u.token)
	if err == nil && len(errs) > 0 {
		err = errs[0]
	}
	if err == nil {
		tx.received = entity
	}
	return answer, err
}
