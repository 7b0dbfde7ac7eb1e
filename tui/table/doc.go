// Package table answers: how does a list of a million messages scroll as
// quickly as one of ten?
//
// A [Table] is a window: it asks its [RowSource] for the rows on the screen and
// for no others, so a key press costs the same whatever the length of the list.
// A line is put together in one buffer and styled with prepared prefixes and
// suffixes, the whole line or single cells of it.
//
// Cells are untrusted text, and the table sanitises and measures every one of
// them itself: a row of the screen is exactly as wide as the table and holds no
// sequence but those of its style. The row under the cursor begins with ">" and
// a marked row with "*", for without colour there is no bold and no reverse
// either.
package table
