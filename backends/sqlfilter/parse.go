package sqlfilter

import (
	"fmt"
	"strings"

	"dlq/backends/message"
)

// maxDepth bounds how deep parentheses, NOT and signs nest, and how many arithmetic operators
// stand in a row. It keeps the parser's and the evaluator's stacks small.
const maxDepth = 100

// parser reads one expression or action by recursive descent, one function for each level of
// precedence. An expression and a condition share the grammar; a term knows which it is.
type parser struct {
	src    string
	names  Names
	params map[string]message.Value
	action bool
	tokens []token
	at     int // index into tokens
	depth  int

	// What was read.

	root       predicate
	statements []statement // of an action
	needBody   bool
	doubts     []*problem // legal, but hardly meant
}

// term is a node with the place it was read from.
type term struct {
	node     node
	pos, end int
}

// parse reads the whole source.
func (p *parser) parse() error {
	p.tokens = (&lexer{src: p.src, action: p.action}).all()
	if p.action {
		return p.parseAction()
	}
	if p.peek().kind == endToken {
		return &problem{msg: "the expression is empty", hint: "sys.Label = 'text'"}
	}
	t, err := p.or()
	if err != nil {
		return err
	}
	if p.peek().kind != endToken {
		return p.unexpected(t)
	}
	p.root, err = p.predicate(t)
	return err
}

func (p *parser) peek() token { return p.tokens[p.at] }

// ahead returns the token n behind the next one; the end repeats itself.
func (p *parser) ahead(n int) token { return p.tokens[min(p.at+n, len(p.tokens)-1)] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	p.at = min(p.at+1, len(p.tokens)-1)
	return t
}

// accept consumes the next token if it is that operator.
func (p *parser) accept(op string) bool {
	ok := p.peek().isOp(op)
	if ok {
		p.next()
	}
	return ok
}

func (p *parser) acceptWord(keyword string) bool {
	ok := p.peek().is(keyword)
	if ok {
		p.next()
	}
	return ok
}

// deeper counts one level of nesting; the caller calls p.depth-- when it is done.
func (p *parser) deeper() error {
	p.depth++
	if p.depth > maxDepth {
		t := p.peek()
		return &problem{pos: t.pos, end: t.end, msg: fmt.Sprintf("the expression nests too deep; the limit is %d", maxDepth)}
	}
	return nil
}

func (p *parser) or() (term, error) {
	return p.chain("OR", p.and, func(parts []predicate) predicate {
		return &anyOf{flatten(parts, func(n *anyOf) []predicate { return n.parts })}
	})
}

func (p *parser) and() (term, error) {
	return p.chain("AND", p.not, func(parts []predicate) predicate {
		return &allOf{flatten(parts, func(n *allOf) []predicate { return n.parts })}
	})
}

// chain reads one or more operands joined by the keyword.
func (p *parser) chain(keyword string, operand func() (term, error), join func([]predicate) predicate) (term, error) {
	first, err := operand()
	if err != nil || !p.peek().is(keyword) {
		return first, err
	}
	var parts []predicate
	for t := first; ; {
		part, err := p.predicate(t)
		if err != nil {
			return t, err
		}
		parts = append(parts, part)
		op := p.peek()
		if !op.is(keyword) {
			return term{join(parts), first.pos, t.end}, nil
		}
		p.next()
		if after := p.peek(); after.kind == endToken || after.isOp(")") || after.is("AND") || after.is("OR") {
			return t, &problem{
				pos: op.pos, end: op.end, msg: keyword + " needs a condition behind it",
				fix: &edit{op.pos, op.end, ""},
			}
		}
		if t, err = operand(); err != nil {
			return t, err
		}
	}
}

// flatten splices the parts of nested nodes of the same type.
func flatten[N predicate](parts []predicate, inner func(N) []predicate) []predicate {
	var out []predicate
	for _, part := range parts {
		if n, ok := part.(N); ok {
			out = append(out, inner(n)...)
		} else {
			out = append(out, part)
		}
	}
	return out
}

func (p *parser) not() (term, error) {
	op := p.peek()
	if !op.is("NOT") {
		return p.condition()
	}
	p.next()
	if err := p.deeper(); err != nil {
		return term{}, err
	}
	defer func() { p.depth-- }()
	t, err := p.not()
	if err != nil {
		return t, err
	}
	x, err := p.predicate(t)
	return term{&not{x}, op.pos, t.end}, err
}

// comparisons holds every comparison operator; an operator that it contains is one.
const comparisons = "= <> >= <="

// condition reads a comparison or another test of an operand, or an operand alone.
func (p *parser) condition() (term, error) {
	if p.peek().is("EXISTS") {
		return p.existence()
	}
	left, err := p.sum()
	if err != nil {
		return left, err
	}
	op := p.peek()
	negate := op.is("NOT") && (p.ahead(1).is("IN") || p.ahead(1).is("LIKE"))
	if negate {
		p.next()
	}
	switch op := p.peek(); {
	case op.kind == opToken && strings.Contains(comparisons, op.text):
		return p.comparison(left)
	case op.is("IS"):
		return p.nullTest(left)
	case op.is("IN"):
		return p.membership(left, negate)
	case op.is("LIKE"):
		return p.likeness(left, negate)
	}
	return left, nil
}

