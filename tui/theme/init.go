package theme

import "github.com/charmbracelet/lipgloss"

// Importing bubbletea asks the terminal for its background colour: its own
// init calls lipgloss.HasDarkBackground, which writes an escape sequence and
// waits up to five seconds for the answer, in every command of the program,
// whether it has a UI or not. The question is not asked when the answer is
// already set, and that is all this init is for.
//
// It has to run before the one of bubbletea. Go initialises packages whose
// imports are ready in the order of their import paths, and "dlq/tui/theme"
// comes before "github.com/charmbracelet/bubbletea". This holds only as long as
// this package imports nothing that lipgloss does not import anyway, which a
// test checks. The answer set here is not used: a Theme is told by New what
// the background is.
func init() { lipgloss.SetHasDarkBackground(true) }
