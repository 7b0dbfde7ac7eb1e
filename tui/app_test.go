package tui

import (
	"fmt"
	"regexp"
	"testing"
)

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestScreens(t *testing.T) {
	sizes := []struct{ w, h int }{{80, 24}, {120, 40}, {40, 10}}
	screens := []struct {
		name string
		keys []string
	}{
		{"entities", nil},
		{"letters", []string{"enter"}},
		{"letters-marked", []string{"enter", " ", "down", " "}},
		{"active", []string{"a"}},
		{"groups", []string{"enter", "g"}},
		{"detail", []string{"enter", "enter"}},
		{"detail-hex", []string{"enter", "enter", "tab", "v", "v"}},
		{"jobs-empty", []string{"J"}},
		{"help", []string{"enter", "?"}},
	}
	for _, s := range screens {
		for _, size := range sizes {
			name := fmt.Sprintf("%s-%dx%d", s.name, size.w, size.h)
			t.Run(name, func(t *testing.T) {
				b, c := incident(t)
				d := drive(t, Deps{Backend: b, Now: c.Now}, size.w, size.h)
				d.press(s.keys...)
				d.golden(name)
			})
		}
	}
}
