package resubmit

import (
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"sync"
	"testing"

	"dlq/backends"
	"dlq/backends/message"
)

// crasher is the process's side of the wire. At a chosen call it kills the process: from then
// on nothing has an effect any more, what the process held stays locked, and the journal is what
// was on disk at that instant.
type crasher struct {
	at    int  // the call at which to die; 0: never
	after bool // it takes effect first
	die   func()

	mu    sync.Mutex
	calls int
	dead  bool
}

func (c *crasher) step(do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return context.Canceled
	}
	c.calls++
	if c.calls != c.at {
		return do()
	}
	if c.after {
		_ = do()
	}
	c.dead = true
	c.die()
	return context.Canceled
}

func (c *crasher) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// crashCore is a backend with nothing but the core methods.
type crashCore struct {
	backends.Backend
	c *crasher
}

func (b crashCore) Send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	return b.c.step(func() error { return b.Backend.Send(ctx, id, msgs) })
}

func (b crashCore) Lease(ctx context.Context, id backends.EntityID, o backends.LeaseOptions) (backends.Lease, error) {
	l, err := b.Backend.Lease(ctx, id, o)
	return crashLease{l, b.c}, err
}

type crashLease struct {
	backends.Lease
	c *crasher
}

func (l crashLease) Settle(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
	return l.c.step(func() error { return l.Lease.Settle(ctx, o, msgs...) })
}

func (l crashLease) Release(ctx context.Context) error {
	if l.c.isDead() {
		return nil // the dead release nothing
	}
	return l.Lease.Release(ctx)
}

// crashPeeks can browse too, as Service Bus.
type crashPeeks struct{ crashCore }

func (b crashPeeks) Peek(ctx context.Context, id backends.EntityID, o backends.PeekOptions) iter.Seq2[*message.Message, error] {
	p, _ := backends.As[backends.Peeker](b.Backend)
	return p.Peek(ctx, id, o)
}

// crashAll can do everything.
type crashAll struct {
	backends.Decorator
	c *crasher
}

func (b crashAll) Send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	return b.c.step(func() error { return b.Decorator.Send(ctx, id, msgs) })
}

func (b crashAll) Move(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
	return b.c.step(func() error { return b.Decorator.Move(ctx, from, moves) })
}

func (b crashAll) SettleDirect(ctx context.Context, id backends.EntityID, o backends.Outcome, seqs ...int64) error {
	return b.c.step(func() error { return b.Decorator.SettleDirect(ctx, id, o, seqs...) })
}

func (b crashAll) Lease(ctx context.Context, id backends.EntityID, o backends.LeaseOptions) (backends.Lease, error) {
	l, err := b.Decorator.Lease(ctx, id, o)
	return crashLease{l, b.c}, err
}

// crashWays are the sets of abilities that choose how a job works.
var crashWays = []struct {
	name string
	wrap func(backends.Backend, *crasher) backends.Backend
}{
	{"all abilities", func(b backends.Backend, c *crasher) backends.Backend {
		return crashAll{backends.Decorator{Backend: b}, c}
	}},
	{"peek and lease", func(b backends.Backend, c *crasher) backends.Backend { return crashPeeks{crashCore{b, c}} }},
	{"lease alone", func(b backends.Backend, c *crasher) backends.Backend { return crashCore{b, c} }},
}

// crashSpecs are the kinds of job.
var crashSpecs = []struct {
	name string
	spec Spec
}{
	{"resubmit", Spec{Kind: Resubmit}},
	{"copy", Spec{Kind: Resubmit, Copy: true}},
	{"complete", Spec{Kind: Complete}},
	{"purge", Spec{Kind: Purge, Discard: true}},
}

// journalImage is a journal as it was on disk when a process died.
type journalImage struct {
	path  string
	bytes []byte
}

// dieWith makes the crash keep the journal of job number n.
func (f *fixture) dieWith(c *crasher, n int) *journalImage {
	image := &journalImage{}
	c.die = func() {
		ids, err := f.env.Journals.ids()
		if err == nil && len(ids) == n+1 {
			image.path = f.env.Journals.path(ids[n], journalFile)
			image.bytes, err = os.ReadFile(image.path)
		}
		if err != nil || image.path == "" {
			f.Errorf("jobs %v, %v", ids, err)
		}
	}
	return image
}

