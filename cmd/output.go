package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"dlq/tui/textview"
)

// format is a form in which a command lists. It is a pflag.Value.
type format string

const (
	table format = "table" // columns for people
	jsonl format = "jsonl" // one JSON object a line
	jsons format = "json"  // one JSON array
)

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "table|json|jsonl" }

func (f *format) Set(s string) error {
	switch format(s) {
	case table, jsonl, jsons:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("there is no format %q; the formats are table, json and jsonl", s)
}

// addFormatFlag adds -o to a command that lists.
func addFormatFlag(fs *pflag.FlagSet, f *format) {
	*f = table
	fs.VarP(f, "output", "o", "output `format`: table, json or jsonl")
}

// column is one column of a table over rows of type T.
type column[T any] struct {
	title  string
	right  bool // numbers line up on the right
	cell   func(T) string
	colour func(T) string // "" for none; nil: never
	// sparse leaves the column out when none of the rows has anything in it.
	sparse bool
}

// listing writes rows in the asked form as they come, at a memory that does not grow with
// their number.
type listing[T any] struct {
	a       *app
	format  format
	columns []column[T]
	encode  func(dst []byte, row T) ([]byte, error) // one JSON object, without a line break

	rows   int64
	buf    []byte
	sample [][]cell // lines of a table whose widths are not decided yet; no rows, which hold bodies
	widths []int
}

// cell is one place of a table.
type cell struct{ text, colour string }

// sampleRows is how many rows decide the widths of a table: as many as fill any screen.
// Wider cells in later rows push their line to the right.
const sampleRows = 200

func newListing[T any](a *app, f format, columns []column[T], encode func([]byte, T) ([]byte, error)) *listing[T] {
	return &listing[T]{a: a, format: f, columns: columns, encode: encode}
}

// all lists what comes. After an error what came before it is shown.
func (l *listing[T]) all(rows iter.Seq2[T, error]) error {
	for row, err := range rows {
		if err == nil {
			err = l.add(row)
		}
		if err != nil {
			l.end()
			return err
		}
	}
	l.end()
	return nil
}

// succeeding makes of rows that are there already what all takes.
func succeeding[T any](rows iter.Seq[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// add writes one row, or keeps its text until the widths are known.
func (l *listing[T]) add(row T) error {
	l.rows++
	if l.format == table {
		l.addLine(row)
		return nil
	}
	before, after := "", "\n"
	if l.format == jsons {
		before, after = ",\n", ""
		if l.rows == 1 {
			before = "[\n"
		}
	}
	b, err := l.encode(append(l.buf[:0], before...), row)
	if err != nil {
		return err
	}
	l.buf = append(b, after...)
	_, err = l.a.out.Write(l.buf)
	return err
}

func (l *listing[T]) addLine(row T) {
	line := make([]cell, len(l.columns))
	for i, c := range l.columns {
		line[i].text = c.cell(row)
		if c.colour != nil {
			line[i].colour = c.colour(row)
		}
	}
	if l.widths != nil {
		l.write(line)
		return
	}
	l.sample = append(l.sample, line)
	if len(l.sample) == sampleRows {
		l.begin(false)
	}
}

// flush hands out all rows so far, deciding the widths if it must.
func (l *listing[T]) flush() error {
	if len(l.sample) > 0 {
		l.begin(false)
	}
	return l.a.flush()
}

// end writes what is held back and what closes the listing. An error shows at the app's flush.
func (l *listing[T]) end() {
	switch {
	case len(l.sample) > 0:
		l.begin(true)
	case l.format == jsons && l.rows == 0:
		l.a.printf("[]\n")
	case l.format == jsons:
		l.a.printf("\n]\n")
	}
}

// begin decides the widths, writes the heading and the lines held so far, which may be all.
func (l *listing[T]) begin(all bool) {
	if all {
		l.dropSparse()
	}
	l.widths = make([]int, len(l.columns))
	heading := make([]cell, len(l.columns))
	for i, c := range l.columns {
		heading[i] = cell{c.title, bold}
		l.widths[i] = len(c.title)
		for _, line := range l.sample {
			l.widths[i] = max(l.widths[i], textview.Width(line[i].text))
		}
	}
	l.shrink()
	l.write(heading)
	for _, line := range l.sample {
		l.write(line)
	}
	l.sample = nil
}

// dropSparse takes the sparse columns out that are empty in all lines.
func (l *listing[T]) dropSparse() {
	for i := len(l.columns) - 1; i >= 0; i-- {
		used := func(line []cell) bool { return line[i].text != "" }
		if !l.columns[i].sparse || slices.ContainsFunc(l.sample, used) {
			continue
		}
		l.columns = slices.Delete(slices.Clone(l.columns), i, i+1)
		for n := range l.sample {
			l.sample[n] = slices.Delete(l.sample[n], i, i+1)
		}
	}
}

// columnGap is the space between two columns.
const columnGap = 2

// shrink makes the table fit a terminal by narrowing its widest columns, not below what
// still tells something. Without a terminal nothing is cut.
func (l *listing[T]) shrink() {
	const least = 12
	if l.a.width == 0 {
		return
	}
	total := columnGap * (len(l.widths) - 1)
	for _, w := range l.widths {
		total += w
	}
	for ; total > l.a.width; total-- {
		widest := slices.Max(l.widths)
		if widest <= least {
			return
		}
		// The last of the widest: the columns that matter most stand first.
		for i := len(l.widths) - 1; ; i-- {
			if l.widths[i] == widest {
				l.widths[i]--
				break
			}
		}
	}
}

// fit returns the sanitised text in the width of column i; the last column is not filled.
func (l *listing[T]) fit(i int, text string) string {
	w := l.widths[i]
	switch {
	case l.a.width > 0:
		text = textview.Truncate(text, w)
	default:
		text = textview.Sanitise(text)
	}
	pad := strings.Repeat(" ", max(0, w-textview.Width(text)))
	switch {
	case l.columns[i].right:
		return pad + text
	case i == len(l.columns)-1:
		return text
	}
	return text + pad
}

func (l *listing[T]) write(line []cell) {
	cells := make([]string, len(line))
	for i, c := range line {
		cells[i] = l.a.paint(c.colour, l.fit(i, c.text))
	}
	l.a.out.WriteString(strings.TrimRight(strings.Join(cells, strings.Repeat(" ", columnGap)), " "))
	l.a.out.WriteByte('\n')
}

// appendJSON appends v as JSON in which no character controls a terminal: what is not
// graphic is escaped, so that jsonl can be read on a screen as it is.
func appendJSON[T any](dst []byte, v T) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		switch {
		case r < 0x7f || !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			dst = append(dst, string(r)...)
		case r > 0xffff:
			r -= 0x10000
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
	}
	return dst, nil
}

// age writes how long ago t was, in one unit, rounded down; "-" for no time.
func (a *app) age(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := a.now().Sub(t)
	switch {
	case d < 0:
		return "in " + span(-d)
	default:
		return span(d)
	}
}

// span writes a duration in its largest whole unit.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// count writes a number that may be unknown.
func count(n int64) string {
	if n < 0 {
		return "?"
	}
	return fmt.Sprint(n)
}

// plural writes a number with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
