package sqlfilter

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// This file turns what cannot be parsed into a problem that says what was probably meant.

// unexpected explains the next token, which cannot follow what was read up to now.
func (p *parser) unexpected(before term) error {
	t := p.peek()
	switch {
	case t.kind == badToken:
		return t.problem
	case t.isOp(")"):
		return &problem{pos: t.pos, end: t.end, msg: "this ) closes nothing", fix: &edit{t.pos, t.end, ""}}
	case t.is("ESCAPE"):
		return &problem{pos: t.pos, end: t.end, msg: "ESCAPE belongs to LIKE", hint: `name LIKE '50\%%' ESCAPE '\'`}
	case t.is("NOT") && p.ahead(1).is("NULL"):
		return &problem{pos: t.pos, end: t.end, msg: "NOT NULL needs IS", fix: insert(t.pos, "IS ")}
	case t.is("NOT") && p.ahead(1).isOp("="):
		return &problem{pos: t.pos, end: t.end, msg: "not equal is written <>", fix: &edit{t.pos, p.ahead(1).end, "<>"}}
	case t.is("NULL"):
		return &problem{pos: t.pos, end: t.end, msg: "NULL needs IS", fix: insert(t.pos, "IS ")}
	case p.brokenText(t):
		return &problem{pos: t.pos, end: t.end, msg: "a single quote inside a text is doubled", fix: insert(t.pos-1, "'")}
	}
	if bad := p.wordOperator(p.last(before)); bad != nil {
		return bad
	}
	if _, compares := before.node.(*comparison); compares && p.bareText(t) {
		start, end := p.bareSpan()
		return &problem{pos: start, end: end, msg: "text stands in single quotes", fix: &edit{start, end, quote(p.src[start:end])}}
	}
	bad := &problem{
		pos: t.pos, end: t.end, msg: "AND or OR is missing before " + p.name(t), fix: insert(t.pos, "AND "),
		hint: "tenant = 'acme' AND amount > 5",
	}
	switch {
	case t.isOp(","):
		bad.msg, bad.fix = "conditions are joined by AND or OR", &edit{t.pos, t.end, " AND"}
	case t.kind == opToken || t.kind == pathToken:
		bad.msg, bad.fix = "unexpected "+p.name(t), nil
	case p.at == 1 && (p.tokens[0].is("where") || p.tokens[0].is("select")):
		bad = &problem{pos: 0, end: t.pos, msg: "a condition has no word in front", fix: &edit{0, t.pos, ""}}
	}
	return bad
}

// name quotes a token for a message.
func (p *parser) name(t token) string {
	if t.kind == endToken {
		return "the end"
	}
	return fmt.Sprintf("%q", clip(p.src[t.pos:t.end]))
}

// last returns the operand that stands last before the next token, as the parser saw it: the
// term itself unless it is a condition.
func (p *parser) last(before term) term {
	if _, ok := before.node.(operand); ok {
		return before
	}
	t := p.tokens[max(p.at-1, 0)]
	return term{before.node, t.pos, t.end}
}

// brokenText reports whether the token touches a text before it: 'it's'.
func (p *parser) brokenText(t token) bool {
	if p.at == 0 || t.kind == opToken || t.kind == endToken {
		return false
	}
	last := p.tokens[p.at-1]
	return last.kind == textToken && last.end == t.pos
}

// bareText reports whether the token goes on where a bare word began: x = two words.
func (p *parser) bareText(t token) bool {
	if p.at < 2 || t.kind != wordToken && t.kind != integerToken || t.keyword() != "" {
		return false
	}
	last, op := p.tokens[p.at-1], p.tokens[p.at-2]
	return last.kind == wordToken && last.keyword() == "" && op.kind == opToken
}

// bareSpan returns the span from the bare word before the next token to the last word in a row.
func (p *parser) bareSpan() (start, end int) {
	for i := p.at; ; i++ {
		t := p.tokens[i]
		if t.kind != wordToken && t.kind != integerToken || t.keyword() != "" {
			return p.tokens[p.at-1].pos, p.tokens[i-1].end
		}
	}
}

