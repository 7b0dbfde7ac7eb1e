package broker

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// actions are what the machine can do at each step.
func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"send": m.send, "send batch": m.sendBatch, "send scheduled": m.sendScheduled, "send duplicate": m.sendDuplicate,
		"send twice": m.sendTwice, "send refused": m.sendRefused, "send nowhere": m.sendNowhere, "route": m.route,
		"receive": m.receive, "receive several": m.receiveSeveral, "receive after": m.receiveAfter,
		"receive in session": m.receiveInSession, "receive and delete": m.receiveAndDelete, "receive deferred": m.receiveDeferred, "peek": m.peek,
		"complete": m.complete, "abandon": m.abandon, "defer": m.deferIt, "dead-letter": m.deadLetter,
		"settle several": m.settleSeveral, "settle by sequence": m.settleBySequence, "settle lost": m.settleLost,
		"stale delivery": m.stale, "renew": m.renew, "extend": m.extend, "release": m.release, "cancel": m.cancel,
		"accept session": m.acceptSession, "accept next session": m.acceptNextSession, "renew session": m.renewSession,
		"release session": m.releaseSession, "set session state": m.setSessionState, "session state": m.sessionState,
		"use lost session": m.useLostSession,
		"begin":            m.beginTransaction, "stage send": m.stageSend, "stage settle": m.stageSettle, "settle staged": m.settleStaged,
		"commit": m.commit, "roll back": m.rollback,
		"move": m.moveMessage, "keep move": m.keepMove, "move task": m.moveTask, "purge": m.purge,
		"add rule": m.addRule, "remove rule": m.removeRule, "change": m.change, "remake": m.remake,
		"advance": m.advance, "restart": m.restartClean, "crash": m.restartCrash,
	}
}

// run runs one random history of the machine.
func (m *machine) run(t *rapid.T) {
	actions := m.actions()
	for name, f := range actions {
		actions[name] = func(t *rapid.T) {
			m.ref.advance(m.now)
			f(t)
			t.Logf("%v step %d: %s", m.now.Format("15:04:05.000"), m.steps, name)
			m.steps++
		}
	}
	for _, often := range []string{"send", "receive", "receive several", "receive in session", "stage settle", "stale delivery", "advance"} {
		actions[often+" again"] = actions[often]
	}
	actions[""] = func(t *rapid.T) { m.check(t) }
	t.Repeat(actions)
}

// TestModel runs random histories against the reference model: 10^5 steps, 10^6 with
// DLQ_FULL=1, 10^4 with -short. A failure prints the seed that repeats it.
func TestModel(t *testing.T) {
	steps, facts := 0, map[string]int{}
	setFlags(t, map[string]string{
		"rapid.checks": strconv.Itoa(size(5*100, 500, 5000)), "rapid.steps": strconv.Itoa(size(2*100, 200, 200)), "rapid.nofailfile": "true",
	})
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t, "")
		defer func() { _ = m.e.Close() }()
		defer func() {
			steps += m.steps
			for what, n := range m.ref.facts {
				facts[what] += n
			}
		}()
		m.run(t)
	})
	t.Logf("%d steps", steps)
	for _, what := range slices.Sorted(maps.Keys(facts)) {
		t.Logf("%7d %s", facts[what], what)
	}
	for _, what := range usualFacts {
		if facts[what] == 0 && steps > 50_000 {
			t.Errorf("it did not come to it: %s", what)
		}
	}
}

// usualFacts is what every run of the usual size comes to: where one is missing, the actions
// have lost their reach.
var usualFacts = [...]string{
	"lock expired", "delivered too often", "session expired over a message", "next session accepted", "received from several groups",
	"schedule came due", "delay ended", "retention ended", "deleted when idle", "expired and removed", "expired and dead-lettered", "expired under its lock",
	"duplicate dropped", "move refused: duplicate", "forwarded", "transfer refused: MaxTransferHopCountExceeded",
	"copied with an action", "copy without a session", "dead-lettered by a filter", "refused by a filter",
	"redriven", "stale token accepted", "moved back by a task",
	"sent and settled in one transaction", "transaction lost a lock", "transaction timed out",
}

// size picks how much a test does: with -short, as the race detector gets it; usually; and
// with DLQ_FULL=1.
func size(short, usual, full int) int {
	switch {
	case os.Getenv("DLQ_FULL") != "":
		return full
	case testing.Short():
		return short
	}
	return usual
}

// setFlags sets flags of the property tester for one test, unless the command line did.
func setFlags(t *testing.T, values map[string]string) {
	for name, value := range values {
		if slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(strings.TrimLeft(arg, "-"), name) }) {
			continue
		}
		old := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(name, old) })
	}
}
