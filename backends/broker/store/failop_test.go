package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker/store/storetest"
)

// sabotage is one way for the disk to fail.
type sabotage struct {
	name  string
	hits  func(storetest.Kind) bool
	fault storetest.Fault
}

func sabotages() []sabotage {
	any := func(storetest.Kind) bool { return true }
	return []sabotage{
		{"EIO", any, storetest.Fault{Err: syscall.EIO}},
		{"ENOSPC", any, storetest.Fault{Err: syscall.ENOSPC}},
		{"short write", func(k storetest.Kind) bool { return k == storetest.Write }, storetest.Fault{Err: syscall.ENOSPC, Half: true}},
		{"sync error", func(k storetest.Kind) bool { return k == storetest.Sync || k == storetest.SyncDir }, storetest.Fault{Err: syscall.EIO}},
	}
}

// TestFailingOperations lets every operation of a scenario fail in turn, in four ways, once
// or from then on. Nothing is acknowledged after a write or sync that failed, nothing
// panics or hangs, and what was acknowledged is there when the directory is opened again,
// after a clean end and after a loss of power.
func TestFailingOperations(t *testing.T) {
	rnd := seeded(t)
	sc := newScenario(rnd, 200)
	runs := size(40, 400, 1<<30)
	total, failed := 0, 0
	for _, sab := range sabotages() {
		ops := sabotagedRun(t, sc, rnd, sab, -1, false)
		if ops < 100 {
			t.Fatalf("%s: the scenario has %d operations", sab.name, ops)
		}
		for i := range min(ops, runs/4) {
			n := i
			if ops > runs/4 {
				n = rnd.IntN(ops)
			}
			if n := sabotagedRun(t, sc, rnd, sab, n, rnd.IntN(2) == 0); n < 0 {
				failed++
			}
			if t.Failed() {
				t.Fatalf("%s at operation %d of %d", sab.name, n, ops)
			}
			total++
		}
		t.Logf("%s: %d operations", sab.name, ops)
	}
	t.Logf("%d runs, in %d of which the store failed", total, failed)
}

// sabotagedRun lets the n-th operation that the sabotage hits fail. It returns how many
// there were, or -1 when the store failed.
func sabotagedRun(t *testing.T, sc *scenario, rnd *rand.Rand, sab sabotage, n int, lasting bool) (ops int) {
	mem := vfs.NewCrashableMem()
	var count atomic.Int64
	var hit atomic.Pointer[storetest.Op]
	var well atomic.Bool
	fs := storetest.NewFaults(mem, func(op storetest.Op) storetest.Fault {
		if !sab.hits(op.Kind) || well.Load() {
			return storetest.Fault{}
		}
		i := int(count.Add(1)) - 1
		if n < 0 || i < n || i > n && !lasting {
			return storetest.Fault{}
		}
		hit.CompareAndSwap(nil, &op)
		return sab.fault
	})
	var p progress
	var image *vfs.MemFS
	var failed bool
	bounded(fmt.Sprintf("%s at %d, lasting: %t", sab.name, n, lasting), func() {
		s, err := Open(fs, "data", MemTable(memTable))
		if err != nil {
			if hit.Load() == nil {
				t.Errorf("open: %v", err)
			}
			return
		}
		p, err = sc.run(s, nil)
		op := hit.Load()
		failed = s.Failure() != nil
		switch {
		case errors.Is(err, errBroken), err != nil && op == nil:
			t.Error(err)
		case op != nil && op.Kind.Changes() && !failed && err != nil:
			t.Errorf("%+v failed, and the store did not: %v", *op, err)
		}
		err = sc.check(s, p)
		op = hit.Load()
		if err != nil && (op == nil || op.Kind.Changes() && !lasting || errors.Is(err, errBroken)) {
			t.Errorf("reading on after %v: %v", op, err)
		}
		image = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rnd})
		if err := s.Close(); err != nil && hit.Load() == nil {
			t.Errorf("close: %v", err)
		}
	})
	well.Store(true)
	if image == nil {
		image = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rnd})
	}
	if err := sc.reopen(fs, p); err != nil {
		t.Errorf("open again after %v: %v", hit.Load(), err)
	}
	if err := sc.reopen(image, p); err != nil {
		t.Errorf("open an image after %v: %v", hit.Load(), err)
	}
	if failed {
		return -1
	}
	return int(count.Load())
}
