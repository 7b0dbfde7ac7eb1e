package sqlfilter

import (
	"strconv"
	"strings"

	"dlq/backends/message"
)

// node is a piece of a compiled expression. It is immutable after compilation, and is either
// a predicate or an operand.
type node interface {
	// append writes the canonical form.
	append(dst []byte) []byte
}

// predicate is what has a truth.
type predicate interface {
	node
	truth(env *Env) (truth, error)
}

// operand is what has a value.
type operand interface {
	node
	eval(env *Env) (value, error)
	// static is the kind of every value but null that eval can return, or anyKind.
	static() kind
}

// existing is an operand that EXISTS can ask about.
type existing interface {
	operand
	exists(env *Env) bool
}

// The predicates.
type (
	anyOf      struct{ parts []predicate } // OR; no part is an anyOf
	allOf      struct{ parts []predicate } // AND; no part is an allOf
	not        struct{ x predicate }
	comparison struct {
		op     string // one of = <> > >= < <=
		l, r   operand
		coerce bool
	}
	nullTest struct {
		x      operand
		negate bool
	}
	membership struct {
		x      operand
		list   []operand
		negate bool
		coerce bool
	}
	likeness struct {
		x, pattern, escape operand // escape may be nil
		compiled           *Pattern
		negate             bool
	}
	existence struct{ x existing }
	boolTest  struct{ x operand } // a bare operand
)

// The operands.
type (
	// literal is a constant; text is how it is written.
	literal struct {
		v    value
		text string
	}
	parameter struct {
		name  string
		v     value
		given message.Value // what v was made from
	}
	userName   struct{ name string }
	systemName struct{ systemProperty }
	// named is property(arg); fixed is what it stands for when arg is constant.
	named struct {
		arg   operand
		fixed operand
		names Names
	}
	newID    struct{}
	bodyText struct{}
	bodyPath struct{ path Path }
	// The operators have no result for types that they do not know: unknown in a condition,
	// an exception where strict, which is in an action.
	negation struct {
		x      operand
		strict bool
	}
	identity struct { // unary plus
		x      operand
		strict bool
	}
	arithmetic struct {
		op     byte // one of + - * / %
		l, r   operand
		strict bool
	}
)

// constant returns the value of an operand that is the same for all messages.
func constant(n node) (value, bool) {
	switch n := n.(type) {
	case *literal:
		return n.v, true
	case *parameter:
		return n.v, true
	}
	return value{}, false
}

func (n *literal) static() kind    { return n.v.kind }
func (n *parameter) static() kind  { return n.v.kind }
func (n *userName) static() kind   { return anyKind }
func (n *systemName) static() kind { return n.kind }
func (n *named) static() kind {
	if n.fixed != nil {
		return n.fixed.static()
	}
	return anyKind
}
func (n *newID) static() kind    { return guidKind }
func (n *bodyText) static() kind { return textKind }
func (n *bodyPath) static() kind { return anyKind }
func (n *negation) static() kind { return signedKind(n.x.static()) }
func (n *identity) static() kind { return signedKind(n.x.static()) }

// signedKind is the kind of a sign's result.
func signedKind(x kind) kind {
	switch x {
	case longKind, durationKind:
		return x
	case anyKind, quantityKind:
		return quantityKind
	}
	return doubleKind
}

func (n *arithmetic) static() kind {
	l, r := n.l.static(), n.r.static()
	open := l == anyKind || r == anyKind || l == quantityKind || r == quantityKind
	switch {
	case l == longKind && r == longKind:
		return longKind
	case l.numeric() || r.numeric() || n.op != '+' && n.op != '-':
		return doubleKind
	case l == timeKind && r == timeKind && n.op == '-':
		return durationKind
	case r == durationKind && (l == timeKind || l == durationKind):
		return l
	case n.op == '-' && open:
		return quantityKind
	case n.op == '+' && (open || l == textKind):
		return anyKind // two texts add up to one
	}
	return doubleKind
}

func (n *anyOf) append(dst []byte) []byte {
	for i, p := range n.parts {
		if i > 0 {
			dst = append(dst, " OR "...)
		}
		dst = p.append(dst)
	}
	return dst
}

func (n *allOf) append(dst []byte) []byte {
	for i, p := range n.parts {
		if i > 0 {
			dst = append(dst, " AND "...)
		}
		_, or := p.(*anyOf)
		dst = appendGrouped(dst, p, or)
	}
	return dst
}

func (n *not) append(dst []byte) []byte {
	dst = append(dst, "NOT "...)
	switch n.x.(type) {
	case *anyOf, *allOf:
		return appendGrouped(dst, n.x, true)
	}
	return n.x.append(dst)
}

