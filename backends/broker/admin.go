package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dlq/backends/broker/store"
)

// Create makes an entity and returns when it is durable. A subscription is named by
// "topic/Subscriptions/name", needs its topic, and gets the rules, or one called $Default
// that is always true. The error is [ErrExists], [ErrInvalid] or [ErrNoEntity].
func (e *Engine) Create(name string, kind Kind, p Properties, rules ...Rule) error {
	p = p.clone()
	p.qualify(name)
	if err := errors.Join(validateName(name, kind, &p), p.validate(kind)); err != nil {
		return err
	}
	compiled, err := compileRules(kind, rules)
	if err != nil {
		return err
	}
	t, err := e.begin()
	if err != nil {
		return err
	}
	ent := newEntity(e.lastEntity+1, name, kind, p, 1)
	ent.created, ent.modified, ent.accessed = t.now, t.now, t.now
	ent.rules = compiled
	for _, r := range compiled {
		r.Created = t.now
	}
	if err := e.admits(ent); err != nil {
		t.end()
		return err
	}
	e.add(ent)
	if kind == Subscription {
		_ = e.join(ent) // admits has looked
	}
	t.batch.PutEntity(ent.stored())
	t.batch.PutLastEntity(ent.id)
	for _, r := range compiled {
		t.batch.PutRule(r.stored(ent.id))
	}
	e.watchIdle(ent)
	return t.commit()
}

// admits checks a new entity against those that there are.
func (e *Engine) admits(ent *entity) error {
	for _, other := range e.byName[fold(ent.name)] {
		if !other.p.CaseSensitive || !ent.p.CaseSensitive || other.name == ent.name {
			return fmt.Errorf("%w: %s", ErrExists, other.name)
		}
	}
	if ent.kind == Subscription {
		name, _, ok := cutSubscription(ent.name)
		topic := e.entity(name)
		if !ok || topic == nil || topic.kind != Topic {
			return fmt.Errorf("%w: %s; create the topic before its subscription", ErrNoEntity, name)
		}
		if most := 2000; len(topic.subscriptions) >= most {
			return fmt.Errorf("%w: a topic has at most %d subscriptions", ErrInvalid, most)
		}
	}
	return e.connects(ent, &Properties{})
}

// connects checks what the properties of an entity say about others, where that is new: an
// entity that was named may be deleted later, or forbid it, and the rest can still be changed.
func (e *Engine) connects(ent *entity, old *Properties) error {
	for _, c := range [...]struct{ name, old string }{
		{ent.p.ForwardTo, old.ForwardTo}, {ent.p.ForwardDeadLettersTo, old.ForwardDeadLettersTo},
	} {
		name := c.name
		if name == "" || name == c.old {
			continue
		}
		to := e.entity(name)
		switch {
		case fold(name) == fold(ent.name):
			return fmt.Errorf("%w: %s cannot forward to itself", ErrInvalid, ent.name)
		case to == nil || to.kind == Subscription:
			return fmt.Errorf("%w: there is no queue or topic %s to forward to; create it first", ErrInvalid, name)
		}
	}
	if ent.p.Redrive.Target == "" || ent.p.Redrive == old.Redrive {
		return nil
	}
	target := e.entity(ent.p.Redrive.Target)
	if ent.p.Redrive.Target == ent.name {
		target = ent
	}
	switch {
	case target == nil || target.kind != Queue:
		return fmt.Errorf("%w: the dead-letter queue %s does not exist; create it first", ErrInvalid, ent.p.Redrive.Target)
	case !target.like(ent):
		return fmt.Errorf("%w: the dead-letter queue %s is of another type than %s", ErrInvalid, target.name, ent.name)
	case !target.p.RedriveAllow.allows(ent.name):
		return fmt.Errorf("%w: the redrive allow policy of %s does not allow %s", ErrInvalid, target.name, ent.name)
	}
	return nil
}

// allows reports whether a queue may name the one with this policy as its dead-letter queue.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
func (a RedriveAllow) allows(source string) bool {
	switch a.Permission {
	case DenyAll:
		return false
	case AllowByQueue:
		return slices.Contains(a.Sources, source)
	}
	return true
}

// onEntity begins a command on an entity.
func (e *Engine) onEntity(name string) (*tx, *entity, error) {
	t, err := e.begin()
	if err != nil {
		return nil, nil, err
	}
	ent := e.entity(name)
	if ent == nil {
		t.end()
		return nil, nil, fmt.Errorf("%w: %s", ErrNoEntity, name)
	}
	return t, ent, nil
}

