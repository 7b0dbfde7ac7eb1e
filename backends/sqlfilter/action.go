package sqlfilter

import (
	"fmt"
	"slices"
	"strings"

	"dlq/backends/message"
)

// MaxStatements is the service's limit for the statements of an action.
const MaxStatements = 32

// statementExample is the hint for what is no statement.
const statementExample = "SET tenant = 'acme'; REMOVE amount"

// Action is the compiled action of a subscription rule: what it changes in a message that its
// filter has selected. It is immutable and may be used concurrently.
type Action struct {
	statements []statement
	source     source
	doubts     []*problem
}

// statement is SET target = x, or REMOVE target where x is nil.
type statement struct {
	target target
	x      operand
}

// target is a property that a statement can change.
type target interface {
	node
	// set gives the property a value, or returns why it cannot have it. A null clears a
	// system property.
	set(m *message.Message, v message.Value) (fault string)
	remove(m *message.Message)
}

// CompileAction reads an action: SET property = value and REMOVE property, one after the
// other, each with an optional semicolon or comma behind it. Names and params are those of
// [Compile]. The error is an [*Error], also for a system property that does not exist or that
// an action cannot change. The settable ones are ContentType, CorrelationId,
// ForcePersistence, Label, MessageId, PartitionKey, ReplyTo, ReplyToSessionId,
// ScheduledEnqueueTimeUtc, SessionId, TimeToLive, To and ViaPartitionKey.
func CompileAction(src string, names Names, params map[string]message.Value) (*Action, error) {
	s := source{text: src, names: names, params: params, action: true}
	p, err := s.compile()
	if err != nil {
		return nil, err
	}
	return &Action{p.statements, s, p.doubts}, nil
}

// Apply changes env.Message in place, one statement after the other: each sees what those
// before it did. The error is an [*EvalError] whose exception is [RuleActionException]; the
// message keeps what the statements before the failing one did, so hand in a clone.
//
// SET of an application property that exists converts the value to its type, as far as the
// value stays what it is; see the package comment. SET with a null, or with what is unknown,
// leaves a property with a null value. REMOVE of what is not there does nothing. A name means
// the property that an expression would read: the exact one, else the first without case.
//
// SET of a system property takes a value of its type; besides, a text takes a GUID, and a
// time or a duration takes a text that reads as one. NULL clears it. A time to live must be
// positive and is cut to milliseconds; MessageId, SessionId, ReplyToSessionId, PartitionKey
// and ViaPartitionKey have at most 128 characters.
//
// An action has no part in duplicate detection, which has happened by then, nor in
// scheduling: SET sys.ScheduledEnqueueTimeUtc is legal and ignored, as the service documents.
func (a *Action) Apply(env *Env) error {
	for i := range a.statements {
		if err := a.statements[i].apply(env); err != nil {
			return err
		}
	}
	return nil
}

// String returns the canonical form: an equal action, which compiles with the same names and
// parameters.
func (a *Action) String() string {
	var dst []byte
	for i := range a.statements {
		if i > 0 {
			dst = append(dst, "; "...)
		}
		dst = a.statements[i].append(dst)
	}
	return string(dst)
}

// Warnings is [Expr.Warnings] for an action.
func (a *Action) Warnings() []Diagnostic { return a.source.warnings(a.doubts) }

func (s *statement) append(dst []byte) []byte {
	if s.x == nil {
		return s.target.append(append(dst, "REMOVE "...))
	}
	dst = s.target.append(append(dst, "SET "...))
	return s.x.append(append(dst, " = "...))
}

func (s *statement) apply(env *Env) error {
	if s.x == nil {
		s.target.remove(env.Message)
		return nil
	}
	v, err := result(s.x, env)
	if err != nil {
		return actionException(s, "", err)
	}
	if fault := s.target.set(env.Message, v); fault != "" {
		return actionException(s, fault, nil)
	}
	return nil
}

// result evaluates x. What is nothing but a property or a parameter keeps its type.
func result(x operand, env *Env) (message.Value, error) {
	switch n := x.(type) {
	case *named:
		target, err := n.resolve(env)
		if target == nil || err != nil {
			return message.Null{}, err
		}
		return result(target, env)
	case *parameter:
		return n.given, nil
	case *userName:
		if v, _ := userProperty(env.Message, n.name); v != nil {
			return v, nil
		}
		return message.Null{}, nil
	}
	v, err := x.eval(env)
	return v.message(), err
}

