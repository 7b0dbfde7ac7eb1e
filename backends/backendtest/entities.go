package backendtest

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"dlq/backends"
	"dlq/backends/message"
)

func entityCases() []testCase {
	return []testCase{
		{"entities/describe", entitiesDescribe},
		{"entities/counts", entitiesCounts},
		{"entities/no-counts", entitiesNoCounts},
		{"entities/order", entitiesOrder},
		{"entities/names", entitiesNames},
		{"entities/prefix", entitiesPrefix},
		{"entities/break", entitiesBreak},
	}
}

func entitiesDescribe(f *fixture) {
	id := f.queue()
	e := f.entity(id)
	if e.ID != id.MainQueue() {
		f.Errorf("asked for %v, got %v", id, e.ID)
	}
	if e.Kind != backends.Queue {
		f.Errorf("a queue has the kind %q", e.Kind)
	}
	if !e.Oldest.IsZero() {
		f.Errorf("without dead letters the oldest is from %v", e.Oldest)
	}
	if e.Limits.MaxBodyBytes < 0 || e.Limits.LockDuration < 0 || e.Limits.MaxDeliveryCount < 0 {
		f.Errorf("a limit is negative: %+v", e.Limits)
	}
	dlq := f.dead(id, text("a"))
	s := f.lease(dlq, backends.LeaseOptions{})
	enqueued := s.next().Broker.EnqueuedTime
	if oldest := f.entity(id).Oldest; !oldest.IsZero() && !oldest.Equal(enqueued) {
		f.Errorf("the oldest dead letter is from %v, the entity says %v", enqueued, oldest)
	}
}

func entitiesCounts(f *fixture) {
	id := f.queue()
	check := func(when string, want backends.Counts) {
		f.Helper()
		got := f.entity(id).Counts
		for _, n := range []struct {
			name      string
			got, want int64
		}{
			{"active", got.Active, want.Active},
			{"dead-letter", got.DeadLetter, want.DeadLetter},
			{"transfer dead-letter", got.TransferDeadLetter, 0},
			{"scheduled", got.Scheduled, want.Scheduled},
			{"deferred", got.Deferred, want.Deferred},
		} {
			if n.got >= 0 && n.got != n.want {
				f.Errorf("%s: %d %s messages, want %d", when, n.got, n.name, n.want)
			}
		}
		if got.Source == "" || got.AsOf.IsZero() {
			f.Errorf("%s: the counts do not say where they are from and when: %+v", when, got)
		}
	}
	check("at first", backends.Counts{})
	dlq := f.dead(id, texts("d1", "d2", "d3", "d4")...)
	own := int64(4)
	if dlq.Sub != backends.DeadLetterQueue { // they are counted where they are
		own = 0
		if n := f.entity(dlq).Counts.Active; n >= 0 && n != 4 {
			f.Errorf("%v counts %d messages, want four dead letters", dlq, n)
		}
	}
	check("with four dead letters", backends.Counts{DeadLetter: own})
	f.deferred(id, text("e"))
	later := text("s")
	later.ScheduledEnqueueTime = new(f.h.Now().Add(farOff))
	f.send(id, text("a"), text("b"), later)
	s := f.lease(id, backends.LeaseOptions{})
	locked := s.next()
	check("with a locked message", backends.Counts{Active: 2, DeadLetter: own, Scheduled: 1, Deferred: 1})
	s.settle(complete, locked)
	f.drain(dlq)
	check("with less", backends.Counts{Active: 1, Scheduled: 1, Deferred: 1})
}

// entitiesNoCounts: a count that is left out is unknown; it is never a wrong zero.
func entitiesNoCounts(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b")...)
	for _, e := range f.entities(backends.EntityQuery{Names: []string{id.Name}, NoCounts: true}) {
		if n := e.Counts.Active; n >= 0 && n != 2 {
			f.Errorf("without counts the entity counts %d active messages, want 2 or unknown", n)
		}
	}
}

func entitiesOrder(f *fixture) {
	ids := []backends.EntityID{f.queue(), f.queue(), f.queue()}
	es := f.entities(backends.EntityQuery{})
	if !slices.IsSortedFunc(es, func(a, b backends.Entity) int {
		return cmp.Compare(strings.ToLower(a.ID.Name), strings.ToLower(b.ID.Name))
	}) {
		f.Errorf("the entities are not in the order of their names")
	}
	for _, id := range ids {
		found := 0
		for _, e := range es {
			if e.ID == id {
				found++
			}
			if e.ID.Sub != backends.Main {
				f.Errorf("%v is no entity of its own", e.ID)
			}
		}
		if found != 1 {
			f.Errorf("%v is listed %d times", id, found)
		}
	}
}

func entitiesNames(f *fixture) {
	a, _, c := f.queue(), f.queue(), f.queue()
	es := f.entities(backends.EntityQuery{Names: []string{c.Name, a.Name}})
	if len(es) != 2 {
		f.Errorf("asked for two entities by name, got %d", len(es))
	}
	var failures int
	for e, err := range f.b.Entities(f.ctx, backends.EntityQuery{Names: []string{a.Name, missing.Name}}) {
		if failures > 0 {
			f.Errorf("after its error the iterator yields %v, %v", e.ID, err)
		}
		if err == nil {
			continue
		}
		failures++
		f.wantCode("entities by an unknown name", err, backends.NotFound)
		if e.ID != (backends.EntityID{}) || !strings.Contains(err.Error(), missing.Name) {
			f.Errorf("the error comes with %v and says %v, want no entity and the unknown name", e.ID, err)
		}
	}
	if failures != 1 {
		f.Errorf("an unknown name gave %d errors, want 1", failures)
	}
}

