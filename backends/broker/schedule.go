package broker

import (
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// schedule puts a message in memory among those that wait for their time.
func (e *Engine) schedule(q *queue, seq uint64, due time.Time) {
	q.scheduled[seq] = e.timers.add(&timer{at: due, q: q, seq: seq})
}

// activate makes a scheduled message, which waits no more, active. It gets a new sequence
// number, because its place in the order is that of its activation.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-sequencing#scheduled-messages
func (t *tx) activate(q *queue, seq uint64, st *store.State) {
	t.batch.DeleteState(q.key(seq))
	st.State, st.Enqueued, st.Due = message.Active, st.Due, time.Time{}
	t.free(q, t.number(q.of), st)
}
