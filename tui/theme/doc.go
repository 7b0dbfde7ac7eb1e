// Package theme answers: what does a thing look like, given what it means?
//
// The rest of the UI speaks of Danger, Muted or Selected and never of a colour.
// A [Theme] is a value made once by [New]. Each of its styles is prepared: a
// prefix and a suffix to be put around a finished line, so that drawing a row
// of a table costs two copies; where a component wants a lipgloss style it
// gets one of the same look.
//
// Colours are from the sixteen of the terminal first, for those the user has
// chosen himself. A fixed colour stands only where one of the sixteen cannot
// be relied on: green and yellow on white, grey, whose slot several popular
// palettes use for the background, and wherever the background is not known.
//
// Without colour every prefix and suffix is empty, bold and reverse too. No
// meaning may therefore rest on a style alone: there is always a word or a
// marker as well.
//
// The package has the only init of the program; see there before importing
// anything here.
package theme
