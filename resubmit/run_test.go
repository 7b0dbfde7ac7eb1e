package resubmit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/local"
	"dlq/backends/message"
)

var (
	orders = backends.EntityID{Name: "orders"}
	dead   = orders.DeadLetters()
)

// fixture is a broker in memory and a folder for journals, on a clock that only sleeping moves.
type fixture struct {
	*testing.T
	env   Env
	local *local.Backend
	ctx   context.Context
	clock *clock
	cause backends.Outcome // of death
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return ctx.Err()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	b, err := local.Open(t.Context(), local.Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	j, err := OpenJournals(t.TempDir()+"/plans", c.Now)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		T: t, local: b, ctx: t.Context(), clock: c,
		cause: backends.Outcome{Action: backends.DeadLetter, Reason: "PaymentFailed", Description: "card 4711 was declined"},
		env:   Env{Backend: b, Journals: j, Conn: "local:", Version: "test", Now: c.Now, Sleep: c.Sleep},
	}
	f.create(orders.Name)
	return f
}

func (f *fixture) create(name string) {
	f.Helper()
	if err := f.local.CreateQueue(f.ctx, name); err != nil {
		f.Fatal(err)
	}
}

// plainBackend shows the five core methods alone.
type plainBackend struct{ backends.Backend }

// leaseOnly makes the backend one that only leases.
func (f *fixture) leaseOnly() *fixture {
	f.env.Backend = plainBackend{f.local}
	return f
}

// bury puts dead letters into orders: bodies "0", "1", …, ids "id-0", ….
func (f *fixture) bury(n int) {
	f.Helper()
	var msgs []*message.Message
	for i := range n {
		m := &message.Message{ID: message.String(fmt.Sprintf("id-%d", i)), Body: message.DataBody(fmt.Append(nil, i))}
		m.Properties.Set("n", message.Int(i))
		msgs = append(msgs, m)
	}
	f.buryAll(msgs...)
}

func (f *fixture) buryAll(msgs ...*message.Message) {
	f.Helper()
	for part := range slices.Chunk(msgs, 500) {
		if err := f.local.Send(f.ctx, orders, part); err != nil {
			f.Fatal(err)
		}
	}
	var seqs []int64
	for _, m := range f.peek(orders) {
		seqs = append(seqs, m.Broker.SequenceNumber)
	}
	if err := f.local.SettleDirect(f.ctx, orders, f.cause, seqs...); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) peek(id backends.EntityID) []*message.Message {
	f.Helper()
	var out []*message.Message
	for m, err := range f.local.Peek(context.WithoutCancel(f.ctx), id, backends.PeekOptions{}) {
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func bodies(msgs []*message.Message) []string {
	out := make([]string, len(msgs))
	for i, m := range msgs {
		out[i] = string(m.Body.Bytes())
	}
	return out
}

func (f *fixture) plan(s Spec) *Plan {
	f.Helper()
	if s.From == (backends.EntityID{}) {
		s.From = dead
	}
	if s.Kind == "" {
		s.Kind = Resubmit
	}
	if s.Selection.Empty() {
		s.Selection.All = true
	}
	p, err := NewPlan(f.ctx, f.env, s)
	if err != nil {
		f.Fatalf("plan: %v", err)
	}
	return p
}

func (f *fixture) run(s Spec) Report {
	f.Helper()
	r, err := Run(f.ctx, f.env, f.plan(s), nil)
	if err != nil {
		f.Fatalf("run: %v", err)
	}
	f.accounted(r)
	return r
}

// accounted checks the sum that every report promises.
func (f *fixture) accounted(r Report) {
	f.Helper()
	if sum := r.Done + r.Left + int64(len(r.Skipped)+len(r.Failed)+len(r.Uncertain)) + r.Lost; sum != r.Matched {
		f.Errorf("of %d messages %d are accounted for: %s", r.Matched, sum, r.Summary())
	}
}

// want compares the summary of a report, without its names.
func (f *fixture) want(r Report, summary string) {
	f.Helper()
	if got := r.Summary(); got != summary {
		f.Errorf("the report is %q, want %q; state %s; %+v", got, summary, r.State, r)
	}
}

func (f *fixture) holds(id backends.EntityID, n int) {
	f.Helper()
	if got := len(f.peek(id)); got != n {
		f.Errorf("%s holds %d messages, want %d", id, got, n)
	}
}

func TestResubmitMovesEverything(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			f.bury(230)
			r := f.run(Spec{})
			f.want(r, "moved 230, left 0, lost 0")
			if r.State != Finished {
				f.Errorf("state %s, want finished", r.State)
			}
			f.holds(dead, 0)
			got := bodies(f.peek(orders))
			if len(got) != 230 {
				f.Fatalf("%d arrived, want 230", len(got))
			}
			slices.Sort(got)
			if len(slices.Compact(got)) != 230 {
				f.Errorf("some arrived twice")
			}
			for _, m := range f.peek(orders) {
				if m.DeadLetterReason() != "" || m.DeadLetterDescription() != "" {
					f.Fatalf("message %v still says why it died", m.ID)
				}
			}
		})
	}
}

