package broker

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dlq/backends/message"
	"dlq/backends/sqlfilter"
)

func correlation(name string, v message.Value) sqlfilter.Correlation {
	return sqlfilter.Correlation{Properties: message.Properties{{Name: name, Value: v}}}
}

// One copy for all rules without an action that match, one for each with an action; nothing
// where none matches.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/topic-filters
func TestTopic(t *testing.T) {
	b := newBench(t)
	sql := func(s string) Filter { return Filter{Kind: SQLFilter, SQL: s} }
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/all", Subscription, nil)
	b.make("topic/Subscriptions/none", Subscription, nil, Rule{Name: "r", Filter: Filter{Kind: FalseFilter}})
	b.make("topic/Subscriptions/several", Subscription, nil,
		Rule{Name: "plain1", Filter: sql("n > 1")}, Rule{Name: "plain2", Filter: sql("n > 2")},
		Rule{Name: "act1", Filter: sql("n > 3"), Action: "SET n = 0; REMOVE x"}, Rule{Name: "act2", Action: "SET sys.Label = 'changed'"})
	b.make("topic/Subscriptions/correlated", Subscription, nil, Rule{Name: "r", Filter: Filter{Kind: CorrelationFilter, Correlation: correlation("n", message.Int(5))}})
	m := says("a")
	m.Properties = message.Properties{{Name: "n", Value: message.Int(5)}, {Name: "x", Value: message.String("y")}}
	b.post("topic", m)
	b.crash() // rules and copies are kept

	b.wantContents(Address{Name: "topic/all"}, "a/0")
	b.wantContents(Address{Name: "topic/none"})
	b.wantContents(Address{Name: "topic/correlated"}, "a/0")
	page, err := b.e.Peek(Address{Name: "topic/several"}, PeekOptions{Max: 10})
	if err != nil || len(page) != 3 {
		t.Fatalf("%d copies, want one for the plain rules and two for the others; %v", len(page), err)
	}
	got := map[string]string{}
	for _, m := range page {
		name, _ := m.Properties.Get("RuleName")
		n, _ := m.Properties.Get("n")
		_, x := m.Properties.Get("x")
		got[fmt.Sprint(name)] = fmt.Sprintf("n=%v x=%t label=%q", n, x, message.Str(m.Subject))
		if m.Broker.EnqueuedSequenceNumber != 1 || string(m.Body.Bytes()) != "a" {
			t.Errorf("a copy is %+v", m.Broker)
		}
	}
	want := map[string]string{"<nil>": `n=5 x=true label=""`, "act1": `n=0 x=false label=""`, "act2": `n=5 x=true label="changed"`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("copies %v, want %v", got, want)
	}
	if info, err := b.e.Entity("topic"); err != nil || !info.Summed || info.Active != 5 {
		t.Errorf("the topic counts %+v, %v; want the sum of 5", info.Active, err)
	}
}

