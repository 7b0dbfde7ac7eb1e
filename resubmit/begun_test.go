package resubmit

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestNeverBegun: a job whose process died while it wrote the plan has touched nothing, and says so however
// little is on disk.
func TestNeverBegun(t *testing.T) {
	f := newFixture(t)
	f.bury(4)
	r := f.run(Spec{})
	path := f.env.Journals.path(r.Job, journalFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ends := recordEnds(t, whole)
	for _, c := range []struct {
		name    string
		size    int64
		matched int64
	}{
		{"empty", 0, 0},
		{"part of the head", 5, 0},
		{"the head alone", int64(journalHead), 0},
		{"a torn header", ends[0] - 1, 0},
		{"the header", ends[0], 4},
		{"the plan", ends[1], 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(path, whole[:c.size], 0o600); err != nil {
				t.Fatal(err)
			}
			list, err := f.env.Journals.List()
			if err != nil || len(list) != 1 {
				t.Fatalf("%d jobs, %v", len(list), err)
			}
			info := list[0]
			if info.ID != r.Job || info.State != CutOff || info.Lost != 0 || info.Left != c.matched || !strings.Contains(info.Err, "never begun") ||
				info.Started.IsZero() {
				t.Errorf("it is listed as %+v", info)
			}
			for range 2 { // trying changes nothing
				if _, err := Resume(f.ctx, f.env, r.Job, nil); err == nil || !strings.Contains(err.Error(), "before it touched a message") {
					t.Errorf("resumed: %v", err)
				}
				if _, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{}, nil); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "never begun") {
					t.Errorf("restored: %v", err)
				}
			}
			running, err := f.env.Journals.acquire(f.ctx, r.Job, "dlq resubmit")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = running.release() }()
			if job, err := f.env.Journals.Job(r.Job); err != nil || job.State != Running || job.Err != "" || job.Left != c.matched {
				t.Errorf("while a process has it, it is %+v, %v", job, err)
			}
		})
	}
}

// TestOpenMovesAreLeft: a move in one step whose outcome is not on disk is in one of the two places, not
// possibly in both.
func TestOpenMovesAreLeft(t *testing.T) {
	f := newFixture(t)
	f.bury(crashMessages)
	c := &crasher{at: 2, after: true}
	f.env.Backend = crashWays[0].wrap(f.local, c)
	image := f.dieWith(c, 0)
	r, _ := runWithBatches(f, f.plan(Spec{Concurrency: 1}), 2)
	image.restore(t)
	job, err := f.env.Journals.Job(r.Job)
	if err != nil {
		t.Fatal(err)
	}
	f.accounted(job.Report)
	if job.State != CutOff || job.Uncertain != 0 || job.Done+job.Left != crashMessages {
		t.Errorf("%s, %s", job.Report.Summary(), job.State)
	}
}

// TestResumeOfFinishedJob reports, and neither writes nor makes anything.
func TestResumeOfFinishedJob(t *testing.T) {
	f := newFixture(t)
	f.bury(3)
	r := f.run(Spec{})
	path := f.env.Journals.path(r.Job, journalFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f.env.Backend = nil // not asked for anything
	again, err := Resume(f.ctx, f.env, r.Job, nil)
	if err != nil || again.Summary() != r.Summary() || again.State != Finished {
		t.Errorf("resumed: %s, %s, %v; before %s", again.Summary(), again.State, err, r.Summary())
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the journal has %d bytes, before %d; %v", len(after), len(before), err)
	}
}
