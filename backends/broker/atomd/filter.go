package atomd

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dlq/backends/broker"
	"dlq/backends/message"
	"dlq/backends/sqlfilter"
)

// readRule reads a rule from its description. Without a filter it lets everything through.
func readRule(d *element) (broker.Rule, error) {
	var rule broker.Rule
	if s := d.str("Name"); s != nil {
		rule.Name = *s
	}
	var err error
	if rule.Filter, err = readFilter(d.child("Filter")); err != nil {
		return rule, err
	}
	action := d.child("Action")
	if action == nil {
		return rule, nil
	}
	switch action.typ {
	case "SqlRuleAction":
		rule.Action = message.Str(action.str("SqlExpression"))
		rule.ActionParams, err = readParameters(action.child("Parameters"))
	case "EmptyRuleAction", "":
	default:
		err = badRequest("An action of the type '%s' is not known; SqlRuleAction and EmptyRuleAction are.", action.typ)
	}
	return rule, err
}

func readFilter(e *element) (f broker.Filter, err error) {
	if e == nil {
		return broker.Filter{Kind: broker.TrueFilter}, nil
	}
	typ := e.typ
	if typ == "" && len(e.children) == 0 {
		typ = "TrueFilter"
	}
	switch typ {
	case "TrueFilter":
		f.Kind = broker.TrueFilter
	case "FalseFilter":
		f.Kind = broker.FalseFilter
	case "SqlFilter":
		f.Kind, f.SQL = broker.SQLFilter, message.Str(e.str("SqlExpression"))
		f.Params, err = readParameters(e.child("Parameters"))
	case "CorrelationFilter":
		f.Kind = broker.CorrelationFilter
		f.Correlation, err = readCorrelation(e)
	default:
		err = badRequest("A filter of the type '%s' is not known; SqlFilter, TrueFilter, FalseFilter and CorrelationFilter are.", e.typ)
	}
	return f, err
}

func readCorrelation(e *element) (sqlfilter.Correlation, error) {
	c := sqlfilter.Correlation{
		CorrelationID: e.str("CorrelationId"), MessageID: e.str("MessageId"), To: e.str("To"), ReplyTo: e.str("ReplyTo"),
		Subject: e.str("Label"), SessionID: e.str("SessionId"), ReplyToSessionID: e.str("ReplyToSessionId"), ContentType: e.str("ContentType"),
	}
	for _, pair := range e.child("Properties").list() {
		name, v, err := readPair(pair)
		if err != nil {
			return c, err
		}
		c.Properties.Set(name, v)
	}
	return c, nil
}

func readParameters(e *element) (map[string]message.Value, error) {
	var params map[string]message.Value
	for _, pair := range e.list() {
		name, v, err := readPair(pair)
		if err != nil {
			return nil, err
		}
		if params == nil {
			params = map[string]message.Value{}
		}
		params[name] = v
	}
	return params, nil
}

func readPair(e *element) (string, message.Value, error) {
	key, value := e.str("Key"), e.child("Value")
	if key == nil || value == nil {
		return "", nil, badRequest("A KeyValueOfstringanyType needs a Key and a Value.")
	}
	v, err := readValue(value.typ, value.text)
	if err != nil {
		return "", nil, badRequest("The value '%s' of %s is no %s.", value.text, *key, value.typ)
	}
	return *key, v, nil
}

// timespan is the symbol of a .NET duration, in units of 100 ns.
const timespan = message.Symbol("com.microsoft:timespan")

// readValue reads a value of a type of XML Schema.
func readValue(typ, text string) (message.Value, error) {
	switch typ {
	case "string", "":
		return message.String(text), nil
	case "boolean":
		b, err := parseBool(text)
		return message.Bool(b), err
	case "int":
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		return message.Int(n), err
	case "dateTime":
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t, err = time.Parse("2006-01-02T15:04:05", text)
		}
		return message.TimestampOf(t), err
	case "duration":
		d, err := broker.ParseISODuration(text)
		return message.Described{Descriptor: timespan, Value: message.Long(d.Nanoseconds() / 100)}, err
	}
	for _, one := range numbers {
		if one.schema == typ {
			return message.ParseValue(one.kind, text)
		}
	}
	return nil, fmt.Errorf("unknown type %q", typ)
}

