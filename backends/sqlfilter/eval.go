package sqlfilter

import (
	"errors"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"dlq/backends/message"
)

// truth is a value of three-valued logic, ordered so that AND is the minimum, OR the maximum
// and NOT the negative.
type truth int8

const (
	no      truth = -1
	unknown truth = 0
	yes     truth = 1
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// negatedIf returns NOT t, or t.
func (t truth) negatedIf(negate bool) truth {
	if negate {
		return -t
	}
	return t
}

func (n *anyOf) truth(env *Env) (truth, error) {
	out := no
	for _, part := range n.parts {
		t, err := part.truth(env)
		if t == yes || err != nil {
			return t, err
		}
		out = max(out, t)
	}
	return out, nil
}

func (n *allOf) truth(env *Env) (truth, error) {
	out := yes
	for _, part := range n.parts {
		t, err := part.truth(env)
		if t == no || err != nil {
			return t, err
		}
		out = min(out, t)
	}
	return out, nil
}

func (n *not) truth(env *Env) (truth, error) {
	t, err := n.x.truth(env)
	return -t, err
}

func (n *comparison) truth(env *Env) (truth, error) {
	l, err := n.l.eval(env)
	if err != nil {
		return unknown, err
	}
	r, err := n.r.eval(env)
	if err != nil {
		return unknown, err
	}
	order, ok := compareValues(l, r, n.coerce)
	if !ok || l.kind == boolKind && n.op != "=" && n.op != "<>" {
		return unknown, nil
	}
	switch n.op {
	case "=":
		return truthOf(order == 0), nil
	case "<>":
		return truthOf(order != 0), nil
	case ">":
		return truthOf(order > 0), nil
	case ">=":
		return truthOf(order >= 0), nil
	case "<":
		return truthOf(order < 0), nil
	}
	return truthOf(order <= 0), nil
}

func (n *nullTest) truth(env *Env) (truth, error) {
	v, err := n.x.eval(env)
	return truthOf(v.isNull() != n.negate), err
}

// truth of IN is that of the equalities joined by OR.
func (n *membership) truth(env *Env) (truth, error) {
	x, err := n.x.eval(env)
	if err != nil || x.isNull() {
		return unknown, err
	}
	out := no
	for _, item := range n.list {
		v, err := item.eval(env)
		if err != nil {
			return unknown, err
		}
		order, ok := compareValues(x, v, n.coerce)
		switch {
		case !ok:
			out = unknown
		case order == 0:
			return yes.negatedIf(n.negate), nil
		}
	}
	return out.negatedIf(n.negate), nil
}

func (n *likeness) truth(env *Env) (truth, error) {
	x, err := n.x.eval(env)
	if err != nil || x.kind != textKind {
		return unknown, err
	}
	p := n.compiled
	if p == nil {
		if p, err = n.patternFor(env); p == nil || err != nil {
			return unknown, err
		}
	}
	return truthOf(p.Match(x.s) != n.negate), nil
}

// patternFor builds the pattern for one message. It is nil when the pattern is unknown.
func (n *likeness) patternFor(env *Env) (*Pattern, error) {
	text, err := n.pattern.eval(env)
	if err != nil {
		return nil, err
	}
	var escape value
	if n.escape != nil {
		if escape, err = n.escape.eval(env); err != nil {
			return nil, err
		}
	}
	p, err := buildPattern(text, escape, n.escape != nil)
	if err != nil {
		return nil, filterException(n, err.Error())
	}
	return p, nil
}

// buildPattern returns nil without an error when the pattern or the escape is null, or the
// pattern is no text.
func buildPattern(text, escape value, hasEscape bool) (*Pattern, error) {
	var opts PatternOptions
	if hasEscape && !escape.isNull() {
		r, n := utf8.DecodeRuneInString(escape.s)
		if escape.kind != textKind || n == 0 || n != len(escape.s) {
			return nil, errors.New("ESCAPE takes one character")
		}
		opts.Escape = r
	}
	if text.kind != textKind || hasEscape && escape.isNull() {
		return nil, nil
	}
	return CompilePattern(text.s, opts)
}

func (n *existence) truth(env *Env) (truth, error) { return truthOf(n.x.exists(env)), nil }

func (n *boolTest) truth(env *Env) (truth, error) {
	v, err := n.x.eval(env)
	if err != nil || v.kind != boolKind {
		return unknown, err
	}
	return truthOf(v.a != 0), nil
}

func (n *literal) eval(*Env) (value, error)   { return n.v, nil }
func (n *parameter) eval(*Env) (value, error) { return n.v, nil }

func (n *userName) eval(env *Env) (value, error) {
	v, _ := userProperty(env.Message, n.name)
	return fromMessage(v), nil
}

// exists is true for a property that is there with a null value, too.
func (n *userName) exists(env *Env) bool {
	_, ok := userProperty(env.Message, n.name)
	return ok
}

func (n *systemName) eval(env *Env) (value, error) { return n.get(env.Message), nil }

// exists is true when the message has the field: AMQP does not tell a null one from an absent one.
func (n *systemName) exists(env *Env) bool { return !n.get(env.Message).isNull() }

func (n *named) eval(env *Env) (value, error) {
	x, err := n.resolve(env)
	if x == nil || err != nil {
		return value{}, err
	}
	return x.eval(env)
}

// resolve returns what property(arg) stands for with this message, or nil if the name is null.
func (n *named) resolve(env *Env) (operand, error) {
	if n.fixed != nil {
		return n.fixed, nil
	}
	name, err := n.arg.eval(env)
	switch {
	case err != nil || name.isNull():
		return nil, err
	case name.kind != textKind:
		return nil, filterException(n, "the name of a property is not a text")
	}
	x, ok := n.names.resolve(name.s)
	if !ok {
		return nil, filterException(n, "there is no system property "+clip(visible(name.s)))
	}
	return x, nil
}

func (n *newID) eval(env *Env) (value, error) {
	if env.NewID != nil {
		return guidValue(env.NewID()), nil
	}
	return guidValue(message.RandomUUID()), nil
}

func (n *bodyText) eval(env *Env) (value, error) {
	if env.BodyText != nil {
		if s, ok := env.BodyText(); ok {
			return textValue(s), nil
		}
	}
	return value{}, nil
}

func (n *bodyText) exists(env *Env) bool {
	v, _ := n.eval(env)
	return !v.isNull()
}

func (n *bodyPath) eval(env *Env) (value, error) {
	if env.BodyJSON != nil {
		if v, ok := env.BodyJSON(n.path); ok {
			return fromMessage(v), nil
		}
	}
	return value{}, nil
}

func (n *bodyPath) exists(env *Env) bool {
	if env.BodyJSON == nil {
		return false
	}
	_, ok := env.BodyJSON(n.path)
	return ok
}

func (n *identity) eval(env *Env) (value, error) {
	v, err := n.x.eval(env)
	if err == nil && !v.kind.numeric() && v.kind != durationKind {
		return undefined(n, n.strict, v)
	}
	return v, err
}

// undefined is the result of an operator for types that it does not know.
func undefined(n node, strict bool, operands ...value) (value, error) {
	if !strict || slices.ContainsFunc(operands, value.isNull) {
		return value{}, nil
	}
	return value{}, filterException(n, "the types do not fit the operator")
}

func (n *negation) eval(env *Env) (value, error) {
	v, err := n.x.eval(env)
	switch {
	case err != nil:
		return value{}, err
	case v.kind == doubleKind:
		return doubleValue(-v.double()), nil
	case v.kind != longKind && v.kind != durationKind:
		return undefined(n, n.strict, v)
	case v.a == math.MinInt64:
		return value{}, filterException(n, overflow)
	}
	return value{kind: v.kind, a: -v.a}, nil
}

const overflow = "integer overflow"

func (n *arithmetic) eval(env *Env) (value, error) {
	l, err := n.l.eval(env)
	if err != nil {
		return value{}, err
	}
	r, err := n.r.eval(env)
	if err != nil {
		return value{}, err
	}
	switch {
	case l.kind == longKind && r.kind == longKind:
		out, fault := longArithmetic(n.op, l.a, r.a)
		if fault != "" {
			return value{}, filterException(n, fault)
		}
		return longValue(out), nil
	case l.kind.numeric() && r.kind.numeric():
		return doubleValue(doubleArithmetic(n.op, l.asDouble(), r.asDouble())), nil
	case n.op == '+' && l.kind == textKind && r.kind == textKind:
		return textValue(l.s + r.s), nil
	case n.op == '-' && l.kind == timeKind && r.kind == timeKind:
		return durationValue(l.time().Sub(r.time())), nil // at most 292 years
	case (n.op == '+' || n.op == '-') && r.kind == durationKind && (l.kind == timeKind || l.kind == durationKind):
		return n.shift(l, r)
	}
	return undefined(n, n.strict, l, r)
}

// shift moves a time, or changes a duration, by a duration.
func (n *arithmetic) shift(l, r value) (value, error) {
	if l.kind == durationKind {
		sum, fault := longArithmetic(n.op, l.a, r.a)
		if fault != "" {
			return value{}, filterException(n, fault)
		}
		return durationValue(time.Duration(sum)), nil
	}
	if n.op == '-' {
		if r.a == math.MinInt64 {
			return value{}, filterException(n, overflow)
		}
		r.a = -r.a
	}
	return timeValue(l.time().Add(time.Duration(r.a))), nil
}

// asDouble promotes a number.
func (v value) asDouble() float64 {
	if v.kind == longKind {
		return float64(v.a)
	}
	return v.double()
}

// longArithmetic returns what is wrong, or "".
func longArithmetic(op byte, a, b int64) (out int64, fault string) {
	ok := true
	switch op {
	case '+':
		out = a + b
		ok = (out > a) == (b > 0)
	case '-':
		out = a - b
		ok = (out < a) == (b > 0)
	case '*':
		out = a * b
		ok = a == 0 || out/a == b && (a != -1 || b != math.MinInt64)
	default:
		if b == 0 {
			return 0, "integer division by zero"
		}
		if op == '%' {
			return a % b, ""
		}
		out = a / b
		ok = a != math.MinInt64 || b != -1
	}
	if !ok {
		return 0, overflow
	}
	return out, ""
}

func doubleArithmetic(op byte, a, b float64) float64 {
	switch op {
	case '+':
		return a + b
	case '-':
		return a - b
	case '*':
		return a * b
	case '/':
		return a / b
	}
	return math.Mod(a, b)
}