// A rule that fails on a message: dead-lettered with the exception, dropped, or refused.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#errors-while-processing-subscription-rules
func TestRuleThatFails(t *testing.T) {
	b := newBench(t)
	fails := Rule{Name: "r", Filter: Filter{Kind: SQLFilter, SQL: "10 / n = 5"}}
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/kept", Subscription, nil, fails)
	b.make("topic/Subscriptions/dropped", Subscription, func(p *Properties) { p.DeadLetterOnFilterError = false }, fails)
	b.make("topic/Subscriptions/action", Subscription, nil, Rule{Name: "r", Action: "SET n = 'text'"})
	zero := says("a")
	zero.Properties = message.Properties{{Name: "n", Value: message.Int(0)}}
	b.post("topic", zero)
	reasons := func(name string) (out []string) {
		page, _ := b.e.Peek(dead(Address{Name: name}), PeekOptions{Max: 10})
		for _, m := range page {
			out = append(out, m.DeadLetterReason())
			if m.DeadLetterDescription() == "" {
				t.Errorf("a dead letter of %s has no description", name)
			}
		}
		return out
	}
	if got := reasons("topic/kept"); !slices.Equal(got, []string{"FilterException"}) {
		t.Errorf("kept: %v", got)
	}
	if got := reasons("topic/action"); !slices.Equal(got, []string{"RuleActionException"}) {
		t.Errorf("action: %v", got)
	}
	b.wantContents(dead(Address{Name: "topic/dropped"}))
	if err := b.e.Change("topic", func(p *Properties) error { p.FilterBeforePublishing = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if sent, err := b.e.Send(Address{Name: "topic"}, []*message.Message{zero}); err != nil || !errors.Is(sent[0].Err, ErrFilter) {
		t.Errorf("filtered before publishing: %v, %v", sent, err)
	}
}

// A move never loses a message in a topic.
func TestMoveToTopic(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/some", Subscription, nil, Rule{Name: "r", Filter: Filter{Kind: SQLFilter, SQL: "n = 1"}})
	b.send("a")
	mv := Move{Seq: 1, To: Address{Name: "topic"}, As: says("a")}
	if errs, err := b.e.Move(b.queue, []Move{mv}); err != nil || !errors.Is(errs[0], ErrUnrouted) {
		t.Errorf("no rule lets it through: %v, %v", errs, err)
	}
	b.wantContents(b.queue, "a/0")
	mv.As.Properties.Set("n", message.Int(1))
	if routes, err := b.e.Route(mv.To, mv.As); err != nil || fmt.Sprint(routes) != "[{topic/Subscriptions/some 0}]" {
		t.Errorf("route %v, %v", routes, err)
	}
	b.ok(b.e.Move(b.queue, []Move{mv}))
	b.wantContents(Address{Name: "topic/some"}, "a/0")
	b.wantContents(b.queue)
}

// wantRules compares what a subscription holds, by the rules whose actions made the copies; "-"
// is the copy of the rules without one.
func (b *bench) wantRules(name string, want ...string) {
	b.Helper()
	var got []string
	for _, m := range b.peek(at(name)) {
		rule, _ := m.Properties.Get("RuleName")
		if rule == nil {
			rule = message.String("-")
		}
		got = append(got, string(rule.(message.String)))
	}
	if !slices.Equal(got, want) {
		b.Errorf("%s holds copies of the rules %v, want %v", name, got, want)
	}
}

func sqlRule(name, sql, action string) Rule {
	return Rule{Name: name, Filter: Filter{Kind: SQLFilter, SQL: sql}, Action: action}
}

func with(m *message.Message, name string, v message.Value) *message.Message {
	m.Properties.Set(name, v)
	return m
}

// The example of the documentation: two rules with actions and three without, all of which
// match, make three messages.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/topic-filters
func TestFiveRules(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/s", Subscription, nil,
		sqlRule("a", "1 = 1", ""), sqlRule("b", "1 = 1", "SET x = 1"), Rule{Name: "c"}, sqlRule("d", "1 = 1", "SET x = 2"), Rule{Name: "e"})
	b.post("topic", says("m"))
	b.wantRules("topic/s", "-", "b", "d")
	if info := b.info("topic/s"); info.Active != 3 {
		t.Errorf("counts %+v", info)
	}
}

// A subscription that is made without rules has one that is always true; one whose rules are
// removed gets nothing; a rule that is added holds for what arrives from then on.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/topic-filters
func TestRulesComeAndGo(t *testing.T) {
	b := newBench(t)
	const s = "topic/Subscriptions/s"
	b.make("topic", Topic, nil)
	b.make(s, Subscription, nil)
	rules, err := b.e.Rules("TOPIC/s")
	if err != nil || len(rules) != 1 || rules[0].Name != "$Default" || rules[0].Filter.Kind != TrueFilter || !rules[0].Created.Equal(b.now) {
		t.Errorf("rules %+v, %v", rules, err)
	}
	b.post("topic", says("all"))
	b.ok(nil, b.e.RemoveRule(s, "$default"))
	b.post("topic", says("none"))
	b.ok(nil, b.e.AddRule(s, sqlRule("r", "n = 1", "")))
	b.crash()
	b.post("topic", with(says("one"), "n", message.Long(1)))
	b.wantContents(at("topic/s"), "all/0", "one/0")
	b.want(b.e.AddRule(s, sqlRule("R", "n = 2", "")), ErrExists)
	b.want(b.e.RemoveRule(s, "other"), ErrNoEntity)
	b.want(b.e.AddRule("topic", Rule{Name: "r"}), ErrInvalid)
	b.want(b.e.AddRule("nowhere", Rule{Name: "r"}), ErrNoEntity)
}

// A rule that cannot be compiled is refused when it is made, and nothing with it.
// Source: servicebus-wire.md section 11.2, "at rule creation: 400"; section 9.6 for the limits.
func TestRulesAreValidated(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/s", Subscription, nil)
	for name, r := range map[string]Rule{
		"syntax":       sqlRule("r", "n = ", ""),
		"sys name":     sqlRule("r", "sys.Nothing = 1", ""),
		"action":       sqlRule("r", "n = 1", "SET = 1"),
		"read-only":    sqlRule("r", "n = 1", "SET sys.SequenceNumber = 1"),
		"long filter":  sqlRule("r", "n = '"+strings.Repeat("x", 1024)+"'", ""),
		"long action":  sqlRule("r", "n = 1", strings.Repeat("SET x = 1; ", 33)),
		"no name":      sqlRule("", "n = 1", ""),
		"long name":    sqlRule(strings.Repeat("r", 51), "n = 1", ""),
		"unknown kind": {Name: "r", Filter: Filter{Kind: "xpath"}},
	} {
		if err := b.e.AddRule("topic/Subscriptions/s", r); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		b.want(b.e.Create("topic/Subscriptions/new", Subscription, Defaults(Subscription, ServiceBus), r), ErrInvalid)
	}
	b.want(b.e.Create("topic/Subscriptions/new", Subscription, Defaults(Subscription, ServiceBus), Rule{Name: "r"}, Rule{Name: "R"}), ErrInvalid)
	b.want(b.e.Create("q", Queue, Defaults(Queue, ServiceBus), Rule{Name: "r"}), ErrInvalid)
	if rules, err := b.e.Rules("topic/s"); err != nil || len(rules) != 1 {
		t.Errorf("rules %v, %v", rules, err)
	}
}

// A rule comes back from the disk as it was made: filters of every kind, parameters, actions.
// Source: issue 3, "Durable".
func TestRulesAreKept(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	c := correlation("n", message.Int(1))
	c.Subject, c.SessionID = new("s"), new("")
	params := map[string]message.Value{"x": message.Long(7)}
	b.make("topic/Subscriptions/s", Subscription, nil,
		Rule{Name: "Correlated", Filter: Filter{Kind: CorrelationFilter, Correlation: c}}, Rule{Name: "f", Filter: Filter{Kind: FalseFilter}},
		Rule{Name: "sql", Filter: Filter{Kind: SQLFilter, SQL: "n = @x", Params: params}, Action: "SET n = @x", ActionParams: params})
	before, err := b.e.Rules("topic/s")
	if err != nil {
		t.Fatal(err)
	}
	b.crash()
	if after, err := b.e.Rules("topic/s"); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("rules\n%+v, were\n%+v, %v", after, before, err)
	}
}

