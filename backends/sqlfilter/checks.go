package sqlfilter

import (
	"fmt"
	"slices"
	"strings"

	"dlq/backends/message"
)

// What this file finds is legal, and the service accepts it in a rule; but it matches nothing,
// or not what was meant. A selection refuses what can never be true, and both dialects
// remember the rest as a doubt.

// complain refuses in a selection and doubts in a rule.
func (p *parser) complain(bad *problem) error {
	if p.names.selection {
		return bad
	}
	p.doubt(bad)
	return nil
}

// maxDoubts bounds the remarks: each costs a search for its nearest form, and nobody reads more.
const maxDoubts = 8

// doubt remembers one remark for each place.
func (p *parser) doubt(bad *problem) {
	if len(p.doubts) < maxDoubts && !slices.ContainsFunc(p.doubts, func(d *problem) bool { return d.pos == bad.pos }) {
		p.doubts = append(p.doubts, bad)
	}
}

// text returns the source of a term, short enough to quote.
func (p *parser) text(t term) string { return clip(p.src[t.pos:t.end]) }

// checkComparison looks at what stands on both sides of an operator.
func (p *parser) checkComparison(left term, op token, right term) error {
	if bad := p.nullComparison(left, op, right); bad != nil {
		return p.complain(bad)
	}
	if err := p.checkQuoted(right); err != nil {
		return err
	}
	if err := p.checkKinds(left, right); err != nil {
		return err
	}
	p.doubtText(op, right)
	p.doubtHyphen(left)
	return nil
}

// nullComparison finds a comparison with NULL, which is unknown and never true.
func (p *parser) nullComparison(left term, op token, right term) *problem {
	bad := &problem{pos: op.pos, end: op.end, msg: "a comparison with NULL is never true", hint: "tenant IS NULL"}
	is := " IS NULL"
	if op.text == "<>" {
		is = " IS NOT NULL"
	}
	equality := op.text == "=" || op.text == "<>"
	switch {
	case isNullLiteral(right):
		if equality {
			bad.fix = &edit{left.end, right.end, is}
		}
	case isNullLiteral(left):
		if equality {
			bad.fix = &edit{left.pos, right.end, p.src[right.pos:right.end] + is}
		}
	default:
		return nil
	}
	return bad
}

func isNullLiteral(t term) bool {
	l, ok := t.node.(*literal)
	return ok && l.v.isNull()
}

// checkQuoted finds a text in double quotes, which is an identifier. Where a value is
// expected, hardly anyone means that.
func (p *parser) checkQuoted(t term) error {
	name, ok := t.node.(*userName)
	if !ok || p.src[t.pos] != '"' {
		return nil
	}
	return p.complain(&problem{
		pos: t.pos, end: t.end, fix: &edit{t.pos, t.end, quote(name.name)},
		msg: "double quotes name a property; text stands in single quotes",
	})
}

// checkKinds finds a comparison of two types that never compare.
func (p *parser) checkKinds(left, right term) error {
	l, r := left.node.(operand).static(), right.node.(operand).static()
	if l.compares(r) {
		return nil
	}
	if p.names.selection && (p.convertible(left, r) || p.convertible(right, l)) {
		return nil
	}
	bad := &problem{pos: right.pos, end: right.end, msg: fmt.Sprintf("%s is %s and %s is %s: they never compare",
		p.text(left), l.noun(), p.text(right), r.noun())}
	if p.hyphened(left) {
		return p.complain(p.hyphenProblem(left))
	}
	if bad.fix = p.changeTo(right, left); bad.fix == nil {
		bad.fix = p.changeTo(left, right)
	}
	if _, isConstant := constant(left.node); !isConstant && (l.numeric() || l == boolKind || p.names.selection) {
		bad.hint = p.text(left) + " = " + l.example()
	}
	return p.complain(bad)
}

