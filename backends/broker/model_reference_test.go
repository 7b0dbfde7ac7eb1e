package broker

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"dlq/backends/message"
)

// The reference model knows what the documentation says and nothing of how the engine works:
// flat lists that are walked from end to end, changed by the plainest code there is. It uses
// the engine's vocabulary (properties, addresses, outcomes, errors) and none of its functions.
//
// What the services leave open, such as the sequence numbers themselves, it learns from what
// the engine shows, and holds it to that from then on.

// number is a sequence number that the engine gives.
type number struct{ n int64 } // 0: it has not been seen yet

// refMessage is one message in one place.
type refMessage struct {
	m        *message.Message // its sections; never changed, but replaced
	of       *refEntity
	sub      Sub
	wave     int // what was made in one wave has no order among itself
	no       *number
	from     *number // the number before it came here; nil: it did not
	state    message.State
	count    uint32
	token    message.UUID // of the lock; of a free message, of the last lock
	until    time.Time    // zero: free
	since    time.Time    // when it was locked
	due      time.Time    // of a scheduled one
	enqueued time.Time
	expires  time.Time // zero: never
	received time.Time // first
	hops     int
	source   string
	staged   *refTransaction // has decided over it
	decision int             // which of its decisions that was
}

func (x *refMessage) held() bool    { return !x.until.IsZero() }
func (x *refMessage) active() bool  { return x.state == message.Active }
func (x *refMessage) ready() bool   { return x.active() && !x.held() }
func (x *refMessage) group() string { return message.Str(x.m.SessionID) }

// refGroup is a session or a message group.
type refGroup struct {
	id    string
	turn  int // groups that have something to deliver take turns; 0: it has nothing
	token message.UUID
	until time.Time // zero: not locked

	state   []byte // nil: none
	updated time.Time
}

// refRule is a rule with what it means, said in Go.
type refRule struct {
	Rule
	match func(*message.Message) (matches, fails bool)
	act   func(*message.Message) // nil: none
}

type refSeen struct {
	key string
	at  time.Time
	id  message.Value
	no  *number
}

type refEntity struct {
	name     string
	kind     Kind
	p        Properties
	rules    []refRule // in the order of their names
	msgs     []*refMessage
	groups   []*refGroup
	seen     []refSeen
	highest  int64 // number that a look at the entity has ever shown
	given    int64 // highest number that a send was answered with
	accessed time.Time
}

// ref is a namespace.
type ref struct {
	now      time.Time
	entities []*refEntity
	wave     int
	turn     int
	lost     []refToken // tokens that must not work any more
	together bool       // what happens now happens at one moment
	stored   bool       // something that was sent has come to rest: a topic without a rule for it keeps nothing
	tx       *refTransaction
	facts    map[string]int // what has happened, and how often
}

// fact notes that something has happened: a test that never sees it would not test it.
func (r *ref) fact(what string) { r.facts[what]++ }

type refToken struct {
	at    Address
	seq   int64
	token message.UUID
}

func (r *ref) entity(name string) *refEntity {
	for _, e := range r.entities {
		if strings.EqualFold(e.name, name) {
			return e
		}
	}
	return nil
}

func (r *ref) subscriptions(topic *refEntity) []*refEntity {
	var subs []*refEntity
	for _, e := range r.entities {
		if e.kind == Subscription && strings.HasPrefix(e.name, topic.name+"/") {
			subs = append(subs, e)
		}
	}
	return subs
}

func (r *ref) create(name string, kind Kind, p Properties, rules ...refRule) *refEntity {
	e := &refEntity{name: name, kind: kind, p: p, rules: rules, accessed: r.now}
	slices.SortFunc(e.rules, func(a, b refRule) int { return strings.Compare(a.Name, b.Name) })
	r.entities = append(r.entities, e)
	return e
}

func (r *ref) delete(e *refEntity) {
	if e.kind == Topic {
		for _, sub := range r.subscriptions(e) {
			r.delete(sub)
		}
	}
	for _, x := range slices.Clone(e.msgs) {
		r.remove(x)
	}
	r.entities = slices.DeleteFunc(r.entities, func(o *refEntity) bool { return o == e })
}

// lose notes that the token of a message is good for nothing from now on.
func (r *ref) lose(x *refMessage) {
	if x.held() {
		r.lost = append(r.lost, refToken{Address{x.of.name, x.sub}, x.no.n, x.token})
	}
}

