package atomd

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// TestAnswers holds single requests against the statuses and texts of the service. They begin
// from the queue orders, the topic events, its subscription all and that one's rule big.
func TestAnswers(t *testing.T) {
	const update = "If-Match"
	long := strings.Repeat("n", 261)
	for _, tt := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		text                     string // somewhere in the body
	}{
		{"health", "GET", "/health", "", nil, 200, "healthy"},
		{"health of an entity", "GET", "/health?api-version=2021-05", "", nil, 404, "'health' could not be found"},
		{"namespace", "GET", "/$NamespaceInfo?api-version=2024-05", "", nil, 200, "<MessagingSKU>Standard</MessagingSKU>"},
		{"namespace is read only", "DELETE", "/$namespaceinfo", "", nil, 405, "DELETE"},
		{"get a queue", "GET", "/orders?api-version=2017-04&enrich=False", "", nil, 200, "<QueueDescription"},
		{"names compare without case", "GET", "/ORDERS", "", nil, 200, `<title type="text">orders</title>`},
		{"get a topic", "GET", "/events", "", nil, 200, "<TopicDescription"},
		{"get a subscription", "GET", "/EVENTS/subscriptions/ALL", "", nil, 200, `<title type="text">all</title>`},
		{"get a rule", "GET", "/events/subscriptions/all/rules/BIG", "", nil, 200, "<Name>big</Name>"},
		{"get the rule of every subscription", "GET", "/events/Subscriptions/all/Rules/$Default", "", nil, 200, `i:type="TrueFilter"`},
		{"get with an escaped dollar", "GET", "/events/Subscriptions/all/Rules/%24Default", "", nil, 200, `i:type="TrueFilter"`},
		{"missing queue", "GET", "/none", "", nil, 404, "SubCode=40400"},
		{"missing subscription", "GET", "/events/Subscriptions/none", "", nil, 404, "SubCode=40400"},
		{"missing rule", "GET", "/events/Subscriptions/all/Rules/none", "", nil, 404, "SubCode=40400"},
		{"missing subscription of a rule", "GET", "/events/Subscriptions/none/Rules/none", "", nil, 404, "SubCode=40400"},
		{"subscription of a queue", "GET", "/orders/Subscriptions/all", "", nil, 404, "SubCode=40400"},
		{"subscriptions of a queue", "GET", "/orders/Subscriptions", "", nil, 404, "'orders' could not be found"},
		{"nothing", "GET", "/", "", nil, 404, "There is nothing"},
		{"unknown system path", "GET", "/$Resources/relays", "", nil, 404, "There is nothing"},
		{"a post", "POST", "/orders", "", nil, 405, "POST"},
		{"a post of rules", "POST", "/events/Subscriptions/all/Rules", "", nil, 405, "POST"},

		{"create a queue", "PUT", "/new", queueBody(""), nil, 201, "<LockDuration>PT1M</LockDuration>"},
		{"create with slashes", "PUT", "/team/a/new", queueBody(""), nil, 201, `<title type="text">team/a/new</title>`},
		{"create with an escaped slash", "PUT", "/team%2Fnew", queueBody(""), nil, 201, "<id>http://contoso.example/team/new</id>"},
		{"create a queue again", "PUT", "/Orders", queueBody(""), nil, 409, "SubCode=40900. Conflict. You're requesting an operation that isn't allowed"},
		{"a topic of a queue's name", "PUT", "/orders", topicBody(""), nil, 409, "SubCode=40900"},
		{"create a subscription again", "PUT", "/events/Subscriptions/All", subscriptionBody(""), nil, 409, "The messaging entity 'sb://contoso/events/Subscriptions/all' already exists."},
		{"create a rule again", "PUT", "/events/Subscriptions/all/Rules/Big", ruleBody(""), nil, 409, "already exists."},
		{"create a subscription without a topic", "PUT", "/none/Subscriptions/s", subscriptionBody(""), nil, 404, "SubCode=40400"},
		{"create a rule without a name in the path", "PUT", "/events/Subscriptions/all/Rules/", ruleBody("<Name>$Default</Name>"), nil, 409, "already exists."},
		{"update a missing queue", "PUT", "/none", queueBody(""), []string{update, "*"}, 404, "SubCode=40400"},
		{"update a missing subscription", "PUT", "/events/Subscriptions/none", subscriptionBody(""), []string{update, "*"}, 404, "SubCode=40400"},
		{"update a missing rule", "PUT", "/events/Subscriptions/all/Rules/none", ruleBody(""), []string{update, "*"}, 404, "SubCode=40400"},
		{"update a queue", "PUT", "/orders", queueBody("<MaxDeliveryCount>7</MaxDeliveryCount>"), []string{update, "*"}, 200, "<MaxDeliveryCount>7</MaxDeliveryCount>"},
		{"update a queue as a topic", "PUT", "/orders", topicBody(""), []string{update, "*"}, 404, "SubCode=40400"},
		{"update a rule", "PUT", "/events/Subscriptions/all/Rules/big", ruleBody(`<Filter i:type="FalseFilter"/>`), []string{update, "*"}, 200, "FalseFilter"},

		{"sessions are fixed", "PUT", "/orders", queueBody("<RequiresSession>true</RequiresSession>"), []string{update, "*"}, 400, "SubCode=40000. The value for the RequiresSession property of an existing Queue cannot be changed."},
		{"sessions of a subscription are fixed", "PUT", "/events/Subscriptions/all", subscriptionBody("<RequiresSession>true</RequiresSession>"), []string{update, "*"}, 400, "of an existing Subscription cannot be changed."},
		{"duplicate detection is fixed", "PUT", "/orders", queueBody("<RequiresDuplicateDetection>true</RequiresDuplicateDetection>"), []string{update, "*"}, 400, "RequiresDuplicateDetection property of an existing Queue"},
		{"partitioning is fixed", "PUT", "/events", topicBody("<EnablePartitioning>true</EnablePartitioning>"), []string{update, "*"}, 400, "SubCode=40000. Partitioning cannot be changed for Topic. "},

		{"lock too long", "PUT", "/q", queueBody("<LockDuration>PT6M</LockDuration>"), nil, 400, "The supplied lock time exceeds the allowed maximum of '5' minutes."},
		{"lock too short", "PUT", "/q", queueBody("<LockDuration>PT1S</LockDuration>"), nil, 400, "LockDuration PT1S is out of range"},
		{"lock of no duration", "PUT", "/q", queueBody("<LockDuration>soon</LockDuration>"), nil, 400, "LockDuration"},
		{"lock in words of Go", "PUT", "/q", queueBody("<LockDuration>30s</LockDuration>"), nil, 400, "The value '30s' of LockDuration"},
		{"time to live in words", "PUT", "/q", queueBody("<DefaultMessageTimeToLive>never</DefaultMessageTimeToLive>"), nil, 400, "The value 'never' of DefaultMessageTimeToLive"},
		{"negative time to live", "PUT", "/q", queueBody("<DefaultMessageTimeToLive>-P1D</DefaultMessageTimeToLive>"), nil, 400, "DefaultMessageTimeToLive"},
		{"message size with a unit", "PUT", "/q", queueBody("<MaxMessageSizeInKilobytes>100000B</MaxMessageSizeInKilobytes>"), nil, 400, "The value '100000B' of MaxMessageSizeInKilobytes"},
		{"message size beyond all", "PUT", "/q", queueBody("<MaxMessageSizeInKilobytes>9223372036854775807</MaxMessageSizeInKilobytes>"), nil, 400, "MaxMessageSizeInKilobytes"},
		{"a flag as a number", "PUT", "/q", queueBody("<EnableBatchedOperations>0</EnableBatchedOperations>"), nil, 201, "<EnableBatchedOperations>false<"},
		{"an empty setting", "PUT", "/q", queueBody("<EnableBatchedOperations/><LockDuration/><MaxSizeInMegabytes/>"), nil, 201, "<LockDuration>PT1M<"},
		{"deliveries out of range", "PUT", "/q", queueBody("<MaxDeliveryCount>2001</MaxDeliveryCount>"), nil, 400, "MaxDeliveryCount 2001 is out of range"},
		{"no deliveries", "PUT", "/q", queueBody("<MaxDeliveryCount>0</MaxDeliveryCount>"), nil, 400, "MaxDeliveryCount 0 is out of range"},
		{"window out of range", "PUT", "/q", queueBody("<DuplicateDetectionHistoryTimeWindow>P8D</DuplicateDetectionHistoryTimeWindow>"), nil, 400, "DuplicateDetectionHistoryTimeWindow"},
		{"idle too short", "PUT", "/q", queueBody("<AutoDeleteOnIdle>PT4M</AutoDeleteOnIdle>"), nil, 400, "AutoDeleteOnIdle"},
		{"time to live of nothing", "PUT", "/q", queueBody("<DefaultMessageTimeToLive>PT0S</DefaultMessageTimeToLive>"), nil, 400, "DefaultMessageTimeToLive"},
		{"size of no number", "PUT", "/q", queueBody("<MaxSizeInMegabytes>much</MaxSizeInMegabytes>"), nil, 400, "MaxSizeInMegabytes 'much'"},
		{"no size", "PUT", "/q", queueBody("<MaxSizeInMegabytes>0</MaxSizeInMegabytes>"), nil, 400, "MaxSizeInMegabytes '0'"},
		{"unknown status", "PUT", "/q", queueBody("<Status>Broken</Status>"), nil, 400, "Status"},
		{"status that topics do not have", "PUT", "/t", topicBody("<Status>ReceiveDisabled</Status>"), nil, 400, "Status"},
		{"metadata too long", "PUT", "/q", queueBody("<UserMetadata>" + strings.Repeat("m", 1025) + "</UserMetadata>"), nil, 400, "UserMetadata"},
		{"flag of no boolean", "PUT", "/q", queueBody("<EnableBatchedOperations>perhaps</EnableBatchedOperations>"), nil, 400, "EnableBatchedOperations"},
		{"unused flag of no boolean", "PUT", "/q", queueBody("<EnableExpress>perhaps</EnableExpress>"), nil, 400, "'perhaps' is neither true nor false"},
		{"forward to nothing", "PUT", "/q", queueBody("<ForwardTo>sb://contoso/none</ForwardTo>"), nil, 400, "SubCode=40400. The auto forwarding destination entity does not exist."},
		{"forward dead letters to nothing", "PUT", "/orders", queueBody("<ForwardDeadLetteredMessagesTo>none</ForwardDeadLetteredMessagesTo>"), []string{update, "*"}, 400, "The auto forwarding destination entity does not exist."},
		{"forward to itself", "PUT", "/orders", queueBody("<ForwardTo>https://contoso/Orders/</ForwardTo>"), []string{update, "*"}, 400, "cannot forward to itself"},
		{"forward and sessions", "PUT", "/q", queueBody("<ForwardTo>orders</ForwardTo><RequiresSession>true</RequiresSession>"), nil, 400, "SubCode=40000"},
		{"wrong characters", "PUT", "/a~b", queueBody(""), nil, 400, "'a~b' contains character(s) that is not allowed by Service Bus. Entity segments can contain only letters, numbers, periods(.), hyphens(-), and underscores(_)."},
		{"letters of other alphabets", "PUT", "/%C3%A4", queueBody(""), nil, 400, "contains character(s)"},
		{"no UTF-8", "PUT", "/%ff%fe", queueBody(""), nil, 400, "contains character(s)"},
		{"name too long", "PUT", "/" + long, queueBody(""), nil, 400, "exceeds the 260 character limit"},
		{"subscription's name too long", "PUT", "/events/Subscriptions/" + long[:51], subscriptionBody(""), nil, 400, "exceeds the 50 character limit"},
		{"rule's name too long", "PUT", "/events/Subscriptions/all/Rules/" + long[:51], ruleBody(""), nil, 400, "SubCode=40000"},
		{"size of a page of no number", "GET", "/$Resources/queues?$top=all", "", nil, 400, "$top 'all'"},
		{"negative skip", "GET", "/$Resources/queues?$skip=-1", "", nil, 400, "$skip '-1'"},

		{"bad SQL", "PUT", "/events/Subscriptions/all/Rules/r", ruleBody(`<Filter i:type="SqlFilter"><SqlExpression>a = = b</SqlExpression></Filter>`), nil, 400, "SubCode=40000"},
		{"no SQL", "PUT", "/events/Subscriptions/all/Rules/r", ruleBody(`<Filter i:type="SqlFilter"/>`), nil, 400, "SubCode=40000"},
		{"bad action", "PUT", "/events/Subscriptions/all/Rules/r", ruleBody(`<Filter i:type="TrueFilter"/><Action i:type="SqlRuleAction"><SqlExpression>SET</SqlExpression></Action>`), nil, 400, "SubCode=40000"},
		{"unknown filter", "PUT", "/events/Subscriptions/all/Rules/r", ruleBody(`<Filter i:type="MagicFilter"/>`), nil, 400, "MagicFilter"},
		{"filter of no type", "PUT", "/events/Subscriptions/all/Rules/r", ruleBody(`<Filter><SqlExpression>1=0</SqlExpression></Filter>`), nil, 400, "A filter of the type ''"},
		{"unknown action", "PUT", "/events/Subscriptions/all/Rules/r", ruleBody(`<Action i:type="MagicAction"/>`), nil, 400, "MagicAction"},
		{"bad default rule", "PUT", "/events/Subscriptions/s", subscriptionBody(`<DefaultRuleDescription><Filter i:type="SqlFilter"><SqlExpression>(</SqlExpression></Filter></DefaultRuleDescription>`), nil, 400, "SubCode=40000"},

		{"no body", "PUT", "/q", "", nil, 400, "SubCode=40000"},
		{"no XML", "PUT", "/q", "{}", nil, 400, "SubCode=40000"},
		{"no description", "PUT", "/q", entry("RelayDescription", ""), nil, 400, "neither a QueueDescription nor a TopicDescription"},
		{"no description of a subscription", "PUT", "/events/Subscriptions/s", queueBody(""), nil, 400, "has no SubscriptionDescription"},
		{"a coded body", "PUT", "/q", queueBody(""), []string{"Content-Encoding", "gzip"}, 415, "Content-Encoding"},
		{"a large body", "PUT", "/q", strings.Repeat(" ", 1<<20+1), nil, 413, "1048576"},

		{"delete a queue", "DELETE", "/Orders", "", nil, 200, ""},
		{"delete a topic", "DELETE", "/events", "", nil, 200, ""},
		{"delete a subscription", "DELETE", "/events/subscriptions/all", "", nil, 200, ""},
		{"delete a rule", "DELETE", "/events/subscriptions/all/rules/Big", "", nil, 200, ""},
		{"delete a missing queue", "DELETE", "/none", "", nil, 404, "SubCode=40400"},
		{"delete a missing subscription", "DELETE", "/events/subscriptions/none", "", nil, 404, "SubCode=40400"},
		{"delete a missing rule", "DELETE", "/events/subscriptions/all/rules/none", "", nil, 404, "SubCode=40400"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.orders()
			a := f.do(tt.method, tt.path, tt.body, tt.headers...)
			if a.status != tt.status || !strings.Contains(a.body, tt.text) {
				t.Fatalf("got %d %s\nwant %d %s", a.status, a.body, tt.status, tt.text)
			}
			if tt.status >= 400 {
				checkError(t, a)
			}
		})
	}
}

