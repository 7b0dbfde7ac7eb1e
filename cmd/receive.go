package cmd

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/export"
	"dlq/resubmit"
)

type receiveOptions struct {
	format      format
	limit       int
	session     *string
	complete    bool
	abandon     bool
	deadLetter  bool
	reason      string
	description string
}

func (o *receiveOptions) addFlags(fs *pflag.FlagSet) {
	addFormatFlag(fs, &o.format)
	fs.IntVar(&o.limit, "limit", 1, "take at most `N` messages")
	fs.String("session", "", "only from the session with this `ID`")
	fs.BoolVar(&o.complete, "complete", false, "remove what was taken")
	fs.BoolVar(&o.abandon, "abandon", false, "give it back; that counts a failed delivery")
	fs.BoolVar(&o.deadLetter, "dead-letter", false, "move it to the dead-letter queue")
	fs.StringVar(&o.reason, "reason", "", "why, with --dead-letter (`TEXT`)")
	fs.StringVar(&o.description, "description", "", "what happened, with --dead-letter (`TEXT`)")
}

func newReceiveCommand(a *app) *cobra.Command {
	var opts receiveOptions
	c := a.command(about{
		use:   "receive ENTITY",
		short: "take messages as a consumer does, and settle them",
		long: `Lock messages of the entity itself, show them, and complete, abandon or dead-letter each one.
Without one of these they are let go again, unchanged. A queue of SQS counts every receive, which
may move a message to the queue that the redrive policy names. It does not wait for messages to arrive.`,
		effects: `locks what it takes until it is settled: other receivers do not see it meanwhile
--complete removes it, --abandon counts a failed delivery, which may dead-letter it,
--dead-letter moves it (refused on SQS, where only the redrive policy does); without them
nothing is counted, but on SQS each receive is`,
		exits:   []exitCode{exitFailed, exitUsage, exitPartly, exitRefused, exitNothing},
		example: "dlq receive orders -o json\ndlq receive orders --limit 10 --dead-letter --reason BadAddress --description 'no such street'",
	}, exactly("ENTITY"), func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("session") {
			session, _ := c.Flags().GetString("session")
			opts.session = &session
		}
		return runReceive(c.Context(), a, opts, args[0])
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeEntity
	return c
}

// outcome returns what the flags want to become of the messages; its action is 0 when they
// are only looked at.
func (o *receiveOptions) outcome() (backends.Outcome, error) {
	var out backends.Outcome
	chosen := 0
	for action, on := range map[backends.Action]bool{
		backends.Complete: o.complete, backends.Abandon: o.abandon, backends.DeadLetter: o.deadLetter,
	} {
		if on {
			out.Action = action
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return out, usagef("--complete, --abandon and --dead-letter exclude each other")
	case !o.deadLetter && (o.reason != "" || o.description != ""):
		return out, usagef("--reason and --description go with --dead-letter")
	case o.limit < 1:
		return out, usagef("--limit %d: want at least one message", o.limit)
	}
	out.Reason, out.Description = o.reason, o.description
	return out, nil
}

func runReceive(ctx context.Context, a *app, opts receiveOptions, arg string) (err error) {
	id, err := entity(arg)
	if err != nil {
		return err
	}
	settle, err := opts.outcome()
	if err != nil {
		return err
	}
	if id.Sub != backends.Main && settle.Action == backends.Complete {
		return fail(exitUsage, "dlq complete "+id.MainQueue().String()+" removes dead letters so that dlq jobs restore can bring them back",
			"--complete would remove dead letters of %s without a journal", id)
	}
	b, err := a.existing(ctx)
	if err != nil {
		return err
	}
	counted, err := countsReceives(ctx, b, id)
	if err != nil {
		return err
	}
	if counted && settle.Action == backends.DeadLetter {
		return fail(exitRefused, "--abandon gives it back; each receive counts towards the policy's limit",
			"--dead-letter: on SQS only a redrive policy moves messages of %s, so nothing was received", id)
	}
	lease, err := b.Lease(ctx, id, backends.LeaseOptions{Session: opts.session, Max: opts.limit})
	if err != nil {
		return err
	}
	// Letting go must reach the service even when the command was interrupted.
	defer func() { err = errors.Join(err, lease.Release(context.WithoutCancel(ctx))) }()
	out := newListing(a, opts.format, a.receivedColumns(), export.AppendJSON)
	if err := receive(ctx, lease, out, settle); err != nil {
		return err
	}
	if out.rows == 0 {
		return fail(exitNothing, "", "no message is free in %s", id)
	}
	if counted && settle.Action == 0 {
		a.say("the receive of %s was counted; the redrive policy of %s, if it has one, moves what is received too often", plural(out.rows, "message"), id)
	}
	if settle.Action != 0 {
		a.say("%s of %s done", settle.Action, plural(out.rows, "message"))
	}
	return nil
}

// countsReceives reports whether a queue counts each receive, as those of SQS do. They have no
// dead-letter queue inside them, which is how they are told.
func countsReceives(ctx context.Context, b backends.Backend, id backends.EntityID) (bool, error) {
	e, err := resubmit.Find(ctx, b, id)
	if code, _ := backends.CodeOf(err); code == backends.NotFound {
		return false, nil // the receive says so
	}
	return err == nil && e.Kind == backends.Queue && e.DeadLetters.Sub == backends.Main, err
}

// receiveBatch is how many messages are shown and then settled together.
const receiveBatch = 100

// receive takes what the lease hands out, in batches. Each batch is written down before it is
// settled: what could not be shown must not be gone.
func receive(ctx context.Context, lease backends.Lease, out *listing[*message.Message], settle backends.Outcome) error {
	for {
		batch, err := nextBatch(ctx, lease, out)
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			out.end()
			return nil
		}
		if settle.Action == 0 {
			continue
		}
		if err := out.flush(); err != nil {
			return err
		}
		if err := settleAll(ctx, lease, settle, batch); err != nil {
			return err
		}
	}
}

// nextBatch locks the next messages and lists them.
func nextBatch(ctx context.Context, lease backends.Lease, out *listing[*message.Message]) ([]*message.Message, error) {
	var batch []*message.Message
	for len(batch) < receiveBatch {
		m, err := lease.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := out.add(m); err != nil {
			return nil, err
		}
		batch = append(batch, m)
	}
	return batch, nil
}

// settleAll settles what was taken and names what could not be.
func settleAll(ctx context.Context, lease backends.Lease, o backends.Outcome, taken []*message.Message) error {
	err := lease.Settle(ctx, o, taken...)
	var batch *backends.BatchError
	if !errors.As(err, &batch) || len(batch.Failed) == len(taken) {
		return err
	}
	return fail(exitPartly, "", "%d of %d messages: %w", len(batch.Failed), len(taken), err)
}
