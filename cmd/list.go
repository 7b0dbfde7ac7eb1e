package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/backends"
)

type listOptions struct {
	format format
	prefix string
}

func (o *listOptions) addFlags(fs *pflag.FlagSet) { addFormatFlag(fs, &o.format) }

func newListCommand(a *app) *cobra.Command {
	var opts listOptions
	c := a.command(about{
		use:   "list [PREFIX]",
		short: "list entities with their counts",
		long: `List queues, topics and subscriptions with how many messages they hold, since when the
oldest dead letter waits, and where the counts come from. A topic holds no messages but scheduled
ones: its other counts are the sums of its subscriptions, which follow it. IN FLIGHT is how
many are held by receivers, DELAYED how many by a delay of the queue; both are shown where
there are any. A queue of SQS has no dead letters of its own: DEAD LETTERS IN names the queue that
has them, as its active messages. PREFIX keeps the names that begin with it. A count that the
service does not tell is "?", and null in JSON.`,
		effects: "none",
		exits:   []exitCode{exitFailed, exitUsage, exitNothing},
		example: "dlq list\ndlq list -o json | jq '.[] | select(.deadLetter > 0)'",
	}, atMost(1), func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			opts.prefix = args[0]
		}
		return runList(c.Context(), a, opts)
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeEntity
	return c
}

// entityRow is a line of dlq list. Its keys are an interface: scripts rely on them.
type entityRow struct {
	Name               string              `json:"name"`
	Kind               backends.EntityKind `json:"kind"`
	Active             *int64              `json:"active"`
	DeadLetter         *int64              `json:"deadLetter"`
	TransferDeadLetter *int64              `json:"transferDeadLetter"`
	Scheduled          *int64              `json:"scheduled"`
	Deferred           *int64              `json:"deferred"`
	Delayed            *int64              `json:"delayed"`
	InFlight           *int64              `json:"inFlight"`
	Summed             bool                `json:"summed"`
	Oldest             *time.Time          `json:"oldest"`
	DeadLetters        *string             `json:"deadLetters"` // where they are; null: nowhere
	Sources            []string            `json:"sources"`     // whose dead letters come here
	Source             string              `json:"source"`
	AsOf               *time.Time          `json:"asOf"`
}

func newEntityRow(e backends.Entity) entityRow {
	row := entityRow{
		Name: e.ID.Name, Kind: e.Kind,
		Active: known(e.Counts.Active), DeadLetter: known(e.Counts.DeadLetter),
		TransferDeadLetter: known(e.Counts.TransferDeadLetter),
		Scheduled:          known(e.Counts.Scheduled), Deferred: known(e.Counts.Deferred),
		Delayed: known(e.Counts.Delayed), InFlight: known(e.Counts.InFlight), Summed: e.Counts.Summed,
		Oldest: moment(e.Oldest), Source: e.Counts.Source, AsOf: moment(e.Counts.AsOf),
		Sources: []string{},
	}
	if e.DeadLetters != (backends.EntityID{}) {
		where := e.DeadLetters.String()
		row.DeadLetters = &where
	}
	for _, id := range e.Sources {
		row.Sources = append(row.Sources, id.String())
	}
	return row
}

// known returns a count for JSON: null when the service does not tell it.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// moment returns a time for JSON, in UTC: null when there is none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func runList(ctx context.Context, a *app, opts listOptions) error {
	b, err := a.existing(ctx)
	if err != nil {
		return err
	}
	out := newListing(a, opts.format, a.entityColumns(), func(dst []byte, e backends.Entity) ([]byte, error) {
		return appendJSON(dst, newEntityRow(e))
	})
	if err := out.all(b.Entities(ctx, backends.EntityQuery{Prefix: opts.prefix})); err != nil {
		return err
	}
	switch {
	case out.rows > 0:
		return nil
	case opts.prefix != "":
		return fail(exitNothing, "", "no entity begins with %q", opts.prefix)
	}
	a.say("there are no entities yet; dlq send NAME makes a queue")
	return nil
}

func (a *app) entityColumns() []column[backends.Entity] {
	number := func(title string, get func(backends.Counts) int64) column[backends.Entity] {
		return column[backends.Entity]{
			title: title, right: true,
			cell: func(e backends.Entity) string { return count(get(e.Counts)) },
		}
	}
	some := func(title string, get func(backends.Counts) int64) column[backends.Entity] {
		return column[backends.Entity]{title: title, right: true, sparse: true, cell: func(e backends.Entity) string {
			if n := get(e.Counts); n > 0 {
				return count(n)
			}
			return ""
		}}
	}
	active := number("ACTIVE", func(c backends.Counts) int64 { return c.Active })
	active.colour = func(e backends.Entity) string {
		if len(e.Sources) > 0 && e.Counts.Active > 0 { // they are dead letters
			return red
		}
		return ""
	}
	dead := number("DEAD", func(c backends.Counts) int64 { return c.DeadLetter })
	dead.colour = func(e backends.Entity) string {
		if e.Counts.DeadLetter > 0 {
			return red
		}
		return ""
	}
	return []column[backends.Entity]{
		{title: "NAME", cell: func(e backends.Entity) string { return e.ID.Name }},
		{title: "KIND", cell: func(e backends.Entity) string { return string(e.Kind) }},
		active,
		dead,
		number("TRANSFER", func(c backends.Counts) int64 { return c.TransferDeadLetter }),
		number("SCHEDULED", func(c backends.Counts) int64 { return c.Scheduled }),
		number("DEFERRED", func(c backends.Counts) int64 { return c.Deferred }),
		some("DELAYED", func(c backends.Counts) int64 { return c.Delayed }),
		some("IN FLIGHT", func(c backends.Counts) int64 { return c.InFlight }),
		{title: "OLDEST", right: true, cell: func(e backends.Entity) string { return a.age(e.Oldest) }},
		{title: "DEAD LETTERS IN", sparse: true, cell: func(e backends.Entity) string {
			if e.DeadLetters.Sub != backends.Main {
				return "" // a part of the entity
			}
			return e.DeadLetters.Name
		}},
		{title: "COUNTS", cell: func(e backends.Entity) string { return e.Counts.Source }},
	}
}
