package atomd

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"dlq/backends/broker"
)

// TestUpdatesKeepWhatTheyLeaveOut changes one setting, and nothing else.
func TestUpdatesKeepWhatTheyLeaveOut(t *testing.T) {
	f := newFixture(t, nil)
	f.must("PUT", "/sink", queueBody(""))
	before := f.must("PUT", "/orders", queueBody(everyQueue)).body
	f.now = f.now.Add(time.Second)
	after := f.must("PUT", "/orders", queueBody(""), "If-Match", "*").body
	const updated = "<UpdatedAt>2024-01-31T17:32:0%d.1230000Z</UpdatedAt>"
	want := strings.ReplaceAll(before, fmt.Sprintf(updated, 0), fmt.Sprintf(updated, 1))
	want = strings.Replace(want, "<updated>2024-01-31T17:32:00Z", "<updated>2024-01-31T17:32:01Z", 1)
	if after != want {
		t.Errorf("an empty update made\n%s\nof\n%s", after, want)
	}
	f.must("PUT", "/orders", queueBody("<ForwardDeadLetteredMessagesTo/><UserMetadata></UserMetadata><Status>Active</Status>"), "If-Match", `"etag"`)
	got := f.must("GET", "/orders", "").body
	if strings.Contains(got, "Forward") || !strings.Contains(got, "<UserMetadata></UserMetadata>") || !strings.Contains(got, "<Status>Active</Status>") {
		t.Errorf("after taking back: %s", got)
	}
}

// TestTextsAreGivenBack returns durations and destinations in the words in which they came, as
// long as they mean what holds.
func TestTextsAreGivenBack(t *testing.T) {
	f := newFixture(t, nil)
	f.must("PUT", "/team/sink", queueBody(""))
	given := []string{
		"<LockDuration>PT0H4M</LockDuration>", "<DefaultMessageTimeToLive>P10675199DT2H48M5.4775807S</DefaultMessageTimeToLive>",
		"<AutoDeleteOnIdle>PT120H</AutoDeleteOnIdle>", "<ForwardTo>https://contoso.example:5671/Team%2Fsink</ForwardTo>",
	}
	f.must("PUT", "/orders", queueBody(strings.Join(given, "")))
	for _, text := range given {
		if got := f.must("GET", "/orders", "").body; !strings.Contains(got, text) {
			t.Errorf("%s is not given back in %s", text, got)
		}
	}
	info, err := f.engine.Entity("orders")
	if err != nil || info.LockDuration != 4*time.Minute || info.DefaultTTL != 0 || !strings.EqualFold(info.ForwardTo, "team/sink") {
		t.Fatalf("the engine has %+v, %v", info.Properties, err)
	}
	if err := f.engine.Change("orders", func(p *broker.Properties) error {
		p.LockDuration, p.ForwardTo = 30*time.Second, ""
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	got := f.must("GET", "/orders", "").body
	if !strings.Contains(got, "<LockDuration>PT30S</LockDuration>") || strings.Contains(got, "ForwardTo") {
		t.Errorf("what was changed elsewhere is not shown: %s", got)
	}
	long := "<LockDuration>PT" + strings.Repeat("0", maxKept) + "45S</LockDuration>"
	if got := f.must("PUT", "/orders", queueBody(long), "If-Match", "*").body; !strings.Contains(got, "<LockDuration>PT45S</LockDuration>") {
		t.Errorf("a long text came back in %s", got)
	}
}

// TestPartitions multiplies the size of a partitioned entity once, and takes it back as it gave
// it out.
func TestPartitions(t *testing.T) {
	f := newFixture(t, nil)
	const size = "<MaxSizeInMegabytes>%d</MaxSizeInMegabytes>"
	a := f.must("PUT", "/orders", queueBody("<EnablePartitioning>true</EnablePartitioning>"+fmt.Sprintf(size, 4096)))
	if !strings.Contains(a.body, fmt.Sprintf(size, 65536)) || !strings.Contains(a.body, "<SupportOrdering>false</SupportOrdering>") {
		t.Fatalf("created: %s", a.body)
	}
	for _, tt := range []struct{ put, want int }{{65536, 65536}, {1024, 16384}, {16384, 16384}} {
		a := f.must("PUT", "/orders", queueBody(fmt.Sprintf(size, tt.put)), "If-Match", "*")
		if !strings.Contains(a.body, fmt.Sprintf(size, tt.want)) {
			t.Errorf("%d became %s", tt.put, a.body)
		}
	}
	// An entity without a bound says the largest, and keeps none when that is put.
	if err := f.engine.Create("free", broker.Queue, func() broker.Properties {
		p := broker.Defaults(broker.Queue, broker.ServiceBus)
		p.MaxSize = 0
		return p
	}()); err != nil {
		t.Fatal(err)
	}
	f.must("PUT", "/free", f.must("GET", "/free", "").body, "If-Match", "*")
	if info, err := f.engine.Entity("free"); err != nil || info.MaxSize != 0 {
		t.Errorf("it has the size %d, %v", info.MaxSize, err)
	}
}

// narrow is a tier with room for two entities, short locks and no topics.
type narrow struct{}

func (narrow) Defaults(kind broker.Kind) broker.Properties {
	p := broker.Defaults(kind, broker.ServiceBus)
	if kind == broker.Queue {
		p.MaxDeliveryCount = 3
	}
	return p
}

func (narrow) Check(kind broker.Kind, p *broker.Properties) error {
	if kind != broker.Queue || p.LockDuration > time.Minute {
		return fmt.Errorf("%w: not in this tier", broker.ErrInvalid)
	}
	return nil
}

func (narrow) Room(_ broker.Kind, name string, all []broker.Info) error {
	if len(all) >= 2 {
		return errors.New("no room for " + name)
	}
	return nil
}

func (narrow) RoomForRule(filter broker.FilterKind, sql, correlation int64) error {
	if filter == broker.CorrelationFilter && correlation >= 1 || filter != broker.CorrelationFilter && sql >= 3 {
		return errors.New("no room for a rule")
	}
	return nil
}

// TestRoomForRules counts the rules of all subscriptions of a topic by their filters.
func TestRoomForRules(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Tier = narrow{} })
	f.engineOrders()
	if err := f.engine.Create("events/Subscriptions/more", broker.Subscription, broker.Defaults(broker.Subscription, broker.ServiceBus)); err != nil {
		t.Fatal(err)
	}
	const sql, correlation = `<Filter i:type="SqlFilter"><SqlExpression>a = 1</SqlExpression></Filter>`, `<Filter i:type="CorrelationFilter"><To>t</To></Filter>`
	for _, tt := range []struct {
		path, filter string
		status       int
	}{
		{"/events/Subscriptions/all/Rules/a", sql, http.StatusCreated},
		{"/EVENTS/subscriptions/more/Rules/b", sql, http.StatusForbidden},
		{"/events/Subscriptions/more/Rules/c", correlation, http.StatusCreated},
		{"/events/Subscriptions/all/Rules/d", correlation, http.StatusForbidden},
	} {
		if a := f.do("PUT", tt.path, ruleBody(tt.filter)); a.status != tt.status {
			t.Errorf("%s: %d %s, want %d", tt.path, a.status, a.body, tt.status)
		}
	}
	f.must("PUT", "/events/Subscriptions/all/Rules/a", ruleBody(sql), "If-Match", "*")
}