// Change changes the properties of an entity in one commit. f changes a copy; what it returns
// is returned. The error is [ErrInvalid] for a property that cannot be changed.
func (e *Engine) Change(name string, f func(*Properties) error) error {
	t, ent, err := e.onEntity(name)
	if err != nil {
		return err
	}
	old, p, target := ent.p, ent.p.clone(), e.deadLetters(ent)
	err = f(&p)
	if err == nil {
		err = errors.Join(p.validate(ent.kind), p.changed(&old, ent.kind))
	}
	if err == nil {
		ent.p = p.clone() // f may have kept p
		ent.p.qualify(ent.name)
		if err = e.connects(ent, &old); err != nil {
			ent.p = old
		}
	}
	if err != nil {
		t.end()
		return err
	}
	ent.modified, ent.accessed = t.now, t.now
	t.batch.PutEntity(ent.stored())
	e.tell(ent)
	if ent.p.Redrive != old.Redrive {
		e.wakeReferred(target)
	}
	if p.ForwardTo != old.ForwardTo {
		e.timers.add(t.now, backlog{ent})
	}
	e.timers.remove(ent.idle)
	e.watchIdle(ent)
	if ent.p.Retention != old.Retention {
		for _, q := range ent.subs {
			e.timers.remove(q.sweeper)
			q.sweeper = nil
			e.timeSweep(q)
		}
	}
	return t.commit()
}

// Delete deletes an entity with all its messages, a topic with its subscriptions, and returns
// when that is durable. Locks are lost. Those that forward to it keep their property, and
// what they cannot forward goes to their transfer dead-letter queue.
func (e *Engine) Delete(name string) error {
	t, ent, err := e.onEntity(name)
	if err != nil {
		return err
	}
	t.erase(ent)
	return t.commit()
}

// erase takes an entity out of memory and its records out of the store. Its messages, which
// nothing shows any more, follow some at a time.
func (t *tx) erase(ent *entity) {
	e := t.e
	for _, sub := range slices.Clone(ent.subscriptions) {
		t.erase(sub)
	}
	for _, q := range ent.subs {
		for _, l := range q.locked {
			e.timers.remove(l.timer)
			delete(e.locks, l.token)
		}
		for _, due := range q.scheduled {
			e.timers.remove(due)
		}
		for _, g := range q.groups {
			e.timers.remove(g.timer)
			delete(e.sessions, g.token)
		}
		e.timers.remove(q.sweeper)
	}
	e.timers.remove(ent.idle)
	for _, x := range slices.Clone(e.tasks) {
		if x.source == ent {
			t.dropTask(x)
		}
	}
	if ent.topic != nil {
		ent.topic.size -= ent.size
		ent.topic.subscriptions = slices.DeleteFunc(ent.topic.subscriptions, func(s *entity) bool { return s == ent })
	}
	key := fold(ent.name)
	e.byName[key] = slices.DeleteFunc(e.byName[key], func(s *entity) bool { return s == ent })
	if len(e.byName[key]) == 0 {
		delete(e.byName, key)
	}
	delete(e.byID, ent.id)
	e.tell(ent)
	e.wakeReferred(e.deadLetters(ent))
	t.batch.DeleteEntity(ent.id)
	e.timers.add(t.now, &remains{store.Key{Queue: ent.id}})
}

// remains are messages of an entity that is gone. When the process dies before they are
// removed, opening the store begins again.
type remains struct{ from store.Key }

// happen removes some of them, so that no command waits for all.
func (r *remains) happen(t *tx) error {
	const some, pause = 1000, 10 * time.Millisecond
	if err := t.write(); err != nil { // what has left the entity just now is none of them
		return err
	}
	view := t.e.store.Snapshot()
	defer func() { _ = view.Close() }()
	n := 0
	for m, err := range view.StatesFrom(r.from) {
		if err != nil && !isDamage(err) {
			return unavailable(err)
		}
		t.discard(&m)
		r.from.Seq = m.Seq + 1
		if n++; n == some {
			t.e.timers.add(t.now.Add(pause), r)
			return nil
		}
	}
	if next := r.from.Sub + 1; next < uint8(subs) {
		t.e.timers.add(t.now, &remains{store.Key{Queue: r.from.Queue, Sub: next}})
	}
	return nil
}

// idleEntity is that an entity has not been used for long enough to be deleted.
type idleEntity struct{ ent *entity }

// watchIdle sets the timer of an entity that is deleted when it is not used. One that
// forwards is never idle.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-auto-forwarding#considerations
func (e *Engine) watchIdle(ent *entity) {
	ent.idle = nil
	if ent.p.AutoDeleteOnIdle > 0 && ent.p.ForwardTo == "" {
		ent.idle = e.timers.add(ent.accessed.Add(ent.p.AutoDeleteOnIdle), idleEntity{ent})
	}
}

