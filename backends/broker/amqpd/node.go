package amqpd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// orphan is a reply whose link is not there yet: peers send requests ahead of it.
type orphan struct {
	from    *intake
	node    node
	addr    broker.Address
	to      string
	payload []byte
}

// Bounds of what waits for a peer to take it.
const (
	maxOrphans = 64
	maxReplies = 1000
)

// attachReplies attaches a link on which a node answers requests.
func (s *session) attachReplies(a *amqp.Attach, o *outlet) {
	if o.node == managementNode && o.addr.Name != "" {
		if _, err := s.c.entity(o.addr, sas.Send, sas.Listen); err != nil {
			s.refuse(a, o, s.c.srv.failed(err, path(o.addr)))
			return
		}
	}
	s.add(o)
	s.c.attached++
	o.age = s.c.attached
	o.answer(a, nil)
	kept := s.c.orphans[:0]
	for _, r := range s.c.orphans {
		if s.c.outletFor(r.from.s, r.node, r.addr, r.to) == o {
			o.replies = append(o.replies, r.payload)
			continue
		}
		kept = append(kept, r)
	}
	s.c.orphans = kept
	o.kick()
}

// request answers a request at a node. It is called without the lock.
func (l *intake) request(in *arrival) {
	req, err := amqp.DecodeMessage(in.payload)
	switch {
	case in.size > l.most(in.format):
		l.decide(in, &tooLarge{delivery: in.id, size: in.size, limit: l.most(in.format)})
		return
	case err != nil:
		l.decide(in, fmt.Errorf("%w: %w", errMalformed, err))
		return
	}
	in.outcome = accepted
	reply := l.answerTo(req, in)
	if reply == nil {
		l.s.c.unsure(broker.ErrUncertain)
		return
	}
	to := ""
	if req.ReplyTo != nil {
		to = *req.ReplyTo
		reply.To = req.ReplyTo
	}
	// Peers match it with its type.
	if reply.CorrelationID = req.ID; req.ID == nil {
		reply.CorrelationID = req.CorrelationID
	}
	payload, err := amqp.AppendMessage(nil, reply)
	if err != nil {
		l.s.c.srv.log("encode a reply of %s: %v", path(l.addr), err)
		return
	}
	c := l.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.route(orphan{l, l.node, l.addr, to, payload})
}

func (l *intake) answerTo(req *message.Message, in *arrival) *message.Message {
	c := l.s.c
	if l.node == cbsNode {
		return c.srv.putToken(c, req)
	}
	if err := l.strike(operationOf(req)); err != nil {
		return c.srv.refusal(req, err, path(l.addr))
	}
	var tx *broker.Transaction
	if state, ok := in.state.(*amqp.Transactional); ok {
		c.mu.Lock()
		declared := c.txns[string(state.ID)]
		c.mu.Unlock()
		if declared == nil {
			return c.srv.refusal(req, errUnknownTransaction, path(l.addr))
		}
		tx = declared.Transaction
		in.outcome = &amqp.Transactional{ID: state.ID, Outcome: accepted}
	}
	return c.srv.manage(context.Background(), c, l.addr, tx, req)
}

// operationOf is what a request counts as for the fault option.
func operationOf(req *message.Message) Op {
	v, _ := req.Properties.Get("operation")
	name, _ := text(v)
	switch name {
	case "com.microsoft:update-disposition":
		return OpSettle
	case "com.microsoft:schedule-message":
		return OpSend
	}
	return OpManage
}

// route hands a reply to the link it is for, or keeps it until that is there.
func (c *conn) route(r orphan) {
	o := c.outletFor(r.from.s, r.node, r.addr, r.to)
	if o == nil && r.from.left {
		return // nobody will come for it
	}
	c.waiting += len(r.payload)
	if c.waiting > c.srv.limits.Outgoing || o == nil && len(c.orphans) >= maxOrphans || o != nil && len(o.replies) >= maxReplies {
		c.hangUp("amqp:resource-limit-exceeded", "too many replies wait for credit")
		return
	}
	if o == nil {
		c.orphans = append(c.orphans, r)
		return
	}
	o.replies = append(o.replies, r.payload)
	o.kick()
}

// disown forgets the replies to a link that has gone. The caller holds the lock.
func (c *conn) disown(from *intake) {
	c.orphans = slices.DeleteFunc(c.orphans, func(r orphan) bool {
		if r.from == from {
			c.waiting -= len(r.payload)
		}
		return r.from == from
	})
}

// outletFor finds the link for a reply: by its target address, by its name, or, since not
// every peer says where it waits, the latest for that node in the session, then on the
// connection.
func (c *conn) outletFor(in *session, n node, a broker.Address, to string) *outlet {
	var best *outlet
	rank := 0
	for _, s := range c.sessions {
		for _, l := range s.links {
			o, ok := l.(*outlet)
			if !ok || o.node != n || o.left || o.refused || !sameAddress(o.addr, a) {
				continue
			}
			got := 1
			switch {
			case to != "" && o.reply == to:
				got = 4
			case to != "" && o.name == to:
				got = 3
			case s == in:
				got = 2
			}
			if got > rank || got == rank && o.age > best.age {
				best, rank = o, got
			}
		}
	}
	return best
}

// puts reports whether a link to $cbs sends already. The service allows one of them, and a
// client of it begins a new connection where there is another.
func (c *conn) puts(but *intake) bool {
	for _, s := range c.sessions {
		for _, l := range s.links {
			if in, ok := l.(*intake); ok && in != but && in.node == cbsNode && !in.refused {
				return true
			}
		}
	}
	return false
}

func sameAddress(a, b broker.Address) bool {
	return a.Sub == b.Sub && strings.EqualFold(a.Name, b.Name)
}

// sendReplies sends the replies that the peer takes. The caller holds the lock.
func (o *outlet) sendReplies() {
	for o.credit > 0 && len(o.replies) > 0 && !o.s.full() {
		payload := o.replies[0]
		o.replies = o.replies[1:]
		o.s.c.waiting -= len(payload)
		o.credit--
		o.count++
		id := o.s.delivery
		o.s.delivery++
		tag := message.RandomUUID()
		o.s.transfer(amqp.Transfer{
			Handle: o.handle, DeliveryID: amqp.Some(id), DeliveryTag: tag[:], MessageFormat: amqp.Some[uint32](0), Settled: amqp.Some(true),
		}, payload)
	}
	if len(o.replies) == 0 {
		o.replies = nil
		o.drained()
	}
}
