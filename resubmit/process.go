package resubmit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dlq/backends"
	"dlq/backends/message"
)

// process carries one batch through, unless the run is to stop before it begins.
func (r *run) process(batch []work) {
	if err := r.limiter.WaitN(r.stop, len(batch)); err != nil {
		r.halt(err) // also when the wait would outlast the deadline of the caller
	}
	if r.stop.Err() != nil {
		return
	}
	if err := r.carry(batch); err != nil {
		r.fail(err)
	}
	r.report()
}

// carry takes a batch through all steps. An error is one that ends the run; what goes wrong with
// single messages is recorded.
func (r *run) carry(batch []work) error {
	fresh, sentBefore, err := r.prepare(batch)
	if err != nil {
		return err
	}
	if err := r.intend(fresh); err != nil {
		return err
	}
	if len(fresh) > 0 {
		switch r.how {
		case byMove:
			err = r.move(fresh)
		case bySettle:
			err = r.settle(fresh)
		case bySend:
			err = r.send(fresh)
		case byReturn:
			err = r.giveBack.send(r, fresh)
		}
	}
	if len(sentBefore) == 0 || err != nil {
		return err
	}
	if r.how == byReturn {
		return r.giveBack.bury(r, sentBefore)
	}
	return r.removeOriginals(sentBefore)
}