// A correlation filter is the AND of its fields, each compared exactly; what a message lacks
// does not match, and an empty filter matches all.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/topic-filters#correlation-filters
func TestCorrelationFilter(t *testing.T) {
	b := newBench(t)
	c := correlation("n", message.Int(1))
	c.Subject = new("order")
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/both", Subscription, nil, Rule{Name: "r", Filter: Filter{Kind: CorrelationFilter, Correlation: c}})
	b.make("topic/Subscriptions/empty", Subscription, nil, Rule{Name: "r", Filter: Filter{Kind: CorrelationFilter}})
	for _, m := range []struct {
		text, subject string
		n             message.Value
	}{
		{"yes", "order", message.Int(1)},
		{"case", "Order", message.Int(1)},
		{"value", "order", message.Int(2)},
		{"type", "order", message.String("1")},
		{"missing", "order", nil},
	} {
		msg := says(m.text)
		msg.Subject = &m.subject
		if m.n != nil {
			with(msg, "n", m.n)
		}
		b.post("topic", msg)
	}
	b.wantContents(at("topic/both"), "yes/0")
	if got := b.info("topic/empty").Active; got != 5 {
		t.Errorf("the empty filter matched %d", got)
	}
}

// An action changes its own copy alone: not the others, not the number, body or schedule.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/topic-filters#actions
func TestActionsChangeTheirCopy(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/a", Subscription, nil, sqlRule("r", "1 = 1", "SET n = 2; REMOVE gone; SET sys.Label = 'new'; SET sys.SessionId = 'x'"))
	b.make("topic/Subscriptions/b", Subscription, nil)
	m := with(with(says("m"), "n", message.Int(1)), "gone", message.Int(1))
	b.post("topic", m)
	b.crash()
	changed, plain := b.peek(at("topic/a"))[0], b.peek(at("topic/b"))[0]
	want := message.Properties{{Name: "n", Value: message.Int(2)}, {Name: "RuleName", Value: message.String("r")}}
	if !slices.Equal(changed.Properties, want) || message.Str(changed.Subject) != "new" || message.Str(changed.SessionID) != "x" {
		t.Errorf("the changed copy is %+v", changed)
	}
	if !slices.Equal(plain.Properties, m.Properties) || plain.Subject != nil || plain.SessionID != nil || len(m.Properties) != 2 {
		t.Errorf("the other copy is %+v", plain)
	}
	if string(changed.Body.Bytes()) != "m" || !slices.Equal([]int64{changed.Broker.EnqueuedSequenceNumber, plain.Broker.EnqueuedSequenceNumber}, []int64{1, 1}) {
		t.Errorf("%+v and %+v", changed.Broker, plain.Broker)
	}
}

