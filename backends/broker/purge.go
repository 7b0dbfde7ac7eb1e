package broker

import "github.com/tidwall/btree"

// Purge removes everything that is in a queue or sub-queue when it is called, except what
// is locked, and returns how many messages that were when it is durable. It works in
// commits of a thousand; on an error the count says how many are gone.
func (e *Engine) Purge(a Address) (removed int64, err error) {
	var bound uint64
	for {
		n, err := e.purgeSome(a, &bound)
		removed += n
		if err != nil || n == 0 {
			return removed, err
		}
	}
}

func (e *Engine) purgeSome(a Address, bound *uint64) (int64, error) {
	t, err := e.begin()
	if err != nil {
		return 0, err
	}
	q, err := e.find(a)
	if err != nil {
		t.end()
		return 0, err
	}
	if *bound == 0 {
		*bound = q.of.next
	}
	seqs := q.unheldBelow(*bound, 1000)
	for _, seq := range seqs {
		st, err := t.unheld(q, seq)
		if err != nil {
			t.end()
			return 0, err
		}
		e.forget(q, seq)
		t.remove(q.key(seq), &st)
	}
	return int64(len(seqs)), t.commit()
}

// unheldBelow lists up to n messages that nobody holds.
func (q *queue) unheldBelow(bound uint64, n int) []uint64 {
	var seqs []uint64
	for _, set := range [...]*btree.Set[uint64]{&q.ready, &q.deferred} {
		set.Scan(func(seq uint64) bool {
			if seq >= bound || len(seqs) >= n {
				return false
			}
			seqs = append(seqs, seq)
			return true
		})
	}
	for seq := range q.scheduled {
		if seq < bound && len(seqs) < n {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}
