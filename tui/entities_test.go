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
