package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"dlq/resubmit"
	"dlq/tui/textview"
)

// consent are the flags of every command that changes messages.
type consent struct {
	yes    bool
	dryRun bool
	plan   format // of the dry run
}

func (c *consent) addFlags(fs *pflag.FlagSet) {
	fs.BoolVarP(&c.yes, "yes", "y", false, "do it without asking")
	fs.BoolVar(&c.dryRun, "dry-run", false, "print the plan and do nothing")
	c.plan = table
	fs.VarP(&c.plan, "output", "o", "`format` of the plan that --dry-run prints: table, json or jsonl")
}

// canAsk refuses early what could neither ask nor has been allowed to go on.
func (a *app) canAsk(c consent) error {
	if c.yes || c.dryRun || a.interactive() {
		return nil
	}
	return fail(exitRefused, "--yes does it, --dry-run shows what would be done",
		"there is no terminal to ask for a confirmation")
}

// runJob plans the job, shows what speaks for and against it, asks, and runs it.
// before runs between the answer and the first change; nil: nothing.
func (a *app) runJob(ctx context.Context, spec resubmit.Spec, c consent, before func(*resubmit.Plan) error) error {
	env, err := a.env(ctx)
	if err != nil {
		return err
	}
	spec.Command = a.commandLine()
	plan, err := resubmit.NewPlan(ctx, env, spec)
	if err != nil {
		return err
	}
	if plan.Matched == 0 {
		return fail(exitNothing, "", "nothing matched in %s", spec.From)
	}
	if c.dryRun {
		return a.dryRun(ctx, env, plan, c.plan)
	}
	a.sayWarnings(plan)
	if err := refusal(plan); err != nil {
		return err
	}
	if !c.yes {
		ok, err := a.confirm(ctx, question(plan))
		if err != nil {
			return err
		}
		if !ok {
			return fail(exitRefused, "", "nothing was changed")
		}
	}
	if before != nil {
		if err := before(plan); err != nil {
			return err
		}
	}
	line := a.newProgressLine()
	report, err := resubmit.Run(ctx, env, plan, line.show)
	line.clear()
	return a.finishJob(report, err)
}

// question is what a person has to agree to: how many, from where, to where.
func question(p *resubmit.Plan) string {
	what := fmt.Sprintf("%s of %s", plural(p.Matched, "message"), p.Spec.From)
	switch {
	case p.Spec.Kind == resubmit.Complete:
		return "Remove " + what + "?"
	case p.Spec.Discard:
		return "Remove " + what + " for good, without a backup?"
	case p.Spec.Kind == resubmit.Purge:
		return "Export and then remove " + what + "?"
	case p.Spec.Copy:
		return "Copy " + what + " to " + destinations(p) + "?"
	}
	return "Move " + what + " to " + destinations(p) + "?"
}

