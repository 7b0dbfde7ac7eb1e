package resubmit

import (
	"context"

	"dlq/backends"
)

// RestoreOptions say how to restore.
type RestoreOptions struct {
	To      *backends.EntityID // nil: back to the entity that they were removed from
	Again   bool               // also what was restored before: makes duplicates
	Command string
}

// Restore puts back what a job removed, from the originals in its journal. It is a job of its own.
func Restore(ctx context.Context, env Env, id string, opts RestoreOptions, progress func(Progress)) (Report, error) {
	return Report{}, nil
}