// way is one set of abilities of a backend.
type way struct {
	name    string
	fixture func(*testing.T) *fixture
}

var ways = []way{
	{"atomic move", newFixture},
	{"lease, send, complete", func(t *testing.T) *fixture { return newFixture(t).leaseOnly() }},
}

func TestSelectionIsFrozen(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			f.create("other")
			f.bury(5)
			p := f.plan(Spec{To: &backends.EntityID{Name: "other"}})
			f.bury(3)
			r, err := Run(f.ctx, f.env, p, nil)
			if err != nil {
				f.Fatal(err)
			}
			f.accounted(r)
			f.holds(dead, 3)
			f.holds(backends.EntityID{Name: "other"}, 5)
			if want := int64(3); way.name == "atomic move" && r.Newcomers != want {
				f.Errorf("%d newcomers, want %d", r.Newcomers, want)
			}
		})
	}
}

func TestStaleItemsAreSkippedAndNamed(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			f.bury(20)
			p := f.plan(Spec{})
			gone := f.peek(dead)[3]
			if err := f.local.SettleDirect(f.ctx, dead, backends.Outcome{Action: backends.Complete}, gone.Broker.SequenceNumber); err != nil {
				f.Fatal(err)
			}
			p.items[7].sum[0]++ // as if the message were another one
			r, err := Run(f.ctx, f.env, p, nil)
			if err != nil {
				f.Fatal(err)
			}
			f.accounted(r)
			left := slices.Concat(r.Skipped, r.Failed)
			slices.SortFunc(left, func(a, b Item) int { return strings.Compare(a.ID, b.ID) })
			if r.Done != 18 || len(left) != 2 || r.State != Partly {
				f.Fatalf("%s, state %s; want 18 moved, 2 named, partly", r.Summary(), r.State)
			}
			// A backend that only leases cannot tell gone from held: it fails, and a resume looks again.
			if len(r.Failed) != 0 && way.name == "atomic move" {
				f.Errorf("%s; want none failed", r.Summary())
			}
			if got := left[0]; got.ID != "id-3" || got.Seq != gone.Broker.SequenceNumber {
				f.Errorf("the first one skipped is %+v, want id-3", got)
			}
			if got := left[1]; got.ID != "id-7" || !strings.Contains(got.Reason, "changed") {
				f.Errorf("the second one skipped is %+v, want id-7, changed", got)
			}
			f.holds(dead, 1)
			f.holds(orders, 18)
		})
	}
}

func TestCompleteAndRestore(t *testing.T) {
	f := newFixture(t)
	f.bury(60)
	before := f.peek(dead)
	r := f.run(Spec{Kind: Complete, Selection: Selection{Where: "n < 50"}})
	f.want(r, "completed 50, left 0, lost 0")
	f.holds(dead, 10)
	back, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.accounted(back)
	f.want(back, "restored 50, left 0, lost 0")
	f.holds(orders, 0)
	after := map[string]*message.Message{}
	for _, m := range f.peek(dead) {
		after[message.FormatValue(m.ID)] = m
	}
	for _, m := range before {
		got := after[message.FormatValue(m.ID)]
		if got == nil {
			f.Fatalf("%v is not back", m.ID)
		}
		if d := message.Diff(m, got); d != nil {
			f.Errorf("%v came back different in %v", m.ID, d)
		}
	}
	again, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{}, nil)
	if err != nil || again.Matched != 0 {
		f.Errorf("restored a second time: %v, %s", err, again.Summary())
	}
	f.holds(dead, 60)
	if _, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{Again: true, To: &orders}, nil); err != nil {
		f.Fatal(err)
	}
	f.holds(orders, 50)
}
