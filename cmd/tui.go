package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"dlq/backends"
	"dlq/tui"
)

func newTUICommand(a *app) *cobra.Command {
	c := a.command(about{
		use:     "tui [ENTITY]",
		short:   "open the terminal UI",
		long:    "Open the terminal UI, at the dead letters of ENTITY if one is named. ? shows the keys.",
		effects: "none by itself: it asks before it changes anything",
		exits:   []exitCode{exitFailed, exitUsage, exitRefused},
	}, atMost(1), func(c *cobra.Command, args []string) error {
		var start *backends.EntityID
		if len(args) > 0 {
			id, err := entity(args[0])
			if err != nil {
				return err
			}
			start = &id
		}
		return runTUI(c.Context(), a, tui.Deps{Start: start})
	})
	c.ValidArgsFunction = a.completeEntity
	return c
}

// runTUI opens the UI on the app's connection. deps says what is particular to this start.
func runTUI(ctx context.Context, a *app, deps tui.Deps) error {
	if !a.inTTY || !a.outTTY {
		return fail(exitRefused, "dlq --help shows the commands that work without one", "the UI needs a terminal")
	}
	a.stays = true
	if _, err := a.backend(ctx); err != nil { // the UI starts on an empty broker too
		return err
	}
	env, err := a.env(ctx)
	if err != nil {
		return err
	}
	deps.Backend, deps.Journals, deps.Conn = env.Backend, env.Journals, env.Conn
	deps.Now, deps.Getenv = a.now, a.getenv
	return tui.Run(ctx, deps)
}
