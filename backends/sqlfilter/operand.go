package sqlfilter

import (
	"fmt"
	"strconv"
	"strings"

	"dlq/backends/message"
)

// sum reads + and -, product * / %. Operators of one level group from the left.
func (p *parser) sum() (term, error)     { return p.binary("+-", p.product) }
func (p *parser) product() (term, error) { return p.binary("*/%", p.signed) }

func (p *parser) binary(ops string, operand func() (term, error)) (term, error) {
	left, err := operand()
	if err != nil {
		return left, err
	}
	depth := p.depth
	defer func() { p.depth = depth }()
	for p.peek().kind == opToken && strings.Contains(ops, p.peek().text) {
		if err := p.deeper(); err != nil {
			return left, err
		}
		op := p.next()
		l, err := p.operand(left)
		if err != nil {
			return left, err
		}
		right, err := operand()
		if err != nil {
			return right, err
		}
		r, err := p.operand(right)
		if err != nil {
			return right, err
		}
		left = term{&arithmetic{op.text[0], l, r, p.action}, left.pos, right.end}
	}
	return left, nil
}

// signed reads a sign. One in front of a number is part of it: the smallest long has no
// positive counterpart.
func (p *parser) signed() (term, error) {
	op := p.peek()
	if !op.isOp("-") && !op.isOp("+") {
		return p.primary()
	}
	p.next()
	if k := p.peek().kind; k == integerToken || k == decimalToken {
		number := p.next()
		t, err := p.number(number, strings.TrimPrefix(op.text, "+")+number.text)
		t.pos = op.pos
		return t, err
	}
	if err := p.deeper(); err != nil {
		return term{}, err
	}
	defer func() { p.depth-- }()
	t, err := p.signed()
	if err != nil {
		return t, err
	}
	x, err := p.operand(t)
	if op.isOp("-") {
		return term{&negation{x, p.action}, op.pos, t.end}, err
	}
	return term{&identity{x, p.action}, op.pos, t.end}, err
}

func (p *parser) primary() (term, error) {
	t := p.peek()
	switch t.kind {
	case integerToken, decimalToken:
		p.next()
		return p.number(t, t.text)
	case textToken:
		p.next()
		return term{&literal{textValue(t.text), quote(t.text)}, t.pos, t.end}, nil
	case paramToken:
		p.next()
		return p.parameter(t)
	case quotedToken, delimitedToken:
		return p.property()
	case wordToken:
		switch word := t.keyword(); word {
		case "":
			if !p.action || !isVerb(t.text) {
				return p.property()
			}
		case "TRUE", "FALSE":
			p.next()
			return term{&literal{boolValue(word == "TRUE"), word}, t.pos, t.end}, nil
		case "NULL":
			p.next()
			return term{&literal{value{}, word}, t.pos, t.end}, nil
		}
	case opToken:
		if t.text == "(" {
			return p.group()
		}
	}
	return term{}, p.noOperand()
}

// group reads what parentheses hold: a condition or a value.
func (p *parser) group() (term, error) {
	open := p.next()
	if err := p.deeper(); err != nil {
		return term{}, err
	}
	defer func() { p.depth-- }()
	t, err := p.or()
	if err != nil {
		return t, err
	}
	if !p.peek().isOp(")") {
		if p.peek().kind != endToken {
			return t, p.unexpected(t)
		}
		return t, p.unclosed(open, "")
	}
	return term{t.node, open.pos, p.next().end}, nil
}

func (p *parser) number(t token, text string) (term, error) {
	if t.kind == integerToken {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return term{}, &problem{
				pos: t.pos, end: t.end, msg: "an integer has at most 64 bits; text stands in single quotes",
				fix: &edit{t.pos, t.end, quote(t.text)},
			}
		}
		return term{&literal{longValue(n), strconv.FormatInt(n, 10)}, t.pos, t.end}, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return term{}, &problem{pos: t.pos, end: t.end, msg: "the number is beyond the range of a double"}
	}
	return term{&literal{doubleValue(f), formatDouble(f)}, t.pos, t.end}, nil
}

