package resubmit

import (
	"context"
)

// Run carries out a plan under a new journal and returns the report, which is valid also when there is
// an error. progress may be nil; it is called from one goroutine at a time, after each batch, and
// must not block. A plan with vetoes is [ErrRefused]. When ctx is cancelled or the job is, the
// batches in flight are finished within a few seconds, locks are released and the report
// says what is left: that is no error. An error is what ended the run early otherwise.
func Run(ctx context.Context, env Env, plan *Plan, progress func(Progress)) (Report, error) {
	return Report{}, nil
}
