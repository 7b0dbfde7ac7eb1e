package table

import (
	"strconv"

	"dlq/tui/textview"
	"dlq/tui/theme"
)

// RowSource is the list a table shows. It may grow and shrink between two calls
// of the table; the cursor then stays at its index as far as the list reaches.
type RowSource interface {
	// Len returns the number of rows.
	Len() int
	// Row appends the cells of row i to dst, which is empty, and returns it.
	// The table drops cells beyond its columns and leaves missing ones blank.
	Row(i int, dst []string) []string
}

// Styles are the looks of the lines of a table. The zero value is plain.
type Styles struct {
	Header, Row, Cursor, Marked theme.Style
}

// gutter is the room at the left for the marks of a row and a space.
const gutter = 3

// Table is a window on a list: a header line and the rows below it. It is not
// safe for concurrent use.
type Table struct {
	columns []Column
	styles  Styles
	rows    RowSource
	marked  func(i int) bool
	look    func(i, column int) theme.Style

	width, height int
	top, cursor   int

	cells  []int // cells of each column on the screen, in order
	fields []string
	buf    []byte
}

// New returns an empty table. It shows nothing before SetSize.
func New(columns []Column, styles Styles) *Table {
	return &Table{columns: columns, styles: styles}
}

// SetRows sets the list to show. The cursor stays at its index if it can.
func (t *Table) SetRows(rows RowSource) {
	t.rows = rows
	t.settle()
}

// SetMarked sets what tells the rows that are marked. It is called for the rows
// on the screen whenever they are drawn, and has to be as quick as that.
func (t *Table) SetMarked(marked func(i int) bool) { t.marked = marked }

// SetCellStyle sets the look of single cells, for rows that are neither marked nor under
// the cursor. It is called for the cells on the screen whenever they are drawn.
func (t *Table) SetCellStyle(look func(i, column int) theme.Style) { t.look = look }

// SetColumns changes the columns. Rows and cursor stay.
func (t *Table) SetColumns(columns []Column) {
	t.columns = columns
	t.SetSize(t.width, t.height)
}

// SetStyles changes the looks of the lines.
func (t *Table) SetStyles(styles Styles) { t.styles = styles }

// SetSize sets the size in cells, with the header line. The cursor stays
// visible.
func (t *Table) SetSize(width, height int) {
	t.width, t.height = max(width, 0), max(height, 0)
	t.cells = layout(t.columns, t.width-gutter)
	t.settle()
}

// Len returns the number of rows of the list.
func (t *Table) Len() int {
	if t.rows == nil {
		return 0
	}
	return t.rows.Len()
}

// Cursor returns the index of the row under the cursor; it is 0 in an empty
// list.
func (t *Table) Cursor() int {
	t.settle()
	return t.cursor
}

// Top returns the index of the first row on the screen.
func (t *Table) Top() int {
	t.settle()
	return t.top
}

// SetCursor moves the cursor to row i, or to the nearest there is.
func (t *Table) SetCursor(i int) {
	t.cursor = i
	t.settle()
}

// Up moves the cursor one row up.
func (t *Table) Up() { t.SetCursor(t.cursor - 1) }

// Down moves the cursor one row down.
func (t *Table) Down() { t.SetCursor(t.cursor + 1) }

// PageUp moves the cursor and the window one screen up.
func (t *Table) PageUp() {
	t.top -= t.page()
	t.SetCursor(t.cursor - t.page())
}

// PageDown moves the cursor and the window one screen down.
func (t *Table) PageDown() {
	t.top += t.page()
	t.SetCursor(t.cursor + t.page())
}

// Home moves the cursor to the first row.
func (t *Table) Home() { t.SetCursor(0) }

// End moves the cursor to the last row.
func (t *Table) End() { t.SetCursor(t.Len() - 1) }

// page returns how many rows the screen holds, at least one.
func (t *Table) page() int { return max(t.height-1, 1) }

// settle brings the cursor into the list and the window around the cursor, and
// leaves no room below the last row that rows above could fill.
func (t *Table) settle() {
	n := t.Len()
	t.cursor = max(min(t.cursor, n-1), 0)
	t.top = min(t.top, t.cursor, n-t.page())
	t.top = max(t.top, t.cursor-t.page()+1, 0)
}

// Position returns where the cursor is in the list, as in "1,204/50,000".
func (t *Table) Position() string {
	n := t.Len()
	if n == 0 {
		return "0/0"
	}
	b := appendGrouped(make([]byte, 0, 32), t.Cursor()+1)
	b = append(b, '/')
	return string(appendGrouped(b, n))
}

// appendGrouped appends n, which is not negative, with its digits in threes.
func appendGrouped(b []byte, n int) []byte {
	if n < 1000 {
		return strconv.AppendInt(b, int64(n), 10)
	}
	b = append(appendGrouped(b, n/1000), ',')
	n %= 1000
	return append(b, byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
}

// View returns the table as it is on the screen: exactly as many lines as it is
// high, the header and then rows, each as wide as the table, and empty lines
// below a short list.
func (t *Table) View() string {
	if t.width == 0 || t.height == 0 {
		return ""
	}
	t.settle()
	t.buf = t.buf[:0]
	t.fields = t.fields[:0]
	for _, c := range t.columns {
		t.fields = append(t.fields, c.Title)
	}
	t.appendLine(-1, t.styles.Header, ' ', ' ')
	n := t.Len()
	for i := t.top; i < t.top+t.height-1; i++ {
		t.buf = append(t.buf, '\n')
		if i < n {
			t.appendRow(i)
		}
	}
	return string(t.buf)
}

// appendRow appends the line of row i.
func (t *Table) appendRow(i int) {
	style, cursor, mark := t.styles.Row, byte(' '), byte(' ')
	if t.marked != nil && t.marked(i) {
		style, mark = t.styles.Marked, '*'
	}
	if i == t.cursor {
		style, cursor = t.styles.Cursor, '>'
	}
	t.fields = t.rows.Row(i, t.fields[:0])
	if cursor != ' ' || mark != ' ' {
		i = -1
	}
	t.appendLine(i, style, cursor, mark)
}

// appendLine appends a line of t.fields, as wide as the table. row is the row whose cells
// may have a look of their own, or -1.
func (t *Table) appendLine(row int, style theme.Style, cursor, mark byte) {
	t.buf = append(t.buf, style.Prefix...)
	left := t.width
	for _, c := range [gutter]byte{cursor, mark, ' '} {
		if left > 0 {
			t.buf = append(t.buf, c)
			left--
		}
	}
	for i, cells := range t.cells {
		field := ""
		if i < len(t.fields) {
			field = t.fields[i]
		}
		if i > 0 {
			t.buf = textview.AppendPad(t.buf, "", gap)
			left -= gap
		}
		own := theme.Style{}
		if row >= 0 && t.look != nil {
			own = t.look(row, i)
		}
		// The suffix of a cell ends the style of the line too, which is then begun anew.
		t.buf = append(t.buf, own.Prefix...)
		t.buf = textview.AppendPad(t.buf, field, cells)
		if own.Suffix != "" {
			t.buf = append(append(t.buf, own.Suffix...), style.Prefix...)
		}
		left -= cells
	}
	t.buf = textview.AppendPad(t.buf, "", left)
	t.buf = append(t.buf, style.Suffix...)
}
