package namespace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dlq/backends/broker"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	day = 24 * time.Hour

	// unbounded is a duration without end, as the engine holds one.
	unbounded = time.Duration(0)
)

// Tier is what a namespace allows, as the tiers of Azure Service Bus and the official emulator
// differ in it. A number that is 0 is not bounded. Sources:
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-premium-messaging
// https://learn.microsoft.com/azure/service-bus-messaging/overview-emulator
type Tier struct {
	Name string // none, basic, standard, premium or emulator
	SKU  string // how the management API calls it: Basic, Standard or Premium

	Entities           int // queues and topics in the namespace
	Subscriptions      int // of a topic
	SQLFilters         int // of a topic, true and false ones too
	CorrelationFilters int // of a topic
	Connections        int // AMQP connections at once

	MessageBytes int64 // a message, where the entity does not say less
	BatchBytes   int64 // a batch in one transfer
	DeleteBatch  int   // messages that one batch delete removes

	queuesOnly     bool     // no topics, sessions, duplicate detection or forwarding
	ownMessageSize bool     // an entity may have a MaxMessageSizeInKilobytes of its own
	sizes          []int64  // MaxSizeInMegabytes is one of these; nil: anything
	ttl            bounds   // DefaultMessageTimeToLive
	lock           bounds   // LockDuration
	window         bounds   // DuplicateDetectionHistoryTimeWindow
	deliveries     int      // MaxDeliveryCount is at most that
	standard       defaults // of what an entity does not say
}

// bounds are the least and the longest of a duration.
type bounds struct{ low, high time.Duration }

// defaults are those of the properties in which the tiers differ.
type defaults struct {
	size       int64
	ttl        time.Duration
	window     time.Duration
	deliveries int
}

// Tiers returns all tiers, the one without limits first.
func Tiers() []Tier {
	cloudWindow := bounds{20 * time.Second, 7 * day}
	lock := bounds{5 * time.Second, 5 * time.Minute}
	endless := bounds{time.Second, unbounded}
	cloud := defaults{size: 1024 * mib, ttl: unbounded, window: 10 * time.Minute, deliveries: 10}
	steps := []int64{1024 * mib, 2048 * mib, 3072 * mib, 4096 * mib, 5120 * mib}
	basic := cloud
	basic.ttl = 14 * day
	return []Tier{
		{
			Name: "none", SKU: "Premium",
			MessageBytes: 100 * mib, DeleteBatch: 4000,
			ownMessageSize: true, ttl: bounds{time.Millisecond, unbounded}, lock: lock, window: cloudWindow, deliveries: 2000, standard: cloud,
		},
		{
			Name: "basic", SKU: "Basic",
			Entities: 10_000, Connections: 5000, MessageBytes: 256 * kib, BatchBytes: 256 * kib, DeleteBatch: 500,
			queuesOnly: true, sizes: steps, ttl: bounds{time.Second, 14 * day}, lock: lock, window: cloudWindow, deliveries: 2000, standard: basic,
		},
		{
			Name: "standard", SKU: "Standard",
			Entities: 10_000, Subscriptions: 2000, SQLFilters: 2000, CorrelationFilters: 100_000, Connections: 5000,
			MessageBytes: 256 * kib, BatchBytes: 256 * kib, DeleteBatch: 500,
			sizes: steps, ttl: endless, lock: lock, window: cloudWindow, deliveries: 2000, standard: cloud,
		},
		{
			Name: "premium", SKU: "Premium", // of one messaging unit
			Entities: 1000, Subscriptions: 2000, SQLFilters: 2000, CorrelationFilters: 100_000, Connections: 5000,
			MessageBytes: 1024 * kib, BatchBytes: 1024 * kib, DeleteBatch: 4000,
			ownMessageSize: true, sizes: append(slices.Clone(steps), 10240*mib, 20480*mib, 40960*mib, 81920*mib),
			ttl: endless, lock: lock, window: cloudWindow, deliveries: 2000, standard: cloud,
		},
		{
			Name: "emulator", SKU: "Standard",
			Entities: 50, Subscriptions: 50, CorrelationFilters: 1000, Connections: 10,
			MessageBytes: 256 * kib, BatchBytes: 256 * kib, DeleteBatch: 500,
			sizes: []int64{100 * mib}, ttl: bounds{5 * time.Minute, time.Hour}, lock: lock, window: bounds{5 * time.Second, 5 * time.Minute}, deliveries: 10,
			standard: defaults{size: 100 * mib, ttl: time.Hour, window: 20 * time.Second, deliveries: 3},
		},
	}
}

