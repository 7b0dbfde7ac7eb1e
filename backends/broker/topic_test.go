package broker

import (
	"errors"
	"fmt"
	"slices"
	"testing"

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
