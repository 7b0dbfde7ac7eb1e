package cmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/export"
	"dlq/resubmit"
)

type purgeOptions struct {
	place
	consent
	noBackup bool
	max      int
}

func (o *purgeOptions) addFlags(fs *pflag.FlagSet) {
	o.place.addFlags(fs)
	o.consent.addFlags(fs)
	fs.BoolVar(&o.noBackup, "no-backup", false, "do not export first: what is removed is gone")
	fs.IntVar(&o.max, "max", 0, "refuse to touch more than `N` messages")
}

func newPurgeCommand(a *app) *cobra.Command {
	var opts purgeOptions
	c := a.command(about{
		use:   "purge ENTITY",
		short: "remove all dead letters, exporting them first",
		long: `Remove all dead letters of an entity. Before that they are exported to a file in dlq's state
directory, unless --no-backup; the file is on disk before the first message goes, and dlq import
sends it again. What arrives meanwhile stays.`,
		effects: "removes everything that is there when it starts",
		exits:   []exitCode{exitFailed, exitUsage, exitPartly, exitRefused, exitNothing},
		example: "dlq purge notifications --dry-run\ndlq purge notifications --yes",
	}, exactly("ENTITY"), func(c *cobra.Command, args []string) error {
		return runPurge(c.Context(), a, opts, args[0])
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeEntity
	return c
}

func runPurge(ctx context.Context, a *app, opts purgeOptions, arg string) error {
	spec := resubmit.Spec{Kind: resubmit.Purge, Max: opts.max, Discard: opts.noBackup}
	var err error
	if spec.From, err = opts.id(arg); err != nil {
		return err
	}
	if opts.max < 0 {
		return usagef("--max cannot be negative")
	}
	if err := a.canAsk(opts.consent); err != nil {
		return err
	}
	if opts.noBackup {
		return a.runJob(ctx, spec, opts.consent, nil)
	}
	// The plan is frozen before the backup is written, so that the backup holds at least
	// what will be removed.
	return a.runJob(ctx, spec, opts.consent, func(plan *resubmit.Plan) error {
		path, err := a.backup(ctx, plan)
		plan.Spec.Backup = path
		return err
	})
}

// backup exports everything that a purge will remove to a new file, durably, and says where.
func (a *app) backup(ctx context.Context, plan *resubmit.Plan) (string, error) {
	state, err := a.stateDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(state, "backups")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s-%s.jsonl", export.SafeName(plan.Spec.From.String()), a.now().UTC().Format("20060102T150405.000Z"))
	path := filepath.Join(dir, name)
	query, err := a.compile(resubmit.Selection{All: true})
	if err != nil {
		return "", err
	}
	n, err := exportFile(path, false, export.JSONL, query.Select(ctx, a.opened, plan.Spec.From))
	if err != nil {
		return "", fmt.Errorf("backup before the purge: %w", err)
	}
	if int64(n) < plan.Matched {
		a.say("warning: %d of %d messages are gone already", plan.Matched-int64(n), plan.Matched)
	}
	a.say("%s exported to %s", plural(int64(n), "message"), path)
	return path, nil
}
