package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dlq/tui/theme"

	"github.com/charmbracelet/x/ansi"
)

// list is a source whose rows are made when they are asked for.
type list struct {
	n     int
	asked []int
}

func (l *list) Len() int { return l.n }

func (l *list) Row(i int, dst []string) []string {
	l.asked = append(l.asked, i)
	return append(dst, fmt.Sprint(i), fmt.Sprintf("name-%d", i))
}

// fixed is a source of given rows.
type fixed [][]string

func (f fixed) Len() int                         { return len(f) }
func (f fixed) Row(i int, dst []string) []string { return append(dst, f[i]...) }

func columns() []Column {
	return []Column{{Title: "SEQ", Width: 4}, {Title: "NAME", Width: 8, Min: 3, Flex: true}}
}

func TestView(t *testing.T) {
	tests := []struct {
		name          string
		rows          RowSource
		width, height int
		want          []string
	}{
		{"no rows yet", nil, 16, 3, []string{"   SEQ   NAME   ", "", ""}},
		{"no room", fixed{{"1", "a"}}, 0, 3, []string{""}},
		{"no height", fixed{{"1", "a"}}, 16, 0, []string{""}},
		{"rows", fixed{{"1", "a"}, {"2", "bcdefghijk"}}, 16, 4, []string{
			"   SEQ   NAME   ",
			">  1     a      ",
			" * 2     bcdefg…",
			"",
		}},
		{"missing and surplus cells", fixed{{}, {"2", "b", "c"}}, 16, 3, []string{
			"   SEQ   NAME   ",
			">               ",
			" * 2     b      ",
		}},
		{"hostile cells", fixed{{"\x1b[2J", "a\r\n\u202eb"}, {"日本語", "e\u0301"}}, 24, 3, []string{
			"   SEQ   NAME           ",
			">  ^[[…  a^M^J<U+202E>b ",
			" * 日…   e\u0301              ",
		}},
		{"second column dropped", fixed{{"1", "a"}}, 9, 2, []string{
			"   SEQ   ",
			">  1     ",
		}},
		{"narrower than the gutter", fixed{{"1", "a"}, {"2", "b"}}, 2, 3, []string{"  ", "> ", " *"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tb := New(columns(), Styles{})
			if tt.rows != nil {
				tb.SetRows(tt.rows)
			}
			tb.SetMarked(func(i int) bool { return i == 1 })
			tb.SetSize(tt.width, tt.height)
			if got := strings.Split(tb.View(), "\n"); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "|\n"), strings.Join(tt.want, "|\n"))
			}
		})
	}
}

