package sqlfilter

import (
	"cmp"
	"errors"
	"fmt"
	"unicode/utf8"

	"dlq/backends/message"
)

// Expr is a compiled expression. It is immutable and may be used concurrently.
type Expr struct {
	root     predicate
	needBody bool
	src      string
	names    Names
	params   map[string]message.Value
	doubts   []*problem
}

// Env is what an expression is evaluated against. Fill one and use it for many messages:
// Match keeps nothing of it.
type Env struct {
	// Message is never nil.
	Message *message.Message
	// BodyText returns the body as text, for the name body. ok is false, and the body unknown,
	// when it is not text. nil: no body is known. It is called once for each place in the
	// expression that is evaluated, so it should remember a result that is costly.
	BodyText func() (text string, ok bool)
	// BodyJSON returns the value at a path in a JSON body. A number is a Long or a Double, an
	// object or an array its JSON text as a String. ok is false when there is nothing at the
	// path or the body is not JSON. nil: no body is known.
	BodyJSON func(Path) (v message.Value, ok bool)
	// NewID makes the result of newid(). nil: a random UUID.
	NewID func() message.UUID
}

// Compile reads an expression. The names decide the dialect; params are the values of @name,
// whose keys may have the @ or not. The error is an [*Error]; where the service would refuse a
// rule because it names a system property that does not exist, so does Compile.
func Compile(src string, names Names, params map[string]message.Value) (*Expr, error) {
	if limit := cmp.Or(names.maxLength, MaxRuleLength); len(src) > limit {
		return nil, &Error{diagnostic(src, &problem{
			pos: limit, end: len(src),
			msg: fmt.Sprintf("the expression has %d bytes; the limit is %d", len(src), limit),
		}, "")}
	}
	if !utf8.ValidString(src) {
		pos := 0
		for r, n := utf8.DecodeRuneInString(src); r != utf8.RuneError || n != 1; r, n = utf8.DecodeRuneInString(src[pos:]) {
			pos += n
		}
		return nil, &Error{diagnostic(src, &problem{pos: pos, end: pos + 1, msg: "the expression is not valid UTF-8"}, "")}
	}
	e, bad := compile(src, names, params)
	if bad != nil {
		return nil, &Error{diagnostic(src, bad, e.hint(bad))}
	}
	return e, nil
}

// compile reads an expression without looking for what might have been meant. The Expr is
// there even when there is a problem: it remembers the arguments.
func compile(src string, names Names, params map[string]message.Value) (*Expr, *problem) {
	e := &Expr{src: src, names: names, params: params}
	p := &parser{src: src, names: names, params: params}
	root, err := p.parse()
	if err != nil {
		var bad *problem
		errors.As(err, &bad) // the parser has no other errors
		return e, bad
	}
	e.root, e.needBody, e.doubts = root, p.needBody, p.doubts
	return e, nil
}

// Match reports whether the message matches: whether the expression is true, neither false
// nor unknown. The error is an [*EvalError]. Match has no side effects and does not
// allocate, unless the expression adds texts, calls property() or newid() with what only the
// message knows, or has a LIKE pattern that is not constant.
func (e *Expr) Match(env *Env) (bool, error) {
	t, err := e.root.truth(env)
	return t == yes && err == nil, err
}

// NeedsBody reports whether the expression names the body anywhere. If not, Match never
// calls the body functions of [Env].
func (e *Expr) NeedsBody() bool { return e.needBody }

// String returns the canonical form: an equal expression, which compiles with the same names
// and parameters, with keywords in upper case, one space between words and only the
// parentheses that matter.
func (e *Expr) String() string { return string(e.root.append(nil)) }

// Warnings returns what is legal but hardly meant, in the order of the source. It may be
// slow: it looks for the nearest form of each.
func (e *Expr) Warnings() []Diagnostic {
	var out []Diagnostic
	for _, p := range e.doubts {
		out = append(out, diagnostic(e.src, p, e.hint(p)))
	}
	return out
}
