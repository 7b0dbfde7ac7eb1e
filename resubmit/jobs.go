package resubmit

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dlq/backends"
)

// State is where a job stands. Running and CutOff are derived from the lock on the job's
// folder, never from a flag that a crash would leave behind.
type State string

const (
	Running     State = "running"
	Finished    State = "finished"    // every message done
	Partly      State = "partly"      // ended; some are skipped, failed, uncertain or lost
	Cancelled   State = "cancelled"   // ended by Cancel
	Interrupted State = "interrupted" // ended in order, by Ctrl-C or an error
	CutOff      State = "cut off"     // the process died, perhaps before it began
	Damaged     State = "damaged"     // the journal cannot be read
)

// Resumable reports whether Resume has something to do in this state.
func (s State) Resumable() bool {
	return s == CutOff || s == Interrupted || s == Cancelled || s == Partly
}

// ErrNoJob: there is no job with that id. ErrAmbiguousJob: more than one begins or ends like it.
var (
	ErrNoJob        = errors.New("no such job")
	ErrAmbiguousJob = errors.New("more than one job is named like that")
)

// ErrNotRunning: the job to cancel is not running.
var ErrNotRunning = errors.New("not running")

// RunningError says that another process has the job.
type RunningError struct {
	Job     string
	PID     int    // 0 if not known
	Command string // of the owner
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("job %s is running in pid %d (%s); wait for it, or stop it with: dlq jobs cancel %s",
		e.Job, e.PID, e.Command, e.Job)
}

// Journals is the folder with the journals of all jobs: a folder for each, named by the job's
// id. It may be used concurrently, and by several processes.
type Journals struct {
	dir string
	now func() time.Time
}

// OpenJournals opens dir, which is made (0700) with the first job. now is the clock; nil:
// time.Now.
func OpenJournals(dir string, now func() time.Time) (*Journals, error) {
	if dir == "" {
		return nil, errors.New("the folder for journals has no name")
	}
	if now == nil {
		now = time.Now
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder; jobs are journalled there", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open the folder for journals: %w", err)
	}
	return &Journals{dir: dir, now: now}, nil
}

// Dir returns the folder.
func (j *Journals) Dir() string { return j.dir }

// JobInfo is one job in a listing.
type JobInfo struct {
	ID        string
	Kind      Kind
	State     State
	Conn      string
	From      backends.EntityID
	To        *backends.EntityID // as asked for; nil: where each message came from
	Selection string
	Command   string
	Started   time.Time
	Updated   time.Time // of the last record that carries a time
	PID       int       // of the owner while Running
	Restores  string    // the job that this one restores
	Matched   int64
	Done      int64
	Left      int64
	Skipped   int64
	Failed    int64
	Uncertain int64
	Lost      int64
	Err       string // why it is Damaged, or what ended it early
}

// List returns all jobs, newest first. A damaged one is listed as such.
func (j *Journals) List() ([]JobInfo, error) {
	ids, err := j.ids()
	if err != nil {
		return nil, err
	}
	slices.Reverse(ids)
	jobs := make([]JobInfo, 0, len(ids))
	for _, id := range ids {
		job, err := j.read(id)
		if err != nil {
			jobs = append(jobs, JobInfo{ID: id, State: Damaged, Err: err.Error()})
			continue
		}
		jobs = append(jobs, job.JobInfo)
	}
	return jobs, nil
}

// ids returns the ids of all jobs, oldest first.
func (j *Journals) ids() ([]string, error) {
	entries, err := os.ReadDir(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && validJobID(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// resolve returns the job that is meant by id, which may be an unambiguous beginning or end.
func (j *Journals) resolve(id string) (string, error) {
	ids, err := j.ids()
	if err != nil {
		return "", err
	}
	id = strings.ToLower(id)
	if slices.Contains(ids, id) {
		return id, nil
	}
	var found []string
	for _, known := range ids {
		if id != "" && (strings.HasPrefix(known, id) || strings.HasSuffix(known, id)) {
			found = append(found, known)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: %q; list them with: dlq jobs", ErrNoJob, id)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%w: %q is one of %s", ErrAmbiguousJob, id, strings.Join(found[:min(len(found), 5)], ", "))
}

// Job is one job as its journal says.
type Job struct {
	JobInfo
	Report Report // as of now, also while it is running
	ledger *ledger
}

// Job reads one job. id may be any unambiguous beginning or end of a job's id; the error
// wraps [ErrNoJob] if there is none, and [ErrAmbiguousJob] if there are several.
func (j *Journals) Job(id string) (*Job, error) {
	id, err := j.resolve(id)
	if err != nil {
		return nil, err
	}
	return j.read(id)
}

// read reads a job that may be running.
func (j *Journals) read(id string) (*Job, error) {
	owner, running := j.owner(id)
	f, err := os.Open(j.path(id, journalFile))
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	l, _, _, err := readLedger(f, info.Size(), false)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	if l.header.ID == "" { // died, or is, at the first write
		l.header.ID, l.header.Planned, l.updated = id, jobTime(id), jobTime(id)
	}
	report := l.report(running)
	return &Job{JobInfo: l.info(report, owner), Report: report, ledger: l}, nil
}

func (l *ledger) info(r Report, o owner) JobInfo {
	h := l.header
	info := JobInfo{
		ID: h.ID, Kind: h.Kind, State: r.State, Conn: h.Conn, From: h.From, To: h.To,
		Selection: h.Selection.String(), Command: h.Command, Started: h.Planned, Updated: l.updated,
		Restores: h.Restores, Matched: r.Matched, Done: r.Done, Left: r.Left,
		Skipped: int64(len(r.Skipped)), Failed: int64(len(r.Failed)), Uncertain: int64(len(r.Uncertain)), Lost: r.Lost, Err: r.Stopped,
	}
	if r.State == Running {
		info.PID = o.PID
	}
	return info
}

// ItemState is what became of one message of a job.
type ItemState string

const (
	ItemPlanned   ItemState = "planned"   // not touched
	ItemIntent    ItemState = "intent"    // begun, outcome not recorded
	ItemSent      ItemState = "sent"      // acknowledged by the destination; original not yet removed
	ItemDone      ItemState = "done"      // all of it
	ItemUncertain ItemState = "uncertain" // possibly twice
	ItemSkipped   ItemState = "skipped"
	ItemFailed    ItemState = "failed"
)

// Items yields every message of the job, in the order of the plan, with what became of it.
func (j *Job) Items() iter.Seq2[Item, ItemState] {
	return func(yield func(Item, ItemState) bool) {
		for i, it := range j.ledger.items {
			if !yield(j.ledger.item(i), it.state.public()) {
				return
			}
		}
	}
}

// Cancel asks the process that runs the job to stop, through the job's folder: that process
// finishes what is in flight and reports what is left. Cancel returns at once. The error wraps
// [ErrNotRunning] if there is nothing to stop.
func (j *Journals) Cancel(id string) error {
	id, err := j.resolve(id)
	if err != nil {
		return err
	}
	if _, running := j.owner(id); !running {
		return fmt.Errorf("job %s is %w", id, ErrNotRunning)
	}
	if err := os.WriteFile(j.path(id, cancelFile), nil, journalFileMode); err != nil {
		return fmt.Errorf("cancel job %s: %w", id, err)
	}
	return nil
}

func (j *Journals) path(id, name string) string { return filepath.Join(j.dir, id, name) }
