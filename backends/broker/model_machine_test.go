package broker

import (
	"encoding/binary"
	"fmt"
	"hash"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dlq/backends/broker/store"
	"dlq/backends/message"
	"dlq/backends/sqlfilter"
)

// machine runs the engine and the reference model side by side.
type machine struct {
	fs    *vfs.MemFS
	e     *Engine
	tx    *Transaction // that is open, beside the model's
	ref   *ref
	bug   string // that the engine is asked to have
	now   time.Time
	made  int // messages
	ids   uint64
	steps int
	// durable: something was acknowledged since it was last looked at, and with it everything
	// before is on disk.
	durable bool
	specs   []spec // of every entity that there is, or was
	trace   hash.Hash
}

// spec is what an entity is made of.
type spec struct {
	name  string
	kind  Kind
	p     Properties
	rules []refRule
}

func newMachine(t *rapid.T, bug string) *machine {
	m := &machine{fs: vfs.NewCrashableMem(), now: epoch, bug: bug, ref: &ref{now: epoch, facts: map[string]int{}}}
	m.open(t)
	for _, s := range world(t) {
		m.specs = append(m.specs, s)
		m.create(t, s)
	}
	m.closeRing(t)
	return m
}

func (m *machine) open(t judge) {
	s, err := store.Open(m.fs, "data")
	if err != nil {
		t.Fatal(err)
	}
	m.e, err = Open(Options{Store: s, Now: func() time.Time { return m.now }, NewID: m.newID})
	if err != nil {
		t.Fatal(err)
	}
	m.e.sabotage = m.bug
}

// newID counts, so that one seed replays one history.
func (m *machine) newID() (id message.UUID) {
	m.ids++
	binary.BigEndian.PutUint64(id[8:], m.ids)
	return id
}

func (m *machine) create(t *rapid.T, s spec) {
	rules := make([]Rule, len(s.rules))
	for i, r := range s.rules {
		rules[i] = r.Rule
	}
	if err := m.e.Create(s.name, s.kind, s.p, rules...); err != nil {
		t.Fatalf("create %s: %v", s.name, err)
	}
	m.ref.create(s.name, s.kind, s.p, append([]refRule(nil), s.rules...)...)
	m.durable = true
}

// saw adds what the engine has shown to the trace, if one is kept.
func (m *machine) saw(format string, args ...any) {
	if m.trace != nil {
		_, _ = fmt.Fprintf(m.trace, format, args...) // a hash never fails
	}
}

// The entities of a run: one of these sets, with properties drawn at random. Each puts one
// part of the semantics at the centre, so that few steps reach deep into it.
func world(t *rapid.T) []spec {
	worlds := []func(*rapid.T) []spec{queuesWorld, queuesWorld, sessionWorld, topicWorld, forwardWorld, standardWorld, fifoWorld, mixedWorld}
	return worlds[rapid.IntRange(0, len(worlds)-1).Draw(t, "world")](t)
}

func oneOf[T any](t *rapid.T, label string, values ...T) T {
	return values[rapid.IntRange(0, len(values)-1).Draw(t, label)]
}

func queueSpec(t *rapid.T, name string, change ...func(*Properties)) spec {
	p := Defaults(Queue, ServiceBus)
	p.LockDuration = oneOf(t, "lock", 5*time.Second, 30*time.Second)
	p.MaxDeliveryCount = oneOf(t, "deliveries", 1, 2, 3)
	p.DefaultTTL = oneOf(t, "ttl", 0, 0, 40*time.Second)
	p.DeadLetterOnExpiration = rapid.Bool().Draw(t, "bury expired")
	for _, f := range change {
		f(&p)
	}
	return spec{name: name, kind: Queue, p: p}
}

func detecting(p *Properties) { p.DetectDuplicates, p.DuplicateWindow = true, 20*time.Second }
func sessions(p *Properties)  { p.RequiresSession = true }

func forwarding(to string) func(*Properties) { return func(p *Properties) { p.ForwardTo = to } }
func buryingIn(name string) func(*Properties) {
	return func(p *Properties) { p.ForwardDeadLettersTo = name }
}
func redriving(r Redrive) func(*Properties) { return func(p *Properties) { p.Redrive = r } }
func idle(after time.Duration) func(*Properties) {
	return func(p *Properties) { p.AutoDeleteOnIdle = after }
}

