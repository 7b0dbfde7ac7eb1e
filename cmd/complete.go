package cmd

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/resubmit"
)

type completeOptions struct {
	place
	selectionFlags
	consent
	max int
}

func (o *completeOptions) addFlags(fs *pflag.FlagSet) {
	o.place.addFlags(fs)
	o.selectionFlags.addFlags(fs)
	o.consent.addFlags(fs)
	fs.IntVar(&o.max, "max", 0, "refuse to touch more than `N` messages")
}

func newCompleteCommand(a *app) *cobra.Command {
	var opts completeOptions
	c := a.command(about{
		use:   "complete ENTITY",
		short: "remove the selected dead letters",
		long: `Remove the selected dead letters. The journal keeps them whole, and dlq jobs restore brings
them back.`,
		effects: "removes the selected messages",
		exits:   []exitCode{exitFailed, exitUsage, exitPartly, exitRefused, exitNothing},
		example: "dlq complete orders --id order-7 --yes\ndlq complete orders --where \"tenant = 'test'\" --dry-run",
	}, exactly("ENTITY"), func(c *cobra.Command, args []string) error {
		return runComplete(c.Context(), a, opts, c.Flags(), args[0])
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeEntity
	return c
}

func runComplete(ctx context.Context, a *app, opts completeOptions, fs *pflag.FlagSet, arg string) error {
	spec := resubmit.Spec{Kind: resubmit.Complete, Max: opts.max}
	var err error
	if spec.From, err = opts.id(arg); err != nil {
		return err
	}
	if spec.Selection, err = opts.selection(fs); err != nil {
		return err
	}
	if err := narrowed(spec.Selection, "removed"); err != nil {
		return err
	}
	if _, err := a.compile(spec.Selection); err != nil {
		return err
	}
	if opts.max < 0 {
		return usagef("--max cannot be negative")
	}
	if err := a.canAsk(opts.consent); err != nil {
		return err
	}
	return a.runJob(ctx, spec, opts.consent, nil)
}
