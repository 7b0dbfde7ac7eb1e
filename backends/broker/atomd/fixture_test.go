package atomd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker"
	"dlq/backends/broker/store"
)

// fixture is a management API on an engine in memory, at a time that the test tells.
type fixture struct {
	tb      testing.TB
	engine  *broker.Engine
	now     time.Time
	handler http.Handler
}

func newFixture(tb testing.TB, change func(*Options)) *fixture {
	tb.Helper()
	f := &fixture{tb: tb, now: time.Date(2024, 1, 31, 17, 32, 0, 123456700, time.UTC)}
	clock := func() time.Time { return f.now }
	s, err := store.Open(vfs.NewMem(), "data")
	if err != nil {
		tb.Fatal(err)
	}
	if f.engine, err = broker.Open(broker.Options{Store: s, Now: clock}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.engine.Close() })
	o := Options{Engine: f.engine, Namespace: "contoso", Now: clock}
	if change != nil {
		change(&o)
	}
	f.handler = New(o)
	return f
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// do makes a request. headers are names and values in turn.
func (f *fixture) do(method, path, body string, headers ...string) answer {
	f.tb.Helper()
	r := httptest.NewRequest(method, "http://contoso.example"+path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// must makes a request that has to succeed.
func (f *fixture) must(method, path, body string, headers ...string) answer {
	f.tb.Helper()
	a := f.do(method, path, body, headers...)
	if a.status != http.StatusOK && a.status != http.StatusCreated {
		f.tb.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return a
}

// entry is a request's body with a description as SDKs write it.
func entry(description, inner string) string {
	return fmt.Sprintf(`<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">`+
		`<%[1]s xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect" xmlns:i="http://www.w3.org/2001/XMLSchema-instance">%[2]s</%[1]s>`+
		`</content></entry>`, description, inner)
}

func queueBody(inner string) string        { return entry("QueueDescription", inner) }
func topicBody(inner string) string        { return entry("TopicDescription", inner) }
func subscriptionBody(inner string) string { return entry("SubscriptionDescription", inner) }
func ruleBody(inner string) string         { return entry("RuleDescription", inner) }

// orders makes the queue orders, the topic events with the subscription all, and a rule.
func (f *fixture) orders() {
	f.tb.Helper()
	f.must("PUT", "/orders", queueBody(""))
	f.must("PUT", "/events", topicBody(""))
	f.must("PUT", "/events/Subscriptions/all", subscriptionBody(""))
	f.must("PUT", "/events/Subscriptions/all/Rules/big", ruleBody(`<Filter i:type="SqlFilter"><SqlExpression>size &gt; 3</SqlExpression></Filter>`))
}
