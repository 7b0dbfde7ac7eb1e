package resubmit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"dlq/backends/message"
)

// writeJournal writes a small job and returns the file's bytes and where each record ends.
func writeJournal(t testing.TB) ([]byte, []int64) {
	t.Helper()
	j, err := OpenJournals(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	job, err := j.create(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), "dlq resubmit orders --all")
	if err != nil {
		t.Fatal(err)
	}
	var items []item
	var msgs []*message.Message
	for i := range 4 {
		m := &message.Message{ID: message.String(fmt.Sprint("id-", i)), Body: message.DataBody([]byte("body"))}
		m.Broker.SequenceNumber = int64(i + 10)
		msgs = append(msgs, m)
		items = append(items, item{seq: m.Broker.SequenceNumber, id: fmt.Sprint("id-", i), sum: sumOf(m)})
	}
	h := jobHeader{ID: job.id, Kind: Resubmit, From: dead, Matched: 4, Selection: Selection{All: true}}
	if err := job.write(Env{}, h, items, map[int64]*message.Message{11: msgs[1]}); err != nil {
		t.Fatal(err)
	}
	for _, fill := range []func([]byte) []byte{
		func(b []byte) []byte { return appendIntent(b, 0, 0, msgs[0]) },
		func(b []byte) []byte { return appendIntent(b, 1, intentAtomic, msgs[1]) },
		func(b []byte) []byte { return appendIndexes(b, recSent, []int{0, 1}) },
		func(b []byte) []byte { return appendIndexes(b, recDone, []int{0}) },
		func(b []byte) []byte { return appendNote(b, recUncertain, 1, "lock lost") },
		func(b []byte) []byte { return appendNote(b, recSkipped, 2, "gone") },
		func(b []byte) []byte { return appendJSON(b, recFinished, jobEnd{State: Finished}) },
	} {
		if _, err := job.writer.append(fill); err != nil {
			t.Fatal(err)
		}
	}
	if err := job.release(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(j.path(job.id, journalFile))
	if err != nil {
		t.Fatal(err)
	}
	r, err := newJournalReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64
	for {
		if _, _, err := r.next(nil); err != nil {
			return b, ends
		}
		ends = append(ends, r.off)
	}
}

func states(l *ledger) string {
	var s []byte
	for _, it := range l.items {
		s = append(s, "pisduxf"[it.state])
	}
	return string(s)
}

func TestJournalRoundTrip(t *testing.T) {
	b, ends := writeJournal(t)
	if ends[len(ends)-1] != int64(len(b)) {
		t.Fatalf("the last record ends at %d of %d bytes", ends[len(ends)-1], len(b))
	}
	for _, whole := range []bool{true, false} {
		l, salt, end, err := readLedger(bytes.NewReader(b), int64(len(b)), whole)
		if err != nil || end != int64(len(b)) {
			t.Fatalf("whole %v: %v, end %d", whole, err, end)
		}
		if got := states(l); got != "duxp" {
			t.Errorf("whole %v: states %s, want duxp", whole, got)
		}
		if !l.begun || l.end == nil || l.notes[1] != "lock lost" || l.notes[2] != "gone" || !l.items[1].sent || !l.items[1].atomic {
			t.Errorf("whole %v: %+v", whole, l)
		}
		for i, off := range []int64{l.items[0].stored, l.items[1].stored, l.edited[11]} {
			record, err := readRecordAt(bytes.NewReader(b), salt, off)
			if err != nil {
				t.Fatal(err)
			}
			m, err := storedMessage(record)
			if err != nil || message.FormatValue(m.ID) != fmt.Sprint("id-", min(i, 1)) {
				t.Errorf("stored message %d is %+v, %v", i, m, err)
			}
		}
	}
}

// TestJournalTornTail cuts the file at every byte: what is left must read as the records before the cut.
func TestJournalTornTail(t *testing.T) {
	b, ends := writeJournal(t)
	begun := ends[3] // header, plan, edited, start, begun
	for cut := range len(b) {
		for _, tail := range [][]byte{nil, make([]byte, 40), []byte("garbage that is no record at all")} {
			image := append(bytes.Clone(b[:cut]), tail...)
			l, _, end, err := readLedger(bytes.NewReader(image), int64(len(image)), true)
			if int64(cut) < ends[0] {
				// Garbage in place of the header cannot be told from a damaged one.
				damaged := errors.Is(err, errDamaged) && len(tail) > 0
				if !damaged && (err != nil || l.begun || len(l.items) > 0) {
					t.Fatalf("cut at %d with a tail of %d bytes, before the header ends: %v", cut, len(tail), err)
				}
				continue
			}
			i := 0 // the last record that is whole: a tail of zeros can happen to complete one
			for i+1 < len(ends) && bytes.HasPrefix(image, b[:ends[i+1]]) {
				i++
			}
			if err != nil || end != ends[i] {
				t.Fatalf("cut at %d with a tail of %d bytes: %v, sound up to %d, want %d", cut, len(tail), err, end, ends[i])
			}
			if l.begun != (end > begun) {
				t.Fatalf("cut at %d: begun is %v", cut, l.begun)
			}
		}
	}
}

// TestJournalBitFlips flips every bit. In the last record that is a torn tail; before it, the journal must be refused
// or, where only the salt or the magic was hit, not be taken for one.
func TestJournalBitFlips(t *testing.T) {
	b, ends := writeJournal(t)
	last := ends[len(ends)-2]
	for i := range b {
		for bit := range 8 {
			image := bytes.Clone(b)
			image[i] ^= 1 << bit
			_, _, end, err := readLedger(bytes.NewReader(image), int64(len(image)), true)
			switch {
			case int64(i) < last && !errors.Is(err, errDamaged):
				t.Fatalf("bit %d of byte %d flipped: %v, sound up to %d; want damaged", bit, i, err, end)
			case int64(i) >= last && (err != nil || end != last):
				t.Fatalf("bit %d of byte %d of the last record flipped: %v, sound up to %d, want %d", bit, i, err, end, last)
			}
		}
	}
}

// TestJournalInMessage: a message that is itself a journal does not make a torn tail look like damage.
func TestJournalInMessage(t *testing.T) {
	inner, _ := writeJournal(t)
	j, err := OpenJournals(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	job, err := j.create(time.Now(), "")
	if err != nil {
		t.Fatal(err)
	}
	m := &message.Message{Body: message.DataBody(inner)}
	if err := job.write(Env{}, jobHeader{ID: job.id, Kind: Resubmit}, []item{{seq: 1}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := job.writer.append(func(b []byte) []byte { return appendIntent(b, 0, 0, m) }); err != nil {
		t.Fatal(err)
	}
	if err := job.release(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(j.path(job.id, journalFile))
	if err != nil {
		t.Fatal(err)
	}
	b = b[:len(b)-1]
	if l, _, _, err := readLedger(bytes.NewReader(b), int64(len(b)), true); err != nil || states(l) != "p" {
		t.Errorf("a torn intent that holds a journal: %v", err)
	}
}

func FuzzJournal(f *testing.F) {
	b, ends := writeJournal(f)
	f.Add(b)
	for _, end := range ends {
		f.Add(b[:end])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, _, end, err := readLedger(bytes.NewReader(b), int64(len(b)), true)
		if err != nil {
			return
		}
		if end > int64(len(b)) {
			t.Fatalf("sound up to %d of %d bytes", end, len(b))
		}
		again, _, same, err := readLedger(bytes.NewReader(b[:end]), end, true)
		if err != nil || same != end || states(again) != states(l) {
			t.Fatalf("its sound part reads differently: %v, %d, %s; before %d, %s", err, same, states(again), end, states(l))
		}
		if n := int64(len(l.items)); sum(l.counts[:]) != n {
			t.Fatalf("%d items and counts %v", n, l.counts)
		}
		r := l.report(false)
		if all := r.Done + r.Left + int64(len(r.Skipped)+len(r.Failed)+len(r.Uncertain)) + r.Lost; all != r.Matched {
			t.Fatalf("of %d messages %d are accounted for", r.Matched, all)
		}
	})
}

// FuzzRecord gives the decoder payloads that no checksum protects.
func FuzzRecord(f *testing.F) {
	m := &message.Message{ID: message.String("id")}
	for _, seed := range [][]byte{
		appendPlanned(nil, []item{{seq: 5, id: "a"}, {seq: 9}}),
		appendIntent(nil, 0, 0, m), appendEdited(nil, 5, m), appendIndexes(nil, recSent, []int{0, 1}),
		appendNote(nil, recFailed, 1, "why"), appendJSON(nil, recHeader, jobHeader{ID: "x"}),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l := newLedger()
		l.plan([]item{{seq: 1}, {seq: 2}})
		_ = l.apply(100, b)
		_, _ = storedMessage(b)
		if sum(l.counts[:]) != int64(len(l.items)) {
			t.Fatalf("%d items and counts %v", len(l.items), l.counts)
		}
	})
}

func sum(n []int64) (total int64) {
	for _, v := range n {
		total += v
	}
	return total
}

// TestJournalGroupsSyncs: records that are appended while a sync runs become durable with the next one, and no
// caller returns before its own are.
func TestJournalGroupsSyncs(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "j"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := newJournalWriter(file, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for range 20 {
				off, err := w.append(func(b []byte) []byte { return append(b, byte(i)) })
				if err == nil {
					err = w.sync()
				}
				if err != nil {
					t.Error(err)
					return
				}
				if b, err := readRecordAt(file, 1, off); err != nil || b[0] != byte(i) {
					t.Errorf("synced, the record at %d reads %v, %v", off, b, err)
				}
			}
		})
	}
	callers.Wait()
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.append(func(b []byte) []byte { return append(b, 1) }); err == nil && w.sync() == nil {
		t.Error("a closed journal takes records")
	}
}

func TestJobIDs(t *testing.T) {
	at := time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)
	var ids []string
	for i := range 50 {
		ids = append(ids, jobID(at.Add(time.Duration(i)*37*time.Hour)))
	}
	if !slices.IsSorted(ids) {
		t.Errorf("ids do not sort by age: %v", ids)
	}
	for _, id := range ids {
		if !validJobID(id) {
			t.Errorf("%q is not taken for a job's id", id)
		}
	}
	for _, bad := range []string{"", "..", "../../etc", "01kx7f2m0x", "01KX7F2M0", "o1kx7f2m0"} {
		if validJobID(bad) {
			t.Errorf("%q is taken for a job's id", bad)
		}
	}
}

