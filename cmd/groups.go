package cmd

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/resubmit"
)

func newGroupsCommand(a *app) *cobra.Command {
	var opts peekOptions
	c := a.command(about{
		use:   "groups ENTITY",
		short: "group dead letters by how they failed",
		long: `Group the dead letters that match by failure signature: the reason, and the description or
exception with numbers, GUIDs and paths as placeholders. The most frequent stand first. The
ID of a group selects it in every other command: --group ID.`,
		effects: "none: no lock is taken and no delivery is counted",
		exits:   []exitCode{exitFailed, exitUsage, exitNothing},
		example: "dlq groups orders\ndlq resubmit orders --group fddb37be",
	}, exactly("ENTITY"), func(c *cobra.Command, args []string) error {
		return runGroups(c.Context(), a, opts, c.Flags(), args[0])
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeEntity
	return c
}

// groupRow is a line of dlq groups. Its keys are an interface.
type groupRow struct {
	ID        string     `json:"id"`
	Count     int64      `json:"count"`
	Reason    string     `json:"reason"`
	Detail    string     `json:"detail"`
	First     *time.Time `json:"first"`
	Last      *time.Time `json:"last"`
	SampleSeq int64      `json:"sampleSeq"`
	SampleID  string     `json:"sampleId"`
}

func runGroups(ctx context.Context, a *app, opts peekOptions, fs *pflag.FlagSet, arg string) error {
	src, err := opts.open(ctx, a, fs, arg)
	if err != nil {
		return err
	}
	grouper := resubmit.NewGrouper()
	for m, err := range src.messages(ctx) {
		if err != nil {
			return err
		}
		grouper.Add(m)
	}
	out := newListing(a, opts.format, a.groupColumns(), func(dst []byte, g resubmit.Group) ([]byte, error) {
		return appendJSON(dst, groupRow{
			ID: g.ID, Count: g.Count, Reason: g.Reason, Detail: g.Detail,
			First: moment(g.First), Last: moment(g.Last), SampleSeq: g.SampleSeq, SampleID: g.SampleID,
		})
	})
	if err := out.all(succeeding(slices.Values(grouper.Groups()))); err != nil {
		return err
	}
	return src.end(a, out.rows)
}

func (a *app) groupColumns() []column[resubmit.Group] {
	return []column[resubmit.Group]{
		{title: "GROUP", cell: func(g resubmit.Group) string { return g.ID }},
		{title: "COUNT", right: true, cell: func(g resubmit.Group) string { return count(g.Count) }},
		{title: "FIRST", right: true, cell: func(g resubmit.Group) string { return a.age(g.First) }},
		{title: "LAST", right: true, cell: func(g resubmit.Group) string { return a.age(g.Last) }},
		{title: "SAMPLE", right: true, cell: func(g resubmit.Group) string { return count(g.SampleSeq) }},
		{title: "REASON", cell: func(g resubmit.Group) string { return g.Reason }, colour: func(resubmit.Group) string { return yellow }},
		{title: "DETAIL", cell: func(g resubmit.Group) string { return g.Detail }},
	}
}
