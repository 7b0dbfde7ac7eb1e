// Package textview answers: how does text that somebody else wrote reach a
// terminal without harm?
//
// Message bodies, property values, entity names, dead-letter reasons, error
// texts of servers, file names: all of it is hostile until it has been through
// this package, in the terminal UI and in the commands alike. It is the one
// choke point. Callers never write untrusted text themselves and never let a
// style (an SGR sequence) in: text is made safe and measured first, and styled
// after.
//
// The rule is to replace visibly and never to strip, for an operator must see
// what is in a message:
//
//	C0 controls and DEL           ^[  ^M  ^@  ^?
//	C1 controls, raw or as UTF-8  <9B>
//	bytes that are not UTF-8      <FF>
//	everything else not graphic   <U+202E>: bidi controls, zero-width and tag
//	                              characters, line separators, private use,
//	                              unassigned, invisible fillers and selectors
//	combining marks               at most four on a base, the rest <U+0301>
//
// [Sanitise] is for one line, [SanitiseLines] for a short block. [View] and
// [Hex] show a body of any size through a window: they work on byte offsets and
// look at no more of the content than the screen needs, so that a body of
// 100 MiB opens as fast as one of a hundred bytes.
//
// [Width], [Truncate] and [Pad] count terminal cells by grapheme, with the same
// tables as the renderer of the UI. They take raw text: what they measure and
// return is the sanitised form. All functions are pure; the package has no
// state, no theme and no terminal.
package textview
