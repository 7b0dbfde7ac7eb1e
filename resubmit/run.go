package resubmit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"dlq/backends"
	"dlq/backends/message"

	"golang.org/x/time/rate"
)

// How a run is bounded.
const (
	defaultConcurrency = 4
	maxBatch           = 50      // messages: what one Service Bus transaction carries safely
	maxBatchBytes      = 4 << 20 // of bodies, unless one message alone is larger
	stopGrace          = 10 * time.Second
	releaseTime        = 5 * time.Second // for letting go of locks
	cancelPoll         = 100 * time.Millisecond
	plannedPerRecord   = 512
	defaultLockTime    = time.Minute // of an entity that does not tell
	lockMargin         = 500 * time.Millisecond
)

// Run carries out a plan under a new journal and returns the report, which is valid also when
// there is an error. progress may be nil; it is called by one goroutine at a time, after each
// batch, and must not block. A plan with vetoes is [ErrRefused]; an empty one does nothing and
// leaves no journal. When ctx is cancelled or the job is, the batches in flight are finished
// within ten seconds, locks are released and the report says what is left: that is no error. An
// error is what ended the run early otherwise.
func Run(ctx context.Context, env Env, plan *Plan, progress func(Progress)) (Report, error) {
	if err := plan.Refused(); err != nil {
		return Report{}, err
	}
	if plan.Matched == 0 {
		return Report{Kind: plan.Spec.Kind, From: plan.Spec.From, State: Finished, Checked: true}, nil
	}
	job, err := env.Journals.create(plan.at, plan.Spec.Command)
	if err != nil {
		return Report{}, err
	}
	if err := job.begin(env, plan); err != nil {
		return Report{}, errors.Join(err, job.release())
	}
	return runJob(ctx, env, job, nil, progress, false)
}

// begin writes the plan. Only when it is durable may a message be touched.
func (job *openJob) begin(env Env, p *Plan) error {
	s := p.Spec
	h := jobHeader{
		ID: job.id, Version: env.Version, Conn: env.Conn, Command: s.Command, Kind: s.Kind, From: s.From, To: s.To,
		Selection: s.Selection, Edits: recordEdits(s.Edits), Copy: s.Copy, AllowUnrouted: s.AllowUnrouted, Delay: s.Delay, Rate: s.Rate, Concurrency: s.Concurrency,
		Backup: s.Backup, Discard: s.Discard, Planned: p.at, Matched: p.Matched, Bytes: p.Bytes, Destinations: p.Destinations,
		SourceCount: p.count, MaxSeq: p.maxSeq,
	}
	return job.write(env, h, p.items, s.Edited)
}

func (job *openJob) write(env Env, h jobHeader, items []item, edited map[int64]*message.Message) error {
	l := job.ledger
	l.header = h
	records := []func([]byte) []byte{func(b []byte) []byte { return appendJSON(b, recHeader, h) }}
	for part := range slices.Chunk(items, plannedPerRecord) {
		l.plan(part)
		records = append(records, func(b []byte) []byte { return appendPlanned(b, part) })
	}
	for _, fill := range records {
		if _, err := job.writer.append(fill); err != nil {
			return err
		}
	}
	for seq, m := range edited {
		off, err := job.writer.append(func(b []byte) []byte { return appendEdited(b, seq, m) })
		if err != nil {
			return err
		}
		l.edited[seq] = off
	}
	start := jobStart{At: env.now(), PID: os.Getpid(), Version: env.Version}
	l.starts, l.begun = append(l.starts, start), true
	for _, fill := range []func([]byte) []byte{
		func(b []byte) []byte { return appendJSON(b, recResumed, start) },
		func(b []byte) []byte { return append(b, recBegun) },
	} {
		if _, err := job.writer.append(fill); err != nil {
			return err
		}
	}
	return job.writer.sync()
}

// method is how messages get from here to there, chosen by what the backend can do.
type method uint8

const (
	byMove   method = iota + 1 // Mover: one atomic step
	bySend                     // send, then complete the original; or send alone, for a copy
	bySettle                   // complete
	byReturn                   // send what a journal holds
)

