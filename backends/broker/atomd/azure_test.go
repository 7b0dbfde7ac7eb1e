package atomd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker"
	"dlq/backends/broker/store"
)

// newServer serves an engine in memory over TLS, and returns a client of the Azure SDK for Go.
func newServer(t *testing.T, change func(*Options)) (*broker.Engine, *httptest.Server, *admin.Client) {
	t.Helper()
	s, err := store.Open(vfs.NewMem(), "data")
	if err != nil {
		t.Fatal(err)
	}
	e, err := broker.Open(broker.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	o := Options{Engine: e}
	if change != nil {
		change(&o)
	}
	srv := httptest.NewTLSServer(New(o))
	t.Cleanup(srv.Close)
	client, err := admin.NewClientFromConnectionString("Endpoint=sb://"+strings.TrimPrefix(srv.URL, "https://")+
		";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE",
		&admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: srv.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	return e, srv, client
}

func TestAzureQueue(t *testing.T) {
	_, _, client := newServer(t, nil)
	ctx := context.Background()
	if _, err := client.CreateQueue(ctx, "team/orders", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		LockDuration: to.Ptr("PT45S"), DefaultMessageTimeToLive: to.Ptr("PT6H"), UserMetadata: to.Ptr("<mine & yours>"),
	}}); err != nil {
		t.Fatal(err)
	}
	got, err := client.GetQueue(ctx, "team/orders", nil)
	if err != nil || got == nil {
		t.Fatal(got, err)
	}
	if *got.LockDuration != "PT45S" || *got.DefaultMessageTimeToLive != "PT6H" || *got.UserMetadata != "<mine & yours>" || *got.MaxDeliveryCount != 10 {
		t.Errorf("the queue came back as %+v", got.QueueProperties)
	}
	if missing, err := client.GetQueue(ctx, "none", nil); err != nil || missing != nil {
		t.Errorf("a queue that is missing came as %v, %v", missing, err)
	}
	if _, err := client.DeleteQueue(ctx, "team/orders", nil); err != nil {
		t.Error(err)
	}
}

// same checks that a client got what it gave.
func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		w, _ := json.Marshal(want) // both are for reading alone
		g, _ := json.Marshal(got)
		t.Errorf("%s came back as\n%s\nwant\n%s", what, g, w)
	}
}

