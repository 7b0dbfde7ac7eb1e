package broker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dlq/backends/message"
)

// Writes reach the disk in their order, so what a loss of power leaves is the state after some
// step: the last that was acknowledged, or one that came later. The machine keeps a copy of
// the model for each of them, and takes an image of the file system after every other step. An
// engine that opens the image must show exactly one of those states, in all that can be seen:
// so no acknowledged message is lost (I1), none is in two places (I2, I8), counts and numbers
// go on from there (I4, I5, I9), and so do locks, sessions and windows (I3, I6, I7, I10).

// crashes are the states that a loss of power may leave.
type crashes struct {
	*machine
	states   []*ref // the first is on disk for certain
	images   int
	messages int // in the images
	behind   int // images that showed another state than the last
}

// remember adds the state after a step.
func (c *crashes) remember() {
	if c.durable {
		c.states = c.states[:0]
	}
	c.durable = false
	c.states = append(c.states, c.ref.clone())
}

// lose takes an image as a loss of power would leave it, and opens it.
func (c *crashes) lose(t *rapid.T) {
	seed := rapid.Uint64().Draw(t, "unsynced")
	rnd := rand.New(rand.NewPCG(seed, 0))
	image := c.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rnd})
	after := &machine{fs: image, now: c.now, ids: c.ids, made: c.made}
	after.open(t)
	defer func() { _ = after.e.Close() }()
	var why []string
	for i, state := range slices.Backward(c.states) {
		after.ref = state.clone()
		after.ref.restarted(c.now)
		if d := after.differs(); d != "" {
			why = append(why, d)
			continue
		}
		c.images++
		for _, e := range after.ref.entities {
			c.messages += len(e.msgs)
		}
		if i < len(c.states)-1 {
			c.behind++
		}
		if seed%4 == 0 {
			after.goOn(t)
		}
		return
	}
	t.Fatalf("an image shows none of the %d states that it may show; the last first: %q", len(c.states), why)
}

// differs says how the engine is not what the model is, or "".
func (m *machine) differs() (why string) {
	defer func() {
		if d, ok := recover().(difference); ok {
			why = string(d)
		}
	}()
	m.check(differences{})
	return ""
}

// differences stops a check at the first difference.
type differences struct{}

type difference string

func (differences) Fatal(args ...any)            { panic(difference(fmt.Sprint(args...))) }
func (differences) Fatalf(f string, args ...any) { panic(difference(fmt.Sprintf(f, args...))) }

// goOn does something with a recovered engine: what it lost is not remembered, and what it has
// is delivered, numbered and told from duplicates as ever. It draws nothing, because which
// state an image shows is not the seed's to say.
func (m *machine) goOn(t judge) {
	for _, e := range slices.Clone(m.ref.entities) {
		a := Address{Name: e.name}
		for _, s := range slices.Clone(e.seen) {
			if again, ok := duplicateOf(e, s); ok {
				m.sendAll(t, a, again)
			}
		}
		m.made++
		id := fmt.Sprint("m", m.made)
		msg := &message.Message{ID: message.String(id), SessionID: &id, Body: message.DataBody([]byte(id))}
		msg.System = []message.Attribute{{Name: DeduplicationIDAttribute, Value: message.String(id)}}
		if e.kind != Subscription {
			m.sendAll(t, a, msg)
		}
	}
	m.check(t)
	for _, e := range m.ref.entities {
		o := ReceiveOptions{Max: 2}
		for _, g := range e.groups {
			g.turn = min(g.turn, 1) // a lock that lapsed while all was down has changed the turns
			if !g.until.IsZero() {
				o.Session = g.token
			}
		}
		redrivesInTurns := e.p.Groups && e.p.Redrive.Target != "" // which of them, only the turns say
		if e.kind != Topic && !redrivesInTurns {
			m.receiveWith(t, Address{Name: e.name}, o)
		}
	}
	m.check(t)
}

// clone copies a state. Numbers are shared: they never change once they are known.
func (r *ref) clone() *ref {
	c := &ref{now: r.now, wave: r.wave, turn: r.turn, lost: slices.Clone(r.lost), facts: map[string]int{}}
	for _, e := range r.entities {
		f := *e
		f.rules, f.seen = slices.Clone(e.rules), slices.Clone(e.seen)
		f.msgs, f.groups = make([]*refMessage, len(e.msgs)), make([]*refGroup, len(e.groups))
		for i, x := range e.msgs {
			y := *x
			y.of, y.staged = &f, nil
			f.msgs[i] = &y
		}
		for i, g := range e.groups {
			h := *g
			f.groups[i] = &h
		}
		c.entities = append(c.entities, &f)
	}
	return c
}

// crashActions are the actions whose effect is in one write, or in none: what comes in several
// has states in between that the model does not have.
func (m *machine) crashActions() map[string]func(*rapid.T) {
	actions := m.actions()
	maps.DeleteFunc(actions, func(name string, _ func(*rapid.T)) bool {
		return slices.Contains([]string{"move task", "purge", "remake", "change"}, name)
	})
	return actions
}

// TestCrashImages opens 15,000 crash images (75,000 with DLQ_FULL=1, 1,000 with -short), each
// with a random part of the unsynced writes. A failure prints the seed that repeats it, as far
// as the order in which the store writes its files allows.
func TestCrashImages(t *testing.T) {
	setFlags(t, map[string]string{
		"rapid.checks": strconv.Itoa(size(5*5, 75, 375)), "rapid.steps": strconv.Itoa(size(2*100, 100, 100)), "rapid.nofailfile": "true",
	})
	var halves [2]crashes
	t.Run("halves", func(t *testing.T) {
		for i := range halves {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, halves[i].run)
			})
		}
	})
	images, messages, behind := halves[0].images+halves[1].images, halves[0].messages+halves[1].messages, halves[0].behind+halves[1].behind
	t.Logf("%d images with %d messages; %d showed less than all", images, messages, behind)
	if behind == 0 {
		t.Error("no image lacked anything: the test has shown nothing")
	}
}

func (c *crashes) run(t *rapid.T) {
	c.machine, c.states = newMachine(t, ""), nil
	defer func() { _ = c.e.Close() }()
	c.check(t)
	c.remember()
	actions := c.crashActions()
	for name, f := range actions {
		actions[name] = func(t *rapid.T) {
			c.ref.advance(c.now)
			f(t)
			c.steps++
		}
	}
	actions[""] = func(t *rapid.T) {
		c.check(t)
		c.remember()
		c.lose(t)
	}
	t.Repeat(actions)
}
