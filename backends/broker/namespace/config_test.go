package namespace

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/broker/store"
	"dlq/backends/message"
)

func tier(t testing.TB, name string) Tier {
	t.Helper()
	tr, err := TierNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// engine opens an empty engine in memory.
func engine(t *testing.T) *broker.Engine {
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
	return e
}

func parseFile(t *testing.T, name string, tr Tier) *Config {
	t.Helper()
	src, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig(src, tr)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// inNamespace is a file around what a namespace holds.
func inNamespace(inside string) string {
	return `{"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", ` + inside + `}]}}`
}

// apply parses a file and applies it.
func apply(t *testing.T, e *broker.Engine, tr Tier, src string) []string {
	t.Helper()
	c, err := ParseConfig([]byte(src), tr)
	if err != nil {
		t.Fatal(err)
	}
	report, err := c.Apply(e, tr)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestConfigOfTheEmulator: what its users have is read as it is, under its limits and without
// any.
func TestConfigOfTheEmulator(t *testing.T) {
	for _, limits := range []string{"emulator", "none", "standard", "premium"} {
		t.Run(limits, func(t *testing.T) {
			e, tr := engine(t), tier(t, limits)
			c := parseFile(t, "emulator.json", tr)
			report, err := c.Apply(e, tr)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{
				"queue queue.1 created", "queue forwarding created", "topic topic.1 created",
				"subscription topic.1/Subscriptions/correlated created", "subscription topic.1/Subscriptions/everything created",
				"subscription topic.1/Subscriptions/expressed created",
			}
			same(t, want, report)
			forwarding := entity(t, e, "forwarding")
			if forwarding.ForwardTo != "topic.1" || forwarding.ForwardDeadLettersTo != "queue.1" {
				t.Errorf("it forwards to %q and %q", forwarding.ForwardTo, forwarding.ForwardDeadLettersTo)
			}
			s := entity(t, e, "topic.1/Subscriptions/correlated")
			if s.LockDuration != 5*time.Minute || s.MaxDeliveryCount != 10 || !s.RequiresSession {
				t.Errorf("the subscription has %+v", s.Properties)
			}
			rules, err := e.Rules("topic.1/Subscriptions/correlated")
			if err != nil || len(rules) != 1 || message.Str(rules[0].Filter.Correlation.Subject) != "subject1" || len(rules[0].Filter.Correlation.Properties) != 1 {
				t.Errorf("its rules are %+v, %v", rules, err)
			}
			again, err := c.Apply(e, tr)
			if err != nil || len(again) != 0 {
				t.Errorf("applied again it did %q, %v", again, err)
			}
		})
	}
}

func entity(t *testing.T, e *broker.Engine, name string) broker.Info {
	t.Helper()
	info, err := e.Entity(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestDefaultsOfTheEmulator: with its limits an entity of which nothing is said has its
// defaults, otherwise the service's.
func TestDefaultsOfTheEmulator(t *testing.T) {
	for limits, want := range map[string]broker.Properties{
		"emulator": {DefaultTTL: time.Hour, LockDuration: time.Minute, MaxDeliveryCount: 3, DuplicateWindow: 20 * time.Second, MaxMessageBytes: 256 << 10, MaxSize: 100 << 20},
		"standard": {LockDuration: time.Minute, MaxDeliveryCount: 10, DuplicateWindow: 10 * time.Minute, MaxMessageBytes: 256 << 10, MaxSize: 1 << 30},
		"basic":    {DefaultTTL: 14 * 24 * time.Hour, LockDuration: time.Minute, MaxDeliveryCount: 10, DuplicateWindow: 10 * time.Minute, MaxMessageBytes: 256 << 10, MaxSize: 1 << 30},
		"none":     {LockDuration: time.Minute, MaxDeliveryCount: 10, DuplicateWindow: 10 * time.Minute, MaxMessageBytes: 100 << 20, MaxSize: 1 << 30},
	} {
		t.Run(limits, func(t *testing.T) {
			e := engine(t)
			apply(t, e, tier(t, limits), inNamespace(`"Queues": [{"Name": "q"}]`))
			p := entity(t, e, "q").Properties
			got := broker.Properties{
				DefaultTTL: p.DefaultTTL, LockDuration: p.LockDuration, MaxDeliveryCount: p.MaxDeliveryCount,
				DuplicateWindow: p.DuplicateWindow, MaxMessageBytes: p.MaxMessageBytes, MaxSize: p.MaxSize,
			}
			same(t, want, got)
		})
	}
}

// TestShortWindowOfTheEmulator: it remembers ids for less long than the service can be told to.
func TestShortWindowOfTheEmulator(t *testing.T) {
	e := engine(t)
	apply(t, e, tier(t, "emulator"), inNamespace(`"Queues": [{"Name": "q", "Properties": {"DuplicateDetectionHistoryTimeWindow": "PT5S", "RequiresDuplicateDetection": true}}]`))
	if w := entity(t, e, "q").DuplicateWindow; w != 5*time.Second {
		t.Errorf("it remembers for %s", w)
	}
}

// TestConfigSaysMore: what the official emulator's file has no word for.
func TestConfigSaysMore(t *testing.T) {
	e, tr := engine(t), tier(t, "none")
	c := parseFile(t, "more.json", tr)
	if _, err := c.Apply(e, tr); err != nil {
		t.Fatal(err)
	}
	if len(c.Keys) != 2 {
		t.Fatalf("there are the keys %v", c.Keys)
	}
	everywhere, worker := c.Keys[0], c.Keys[1]
	if everywhere.Name != "NoManage" || everywhere.Entity != "" || everywhere.Rights != sas.Listen|sas.Send ||
		!everywhere.Primary.Matches("first") || !everywhere.Secondary.Matches("second") {
		t.Errorf("the key of the namespace is %+v", everywhere)
	}
	if worker.Name != "worker" || worker.Entity != "orders/eu" || worker.Rights != sas.Listen || !worker.Primary.Matches("third") || worker.Secondary.Matches("") {
		t.Errorf("the key of the queue is %+v", worker)
	}
	same(t, "acme", c.Namespace)
	q := entity(t, e, "orders/eu")
	if q.Status != broker.SendDisabled || q.AutoDeleteOnIdle != 10*time.Minute || q.MaxSize != 2<<30 || q.MaxMessageBytes != 512<<10 ||
		q.UserMetadata != "made by a test" || q.LockDuration != 30*time.Second || q.DefaultTTL != 0 {
		t.Errorf("the queue has %+v", q.Properties)
	}
	rules, err := e.Rules("events/Subscriptions/s")
	if err != nil || len(rules) != 4 {
		t.Fatalf("rules %+v, %v", rules, err)
	}
	typed := rules[3].Filter.Correlation.Properties
	want := message.Properties{
		{Name: "text", Value: message.String("a")},
		{Name: "long", Value: message.Long(5)},
		{Name: "double", Value: message.Double(2.5)},
		{Name: "yes", Value: message.Bool(true)},
		{Name: "int", Value: message.Int(7)},
		{Name: "id", Value: message.UUID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
	}
	same(t, want, typed)
}

// TestConfigChangesWhatIsThere: messages stay, what can be changed is, what cannot is told, and
// nothing that the file does not name is touched.
func TestConfigChangesWhatIsThere(t *testing.T) {
	e, tr := engine(t), tier(t, "none")
	apply(t, e, tr, inNamespace(`
		"Queues": [{"Name": "orders", "Properties": {"MaxDeliveryCount": 5}}, {"Name": "other"}],
		"Topics": [{"Name": "events", "Subscriptions": [
			{"Name": "s", "Rules": [{"Name": "a"}, {"Name": "b", "Properties": {"SqlFilter": {"SqlExpression": "n = 1"}}}]},
			{"Name": "default"}]}]`))
	if _, err := e.Send(broker.Address{Name: "orders"}, []*message.Message{{}}); err != nil {
		t.Fatal(err)
	}
	report := apply(t, e, tr, inNamespace(`
		"Queues": [{"Name": "Orders", "Properties": {"LockDuration": "PT30S", "RequiresSession": true, "ForwardTo": "new"}}, {"Name": "new"}],
		"Topics": [{"Name": "events", "Subscriptions": [
			{"Name": "s", "Rules": [{"Name": "B", "Properties": {"SqlFilter": {"SqlExpression": "n = 2"}}}, {"Name": "c"}]},
			{"Name": "default"}]}]`))
	want := []string{
		"queue new created",
		"orders: RequiresSession is fixed when a queue is created and stays false; the file says true",
		"orders: LockDuration is now PT30S, was PT1M",
		"orders: ForwardTo is now new, was none",
		"rule B changed in events/Subscriptions/s",
		"rule c added to events/Subscriptions/s",
		"rule a removed from events/Subscriptions/s",
	}
	same(t, want, report)
	orders := entity(t, e, "orders")
	if orders.MaxDeliveryCount != 5 || orders.LockDuration != 30*time.Second {
		t.Errorf("orders has %+v", orders.Properties)
	}
	if err := e.Tick(); err != nil {
		t.Fatal(err)
	}
	if n := entity(t, e, "new").Active; n != 1 {
		t.Errorf("the message of orders was not forwarded: new holds %d", n)
	}
	entity(t, e, "other")
	if rules, err := e.Rules("events/Subscriptions/default"); err != nil || len(rules) != 1 || rules[0].Name != broker.DefaultRule {
		t.Errorf("a subscription without rules in the file has %+v, %v", rules, err)
	}
}

func TestConfigRefuses(t *testing.T) {
	queue := func(properties string) string {
		return inNamespace(`"Queues": [{"Name": "q", "Properties": {` + properties + `}}]`)
	}
	rule := func(properties string) string {
		return inNamespace(`"Topics": [{"Name": "t", "Subscriptions": [{"Name": "s", "Rules": [{"Name": "r", "Properties": {` + properties + `}}]}]}]`)
	}
	for _, c := range []struct{ name, limits, src, want string }{
		{"nothing", "none", ``, "line 1, column 1: the file ends where a value is missing"},
		{"no namespace", "none", `{"UserConfig": {}}`, "there is no UserConfig with Namespaces"},
		{"two namespaces", "none", `{"UserConfig": {"Namespaces": [{"Name": "a"}, {"Name": "b"}]}}`, "line 1, column 47: there is one namespace"},
		{"a typing error", "none", "{\n  \"UserConfg\": {}\n}", `line 2, column 3: there is no "UserConfg" here; did you mean UserConfig?`},
		{"a property's typing error", "none", queue(`"LockDuraton": "PT1M"`), "no property is named \"LockDuraton\"; the nearest is LockDuration"},
		{"a property of others", "none", queue(`"VisibilityTimeout": "30"`), "VisibilityTimeout"},
		{"a duration", "none", queue(`"LockDuration": "1 minute"`), "want a duration such as 30s, 5m, PT30S"},
		{"a range", "none", queue(`"LockDuration": "PT6M"`), "PT5S to PT5M"},
		{"a range of the emulator", "emulator", queue(`"DefaultMessageTimeToLive": "P1D"`), "DefaultMessageTimeToLive P1D is out of range: PT5M to PT1H with --limits emulator"},
		{"a count of the emulator", "emulator", queue(`"MaxDeliveryCount": 11`), "MaxDeliveryCount 11 is out of range: 1 to 10"},
		{"a window of the service", "standard", queue(`"DuplicateDetectionHistoryTimeWindow": "PT5S"`), "PT20S to P7D"},
		{"a size", "standard", queue(`"MaxSizeInMegabytes": 1500`), "The specified value 1500 is invalid. The property 'MaxSizeInMegabytes', must be one of the following values: 1024;2048;"},
		{"a message size", "standard", queue(`"MaxMessageSizeInKilobytes": 1024`), "cannot be chosen: it is 256"},
		{"a topic of Basic", "basic", inNamespace(`"Topics": [{"Name": "t"}]`), "no topics and subscriptions with --limits basic"},
		{"a session of Basic", "basic", queue(`"RequiresSession": true`), "there is no RequiresSession with --limits basic"},
		{"two of a name", "none", inNamespace(`"Queues": [{"Name": "q"}, {"Name": "Q"}]`), "Q stands here twice"},
		{"no name", "none", inNamespace(`"Queues": [{}]`), "Name is missing"},
		{"properties that are text", "none", inNamespace(`"Queues": [{"Name": "q", "Properties": "x"}]`), "want an object in braces, not text"},
		{"a property that is a list", "none", queue(`"LockDuration": []`), "want a value of LockDuration, not a list"},
		{"a member twice", "none", queue(`"LockDuration": "PT1M", "lockduration": "PT1M"`), `"lockduration" stands here twice`},
		{"a filter", "none", rule(`"SqlFilter": {"SqlExpression": "n ="}`), "rule r: "},
		{"a property that no message has", "none", rule(`"SqlFilter": {"SqlExpression": "sys.Lable = 'a'"}`), "sys.Label"},
		{"an action", "none", rule(`"Action": {"SqlExpression": "SET"}`), "the action of rule r: "},
		{"no expression", "none", rule(`"FilterType": "Sql"`), "SqlFilter is missing"},
		{"no correlation", "none", rule(`"FilterType": "Correlation"`), "CorrelationFilter is missing"},
		{"two filters", "none", rule(`"SqlFilter": {"SqlExpression": "1=1"}, "CorrelationFilter": {"To": "x"}`), "exclude each other"},
		{"a kind of filter", "none", rule(`"FilterType": "Xpath"`), `"Xpath" is no FilterType; there are Sql`},
		{"a type", "none", rule(`"CorrelationFilter": {"Properties": {"n": {"Type": "int128", "Value": "5"}}}`), `"int128" is no type of AMQP`},
		{"a value", "none", rule(`"CorrelationFilter": {"Properties": {"n": {"Type": "int", "Value": "x"}}}`), "column"},
		{"a right", "none", inNamespace(`"AuthorizationRules": [{"Name": "k", "Rights": ["Read"], "PrimaryKey": "p"}]`), `"Read" is not a right; use Manage, Send or Listen`},
		{"no rights", "none", inNamespace(`"AuthorizationRules": [{"Name": "k", "PrimaryKey": "p"}]`), "Rights are missing"},
		{"no key", "none", inNamespace(`"AuthorizationRules": [{"Name": "k", "Rights": ["Send"]}]`), "PrimaryKey is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseConfig([]byte(c.src), tier(t, c.limits))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want …%s…", err, c.want)
			}
			var where *SyntaxError
			if !errors.As(err, &where) || where.Line < 1 || where.Column < 1 {
				t.Errorf("%v names no place", err)
			}
		})
	}
}

// TestApplyRefuses: what only shows at the engine names its place too.
func TestApplyRefuses(t *testing.T) {
	for _, c := range []struct{ name, limits, src, want string }{
		{"nowhere to forward", "none", inNamespace(`"Queues": [{"Name": "q", "Properties": {"ForwardTo": "nowhere"}}]`), "q: invalid argument: there is no queue or topic nowhere"},
		{"a name", "none", inNamespace(`"Queues": [{"Name": "q q"}]`), `' ' in the name "q q"`},
		{"another kind", "none", inNamespace(`"Topics": [{"Name": "old"}]`), "it is a queue already"},
		{"too many", "emulator", inNamespace(`"Queues": [` + strings.TrimSuffix(manyQueues(51), ",") + `]`), "at most 50 queues and topics with --limits emulator"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, tr := engine(t), tier(t, c.limits)
			if c.limits == "none" {
				apply(t, e, tr, inNamespace(`"Queues": [{"Name": "old"}]`))
			}
			config, err := ParseConfig([]byte(c.src), tr)
			if err != nil {
				t.Fatal(err)
			}
			_, err = config.Apply(e, tr)
			var where *SyntaxError
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &where) {
				t.Errorf("got %v, want …%s…", err, c.want)
			}
		})
	}
}

func manyQueues(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`{"Name": "q` + strings.Repeat("x", i) + `"},`)
	}
	return b.String()
}