func queuesWorld(t *rapid.T) []spec {
	return []spec{queueSpec(t, "plain"), queueSpec(t, "once", detecting), queueSpec(t, "idle", idle(5*time.Minute))}
}

func sessionWorld(t *rapid.T) []spec {
	return []spec{queueSpec(t, "plain"), queueSpec(t, "talks", sessions), queueSpec(t, "talks-once", sessions, detecting)}
}

func topicSpec(t *rapid.T, name string, change ...func(*Properties)) spec {
	p := Defaults(Topic, ServiceBus)
	p.DefaultTTL = oneOf(t, "topic ttl", 0, 0, 30*time.Second)
	for _, f := range change {
		f(&p)
	}
	return spec{name: name, kind: Topic, p: p}
}

func subscriptionSpec(t *rapid.T, name string, rules []refRule, change ...func(*Properties)) spec {
	s := queueSpec(t, name)
	p := Defaults(Subscription, ServiceBus)
	p.LockDuration, p.MaxDeliveryCount, p.DefaultTTL, p.DeadLetterOnExpiration = s.p.LockDuration, s.p.MaxDeliveryCount, s.p.DefaultTTL, s.p.DeadLetterOnExpiration
	p.DeadLetterOnFilterError = rapid.Bool().Draw(t, "bury failed")
	for _, f := range change {
		f(&p)
	}
	return spec{name: name, kind: Subscription, p: p, rules: rules}
}

func topicWorld(t *rapid.T) []spec {
	rules := ruleBook()
	top := topicSpec(t, "news")
	switch rapid.IntRange(0, 3).Draw(t, "topic") {
	case 0:
		top = topicSpec(t, "news", detecting)
	case 1:
		top = topicSpec(t, "news", func(p *Properties) { p.FilterBeforePublishing = true })
	}
	both := func(p *Properties) { p.RequiresSession, p.ForwardDeadLettersTo = true, "plain" }
	third := oneOf(t, "third", sessions, forwarding("plain"), buryingIn("plain"), both)
	return []spec{
		queueSpec(t, "plain"), top,
		subscriptionSpec(t, "news/Subscriptions/all", []refRule{rules[0]}),
		subscriptionSpec(t, "news/Subscriptions/some", []refRule{rules[2], rules[3], rules[5], rules[6]}),
		subscriptionSpec(t, "news/Subscriptions/third", []refRule{rules[4], rules[1]}, third),
	}
}

// forwardWorld has a chain that ends in a queue, a ring that does not end (see close), and
// dead letters that go elsewhere.
func forwardWorld(t *rapid.T) []spec {
	return []spec{
		queueSpec(t, "plain"), queueSpec(t, "once", detecting),
		queueSpec(t, "second", forwarding("once")), queueSpec(t, "first", forwarding("second")),
		queueSpec(t, "buries", buryingIn("plain")), queueSpec(t, "buries-far", buryingIn("first")),
		queueSpec(t, "talks", sessions, buryingIn("plain")),
		queueSpec(t, ringEnd), queueSpec(t, "ring", forwarding(ringEnd)),
	}
}

// ringEnd is a queue that forwards to the one that forwards to it, which is possible once both
// are there.
const ringEnd = "ring-end"

func (m *machine) closeRing(t *rapid.T) {
	end := m.ref.entity(ringEnd)
	if end == nil || end.p.ForwardTo != "" || m.ref.entity("ring") == nil {
		return
	}
	f := forwarding("ring")
	want(t, "close a ring", m.e.Change(ringEnd, func(p *Properties) error { f(p); return nil }), nil)
	f(&end.p)
}

func standard(t *rapid.T, name string, change ...func(*Properties)) spec {
	p := Defaults(Queue, SQS)
	p.LockDuration = oneOf(t, "visibility", 5*time.Second, 30*time.Second)
	p.Retention = oneOf(t, "retention", time.Minute, time.Hour)
	p.Delay = oneOf(t, "delay", 0, 0, 10*time.Second)
	p.MaxInFlight = oneOf(t, "in flight", p.MaxInFlight, 3)
	for _, f := range change {
		f(&p)
	}
	return spec{name: name, kind: Queue, p: p}
}

func ymq(p *Properties) {
	p.RedriveKeepsAge, p.RedriveKeepsCount, p.GroupHeadOnly = false, false, p.Groups
}

