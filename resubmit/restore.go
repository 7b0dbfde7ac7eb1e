package resubmit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// RestoreOptions say how to restore.
type RestoreOptions struct {
	To      *backends.EntityID // nil: back to the entity that they were removed from
	Again   bool               // also what was restored or moved before, which makes duplicates
	Command string             // what the user typed, for the journal
}

// Restore puts back what a job removed, from the originals in its journal, as a job of its own
// that can be resumed. What an earlier restore of the same job has put back is left out, unless
// asked for. What a resubmit moved is not gone, and comes back only when asked for too. A job that
// was cut off is to be resumed first. All these are [ErrRefused].
//
// Without a destination, dead letters go back into the dead-letter queue. No service lets one
// send there, so each is sent to the entity itself and at once dead-lettered again with its
// reason and description, by sequence number. That takes a backend that peeks and settles directly and
// whose consumers cannot come in between, as dlq's broker, which has one owner at a
// time; elsewhere name a destination. What comes back is the message as its sender made it, and still
// scheduled if its time has not come. New are its sequence number, enqueued time and delivery
// count, and its id where the entity detects duplicates; and it is not deferred. Nothing can be put into
// a subscription alone, which is refused.
func Restore(ctx context.Context, env Env, id string, opts RestoreOptions, progress func(Progress)) (Report, error) {
	id, err := env.Journals.resolve(id)
	if err != nil {
		return Report{}, err
	}
	old, err := env.Journals.reopen(ctx, id, opts.Command)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = old.release() }()
	items, err := restorable(env, old, opts.Again)
	if err != nil {
		return Report{}, err
	}
	back, err := newReturner(ctx, env, old, opts.To)
	if err != nil {
		return Report{}, err
	}
	back.began = env.now()
	h := jobHeader{
		Version: env.Version, Conn: env.Conn, Command: opts.Command, Kind: Restoring, From: old.ledger.header.From,
		To: &back.to, Selection: Selection{All: true}, Restores: id, Concurrency: 1, Planned: back.began, Matched: int64(len(items)),
		Destinations: []Destination{{Entity: back.to, Count: int64(len(items))}}, MaxSeq: back.after,
	}
	if len(items) == 0 {
		return Report{Kind: Restoring, From: h.From, State: Finished, Restores: id, Destinations: h.Destinations}, nil
	}
	job, err := env.Journals.create(h.Planned, opts.Command)
	if err != nil {
		return Report{}, err
	}
	h.ID = job.id
	if err := job.write(env, h, items, nil); err != nil {
		return Report{}, errors.Join(err, job.release())
	}
	return runRestore(ctx, env, job, back, progress)
}

// resumeRestore goes on with a restore. The originals are in the journal of the restored job.
func resumeRestore(ctx context.Context, env Env, job *openJob, progress func(Progress)) (Report, error) {
	h := job.ledger.header
	old, err := env.Journals.reopen(ctx, h.Restores, h.Command)
	if err != nil {
		return Report{}, errors.Join(err, job.release())
	}
	defer func() { _ = old.release() }()
	back, err := newReturner(ctx, env, old, h.To)
	if err != nil {
		return Report{}, errors.Join(err, job.release())
	}
	back.after, back.began = h.MaxSeq, h.Planned
	return runRestore(ctx, env, job, back, progress)
}

// runRestore runs a restore one batch after the other: only so is it plain which messages in the
// destination are those just sent.
func runRestore(ctx context.Context, env Env, job *openJob, back *returner, progress func(Progress)) (Report, error) {
	return runJob(ctx, env, job, back, progress, false)
}

