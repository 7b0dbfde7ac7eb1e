package resubmit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// TestRestoreOfCutOffJob: what became of some messages is open, so nothing is restored before a resume.
func TestRestoreOfCutOffJob(t *testing.T) {
	f := newFixture(t)
	f.bury(crashMessages)
	c := &crasher{at: 2, after: true}
	f.env.Backend = crashAll{backends.Decorator{Backend: f.local}, c}
	image := f.dieWith(c, 0)
	r, _ := runWithBatches(f, f.plan(Spec{Kind: Complete, Concurrency: 1}), 2)
	image.restore(t)
	f.env.Backend = f.local
	_, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{}, nil)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "dlq jobs resume "+r.Job) {
		t.Errorf("restored while it is cut off: %v", err)
	}
	f.holds(dead, crashMessages-4)
	if _, err = Resume(f.ctx, f.env, r.Job, nil); err != nil {
		t.Fatal(err)
	}
	back, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.want(back, "restored 7, left 0, lost 0")
	f.holds(dead, crashMessages)
}

// TestRestoreOfScheduled: an entity's own messages come back scheduled as they were, in every section the
// same; a dead letter keeps a time that has passed.
func TestRestoreOfScheduled(t *testing.T) {
	f := newFixture(t)
	past, future := f.clock.Now().Add(-time.Hour), f.clock.Now().Add(time.Hour)
	f.buryAll(&message.Message{ID: message.String("buried"), ScheduledEnqueueTime: &past, Body: message.DataBody([]byte("b"))})
	session := "s"
	own := []*message.Message{
		{ID: message.String("later"), ScheduledEnqueueTime: &future, SessionID: &session, Body: message.DataBody([]byte("l"))},
		{ID: message.String("now"), Body: message.DataBody([]byte("n"))},
	}
	own[0].Properties.Set("n", message.Int(1))
	if err := f.local.Send(f.ctx, orders, own); err != nil {
		t.Fatal(err)
	}
	for _, from := range []backends.EntityID{orders, dead} {
		before := f.peek(from)
		r := f.run(Spec{Kind: Complete, From: from})
		f.holds(from, 0)
		if _, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		f.sameMessages(from, before)
	}
}

// sameMessages compares what an entity holds with what it held, by id.
func (f *fixture) sameMessages(id backends.EntityID, before []*message.Message) {
	f.Helper()
	after := map[string]*message.Message{}
	for _, m := range f.peek(id) {
		after[message.FormatValue(m.ID)] = m
	}
	f.holds(id, len(before))
	for _, m := range before {
		got := after[message.FormatValue(m.ID)]
		if got == nil {
			f.Errorf("%v is not back in %s", m.ID, id)
			continue
		}
		if d := message.Diff(m, got); d != nil || got.Broker.State != m.Broker.State {
			f.Errorf("%v came back to %s %s, once %s, and different in %v", m.ID, id, got.Broker.State, m.Broker.State, d)
		}
	}
}

