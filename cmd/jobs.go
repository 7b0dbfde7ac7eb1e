package cmd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dlq/resubmit"
)

func newJobsCommand(a *app) *cobra.Command {
	var f format
	c := a.command(about{
		use:   "jobs [list|show|resume|cancel|restore] [ID]",
		short: "what ran, is running or was cut off",
		long: `Every resubmit, complete and purge is a job with a journal on this machine, written before each
step. Without a subcommand dlq jobs lists them, the newest first. An ID may be cut short as
long as it names one job.`,
		effects: "none",
		exits:   []exitCode{exitFailed, exitUsage},
	}, unknownCommand, func(*cobra.Command, []string) error { return runJobsList(a, f) })
	addFormatFlag(c.Flags(), &f)
	c.AddCommand(newJobsListCommand(a), newJobsShowCommand(a), newJobsResumeCommand(a),
		newJobsCancelCommand(a), newJobsRestoreCommand(a))
	return c
}

func newJobsListCommand(a *app) *cobra.Command {
	var f format
	c := a.command(about{
		use:     "list",
		short:   "list the jobs, the newest first",
		effects: "none",
		exits:   []exitCode{exitFailed, exitUsage},
		example: "dlq jobs list -o json | jq '.[] | select(.state != \"finished\")'",
	}, exactly(), func(*cobra.Command, []string) error { return runJobsList(a, f) })
	addFormatFlag(c.Flags(), &f)
	return c
}

// jobRow is a line of dlq jobs list. Its keys are an interface: scripts rely on them.
type jobRow struct {
	ID        string         `json:"id"`
	Kind      resubmit.Kind  `json:"kind"`
	State     resubmit.State `json:"state"`
	Entity    string         `json:"entity"`
	To        string         `json:"to,omitempty"`
	Selection string         `json:"selection"`
	Conn      string         `json:"conn"`
	Command   string         `json:"command"`
	Started   *time.Time     `json:"started"`
	Updated   *time.Time     `json:"updated"`
	PID       int            `json:"pid,omitempty"`
	Matched   int64          `json:"matched"`
	Done      int64          `json:"done"`
	Left      int64          `json:"left"`
	Skipped   int64          `json:"skipped"`
	Failed    int64          `json:"failed"`
	Uncertain int64          `json:"uncertain"`
	Lost      int64          `json:"lost"`
	Err       string         `json:"error,omitempty"`
}

func newJobRow(j resubmit.JobInfo) jobRow {
	row := jobRow{
		ID: j.ID, Kind: j.Kind, State: j.State, Entity: j.From.String(), Selection: j.Selection,
		Conn: j.Conn, Command: j.Command, Started: moment(j.Started), Updated: moment(j.Updated), PID: j.PID,
		Matched: j.Matched, Done: j.Done, Left: j.Left, Skipped: j.Skipped, Failed: j.Failed,
		Uncertain: j.Uncertain, Lost: j.Lost, Err: j.Err,
	}
	if j.To != nil {
		row.To = j.To.String()
	}
	return row
}

func runJobsList(a *app, f format) error {
	journals, err := a.openJournals()
	if err != nil {
		return err
	}
	jobs, err := journals.List()
	if err != nil {
		return err
	}
	out := newListing(a, f, a.jobColumns(), func(dst []byte, j resubmit.JobInfo) ([]byte, error) {
		return appendJSON(dst, newJobRow(j))
	})
	if len(jobs) == 0 {
		a.say("there are no jobs yet; dlq resubmit, complete and purge make them")
	}
	return out.all(succeeding(slices.Values(jobs)))
}

func (a *app) jobColumns() []column[resubmit.JobInfo] {
	number := func(title string, get func(resubmit.JobInfo) int64) column[resubmit.JobInfo] {
		return column[resubmit.JobInfo]{title: title, right: true, cell: func(j resubmit.JobInfo) string { return count(get(j)) }}
	}
	return []column[resubmit.JobInfo]{
		{title: "ID", cell: func(j resubmit.JobInfo) string { return j.ID }},
		{title: "KIND", cell: func(j resubmit.JobInfo) string { return string(j.Kind) }},
		{title: "STATE", cell: func(j resubmit.JobInfo) string { return string(j.State) }, colour: stateColour},
		{title: "STARTED", right: true, cell: func(j resubmit.JobInfo) string { return a.age(j.Started) }},
		number("MATCHED", func(j resubmit.JobInfo) int64 { return j.Matched }),
		number("DONE", func(j resubmit.JobInfo) int64 { return j.Done }),
		number("LEFT", func(j resubmit.JobInfo) int64 { return j.Left }),
		number("ODD", func(j resubmit.JobInfo) int64 { return j.Skipped + j.Failed + j.Uncertain + j.Lost }),
		{title: "ENTITY", cell: func(j resubmit.JobInfo) string { return j.From.String() }},
		{title: "SELECTION", cell: func(j resubmit.JobInfo) string { return j.Selection }},
	}
}

func stateColour(j resubmit.JobInfo) string {
	switch j.State {
	case resubmit.Finished:
		return green
	case resubmit.Running:
		return bold
	case resubmit.Damaged:
		return red
	}
	return yellow
}

func newJobsShowCommand(a *app) *cobra.Command {
	var f format
	c := a.command(about{
		use:     "show ID",
		short:   "account for every message of a job",
		long:    "Show one job, and what became of each of its messages. In JSON it is the messages alone.",
		effects: "none",
		exits:   []exitCode{exitFailed, exitUsage, exitNothing},
	}, exactly("ID"), func(_ *cobra.Command, args []string) error { return runJobsShow(a, f, args[0]) })
	addFormatFlag(c.Flags(), &f)
	return c
}

