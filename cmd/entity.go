package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/backends"
	"dlq/backends/message"
)

func newEntityCommand(a *app) *cobra.Command {
	c := a.command(about{
		use:   "entity create|show|set|delete NAME",
		short: "make, describe, change and delete queues, topics and subscriptions",
		long: `Make, describe, change and delete queues, topics, subscriptions and their rules. Properties have
the names of the service: those of Azure Service Bus, or with --dialect sqs those of Amazon SQS.
A subscription is named topic/Subscriptions/name, or in short topic/name.`,
		effects: "none by itself",
		exits:   []exitCode{exitFailed, exitUsage},
	}, unknownCommand, func(c *cobra.Command, _ []string) error {
		a.printHelp(c)
		return nil
	})
	c.AddCommand(newEntityCreateCommand(a), newEntityShowCommand(a), newEntitySetCommand(a), newEntityDeleteCommand(a))
	return c
}

// administration returns what entities are administered with, where the backend can.
func (a *app) administration(ctx context.Context, existing bool) (backends.EntityAdmin, error) {
	b, err := a.openOnce(ctx, existing)
	if err != nil {
		return nil, err
	}
	admin, ok := backends.As[backends.EntityAdmin](b)
	if !ok {
		return nil, fail(exitFailed, "", "this connection cannot administer entities")
	}
	return admin, nil
}

// asUsage makes wrong usage of what the service finds wrong in an argument.
func asUsage(err error, hint string) error {
	if backends.IsCode(err, backends.Invalid) {
		return fail(exitUsage, hint, "%w", err)
	}
	return err
}

// wholeEntity reads the name of an entity that is not to be a sub-queue.
func wholeEntity(arg string) (backends.EntityID, error) {
	id, err := entity(arg)
	if err == nil && id.Sub != backends.Main {
		return id, usagef("%q comes and goes with %s, which is the entity", arg, id.Name)
	}
	return id, err
}

// settings reads NAME=VALUE arguments.
func settings(args []string) ([]backends.Setting, error) {
	out := make([]backends.Setting, 0, len(args))
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, usagef("%q: want PROPERTY=VALUE, such as MaxDeliveryCount=5", arg)
		}
		out = append(out, backends.Setting{Name: name, Value: value})
	}
	return out, nil
}

// ruleFlags describe one rule.
type ruleFlags struct {
	name        string
	filter      string
	correlation []string
	action      string
}

// addFlags adds the flags, with the name that the rule's own has for this command.
func (o *ruleFlags) addFlags(fs *pflag.FlagSet, flag, usage string) {
	fs.StringVar(&o.name, flag, "", usage)
	fs.StringVar(&o.filter, "filter", "", "what the rule lets through: a SQL `EXPR` such as \"tenant = 'acme'\" (default everything)")
	fs.StringArrayVar(&o.correlation, "correlation", nil, "what it lets through, as a `NAME[:TYPE]=VALUE` such as sys.Label=paid (repeatable: all of them)")
	fs.StringVar(&o.action, "action", "", "how it changes what it lets through: SQL `STATEMENTS` such as \"SET priority = 1\"")
}

// rule returns the rule that the flags describe, if they describe one.
func (o *ruleFlags) rule(flag string) ([]backends.Rule, error) {
	r := backends.Rule{Name: o.name, Filter: o.filter, Action: o.action}
	for _, text := range o.correlation {
		p, err := message.ParseProperty(text)
		if err != nil {
			return nil, usagef("--correlation: %w", err)
		}
		r.Correlation = append(r.Correlation, p)
	}
	switch {
	case r.Name == "" && (r.Filter != "" || r.Action != "" || len(r.Correlation) > 0):
		return nil, usagef("--filter, --correlation and --action describe a rule: name it with --%s", flag)
	case r.Name == "":
		return nil, nil
	case r.Filter != "" && len(r.Correlation) > 0:
		return nil, usagef("--filter and --correlation exclude each other")
	}
	return []backends.Rule{r}, nil
}

