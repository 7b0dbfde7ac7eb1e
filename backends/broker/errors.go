package broker

import "errors"

// The errors of the engine, to be matched with errors.Is. Unless they say otherwise they are
// about one message or entity, and nothing has changed for it.
var (
	ErrNoEntity    = errors.New("no such entity")
	ErrNoMessage   = errors.New("no such message")
	ErrExists      = errors.New("entity exists already")
	ErrInvalid     = errors.New("invalid argument")
	ErrTooLarge    = errors.New("message is too large")
	ErrNotSent     = errors.New("another message of the same call was refused, so nothing was sent")
	ErrLockLost    = errors.New("the lock has expired or was settled before")
	ErrLocked      = errors.New("another receiver holds the message")
	ErrDamaged     = errors.New("the stored message is damaged")
	ErrUnavailable = errors.New("the engine has stopped")

	// ErrUncertain: a write failed after it was begun. Whether it took effect shows when the
	// store is opened again.
	ErrUncertain = errors.New("the write failed, and whether it took effect shows after a restart")
)
