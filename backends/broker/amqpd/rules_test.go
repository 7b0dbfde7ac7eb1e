package amqpd

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dlq/backends/broker"
	"dlq/backends/message"
)

// TestRules adds rules as the SDKs send them and lists them as they read them.
func TestRules(t *testing.T) {
	none := message.Described{Descriptor: message.Ulong(1335734829061), Value: message.List{}}
	all := message.Described{Descriptor: message.Ulong(83483426823), Value: message.List{}}
	null := message.Null{}
	typed := fields("i", message.Int(1), "l", message.Long(math.MaxInt64), "d", message.Double(1.5), "b", message.Bool(true),
		"s", message.String("x"), "at", message.Timestamp(1), "id", message.UUID{1})
	for _, c := range []struct {
		name        string
		description message.Map
		filter      message.Value
		action      message.Value
	}{
		{
			"sql", fields("sql-filter", fields("expression", message.String("n > 1")), "sql-rule-action", null),
			message.Described{Descriptor: message.Ulong(83483426822), Value: message.List{message.String("n > 1"), message.Int(20)}},
			none,
		},
		{
			"action", fields("sql-filter", fields("expression", message.String("1=1")), "sql-rule-action", fields("expression", message.String("SET a = 1"))),
			message.Described{Descriptor: message.Ulong(83483426822), Value: message.List{message.String("1=1"), message.Int(20)}},
			message.Described{Descriptor: message.Ulong(1335734829062), Value: message.List{message.String("SET a = 1"), message.Int(20)}},
		},
		{"true", fields("true-filter", message.Map{}), all, none},
		{"false", fields("false-filter", message.Map{}), message.Described{Descriptor: message.Ulong(83483426824), Value: message.List{}}, none},
		{"nothing", message.Map{}, all, none},
		{
			"correlation", fields("correlation-filter", fields("correlation-id", message.String("c"), "message-id", message.String("m"),
				"to", message.String("t"), "reply-to", message.String("r"), "label", message.String("l"), "session-id", message.String("s"),
				"reply-to-session-id", message.String("rs"), "content-type", message.String("ct"), "properties", typed), "rule-name", message.String("x")),
			message.Described{Descriptor: message.Ulong(83483426825), Value: message.List{
				message.String("c"), message.String("m"), message.String("t"),
				message.String("r"), message.String("l"), message.String("s"), message.String("rs"), message.String("ct"), typed,
			}},
			none,
		},
		{
			"label only", fields("correlation-filter", fields("label", message.String(""), "message-id", null, "properties", null)),
			message.Described{Descriptor: message.Ulong(83483426825), Value: message.List{null, null, null, null, message.String(""), null, null, null, message.Map{}}},
			none,
		},
		{
			"parameters", fields("sql-filter", fields("expression", message.String("n = @p"), "parameters", fields("@p", message.Int(1)))),
			message.Described{Descriptor: message.Ulong(83483426822), Value: message.List{message.String("n = @p"), message.Int(20)}},
			none,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			d.TB = t
			d.ask(letters, "remove-rule", fields("rule-name", message.String("$default"))).want(t, 200, message.Map{})
			d.ask(letters, "add-rule", fields("rule-name", message.String("Mine"), "rule-description", c.description)).want(t, 200, message.Map{})
			rule := message.Described{Descriptor: message.Ulong(1335734829060), Value: message.List{
				c.filter, c.action, message.String("Mine"), message.TimestampOf(start),
			}}
			d.ask(letters, "enumerate-rules", fields("top", message.Int(math.MaxInt32), "skip", message.Int(0))).
				want(t, 200, fields("rules", message.List{fields("rule-description", rule)}))
		})
	}
}

// TestRulesDecide checks that what was added is what messages meet.
func TestRulesDecide(t *testing.T) {
	d := newDesk(t)
	d.ask(letters, "remove-rule", fields("rule-name", message.String("$Default"))).want(t, 200, message.Map{})
	add := func(name string, description message.Map) {
		d.ask(letters, "add-rule", fields("rule-name", message.String(name), "rule-description", description)).want(t, 200, message.Map{})
	}
	add("param", fields("sql-filter", fields("expression", message.String("n = @p"), "parameters", fields("@p", message.Long(7))),
		"sql-rule-action", fields("expression", message.String("SET by = @who"), "parameters", fields("@who", message.String("param")))))
	add("typed", fields("correlation-filter", fields("label", message.String("red"), "properties", fields("n", message.Int(3)))))
	send := func(subject string, n int64) {
		m := said(subject)
		m.Subject = &subject
		m.Properties.Set("n", message.Long(n))
		d.send(broker.Address{Name: "news"}, m)
	}
	send("blue", 7)
	send("red", 3)
	send("red", 4)
	send("blue", 3)
	msgs, err := d.engine.Peek(letters, broker.PeekOptions{Max: 9})
	if err != nil || bodies(msgs) != "blue red" {
		t.Fatalf("%s came through: %v", bodies(msgs), err)
	}
	if by, _ := msgs[0].Properties.Get("by"); by != message.String("param") {
		t.Errorf("the action has set %v", by)
	}
}

