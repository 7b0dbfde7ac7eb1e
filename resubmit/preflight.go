package resubmit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// Finding is one result of the preflight.
type Finding struct {
	Code    string // stable, such as "destination-missing"
	Text    string // what it means and what to do; may hold text from a server
	Count   int64  // messages concerned; 0: the whole plan
	Samples []Item // the first few of them, with the reason
}

// The codes of vetoes.
const (
	FindDestinationMissing = "destination-missing"
	FindSameEntity         = "same-entity"     // it would come straight back
	FindTooMany            = "too-many"        // over Spec.Max
	FindNothingToSend      = "nothing-to-send" // every message would be skipped
)

// The codes of warnings.
const (
	FindCreates        = "creates-destination"
	FindSkips          = "will-skip"       // messages that cannot be sent as they are
	FindTimeToLive     = "time-to-live"    // they died of it, and it starts anew
	FindSessionMissing = "session-missing" // they died of having no session, and have none
	FindTopic          = "topic"           // every subscription whose rules match gets a copy
	FindUnjudged       = "unjudged"        // messages that the selection could not judge
	FindLeases         = "leases"          // looking locks: the backend cannot peek
	FindPossiblyTwice  = "not-atomic"      // a crash can leave messages possibly twice
	FindDeferred       = "deferred"        // a sweep does not meet deferred messages
)

// findingSamples is how many messages a finding names.
const findingSamples = 5

// The reasons of death that a resubmit can repeat, as Service Bus writes them.
const (
	reasonTTLExpired = "TTLExpiredException"
	reasonNoSession  = "Session ID is null" // with or without a stop
)

// preflight collects what speaks for and against a plan, message by message.
type preflight struct {
	ctx       context.Context
	env       Env
	plan      *Plan
	source    backends.Entity
	transform *Transform

	caps     backends.Capabilities
	known    map[backends.EntityID]bool // destinations: can they be sent to as they are
	skips    int64
	shortest time.Duration // time to live of those that died of it
}

func (c *preflight) capabilities() {
	c.known = map[backends.EntityID]bool{}
	c.caps = backends.Probe(c.env.Backend)
	if !c.caps.Peek {
		c.warn(FindLeases, "this service cannot be browsed: looking locks messages for a moment, and may count as a delivery", nil)
	}
	if c.plan.Spec.Kind == Resubmit && !c.caps.Move {
		c.warn(FindPossiblyTwice, "this service cannot move in one step: nothing is lost if the process dies, but the messages then in flight are possibly twice, and named", nil)
	}
}

// message checks one message of the plan. An error is one of the service, not of the message.
func (c *preflight) message(m *message.Message) error {
	spec := c.plan.Spec
	if m.Broker.State == message.Deferred && !c.caps.Move && !c.caps.DirectSettle && !c.caps.ReceiveDeferred {
		c.warn(FindDeferred, "deferred messages are not met by a sweep and will be skipped", m)
	}
	if spec.Kind != Resubmit {
		return nil
	}
	out, to, err := outgoing(spec, c.transform, c.source.Sources, m, spec.Edited[m.Broker.SequenceNumber])
	if to != (backends.EntityID{}) {
		if err := c.destination(to); err != nil {
			return err
		}
	}
	if err == nil && c.known[to] {
		if v, ok := backends.As[backends.SendValidator](c.env.Backend); ok {
			err = v.ValidateSend(c.ctx, to, out)
			if code, coded := backends.CodeOf(err); err != nil && (!coded || !refusesMessage(code)) {
				return err
			}
		}
	}
	if err != nil {
		c.skips++
		c.sample(&c.plan.Warnings, FindSkips, "these cannot be sent as they are and will be skipped", m, err.Error())
		return nil
	}
	c.fate(m, out)
	return nil
}

// fate warns of messages that would die again of what killed them.
func (c *preflight) fate(m, out *message.Message) {
	switch reason := m.DeadLetterReason(); {
	case reason == reasonTTLExpired && out.TTL != nil:
		if c.shortest == 0 || *out.TTL < c.shortest {
			c.shortest = *out.TTL
		}
		c.warn(FindTimeToLive, fmt.Sprintf("they died of their time to live; it starts anew and is as short as %s, so a consumer should be running", c.shortest), m)
	case strings.HasPrefix(reason, reasonNoSession) && out.SessionID == nil:
		c.warn(FindSessionMissing, "they died of having no session id and still have none; give them one with dlq edit, or send them elsewhere with --to", m)
	}
}