type entityCreateOptions struct {
	ruleFlags
	kind    string
	dialect string
}

func (o *entityCreateOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kind, "kind", "", "`KIND`: queue, topic or subscription (default subscription behind the name of a topic, else queue)")
	fs.StringVar(&o.dialect, "dialect", "", "whose properties a queue has: `servicebus|sqs` (default servicebus)")
	o.ruleFlags.addFlags(fs, "rule", "`NAME` of a rule for a new subscription, in place of the one that lets everything through")
}

func newEntityCreateCommand(a *app) *cobra.Command {
	var opts entityCreateOptions
	c := a.command(about{
		use:   "create NAME [PROPERTY=VALUE]...",
		short: "make a queue, topic or subscription",
		long: `Make an entity. What is not set has the service's default; dlq entity show lists what there is.
Durations are written as 30s, 5m, PT30S or P14D, sizes with or without a unit. A new
subscription receives everything, or what its --rule lets through; dlq entity set adds more rules.

With --dialect sqs a queue's dead letters go to another queue, which RedrivePolicy names, after so
many receives: RedrivePolicy=orders-dlq:5, or as JSON. A FIFO queue has FifoQueue=true and
a name that ends in .fifo.`,
		effects: "a new entity",
		exits:   []exitCode{exitFailed, exitUsage},
		example: `dlq entity create orders MaxDeliveryCount=5 LockDuration=30s
dlq entity create billing --kind topic
dlq entity create billing/invoices --rule big --filter 'total > 1000' --action 'SET urgent = TRUE'
dlq entity create orders-dlq --dialect sqs
dlq entity create orders --dialect sqs VisibilityTimeout=45 RedrivePolicy=orders-dlq:5`,
	}, entityAndSettings, func(c *cobra.Command, args []string) error {
		return runEntityCreate(c.Context(), a, opts, args)
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = cobra.NoFileCompletions
	for flag, words := range map[string][]string{"kind": {"queue", "topic", "subscription"}, "dialect": {"servicebus", "sqs"}} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there
	}
	return c
}

// entityAndSettings takes the name of an entity and any number of settings.
func entityAndSettings(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("NAME is missing")
	}
	return nil
}

func runEntityCreate(ctx context.Context, a *app, opts entityCreateOptions, args []string) error {
	id, err := wholeEntity(args[0])
	if err != nil {
		return err
	}
	e := backends.NewEntity{ID: id, Kind: backends.EntityKind(strings.ToLower(opts.kind))}
	switch e.Kind {
	case "", backends.Queue, backends.Topic, backends.Subscription:
	default:
		return usagef("--kind %q: want queue, topic or subscription", opts.kind)
	}
	if e.Settings, err = settings(args[1:]); err != nil {
		return err
	}
	if opts.dialect != "" {
		e.Settings = append([]backends.Setting{{Name: "Dialect", Value: opts.dialect}}, e.Settings...)
	}
	if e.Rules, err = opts.rule("rule"); err != nil {
		return err
	}
	admin, err := a.administration(ctx, false)
	if err != nil {
		return err
	}
	d, err := admin.CreateEntity(ctx, e)
	if err != nil {
		return asUsage(err, "dlq entity show of a like one lists what can be set")
	}
	a.say("%s %s created", d.Kind, d.ID)
	if d.Kind == backends.Topic {
		a.say("what is sent to it goes to its subscriptions: dlq entity create %s/NAME makes one", d.ID)
	}
	return nil
}

type entitySetOptions struct {
	ruleFlags
	remove []string
}

func (o *entitySetOptions) addFlags(fs *pflag.FlagSet) {
	o.ruleFlags.addFlags(fs, "add-rule", "`NAME` of a rule to add to a subscription")
	fs.StringArrayVar(&o.remove, "remove-rule", nil, "`NAME` of a rule to remove, such as '$Default' (repeatable)")
}