// run is one process's work on a job.
type run struct {
	env       Env
	job       *openJob
	header    jobHeader
	spec      Spec
	query     *Query
	transform *Transform
	source    backends.Entity
	lockTime  time.Duration
	crashed   bool // the process before this one died, and may have left locks
	how       method
	mover     backends.Mover
	direct    backends.DirectSettler
	peeker    backends.Peeker
	lease     backends.Lease // while a sweep runs

	// stop ends the beginning of new batches, work the batches in flight.
	stop, work context.Context
	halt       context.CancelCauseFunc
	abandon    context.CancelFunc
	limiter    *rate.Limiter
	batchMax   int
	progress   func(Progress)
	began      time.Time
	giveBack   *returner // for byReturn

	mu        sync.Mutex // guards what follows, the ledger, and calls of progress
	err       error      // what ended the run early
	cancelled bool
	created   []backends.EntityID
	doneHere  int64
	blocked   map[string]bool // sessions of which a message stays behind: see inOrder
}

// Why a run stops early.
var errCancelled = errors.New("cancelled")

// runJob works on an open job until it ends, and closes it. back is for a restore.
func runJob(ctx context.Context, env Env, job *openJob, back *returner, progress func(Progress), crashed bool) (Report, error) {
	r, err := newRun(ctx, env, job, progress, crashed)
	if err != nil {
		return Report{}, errors.Join(err, job.release())
	}
	r.giveBack = back
	defer r.close()
	finished := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { r.watchCancel(finished) })
	if err := r.createDestinations(); err != nil {
		r.fail(err)
	} else if err := r.all(); err != nil {
		r.fail(err)
	}
	close(finished)
	watch.Wait()
	return r.finish()
}

func newRun(ctx context.Context, env Env, job *openJob, progress func(Progress), crashed bool) (*run, error) {
	h := job.ledger.header
	edits, err := h.Edits.edits()
	if err != nil {
		return nil, err
	}
	r := &run{env: env, job: job, header: h, crashed: crashed, progress: progress, began: env.now(), blocked: map[string]bool{}}
	if r.env.Sleep == nil {
		r.env.Sleep = sleep
	}
	r.spec = Spec{
		Kind: h.Kind, From: h.From, To: h.To, Selection: h.Selection, Edits: edits, Copy: h.Copy, AllowUnrouted: h.AllowUnrouted, Delay: h.Delay,
		Rate: h.Rate, Concurrency: h.Concurrency, Backup: h.Backup, Discard: h.Discard,
	}
	if r.spec.Concurrency == 0 {
		r.spec.Concurrency = defaultConcurrency
	}
	if r.query, err = h.Selection.Compile(h.Planned); err != nil {
		return nil, err
	}
	if r.transform, err = edits.Compile(h.ID, h.From); err != nil {
		return nil, err
	}
	// Also when ctx is done already: a stop ends in a report, and the job in one that can be resumed.
	if e, err := entity(context.WithoutCancel(ctx), env.Backend, h.From); err == nil {
		r.source, r.lockTime = e, e.Limits.LockDuration
	} else if h.Kind != Restoring {
		return nil, err
	}
	if r.lockTime == 0 {
		r.lockTime = defaultLockTime
	}
	r.choose()
	r.pace()
	stop, halt := context.WithCancelCause(ctx)
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	r.stop, r.halt, r.work, r.abandon = stop, halt, work, abandon
	context.AfterFunc(stop, func() {
		grace := time.AfterFunc(stopGrace, abandon)
		context.AfterFunc(work, func() { grace.Stop() })
	})
	return r, nil
}

// close lets go of the contexts.
func (r *run) close() {
	r.abandon()
	r.halt(nil)
}

// choose picks the way by what the backend can do, and by what the process before this one could:
// messages that it sent and did not complete are completed under a lock, as it would have done.
func (r *run) choose() {
	r.peeker, _ = backends.As[backends.Peeker](r.env.Backend)
	r.mover, _ = backends.As[backends.Mover](r.env.Backend)
	r.direct, _ = backends.As[backends.DirectSettler](r.env.Backend)
	switch {
	case r.spec.Kind == Restoring:
		r.how = byReturn
	case r.spec.Kind != Resubmit:
		r.how = bySettle
	case r.mover != nil && r.peeker != nil && !r.job.ledger.halfSent():
		r.how = byMove
	default:
		r.how = bySend
	}
}

// leases reports whether the messages are read by a sweep that locks them.
func (r *run) leases() bool {
	switch {
	case r.how == byMove, r.how == byReturn:
		return false
	case r.how == bySettle:
		return r.direct == nil || r.peeker == nil
	}
	return !r.spec.Copy || r.peeker == nil
}

