package broker

import (
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// bury moves a message that nobody holds to the dead-letter sub-queue of its entity. It
// keeps its sequence number, its enqueued time and its count, and expires no more.
func (t *tx) bury(q *queue, seq uint64, st *store.State, reason, description string) {
	overlay := message.Properties(st.Overlay)
	if reason != "" {
		overlay.Set(message.DeadLetterReasonProperty, message.String(reason))
	}
	if description != "" {
		overlay.Set(message.DeadLetterDescriptionProperty, message.String(description))
	}
	st.Overlay = overlay
	st.State = message.Active
	st.Expires = time.Time{}
	t.batch.DeleteState(q.key(seq))
	t.free(q.of.subs[DeadLetter], seq, st)
}