// restorable lists what a job removed and its journal holds, without what was restored before.
func restorable(env Env, old *openJob, again bool) ([]item, error) {
	h := old.ledger.header
	switch {
	case !old.ledger.begun:
		return nil, fmt.Errorf("%w: job %s was never begun and removed nothing", ErrRefused, old.id)
	case h.Conn != env.Conn:
		return nil, fmt.Errorf("%w: job %s belongs to connection %s; name it with --conn", ErrRefused, h.ID, h.Conn)
	case h.Copy || h.Kind == Restoring:
		return nil, fmt.Errorf("%w: job %s removed nothing", ErrRefused, h.ID)
	case old.ledger.end == nil || old.ledger.counts[intent]+old.ledger.counts[sent] > 0:
		return nil, fmt.Errorf("%w: job %s was cut off, and what became of some messages is open; first: dlq jobs resume %s", ErrRefused, h.ID, h.ID)
	case h.Kind == Resubmit && !again:
		return nil, fmt.Errorf("%w: the messages of job %s were moved to %s, not removed; to put copies of them back as well: dlq jobs restore %s --again",
			ErrRefused, h.ID, destinationNames(h.Destinations), h.ID)
	case h.Backup != "":
		return nil, fmt.Errorf("%w: job %s kept its messages in %s; bring them back with: dlq import", ErrRefused, h.ID, h.Backup)
	case h.Discard:
		return nil, fmt.Errorf("%w: job %s was told to keep nothing", ErrRefused, h.ID)
	}
	var before map[itemKey]bool
	if !again {
		var err error
		if before, err = restoredBefore(env.Journals, h.ID); err != nil {
			return nil, err
		}
	}
	var items []item
	for _, it := range old.ledger.items {
		if it.state == done && it.stored > 0 && !before[it.key()] {
			items = append(items, item{seq: it.seq, id: it.id, sum: it.sum})
		}
	}
	return items, nil
}

// destinationNames lists where a job sent messages.
func destinationNames(all []Destination) string {
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.Entity.String()
	}
	return strings.Join(names, ", ")
}

// itemKey names an item across jobs.
type itemKey struct {
	seq int64
	id  string
}

func (it item) key() itemKey { return itemKey{it.seq, it.id} }

// restoredBefore collects what other jobs have put back of a job, or may have.
func restoredBefore(j *Journals, id string) (map[itemKey]bool, error) {
	jobs, err := j.List()
	if err != nil {
		return nil, err
	}
	before := map[itemKey]bool{}
	for _, info := range jobs {
		if info.Restores != id {
			continue
		}
		switch info.State {
		case Running, CutOff, Interrupted, Cancelled:
			return nil, fmt.Errorf("%w: job %s restores it already and is %s; go on with: dlq jobs resume %s",
				ErrRefused, info.ID, info.State, info.ID)
		}
		job, err := j.read(info.ID)
		if err != nil {
			return nil, err
		}
		for _, it := range job.ledger.items {
			if it.state == done || it.state == sent || it.state == uncertain {
				before[it.key()] = true
			}
		}
	}
	return before, nil
}

// returner puts messages from a journal back.
type returner struct {
	old  *openJob
	to   backends.EntityID
	main backends.EntityID // where they are sent; differs from to for a dead-letter sub-queue
	// after is the highest sequence number that main held before the first one was sent.
	after int64
	began time.Time // of the restore, also when it is resumed
	// deduplication is how main recognises what it has had: there messages get new ids.
	deduplication backends.Deduplication
}

func newReturner(ctx context.Context, env Env, old *openJob, to *backends.EntityID) (*returner, error) {
	b := &returner{old: old, to: old.ledger.header.From}
	if to != nil {
		b.to = *to
	}
	e, err := entity(ctx, env.Backend, b.to)
	if err != nil {
		return nil, err
	}
	b.to, b.deduplication = e.Resolve(b.to.Sub), e.Deduplication
	b.main = b.to.MainQueue()
	if e.Kind == backends.Subscription {
		return nil, fmt.Errorf("%w: nothing can be put into the subscription %s alone; name where it shall go, such as --to %s", ErrRefused, b.main, sendable(b.main))
	}
	if b.to.Sub == backends.Main {
		return b, nil
	}
	peeker, peeks := backends.As[backends.Peeker](env.Backend)
	if _, direct := backends.As[backends.DirectSettler](env.Backend); !peeks || !direct || b.to.Sub != backends.DeadLetterQueue {
		return nil, fmt.Errorf("%w: this service cannot put messages into %s; name where they shall go, such as --to %s", ErrRefused, b.to, b.main)
	}
	for m, err := range peeker.Peek(ctx, b.main, backends.PeekOptions{NoBody: true}) {
		if err != nil {
			return nil, err
		}
		b.after = max(b.after, m.Broker.SequenceNumber)
	}
	return b, nil
}

