package textview

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestWidth(t *testing.T) {
	tests := []struct {
		in   string
		want int
	}{
		{"", 0},
		{"abc", 3},
		{"é", 1},
		{"e\u0301", 1},
		{"日本", 4},
		{"👍🏽", 2},
		{"⚠\ufe0f", 2},
		{"🇫🇷", 2},
		{"한", 2},
		{"\x1b[m", 4},
		{"\t", 2},
		{"\u202e", 8},
		{"\xff", 4},
	}
	for _, tt := range tests {
		if got := Width(tt.in); got != tt.want {
			t.Errorf("Width(%q) = %d, want %d", tt.in, got, tt.want)
		}
	}
}

func TestTruncateAndPad(t *testing.T) {
	tests := []struct {
		in             string
		cells          int
		truncated, pad string
	}{
		{"", 0, "", ""},
		{"", 2, "", "  "},
		{"abc", -1, "", ""},
		{"abc", 0, "", ""},
		{"abc", 1, "…", "…"},
		{"abc", 2, "a…", "a…"},
		{"abc", 3, "abc", "abc"},
		{"abc", 5, "abc", "abc  "},
		{"日本語", 6, "日本語", "日本語"},
		{"日本語", 5, "日本…", "日本…"},
		{"日本語", 4, "日…", "日… "},
		{"日", 1, "…", "…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…", "e\u0301…"},
		{"a\x1b[m", 4, "a^[…", "a^[…"},
		{"a\u202eb", 6, "a…", "a…    "},
		{"👍🏽👍🏽", 3, "👍🏽…", "👍🏽…"},
	}
	for _, tt := range tests {
		if got := Truncate(tt.in, tt.cells); got != tt.truncated {
			t.Errorf("Truncate(%q, %d) = %q, want %q", tt.in, tt.cells, got, tt.truncated)
		}
		if got := Pad(tt.in, tt.cells); got != tt.pad {
			t.Errorf("Pad(%q, %d) = %q, want %q", tt.in, tt.cells, got, tt.pad)
		}
		if got := string(AppendPad([]byte("|"), tt.in, tt.cells)); got != "|"+tt.pad {
			t.Errorf("AppendPad(%q, %d) = %q, want %q", tt.in, tt.cells, got, "|"+tt.pad)
		}
	}
}

func TestCorpusInACell(t *testing.T) {
	for _, a := range attacks() {
		for cells := range 20 {
			got := Pad(a.in, cells)
			checkSafe(t, got)
			if w := ansi.StringWidth(got); w != cells {
				t.Errorf("%s: Pad(%q, %d) is %d cells wide", a.name, a.in, cells, w)
			}
			if w := ansi.StringWidth(Truncate(a.in, cells)); w > cells {
				t.Errorf("%s: Truncate(%q, %d) is %d cells wide", a.name, a.in, cells, w)
			}
		}
	}
}

// A cell of a table costs what fits into it, not what the message holds: the
// rest is not even looked at.
func TestTruncateDoesNotReadTheRest(t *testing.T) {
	s := strings.Repeat("x", 64<<20)
	dst := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(10_000, func() { AppendPad(dst, s, 20) }); n > 0 {
		t.Errorf("AppendPad allocates %v times", n)
	}
	if n := testing.AllocsPerRun(10_000, func() { Truncate(s, 20) }); n > 1 {
		t.Errorf("Truncate allocates %v times", n)
	}
}
