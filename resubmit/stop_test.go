package resubmit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dlq/backends"
	"dlq/backends/message"

	"golang.org/x/time/rate"
)

// hookAll calls a hook before each move, and hookCore before each send.
type hookAll struct {
	backends.Decorator
	hook func() error
}

func (b hookAll) Move(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
	if err := b.hook(); err != nil {
		return err
	}
	return b.Decorator.Move(ctx, from, moves)
}

type hookCore struct {
	backends.Backend
	hook func() error
}

func (b hookCore) Send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	if err := b.hook(); err != nil {
		return err
	}
	return b.Backend.Send(ctx, id, msgs)
}

// hookWays are a backend that moves and one that does not.
var hookWays = []struct {
	name string
	wrap func(b backends.Backend, hook func() error) backends.Backend
}{
	{"atomic move", func(b backends.Backend, hook func() error) backends.Backend {
		return hookAll{backends.Decorator{Backend: b}, hook}
	}},
	{"lease, send, complete", func(b backends.Backend, hook func() error) backends.Backend { return hookCore{b, hook} }},
}

// TestStop stops runs in mid-way, by the context and by another process, and lets them go on.
func TestStop(t *testing.T) {
	const n = 250
	for _, way := range hookWays {
		for _, how := range []State{Interrupted, Cancelled} {
			t.Run(way.name+"/"+string(how), func(t *testing.T) {
				f := newFixture(t)
				f.bury(n)
				ctx, stop := context.WithCancel(f.ctx)
				defer stop()
				calls := 0
				f.env.Backend = way.wrap(f.local, func() error {
					if calls++; calls != 2 {
						return nil
					}
					if how == Interrupted {
						stop()
						return nil
					}
					ids, err := f.env.Journals.ids()
					return errors.Join(err, f.env.Journals.Cancel(ids[0][3:]))
				})
				// So slow that a run which does not hear would take seconds.
				p := f.plan(Spec{Concurrency: 1, Rate: 200})
				r, err := Run(ctx, f.env, p, nil)
				if err != nil {
					t.Fatal(err)
				}
				f.accounted(r)
				if r.State != how || r.Interrupted != (how == Interrupted) || r.Cancelled != (how == Cancelled) {
					t.Errorf("the state is %s: %+v", r.State, r)
				}
				f.want(r, fmt.Sprintf("moved %d, left %d, lost 0", r.Done, n-r.Done))
				if r.Done < 100 || r.Done == n {
					t.Errorf("%d were moved, want those in flight and not all", r.Done)
				}
				f.holds(orders, int(r.Done))
				if free := f.sweep(dead); free != int(r.Left) {
					t.Errorf("%d messages are free at the source, want all %d that were left", free, r.Left)
				}
				f.env.Journals.now = f.clock.Now
				r, err = Resume(f.ctx, f.env, r.Job, nil)
				if err != nil {
					t.Fatal(err)
				}
				f.want(r, fmt.Sprintf("moved %d, left 0, lost 0", n))
				f.holds(orders, n)
				f.holds(dead, 0)
			})
		}
	}
}

// TestStopBeforeTheFirstMessage: a stop that comes at once is a report of a job that can be
// resumed, too.
func TestStopBeforeTheFirstMessage(t *testing.T) {
	f := newFixture(t)
	f.bury(3)
	p := f.plan(Spec{})
	ctx, stop := context.WithCancel(f.ctx)
	stop()
	r, err := Run(ctx, f.env, p, nil)
	if err != nil || r.Job == "" || r.State != Interrupted || r.Left != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err = Resume(f.ctx, f.env, r.Job, nil); err != nil || r.Done != 3 {
		t.Errorf("resumed: %+v, %v", r, err)
	}
}

// sweep counts the messages that a receiver can get.
func (f *fixture) sweep(id backends.EntityID) int {
	f.Helper()
	lease, err := f.local.Lease(f.ctx, id, backends.LeaseOptions{})
	if err != nil {
		f.Fatal(err)
	}
	n := 0
	for {
		if _, err := lease.Next(f.ctx); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			f.Fatal(err)
		}
		n++
	}
	if err := lease.Release(f.ctx); err != nil {
		f.Fatal(err)
	}
	return n
}