func appendGrouped(dst []byte, n node, group bool) []byte {
	if !group {
		return n.append(dst)
	}
	return append(n.append(append(dst, '(')), ')')
}

func (n *comparison) append(dst []byte) []byte {
	dst = append(n.l.append(dst), ' ')
	dst = append(append(dst, n.op...), ' ')
	return n.r.append(dst)
}

func (n *nullTest) append(dst []byte) []byte {
	dst = append(n.x.append(dst), " IS "...)
	return append(appendNot(dst, n.negate), "NULL"...)
}

func (n *membership) append(dst []byte) []byte {
	dst = append(n.x.append(dst), ' ')
	dst = append(appendNot(dst, n.negate), "IN ("...)
	for i, x := range n.list {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = x.append(dst)
	}
	return append(dst, ')')
}

func (n *likeness) append(dst []byte) []byte {
	dst = append(n.x.append(dst), ' ')
	dst = append(appendNot(dst, n.negate), "LIKE "...)
	dst = n.pattern.append(dst)
	if n.escape != nil {
		dst = n.escape.append(append(dst, " ESCAPE "...))
	}
	return dst
}

func appendNot(dst []byte, negate bool) []byte {
	if negate {
		dst = append(dst, "NOT "...)
	}
	return dst
}

func (n *existence) append(dst []byte) []byte {
	return append(n.x.append(append(dst, "EXISTS("...)), ')')
}

func (n *boolTest) append(dst []byte) []byte { return n.x.append(dst) }

func (n *literal) append(dst []byte) []byte    { return append(dst, n.text...) }
func (n *parameter) append(dst []byte) []byte  { return append(append(dst, '@'), n.name...) }
func (n *systemName) append(dst []byte) []byte { return append(append(dst, "sys."...), n.name...) }
func (n *newID) append(dst []byte) []byte      { return append(dst, "newid()"...) }
func (n *bodyText) append(dst []byte) []byte   { return append(dst, bodyName...) }
func (n *bodyPath) append(dst []byte) []byte {
	return append(append(dst, bodyName+"."...), n.path.String()...)
}

func (n *named) append(dst []byte) []byte {
	return append(n.arg.append(append(dst, "property("...)), ')')
}

func (n *userName) append(dst []byte) []byte { return append(dst, writeName(n.name)...) }

// writeName puts a name into brackets where it cannot stand bare. In a selection a bare body
// is the message's, so the name gets brackets in both dialects.
func writeName(name string) string {
	if bareName(name) && !strings.EqualFold(name, bodyName) {
		return name
	}
	return "[" + strings.ReplaceAll(name, "]", "]]") + "]"
}

// bareName reports whether name is a regular identifier and no keyword.
func bareName(name string) bool {
	if name == "" || name[0] == '_' || digitsEnd(name, 0) > 0 {
		return false
	}
	tokens := lex(name)
	return tokens[0].kind == wordToken && tokens[0].pos == 0 && tokens[0].end == len(name) && keywordOf(name) == "" && !isVerb(name)
}

// quote writes s as a text literal.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (n *negation) append(dst []byte) []byte { return appendSigned(dst, '-', n.x) }
func (n *identity) append(dst []byte) []byte { return appendSigned(dst, '+', n.x) }

// appendSigned keeps two signs apart, and a sign away from a number that it did not belong to.
func appendSigned(dst []byte, sign byte, x operand) []byte {
	switch x := x.(type) {
	case *negation, *identity:
		return x.append(append(dst, sign, ' '))
	case *literal:
		return appendGrouped(append(dst, sign), x, x.v.kind.numeric())
	case *arithmetic:
		return appendGrouped(append(dst, sign), x, true)
	}
	return x.append(append(dst, sign))
}

func (n *arithmetic) append(dst []byte) []byte {
	l, isArithmetic := n.l.(*arithmetic)
	dst = appendGrouped(dst, n.l, isArithmetic && l.tight() < n.tight())
	dst = append(dst, ' ', n.op, ' ')
	r, isArithmetic := n.r.(*arithmetic)
	return appendGrouped(dst, n.r, isArithmetic && r.tight() <= n.tight())
}

// tight is how tightly the operator binds.
func (n *arithmetic) tight() int {
	if n.op == '+' || n.op == '-' {
		return 1
	}
	return 2
}

// formatDouble writes a double so that it reads back as one.
func formatDouble(f float64) string {
	s := strconv.FormatFloat(f, 'G', -1, 64)
	if !strings.ContainsAny(s, ".E") {
		s += ".0"
	}
	return s
}