func TestJournalModes(t *testing.T) {
	f := newFixture(t)
	f.bury(1)
	r := f.run(Spec{})
	for name, want := range map[string]os.FileMode{"": 0o700, journalFile: 0o600, lockFile: 0o600, ownerFile: 0o600} {
		info, err := os.Stat(f.env.Journals.path(r.Job, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q has mode %v, %v; want %v", name, info.Mode().Perm(), err, want)
		}
	}
}

func TestJobLookup(t *testing.T) {
	f := newFixture(t)
	var ids []string
	for range 3 {
		f.bury(2)
		ids = append(ids, f.run(Spec{Selection: Selection{Limit: 1, All: true}, Command: "dlq resubmit orders --all --limit 1"}).Job)
	}
	list, err := f.env.Journals.List()
	if err != nil || len(list) != 3 {
		t.Fatalf("%d jobs, %v", len(list), err)
	}
	for i, info := range list {
		if info.ID != ids[2-i] || info.State != Finished || info.Matched != 1 || info.Done != 1 || info.From != dead ||
			info.Selection != "--all --limit 1" || info.Conn != "local:" {
			t.Errorf("job %d of the list is %+v", i, info)
		}
	}
	if job, err := f.env.Journals.Job(ids[1][4:]); err != nil || job.ID != ids[1] {
		t.Errorf("by the end of its id: %v", err)
	}
	for id, want := range map[string]error{"": ErrNoJob, "zzz": ErrNoJob, ids[0][:3]: ErrAmbiguousJob} {
		if _, err := f.env.Journals.Job(id); !errors.Is(err, want) {
			t.Errorf("job %q: %v, want %v", id, err, want)
		}
	}
	if err := f.env.Journals.Cancel(ids[0]); !errors.Is(err, ErrNotRunning) {
		t.Errorf("cancelling a finished job: %v", err)
	}
	if err := os.WriteFile(f.env.Journals.path(ids[0], journalFile), []byte("this is no journal"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err = f.env.Journals.List(); err != nil || list[2].State != Damaged || list[2].Err == "" {
		t.Errorf("a damaged job is listed as %+v, %v", list, err)
	}
	if _, err := Resume(f.ctx, f.env, ids[0], nil); !errors.Is(err, errDamaged) {
		t.Errorf("resuming a damaged job: %v", err)
	}
}
