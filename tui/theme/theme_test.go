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
	for _, th := range []Theme{{}, New(false, Dark), New(false, Light), New(false, Unknown)} {
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
	for _, on := range []Background{Unknown, Dark, Light} {
		for name, s := range styles(New(true, on)) {
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
		{"dark danger", New(true, Dark).Danger, "\x1b[1;91m"},
		{"light danger", New(true, Light).Danger, "\x1b[1;31m"},
		{"dark muted", New(true, Dark).Muted, "\x1b[38;5;245m"},
		{"selected", New(true, Dark).Selected, "\x1b[7m"},
		{"title", New(true, Light).Title, "\x1b[1m"},
	}
	for _, tt := range tests {
		if tt.got.Prefix != tt.want {
			t.Errorf("%s: prefix %q, want %q", tt.name, tt.got.Prefix, tt.want)
		}
	}
}

// Every colour is legible (WCAG AA, 4.5 to 1) on black or on white, in the two
// palettes most others descend from. Where the background is not known it has to be so on
// both, for which 4.58 is the most there can be and few hues come above 4.
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
	const black, white = 0x000000, 0xffffff
	tests := []struct {
		on          Background
		backgrounds []uint32
		want        float64
	}{
		{Dark, []uint32{black}, 4.5},
		{Light, []uint32{white}, 4.5},
		{Unknown, []uint32{black, white}, 4},
	}
	for _, tt := range tests {
		for name, s := range styles(New(true, tt.on)) {
			colour, ok := s.Lipgloss().GetForeground().(lipgloss.Color)
			if !ok {
				continue // the terminal's own foreground
			}
			n, err := strconv.Atoi(string(colour))
			if err != nil {
				t.Fatalf("%s: colour %q", name, colour)
			}
			for palette, sixteen := range palettes {
				for _, background := range tt.backgrounds {
					if c := contrast(rgb(n, sixteen), background); c < tt.want {
						t.Errorf("%s, %s on %06x: contrast %.1f, want %.1f", name, palette, background, c, tt.want)
					}
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

func TestDetect(t *testing.T) {
	tests := []struct {
		theme, fgbg string
		want        Background
	}{
		{"", "", Unknown},
		{"dark", "0;15", Dark},
		{"Light", "15;0", Light},
		{"solarized", "0;15", Light},
		{"", "15;0", Dark},
		{"", "0;default;15", Light},
		{"", "0;7", Light},
		{"", "7;8", Dark},
		{"", "15;default", Unknown},
		{"", "15", Unknown},
		{"", ";", Unknown},
	}
	for _, tt := range tests {
		env := map[string]string{"DLQ_THEME": tt.theme, "COLORFGBG": tt.fgbg}
		if got := Detect(func(name string) string { return env[name] }); got != tt.want {
			t.Errorf("DLQ_THEME=%q COLORFGBG=%q: %v, want %v", tt.theme, tt.fgbg, got, tt.want)
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
