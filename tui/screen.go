package tui

import tea "github.com/charmbracelet/bubbletea"

// screen is one full screen. It draws what lies between the frame's lines and answers
// what the frame shows about it. Only the top one gets keys; all of them get every other
// message, and drop what is not theirs.
type screen interface {
	// Init returns what the screen begins with, when it is put on the stack.
	Init() tea.Cmd
	Update(msg tea.Msg) tea.Cmd
	// SetSize gives the room within the frame.
	SetSize(width, height int)
	// View returns at most as many lines as there is room, each exactly so wide.
	View() []string
	// Crumb is the screen's name in the header.
	Crumb() string
	// Context is what it shows: counts and filters on the left, side effects on the right.
	Context() (left, right line)
	// Status is what it is busy with or what went wrong, if it is or did.
	Status() line
	Keys() keyMap
	// Prompt is the line that is being typed, or nil. While there is one, it gets all keys.
	Prompt() *prompt
	// Back is what the back key does here before it leaves: it reports whether there was
	// something to undo first, such as a filter.
	Back() (tea.Cmd, bool)
	// Close ends whatever is under way.
	Close()
}

// dialog stands on top of the screen and gets all keys.
type dialog interface {
	Init() tea.Cmd
	Update(msg tea.Msg) tea.Cmd
	Title() string
	// View returns the content for a room of that size; lines that are too many are cut.
	View(width, height int) []line
	Keys() keyMap
	// Danger reports whether the dialog is about something that takes messages away.
	Danger() bool
	Close()
}
