package broker

import (
	"container/heap"
	"errors"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// timer is something that happens at a time.
type timer struct {
	at    time.Time
	what  event
	n     uint64 // equal times go by the order in which the timers were set
	index int    // in the heap
}

// event is what happens. It runs at its time: t.now is when the timer was set for, however
// late it is run, so that one history has one outcome. It reads messages through t.state,
// since others of the same moment may have changed them. The timer is gone before. It comes
// back when the event fails, which it does before it changes what it would do again.
type event interface{ happen(t *tx) error }

// timers is a heap with the earliest on top.
type timers struct {
	heap timerHeap
	set  uint64 // how many were ever set
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].n < h[j].n
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}

func (h *timers) add(at time.Time, what event) *timer {
	h.set++
	t := &timer{at: at, what: what, n: h.set}
	heap.Push(&h.heap, t)
	return t
}

// remove takes a timer out; nil is none.
func (h *timers) remove(t *timer) {
	if t != nil && t.index >= 0 {
		heap.Remove(&h.heap, t.index)
		t.index = -1
	}
}

func (h *timers) move(t *timer, at time.Time) {
	t.at = at
	heap.Fix(&h.heap, t.index)
}

// again puts a timer back that is gone.
func (h *timers) again(t *timer, at time.Time) {
	t.at = at
	heap.Push(&h.heap, t)
}

func (h *timers) first() *timer {
	if len(h.heap) == 0 {
		return nil
	}
	return h.heap[0]
}

// maxGathered is how many bytes are gathered, about, before they are written.
const maxGathered = 1 << 20

// advance makes true what has happened since the last command, in the order of time. What
// fails, because something cannot be read, is tried again, and not by every command, or none
// would get through. After a long time there may be very much: it is written in parts, between
// events, so that it needs no more memory than one of them.
func (t *tx) advance() error {
	const patience = time.Second
	now := t.now
	t.remember()
	var err error
	for first := t.e.timers.first(); err == nil && first != nil && !first.at.After(now); first = t.e.timers.first() {
		t.e.timers.remove(first)
		t.now = first.at
		if err = first.what.happen(t); err != nil {
			t.e.timers.again(first, now.Add(patience))
		} else if t.batch.Size() > maxGathered {
			err = t.write()
			t.remember()
		}
	}
	t.now, t.changed, t.heads, t.seen = now, nil, nil, nil
	return errors.Join(err, t.write())
}

// remember makes what this command writes from now on readable in it.
func (t *tx) remember() {
	t.changed, t.heads, t.seen = map[store.Key]*store.State{}, map[uint64][]byte{}, nil
}

// write writes what advance has gathered at once, because the command that follows reads
// states from the store.
func (t *tx) write() error {
	if t.batch.Empty() {
		return nil
	}
	err := t.apply()
	t.batch = t.e.store.NewBatch()
	return err
}

// Due returns when something will happen by itself that no command asked for, such as that
// a lock expires. ok is false when nothing will.
func (e *Engine) Due() (at time.Time, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if first := e.timers.first(); first != nil && !e.closed {
		return first.at, true
	}
	return time.Time{}, false
}

// Tick makes true what time has brought about. Every command does so first; Tick is for
// times when there are none.
func (e *Engine) Tick() error {
	t, err := e.begin()
	if err != nil {
		return err
	}
	return t.flush()
}

// isDamage tells a record that is broken or missing from a store that cannot be read.
func isDamage(err error) bool {
	return errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrNotFound) || errors.Is(err, message.ErrCorrupt)
}
