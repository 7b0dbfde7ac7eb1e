package tui

import (
	"slices"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"dlq/tui/textview"
)

// helpDialog shows every key of a screen, from its key map.
type helpDialog struct {
	*ui
	groups []keyGroup
	scroll int
	close  key.Binding
	up     key.Binding
	down   key.Binding
}

func newHelp(u *ui, s screen, global globalKeys) *helpDialog {
	return &helpDialog{
		ui:     u,
		groups: slices.Insert(s.Keys().groups(), 2, global.group()), // there the columns come out even
		close:  bind("Esc", "close", "esc", "q", "?", "enter"),
		up:     bind("↑", "", "up", "k", "pgup"),
		down:   bind("↓", "", "down", "j", "pgdown"),
	}
}

func (d *helpDialog) Init() tea.Cmd { return nil }

func (d *helpDialog) Update(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyMsg)
	switch {
	case !ok:
	case key.Matches(k, d.close):
		return closeDialog(d)
	case key.Matches(k, d.up):
		d.scroll = max(d.scroll-1, 0)
	case key.Matches(k, d.down):
		d.scroll++
	}
	return nil
}

func (d *helpDialog) Title() string { return "Keys · Esc closes" }

// View sets the groups in two columns of about the same height.
func (d *helpDialog) View(width, height int) []line {
	half := (width - 2) / 2
	var columns [2][]line
	for _, g := range d.groups {
		shorter := 0
		if len(columns[1]) < len(columns[0]) {
			shorter = 1
		}
		columns[shorter] = append(columns[shorter], d.block(g)...)
	}
	rows := make([]line, max(len(columns[0]), len(columns[1])))
	for i := range rows {
		for _, c := range columns {
			var cell line
			if i < len(c) {
				cell = c[i]
			}
			rows[i] = append(append(rows[i], cell.fit(half)...), seg{text: "  "})
		}
	}
	d.scroll = max(min(d.scroll, len(rows)-height), 0)
	return rows[d.scroll:]
}

func (d *helpDialog) block(g keyGroup) []line {
	out := []line{{{g.title, d.theme.Title}}}
	for _, b := range g.keys {
		name := textview.Pad(b.Help().Key, 9)
		if b.Enabled() {
			out = append(out, line{{name, d.theme.Key}, {b.Help().Desc, d.theme.Muted}})
		} else {
			out = append(out, line{{name + "(" + d.whyShort() + ") " + b.Help().Desc, d.theme.Muted}})
		}
	}
	return append(out, nil)
}

func (d *helpDialog) Keys() keyMap { return simpleKeys{} }
func (d *helpDialog) Danger() bool { return false }
func (d *helpDialog) Close()       {}
