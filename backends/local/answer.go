package local

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"dlq/backends"
	"dlq/backends/message"
)

const (
	maxBatch      = 256       // messages in one answer to next
	maxBatchBytes = 256 << 10 // and their size, but for the last
)

// answer makes one call. An error means that the connection is of no use any more.
func (n *session) answer(ctx context.Context, frame []byte) error {
	var req request
	if err := decode(frame, &req); err != nil {
		return errors.Join(err, n.reply(&reply{Err: err}))
	}
	var last reply
	switch req.Op {
	case opEntities:
		for e, err := range n.b.Entities(ctx, req.Query) {
			if err != nil {
				last.Err = err
			} else if err := n.part(&reply{Entities: []backends.Entity{e}}); err != nil {
				return err
			}
		}
	case opPeek:
		opts := backends.PeekOptions{From: req.From, Max: req.Max, NoBody: req.NoBody}
		for m, err := range n.b.Peek(ctx, req.Entity, opts) {
			if err != nil {
				last.Err = err
			} else if err := n.part(&reply{Messages: []*message.Message{m}}); err != nil {
				return err
			}
		}
	case opLease, opLeaseDeferred, opNext, opSettle, opRelease:
		last = n.answerLease(ctx, &req)
	default:
		last = n.answerOne(ctx, &req)
	}
	return n.reply(&last)
}

// part writes one of several replies, when the buffer is full.
func (n *session) part(r *reply) error {
	r.More = true
	frame, err := encode(r)
	if err != nil {
		return err
	}
	return n.put(replyFrame, frame)
}

func (n *session) reply(r *reply) error {
	frame, err := encode(r)
	if err != nil {
		return err
	}
	return n.wire.send(replyFrame, frame)
}

func (n *session) answerOne(ctx context.Context, req *request) (r reply) {
	b, id := n.b, req.Entity
	switch req.Op {
	case opSend:
		r.Err = b.Send(ctx, id, req.Messages)
	case opSettleDirect:
		r.Err = b.SettleDirect(ctx, id, req.Outcome, req.Seqs...)
	case opMove:
		r.Err = b.Move(ctx, id, req.Moves)
	case opPurge:
		r.Count, r.Err = b.Purge(ctx, id)
	case opCreateQueue:
		r.Err = b.CreateQueue(ctx, id.Name)
	case opCreateEntity:
		r.Description, r.Err = b.CreateEntity(ctx, backends.NewEntity{ID: id, Kind: req.Kind, Settings: req.Settings, Rules: req.Rules})
	case opDescribeEntity:
		r.Description, r.Err = b.DescribeEntity(ctx, id)
	case opChangeEntity:
		r.Err = b.ChangeEntity(ctx, id, req.Settings...)
	case opDeleteEntity:
		r.Err = b.DeleteEntity(ctx, id)
	case opRemoveRule:
		r.Err = b.RemoveRule(ctx, id, req.Name)
	default:
		return n.answerAboutOne(ctx, req)
	}
	return r
}

// answerAboutOne makes the calls that take exactly one thing which the request has a list of.
func (n *session) answerAboutOne(ctx context.Context, req *request) (r reply) {
	b, id := n.b, req.Entity
	switch {
	case req.Op == opAddRule && len(req.Rules) == 1:
		r.Err = b.AddRule(ctx, id, req.Rules[0])
	case req.Op == opValidateSend && len(req.Messages) == 1 && req.Messages[0] != nil:
		r.Err = b.ValidateSend(ctx, id, req.Messages[0])
	case req.Op == opRoute && len(req.Messages) == 1 && req.Messages[0] != nil:
		r.IDs, r.Err = b.Route(ctx, id, req.Messages[0])
	default:
		r.Err = &backends.Error{Op: "answer", Entity: id, Code: backends.Invalid, Err: fmt.Errorf("a request of kind %d that makes no sense", req.Op)}
	}
	return r
}

func (n *session) answerLease(ctx context.Context, req *request) (r reply) {
	switch req.Op {
	case opLease, opLeaseDeferred:
		var l backends.Lease
		if req.Op == opLease {
			l, r.Err = n.b.Lease(ctx, req.Entity, backends.LeaseOptions{Session: req.Session, Max: req.Max})
		} else {
			l, r.Err = n.b.LeaseDeferred(ctx, req.Entity, req.Seqs...)
		}
		if r.Err == nil {
			r.Lease = n.keep(l)
		}
		return r
	case opRelease:
		r.Err = n.release(req.Lease)
		return r
	}
	l, ok := n.leased(req.Lease)
	if !ok { // released meanwhile
		r.Err = lost(req.Op, req.Entity)
		return r
	}
	if req.Op == opNext {
		return l.next(ctx, req)
	}
	msgs := make([]*message.Message, len(req.Tokens))
	for i, t := range req.Tokens {
		msgs[i] = &message.Message{Broker: message.Broker{LockToken: t}}
	}
	r.Err = l.Settle(ctx, req.Outcome, msgs...)
	return r
}

// lost is what a lease says that was released.
func lost(op operation, id backends.EntityID) error {
	name, _ := op.about()
	return &backends.Error{Op: name, Entity: id, Code: backends.LockLost}
}

// served is a lease of another process. Its bodies are there once: in the batch that was
// last on its way.
type served struct {
	backends.Lease

	mu     sync.Mutex
	number uint64 // of last
	last   reply
}

// next locks a batch of messages, or returns the last batch again if the client has not got
// it: a call may be canceled when the messages have their locks.
func (s *served) next(ctx context.Context, req *request) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case req.Batch == s.number && s.number > 0:
		return s.last
	case req.Batch != s.number+1:
		return reply{Err: &backends.Error{Op: "receive from", Entity: req.Entity, Code: backends.Invalid, Err: fmt.Errorf("batch %d after batch %d", req.Batch, s.number)}}
	}
	var r reply
	size := 0
	for len(r.Messages) < min(max(req.Max, 1), maxBatch) && size < maxBatchBytes {
		m, err := s.Next(ctx)
		if err != nil {
			if ctx.Err() == nil || len(r.Messages) == 0 {
				r.Err = err
			}
			break
		}
		r.Messages = append(r.Messages, m)
		size += m.Body.Len()
	}
	if ctx.Err() != nil && len(r.Messages) == 0 {
		return r // nothing was taken, so there is nothing to ask for again
	}
	s.number++
	s.last = r
	return r
}
