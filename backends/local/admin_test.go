package local

import (
	"strings"
	"testing"

	"dlq/backends"
	"dlq/backends/broker"
	"dlq/backends/message"
)

func memory(t *testing.T) *Backend {
	t.Helper()
	b, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestDialects: a queue of SQS is made by its settings, in whatever order they come.
func TestDialects(t *testing.T) {
	b := memory(t)
	for _, e := range []backends.NewEntity{
		{ID: backends.EntityID{Name: "dead.fifo"}, Settings: []backends.Setting{{Name: "FifoQueue", Value: "true"}, {Name: "dialect", Value: "SQS"}}},
		{ID: backends.EntityID{Name: "work.fifo"}, Settings: []backends.Setting{
			{Name: "RedriveKeepsAge", Value: "true"},
			{Name: "RedrivePolicy", Value: "dead.fifo:3"},
			{Name: "FifoQueue", Value: "true"},
			{Name: "Dialect", Value: "sqs"},
		}},
	} {
		if _, err := b.CreateEntity(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	d, err := b.DescribeEntity(t.Context(), backends.EntityID{Name: "work.fifo"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range d.Properties {
		got[p.Name] = p.Value
	}
	for name, want := range map[string]string{
		"Dialect": "sqs", "FifoQueue": "true", "RedrivePolicy": `{"target":"dead.fifo","maxReceiveCount":3}`,
		"RedriveKeepsAge": "true", "DuplicateWindow": "300",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for e, err := range b.Entities(t.Context(), backends.EntityQuery{Names: []string{"dead.fifo"}}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Sources) != 1 || e.Sources[0].Name != "work.fifo" {
			t.Errorf("the dead letters of %v come to dead.fifo", e.Sources)
		}
	}
}

// TestQueueWithTheNameOfASubscription: a slip in the name of a subscription makes no queue.
func TestQueueWithTheNameOfASubscription(t *testing.T) {
	b := memory(t)
	if _, err := b.CreateEntity(t.Context(), backends.NewEntity{ID: backends.EntityID{Name: "news"}, Kind: backends.Topic}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"news/al", "news/Subscriptions/al"} {
		if err := b.CreateQueue(t.Context(), name); !backends.IsCode(err, backends.Invalid) {
			t.Errorf("queue %s: %v", name, err)
		}
	}
	if err := b.CreateQueue(t.Context(), "sport/al"); err != nil {
		t.Errorf("beside a topic of another name: %v", err)
	}
}

// TestCorrelationRules: every system property of a correlation filter goes in and comes out.
func TestCorrelationRules(t *testing.T) {
	r := backends.Rule{Name: "r", Action: "REMOVE a"}
	for _, c := range correlationFields(new(broker.Filter)) {
		r.Correlation = append(r.Correlation, message.Attribute{Name: systemPrefix + c.name, Value: message.String(c.name)})
	}
	r.Correlation = append(r.Correlation, message.Attribute{Name: "n", Value: message.Int(1)})
	engine, err := engineRule(r)
	if err != nil {
		t.Fatal(err)
	}
	back := describeRule(engine)
	if len(back.Correlation) != len(r.Correlation) || back.Name != r.Name || back.Action != r.Action {
		t.Fatalf("got %+v, want %+v", back, r)
	}
	for i, a := range back.Correlation {
		if a.Name != r.Correlation[i].Name || !message.EqualValues(a.Value, r.Correlation[i].Value) {
			t.Errorf("got %v, want %v", a, r.Correlation[i])
		}
	}
	for name, bad := range map[string]message.Attribute{
		"it can sys.CorrelationId, ":         {Name: "SYS.State", Value: message.String("x")},
		"compared with text, not with a int": {Name: "sys.label", Value: message.Int(1)},
	} {
		_, err := engineRule(backends.Rule{Name: "r", Correlation: []message.Attribute{bad}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if got := describeRule(broker.Rule{Filter: broker.Filter{Kind: broker.FalseFilter}}); got.Filter != "1=0" {
		t.Errorf("a filter that is never true is written %q", got.Filter)
	}
}
