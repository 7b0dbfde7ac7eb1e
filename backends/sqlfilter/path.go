package sqlfilter

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Path leads from the root of a JSON body to one value: body.$.order.items[0].sku has four
// steps. An empty path is the whole body.
type Path []Step

// Step is one step of a [Path].
type Step struct {
	Key     string // member of an object; "" is a name too, so ask IsIndex
	Index   int    // element of an array, from 0
	IsIndex bool
}

// String returns the path as it stands in an expression, from $ on.
func (p Path) String() string {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range p {
		switch {
		case s.IsIndex:
			b.WriteString("[" + strconv.Itoa(s.Index) + "]")
		case memberEnd(s.Key, 0) == len(s.Key) && s.Key != "":
			b.WriteString("." + s.Key)
		default:
			b.WriteString("[" + quote(s.Key) + "]")
		}
	}
	return b.String()
}

// memberEnd returns the end of the member name at pos: letters, digits, _ and, at its
// beginning, $ or @, which .NET and JSON-LD use.
func memberEnd(src string, pos int) int {
	r, size := utf8.DecodeRuneInString(src[pos:])
	switch {
	case r == '$' || r == '@':
		if end := wordEnd(src, pos+size); end > pos+size {
			return end
		}
		return pos
	case r == '_' || unicode.IsLetter(r):
		return wordEnd(src, pos)
	}
	return pos
}

// maxSteps bounds a path: nothing that people read nests deeper.
const maxSteps = 100

// parsePath reads a path at the $ that src has at pos and returns where it ends.
func parsePath(src string, pos int) (path Path, end int, bad *problem) {
	pos++
	fail := func(to int, p problem) (Path, int, *problem) {
		p.pos, p.end = pos, to
		return nil, 0, &p
	}
	for pos < len(src) && len(path) < maxSteps {
		switch src[pos] {
		case '.':
			end := memberEnd(src, pos+1)
			if end == pos+1 {
				return fail(pos+1, problem{msg: "a name must follow the point", hint: "body.$.order.id or body.$['odd name']"})
			}
			path = append(path, Step{Key: src[pos+1 : end]})
			pos = end
		case '[':
			step, end, ok := parseBracket(src, pos)
			if !ok {
				return fail(pos+1, problem{
					msg:  "a bracket in a path holds an index or a name in single quotes; a path names one value",
					hint: "body.$.items[0].sku or body.$['odd name']",
				})
			}
			path = append(path, step)
			pos = end
		default:
			return path, pos, nil
		}
	}
	if len(path) == maxSteps {
		return fail(pos, problem{msg: "the path has too many steps; the limit is " + strconv.Itoa(maxSteps)})
	}
	return path, pos, nil
}

// parseBracket reads [0] or ['name'].
func parseBracket(src string, pos int) (step Step, end int, ok bool) {
	digits := digitsEnd(src, pos+1)
	if digits > pos+1 && digits < len(src) && src[digits] == ']' {
		n, err := strconv.ParseInt(src[pos+1:digits], 10, 32)
		return Step{Index: int(n), IsIndex: true}, digits + 1, err == nil
	}
	if pos+1 >= len(src) || src[pos+1] != '\'' {
		return Step{}, 0, false
	}
	l := &lexer{src: src, pos: pos + 1}
	t := l.enclosed(textToken, '\'')
	if t.kind != textToken || t.end >= len(src) || src[t.end] != ']' {
		return Step{}, 0, false
	}
	return Step{Key: t.text}, t.end + 1, true
}

// path reads a $ and what follows. Where it may stand is the parser's business.
func (l *lexer) path() token {
	_, end, bad := parsePath(l.src, l.pos)
	if bad != nil {
		return token{kind: badToken, pos: bad.pos, end: bad.end, problem: bad}
	}
	return l.take(pathToken, end, l.src[l.pos:end])
}
