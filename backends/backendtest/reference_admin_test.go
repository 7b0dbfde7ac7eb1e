package backendtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/backends/sqlfilter"
)

const subscriptions = "/Subscriptions/"

// find returns an entity by its name, or a subscription by that of its topic and its own.
func (w *world) find(name string) *queue {
	if q := w.queues[name]; q != nil {
		return q
	}
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		return w.queues[name[:i]+subscriptions+name[i+1:]]
	}
	return nil
}

// subscriptions returns those of a topic.
func (w *world) subscriptions(topic string) []*queue {
	var out []*queue
	for _, name := range slices.Sorted(maps.Keys(w.queues)) {
		if strings.HasPrefix(name, topic+subscriptions) {
			out = append(out, w.queues[name])
		}
	}
	return out
}

// publish copies a message to the subscriptions whose rules let it through.
func (w *world) publish(topic string, m *message.Message) {
	for _, r := range w.routes(topic, m) {
		r.to.add(r.as, w.now)
	}
}

// copied is a copy of a message for a subscription.
type copied struct {
	to *queue
	as *message.Message
}

// routes are the copies that a message becomes in a topic.
func (w *world) routes(topic string, m *message.Message) (out []copied) {
	for _, sub := range w.subscriptions(topic) {
		plain := false
		for _, r := range sub.rules {
			switch {
			case !passes(r, m):
			case r.Action == "":
				plain = true
			default:
				own := m.Clone()
				set := setText.FindStringSubmatch(r.Action)
				own.Properties.Set(set[1], message.String(set[2]))
				out = append(out, copied{sub, own})
			}
		}
		if plain {
			out = append(out, copied{sub, m})
		}
	}
	return out
}

func (r *reference) Route(ctx context.Context, to backends.EntityID, m *message.Message) (out []backends.EntityID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := r.enter(ctx, "route", to)
	switch {
	case err != nil:
		return nil, err
	case q.duplicate(m, r.now, false):
		return nil, fail("route", to, backends.Duplicate, nil)
	case q.kind != backends.Topic:
		return []backends.EntityID{to}, nil
	}
	for _, c := range r.routes(q.name, m) {
		out = append(out, backends.EntityID{Name: c.to.name})
	}
	return out, nil
}

// setText is the one action that the reference knows.
var setText = regexp.MustCompile(`^SET (\w+) = '(\w*)'$`)

func passes(r backends.Rule, m *message.Message) bool {
	if r.Filter != "" {
		e, err := sqlfilter.Compile(r.Filter, sqlfilter.RuleNames(), nil)
		ok, failed := e.Match(&sqlfilter.Env{Message: m})
		return err == nil && failed == nil && ok
	}
	for _, a := range r.Correlation {
		v, _ := m.Properties.Get(a.Name)
		if a.Name == "sys.Label" && m.Subject != nil {
			v = message.String(*m.Subject)
		}
		if !message.EqualValues(v, a.Value) {
			return false
		}
	}
	return true
}

func checkRule(id backends.EntityID, r backends.Rule) error {
	_, err := sqlfilter.Compile(cmp.Or(r.Filter, "1=1"), sqlfilter.RuleNames(), nil)
	switch {
	case r.Name == "":
		err = errors.New("a rule needs a name")
	case r.Filter != "" && len(r.Correlation) > 0:
		err = errors.New("a rule has one filter")
	case r.Action != "" && !setText.MatchString(r.Action):
		err = errors.New("the action cannot be read")
	}
	for _, a := range r.Correlation {
		if strings.HasPrefix(a.Name, "sys.") && a.Name != "sys.Label" {
			err = fmt.Errorf("no system property %s", a.Name)
		}
	}
	if err != nil {
		return fail("add a rule to", id, backends.Invalid, err)
	}
	return nil
}

// properties are what can be set of an entity of the reference: numbers and flags.
func (q *queue) properties() []backends.Property {
	number := func(name, value, standard string) backends.Property {
		return backends.Property{Name: name, Value: value, Default: standard, Range: "1 to 2000"}
	}
	sec := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	return []backends.Property{
		number("Lock", sec(q.opts.LockDuration), sec(standard.LockDuration)),
		number("MaxDeliveries", strconv.Itoa(q.opts.MaxDeliveryCount), strconv.Itoa(standard.MaxDeliveryCount)),
		{Name: "Note", Value: q.note, Range: "anything"},
		{Name: "Ordered", Value: strconv.FormatBool(q.ordered), Default: "false", Range: "true, false", Immutable: true},
	}
}

var standard = QueueOptions{LockDuration: time.Minute, MaxDeliveryCount: 10, MaxBodyBytes: 1 << 20}

