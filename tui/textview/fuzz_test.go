package textview

import (
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func addCorpus(f *testing.F) {
	for _, a := range attacks() {
		f.Add(a.in, 7)
	}
	f.Add("日本語 👍🏽 🇫🇷🇩\n\ttab\r\nend", 5)
}

func FuzzSanitise(f *testing.F) {
	addCorpus(f)
	f.Fuzz(func(t *testing.T, s string, _ int) {
		got := Sanitise(s)
		checkSafe(t, got)
		if again := Sanitise(got); again != got {
			t.Fatalf("Sanitise(%q) = %q, and again %q", s, got, again)
		}
		for _, line := range SanitiseLines(s) {
			checkSafe(t, line)
			if again := Sanitise(line); again != line {
				t.Fatalf("a line of %q is %q, and again %q", s, line, again)
			}
		}
	})
}

func FuzzTruncate(f *testing.F) {
	addCorpus(f)
	f.Fuzz(func(t *testing.T, s string, cells int) {
		cells = max(min(cells, 1000), -1)
		short, padded := Truncate(s, cells), Pad(s, cells)
		checkSafe(t, short)
		checkSafe(t, padded)
		if w := ansi.StringWidth(short); w > max(cells, 0) {
			t.Fatalf("Truncate(%q, %d) = %q, %d cells wide", s, cells, short, w)
		}
		if w := Width(padded); w != max(cells, 0) {
			t.Fatalf("Pad(%q, %d) = %q, %d cells wide", s, cells, padded, w)
		}
		if again := Truncate(short, cells); again != short {
			t.Fatalf("Truncate(%q, %d) = %q, and again %q", s, cells, short, again)
		}
		if Width(s) != Width(Sanitise(s)) {
			t.Fatalf("Width(%q) = %d, but sanitised it is %d", s, Width(s), Width(Sanitise(s)))
		}
	})
}

func FuzzView(f *testing.F) {
	for _, a := range attacks() {
		f.Add([]byte(a.in+"\r\n"+a.in), uint8(7), uint8(3), uint8(8))
	}
	f.Fuzz(func(t *testing.T, content []byte, width, height, stride uint8) {
		if len(content) > 4096 {
			return // the walk looks at every row three times
		}
		checkView(t, content, 1+int(width)%100, 1+int(height)%50, 8+int(stride))
	})
}

func FuzzHex(f *testing.F) {
	f.Add([]byte("\x00\x1b[2J\xff"), 80, 0)
	f.Fuzz(func(t *testing.T, content []byte, width, off int) {
		width = min(max(width, 0), 200)
		h := NewHex(content)
		h.SetSize(width, 5)
		h.SetOffset(off)
		for _, line := range h.Lines() {
			checkSafe(t, line)
			if len(line) > width {
				t.Fatalf("%q is wider than %d", line, width)
			}
		}
	})
}
