package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dlq/backends"
	"dlq/backends/broker"
	"dlq/backends/message"
)

var _ backends.EntityAdmin = (*Backend)(nil)

// subscriptionSegment stands between the name of a topic and that of its subscription.
const subscriptionSegment = "/Subscriptions/"

// CreateEntity makes an entity. Which service's properties it has is the setting Dialect,
// "servicebus" or "sqs".
func (b *Backend) CreateEntity(ctx context.Context, e backends.NewEntity) (backends.EntityDescription, error) {
	const op = "create"
	if err := itself(ctx, op, e.ID); err != nil {
		return backends.EntityDescription{}, err
	}
	name, kind, err := b.resolveNew(e)
	if err != nil {
		return backends.EntityDescription{}, wrap(op, e.ID, err)
	}
	id := backends.EntityID{Name: name}
	p, err := newProperties(kind, e.Settings)
	if err != nil {
		return backends.EntityDescription{}, wrap(op, id, err)
	}
	rules := make([]broker.Rule, len(e.Rules))
	for i, r := range e.Rules {
		if rules[i], err = engineRule(r); err != nil {
			return backends.EntityDescription{}, wrap(op, id, err)
		}
	}
	if err := b.engine.Create(name, kind, p, rules...); err != nil {
		return backends.EntityDescription{}, wrap(op, id, err)
	}
	return b.DescribeEntity(ctx, id)
}

// itself refuses a sub-queue, which is no entity, and is where a call that is cancelled ends.
func itself(ctx context.Context, op string, id backends.EntityID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if id.Sub != backends.Main {
		return &backends.Error{Op: op, Entity: id, Code: backends.Invalid, Err: fmt.Errorf("it comes and goes with %s, which is the entity", id.Name)}
	}
	return nil
}

// resolveNew says what a new entity is called and what it is, where its name leaves that open.
func (b *Backend) resolveNew(e backends.NewEntity) (string, broker.Kind, error) {
	name, kind := e.ID.Name, broker.Kind(e.Kind)
	topic, short, spelled := strings.Cut(name, subscriptionSegment)
	if !spelled {
		i := strings.LastIndexByte(name, '/')
		topic, short = name[:max(i, 0)], name[i+1:]
	}
	if kind == "" && spelled {
		kind = broker.Subscription
	}
	if topic == "" || kind != "" && kind != broker.Subscription {
		if kind == "" {
			kind = broker.Queue
		}
		return name, kind, nil
	}
	info, err := b.engine.Entity(topic)
	switch {
	case err == nil && info.Kind == broker.Topic:
		return info.Name + subscriptionSegment + short, broker.Subscription, nil
	case err != nil && !errors.Is(err, broker.ErrNoEntity):
		return "", "", err
	case kind == broker.Subscription:
		return topic + subscriptionSegment + short, kind, nil // the engine says what is missing
	}
	return name, broker.Queue, nil
}

// newProperties applies settings to the defaults: first those that say what the others mean.
func newProperties(kind broker.Kind, settings []backends.Setting) (broker.Properties, error) {
	dialect := broker.ServiceBus
	for _, s := range settings {
		if strings.EqualFold(s.Name, "Dialect") && strings.EqualFold(s.Value, string(broker.SQS)) {
			dialect = broker.SQS
		}
	}
	p := broker.Defaults(kind, dialect)
	var first, rest []backends.Setting
	for _, s := range settings {
		if strings.EqualFold(s.Name, "FifoQueue") {
			first = append(first, s)
		} else {
			rest = append(rest, s)
		}
	}
	return p, apply(&p, kind, append(first, rest...))
}

func apply(p *broker.Properties, kind broker.Kind, settings []backends.Setting) error {
	for _, s := range settings {
		if err := p.Set(kind, s.Name, s.Value); err != nil {
			return err
		}
	}
	return nil
}

// DescribeEntity reads properties and rules.
func (b *Backend) DescribeEntity(ctx context.Context, id backends.EntityID) (backends.EntityDescription, error) {
	const op = "describe"
	if err := itself(ctx, op, id); err != nil {
		return backends.EntityDescription{}, err
	}
	info, err := b.engine.Entity(id.Name)
	if err != nil {
		return backends.EntityDescription{}, wrap(op, id, err)
	}
	d := backends.EntityDescription{
		ID: backends.EntityID{Name: info.Name}, Kind: backends.EntityKind(info.Kind),
		Created: info.Created, Modified: info.Modified,
	}
	for _, p := range info.List(info.Kind) {
		d.Properties = append(d.Properties, backends.Property(p))
	}
	if info.Kind != broker.Subscription {
		return d, nil
	}
	rules, err := b.engine.Rules(info.Name)
	for _, r := range rules {
		d.Rules = append(d.Rules, describeRule(r))
	}
	return d, wrap(op, id, err)
}