// itemRow is a line of dlq jobs show. Its keys are an interface.
type itemRow struct {
	Seq    int64              `json:"seq"`
	ID     string             `json:"id"`
	State  resubmit.ItemState `json:"state"`
	Reason string             `json:"reason,omitempty"`
}

func runJobsShow(a *app, f format, id string) error {
	journals, err := a.openJournals()
	if err != nil {
		return err
	}
	job, err := journals.Job(id)
	if err != nil {
		return err
	}
	if f == table {
		a.printJob(job)
	}
	out := newListing(a, f, itemColumns(), appendJSON[itemRow])
	return out.all(func(yield func(itemRow, error) bool) {
		for it, state := range job.Items() {
			if !yield(itemRow{Seq: it.Seq, ID: it.ID, State: state, Reason: it.Reason}, nil) {
				return
			}
		}
	})
}

// printJob writes the head of a job: what it was told to do, and the sum of what it did.
func (a *app) printJob(j *resubmit.Job) {
	a.println(fmt.Sprintf("%s %s: %s", j.Kind, j.ID, j.State))
	a.println("  command    " + j.Command)
	a.println("  entity     " + j.From.String() + " on " + j.Conn)
	if j.To != nil {
		a.println("  to         " + j.To.String())
	}
	if j.Selection != "" {
		a.println("  selection  " + j.Selection)
	}
	a.println("  started    " + j.Started.UTC().Format(time.RFC3339) + ", " + a.age(j.Started) + " ago")
	if j.Report.Backup != "" {
		a.println("  backup     " + j.Report.Backup)
	}
	if j.Err != "" {
		a.println("  stopped by " + j.Err)
	}
	a.println("  " + j.Report.Summary())
	a.println("")
}

func itemColumns() []column[itemRow] {
	return []column[itemRow]{
		{title: "SEQ", right: true, cell: func(r itemRow) string { return count(r.Seq) }},
		{title: "STATE", cell: func(r itemRow) string { return string(r.State) }},
		{title: "ID", cell: func(r itemRow) string { return r.ID }},
		{title: "WHY", cell: func(r itemRow) string { return r.Reason }},
	}
}

func newJobsResumeCommand(a *app) *cobra.Command {
	return a.command(about{
		use:   "resume ID",
		short: "go on with a job that was cut off, cancelled or interrupted",
		long: `Go on with a job from its journal alone, and try again what failed. A message that may have been
sent already is never sent again by itself: it stays, and is named "possibly twice".`,
		effects: "does what is left of the job",
		exits:   []exitCode{exitFailed, exitUsage, exitPartly, exitRefused, exitNothing},
	}, exactly("ID"), func(c *cobra.Command, args []string) error {
		return a.continueJob(c.Context(), func(ctx context.Context, env resubmit.Env, show func(resubmit.Progress)) (resubmit.Report, error) {
			return resubmit.Resume(ctx, env, args[0], show)
		})
	})
}

func newJobsRestoreCommand(a *app) *cobra.Command {
	var to string
	var again bool
	c := a.command(about{
		use:   "restore ID",
		short: "put back what a job removed",
		long: `Put back what a job removed, from the originals in its journal: into the entity that they were
removed from, or into --to. It is a job of its own. What a resubmit moved is not missing, so that is
refused without --again.`,
		effects: "sends the removed messages again",
		exits:   []exitCode{exitFailed, exitUsage, exitPartly, exitRefused, exitNothing},
	}, exactly("ID"), func(c *cobra.Command, args []string) error {
		opts := resubmit.RestoreOptions{Again: again, Command: a.commandLine()}
		if to != "" {
			id, err := entity(to)
			if err != nil {
				return err
			}
			opts.To = &id
		}
		return a.continueJob(c.Context(), func(ctx context.Context, env resubmit.Env, show func(resubmit.Progress)) (resubmit.Report, error) {
			report, err := resubmit.Restore(ctx, env, args[0], opts, show)
			if err == nil && report.Job == "" {
				err = nothingToRestore(report.Restores, again)
			}
			return report, err
		})
	})
	c.Flags().StringVar(&to, "to", "", "put them into this `ENTITY`")
	c.Flags().BoolVar(&again, "again", false, "also what was restored or sent on before, which makes duplicates")
	return c
}

// nothingToRestore says why a restore did nothing.
func nothingToRestore(job string, again bool) error {
	if again {
		return fail(exitNothing, "", "job %s removed nothing", job)
	}
	return fail(exitNothing, "--again restores it once more, which makes duplicates",
		"everything that job %s removed was restored before", job)
}

// continueJob runs something that goes on from a journal, with progress and report.
func (a *app) continueJob(ctx context.Context, run func(context.Context, resubmit.Env, func(resubmit.Progress)) (resubmit.Report, error)) error {
	env, err := a.env(ctx)
	if err != nil {
		return err
	}
	line := a.newProgressLine()
	report, err := run(ctx, env, line.show)
	line.clear()
	return a.finishJob(report, err)
}

func newJobsCancelCommand(a *app) *cobra.Command {
	return a.command(about{
		use:   "cancel ID",
		short: "ask a running job to stop, in whatever process it runs",
		long: `Ask a running job to stop, through its journal's folder. Its process finishes what is in flight,
reports what is left and ends; dlq jobs resume goes on later.`,
		effects: "the job stops; messages stay where they are",
		exits:   []exitCode{exitFailed, exitUsage, exitNothing},
	}, exactly("ID"), func(_ *cobra.Command, args []string) error {
		journals, err := a.openJournals()
		if err != nil {
			return err
		}
		if err := journals.Cancel(args[0]); err != nil {
			return err
		}
		a.say("job %s was asked to stop", args[0])
		return nil
	})
}
