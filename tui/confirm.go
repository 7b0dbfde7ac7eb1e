package tui

import (
	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
)

// confirm is a question with yes and no.
type confirm struct {
	*ui
	title   string
	text    []string
	yes, no key.Binding
	do      tea.Cmd
	danger  bool
	about   *job // what the question is about, if that can answer it by ending
}

// newConfirm asks text; y does do. Enter alone does not: a habit must not answer.
func newConfirm(u *ui, title, yes string, do tea.Cmd, text ...string) *confirm {
	return &confirm{ui: u, title: title, text: text, do: do, yes: bind("y", yes, "y", "Y"), no: bind("Esc", "no", "esc", "n", "q")}
}

// newQuitting asks whether to leave while a job runs.
func newQuitting(u *ui, j *job) *confirm {
	c := newConfirm(u, "A job is running", "stop it and leave", tea.Quit, j.title+" is not done.",
		"Leaving stops it in order: nothing is lost, and dlq jobs resume goes on with it.")
	c.about = j
	return c
}

func (d *confirm) Init() tea.Cmd { return nil }

func (d *confirm) Update(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyMsg)
	switch {
	case !ok:
	case key.Matches(k, d.yes):
		return tea.Sequence(closeDialog(d), d.do)
	case key.Matches(k, d.no):
		return closeDialog(d)
	}
	return nil
}

func (d *confirm) Title() string { return d.title }

func (d *confirm) View(width, _ int) []line {
	lines := []line{nil}
	for _, t := range d.text {
		for _, row := range wrap(t, width) {
			lines = append(lines, plain(row))
		}
	}
	return lines
}

func (d *confirm) Keys() keyMap { return simpleKeys{d.yes, d.no} }
func (d *confirm) Danger() bool { return d.danger }
func (d *confirm) Close()       {}
