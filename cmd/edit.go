package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/resubmit"
	"dlq/tui/textview"
)

type editOptions struct {
	oneMessage
	consent
	destination
}

func (o *editOptions) addFlags(fs *pflag.FlagSet) {
	o.oneMessage.addFlags(fs)
	o.consent.addFlags(fs)
	o.destination.addFlags(fs)
}

func newEditCommand(a *app) *cobra.Command {
	var opts editOptions
	c := a.command(about{
		use:   "edit ENTITY --seq N",
		short: "change one dead letter in $EDITOR and send it again",
		long: `Open one message in $VISUAL or $EDITOR, show what was changed, ask, and resubmit it as dlq resubmit
does. What was not changed goes out as it was, the body byte for byte.`,
		effects: "moves the message (--copy: copies it)",
		exits:   []exitCode{exitFailed, exitUsage, exitPartly, exitRefused, exitNothing},
		example: "dlq edit orders --seq 42\nEDITOR='sed -i s/10115/10117/' dlq edit orders --id order-7 --yes",
	}, exactly("ENTITY"), func(c *cobra.Command, args []string) error {
		return runEdit(c.Context(), a, opts, args[0])
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeEntity
	return c
}

func runEdit(ctx context.Context, a *app, opts editOptions, arg string) error {
	spec := resubmit.Spec{Kind: resubmit.Resubmit}
	if err := opts.destination.apply(&spec); err != nil {
		return err
	}
	if err := a.canAsk(opts.consent); err != nil {
		return err
	}
	id, original, err := opts.find(ctx, a, arg)
	if err != nil {
		return err
	}
	edited, err := a.editMessage(ctx, original)
	if err != nil {
		return err
	}
	if len(resubmit.DiffText(original, edited)) == 0 {
		return fail(exitRefused, "dlq resubmit sends a message as it is", "nothing was edited, so nothing was sent")
	}
	a.printDiff("", resubmit.DiffText(original, resubmit.Outgoing(edited)))
	spec.From = id
	seq := original.Broker.SequenceNumber
	spec.Selection = resubmit.Selection{Seqs: []int64{seq}}
	spec.Edited = map[int64]*message.Message{seq: edited}
	return a.runJob(ctx, spec, opts.consent, nil)
}

// editMessage lets the editor change the text form of m. A text that was changed and cannot be
// used is kept in its file, so that the work on it is not lost.
func (a *app) editMessage(ctx context.Context, m *message.Message) (*message.Message, error) {
	file, err := os.CreateTemp("", "dlq-edit-*.txt") // 0600: it holds a body
	if err != nil {
		return nil, err
	}
	defer file.Close()
	written := resubmit.FormatDocument(m)
	if _, err := file.Write(written); err != nil {
		return nil, err
	}
	err = a.runEditor(ctx, file.Name())
	doc, readErr := os.ReadFile(file.Name())
	if readErr != nil {
		return nil, errors.Join(err, readErr)
	}
	if err != nil && bytes.Equal(doc, written) {
		return nil, errors.Join(err, os.Remove(file.Name()))
	}
	var edited *message.Message
	if err == nil {
		edited, err = resubmit.ParseDocument(m, doc)
	}
	if err == nil {
		err = resubmit.LostEdits(m, edited)
	}
	if err != nil {
		code, _ := outcome(err)
		return nil, fail(code, "your text is kept in "+file.Name(), "%w", err)
	}
	return edited, os.Remove(file.Name())
}

// runEditor runs the user's editor on a file and waits. The variable may hold arguments, as
// is the custom; where it holds shell syntax, the shell reads it.
func (a *app) runEditor(ctx context.Context, path string) error {
	editor := a.getenv("VISUAL")
	if editor == "" {
		editor = a.getenv("EDITOR")
	}
	if editor == "" {
		return fail(exitUsage, "set EDITOR, such as EDITOR=vi", "no editor is known")
	}
	if err := a.flush(); err != nil {
		return err
	}
	run := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "dlq", path)
	if runtime.GOOS == "windows" {
		words := strings.Fields(editor)
		run = exec.CommandContext(ctx, words[0], append(words[1:], path)...)
	}
	run.Stdin, run.Stdout, run.Stderr = a.in, a.screen, a.err
	if err := run.Run(); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		return fmt.Errorf("editor %s: %w", editor, err)
	}
	return nil
}

// oneMessage are the flags of the commands that work on a single message.
type oneMessage struct {
	place
	seq int64
	id  string
}

func (o *oneMessage) addFlags(fs *pflag.FlagSet) {
	o.place.addFlags(fs)
	fs.Int64Var(&o.seq, "seq", 0, "the message with this sequence `NUMBER`")
	fs.StringVar(&o.id, "id", "", "the message with this `ID`")
}

// find returns the one message that the flags name, whole.
func (o *oneMessage) find(ctx context.Context, a *app, arg string) (backends.EntityID, *message.Message, error) {
	id, err := o.place.id(arg)
	if err != nil {
		return id, nil, err
	}
	sel := resubmit.Selection{Limit: 2} // the second tells that an ID is not unique
	switch {
	case (o.seq != 0) == (o.id != ""):
		return id, nil, usagef("name one message with --seq or --id")
	case o.seq != 0:
		sel.Seqs = []int64{o.seq}
	default:
		sel.IDs = []string{o.id}
	}
	query, err := a.compile(sel)
	if err != nil {
		return id, nil, err
	}
	b, err := a.existing(ctx)
	if err != nil {
		return id, nil, err
	}
	if at, err := resubmit.Locate(ctx, b, id); err == nil { // else reading says what is wrong
		id = at
	}
	var found []*message.Message
	for m, err := range query.Select(ctx, b, id) {
		if err != nil {
			return id, nil, err
		}
		found = append(found, m)
	}
	switch len(found) {
	case 0:
		return id, nil, fail(exitNothing, "dlq peek shows what is there", "there is no such message in %s", id)
	case 1:
		return id, found[0], nil
	}
	return id, nil, usagef("several messages have the ID %q, such as %d and %d; name one with --seq",
		textview.Sanitise(o.id), found[0].Broker.SequenceNumber, found[1].Broker.SequenceNumber)
}
