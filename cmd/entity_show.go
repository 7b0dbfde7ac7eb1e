package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dlq/backends"
	"dlq/backends/message"
)

func newEntityShowCommand(a *app) *cobra.Command {
	var f format
	c := a.command(about{
		use:   "show NAME",
		short: "list the properties and rules of an entity",
		long: `List the properties of an entity with their values, defaults and ranges, and the rules of a
subscription. A star marks what is not as by default; what is fixed cannot be changed after the
entity was made.`,
		effects: "none",
		exits:   []exitCode{exitFailed, exitUsage},
		example: "dlq entity show orders\ndlq entity show orders -o jsonl | jq -r .properties.LockDuration.value",
	}, exactly("NAME"), func(c *cobra.Command, args []string) error {
		return runEntityShow(c.Context(), a, f, args[0])
	})
	addFormatFlag(c.Flags(), &f)
	c.ValidArgsFunction = a.completeEntity
	return c
}

func runEntityShow(ctx context.Context, a *app, f format, arg string) error {
	id, err := wholeEntity(arg)
	if err != nil {
		return err
	}
	admin, err := a.administration(ctx, true)
	if err != nil {
		return err
	}
	d, err := admin.DescribeEntity(ctx, id)
	if err != nil {
		return err
	}
	if f != table {
		out := newListing(a, f, nil, func(dst []byte, d backends.EntityDescription) ([]byte, error) {
			return appendJSON(dst, newEntitySheet(d))
		})
		return out.all(succeeding(slices.Values([]backends.EntityDescription{d})))
	}
	heading := fmt.Sprintf("%s %s", d.Kind, d.ID)
	if !d.Created.IsZero() {
		heading += ", created " + a.age(d.Created) + " ago"
	}
	a.printHeading(heading)
	a.out.WriteByte('\n')
	if err := newListing(a, table, propertyColumns(), nil).all(succeeding(slices.Values(d.Properties))); err != nil {
		return err
	}
	if d.Kind != backends.Subscription {
		return nil
	}
	a.out.WriteByte('\n')
	if len(d.Rules) == 0 {
		a.println("no rules: nothing is let through")
	}
	return newListing(a, table, ruleColumns(), nil).all(succeeding(slices.Values(d.Rules)))
}

// entitySheet is what dlq entity show writes as JSON. Its keys are an interface: scripts rely
// on them.
type entitySheet struct {
	Name       string                   `json:"name"`
	Kind       backends.EntityKind      `json:"kind"`
	Created    *time.Time               `json:"created"`
	Modified   *time.Time               `json:"modified"`
	Properties map[string]propertySheet `json:"properties"`
	Rules      []ruleSheet              `json:"rules,omitempty"`
}

type propertySheet struct {
	Value     string `json:"value"`
	Default   string `json:"default"`
	Range     string `json:"range"`
	Immutable bool   `json:"immutable"`
}

type ruleSheet struct {
	Name        string   `json:"name"`
	Filter      string   `json:"filter,omitempty"`
	Correlation []string `json:"correlation,omitempty"`
	Action      string   `json:"action,omitempty"`
}

func newEntitySheet(d backends.EntityDescription) entitySheet {
	s := entitySheet{
		Name: d.ID.Name, Kind: d.Kind, Created: moment(d.Created), Modified: moment(d.Modified),
		Properties: map[string]propertySheet{},
	}
	for _, p := range d.Properties {
		s.Properties[p.Name] = propertySheet{p.Value, p.Default, p.Range, p.Immutable}
	}
	for _, r := range d.Rules {
		s.Rules = append(s.Rules, ruleSheet{r.Name, r.Filter, correlationTexts(r), r.Action})
	}
	return s
}

func propertyColumns() []column[backends.Property] {
	return []column[backends.Property]{
		{title: " ", cell: func(p backends.Property) string {
			if p.Value != p.Default {
				return "*"
			}
			return " "
		}},
		{title: "NAME", cell: func(p backends.Property) string { return p.Name }},
		{title: "VALUE", cell: func(p backends.Property) string { return orDash(p.Value) }, colour: func(p backends.Property) string {
			if p.Value != p.Default {
				return bold
			}
			return ""
		}},
		{title: "DEFAULT", cell: func(p backends.Property) string { return orDash(p.Default) }},
		{title: "RANGE", cell: func(p backends.Property) string {
			if p.Immutable {
				return p.Range + " (fixed)"
			}
			return p.Range
		}},
	}
}

func orDash(value string) string {
	if value == "" {
		return "-"
	}
	return value
}

func ruleColumns() []column[backends.Rule] {
	return []column[backends.Rule]{
		{title: "RULE", cell: func(r backends.Rule) string { return r.Name }},
		{title: "LETS THROUGH", cell: func(r backends.Rule) string {
			switch {
			case r.Filter != "":
				return r.Filter
			case len(r.Correlation) > 0:
				return strings.Join(correlationTexts(r), " and ")
			}
			return "everything"
		}},
		{title: "ACTION", cell: func(r backends.Rule) string { return r.Action }, sparse: true},
	}
}

// correlationTexts writes a correlation filter as --correlation reads it.
func correlationTexts(r backends.Rule) []string {
	var out []string
	for _, p := range r.Correlation {
		kind := message.KindOf(p.Value)
		name := p.Name
		if kind != message.KindString || strings.Contains(name, ":") {
			name += ":" + kind.String()
		}
		out = append(out, name+"="+message.FormatValue(p.Value))
	}
	return out
}

// completeSetting offers the entity, then its properties that can be changed.
func (a *app) completeSetting(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeEntity(c, args, prefix)
	}
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	ctx, cancel := context.WithTimeout(c.Context(), completionBound)
	defer cancel()
	id, err := wholeEntity(args[0])
	if err != nil {
		return nil, directive
	}
	admin, err := a.administration(ctx, true)
	if err != nil {
		return nil, directive
	}
	d, err := admin.DescribeEntity(ctx, id)
	if err != nil {
		return nil, directive
	}
	var names []string
	for _, p := range d.Properties {
		if !p.Immutable && strings.HasPrefix(strings.ToLower(p.Name), strings.ToLower(prefix)) {
			names = append(names, p.Name+"=")
		}
	}
	return names, directive
}