// An action can make a message fit for sessions, or send it to another.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/topic-filters#actions
func TestActionSetsTheSession(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/s", Subscription, func(p *Properties) { p.RequiresSession = true }, sqlRule("r", "1 = 1", "SET sys.SessionId = 'x'"))
	b.post("topic", says("m"))
	if s := b.accept(at("topic/s"), nil); s.ID != "x" {
		t.Errorf("the session is %q", s.ID)
	}
}

// No subscription and no match: accepted and dropped, and nothing of it is kept.
// Source: servicebus-wire.md section 10, "accepted and dropped".
func TestNobodyListens(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.post("topic", says("m"))
	b.make("topic/Subscriptions/none", Subscription, nil, sqlRule("r", "n = 1", ""))
	b.post("topic", says("m"))
	if n := contentsLeft(t, b); n != 0 || b.info("topic").Size != 0 {
		t.Errorf("%d contents are left, the size is %d", n, b.info("topic").Size)
	}
}

// A subscription gets copies whatever its status is; a disabled topic takes nothing.
// Source: servicebus-wire.md section 10, "Send status of disabled subs: still stored"; https://learn.microsoft.com/azure/service-bus-messaging/entity-suspend
func TestDisabledSubscription(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	statuses := []Status{Disabled, SendDisabled, ReceiveDisabled}
	for _, s := range statuses {
		b.make("topic/Subscriptions/"+string(s), Subscription, func(p *Properties) { p.Status = s })
	}
	b.post("topic", says("m"))
	for _, s := range statuses {
		name := "topic/Subscriptions/" + string(s)
		if s != SendDisabled {
			_, err := b.e.Receive(at(name), ReceiveOptions{})
			b.want(err, ErrDisabled)
		}
		b.change(name, func(p *Properties) { p.Status = Enabled })
		b.wantContents(at(name), "m/0")
	}
	b.change("topic", func(p *Properties) { p.Status = SendDisabled })
	b.want(b.e.ValidateSend(at("topic"), says("m")), ErrDisabled)
	b.want(b.e.Change("topic", func(p *Properties) error { p.Status = ReceiveDisabled; return nil }), ErrInvalid)
}

// Nothing is received from a topic or sent to a subscription.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-queues-topics-subscriptions
func TestTopicsAndSubscriptions(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("topic/Subscriptions/s", Subscription, nil)
	_, err := b.e.Receive(at("topic"), ReceiveOptions{})
	b.want(err, ErrUnsupported)
	_, err = b.e.Send(at("topic/s"), []*message.Message{says("m")})
	b.want(err, ErrInvalid)
}

