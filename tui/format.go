package tui

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dlq/backends"
	"dlq/tui/table"
	"dlq/tui/theme"
)

// grouped writes a number with its digits in threes.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural writes a count with its noun.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// count writes a number of messages: nothing stands out but what is there.
func count(n int64) string {
	switch {
	case n < 0:
		return "?"
	case n == 0:
		return "·"
	}
	return grouped(n)
}

// right puts a short text at the right of a column.
func right(s string, width int) string {
	return strings.Repeat(" ", max(width-len([]rune(s)), 0)) + s
}

// age writes how long ago t was, in one unit or two: "12s", "4m", "3h", "2d5h", "41d".
func age(now, t time.Time) string {
	d := now.Sub(t)
	n := func(d, unit time.Duration) string { return strconv.FormatInt(int64(d/unit), 10) }
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "now"
	case d < time.Minute:
		return n(d, time.Second) + "s"
	case d < time.Hour:
		return n(d, time.Minute) + "m"
	case d < day:
		if m := d % time.Hour; d < 10*time.Hour && m >= time.Minute {
			return n(d, time.Hour) + "h" + n(m, time.Minute) + "m"
		}
		return n(d, time.Hour) + "h"
	case d < 10*day:
		if h := d % day; h >= time.Hour {
			return n(d, day) + "d" + n(h, time.Hour) + "h"
		}
	case d >= 1000*day:
		return n(d, 365*day) + "y"
	}
	return n(d, day) + "d"
}

// bytesText writes a size in the unit that reads best.
func bytesText(n int64) string {
	switch {
	case n < 1<<10:
		return strconv.FormatInt(n, 10) + " B"
	case n < 1<<20:
		return strconv.FormatFloat(float64(n)/(1<<10), 'f', 1, 64) + " KiB"
	case n < 1<<30:
		return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB"
	}
	return strconv.FormatFloat(float64(n)/(1<<30), 'f', 1, 64) + " GiB"
}

// shortBytes writes a size in at most five cells: "812", "1.2K", "64K", "1.0M".
func shortBytes(n int64) string {
	size, unit := float64(n), 0
	for size >= 1000 && unit < 4 {
		size /= 1024
		unit++
	}
	switch {
	case unit == 0:
		return strconv.FormatInt(n, 10)
	case size < 9.95:
		return strconv.FormatFloat(size, 'f', 1, 64) + "BKMGT"[unit:unit+1]
	}
	return strconv.FormatFloat(size, 'f', 0, 64) + "BKMGT"[unit:unit+1]
}

// hint is what an empty table says: the state, then what to do about it.
type hint []string

// over writes the hint over the lines of an empty table, below its head.
func (h hint) over(lines []string, width int, t theme.Theme) {
	const indent = "   "
	at := 2
	for i, text := range h {
		style := t.Muted
		if i == 0 {
			style = t.Title
		}
		for _, row := range wrap(text, max(width-2*len(indent), 1)) {
			if at < len(lines) {
				lines[at] = plain(indent).add(style, row).draw(width)
			}
			at++
		}
	}
}

// shortType takes the namespace off an exception type at the head of a text: what a table
// has room for is better spent on the message.
func shortType(s string) string {
	dot := 0
	for i, r := range s {
		switch {
		case r == '.':
			dot = i + 1
		case r == ':':
			return s[dot:]
		case r != '_' && r != '+' && r != '`' && !unicode.IsLetter(r) && !unicode.IsDigit(r):
			return s
		}
	}
	return s
}

// seqText writes a sequence number, or nothing where the service has none.
func seqText(seq int64) string {
	if seq == 0 {
		return ""
	}
	return strconv.FormatInt(seq, 10)
}

// tableNav lets the move keys move a table.
type tableNav struct{ *table.Table }

func (t tableNav) Up(int)   { t.Table.Up() }
func (t tableNav) Down(int) { t.Table.Down() }

// tableStyles are the looks of every table.
func (u *ui) tableStyles() table.Styles {
	return table.Styles{Header: u.theme.Muted, Cursor: u.theme.Selected, Marked: u.theme.Marked}
}

// shortPath writes an entity as the command line reads it too, without a "$".
func shortPath(id backends.EntityID) string {
	if id.Sub == backends.DeadLetterQueue {
		return id.Name + "/dlq"
	}
	return id.String()
}

// upperFirst begins a title.
func upperFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
