package tui

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/resubmit"
	"dlq/tui/theme"
)

// planDialog is what a job would do, before it does: how many messages, from where to
// where, changed how, and what speaks against it. Each change of a setting plans anew.
type planDialog struct {
	*ui
	keys   planKeys
	target target
	spec   resubmit.Spec

	plan    *resubmit.Plan
	err     error
	request *request[*resubmit.Plan]

	prompt *prompt // a setting that is being typed
	set    func(text string) error
}

type planKeys struct{ go_, to, copyKey, property, rate, id, cancel key.Binding }

func newPlan(u *ui, t target, spec resubmit.Spec) *planDialog {
	spec.From, spec.Selection = t.from, t.selection()
	spec.Command = "tui: " + string(spec.Kind) + " " + t.what
	d := &planDialog{ui: u, target: t, spec: spec}
	d.keys = planKeys{
		go_:      bind("y", string(spec.Kind), "y", "Y"),
		to:       bind("t", "destination", "t"),
		copyKey:  bind("c", "copy", "c"),
		property: bind("p", "set property", "p"),
		rate:     bind("l", "rate", "l"),
		id:       bind("i", "message id", "i"),
		cancel:   bind("Esc", "cancel", "esc", "n", "q"),
	}
	settings := []*key.Binding{&d.keys.to, &d.keys.copyKey, &d.keys.property, &d.keys.rate, &d.keys.id}
	if spec.Kind != resubmit.Resubmit {
		for _, b := range settings {
			b.SetEnabled(false)
		}
	}
	if len(spec.Edited) > 0 { // what was edited goes out as it was edited
		d.keys.property.SetEnabled(false)
		d.keys.id.SetEnabled(false)
	}
	return d
}

func (d *planDialog) Init() tea.Cmd { return d.replan() }

func (d *planDialog) replan() tea.Cmd {
	d.request.stop()
	d.plan, d.err = nil, nil
	spec := d.spec
	var cmd tea.Cmd
	d.request, cmd = ask(d.ctx, func(ctx context.Context) (*resubmit.Plan, error) {
		return resubmit.NewPlan(ctx, d.env(), spec)
	})
	return cmd
}

func (d *planDialog) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case answer[*resubmit.Plan]:
		if msg.from == d.request {
			d.plan, d.err = msg.value, msg.err
		}
	case tea.KeyMsg:
		if d.prompt != nil {
			return d.typed(msg)
		}
		return d.key(msg)
	}
	return nil
}

// ready reports whether the plan can be carried out.
func (d *planDialog) ready() bool {
	return d.plan != nil && d.plan.Matched > 0 && len(d.plan.Vetoes) == 0
}

func (d *planDialog) key(msg tea.KeyMsg) tea.Cmd {
	switch {
	case key.Matches(msg, d.keys.cancel):
		return closeDialog(d)
	case key.Matches(msg, d.keys.go_):
		if d.ready() {
			return d.run()
		}
	case key.Matches(msg, d.keys.copyKey):
		d.spec.Copy = !d.spec.Copy
		return d.replan()
	case key.Matches(msg, d.keys.id):
		d.spec.Edits.MessageID = map[resubmit.IDPolicy]resubmit.IDPolicy{
			"": resubmit.IDKeep, resubmit.IDAuto: resubmit.IDKeep, resubmit.IDKeep: resubmit.IDNew, resubmit.IDNew: resubmit.IDAuto,
		}[d.spec.Edits.MessageID]
		return d.replan()
	case key.Matches(msg, d.keys.to):
		d.ask("to", d.destination(), "an entity, or nothing for where each message came from", d.setTo)
	case key.Matches(msg, d.keys.property):
		d.ask("set", "", "name=value or name:type=value; -name removes it; nothing forgets all of them", d.setProperty)
	case key.Matches(msg, d.keys.rate):
		d.ask("messages a second", rateText(d.spec.Rate), "a number, or nothing for no limit", d.setRate)
	}
	return nil
}

func (d *planDialog) ask(label, text, hint string, set func(string) error) {
	d.prompt, d.set = &prompt{label: label, edit: newLineEdit(text), hint: hint}, set
}

func (d *planDialog) typed(msg tea.KeyMsg) tea.Cmd {
	switch d.prompt.key(msg) {
	case promptCancelled:
		d.prompt = nil
	case promptDone:
		if err := d.set(d.prompt.edit.String()); err != nil {
			d.prompt.fail(oneLine(err), -1)
			return nil
		}
		d.prompt = nil
		return d.replan()
	}
	return nil
}

func (d *planDialog) setTo(text string) error {
	if text == "" {
		d.spec.To = nil
		return nil
	}
	id, err := backends.ParseEntityID(text)
	if err == nil {
		d.spec.To = &id
	}
	return err
}

func (d *planDialog) setProperty(text string) error {
	e := &d.spec.Edits
	switch {
	case text == "":
		e.Set, e.Unset = nil, nil
	case text[0] == '-':
		e.Unset = append(e.Unset, text[1:])
	default:
		a, err := message.ParseProperty(text)
		if err != nil {
			return err
		}
		e.Set = append(e.Set, a)
	}
	return nil
}

func (d *planDialog) setRate(text string) error {
	if text == "" {
		d.spec.Rate = 0
		return nil
	}
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || rate <= 0 || rate > 1e6 {
		return fmt.Errorf("%q is no rate; write a number of messages a second", text)
	}
	d.spec.Rate = rate
	return nil
}

// run starts the job that the plan describes.
func (d *planDialog) run() tea.Cmd {
	plan, env := d.plan, d.env()
	j := &job{
		title:   fmt.Sprintf("%s %s", d.verb(), plural(plan.Matched, "message", "messages")),
		changes: true,
		work: func(ctx context.Context, report func(resubmit.Progress)) (outcome, error) {
			r, err := resubmit.Run(ctx, env, plan, report)
			return outcome{report: &r}, err
		},
	}
	return func() tea.Msg { return startJobMsg{j} }
}

