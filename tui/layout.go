package tui

// Every number of the geometry is here. A terminal of 80×24 gives the screen below the
// header 80×20.
const (
	// Below this size nothing useful fits, and one plain line says so.
	minWidth, minHeight = 60, 15

	headerLines  = 1 // where one is, and how
	contextLines = 1 // what one sees: counts, filter, side effects
	statusLines  = 1 // what happened, what is under way; or what is being typed
	keyLines     = 1 // what can be pressed; or what is wrong with what is being typed
	frameLines   = headerLines + contextLines + statusLines + keyLines

	maxProblemLines = 4 // of what is wrong with what is being typed

	// A dialog leaves this much of the screen around it, and is no wider than reads well.
	dialogMargin   = 2
	dialogMaxWidth = 100
	dialogPadding  = 1
	dialogBorder   = 1
	planLabelWidth = 10

	// From this width on, a message and its body stand side by side.
	sideBySideWidth = 120
	paneGap         = 1
	paneIndent      = 1
	factLabelWidth  = 16
	factIndent      = 2 // of a value below its name

	previewLines = 6 // of the signature below the list of groups

	// Columns of tables.
	seqWidth     = 3 // at least; it grows with the numbers
	ageWidth     = 5
	countWidth   = 8
	sizeWidth    = 5
	triesWidth   = 5
	stateWidth   = 9
	kindWidth    = 12
	entityWidth  = 28 // what is left of a subscription's name must tell it from others
	deadWidth    = 12
	shareWidth   = 8
	groupIDWidth = 8
	jobIDWidth   = 9
	doneWidth    = 6
	lookWidth    = 6
	jobKindWidth = 8

	jobStateWidth = 11 // of "interrupted"

	minTextWidth = 12
	subjectWidth = 18
	idWidth      = 36 // of a GUID

	reasonWidth, minReasonWidth = 24, 18 // of MaxDeliveryCountExceeded
	roomyWidth                  = 100    // from here on a reason is not cut
	wideWidth                   = 180    // from here on there is room for the id
	minDescriptionWidth         = 22
)

// bodySize returns the room of a screen in a terminal of that size.
func bodySize(width, height int) (w, h int) { return width, max(height-frameLines, 1) }

// tooSmall reports whether a terminal has no room for the UI.
func tooSmall(width, height int) bool { return width < minWidth || height < minHeight }

// dialogSize returns the room inside a dialog, without its border and padding.
func dialogSize(width, height int) (w, h int) {
	w = min(width-2*dialogMargin, dialogMaxWidth) - 2*(dialogBorder+dialogPadding)
	return w, height - dialogMargin - 2*dialogBorder
}

// panes divides the detail screen: beside each other where there is room, else one above
// the other with more of the height for the one that has the focus.
func panes(width, height int, bodyFocused bool) (sideBySide bool, first, second int) {
	if width >= sideBySideWidth {
		first = (width - paneGap) * 2 / 5
		return true, first, width - paneGap - first
	}
	first = height * 11 / 20
	if bodyFocused {
		first = height / 3
	}
	return false, first, height - first
}
