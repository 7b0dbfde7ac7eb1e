package textview

// Hex shows bytes as a hex dump, a window at a time: offset, hex digits and the
// ASCII characters, sixteen bytes a row, or eight or four on a narrow screen.
// Like [View] its position is a byte offset; nothing depends on the size of the
// content, which is not copied and must not change.
type Hex struct {
	content       []byte
	width, height int
	top           int
}

// NewHex returns a hex dump of content at its start. It shows nothing before
// SetSize.
func NewHex(content []byte) *Hex { return &Hex{content: content} }

// SetSize sets the size of the window in cells and keeps the byte at the top.
func (h *Hex) SetSize(width, height int) {
	h.width, h.height = width, height
	h.SetOffset(h.top)
}

// Offset returns where in the content the first row on the screen begins.
func (h *Hex) Offset() int { return h.top }

// SetOffset scrolls so that the byte at off is in the first row, or as near to
// it as the last page allows.
func (h *Hex) SetOffset(off int) {
	row := h.perRow()
	rows := (len(h.content) + row - 1) / row
	last := max(rows-max(h.height, 1), 0) * row
	h.top = min(max(off, 0)/row*row, last)
}

// Up scrolls n rows towards the start.
func (h *Hex) Up(n int) { h.SetOffset(h.top - n*h.perRow()) }

// Down scrolls n rows towards the end and stops at the last page.
func (h *Hex) Down(n int) { h.SetOffset(h.top + n*h.perRow()) }

// PageUp scrolls one window towards the start.
func (h *Hex) PageUp() { h.Up(h.height) }

// PageDown scrolls one window towards the end.
func (h *Hex) PageDown() { h.Down(h.height) }

// Home scrolls to the start.
func (h *Hex) Home() { h.top = 0 }

// End scrolls to the last page.
func (h *Hex) End() { h.SetOffset(len(h.content)) }

// Lines returns the rows on the screen, at most as many as it is high. Each is
// printable ASCII and not wider than the screen.
func (h *Hex) Lines() []string {
	if h.width < 1 || h.height < 1 {
		return nil
	}
	lines := make([]string, 0, h.height)
	row := h.perRow()
	var b []byte
	for off := h.top; off < len(h.content) && len(lines) < h.height; off += row {
		b = appendDump(b[:0], off, h.content[off:min(off+row, len(h.content))], row)
		lines = append(lines, string(b[:min(len(b), h.width)]))
	}
	return lines
}

// perRow returns how many bytes a row shows. Widths below that of four bytes
// cut the row.
func (h *Hex) perRow() int {
	switch {
	case h.width >= dumpWidth(16):
		return 16
	case h.width >= dumpWidth(8):
		return 8
	default:
		return 4
	}
}

// dumpWidth returns the cells of a row of n bytes: eight digits of offset, the
// bytes with a gap after each eight, and the characters between bars.
func dumpWidth(n int) int { return 8 + 2 + 3*n + (n-1)/8 + 1 + 1 + n + 1 }

// appendDump appends the row of p, which begins at off; the row has room for
// so many bytes.
func appendDump(b []byte, off int, p []byte, room int) []byte {
	const digits = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[off>>shift&0xf])
	}
	b = append(b, ' ')
	for i := range room {
		b = append(b, ' ')
		if i > 0 && i%8 == 0 {
			b = append(b, ' ')
		}
		if i < len(p) {
			b = append(b, digits[p[i]>>4], digits[p[i]&0xf])
		} else {
			b = append(b, "  "...)
		}
	}
	b = append(b, "  |"...)
	for _, c := range p {
		if !isPlain(c) {
			c = '.'
		}
		b = append(b, c)
	}
	return append(b, '|')
}
