package cmd

import (
	"context"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/resubmit"
)

type resubmitOptions struct {
	place
	selectionFlags
	consent
	destination
	set         []string
	unset       []string
	bodyJQ      string
	bodyFile    string
	rate        float64
	concurrency int
	max         int
	delay       time.Duration
}

func (o *resubmitOptions) addFlags(fs *pflag.FlagSet) {
	o.place.addFlags(fs)
	o.selectionFlags.addFlags(fs)
	o.consent.addFlags(fs)
	o.destination.addFlags(fs)
	fs.StringArrayVar(&o.set, "set", nil, "set an application property `NAME[:TYPE]=VALUE`, such as n:int=5 or, on SQS, n:sqs:Number=0.50 (repeatable)")
	fs.StringArrayVar(&o.unset, "unset", nil, "remove the application property `NAME` (repeatable)")
	fs.StringVar(&o.bodyJQ, "body-jq", "", "make the new JSON body from the old one with the jq `EXPR`")
	fs.StringVar(&o.bodyFile, "body-file", "", "replace the body with the bytes of `FILE`")
	fs.Float64Var(&o.rate, "rate", 0, "at most `N` messages a second")
	fs.IntVar(&o.concurrency, "concurrency", 0, "how many batches are in flight (`N`, default 4, at most 64)")
	fs.IntVar(&o.max, "max", 0, "refuse to touch more than `N` messages")
	fs.DurationVar(&o.delay, "delay", 0, "let them appear only after this `DURATION`")
}

// destination are the flags that say where messages go and under which ID; resubmit and
// edit share them.
type destination struct {
	to        string
	messageID idPolicy
	copies    bool
	unrouted  bool
}

func (d *destination) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&d.to, "to", "", "send to this `ENTITY` (default where each message came from)")
	d.messageID = idPolicy(resubmit.IDAuto)
	fs.Var(&d.messageID, "message-id", "`keep|new|auto`: auto keeps it unless the destination detects duplicates")
	fs.BoolVar(&d.copies, "copy", false, "leave the originals where they are")
	fs.BoolVar(&d.unrouted, "allow-unrouted", false, "send also what no rule of a topic lets through: nobody gets it")
}

// apply writes what the flags say into a job.
func (d *destination) apply(spec *resubmit.Spec) error {
	spec.Copy, spec.AllowUnrouted = d.copies, d.unrouted
	spec.Edits.MessageID = resubmit.IDPolicy(d.messageID)
	if d.to == "" {
		return nil
	}
	to, err := recipient("--to", d.to)
	if err != nil {
		return err
	}
	spec.To = &to
	return nil
}

// idPolicy is the value of --message-id.
type idPolicy resubmit.IDPolicy

func (p *idPolicy) String() string { return string(*p) }
func (p *idPolicy) Type() string   { return "keep|new|auto" }

func (p *idPolicy) Set(s string) error {
	switch resubmit.IDPolicy(s) {
	case resubmit.IDKeep, resubmit.IDNew, resubmit.IDAuto:
		*p = idPolicy(s)
		return nil
	}
	return usagef("want keep, new or auto")
}

func newResubmitCommand(a *app) *cobra.Command {
	var opts resubmitOptions
	c := a.command(about{
		use:   "resubmit ENTITY",
		short: "send dead letters again: select, edit, check, move",
		long: `Send the selected dead letters to where they came from, or to --to, and remove them here. What
the broker owns is stripped, the time to live starts anew, and everything else goes out as it
is, the body byte for byte, unless an edit changes it. A check before the start refuses what
cannot work or would be lost, and says who gets a copy of what goes to a topic. A journal is
written before each step: dlq jobs shows what ran, resumes what was cut off, and accounts for
every message. The first Ctrl-C finishes what is in flight.`,
		effects: "moves the selected messages (--copy: copies them); on local: a missing --to queue is made",
		exits:   []exitCode{exitFailed, exitUsage, exitPartly, exitRefused, exitNothing},
		example: "dlq resubmit orders --group fddb37be --dry-run\ndlq resubmit orders --reason 'Max%' --since 2h --rate 50 --yes\ndlq resubmit orders --seq 42 --set retried:bool=true --body-jq '.address.zip = \"10115\"'",
	}, exactly("ENTITY"), func(c *cobra.Command, args []string) error {
		return runResubmit(c.Context(), a, opts, c.Flags(), args[0])
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeEntity
	return c
}

func runResubmit(ctx context.Context, a *app, opts resubmitOptions, fs *pflag.FlagSet, arg string) error {
	spec, err := opts.spec(a, fs, arg)
	if err != nil {
		return err
	}
	if err := a.canAsk(opts.consent); err != nil {
		return err
	}
	return a.runJob(ctx, spec, opts.consent, nil)
}

// maxConcurrency is more than any service rewards.
const maxConcurrency = 64

// spec turns the flags into a job, refusing what cannot be meant.
func (o *resubmitOptions) spec(a *app, fs *pflag.FlagSet, arg string) (resubmit.Spec, error) {
	spec := resubmit.Spec{Kind: resubmit.Resubmit, Rate: o.rate, Concurrency: o.concurrency, Max: o.max, Delay: o.delay}
	var err error
	if spec.From, err = o.id(arg); err != nil {
		return spec, err
	}
	if spec.Selection, err = o.selection(fs); err != nil {
		return spec, err
	}
	if err := narrowed(spec.Selection, "sent"); err != nil {
		return spec, err
	}
	if _, err := a.compile(spec.Selection); err != nil {
		return spec, err
	}
	if !(o.rate >= 0) || math.IsInf(o.rate, 1) { // not a number is not below zero either
		return spec, usagef("--rate %v: want a number of messages a second, not negative", o.rate)
	}
	if o.concurrency < 0 || o.max < 0 || o.delay < 0 {
		return spec, usagef("--concurrency, --max and --delay cannot be negative")
	}
	if o.concurrency > maxConcurrency {
		return spec, usagef("--concurrency %d: at most %d, since every batch in flight holds its messages in memory", o.concurrency, maxConcurrency)
	}
	if err := o.destination.apply(&spec); err != nil {
		return spec, err
	}
	return spec, o.applyEdits(&spec.Edits)
}

func (o *resubmitOptions) applyEdits(e *resubmit.Edits) error {
	for _, s := range o.set {
		p, err := message.ParseProperty(s)
		if err != nil {
			return usagef("--set: %w", err)
		}
		e.Set = append(e.Set, p)
	}
	e.Unset, e.BodyJQ = o.unset, o.bodyJQ
	if o.bodyFile != "" {
		if o.bodyJQ != "" {
			return usagef("--body-file and --body-jq exclude each other")
		}
		body, err := readFile(o.bodyFile)
		if err != nil {
			return err
		}
		e.Body = &body
	}
	if _, err := e.Compile("", backends.EntityID{}); err != nil {
		return usagef("%w", err)
	}
	return nil
}