// TestOneProcessAJob resumes one job from two sides at once: one proceeds, the other is told who does.
func TestOneProcessAJob(t *testing.T) {
	f := newFixture(t)
	f.bury(300)
	ctx, stop := context.WithCancel(f.ctx)
	f.env.Backend = hookWays[0].wrap(f.local, func() error { stop(); return nil })
	p := f.plan(Spec{Command: "dlq resubmit orders --all", Concurrency: 1})
	r, err := Run(ctx, f.env, p, nil)
	if err != nil || r.Left == 0 {
		t.Fatalf("%s, %v", r.Summary(), err)
	}
	began, finish := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.env.Backend = hookWays[0].wrap(f.local, func() error {
		once.Do(func() { close(began) })
		<-finish
		return nil
	})
	var first sync.WaitGroup
	first.Go(func() {
		if _, err := Resume(f.ctx, f.env, r.Job, nil); err != nil {
			t.Errorf("the first: %v", err)
		}
	})
	<-began
	_, err = Resume(f.ctx, f.env, r.Job, nil)
	var running *RunningError
	if !errors.As(err, &running) || running.PID == 0 || running.Job != r.Job || running.Command == "" {
		t.Errorf("the second: %v, want who is running it", err)
	}
	if _, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{}, nil); !errors.As(err, &running) {
		t.Errorf("restoring a job that is running: %v", err)
	}
	if job, err := f.env.Journals.Job(r.Job); err != nil || job.State != Running || job.PID != running.PID || len(job.Report.Uncertain) > 0 {
		t.Errorf("meanwhile the job is %+v, %v", job, err)
	}
	close(finish)
	first.Wait()
	f.holds(orders, 300)
	if job, err := f.env.Journals.Job(r.Job); err != nil || job.State != Finished {
		t.Errorf("in the end the job is %+v, %v", job, err)
	}
}

// TestRate measures on a clock of its own that the rate holds over a run.
func TestRate(t *testing.T) {
	for _, perSecond := range []float64{0.5, 7, 100, 1000} {
		synctest.Test(t, func(t *testing.T) {
			r := &run{spec: Spec{Rate: perSecond}}
			r.pace()
			began := time.Now()
			sent := 0
			for sent < 300 {
				if err := r.limiter.WaitN(t.Context(), r.batchMax); err != nil {
					t.Fatal(err)
				}
				sent += r.batchMax
				// At no time is more than one batch ahead of the rate.
				if allowed := time.Since(began).Seconds()*perSecond + float64(r.batchMax) + 1e-6; float64(sent) > allowed {
					t.Fatalf("%v/s: %d sent after %v", perSecond, sent, time.Since(began))
				}
			}
			if want := time.Duration(float64(sent-r.batchMax) / perSecond * float64(time.Second)); time.Since(began) > want+time.Second {
				t.Errorf("%v/s: %d took %v, want %v", perSecond, sent, time.Since(began), want)
			}
		})
	}
	r := &run{}
	r.pace()
	if r.limiter.Limit() != rate.Inf || r.batchMax != maxBatch {
		t.Errorf("without a rate: %v, batches of %d", r.limiter.Limit(), r.batchMax)
	}
}

// TestRateIsANumber: what is no bound is refused before anything is read.
func TestRateIsANumber(t *testing.T) {
	f := newFixture(t)
	f.bury(1)
	for _, perSecond := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		spec := Spec{Kind: Resubmit, From: dead, Selection: Selection{All: true}, Rate: perSecond}
		if _, err := NewPlan(f.ctx, f.env, spec); err == nil {
			t.Errorf("a plan at %v messages a second", perSecond)
		}
	}
}

