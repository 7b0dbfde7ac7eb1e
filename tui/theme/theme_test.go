package theme

import (
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/lipgloss"
)

// styles returns the styles of a theme by name.
func styles(t Theme) map[string]Style {
	all := map[string]Style{}
	v := reflect.ValueOf(t)
	for i := range v.NumField() {
		all[v.Type().Field(i).Name] = v.Field(i).Interface().(Style)
	}
	return all
}

func TestColourOffIsPlain(t *testing.T) {
	for _, th := range []Theme{{}, New(false, true), New(false, false)} {
		for name, s := range styles(th) {
			if s.Prefix != "" || s.Suffix != "" {
				t.Errorf("%s: prefix %q and suffix %q, want none", name, s.Prefix, s.Suffix)
			}
			if got := s.Render("text"); got != "text" {
				t.Errorf("%s: Render = %q", name, got)
			}
			if got := s.Lipgloss().Render("text"); got != "text" {
				t.Errorf("%s: Lipgloss renders %q", name, got)
			}
		}
	}
}

func TestPreparedStylesAreThoseOfLipgloss(t *testing.T) {
	for _, dark := range []bool{true, false} {
		for name, s := range styles(New(true, dark)) {
			if s.Prefix == "" || s.Suffix != "\x1b[0m" {
				t.Errorf("%s: prefix %q and suffix %q", name, s.Prefix, s.Suffix)
			}
			if got, want := s.Render("text"), s.Lipgloss().Render("text"); got != want {
				t.Errorf("%s: Render = %q, lipgloss writes %q", name, got, want)
			}
		}
	}
}

func TestSequences(t *testing.T) {
	tests := []struct {
		name string
		got  Style
		want string
	}{
		{"dark danger", New(true, true).Danger, "\x1b[1;91m"},
		{"light danger", New(true, false).Danger, "\x1b[1;31m"},
		{"dark muted", New(true, true).Muted, "\x1b[38;5;245m"},
		{"selected", New(true, true).Selected, "\x1b[7m"},
		{"title", New(true, false).Title, "\x1b[1m"},
	}
	for _, tt := range tests {
		if tt.got.Prefix != tt.want {
			t.Errorf("%s: prefix %q, want %q", tt.name, tt.got.Prefix, tt.want)
		}
	}
}

// Every colour is legible (WCAG AA, 4.5 to 1) on black and on white, in the two
// palettes most others descend from.
func TestContrast(t *testing.T) {
	palettes := map[string][16]uint32{
		"xterm": {
			0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
			0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
		},
		"VGA": {
			0x000000, 0xaa0000, 0x00aa00, 0xaa5500, 0x0000aa, 0xaa00aa, 0x00aaaa, 0xaaaaaa,
			0x555555, 0xff5555, 0x55ff55, 0xffff55, 0x5555ff, 0xff55ff, 0x55ffff, 0xffffff,
		},
	}
	for _, dark := range []bool{true, false} {
		background := uint32(0xffffff)
		if dark {
			background = 0
		}
		for name, s := range styles(New(true, dark)) {
			colour, ok := s.Lipgloss().GetForeground().(lipgloss.Color)
			if !ok {
				continue // the terminal's own foreground
			}
			n, err := strconv.Atoi(string(colour))
			if err != nil {
				t.Fatalf("%s: colour %q", name, colour)
			}
			for palette, sixteen := range palettes {
				if c := contrast(rgb(n, sixteen), background); c < 4.5 {
					t.Errorf("%s, dark %v, %s: contrast %.1f, want 4.5", name, dark, palette, c)
				}
			}
		}
	}
}

// rgb returns colour n of the 256, of which the first sixteen vary.
func rgb(n int, sixteen [16]uint32) uint32 {
	level := func(i int) uint32 {
		if i == 0 {
			return 0
		}
		return uint32(55 + 40*i)
	}
	switch {
	case n < 16:
		return sixteen[n]
	case n < 232:
		n -= 16
		return level(n/36)<<16 | level(n/6%6)<<8 | level(n%6)
	}
	return uint32(8+10*(n-232)) * 0x010101
}

// contrast returns the contrast ratio of two colours as WCAG defines it.
func contrast(a, b uint32) float64 {
	luminance := func(c uint32) float64 {
		linear := func(v uint32) float64 {
			f := float64(v&0xff) / 255
			if f <= 0.04045 {
				return f / 12.92
			}
			return math.Pow((f+0.055)/1.055, 2.4)
		}
		return 0.2126*linear(c>>16) + 0.7152*linear(c>>8) + 0.0722*linear(c)
	}
	high, low := luminance(a), luminance(b)
	return (max(high, low) + 0.05) / (min(high, low) + 0.05)
}

func TestDetectDark(t *testing.T) {
	tests := []struct {
		theme, fgbg string
		dark, known bool
	}{
		{"", "", true, false},
		{"dark", "0;15", true, true},
		{"Light", "15;0", false, true},
		{"solarized", "0;15", false, true},
		{"", "15;0", true, true},
		{"", "0;default;15", false, true},
		{"", "0;7", false, true},
		{"", "7;8", true, true},
		{"", "15;default", true, false},
		{"", "15", true, false},
		{"", ";", true, false},
	}
	for _, tt := range tests {
		env := map[string]string{"DLQ_THEME": tt.theme, "COLORFGBG": tt.fgbg}
		dark, known := DetectDark(func(name string) string { return env[name] })
		if dark != tt.dark || known != tt.known {
			t.Errorf("DLQ_THEME=%q COLORFGBG=%q: dark %v, known %v, want %v, %v",
				tt.theme, tt.fgbg, dark, known, tt.dark, tt.known)
		}
	}
}

func TestInitAnswersForTheTerminal(t *testing.T) {
	if !lipgloss.HasDarkBackground() {
		t.Error("the background is not set: importing bubbletea will ask the terminal")
	}
}

// Anything lipgloss does not wait for may be initialised after bubbletea, and
// this package with it, too late to prevent the question.
func TestImportsKeepTheInitEarly(t *testing.T) {
	allowed := []string{"io", "strings", "github.com/charmbracelet/lipgloss", "github.com/muesli/termenv"}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(allowed, path) {
			t.Errorf("theme imports %s, which may delay its init behind that of bubbletea; "+
				"allow it here only if lipgloss imports it too", path)
		}
	}
}