// restore puts the journal back, with what is behind it of a record that was being written.
func (i *journalImage) restore(t *testing.T, torn ...byte) {
	t.Helper()
	if err := os.WriteFile(i.path, append(i.bytes, torn...), 0o600); err != nil {
		t.Fatal(err)
	}
}

const crashMessages = 7 // in batches of two: the last one is not full

// TestCrashMatrix kills the process before and after every call that changes something, resumes, and compares
// the report with what is in the queues.
func TestCrashMatrix(t *testing.T) {
	for _, way := range crashWays {
		for _, kind := range crashSpecs {
			t.Run(way.name+"/"+kind.name, func(t *testing.T) {
				reached := 0
				for at := 1; ; at++ {
					died := false
					for _, after := range []bool{false, true} {
						if crashOnce(t, way.wrap, kind.spec, &crasher{at: at, after: after}, at%3*5) {
							died = true
							reached++
						}
					}
					if !died {
						break
					}
				}
				if reached < 2*4 { // at least one call for each batch
					t.Errorf("only %d crash points were reached", reached)
				}
			})
		}
	}
}

// crashOnce runs a job into a crash, resumes it, and checks. It returns false if the job ended before the
// crash. torn is how many bytes of a half-written record the dead process leaves.
func crashOnce(t *testing.T, wrap func(backends.Backend, *crasher) backends.Backend, spec Spec, c *crasher, torn int) bool {
	t.Helper()
	f := newFixture(t)
	f.bury(crashMessages)
	f.env.Backend = wrap(f.local, c)
	spec.Concurrency = 1
	p := f.plan(spec)
	image := f.dieWith(c, 0)
	r, _ := runWithBatches(f, p, 2)
	if !c.isDead() {
		return false
	}
	image.restore(t, make([]byte, torn)...)
	name := fmt.Sprintf("call %d, after %v, torn %d", c.at, c.after, torn)
	if job, err := f.env.Journals.Job(r.Job); err != nil || job.State != CutOff {
		t.Fatalf("%s: before it is resumed, the job is %v, %v; want cut off", name, job, err)
	}
	f.env.Backend = wrap(f.local, &crasher{})
	report, err := Resume(f.ctx, f.env, r.Job, nil)
	if err != nil {
		t.Fatalf("%s: resume: %v", name, err)
	}
	f.accounted(report)
	f.groundTruth(name, spec, report)
	again, err := Resume(f.ctx, f.env, r.Job, nil)
	if err != nil || again.Summary() != report.Summary() {
		t.Errorf("%s: resumed again it says %q, %v; before %q", name, again.Summary(), err, report.Summary())
	}
	f.groundTruth(name+", again", spec, again)
	return true
}

// runWithBatches is Run with smaller batches.
func runWithBatches(f *fixture, p *Plan, size int) (Report, error) {
	f.Helper()
	job, err := f.env.Journals.create(p.at, "")
	if err == nil {
		err = job.begin(f.env, p)
	}
	if err != nil {
		f.Fatal(err)
	}
	r, err := newRun(f.ctx, f.env, job, nil, false)
	if err != nil {
		f.Fatal(err)
	}
	r.batchMax = size
	defer r.close()
	if err := r.all(); err != nil {
		r.fail(err)
	}
	return r.finish()
}

// groundTruth compares a report of a whole job over all dead letters with the queues: what is done is done
// once, what is elsewhere is named, and nothing is lost.
func (f *fixture) groundTruth(name string, spec Spec, r Report) {
	f.Helper()
	there, arrived := countIDs(f.peek(dead)), countIDs(f.peek(orders))
	job, err := f.env.Journals.Job(r.Job)
	if err != nil {
		f.Fatal(err)
	}
	for it, state := range job.Items() {
		source, dest := there[it.ID], arrived[it.ID]
		var ok bool
		switch {
		case state == ItemDone && spec.Copy:
			ok = source == 1 && dest == 1
		case state == ItemDone && spec.Kind == Resubmit:
			ok = source == 0 && dest == 1
		case state == ItemDone:
			ok = source == 0 && dest == 0
		case state == ItemUncertain:
			ok = source == 1 && dest <= 1
		}
		if !ok {
			f.Errorf("%s: %s is recorded as %s (%s), and it is %d times at the source and %d times at the destination",
				name, it.ID, state, it.Reason, source, dest)
		}
	}
	atomic := spec.Kind != Resubmit || backends.Probe(f.env.Backend).Move && !spec.Copy
	if len(r.Uncertain) > 2 || atomic && len(r.Uncertain) > 0 {
		f.Errorf("%s: %d are possibly twice: %s", name, len(r.Uncertain), r.Summary())
	}
	if r.Lost != 0 || r.Left != 0 {
		f.Errorf("%s: %s; want none lost and none left", name, r.Summary())
	}
}

