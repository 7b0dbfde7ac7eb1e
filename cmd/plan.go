package cmd

import (
	"context"
	"fmt"
	"slices"

	"dlq/resubmit"
)

// planSheet is what a job would do, as JSON. Its keys are an interface: scripts rely on them.
type planSheet struct {
	Kind         resubmit.Kind      `json:"kind"`
	Entity       string             `json:"entity"`
	Copy         bool               `json:"copy"`
	Selection    string             `json:"selection"`
	Matched      int64              `json:"matched"`
	Bytes        int64              `json:"bytes"`
	Destinations []planSheetTo      `json:"destinations"`
	Warnings     []planSheetFinding `json:"warnings"`
	Vetoes       []planSheetFinding `json:"vetoes"`
}

// planSheetTo is a destination. Where it cannot be told who would get the messages, receivers
// is null.
type planSheetTo struct {
	Name      string              `json:"name"`
	Count     int64               `json:"count"`
	Create    bool                `json:"create"`
	NewIDs    bool                `json:"newIds"`
	Receivers []planSheetReceiver `json:"receivers"`
	Routed    int64               `json:"routed"`
	Unrouted  int64               `json:"unrouted"`
}

type planSheetReceiver struct {
	Name   string `json:"name"`
	Copies int64  `json:"copies"`
}

type planSheetFinding struct {
	Code  string  `json:"code"`
	Text  string  `json:"text"`
	Count int64   `json:"count"`
	Seqs  []int64 `json:"seqs,omitempty"` // the first few
}

func newPlanSheet(p *resubmit.Plan) planSheet {
	sheet := planSheet{
		Kind: p.Spec.Kind, Entity: p.Spec.From.String(), Copy: p.Spec.Copy, Selection: p.Spec.Selection.String(),
		Matched: p.Matched, Bytes: p.Bytes, Destinations: []planSheetTo{},
		Warnings: findingSheets(p.Warnings), Vetoes: findingSheets(p.Vetoes),
	}
	for _, d := range p.Destinations {
		to := planSheetTo{Name: d.Entity.String(), Count: d.Count, Create: d.Create, NewIDs: d.NewIDs, Routed: d.Routed, Unrouted: d.Unrouted}
		if d.Routed+d.Unrouted > 0 {
			to.Receivers = []planSheetReceiver{}
		}
		for _, r := range d.Receivers {
			to.Receivers = append(to.Receivers, planSheetReceiver{r.Entity.String(), r.Copies})
		}
		sheet.Destinations = append(sheet.Destinations, to)
	}
	return sheet
}

func findingSheets(findings []resubmit.Finding) []planSheetFinding {
	out := []planSheetFinding{}
	for _, f := range findings {
		s := planSheetFinding{Code: f.Code, Text: f.Text, Count: f.Count}
		for _, it := range f.Samples {
			s.Seqs = append(s.Seqs, it.Seq)
		}
		out = append(out, s)
	}
	return out
}

// previewed is how many messages of a plan are shown with their changes.
const previewed = 3

// dryRun writes the plan as the data of a dry run. What a run would refuse, it refuses too.
func (a *app) dryRun(ctx context.Context, env resubmit.Env, p *resubmit.Plan, f format) error {
	if f != table {
		out := newListing(a, f, nil, appendJSON[planSheet])
		if err := out.all(succeeding(slices.Values([]planSheet{newPlanSheet(p)}))); err != nil {
			return err
		}
		return p.Refused()
	}
	return a.printPlan(ctx, env, p)
}

func (a *app) printPlan(ctx context.Context, env resubmit.Env, p *resubmit.Plan) error {
	what := string(p.Spec.Kind)
	if p.Spec.Copy {
		what += " --copy"
	}
	a.println(fmt.Sprintf("%s: %s of %s, bodies of %s", what, plural(p.Matched, "message"), p.Spec.From, bytesText(p.Bytes)))
	if text := p.Spec.Selection.String(); text != "" {
		a.println("selection: " + text)
	}
	for _, d := range p.Destinations {
		line := fmt.Sprintf("to %s: %s", d.Entity, plural(d.Count, "message"))
		if d.Create {
			line += " (it does not exist and is created with defaults)"
		}
		a.println(line)
	}
	for _, f := range p.Warnings {
		a.println("warning: " + findingText(f))
	}
	for _, f := range p.Vetoes {
		a.println("refused: " + findingText(f))
	}
	if !p.Spec.Edits.Empty() || len(p.Spec.Edited) > 0 {
		if err := a.printPreview(ctx, env, p); err != nil {
			return err
		}
	}
	if err := p.Refused(); err != nil {
		return err
	}
	a.println("nothing was changed: this is a dry run")
	return nil
}

func (a *app) printPreview(ctx context.Context, env resubmit.Env, p *resubmit.Plan) error {
	changes, err := p.Preview(ctx, env, previewed)
	if err != nil {
		return err
	}
	for _, c := range changes {
		a.println(fmt.Sprintf("seq %d:", c.Before.Broker.SequenceNumber))
		if c.Err != nil {
			a.println("  skipped: " + c.Err.Error())
			continue
		}
		a.printDiff("  ", resubmit.DiffText(c.Before, c.After))
	}
	return nil
}
