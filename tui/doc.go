// Package tui is dlq's terminal UI: the whole job on dead letters in one screen, for the
// person who was just paged.
//
// [Run] opens it. There is one tea.Model, app (app.go), which owns a stack of screens, at
// most one dialog on top of them and at most one running job. Where to find what:
//
//	entities.go letters.go groups.go detail.go jobs.go       one file a screen (screen.go: what one is)
//	plan.go editing.go exporting.go progress.go report.go    the dialogs on the way to a job and from it
//	confirm.go help.go                                       the other dialogs
//	actions.go job.go     what an action is about; the job that runs beside the UI
//	keys.go messages.go   every key map; what Cmds send back into Update
//	layout.go             every number of the geometry, and nowhere else
//	frame.go line.go      what stands around each screen; how text gets onto it
//	prompt.go lineedit.go filter.go   a line being typed, and what the filter line does with it
//	stream.go request.go  how iterators and answers get into Update: order, cancellation, panics
//	rows.go marks.go      the compact rows of a million messages, without their bodies
//	facts.go bodypane.go  one message in words, and its body
//	screenshot.go         the UI without a terminal, for documents and tests
//
// Rules that hold everywhere:
//
// Update does no IO and nothing that grows with the number of rows beyond a pass over
// packed memory; a Cmd does the rest and never touches the model. A result carries the
// stream or the request it belongs to, and one that is no longer current is dropped.
//
// What changes a queue goes through package resubmit, begins with a capital letter and asks
// before it does anything. What the connection or the backend does not allow is disabled in
// the key map, so that help, footer and behaviour agree.
//
// Nothing is told by colour alone, because NO_COLOR drops bold and reverse too.
//
// Text that somebody else wrote (names, reasons, bodies, errors of servers) reaches the
// screen through tui/textview, before any style is put on it.
package tui
