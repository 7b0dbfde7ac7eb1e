package broker

import (
	"context"
	"errors"
	"slices"

	"github.com/tidwall/btree"
)

// PurgeOptions say what a purge takes beside what nobody holds.
type PurgeOptions struct {
	InFlight         bool // what is locked, too; the locks are lost
	ForgetDuplicates bool // the ids by which the entity detects duplicates, too
}

// Purge removes everything that is in a queue or sub-queue when it is called, except, unless
// asked for, what is or comes under a lock, and returns how many messages that were when it is
// durable. It works in commits of a thousand and looks at ctx between them; on an error the
// count says how many are gone.
func (e *Engine) Purge(ctx context.Context, a Address, o PurgeOptions) (removed int64, err error) {
	seqs, err := e.there(a, o)
	if err != nil {
		return 0, err
	}
	for chunk := range slices.Chunk(seqs, 1000) {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		if o.InFlight {
			if err := e.unlockAll(a, chunk); err != nil {
				return removed, err
			}
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

// there lists the messages of a queue. A bound on the numbers would not do: what is
// dead-lettered later keeps its old, lower number.
func (e *Engine) there(a Address, o PurgeOptions) ([]uint64, error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, err
	}
	seqs := make([]uint64, 0, q.ready.Len()+q.deferred.Len()+len(q.scheduled))
	for _, set := range [...]*btree.Set[uint64]{&q.ready, &q.deferred} {
		set.Scan(func(seq uint64) bool { seqs = append(seqs, seq); return true })
	}
	for seq := range q.scheduled {
		seqs = append(seqs, seq)
	}
	if o.InFlight {
		for seq := range q.locked {
			seqs = append(seqs, seq)
		}
	}
	if o.ForgetDuplicates {
		t.batch.ForgetSeen(q.of.id)
	}
	slices.Sort(seqs)
	return seqs, t.commit()
}

// unlockAll ends the locks of messages and counts nothing.
func (e *Engine) unlockAll(a Address, seqs []uint64) error {
	t, q, err := e.on(a)
	if err != nil {
		return err
	}
	for _, seq := range seqs {
		if l := q.locked[seq]; l != nil {
			t.letGo(l)
		}
	}
	return t.flush()
}

func int64s(seqs []uint64) []int64 {
	out := make([]int64, len(seqs))
	for i, s := range seqs {
		out[i] = int64(s)
	}
	return out
}
