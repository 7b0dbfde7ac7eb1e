package backends

import (
	"strings"
	"testing"
)

func TestParseEntityID(t *testing.T) {
	for path, want := range map[string]EntityID{
		"orders":                                 {"orders", Main},
		"/orders/":                               {"orders", Main},
		"Orders":                                 {"Orders", Main},
		"billing/invoices":                       {"billing/invoices", Main},
		"a/b/c":                                  {"a/b/c", Main},
		"orders/dlq":                             {"orders", DeadLetterQueue},
		"orders/DLQ":                             {"orders", DeadLetterQueue},
		"orders/$DeadLetterQueue":                {"orders", DeadLetterQueue},
		"orders/$deadletterqueue/":               {"orders", DeadLetterQueue},
		"orders/$Transfer/$DeadLetterQueue":      {"orders", TransferDeadLetterQueue},
		"orders/$transfer/$deadletterqueue":      {"orders", TransferDeadLetterQueue},
		"dlq":                                    {"dlq", Main},
		"dlq/dlq":                                {"dlq", DeadLetterQueue},
		"orders/dlq/dlq":                         {"orders/dlq", DeadLetterQueue},
		"orders-dlq":                             {"orders-dlq", Main},
		"billing/Subscriptions/invoices":         {"billing/Subscriptions/invoices", Main},
		"billing/subscriptions/invoices/dlq":     {"billing/Subscriptions/invoices", DeadLetterQueue},
		"billing/Subscription/invoices":          {"billing/Subscriptions/invoices", Main},
		"subscriptions/subscription/x":           {"subscriptions/Subscriptions/x", Main},
		"billing/subscriptions":                  {"billing/subscriptions", Main},
		"заказы/dlq":                             {"заказы", DeadLetterQueue},
		"a b/\x1b[2J":                            {"a b/\x1b[2J", Main},
		"https://host.example/q":                 {},
		"":                                       {},
		"/":                                      {},
		"/dlq/$DeadLetterQueue":                  {"dlq", DeadLetterQueue},
		"$DeadLetterQueue":                       {},
		"orders/$DeadLetterQueue/dlq":            {},
		"orders/$Transfer/dlq":                   {},
		"orders/$Transfer":                       {},
		"orders//dlq":                            {},
		"$management":                            {},
		"billing/Subscriptions/$DeadLetterQueue": {"billing/Subscriptions", DeadLetterQueue},
	} {
		got, err := ParseEntityID(path)
		if got != want {
			t.Errorf("%q: got %#v, want %#v", path, got, want)
		}
		if (err == nil) != (want != EntityID{}) {
			t.Errorf("%q: the error is %v", path, err)
		}
	}
}

func TestEntityIDSubQueues(t *testing.T) {
	id := EntityID{"billing/Subscriptions/invoices", TransferDeadLetterQueue}
	for got, want := range map[string]string{
		id.String():               "billing/Subscriptions/invoices/$Transfer/$DeadLetterQueue",
		id.DeadLetters().String(): "billing/Subscriptions/invoices/$DeadLetterQueue",
		id.MainQueue().String():   "billing/Subscriptions/invoices",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// FuzzParseEntityID: what is read is written as a path that reads as the same.
func FuzzParseEntityID(f *testing.F) {
	for _, path := range []string{
		"orders", "a/dlq", "t/subscriptions/s/$DeadLetterQueue", "a/$Transfer/$DeadLetterQueue", "//", "$", "a/ſubscriptions/b/DLQ",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		id, err := ParseEntityID(path)
		if err != nil {
			if id != (EntityID{}) {
				t.Errorf("an error and %#v", id)
			}
			return
		}
		again, err := ParseEntityID(id.String())
		if err != nil || again != id {
			t.Errorf("%q is %#v, written %q, and read again %#v, %v", path, id, id, again, err)
		}
		if id.Name == "" || strings.HasPrefix(id.Name, "$") || strings.HasSuffix(id.Name, "/") {
			t.Errorf("%q has the name %q", path, id.Name)
		}
	})
}

// TestResolve: where the messages of a sub-queue lie.
func TestResolve(t *testing.T) {
	orders, failed := EntityID{Name: "orders"}, EntityID{Name: "orders-dlq"}
	for name, c := range map[string]struct {
		e         Entity
		dead      EntityID
		main, via EntityID
	}{
		"sub-queues":           {Entity{ID: orders, DeadLetters: orders.DeadLetters()}, orders.DeadLetters(), orders, EntityID{"orders", TransferDeadLetterQueue}},
		"a redrive policy":     {Entity{ID: orders, DeadLetters: failed}, failed, orders, EntityID{"orders", TransferDeadLetterQueue}},
		"named by a policy":    {Entity{ID: failed, Sources: []EntityID{orders}}, failed, failed, EntityID{"orders-dlq", TransferDeadLetterQueue}},
		"both":                 {Entity{ID: orders, DeadLetters: failed, Sources: []EntityID{failed}}, failed, orders, EntityID{"orders", TransferDeadLetterQueue}},
		"no dead-letter queue": {Entity{ID: orders}, orders.DeadLetters(), orders, EntityID{"orders", TransferDeadLetterQueue}},
	} {
		for sub, want := range map[Sub]EntityID{Main: c.main, DeadLetterQueue: c.dead, TransferDeadLetterQueue: c.via} {
			if got := c.e.Resolve(sub); got != want {
				t.Errorf("%s: %v resolves to %v, want %v", name, EntityID{c.e.ID.Name, sub}, got, want)
			}
		}
	}
}
