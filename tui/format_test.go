package tui

import (
	"strings"
	"testing"
	"time"

	"dlq/tui/textview"
)

func TestAge(t *testing.T) {
	tests := []struct {
		d    time.Duration
		want string
	}{
		{-time.Second, "now"},
		{0, "0s"},
		{59 * time.Second, "59s"},
		{time.Minute, "1m"},
		{59*time.Minute + 59*time.Second, "59m"},
		{time.Hour, "1h"},
		{time.Hour + time.Minute, "1h1m"},
		{9*time.Hour + 59*time.Minute, "9h59m"},
		{10*time.Hour + 30*time.Minute, "10h"},
		{24 * time.Hour, "1d"},
		{26 * time.Hour, "1d2h"},
		{10 * 24 * time.Hour, "10d"},
		{999 * 24 * time.Hour, "999d"},
		{1000 * 24 * time.Hour, "2y"},
	}
	for _, tt := range tests {
		if got := age(begin.Add(tt.d), begin); got != tt.want || len(got) > ageWidth {
			t.Errorf("age of %v is %q, want %q", tt.d, got, tt.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234"} {
		if got := grouped(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1.0K", 1536: "1.5K", 64 << 10: "64K", 1 << 20: "1.0M", 100 << 20: "100M", 1 << 40: "1.0T"} {
		if got := shortBytes(n); got != want || len(got) > sizeWidth {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{-1: "?", 0: "·", 12: "12"} {
		if got := count(n); got != want {
			t.Errorf("count %d is %q, want %q", n, got, want)
		}
	}
}

func TestShortType(t *testing.T) {
	for s, want := range map[string]string{
		"System.Net.Http.HttpRequestException: no route": "HttpRequestException: no route",
		"TimeoutException: 3.5 s":                        "TimeoutException: 3.5 s",
		"the host example.com: no answer":                "the host example.com: no answer",
		"no type here":                                   "no type here",
		"a.b.c":                                          "a.b.c",
		"":                                               "",
	} {
		if got := shortType(s); got != want {
			t.Errorf("%q became %q, want %q", s, got, want)
		}
	}
}

func TestBar(t *testing.T) {
	tests := []struct {
		part, whole int64
		want        string
	}{{0, 10, ""}, {1, 10000, "▏"}, {5, 10, "████"}, {10, 10, "████████"}, {1, 16, "▌"}, {1, 0, ""}}
	for _, tt := range tests {
		if got := bar(tt.part, tt.whole, 8); got != tt.want {
			t.Errorf("%d of %d is %q, want %q", tt.part, tt.whole, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	tests := []struct {
		text  string
		width int
		want  string
	}{
		{"one two three", 7, "one two|three"},
		{"one\ntwo", 9, "one|two"},
		{"   at Some.Method here", 14, "   at|   Some.Method|   here"},
		{"abcdefghij", 4, "abcd|efgh|ij"},
		{"a\x1bb", 9, "a^[b"},
		{"界界界", 4, "界界|界"},
		{"", 4, ""},
	}
	for _, tt := range tests {
		if got := strings.Join(wrap(tt.text, tt.width), "|"); got != tt.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("one two three", 5)
	f.Add("界\x1b[2J e\u0301 \tx", 3)
	f.Fuzz(func(t *testing.T, text string, width int) {
		if len(text) > 1<<12 || width < 8 || width > 300 { // the longest escape has 10 cells
			return
		}
		for _, row := range wrap(text, width) {
			if w := textview.Width(row); w > width {
				t.Fatalf("%q is %d cells wide, want at most %d", row, w, width)
			}
		}
	})
}

func TestLineEdit(t *testing.T) {
	tests := []struct {
		keys []string
		want string // with the cursor as |
	}{
		{[]string{"a", "b", "left", "c"}, "ac|b"},
		{[]string{"a", " ", "b", "ctrl+w"}, "a |"},
		{[]string{"a", "b", "ctrl+a", "delete"}, "|b"},
		{[]string{"a", "b", "home", "right", "ctrl+k"}, "a|"},
		{[]string{"a", "b", "ctrl+u", "é"}, "é|"},
		{[]string{"a", "backspace", "backspace", "left", "right"}, "|"},
	}
	for _, tt := range tests {
		var e lineEdit
		for _, k := range tt.keys {
			e.key(keyMsg(k))
		}
		if got := string(e.text[:e.pos]) + "|" + string(e.text[e.pos:]); got != tt.want {
			t.Errorf("%v gives %q, want %q", tt.keys, got, tt.want)
		}
	}
}

// A long line scrolls so that the cursor is seen.
func TestLineEditScrolls(t *testing.T) {
	e := newLineEdit(strings.Repeat("x", 50) + "END")
	l, first := e.line(20, withStyle())
	if text := drawn(l); !strings.Contains(text, "END") || first == 0 || textview.Width(text) > 20 {
		t.Errorf("the line shows %q from %d", text, first)
	}
	e.key(keyMsg("home"))
	if l, first := e.line(20, withStyle()); first != 0 || drawn(l)[0] != 'x' {
		t.Errorf("at home the line shows %q", drawn(l))
	}
}