// The copies share what they have in common, each counts in full in its subscription, and the
// topic counts the sum; what one subscription does to its copy is nothing to the others.
// Source: issue 3, "a topic ... list shows the sum"; architecture.md, "never copied".
func TestFanOut(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	for n := range 5 {
		b.make(fmt.Sprint("topic/Subscriptions/s", n), Subscription, nil)
	}
	b.post("topic", &message.Message{Body: message.DataBody(make([]byte, 1000))})
	one := b.info("topic/s0")
	if sum := b.info("topic"); one.Size < 1000 || sum.Size != 5*one.Size || sum.Active != 5 {
		t.Errorf("a subscription counts %d bytes, the topic %d and %d messages", one.Size, sum.Size, sum.Active)
	}
	if n := contentsLeft(t, b); n != 2 {
		t.Errorf("%d heads and bodies are stored, want one of each", n)
	}
	b.settle(at("topic/s0"), Complete, b.receive(at("topic/s0")))
	b.ok(b.e.Settle(at("topic/s1"), Outcome{Action: Abandon, Set: []message.Attribute{{Name: "n", Value: message.Int(1)}}}, b.receive(at("topic/s1")).Broker.LockToken))
	b.restart()
	b.settle(at("topic/s1"), Bury, b.receive(at("topic/s1")))
	b.ok(nil, b.e.Delete("topic/s2"))
	b.crash()
	for _, name := range []string{"topic/s3", "topic/s4"} {
		if m := b.receive(at(name)); len(m.Properties) != 0 || m.Body.Len() != 1000 || m.Broker.DeliveryCount != 0 {
			t.Errorf("%s holds %+v", name, m)
		}
	}
	if sum := b.info("topic"); sum.Size != 3*one.Size || sum.Active != 2 || sum.DeadLetter != 1 {
		t.Errorf("the topic counts %+v", sum)
	}
	for _, n := range []int{1, 3, 4} {
		b.ok(nil, b.e.Delete(fmt.Sprint("topic/s", n)))
	}
	b.ok(nil, b.e.Tick())
	if n := contentsLeft(t, b); n != 0 {
		t.Errorf("%d heads and bodies are left", n)
	}
}

// A rule that fails: the exception and its text are the reason and the description where the
// subscription asks for that; else the copy is dropped. Other rules and subscriptions get theirs.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#errors-while-processing-subscription-rules
func TestFailingRuleAmongOthers(t *testing.T) {
	for keep, want := range map[bool]int64{true: 1, false: 0} {
		b := newBench(t)
		b.make("topic", Topic, nil)
		b.make("topic/Subscriptions/s", Subscription, func(p *Properties) { p.DeadLetterOnFilterError = keep },
			sqlRule("a", "10 / n = 1", ""), sqlRule("b", "n = 0", ""), sqlRule("c", "n = 0", "SET x = 1"))
		b.make("topic/Subscriptions/other", Subscription, nil)
		b.post("topic", with(says("m"), "n", message.Int(0)))
		b.wantRules("topic/s", "-", "c")
		b.wantContents(at("topic/other"), "m/0")
		if got := b.info("topic/s").DeadLetter; got != want {
			t.Errorf("%d dead letters where DeadLetteringOnFilterEvaluationExceptions is %t", got, keep)
		}
	}
}

// A topic that filters before it publishes refuses the send. Where there is nobody to refuse, at
// the activation of a scheduled message and when one is forwarded to it, what a rule fails on is
// dead-lettered as at any topic.
// Source: servicebus-wire.md section 10, "Topics"; issue 3, "the send is rejected instead".
func TestFilterBeforePublishing(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, func(p *Properties) { p.FilterBeforePublishing = true })
	b.make("topic/Subscriptions/s", Subscription, nil, sqlRule("r", "10 / n = 1", ""))
	b.make("start", Queue, func(p *Properties) { p.ForwardTo = "topic" })
	zero := func() *message.Message { return with(says("m"), "n", message.Int(0)) }
	b.want(b.e.ValidateSend(at("topic"), zero()), ErrFilter)
	b.wantRefused(ErrFilter, ignoring(b.e.Begin().Send(at("topic"), nil, []*message.Message{zero()})), nil)
	b.wantContents(dead(at("topic/s")))
	b.post("topic", with(b.scheduled("scheduled", time.Minute), "n", message.Int(0)))
	b.pass(time.Minute)
	b.wantContents(dead(at("topic/s")), "scheduled/0")
	b.post("start", zero())
	b.wantContents(dead(at("topic/s")), "scheduled/0", "m/0")
	b.post("orders", zero())
	b.wantRefused(ErrFilter, ignoring(b.e.Move(b.queue, []Move{{Seq: 1, To: at("topic"), As: zero()}})), nil)
	b.wantContents(b.queue, "m/0")
}

