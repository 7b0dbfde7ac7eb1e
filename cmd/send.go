package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/backends"
	"dlq/backends/broker"
	"dlq/backends/message"
)

type sendOptions struct {
	body        string
	hasBody     bool
	bodyFile    string
	set         []string
	id          string
	session     string
	hasSession  bool
	ttl         time.Duration
	delay       time.Duration
	contentType string
	dedupID     string
}

func (o *sendOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.body, "body", "", "the body as `TEXT`")
	fs.StringVar(&o.bodyFile, "body-file", "", "the body from a `FILE`; - is standard input")
	fs.StringArrayVar(&o.set, "set", nil, "an application property `NAME[:TYPE]=VALUE`, such as n:int=5 or, on SQS, n:sqs:Number=0.50 (repeatable)")
	fs.StringVar(&o.id, "id", "", "the message `ID` (default a new UUID)")
	fs.StringVar(&o.session, "session", "", "the session `ID`; on SQS the message group")
	fs.StringVar(&o.dedupID, "deduplication-id", "", "the `ID` by which a FIFO queue of SQS knows a message again")
	fs.DurationVar(&o.ttl, "ttl", 0, "the time to live, such as 30s (`DURATION`)")
	fs.DurationVar(&o.delay, "delay", 0, "let it appear only after this `DURATION`")
	fs.StringVar(&o.contentType, "content-type", "", "the content `TYPE`, such as application/json")
}

func newSendCommand(a *app) *cobra.Command {
	var opts sendOptions
	c := a.command(about{
		use:   "send ENTITY",
		short: "put a message into a queue or topic",
		long: `Send one message. Its body is --body, the file of --body-file, or standard input. The message ID
is written to standard output. On local: a queue that does not exist is made, with defaults.`,
		effects: "one message more; on local: perhaps a new queue",
		exits:   []exitCode{exitFailed, exitUsage},
		example: "dlq send orders --body '{\"id\": 7}' --content-type application/json --set tenant=acme --set n:int=5\ndlq send orders --session s-1 --ttl 30s < body.bin\ndlq send orders.fifo --session tea --deduplication-id 17 --body '{}'",
	}, exactly("ENTITY"), func(c *cobra.Command, args []string) error {
		opts.hasBody, opts.hasSession = c.Flags().Changed("body"), c.Flags().Changed("session")
		return runSend(c.Context(), a, opts, args[0])
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeEntity
	return c
}

func runSend(ctx context.Context, a *app, opts sendOptions, arg string) error {
	id, err := recipient("ENTITY", arg)
	if err != nil {
		return err
	}
	m, err := opts.message(ctx, a)
	if err != nil {
		return err
	}
	b, err := a.backend(ctx)
	if err != nil {
		return err
	}
	msgs := []*message.Message{m}
	err = b.Send(ctx, id, msgs)
	if backends.IsCode(err, backends.NotFound) {
		if err = a.createQueue(ctx, b, id, err); err == nil {
			err = b.Send(ctx, id, msgs)
		}
	}
	if err != nil {
		return err
	}
	a.println(message.FormatValue(m.ID))
	return nil
}

// createQueue makes the queue that an operation has missed, where the backend can, and says
// so; else it returns the error of the operation.
func (a *app) createQueue(ctx context.Context, b backends.Backend, id backends.EntityID, missed error) error {
	creator, ok := backends.As[backends.QueueCreator](b)
	if !ok || id.Sub != backends.Main {
		return missed
	}
	if err := creator.CreateQueue(ctx, id.Name); err != nil && !backends.IsCode(err, backends.AlreadyExists) {
		return err
	}
	a.say("queue %s did not exist and was created with defaults", id.Name)
	return nil
}

// message builds what the flags describe.
func (o *sendOptions) message(ctx context.Context, a *app) (*message.Message, error) {
	m := &message.Message{ID: message.String(o.id)}
	if o.id == "" {
		m.ID = message.String(message.RandomUUID().String())
	}
	for _, s := range o.set {
		p, err := message.ParseProperty(s)
		if err != nil {
			return nil, usagef("--set: %w", err)
		}
		m.Properties.Set(p.Name, p.Value)
	}
	if o.hasSession {
		m.SessionID = &o.session
	}
	if o.dedupID != "" {
		m.System = append(m.System, message.Attribute{Name: broker.DeduplicationIDAttribute, Value: message.String(o.dedupID)})
	}
	if o.contentType != "" {
		m.ContentType = &o.contentType
	}
	switch {
	case o.ttl < 0 || o.delay < 0:
		return nil, usagef("--ttl and --delay cannot be negative")
	case o.ttl > 0 && o.ttl < time.Millisecond:
		return nil, usagef("--ttl %v: want at least a millisecond, the unit it is sent in", o.ttl)
	case o.ttl > 0:
		ttl := o.ttl.Truncate(time.Millisecond)
		m.TTL = &ttl
	}
	if o.delay > 0 {
		at := a.now().Add(o.delay).UTC()
		m.ScheduledEnqueueTime = &at
	}
	body, err := o.readBody(ctx, a)
	if err != nil {
		return nil, err
	}
	m.Body = message.DataBody(body)
	return m, nil
}

func (o *sendOptions) readBody(ctx context.Context, a *app) ([]byte, error) {
	switch {
	case o.hasBody && o.bodyFile != "":
		return nil, usagef("--body and --body-file exclude each other")
	case o.hasBody:
		return []byte(o.body), nil
	case o.bodyFile != "" && o.bodyFile != "-":
		return readFile(o.bodyFile)
	case a.inTTY:
		a.say("reading the body from the terminal; end it with Ctrl-D")
	}
	b, err := io.ReadAll(untilDone(ctx, a.in))
	if err != nil {
		return nil, fmt.Errorf("read the body from standard input: %w", err)
	}
	return b, nil
}

// readFile reads a file that a flag named: that it is not there is wrong usage.
func readFile(name string) ([]byte, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usagef("%w", err)
	}
	return b, err
}
