package textview

import (
	"slices"
	"testing"
)

func TestHexRows(t *testing.T) {
	content := []byte("{\"a\":1}\n\x00\x1b[31m\xff\u0301 tail")
	tests := []struct {
		name  string
		width int
		want  []string
	}{
		{"sixteen", 80, []string{
			`00000000  7b 22 61 22 3a 31 7d 0a  00 1b 5b 33 31 6d ff cc  |{"a":1}...[31m..|`,
			`00000010  81 20 74 61 69 6c                                 |. tail|`,
		}},
		{"eight", 60, []string{
			`00000000  7b 22 61 22 3a 31 7d 0a  |{"a":1}.|`,
			`00000008  00 1b 5b 33 31 6d ff cc  |..[31m..|`,
			`00000010  81 20 74 61 69 6c        |. tail|`,
		}},
		{"four", 29, []string{
			`00000000  7b 22 61 22  |{"a"|`,
			`00000004  3a 31 7d 0a  |:1}.|`,
			`00000008  00 1b 5b 33  |..[3|`,
		}},
		{"cut", 12, []string{`00000000  7b`, `00000004  3a`, `00000008  00`}},
		{"no room", 0, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := NewHex(content)
			h.SetSize(tt.width, 3)
			if got := h.Lines(); !slices.Equal(got, tt.want) {
				t.Errorf("Lines() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestHexScrolls(t *testing.T) {
	h := NewHex(make([]byte, 16*10+1)) // 11 rows
	h.SetSize(78, 4)
	steps := []struct {
		name string
		do   func()
		want int
	}{
		{"up at the start", func() { h.Up(1) }, 0},
		{"down", func() { h.Down(2) }, 32},
		{"page down", h.PageDown, 96},
		{"page down at the end", h.PageDown, 112},
		{"page up", h.PageUp, 48},
		{"end", h.End, 112},
		{"to an offset", func() { h.SetOffset(50) }, 48},
		{"narrower", func() { h.SetSize(50, 4) }, 48},
		{"higher than the bytes", func() { h.SetSize(80, 99) }, 0},
		{"home", h.Home, 0},
	}
	for _, s := range steps {
		s.do()
		if got := h.Offset(); got != s.want {
			t.Fatalf("%s: offset %d, want %d", s.name, got, s.want)
		}
	}
	empty := NewHex(nil)
	empty.SetSize(80, 4)
	empty.End()
	if got := empty.Lines(); len(got) != 0 {
		t.Errorf("empty content has the lines %q", got)
	}
}
