package broker

import (
	"errors"
	"fmt"
)

// The errors of the engine, to be matched with errors.Is. Unless they say otherwise they are
// about one message or entity, and nothing has changed for it.
var (
	ErrNoEntity     = errors.New("no such entity")
	ErrNoMessage    = errors.New("no such message")
	ErrNoSession    = errors.New("no session is free that has a message")
	ErrExists       = errors.New("entity exists already")
	ErrInvalid      = errors.New("invalid argument")
	ErrUnsupported  = errors.New("the entity does not support this")
	ErrDisabled     = errors.New("the entity is disabled for this")
	ErrNeedsSession = fmt.Errorf("%w: a message needs a session id here", ErrInvalid)
	ErrTooLarge     = errors.New("message is too large")
	ErrQuota        = errors.New("the entity is full")
	ErrInFlight     = errors.New("too many messages are in flight")
	ErrNotSent      = errors.New("another message of the same call was refused, so nothing was sent")
	ErrLocked       = errors.New("another receiver holds it")
	ErrDamaged      = errors.New("the stored message is damaged")

	ErrLockLost        = errors.New("the lock has expired or was settled before")
	ErrSessionLockLost = errors.New("the lock of the session has expired or was given back")
	ErrTransaction     = errors.New("the transaction has ended")

	// ErrFull: the disk is nearly full. Receiving and settling go on.
	ErrFull = errors.New("the disk is nearly full")

	// ErrDuplicate and ErrUnrouted: the destination would accept the message and drop it at
	// once, because it has seen its id, or because no rule lets it through. A move refuses
	// that, since the message would be lost.
	ErrDuplicate = errors.New("the destination has seen this id and would drop the message; give it another id")
	ErrUnrouted  = errors.New("no rule of the topic lets the message through, so that it would be lost")

	// ErrFilter: a rule failed on the message, and its topic refuses such messages.
	ErrFilter = errors.New("a rule of the topic fails on the message")

	ErrUnavailable = errors.New("the engine has stopped")

	// ErrUncertain: a write failed after it was begun. Whether it took effect shows when the
	// store is opened again.
	ErrUncertain = errors.New("the write failed, and whether it took effect shows after a restart")
)