// numbers are the types that are written alike here and there.
var numbers = []struct {
	schema string
	kind   message.Kind
}{
	{"long", message.KindLong},
	{"short", message.KindShort},
	{"byte", message.KindByte},
	{"unsignedInt", message.KindUint},
	{"unsignedLong", message.KindUlong},
	{"unsignedShort", message.KindUshort},
	{"unsignedByte", message.KindUbyte},
	{"double", message.KindDouble},
	{"float", message.KindFloat},
	{"guid", message.KindUUID},
}

// schemaOf is the type of XML Schema of a value and how that writes it.
func schemaOf(v message.Value) (typ, text string) {
	switch v := v.(type) {
	case message.String:
		return "string", string(v)
	case message.Symbol:
		return "string", string(v)
	case message.Bool:
		return "boolean", strconv.FormatBool(bool(v))
	case message.Int:
		return "int", strconv.FormatInt(int64(v), 10)
	case message.Timestamp:
		return "dateTime", v.Time().Format(time.RFC3339Nano)
	case message.Described:
		if ticks, ok := v.Value.(message.Long); ok && v.Descriptor == timespan {
			return "duration", broker.FormatISODuration(time.Duration(ticks) * 100)
		}
	}
	for _, one := range numbers {
		if message.KindOf(v) == one.kind {
			return one.schema, strings.ReplaceAll(strings.TrimPrefix(message.FormatValue(v), "+"), "Inf", "INF")
		}
	}
	return "string", message.FormatValue(v)
}

func writeFilter(w *writer, f broker.Filter) {
	expression := func(typ, sql string) {
		w.open("Filter", "i:type", typ)
		w.text("SqlExpression", sql)
		w.text("CompatibilityLevel", "20")
		writeParameters(w, "Parameters", f.Params)
		w.close("Filter")
	}
	switch f.Kind {
	case broker.SQLFilter:
		expression("SqlFilter", f.SQL)
	case broker.FalseFilter:
		expression("FalseFilter", "1=0")
	case broker.CorrelationFilter:
		writeCorrelation(w, f.Correlation)
	default:
		expression("TrueFilter", "1=1")
	}
}

func writeCorrelation(w *writer, c sqlfilter.Correlation) {
	w.open("Filter", "i:type", "CorrelationFilter")
	for _, field := range []struct {
		name  string
		value *string
	}{
		{"CorrelationId", c.CorrelationID},
		{"MessageId", c.MessageID},
		{"To", c.To},
		{"ReplyTo", c.ReplyTo},
		{"Label", c.Subject},
		{"SessionId", c.SessionID},
		{"ReplyToSessionId", c.ReplyToSessionID},
		{"ContentType", c.ContentType},
	} {
		if field.value != nil {
			w.text(field.name, *field.value)
		}
	}
	w.open("Properties")
	for _, p := range c.Properties {
		writePair(w, p.Name, p.Value)
	}
	w.close("Properties")
	w.close("Filter")
}

// writeAction writes the action of a rule, which is always there: some clients look at it
// without asking.
func writeAction(w *writer, rule broker.Rule) {
	if rule.Action == "" {
		w.text("Action", "", "i:type", "EmptyRuleAction")
		return
	}
	w.open("Action", "i:type", "SqlRuleAction")
	w.text("SqlExpression", rule.Action)
	w.text("CompatibilityLevel", "20")
	writeParameters(w, "Parameters", rule.ActionParams)
	w.close("Action")
}

func writeParameters(w *writer, name string, params map[string]message.Value) {
	w.open(name)
	for _, key := range slices.Sorted(maps.Keys(params)) {
		writePair(w, key, params[key])
	}
	w.close(name)
}

// writePair writes a value with its type. The prefix has four characters: a client cuts off
// as many.
func writePair(w *writer, key string, v message.Value) {
	typ, text := schemaOf(v)
	w.open("KeyValueOfstringanyType")
	w.text("Key", key)
	w.text("Value", text, "i:type", "d6p1:"+typ, "xmlns:d6p1", schemaSpace)
	w.close("KeyValueOfstringanyType")
}