// foreignWord knows the operators that people write as words elsewhere: what each is here,
// and for LIKE what goes around the text. op is "" for any other word.
func foreignWord(word string) (op, before, after string) {
	switch strings.ToLower(word) {
	case "contains", "has", "includes", "matches", "match", "regexp", "rlike", "ilike", "similar":
		return "LIKE", "%", "%"
	case "startswith", "starts", "beginswith", "begins", "starts_with":
		return "LIKE", "", "%"
	case "endswith", "ends", "ends_with":
		return "LIKE", "%", ""
	case "eq", "equals", "equal":
		return "=", "", ""
	case "ne", "neq":
		return "<>", "", ""
	case "gt":
		return ">", "", ""
	case "ge", "gte":
		return ">=", "", ""
	case "lt":
		return "<", "", ""
	case "le", "lte":
		return "<=", "", ""
	}
	return "", "", ""
}

// wordOperator explains the next token if it is an operator that we write otherwise.
func (p *parser) wordOperator(left term) error {
	t, value := p.peek(), p.ahead(1)
	op, before, after := foreignWord(t.text)
	if t.kind != wordToken || op == "" && !t.is("between") {
		return nil
	}
	bad := &problem{pos: t.pos, end: t.end, msg: fmt.Sprintf("unknown word %q", t.text), hint: p.text(left) + " LIKE '%text%'"}
	if value.is("with") || value.is("to") { // starts with, equal to
		value = p.ahead(2)
	}
	switch {
	case op == "":
		bad.hint = p.text(left) + " >= 1 AND " + p.text(left) + " <= 5"
		if p.ahead(2).is("AND") {
			from, to := p.src[value.pos:value.end], p.ahead(3)
			bad.fix = &edit{t.pos, to.end, ">= " + from + " AND " + p.src[left.pos:left.end] + " <= " + p.src[to.pos:to.end]}
		}
	case op != "LIKE":
		bad.fix = &edit{t.pos, value.pos, op + " "}
	case value.kind == textToken || value.kind == quotedToken || value.kind == wordToken:
		bad.fix = &edit{t.pos, value.end, likeText(before, value.text, after)}
	}
	return bad
}

// likeText writes a LIKE for a text, which may be a pattern already.
func likeText(before, text, after string) string {
	if strings.HasPrefix(text, "%") || strings.HasSuffix(text, "%") {
		return "LIKE " + quote(text)
	}
	if !strings.ContainsAny(text, "%_") {
		return "LIKE " + quote(before+text+after)
	}
	escaped := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
	return "LIKE " + quote(before+escaped+after) + ` ESCAPE '\'`
}

// noOperand explains a token that stands where a value or a property must.
func (p *parser) noOperand() error {
	t := p.peek()
	bad := &problem{pos: t.pos, end: t.end, hint: "tenant = 'acme'"}
	if p.action {
		bad.hint = statementExample
	}
	var previous token
	if p.at > 0 {
		previous = p.tokens[p.at-1]
	}
	switch {
	case t.kind == badToken:
		return t.problem
	case t.kind == pathToken:
		bad.msg = "a path stands behind body."
		if p.names.selection {
			bad.fix = insert(t.pos, bodyName+".")
		} else {
			bad.msg, bad.hint = "a subscription rule cannot read the body", ""
		}
	case t.is("AND") || t.is("OR"):
		bad.msg, bad.fix = t.keyword()+" has no condition in front of it", &edit{t.pos, t.end, ""}
	case previous.is("NOT"):
		bad.msg, bad.hint = "NOT needs a condition behind it", "NOT tenant = 'acme'"
	case t.is("NOT"):
		bad.msg, bad.hint = "NOT stands in front of a whole condition", "NOT tenant = 'acme'"
	case previous.kind == opToken && strings.Contains(comparisons, previous.text) && (t.isOp("=") || t.isOp(">")):
		bad.msg, bad.fix = "two operators in a row", &edit{t.pos, t.end, ""}
	case t.kind == wordToken:
		bad.msg = strings.ToUpper(t.text) + " is a keyword; a property of that name stands in brackets"
		bad.fix = &edit{t.pos, t.end, "[" + t.text + "]"}
	case t.isOp("*") && p.at == 0:
		bad.msg = "an expression is a condition; 1 = 1 is true for all messages"
		bad.hint = "1 = 1"
	case t.isOp(")") && previous.isOp(","):
		bad.msg, bad.fix = "a value is missing behind the comma", &edit{previous.pos, previous.end, ""}
	case t.kind == endToken:
		bad.msg = "a value is missing at the end"
	default:
		bad.msg = "a value is missing before " + p.name(t)
	}
	return bad
}

