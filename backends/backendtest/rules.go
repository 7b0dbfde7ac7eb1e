package backendtest

import (
	"slices"

	"dlq/backends"
	"dlq/backends/message"
)

func ruleCases() []testCase {
	return []testCase{
		{"administer/rules", administerRules},
		{"administer/rules-refused", administerRulesRefused},
		{"administer/rule-copies", administerRuleCopies},
	}
}

// coloured is a message that a rule can tell from others.
func coloured(colour string) *message.Message {
	m := text(colour)
	m.Subject = &colour
	m.Properties.Set("colour", message.String(colour))
	m.Properties.Set("length", message.Int(len(colour)))
	return m
}

func administerRules(f *fixture) {
	a := f.admin()
	topic, _ := a.topic("news")
	sub := backends.EntityID{Name: "news/Subscriptions/a"}
	rules := []backends.Rule{
		{Name: "red", Filter: "colour = 'red'"},
		{Name: "blue", Correlation: []message.Attribute{{Name: "sys.Label", Value: message.String("blue")}, {Name: "length", Value: message.Int(4)}}},
	}
	d := a.create(backends.NewEntity{ID: sub, Kind: backends.Subscription, Rules: rules})
	f.wantRules("created", d.Rules, rules...)
	f.wantRules("described", a.describe(sub).Rules, rules...)
	publish := func() { f.send(topic, coloured("red"), coloured("blue"), coloured("green")) }
	publish()
	f.holds(sub, "red", "blue")

	everything := backends.Rule{Name: "everything"}
	if err := a.AddRule(f.ctx, sub, everything); err != nil {
		f.Fatalf("add a rule: %v", err)
	}
	publish()
	f.holds(sub, "red", "blue", "green") // once each, however many rules match
	for _, name := range []string{"everything", "red"} {
		if err := a.RemoveRule(f.ctx, sub, name); err != nil {
			f.Fatalf("remove a rule: %v", err)
		}
	}
	f.wantRules("after two were removed", a.describe(sub).Rules, rules[1])
	publish()
	f.holds(sub, "blue")
	if err := a.RemoveRule(f.ctx, sub, "blue"); err != nil {
		f.Fatalf("remove the last rule: %v", err)
	}
	publish()
	f.holds(sub)
}

// wantRules checks for rules in any order.
func (f *fixture) wantRules(when string, got []backends.Rule, want ...backends.Rule) {
	f.Helper()
	if len(got) != len(want) {
		f.Errorf("%s: the subscription has %d rules, want %d", when, len(got), len(want))
	}
	for _, w := range want {
		i := slices.IndexFunc(got, func(r backends.Rule) bool { return r.Name == w.Name })
		if i < 0 {
			f.Errorf("%s: the rule %s is missing", when, w.Name)
			continue
		}
		same := slices.EqualFunc(got[i].Correlation, w.Correlation, func(a, b message.Attribute) bool {
			return a.Name == b.Name && message.EqualValues(a.Value, b.Value)
		})
		if !same || got[i].Filter != w.Filter || got[i].Action != w.Action {
			f.Errorf("%s: the rule is %+v, want %+v", when, got[i], w)
		}
	}
}

func administerRulesRefused(f *fixture) {
	a := f.admin()
	_, subs := a.topic("news", "a")
	sub, queue := subs[0], f.queue()
	kept := backends.Rule{Name: "kept", Filter: "colour = 'red'"}
	if err := a.AddRule(f.ctx, sub, kept); err != nil {
		f.Fatalf("add a rule: %v", err)
	}
	before := a.describe(sub).Rules
	correlation := []message.Attribute{{Name: "sys.Label", Value: message.String("x")}}
	for what, c := range map[string]struct {
		id   backends.EntityID
		rule backends.Rule
		want backends.Code
	}{
		"that exists":               {sub, backends.Rule{Name: "kept", Filter: "colour = 'blue'"}, backends.AlreadyExists},
		"without a name":            {sub, backends.Rule{Filter: "colour = 'blue'"}, backends.Invalid},
		"that cannot be read":       {sub, backends.Rule{Name: "bad", Filter: "colour = "}, backends.Invalid},
		"with two filters":          {sub, backends.Rule{Name: "bad", Filter: "a = 1", Correlation: correlation}, backends.Invalid},
		"with an unknown sys. name": {sub, backends.Rule{Name: "bad", Correlation: []message.Attribute{{Name: "sys.NoSuch", Value: message.String("x")}}}, backends.Invalid},
		"of a queue":                {queue, backends.Rule{Name: "r"}, backends.Invalid},
		"of nothing":                {missing, backends.Rule{Name: "r"}, backends.NotFound},
	} {
		f.wantCode("add a rule "+what, a.AddRule(f.ctx, c.id, c.rule), c.want)
	}
	f.wantCode("remove a rule that is not there", a.RemoveRule(f.ctx, sub, "bad"), backends.NotFound)
	f.wantCode("remove a rule of a queue", a.RemoveRule(f.ctx, queue, "r"), backends.Invalid)
	f.wantCode("remove a rule of nothing", a.RemoveRule(f.ctx, missing, "r"), backends.NotFound)
	f.wantRules("after all that", a.describe(sub).Rules, before...)

	id := backends.EntityID{Name: "news/Subscriptions/b"}
	_, err := a.CreateEntity(f.ctx, backends.NewEntity{ID: id, Kind: backends.Subscription, Rules: []backends.Rule{kept, {Name: "bad", Filter: "colour = "}}})
	f.wantCode("create with a rule that cannot be read", err, backends.Invalid)
	_, err = a.DescribeEntity(f.ctx, id)
	f.wantCode("describe what was refused", err, backends.NotFound)
}

// administerRuleCopies: rules without an action share one copy, one with an action has its own.
func administerRuleCopies(f *fixture) {
	a := f.admin()
	topic, _ := a.topic("news")
	sub := backends.EntityID{Name: "news/Subscriptions/a"}
	a.create(backends.NewEntity{ID: sub, Kind: backends.Subscription, Rules: []backends.Rule{
		{Name: "all"},
		{Name: "red", Filter: "colour = 'red'"},
		{Name: "marked", Filter: "colour = 'red'", Action: "SET mark = 'x'"},
	}})
	f.send(topic, coloured("red"))
	marks := map[string]int{}
	for _, m := range f.drain(sub) {
		mark, _ := m.Properties.Get("mark")
		marks[message.FormatValue(mark)]++
	}
	if marks[""] != 1 || marks["x"] != 1 || len(marks) != 2 {
		f.Errorf("by mark the copies are %v, want one without and one with x", marks)
	}
}
