package resubmit

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// The files in the folder of a job.
const (
	journalFile = "journal"
	lockFile    = "lock"   // locked while a process has the job; the lock ends with the process
	ownerFile   = "owner"  // who that is, for others to read
	cancelFile  = "cancel" // its presence asks the owner to stop
)

// A listing takes the lock for an instant to see whether it is free; so who wants it tries
// for a little longer than that.
const (
	lockRetry = 10 * time.Millisecond
	lockTries = 30
)

// owner is the process that has a job.
type owner struct {
	PID     int
	Command string
}

// Job ids are the time of the plan in milliseconds, in nine digits of base 32 without the
// letters that people misread: they sort by age and can be typed.
const (
	jobIDDigits = "0123456789abcdefghjkmnpqrstvwxyz"
	jobIDLen    = 9
)

func jobID(at time.Time) string {
	ms := uint64(max(at.UnixMilli(), 0))
	var id [jobIDLen]byte
	for i := range id {
		id[jobIDLen-1-i] = jobIDDigits[ms&31]
		ms >>= 5
	}
	return string(id[:])
}

// jobTime returns the time that an id was made of.
func jobTime(id string) time.Time {
	var ms int64
	for i := range len(id) {
		ms = ms<<5 | int64(strings.IndexByte(jobIDDigits, id[i]))
	}
	return time.UnixMilli(ms).UTC()
}

func validJobID(s string) bool {
	return len(s) == jobIDLen && strings.Trim(s, jobIDDigits) == ""
}

// openJob is a job that this process has: locked, with its journal open for appending.
type openJob struct {
	id     string
	dir    string
	lock   *flock.Flock
	file   *os.File
	writer *journalWriter
	ledger *ledger
}

// create makes the folder of a new job. The id is that of the time at, or the next one that is free.
func (j *Journals) create(at time.Time, command string) (*openJob, error) {
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for journals: %w", err)
	}
	id := jobID(at)
	for {
		err := os.Mkdir(filepath.Join(j.dir, id), 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make the folder of a job: %w", err)
		}
		at = at.Add(time.Millisecond)
		id = jobID(at)
	}
	job, err := j.acquire(context.Background(), id, command)
	if err != nil {
		return nil, err
	}
	job.file, err = os.OpenFile(j.path(id, journalFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, journalFileMode)
	if err == nil {
		var salt [4]byte
		_, _ = rand.Read(salt[:]) // never fails, and a weak salt would do
		job.writer, err = newJournalWriter(job.file, binary.LittleEndian.Uint32(salt[:]), 0)
	}
	if err != nil {
		_ = job.release() // the other error says more
		return nil, fmt.Errorf("make a journal: %w", err)
	}
	job.ledger = newLedger()
	syncDir(job.dir)
	syncDir(j.dir)
	return job, nil
}

// reopen takes a job that no process has, cuts off a torn tail, and replays the rest. Every stored message
// is read and checked.
func (j *Journals) reopen(ctx context.Context, id, command string) (*openJob, error) {
	job, err := j.acquire(ctx, id, command)
	if err != nil {
		return nil, err
	}
	if err := job.replay(); err != nil {
		_ = job.release() // the other error says more
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	return job, nil
}

func (job *openJob) replay() (err error) {
	if job.file, err = os.OpenFile(filepath.Join(job.dir, journalFile), os.O_RDWR, 0); err != nil {
		return err
	}
	info, err := job.file.Stat()
	if err != nil {
		return err
	}
	l, salt, end, err := readLedger(job.file, info.Size(), true)
	if err != nil {
		return err
	}
	job.ledger = l
	job.writer, err = newJournalWriter(job.file, salt, end)
	return err
}

// acquire locks the folder of a job.
func (j *Journals) acquire(ctx context.Context, id, command string) (*openJob, error) {
	job := &openJob{id: id, dir: filepath.Join(j.dir, id), lock: flock.New(j.path(id, lockFile), flock.SetPermissions(journalFileMode))}
	for try := range lockTries {
		ok, err := job.lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock job %s: %w", id, err)
		}
		if ok {
			return job, job.sign(command)
		}
		if try+1 < lockTries {
			if err := sleep(ctx, lockRetry); err != nil {
				return nil, err
			}
		}
	}
	o := j.readOwner(id)
	return nil, &RunningError{Job: id, PID: o.PID, Command: o.Command}
}

// sign writes down who has the job, and forgets a request to cancel its predecessor.
func (job *openJob) sign(command string) error {
	b, err := json.Marshal(owner{PID: os.Getpid(), Command: command})
	if err == nil {
		err = os.WriteFile(filepath.Join(job.dir, ownerFile), b, journalFileMode)
	}
	if rmErr := os.Remove(filepath.Join(job.dir, cancelFile)); rmErr != nil && !errors.Is(rmErr, fs.ErrNotExist) {
		err = errors.Join(err, rmErr)
	}
	if err != nil {
		_ = job.release() // the other error says more
		return fmt.Errorf("take job %s: %w", job.id, err)
	}
	return nil
}

// release closes the journal and lets go of the job.
func (job *openJob) release() error {
	var err error
	switch {
	case job.writer != nil:
		err = job.writer.close()
	case job.file != nil:
		err = job.file.Close()
	}
	return errors.Join(err, job.lock.Unlock())
}

// cancelled reports whether another process asked this job to stop.
func (job *openJob) cancelled() bool {
	_, err := os.Lstat(filepath.Join(job.dir, cancelFile))
	return err == nil
}

// owner reports whether a process has the job, and which. A shared lock is enough to see.
func (j *Journals) owner(id string) (owner, bool) {
	path := j.path(id, lockFile)
	if _, err := os.Lstat(path); err != nil {
		return owner{}, false
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err == nil && free {
		_ = lock.Unlock() // closing the file lets go in any case
		return owner{}, false
	}
	_ = lock.Close()
	return j.readOwner(id), true
}

func (j *Journals) readOwner(id string) owner {
	var o owner
	if b, err := os.ReadFile(j.path(id, ownerFile)); err == nil {
		_ = json.Unmarshal(b, &o) // the owner may be writing it just now: then it is not known
	}
	return o
}

// syncDir makes new names in a folder durable, where the system can do that.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // Windows refuses
		_ = d.Close()
	}
}

// sleep waits for d or until ctx is done, then with its error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