// Route names who would hold a message, sub-queues included, and changes nothing.
// Source: issue 3, "who will receive a copy, including nobody"; operator.md section E.
func TestRoute(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, nil)
	b.make("end", Queue, nil)
	b.make("topic/Subscriptions/a", Subscription, nil, Rule{Name: "plain"}, sqlRule("act", "1 = 1", "SET x = 1"))
	b.make("topic/Subscriptions/b", Subscription, func(p *Properties) { p.ForwardTo = "end" })
	b.make("topic/Subscriptions/c", Subscription, func(p *Properties) { p.RequiresSession = true })
	b.make("topic/Subscriptions/d", Subscription, nil, sqlRule("r", "n = 1", ""))
	const s = "topic/Subscriptions/"
	for _, c := range []struct {
		to   string
		want []Address
	}{
		{"orders", []Address{b.queue}},
		{"topic", []Address{at(s + "a"), at(s + "a"), at("end"), {Name: s + "c", Sub: DeadLetter}}},
	} {
		got, err := b.e.Route(at(c.to), says("m"))
		slices.SortFunc(got, func(x, y Address) int { return strings.Compare(x.Name, y.Name) })
		slices.SortFunc(c.want, func(x, y Address) int { return strings.Compare(x.Name, y.Name) })
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("to %s: %v, %v; want %v", c.to, got, err, c.want)
		}
	}
	b.ok(nil, b.e.Delete("end"))
	if got, err := b.e.Route(at("topic"), says("m")); err != nil || !slices.Contains(got, Address{Name: s + "b", Sub: TransferDeadLetter}) {
		t.Errorf("with a destination that is gone: %v, %v", got, err)
	}
	if n := contentsLeft(t, b); n != 0 {
		t.Errorf("%d contents were stored", n)
	}
	_, err := b.e.Route(at("nowhere"), says("m"))
	b.want(err, ErrNoEntity)
	b.detecting("q", nil)
	b.post("q", says("m"))
	_, err = b.e.Route(at("q"), says("m"))
	b.want(err, ErrDuplicate)
	_, err = b.e.Route(at("q"), nil)
	b.want(err, ErrInvalid)
	b.ok(nil, b.e.Tick()) // nobody has kept the lock
}

func TestReplaceRule(t *testing.T) {
	b := newBench(t)
	b.make("news", Topic, nil)
	b.make("news/Subscriptions/all", Subscription, nil)
	b.want(b.e.ReplaceRule("news/Subscriptions/all", Rule{Name: "none"}), ErrNoEntity)
	b.want(b.e.ReplaceRule("news/Subscriptions/all", Rule{Name: DefaultRule, Filter: Filter{Kind: SQLFilter, SQL: "("}}), ErrInvalid)
	b.ok(nil, b.e.ReplaceRule("news/Subscriptions/all", Rule{Name: "$DEFAULT", Filter: Filter{Kind: FalseFilter}}))
	b.post("news", &message.Message{ID: message.String("m")})
	b.restart()
	rules, err := b.e.Rules("news/Subscriptions/all")
	if err != nil || len(rules) != 1 || rules[0].Name != DefaultRule || rules[0].Filter.Kind != FalseFilter || rules[0].Created.IsZero() {
		t.Errorf("the rules are %+v (%v)", rules, err)
	}
	if n := len(b.peek(Address{Name: "news/Subscriptions/all"})); n != 0 {
		t.Errorf("%d messages came through a rule that lets none through", n)
	}
}