// TierNamed returns the tier of that name, which compares without case.
func TierNamed(name string) (Tier, error) {
	tiers := Tiers()
	names := make([]string, len(tiers))
	for i, t := range tiers {
		if strings.EqualFold(t.Name, name) {
			return t, nil
		}
		names[i] = t.Name
	}
	return Tier{}, fmt.Errorf("there are no limits %q; there are %s", name, strings.Join(names, ", "))
}

// Defaults returns the properties of a new entity of which nothing is said.
func (t *Tier) Defaults(kind broker.Kind) broker.Properties {
	p := broker.Defaults(kind, broker.ServiceBus)
	p.DefaultTTL = t.standard.ttl
	if kind != broker.Subscription {
		p.MaxMessageBytes, p.MaxSize, p.DuplicateWindow = t.MessageBytes, t.standard.size, t.standard.window
	}
	if kind != broker.Topic {
		p.MaxDeliveryCount = t.standard.deliveries
	}
	return p
}

// Check refuses properties that the tier does not allow. The error wraps [broker.ErrInvalid] and
// says what would be allowed.
func (t *Tier) Check(kind broker.Kind, p *broker.Properties) error {
	problem := t.missing(kind, p)
	for _, check := range []struct {
		name    string
		applies bool
		value   time.Duration
		bounds
	}{
		{"DefaultMessageTimeToLive", true, p.DefaultTTL, t.ttl},
		{"LockDuration", kind != broker.Topic, p.LockDuration, t.lock},
		{"DuplicateDetectionHistoryTimeWindow", kind != broker.Subscription, p.DuplicateWindow, t.window},
	} {
		if problem == "" && check.applies {
			problem = check.outside(check.name, check.value)
		}
	}
	switch {
	case problem != "":
	case kind != broker.Topic && (p.MaxDeliveryCount < 1 || p.MaxDeliveryCount > t.deliveries):
		problem = fmt.Sprintf("MaxDeliveryCount %d is out of range: 1 to %d", p.MaxDeliveryCount, t.deliveries)
	case kind != broker.Subscription && !t.sized(p):
		problem = fmt.Sprintf("The specified value %d is invalid. The property 'MaxSizeInMegabytes', must be one of the following values: %s", // as the service says it
			p.MaxSize/mib, strings.ReplaceAll(inMegabytes(t.sizes), ", ", ";"))
	case kind != broker.Subscription && !t.ownMessageSize && p.MaxMessageBytes != t.MessageBytes:
		problem = fmt.Sprintf("MaxMessageSizeInKilobytes %d cannot be chosen: it is %d", p.MaxMessageBytes/kib, t.MessageBytes/kib)
	}
	if problem == "" {
		return nil
	}
	return fmt.Errorf("%w: %s with --limits %s", broker.ErrInvalid, problem, t.Name)
}

// missing names what the tier does not have at all.
func (t *Tier) missing(kind broker.Kind, p *broker.Properties) string {
	switch {
	case !t.queuesOnly:
	case kind != broker.Queue:
		return "there are no topics and subscriptions"
	case p.RequiresSession:
		return "there is no RequiresSession"
	case p.DetectDuplicates:
		return "there is no RequiresDuplicateDetection"
	case p.ForwardTo != "" || p.ForwardDeadLettersTo != "":
		return "there is no ForwardTo and no ForwardDeadLetteredMessagesTo"
	}
	return ""
}