// message returns what to send for an original.
func (b *returner) message(m *message.Message) *message.Message {
	out := Outgoing(m)
	out.AbsoluteExpiry, out.TTL = m.AbsoluteExpiry, m.TTL // it comes back as it was
	if b.deduplication.Window > 0 {
		h := b.old.ledger.header
		t := Transform{job: fmt.Sprintf("%s restored %d", h.ID, b.began.UnixNano()), from: h.From}
		t.renew(out, m, b.deduplication.Attribute)
	}
	// A message that is to be dead-lettered again must be active at once.
	if at := m.ScheduledEnqueueTime; at != nil && (b.to == b.main || !at.After(b.began)) {
		out.ScheduledEnqueueTime = at
	}
	return out
}

// feed emits the originals of the items.
func (b *returner) feed(r *run, todo []int, emit func(work) bool) error {
	stored := make(map[itemKey]int64, len(b.old.ledger.items))
	for _, it := range b.old.ledger.items {
		stored[it.key()] = it.stored
	}
	for _, i := range todo {
		record, err := readRecordAt(b.old.file, b.old.writer.salt, stored[r.job.ledger.items[i].key()])
		if err != nil {
			return err
		}
		m, err := storedMessage(record)
		if err != nil {
			return err
		}
		if !emit(work{index: i, msg: m}) {
			return nil
		}
	}
	return nil
}

// send sends a batch and, where it belongs into a dead-letter queue, dead-letters it again.
func (b *returner) send(r *run, batch []work) error {
	for i := range batch {
		batch[i].to = b.main
	}
	acknowledged, err := r.sendAll(batch)
	kind := recSent
	if b.to == b.main {
		kind = recDone
	}
	err = errors.Join(err, r.mark(kind, indexesOf(acknowledged)), r.job.writer.sync())
	if kind == recDone || r.job.writer.failed() != nil {
		return err
	}
	return errors.Join(err, b.bury(r, acknowledged))
}

// bury dead-letters what was sent again, each message for the reason it once had.
func (b *returner) bury(r *run, batch []work) error {
	found, missing, err := b.find(r, batch)
	if err != nil {
		return err
	}
	for why, g := range found {
		outcome := backends.Outcome{Action: backends.DeadLetter, Reason: why.reason, Description: why.description}
		errs := backends.ItemErrors(r.direct.SettleDirect(r.work, b.main, outcome, g.seqs...), len(g.seqs))
		for i, w := range g.batch {
			if errs[i] == nil {
				err = r.mark(recDone, []int{w.index})
			} else {
				err = r.note(recUncertain, w.index, fmt.Sprintf("it is in %s, and could not be dead-lettered again: %v", b.main, errs[i]))
			}
			if err != nil {
				return err
			}
		}
	}
	for _, w := range missing {
		reason := fmt.Sprintf("sent to %s, but a consumer took it before it could be dead-lettered again", b.main)
		if err := r.note(recUncertain, w.index, reason); err != nil {
			return err
		}
	}
	return nil
}

// cause is why a message once died.
type cause struct{ reason, description string }

// grave is what is to be dead-lettered for one cause.
type grave struct {
	seqs  []int64
	batch []work
}

// find looks for what was sent among the messages that are new in the queue, by content: equal
// ones stand for each other.
func (b *returner) find(r *run, batch []work) (found map[cause]*grave, missing []work, err error) {
	pending := map[itemSum][]work{}
	for _, w := range batch {
		sum := sumOf(b.message(w.msg))
		pending[sum] = append(pending[sum], w)
	}
	found = map[cause]*grave{}
	left := len(batch)
	for m, err := range r.peeker.Peek(r.work, b.main, backends.PeekOptions{From: b.after + 1}) {
		if err != nil {
			return nil, nil, err
		}
		sum := sumOf(m)
		same := pending[sum]
		if len(same) == 0 {
			continue
		}
		w := same[0]
		pending[sum] = same[1:]
		why := cause{w.msg.DeadLetterReason(), w.msg.DeadLetterDescription()}
		if found[why] == nil {
			found[why] = &grave{}
		}
		g := found[why]
		g.seqs, g.batch = append(g.seqs, m.Broker.SequenceNumber), append(g.batch, w)
		if left--; left == 0 {
			break
		}
	}
	for _, same := range pending {
		missing = append(missing, same...)
	}
	return found, missing, nil
}
