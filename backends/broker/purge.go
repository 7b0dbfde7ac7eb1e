package broker

import (
	"context"
	"errors"
	"slices"

	"github.com/tidwall/btree"
)

// Purge removes everything that is in a queue or sub-queue when it is called, except what
// is or comes under a lock, and returns how many messages that were when it is durable. It
// works in commits of a thousand and looks at ctx between them; on an error the count says
// how many are gone.
func (e *Engine) Purge(ctx context.Context, a Address) (removed int64, err error) {
	seqs, err := e.unheldNow(a)
	if err != nil {
		return 0, err
	}
	for chunk := range slices.Chunk(seqs, 1000) {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		errs, err := e.SettleBySequence(a, Outcome{Action: Complete}, int64s(chunk)...)
		if err != nil {
			return removed, err
		}
		for _, err := range errs {
			switch {
			case err == nil:
				removed++
			case !errors.Is(err, ErrNoMessage) && !errors.Is(err, ErrLocked):
				return removed, err
			}
		}
	}
	return removed, nil
}

// unheldNow lists the messages that nobody holds. A bound on the numbers would not do: what
// is dead-lettered later keeps its old, lower number.
func (e *Engine) unheldNow(a Address) ([]uint64, error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, err
	}
	defer t.end()
	seqs := make([]uint64, 0, q.ready.Len()+q.deferred.Len()+len(q.scheduled))
	for _, set := range [...]*btree.Set[uint64]{&q.ready, &q.deferred} {
		set.Scan(func(seq uint64) bool { seqs = append(seqs, seq); return true })
	}
	for seq := range q.scheduled {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	return seqs, nil
}

func int64s(seqs []uint64) []int64 {
	out := make([]int64, len(seqs))
	for i, s := range seqs {
		out[i] = int64(s)
	}
	return out
}
