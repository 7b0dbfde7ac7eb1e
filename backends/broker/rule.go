package broker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
	"dlq/backends/sqlfilter"
)

// FilterKind is how a rule decides.
type FilterKind string

// The kinds of filters.
const (
	TrueFilter        FilterKind = "true" // the zero value is this too
	FalseFilter       FilterKind = "false"
	SQLFilter         FilterKind = "sql"
	CorrelationFilter FilterKind = "correlation"
)

// Filter decides whether a rule lets a message through.
type Filter struct {
	Kind        FilterKind
	SQL         string                   // of an SQL filter, at most 1024 characters
	Params      map[string]message.Value // of its @names
	Correlation sqlfilter.Correlation
}

// Rule lets messages of a topic into a subscription, and may change the copy.
type Rule struct {
	Name   string // 1 to 50 characters; compares without case
	Filter Filter
	// Action is SQL that changes the copy; "": none. A rule with an action makes a copy of
	// its own.
	Action       string
	ActionParams map[string]message.Value
	Created      time.Time // owned by the engine
}

// DefaultRule is the name of the rule that a subscription gets which is made without rules.
const DefaultRule = "$Default"

// rule is a rule that can be run.
type rule struct {
	Rule
	expr   *sqlfilter.Expr   // of an SQL filter
	action *sqlfilter.Action // nil: none
}

func compileRule(r Rule) (*rule, error) {
	if err := validateRuleName(r.Name); err != nil {
		return nil, err
	}
	out := &rule{Rule: r}
	var err error
	switch r.Filter.Kind {
	case "":
		out.Filter.Kind = TrueFilter
	case TrueFilter, FalseFilter:
	case CorrelationFilter:
		err = r.Filter.Correlation.Validate()
	case SQLFilter:
		out.expr, err = sqlfilter.Compile(r.Filter.SQL, sqlfilter.RuleNames(), r.Filter.Params)
	default:
		err = fmt.Errorf("unknown kind of filter %q", r.Filter.Kind)
	}
	if err == nil && r.Action != "" {
		out.action, err = sqlfilter.CompileAction(r.Action, sqlfilter.RuleNames(), r.ActionParams)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: rule %s: %w", ErrInvalid, r.Name, err)
	}
	return out, nil
}

// compileRules compiles the rules of a new entity, which only a subscription has.
func compileRules(kind Kind, rules []Rule) ([]*rule, error) {
	if kind != Subscription {
		if len(rules) > 0 {
			return nil, fmt.Errorf("%w: a %s has no rules", ErrInvalid, kind)
		}
		return nil, nil
	}
	if len(rules) == 0 {
		rules = []Rule{{Name: DefaultRule}}
	}
	out := make([]*rule, 0, len(rules))
	for _, r := range rules {
		c, err := compileRule(r)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *rule) int { return strings.Compare(fold(a.Name), fold(b.Name)) })
	for i := range out[1:] {
		if fold(out[i].Name) == fold(out[i+1].Name) {
			return nil, fmt.Errorf("%w: two rules are called %s", ErrInvalid, out[i].Name)
		}
	}
	return out, nil
}

// matches reports whether the rule lets a message through.
func (r *rule) matches(env *sqlfilter.Env) (bool, error) {
	switch r.Filter.Kind {
	case FalseFilter:
		return false, nil
	case CorrelationFilter:
		return r.Filter.Correlation.Match(env.Message), nil
	case SQLFilter:
		return r.expr.Match(env)
	}
	return true, nil
}

// The names in the stored form of a rule. Parameters and the properties of a correlation
// filter follow with a prefix before their own names.
const (
	ruleName, ruleKind, ruleSQL, ruleAction, ruleCreated = "name", "kind", "sql", "action", "created"

	ruleParam, ruleActionParam, ruleProperty = "param:", "actionparam:", "property:"
)

// correlationFields are the fields of a correlation filter by their stored names.
func correlationFields(c *sqlfilter.Correlation) map[string]**string {
	return map[string]**string{
		"correlationId": &c.CorrelationID, "messageId": &c.MessageID, "to": &c.To, "replyTo": &c.ReplyTo, "subject": &c.Subject,
		"sessionId": &c.SessionID, "replyToSessionId": &c.ReplyToSessionID, "contentType": &c.ContentType,
	}
}

func (r *rule) stored(entity uint32) store.Named {
	as := []message.Attribute{
		{Name: ruleName, Value: message.String(r.Name)},
		{Name: ruleKind, Value: message.String(r.Filter.Kind)},
		{Name: ruleSQL, Value: message.String(r.Filter.SQL)},
		{Name: ruleAction, Value: message.String(r.Action)},
		{Name: ruleCreated, Value: message.Long(r.Created.UnixMilli())},
	}
	for name, v := range r.Filter.Params {
		as = append(as, message.Attribute{Name: ruleParam + name, Value: v})
	}
	for name, v := range r.ActionParams {
		as = append(as, message.Attribute{Name: ruleActionParam + name, Value: v})
	}
	for name, field := range correlationFields(&r.Filter.Correlation) {
		if *field != nil {
			as = append(as, message.Attribute{Name: name, Value: message.String(**field)})
		}
	}
	for _, p := range r.Filter.Correlation.Properties {
		as = append(as, message.Attribute{Name: ruleProperty + p.Name, Value: p.Value})
	}
	return store.Named{Entity: entity, Name: fold(r.Name), Attributes: as}
}

func decodeRule(n store.Named) (*rule, error) {
	var r Rule
	fields := correlationFields(&r.Filter.Correlation)
	for _, a := range n.Attributes {
		text, _ := a.Value.(message.String)
		ms, _ := a.Value.(message.Long)
		switch {
		case a.Name == ruleName:
			r.Name = string(text)
		case a.Name == ruleKind:
			r.Filter.Kind = FilterKind(text)
		case a.Name == ruleSQL:
			r.Filter.SQL = string(text)
		case a.Name == ruleAction:
			r.Action = string(text)
		case a.Name == ruleCreated:
			r.Created = time.UnixMilli(int64(ms)).UTC()
		case strings.HasPrefix(a.Name, ruleParam):
			set(&r.Filter.Params, a.Name[len(ruleParam):], a.Value)
		case strings.HasPrefix(a.Name, ruleActionParam):
			set(&r.ActionParams, a.Name[len(ruleActionParam):], a.Value)
		case strings.HasPrefix(a.Name, ruleProperty):
			p := message.Attribute{Name: a.Name[len(ruleProperty):], Value: a.Value}
			r.Filter.Correlation.Properties = append(r.Filter.Correlation.Properties, p)
		case fields[a.Name] != nil:
			s := string(text)
			*fields[a.Name] = &s
		}
	}
	return compileRule(r)
}

func set(m *map[string]message.Value, name string, v message.Value) {
	if *m == nil {
		*m = map[string]message.Value{}
	}
	(*m)[name] = v
}
