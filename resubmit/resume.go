package resubmit

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Resume goes on with a job that was cut off, cancelled or interrupted, from its journal alone,
// and tries again what failed. What it does with a message depends on where the journal ends:
//
//	planned            do it
//	intent, atomic     still at the source: it did not happen, do it; gone: it did, note it
//	intent, not atomic perhaps sent: leave it, and name it as possibly twice
//	sent               complete the original, never send again
//
// After a crash the dead process may still hold locks; then Resume waits once for as long as a
// lock lasts. A message that is gone or changed is skipped and named. Two never run one job: the
// second gets a [RunningError]. A job made on another connection is [ErrRefused]. A job that is
// finished is only reported.
func Resume(ctx context.Context, env Env, id string, progress func(Progress)) (Report, error) {
	id, err := env.Journals.resolve(id)
	if err != nil {
		return Report{}, err
	}
	job, err := env.Journals.reopen(ctx, id, "dlq jobs resume "+id)
	if err != nil {
		return Report{}, err
	}
	if r := job.ledger.report(false); r.State == Finished {
		return r, job.release()
	}
	crashed, err := job.takeOver(env)
	if err != nil {
		return Report{}, errors.Join(err, job.release())
	}
	if job.ledger.header.Kind == Restoring {
		return resumeRestore(ctx, env, job, progress)
	}
	return runJob(ctx, env, job, nil, progress, crashed)
}

// after returns text with what leads to it; nothing if there is none.
func after(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}

// takeOver prepares a job of another process for going on. crashed: that process died.
func (job *openJob) takeOver(env Env) (crashed bool, err error) {
	l := job.ledger
	if !l.begun {
		return false, fmt.Errorf("job %s died before it touched a message; run its command again%s", job.id, after(": ", l.header.Command))
	}
	if l.header.Conn != env.Conn {
		return false, fmt.Errorf("%w: job %s belongs to connection %s; name it with --conn", ErrRefused, job.id, l.header.Conn)
	}
	crashed = l.end == nil
	start := jobStart{At: env.now(), PID: os.Getpid(), Version: env.Version}
	if _, err := job.writer.append(func(b []byte) []byte { return appendJSON(b, recResumed, start) }); err != nil {
		return false, err
	}
	l.starts, l.end = append(l.starts, start), nil
	for i, it := range l.items {
		if it.state != intent || it.atomic {
			continue
		}
		const reason = "possibly sent: the process died between sending and noting it; not sent again"
		if _, err := job.writer.append(func(b []byte) []byte { return appendNote(b, recUncertain, i, reason) }); err != nil {
			return false, err
		}
		l.set(i, uncertain, reason)
	}
	return crashed, job.writer.sync()
}
