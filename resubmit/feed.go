package resubmit

import (
	"context"
	"errors"
	"io"
	"slices"
	"sort"

	"dlq/backends"
	"dlq/backends/message"
)

// all works through what is left of the job.
func (r *run) all() error {
	todo := r.todo()
	if len(todo) == 0 {
		return nil
	}
	switch {
	case r.how == byReturn:
		return r.pump(func(emit func(work) bool) error { return r.giveBack.feed(r, todo, emit) })
	case r.leases():
		return r.sweeps(todo)
	}
	return r.pump(func(emit func(work) bool) error { return r.feedPeek(todo, emit) })
}

// todo lists the items that are to be looked for at the source.
func (r *run) todo() []int {
	var todo []int
	for i, it := range r.job.ledger.items {
		switch it.state {
		case planned, failed, sent:
			todo = append(todo, i)
		case intent: // resume has made uncertain what the source cannot tell
			todo = append(todo, i)
		case uncertain:
			if it.sent { // the original can still be removed
				todo = append(todo, i)
			}
		}
	}
	return todo
}

// feedPeek reads the wanted messages by peeking.
func (r *run) feedPeek(todo []int, emit func(work) bool) error {
	items := r.job.ledger.items
	seqs := make([]int64, len(todo))
	for i, index := range todo {
		seqs[i] = items[index].seq
	}
	at := 0
	for m, err := range peekSeqs(r.stop, r.peeker, r.spec.From, seqs, r.spec.keepsNothing()) {
		if err != nil {
			return err
		}
		for ; items[todo[at]].seq < m.Broker.SequenceNumber; at++ {
			if err := r.gone(todo[at]); err != nil {
				return err
			}
		}
		if !emit(work{index: todo[at], msg: m}) {
			return nil
		}
		at++
	}
	if r.stop.Err() != nil {
		return nil
	}
	for ; at < len(todo); at++ {
		if err := r.gone(todo[at]); err != nil {
			return err
		}
	}
	return nil
}

// gone records that an item is not at the source any more. If this job had begun to take it
// away, that has worked; otherwise somebody else was faster.
func (r *run) gone(index int) error {
	r.mu.Lock()
	it := r.job.ledger.items[index]
	r.mu.Unlock()
	switch {
	case it.state == sent, it.state == intent && it.atomic:
		return r.mark(recDone, []int{index})
	case it.state == uncertain:
		return nil
	}
	return r.note(recSkipped, index, "no longer there; somebody else took it")
}

// sweeps reads the wanted messages under lock, in one sweep. After a crash the dead
// process may still hold some: then it waits until those locks have expired, and sweeps again.
func (r *run) sweeps(todo []int) error {
	began := r.env.now()
	unmet, err := r.sweep(todo, nil)
	if err != nil || len(unmet) == 0 || r.stop.Err() != nil {
		return err
	}
	if unmet, err = r.deferred(unmet); err != nil || len(unmet) == 0 {
		return err
	}
	waited := r.crashed && r.maybeLocked(unmet)
	if waited {
		if err := r.env.Sleep(r.stop, r.lockTime+lockMargin-r.env.now().Sub(began)); err != nil {
			return nil // stopped meanwhile
		}
		if unmet, err = r.sweep(unmet, nil); err != nil {
			return err
		}
	}
	if r.stop.Err() != nil {
		return nil
	}
	return r.unmet(unmet, waited)
}

