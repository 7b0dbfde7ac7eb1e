package resubmit

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"dlq/backends"
)

// State is where a job stands. Running and CutOff are derived from the lock on the job's
// folder, never from a flag that a crash would leave behind.
type State string

const (
	Running     State = "running"
	Finished    State = "finished"    // every message done
	Partly      State = "partly"      // ended; some are skipped, failed or uncertain
	Cancelled   State = "cancelled"   // ended by Cancel
	Interrupted State = "interrupted" // ended in order, by Ctrl-C or an error
	CutOff      State = "cut off"     // the process died
	Damaged     State = "damaged"     // the journal cannot be read
)

// Resumable reports whether Resume has something to do in this state.
func (s State) Resumable() bool {
	return s == CutOff || s == Interrupted || s == Cancelled || s == Partly
}

// ErrNoJob: there is no job with that id, or more than one that begins or ends like it.
var ErrNoJob = errors.New("no such job")

// RunningError says that another process has the job.
type RunningError struct {
	Job     string
	PID     int    // 0 if not known
	Command string // of the owner
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("job %s is running in pid %d (%s); wait for it, or stop it with: dlq jobs cancel %s", e.Job, e.PID, e.Command, e.Job)
}

// Journals is the folder with the journals of all jobs. It may be used concurrently, and by
// several processes.
type Journals struct{}

// OpenJournals opens dir, and makes it (0700) with the first job. now is the clock; nil: time.Now.
func OpenJournals(dir string, now func() time.Time) (*Journals, error) { return nil, nil }

// JobInfo is one job in a listing.
type JobInfo struct {
	ID                                              string
	Kind                                            Kind
	State                                           State
	Conn                                            string
	From                                            backends.EntityID
	To                                              *backends.EntityID
	Selection                                       string
	Command                                         string
	Started, Updated                                time.Time
	PID                                             int // of the owner while Running
	Matched, Done, Left, Skipped, Failed, Uncertain int64
	Err                                             string // why it is Damaged, or what ended it early
}

// List returns all jobs, newest first. A damaged one is listed as such.
func (j *Journals) List() ([]JobInfo, error) { return nil, nil }

// Job is one job, read from its journal.
type Job struct {
	JobInfo
	Report Report
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

// Job reads one job. id may be any unambiguous beginning or end of a job's id. The error is
// [ErrNoJob] if there is none.
func (j *Journals) Job(id string) (*Job, error) { return nil, nil }

// Items yields every message of the job in plan order, with what became of it.
func (j *Job) Items() iter.Seq2[Item, ItemState] { return nil }

// Cancel asks the process that runs the job to stop, through the job's folder; that process finishes
// what is in flight and reports what is left. It returns at once. A job that is not running is an error.
func (j *Journals) Cancel(id string) error { return nil }
