package tui

import (
	"strings"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/x/ansi"

	"dlq/tui/textview"
	"dlq/tui/theme"
)

// frame draws what stands around a screen. It knows no screen but what those say of
// themselves.
type frame struct {
	theme theme.Theme
	width int
}

// header is the first line: the program, the connection, the way to the screen. Where that
// is too long its beginning goes: the end is where one is.
func (f frame) header(conn string, crumbs []string, badge line) string {
	head := line{{" dlq ", f.theme.Selected}, {" " + conn + " ", f.theme.Muted}}
	way := f.way(crumbs)
	for len(crumbs) > 1 && head.width()+way.width()+badge.width() > f.width {
		crumbs = crumbs[1:]
		way = append(line{{"› … ", f.theme.Muted}}, f.way(crumbs)...)
	}
	return spread(f.width, append(head, way...), badge)
}

func (f frame) way(crumbs []string) line {
	var l line
	for i, c := range crumbs {
		style := f.theme.Muted
		if i == len(crumbs)-1 {
			style = f.theme.Title
		}
		l = l.add(f.theme.Muted, "› ").add(style, c+" ")
	}
	return l
}

// context is the line below: what the screen shows, and what looking at it does.
func (f frame) context(left, right line) string {
	return spread(f.width, append(plain(" "), left...), append(right, seg{text: " "}))
}

// status is the line for what happened and what is under way.
func (f frame) status(n notice, status, job line) string {
	left := status
	if n.text != "" {
		left = f.notice(n)
	}
	return spread(f.width, append(plain(" "), left...), append(job, seg{text: " "}))
}

// notice puts the word of its level before a notice.
func (f frame) notice(n notice) line {
	switch n.level {
	case success:
		return line{{"✓ " + n.text, f.theme.OK}}
	case warning:
		return line{{"! " + n.text, f.theme.Warning}}
	case failure:
		return line{{"error: " + n.text, f.theme.Danger}}
	}
	return plain(n.text)
}

// keys is the last line: as many keys as fit, and always the one for help.
func (f frame) keys(bindings []key.Binding, help key.Binding) string {
	shown := 0
	for n := range bindings {
		if f.bindings(append(bindings[:n+1:n+1], help)).width()+1 > f.width {
			break
		}
		shown = n + 1
	}
	return append(plain(" "), f.bindings(append(bindings[:shown:shown], help))...).draw(f.width)
}

// keyGap stands between the keys of a line.
const keyGap = "  "

func (f frame) bindings(keys []key.Binding) line {
	var l line
	for _, b := range keys {
		if !b.Enabled() {
			continue
		}
		if len(l) > 0 {
			l = append(l, seg{text: keyGap})
		}
		l = l.add(f.theme.Key, b.Help().Key).add(f.theme.Muted, " "+b.Help().Desc)
	}
	return l
}

// wrapped sets keys on as many lines as they need.
func (f frame) wrapped(keys []key.Binding, width int) []line {
	var lines []line
	for begin := 0; begin < len(keys); {
		end := begin + 1
		for end < len(keys) && f.bindings(keys[begin:end+1]).width() <= width {
			end++
		}
		if l := f.bindings(keys[begin:end]); len(l) > 0 {
			lines = append(lines, l)
		}
		begin = end
	}
	return lines
}

// box draws a dialog: its lines in a border with the title in it and the keys below. It
// has the height that the content needs, and at most so many lines of content.
func (f frame) box(title string, content []line, keys []key.Binding, room, height int, border theme.Style) []string {
	width := room + 2*dialogPadding
	pad := strings.Repeat(" ", dialogPadding)
	edge := border.Render("│")
	title = textview.Truncate(title, width-4)
	out := []string{line{{"╭─ ", border}, {title, f.theme.Title}, {" " + strings.Repeat("─", width-3-textview.Width(title)) + "╮", border}}.draw(width + 2)}
	foot := f.wrapped(keys, room)
	if len(foot) > 0 {
		height -= len(foot) + 1
	}
	for _, l := range content[:min(len(content), max(height, 1))] {
		out = append(out, edge+pad+l.draw(room)+pad+edge)
	}
	if len(foot) > 0 {
		out = append(out, edge+strings.Repeat(" ", width)+edge)
	}
	for _, l := range foot {
		out = append(out, edge+pad+l.draw(room)+pad+edge)
	}
	return append(out, border.Render("╰"+strings.Repeat("─", width)+"╯"))
}

// overlay puts a box in the middle of a screen, which steps back behind it.
func (f frame) overlay(screen, box []string) []string {
	if len(box) == 0 {
		return screen
	}
	width := ansi.StringWidth(box[0])
	left, top := max((f.width-width)/2, 0), max((len(screen)-len(box))/2, 0)
	out := make([]string, len(screen))
	for i, l := range screen {
		if i < top || i >= top+len(box) {
			out[i] = f.theme.Muted.Render(ansi.Strip(l))
			continue
		}
		out[i] = strings.Repeat(" ", left) + box[i-top] + strings.Repeat(" ", max(f.width-left-width, 0))
	}
	return out
}

// fixed gives text exactly so many cells: a cut may have gone through a wide character.
func fixed(text string, width int) string {
	if width <= 0 {
		return ""
	}
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}
