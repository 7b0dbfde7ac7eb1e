package theme

import (
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// Theme holds one style for each meaning. The zero value has no styling at all
// and is ready to use.
type Theme struct {
	Title    Style // the name of a screen
	Header   Style // the head line of a table
	Selected Style // the row under the cursor; always with a marker as well
	Marked   Style // rows chosen for an action; always with a marker as well
	Accent   Style // what to look at first
	Key      Style // a key that can be pressed
	Muted    Style // what may be overlooked: hints, borders, ages
	OK       Style // it worked
	Warning  Style // it may not be what was meant
	Danger   Style // it failed, or cannot be undone
}

// Style is a look that is ready to be written: Prefix before a text and Suffix
// after it. The text must be sanitised, in one line and without styles of its
// own, for the suffix ends all of them.
type Style struct {
	Prefix, Suffix string

	lip *lipgloss.Style
}

// Render returns s in the style.
func (s Style) Render(text string) string {
	if s.Prefix == "" && s.Suffix == "" {
		return text
	}
	return s.Prefix + text + s.Suffix
}

// Lipgloss returns the style for a component that takes no other. It writes the
// same sequences, whatever lipgloss believes of the terminal.
func (s Style) Lipgloss() lipgloss.Style {
	if s.lip == nil {
		return lipgloss.NewStyle()
	}
	return *s.lip
}

// look is what a style is made of. Colours are numbers of the palette: "0" to
// "15" are the terminal's own, and an empty one is left as it is.
type look struct {
	dark, light   string
	either        string
	bold, reverse bool
}

// New returns the theme for a terminal with or without colour and with that
// background. It does not ask the terminal anything.
func New(colour bool, on Background) Theme {
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(termenv.Ascii)
	if colour {
		r.SetColorProfile(termenv.ANSI256)
	}
	r.SetHasDarkBackground(on != Light)
	style := func(l look) Style { return newStyle(r, l, on) }
	return Theme{
		Title:    style(look{bold: true}),
		Header:   style(look{bold: true}),
		Selected: style(look{reverse: true}),
		Marked:   style(look{dark: "11", light: "94", either: "130"}),
		Accent:   style(look{dark: "14", light: "4", either: "30"}),
		Key:      style(look{dark: "14", light: "4", either: "30", bold: true}),
		Muted:    style(look{dark: "245", light: "241", either: "243"}),
		OK:       style(look{dark: "10", light: "22", either: "28"}),
		Warning:  style(look{dark: "11", light: "94", either: "130"}),
		Danger:   style(look{dark: "9", light: "1", either: "161", bold: true}),
	}
}

// newStyle prepares the sequences of a look by letting lipgloss write them
// once, around a text they cannot contain.
func newStyle(r *lipgloss.Renderer, l look, on Background) Style {
	colour := [...]string{Unknown: l.either, Dark: l.dark, Light: l.light}[on]
	lip := r.NewStyle().Bold(l.bold).Reverse(l.reverse)
	if colour != "" {
		lip = lip.Foreground(lipgloss.Color(colour))
	}
	const text = "x"
	prefix, suffix, _ := strings.Cut(lip.Render(text), text)
	return Style{Prefix: prefix, Suffix: suffix, lip: &lip}
}