func newEntitySetCommand(a *app) *cobra.Command {
	var opts entitySetOptions
	c := a.command(about{
		use:   "set NAME PROPERTY=VALUE...",
		short: "change properties and rules",
		long: `Change properties of an entity, all that are named or none, and rules of a subscription. A rule is
added before another is removed, so that nothing slips through between; one that is to be
replaced under its own name is removed first.`,
		effects: "how the entity treats its messages from now on",
		exits:   []exitCode{exitFailed, exitUsage, exitPartly},
		example: `dlq entity set orders MaxDeliveryCount=20
dlq entity set orders Status=SendDisabled
dlq entity set billing/invoices --add-rule acme --correlation tenant=acme --remove-rule '$Default'`,
	}, entityAndSettings, func(c *cobra.Command, args []string) error {
		return runEntitySet(c.Context(), a, opts, args)
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeSetting
	return c
}

func runEntitySet(ctx context.Context, a *app, opts entitySetOptions, args []string) error {
	id, err := wholeEntity(args[0])
	if err != nil {
		return err
	}
	changes, err := settings(args[1:])
	if err != nil {
		return err
	}
	rules, err := opts.rule("add-rule")
	if err != nil {
		return err
	}
	if len(changes) == 0 && len(rules) == 0 && len(opts.remove) == 0 {
		return usagef("nothing to change: write PROPERTY=VALUE, --add-rule or --remove-rule")
	}
	admin, err := a.administration(ctx, true)
	if err != nil {
		return err
	}
	before, err := admin.DescribeEntity(ctx, id)
	if err != nil {
		return err
	}
	id = before.ID
	done := 0
	for _, step := range setSteps(a, admin, before, changes, rules, opts.remove) {
		if err := step(ctx); err != nil {
			show := "dlq entity show " + id.Name
			if done > 0 {
				return fail(exitPartly, show+" tells where it is now", "%w", err)
			}
			return asUsage(err, show+" lists what can be set")
		}
		done++
	}
	return nil
}

// setSteps are the calls that a set consists of, each of which says what it has done.
func setSteps(a *app, admin backends.EntityAdmin, before backends.EntityDescription, changes []backends.Setting, rules []backends.Rule, remove []string) []func(context.Context) error {
	id := before.ID
	var steps, removals []func(context.Context) error
	if len(changes) > 0 {
		steps = append(steps, func(ctx context.Context) error {
			if err := admin.ChangeEntity(ctx, id, changes...); err != nil {
				return err
			}
			return a.sayChanges(ctx, admin, before)
		})
	}
	for _, name := range remove {
		removal := func(ctx context.Context) error {
			if err := admin.RemoveRule(ctx, id, name); err != nil {
				return err
			}
			a.say("rule %s removed from %s", name, id)
			return nil
		}
		if len(rules) > 0 && strings.EqualFold(name, rules[0].Name) {
			steps = append(steps, removal)
		} else {
			removals = append(removals, removal)
		}
	}
	for _, r := range rules {
		steps = append(steps, func(ctx context.Context) error {
			if err := admin.AddRule(ctx, id, r); err != nil {
				return err
			}
			a.say("rule %s added to %s", r.Name, id)
			return nil
		})
	}
	return append(steps, removals...)
}

// sayChanges says what is different from before.
func (a *app) sayChanges(ctx context.Context, admin backends.EntityAdmin, before backends.EntityDescription) error {
	after, err := admin.DescribeEntity(ctx, before.ID)
	if err != nil {
		return err
	}
	old := map[string]string{}
	for _, p := range before.Properties {
		old[p.Name] = p.Value
	}
	same := true
	for _, p := range after.Properties {
		if was := old[p.Name]; was != p.Value {
			same = false
			a.say("%s: %s is now %s, was %s", after.ID, p.Name, orNone(p.Value), orNone(was))
		}
	}
	if same {
		a.say("%s: nothing was changed, it has been so before", after.ID)
	}
	return nil
}

// orNone writes an empty value as a word.
func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

type entityDeleteOptions struct {
	yes   bool
	force bool
}

func (o *entityDeleteOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVarP(&o.yes, "yes", "y", false, "do it without asking")
	fs.BoolVar(&o.force, "force", false, "delete it with the messages it holds")
}

func newEntityDeleteCommand(a *app) *cobra.Command {
	var opts entityDeleteOptions
	c := a.command(about{
		use:   "delete NAME",
		short: "delete an entity, a topic with its subscriptions",
		long: `Delete an entity. One that holds messages is refused unless --force: they go with it, dead letters too,
and no job brings them back. dlq export saves them first.`,
		effects: "the entity is gone, with --force all its messages too; what forwarded to it keeps its messages in a transfer dead-letter queue",
		exits:   []exitCode{exitFailed, exitUsage, exitRefused},
		example: "dlq entity delete orders\ndlq entity delete billing/invoices --force --yes",
	}, exactly("NAME"), func(c *cobra.Command, args []string) error {
		return runEntityDelete(c.Context(), a, opts, args[0])
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeEntity
	return c
}

func runEntityDelete(ctx context.Context, a *app, opts entityDeleteOptions, arg string) error {
	id, err := wholeEntity(arg)
	if err != nil {
		return err
	}
	if !opts.yes && !a.interactive() {
		return fail(exitRefused, "--yes does it", "there is no terminal to ask for a confirmation")
	}
	admin, err := a.administration(ctx, true)
	if err != nil {
		return err
	}
	e, subscriptions, err := a.withSubscriptions(ctx, id)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s %s", e.Kind, e.ID)
	if subscriptions > 0 {
		what += fmt.Sprintf(" with %s", plural(subscriptions, "subscription"))
	}
	held := holds(e.Counts)
	switch {
	case held != "" && !opts.force:
		return fail(exitRefused, "dlq export saves them; --force deletes them with it", "%s holds %s", what, held)
	case held != "":
		what += fmt.Sprintf(", which holds %s, for good", held)
	}
	for _, source := range e.Sources {
		a.say("warning: the dead letters of %s go to %s", source, e.ID)
	}
	if !opts.yes {
		ok, err := a.confirm(ctx, "Delete "+what+"?")
		if err != nil {
			return err
		}
		if !ok {
			return fail(exitRefused, "", "nothing was changed")
		}
	}
	if err := admin.DeleteEntity(ctx, e.ID); err != nil {
		return err
	}
	a.say("%s %s deleted", e.Kind, e.ID)
	return nil
}

// withSubscriptions returns an entity with its counts, and of a topic how many subscriptions
// it has.
func (a *app) withSubscriptions(ctx context.Context, id backends.EntityID) (e backends.Entity, subscriptions int64, err error) {
	for found, err := range a.opened.Entities(ctx, backends.EntityQuery{Names: []string{id.Name}}) {
		if err != nil {
			return e, 0, err
		}
		e = found
	}
	if e.Kind != backends.Topic {
		return e, 0, nil
	}
	for _, err := range a.opened.Entities(ctx, backends.EntityQuery{Prefix: e.ID.Name + "/Subscriptions/", NoCounts: true}) {
		if err != nil {
			return e, 0, err
		}
		subscriptions++
	}
	return e, subscriptions, nil
}

// holds says in words how many messages there are; "" for none. What is not known may be some.
func holds(c backends.Counts) string {
	var parts []string
	for _, n := range []struct {
		count int64
		noun  string
	}{
		{c.Active, "active"},
		{c.DeadLetter, "dead-letter"},
		{c.TransferDeadLetter, "transfer dead-letter"},
		{c.Scheduled, "scheduled"},
		{c.Deferred, "deferred"},
		{c.Delayed, "delayed"},
	} {
		switch {
		case n.count < 0:
			parts = append(parts, "an unknown number of "+n.noun+" messages")
		case n.count > 0:
			parts = append(parts, plural(n.count, n.noun+" message"))
		}
	}
	return strings.Join(parts, ", ")
}
