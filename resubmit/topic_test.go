package resubmit

import (
	"reflect"
	"slices"
	"testing"

	"dlq/backends"
	"dlq/backends/message"
)

// TestDeadLettersOfASubscription go back through its topic, also when it was named in short.
func TestDeadLettersOfASubscription(t *testing.T) {
	for _, name := range []string{"news/all", "News/Subscriptions/ALL"} {
		f := newFixture(t)
		for _, e := range []backends.NewEntity{
			{ID: backends.EntityID{Name: "news"}, Kind: backends.Topic},
			{ID: backends.EntityID{Name: "news/all"}},
		} {
			if _, err := f.local.CreateEntity(f.ctx, e); err != nil {
				t.Fatal(err)
			}
		}
		topic, sub := backends.EntityID{Name: "news"}, backends.EntityID{Name: "news/Subscriptions/all"}
		if err := f.local.Send(f.ctx, topic, []*message.Message{{Body: message.DataBody([]byte("a"))}, {Body: message.DataBody([]byte("b"))}}); err != nil {
			t.Fatal(err)
		}
		if err := f.local.SettleDirect(f.ctx, sub, f.cause, 1, 2); err != nil {
			t.Fatal(err)
		}
		plan := f.plan(Spec{From: backends.EntityID{Name: name}.DeadLetters()})
		if plan.Spec.From != sub.DeadLetters() {
			t.Errorf("%s: the plan is about %v", name, plan.Spec.From)
		}
		want := []Destination{{Entity: topic, Count: 2, Routed: 2, Receivers: []Receiver{{sub, 2}}}}
		if !reflect.DeepEqual(plan.Destinations, want) {
			t.Errorf("%s: the destinations are %v, want %v", name, plan.Destinations, want)
		}
		r, err := Run(f.ctx, f.env, plan, nil)
		if err != nil || r.Done != 2 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if got := bodies(f.peek(sub)); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%s: the subscription holds %q", name, got)
		}
	}
}