// outside says why a duration is out of range; "" if it is not.
func (b bounds) outside(name string, d time.Duration) string {
	endless := d == unbounded
	if !endless && d >= b.low && (b.high == unbounded || d <= b.high) || endless && b.high == unbounded {
		return ""
	}
	is, most := broker.FormatISODuration(d), "more"
	if endless {
		is = "without end"
	}
	if b.high != unbounded {
		most = broker.FormatISODuration(b.high)
	}
	return fmt.Sprintf("%s %s is out of range: %s to %s", name, is, broker.FormatISODuration(b.low), most)
}

// sized reports whether an entity may be that large. A partitioned one holds as much in each of
// its sixteen partitions.
func (t *Tier) sized(p *broker.Properties) bool {
	return t.sizes == nil || slices.Contains(t.sizes, p.MaxSize) || p.Partitioning && slices.Contains(t.sizes, p.MaxSize/16)
}

func inMegabytes(sizes []int64) string {
	words := make([]string, len(sizes))
	for i, n := range sizes {
		words[i] = fmt.Sprint(n / mib)
	}
	return strings.Join(words, ", ")
}

// ErrQuota: there are as many as the tier allows.
var ErrQuota = errors.New("quota exceeded")

// Room refuses one more entity where there are as many as the tier allows. all are those that
// there are. The error wraps [ErrQuota].
func (t *Tier) Room(kind broker.Kind, name string, all []broker.Info) error {
	most, what, n := t.Entities, "queues and topics", 0
	topic := ""
	if kind == broker.Subscription {
		most, what = t.Subscriptions, "subscriptions of a topic"
		topic = strings.ToLower(name[:max(strings.LastIndexByte(name, '/'), 0)]) + "/"
	}
	for _, e := range all {
		if (e.Kind == broker.Subscription) == (kind == broker.Subscription) && strings.HasPrefix(strings.ToLower(e.Name), topic) {
			n++
		}
	}
	if most > 0 && n >= most {
		return fmt.Errorf("%w: there are at most %d %s with --limits %s", ErrQuota, most, what, t.Name)
	}
	return nil
}

// RoomForRule refuses one more rule where the subscriptions of its topic have as many as the
// tier allows: so many whose filter is SQL, true or false, and so many with a correlation
// filter. The error wraps [ErrQuota].
func (t *Tier) RoomForRule(filter broker.FilterKind, sql, correlation int64) error {
	n, most, what := sql, t.SQLFilters, "SQL"
	if filter == broker.CorrelationFilter {
		n, most, what = correlation, t.CorrelationFilters, "correlation"
	}
	if most > 0 && n >= int64(most) {
		return fmt.Errorf("%w: there are at most %d %s filters of a topic with --limits %s", ErrQuota, most, what, t.Name)
	}
	return nil
}

// Limit is one limit as text.
type Limit struct{ Name, Value string }

// Limits returns what the tier bounds, in an order that does not change.
func (t *Tier) Limits() []Limit {
	count := func(n int) string {
		if n == 0 {
			return "unlimited"
		}
		return fmt.Sprint(n)
	}
	size := func(n int64) string {
		if n == 0 {
			return "as a message"
		}
		return fmt.Sprintf("%d KiB", n/kib)
	}
	sizes := "any"
	if t.sizes != nil {
		sizes = inMegabytes(t.sizes)
	}
	span := func(b bounds) string {
		if b.high == unbounded {
			return broker.FormatISODuration(b.low) + " or more"
		}
		return broker.FormatISODuration(b.low) + " to " + broker.FormatISODuration(b.high)
	}
	return []Limit{
		{"queues and topics", count(t.Entities)},
		{"subscriptions of a topic", count(t.Subscriptions)},
		{"SQL filters of a topic", count(t.SQLFilters)},
		{"correlation filters of a topic", count(t.CorrelationFilters)},
		{"AMQP connections", count(t.Connections)},
		{"message", size(t.MessageBytes)},
		{"batch of messages", size(t.BatchBytes)},
		{"messages of a batch delete", count(t.DeleteBatch)},
		{"MaxSizeInMegabytes", sizes},
		{"DefaultMessageTimeToLive", span(t.ttl)},
		{"LockDuration", span(t.lock)},
		{"DuplicateDetectionHistoryTimeWindow", span(t.window)},
		{"MaxDeliveryCount", fmt.Sprintf("1 to %d", t.deliveries)},
	}
}
