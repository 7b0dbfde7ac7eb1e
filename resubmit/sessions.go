package resubmit

import "fmt"

// rounds cuts a batch so that no call has two messages of one session: whether the first was
// moved must be known before the second is. Messages without a session all go with the first call.
func rounds(batch []work) [][]work {
	var calls [][]work
	before := map[string]int{}
	for _, w := range batch {
		n := 0
		if s := w.msg.SessionID; s != nil {
			n = before[*s]
			before[*s]++
		}
		if n == len(calls) {
			calls = append(calls, nil)
		}
		calls[n] = append(calls[n], w)
	}
	return calls
}

// inOrder leaves out the messages of sessions of which an earlier one stays behind, and records
// that: the destination would get them out of order.
func (r *run) inOrder(batch []work) (free []work, err error) {
	for _, w := range batch {
		if !r.isHeldBack(w) {
			free = append(free, w)
			continue
		}
		reason := fmt.Sprintf("an earlier message of session %q was not moved", *w.msg.SessionID)
		if err := r.note(recFailed, w.index, reason); err != nil {
			return nil, err
		}
	}
	return free, nil
}

func (r *run) isHeldBack(w work) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return w.msg.SessionID != nil && r.blocked[*w.msg.SessionID]
}

// holdBack blocks the sessions of the messages that may follow later: those that failed or whose
// outcome is open. One that is refused never follows, so it holds nothing up.
func (r *run) holdBack(tried []work) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range tried {
		it := r.job.ledger.items[w.index]
		if w.msg.SessionID != nil && (it.state == failed || it.state == uncertain && !it.sent) {
			r.blocked[*w.msg.SessionID] = true
		}
	}
}