func countIDs(msgs []*message.Message) map[string]int {
	n := map[string]int{}
	for _, m := range msgs {
		n[message.FormatValue(m.ID)]++
	}
	return n
}

// TestCrashBetweenRecords cuts the journal behind every record, with the queues as they were
// when that record was the last: before a batch is sent, its intents need not be there.
func TestCrashBetweenRecords(t *testing.T) {
	for _, way := range crashWays {
		t.Run(way.name, func(t *testing.T) {
			for cut := range 2 { // of the two intents that come before the first call
				f := newFixture(t)
				f.bury(crashMessages)
				c := &crasher{at: 1}
				f.env.Backend = way.wrap(f.local, c)
				image := f.dieWith(c, 0)
				r, _ := runWithBatches(f, f.plan(Spec{Concurrency: 1}), 2)
				ends := recordEnds(t, image.bytes)
				image.bytes = image.bytes[:ends[len(ends)-1-cut]]
				image.restore(t)
				f.env.Backend = way.wrap(f.local, &crasher{})
				report, err := Resume(f.ctx, f.env, r.Job, nil)
				if err != nil {
					t.Fatal(err)
				}
				f.groundTruth(fmt.Sprintf("cut %d", cut), Spec{Kind: Resubmit}, report)
				atomic := backends.Probe(f.env.Backend).Move
				if want := 2 - cut; !atomic && len(report.Uncertain) != want {
					t.Errorf("cut %d: %d are uncertain, want the %d whose intent was on disk", cut, len(report.Uncertain), want)
				}
			}
		})
	}
}

// recordEnds lists where each record of a journal ends.
func recordEnds(t *testing.T, image []byte) []int64 {
	t.Helper()
	j, err := newJournalReader(readerAt(image), int64(len(image)))
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64
	for {
		if _, _, err := j.next(nil); err != nil {
			return ends
		}
		ends = append(ends, j.off)
	}
}

type readerAt []byte

func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, r[min(off, int64(len(r))):])
	if n < len(p) {
		return n, fmt.Errorf("read beyond the end")
	}
	return n, nil
}

// TestCrashUnderLoad kills runs with several batches in flight at random calls.
func TestCrashUnderLoad(t *testing.T) {
	for _, way := range crashWays {
		t.Run(way.name, func(t *testing.T) {
			uncertain := 0
			for _, at := range []int{1, 2, 3, 5, 8, 13, 21, 34} {
				f := newFixture(t)
				f.bury(90)
				c := &crasher{at: at, after: at%2 == 1}
				f.env.Backend = way.wrap(f.local, c)
				image := f.dieWith(c, 0)
				r, _ := runWithBatches(f, f.plan(Spec{Concurrency: 4}), 5)
				if !c.isDead() {
					continue
				}
				image.restore(t)
				f.env.Backend = way.wrap(f.local, &crasher{})
				report, err := Resume(f.ctx, f.env, r.Job, nil)
				if err != nil {
					t.Fatal(err)
				}
				if report.Lost != 0 || report.Left != 0 || len(report.Uncertain) > 4*5 {
					t.Errorf("killed at call %d: %s", at, report.Summary())
				}
				uncertain += len(report.Uncertain)
				twice := f.twice()
				named := namesOf(report.Uncertain)
				for _, id := range twice {
					if !slices.Contains(named, id) {
						t.Errorf("killed at call %d: %s is twice and not named", at, id)
					}
				}
			}
			if atomic := way.name == "all abilities"; atomic != (uncertain == 0) {
				t.Errorf("%d were uncertain over all runs", uncertain)
			}
		})
	}
}

// twice lists the messages that are in both places, and fails for those in none.
func (f *fixture) twice() []string {
	f.Helper()
	there, arrived := countIDs(f.peek(dead)), countIDs(f.peek(orders))
	var out []string
	for i := range 90 {
		id := fmt.Sprintf("id-%d", i)
		switch there[id] + arrived[id] {
		case 0:
			f.Errorf("%s is lost", id)
		case 1:
		default:
			out = append(out, id)
		}
	}
	return out
}

func namesOf(items []Item) []string {
	out := make([]string, len(items))
	for i, it := range items {
		out[i] = it.ID
	}
	return out
}
