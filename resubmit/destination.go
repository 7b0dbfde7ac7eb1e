package resubmit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dlq/backends"
	"dlq/backends/message"
)

// Destination is one entity that messages would go to.
type Destination struct {
	Entity backends.EntityID
	Count  int64
	Create bool // it does not exist and would be made with defaults
	// Deduplication is how it recognises what it has had, and NewIDs says that messages get new
	// ids there for that.
	Deduplication backends.Deduplication
	NewIDs        bool `json:",omitempty"`
	// Receivers are who would get the messages, where the backend tells: subscriptions, or what
	// the destination forwards to, or the destination itself. They are in the order of their names.
	Receivers []Receiver `json:",omitempty"`
	Routed    int64      `json:",omitempty"` // messages that somebody would get
	Unrouted  int64      `json:",omitempty"` // messages that nobody would get
}

// Receiver is an entity that would get messages.
type Receiver struct {
	Entity backends.EntityID
	Copies int64
}

// namedReceivers is how many receivers a text names.
const namedReceivers = 20

// Fanout says in words who would get the messages, such as "3 subscriptions receive each: a, b,
// c". It is empty where that is not known, or where it is nobody but the destination.
func (d Destination) Fanout() string {
	if len(d.Receivers) == 0 || len(d.Receivers) == 1 && d.Receivers[0].Entity == d.Entity {
		return ""
	}
	var copies int64
	each, noun := true, "subscription"
	for _, r := range d.Receivers {
		copies += r.Copies
		each = each && r.Copies == d.Routed
		if r.Entity.Sub != backends.Main || !strings.Contains(r.Entity.Name, subscriptionsSegment) {
			noun = "queue"
		}
	}
	var names []string
	for i, r := range d.Receivers {
		if i == namedReceivers {
			names = append(names, fmt.Sprintf("and %d more", len(d.Receivers)-i))
			break
		}
		name := r.Entity.String()
		if !each {
			name += fmt.Sprintf(" %d", r.Copies)
		}
		names = append(names, name)
	}
	switch list := strings.Join(names, ", "); {
	case !each:
		return fmt.Sprintf("%d copies of %d messages: %s", copies, d.Routed, list)
	case len(d.Receivers) == 1:
		return "1 " + noun + " receives each: " + list
	default:
		return fmt.Sprintf("%d %ss receive each: %s", len(d.Receivers), noun, list)
	}
}

// receive counts one message of which each entity would get a copy.
func (d *Destination) receive(by []backends.EntityID) {
	d.Routed++
	for _, id := range by {
		i, found := slices.BinarySearchFunc(d.Receivers, id, func(r Receiver, id backends.EntityID) int {
			return strings.Compare(r.Entity.String(), id.String())
		})
		if !found {
			d.Receivers = slices.Insert(d.Receivers, i, Receiver{Entity: id})
		}
		d.Receivers[i].Copies++
	}
}

// outgoing returns what to send for m, which goes to that destination. edited is what a person
// made of it, or nil. An error says why the message must be left alone.
func (t *Transform) outgoing(to Destination, m, edited *message.Message) (*message.Message, error) {
	from := m
	if edited != nil {
		from = edited.Clone()
		from.Broker = m.Broker
	}
	out, err := t.Apply(from)
	if err != nil {
		return nil, err
	}
	attribute := to.Deduplication.Attribute
	chosen := edited != nil && !message.EqualValues(edited.ID, m.ID) // by a person
	switch t.edits.MessageID {
	case IDNew:
		if attribute != "" {
			t.renew(out, from, attribute)
		}
	case IDAuto, "":
		if to.NewIDs && (!chosen || attribute != "") {
			t.renew(out, from, attribute)
		}
	}
	return out, nil
}

const subscriptionsSegment = "/Subscriptions/"

// destinationOf returns where a message goes: where the spec says, else where it came from. A dead
// letter that was forwarded, or moved by a redrive policy, knows that itself; a subscription
// cannot be sent to, only its topic.
func destinationOf(spec Spec, source backends.Entity, m *message.Message) (backends.EntityID, error) {
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
	case len(source.Sources) == 1:
		return sendable(source.Sources[0]), nil
	}
	return backends.EntityID{}, errors.New("it does not say where it came from; name the destination with --to")
}

func sendable(id backends.EntityID) backends.EntityID {
	topic, _, _ := strings.Cut(id.Name, subscriptionsSegment)
	return backends.EntityID{Name: topic}
}

// Locate returns where the messages lie that id names, as the service writes it: the dead letters
// of a queue may be in another one, which its redrive policy names.
func Locate(ctx context.Context, b backends.Backend, id backends.EntityID) (backends.EntityID, error) {
	e, err := entity(ctx, b, id)
	if err != nil {
		return id, err
	}
	return e.Resolve(id.Sub), nil
}

// Find looks up the entity that id names, whichever of its sub-queues. A missing one is an error.
func Find(ctx context.Context, b backends.Backend, id backends.EntityID) (backends.Entity, error) {
	return entity(ctx, b, id)
}

// entity looks up one entity. A missing one is an error.
func entity(ctx context.Context, b backends.Backend, id backends.EntityID) (backends.Entity, error) {
	for e, err := range b.Entities(ctx, backends.EntityQuery{Names: []string{id.Name}}) {
		return e, err
	}
	return backends.Entity{}, &backends.Error{Op: "find", Entity: id, Code: backends.NotFound}
}
