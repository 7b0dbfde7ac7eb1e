package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// closedStore writes a scenario, and returns the file system and the directory's files. The
// last steps are in the log alone, the others in tables too.
func closedStore(t *testing.T, sc *scenario) *vfs.MemFS {
	fs := vfs.NewMem()
	s, err := Open(fs, "data", MemTable(memTable), smallBlocks)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sc.run(s, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return fs
}

// smallBlocks make damage cheap: pebble looks for the bit that flipped.
func smallBlocks(o *pebble.Options) {
	for i := range o.Levels {
		o.Levels[i].BlockSize = 512
	}
}

// copyWith returns a copy of the store's directory in which one file has another content.
func copyWith(t *testing.T, fs *vfs.MemFS, name string, content []byte) *vfs.MemFS {
	dst := vfs.NewMem()
	if err := dst.MkdirAll("data", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, n := range list(t, fs) {
		b := content
		if n != name {
			b = load(t, fs, n)
		}
		f, err := dst.Create(path.Join("data", n), vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write(bytes.Clone(b))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return dst
}

func list(t *testing.T, fs vfs.FS) []string {
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func load(t *testing.T, fs vfs.FS, name string) []byte {
	f, err := fs.Open(path.Join("data", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newestLog returns the name of the log that was written last.
func newestLog(t *testing.T, fs vfs.FS) string {
	var log string
	for _, n := range list(t, fs) {
		if strings.HasSuffix(n, ".log") {
			log = max(log, n)
		}
	}
	return log
}

// TestTornTail cuts the newest log at every byte of its last records: what is left is what some first steps have
// made, and the longer the log, the more steps.
func TestTornTail(t *testing.T) {
	sc := newScenario(seeded(t), 90)
	fs := closedStore(t, sc)
	name := newestLog(t, fs)
	log := load(t, fs, name)
	cuts, last := size(200, 1000, len(log)), 0
	for n := range len(log) + 1 {
		if n < len(log)-cuts {
			continue
		}
		err := func() error {
			s, err := Open(copyWith(t, fs, name, log[:n]), "data", MemTable(memTable))
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }()
			got, err := contents(s)
			if err != nil {
				return err
			}
			steps := slices.IndexFunc(sc.states, func(st map[uint64]holding) bool { return maps.Equal(st, got) })
			for steps >= 0 && steps+1 < len(sc.states) && maps.Equal(sc.states[steps+1], got) {
				steps++
			}
			if steps < last {
				return fmt.Errorf("it holds %d steps, and a shorter one held %d", steps, last)
			}
			last = steps
			return nil
		}()
		if err != nil {
			t.Fatalf("log of %d bytes cut at %d: %v", len(log), n, err)
		}
	}
	if last != len(sc.steps) {
		t.Errorf("the whole log holds %d steps of %d", last, len(sc.steps))
	}
	t.Logf("%d lengths of a log of %d bytes", min(cuts, len(log))+1, len(log))
}

// TestFlippedBits flips bits of every file of a closed store. Each time the store either
// opens or says that the directory is damaged and leaves everything as it is; and if it
// opens, every message is right, or missing with the tail of the log, or named damaged.
func TestFlippedBits(t *testing.T) {
	rnd := seeded(t)
	sc := newScenario(rnd, 60)
	fs := closedStore(t, sc)
	flips := map[string]int{}
	outcomes := map[string]int{}
	for _, name := range list(t, fs) {
		content := load(t, fs, name)
		all := len(content) * 8
		n := min(all, size(20, 250, 1<<30))
		for i := range n {
			bit := i
			if n < all {
				bit = rnd.IntN(all)
			}
			broken := bytes.Clone(content)
			broken[bit/8] ^= 1 << (bit % 8)
			bounded(fmt.Sprintf("bit %d of %s", bit, name), func() {
				outcome, err := sc.openDamaged(t, copyWith(t, fs, name, broken), name)
				if err != nil {
					t.Fatalf("bit %d of %s: %v", bit, name, err)
				}
				outcomes[outcome]++
			})
			flips[path.Ext(name)]++
		}
	}
	t.Logf("flips by kind of file: %v; outcomes: %v", flips, outcomes)
}

// openDamaged opens a store one of whose files is damaged and reads everything.
func (sc *scenario) openDamaged(t *testing.T, fs *vfs.MemFS, name string) (outcome string, err error) {
	before := list(t, fs)
	s, err := Open(fs, "data", MemTable(1<<20)) // nothing is compacted while it is read
	if err != nil {
		if after := list(t, fs); !containsAll(after, before) {
			return "", fmt.Errorf("refused with %w, and of %v there is left %v", err, before, after)
		}
		if !strings.Contains(err.Error(), "in data") || !errors.Is(err, ErrDamaged) {
			return "", fmt.Errorf("refused in a way that does not help: %w", err)
		}
		return "refused", nil
	}
	defer func() { _ = s.Close() }()
	if s.Failure() != nil {
		return "", s.Failure()
	}
	final := sc.states[len(sc.states)-1]
	got := map[uint64]holding{}
	damaged := 0
	v := s.Snapshot()
	defer func() { _ = v.Close() }()
	for m, err := range v.StatesFrom(Key{Queue: 1}) {
		if err != nil {
			damaged++ // named, or the error of a block that cannot be read
			continue
		}
		h, err := whole(v, m)
		switch {
		case errors.Is(err, errBroken):
			return "", err
		case err != nil:
			damaged++
		default:
			got[m.Seq] = h
		}
	}
	switch {
	case maps.Equal(got, final):
		return "no harm", nil
	case damaged > 0:
		for seq, h := range got {
			if final[seq] != h {
				return "", fmt.Errorf("message %d is %v and should be %v", seq, h, final[seq])
			}
		}
		return "named", nil
	case strings.HasSuffix(name, ".log") && slices.ContainsFunc(sc.states, func(st map[uint64]holding) bool { return maps.Equal(st, got) }):
		return "torn tail", nil
	}
	return "", fmt.Errorf("%d messages of %d, and none is named damaged", len(got), len(final))
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// TestDamagedManifest breaks every byte of the file that names the tables, in several stores:
// pebble would take some of these for the torn end of a crash, and remove tables.
func TestDamagedManifest(t *testing.T) {
	rnd := seeded(t)
	outcomes := map[string]int{}
	for range size(2, 10, 50) {
		sc := newScenario(rnd, 40+rnd.IntN(40))
		fs := closedStore(t, sc)
		name, err := atomicfs.ReadMarker(fs, "data", "manifest")
		if err != nil {
			t.Fatal(err)
		}
		content := load(t, fs, name)
		for i := range content {
			broken := bytes.Clone(content)
			broken[i] ^= 1 << rnd.IntN(8)
			outcome, err := sc.openDamaged(t, copyWith(t, fs, name, broken), name)
			if err != nil {
				t.Fatalf("byte %d of %d of %s: %v", i, len(content), name, err)
			}
			outcomes[outcome]++
		}
	}
	t.Log(outcomes)
}