// in returns the messages of a sub-queue that f accepts, by their numbers, and where those
// have not been seen yet, in the order in which they came.
func (e *refEntity) in(sub Sub, f func(*refMessage) bool) []*refMessage {
	var out []*refMessage
	for _, x := range e.msgs {
		if x.sub == sub && f(x) {
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(x, y *refMessage) int {
		if x.no.n == 0 || y.no.n == 0 {
			return x.wave - y.wave
		}
		return int(x.no.n - y.no.n)
	})
	return out
}

func all(*refMessage) bool        { return true }
func held(x *refMessage) bool     { return x.held() }
func deferred(x *refMessage) bool { return x.state == message.Deferred }

func (e *refEntity) grouped() bool { return e.p.RequiresSession || e.p.Groups }

func (e *refEntity) group(id string) *refGroup {
	for _, g := range e.groups {
		if g.id == id {
			return g
		}
	}
	g := &refGroup{id: id}
	e.groups = append(e.groups, g)
	return g
}

// byToken returns the session that a token stands for.
func (e *refEntity) byToken(token message.UUID) *refGroup {
	for _, g := range e.groups {
		if !g.until.IsZero() && g.token == token {
			return g
		}
	}
	return nil
}

// open reports whether a group has something to deliver to somebody new: a session, when it
// is not locked and has a free message; a message group, when its first message that is not
// gone is free.
// Source: AWS, "FIFO queue delivery logic"; Service Bus, "message sessions".
func (e *refEntity) open(g *refGroup) bool {
	first := e.in(Main, func(x *refMessage) bool { return x.group() == g.id && (x.active() || e.p.Groups) })
	if e.p.Groups {
		return len(first) > 0 && first[0].ready()
	}
	return g.until.IsZero() && slices.ContainsFunc(first, (*refMessage).ready)
}

// turns gives a group that has become open its turn, behind all others. It is asked after
// every single change.
func (r *ref) turns(e *refEntity) {
	if !e.grouped() {
		return
	}
	for _, x := range e.msgs {
		if x.sub == Main {
			e.group(x.group())
		}
	}
	if !r.together {
		r.turn++
	}
	for _, g := range e.groups {
		switch open := e.open(g); {
		case !open:
			g.turn = 0
		case g.turn == 0:
			g.turn = r.turn
		}
	}
}

// A message on its way.
type refCopy struct {
	m       *message.Message
	hops    int
	expires time.Time
	source  string
	buried  bool // it has not left its source yet
	from    *number
}

// refLanding is where a copy comes to rest.
type refLanding struct {
	refCopy
	of                  *refEntity
	sub                 Sub
	no                  *number
	due                 time.Time
	reason, description string
}

// route is where the copies of one message come to rest, worked out before anything changes.
type route struct {
	landings []refLanding
	seen     []refSeenIn
	first    *number  // in the entity it came to first
	dup      *refSeen // the first entity that knew the id
	fails    bool     // a rule failed, and the topic refuses such messages
}

type refSeenIn struct {
	e *refEntity
	refSeen
}

// arrive is that a message comes to an entity.
func (r *ref) arrive(e *refEntity, c refCopy, due time.Time, out *route) {
	no := &number{}
	if key, ok := duplicateKeyOf(e, c.m); ok && e.p.DetectDuplicates {
		for i, s := range e.seen {
			if s.key == key && !r.now.After(s.at.Add(e.p.DuplicateWindow)) {
				r.fact("duplicate dropped")
				if out.dup == nil {
					out.dup = &e.seen[i]
				}
				return
			}
		}
		out.seen = append(out.seen, refSeenIn{e, refSeen{key, r.now, c.m.ID, no}})
	}
	if out.first == nil {
		out.first = no
	}
	if e.p.DefaultTTL > 0 {
		begin := r.now
		if !due.IsZero() {
			begin = due
		}
		c.expires = soonest(c.expires, begin.Add(e.p.DefaultTTL))
	}
	if !due.IsZero() {
		out.landings = append(out.landings, refLanding{refCopy: c, of: e, no: no, due: due})
		return
	}
	r.pass(e, c, no, out)
}

// pass hands an active message on, or lets it rest.
func (r *ref) pass(e *refEntity, c refCopy, no *number, out *route) {
	switch {
	case e.kind == Topic:
		c.from = no
		for _, sub := range r.subscriptions(e) {
			r.filter(e, sub, c, out)
		}
	case e.p.ForwardTo != "":
		r.forward(e, e.p.ForwardTo, c, no, out)
	default:
		out.landings = append(out.landings, refLanding{refCopy: c, of: e, no: no})
	}
}

// forward hands a message from one entity to another. no is its number in the first.
// Source: servicebus-wire, "Auto-forward"; a fifth hop and a destination that cannot take it
// end in the transfer dead-letter queue of the source.
func (r *ref) forward(e *refEntity, name string, c refCopy, no *number, out *route) {
	stay := func(sub Sub, reason, description string) {
		r.fact("transfer refused: " + reason)
		out.landings = append(out.landings, refLanding{refCopy: c, of: e, sub: sub, no: no, reason: reason, description: description})
	}
	to := r.entity(name)
	switch {
	case c.hops == 4:
		stay(TransferDeadLetter, "MaxTransferHopCountExceeded", "The maximum number of allowed hops when forwarding between queues. Value is set to 4.")
	case to == nil, to.p.Status == Disabled, to.p.Status == SendDisabled:
		stay(TransferDeadLetter, anyReason, anyReason)
	case to.p.RequiresSession && c.m.SessionID == nil:
		if c.buried {
			stay(DeadLetter, "Session ID is null.", "Session enabled entity doesn't allow a message whose session identifier is null.")
			return
		}
		r.kill(e, c, no, "Session ID is null.", "Session enabled entity doesn't allow a message whose session identifier is null.", out)
	default:
		r.fact("forwarded")
		c.hops++
		c.buried = false
		c.from = no
		r.arrive(to, c, time.Time{}, out)
	}
}

// anyReason stands for one whose text the services do not document.
const anyReason = "*"

// kill is that an entity can neither take a copy nor pass it on: it goes to its dead-letter
// sub-queue, or to where that is forwarded.
func (r *ref) kill(e *refEntity, c refCopy, no *number, reason, description string, out *route) {
	if e.p.ForwardDeadLettersTo == "" {
		out.landings = append(out.landings, refLanding{refCopy: c, of: e, sub: DeadLetter, no: no, reason: reason, description: description})
		return
	}
	r.fact("dead letter forwarded that never came in")
	x := refMessage{m: c.m}
	x.blame(reason, description)
	c.m, c.source, c.buried, c.expires = x.m, e.name, true, time.Time{}
	if c.m.TTL != nil {
		c.expires = r.now.Add(*c.m.TTL)
	}
	r.forward(e, e.p.ForwardDeadLettersTo, c, no, out)
}

// filter copies a message of a topic to a subscription: once for all matching rules without
// an action, and once for each with one.
func (r *ref) filter(topic, sub *refEntity, c refCopy, out *route) {
	plain := false
	for _, rule := range sub.rules {
		matches, fails := rule.match(c.m)
		if fails && topic.p.FilterBeforePublishing { // which counts if somebody sends
			r.fact("refused by a filter")
			out.fails = true
		}
		switch {
		case fails && sub.p.DeadLetterOnFilterError:
			r.fact("dead-lettered by a filter")
			r.kill(sub, c, &number{}, "FilterException", anyReason, out)
		case !matches:
		case rule.act != nil:
			r.fact("copied with an action")
			copied := c
			copied.m = c.m.Clone()
			rule.act(copied.m)
			copied.m.Properties.Set("RuleName", message.String(rule.Name))
			r.subscribe(sub, copied, out)
		case !plain:
			plain = true
			r.subscribe(sub, c, out)
		}
	}
}

func (r *ref) subscribe(sub *refEntity, c refCopy, out *route) {
	if sub.p.RequiresSession && c.m.SessionID == nil {
		r.fact("copy without a session")
		r.kill(sub, c, &number{}, "Session ID is null.", "Session enabled entity doesn't allow a message whose session identifier is null.", out)
		return
	}
	r.arrive(sub, c, time.Time{}, out)
}

// land puts the copies where they rest, and notes the ids.
func (r *ref) land(out *route) {
	if !r.together {
		r.wave++
	}
	r.stored = r.stored || len(out.landings)+len(out.seen) > 0
	for _, s := range out.seen {
		s.e.seen = slices.DeleteFunc(s.e.seen, func(old refSeen) bool { return old.key == s.key })
		s.e.seen = append(s.e.seen, s.refSeen)
	}
	for _, l := range out.landings {
		x := &refMessage{
			m: l.m, of: l.of, sub: l.sub, wave: r.wave, no: l.no, from: l.from, due: l.due,
			enqueued: r.now, expires: l.expires, hops: l.hops, source: l.source,
		}
		if !l.due.IsZero() {
			x.state = message.Scheduled
		}
		if l.sub != Main {
			x.expires = time.Time{}
			x.blame(l.reason, l.description)
		}
		l.of.msgs = append(l.of.msgs, x)
		r.turns(l.of)
	}
}

// blame sets why a message was dead-lettered.
func (x *refMessage) blame(reason, description string) {
	x.set(message.DeadLetterReasonProperty, reason)
	x.set(message.DeadLetterDescriptionProperty, description)
}

func (x *refMessage) set(name, text string) {
	if text != "" {
		x.m = x.m.Clone()
		x.m.Properties.Set(name, message.String(text))
	}
}

// duplicateKeyOf is what an entity tells messages apart by; ok is false if there is nothing.
func duplicateKeyOf(e *refEntity, m *message.Message) (key string, ok bool) {
	if e.p.DeduplicationPerGroup {
		key = message.Str(m.SessionID) + "\x00"
	}
	if !e.p.DeduplicationID {
		if m.ID == nil {
			return "", false
		}
		return key + message.FormatValue(m.ID), true
	}
	for _, a := range m.System {
		if a.Name == DeduplicationIDAttribute {
			return key + message.FormatValue(a.Value), true
		}
	}
	if e.p.ContentDeduplication {
		sum := sha256.Sum256(m.Body.Bytes())
		return key + hex.EncodeToString(sum[:]), true
	}
	return "", false
}

// soonest returns the earlier of two times, of which zero is never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