func standardWorld(t *rapid.T) []spec {
	most := rapid.IntRange(1, 3).Draw(t, "receives")
	return []spec{
		standard(t, "dead"), standard(t, "orders", redriving(Redrive{"dead", most})),
		standard(t, "yandex", redriving(Redrive{"dead", most}), ymq),
	}
}

func fifo(p *Properties) {
	p.Groups, p.DetectDuplicates, p.DeduplicationID, p.StaleTokens, p.RedriveKeepsAge = true, true, true, false, false
	p.DuplicateWindow = 5 * time.Minute
}

func fifoWorld(t *rapid.T) []spec {
	content := rapid.Bool().Draw(t, "by content")
	perGroup := rapid.Bool().Draw(t, "per group")
	change := func(p *Properties) { p.ContentDeduplication, p.DeduplicationPerGroup = content, perGroup }
	most := rapid.IntRange(1, 3).Draw(t, "receives")
	return []spec{
		standard(t, "dead.fifo", fifo, change), standard(t, "orders.fifo", fifo, change, redriving(Redrive{"dead.fifo", most})),
		standard(t, "yandex.fifo", fifo, change, ymq),
	}
}

func mixedWorld(t *rapid.T) []spec {
	return []spec{
		queueSpec(t, "plain"), queueSpec(t, "talks", sessions), queueSpec(t, "first", forwarding("plain")),
		topicSpec(t, "news"), subscriptionSpec(t, "news/Subscriptions/all", ruleBook()[:1]), standard(t, "orders"), standard(t, "orders.fifo", fifo),
	}
}

// ruleBook is every rule of the model with what it means.
func ruleBook() []refRule {
	number := func(m *message.Message) (int32, bool) {
		v, _ := m.Properties.Get("n")
		n, ok := v.(message.Int)
		return int32(n), ok
	}
	colour := func(m *message.Message) (string, bool) {
		v, _ := m.Properties.Get("colour")
		s, ok := v.(message.String)
		return string(s), ok
	}
	always := func(*message.Message) (bool, bool) { return true, false }
	red, label := message.String("red"), "x"
	return []refRule{
		{Rule{Name: "all", Filter: Filter{Kind: TrueFilter}}, always, nil},
		{Rule{Name: "none", Filter: Filter{Kind: FalseFilter}}, func(*message.Message) (bool, bool) { return false, false }, nil},
		{
			Rule{Name: "high", Filter: Filter{Kind: SQLFilter, SQL: "n > @least", Params: map[string]message.Value{"@least": message.Int(5)}}},
			func(m *message.Message) (bool, bool) { n, ok := number(m); return ok && n > 5, false }, nil,
		},
		{
			Rule{Name: "like", Filter: Filter{Kind: SQLFilter, SQL: "colour LIKE 'r%' OR sys.Label = 'x' AND colour IS NULL"}},
			func(m *message.Message) (bool, bool) {
				c, ok := colour(m)
				return ok && c[0] == 'r' || message.Str(m.Subject) == "x" && !ok, false
			}, nil,
		},
		{
			Rule{Name: "labelled", Filter: Filter{Kind: CorrelationFilter, Correlation: sqlfilter.Correlation{
				Subject: &label, Properties: message.Properties{{Name: "colour", Value: red}},
			}}},
			func(m *message.Message) (bool, bool) {
				c, _ := colour(m)
				return message.Str(m.Subject) == "x" && c == "red", false
			}, nil,
		},
		{
			Rule{Name: "act", Filter: Filter{Kind: SQLFilter, SQL: "EXISTS(n) AND n < 5"}, Action: "SET sys.Label = 'acted'; SET n = n + 1; REMOVE colour"},
			func(m *message.Message) (bool, bool) { n, ok := number(m); return ok && n < 5, false },
			func(m *message.Message) {
				acted := "acted"
				m.Subject = &acted
				n, _ := number(m)
				m.Properties.Set("n", message.Int(n+1))
				m.Properties.Delete("colour")
			},
		},
		{
			Rule{Name: "fails", Filter: Filter{Kind: SQLFilter, SQL: "n / 0 > 1"}},
			func(m *message.Message) (bool, bool) { _, ok := number(m); return false, ok }, nil,
		},
	}
}