// parameter finds a parameter without case, whether its key has the @ or not: the SDKs differ.
func (p *parser) parameter(t token) (term, error) {
	best := "" // of several that fit, the exact name, then the first
	for name := range p.params {
		bare := strings.TrimPrefix(name, "@")
		if !strings.EqualFold(bare, t.text) {
			continue
		}
		exact, bestExact := bare == t.text, strings.TrimPrefix(best, "@") == t.text
		if best == "" || exact && !bestExact || exact == bestExact && name < best {
			best = name
		}
	}
	if best == "" {
		return term{}, &problem{
			pos: t.pos, end: t.end, msg: fmt.Sprintf("parameter @%s has no value", t.text),
			hint: "tenant = 'acme'",
		}
	}
	given := p.params[best]
	if given == nil {
		given = message.Null{}
	}
	return term{&parameter{t.text, fromMessage(given), given}, t.pos, t.end}, nil
}

// property reads a name with its scope, a name in the body, or a function call.
func (p *parser) property() (term, error) {
	t := p.next()
	switch {
	case t.kind == wordToken && p.peek().isOp("("):
		return p.call(t)
	case p.names.selection && t.is(bodyName):
		return p.body(t)
	case !p.peek().isOp("."):
		p.doubtScope(t)
		return term{&userName{t.text}, t.pos, t.end}, nil
	}
	sys := strings.EqualFold(t.text, "sys")
	if !sys && !strings.EqualFold(t.text, "user") {
		return term{}, p.unknownScope(t)
	}
	p.next()
	name := p.peek()
	if name.kind != wordToken && name.kind != delimitedToken && name.kind != quotedToken {
		return term{}, p.noName(t)
	}
	p.next()
	if p.peek().isOp(".") {
		return term{}, p.unknownScope(t)
	}
	at := term{nil, t.pos, name.end}
	if !sys {
		at.node = &userName{name.text}
		return at, nil
	}
	found, ok := p.names.lookup(name.text)
	if !ok {
		return term{}, p.unknownSystem(name.text, name.pos, name.end, writeName)
	}
	at.node = &systemName{found}
	return at, nil
}

// body reads body or body.$.path.
func (p *parser) body(t token) (term, error) {
	p.needBody = true
	if !p.peek().isOp(".") {
		return term{&bodyText{}, t.pos, t.end}, nil
	}
	p.next()
	path := p.peek()
	if path.kind != pathToken {
		return term{}, p.noPath(t)
	}
	p.next()
	steps, _, bad := parsePath(path.text, 0)
	if bad != nil { // the lexer has read the same text
		return term{}, bad
	}
	return term{&bodyPath{steps}, t.pos, path.end}, nil
}

// call reads a function's arguments.
func (p *parser) call(name token) (term, error) {
	newid := name.is("newid")
	if !newid && !name.is("property") && !name.is("p") {
		return term{}, p.unknownFunction(name)
	}
	p.next()
	if newid {
		if !p.peek().isOp(")") {
			return term{}, &problem{pos: name.pos, end: name.end, msg: "newid takes no arguments", hint: "newid()"}
		}
		return term{&newID{}, name.pos, p.next().end}, nil
	}
	if err := p.deeper(); err != nil {
		return term{}, err
	}
	defer func() { p.depth-- }()
	arg, err := p.sum()
	if err != nil {
		return arg, err
	}
	x, err := p.operand(arg)
	if err != nil {
		return arg, err
	}
	if !p.peek().isOp(")") {
		return arg, p.unclosed(name, "property('name')")
	}
	t := term{nil, name.pos, p.next().end}
	t.node, err = p.named(x, arg)
	return t, err
}

// named resolves property(arg) at once where arg is constant.
func (p *parser) named(x operand, arg term) (*named, error) {
	n := &named{arg: x, names: p.names}
	v, ok := constant(x)
	if !ok {
		return n, nil
	}
	if v.kind != textKind && v.kind != nullKind {
		return n, &problem{pos: arg.pos, end: arg.end, msg: "the name of a property is a text", hint: "property('name')"}
	}
	if v.kind == textKind {
		var known bool
		if n.fixed, known = p.names.resolve(v.s); !known {
			_, name, _ := strings.Cut(v.s, ".")
			return n, p.unknownSystem(name, arg.pos, arg.end, func(s string) string { return "'sys." + s + "'" })
		}
	}
	return n, nil
}

// resolve finds what a name with an optional scope stands for. It fails for a name in the sys
// scope that does not exist.
func (n Names) resolve(name string) (operand, bool) {
	scope, rest, scoped := strings.Cut(name, ".")
	switch {
	case scoped && strings.EqualFold(scope, "sys"):
		p, ok := n.lookup(rest)
		return &systemName{p}, ok
	case scoped && strings.EqualFold(scope, "user"):
		return &userName{rest}, true
	}
	return &userName{name}, true
}