func (d *planDialog) verb() string {
	if d.spec.Copy {
		return "copy"
	}
	return string(d.spec.Kind)
}

func (d *planDialog) Title() string {
	title := map[string]string{"resubmit": "Resubmit ", "copy": "Resubmit a copy of ", "complete": "Complete "}[d.verb()]
	return title + d.target.what
}

func (d *planDialog) Danger() bool { return d.spec.Kind != resubmit.Resubmit }
func (d *planDialog) Close()       { d.request.stop() }

func (d *planDialog) Keys() keyMap {
	if d.prompt != nil {
		return simpleKeys{bind("Enter", "use it"), bind("Esc", "leave it as it was")}
	}
	k := d.keys
	k.go_.SetEnabled(d.ready())
	return simpleKeys{k.go_, k.to, k.copyKey, k.property, k.rate, k.id, k.cancel}
}

func (d *planDialog) View(width, _ int) []line {
	lines := []line{nil}
	field := func(name, value string, style theme.Style) {
		for i, row := range wrap(value, width-planLabelWidth) {
			if i > 0 {
				name = ""
			}
			lines = append(lines, line{{name, d.theme.Muted}}.padTo(planLabelWidth).add(style, row))
		}
	}
	plain := theme.Style{}
	field("from", d.target.from.String(), plain)
	if d.spec.Kind == resubmit.Resubmit {
		field("to", d.destinations(), plain)
		field("changes", d.changes(), plain)
	}
	field("messages", d.size(), plain)
	if d.spec.Rate > 0 {
		field("rate", "at most "+rateText(d.spec.Rate)+" a second", plain)
	}
	if d.spec.Kind == resubmit.Complete {
		field("", "They are removed from the queue and kept in the job's journal: J, then B, brings them back.", d.theme.Muted)
	}
	if d.target.note != "" {
		field("note", d.target.note, d.theme.Warning)
	}
	lines = append(lines, d.findings(width)...)
	if d.prompt != nil {
		lines = append(append(lines, nil), d.prompt.lines(d.theme, width)...)
	}
	return lines
}

// findings is the outcome of the preflight, worst first.
func (d *planDialog) findings(width int) []line {
	lines := []line{nil}
	say := func(style theme.Style, text string) {
		for _, row := range wrap(text, width) {
			lines = append(lines, line{{row, style}})
		}
	}
	switch {
	case d.err != nil:
		say(d.theme.Danger, "error: "+d.err.Error())
		return lines
	case d.plan == nil:
		say(d.theme.Muted, "checking what would happen…")
		return lines
	case d.plan.Matched == 0:
		say(d.theme.Warning, "! none of these messages is there any more")
		return lines
	}
	for _, f := range d.plan.Vetoes {
		say(d.theme.Danger, "✗ refused: "+findingText(f))
	}
	for _, f := range d.plan.Warnings {
		say(d.theme.Warning, "! "+findingText(f))
	}
	if len(d.plan.Vetoes)+len(d.plan.Warnings) == 0 {
		say(d.theme.OK, "✓ nothing speaks against it")
	}
	return lines
}

func findingText(f resubmit.Finding) string {
	if f.Count > 0 {
		return plural(f.Count, "message", "messages") + ": " + f.Text
	}
	return f.Text
}

// destination is the text to begin with when another one is typed.
func (d *planDialog) destination() string {
	if d.spec.To != nil {
		return d.spec.To.String()
	}
	return ""
}

func (d *planDialog) destinations() string {
	switch {
	case d.plan == nil && d.spec.To != nil:
		return d.spec.To.String()
	case d.plan == nil:
		return "where each message came from"
	}
	text := ""
	for i, to := range d.plan.Destinations {
		if i > 0 {
			text += "\n"
		}
		text += to.Entity.String()
		if len(d.plan.Destinations) > 1 {
			text += " (" + grouped(to.Count) + ")"
		}
		if to.Create {
			text += " (new)"
		}
	}
	return text
}

func (d *planDialog) changes() string {
	var text string
	add := func(s string) {
		if text != "" {
			text += "\n"
		}
		text += s
	}
	if len(d.spec.Edited) > 0 {
		add("as edited")
	}
	for _, a := range d.spec.Edits.Set {
		add(fmt.Sprintf("set %s:%s = %s", a.Name, message.KindOf(a.Value), message.FormatValue(a.Value)))
	}
	for _, name := range d.spec.Edits.Unset {
		add("remove " + name)
	}
	switch d.spec.Edits.MessageID {
	case resubmit.IDKeep:
		add("keep the message id")
	case resubmit.IDNew:
		add("new message id; the old one goes into " + resubmit.OriginalIDProperty)
	}
	if d.plan != nil && slices.ContainsFunc(d.plan.Destinations, func(to resubmit.Destination) bool { return to.NewIDs }) {
		add("new ids, since duplicates are detected")
	}
	if d.spec.Copy {
		add("the originals stay where they are")
	}
	if text == "" {
		return "none: the same bytes, properties and session go out"
	}
	return text
}

func (d *planDialog) size() string {
	if d.plan == nil {
		return grouped(d.target.count)
	}
	text := grouped(d.plan.Matched)
	if d.plan.Matched != d.target.count {
		text += " of " + grouped(d.target.count) + " are still there"
	}
	return text + ", " + bytesText(d.plan.Bytes)
}

func rateText(rate float64) string {
	if rate == 0 {
		return ""
	}
	return strconv.FormatFloat(rate, 'f', -1, 64)
}
