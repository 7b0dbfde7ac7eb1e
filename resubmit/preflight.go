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
	FindDuplicate          = "duplicate"       // the destination would accept them and drop them
	FindUnrouted           = "unrouted"        // no rule lets them through; a warning if that is allowed
	FindDiesAgain          = "dies-again"      // they would be dead-lettered at once; a warning if not all would
)

// The codes of warnings.
const (
	FindCreates        = "creates-destination"
	FindSkips          = "will-skip"       // messages that cannot be sent as they are
	FindTimeToLive     = "time-to-live"    // they died of it, and it starts anew
	FindSessionMissing = "session-missing" // they need a session, and have none
	FindTopic          = "topic"           // who gets a copy of what is sent to a topic
	FindForwarded      = "forwarded"       // who gets what the destination passes on
	FindNotBack        = "not-back"        // the subscription that they come from would not get them
	FindNewIDs         = "new-ids"         // the destination detects duplicates: they get new message ids
	FindShared         = "shared"          // the dead-letter queue is also that of other queues; a veto if all is selected
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

	caps      backends.Capabilities
	router    backends.Router // nil: it cannot be told who would get a message
	targets   map[backends.EntityID]*target
	skips     int64
	firstSkip error
	dying     int64         // messages that would be dead-lettered at once, whoever gets them
	shortest  time.Duration // time to live of those that died of it
}

func (c *preflight) capabilities() {
	c.targets = map[backends.EntityID]*target{}
	c.caps = backends.Probe(c.env.Backend)
	c.router, _ = backends.As[backends.Router](c.env.Backend)
	if !c.caps.Peek {
		c.warn(FindLeases, "this service cannot be browsed: looking locks messages for a moment, and may count as a delivery", nil)
	}
	if c.plan.Spec.Kind == Resubmit && !c.caps.Move {
		c.warn(FindPossiblyTwice, "this service cannot move in one step: nothing is lost if the process dies, but the messages then in flight are possibly twice, and named", nil)
	}
}

// shared warns where the dead letters of the entity that was named lie among those of others, and
// refuses to take all of those along unasked.
func (c *preflight) shared(named backends.Entity) {
	text := Shared(named, c.source)
	if text == "" {
		return
	}
	sel := c.plan.Spec.Selection
	switch {
	case !sel.All || sel.BySource():
		c.warn(FindShared, text, nil)
	case c.plan.Spec.Kind == Purge:
		c.veto(FindShared, fmt.Sprintf("%s: name %s to purge them all", text, c.source.ID))
	default:
		c.veto(FindShared, fmt.Sprintf("%s: name %s to mean them all, or add --where \"sys.DeadLetterSource = '%s'\"", text, c.source.ID, named.ID))
	}
}

// Shared says that the dead letters of the entity named lie in source together with those of
// others; "" if they do not, or if source itself is what was named.
func Shared(named, source backends.Entity) string {
	if named.ID == source.ID || len(source.Sources) < 2 {
		return ""
	}
	var others []string
	for _, id := range source.Sources {
		if id != named.ID {
			others = append(others, id.String())
		}
	}
	return fmt.Sprintf("the dead letters of %s lie in %s, together with those of %s", named.ID, source.ID, strings.Join(others, ", "))
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
	to, err := destinationOf(spec, c.source, m)
	if err != nil {
		c.skip(FindSkips, skipsText, m, err)
		return nil
	}
	t, err := c.target(to)
	if err != nil {
		return err
	}
	edited := spec.Edited[m.Broker.SequenceNumber]
	out, err := c.transform.outgoing(c.plan.Destinations[t.index], m, edited)
	if err != nil {
		c.skip(FindSkips, skipsText, m, err)
		return nil
	}
	if !t.known {
		c.fate(m, out)
		return nil
	}
	if t.entity.RequiresSession && out.SessionID == nil {
		c.skip(FindSessionMissing, fmt.Sprintf("%s takes only messages with a session id; these have none and will be skipped: give them one with dlq edit", to), m, errNoSession)
		return nil
	}
	if v, ok := backends.As[backends.SendValidator](c.env.Backend); ok {
		if err := v.ValidateSend(c.ctx, to, out); err != nil && !c.oddAlready(v, m, err) {
			return c.unsendable(m, err)
		}
	}
	c.fate(m, out)
	return c.route(t, m, edited, out)
}

const skipsText = "these cannot be sent as they are and will be skipped"

var errNoSession = errors.New("it has no session id")

// oddAlready reports whether a message is refused for what the service does not carry, though it lies
// at such a service as it is. Then the move judges, which lets through what it leaves as it was.
func (c *preflight) oddAlready(v backends.SendValidator, m *message.Message, refused error) bool {
	return backends.IsCode(refused, backends.NotCarried) && c.caps.Move && !c.plan.Spec.Copy &&
		backends.IsCode(v.ValidateSend(c.ctx, c.source.ID, Outgoing(m)), backends.NotCarried)
}

// unsendable skips a message if the error of the service is about it, and returns any other error.
func (c *preflight) unsendable(m *message.Message, err error) error {
	code, coded := backends.CodeOf(err)
	if coded && !refusesMessage(code) {
		return err
	}
	c.skip(FindSkips, skipsText, m, err)
	return nil
}

// skip names a message that will be left alone.
func (c *preflight) skip(code, text string, m *message.Message, why error) {
	if c.skips++; c.skips == 1 {
		c.firstSkip = why
	}
	c.sample(&c.plan.Warnings, code, text, m, why.Error())
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

// conclude judges the plan as a whole.
func (c *preflight) conclude() {
	p := c.plan
	if p.Spec.Max > 0 && p.Matched > int64(p.Spec.Max) {
		c.veto(FindTooMany, fmt.Sprintf("%d messages match and --max allows %d; narrow the selection or raise it", p.Matched, p.Spec.Max))
	}
	if p.Matched > 0 && c.skips == p.Matched {
		c.veto(FindNothingToSend, "every message would be skipped; the first: "+c.firstSkip.Error())
	}
	c.judgeRoutes()
	if n, first := p.query.Unjudged(); n > 0 {
		p.Warnings = append(p.Warnings, Finding{
			Code: FindUnjudged, Count: n,
			Text: fmt.Sprintf("messages that the selection could not judge are left out; the first: %v", first),
		})
	}
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

// refusesMessage reports whether an error code is about the message itself: sending it again
// would be refused again.
func refusesMessage(code backends.Code) bool {
	switch code {
	case backends.Invalid, backends.TooLarge, backends.NotCarried, backends.Duplicate, backends.Unrouted:
		return true
	}
	return false
}
