package textview

import (
	"bytes"
	"unicode/utf8"
)

// stride is the distance of the forced row breaks in a text without line
// breaks. It bounds what one key press has to look at: a body in one line of
// 100 MiB scrolls like any other, for a short row in every 64 KiB.
const stride = 64 << 10

// View shows text wrapped at the width of the screen, a window at a time.
//
// Its position is a byte offset into the content, never a line number, for
// numbering lines means reading all of them. From any offset the start of its
// row is found by going back to a line break or a forced break, whichever is
// nearer, and wrapping again from there; so neither opening nor scrolling nor a
// resize depends on the size of the content.
//
// The content is not copied and must not change. A View is not safe for
// concurrent use.
type View struct {
	content       []byte
	width, height int
	top           int // offset of the first row on the screen
	last          int // offset of the first row of the last page
	stride        int
}

// NewView returns a view of content at its start. It shows nothing before
// SetSize.
func NewView(content []byte) *View {
	return &View{content: content, stride: stride}
}

// SetSize sets the size of the window in cells. The text at the top stays there
// as far as the new wrapping allows.
func (v *View) SetSize(width, height int) {
	v.width, v.height = width, height
	if v.hidden() {
		return
	}
	v.last = v.up(len(v.content), height)
	v.SetOffset(v.top)
}

// hidden reports whether there is nothing to show or no room to show it.
func (v *View) hidden() bool { return v.width < 1 || v.height < 1 || len(v.content) == 0 }

// Offset returns where in the content the first row on the screen begins.
func (v *View) Offset() int { return v.top }

// SetOffset scrolls so that the byte at off is in the first row, or as near to
// it as the last page allows.
func (v *View) SetOffset(off int) {
	off = max(min(off, len(v.content)-1), 0)
	if v.hidden() {
		v.top = off // SetSize finds the row
		return
	}
	starts := v.starts(v.segmentStart(off), off+1)
	v.top = min(starts[len(starts)-1], v.last)
}

// Up scrolls n rows towards the start.
func (v *View) Up(n int) {
	if !v.hidden() {
		v.top = v.up(v.top, n)
	}
}

// Down scrolls n rows towards the end and stops at the last page.
func (v *View) Down(n int) {
	if !v.hidden() {
		v.top = min(v.down(v.top, n), v.last)
	}
}

// PageUp scrolls one window towards the start.
func (v *View) PageUp() { v.Up(v.height) }

// PageDown scrolls one window towards the end.
func (v *View) PageDown() { v.Down(v.height) }

// Home scrolls to the start.
func (v *View) Home() { v.top = 0 }

// End scrolls to the last page.
func (v *View) End() {
	if !v.hidden() {
		v.top = v.last
	}
}

// Lines returns the rows on the screen, at most as many as it is high. Each is
// sanitised and not wider than the screen.
func (v *View) Lines() []string {
	if v.hidden() {
		return nil
	}
	lines := make([]string, 0, v.height)
	for off := v.top; off < len(v.content); {
		end, next := v.segment(off)
		for s := string(v.content[off:end]); ; {
			n := rowLen(s, v.width)
			lines = append(lines, rowText(s[:n], v.width))
			if len(lines) == v.height {
				return lines
			}
			if s = s[n:]; s == "" {
				break
			}
		}
		off = next
	}
	return lines
}

// rowLen returns how many bytes of s go into the first row: what fits, and at
// least one unit.
func rowLen(s string, width int) int {
	n, _ := fit(s, width, blockTab)
	if n == 0 && s != "" {
		n, _ = unit(s)
	}
	return n
}

// rowText returns the visible form of one row.
func rowText(s string, width int) string {
	if n, _ := fit(s, width, blockTab); n < len(s) {
		return Truncate(s, width) // one unit, wider than the row
	}
	return sanitise(s, blockTab)
}

// up returns the start of the row n rows before the row at off.
func (v *View) up(off, n int) int {
	for n > 0 && off > 0 {
		segment := v.segmentStart(off - 1)
		starts := v.starts(segment, off)
		if len(starts) >= n {
			return starts[len(starts)-n]
		}
		n -= len(starts)
		off = segment
	}
	return off
}

// down returns the start of the row n rows after the row at off, or the length
// of the content when there is none.
func (v *View) down(off, n int) int {
	for n > 0 && off < len(v.content) {
		end, next := v.segment(off)
		for s := string(v.content[off:end]); ; {
			size := rowLen(s, v.width)
			s = s[size:]
			off += size
			n--
			if s == "" {
				off = next
				break
			}
			if n == 0 {
				break
			}
		}
	}
	return off
}

// starts returns where the rows of the segment begin that begin before limit;
// there is at least the first one.
func (v *View) starts(segment, limit int) []int {
	end, _ := v.segment(segment)
	s := string(v.content[segment:end])
	starts := []int{segment}
	for off := segment; ; {
		n := rowLen(s, v.width)
		s = s[n:]
		off += n
		if s == "" || off >= limit {
			return starts
		}
		starts = append(starts, off)
	}
}

// segment returns where the segment that holds off ends, without its line
// break, and where the next one begins. A segment is what is wrapped in one
// go: a line, or the part of it between two forced breaks.
func (v *View) segment(off int) (end, next int) {
	var limit int
	for k := off / v.stride; ; k++ {
		if a := v.anchor(k); a > off {
			limit = a
			if v.isBreak(a) {
				limit = a + 1 // no forced break where the line ends anyway
			}
			break
		}
	}
	i := bytes.IndexByte(v.content[off:limit], '\n')
	if i < 0 {
		return limit, limit
	}
	end = off + i
	next = end + 1
	if end > off && v.content[end-1] == '\r' {
		end--
	}
	return end, next
}

// segmentStart returns where the segment begins that holds the byte at off.
func (v *View) segmentStart(off int) int {
	k := off/v.stride + 1 // an anchor may lie a little before its multiple
	for v.anchor(k) > off {
		k--
	}
	if k > 0 && v.isBreak(v.anchor(k)) {
		k--
	}
	from := v.anchor(k)
	return from + bytes.LastIndexByte(v.content[from:off], '\n') + 1
}

// isBreak reports whether there is a line break at off.
func (v *View) isBreak(off int) bool {
	return off < len(v.content) && v.content[off] == '\n'
}

// anchor returns the k-th forced break: a multiple of the stride, moved back to
// where the character there begins. Past the end it is the length of the
// content.
func (v *View) anchor(k int) int {
	off := k * v.stride
	if off >= len(v.content) {
		return len(v.content)
	}
	for back := 0; back < utf8.UTFMax && back <= off; back++ {
		if utf8.RuneStart(v.content[off-back]) {
			if _, n := utf8.DecodeRune(v.content[off-back:]); n > back {
				return off - back
			}
			break
		}
	}
	return off
}