// TestTier asks the tier for defaults, for what it allows, and for room.
func TestTier(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Tier = narrow{} })
	if a := f.must("PUT", "/one", queueBody("")); !strings.Contains(a.body, "<MaxDeliveryCount>3<") {
		t.Errorf("the defaults are not the tier's: %s", a.body)
	}
	f.must("PUT", "/two", queueBody(""))
	for _, tt := range []struct {
		path, body string
		update     bool
		status     int
		text       string
	}{
		{"/three", queueBody(""), false, http.StatusForbidden, "SubCode=40300. no room for three."},
		{"/one", queueBody("<LockDuration>PT2M</LockDuration>"), true, http.StatusBadRequest, "not in this tier"},
		{"/one", queueBody(""), false, http.StatusConflict, "SubCode=40900"},
	} {
		var headers []string
		if tt.update {
			headers = []string{"If-Match", "*"}
		}
		if a := f.do("PUT", tt.path, tt.body, headers...); a.status != tt.status || !strings.Contains(a.body, tt.text) {
			t.Errorf("%s: %d %s, want %d %s", tt.path, a.status, a.body, tt.status, tt.text)
		}
	}
	f.must("DELETE", "/two", "")
	if a := f.do("PUT", "/topic", topicBody("")); a.status != http.StatusBadRequest {
		t.Errorf("a topic: %d %s", a.status, a.body)
	}
}

// TestFault answers as the fault says, before anything has happened.
func TestFault(t *testing.T) {
	var asked []string
	f := newFixture(t, func(o *Options) {
		o.Fault = func(entity string) (int, time.Duration) {
			asked = append(asked, entity)
			if len(asked) == 1 {
				return http.StatusServiceUnavailable, time.Nanosecond
			}
			return 0, 0
		}
	})
	a := f.do("PUT", "/orders", queueBody(""))
	if a.status != http.StatusServiceUnavailable {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	checkError(t, a)
	f.must("GET", "/health", "")
	f.must("PUT", "/orders", queueBody(""))
	if want := "orders orders"; strings.Join(asked, " ") != want {
		t.Errorf("the fault was asked for %q, want %q", asked, want)
	}
}