// TestAzureRules gives filters and actions of every kind back with the types of their values.
func TestAzureRules(t *testing.T) {
	_, _, client := newServer(t, nil)
	ctx := context.Background()
	if _, err := client.CreateTopic(ctx, "events", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateSubscription(ctx, "events", "all", &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
		DefaultRule: &admin.RuleProperties{Name: "first", Filter: &admin.SQLFilter{Expression: "1 = 0"}},
	}}); err != nil {
		t.Fatal(err)
	}
	values := map[string]any{
		"@s": "it's <&>", "@i": int64(-7), "@f": 100.25, "@b": true, "@t": time.Date(2001, 1, 1, 1, 2, 3, 0, time.UTC),
	}
	rules := []admin.RuleProperties{
		{Name: "first", Filter: &admin.SQLFilter{Expression: "1 = 0"}},
		{
			Name: "sql", Filter: &admin.SQLFilter{Expression: "a = @s OR a = @i OR a = @f OR a = @b OR a = @t", Parameters: values},
			Action: &admin.SQLAction{Expression: "SET a = @s SET b = @i; REMOVE c", Parameters: values},
		},
		{Name: "correlation", Filter: &admin.CorrelationFilter{
			ContentType: to.Ptr("t"), CorrelationID: to.Ptr("c"), MessageID: to.Ptr("m"), ReplyTo: to.Ptr("r"), ReplyToSessionID: to.Ptr("rs"), SessionID: to.Ptr("s"),
			Subject: to.Ptr("l"), To: to.Ptr(""), ApplicationProperties: values,
		}},
		{Name: "true", Filter: &admin.TrueFilter{}},
		{Name: "false", Filter: &admin.FalseFilter{}},
	}
	for _, want := range rules {
		if want.Name != "first" {
			created, err := client.CreateRule(ctx, "events", "all", &admin.CreateRuleOptions{Name: &want.Name, Filter: want.Filter, Action: want.Action})
			if err != nil {
				t.Fatal(want.Name, err)
			}
			same(t, want.Name+", created", want, created.RuleProperties)
		}
		got, err := client.GetRule(ctx, "events", "all", want.Name, nil)
		if err != nil || got == nil {
			t.Fatal(want.Name, got, err)
		}
		same(t, want.Name, want, got.RuleProperties)
	}
	if _, err := client.UpdateRule(ctx, "events", "all", admin.RuleProperties{Name: "sql", Filter: &admin.FalseFilter{}}); err != nil {
		t.Fatal(err)
	}
	rules[1] = admin.RuleProperties{Name: "sql", Filter: &admin.FalseFilter{}}
	if _, err := client.DeleteRule(ctx, "events", "all", "true", nil); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int32{0, 1, 2, 4, 100} {
		got := map[string]admin.RuleProperties{}
		for pager := client.NewListRulesPager("events", "all", &admin.ListRulesOptions{MaxPageSize: size}); pager.More(); {
			page, err := pager.NextPage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Rules {
				got[r.Name] = r
			}
		}
		want := map[string]admin.RuleProperties{"first": rules[0], "sql": rules[1], "correlation": rules[2], "false": rules[4]}
		same(t, fmt.Sprintf("the list with pages of %d", size), want, got)
	}
}

// TestAzureUpdates sends back what it got with a change, as applications do.
func TestAzureUpdates(t *testing.T) {
	_, _, client := newServer(t, nil)
	ctx := context.Background()
	queue, err := client.CreateQueue(ctx, "orders", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{EnablePartitioning: to.Ptr(true), UserMetadata: to.Ptr("")}})
	if err != nil {
		t.Fatal(err)
	}
	topic, err := client.CreateTopic(ctx, "events", nil)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := client.CreateSubscription(ctx, "events", "all", nil)
	if err != nil {
		t.Fatal(err)
	}
	queue.MaxDeliveryCount, topic.Status, sub.LockDuration = to.Ptr(int32(3)), to.Ptr(admin.EntityStatusDisabled), to.Ptr("PT2M")
	queue.ForwardTo, sub.ForwardDeadLetteredMessagesTo = to.Ptr("sb://contoso/events"), to.Ptr("orders")
	if got, err := client.UpdateQueue(ctx, "orders", queue.QueueProperties, nil); err != nil {
		t.Error(err)
	} else {
		same(t, "the queue", queue.QueueProperties, got.QueueProperties)
	}
	if got, err := client.UpdateTopic(ctx, "events", topic.TopicProperties, nil); err != nil {
		t.Error(err)
	} else {
		same(t, "the topic", topic.TopicProperties, got.TopicProperties)
	}
	if got, err := client.UpdateSubscription(ctx, "events", "all", sub.SubscriptionProperties, nil); err != nil {
		t.Error(err)
	} else {
		same(t, "the subscription", sub.SubscriptionProperties, got.SubscriptionProperties)
	}
	var refused *azcore.ResponseError
	if _, err := client.UpdateQueue(ctx, "none", queue.QueueProperties, nil); !errors.As(err, &refused) || refused.StatusCode != http.StatusNotFound {
		t.Errorf("updating what is missing: %v", err)
	}
	runtime, err := client.GetTopicRuntimeProperties(ctx, "events", nil)
	if err != nil || runtime.SubscriptionCount != 1 || runtime.CreatedAt.IsZero() || runtime.SQLFilterCount != 1 {
		t.Errorf("the topic has %+v, %v", runtime, err)
	}
}
