package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"dlq/backends"
	"dlq/backends/local"
	"dlq/resubmit"
	"dlq/tui"
)

// demoQueue is where the story of the demo plays.
const demoQueue = "payments"

type demoOptions struct {
	data string
}

func newDemoCommand(a *app) *cobra.Command {
	var opts demoOptions
	c := a.command(about{
		use:   "demo",
		short: "an incident to try everything on, in memory",
		long: `Make a broker in memory that holds the morning after an incident (a payment provider that timed
out, a poison message, expired messages, a bad deployment: about 500 dead letters) and open
the UI on it. Without a terminal it walks through the story in text. Nothing of it is kept,
unless --data names a directory for the incident; the other commands can then work on it.`,
		effects: "none; --data makes a new data directory",
		exits:   []exitCode{exitFailed, exitUsage, exitRefused},
		example: "dlq demo\ndlq demo --data ./incident && dlq -c local:./incident list",
	}, exactly(), func(c *cobra.Command, _ []string) error { return runDemo(c.Context(), a, opts) })
	c.Flags().StringVar(&opts.data, "data", "", "put the incident into this new `DIRECTORY` and stop")
	return c
}

func runDemo(ctx context.Context, a *app, opts demoOptions) (err error) {
	if opts.data != "" {
		return seedDirectory(ctx, a, opts.data)
	}
	clock := &demoClock{live: a.now}
	b, err := local.Open(ctx, local.Options{Now: clock.now, Command: a.commandLine()})
	if err != nil {
		return err
	}
	a.opened, a.conn = b, "demo" // closed with the app
	if err := seedIncident(ctx, b, clock, a.corpus, a.now()); err != nil {
		return err
	}
	clock.release()
	// What is done in a demo is no part of the user's own history.
	state, err := os.MkdirTemp("", "dlq-demo-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	a.stateRoot = state
	if a.inTTY && a.outTTY {
		return runTUI(ctx, a, tui.Deps{Notice: "a demo in memory: try everything, nothing is kept"})
	}
	return tellStory(ctx, a)
}

// seedDirectory makes a data directory that holds the incident. One that exists is refused:
// it may hold somebody's data.
func seedDirectory(ctx context.Context, a *app, dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return fail(exitRefused, "name a directory that does not exist", "%s exists already", dir)
	}
	clock := &demoClock{live: a.now}
	b, err := local.Open(ctx, local.Options{Dir: dir, Now: clock.now, Command: a.commandLine()})
	if err != nil {
		return err
	}
	if err := errors.Join(seedIncident(ctx, b, clock, a.corpus, a.now()), b.Close()); err != nil {
		return err
	}
	a.say("the incident is in %s; look at it with: dlq -c local:%s list", dir, dir)
	return nil
}

// tellStory runs what an operator would type, for those who have no terminal to look at.
func tellStory(ctx context.Context, a *app) error {
	worst, err := worstGroup(ctx, a.opened, backends.EntityID{Name: demoQueue}.DeadLetters())
	if err != nil {
		return err
	}
	selected := demoQueue + " --group " + worst.ID
	story := []struct{ why, command string }{
		{"Which queues hold dead letters?", "list"},
		{"Why did the payments fail?", "groups " + demoQueue},
		{"The provider timed out. Some of those messages:", "peek " + selected + " --limit 5"},
		{"One of them, whole:", fmt.Sprintf("show %s --seq %d", demoQueue, worst.SampleSeq)},
		{"The provider is back. What would a resubmit of that group do?", "resubmit " + selected + " --dry-run"},
		{"Do it:", "resubmit " + selected + " --yes"},
		{"What is left?", "groups " + demoQueue},
		{"What was done, and is every message accounted for?", "jobs list"},
	}
	for _, s := range story {
		a.printf("# %s\n$ dlq %s\n", s.why, s.command)
		if err := a.tell(ctx, strings.Fields(s.command)); err != nil {
			return err
		}
		a.printf("\n")
	}
	a.printf("# In a terminal, dlq demo opens the UI on the same incident.\n")
	return nil
}

// worstGroup returns the most frequent way to fail.
func worstGroup(ctx context.Context, b backends.Backend, id backends.EntityID) (resubmit.Group, error) {
	query, err := resubmit.Selection{All: true}.Compile(time.Time{})
	if err != nil {
		return resubmit.Group{}, err
	}
	grouper := resubmit.NewGrouper()
	for m, err := range query.Select(ctx, b, id) {
		if err != nil {
			return resubmit.Group{}, err
		}
		grouper.Add(m)
	}
	return grouper.Groups()[0], nil
}

// tell runs one command of the story with its reports in line with its data.
func (a *app) tell(ctx context.Context, args []string) error {
	chapter := *a
	chapter.args, chapter.err = args, a.out
	return chapter.run(ctx)
}

// demoClock stands where the script of the incident puts it, and runs once it is released.
type demoClock struct {
	live func() time.Time

	mu sync.Mutex
	at time.Time // zero: released
}

func (c *demoClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return c.live()
	}
	return c.at
}

// set moves the clock. It never goes back.
func (c *demoClock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.at) {
		c.at = t
	}
}

func (c *demoClock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Time{}
}