// ChangeEntity changes properties in one commit.
func (b *Backend) ChangeEntity(ctx context.Context, id backends.EntityID, settings ...backends.Setting) error {
	const op = "change"
	if err := itself(ctx, op, id); err != nil {
		return err
	}
	info, err := b.engine.Entity(id.Name) // for its kind, which does not change
	if err == nil {
		err = b.engine.Change(info.Name, func(p *broker.Properties) error { return apply(p, info.Kind, settings) })
	}
	return wrap(op, id, err)
}

// DeleteEntity deletes an entity with its messages.
func (b *Backend) DeleteEntity(ctx context.Context, id backends.EntityID) error {
	const op = "delete"
	if err := itself(ctx, op, id); err != nil {
		return err
	}
	return wrap(op, id, b.engine.Delete(id.Name))
}

// AddRule adds a rule to a subscription.
func (b *Backend) AddRule(ctx context.Context, subscription backends.EntityID, r backends.Rule) error {
	const op = "add a rule to"
	if err := itself(ctx, op, subscription); err != nil {
		return err
	}
	rule, err := engineRule(r)
	if err == nil {
		err = b.engine.AddRule(subscription.Name, rule)
	}
	return wrap(op, subscription, err)
}

// RemoveRule removes a rule from a subscription.
func (b *Backend) RemoveRule(ctx context.Context, subscription backends.EntityID, name string) error {
	const op = "remove a rule from"
	if err := itself(ctx, op, subscription); err != nil {
		return err
	}
	return wrap(op, subscription, b.engine.RemoveRule(subscription.Name, name))
}

// systemPrefix stands before the names of the system properties of a correlation filter.
const systemPrefix = "sys."

// correlationField is a field of the engine's correlation filter.
type correlationField struct {
	name string
	at   **string
}

func correlationFields(f *broker.Filter) []correlationField {
	c := &f.Correlation
	return []correlationField{
		{"CorrelationId", &c.CorrelationID},
		{"MessageId", &c.MessageID},
		{"To", &c.To},
		{"ReplyTo", &c.ReplyTo},
		{"Label", &c.Subject},
		{"SessionId", &c.SessionID},
		{"ReplyToSessionId", &c.ReplyToSessionID},
		{"ContentType", &c.ContentType},
	}
}

func engineRule(r backends.Rule) (broker.Rule, error) {
	out := broker.Rule{Name: r.Name, Action: r.Action}
	switch {
	case r.Filter != "" && len(r.Correlation) > 0:
		return out, fmt.Errorf("%w: rule %s: a filter is an expression or a correlation, not both", broker.ErrInvalid, r.Name)
	case r.Filter != "":
		out.Filter.Kind, out.Filter.SQL = broker.SQLFilter, r.Filter
		return out, nil
	case len(r.Correlation) == 0:
		out.Filter.Kind = broker.TrueFilter
		return out, nil
	}
	out.Filter.Kind = broker.CorrelationFilter
	for _, a := range r.Correlation {
		if err := correlate(&out.Filter, a); err != nil {
			return out, fmt.Errorf("%w: rule %s: %w", broker.ErrInvalid, r.Name, err)
		}
	}
	return out, nil
}

// correlate adds one property to a correlation filter.
func correlate(f *broker.Filter, a message.Attribute) error {
	if len(a.Name) < len(systemPrefix) || !strings.EqualFold(a.Name[:len(systemPrefix)], systemPrefix) {
		f.Correlation.Properties = append(f.Correlation.Properties, a)
		return nil
	}
	fields := correlationFields(f)
	i := slices.IndexFunc(fields, func(c correlationField) bool { return strings.EqualFold(c.name, a.Name[len(systemPrefix):]) })
	text, isText := a.Value.(message.String)
	switch {
	case i < 0:
		names := make([]string, len(fields))
		for i, c := range fields {
			names[i] = systemPrefix + c.name
		}
		return fmt.Errorf("a correlation filter cannot compare %s; it can %s and application properties", a.Name, strings.Join(names, ", "))
	case !isText:
		return fmt.Errorf("%s is compared with text, not with a %v", a.Name, message.KindOf(a.Value))
	}
	value := string(text)
	*fields[i].at = &value
	return nil
}

func describeRule(r broker.Rule) backends.Rule {
	out := backends.Rule{Name: r.Name, Action: r.Action}
	switch r.Filter.Kind {
	case broker.SQLFilter:
		out.Filter = r.Filter.SQL
	case broker.FalseFilter:
		out.Filter = "1=0"
	case broker.CorrelationFilter:
		for _, c := range correlationFields(&r.Filter) {
			if *c.at != nil {
				out.Correlation = append(out.Correlation, message.Attribute{Name: systemPrefix + c.name, Value: message.String(**c.at)})
			}
		}
		out.Correlation = append(out.Correlation, r.Filter.Correlation.Properties...)
	}
	return out
}
