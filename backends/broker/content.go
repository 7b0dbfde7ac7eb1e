package broker

import (
	"fmt"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// content is what a message is made of that never changes: its head (all sections but the
// body) and its body. Messages that are copies of one another share them; how many more than
// one there are is counted in memory, and counted anew when the store is opened.
type content struct {
	head, body         uint64 // ids of what is stored already; 0: not yet
	headSize, bodySize int64
	shared             bool // others may have what is stored

	newHead []byte       // what head is to become
	newBody message.Body // what body is to become
}

// contentOf is the content of a stored message.
func contentOf(st *store.State) content {
	return content{head: st.Head, body: st.Body, headSize: st.HeadSize, bodySize: st.BodySize, shared: st.Shared}
}

// newContent is the content of a message that comes in.
func newContent(m *message.Message) content {
	const usual = 256
	head := message.AppendHead(make([]byte, 0, usual), m)
	return content{newHead: head, headSize: int64(len(head)), newBody: m.Body, bodySize: int64(m.Body.Len())}
}

// use counts n users of a head or body that is stored, who came in place of one.
func (t *tx) use(id uint64, n int, drop func(uint64)) {
	switch {
	case n == 0:
		t.unuse(id, drop)
	case n > 1:
		t.e.refs[id] += uint32(n - 1)
	}
}

// unuse drops what nobody uses any more.
func (t *tx) unuse(id uint64, drop func(uint64)) {
	switch t.e.refs[id] {
	case 0:
		drop(id)
	case 1:
		delete(t.e.refs, id)
	default:
		t.e.refs[id]--
	}
}

// id returns the id of a new head or body.
func (t *tx) id() uint64 {
	t.e.nextContent++
	return t.e.nextContent - 1
}

// putHead stores a head.
func (t *tx) putHead(head []byte) uint64 {
	id := t.id()
	t.batch.PutHead(id, head)
	if t.heads != nil {
		t.heads[id] = head
	}
	return id
}

// remove takes a message for good out of the store and of every set but those of its lock.
func (t *tx) remove(q *queue, seq uint64, st *store.State) {
	t.unlist(q, seq, st)
	t.unuse(st.Head, t.batch.DeleteHead)
	t.unuse(st.Body, t.batch.DeleteBody)
}

// unlist takes the state of a message out of the store. Its content stays.
func (t *tx) unlist(q *queue, seq uint64, st *store.State) {
	q.expiring.Delete(expiry{q.expiresAt(st), seq})
	q.of.grow(-st.HeadSize - st.BodySize)
	t.batch.DeleteState(q.key(seq))
	if t.changed != nil {
		t.changed[q.key(seq)] = nil
	}
}

// list puts a message that is in no queue into one.
func (t *tx) list(q *queue, seq uint64, st *store.State) {
	q.of.grow(st.HeadSize + st.BodySize)
	t.e.enter(q, seq, st)
	t.put(q.key(seq), st)
}

// put stores the state of a message.
func (t *tx) put(k store.Key, st *store.State) {
	t.batch.PutState(k, st)
	if t.changed != nil {
		c := *st
		t.changed[k] = &c
	}
}

// state reads the state of a message as this command has left it.
func (t *tx) state(k store.Key) (store.State, error) {
	if st, ok := t.changed[k]; ok {
		if st == nil {
			return store.State{}, fmt.Errorf("%w: it was removed just now", store.ErrNotFound)
		}
		return *st, nil
	}
	return t.e.store.State(k)
}

// head reads everything of a stored message but its body, with what was set later.
func (t *tx) head(st *store.State) (*message.Message, error) {
	m, err := t.headAlone(st)
	return overlaid(m, st), err
}

// headAlone is head without what was set later.
func (t *tx) headAlone(st *store.State) (*message.Message, error) {
	if b, ok := t.heads[st.Head]; ok {
		return message.DecodeHead(b)
	}
	m, _, err := t.e.store.Head(st.Head)
	return m, err
}

// overlaid sets the properties that were set after the message arrived.
func overlaid(m *message.Message, st *store.State) *message.Message {
	if m != nil {
		for _, a := range st.Overlay {
			m.Properties.Set(a.Name, a.Value)
		}
	}
	return m
}
