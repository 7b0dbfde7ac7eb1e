package backends

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Code classes errors by what a caller can do about them. Callers act on the code or on a
// wrapped sentinel, never on the text.
type Code uint8

const (
	// Unknown: the outcome of the call is not known; it may have taken effect.
	Unknown Code = iota
	// NotFound: no such entity or message.
	NotFound
	// AlreadyExists: what was to be created is there.
	AlreadyExists
	// Invalid: an argument is wrong, whatever the state of the service.
	Invalid
	// TooLarge: the message is over the entity's limit. Nothing was sent.
	TooLarge
	// NotCarried: the message holds something that the service cannot carry. Nothing was sent.
	NotCarried
	// NotTried: another message of the same call was refused, so this one was not tried.
	NotTried
	// LockLost: the lock has expired, was settled before, or was never ours. Nothing changed.
	LockLost
	// Locked: another receiver holds the message, or another process the data.
	Locked
	// Denied: the credential does not allow it.
	Denied
	// Throttled: the service asks to slow down. Trying again later may work.
	Throttled
	// Unavailable: the service or the store cannot be used now.
	Unavailable
	// Duplicate: the destination, or one behind it, has had the message's id, and would accept
	// the message and drop it.
	Duplicate
	// Unrouted: no rule of the topic lets the message through, so that nobody would get it.
	Unrouted
	// Unsupported: the service has no such thing. The error wraps errors.ErrUnsupported.
	Unsupported
)

func (c Code) String() string {
	return [...]string{
		"outcome unknown", "not found", "already exists", "invalid", "too large",
		"not carried", "not tried", "lock lost", "locked", "denied", "throttled", "unavailable",
		"duplicate", "unrouted", "unsupported",
	}[min(int(c), int(Unsupported))]
}

// Error is the one error type of backends. Its text is in lower case and says what to do
// next where that is known; it may hold text from a server, so sanitise it before a
// terminal sees it.
type Error struct {
	Op     string   // what was tried, such as "peek"
	Entity EntityID // where; zero if nowhere in particular
	Code   Code
	Err    error // cause; nil if the code says it all
}

func (e *Error) Error() string {
	parts := make([]string, 0, 3)
	head := e.Op
	if e.Entity.Name != "" {
		head += " " + e.Entity.String()
	}
	parts = append(parts, head)
	if e.Code != Unsupported || e.Err == nil {
		parts = append(parts, e.Code.String())
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first [Error] in err's tree. A [BatchError] has the code
// that all its messages share, else Unknown. ok is false if there is no code at all.
func CodeOf(err error) (code Code, ok bool) {
	var batch *BatchError
	if errors.As(err, &batch) && len(batch.Failed) > 0 {
		first, ok := CodeOf(batch.Failed[0].Err)
		for _, f := range batch.Failed[1:] {
			if c, k := CodeOf(f.Err); c != first || !k {
				return Unknown, ok
			}
		}
		return first, ok
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code, true
	}
	return Unknown, false
}

// IsCode reports whether err has that code.
func IsCode(err error, code Code) bool {
	c, ok := CodeOf(err)
	return ok && c == code
}

// BatchError names every message of a call that failed, at least one. Those it does not
// name succeeded. [Batch] makes one.
type BatchError struct {
	Failed []ItemError // in ascending order of Index
}

// ItemError is what became of one message.
type ItemError struct {
	Index int
	Err   error
}

func (e *BatchError) Error() string {
	if len(e.Failed) == 1 {
		return e.Failed[0].Err.Error()
	}
	return fmt.Sprintf("%d messages failed; the first: %v", len(e.Failed), e.Failed[0].Err)
}

// Unwrap returns the cause of every failed message.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f.Err
	}
	return errs
}

// Batch returns a *BatchError for the errors that are not nil, or nil if none is. errs[i]
// belongs to the message with index i.
func Batch(errs []error) error {
	var failed []ItemError
	for i, err := range errs {
		if err != nil {
			failed = append(failed, ItemError{i, err})
		}
	}
	if failed == nil {
		return nil
	}
	return &BatchError{failed}
}

// ItemErrors spreads the error of a batch call over its n messages: a [BatchError] by its
// indexes, any other error over all of them.
func ItemErrors(err error, n int) []error {
	out := make([]error, n)
	var batch *BatchError
	switch {
	case err == nil:
	case errors.As(err, &batch):
		for _, f := range batch.Failed {
			if f.Index < n {
				out[f.Index] = f.Err
			}
		}
	default:
		out = slices.Repeat([]error{err}, n)
	}
	return out
}
