package sqlfilter

import (
	"fmt"
	"strings"
	"testing"

	"dlq/backends/message"
)

// benchMessage is a dead letter with ten application properties, the last of which is tenant.
func benchMessage() *message.Message {
	m := &message.Message{Subject: new("order.created")}
	m.Properties.Set("DeadLetterReason", message.String("MaxDeliveryCountExceeded"))
	for i := range 8 {
		m.Properties.Set(fmt.Sprintf("header-%d", i), message.String("some value"))
	}
	m.Properties.Set("tenant", message.String("acme"))
	return m
}

func BenchmarkMatch(b *testing.B) {
	body := strings.Repeat(`{"sku":"A-1","quantity":12},`, 40) + "timeout" // 1.1 KB
	for _, bm := range []struct{ name, expr string }{
		{"reason LIKE", "sys.DeadLetterReason LIKE 'Max%'"},
		{"tenant =", "tenant = 'acme'"},
		{"tenant = without case", "Tenant = 'acme'"},
		{"both and a time", "sys.DeadLetterReason LIKE 'Max%' AND tenant = 'acme' AND sys.ExpiresAtUtc > '2026-01-01'"},
		{"body LIKE", "body LIKE '%timeout%'"},
		{"body LIKE with _", "body LIKE '%time_ut%'"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			e, err := Compile(bm.expr, SelectionNames(), nil)
			if err != nil {
				b.Fatal(err)
			}
			env := &Env{Message: benchMessage(), BodyText: func() (string, bool) { return body, true }}
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := e.Match(env); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

// A message against all the filters of a topic, of which one matches.
func BenchmarkTopic(b *testing.B) {
	const filters = 1000
	value := func(i int) string { return fmt.Sprintf("acme-%04d", i) }
	m := benchMessage()
	m.CorrelationID = message.String(value(500))
	m.Properties.Set("tenant", message.String(value(500)))
	exprs := make([]*Expr, filters)
	byProperty, byID := make([]Correlation, filters), make([]Correlation, filters)
	for i := range filters {
		var err error
		if exprs[i], err = Compile("tenant = "+quote(value(i)), RuleNames(), nil); err != nil {
			b.Fatal(err)
		}
		byProperty[i].Properties.Set("tenant", message.String(value(i)))
		byID[i].CorrelationID = new(value(i))
	}
	b.Run("sql", func(b *testing.B) {
		env := &Env{Message: m}
		benchTopic(b, filters, func(i int) bool { ok, err := exprs[i].Match(env); return ok && err == nil })
	})
	b.Run("correlation by property", func(b *testing.B) {
		benchTopic(b, filters, func(i int) bool { return byProperty[i].Match(m) })
	})
	b.Run("correlation by id", func(b *testing.B) {
		benchTopic(b, filters, func(i int) bool { return byID[i].Match(m) })
	})
}

func benchTopic(b *testing.B, filters int, match func(i int) bool) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for i := range filters {
			if match(i) {
				n++
			}
		}
		if n != 1 {
			b.Fatalf("%d filters match", n)
		}
	}
}

func BenchmarkAction(b *testing.B) {
	a, err := CompileAction("SET quantity = quantity / 2; REMOVE priority; SET sys.CorrelationId = 'low'", RuleNames(), nil)
	if err != nil {
		b.Fatal(err)
	}
	m := order()
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Apply(&Env{Message: m.Clone()}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile("sys.DeadLetterReason LIKE 'Max%' AND tenant = 'acme'", SelectionNames(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// The costliest pattern: nothing but wildcards that never match, over a large body.
func BenchmarkLikeWorst(b *testing.B) {
	p, err := CompilePattern("%"+strings.Repeat("a_", 20)+"b%", PatternOptions{})
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("a", 1<<20)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if p.Match(text) {
			b.Fatal("matched")
		}
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	e, err := Compile("sys.DeadLetterReason LIKE 'Max%' AND Tenant IN ('x', 'acme') AND NOT amount > 5.5 OR sys.Label = body", SelectionNames(), nil)
	if err != nil {
		t.Fatal(err)
	}
	env := sampleEnv()
	if n := testing.AllocsPerRun(100, func() {
		if _, err := e.Match(env); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
