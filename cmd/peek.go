package cmd

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/backends/message"
	"dlq/export"
	"dlq/resubmit"
)

type peekOptions struct {
	source
	format format
}

func (o *peekOptions) addFlags(fs *pflag.FlagSet) {
	o.source.addFlags(fs)
	addFormatFlag(fs, &o.format)
}

func newPeekCommand(a *app) *cobra.Command {
	var opts peekOptions
	c := a.command(about{
		use:   "peek ENTITY",
		short: "list dead letters that match",
		long: `List the dead letters of an entity in the order of their sequence numbers: all of them, or those
that the selection keeps. Rows are written as they are read, at the same memory for any depth.`,
		effects: "none: no lock is taken and no delivery is counted",
		exits:   []exitCode{exitFailed, exitUsage, exitNothing},
		example: "dlq peek orders --reason 'Max%' --since 2h\ndlq peek orders --where \"tenant = 'acme' AND body LIKE '%timeout%'\" -o jsonl | jq .messageId",
	}, exactly("ENTITY"), func(c *cobra.Command, args []string) error {
		return runPeek(c.Context(), a, opts, c.Flags(), args[0])
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeEntity
	return c
}

func runPeek(ctx context.Context, a *app, opts peekOptions, fs *pflag.FlagSet, arg string) error {
	src, err := opts.open(ctx, a, fs, arg)
	if err != nil {
		return err
	}
	columns := a.deadLetterColumns()
	if opts.active {
		columns = a.receivedColumns()
	}
	out := newListing(a, opts.format, columns, export.AppendJSON)
	if err := out.all(src.messages(ctx)); err != nil {
		return err
	}
	return src.end(a, out.rows)
}

// The columns of messages, by name.

func (a *app) deadLetterColumns() []column[*message.Message] {
	return []column[*message.Message]{
		seqColumn(), a.ageColumn(),
		{title: "REASON", cell: (*message.Message).DeadLetterReason, colour: func(*message.Message) string { return yellow }},
		{title: "FROM", sparse: true, cell: func(m *message.Message) string { return m.Broker.DeadLetterSource }},
		idColumn(), sizeColumn(),
		{title: "CAUSE", cell: cause},
	}
}

// reasonMaxDeliveries begins the reason of a message that was delivered too often: Service Bus
// writes it as it stands, its documentation with "ExceptionMessage" behind it.
const reasonMaxDeliveries = "MaxDeliveryCountExceeded"

// cause returns the description of a dead letter. Where the broker gave it up after too many
// deliveries it says nothing, and the consumer's exception is shown if the headers have one.
func cause(m *message.Message) string {
	if strings.HasPrefix(m.DeadLetterReason(), reasonMaxDeliveries) {
		if detail := resubmit.SignatureOf(m).Detail; detail != "" {
			return detail
		}
	}
	return m.DeadLetterDescription()
}

func (a *app) receivedColumns() []column[*message.Message] {
	return []column[*message.Message]{
		seqColumn(), a.ageColumn(),
		{title: "STATE", cell: func(m *message.Message) string { return m.Broker.State.String() }},
		{title: "DELIVERIES", right: true, cell: func(m *message.Message) string {
			return strconv.FormatUint(uint64(m.Broker.DeliveryCount), 10)
		}},
		idColumn(), sizeColumn(),
		{title: "BODY", cell: preview},
	}
}

func seqColumn() column[*message.Message] {
	return column[*message.Message]{title: "SEQ", right: true, cell: func(m *message.Message) string {
		return strconv.FormatInt(m.Broker.SequenceNumber, 10)
	}}
}

func (a *app) ageColumn() column[*message.Message] {
	return column[*message.Message]{title: "AGE", right: true, cell: func(m *message.Message) string {
		return a.age(m.Broker.EnqueuedTime)
	}}
}

func idColumn() column[*message.Message] {
	return column[*message.Message]{title: "ID", cell: func(m *message.Message) string { return message.FormatValue(m.ID) }}
}

func sizeColumn() column[*message.Message] {
	return column[*message.Message]{title: "SIZE", right: true, cell: func(m *message.Message) string { return size(bodySize(m)) }}
}

// bodySize returns the size of a body that may have been left out.
func bodySize(m *message.Message) int64 {
	if m.Broker.BodyOmitted {
		return m.Broker.BodySize
	}
	return int64(m.Body.Len())
}

// size writes a number of bytes in the largest unit that leaves at least one.
func size(n int64) string {
	units := "KMGT"
	if n < 1024 {
		return strconv.FormatInt(n, 10)
	}
	f := float64(n) / 1024
	i := 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + units[i:i+1]
}
