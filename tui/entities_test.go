package tui

import (
	"testing"

	"dlq/backends"
	"dlq/backends/local"
)

// TestTopics: the sums of a topic are marked, do not count twice, and lead to where the
// messages are.
func TestTopics(t *testing.T) {
	c := &clock{begin}
	b, err := local.Open(t.Context(), local.Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	for name, kind := range map[string]backends.EntityKind{"news": backends.Topic, "news-2": backends.Queue} {
		if _, err := b.CreateEntity(t.Context(), backends.NewEntity{ID: backends.EntityID{Name: name}, Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"news/a", "news/b"} {
		if _, err := b.CreateEntity(t.Context(), backends.NewEntity{ID: backends.EntityID{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	put(t, b, "news", order(1))
	for _, sub := range []string{"news/Subscriptions/a", "news/Subscriptions/b"} {
		lease, err := b.Lease(t.Context(), backends.EntityID{Name: sub}, backends.LeaseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := lease.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Settle(t.Context(), backends.Outcome{Action: backends.DeadLetter, Reason: "Broken"}, m); err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	d := drive(t, Deps{Backend: b, Now: c.Now}, 120, 24)
	d.has("2 dead letters", "topic, sums", "counts: sum of its subscriptions")
	d.press("enter")
	d.has("they are in its subscriptions")
	d.press("t")
	d.has("they are in its subscriptions")
	d.press("down", "enter")
	d.has("news/Subscriptions/a › dead letters", "1 message", "Broken")
	d.press("esc", "o")
	d.golden("topics")
}

// TestDeadLettersElsewhere: what lies in the queue that a redrive policy names is seen, and counts
// once however many queues share it.
func TestDeadLettersElsewhere(t *testing.T) {
	c := &clock{begin}
	b, err := local.Open(t.Context(), local.Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	for _, q := range []struct{ name, target string }{{"dead", ""}, {"orders", "dead"}, {"returns", "dead"}, {"own-dlq", ""}, {"own", "own-dlq"}} {
		e := backends.NewEntity{ID: backends.EntityID{Name: q.name}, Kind: backends.Queue, Settings: []backends.Setting{{Name: "Dialect", Value: "sqs"}}}
		if q.target != "" {
			e.Settings = append(e.Settings, backends.Setting{Name: "RedrivePolicy", Value: q.target + ":3"})
		}
		if _, err := b.CreateEntity(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	put(t, b, "dead", order(1))
	put(t, b, "dead", order(2))
	put(t, b, "own-dlq", order(3))
	d := drive(t, Deps{Backend: b, Now: c.Now}, 120, 24)
	d.has("3 dead letters", "shared 2")
	d.hasNot("no dead letters")
	d.golden("elsewhere")
}
