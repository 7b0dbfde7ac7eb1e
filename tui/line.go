package tui

import (
	"strings"

	"dlq/tui/textview"
	"dlq/tui/theme"
)

// seg is a piece of a line in one style. Its text may be anything: it is made safe when
// the line is drawn.
type seg struct {
	text  string
	style theme.Style
}

// line is one line of segments. It is how everything but a table's rows and a body gets
// to the screen: measured and made safe first, styled after.
type line []seg

func plain(text string) line { return line{{text: text}} }

// add appends a segment and returns the line, to be chained.
func (l line) add(style theme.Style, text string) line { return append(l, seg{text, style}) }

func (l line) width() int {
	n := 0
	for _, s := range l {
		n += textview.Width(s.text)
	}
	return n
}

// draw returns the line in exactly so many cells.
func (l line) draw(width int) string {
	var b strings.Builder
	room := width
	for _, s := range l {
		if room <= 0 {
			break
		}
		text := textview.Truncate(s.text, room)
		room -= textview.Width(text)
		b.WriteString(s.style.Render(text))
	}
	b.WriteString(strings.Repeat(" ", max(room, 0)))
	return b.String()
}

// spread draws left and right at the two ends of a line of exactly so many cells. Where
// both do not fit left is cut, unless right would take more than half of the line: then
// right goes.
func spread(width int, left, right line) string {
	rest := width - right.width()
	if len(right) == 0 || left.width() >= rest && rest < width/2 {
		return left.draw(width)
	}
	return append(left.fit(rest-1), append(line{{text: " "}}, right...)...).draw(width)
}

// wrap breaks text into lines of at most so many cells, at spaces where it can. Line
// breaks in the text are kept.
func wrap(text string, width int) []string {
	var out []string
	for _, paragraph := range textview.SanitiseLines(text) {
		out = append(out, wrapParagraph(paragraph, max(width, 1))...)
	}
	return out
}

func wrapParagraph(text string, width int) []string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	if len(indent) > width/2 {
		indent = ""
	}
	var out []string
	current := ""
	for word := range strings.SplitSeq(strings.TrimLeft(text, " "), " ") {
		switch {
		case current == "":
			current = indent + word
		case textview.Width(current)+1+textview.Width(word) <= width:
			current += " " + word
			continue
		default:
			out = append(out, current)
			current = indent + word
		}
		if textview.Width(current) > width {
			rows := hardWrap(current, width)
			out = append(out, rows[:len(rows)-1]...)
			current = rows[len(rows)-1]
		}
	}
	return append(out, current)
}

// hardWrap breaks a word that is wider than a line.
func hardWrap(word string, width int) []string {
	v := textview.NewView([]byte(word))
	v.SetSize(width, len(word))
	return v.Lines()
}

// padTo fills the line with spaces to so many cells.
func (l line) padTo(width int) line {
	if gap := width - l.width(); gap > 0 {
		return append(l, seg{text: strings.Repeat(" ", gap)})
	}
	return l
}

// fit makes the line exactly so many cells wide: cut or filled.
func (l line) fit(width int) line {
	var out line
	room := width
	for _, s := range l {
		s.text = textview.Truncate(s.text, room)
		room -= textview.Width(s.text)
		out = append(out, s)
		if room <= 0 {
			return out
		}
	}
	return out.padTo(width)
}
