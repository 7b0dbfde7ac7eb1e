package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"dlq/tui"
	"dlq/tui/textview"
)

// Main runs the command line of the process and returns its exit code. corpus holds the
// message bodies that demo makes its incident from.
//
// The first SIGINT, SIGTERM or SIGHUP asks the command to stop: what is in flight is finished and
// locks are let go. The second ends the process at once; the journal then knows how far it came.
func Main(corpus fs.FS) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop)
	return int(systemApp(corpus).main(ctx))
}

// main runs a.args and reports how it went: the only place that prints an error.
func (a *app) main(ctx context.Context) exitCode {
	err := a.run(ctx)
	err = errors.Join(err, a.close(), a.flush())
	code, hint := outcome(err)
	if code == exitDone {
		return exitDone
	}
	text := err.Error()
	if code == exitInterrupted {
		text = "interrupted" // rather than how each layer puts it
	}
	for _, line := range textview.SanitiseLines(text) {
		fmt.Fprintln(a.err, a.paintErr(red, "dlq: ")+line)
	}
	if hint != "" {
		fmt.Fprintln(a.err, "hint: "+textview.Sanitise(hint))
	}
	return code
}

// run executes a.args once; the connection stays open.
func (a *app) run(ctx context.Context) error {
	root := newRootCommand(a)
	root.SetArgs(a.args)
	return root.ExecuteContext(ctx)
}

// newRootCommand builds the tree of commands.
func newRootCommand(a *app) *cobra.Command {
	root := a.command(about{
		use:   "dlq",
		short: "see, repair and resubmit dead letters",
		long: `dlq is for whoever is paged when messages end up in a dead-letter queue: browse, filter,
group, edit, resubmit, complete and export them. Nothing is lost on the way, and every
action can prove what it did.

Without a command it opens the terminal UI.`,
		effects: "none by itself",
		exits:   []exitCode{exitFailed, exitUsage},
	}, unknownCommand, func(c *cobra.Command, _ []string) error { return runRoot(c.Context(), a) })
	root.PersistentFlags().StringVarP(&a.conn, "conn", "c", "", "connection, as a `NAME|URL` (default $DLQ_CONN, else local:)")
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { a.printHelp(c) })
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fail(exitUsage, c.CommandPath()+" --help shows the flags", "%w", err)
	})
	root.SetHelpCommand(newHelpCommand(a))
	root.CompletionOptions.DisableDefaultCmd = true
	add := func(title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
		for _, c := range commands {
			c.GroupID = title
		}
		root.AddCommand(commands...)
	}
	add("Look", newTUICommand(a), newDemoCommand(a), newListCommand(a), newPeekCommand(a), newShowCommand(a), newGroupsCommand(a))
	add("Act", newResubmitCommand(a), newEditCommand(a), newCompleteCommand(a), newPurgeCommand(a), newJobsCommand(a))
	add("Files and messages", newExportCommand(a), newImportCommand(a), newSendCommand(a), newReceiveCommand(a))
	add("Set up", newEntityCommand(a), newServeCommand(a))
	add("More", newCompletionCommand(a), newManCommand(a), newVersionCommand(a))
	return root
}

// runRoot is dlq without a command: the UI, or help where there is no terminal.
func runRoot(ctx context.Context, a *app) error {
	if a.inTTY && a.outTTY {
		return runTUI(ctx, a, tui.Deps{})
	}
	a.printHelp(newRootCommand(a))
	return nil
}

// unknownCommand refuses arguments that are no command, with the nearest that is.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "dlq --help shows the commands"
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fail(exitUsage, hint, "there is no command %q", args[0])
}

// paintErr colours for standard error.
func (a *app) paintErr(colour, text string) string {
	if a.progress && a.getenv("NO_COLOR") == "" {
		return colour + text + reset
	}
	return text
}