// pace sets up the rate. A low rate makes small batches, so that messages flow evenly.
func (r *run) pace() {
	r.batchMax = maxBatch
	limit := rate.Inf
	if r.spec.Rate > 0 {
		limit = rate.Limit(r.spec.Rate)
		const batchesPerSecond = 4
		r.batchMax = min(max(int(r.spec.Rate/batchesPerSecond), 1), maxBatch)
	}
	r.limiter = rate.NewLimiter(limit, r.batchMax)
}

// watchCancel looks for the request of another process to stop.
func (r *run) watchCancel(finished <-chan struct{}) {
	tick := time.NewTicker(cancelPoll)
	defer tick.Stop()
	for {
		select {
		case <-finished:
			return
		case <-tick.C:
			if r.job.cancelled() {
				r.mu.Lock()
				r.cancelled = true
				r.mu.Unlock()
				r.halt(errCancelled)
				return
			}
		}
	}
}

// fail ends the run early. Only the first error counts, and none after a wanted stop.
func (r *run) fail(err error) {
	if r.stop.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, errCancelled)) {
		return
	}
	r.mu.Lock()
	if r.err == nil {
		r.err = err
	}
	r.mu.Unlock()
	r.halt(err)
}

// createDestinations makes the queues that the plan said it would make.
func (r *run) createDestinations() error {
	for _, d := range r.header.Destinations {
		if !d.Create {
			continue
		}
		c, ok := backends.As[backends.QueueCreator](r.env.Backend)
		if !ok {
			return fmt.Errorf("%s does not exist, and this backend cannot create it", d.Entity)
		}
		err := c.CreateQueue(r.work, d.Entity.Name)
		if err != nil && !backends.IsCode(err, backends.AlreadyExists) {
			return err
		}
		if err == nil {
			r.created = append(r.created, d.Entity)
		}
	}
	return nil
}

// mark records what became of items, in the journal and in the ledger.
func (r *run) mark(kind byte, indexes []int) error {
	if len(indexes) == 0 {
		return nil
	}
	if _, err := r.job.writer.append(func(b []byte) []byte { return appendIndexes(b, kind, indexes) }); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range indexes {
		r.job.ledger.set(i, stateOf(kind), "")
	}
	if kind == recDone {
		r.doneHere += int64(len(indexes))
	}
	return nil
}

// note records an outcome with its reason.
func (r *run) note(kind byte, index int, reason string) error {
	if _, err := r.job.writer.append(func(b []byte) []byte { return appendNote(b, kind, index, reason) }); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.job.ledger.set(index, stateOf(kind), reason)
	return nil
}

// state returns what is recorded of an item.
func (r *run) state(index int) itemState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.job.ledger.items[index].state
}

// report tells how far the run is.
func (r *run) report() {
	if r.progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := &r.job.ledger.counts
	p := Progress{Job: r.job.id, Done: n[done], Total: int64(len(r.job.ledger.items)), Skipped: n[skipped], Uncertain: n[uncertain], Failed: n[failed]}
	if since := r.env.now().Sub(r.began).Seconds(); since > 0 && r.doneHere > 0 {
		p.Rate = float64(r.doneHere) / since
		p.ETA = time.Duration(float64(n[planned]+n[intent]) / p.Rate * float64(time.Second))
	}
	r.progress(p)
}

// finish looks at the source once more, writes the end of the job, and reads the report from
// the journal on disk.
func (r *run) finish() (Report, error) {
	end := jobEnd{State: Finished, Created: r.created}
	open := r.job.ledger.counts[planned] + r.job.ledger.counts[intent] + r.job.ledger.counts[sent]
	switch {
	case r.err != nil:
		end.State, end.Stopped = Interrupted, r.err.Error()
	case r.cancelled && open > 0:
		end.State = Cancelled
	case open > 0:
		end.State = Interrupted
	}
	r.verify(&end)
	end.At = r.env.now()
	_, err := r.job.writer.append(func(b []byte) []byte { return appendJSON(b, recFinished, end) })
	err = errors.Join(err, r.job.release())
	job, readErr := r.env.Journals.read(r.job.id)
	if readErr != nil {
		r.job.ledger.end = &end
		return r.job.ledger.report(false), errors.Join(r.err, err, readErr)
	}
	return job.Report, errors.Join(r.err, err)
}