func (i idleEntity) happen(t *tx) error {
	used, inUse := i.ent.accessed, i.ent.inUse()
	for _, sub := range i.ent.subscriptions { // their use is its use
		if sub.accessed.After(used) {
			used = sub.accessed
		}
		inUse = inUse || sub.inUse()
	}
	if inUse {
		used = t.now
	}
	if at := used.Add(i.ent.p.AutoDeleteOnIdle); at.After(t.now) {
		i.ent.idle = t.e.timers.add(at, i)
		return nil
	}
	t.erase(i.ent)
	return nil
}

// inUse reports whether an entity is used all the time: somebody watches it or waits there, or
// it holds scheduled messages, which nobody would get if it was deleted.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration#idleness
func (ent *entity) inUse() bool {
	if len(ent.watches) > 0 || len(ent.subs[Main].scheduled) > 0 {
		return true
	}
	for _, q := range ent.subs {
		if len(q.waiters) > 0 {
			return true
		}
	}
	return false
}

// AddRule adds a rule to a subscription and returns when it is durable. It holds for messages
// that arrive from then on. The error is [ErrExists] for a name that is taken.
func (e *Engine) AddRule(subscription string, r Rule) error {
	compiled, err := compileRule(r)
	if err != nil {
		return err
	}
	t, ent, err := e.onSubscription(subscription)
	if err != nil {
		return err
	}
	at, taken := ent.ruleNamed(r.Name)
	if taken {
		t.end()
		return fmt.Errorf("%w: rule %s of %s", ErrExists, r.Name, ent.name)
	}
	compiled.Created, ent.accessed = t.now, t.now
	ent.rules = slices.Insert(ent.rules, at, compiled)
	t.batch.PutRule(compiled.stored(ent.id))
	return t.commit()
}

// ReplaceRule puts a rule in the place of the one of its name, which keeps its time of
// creation, and returns when that is durable. The error is [ErrNoEntity] if there is none.
func (e *Engine) ReplaceRule(subscription string, r Rule) error {
	compiled, err := compileRule(r)
	if err != nil {
		return err
	}
	t, ent, err := e.onSubscription(subscription)
	if err != nil {
		return err
	}
	at, there := ent.ruleNamed(r.Name)
	if !there {
		t.end()
		return fmt.Errorf("%w: rule %s of %s", ErrNoEntity, r.Name, ent.name)
	}
	compiled.Name, compiled.Created = ent.rules[at].Name, ent.rules[at].Created
	ent.accessed = t.now
	ent.rules[at] = compiled
	t.batch.PutRule(compiled.stored(ent.id))
	return t.commit()
}

// RemoveRule removes a rule from a subscription and returns when that is durable.
func (e *Engine) RemoveRule(subscription, name string) error {
	t, ent, err := e.onSubscription(subscription)
	if err != nil {
		return err
	}
	at, there := ent.ruleNamed(name)
	if !there {
		t.end()
		return fmt.Errorf("%w: rule %s of %s", ErrNoEntity, name, ent.name)
	}
	ent.accessed = t.now
	t.batch.DeleteRule(ent.id, fold(name))
	ent.rules = slices.Delete(ent.rules, at, at+1)
	return t.commit()
}

// Rules returns the rules of a subscription in the order of their names.
func (e *Engine) Rules(subscription string) ([]Rule, error) {
	t, ent, err := e.onSubscription(subscription)
	if err != nil {
		return nil, err
	}
	defer t.end()
	out := make([]Rule, len(ent.rules))
	for i, r := range ent.rules {
		out[i] = r.Rule
	}
	return out, nil
}

func (e *Engine) onSubscription(name string) (*tx, *entity, error) {
	t, ent, err := e.onEntity(name)
	if err != nil {
		return nil, nil, err
	}
	if ent.kind != Subscription {
		t.end()
		return nil, nil, fmt.Errorf("%w: %s is a %s; a subscription has rules", ErrInvalid, name, ent.kind)
	}
	return t, ent, nil
}

func (ent *entity) ruleNamed(name string) (at int, there bool) {
	return slices.BinarySearchFunc(ent.rules, fold(name), func(r *rule, name string) int {
		return strings.Compare(fold(r.Name), name)
	})
}

// sized reports whether the entity has room for n more bytes.
func (ent *entity) sized(n int64) bool {
	full := ent.p.MaxSize > 0 && ent.size+n > ent.p.MaxSize
	if ent.topic != nil {
		top := ent.topic
		full = full || top.p.MaxSize > 0 && top.size+n > top.p.MaxSize
	}
	return !full
}

// sends and receives report what the status of an entity lets through.
func (ent *entity) sends() bool { return ent.p.Status != Disabled && ent.p.Status != SendDisabled }

func (ent *entity) receives() bool {
	return ent.p.Status != Disabled && ent.p.Status != ReceiveDisabled
}

// earlier returns the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
