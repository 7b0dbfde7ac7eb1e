package resubmit

import (
	"errors"
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
