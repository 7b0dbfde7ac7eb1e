package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

// DeleteBatchOptions say which messages a batch delete takes.
type DeleteBatchOptions struct {
	Max     int       // messages, at least 1
	Before  time.Time // only those enqueued before it; zero: all
	Session *string   // only those of this session
}

// DeleteBatch removes active messages that nobody holds, those with the lowest numbers first,
// in one commit, and returns how many when that is durable. It ends at the first that is not
// old enough, since numbers rise as time does. Source:
// https://learn.microsoft.com/azure/service-bus-messaging/batch-delete
func (e *Engine) DeleteBatch(a Address, o DeleteBatchOptions) (int, error) {
	t, q, err := e.on(a)
	if err != nil {
		return 0, err
	}
	if !q.of.receives() {
		t.end()
		return 0, fmt.Errorf("%w: %s is %s", ErrDisabled, q.of.name, q.of.p.Status)
	}
	ready := &q.ready
	if o.Session != nil {
		g := q.groups[*o.Session]
		if g == nil {
			t.end()
			return 0, nil
		}
		ready = &g.ready
	}
	var seqs []uint64
	ready.Scan(func(seq uint64) bool {
		seqs = append(seqs, seq)
		return len(seqs) < o.Max
	})
	removed := 0
	for _, seq := range seqs {
		st, err := t.state(q.key(seq))
		if isDamage(err) {
			e.quarantine(q, seq, nil)
			continue
		}
		if err != nil {
			return removed, errors.Join(unavailable(err), t.commit())
		}
		if !o.Before.IsZero() && !st.Enqueued.Before(o.Before) {
			break
		}
		e.leave(q, seq, &st)
		t.settle(q, seq, &st, Outcome{Action: Complete})
		removed++
	}
	return removed, t.commit()
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