// destinations names where the messages of a plan go, with the numbers when it is more than
// one place.
func destinations(p *resubmit.Plan) string {
	var out []string
	for _, d := range p.Destinations {
		name := d.Entity.String()
		if len(p.Destinations) > 1 {
			name += fmt.Sprintf(" (%d)", d.Count)
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

// refusal returns what the preflight found to be in the way, or nil.
func refusal(p *resubmit.Plan) error {
	if len(p.Vetoes) == 0 {
		return nil
	}
	var texts []string
	for _, f := range p.Vetoes {
		texts = append(texts, findingText(f))
	}
	return fail(exitRefused, "--dry-run shows the whole plan", "%w: %s", resubmit.ErrRefused, strings.Join(texts, "; "))
}

// sayWarnings writes what the preflight found that is to be known.
func (a *app) sayWarnings(p *resubmit.Plan) {
	for _, f := range p.Warnings {
		a.say("warning: %s", findingText(f))
	}
}

func findingText(f resubmit.Finding) string {
	text := f.Text
	if f.Count > 0 {
		text += fmt.Sprintf(" (%s: %s", plural(f.Count, "message"), itemNames(f.Samples))
		if int64(len(f.Samples)) < f.Count {
			text += ", ..."
		}
		text += ")"
	}
	return text
}

func itemNames(items []resubmit.Item) string {
	names := make([]string, len(items))
	for i, it := range items {
		names[i] = fmt.Sprintf("seq %d", it.Seq)
	}
	return strings.Join(names, ", ")
}

// printDiff writes the lines of a diff, sanitised first and coloured then.
func (a *app) printDiff(margin string, lines []string) {
	for _, line := range lines {
		colour := ""
		switch {
		case strings.HasPrefix(line, "+"):
			colour = green
		case strings.HasPrefix(line, "-"):
			colour = red
		}
		a.out.WriteString(margin + a.paint(colour, textview.Sanitise(line)) + "\n")
	}
}

// bytesText writes a number of bytes with its unit.
func bytesText(n int64) string {
	if n < 1024 {
		return plural(n, "byte")
	}
	return size(n) + "iB"
}

// namedItems is how many messages of one kind a report names; dlq jobs show names all.
const namedItems = 20

// finishJob says how a job went and turns that into an exit code. The report is valid also
// when there is an error.
func (a *app) finishJob(r resubmit.Report, err error) error {
	if r.Job == "" {
		return err
	}
	a.say("%s", r.Summary())
	for _, id := range r.Created {
		a.say("queue %s did not exist and was created with defaults", id)
	}
	a.sayItems("skipped", r.Skipped)
	a.sayItems("failed", r.Failed)
	a.sayItems("possibly twice", r.Uncertain)
	a.sayItems("lost", r.LostItems)
	if r.Newcomers > 0 {
		a.say("%s arrived meanwhile and was not touched", plural(r.Newcomers, "message"))
	}
	show := "dlq jobs show " + r.Job + " accounts for every message"
	resume := "dlq jobs resume " + r.Job + " goes on"
	switch {
	case err != nil:
		code, _ := outcome(err)
		return fail(code, resume, "%w", err)
	case r.Interrupted:
		return fail(exitInterrupted, resume, "interrupted")
	case r.Cancelled:
		return fail(exitPartly, resume, "job %s was cancelled", r.Job)
	case r.Partly():
		return fail(exitPartly, show, "job %s is partly done", r.Job)
	}
	a.say("job %s; %s", r.Job, show)
	return nil
}

func (a *app) sayItems(what string, items []resubmit.Item) {
	for i, it := range items {
		if i == namedItems {
			a.say("%s: and %d more", what, len(items)-i)
			return
		}
		line := fmt.Sprintf("%s: seq %d, id %s", what, it.Seq, it.ID)
		if it.Reason != "" {
			line += ": " + it.Reason
		}
		a.say("%s", line)
	}
}

// progressLine is one line of standard error that is written over and over, on a terminal
// only.
type progressLine struct {
	a     *app
	shown time.Time
}

func (a *app) newProgressLine() *progressLine { return &progressLine{a: a} }

// progressEvery bounds how often the line is written.
const progressEvery = 100 * time.Millisecond

// clearLine returns the cursor to the left margin and empties the line.
const clearLine = "\r\x1b[K"

func (l *progressLine) show(p resubmit.Progress) {
	now := l.a.now()
	if !l.a.progress || now.Sub(l.shown) < progressEvery && p.Done < p.Total {
		return
	}
	l.shown = now
	text := fmt.Sprintf("%d of %d, %.0f/s", p.Done, p.Total, p.Rate)
	if p.ETA > 0 {
		text += ", " + span(p.ETA) + " left"
	}
	if n := p.Skipped + p.Failed + p.Uncertain; n > 0 {
		text += fmt.Sprintf(", %d to look at", n)
	}
	fmt.Fprint(l.a.err, clearLine+text)
}

// clear removes the line, so that the report stands in its place.
func (l *progressLine) clear() {
	if !l.shown.IsZero() {
		fmt.Fprint(l.a.err, clearLine)
	}
}
