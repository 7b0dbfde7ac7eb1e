package amqpd

import (
	"errors"
	"fmt"

	"dlq/backends/amqp"
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
	name, err := r.body.needed("rule-name")
	if err != nil {
		return nil, err
	}
	description, _, err := r.body.fields("rule-description")
	if err == nil && description == nil {
		err = argumentError("rule-description is missing")
	}
	if err != nil {
		return nil, err
	}
	rule, err := readRule(name, description)
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
	rule := broker.Rule{Name: name, Filter: broker.Filter{Kind: broker.TrueFilter}}
	var err error
	switch {
	case description["sql-filter"] != nil:
		rule.Filter.Kind = broker.SQLFilter
		rule.Filter.SQL, rule.Filter.Params, err = readSQL(description, "sql-filter")
	case description["correlation-filter"] != nil:
		rule.Filter.Kind = broker.CorrelationFilter
		rule.Filter.Correlation, err = readCorrelation(description)
	case description["false-filter"] != nil:
		rule.Filter.Kind = broker.FalseFilter
	}
	if err == nil && description["sql-rule-action"] != nil {
		rule.Action, rule.ActionParams, err = readSQL(description, "sql-rule-action")
	}
	return rule, err
}

// readSQL reads the expression of a filter or an action, and the values of its @names.
func readSQL(description arguments, name string) (expression string, params map[string]message.Value, err error) {
	fields, _, err := description.fields(name)
	if err != nil {
		return "", nil, err
	}
	if expression, err = fields.needed("expression"); err != nil {
		return "", nil, err
	}
	params, _, err = fields.fields("parameters")
	return expression, params, err
}

// maxCorrelated bounds the properties of one correlation filter, which are compared with each
// other for their names.
const maxCorrelated = 1000

func readCorrelation(description arguments) (c sqlfilter.Correlation, err error) {
	fields, _, err := description.fields("correlation-filter")
	if err != nil {
		return c, err
	}
	for name, to := range map[string]**string{
		"correlation-id": &c.CorrelationID, "message-id": &c.MessageID, "to": &c.To, "reply-to": &c.ReplyTo,
		"label": &c.Subject, "session-id": &c.SessionID, "reply-to-session-id": &c.ReplyToSessionID, "content-type": &c.ContentType,
	} {
		if *to, err = fields.text(name); err != nil {
			return c, err
		}
	}
	_, properties, err := fields.fields("properties")
	if err != nil {
		return c, err
	}
	if len(properties) > maxCorrelated {
		return c, argumentError(fmt.Sprintf("correlation-filter has %d properties; %d are allowed", len(properties), maxCorrelated))
	}
	for _, p := range properties {
		name, ok := text(p.Key)
		if !ok {
			return c, argumentError("correlation-filter has a property whose name is no string")
		}
		c.Properties.Set(name, p.Value)
	}
	return c, nil
}

func (r *request) removeRule() (message.Map, error) {
	name, err := r.body.needed("rule-name")
	if err != nil {
		return nil, err
	}
	err = r.s.engine.RemoveRule(r.a.Name, name)
	if errors.Is(err, broker.ErrNoEntity) && r.s.engine.Exists(r.a) == nil {
		return nil, r.s.failed(err, r.a.Name+"/Rules/"+name)
	}
	return message.Map{}, err
}

func (r *request) rules() (message.Map, error) {
	rules, err := r.s.engine.Rules(r.a.Name)
	if err != nil {
		return nil, err
	}
	skip, top := r.page(amqp.MaxCount) // some peers ask once for all
	rules = paged(rules, skip, top)
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
