package amqpd

import (
	"testing"

	"dlq/backends/broker"
)

// TestAnyAddressIsAName: where queues are made for whoever asks, every address is one, the same each
// time, and what is a name already stays it.
func TestAnyAddressIsAName(t *testing.T) {
	b := newBench(t, func(o *Options) { o.CreateOnAttach = true })
	for address, want := range map[string]string{
		"orders":                            "orders",
		"/a/b.c_d-e":                        "a/b.c_d-e",
		"1 roundtrip, small payload 987149": "1_20roundtrip_2c_20small_20payload_20987149",
		"a%20b":                             "a_20b",
		"größe":                             "gr_c3_b6_c3_9fe",
		"amqp://host/a b/$DeadLetterQueue":  "a_20b",
	} {
		a, what := b.server.resolve(address)
		if a.Name != want || what != entityNode {
			t.Errorf("%q is %q", address, a.Name)
		}
		if a.Sub != broker.Main {
			continue
		}
		if _, err := b.server.entity(a); err != nil {
			t.Errorf("a queue for %q: %v", address, err)
		}
	}
	if a, what := b.server.resolve("$cbs"); a.Name != "" || what != cbsNode {
		t.Errorf("$cbs is %q", a.Name)
	}
}