// unclosed explains a missing parenthesis.
func (p *parser) unclosed(open token, hint string) error {
	t := p.peek()
	if t.kind == badToken {
		return t.problem
	}
	bad := &problem{pos: open.pos, end: open.end, msg: "the parenthesis is not closed", hint: hint}
	switch {
	case t.kind == endToken:
		bad.fix = insert(len(p.src), ")")
	case t.kind == textToken || t.kind == integerToken || t.kind == wordToken && t.keyword() == "":
		bad.pos, bad.end, bad.msg, bad.fix = t.pos, t.end, "a comma is missing before "+p.name(t), insert(p.tokens[p.at-1].end, ",")
	default:
		bad.fix = insert(t.pos, ") ")
	}
	return bad
}

// afterIs explains an IS without NULL.
func (p *parser) afterIs(is token, negate bool) error {
	t := p.peek()
	op, empty := "=", "= ''"
	if negate {
		op, empty = "<>", "<> ''"
	}
	bad := &problem{pos: is.pos, end: t.end, msg: "IS asks for NULL alone", hint: "tenant IS NOT NULL"}
	switch {
	case t.kind == badToken:
		return t.problem
	case t.is("empty"):
		bad.fix = &edit{is.pos, t.end, empty}
	case t.is("missing") || t.is("none") || t.is("nil") || t.is("undefined"):
		bad.fix = &edit{t.pos, t.end, "NULL"}
	case t.kind == textToken || t.kind == integerToken || t.kind == decimalToken || t.is("TRUE") || t.is("FALSE") || t.kind == quotedToken:
		bad.fix = &edit{is.pos, t.pos, op + " "}
	case t.kind == endToken:
		bad.fix = insert(t.pos, " NULL")
	}
	return bad
}

// notAList explains an IN without parentheses.
func (p *parser) notAList(in token) error {
	t := p.peek()
	bad := &problem{pos: in.pos, end: in.end, msg: "IN has its values in parentheses", hint: "tenant IN ('acme', 'contoso')"}
	switch {
	case t.kind == badToken:
		return t.problem
	case t.kind == delimitedToken:
		bad.fix = &edit{t.pos, t.end, "(" + p.src[t.pos+1:t.end-1] + ")"}
	default:
		bad.fix = p.wrapNext()
	}
	return bad
}

// wrapNext puts the next token, and those behind it that belong to the same name or list,
// into parentheses.
func (p *parser) wrapNext() *edit {
	t := p.peek()
	if t.kind == endToken || t.kind == opToken {
		return nil
	}
	i := 1
	for (p.ahead(i).isOp(".") || p.ahead(i).isOp(",")) && p.ahead(i+1).kind != endToken && p.ahead(i+1).kind != opToken {
		i += 2
	}
	end := p.ahead(i - 1).end
	return &edit{t.pos, end, "(" + p.src[t.pos:end] + ")"}
}

// oddName explains a name with characters that it cannot have bare.
func (p *parser) oddName(start, end int) error {
	return &problem{
		pos: start, end: end, msg: "a name with special characters stands in brackets",
		fix: &edit{start, end, "[" + p.src[start:end] + "]"},
	}
}

// unknownScope explains name.name. What looks like a scope of another language becomes ours;
// everything else is one name with points in it, as NServiceBus has them.
func (p *parser) unknownScope(t token) error {
	end := t.end
	i := slices.IndexFunc(p.tokens, func(x token) bool { return x.pos == t.pos })
	for ; i+2 < len(p.tokens) && (p.tokens[i+1].isOp(".") || p.tokens[i+1].isOp("-") && p.tokens[i+1].pos == end) &&
		p.tokens[i+2].pos == p.tokens[i+1].end && p.tokens[i+2].kind != endToken; i += 2 {
		end = p.tokens[i+2].end
	}
	bad := &problem{
		pos: t.pos, end: end, msg: "a scope is sys or user; a name with a point in it stands in brackets",
		hint: "sys.Label or [Name.With.Points]",
	}
	scope, rest := strings.ToLower(t.text), p.src[t.end:end]
	switch scope {
	case "sys":
		bad.msg = "a system property has no parts"
	case "user":
		bad.fix = &edit{t.pos, end, "[" + strings.TrimPrefix(rest, ".") + "]"}
	case "system", "broker", "message", "msg":
		bad.fix = &edit{t.pos, t.end, "sys"}
	case "properties", "props", "app", "application", "applicationproperties", "userproperties", "headers", "custom":
		bad.fix = &edit{t.pos, t.end, "user"}
	case bodyName:
		bad.msg, bad.hint = "a subscription rule cannot read the body", ""
	default:
		bad.fix = &edit{t.pos, end, "[" + p.src[t.pos:end] + "]"}
	}
	return bad
}