func entitiesPrefix(f *fixture) {
	a, b := f.queue(), f.queue()
	var got []backends.EntityID
	for _, e := range f.entities(backends.EntityQuery{Prefix: a.Name}) {
		got = append(got, e.ID)
		if !strings.HasPrefix(strings.ToLower(e.ID.Name), strings.ToLower(a.Name)) {
			f.Errorf("%v does not begin with %q", e.ID, a.Name)
		}
	}
	if !slices.Contains(got, a) {
		f.Errorf("the prefix %q does not find %v", a.Name, a)
	}
	if es := f.entities(backends.EntityQuery{Prefix: a.Name + b.Name + "-and-more"}); len(es) != 0 {
		f.Errorf("a prefix that no name has finds %d entities", len(es))
	}
}

// entitiesBreak: a loop may call the backend, and may end early.
func entitiesBreak(f *fixture) {
	id := f.queue()
	f.queue()
	err := f.promptly("entities, left early", func() error {
		for _, err := range f.b.Entities(f.ctx, backends.EntityQuery{}) {
			return errors.Join(err, f.b.Send(f.ctx, id, texts("a")))
		}
		return errors.New("no entity")
	})
	if err != nil {
		f.Errorf("entities, left early: %v", err)
	}
	f.holds(id, "a")
}

func capabilityCases() []testCase {
	return []testCase{{"capabilities", capabilities}}
}

// capabilities holds what Probe reports against what a call answers, in both directions and
// through a decorator.
func capabilities(f *fixture) {
	probed := backends.Probe(f.b)
	decorated := backends.Decorator{Backend: f.b}
	if through := backends.Probe(decorated); through != probed {
		f.Errorf("through a decorator the capabilities are %+v, want %+v", through, probed)
	}
	id := f.queue()
	f.send(id, text("a"))
	for _, c := range []struct {
		name string
		has  bool
		call func(b backends.Decorator) error
	}{
		{"peek", probed.Peek, func(b backends.Decorator) error {
			for _, err := range b.Peek(f.ctx, id, backends.PeekOptions{}) {
				return err
			}
			return nil
		}},
		{"settle directly", probed.DirectSettle, func(b backends.Decorator) error {
			return b.SettleDirect(f.ctx, id, complete, noSuchSequence)
		}},
		{"receive deferred", probed.ReceiveDeferred, func(b backends.Decorator) error {
			l, err := b.LeaseDeferred(f.ctx, id, noSuchSequence)
			if err == nil {
				_ = l.Release(f.ctx)
			}
			return err
		}},
		{"move", probed.Move, func(b backends.Decorator) error {
			return b.Move(f.ctx, id, []backends.Move{{Seq: noSuchSequence, To: id, As: &message.Message{}}})
		}},
		{"validate", probed.ValidateSend, func(b backends.Decorator) error { return b.ValidateSend(f.ctx, id, text("b")) }},
		{"route", probed.Route, func(b backends.Decorator) error { _, err := b.Route(f.ctx, id, text("b")); return err }},
		{"describe", probed.AdminEntities, func(b backends.Decorator) error { _, err := b.DescribeEntity(f.ctx, id); return err }},
		{"change", probed.AdminEntities, func(b backends.Decorator) error { return b.ChangeEntity(f.ctx, missing) }},
		{"delete", probed.AdminEntities, func(b backends.Decorator) error { return b.DeleteEntity(f.ctx, missing) }},
		{"create an entity", probed.AdminEntities, func(b backends.Decorator) error {
			_, err := b.CreateEntity(f.ctx, backends.NewEntity{ID: id, Kind: backends.Queue})
			return err
		}},
		{"add a rule", probed.AdminEntities, func(b backends.Decorator) error { return b.AddRule(f.ctx, missing, backends.Rule{Name: "r"}) }},
		{"remove a rule", probed.AdminEntities, func(b backends.Decorator) error { return b.RemoveRule(f.ctx, missing, "r") }},
		{"create", probed.CreateQueue, func(b backends.Decorator) error { return b.CreateQueue(f.ctx, id.Name) }},
		{"purge", probed.Purge, func(b backends.Decorator) error { _, err := b.Purge(f.ctx, id); return err }},
	} {
		for depth, b := range []backends.Decorator{decorated, {Backend: decorated}} {
			err := c.call(b)
			if c.has && errors.Is(err, errors.ErrUnsupported) {
				f.Errorf("%s is probed, and answers through %d decorators: %v", c.name, depth+1, err)
			}
			if !c.has && !(errors.Is(err, errors.ErrUnsupported) && backends.IsCode(err, backends.Unsupported)) {
				f.Errorf("%s is not probed, and answers through %d decorators: %v, want errors.ErrUnsupported with its code", c.name, depth+1, err)
			}
		}
	}
}
