package cmd

import (
	"context"
	"errors"
	"fmt"

	"dlq/backends"
	"dlq/resubmit"
)

// exitCode is what the process ends with. The numbers are an interface: scripts rely on them.
type exitCode int

const (
	exitDone        exitCode = 0
	exitFailed      exitCode = 1
	exitUsage       exitCode = 2
	exitPartly      exitCode = 3   // some items were skipped, stale or uncertain, and were named
	exitRefused     exitCode = 4   // refused before anything was sent
	exitNothing     exitCode = 5   // nothing matched
	exitInterrupted exitCode = 130 // 128 + SIGINT, as shells have it
)

// String returns the meaning, for help texts.
func (c exitCode) String() string {
	switch c {
	case exitDone:
		return "done"
	case exitUsage:
		return "wrong usage"
	case exitPartly:
		return "partly done; what was skipped or is uncertain is named"
	case exitRefused:
		return "refused before anything was sent"
	case exitNothing:
		return "nothing matched"
	case exitInterrupted:
		return "interrupted"
	}
	return "failed"
}

// exitError is an error that knows its exit code, and perhaps what to do next.
type exitError struct {
	code exitCode
	err  error
	hint string // one line, "" for none
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// fail returns an error with its exit code and, if hint is not empty, what to do next.
func fail(code exitCode, hint, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...), hint: hint}
}

// usagef returns an error for a command line that cannot be meant.
func usagef(format string, args ...any) error { return fail(exitUsage, "", format, args...) }

// outcome is the one place where an error becomes an exit code and a hint. It acts on types,
// sentinels and codes, never on text.
func outcome(err error) (code exitCode, hint string) {
	var own *exitError
	var running *resubmit.RunningError
	switch {
	case err == nil:
		return exitDone, ""
	case errors.As(err, &own):
		return own.code, own.hint
	case errors.Is(err, context.Canceled):
		return exitInterrupted, ""
	case errors.Is(err, resubmit.ErrRefused):
		return exitRefused, ""
	case errors.As(err, &running):
		return exitRefused, "" // its text says what to do
	case errors.Is(err, resubmit.ErrAmbiguousJob):
		return exitUsage, "write more of its id"
	case errors.Is(err, resubmit.ErrNoJob):
		return exitNothing, "dlq jobs lists them"
	}
	c, ok := backends.CodeOf(err)
	switch {
	case !ok:
		return exitFailed, ""
	case c == backends.NotFound:
		return exitFailed, "dlq list shows what there is"
	case c == backends.Throttled:
		return exitFailed, "try again later, or slower with --rate"
	}
	return exitFailed, ""
}
