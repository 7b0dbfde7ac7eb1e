package broker

import (
	"time"

	"github.com/tidwall/btree"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// group is one session or one message group: messages that are delivered in their order. A
// session is held back while a receiver has locked it; a group, while an earlier message of
// it is locked or delayed.
type group struct {
	id     string
	ready  btree.Set[uint64]
	hidden btree.Set[uint64] // locked ones; in message groups delayed ones too
	turn   uint64            // among those that have something to deliver; 0: this has not
	first  uint64            // of a message group: what it has to deliver first; 0: nothing

	// Of sessions.

	token   message.UUID // zero: not locked
	until   time.Time
	timer   *timer
	kept    bool // it has a state
	updated time.Time
}

// group returns the group that a message belongs to, which it makes; nil: none.
func (q *queue) group(st *store.State) *group {
	if q.groups == nil || st.Session == nil {
		return nil
	}
	return q.session(*st.Session)
}

func (q *queue) session(id string) *group {
	g := q.groups[id]
	if g == nil {
		g = &group{id: id}
		q.groups[id] = g
	}
	return g
}

// open reports whether the group has something to deliver to somebody who holds none of it.
func (q *queue) open(g *group) bool {
	first, ok := g.ready.Min()
	if !ok {
		return false
	}
	if q.of.p.RequiresSession {
		return g.token.IsZero()
	}
	held, any := g.hidden.Min()
	return !any || first < held
}

// served puts a group of which something was taken behind the others, if it is open still.
func (q *queue) served(g *group) {
	if g.turn != 0 {
		q.turns.Delete(g.turn)
		g.turn = 0
		q.turnOf(g)
	}
}

// turnOf gives a group that has something to deliver its turn, behind all others, or takes
// it away, and forgets a group of which nothing is left.
func (q *queue) turnOf(g *group) {
	open := q.open(g)
	q.firstOf(g, open)
	switch {
	case open && g.turn == 0:
		q.offer()
		q.turn++
		g.turn = q.turn
		q.turns.Set(g.turn, g)
	case !open && g.turn != 0:
		q.turns.Delete(g.turn)
		g.turn = 0
	}
	if g.ready.Len() == 0 && g.hidden.Len() == 0 && g.token.IsZero() && !g.kept {
		delete(q.groups, g.id)
	}
}

// firstOf keeps the order of what the message groups have to deliver first.
func (q *queue) firstOf(g *group, open bool) {
	if !q.of.p.Groups {
		return
	}
	first := uint64(0)
	if open {
		first, _ = g.ready.Min()
	}
	if first == g.first {
		return
	}
	if g.first != 0 {
		q.firsts.Delete(g.first)
	}
	if g.first = first; first != 0 {
		q.firsts.Insert(first)
	}
}
