package broker

import (
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// bugs are those that the engine has when a test asks for them, with what they break.
var bugs = [...]struct{ name, does string }{
	{"count-on-release", "a released message counts as a failed delivery"},
	{"lost-lock-settles", "a token settles after its lock is gone"},
	{"expiry-early", "a lock expires before its time"},
	{"session-shared", "a session that is locked can be locked again"},
	{"dedup-forgets", "a duplicate inside the window is stored"},
	{"ttl-deferred", "a deferred message expires"},
	{"fanout-one-copy", "of several subscriptions only one gets its copy"},
	{"forward-keeps-source", "a forwarded message stays at its source too"},
	{"rollback-leaks", "what a rolled back transaction has sent arrives"},
	{"seq-reused", "a sequence number is used again"},
}

// TestModelFindsBugs puts bugs into the engine, one at a time: the model finds each within
// what TestModel runs. A bug that it does not find is a hole in the model.
func TestModelFindsBugs(t *testing.T) {
	for _, bug := range bugs {
		t.Run(bug.name, func(t *testing.T) {
			setFlags(t, map[string]string{
				"rapid.checks": strconv.Itoa(500 * size(5, 1, 1)), "rapid.steps": strconv.Itoa(size(400, 200, 200)),
				"rapid.nofailfile": "true", "rapid.shrinktime": "0s",
			})
			steps := 0
			found := finds(t, func(t *rapid.T) {
				m := newMachine(t, bug.name)
				defer func() { _ = m.e.Close() }()
				defer func() { steps += m.steps }()
				m.run(t)
			})
			if found == "" {
				t.Fatalf("%d steps did not show that %s", steps, bug.does)
			}
			t.Logf("about %d steps; %s", steps, found)
		})
	}
}

// finds runs a property that is to fail and returns the message of its failure, or "".
func finds(t *testing.T, property func(*rapid.T)) string {
	f := &falsified{TB: t}
	rapid.Check(f, property)
	return f.message
}

// falsified stands for the test that a property fails, so that the failure can be looked at.
type falsified struct {
	testing.TB
	failed  bool
	message string
}

func (f *falsified) Errorf(format string, args ...any) {
	f.failed = true
	if f.message == "" {
		f.message = fmt.Sprintf(format, args...)
	}
}

func (f *falsified) Fail()                     { f.failed = true }
func (f *falsified) FailNow()                  { f.failed = true } // it is the last thing that rapid calls
func (f *falsified) Failed() bool              { return f.failed }
func (f *falsified) Log(...any)                {}
func (f *falsified) Logf(string, ...any)       {}
func (f *falsified) Error(args ...any)         { f.Errorf("%s", fmt.Sprint(args...)) }
func (f *falsified) Fatal(args ...any)         { f.Errorf("%s", fmt.Sprint(args...)) }
func (f *falsified) Fatalf(s string, a ...any) { f.Errorf(s, a...) }
