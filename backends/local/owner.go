package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"dlq/backends"
)

const (
	storeDir  = "store"     // the database
	lockFile  = "dlq.lock"  // locked by the owner; empty
	ownerFile = "dlq.owner" // says who that is; beside the lock, since Windows lets nobody read a locked file

	ownerWait = 2 * time.Second
	ownerPoll = 20 * time.Millisecond
)

// owner is what the owner of a data directory says about itself.
type owner struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
	Socket  string    `json:"socket,omitempty"` // where it listens, if it stays
}

func (o owner) String() string { return fmt.Sprintf("%q (pid %d)", o.Command, o.PID) }

// own makes this process the owner of dir, or, if join is given, reaches the one there is:
// then release is nil. It tries for up to two seconds, and then fails with [backends.Locked]
// and who the owner is.
func own(ctx context.Context, dir, command string, join func() (joined bool, err error)) (release func() error, err error) {
	// The directory may be the user's own and open to others; what is in the store is not.
	data := filepath.Join(dir, storeDir)
	if err := errors.Join(os.MkdirAll(data, 0o700), os.Chmod(data, 0o700)); err != nil {
		return nil, openError(backends.Unavailable, err)
	}
	lock := flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
	limit := time.NewTimer(ownerWait)
	defer limit.Stop()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		got, err := lock.TryLock()
		if err != nil {
			return nil, openError(backends.Unavailable, err)
		}
		if got {
			break
		}
		if join != nil {
			if joined, err := join(); joined || err != nil {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
		case <-limit.C:
			return nil, openError(backends.Locked, inUse(dir))
		case <-time.After(ownerPoll):
		}
	}
	if err := writeOwner(dir, owner{PID: os.Getpid(), Command: command, Since: time.Now().UTC()}); err != nil {
		_ = lock.Unlock()
		return nil, openError(backends.Unavailable, err)
	}
	return func() error {
		_ = os.Remove(filepath.Join(dir, ownerFile)) // a stale one only spoils a message
		return lock.Unlock()
	}, nil
}

func writeOwner(dir string, o owner) error {
	about, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ownerFile), about, 0o600)
}

func readOwner(dir string) (owner, error) {
	var by owner
	about, err := os.ReadFile(filepath.Join(dir, ownerFile))
	if err == nil {
		err = json.Unmarshal(about, &by)
	}
	return by, err
}

// inUse says who owns dir and what to do about it.
func inUse(dir string) error {
	const advice = "wait for it or end it, or work in another directory with -c local:DIR"
	by, err := readOwner(dir)
	if err != nil {
		return fmt.Errorf("%s is in use by another process; %s", dir, advice)
	}
	return fmt.Errorf("%s is in use by %v since %s; %s", dir, by, by.Since.Format(time.RFC3339), advice)
}

func openError(code backends.Code, err error) error {
	return &backends.Error{Op: "open the local broker", Code: code, Err: err}
}