// sweep leases and processes the wanted items, and returns those that it did not meet.
// seqs limits it to these deferred messages.
func (r *run) sweep(todo []int, seqs []int64) (unmet []int, err error) {
	wanted := make(map[int]bool, len(todo))
	for _, i := range todo {
		wanted[i] = true
	}
	find := r.finder()
	opts := backends.LeaseOptions{Want: func(m *message.Message) bool {
		i, ok := find(m)
		return ok && wanted[i]
	}}
	var lease backends.Lease
	if seqs == nil {
		lease, err = r.env.Backend.Lease(r.stop, r.spec.From, opts)
	} else {
		d, _ := backends.As[backends.DeferredReceiver](r.env.Backend)
		lease, err = d.LeaseDeferred(r.stop, r.spec.From, seqs...)
	}
	if err != nil {
		return nil, err
	}
	r.lease = lease
	err = r.pump(func(emit func(work) bool) error {
		for len(wanted) > 0 {
			m, err := lease.Next(r.stop)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			i, ok := find(m)
			if !ok || !wanted[i] {
				continue
			}
			delete(wanted, i)
			if !emit(work{index: i, msg: m}) {
				return nil
			}
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.work), releaseTime) // also when the batches were given up
	defer cancel()
	if relErr := lease.Release(ctx); err == nil {
		err = relErr
	}
	for i := range wanted {
		unmet = append(unmet, i)
	}
	slices.Sort(unmet)
	return unmet, err
}

// finder returns what finds the item that a message is: by sequence number, or by id where
// the service has no numbers.
func (r *run) finder() func(*message.Message) (int, bool) {
	items := r.job.ledger.items
	if len(items) > 0 && items[0].seq == 0 {
		byID := make(map[string]int, len(items))
		for i, it := range items {
			byID[it.id] = i
		}
		return func(m *message.Message) (int, bool) {
			i, ok := byID[message.FormatValue(m.ID)]
			return i, ok
		}
	}
	return func(m *message.Message) (int, bool) {
		seq := m.Broker.SequenceNumber
		i := sort.Search(len(items), func(i int) bool { return items[i].seq >= seq })
		return i, i < len(items) && items[i].seq == seq
	}
}

// deferred takes those of the unmet items that are deferred, which no sweep meets, where
// the backend can do that.
func (r *run) deferred(todo []int) ([]int, error) {
	if _, ok := backends.As[backends.DeferredReceiver](r.env.Backend); !ok || r.peeker == nil {
		return todo, nil
	}
	there, err := r.look(r.stop, todo)
	if err != nil {
		return todo, err
	}
	var rest, deferred []int
	var seqs []int64
	for _, i := range todo {
		if state, ok := there[i]; ok && state == message.Deferred {
			deferred, seqs = append(deferred, i), append(seqs, r.job.ledger.items[i].seq)
		} else {
			rest = append(rest, i)
		}
	}
	if len(deferred) == 0 {
		return todo, nil
	}
	unmet, err := r.sweep(deferred, seqs)
	return append(rest, unmet...), err
}

// look peeks which of the items are at the source, and in which state.
func (r *run) look(ctx context.Context, indexes []int) (map[int]message.State, error) {
	bySeq := make(map[int64]int, len(indexes))
	var seqs []int64
	for _, i := range indexes {
		seq := r.job.ledger.items[i].seq
		bySeq[seq] = i
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	there := map[int]message.State{}
	for m, err := range peekSeqs(ctx, r.peeker, r.spec.From, seqs, true) {
		if err != nil {
			return nil, err
		}
		there[bySeq[m.Broker.SequenceNumber]] = m.Broker.State
	}
	return there, nil
}

// maybeLocked reports whether some of the unmet items may be there, held by a dead process.
func (r *run) maybeLocked(unmet []int) bool {
	if r.peeker == nil {
		return true
	}
	there, err := r.look(r.stop, unmet)
	return err != nil || len(there) > 0
}

// unmet records what became of wanted items that no sweep met. waited: the locks of a dead
// process have expired, so what was not met is not there.
func (r *run) unmet(indexes []int, waited bool) error {
	var there map[int]message.State
	if r.peeker != nil {
		var err error
		if there, err = r.look(r.stop, indexes); err != nil {
			return err
		}
	}
	for _, i := range indexes {
		_, present := there[i]
		var err error
		switch s := r.state(i); {
		case present && (s == sent || s == uncertain):
			err = r.note(recUncertain, i, "sent, but the original is held by another receiver; complete it by hand when it is free")
		case present:
			err = r.note(recFailed, i, "held by another receiver; try again with: dlq jobs resume "+r.job.id)
		case r.peeker == nil && (s == planned || s == failed):
			err = r.note(recFailed, i, "not met: gone, or held by another receiver; dlq jobs resume "+r.job.id+" looks again")
		case s == uncertain && (waited || r.peeker != nil):
			// It was sent, and the original is gone: the completion that seemed to fail, or that
			// a dead process could not note, has worked.
			err = r.mark(recDone, []int{i})
		default:
			err = r.gone(i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
