package broker

import (
	"cmp"
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
	of, seqs, err := e.there(a, o)
	if err != nil {
		return 0, err
	}
	for chunk := range slices.Chunk(seqs, 1000) {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		n, err := e.purge(a, of, chunk, o.InFlight)
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// purge removes messages in one commit, so that nobody receives one between the end of its lock
// and its own. A queue of another entity was made since, under the same name and with the same
// numbers, and loses nothing.
func (e *Engine) purge(a Address, of *entity, seqs []uint64, inFlight bool) (removed int64, err error) {
	t, q, err := e.on(a)
	if err != nil {
		return 0, err
	}
	if q.of != of {
		t.end()
		return 0, nil
	}
	var failed error
	for _, seq := range seqs {
		if l := q.locked[seq]; l != nil && inFlight {
			e.drop(l)
			t.remove(q, seq, &l.st)
			removed++
			continue
		}
		st, err := t.unheld(q, seq)
		switch {
		case err == nil:
			e.leave(q, seq, &st)
			t.remove(q, seq, &st)
			removed++
		case !errors.Is(err, ErrNoMessage) && !errors.Is(err, ErrLocked):
			failed = cmp.Or(failed, err)
		}
	}
	if err := t.commit(); err != nil {
		return 0, err
	}
	return removed, failed
}

// there lists the messages of a queue, and returns the entity that it is of. A bound on the
// numbers would not do: what is dead-lettered later keeps its old, lower number.
func (e *Engine) there(a Address, o PurgeOptions) (*entity, []uint64, error) {
	t, q, err := e.on(a)
	if err != nil {
		return nil, nil, err
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
	return q.of, seqs, t.commit()
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
