package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/export"
	"dlq/resubmit"
)

func newImportCommand(a *app) *cobra.Command {
	var to string
	c := a.command(about{
		use:   "import FILE --to ENTITY",
		short: "send the messages of an exported file",
		long: `Send the messages of a JSON lines or JSON file as dlq export writes them, equal in every byte and
type but for what the broker owns. FILE - is standard input. On local: a queue that does not
exist is made, with defaults.`,
		effects: "sends every message of the file; on local: perhaps a new queue",
		exits:   []exitCode{exitFailed, exitUsage, exitPartly, exitNothing},
		example: "dlq import orders.jsonl --to orders-copy",
	}, exactly("FILE"), func(c *cobra.Command, args []string) error {
		return runImport(c.Context(), a, args[0], to)
	})
	c.Flags().StringVar(&to, "to", "", "send to this `ENTITY`")
	return c
}

func runImport(ctx context.Context, a *app, name, to string) error {
	if to == "" {
		return usagef("--to ENTITY is missing")
	}
	id, err := recipient("--to", to)
	if err != nil {
		return err
	}
	var in io.Reader
	if name == "-" {
		in = untilDone(ctx, a.in)
	} else {
		file, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			return usagef("%w", err)
		} else if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	b, err := a.backend(ctx)
	if err != nil {
		return err
	}
	im := importer{a: a, b: b, id: id, in: export.NewReader(in)}
	if err := im.look(ctx); err != nil {
		return err
	}
	return im.finish(im.run(ctx))
}

// importer sends what a file holds, batch by batch.
type importer struct {
	a  *app
	b  backends.Backend
	id backends.EntityID
	in *export.Reader
	// renew is the system attribute by which the entity recognises what it has had, and drops it:
	// messages get a new one. "": none.
	renew string

	read, sent, refused int64
}

// look finds out whether the entity would drop what it has had before.
func (im *importer) look(ctx context.Context) error {
	e, err := resubmit.Find(ctx, im.b, im.id)
	if backends.IsCode(err, backends.NotFound) {
		return nil // the first send says so, or makes it
	}
	if err != nil || e.Deduplication.Window == 0 {
		return err
	}
	if im.renew = e.Deduplication.Attribute; im.renew == "" {
		im.a.say("%s detects duplicates: a message whose id it has had within %v is dropped", im.id, e.Deduplication.Window)
		return nil
	}
	im.a.say("%s detects duplicates: messages get a new %s", im.id, im.renew)
	return nil
}

// anew gives a message a new deduplication id.
func (im *importer) anew(m *message.Message) {
	fresh := message.Attribute{Name: im.renew, Value: message.String(message.RandomUUID().String())}
	m.System = slices.DeleteFunc(slices.Clone(m.System), func(a message.Attribute) bool { return a.Name == im.renew })
	m.System = append(m.System, fresh)
}

// The bounds of a batch: what one commit takes easily.
const (
	importBatch = 200
	importBytes = 1 << 20
)

func (im *importer) run(ctx context.Context) error {
	for {
		batch, err := im.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := im.send(ctx, batch); err != nil {
			return err
		}
	}
}

// next reads one batch; io.EOF comes with the empty one.
func (im *importer) next() ([]*message.Message, error) {
	var batch []*message.Message
	for bytes := 0; len(batch) < importBatch && bytes < importBytes; {
		m, err := im.in.Read()
		if errors.Is(err, io.EOF) && len(batch) > 0 {
			return batch, nil
		}
		if err != nil {
			return nil, err
		}
		im.read++
		if m.Broker.BodyOmitted {
			return nil, fmt.Errorf("message %d of the file was exported without its body; export it again", im.read)
		}
		if im.renew != "" {
			im.anew(m)
		}
		batch = append(batch, m)
		bytes += m.Body.Len()
	}
	return batch, nil
}

// send sends a batch, and goes on when single messages are refused. Those that were not tried
// for the sake of a refused one are sent again without it.
func (im *importer) send(ctx context.Context, batch []*message.Message) error {
	numbers := make([]int64, len(batch)) // of the messages in the file
	for i := range numbers {
		numbers[i] = im.read - int64(len(batch)-1-i)
	}
	for len(batch) > 0 {
		err := im.b.Send(ctx, im.id, batch)
		if backends.IsCode(err, backends.NotFound) {
			if err = im.a.createQueue(ctx, im.b, im.id, err); err == nil {
				err = im.b.Send(ctx, im.id, batch)
			}
		}
		var single *backends.BatchError
		if err != nil && !errors.As(err, &single) || backends.IsCode(err, backends.NotTried) {
			return err
		}
		tried := batch
		batch = nil
		for i, err := range backends.ItemErrors(err, len(tried)) {
			switch {
			case err == nil:
				im.sent++
			case backends.IsCode(err, backends.NotTried):
				numbers[len(batch)] = numbers[i]
				batch = append(batch, tried[i])
			default:
				im.refused++
				im.a.say("message %d of the file was not sent: %v", numbers[i], err)
			}
		}
	}
	return nil
}

// finish says how far it came.
func (im *importer) finish(err error) error {
	if im.sent > 0 {
		im.a.say("%s sent to %s", plural(im.sent, "message"), im.id)
	}
	switch {
	case err != nil && im.sent > 0 && !errors.Is(err, context.Canceled):
		return fail(exitPartly, "", "the rest was not sent: %w", err)
	case err != nil:
		return err
	case im.refused > 0:
		return fail(exitPartly, "", "%s of %d refused", plural(im.refused, "message"), im.read)
	case im.sent == 0:
		return fail(exitNothing, "", "there is no message in the file")
	}
	return nil
}