// TestResumeWhereMovesAreAtomic: a job that began by sending and completing ends so, also where a resume could
// move in one step.
func TestResumeWhereMovesAreAtomic(t *testing.T) {
	f := newFixture(t)
	f.bury(crashMessages)
	c := &crasher{at: 2} // dies before it completes what it sent
	f.env.Backend = crashPeeks{crashCore{f.local, c}}
	image := f.dieWith(c, 0)
	r, _ := runWithBatches(f, f.plan(Spec{Concurrency: 1}), 2)
	image.restore(t)
	f.env.Backend = f.local
	r, err := Resume(f.ctx, f.env, r.Job, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.want(r, "moved 7, left 0, lost 0")
	f.holds(orders, crashMessages)
	f.holds(dead, 0)
}

func TestRestoreAfterCrash(t *testing.T) {
	for at := 1; ; at++ {
		died := false
		for _, after := range []bool{false, true} {
			f := newFixture(t)
			f.bury(crashMessages)
			removed := f.run(Spec{Kind: Complete})
			c := &crasher{at: at, after: after}
			f.env.Backend = crashAll{backends.Decorator{Backend: f.local}, c}
			image := f.dieWith(c, 1)
			r, _ := Restore(f.ctx, f.env, removed.Job, RestoreOptions{}, nil)
			if !c.isDead() {
				continue
			}
			died = true
			image.restore(t)
			f.env.Backend = f.local
			if _, err := Restore(f.ctx, f.env, removed.Job, RestoreOptions{}, nil); !errors.Is(err, ErrRefused) {
				t.Errorf("restored anew while another restore is cut off: %v", err)
			}
			r, err := Resume(f.ctx, f.env, r.Job, nil)
			if err != nil {
				t.Fatal(err)
			}
			f.accounted(r)
			there := countIDs(f.peek(dead))
			for id, n := range countIDs(f.peek(orders)) {
				there[id] += n
			}
			named := namesOf(r.Uncertain)
			for i := range crashMessages {
				id := fmt.Sprint("id-", i)
				switch n := there[id]; {
				case n > 1, n == 0 && !slices.Contains(named, id):
					t.Errorf("call %d, after %v: %s is there %d times: %s", at, after, id, n, r.Summary())
				}
			}
		}
		if !died {
			if at < 3 {
				t.Errorf("only %d calls were reached", at-1)
			}
			return
		}
	}
}

// TestRestoreOfOtherKinds: what was purged comes back too, unless the job kept nothing, and what was
// moved only when asked for.
func TestRestoreOfOtherKinds(t *testing.T) {
	for _, c := range []struct {
		name string
		spec Spec
		opts RestoreOptions
		back int64  // -1: refused
		why  string // in the refusal
	}{
		{"moved", Spec{}, RestoreOptions{}, -1, "moved to orders, not removed"},
		{"moved, put back all the same", Spec{}, RestoreOptions{Again: true}, 4, ""},
		{"copied", Spec{Copy: true}, RestoreOptions{}, -1, "removed nothing"},
		{"copied, put back all the same", Spec{Copy: true}, RestoreOptions{Again: true}, -1, "removed nothing"},
		{"purged", Spec{Kind: Purge}, RestoreOptions{}, 4, ""},
		{"purged after a backup", Spec{Kind: Purge, Backup: "backup.jsonl"}, RestoreOptions{}, -1, "backup.jsonl"},
		{"purged without", Spec{Kind: Purge, Discard: true}, RestoreOptions{}, -1, "keep nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.bury(4)
			r := f.run(c.spec)
			before := len(f.peek(dead))
			back, err := Restore(f.ctx, f.env, r.Job, c.opts, nil)
			if refused := errors.Is(err, ErrRefused); refused != (c.back < 0) || !refused && (err != nil || back.Done != c.back) {
				t.Errorf("%s, %v", back.Summary(), err)
			} else if refused && !strings.Contains(err.Error(), c.why) {
				t.Errorf("refused with %v; want it to say %q", err, c.why)
			}
			f.holds(dead, before+int(max(c.back, 0)))
			if _, err := Restore(f.ctx, Env{Backend: f.local, Journals: f.env.Journals, Conn: "local:other"}, r.Job, RestoreOptions{}, nil); !errors.Is(err, ErrRefused) {
				t.Errorf("on another connection: %v", err)
			}
		})
	}
}

// TestRestoreNeedsADestination where dead letters cannot be put back.
func TestRestoreNeedsADestination(t *testing.T) {
	f := newFixture(t).leaseOnly()
	f.bury(2)
	r := f.run(Spec{Kind: Complete})
	if _, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{}, nil); !errors.Is(err, ErrRefused) {
		t.Errorf("without a destination: %v", err)
	}
	back, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{To: &orders}, nil)
	if err != nil || back.Done != 2 {
		t.Errorf("%s, %v", back.Summary(), err)
	}
	f.holds(orders, 2)
}
