package tui

import (
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"dlq/resubmit"
	"dlq/tui/theme"
)

// reportDialog says how a job ended, in words, and names every message that is worth a look.
type reportDialog struct {
	*ui
	title   string
	outcome outcome
	err     error
	top     int
	close   key.Binding
	scroll  moveKeys
}

func newReport(u *ui, msg jobDoneMsg) *reportDialog {
	return &reportDialog{
		ui:      u,
		title:   msg.job.title,
		outcome: msg.outcome,
		err:     msg.err,
		close:   bind("Esc", "close", "esc", "enter", "q"),
		scroll:  newMoveKeys(),
	}
}

func (d *reportDialog) Init() tea.Cmd { return nil }

func (d *reportDialog) Update(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyMsg)
	switch {
	case !ok:
	case key.Matches(k, d.close):
		return closeDialog(d)
	default:
		d.scroll.move(k, d)
	}
	return nil
}

func (d *reportDialog) Title() string { return upperFirst(d.title) }
func (d *reportDialog) Danger() bool  { return d.err != nil }
func (d *reportDialog) Close()        {}
func (d *reportDialog) Keys() keyMap  { return simpleKeys{d.close} }

// reportPage is how far a page key scrolls.
const reportPage = 10

func (d *reportDialog) Up(n int)   { d.top = max(d.top-n, 0) }
func (d *reportDialog) Down(n int) { d.top += n }
func (d *reportDialog) PageUp()    { d.Up(reportPage) }
func (d *reportDialog) PageDown()  { d.Down(reportPage) }
func (d *reportDialog) Home()      { d.top = 0 }
func (d *reportDialog) End()       { d.top = maxReportLines }

func (d *reportDialog) View(width, height int) []line {
	lines := d.lines(width)
	d.top = max(min(d.top, len(lines)-(height-2)), 0)
	return lines[d.top:]
}

func (d *reportDialog) lines(width int) []line {
	lines := []line{nil}
	say := func(style theme.Style, text string) {
		for _, row := range wrap(text, width) {
			lines = append(lines, line{{row, style}})
		}
	}
	r := d.outcome.report
	if r == nil || r.Job == "" {
		if d.err != nil {
			say(d.theme.Danger, "error: "+d.err.Error())
		} else {
			say(d.theme.OK, "✓ "+d.outcome.text)
		}
		return lines
	}
	switch {
	case d.err != nil, r.Lost > 0:
		say(d.theme.Danger, "✗ "+r.Summary())
	case r.Partly(), r.Left > 0:
		say(d.theme.Warning, "! "+r.Summary())
	default:
		say(d.theme.OK, "✓ "+r.Summary())
	}
	if d.err != nil {
		say(d.theme.Danger, "error: "+d.err.Error())
	}
	lines = append(lines, nil)
	for _, text := range reportFacts(*r) {
		say(theme.Style{}, text)
	}
	lines = append(lines, d.items(width, "Lost", d.theme.Danger, r.LostItems)...)
	lines = append(lines, d.items(width, "Possibly twice", d.theme.Warning, r.Uncertain)...)
	lines = append(lines, d.items(width, "Failed, still where they were", d.theme.Warning, r.Failed)...)
	lines = append(lines, d.items(width, "Skipped", d.theme.Warning, r.Skipped)...)
	lines = append(lines, nil)
	say(d.theme.Muted, "job "+r.Job+": J lists it here, and in a shell: dlq jobs show "+r.Job)
	return lines
}

// reportFacts are the sentences about a job that are worth their line.
func reportFacts(r resubmit.Report) []string {
	var facts []string
	for _, to := range r.Destinations {
		if r.Kind == resubmit.Resubmit || r.Kind == resubmit.Restoring {
			facts = append(facts, r.From.String()+" → "+to.Entity.String()+": "+plural(to.Count, "message", "messages"))
		}
	}
	for _, id := range r.Created {
		facts = append(facts, id.String()+" was made")
	}
	if r.Newcomers > 0 {
		facts = append(facts, plural(r.Newcomers, "message", "messages")+" came after the plan and "+isAre(r.Newcomers)+" not touched")
	}
	if r.Interrupted || r.Cancelled {
		facts = append(facts, "It was stopped before the end; R in the list of jobs goes on with it.")
	}
	if r.Stopped != "" {
		facts = append(facts, "It ended early: "+r.Stopped)
	}
	if r.Kind == resubmit.Complete && r.Done > 0 {
		facts = append(facts, "B in the list of jobs brings the completed messages back.")
	}
	if r.Elapsed > 0 {
		facts = append(facts, "It took "+r.Elapsed.Round(time.Millisecond).String()+".")
	}
	return facts
}

func isAre(n int64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// maxReportLines is how many messages of a kind the dialog names; the rest is counted.
const maxReportLines = 200

func (d *reportDialog) items(width int, title string, style theme.Style, items []resubmit.Item) []line {
	if len(items) == 0 {
		return nil
	}
	lines := []line{nil, {{title + ": " + plural(int64(len(items)), "message", "messages"), style}}}
	for _, it := range items[:min(len(items), maxReportLines)] {
		text := strings.TrimSpace("seq " + seqText(it.Seq) + "  " + it.ID + "  " + it.Reason)
		for i, row := range wrap(text, width-2) {
			indent := "  "
			if i > 0 {
				indent = "    "
			}
			lines = append(lines, plain(indent+row))
		}
	}
	if more := len(items) - maxReportLines; more > 0 {
		lines = append(lines, plain("  and "+grouped(int64(more))+" more"))
	}
	return lines
}
