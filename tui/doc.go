// Package tui is dlq's terminal UI: the whole job on dead letters in one screen, for the
// person who was just paged.
//
// [Run] opens it. There is one tea.Model, app (app.go), which owns a stack of screens, at
// most one dialog on top of them and at most one running job. Where to find what:
//
//	entities.go deadletters.go groups.go detail.go jobs.go   one file a screen
//	plan.go diff.go progress.go report.go prompt.go help.go  the dialogs
//	keys.go        every key map; a binding that the backend cannot serve is disabled
//	messages.go    what Cmds send back into Update
//	layout.go      every number of the geometry, and nowhere else
//	frame.go       header, context line, footer: what stands around each screen
//	stream.go      how an iterator gets into Update: batches, order, cancellation, panics
//	rows.go        the compact rows of a million messages, without their bodies
//	actions.go     the only code that changes queues, all of it through package resubmit
//
// Rules that hold everywhere:
//
// Update does no IO and nothing that grows with the number of rows beyond a pass over
// packed memory; a Cmd does the rest and never touches the model. A result carries the
// stream or the request it belongs to, and one that is no longer current is dropped.
//
// Capital letters act on queues and always ask before they do; lower-case letters only
// look. Nothing is told by colour alone, because NO_COLOR drops bold and reverse too.
//
// Text that somebody else wrote (names, reasons, bodies, errors of servers) reaches the
// screen through tui/textview, before any style is put on it.
package tui
