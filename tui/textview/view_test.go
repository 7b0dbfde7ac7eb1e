package textview

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestViewWraps(t *testing.T) {
	tests := []struct {
		name, in      string
		width, height int
		want          []string
	}{
		{"empty", "", 10, 3, nil},
		{"no room", "abc", 0, 3, nil},
		{"no height", "abc", 3, 0, nil},
		{"short", "abc", 10, 3, []string{"abc"}},
		{"exactly a row", "abc\ndef", 3, 3, []string{"abc", "def"}},
		{"exactly a row, CRLF", "abc\r\ndef\r\n", 3, 3, []string{"abc", "def"}},
		{"wrapped", "abcdefgh", 3, 5, []string{"abc", "def", "gh"}},
		{"empty lines", "a\n\n\nb", 3, 5, []string{"a", "", "", "b"}},
		{"only breaks", "\n\n", 3, 5, []string{"", ""}},
		{"window", "a\nb\nc\nd", 3, 2, []string{"a", "b"}},
		{"wide characters", "日本語", 5, 5, []string{"日本", "語"}},
		{"too wide for the row", "日a", 1, 5, []string{"…", "a"}},
		{"escape too wide for the row", "\u202ea", 4, 5, []string{"…", "a"}},
		{"escape stays whole", "ab\u202ec", 9, 5, []string{"ab", "<U+202E>c"}},
		{"tab", "\ta", 6, 5, []string{"    a"}},
		{"sequence", "\x1b[31m\rx", 20, 5, []string{"^[[31m^Mx"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := NewView([]byte(tt.in))
			v.SetSize(tt.width, tt.height)
			if got := v.Lines(); !slices.Equal(got, tt.want) {
				t.Errorf("Lines() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestViewScrolls(t *testing.T) {
	v := NewView([]byte("a\nbbbb\nc\nd\ne\nf\n"))
	v.SetSize(2, 3) // rows: a bb bb c d e f
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"start", func() {}, "a bb bb"},
		{"up at the start", func() { v.Up(1) }, "a bb bb"},
		{"down", func() { v.Down(2) }, "bb c d"},
		{"up into a wrapped line", func() { v.Up(1) }, "bb bb c"},
		{"page down", v.PageDown, "d e f"},
		{"page down at the end", v.PageDown, "d e f"},
		{"page up", v.PageUp, "bb bb c"},
		{"home", v.Home, "a bb bb"},
		{"end", v.End, "d e f"},
		{"to an offset in a row", func() { v.SetOffset(5) }, "bb c d"},
		{"wider", func() { v.SetSize(4, 3) }, "bbbb c d"},
		{"higher than the text", func() { v.SetSize(4, 99) }, "a bbbb c d e f"},
		{"far too far", func() { v.SetOffset(1 << 30) }, "a bbbb c d e f"},
	}
	for _, s := range steps {
		s.do()
		if got := strings.Join(v.Lines(), " "); got != s.want {
			t.Fatalf("%s: %q, want %q", s.name, got, s.want)
		}
	}
}

func TestViewSetOffsetBeforeSize(t *testing.T) {
	v := NewView([]byte("a\nb\nc\nd"))
	v.SetOffset(4)
	v.SetSize(10, 2)
	if got := v.Lines(); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("Lines() = %q, want c and d", got)
	}
}

// A single line without breaks is where a viewer that wraps from the start of
// the line falls over.
func TestViewOfOneLongLine(t *testing.T) {
	v := NewView(bytes.Repeat([]byte("0123456789"), 1<<20))
	v.SetSize(80, 40)
	v.End()
	if got := len(v.Lines()); got != 40 {
		t.Fatalf("%d lines on the last page, want 40", got)
	}
	before := v.Offset()
	v.Up(1)
	v.Down(1)
	if v.Offset() != before {
		t.Errorf("up and down lead from %d to %d", before, v.Offset())
	}
	if n := testing.AllocsPerRun(5, func() { v.Up(1); v.Lines() }); n > 100 {
		t.Errorf("a key and a frame allocate %v times", n)
	}
}

// Walking down sees every row once, and walking up sees the same rows.
func checkView(t *testing.T, content []byte, width, height, stride int) {
	t.Helper()
	v := NewView(content)
	v.stride = stride
	v.SetSize(width, height)
	for _, line := range v.Lines() {
		checkSafe(t, line)
		if w := ansi.StringWidth(line); w > width {
			t.Fatalf("%q is %d cells wide, want at most %d", line, w, width)
		}
	}
	if got := len(v.Lines()); got > height {
		t.Fatalf("%d lines in a height of %d", got, height)
	}
	for off := 0; off < len(content); {
		next := v.down(off, 1)
		if next <= off {
			t.Fatalf("no progress at %d", off)
		}
		if back := v.up(next, 1); back != off {
			t.Fatalf("a row begins at %d, but from %d up it is %d", off, next, back)
		}
		v.SetOffset(next - 1)
		if want := min(off, v.last); v.Offset() != want {
			t.Fatalf("the byte at %d is in the row at %d, want %d", next-1, v.Offset(), want)
		}
		off = next
	}
	v.End()
	if rows := len(v.Lines()); v.top > 0 && rows != height {
		t.Fatalf("%d rows on the last page, want %d", rows, height)
	}
}

func TestViewWalks(t *testing.T) {
	for _, a := range attacks() {
		content := []byte(strings.Repeat(a.in+"\r\n日e\u0301\n\n", 3))
		for _, stride := range []int{8, 13, 64} {
			for _, width := range []int{1, 3, 10} {
				checkView(t, content, width, 4, stride)
			}
		}
	}
}