// checkError checks the form of an error: clients read its code and show its detail.
func checkError(t *testing.T, a answer) {
	t.Helper()
	var e struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Detail  string
	}
	if err := xml.Unmarshal([]byte(a.body), &e); err != nil {
		t.Fatalf("the error is no XML: %v", err)
	}
	if e.Code != strconv.Itoa(a.status) {
		t.Errorf("the body has the code %s, the answer %d", e.Code, a.status)
	}
	for _, want := range []string{" TrackingId:", ", SystemTracker:contoso:", ", Timestamp:2024-01-31T17:32:00"} {
		if !strings.Contains(e.Detail, want) {
			t.Errorf("the detail has no %q: %s", want, e.Detail)
		}
	}
	if got := a.header.Get("Content-Type"); got != "application/xml; charset=utf-8" {
		t.Errorf("the error is of the type %q", got)
	}
}

// TestContentTypes holds answers to the types that clients ask for.
func TestContentTypes(t *testing.T) {
	f := newFixture(t, nil)
	f.orders()
	for path, want := range map[string]string{
		"/orders":            "application/atom+xml;type=entry;charset=utf-8",
		"/$namespaceinfo":    "application/atom+xml;type=entry;charset=utf-8",
		"/$Resources/Queues": "application/atom+xml;type=feed;charset=utf-8",
		"/health":            "text/plain; charset=utf-8",
	} {
		if got := f.must(http.MethodGet, path, "").header.Get("Content-Type"); got != want {
			t.Errorf("%s is of the type %q, want %q", path, got, want)
		}
	}
}