func (p *parser) comparison(left term) (term, error) {
	op := p.next()
	if p.peek().kind == endToken {
		return left, &problem{pos: op.pos, end: op.end, msg: op.text + " needs a value behind it", fix: insert(op.end, " 'text'")}
	}
	right, err := p.sum()
	if err != nil {
		return right, err
	}
	if _, err := p.operand(left); err != nil {
		return left, err
	}
	if _, err := p.operand(right); err != nil {
		return right, err
	}
	if after := p.peek(); after.kind == opToken && strings.Contains(comparisons, after.text) {
		return right, &problem{
			pos: after.pos, end: after.end, msg: "a comparison has two sides",
			hint: "amount > 1 AND amount < 5",
		}
	}
	if err := p.checkComparison(left, op, right); err != nil {
		return right, err
	}
	return term{&comparison{
		op: op.text, l: p.converted(left, right), r: p.converted(right, left),
		coerce: p.names.selection,
	}, left.pos, right.end}, nil
}

func (p *parser) nullTest(left term) (term, error) {
	is := p.next()
	negate := p.acceptWord("NOT")
	if !p.peek().is("NULL") {
		return left, p.afterIs(is, negate)
	}
	end := p.next().end
	x, err := p.operand(left)
	if err != nil {
		return left, err
	}
	p.doubtHyphen(left)
	return term{&nullTest{x, negate}, left.pos, end}, nil
}

func (p *parser) membership(left term, negate bool) (term, error) {
	in := p.next()
	x, err := p.operand(left)
	if err != nil {
		return left, err
	}
	if !p.accept("(") {
		return left, p.notAList(in)
	}
	n := &membership{x: x, negate: negate, coerce: p.names.selection}
	for {
		item, err := p.sum()
		if err != nil {
			return item, err
		}
		if _, err := p.operand(item); err != nil {
			return item, err
		}
		if err := p.checkQuoted(item); err != nil {
			return item, err
		}
		if err := p.checkKinds(left, item); err != nil {
			return item, err
		}
		n.list = append(n.list, p.converted(item, left))
		if !p.accept(",") {
			break
		}
	}
	if !p.peek().isOp(")") {
		return left, p.unclosed(in, "IN ('a', 'b')")
	}
	return term{n, left.pos, p.next().end}, nil
}

func (p *parser) likeness(left term, negate bool) (term, error) {
	op := p.next()
	if p.peek().kind == endToken {
		return left, &problem{pos: op.pos, end: op.end, msg: "LIKE needs a pattern behind it", fix: insert(op.end, " '%text%'")}
	}
	x, err := p.operand(left)
	if err != nil {
		return left, err
	}
	pattern, err := p.sum()
	if err != nil {
		return pattern, err
	}
	n := &likeness{x: x, negate: negate}
	t := term{n, left.pos, pattern.end}
	if n.pattern, err = p.operand(pattern); err != nil {
		return t, err
	}
	if err := p.checkQuoted(pattern); err != nil {
		return t, err
	}
	if p.acceptWord("ESCAPE") {
		escape, err := p.sum()
		if err != nil {
			return escape, err
		}
		if n.escape, err = p.operand(escape); err != nil {
			return escape, err
		}
		t.end = escape.end
	}
	if err := p.checkLike(left, pattern, n); err != nil {
		return t, err
	}
	return t, p.compilePattern(n, term{n.pattern, pattern.pos, t.end})
}

// compilePattern prepares the pattern once where it is the same for all messages.
func (p *parser) compilePattern(n *likeness, at term) error {
	text, ok := constant(n.pattern)
	if !ok {
		return nil
	}
	var escape value
	if n.escape != nil {
		if escape, ok = constant(n.escape); !ok {
			return nil
		}
	}
	compiled, err := buildPattern(text, escape, n.escape != nil)
	if err != nil {
		return &problem{pos: at.pos, end: at.end, msg: err.Error(), hint: `name LIKE '50\%%' ESCAPE '\'`}
	}
	n.compiled = compiled
	return nil
}

func (p *parser) existence() (term, error) {
	word := p.next()
	if !p.accept("(") {
		return term{}, &problem{
			pos: word.pos, end: word.end, msg: "EXISTS has its property in parentheses",
			fix: p.wrapNext(),
		}
	}
	start := p.peek()
	t, err := p.primary()
	if err != nil {
		return t, err
	}
	x, ok := t.node.(existing)
	if !ok {
		return t, &problem{pos: t.pos, end: t.end, msg: "EXISTS asks about a property", hint: "EXISTS(tenant)"}
	}
	if !p.peek().isOp(")") {
		if start, end := bareRun(p.src, start.pos); end > t.end && start == t.pos {
			return t, p.oddName(start, end)
		}
		return t, p.unclosed(word, "EXISTS(tenant)")
	}
	return term{&existence{x}, word.pos, p.next().end}, nil
}

// predicate turns a term into a condition: a bare operand must be able to be a boolean.
func (p *parser) predicate(t term) (predicate, error) {
	x, ok := t.node.(operand)
	if !ok {
		return t.node.(predicate), nil
	}
	if k := x.static(); k != anyKind && k != boolKind && k != nullKind {
		return nil, p.notACondition(t, k)
	}
	p.doubtBare(t)
	return &boolTest{x}, nil
}

// operand refuses a condition where a value must stand.
func (p *parser) operand(t term) (operand, error) {
	if x, ok := t.node.(operand); ok {
		return x, nil
	}
	bad := &problem{
		pos: t.pos, end: t.end, msg: "a condition stands where a value is needed",
		hint: "tenant = 'acme' AND amount > 5",
	}
	if p.action {
		bad.hint = statementExample
	}
	return nil, bad
}
