package tui

import (
	"slices"
	"strings"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"

	"dlq/tui/textview"
	"dlq/tui/theme"
)

// lineEdit is a line of text being typed, with the keys that shells have.
type lineEdit struct {
	text []rune
	pos  int // of the cursor, in runes
}

func newLineEdit(text string) lineEdit {
	r := []rune(text)
	return lineEdit{text: r, pos: len(r)}
}

func (e *lineEdit) String() string { return string(e.text) }

// key edits the line and reports whether it knows the key.
func (e *lineEdit) key(k tea.KeyMsg) bool {
	switch k.Type {
	case tea.KeyRunes, tea.KeySpace:
		if k.Alt && !k.Paste {
			return false
		}
		e.insert(k.Runes)
	case tea.KeyLeft, tea.KeyCtrlB:
		e.pos = max(e.pos-1, 0)
	case tea.KeyRight, tea.KeyCtrlF:
		e.pos = min(e.pos+1, len(e.text))
	case tea.KeyHome, tea.KeyCtrlA:
		e.pos = 0
	case tea.KeyEnd, tea.KeyCtrlE:
		e.pos = len(e.text)
	case tea.KeyBackspace:
		e.remove(e.pos-1, e.pos)
	case tea.KeyDelete, tea.KeyCtrlD:
		e.remove(e.pos, e.pos+1)
	case tea.KeyCtrlU:
		e.remove(0, e.pos)
	case tea.KeyCtrlK:
		e.remove(e.pos, len(e.text))
	case tea.KeyCtrlW:
		e.remove(e.wordStart(), e.pos)
	default:
		return false
	}
	return true
}

// insert puts what was typed or pasted at the cursor, with line breaks as spaces.
func (e *lineEdit) insert(runes []rune) {
	clean := make([]rune, 0, len(runes))
	for _, r := range runes {
		if unicode.IsControl(r) {
			r = ' '
		}
		clean = append(clean, r)
	}
	e.text = slices.Insert(e.text, e.pos, clean...)
	e.pos += len(clean)
}

func (e *lineEdit) remove(from, to int) {
	from, to = max(from, 0), min(to, len(e.text))
	if from >= to {
		return
	}
	e.text = slices.Delete(e.text, from, to)
	e.pos = from
}

// wordStart returns where the word before the cursor begins.
func (e *lineEdit) wordStart() int {
	i := e.pos
	for i > 0 && e.text[i-1] == ' ' {
		i--
	}
	for i > 0 && e.text[i-1] != ' ' {
		i--
	}
	return i
}

// word returns the part of the name before the cursor, for completion.
func (e *lineEdit) word() string {
	i := e.pos
	for i > 0 && (unicode.IsLetter(e.text[i-1]) || unicode.IsDigit(e.text[i-1]) || strings.ContainsRune("._-$", e.text[i-1])) {
		i--
	}
	return string(e.text[i:e.pos])
}

// replaceWord puts text in the place of word.
func (e *lineEdit) replaceWord(text string) {
	from := e.pos - len([]rune(e.word()))
	e.remove(from, e.pos)
	e.insert([]rune(text))
}

// line draws the text so that the cursor is in view, and returns the rune that stands in
// the first cell. Without colour, where a reversed cell would not show, the cursor is a bar.
func (e *lineEdit) line(width int, cursor theme.Style) (l line, first int) {
	under := " "
	if e.pos < len(e.text) {
		under = string(e.text[e.pos])
	}
	if cursor.Prefix == "" {
		under = "▏" + under
	}
	room := width - textview.Width(under)
	first = e.pos
	for used := 0; first > 0; first-- {
		used += textview.Width(string(e.text[first-1]))
		if used > room {
			break
		}
	}
	l = plain(string(e.text[first:e.pos])).add(cursor, under)
	if e.pos < len(e.text) {
		l = l.add(theme.Style{}, string(e.text[e.pos+1:]))
	}
	return l, first
}
