package broker

import (
	"errors"
	"fmt"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
	"dlq/backends/sqlfilter"
)

// A message that arrives at an entity may be passed on: a topic copies it to subscriptions,
// a forwarding entity hands it to another. A router finds where the copies come to rest
// without changing anything; [tx.land] then stores them all in the same commit.

const (
	// maxHops is how often a message is forwarded.
	// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-auto-forwarding#considerations
	maxHops = 4
	// maxCopies bounds the copies that one message becomes where topics feed topics.
	maxCopies = 10_000
	// maxProperties bounds application properties with what was added to them on the way.
	// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
	maxProperties = 64 << 10
)

// arrival is that a message came to an entity: it gets a number there, which all its copies
// behind that entity share, and its id is noted if the entity detects duplicates.
type arrival struct {
	ent  *entity
	note *note // nil: the entity detects no duplicates, or the message has no id
	seq  uint64
}

// copyOf is one copy of a message on its way.
type copyOf struct {
	m        *message.Message // all but the body, as this copy has it, with overlay
	own      bool             // m is not what arrived: it needs a head of its own
	hops     uint8
	expires  time.Time // zero: never
	source   string    // who dead-lettered it
	buried   bool      // it is on its way from there
	overlay  []message.Attribute
	from     uint64     // its number before the first arrival; 0: none
	arrivals []*arrival // the last is where it is

	// What a dead letter keeps as long as it has not left its entity.
	deliveries uint32
	enqueued   time.Time
	before     uint64 // its number before it came to the entity
}

// landing is where a copy comes to rest.
type landing struct {
	copyOf
	q    *queue
	why  *cause // in a dead-letter sub-queue
	keep uint64 // the number that it keeps; 0: that of its last arrival
	due  time.Time
}

// router gathers where the copies of one message go.
type router struct {
	t         *tx
	size      int64 // bytes of a copy, about
	landings  []landing
	arrivals  []*arrival
	duplicate *store.Seen // of the first entity that has seen the id
	err       error       // the topic refuses what a rule fails on

	// Most messages arrive once and land there.
	arrival1 [1]*arrival
	landing1 [1]landing
}

// router returns a router for a message of that many bytes.
func (t *tx) router(size int64) *router {
	r := &router{t: t, size: size}
	r.arrivals, r.landings = r.arrival1[:0], r.landing1[:0]
	return r
}

// arrive takes a copy into an entity that accepts it.
func (r *router) arrive(ent *entity, c copyOf, due time.Time) {
	a := &arrival{ent: ent}
	if n := r.t.note(ent, c.m); n != nil {
		if n.first != nil {
			if r.duplicate == nil {
				r.duplicate = n.first
			}
			return
		}
		a.note = n
	}
	r.arrivals = append(r.arrivals, a)
	c.arrivals = append(c.arrivals[:len(c.arrivals):len(c.arrivals)], a)
	if ttl := ent.p.DefaultTTL; ttl > 0 {
		start := r.t.now
		if !due.IsZero() {
			start = due
		}
		c.expires = earlier(c.expires, start.Add(ttl))
	}
	if !due.IsZero() {
		r.landings = append(r.landings, landing{copyOf: c, q: ent.subs[Main], due: due})
		return
	}
	r.pass(ent, c)
}

// pass hands a copy on that is active in an entity, or lets it rest there.
func (r *router) pass(ent *entity, c copyOf) {
	switch {
	case ent.kind == Topic:
		r.publish(ent, c)
	case ent.p.ForwardTo != "":
		r.forward(ent, ent.p.ForwardTo, c, 0)
	default:
		r.landings = append(r.landings, landing{copyOf: c, q: ent.subs[Main]})
	}
}

// forward hands a copy from an entity to another, or leaves it in one of the sub-queues of
// the first. keep is the number that a dead letter keeps there.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-auto-forwarding
func (r *router) forward(from *entity, name string, c copyOf, keep uint64) {
	to := r.t.e.entity(name)
	refuse := func(sub Sub, why cause) {
		if sub == DeadLetter && !c.buried {
			r.bury(from, c, why, keep)
			return
		}
		l := landing{copyOf: c, q: from.subs[sub], why: &why, keep: keep}
		if _, dead := message.Properties(c.overlay).Get(message.DeadLetterReasonProperty); dead {
			l.why = nil // it says already why it died
		}
		r.landings = append(r.landings, l)
	}
	switch {
	case c.hops >= maxHops || len(r.landings) >= maxCopies:
		refuse(TransferDeadLetter, causeHops)
	case to == nil || to.kind == Subscription: // for which the name of a queue that is gone can be short
		refuse(TransferDeadLetter, causeNoDestination(name))
	case !to.sends():
		refuse(TransferDeadLetter, causeDestinationDisabled(to.name))
	case !to.sized(r.size):
		refuse(TransferDeadLetter, causeDestinationFull(to.name))
	case propertiesSize(c.m) > maxProperties:
		refuse(DeadLetter, causeHeaderSize)
	case to.p.RequiresSession && c.m.SessionID == nil:
		refuse(DeadLetter, causeNoSession)
	default:
		c.hops++
		c.buried = false
		c.deliveries, c.enqueued = 0, time.Time{}
		r.arrive(to, c, time.Time{})
		if r.t.e.sabotaged("forward-keeps-source") {
			r.landings = append(r.landings, landing{copyOf: c, q: from.subs[Main]})
		}
	}
}

