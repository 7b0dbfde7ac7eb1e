package amqpd

import (
	"errors"
	"fmt"

	"dlq/backends/broker"
	"dlq/backends/message"
	"dlq/backends/sqlfilter"
)

// The descriptors of rules as $management lists them. Source:
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-request-response#rule-operations
const (
	ruleDescription    = message.Ulong(0x0000013700000004)
	emptyAction        = message.Ulong(0x0000013700000005)
	sqlAction          = message.Ulong(0x0000013700000006)
	sqlFilter          = message.Ulong(0x000001370000006)
	trueFilter         = message.Ulong(0x000001370000007)
	falseFilter        = message.Ulong(0x000001370000008)
	correlationFilter  = message.Ulong(0x000001370000009)
	compatibilityLevel = message.Int(20)
)

func (r *request) addRule() (message.Map, error) {
	name := r.body.text("rule-name")
	fields, ok := r.body["rule-description"].(message.Map)
	if name == nil || !ok {
		return nil, argumentError("rule-name or rule-description is missing")
	}
	rule, err := readRule(*name, argumentsOf(fields))
	if err != nil {
		return nil, err
	}
	err = r.s.engine.AddRule(r.a.Name, rule)
	if errors.Is(err, broker.ErrExists) {
		return nil, failure{409, "com.microsoft:entity-already-exists", r.s.suffixed(
			fmt.Sprintf("The messaging entity '%s/Rules/%s' already exists.", r.s.uri(r.a.Name), rule.Name), r.a.Name)}
	}
	return message.Map{}, err
}

// readRule reads a rule from its description. Without a filter it lets everything through.
func readRule(name string, description arguments) (broker.Rule, error) {
	rule := broker.Rule{Name: name}
	switch {
	case description["sql-filter"] != nil:
		expression, err := expressionOf(description, "sql-filter")
		if err != nil {
			return rule, err
		}
		rule.Filter = broker.Filter{Kind: broker.SQLFilter, SQL: expression}
	case description["correlation-filter"] != nil:
		fields, ok := description["correlation-filter"].(message.Map)
		if !ok {
			return rule, argumentError("correlation-filter has to be a map")
		}
		rule.Filter = broker.Filter{Kind: broker.CorrelationFilter, Correlation: readCorrelation(argumentsOf(fields))}
	case description["false-filter"] != nil:
		rule.Filter.Kind = broker.FalseFilter
	default:
		rule.Filter.Kind = broker.TrueFilter
	}
	if description["sql-rule-action"] != nil {
		expression, err := expressionOf(description, "sql-rule-action")
		if err != nil {
			return rule, err
		}
		rule.Action = expression
	}
	return rule, nil
}

func expressionOf(description arguments, name string) (string, error) {
	fields, _ := description[name].(message.Map)
	expression := argumentsOf(fields).text("expression")
	if expression == nil {
		return "", argumentError(name + " has no expression")
	}
	return *expression, nil
}

func readCorrelation(fields arguments) sqlfilter.Correlation {
	c := sqlfilter.Correlation{
		CorrelationID: fields.text("correlation-id"), MessageID: fields.text("message-id"), To: fields.text("to"),
		ReplyTo: fields.text("reply-to"), Subject: fields.text("label"), SessionID: fields.text("session-id"),
		ReplyToSessionID: fields.text("reply-to-session-id"), ContentType: fields.text("content-type"),
	}
	if m, ok := fields["properties"].(message.Map); ok {
		for _, p := range m {
			if name, ok := text(p.Key); ok {
				c.Properties.Set(name, p.Value)
			}
		}
	}
	return c
}

func (r *request) removeRule() (message.Map, error) {
	name := r.body.text("rule-name")
	if name == nil {
		return nil, argumentError("rule-name is missing")
	}
	return message.Map{}, r.s.engine.RemoveRule(r.a.Name, *name)
}

func (r *request) rules() (message.Map, error) {
	rules, err := r.s.engine.Rules(r.a.Name)
	if err != nil {
		return nil, err
	}
	skip, _ := r.body.integer("skip")
	top, ok := r.body.integer("top")
	if !ok {
		top = int64(len(rules))
	}
	rules = rules[min(max(skip, 0), int64(len(rules))):]
	rules = rules[:min(max(top, 0), int64(len(rules)))]
	if len(rules) == 0 {
		return nil, nil
	}
	list := message.List{}
	for _, rule := range rules {
		list = append(list, message.Map{{Key: message.String("rule-description"), Value: describeRule(rule)}})
	}
	return message.Map{{Key: message.String("rules"), Value: list}}, nil
}

func describeRule(rule broker.Rule) message.Value {
	// There is always an action: some peers look at it without asking.
	action := message.Described{Descriptor: emptyAction, Value: message.List{}}
	if rule.Action != "" {
		action = message.Described{Descriptor: sqlAction, Value: message.List{message.String(rule.Action), compatibilityLevel}}
	}
	return message.Described{Descriptor: ruleDescription, Value: message.List{
		describeFilter(rule.Filter), action, message.String(rule.Name), message.TimestampOf(rule.Created),
	}}
}

func describeFilter(f broker.Filter) message.Value {
	switch f.Kind {
	case broker.SQLFilter:
		return message.Described{Descriptor: sqlFilter, Value: message.List{message.String(f.SQL), compatibilityLevel}}
	case broker.FalseFilter:
		return message.Described{Descriptor: falseFilter, Value: message.List{}}
	case broker.CorrelationFilter:
		c := f.Correlation
		list := message.List{}
		for _, s := range []*string{c.CorrelationID, c.MessageID, c.To, c.ReplyTo, c.Subject, c.SessionID, c.ReplyToSessionID, c.ContentType} {
			if s == nil {
				list = append(list, message.Null{})
			} else {
				list = append(list, message.String(*s))
			}
		}
		properties := message.Map{}
		for _, p := range c.Properties {
			properties = append(properties, message.Pair{Key: message.String(p.Name), Value: p.Value})
		}
		return message.Described{Descriptor: correlationFilter, Value: append(list, properties)}
	}
	return message.Described{Descriptor: trueFilter, Value: message.List{}}
}
