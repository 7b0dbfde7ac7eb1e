package sqlfilter

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The service's names for what can go wrong with a message. They become the reason of a
// message that is dead-lettered for that.
const (
	FilterException     = "FilterException"     // a condition could not be evaluated
	RuleActionException = "RuleActionException" // an action could not be applied
)

// EvalError says that a message could not be tested, or not be changed.
type EvalError struct {
	// Msg is what went wrong and where: one short line without control characters, fit for the
	// description of a dead letter.
	Msg       string
	exception string
}

// Exception returns the service's name for the error, [FilterException] or
// [RuleActionException].
func (e *EvalError) Exception() string { return e.exception }

func (e *EvalError) Error() string { return e.exception + ": " + e.Msg }

func filterException(n node, msg string) *EvalError {
	return &EvalError{msg + " in " + clip(visible(string(n.append(nil)))), FilterException}
}

// actionException makes err, or what is wrong with a statement, the failure of an action.
func actionException(n node, fault string, err error) *EvalError {
	var cause *EvalError
	if errors.As(err, &cause) {
		return &EvalError{cause.Msg, RuleActionException}
	}
	return &EvalError{filterException(n, fault).Msg, RuleActionException}
}

// Error says why an expression does not compile.
type Error struct{ Diagnostic }

// Error returns [Diagnostic.String].
func (e *Error) Error() string { return e.String() }

// Diagnostic is one remark about one place in an expression.
type Diagnostic struct {
	Pos, Len int    // the place, in bytes from the beginning of the source; Len is at least 1
	Line     string // the line of the source that holds it, as it was given
	Column   int    // where the place begins in Line, in bytes
	Msg      string // what is wrong
	Hint     string // the nearest valid form, "" if there is none

	position int // characters of the source up to and with the first of the place
}

// String returns position, remark and nearest valid form in one line. The position counts
// characters from 1. Control characters of the source are replaced, so that the text is
// harmless on a terminal.
func (d Diagnostic) String() string {
	s := fmt.Sprintf("position %d: %s", d.position, d.Msg)
	if d.Hint != "" {
		s += "; write  " + d.Hint
	}
	return s
}

// Underline returns two lines: the source line, cut to width cells around the place, and
// carets under it. Control characters are replaced. A width below 20 counts as 20.
func (d Diagnostic) Underline(width int) string {
	width = max(width, 20)
	before := visible(d.Line[:d.Column])
	at := d.Line[d.Column:min(d.Column+d.Len, len(d.Line))]
	rest := visible(d.Line[d.Column:])
	marked := max(cells(visible(at)), 1)
	if cells(before)+max(cells(rest), marked) > width {
		before = "…" + lastCells(before, width/2-1)
		if room := width - cells(before); cells(rest) > room {
			rest = firstCells(rest, room-1) + "…"
		}
		marked = min(marked, width-cells(before))
	}
	return before + rest + "\n" + strings.Repeat(" ", cells(before)) + strings.Repeat("^", marked)
}

// firstCells returns the longest beginning of s that fits into n cells.
func firstCells(s string, n int) string {
	for i, r := range s {
		if n -= runeCells(r); n < 0 {
			return s[:i]
		}
	}
	return s
}

// lastCells returns the longest end of s that fits into n cells.
func lastCells(s string, n int) string {
	for i := len(s); i > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		if n -= runeCells(r); n < 0 {
			return s[i:]
		}
		i -= size
	}
	return s
}

// cells is how many terminal cells s takes, near enough to place a caret.
func cells(s string) int {
	n := 0
	for _, r := range s {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// visible replaces what could act on a terminal: controls, and the marks that turn the
// direction of text.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// problem is a remark while it is found: an error of the parser, or a doubt.
type problem struct {
	pos, end int
	msg      string
	hint     string // a valid form in general, for when fix does not lead to one
	fix      *edit  // the change that the author probably meant
}

func (p *problem) Error() string { return p.msg }

// edit replaces src[pos:end].
type edit struct {
	pos, end int
	text     string
}

func insert(pos int, text string) *edit { return &edit{pos, pos, text} }

// apply makes the change, without leaving two spaces where it joins.
func (e *edit) apply(src string) string {
	before, text, after := src[:e.pos], e.text, src[e.end:]
	if strings.HasSuffix(before, " ") {
		text = strings.TrimPrefix(text, " ")
	}
	if strings.HasSuffix(text, " ") || text == "" && strings.HasSuffix(before, " ") {
		after = strings.TrimPrefix(after, " ")
	}
	return strings.TrimSpace(before + text + after)
}

// maxFixes and maxSearch bound the search for the nearest valid form: in steps, and in bytes of
// source that are compiled for it.
const (
	maxFixes  = 8
	maxSearch = 64 << 10
)

// hint finds the nearest valid form: it applies the fix of the problem, then of the problem
// that shows up next, until the expression compiles.
func (s source) hint(p *problem) string {
	next, budget := p, maxSearch
	for range maxFixes {
		if budget -= len(s.text); next.fix == nil || budget < 0 {
			break
		}
		pos := next.fix.pos
		s.text = next.fix.apply(s.text)
		if _, next = s.parse(); next == nil {
			return around(s.text, pos)
		}
	}
	return p.hint
}

// around cuts a long source to what surrounds pos.
func around(src string, pos int) string {
	const before, after = 80, 120
	from, to := max(pos-before, 0), min(pos+after, len(src))
	if from >= to {
		from = max(to-before, 0)
	}
	for ; from > 0 && !utf8.RuneStart(src[from]); from-- {
	}
	for ; to < len(src) && !utf8.RuneStart(src[to]); to++ {
	}
	s := src[from:to]
	if from > 0 {
		s = "… " + s
	}
	if to < len(src) {
		s += " …"
	}
	return s
}

// diagnostic gives a problem its place in the source.
func diagnostic(src string, p *problem, hint string) Diagnostic {
	start := strings.LastIndexByte(src[:p.pos], '\n') + 1
	line := src[start:]
	if n := strings.IndexByte(line, '\n'); n >= 0 {
		line = line[:n]
	}
	return Diagnostic{
		Pos: p.pos, Len: max(p.end-p.pos, 1), Line: line, Column: p.pos - start, Msg: visible(p.msg), Hint: visible(hint),
		position: utf8.RuneCountInString(src[:p.pos]) + 1,
	}
}

// clip shortens a piece of source that a message quotes.
func clip(s string) string {
	if utf8.RuneCountInString(s) > 40 {
		return firstCells(s, 39) + "…"
	}
	return s
}