// destination looks up a destination once, and counts the messages that go there.
func (c *preflight) destination(to backends.EntityID) error {
	for i := range c.plan.Destinations {
		if c.plan.Destinations[i].Entity == to {
			c.plan.Destinations[i].Count++
			return nil
		}
	}
	d := Destination{Entity: to, Count: 1}
	e, err := entity(c.ctx, c.env.Backend, to)
	switch {
	case err == nil:
		c.known[to] = true
		if e.Kind == backends.Topic {
			c.warn(FindTopic, fmt.Sprintf("%s is a topic: each subscription whose rules match gets a copy", to.Name), nil)
		}
	case !backends.IsCode(err, backends.NotFound):
		return err
	case c.canCreate(to):
		d.Create = true
		c.warn(FindCreates, fmt.Sprintf("queue %s does not exist and will be created with defaults", to.Name), nil)
	default:
		c.veto(FindDestinationMissing, fmt.Sprintf("%s does not exist; create it, or choose another with --to", to.Name))
	}
	if to == c.plan.Spec.From {
		c.veto(FindSameEntity, fmt.Sprintf("%s is both source and destination; choose another with --to", to))
	}
	c.plan.Destinations = append(c.plan.Destinations, d)
	return nil
}

func (c *preflight) canCreate(to backends.EntityID) bool {
	return to.Sub == backends.Main && !strings.Contains(to.Name, subscriptionsSegment) && c.caps.CreateQueue
}

// conclude judges the plan as a whole.
func (c *preflight) conclude() {
	p := c.plan
	if p.Spec.Max > 0 && p.Matched > int64(p.Spec.Max) {
		c.veto(FindTooMany, fmt.Sprintf("%d messages match and --max allows %d; narrow the selection or raise it", p.Matched, p.Spec.Max))
	}
	if p.Matched > 0 && c.skips == p.Matched {
		c.veto(FindNothingToSend, "every message would be skipped; the first: "+p.firstSkip())
	}
	if n, first := p.query.Unjudged(); n > 0 {
		p.Warnings = append(p.Warnings, Finding{
			Code: FindUnjudged, Count: n,
			Text: fmt.Sprintf("messages that the selection could not judge are left out; the first: %v", first),
		})
	}
}

func (p *Plan) firstSkip() string {
	for _, w := range p.Warnings {
		if w.Code == FindSkips && len(w.Samples) > 0 {
			return w.Samples[0].Reason
		}
	}
	return ""
}

func (c *preflight) veto(code, text string) {
	c.plan.Vetoes = append(c.plan.Vetoes, Finding{Code: code, Text: text})
}

func (c *preflight) warn(code, text string, m *message.Message) {
	c.sample(&c.plan.Warnings, code, text, m, "")
}

// sample adds a message to the finding with that code; the latest text counts. Without a message
// it is about the plan.
func (c *preflight) sample(to *[]Finding, code, text string, m *message.Message, reason string) {
	var f *Finding
	for i := range *to {
		if (*to)[i].Code == code && m != nil {
			f = &(*to)[i]
		}
	}
	if f == nil {
		*to = append(*to, Finding{Code: code})
		f = &(*to)[len(*to)-1]
	}
	f.Text = text
	if m == nil {
		return
	}
	f.Count++
	if len(f.Samples) < findingSamples {
		f.Samples = append(f.Samples, Item{Seq: m.Broker.SequenceNumber, ID: message.FormatValue(m.ID), Reason: reason})
	}
}

// outgoing returns what to send for m and where. edited is what a person made of it, or nil. The destination
// is known also when the message cannot be sent.
func outgoing(spec Spec, t *Transform, sources []backends.EntityID, m, edited *message.Message) (*message.Message, backends.EntityID, error) {
	to, err := destinationOf(spec, sources, m)
	if err != nil {
		return nil, to, err
	}
	from := m
	if edited != nil {
		from = edited.Clone()
		from.Broker = m.Broker
	}
	out, err := t.Apply(from)
	return out, to, err
}

const subscriptionsSegment = "/Subscriptions/"

// destinationOf returns where a message goes: where the spec says, else where it came from. A dead
// letter that was forwarded knows that itself; a subscription cannot be sent to, only its topic.
func destinationOf(spec Spec, sources []backends.EntityID, m *message.Message) (backends.EntityID, error) {
	switch {
	case spec.To != nil:
		return *spec.To, nil
	case spec.From.Sub != backends.Main:
		return sendable(spec.From), nil
	case m.Broker.DeadLetterSource != "":
		id, err := backends.ParseEntityID(m.Broker.DeadLetterSource)
		if err != nil {
			return backends.EntityID{}, fmt.Errorf("it says that it came from %q, which is no entity; name the destination with --to", m.Broker.DeadLetterSource)
		}
		return sendable(id), nil
	case len(sources) == 1:
		return sendable(sources[0]), nil
	}
	return backends.EntityID{}, errors.New("it does not say where it came from; name the destination with --to")
}

func sendable(id backends.EntityID) backends.EntityID {
	topic, _, _ := strings.Cut(id.Name, subscriptionsSegment)
	return backends.EntityID{Name: topic}
}

// refusesMessage reports whether an error code is about the message itself: sending it again
// would be refused again.
func refusesMessage(code backends.Code) bool {
	return code == backends.Invalid || code == backends.TooLarge || code == backends.NotCarried
}