// bury takes a copy that an entity cannot pass on or take to its dead-letter sub-queue, or to
// where it forwards its dead letters.
func (r *router) bury(ent *entity, c copyOf, why cause, keep uint64) {
	if ent.p.ForwardDeadLettersTo == "" {
		r.landings = append(r.landings, landing{copyOf: c, q: ent.subs[DeadLetter], why: &why, keep: keep})
		return
	}
	c.overlay = withReason(c.overlay, why)
	m := c.m.Clone()
	m.Properties = withReason(m.Properties, why)
	c.m, c.expires, c.source, c.buried = m, r.t.expires(m, time.Time{}), ent.name, true
	r.forward(ent, ent.p.ForwardDeadLettersTo, c, keep)
}

// publish copies a message to the subscriptions whose rules let it through: one copy for all
// rules without an action that do, and one for each with an action.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/topic-filters
func (r *router) publish(topic *entity, c copyOf) {
	seen := *c.m // what rules see of the broker must not show in the caller's message
	seen.Broker = message.Broker{EnqueuedTime: r.t.now, ExpiresAt: c.expires, DeadLetterSource: c.source, BodySize: r.size}
	env := &sqlfilter.Env{Message: &seen, NewID: r.t.e.newID}
	for _, sub := range topic.subscriptions {
		plain := false
		for _, rule := range sub.rules {
			yes, err := rule.matches(env)
			switch {
			case err != nil:
				r.filterFailed(topic, sub, c, err)
			case !yes:
			case rule.action != nil:
				r.act(topic, sub, rule, c, env)
			case !plain:
				plain = true
				r.subscribe(sub, c)
			}
			if plain && r.t.e.sabotaged("fanout-one-copy") {
				return
			}
		}
	}
}

// act makes the copy of a rule with an action, which cannot change when the message is due or
// how its duplicates are detected.
func (r *router) act(topic, sub *entity, rule *rule, c copyOf, env *sqlfilter.Env) {
	m := env.Message.Clone()
	if err := rule.action.Apply(&sqlfilter.Env{Message: m, NewID: env.NewID}); err != nil {
		r.filterFailed(topic, sub, c, err)
		return
	}
	m.Broker = message.Broker{}
	m.ScheduledEnqueueTime = c.m.ScheduledEnqueueTime
	m.Properties.Set("RuleName", message.String(rule.Name))
	c.m, c.own, c.overlay = m, true, nil // m holds what was set late
	if m.TTL != nil {
		c.expires = earlier(c.expires, r.t.now.Add(*m.TTL))
	}
	r.subscribe(sub, c)
}

// subscribe takes a copy into a subscription.
func (r *router) subscribe(sub *entity, c copyOf) {
	a := &arrival{ent: sub}
	dead := c // as it is when it goes no further
	dead.arrivals = append(c.arrivals[:len(c.arrivals):len(c.arrivals)], a)
	var why cause
	switch {
	case propertiesSize(c.m) > maxProperties:
		why = causeHeaderSize
	case sub.p.RequiresSession && c.m.SessionID == nil:
		why = causeNoSession
	default:
		r.arrive(sub, c, time.Time{})
		return
	}
	r.arrivals = append(r.arrivals, a)
	r.bury(sub, dead, why, 0)
}

// filterFailed is that a rule could not be evaluated on a message.
func (r *router) filterFailed(topic, sub *entity, c copyOf, err error) {
	if first := len(c.arrivals) == 1; first && topic.p.FilterBeforePublishing && r.err == nil {
		// Who sends to the topic is told. Nobody is when a schedule comes due or another entity
		// forwards to it, and then the message goes where those of any topic go.
		r.err = fmt.Errorf("%w: subscription %s: %w", ErrFilter, sub.name, err)
	}
	if !sub.p.DeadLetterOnFilterError {
		return // dropped for this subscription, as documented
	}
	why := causeFilter("FilterException", err.Error())
	if failed := (*sqlfilter.EvalError)(nil); errors.As(err, &failed) {
		why = causeFilter(failed.Exception(), failed.Msg)
	}
	a := &arrival{ent: sub}
	c.arrivals = append(c.arrivals[:len(c.arrivals):len(c.arrivals)], a)
	r.arrivals = append(r.arrivals, a)
	r.bury(sub, c, why, 0)
}