func TestRulesPages(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"c", "a", "b"} {
		d.now = d.now.Add(time.Second)
		d.ask(letters, "add-rule", fields("rule-name", message.String(name), "rule-description", message.Map{})).want(t, 200, message.Map{})
	}
	var names []string
	for skip := 0; ; skip++ {
		r := d.ask(letters, "enumerate-rules", fields("top", message.Long(1), "skip", message.Ubyte(skip)))
		if r.status == 204 {
			break
		}
		rule := r.get(t, "rules").(message.List)[0].(message.Map)[0].Value.(message.Described)
		names = append(names, string(rule.Value.(message.List)[2].(message.String)))
	}
	if !slices.Equal(names, []string{"$Default", "a", "b", "c"}) {
		t.Errorf("the pages hold %v", names)
	}
	if list := d.ask(letters, "enumerate-rules", nil).get(t, "rules").(message.List); len(list) != 4 {
		t.Errorf("without top there are %d", len(list))
	}
}

func TestRuleRefusals(t *testing.T) {
	d := newDesk(t)
	sql := func(expression message.Value) message.Map {
		return fields("sql-filter", fields("expression", expression))
	}
	many := message.Map{}
	for i := range maxCorrelated + 1 {
		many = append(many, message.Pair{Key: message.String(strings.Repeat("n", i%9+1) + time.Duration(i).String()), Value: message.Int(1)})
	}
	for _, bad := range []message.Map{
		{},
		fields("rule-name", message.String("r")),
		fields("rule-name", message.String("r"), "rule-description", message.String("1=1")),
		fields("rule-name", message.Int(1), "rule-description", message.Map{}),
		fields("rule-name", message.String(""), "rule-description", message.Map{}),
		fields("rule-name", message.String(strings.Repeat("x", 51)), "rule-description", message.Map{}),
		fields("rule-name", message.String("r"), "rule-description", sql(message.String("n >"))),
		fields("rule-name", message.String("r"), "rule-description", sql(message.String("n = @missing"))),
		fields("rule-name", message.String("r"), "rule-description", sql(message.Int(1))),
		fields("rule-name", message.String("r"), "rule-description", sql(message.Null{})),
		fields("rule-name", message.String("r"), "rule-description", fields("sql-filter", message.String("1=1"))),
		fields("rule-name", message.String("r"), "rule-description", fields("correlation-filter", message.List{})),
		fields("rule-name", message.String("r"), "rule-description", fields("correlation-filter", fields("label", message.Int(1)))),
		fields("rule-name", message.String("r"), "rule-description", fields("correlation-filter", fields("properties", message.Int(1)))),
		fields("rule-name", message.String("r"), "rule-description", fields("correlation-filter", fields("properties", fields("p", message.List{})))),
		fields("rule-name", message.String("r"), "rule-description", fields("correlation-filter", fields("properties", message.Map{{Key: message.Int(1), Value: message.Int(1)}}))),
		fields("rule-name", message.String("r"), "rule-description", fields("correlation-filter", fields("properties", many))),
		fields("rule-name", message.String("r"), "rule-description", fields("sql-rule-action", fields("expression", message.String("SET")))),
		fields("rule-name", message.String("r"), "rule-description", fields("sql-rule-action", fields("expression", message.String("SET a=1"), "parameters", message.Int(1)))),
	} {
		d.ask(letters, "add-rule", bad).wantRefusal(t, 400, "com.microsoft:argument-error")
	}
	r := d.ask(letters, "add-rule", fields("rule-name", message.String("$DEFAULT"), "rule-description", message.Map{}))
	r.wantRefusal(t, 409, "com.microsoft:entity-already-exists")
	if !strings.HasPrefix(r.text, "The messaging entity 'sb://ns/news/Subscriptions/all/Rules/$DEFAULT' already exists.") {
		t.Errorf("the text is %q", r.text)
	}
	r = d.ask(letters, "remove-rule", fields("rule-name", message.String("nobody")))
	r.wantRefusal(t, 404, "amqp:not-found")
	if !strings.HasPrefix(r.text, "The messaging entity 'sb://ns/news/Subscriptions/all/Rules/nobody' could not be found.") {
		t.Errorf("the text is %q", r.text)
	}
	d.ask(letters, "remove-rule", fields()).wantRefusal(t, 400, "com.microsoft:argument-error")
	for _, operation := range []string{"add-rule", "remove-rule", "enumerate-rules"} {
		d.ask(orders, operation, fields("rule-name", message.String("r"), "rule-description", message.Map{})).
			wantRefusal(t, 400, "com.microsoft:argument-error")
	}
}