// parseAction reads the statements.
func (p *parser) parseAction() error {
	if p.peek().kind == endToken {
		return &problem{msg: "the action is empty", hint: statementExample}
	}
	for p.peek().kind != endToken {
		verb := p.peek()
		s, err := p.statement()
		if err != nil {
			return err
		}
		if len(p.statements) == MaxStatements {
			return &problem{
				pos: verb.pos, end: verb.end,
				msg: fmt.Sprintf("an action has at most %d statements", MaxStatements),
			}
		}
		p.statements = append(p.statements, s)
		p.accept(";")
		if comma := p.peek(); p.accept(",") && p.peek().kind == endToken {
			return &problem{
				pos: comma.pos, end: comma.end, msg: "a statement is missing behind the comma",
				fix: &edit{comma.pos, comma.end, ""},
			}
		}
	}
	return nil
}

func (p *parser) statement() (statement, error) {
	verb := p.peek()
	if verb.kind != wordToken || !isVerb(verb.text) {
		return statement{}, p.noVerb()
	}
	p.next()
	var s statement
	var err error
	if s.target, err = p.target(verb); err != nil || verb.is("REMOVE") {
		return s, err
	}
	if equals := p.peek(); !p.accept("=") {
		return s, p.noEquals(equals)
	}
	x, err := p.sum()
	if err != nil {
		return s, err
	}
	if s.x, err = p.operand(x); err != nil {
		return s, err
	}
	return s, p.checkQuoted(x)
}

// target reads the property that a statement changes.
func (p *parser) target(verb token) (target, error) {
	t := p.peek()
	switch {
	case t.kind == badToken:
		return nil, t.problem
	case t.keyword() != "", t.kind == wordToken && isVerb(t.text):
		return nil, p.noOperand()
	case t.kind != wordToken && t.kind != delimitedToken && t.kind != quotedToken:
		return nil, &problem{
			pos: t.pos, end: t.end, msg: strings.ToUpper(verb.text) + " needs a property behind it", hint: statementExample,
		}
	}
	at, err := p.property()
	if err != nil {
		return nil, err
	}
	bad := &problem{pos: at.pos, end: at.end, msg: p.text(at) + " is not what an action can change", hint: statementExample}
	switch n := at.node.(type) {
	case *userName:
		return n, nil
	case *systemName:
		if set := setter(n.name); set != nil {
			return &settable{n, set}, nil
		}
		bad.msg = fmt.Sprintf("an action cannot change sys.%s, only %s", n.name, strings.Join(p.names.settable(), ", "))
	case *named:
		bad.msg = "an action names the property that it changes"
		if name, ok := n.fixed.(*userName); ok {
			bad.fix = &edit{at.pos, at.end, writeName(name.name)}
		}
	}
	return nil, bad
}

// settable returns the system properties that an action can change.
func (n Names) settable() []string {
	var out []string
	for _, p := range n.system {
		if setter(p.name) != nil {
			out = append(out, p.name)
		}
	}
	return out
}

// noVerb explains a token that stands where a statement must begin.
func (p *parser) noVerb() error {
	t := p.peek()
	bad := &problem{
		pos: t.pos, end: t.end, msg: "a statement is SET property = value or REMOVE property", hint: statementExample,
	}
	others := [...]string{"DELETE", "DROP", "UNSET", "CLEAR", "ADD", "UPDATE", "LET"}
	other := slices.IndexFunc(others[:], t.is)
	switch {
	case t.kind == badToken:
		return t.problem
	case p.brokenText(t):
		bad.msg, bad.fix = "a single quote inside a text is doubled", insert(t.pos-1, "'")
	case t.isOp(";") || t.isOp(","):
		bad.fix = &edit{t.pos, t.end, ""}
	case other >= 4:
		bad.fix = &edit{t.pos, t.end, "SET"}
	case other >= 0:
		bad.fix = &edit{t.pos, t.end, "REMOVE"}
	case p.at > 0 && p.tokens[p.at-1].isOp(",") && p.statements[len(p.statements)-1].x == nil:
		bad.fix = insert(t.pos, "REMOVE ")
	case p.at == 0 || p.tokens[p.at-1].isOp(",") || p.tokens[p.at-1].isOp(";"):
		bad.fix = insert(t.pos, "SET ")
	}
	return bad
}

// noEquals explains what stands behind the property instead of a =.
func (p *parser) noEquals(t token) error {
	bad := &problem{pos: t.pos, end: t.end, msg: "SET needs a = behind the property", hint: statementExample}
	switch {
	case t.kind == badToken:
		return t.problem
	case t.is("TO") || t.is("AS"):
		bad.fix = &edit{t.pos, t.end, "="}
	case t.kind == endToken:
		bad.fix = insert(t.end, " = NULL")
	case t.kind != opToken:
		bad.fix = insert(t.pos, "= ")
	}
	return bad
}
