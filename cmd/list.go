package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/backends"
	"dlq/resubmit"
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
has them, as its active messages, and how many those are; "shared" if it has those of other queues,
too. PREFIX keeps the names that begin with it. A count that the
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
	out := newListing(a, opts.format, a.entityColumns(nil), func(dst []byte, e backends.Entity) ([]byte, error) {
		return appendJSON(dst, newEntityRow(e))
	})
	var all []backends.Entity
	for e, err := range b.Entities(ctx, backends.EntityQuery{Prefix: opts.prefix}) {
		if err != nil {
			return errors.Join(out.all(succeeding(slices.Values(all))), err)
		}
		all = append(all, e)
	}
	if opts.format == table {
		elsewhere, err := deadElsewhere(ctx, b, all)
		if err != nil {
			return err
		}
		out.columns = a.entityColumns(elsewhere)
	}
	if err := out.all(succeeding(slices.Values(all))); err != nil {
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

// deadElsewhere returns the queues that the redrive policies of these entities name: the dead
// letters are their active messages.
func deadElsewhere(ctx context.Context, b backends.Backend, of []backends.Entity) (map[backends.EntityID]backends.Entity, error) {
	listed := make(map[backends.EntityID]backends.Entity, len(of))
	for _, e := range of {
		listed[e.ID] = e
	}
	found := map[backends.EntityID]backends.Entity{}
	for _, e := range of {
		id := e.DeadLetters
		if _, looked := found[id]; looked || id.Sub != backends.Main || id.Name == "" {
			continue
		}
		there, ok := listed[id]
		if !ok { // PREFIX has left it out
			var err error
			if there, err = resubmit.Find(ctx, b, id); err != nil {
				if code, _ := backends.CodeOf(err); code != backends.NotFound {
					return nil, err
				}
				continue // the policy names a queue that is gone
			}
		}
		found[id] = there
	}
	return found, nil
}

// deadLettersIn names the queue that has the dead letters of e, and says how many it holds.
func deadLettersIn(e backends.Entity, elsewhere map[backends.EntityID]backends.Entity) string {
	if e.DeadLetters.Sub != backends.Main {
		return "" // a part of the entity
	}
	there, ok := elsewhere[e.DeadLetters]
	switch {
	case !ok:
		return e.DeadLetters.Name
	case len(there.Sources) > 1:
		return fmt.Sprintf("%s (%s, shared)", e.DeadLetters.Name, count(there.Counts.Active))
	}
	return fmt.Sprintf("%s (%s)", e.DeadLetters.Name, count(there.Counts.Active))
}

func (a *app) entityColumns(elsewhere map[backends.EntityID]backends.Entity) []column[backends.Entity] {
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
			return deadLettersIn(e, elsewhere)
		}},
		{title: "COUNTS", cell: func(e backends.Entity) string { return e.Counts.Source }},
	}
}
