package store

import (
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker/store/storetest"
)

// TestMissingSyncIsCaught lets the disk lie about one sync after the other, and takes a crash
// image after every acknowledgement. Whether a lie about the log does harm is known from
// the writes: an acknowledgement came while more than the end mark of a log was not synced,
// the step left what no step before it had left, and no table was put in the place of the log
// meanwhile. Each of these must show in an image. A lie about another file shows, or does no harm
// in any image: what it left volatile was still in the log, or was not yet referred to.
func TestMissingSyncIsCaught(t *testing.T) {
	rnd := seeded(t)
	sc := newScenario(rnd, size(30, 60, 200))
	honest := (&liar{lie: -1}).run(t, sc)
	every := size(2, 2, 1)
	told, harmful, caught := map[string]int{}, 0, map[string]int{}
	for n := rnd.IntN(every); n < honest; n += every {
		l := &liar{lie: n}
		l.run(t, sc)
		// A table may take the place of the log while the image is made, which mends the harm. That
		// does not happen every time.
		for again := 0; again < 3 && l.harm && l.lost == nil; again++ {
			l = &liar{lie: n}
			l.run(t, sc)
		}
		told[l.kind]++
		if l.lost != nil {
			caught[l.kind]++
		}
		if l.harm {
			harmful++
		}
		if l.harm && l.lost == nil {
			t.Errorf("sync %d, of the log, was dropped, and no image shows it", n)
		}
	}
	if harmful < 5 {
		t.Errorf("only %d syncs that were dropped did harm", harmful)
	}
	t.Logf("log: %d syncs dropped before an acknowledgement that needs them", harmful)
	for kind := range told {
		t.Logf("%s: %d syncs dropped, %d of them lost data in an image", kind, told[kind], caught[kind])
	}
}

// liar is a disk that drops one sync.
type liar struct {
	lie int // which; -1: none

	mu    sync.Mutex
	syncs int
	kind  string         // of the file it lied about; "": not yet
	dirty map[string]int // bytes of each log that are not synced

	harm bool  // a step was acknowledged whose bytes are not synced
	lost error // what the first image that lost something says
}

// endMark is about what pebble writes at the end of a log that it closes; a step is larger.
const endMark = 24

func (l *liar) decide(op storetest.Op) storetest.Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := fileKind(op)
	switch {
	case op.Kind == storetest.Write && kind == "log":
		l.dirty[op.Path] += op.Bytes
	case op.Kind == storetest.Sync || op.Kind == storetest.SyncDir:
		l.syncs++
		if l.syncs-1 == l.lie {
			l.kind = kind
			return storetest.Fault{Lie: true}
		}
		delete(l.dirty, op.Path)
		if kind == "manifest" {
			clear(l.dirty) // what was in a log may be in a table now
		}
	}
	return storetest.Fault{}
}

// run writes the scenario on such a disk, and returns how many syncs there were.
func (l *liar) run(t *testing.T, sc *scenario) int {
	l.dirty = map[string]int{}
	mem := vfs.NewCrashableMem()
	s, err := Open(storetest.NewFaults(mem, l.decide), "data", MemTable(memTable))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sc.run(s, func(p progress) {
		l.mu.Lock()
		lied := l.kind != ""
		for _, n := range l.dirty {
			l.harm = l.harm || l.kind == "log" && n > endMark && sc.shows(p.acked)
		}
		l.mu.Unlock()
		if lied && l.lost == nil {
			l.lost = sc.reopen(mem.CrashClone(vfs.CrashCloneCfg{}), p)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return l.syncs
}

// shows reports whether an image that lacks the last of so many steps can be told from one that
// has them all: it cannot where they undo one another.
func (sc *scenario) shows(steps int) bool {
	return !slices.ContainsFunc(sc.states[:steps], func(before map[uint64]holding) bool {
		return maps.Equal(before, sc.states[steps])
	})
}

// fileKind is log, table, directory, and so on.
func fileKind(op storetest.Op) string {
	switch name := path.Base(op.Path); {
	case op.Kind == storetest.SyncDir:
		return "directory"
	case strings.HasSuffix(name, ".log"):
		return "log"
	case isTable(name):
		return "table"
	case strings.HasPrefix(name, "MANIFEST"):
		return "manifest"
	default:
		return "other"
	}
}
