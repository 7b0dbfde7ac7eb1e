package resubmit

import (
	"context"
	"time"

	"dlq/backends"
)

// verifyTime bounds the last look at the source when somebody waits for the end.
const verifyTime = 2 * time.Second

// verify looks at the source once more: is what the journal says was left still there, and what has
// arrived meanwhile? It changes nothing, and only where the backend can peek does it look at all.
func (r *run) verify(end *jobEnd) {
	if r.peeker == nil || r.how == byReturn {
		return
	}
	ctx, cancel := context.WithCancel(r.work)
	defer cancel()
	if r.stop.Err() != nil {
		ctx, cancel = context.WithTimeout(r.work, verifyTime)
		defer cancel()
	}
	var expected []int
	for i, it := range r.job.ledger.items {
		if it.state == planned || it.state == failed {
			expected = append(expected, i)
		}
	}
	there, newcomers, err := r.census(ctx, expected)
	if err != nil {
		return
	}
	for _, i := range expected {
		if !there[i] {
			end.Lost = append(end.Lost, i)
		}
	}
	end.Checked, end.Newcomers = true, newcomers
}

// census finds out which of the expected items are at the source, and counts what matches but was not
// planned. A selection that names its messages or has a limit has no newcomers; nor are they
// counted when the run was stopped, which is no time for reading a whole queue.
func (r *run) census(ctx context.Context, expected []int) (there map[int]bool, newcomers int64, err error) {
	there = make(map[int]bool, len(expected))
	s := r.query.Selection()
	if s.Limit > 0 || len(s.Seqs) > 0 || len(s.IDs) > 0 || r.stop.Err() != nil {
		seen, err := r.look(ctx, expected)
		for i := range seen {
			there[i] = true
		}
		return there, 0, err
	}
	find := r.finder()
	for m, err := range r.peeker.Peek(ctx, r.spec.From, backends.PeekOptions{NoBody: !r.query.NeedsBody()}) {
		if err != nil {
			return nil, 0, err
		}
		if i, ok := find(m); ok {
			there[i] = true
		} else if r.query.judge(m) {
			newcomers++
		}
	}
	return there, newcomers, nil
}
