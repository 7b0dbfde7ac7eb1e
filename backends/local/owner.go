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
}

// own makes this process the owner of dir. It waits for up to two seconds for another to
// let go, then fails with [backends.Locked] and who that is.
func own(ctx context.Context, dir, command string) (release func() error, err error) {
	// The directory may be the user's own and open to others; what is in the store is not.
	data := filepath.Join(dir, storeDir)
	if err := errors.Join(os.MkdirAll(data, 0o700), os.Chmod(data, 0o700)); err != nil {
		return nil, openError(backends.Unavailable, err)
	}
	lock := flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
	waiting, cancel := context.WithTimeout(ctx, ownerWait)
	defer cancel()
	got, err := lock.TryLockContext(waiting, ownerPoll)
	if !got {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if waiting.Err() != nil {
			return nil, openError(backends.Locked, inUse(dir))
		}
		return nil, openError(backends.Unavailable, err)
	}
	about, err := json.Marshal(owner{os.Getpid(), command, time.Now().UTC().Truncate(time.Second)})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, ownerFile), about, 0o600)
	}
	if err != nil {
		_ = lock.Unlock()
		return nil, openError(backends.Unavailable, err)
	}
	return func() error {
		_ = os.Remove(filepath.Join(dir, ownerFile)) // a stale one only spoils a message
		return lock.Unlock()
	}, nil
}

// inUse says who owns dir and what to do about it.
func inUse(dir string) error {
	const advice = "wait for it or end it, or work in another directory with -c local:DIR"
	var by owner
	about, err := os.ReadFile(filepath.Join(dir, ownerFile))
	if err == nil {
		err = json.Unmarshal(about, &by)
	}
	if err != nil {
		return fmt.Errorf("%s is in use by another process; %s", dir, advice)
	}
	return fmt.Errorf("%s is in use by %q (pid %d) since %s; %s", dir, by.Command, by.PID, by.Since.Format(time.RFC3339), advice)
}

func openError(code backends.Code, err error) error {
	return &backends.Error{Op: "open the local broker", Code: code, Err: err}
}
