package tui

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"dlq/tui/textview"
)

// The messages by which screens and dialogs ask the app for something. What a Cmd brings
// back is declared beside the code that sends and receives it.
type (
	// pushMsg opens a screen on top of the present one.
	pushMsg struct{ screen screen }
	// replaceMsg puts a screen in the place of the present one.
	replaceMsg struct{ screen screen }
	// popMsg goes back to the screen below.
	popMsg struct{}
	// openMsg shows a dialog in the place of the present one, if there is one.
	openMsg struct{ dialog dialog }
	// closeMsg closes the dialog, if it is still that one; nil closes any.
	closeMsg struct{ dialog dialog }
	// noticeMsg puts one line into the status line until the next key.
	noticeMsg struct{ notice notice }
	// queuesChangedMsg tells every screen that a job has changed queues.
	queuesChangedMsg struct{}
	// tickMsg comes every few seconds, so that ages on the screen stay true.
	tickMsg struct{}
)

// level is how loud a notice is. Each has a word of its own, for terminals without colour.
type level uint8

const (
	info level = iota
	success
	warning
	failure
)

// notice is one line for the status line.
type notice struct {
	level level
	text  string
}

func push(s screen) tea.Cmd       { return func() tea.Msg { return pushMsg{s} } }
func openDialog(d dialog) tea.Cmd { return func() tea.Msg { return openMsg{d} } }

func closeDialog(d dialog) tea.Cmd { return func() tea.Msg { return closeMsg{d} } }

func notify(l level, format string, args ...any) tea.Cmd {
	return func() tea.Msg { return noticeMsg{notice{l, fmt.Sprintf(format, args...)}} }
}

// notifyError shows an error, or nothing when there is none.
func notifyError(err error) tea.Cmd {
	if err == nil {
		return nil
	}
	return notify(failure, "%s", oneLine(err))
}

// oneLine is an error's text in one safe line.
func oneLine(err error) string { return textview.Sanitise(err.Error()) }
