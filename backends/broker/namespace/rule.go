package namespace

import (
	"strings"

	"dlq/backends/broker"
	"dlq/backends/message"
	"dlq/backends/sqlfilter"
)

// readRule reads a rule of a subscription. Its filter is checked when it is, so that a mistake
// shows with its place.
func readRule(n *node) (broker.Rule, error) {
	var r broker.Rule
	var name, properties *node
	err := n.object(fields{"Name": into(&name), "Properties": into(&properties)})
	if err == nil {
		r.Name, err = n.required("Name", name)
	}
	if err != nil || properties == nil {
		return r, err
	}
	return r, readFilter(&r, properties)
}

// readFilter reads what a rule lets through and what it changes.
func readFilter(r *broker.Rule, n *node) error {
	var filterType, sql, correlation, action *node
	err := n.object(fields{
		"FilterType": into(&filterType), "SqlFilter": into(&sql), "CorrelationFilter": into(&correlation), "Action": into(&action),
	})
	if err != nil {
		return err
	}
	if r.Filter.Kind, err = filterKind(n, filterType, sql, correlation); err != nil {
		return err
	}
	switch r.Filter.Kind {
	case broker.SQLFilter:
		if r.Filter.SQL, r.Filter.Params, err = readSQL(n, "SqlFilter", sql); err != nil {
			return err
		}
		if _, err := sqlfilter.Compile(r.Filter.SQL, sqlfilter.RuleNames(), r.Filter.Params); err != nil {
			return sql.errorf("rule %s: %w", r.Name, err)
		}
	case broker.CorrelationFilter:
		if correlation == nil {
			return n.errorf("CorrelationFilter is missing")
		}
		if r.Filter.Correlation, err = readCorrelation(correlation); err != nil {
			return err
		}
		if err := r.Filter.Correlation.Validate(); err != nil {
			return correlation.errorf("rule %s: %w", r.Name, err)
		}
	}
	if action == nil || len(action.members) == 0 {
		return nil
	}
	if r.Action, r.ActionParams, err = readSQL(n, "Action", action); err != nil {
		return err
	}
	if _, err := sqlfilter.CompileAction(r.Action, sqlfilter.RuleNames(), r.ActionParams); err != nil {
		return action.errorf("the action of rule %s: %w", r.Name, err)
	}
	return nil
}

// filterKind returns what FilterType says, or what follows from the filter that is there.
func filterKind(n, filterType, sql, correlation *node) (broker.FilterKind, error) {
	if filterType == nil {
		switch {
		case sql != nil && correlation != nil:
			return "", n.errorf("SqlFilter and CorrelationFilter exclude each other; FilterType says which one counts")
		case sql != nil:
			return broker.SQLFilter, nil
		case correlation != nil:
			return broker.CorrelationFilter, nil
		}
		return broker.TrueFilter, nil
	}
	for _, k := range []broker.FilterKind{broker.SQLFilter, broker.CorrelationFilter, broker.TrueFilter, broker.FalseFilter} {
		if strings.EqualFold(filterType.text, string(k)) {
			return k, nil
		}
	}
	return "", filterType.errorf("%q is no FilterType; there are Sql, Correlation, True and False", filterType.text)
}

// readSQL reads an expression or statements with their parameters.
func readSQL(parent *node, what string, n *node) (sql string, params map[string]message.Value, err error) {
	if n == nil {
		return "", nil, parent.errorf("%s is missing", what)
	}
	var expression *node
	err = n.object(fields{
		"SqlExpression": into(&expression),
		"Parameters": func(n *node) error {
			return n.eachMember(func(m member) error {
				v, err := readValue(m.value)
				if params == nil {
					params = map[string]message.Value{}
				}
				params[strings.TrimPrefix(m.name, "@")] = v
				return err
			})
		},
		"CompatibilityLevel": anything,
	})
	if err == nil {
		sql, err = n.required("SqlExpression", expression)
	}
	return sql, params, err
}

func readCorrelation(n *node) (sqlfilter.Correlation, error) {
	var c sqlfilter.Correlation
	textInto := func(to **string) func(*node) error {
		return func(n *node) error {
			s, err := n.string()
			*to = &s
			return err
		}
	}
	err := n.object(fields{
		"ContentType": textInto(&c.ContentType), "CorrelationId": textInto(&c.CorrelationID), "Label": textInto(&c.Subject),
		"Subject": textInto(&c.Subject), "MessageId": textInto(&c.MessageID), "ReplyTo": textInto(&c.ReplyTo),
		"ReplyToSessionId": textInto(&c.ReplyToSessionID), "SessionId": textInto(&c.SessionID), "To": textInto(&c.To),
		"Properties": func(n *node) error {
			return n.eachMember(func(m member) error {
				v, err := readValue(m.value)
				c.Properties = append(c.Properties, message.Attribute{Name: m.name, Value: v})
				return err
			})
		},
	})
	return c, err
}

// readValue reads a typed value: text, a number, true or false, or {"Type", "Value"}.
func readValue(n *node) (message.Value, error) {
	switch n.kind {
	case text:
		return message.String(n.text), nil
	case boolean:
		return message.Bool(n.text == "true"), nil
	case number:
		if v, err := message.ParseValue(message.KindLong, n.text); err == nil {
			return v, nil
		}
		return parseAs(n, message.KindDouble, n.text)
	case object:
		var typeName, value *node
		if err := n.object(fields{"Type": into(&typeName), "Value": into(&value)}); err != nil {
			return nil, err
		}
		name, err := n.required("Type", typeName)
		if err != nil {
			return nil, err
		}
		kind, ok := message.ParseKind(strings.ToLower(name))
		if !ok {
			return nil, typeName.errorf("%q is no type of AMQP, such as int, long, double, string or uuid", name)
		}
		if value == nil {
			return nil, n.errorf("Value is missing")
		}
		return parseAs(value, kind, value.text)
	}
	return nil, n.errorf("want text, a number, true, false, or {\"Type\": …, \"Value\": …}, not %s", n.kind)
}

func parseAs(n *node, kind message.Kind, s string) (message.Value, error) {
	v, err := message.ParseValue(kind, s)
	if err != nil {
		return nil, n.errorf("%w", err)
	}
	return v, nil
}