// TestBrokenBackend: an error that is not about single messages ends the run at once, and what was in flight
// is accounted for by what the source says.
func TestBrokenBackend(t *testing.T) {
	down := &backends.Error{Op: "send", Code: backends.Unavailable}
	for _, way := range hookWays {
		for _, c := range []struct {
			name              string
			err               error
			failed, uncertain int
		}{
			{"unavailable", down, 50, 0},
			{"outcome unknown", errors.New("connection reset"), 0, 50},
		} {
			t.Run(way.name+"/"+c.name, func(t *testing.T) {
				f := newFixture(t)
				f.bury(200)
				calls := 0
				f.env.Backend = way.wrap(f.local, func() error {
					if calls++; calls == 2 {
						return c.err
					}
					return nil
				})
				r, err := Run(f.ctx, f.env, f.plan(Spec{Concurrency: 1}), nil)
				if !errors.Is(err, c.err) {
					t.Errorf("the error is %v, want %v", err, c.err)
				}
				f.accounted(r)
				failed, uncertain := c.failed, c.uncertain
				if way.name == "atomic move" { // the source shows that nothing was moved
					failed, uncertain = 50, 0
				}
				if r.Done != 50 || len(r.Failed) != failed || len(r.Uncertain) != uncertain || r.Left != 100 || r.State != Interrupted || r.Stopped == "" {
					t.Errorf("%s, %s, stopped %q", r.Summary(), r.State, r.Stopped)
				}
				r, err = Resume(f.ctx, f.env, r.Job, nil)
				if err != nil {
					t.Fatal(err)
				}
				if r.Done != int64(200-uncertain) || len(r.Uncertain) != uncertain || r.State.Resumable() != (uncertain > 0) {
					t.Errorf("resumed: %s, %s", r.Summary(), r.State)
				}
				f.holds(orders, 200-uncertain)
				f.holds(dead, uncertain)
			})
		}
	}
}

// loseLocks makes every lock expire between sending and completing.
type loseLocks struct {
	backends.Backend
	lose bool
}

func (b *loseLocks) Lease(ctx context.Context, id backends.EntityID, o backends.LeaseOptions) (backends.Lease, error) {
	l, err := b.Backend.Lease(ctx, id, o)
	return &lossyLease{l, b}, err
}

type lossyLease struct {
	backends.Lease
	b *loseLocks
}

func (l *lossyLease) Settle(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
	if !l.b.lose {
		return l.Lease.Settle(ctx, o, msgs...)
	}
	errs := make([]error, len(msgs))
	for i := range errs {
		errs[i] = &backends.Error{Op: "complete", Code: backends.LockLost}
	}
	return backends.Batch(errs)
}

// TestLostLock: after a confirmed send a lost lock is named as possibly twice, never sent again, and resolved by
// a resume that completes the original.
func TestLostLock(t *testing.T) {
	f := newFixture(t)
	f.bury(3)
	b := &loseLocks{f.local, true}
	f.env.Backend = b
	r := f.run(Spec{})
	if len(r.Uncertain) != 3 || r.State != Partly || !strings.Contains(r.Summary(), "possibly twice 3 (seq ") {
		t.Errorf("%s, %s", r.Summary(), r.State)
	}
	f.holds(orders, 3)
	f.holds(dead, 3)
	b.lose = false
	r, err := Resume(f.ctx, f.env, r.Job, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.want(r, "moved 3, left 0, lost 0")
	f.holds(orders, 3)
	f.holds(dead, 0)
}

// TestSessionsStayInOrder moves interleaved sessions in several lanes.
func TestSessionsStayInOrder(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			var msgs []*message.Message
			for i := range 400 {
				session := fmt.Sprint("s", i*7%13)
				msgs = append(msgs, &message.Message{SessionID: &session, Body: message.DataBody(fmt.Append(nil, i))})
			}
			f.buryAll(msgs...)
			f.run(Spec{Concurrency: 8})
			last := map[string]int{}
			got := f.peek(orders)
			for _, m := range got {
				var n int
				if _, err := fmt.Sscan(string(m.Body.Bytes()), &n); err != nil {
					t.Fatal(err)
				}
				if before, ok := last[*m.SessionID]; ok && before > n {
					t.Errorf("session %s: %d came after %d", *m.SessionID, n, before)
				}
				last[*m.SessionID] = n
			}
			if len(got) != 400 || len(last) != 13 {
				t.Errorf("%d messages of %d sessions arrived", len(got), len(last))
			}
		})
	}
}

// TestLeasedByAnother: what another receiver holds is named, left alone, and done when it is free.
func TestLeasedByAnother(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			f.bury(10)
			p := f.plan(Spec{})
			other, err := f.local.Lease(f.ctx, dead, backends.LeaseOptions{Max: 2})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := other.Next(f.ctx); err != nil {
					t.Fatal(err)
				}
			}
			r, err := Run(f.ctx, f.env, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			f.accounted(r)
			if r.Done != 8 || len(r.Failed) != 2 {
				t.Errorf("%s; want 8 moved and 2 failed", r.Summary())
			}
			if err := other.Release(f.ctx); err != nil {
				t.Fatal(err)
			}
			f.holds(dead, 2)
			if r, err = Resume(f.ctx, f.env, r.Job, nil); err != nil {
				t.Fatal(err)
			}
			f.want(r, "moved 10, left 0, lost 0")
		})
	}
}