// convertible reports whether a selection can compare the term, a text, with kind k: a
// constant must read as one, and what else it is shows with the message.
func (p *parser) convertible(t term, k kind) bool {
	if t.node.(operand).static() != textKind || k != timeKind && k != durationKind && k != guidKind && k != quantityKind {
		return false
	}
	v, isConstant := constant(t.node)
	if !isConstant {
		return true
	}
	_, ok := convertText(v.s, k)
	if k == quantityKind {
		_, isTime := parseTime(v.s)
		_, isDuration := parseDuration(v.s)
		ok = isTime || isDuration
	}
	return ok
}

// converted returns the operand of a term for a comparison with other: a constant text that
// reads as other's type is converted now instead of for each message.
func (p *parser) converted(t, other term) operand {
	x := t.node.(operand)
	l, ok := x.(*literal)
	if ok && p.names.selection && l.v.kind == textKind {
		if v, ok := convertText(l.v.s, other.node.(operand).static()); ok {
			return &literal{v, l.text}
		}
	}
	return x
}

// changeTo changes a constant to the type of the other side: '5' to 5, 5 to '5'.
func (p *parser) changeTo(t, other term) *edit {
	source, k := p.src[t.pos:t.end], other.node.(operand).static()
	l, isLiteral := t.node.(*literal)
	var v value
	if isLiteral {
		v = l.v
	}
	switch {
	case !p.names.selection && (k == timeKind || k == durationKind || k == guidKind):
		return nil // a rule compares these with parameters and properties alone
	case isLiteral && v.kind == textKind && (k == timeKind || k == durationKind || k == guidKind):
		return &edit{t.pos, t.end, k.example()}
	case isLiteral && v.kind == textKind:
		return bareLiteral(t, v.s)
	case isLiteral && v.kind == longKind && v.a >= 0 && v.a <= int64(message.Scheduled) && isState(other):
		return &edit{t.pos, t.end, quote(message.State(v.a).String())}
	case k == textKind && isLiteral, k == timeKind && t.node.(operand).static().numeric():
		return &edit{t.pos, t.end, quote(source)} // 2026-01-02 reads as two subtractions
	}
	return nil
}

// bareLiteral takes the quotes from a text that reads as a number or a boolean.
func bareLiteral(t term, text string) *edit {
	tokens := lex(text)
	if k := tokens[0].kind; k == integerToken || k == decimalToken || tokens[0].is("TRUE") || tokens[0].is("FALSE") {
		return &edit{t.pos, t.end, text}
	}
	return nil
}

// isState reports whether the term is sys.State, which a rule sees as a number.
func isState(t term) bool {
	n, ok := t.node.(*systemName)
	return ok && n.name == "State"
}

// checkLike looks at both sides of LIKE.
func (p *parser) checkLike(left, pattern term, n *likeness) error {
	if k := n.x.static(); k != textKind && k != anyKind && k != nullKind {
		if p.hyphened(left) {
			return p.complain(p.hyphenProblem(left))
		}
		return p.complain(&problem{
			pos: left.pos, end: left.end, hint: p.text(left) + " = " + k.example(),
			msg: fmt.Sprintf("LIKE compares text, and %s is %s", p.text(left), k.noun()),
		})
	}
	if k := n.pattern.static(); k != textKind && k != anyKind && k != nullKind {
		return p.complain(&problem{
			pos: pattern.pos, end: pattern.end, msg: "a pattern is a text",
			fix: &edit{pattern.pos, pattern.end, quote(p.src[pattern.pos:pattern.end])},
		})
	}
	l, ok := n.pattern.(*literal)
	if !ok || strings.ContainsAny(l.v.s, "%_") {
		return nil
	}
	bad := &problem{pos: pattern.pos, end: pattern.end}
	if strings.Contains(l.v.s, "*") {
		bad.msg = "the wildcards of LIKE are % and _; without one it is ="
		bad.fix = &edit{pattern.pos, pattern.end, quote(strings.ReplaceAll(l.v.s, "*", "%"))}
		return p.complain(bad)
	}
	bad.msg = "without a wildcard LIKE compares the whole text"
	bad.fix = &edit{pattern.pos, pattern.end, quote("%" + l.v.s + "%")}
	p.doubt(bad)
	return nil
}

