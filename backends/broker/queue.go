package broker

import (
	"github.com/tidwall/btree"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// queue is the index of one sub-queue: which messages there are and which can be
// delivered. It holds sequence numbers, not messages.
type queue struct {
	of  *entity
	sub Sub

	ready     btree.Set[uint64]   // active and free, in the order of delivery
	deferred  btree.Set[uint64]   // deferred and free
	locked    map[uint64]*lock    // active or deferred, and held
	scheduled map[uint64]*timer   // waiting to become active
	damaged   map[uint64]struct{} // cannot be read: shown, and never delivered
	heldAside int64               // how many of locked are deferred
}

func newQueue(of *entity, sub Sub) *queue {
	return &queue{of: of, sub: sub, locked: map[uint64]*lock{}, scheduled: map[uint64]*timer{}, damaged: map[uint64]struct{}{}}
}

func (q *queue) key(seq uint64) store.Key {
	return store.Key{Queue: q.of.ID, Sub: uint8(q.sub), Seq: seq}
}

// active counts the active messages, free or locked, and those that cannot be read.
func (q *queue) active() int64 {
	return int64(q.ready.Len()) + int64(len(q.locked)+len(q.damaged)) - q.heldAside
}

// lowest returns a sequence number that no message here lies below: where a search begins
// that is to pass over nothing that is gone.
func (q *queue) lowest() uint64 {
	low := q.of.next
	for _, set := range [...]*btree.Set[uint64]{&q.ready, &q.deferred} {
		if seq, ok := set.Min(); ok {
			low = min(low, seq)
		}
	}
	if len(q.locked)+len(q.scheduled)+len(q.damaged) > 1000 {
		return 0 // finding it would cost more than it saves
	}
	for seq := range q.locked {
		low = min(low, seq)
	}
	for seq := range q.scheduled {
		low = min(low, seq)
	}
	for seq := range q.damaged {
		low = min(low, seq)
	}
	return low
}

// deferredCount counts the deferred messages, free or locked.
func (q *queue) deferredCount() int64 { return int64(q.deferred.Len()) + q.heldAside }

// free returns the set in which a free message with that state stands.
func (q *queue) free(s message.State) *btree.Set[uint64] {
	if s == message.Deferred {
		return &q.deferred
	}
	return &q.ready
}

// has reports whether the message is here, in whatever state.
func (q *queue) has(seq uint64) bool {
	_, isLocked := q.locked[seq]
	_, isScheduled := q.scheduled[seq]
	return isLocked || isScheduled || q.ready.Contains(seq) || q.deferred.Contains(seq)
}

// forget takes a message that nobody holds out of the index.
func (e *Engine) forget(q *queue, seq uint64) {
	q.ready.Delete(seq)
	q.deferred.Delete(seq)
	if t := q.scheduled[seq]; t != nil {
		e.timers.remove(t)
		delete(q.scheduled, seq)
	}
}