// prepare makes what is to be sent, and sorts out the messages that must be left alone and
// those that an earlier process has sent already.
func (r *run) prepare(batch []work) (fresh, sentBefore []work, err error) {
	for _, w := range batch {
		r.mu.Lock()
		it := r.job.ledger.items[w.index]
		r.mu.Unlock()
		if it.sent {
			sentBefore = append(sentBefore, w)
			continue
		}
		if !it.sum.matches(sumOf(w.msg)) {
			err = r.note(recSkipped, w.index, "changed since it was planned")
		} else if reason := r.transformed(&w); reason != nil {
			err = r.note(recSkipped, w.index, reason.Error())
		} else {
			fresh = append(fresh, w)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return fresh, sentBefore, nil
}

// transformed fills in what to send and where. The error says why the message must be left alone.
func (r *run) transformed(w *work) (err error) {
	if r.how == bySettle {
		if w.msg.Broker.BodyOmitted && !r.spec.keepsNothing() {
			return errors.New("the body was not loaded, so it could not be restored")
		}
		return nil
	}
	if r.how == byReturn {
		w.out, w.to = r.giveBack.message(w.msg), r.giveBack.to
		return nil
	}
	edited, err := r.editedVersion(w.msg.Broker.SequenceNumber)
	if err != nil {
		return err
	}
	if w.to, err = destinationOf(r.spec, r.source, w.msg); err != nil {
		return err
	}
	i := slices.IndexFunc(r.header.Destinations, func(d Destination) bool { return d.Entity == w.to })
	if i < 0 {
		return fmt.Errorf("it would go to %s, which the plan did not look at; plan anew", w.to)
	}
	if w.out, err = r.transform.outgoing(r.header.Destinations[i], w.msg, edited); err != nil {
		return err
	}
	if r.spec.Delay > 0 {
		at := r.env.now().Add(r.spec.Delay)
		w.out.ScheduledEnqueueTime = &at
	}
	return nil
}

// editedVersion reads what a person made of a message from the journal; nil if nothing.
func (r *run) editedVersion(seq int64) (*message.Message, error) {
	off, ok := r.job.ledger.edited[seq]
	if !ok {
		return nil, nil
	}
	b, err := readRecordAt(r.job.file, r.job.writer.salt, off)
	if err != nil {
		return nil, fmt.Errorf("the edited version: %w", err)
	}
	return storedMessage(b)
}

// intend writes the originals to the journal before anything happens to them.
func (r *run) intend(batch []work) error {
	if len(batch) == 0 {
		return nil
	}
	var flags byte
	if r.how == bySettle || r.how == byMove && !r.spec.Copy {
		flags |= intentAtomic
	}
	if r.spec.keepsNothing() || r.how == byReturn { // a backup or the restored job has them
		flags |= intentNoMessage
	}
	for _, w := range batch {
		off, err := r.job.writer.append(func(b []byte) []byte { return appendIntent(b, w.index, flags, w.msg) })
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.job.ledger.intend(w.index, flags, off)
		r.mu.Unlock()
	}
	return r.job.writer.sync()
}

// move moves a batch in atomic steps, or copies it.
func (r *run) move(batch []work) error {
	for _, part := range rounds(batch) {
		part, err := r.inOrder(part)
		if err != nil {
			return err
		}
		moves := make([]backends.Move, len(part))
		for i, w := range part {
			moves[i] = backends.Move{Seq: w.msg.Broker.SequenceNumber, To: w.to, As: w.out, Keep: r.spec.Copy, AllowUnrouted: r.spec.AllowUnrouted}
		}
		if len(part) > 0 {
			err = r.conclude(part, r.mover.Move(r.work, r.spec.From, moves))
		}
		r.holdBack(part)
		if err != nil {
			return err
		}
	}
	return nil
}

// settle completes a batch.
func (r *run) settle(batch []work) error {
	complete := backends.Outcome{Action: backends.Complete}
	if r.lease != nil {
		msgs := make([]*message.Message, len(batch))
		for i, w := range batch {
			msgs[i] = w.msg
		}
		return r.conclude(batch, r.lease.Settle(r.work, complete, msgs...))
	}
	seqs := make([]int64, len(batch))
	for i, w := range batch {
		seqs[i] = w.msg.Broker.SequenceNumber
	}
	return r.conclude(batch, r.direct.SettleDirect(r.work, r.spec.From, complete, seqs...))
}

// conclude records the outcome of a step after which a message is gone from the source exactly if
// the step worked (or, for a copy, is at the destination). Where the error leaves the outcome open,
// the source is looked at.
func (r *run) conclude(batch []work, err error) error {
	var finished []int
	var open []work
	errs := backends.ItemErrors(err, len(batch))
	for i, w := range batch {
		switch v := verdictOf(errs[i]); {
		case v == worked:
			finished = append(finished, w.index)
		case v == unclear || v == vanished:
			open = append(open, w)
		default:
			if err := r.note(v.record(), w.index, errs[i].Error()); err != nil {
				return err
			}
		}
	}
	if err := r.mark(recDone, finished); err != nil {
		return err
	}
	if err := r.resolve(open, batch, errs); err != nil {
		return err
	}
	return systemic(errs)
}

// resolve finds out what became of messages whose step has an open outcome.
func (r *run) resolve(open, batch []work, errs []error) error {
	if len(open) == 0 {
		return nil
	}
	reasons := make(map[int]error, len(batch))
	for i, w := range batch {
		reasons[w.index] = errs[i]
	}
	if r.peeker == nil || r.spec.Copy {
		return r.leaveOpen(open, reasons)
	}
	indexes := make([]int, len(open))
	for i, w := range open {
		indexes[i] = w.index
	}
	there, err := r.look(r.work, indexes)
	if err != nil {
		return r.leaveOpen(open, reasons)
	}
	for _, i := range indexes {
		_, present := there[i]
		switch {
		case present:
			err = r.note(recFailed, i, reasons[i].Error())
		case verdictOf(reasons[i]) == vanished:
			err = r.note(recSkipped, i, "no longer there; somebody else took it")
		default:
			err = r.mark(recDone, []int{i})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leaveOpen keeps what only a later look at the source can tell. A message that is
// simply gone needs no look, and a copy leaves no trace at the source.
func (r *run) leaveOpen(open []work, reasons map[int]error) error {
	for _, w := range open {
		var err error
		switch reason := reasons[w.index]; {
		case verdictOf(reason) == vanished:
			err = r.note(recSkipped, w.index, reason.Error())
		case r.spec.Copy:
			err = r.note(recUncertain, w.index, "maybe copied: "+reason.Error())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// send sends a batch, journals what was acknowledged, and only then completes the originals.
func (r *run) send(batch []work) error {
	acknowledged, err := r.sendAll(batch)
	if err == nil || len(acknowledged) > 0 {
		kind := recSent
		if r.spec.Copy {
			kind = recDone
		}
		err = errors.Join(err, r.mark(kind, indexesOf(acknowledged)), r.job.writer.sync())
	}
	if r.spec.Copy || r.job.writer.failed() != nil {
		return err
	}
	return errors.Join(err, r.removeOriginals(acknowledged))
}

// sendAll sends a batch, destination by destination, in order.
func (r *run) sendAll(batch []work) (acknowledged []work, err error) {
	for len(batch) > 0 {
		to := batch[0].to
		var same, others []work
		for _, w := range batch {
			if w.to == to {
				same = append(same, w)
			} else {
				others = append(others, w)
			}
		}
		batch = others
		accepted, again, err := r.sendTo(to, same)
		acknowledged = append(acknowledged, accepted...)
		if err != nil {
			return acknowledged, err
		}
		batch = append(again, batch...)
	}
	return acknowledged, nil
}

// sendTo makes one call. again is what was not tried because of others in the call, which are
// accounted for: it is to be sent without them.
func (r *run) sendTo(to backends.EntityID, batch []work) (acknowledged, again []work, err error) {
	if batch, err = r.inOrder(batch); err != nil || len(batch) == 0 {
		return nil, nil, err
	}
	msgs := make([]*message.Message, len(batch))
	for i, w := range batch {
		msgs[i] = w.out
	}
	errs := backends.ItemErrors(r.env.Backend.Send(r.work, to, msgs), len(msgs))
	err = systemic(errs)
	tried := err == nil // nor is a call without any culprit made again: it would never end
	for i, w := range batch {
		switch v := verdictOf(errs[i]); {
		case v == worked:
			acknowledged = append(acknowledged, w)
		case tried && backends.IsCode(errs[i], backends.NotTried):
			again = append(again, w)
		case v == unclear:
			err = errors.Join(err, r.note(recUncertain, w.index, "possibly sent: "+errs[i].Error()))
		case v == vanished: // the destination
			err = errors.Join(err, r.note(recFailed, w.index, errs[i].Error()))
		default:
			err = errors.Join(err, r.note(v.record(), w.index, errs[i].Error()))
		}
	}
	r.holdBack(batch)
	return acknowledged, again, err
}

// removeOriginals completes messages that were sent. One whose lock was lost is possibly twice: it
// is named, and never sent again.
func (r *run) removeOriginals(batch []work) error {
	if len(batch) == 0 {
		return nil
	}
	msgs := make([]*message.Message, len(batch))
	for i, w := range batch {
		msgs[i] = w.msg
	}
	errs := backends.ItemErrors(r.lease.Settle(r.work, backends.Outcome{Action: backends.Complete}, msgs...), len(msgs))
	var finished []int
	for i, w := range batch {
		switch verdictOf(errs[i]) {
		case worked:
			finished = append(finished, w.index)
		default:
			err := r.note(recUncertain, w.index, "sent, but the original could not be completed: "+errs[i].Error()+
				"; dlq jobs resume "+r.job.id+" tries again")
			if err != nil {
				return err
			}
		}
	}
	if err := r.mark(recDone, finished); err != nil {
		return err
	}
	return systemic(errs)
}

func indexesOf(batch []work) []int {
	out := make([]int, len(batch))
	for i, w := range batch {
		out[i] = w.index
	}
	return out
}

// verdict is what an error says about one message.
type verdict uint8

const (
	worked   verdict = iota
	unclear          // it may have taken effect
	vanished         // something is not there: the message, or the destination
	refused          // the message itself is refused, and will be again
	hindered         // it did not happen; another time it may
)

// record returns the kind of record for a message that was left where it is.
func (v verdict) record() byte {
	if v == refused {
		return recSkipped
	}
	return recFailed
}

func verdictOf(err error) verdict {
	if err == nil {
		return worked
	}
	code, coded := backends.CodeOf(err)
	switch {
	case !coded, code == backends.Unknown, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unclear
	case code == backends.NotFound:
		return vanished
	case refusesMessage(code):
		return refused
	}
	return hindered
}

// systemic returns an error if no message of the batch worked, for a reason that is not about single
// messages: then going on would only fail more of them.
func systemic(errs []error) error {
	for _, err := range errs {
		code, _ := backends.CodeOf(err)
		switch v := verdictOf(err); {
		case v == unclear:
		case v == hindered && code != backends.Locked && code != backends.LockLost:
		default:
			return nil
		}
	}
	if len(errs) == 0 {
		return nil
	}
	for _, err := range errs {
		if !backends.IsCode(err, backends.NotTried) { // which would only point to another one
			return err
		}
	}
	return errs[0]
}