func (q *queue) set(s backends.Setting, existing bool) error {
	n, err := strconv.Atoi(s.Value)
	if err == nil && (n < 1 || n > 2000) {
		err = errors.New("out of range")
	}
	switch s.Name {
	case "Lock":
		q.opts.LockDuration = time.Duration(n) * time.Second
	case "MaxDeliveries":
		q.opts.MaxDeliveryCount = n
	case "Note":
		q.note, err = s.Value, nil
	case "Ordered":
		var ordered bool
		ordered, err = strconv.ParseBool(s.Value)
		if existing && ordered != q.ordered {
			err = errors.New("it is fixed")
		}
		q.ordered = ordered
	default:
		err = errors.New("there is no such property")
	}
	if err != nil {
		return fail("set", backends.EntityID{Name: q.name}, backends.Invalid, fmt.Errorf("%s: %w", s.Name, err))
	}
	return nil
}

func (q *queue) description() backends.EntityDescription {
	return backends.EntityDescription{
		ID: backends.EntityID{Name: q.name}, Kind: q.kind, Properties: q.properties(), Rules: slices.Clone(q.rules),
		Created: q.created, Modified: q.modified,
	}
}

// on begins a call about the entity itself.
func (r *reference) on(ctx context.Context, op string, id backends.EntityID) (*queue, error) {
	if ctx.Err() == nil && id.Sub != backends.Main {
		return nil, fail(op, id, backends.Invalid, errors.New("a sub-queue is no entity of its own"))
	}
	return r.enter(ctx, op, id)
}

func (r *reference) CreateEntity(ctx context.Context, e backends.NewEntity) (d backends.EntityDescription, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.on(ctx, "create", e.ID)
	switch {
	case err == nil:
		return d, fail("create", e.ID, backends.AlreadyExists, nil)
	case !backends.IsCode(err, backends.NotFound):
		return d, err
	}
	topic, own, _ := strings.Cut(strings.Replace(e.ID.Name, subscriptions, "/", 1), "/")
	t := r.queues[topic]
	ofTopic := t != nil && t.kind == backends.Topic && own != ""
	if e.Kind == "" {
		e.Kind = backends.Queue
		if ofTopic {
			e.Kind = backends.Subscription
		}
	}
	q := &queue{name: e.ID.Name, kind: e.Kind, opts: standard, rules: e.Rules, created: r.now, modified: r.now}
	switch {
	case e.Kind == backends.Subscription && !ofTopic:
		return d, fail("create", e.ID, backends.NotFound, errors.New("no such topic"))
	case e.Kind == backends.Subscription:
		q.name = topic + subscriptions + own
		if len(q.rules) == 0 {
			q.rules = []backends.Rule{{Name: "$Default"}}
		}
	case q.name == "" || len(q.rules) > 0:
		return d, fail("create", e.ID, backends.Invalid, errors.New("a name is missing, or there is a rule too many"))
	}
	for _, s := range e.Settings {
		if err := q.set(s, false); err != nil {
			return d, err
		}
	}
	for _, rule := range q.rules {
		if err := checkRule(e.ID, rule); err != nil {
			return d, err
		}
	}
	r.queues[q.name] = q
	return q.description(), nil
}

func (r *reference) DescribeEntity(ctx context.Context, id backends.EntityID) (d backends.EntityDescription, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := r.on(ctx, "describe", id)
	if err != nil {
		return d, err
	}
	return q.description(), nil
}

func (r *reference) ChangeEntity(ctx context.Context, id backends.EntityID, settings ...backends.Setting) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := r.on(ctx, "change", id)
	if err != nil {
		return err
	}
	changed := *q
	for _, s := range settings {
		if err := changed.set(s, true); err != nil {
			return err
		}
	}
	*q = changed
	q.modified = r.now
	return nil
}

func (r *reference) DeleteEntity(ctx context.Context, id backends.EntityID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := r.on(ctx, "delete", id)
	if err != nil {
		return err
	}
	delete(r.queues, q.name)
	for _, sub := range r.subscriptions(q.name) {
		delete(r.queues, sub.name)
	}
	return nil
}

// subscription begins a call about rules.
func (r *reference) subscription(ctx context.Context, op string, id backends.EntityID) (*queue, error) {
	q, err := r.on(ctx, op, id)
	if err == nil && q.kind != backends.Subscription {
		return nil, fail(op, id, backends.Invalid, errors.New("it is no subscription"))
	}
	return q, err
}

func (q *queue) rule(name string) int {
	return slices.IndexFunc(q.rules, func(r backends.Rule) bool { return r.Name == name })
}

func (r *reference) AddRule(ctx context.Context, id backends.EntityID, rule backends.Rule) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := r.subscription(ctx, "add a rule to", id)
	switch {
	case err != nil:
		return err
	case q.rule(rule.Name) >= 0:
		return fail("add a rule to", id, backends.AlreadyExists, nil)
	}
	if err := checkRule(id, rule); err != nil {
		return err
	}
	q.rules = append(slices.Clip(q.rules), rule)
	return nil
}

func (r *reference) RemoveRule(ctx context.Context, id backends.EntityID, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := r.subscription(ctx, "remove a rule from", id)
	if err != nil {
		return err
	}
	i := q.rule(name)
	if i < 0 {
		return fail("remove a rule from", id, backends.NotFound, fmt.Errorf("no rule %q", name))
	}
	q.rules = slices.Delete(slices.Clone(q.rules), i, i+1)
	return nil
}
