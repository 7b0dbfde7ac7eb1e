package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/message"
)

// The tests of a failing disk run one scenario: batches of known effect, one after the
// other, so that what a store holds must be what the first p batches have made, for some p
// between the last that was acknowledged and the last that was begun.

// size picks how much of a test to run: with -short, by default, and with DLQ_FULL=1.
func size(short, usual, full int) int {
	switch {
	case os.Getenv("DLQ_FULL") != "":
		return full
	case testing.Short():
		return short
	}
	return usual
}

// edit is one change of a step: a message is written with this version, or deleted (0).
type edit struct {
	seq     uint64
	version uint32
	size    int // of the body; 0: the state alone is written
}

type step struct {
	edits []edit
	lazy  bool // no sync is asked for
}

// holding is what a message should be: the version of its state and that of its body.
type holding struct{ state, body uint32 }

type scenario struct {
	steps  []step
	states []map[uint64]holding // states[p]: after p steps
}

// memTable is small enough for the scenario to fill it many times.
const memTable = 8 << 10

func newScenario(rnd *rand.Rand, steps int) *scenario {
	sc := &scenario{states: []map[uint64]holding{{}}}
	now, next, version := map[uint64]holding{}, uint64(0), uint32(0)
	for i := range steps {
		st := step{lazy: rnd.IntN(5) == 0}
		for range 1 + rnd.IntN(3) {
			version++
			seqs := len(now)
			switch n := rnd.IntN(10); {
			case n < 6 || seqs == 0:
				next++
				size := 1 + rnd.IntN(600)
				if i%50 == 49 {
					size = memTable // a batch that becomes a table of its own
				}
				st.edits = append(st.edits, edit{next, version, size})
				now[next] = holding{version, version}
			case n < 8:
				seq := next - rnd.Uint64N(min(next, 20))
				if h, ok := now[seq]; ok {
					st.edits = append(st.edits, edit{seq, version, 0})
					now[seq] = holding{version, h.body}
				}
			default:
				seq := next - rnd.Uint64N(min(next, 60))
				if _, ok := now[seq]; ok {
					st.edits = append(st.edits, edit{seq, 0, 0})
					delete(now, seq)
				}
			}
		}
		sc.steps = append(sc.steps, st)
		sc.states = append(sc.states, maps.Clone(now))
	}
	return sc
}

func bodyOf(version uint32, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(version>>(8*(i%4))) ^ byte(i)*byte(version)
	}
	return b
}

func (sc *scenario) batch(s *Store, n int) *Batch {
	b := s.NewBatch()
	for _, e := range sc.steps[n].edits {
		k := Key{Queue: 1, Seq: e.seq}
		if e.version == 0 {
			b.DeleteState(k)
			b.DeleteHead(e.seq)
			b.DeleteBody(e.seq)
			continue
		}
		b.PutState(k, &State{Head: e.seq, Body: e.seq, Deliveries: e.version})
		if e.size > 0 {
			b.PutHead(e.seq, message.AppendHead(nil, &message.Message{ID: message.Ulong(e.version), Subject: new(fmt.Sprint(e.size))}))
			b.PutBody(e.seq, message.DataBody(bodyOf(e.version, e.size)))
		}
	}
	return b
}

// progress is how far a run of a scenario has come. acked and begun count steps.
type progress struct{ acked, begun int }

// run writes the steps until one fails, and then makes sure that all that follow fail.
// after is called when a step was acknowledged.
func (sc *scenario) run(s *Store, after func(progress)) (p progress, err error) {
	for n := range sc.steps {
		failed := s.Failure() != nil
		b := sc.batch(s, n)
		var e error
		if !failed && err == nil {
			p.begun = n + 1
		}
		if sc.steps[n].lazy {
			e = s.ApplyLazily(b)
		} else {
			var wait func() error
			if wait, e = s.Apply(b); e == nil {
				e = wait()
			}
			if e == nil && len(sc.steps[n].edits) > 0 { // an empty batch says nothing of those before it
				p.acked = n + 1
			}
		}
		switch {
		case e == nil && (failed || err != nil):
			return p, fmt.Errorf("step %d was taken after a failure: %w", n, errBroken)
		case err == nil:
			err = e
		case !errors.Is(e, ErrFailed):
			return p, fmt.Errorf("step %d after a failure: %w; %w", n, e, errBroken)
		}
		if e == nil && !sc.steps[n].lazy && after != nil {
			after(p)
		}
	}
	return p, err
}

// errBroken marks what no fault excuses.
var errBroken = errors.New("a promise is broken")

// check compares what a store holds with what it may hold.
func (sc *scenario) check(s *Store, p progress) error {
	got, err := contents(s)
	if err != nil {
		return err
	}
	for n := p.acked; n <= p.begun; n++ {
		if maps.Equal(got, sc.states[n]) {
			return nil
		}
	}
	return fmt.Errorf("the store holds %d messages, which is not what any step from %d to %d left (%d)",
		len(got), p.acked, p.begun, len(sc.states[p.acked]))
}

// contents reads all messages, each whole.
func contents(s *Store) (map[uint64]holding, error) {
	v := s.Snapshot()
	defer func() { _ = v.Close() }()
	got := map[uint64]holding{}
	for m, err := range v.StatesFrom(Key{Queue: 1}) {
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", m.Seq, err)
		}
		h, err := whole(v, m)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", m.Seq, err)
		}
		got[m.Seq] = h
	}
	return got, nil
}

// whole reads a message and makes sure that its parts belong together.
func whole(v Snapshot, m Message) (holding, error) {
	head, _, err := v.Head(m.Head)
	if err != nil {
		return holding{}, err
	}
	body, err := v.Body(m.Body)
	if err != nil {
		return holding{}, err
	}
	version, ok := head.ID.(message.Ulong)
	if !ok || head.Subject == nil || *head.Subject != fmt.Sprint(body.Len()) || string(body.Bytes()) != string(bodyOf(uint32(version), body.Len())) {
		return holding{}, fmt.Errorf("the body is not that of the head: %w", errBroken)
	}
	return holding{m.Deliveries, uint32(version)}, nil
}

// reopen opens what a run left, checks it, and closes it.
func (sc *scenario) reopen(fs vfs.FS, p progress) error {
	s, err := Open(fs, "data", MemTable(memTable))
	if err != nil {
		return err
	}
	return errors.Join(sc.check(s, p), s.Close())
}

// bounded fails the process when f does not come to an end.
func bounded(what string, f func()) {
	timer := time.AfterFunc(time.Minute, func() { panic("it hangs: " + what) })
	defer timer.Stop()
	f()
}

// seeded returns a source of randomness, and logs how to have it again with DLQ_SEED.
func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("DLQ_SEED"); v != "" {
		if _, err := fmt.Sscan(v, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("DLQ_SEED=%d; goroutines of the key-value store make a run not repeat exactly", seed)
	return rand.New(rand.NewPCG(seed, 1))
}
