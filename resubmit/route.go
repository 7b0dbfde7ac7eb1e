package resubmit

import (
	"fmt"
	"slices"
	"strings"

	"dlq/backends"
	"dlq/backends/message"
)

// target is what the preflight knows of a destination.
type target struct {
	index  int             // in Plan.Destinations
	entity backends.Entity // if it is known
	known  bool            // it exists, and can be sent to as it is
	ids    map[string]bool // of the messages that would go there, where that matters
}

// target looks up a destination once, and counts the messages that go there.
func (c *preflight) target(to backends.EntityID) (*target, error) {
	if t := c.targets[to]; t != nil {
		c.plan.Destinations[t.index].Count++
		return t, nil
	}
	t := &target{index: len(c.plan.Destinations), ids: map[string]bool{}}
	d := Destination{Entity: to, Count: 1}
	e, err := entity(c.ctx, c.env.Backend, to)
	switch {
	case err == nil:
		t.entity, t.known = e, true
		d.Deduplication = e.Deduplication
		d.NewIDs = e.Deduplication.Window > 0 && c.renews()
		if e.Kind == backends.Topic && c.router == nil {
			c.warn(FindTopic, fmt.Sprintf("%s is a topic: each subscription whose rules match gets a copy", to.Name), nil)
		}
	case !backends.IsCode(err, backends.NotFound):
		return nil, err
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
	c.targets[to] = t
	return t, nil
}

// canCreate reports whether a missing destination is made: one that was asked for. What is gone
// though messages came from it is not made again behind anybody's back.
func (c *preflight) canCreate(to backends.EntityID) bool {
	return c.plan.Spec.To != nil && to.Sub == backends.Main && !strings.Contains(to.Name, subscriptionsSegment) && c.caps.CreateQueue
}

// renews reports whether messages may get new ids without being told to.
func (c *preflight) renews() bool {
	policy := c.plan.Spec.Edits.MessageID
	return policy == "" || policy == IDAuto
}

// route finds out who would get a message, and whether somebody would drop it.
func (c *preflight) route(t *target, m, edited, out *message.Message) error {
	d := &c.plan.Destinations[t.index]
	keeps := c.plan.Spec.Edits.MessageID == IDKeep
	if keeps && (c.again(t, out) || c.router == nil && c.maybeSeen(d, m, out)) {
		c.duplicate(d, m)
		return nil
	}
	if c.router == nil {
		return nil
	}
	by, err := c.router.Route(c.ctx, d.Entity, out)
	if backends.IsCode(err, backends.Duplicate) && c.renews() && !d.NewIDs {
		d.NewIDs = true // somebody behind the destination detects duplicates
		if out, err = c.transform.outgoing(*d, m, edited); err == nil {
			by, err = c.router.Route(c.ctx, d.Entity, out)
		}
	}
	switch {
	case backends.IsCode(err, backends.Duplicate):
		c.duplicate(d, m)
	case err != nil:
		return c.unsendable(m, err)
	case len(by) == 0:
		d.Unrouted++
		c.unrouted(d, m)
	default:
		d.receive(by)
		c.arrivals(d, m, by)
	}
	return nil
}

// again reports whether another message of the plan has the same id, where the destination looks
// at that.
func (c *preflight) again(t *target, out *message.Message) bool {
	d := t.entity.Deduplication
	id := duplicateID(d, out)
	if d.Window == 0 || id == "" {
		return false
	}
	seen := t.ids[id]
	t.ids[id] = true
	return seen
}

// duplicateID is the id by which an entity recognises a message; "": none that can be told.
func duplicateID(d backends.Deduplication, m *message.Message) string {
	if d.Attribute == "" {
		return message.FormatValue(m.ID)
	}
	for _, a := range m.System {
		if a.Name == d.Attribute {
			return message.FormatValue(a.Value)
		}
	}
	return ""
}

// maybeSeen reports whether the destination can still know the id of a message, where it cannot be
// asked: the message was sent to it at its enqueued time at the latest.
func (c *preflight) maybeSeen(d *Destination, m, out *message.Message) bool {
	if d.Deduplication.Window == 0 || d.Deduplication.Attribute == "" && out.ID == nil {
		return false
	}
	at := m.Broker.EnqueuedTime
	return at.IsZero() || !c.plan.at.After(at.Add(d.Deduplication.Window))
}

// duplicate vetoes a plan with messages that would be dropped for their ids.
func (c *preflight) duplicate(d *Destination, m *message.Message) {
	who := d.Entity.String()
	if d.Deduplication.Window > 0 {
		who += fmt.Sprintf(" remembers ids for %v, and", d.Deduplication.Window)
	}
	c.sample(&c.plan.Vetoes, FindDuplicate, who+" would accept these and drop them as duplicates; give them new ids with --message-id new",
		m, "it would be dropped as a duplicate")
}

// unrouted vetoes a plan with messages that nobody would get, or says so where that is allowed.
func (c *preflight) unrouted(d *Destination, m *message.Message) {
	const reason = "no rule lets it through"
	text := fmt.Sprintf("no rule of %s lets these through: ", d.Entity)
	if c.plan.Spec.AllowUnrouted {
		c.sample(&c.plan.Warnings, FindUnrouted, text+"they will be dropped, and only the journal keeps them", m, reason)
		return
	}
	c.sample(&c.plan.Vetoes, FindUnrouted, text+"nobody would get them. Change a rule or the messages, or choose another destination with --to; "+
		"--allow-unrouted drops them", m, reason)
}

// arrivals warns of what would become of a message where it arrives.
func (c *preflight) arrivals(d *Destination, m *message.Message, by []backends.EntityID) {
	var dead []backends.EntityID
	for _, id := range by {
		if id.Sub != backends.Main {
			dead = append(dead, id)
		}
	}
	if len(dead) > 0 {
		c.warn(FindDiesAgain, fmt.Sprintf("they would be dead-lettered again at once, in %s", dead[0]), m)
		if len(dead) == len(by) {
			c.dying++
		}
	}
	own := c.plan.Spec.From.MainQueue()
	if c.isOwnTopic(d.Entity) && !slices.Contains(by, own) {
		c.warn(FindNotBack, fmt.Sprintf("no rule of %s lets these through, so it would not get back what it had", own.Name), m)
	}
}

// isOwnTopic reports whether the messages come from a subscription of that topic.
func (c *preflight) isOwnTopic(id backends.EntityID) bool {
	topic, _, ok := strings.Cut(c.plan.Spec.From.Name, subscriptionsSegment)
	return ok && strings.EqualFold(topic, id.Name)
}

// judgeRoutes says who would get the messages, and vetoes a plan after which nothing is better.
func (c *preflight) judgeRoutes() {
	p := c.plan
	i := slices.IndexFunc(p.Warnings, func(f Finding) bool { return f.Code == FindDiesAgain })
	if i >= 0 && c.dying == p.Matched {
		veto := p.Warnings[i]
		veto.Text += "; mend what is wrong there first, or choose another destination with --to"
		p.Warnings, p.Vetoes = slices.Delete(p.Warnings, i, i+1), append(p.Vetoes, veto)
	}
	for _, d := range p.Destinations {
		if d.NewIDs {
			c.warn(FindNewIDs, newIDsText(d), nil)
		}
		text := d.Fanout()
		switch {
		case text == "":
		case c.targets[d.Entity].entity.Kind == backends.Topic:
			if c.isOwnTopic(d.Entity) && len(d.Receivers) > 1 {
				text += "; those that did not fail get it a second time"
			}
			c.warn(FindTopic, fmt.Sprintf("%s is a topic: %s", d.Entity.Name, text), nil)
		default:
			c.warn(FindForwarded, fmt.Sprintf("%s passes on what it gets: %s", d.Entity.Name, text), nil)
		}
	}
}

func newIDsText(d Destination) string {
	who := d.Entity.String()
	if d.Deduplication.Window == 0 {
		who = "what is behind " + who
	}
	if d.Deduplication.Attribute != "" {
		return fmt.Sprintf("%s detects duplicates: messages get a new %s", who, d.Deduplication.Attribute)
	}
	return fmt.Sprintf("%s detects duplicates: messages get new ids, and keep the old ones in %s", who, OriginalIDProperty)
}