// hyphened reports whether the term is a name with a hyphen that reads as a subtraction.
func (p *parser) hyphened(t term) bool {
	n, ok := t.node.(*arithmetic)
	if !ok || n.op != '-' {
		return false
	}
	source := p.src[t.pos:t.end]
	parts := strings.Split(source, "-")
	for _, part := range parts {
		if part == "" || wordEnd(part, 0) != len(part) {
			return false
		}
	}
	return bareName(parts[0])
}

func (p *parser) hyphenProblem(t term) *problem {
	return &problem{
		pos: t.pos, end: t.end, fix: &edit{t.pos, t.end, "[" + p.src[t.pos:t.end] + "]"},
		msg: p.text(t) + " is a subtraction; a name with a hyphen stands in brackets",
	}
}

func (p *parser) doubtHyphen(t term) {
	if p.hyphened(t) {
		p.doubt(p.hyphenProblem(t))
	}
}

// doubtText finds what LIKE was meant for, and a text without quotes.
func (p *parser) doubtText(op token, right term) {
	switch n := right.node.(type) {
	case *literal:
		equality := op.text == "=" || op.text == "<>"
		if n.v.kind != textKind || !equality || !strings.HasPrefix(n.v.s, "%") && !strings.HasSuffix(n.v.s, "%") || n.v.s == "%" {
			return
		}
		like := " LIKE "
		if op.text == "<>" {
			like = " NOT LIKE "
		}
		p.doubt(&problem{
			pos: op.pos, end: op.end, fix: &edit{op.pos, op.end, like},
			msg: op.text + " compares the % too; LIKE reads it as a wildcard",
		})
	case *userName:
		if wordEnd(p.src, right.pos) == right.end {
			p.doubt(&problem{
				pos: right.pos, end: right.end, fix: &edit{right.pos, right.end, quote(n.name)},
				msg: n.name + " names a property; text stands in single quotes",
			})
		}
	}
}

// doubtBare finds a word alone, which is a test of a boolean property.
func (p *parser) doubtBare(t term) {
	n, ok := t.node.(*userName)
	if !ok {
		return
	}
	bad := &problem{
		pos: t.pos, end: t.end, msg: fmt.Sprintf("alone, %s asks whether a property of that name is TRUE", p.text(t)),
		fix: &edit{t.pos, t.end, p.src[t.pos:t.end] + " = TRUE"},
	}
	if p.names.selection {
		bad.fix.text = "body LIKE " + quote("%"+n.name+"%")
	}
	p.doubt(bad)
}

// doubtScope finds an application property that has the name of a system property, or in a
// selection nearly that name. Dead letters carry reason and description as application
// properties: those are fine.
func (p *parser) doubtScope(t token) {
	if t.kind != wordToken || strings.EqualFold(t.text, message.DeadLetterReasonProperty) ||
		strings.EqualFold(t.text, message.DeadLetterDescriptionProperty) {
		return
	}
	bad := &problem{pos: t.pos, end: t.end}
	if system, ok := p.names.lookup(t.text); ok {
		bad.msg = fmt.Sprintf("%s is an application property here, and sys.%s the system property", t.text, system.name)
		bad.fix = &edit{t.pos, t.end, "sys." + system.name}
	} else if best, distance := Nearest(t.text, p.names.systemNames()); p.names.selection && 5*distance <= len(t.text) {
		// One letter in five: an application may well have a property with a name like it.
		bad.msg = fmt.Sprintf("%s is an application property here; there is a system property sys.%s", t.text, best)
		bad.fix = &edit{t.pos, t.end, "sys." + best}
	} else {
		return
	}
	p.doubt(bad)
}