// land numbers the arrivals, notes the ids, and stores the copies. old counts the users of
// the content that stay besides: 1 for a message that is copied, 0 for one that moves.
func (t *tx) land(r *router, c content, old int) {
	for _, a := range r.arrivals {
		a.seq = t.number(a.ent)
		if a.note != nil {
			t.sight(a)
		}
	}
	users := 0 // of the head that arrived
	for i := range r.landings {
		if !r.landings[i].own {
			users++
		}
	}
	shared := c.shared || len(r.landings)+old > 1
	c = t.keep(c, users, len(r.landings), old)
	for i := range r.landings {
		t.rest(&r.landings[i], c, shared)
	}
}

// keep stores what of the content is new and counts who uses it.
func (t *tx) keep(c content, heads, bodies, old int) content {
	if c.newHead != nil && heads > 0 {
		c.head = t.putHead(c.newHead)
		t.use(c.head, heads, nil)
	} else if c.newHead == nil {
		t.use(c.head, heads+old, t.batch.DeleteHead)
	}
	if c.body == 0 && bodies > 0 {
		c.body = t.id()
		t.batch.PutBody(c.body, c.newBody)
		t.use(c.body, bodies, nil)
	} else if c.body != 0 {
		t.use(c.body, bodies+old, t.batch.DeleteBody)
	}
	return c
}

// rest stores one copy where it comes to rest.
func (t *tx) rest(l *landing, c content, shared bool) {
	st := store.State{
		Head: c.head, Body: c.body, HeadSize: c.headSize, BodySize: c.bodySize, Shared: shared,
		Hops: l.hops, Enqueued: t.now, EnqueuedSeq: l.from, Expires: l.expires, Due: l.due,
		Session: l.m.SessionID, Source: l.source, Overlay: l.overlay,
	}
	if l.own {
		head := message.AppendHead(nil, l.m)
		st.Head, st.HeadSize = t.putHead(head), int64(len(head))
	}
	if !l.enqueued.IsZero() {
		st.Enqueued, st.Deliveries, st.EnqueuedSeq = l.enqueued, l.deliveries, l.before
	}
	seq := l.keep
	if n := len(l.arrivals); n > 0 {
		if seq == 0 {
			seq = l.arrivals[n-1].seq
		}
		if n > 1 {
			st.EnqueuedSeq = l.arrivals[n-2].seq
		}
	}
	if l.why != nil {
		st.Overlay = withReason(st.Overlay, *l.why)
		st.Expires = time.Time{}
	}
	if !l.due.IsZero() {
		st.State = message.Scheduled
	}
	t.list(l.q, seq, &st)
}

// withReason adds why a message was dead-lettered to the properties that were set late.
func withReason(overlay []message.Attribute, why cause) []message.Attribute {
	out := message.Properties(append([]message.Attribute(nil), overlay...))
	if why.reason != "" {
		out.Set(message.DeadLetterReasonProperty, message.String(why.reason))
	}
	if why.description != "" {
		out.Set(message.DeadLetterDescriptionProperty, message.String(why.description))
	}
	return out
}

// propertiesSize is how large the application properties are.
func propertiesSize(m *message.Message) (n int) {
	for _, p := range m.Properties {
		n += len(p.Name) + valueSize(p.Value)
	}
	return n
}

func valueSize(v message.Value) int {
	switch v := v.(type) {
	case message.String:
		return len(v)
	case message.Binary:
		return len(v)
	case message.Long:
		return len(message.FormatValue(v)) // as SQS counts a number
	case message.Described:
		return valueSize(v.Value)
	}
	return len(message.AppendValue(nil, v))
}

// Route tells which entities a message would rest in if it was sent to an address now, in
// the order in which they get it; one that gets several copies is named as often. It is
// [ErrDuplicate] if one of them, or one on the way, would drop it. It changes nothing.
func (e *Engine) Route(a Address, m *message.Message) ([]Address, error) {
	if m == nil {
		return nil, fmt.Errorf("%w: there is no message", ErrInvalid)
	}
	t, err := e.begin()
	if err != nil {
		return nil, err
	}
	defer t.end()
	ent, err := e.destination(a)
	if err != nil {
		return nil, err
	}
	c := newContent(m)
	r, err := t.route(ent, m, &c)
	switch {
	case err != nil:
		return nil, err
	case r.duplicate != nil:
		return nil, ErrDuplicate
	}
	out := make([]Address, len(r.landings))
	for i, l := range r.landings {
		out[i] = Address{l.q.of.name, l.q.sub}
	}
	return out, nil
}