// TestAfterDelete finds nothing of what was deleted, nor of what belonged to it.
func TestAfterDelete(t *testing.T) {
	f := newFixture(t, nil)
	f.orders()
	f.must("DELETE", "/events", "")
	for _, path := range []string{"/events", "/events/Subscriptions", "/events/Subscriptions/all", "/events/Subscriptions/all/Rules", "/events/Subscriptions/all/Rules/big"} {
		if a := f.do("GET", path, ""); a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := f.do("PUT", "/events", queueBody("")); a.status != http.StatusCreated {
		t.Errorf("the name is still taken: %d %s", a.status, a.body)
	}
}

// TestAtOnce makes and deletes an entity from many sides: each time one of them succeeds.
func TestAtOnce(t *testing.T) {
	f := newFixture(t, nil)
	for range 20 {
		for _, step := range []struct {
			method string
			status int
		}{{"PUT", http.StatusCreated}, {"DELETE", http.StatusOK}} {
			const sides = 8
			got := make(chan int)
			for range sides {
				go func() { got <- f.do(step.method, "/orders", queueBody("")).status }()
			}
			n := 0
			for range sides {
				if <-got == step.status {
					n++
				}
			}
			if n != 1 {
				t.Fatalf("%d of %d requests to %s succeeded, want 1", n, sides, step.method)
			}
		}
	}
}