func TestLinesAreStyledOnce(t *testing.T) {
	style := func(name string) theme.Style { return theme.Style{Prefix: "<" + name + ">", Suffix: "</>"} }
	tb := New(columns(), Styles{Header: style("h"), Row: style("r"), Cursor: style("c"), Marked: style("m")})
	tb.SetRows(fixed{{"1", "a"}, {"2", "b"}, {"3", "c"}})
	tb.SetMarked(func(i int) bool { return i < 2 })
	tb.SetSize(13, 4)
	want := []string{
		"<h>   SEQ   NAME</>",
		"<c>>* 1     a   </>",
		"<m> * 2     b   </>",
		"<r>   3     c   </>",
	}
	if got := strings.Split(tb.View(), "\n"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMoving(t *testing.T) {
	rows := &list{n: 100}
	tb := New(columns(), Styles{})
	tb.SetRows(rows)
	tb.SetSize(40, 11) // ten rows
	steps := []struct {
		name        string
		do          func()
		cursor, top int
		position    string
	}{
		{"start", func() {}, 0, 0, "1/100"},
		{"up at the start", tb.Up, 0, 0, "1/100"},
		{"down", tb.Down, 1, 0, "2/100"},
		{"page down", tb.PageDown, 11, 10, "12/100"},
		{"page up", tb.PageUp, 1, 0, "2/100"},
		{"page up at the start", tb.PageUp, 0, 0, "1/100"},
		{"end", tb.End, 99, 90, "100/100"},
		{"down at the end", tb.Down, 99, 90, "100/100"},
		{"page down at the end", tb.PageDown, 99, 90, "100/100"},
		{"up within the window", tb.Up, 98, 90, "99/100"},
		{"to a row above", func() { tb.SetCursor(50) }, 50, 50, "51/100"},
		{"to a row below", func() { tb.SetCursor(70) }, 70, 61, "71/100"},
		{"too far", func() { tb.SetCursor(1000) }, 99, 90, "100/100"},
		{"negative", func() { tb.SetCursor(-5) }, 0, 0, "1/100"},
		{"home", tb.Home, 0, 0, "1/100"},
		{"to the middle", func() { tb.SetCursor(55) }, 55, 46, "56/100"},
		{"lower screen", func() { tb.SetSize(40, 4) }, 55, 53, "56/100"},
		{"higher screen", func() { tb.SetSize(40, 61) }, 55, 40, "56/100"},
		{"only a header fits", func() { tb.SetSize(40, 1) }, 55, 55, "56/100"},
		{"hidden", func() { tb.SetSize(0, 0) }, 55, 55, "56/100"},
		{"shown again", func() { tb.SetSize(40, 11) }, 55, 55, "56/100"},
		{"the list grows", func() { rows.n = 50_000 }, 55, 55, "56/50,000"},
		{"thousands", func() { tb.SetCursor(1203) }, 1203, 1194, "1,204/50,000"},
		{"the list shrinks", func() { rows.n = 20 }, 19, 10, "20/20"},
		{"the list is emptied", func() { rows.n = 0 }, 0, 0, "0/0"},
		{"down in nothing", tb.Down, 0, 0, "0/0"},
		{"end of nothing", tb.End, 0, 0, "0/0"},
		{"a list again", func() { rows.n = 1_000_000; tb.End() }, 999_999, 999_990, "1,000,000/1,000,000"},
	}
	for _, s := range steps {
		s.do()
		if tb.Cursor() != s.cursor || tb.Top() != s.top || tb.Position() != s.position {
			t.Fatalf("%s: cursor %d, top %d, position %s, want %d, %d, %s",
				s.name, tb.Cursor(), tb.Top(), tb.Position(), s.cursor, s.top, s.position)
		}
	}
}

func TestOnlyVisibleRowsAreAskedFor(t *testing.T) {
	rows := &list{n: 1_000_000}
	tb := New(columns(), Styles{})
	tb.SetRows(rows)
	tb.SetSize(40, 4)
	tb.SetCursor(500_000)
	tb.View()
	if want := []int{499_998, 499_999, 500_000}; !slices.Equal(rows.asked, want) {
		t.Errorf("rows %v were asked for, want %v", rows.asked, want)
	}
}

func TestLayout(t *testing.T) {
	cols := []Column{{Width: 6}, {Width: 10, Min: 4, Flex: true}, {Width: 8, Min: 5}}
	tests := []struct {
		room int
		want []int
	}{
		{40, []int{6, 22, 8}},
		{28, []int{6, 10, 8}},
		{24, []int{6, 6, 8}},
		{22, []int{6, 4, 8}},
		{20, []int{6, 4, 6}},
		{19, []int{6, 4, 5}},
		{18, []int{6, 10}},
		{12, []int{6, 4}},
		{11, []int{6}},
		{6, []int{6}},
		{3, []int{3}},
		{0, []int{0}},
		{-3, []int{0}},
	}
	for _, tt := range tests {
		if got := layout(cols, tt.room); !slices.Equal(got, tt.want) {
			t.Errorf("layout in %d cells = %v, want %v", tt.room, got, tt.want)
		}
	}
	if got := layout(nil, 10); len(got) != 0 {
		t.Errorf("layout of no columns = %v", got)
	}
}

// A frame takes one string and what the source itself makes.
func TestFrameAllocatesLittle(t *testing.T) {
	tb := New(columns(), Styles{})
	tb.SetRows(constant{1_000_000})
	tb.SetSize(200, 50)
	tb.End()
	if n := testing.AllocsPerRun(20, func() { tb.Up(); tb.View() }); n > 3 {
		t.Errorf("a key and a frame allocate %v times, want at most 3", n)
	}
}

func FuzzView(f *testing.F) {
	f.Add("id", "\x1b[2Jname\r\n", 40, 5, 8, 10)
	f.Add("日本語", "\u202e\xff\u0301", 9, 3, 4, 2)
	f.Add("👍🏽", "🇫🇷🇩", -1, 0, 0, -5)
	f.Fuzz(func(t *testing.T, first, second string, width, height, col1, col2 int) {
		width, height = min(width, 300), min(height, 50)
		tb := New([]Column{{Title: second, Width: min(col1, 100)}, {Title: first, Width: min(col2, 100), Min: 3, Flex: true}}, Styles{})
		tb.SetRows(fixed{{first, second}, {second, first, first}, {first}, nil})
		tb.SetSize(width, height)
		lines := strings.Split(tb.View(), "\n")
		if width > 0 && height > 0 && len(lines) != height {
			t.Fatalf("%d lines in a height of %d", len(lines), height)
		}
		for _, line := range lines {
			if w := ansi.StringWidth(line); w > max(width, 0) {
				t.Fatalf("%q is %d cells wide, want at most %d", line, w, width)
			}
			if i := strings.IndexFunc(line, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e }); i >= 0 {
				t.Fatalf("%q holds a control at %d", line, i)
			}
		}
	})
}