// unknownSystem explains a name that the sys scope does not have. write puts a name into the
// form that it has in the source.
func (p *parser) unknownSystem(name string, pos, end int, write func(string) string) error {
	bad := &problem{pos: pos, end: end, msg: fmt.Sprintf("there is no system property %q", clip(name))}
	best, distance := Nearest(name, p.names.systemNames())
	if synonym := synonyms(name); synonym != "" {
		best, distance = synonym, 0
	}
	if _, ok := p.names.lookup(best); ok && distance <= max(1, utf8.RuneCountInString(name)/3) {
		bad.fix = &edit{pos, end, write(best)}
		return bad
	}
	if _, ok := SelectionNames().lookup(name); ok {
		bad.msg += " in a subscription rule; it is an application property there"
		bad.hint = name + " LIKE '%text%'"
		return bad
	}
	bad.msg += "; there are " + strings.Join(p.names.systemNames(), ", ")
	return bad
}

// synonyms knows names under which other tools and SDKs show a property, as far as they are
// no misspelling.
func synonyms(name string) string {
	switch strings.ToLower(name) {
	case "id":
		return "MessageId"
	case "reason":
		return "DeadLetterReason"
	case "description", "deadletterdescription", "error":
		return "DeadLetterErrorDescription"
	case "enqueuedtime", "enqueued", "time":
		return "EnqueuedTimeUtc"
	case "expires", "expiresat":
		return "ExpiresAtUtc"
	case "session", "groupid":
		return "SessionId"
	case "seq", "sequence":
		return "SequenceNumber"
	case "ttl":
		return "TimeToLive"
	case "deliveries", "attempts", "receivecount":
		return "DeliveryCount"
	case "scheduledenqueuetime":
		return "ScheduledEnqueueTimeUtc"
	}
	return ""
}

// unknownFunction explains a call of what is no function.
func (p *parser) unknownFunction(name token) error {
	bad := &problem{
		pos: name.pos, end: name.end,
		msg: fmt.Sprintf("there is no function %q, only newid() and property('name')", clip(name.text)),
	}
	op, before, after := foreignWord(name.text)
	if op != "LIKE" {
		return bad
	}
	bad.hint = "name LIKE '%text%'"
	// contains(name, 'text'), as OData has it
	arg, text, end := p.ahead(1), p.ahead(3), p.ahead(4)
	if arg.kind == wordToken && p.ahead(2).isOp(",") && text.kind == textToken && end.isOp(")") {
		bad.fix = &edit{name.pos, end.end, arg.text + " " + likeText(before, text.text, after)}
	}
	return bad
}

// noName explains a scope without a name.
func (p *parser) noName(scope token) error {
	t := p.peek()
	if t.kind == badToken {
		return t.problem
	}
	return &problem{pos: t.pos, end: t.end, msg: "a name must follow " + scope.text + ".", hint: "sys.Label or user.tenant"}
}

// noPath explains body. without $.
func (p *parser) noPath(body token) error {
	t := p.peek()
	bad := &problem{pos: body.pos, end: t.end, msg: "a path into the body begins with $", hint: "body.$.order.id = 5"}
	switch t.kind {
	case badToken:
		return t.problem
	case wordToken, delimitedToken:
		bad.fix = insert(t.pos, "$.")
	}
	return bad
}

// notACondition explains a value that stands where a condition must.
func (p *parser) notACondition(t term, k kind) error {
	bad := &problem{
		pos: t.pos, end: t.end, msg: fmt.Sprintf("%s is %s, not a condition", p.text(t), k.noun()),
		hint: p.text(t) + " = " + k.example(),
	}
	l, ok := t.node.(*literal)
	switch {
	case p.hyphened(t):
		return p.hyphenProblem(t)
	case ok && l.v.kind == textKind && p.names.selection:
		bad.fix = &edit{t.pos, t.end, "body LIKE " + quote("%"+l.v.s+"%")}
	case k == textKind && !ok:
		bad.fix = insert(t.end, " = 'text'")
	case k == textKind:
		bad.hint = "tenant = " + p.text(t)
	case ok:
		bad.hint = "amount = " + p.text(t)
	}
	return bad
}
