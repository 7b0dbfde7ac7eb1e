package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker/store"
	"dlq/backends/broker/store/storetest"
	"dlq/backends/message"
)

// history is what a run on a failing disk was told: where each message must be, may be, or
// must not be any more.
type history struct {
	must map[string]string // id to "queue/sub", acknowledged
	may  map[string][]string
}

func place(a Address) string { return fmt.Sprintf("%s/%d", a.Name, a.Sub) }

// goes notes that a message is to be at a place, "" for nowhere, once that is acknowledged.
func (h *history) goes(id, to string, err error) {
	switch {
	case err == nil:
		h.must[id] = to
		delete(h.may, id)
	case errors.Is(err, ErrUncertain): // then it is at the one place or the other
		h.may[id] = append(h.may[id], h.must[id], to)
	}
}

// run does 200 things, until the engine stops. It returns the error that it stopped with.
func (h *history) run(t *testing.T, e *Engine, rnd *rand.Rand) error {
	a, b := Address{Name: "a"}, Address{Name: "b"}
	for _, q := range []Address{a, b} {
		if err := e.Create(q.Name, Queue, Defaults(Queue, ServiceBus)); err != nil {
			return err
		}
	}
	item := func(errs []error, err error) error {
		if err == nil && len(errs) > 0 {
			err = errs[0]
		}
		return err
	}
	for n := range 200 {
		id := fmt.Sprint("m", n)
		var err error
		switch m, got := (*message.Message)(nil), error(nil); rnd.IntN(4) {
		case 0, 1:
			err = item(refusals(e.Send(a, []*message.Message{{ID: message.String(id), Body: message.DataBody(make([]byte, rnd.IntN(8<<10)))}})))
			h.goes(id, place(a), err)
		case 2:
			if m, got = one(e.Receive(a, ReceiveOptions{})); got != nil || m == nil {
				err = got
				break
			}
			action, to := Complete, ""
			if rnd.IntN(2) == 0 {
				action, to = Bury, place(dead(a))
			}
			err = item(e.Settle(a, Outcome{Action: action}, m.Broker.LockToken))
			h.goes(message.FormatValue(m.ID), to, err)
		case 3:
			page, peeked := e.Peek(dead(a), PeekOptions{Max: 1})
			if err = peeked; err != nil || len(page) == 0 {
				break
			}
			err = item(e.Move(dead(a), []Move{{Seq: page[0].Broker.SequenceNumber, To: b, As: page[0]}}))
			h.goes(message.FormatValue(page[0].ID), place(b), err)
		}
		if err != nil {
			if !errors.Is(err, ErrUncertain) && !errors.Is(err, ErrUnavailable) {
				t.Errorf("step %d: %v", n, err)
			}
			return err
		}
	}
	return nil
}

// check opens what the disk holds and finds every message where it must be.
func (h *history) check(fs vfs.FS) error {
	s, err := store.Open(fs, "data")
	if err != nil {
		return err
	}
	e, err := Open(Options{Store: s})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	defer func() { _ = e.Close() }()
	found := map[string]string{}
	for _, a := range []Address{{Name: "a"}, {Name: "b"}, {Name: "a", Sub: DeadLetter}} {
		page, err := peekAll(e, a)
		if errors.Is(err, ErrNoEntity) {
			continue // its creation failed; then nothing was sent
		}
		if err != nil {
			return err
		}
		for _, m := range page {
			id := message.FormatValue(m.ID)
			if found[id] != "" {
				return fmt.Errorf("message %s is in %s and in %s", id, found[id], place(a))
			}
			found[id] = place(a)
		}
	}
	for id, want := range h.must {
		if at := found[id]; at != want && len(h.may[id]) == 0 {
			return fmt.Errorf("message %s is at %q, want %q", id, at, want)
		}
	}
	for id, places := range h.may {
		if at := found[id]; at != places[0] && at != places[1] {
			return fmt.Errorf("message %s is at %q, want one of %q", id, at, places)
		}
	}
	return nil
}

// TestEveryDiskOperationFails lets each disk operation of a history fail, once or for good: the
// engine stops instead of lying, nothing hangs, and what it acknowledged is there when the
// disk is well again, after Close and after a loss of power. 200 places, all with DLQ_FULL=1.
func TestEveryDiskOperationFails(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	faults := []storetest.Fault{{Err: syscall.EIO}, {Err: syscall.ENOSPC}, {Err: syscall.ENOSPC, Half: true}}
	ops, _ := faultyRun(t, seed, -1, storetest.Fault{}, false, rnd)
	if ops < 200 {
		t.Fatalf("the history has %d disk operations", ops)
	}
	stopped, runs := 0, min(size(40, 200, ops*len(faults)), ops*len(faults))
	for i := range runs {
		n, fault := i/len(faults), faults[i%len(faults)]
		if runs < ops*len(faults) {
			n = rnd.IntN(ops)
		}
		if _, err := faultyRun(t, seed, n, fault, rnd.IntN(2) == 0, rnd); err != nil {
			stopped++
		}
		if t.Failed() {
			t.Fatalf("seed %d: operation %d of %d failed with %+v", seed, n, ops, fault)
		}
	}
	if stopped == 0 {
		t.Error("no failure stopped an engine: the test has shown nothing")
	}
	t.Logf("%d runs over %d operations; %d stopped the engine", runs, ops, stopped)
}

func faultyRun(t *testing.T, seed uint64, n int, fault storetest.Fault, lasting bool, rnd *rand.Rand) (ops int, stopped error) {
	mem := vfs.NewCrashableMem()
	var count atomic.Int64
	var well atomic.Bool
	fs := storetest.NewFaults(mem, func(op storetest.Op) storetest.Fault {
		if !op.Kind.Changes() || well.Load() || fault.Half && op.Kind != storetest.Write {
			return storetest.Fault{}
		}
		if i := int(count.Add(1)) - 1; n < 0 || i < n || i > n && !lasting {
			return storetest.Fault{}
		}
		return fault
	})
	h := &history{must: map[string]string{}, may: map[string][]string{}}
	s, err := store.Open(fs, "data", store.MemTable(256<<10))
	if err == nil {
		var e *Engine
		if e, err = Open(Options{Store: s}); err == nil {
			if err = h.run(t, e, rand.New(rand.NewPCG(seed, 1))); err != nil {
				// Nothing is acknowledged any more, and nothing is shown that may be gone.
				if _, err := e.Send(Address{Name: "a"}, []*message.Message{{}}); err == nil {
					t.Error("an engine that has stopped acknowledged a send")
				}
			}
			image := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rnd})
			if lost := h.check(image); lost != nil {
				t.Errorf("after a loss of power: %v", lost)
			}
			_ = e.Close()
		}
	}
	well.Store(true)
	if lost := h.check(mem); lost != nil {
		t.Errorf("after Close: %v", lost)
	}
	return int(count.Load()), err
}
