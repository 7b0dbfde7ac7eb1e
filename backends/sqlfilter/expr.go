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
	source   source
	doubts   []*problem
}

// source is what an expression or an action is compiled from.
type source struct {
	text   string
	names  Names
	params map[string]message.Value
	action bool
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
	s := source{text: src, names: names, params: params}
	p, err := s.compile()
	if err != nil {
		return nil, err
	}
	return &Expr{p.root, p.needBody, s, p.doubts}, nil
}

// compile reads the source, or says why it cannot. The error is an [*Error].
func (s source) compile() (*parser, error) {
	if limit := cmp.Or(s.names.maxLength, MaxRuleLength); len(s.text) > limit {
		return nil, &Error{diagnostic(s.text, &problem{
			pos: limit, end: len(s.text),
			msg: fmt.Sprintf("the %s has %d bytes; the limit is %d", s.noun(), len(s.text), limit),
		}, "")}
	}
	if !utf8.ValidString(s.text) {
		pos := 0
		for r, n := utf8.DecodeRuneInString(s.text); r != utf8.RuneError || n != 1; r, n = utf8.DecodeRuneInString(s.text[pos:]) {
			pos += n
		}
		bad := &problem{pos: pos, end: pos + 1, msg: "the " + s.noun() + " is not valid UTF-8"}
		return nil, &Error{diagnostic(s.text, bad, "")}
	}
	p, bad := s.parse()
	if bad != nil {
		return nil, &Error{diagnostic(s.text, bad, s.hint(bad))}
	}
	return p, nil
}

func (s source) noun() string {
	if s.action {
		return "action"
	}
	return "expression"
}

// parse reads the source without looking for what might have been meant. The parser it
// returns has done its work.
func (s source) parse() (*parser, *problem) {
	p := &parser{src: s.text, names: s.names, params: s.params, action: s.action}
	if err := p.parse(); err != nil {
		var bad *problem
		errors.As(err, &bad) // the parser has no other errors
		return nil, bad
	}
	return p, nil
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
func (e *Expr) Warnings() []Diagnostic { return e.source.warnings(e.doubts) }

func (s source) warnings(doubts []*problem) []Diagnostic {
	var out []Diagnostic
	for _, p := range doubts {
		out = append(out, diagnostic(s.text, p, s.hint(p)))
	}
	return out
}
