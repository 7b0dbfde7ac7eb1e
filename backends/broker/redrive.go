package broker

import (
	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// redrive moves a message that has been received as often as the redrive policy of its queue
// allows to the queue that the policy names, and reports whether it did. This is done when a
// receive selects the message, and by nothing else. A policy whose queue is gone is as none, and
// so is one that names its own queue for what it has moved once.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
func (t *tx) redrive(q *queue, seq uint64, st *store.State) bool {
	policy := q.of.p.Redrive
	if policy.Target == "" || int(st.Deliveries) < policy.MaxReceives || q.sub != Main {
		return false
	}
	target := t.e.deadLetters(q.of)
	if target == nil || target == q.of && st.Source == q.of.name {
		return false // moved to itself again and again it would never be delivered
	}
	// Before anything changes: what cannot be read stays, and is found damaged.
	m, own, err := t.redriven(st, q.of, target)
	if err != nil {
		return false
	}
	t.e.leave(q, seq, st)
	t.unlist(q, seq, st)
	l := landing{
		copyOf: copyOf{m: m, own: own, hops: st.Hops, source: q.of.name, overlay: st.Overlay, from: seq},
		q:      target.subs[Main],
	}
	moved := *st
	t.settleDown(&l, moved, func(st *store.State) {
		if q.of.p.RedriveKeepsAge {
			st.Enqueued = moved.Enqueued
		}
		if q.of.p.RedriveKeepsCount {
			st.Deliveries, st.Received = moved.Deliveries, moved.Received
		}
	})
	return true
}

// deadLetters returns the queue that the redrive policy of an entity names; nil: there is no
// policy, or the queue is gone, whatever has taken its name.
func (e *Engine) deadLetters(of *entity) *entity {
	target := e.entity(of.p.Redrive.Target)
	if target == nil || !target.like(of) {
		return nil
	}
	return target
}

// like reports whether messages of one queue can be moved to the other as they are.
func (ent *entity) like(other *entity) bool {
	return ent.kind == other.kind && ent.p.Dialect == other.p.Dialect && ent.p.Groups == other.p.Groups
}

// redriven returns the head that a message has in its dead-letter queue. Where that detects
// duplicates by an id of its own, the id becomes the message id, which is new there.
func (t *tx) redriven(st *store.State, from, target *entity) (*message.Message, bool, error) {
	if !target.p.DeduplicationID {
		return &message.Message{SessionID: st.Session}, false, nil
	}
	m, err := t.headAlone(st)
	if err != nil {
		return nil, false, err
	}
	setSystem(m, DeduplicationIDAttribute, message.String(message.FormatValue(m.ID)))
	return m, true, nil
}

// setSystem sets a system attribute.
func setSystem(m *message.Message, name string, v message.Value) {
	for i := range m.System {
		if m.System[i].Name == name {
			m.System[i].Value = v
			return
		}
	}
	m.System = append(m.System, message.Attribute{Name: name, Value: v})
}

// settleDown stores a stored message in another queue. change has the last word on its state.
func (t *tx) settleDown(l *landing, old store.State, change func(*store.State)) {
	ent := l.q.of
	heads := 1
	if l.own {
		heads = 0
	}
	c := t.keep(contentOf(&old), heads, 1, 0)
	st := store.State{
		Head: c.head, Body: c.body, HeadSize: c.headSize, BodySize: c.bodySize, Shared: old.Shared,
		Hops: l.hops, Enqueued: t.now, EnqueuedSeq: l.from, Session: l.m.SessionID, Source: l.source, Overlay: l.overlay,
	}
	if l.own {
		head := message.AppendHead(nil, l.m)
		st.Head, st.HeadSize = t.putHead(head), int64(len(head))
	}
	if ttl := ent.p.DefaultTTL; ttl > 0 {
		st.Expires = t.now.Add(ttl)
	}
	change(&st)
	t.list(l.q, t.number(ent), &st)
}
