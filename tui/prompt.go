package tui

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"dlq/tui/textview"
	"dlq/tui/theme"
)

// prompt is a line being typed at the foot of a screen: a label, the text, and below it a
// hint or what is wrong with the text.
type prompt struct {
	label string
	edit  lineEdit
	hint  string

	problem string // what is wrong with the text, "" when nothing is known to be
	at      int    // where in the text, in runes; negative: nowhere in particular

	history []string
	recall  int // how far up in the history

	complete func(word string) []string // names that begin so; may be nil
}

// promptResult is what a key did to a prompt.
type promptResult uint8

const (
	promptOpen promptResult = iota
	promptDone              // the text is to be used
	promptCancelled
)

// key edits the prompt.
func (p *prompt) key(k tea.KeyMsg) promptResult {
	switch k.Type {
	case tea.KeyEnter:
		return promptDone
	case tea.KeyEsc, tea.KeyCtrlC:
		return promptCancelled
	case tea.KeyUp:
		p.browse(1)
	case tea.KeyDown:
		p.browse(-1)
	case tea.KeyTab:
		p.completeWord()
	default:
		if p.edit.key(k) {
			p.problem, p.recall = "", 0
		}
	}
	return promptOpen
}

// fail marks the text as wrong.
func (p *prompt) fail(problem string, at int) { p.problem, p.at = problem, at }

// browse goes through the history.
func (p *prompt) browse(by int) {
	n := min(max(p.recall+by, 0), len(p.history))
	if n == p.recall {
		return
	}
	p.recall, p.problem = n, ""
	text := ""
	if n > 0 {
		text = p.history[len(p.history)-n]
	}
	p.edit = newLineEdit(text)
}

// completeWord extends the name before the cursor as far as it is unique, and shows the
// candidates when it is not.
func (p *prompt) completeWord() {
	if p.complete == nil {
		return
	}
	names := p.complete(p.edit.word())
	switch len(names) {
	case 0:
		p.problem, p.at = "", -1
		p.hint = "no name begins with that"
	case 1:
		p.edit.replaceWord(names[0])
	default:
		p.edit.replaceWord(commonPrefix(names))
		p.hint = strings.Join(names, "  ")
	}
}

// commonPrefix is at least as long as the word that all names complete.
func commonPrefix(names []string) string {
	first := names[0]
	for _, n := range names[1:] {
		for !strings.HasPrefix(strings.ToLower(n), strings.ToLower(first)) {
			first = prefix(first, len(first)-1)
		}
	}
	return first
}

// draw returns the lines at the foot of the screen.
func (p *prompt) draw(t theme.Theme, width int) []string {
	var out []string
	for _, l := range p.lines(t, width) {
		out = append(out, l.draw(width))
	}
	return out
}

// lines returns what is typed, and below it what is to be said about it.
func (p *prompt) lines(t theme.Theme, width int) []line {
	label := p.label + " "
	text, first := p.edit.line(width-textview.Width(label)-1, t.Selected)
	input := append(line{{label, t.Key}}, text...)
	if p.problem == "" {
		return []line{input, {{p.hint, t.Muted}}}
	}
	return append([]line{input}, p.pointed(t, width, textview.Width(label), first)...)
}

// pointed puts a caret below the place that is wrong, and the problem behind it, or where
// there is no room on the lines below.
func (p *prompt) pointed(t theme.Theme, width, labelWidth, first int) []line {
	words := "error: " + p.problem
	caret := ""
	if p.at >= first && p.at <= len(p.edit.text) {
		caret = strings.Repeat(" ", labelWidth+textview.Width(string(p.edit.text[first:p.at]))) + "^ "
	}
	if textview.Width(caret+words) <= width {
		return []line{{{caret + words, t.Danger}}}
	}
	var lines []line
	if caret != "" {
		lines = append(lines, line{{caret, t.Danger}})
	}
	for _, row := range wrap(words, width) {
		lines = append(lines, line{{row, t.Danger}})
	}
	return lines[:min(len(lines), maxProblemLines)]
}