// deferrable can do what Service Bus can: browse, lease, and receive deferred messages.
type deferrable struct {
	backends.Backend
	backends.Peeker
	backends.DeferredReceiver
}

// TestDeferred: a deferred dead letter is met by no sweep, and moved all the same.
func TestDeferred(t *testing.T) {
	f := newFixture(t)
	f.bury(6)
	lease, err := f.local.Lease(f.ctx, dead, backends.LeaseOptions{Max: 2})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m, err := lease.Next(f.ctx)
		if err == nil {
			err = lease.Settle(f.ctx, backends.Outcome{Action: backends.Defer}, m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := lease.Release(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.env.Backend = deferrable{f.local, f.local, f.local}
	f.want(f.run(Spec{}), "moved 6, left 0, lost 0")
	f.holds(orders, 6)
	f.holds(dead, 0)
}

// TestDeadlineShorterThanTheRate: a run whose deadline cannot be kept ends in order.
func TestDeadlineShorterThanTheRate(t *testing.T) {
	f := newFixture(t)
	f.bury(20)
	ctx, cancel := context.WithTimeout(f.ctx, time.Minute)
	defer cancel()
	r, err := Run(ctx, f.env, f.plan(Spec{Rate: 0.01}), nil)
	if err != nil || r.State != Interrupted || r.Done != 1 || r.Left != 19 {
		t.Errorf("%s, %s, %v; want one moved, the others left, interrupted", r.Summary(), r.State, err)
	}
}

// TestLost: what the journal says was left, and is not there, is counted and named.
func TestLost(t *testing.T) {
	f := newFixture(t)
	f.bury(100)
	all := f.peek(dead)
	ctx, stop := context.WithCancel(f.ctx)
	f.env.Backend = hookWays[0].wrap(f.local, func() error {
		stop()
		return f.local.SettleDirect(f.ctx, dead, backends.Outcome{Action: backends.Complete}, all[90].Broker.SequenceNumber)
	})
	r, err := Run(ctx, f.env, f.plan(Spec{Concurrency: 1}), nil)
	if err != nil {
		t.Fatal(err)
	}
	f.accounted(r)
	if !r.Checked || r.Done != 50 || r.Left != 49 || r.Lost != 1 || len(r.LostItems) != 1 || r.LostItems[0].ID != "id-90" {
		t.Errorf("%s: %+v", r.Summary(), r.LostItems)
	}
}

// abandoning gives the batches in flight up, as the end of the grace does, and keeps what Release is given.
type abandoning struct {
	backends.Backend
	abandon  func()
	released error
}

func (b *abandoning) Send(context.Context, backends.EntityID, []*message.Message) error {
	b.abandon()
	return context.Canceled
}

func (b *abandoning) Lease(ctx context.Context, id backends.EntityID, o backends.LeaseOptions) (backends.Lease, error) {
	l, err := b.Backend.Lease(ctx, id, o)
	return abandonedLease{l, b}, err
}

type abandonedLease struct {
	backends.Lease
	b *abandoning
}

func (l abandonedLease) Release(ctx context.Context) error {
	if l.b.released = ctx.Err(); l.b.released != nil {
		return l.b.released
	}
	return l.Lease.Release(ctx)
}

// TestLocksAreReleased also when the batches in flight were given up.
func TestLocksAreReleased(t *testing.T) {
	f := newFixture(t)
	f.bury(3)
	b := &abandoning{Backend: f.local, released: errors.New("not released")}
	f.env.Backend = b
	p := f.plan(Spec{})
	job, err := f.env.Journals.create(p.at, "")
	if err == nil {
		err = job.begin(f.env, p)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRun(f.ctx, f.env, job, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	b.abandon = r.abandon
	if err := r.all(); err != nil {
		r.fail(err)
	}
	if _, err := r.finish(); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ends with %v", err)
	}
	if b.released != nil {
		t.Errorf("Release was given a context that is over: %v", b.released)
	}
	if n := f.sweep(dead); n != 3 {
		t.Errorf("%d are free, want 3", n)
	}
}
