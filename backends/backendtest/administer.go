package backendtest

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"dlq/backends"
)

func administerCases() []testCase {
	return []testCase{
		{"administer/create", administerCreate},
		{"administer/create-refused", administerCreateRefused},
		{"administer/describe", administerDescribe},
		{"administer/change", administerChange},
		{"administer/change-refused", administerChangeRefused},
		{"administer/delete", administerDelete},
		{"administer/restart", administerRestart},
		{"administer/topic", administerTopic},
		{"administer/kind-by-name", administerKindByName},
	}
}

// admin is an EntityAdmin whose calls must succeed.
type admin struct {
	backends.EntityAdmin
	f *fixture
}

func (f *fixture) admin() admin {
	f.Helper()
	return admin{capability[backends.EntityAdmin](f), f}
}

// create makes an entity, or skips the case where the service has no such kind.
func (a admin) create(e backends.NewEntity) backends.EntityDescription {
	a.f.Helper()
	d, err := a.CreateEntity(a.f.ctx, e)
	if errors.Is(err, errors.ErrUnsupported) && e.Kind != backends.Queue {
		a.f.Skipf("the service has no entities of the kind %q", e.Kind)
	}
	if err != nil {
		a.f.Fatalf("create %v: %v", e.ID, err)
	}
	return d
}

func (a admin) describe(id backends.EntityID) backends.EntityDescription {
	a.f.Helper()
	d, err := a.DescribeEntity(a.f.ctx, id)
	if err != nil {
		a.f.Fatalf("describe %v: %v", id, err)
	}
	return d
}

// other returns a value that a property does not have but may be given, as far as its own
// value tells: the other of true and false, or the next number.
func other(p backends.Property) (string, bool) {
	switch p.Value {
	case "true":
		return "false", true
	case "false":
		return "true", true
	}
	n, err := strconv.Atoi(p.Value)
	return strconv.Itoa(n + 1), err == nil
}

// changeable returns settings that a new queue of the service takes, each on its own, with
// other values than the defaults. There is one at least.
func (a admin) changeable(immutable bool) []backends.Setting {
	a.f.Helper()
	scratch := backends.EntityID{Name: "scratch"}
	a.create(backends.NewEntity{ID: scratch, Kind: backends.Queue})
	var out []backends.Setting
	for _, p := range a.describe(scratch).Properties {
		value, ok := other(p)
		s := backends.Setting{Name: p.Name, Value: value}
		if !ok || p.Immutable != immutable {
			continue
		}
		trial := backends.EntityID{Name: "trial"}
		if _, err := a.CreateEntity(a.f.ctx, backends.NewEntity{ID: trial, Kind: backends.Queue, Settings: []backends.Setting{s}}); err != nil {
			continue // it is a number beyond a bound, or goes with another property
		}
		a.delete(trial)
		out = append(out, s)
	}
	a.delete(scratch)
	return out
}

func (a admin) delete(id backends.EntityID) {
	a.f.Helper()
	if err := a.DeleteEntity(a.f.ctx, id); err != nil {
		a.f.Fatalf("delete %v: %v", id, err)
	}
}

// wantSettings checks that of all properties just these have another value than before.
func (f *fixture) wantSettings(when string, before, after []backends.Property, settings ...backends.Setting) {
	f.Helper()
	if len(before) != len(after) {
		f.Errorf("%s: there are %d properties, before there were %d", when, len(after), len(before))
		return
	}
	for i, p := range after {
		want := before[i].Value
		for _, s := range settings {
			if s.Name == p.Name {
				want = s.Value
			}
		}
		if p.Name != before[i].Name || p.Value != want {
			f.Errorf("%s: %s is %q, want %s=%q", when, p.Name, p.Value, before[i].Name, want)
		}
	}
}

func administerCreate(f *fixture) {
	a := f.admin()
	plain := backends.EntityID{Name: "plain"}
	d := a.create(backends.NewEntity{ID: plain, Kind: backends.Queue})
	if d.ID != plain || d.Kind != backends.Queue {
		f.Errorf("made the queue %v, got the %s %v", plain, d.Kind, d.ID)
	}
	for _, p := range d.Properties {
		if p.Value != p.Default {
			f.Errorf("by default %s is %q, in a new queue %q", p.Name, p.Default, p.Value)
		}
	}
	f.wantSettings("described", d.Properties, a.describe(plain).Properties)
	if e := f.entity(plain); e.Kind != backends.Queue || e.ID != plain {
		f.Errorf("a queue was made, %v is a %q", e.ID, e.Kind)
	}
	f.send(plain, text("a"))
	f.holds(plain, "a")
	for _, s := range slices.Concat(a.changeable(false), a.changeable(true)) {
		own := backends.EntityID{Name: "own"}
		got := a.create(backends.NewEntity{ID: own, Kind: backends.Queue, Settings: []backends.Setting{s}})
		i := slices.IndexFunc(got.Properties, func(p backends.Property) bool { return p.Name == s.Name })
		if i < 0 || got.Properties[i].Value != s.Value {
			f.Errorf("made with %s=%s, the queue has %v", s.Name, s.Value, got.Properties)
		}
		a.delete(own)
	}
}

// administerCreateRefused: what was refused is not there, and what was there has not changed.
func administerCreateRefused(f *fixture) {
	a := f.admin()
	id := backends.EntityID{Name: "refused"}
	good := a.changeable(false)
	if len(good) == 0 {
		f.Fatalf("no property of a queue can be changed")
	}
	for what, e := range map[string]backends.NewEntity{
		"without a name":              {Kind: backends.Queue},
		"a dead-letter sub-queue":     {ID: id.DeadLetters(), Kind: backends.Queue},
		"with an unknown property":    {ID: id, Kind: backends.Queue, Settings: []backends.Setting{good[0], {Name: "no such property", Value: "1"}}},
		"with a value that cannot be": {ID: id, Kind: backends.Queue, Settings: []backends.Setting{{Name: good[0].Name, Value: "no such value"}}},
		"a queue with rules":          {ID: id, Kind: backends.Queue, Rules: []backends.Rule{{Name: "all"}}},
	} {
		_, err := a.CreateEntity(f.ctx, e)
		f.wantCode("create "+what, err, backends.Invalid)
		_, err = a.DescribeEntity(f.ctx, id)
		f.wantCode("describe what was refused "+what, err, backends.NotFound)
	}
	before := a.create(backends.NewEntity{ID: id, Kind: backends.Queue, Settings: good[:1]})
	f.send(id, text("a"))
	_, err := a.CreateEntity(f.ctx, backends.NewEntity{ID: id, Kind: backends.Queue})
	f.wantCode("create what exists", err, backends.AlreadyExists)
	f.wantSettings("refused", before.Properties, a.describe(id).Properties)
	f.holds(id, "a")
}

func administerDescribe(f *fixture) {
	a := f.admin()
	id := f.queue()
	d := a.describe(id)
	if d.ID != id || d.Kind != backends.Queue || len(d.Rules) != 0 {
		f.Errorf("the queue %v is described as the %s %v with %d rules", id, d.Kind, d.ID, len(d.Rules))
	}
	if len(d.Properties) == 0 {
		f.Errorf("the queue has no properties")
	}
	seen := map[string]bool{}
	for _, p := range d.Properties {
		if p.Name == "" || p.Range == "" || seen[p.Name] {
			f.Errorf("a property without name or range, or twice: %+v", p)
		}
		seen[p.Name] = true
	}
	if now := f.h.Now(); d.Created.After(now) || d.Modified.After(now) {
		f.Errorf("at %v a queue was made at %v and changed at %v", now, d.Created, d.Modified)
	}
	for what, c := range map[string]struct {
		id   backends.EntityID
		want backends.Code
	}{"a missing entity": {missing, backends.NotFound}, "a sub-queue": {id.DeadLetters(), backends.Invalid}} {
		_, err := a.DescribeEntity(f.ctx, c.id)
		f.wantCode("describe "+what, err, c.want)
		f.wantCode("change "+what, a.ChangeEntity(f.ctx, c.id), c.want)
		f.wantCode("delete "+what, a.DeleteEntity(f.ctx, c.id), c.want)
	}
	f.wantSettings("after all that", d.Properties, a.describe(id).Properties)
}

func administerChange(f *fixture) {
	a := f.admin()
	settings := a.changeable(false)
	id, bystander := f.queue(), f.queue()
	f.send(id, text("a"))
	untouched := a.describe(bystander)
	for _, s := range settings {
		before := a.describe(id)
		if err := a.ChangeEntity(f.ctx, id, s); err != nil {
			// Beside what the harness wished for the queue it may not go.
			f.wantCode("change "+s.Name, err, backends.Invalid)
			f.wantSettings("refused", before.Properties, a.describe(id).Properties)
			continue
		}
		f.wantSettings("changed "+s.Name, before.Properties, a.describe(id).Properties, s)
	}
	f.wantSettings("another queue", untouched.Properties, a.describe(bystander).Properties)
	f.holds(id, "a")

	fresh := backends.EntityID{Name: "fresh"}
	before := a.create(backends.NewEntity{ID: fresh, Kind: backends.Queue})
	if err := a.ChangeEntity(f.ctx, fresh, settings[0]); err != nil {
		f.Errorf("a new queue takes %s=%s, an existing one: %v", settings[0].Name, settings[0].Value, err)
	}
	f.wantSettings("changed", before.Properties, a.describe(fresh).Properties, settings[0])
	for i, p := range a.describe(fresh).Properties {
		if p.Default != before.Properties[i].Default {
			f.Errorf("a change of %s has changed the default of %s to %q", settings[0].Name, p.Name, p.Default)
		}
	}
}

// administerChangeRefused: all or none.
func administerChangeRefused(f *fixture) {
	a := f.admin()
	settings := a.changeable(false)
	id := backends.EntityID{Name: "own"}
	before := a.create(backends.NewEntity{ID: id, Kind: backends.Queue})
	bad := []backends.Setting{{Name: "no such property", Value: "1"}, {Name: settings[0].Name, Value: "no such value"}}
	bad = append(bad, a.changeable(true)...)
	for _, s := range bad {
		err := a.ChangeEntity(f.ctx, id, settings[0], s)
		f.wantCode("change "+s.Name+" to "+s.Value, err, backends.Invalid)
		f.wantSettings("refused "+s.Name, before.Properties, a.describe(id).Properties)
	}
}

func administerDelete(f *fixture) {
	a := f.admin()
	id, kept := backends.EntityID{Name: "short-lived"}, f.queue()
	a.create(backends.NewEntity{ID: id, Kind: backends.Queue})
	f.send(kept, text("kept"))
	f.send(id, texts("a", "b")...)
	held := f.lease(id, backends.LeaseOptions{Max: 1})
	m := held.next()
	a.delete(id)
	if err := held.Settle(f.ctx, complete, m); err == nil {
		f.Errorf("a message of an entity that is deleted was completed")
	}
	_ = held.Release(f.ctx)
	f.wantCode("send to what is deleted", f.b.Send(f.ctx, id, texts("c")), backends.NotFound)
	_, err := a.DescribeEntity(f.ctx, id)
	f.wantCode("describe what is deleted", err, backends.NotFound)
	f.wantCode("delete it again", a.DeleteEntity(f.ctx, id), backends.NotFound)
	for _, e := range f.entities(backends.EntityQuery{}) {
		if e.ID == id {
			f.Errorf("what is deleted is listed")
		}
	}
	a.create(backends.NewEntity{ID: id, Kind: backends.Queue})
	f.holds(id)
	f.holds(kept, "kept")
}

// administerRestart: what was acknowledged is durable.
func administerRestart(f *fixture) {
	if f.h.Restart == nil {
		f.Skip("the data does not outlive the backend")
	}
	for _, kill := range []bool{false, true} {
		a := f.admin()
		settings := a.changeable(false)
		id, gone := backends.EntityID{Name: "changed"}, backends.EntityID{Name: "gone"}
		a.create(backends.NewEntity{ID: id, Kind: backends.Queue})
		a.create(backends.NewEntity{ID: gone, Kind: backends.Queue})
		if err := a.ChangeEntity(f.ctx, id, settings[0]); err != nil {
			f.Fatalf("change: %v", err)
		}
		a.delete(gone)
		before := a.describe(id)
		f.b = f.h.Restart(f, f.b, kill)
		a = f.admin()
		f.wantSettings("after a restart", before.Properties, a.describe(id).Properties)
		_, err := a.DescribeEntity(f.ctx, gone)
		f.wantCode("describe what was deleted before a restart", err, backends.NotFound)
		a.delete(id)
	}
}

// topic makes a topic with subscriptions of these names, which let everything through, or
// skips the case where the service has none.
func (a admin) topic(name string, subscriptions ...string) (topic backends.EntityID, ids []backends.EntityID) {
	a.f.Helper()
	topic = a.create(backends.NewEntity{ID: backends.EntityID{Name: name}, Kind: backends.Topic}).ID
	for _, s := range subscriptions {
		id := backends.EntityID{Name: name + "/Subscriptions/" + s}
		ids = append(ids, a.create(backends.NewEntity{ID: id, Kind: backends.Subscription}).ID)
	}
	return topic, ids
}

func administerTopic(f *fixture) {
	a := f.admin()
	topic, subs := a.topic("news", "a", "b")
	if d := a.describe(topic); d.Kind != backends.Topic || len(d.Rules) != 0 {
		f.Errorf("a topic is described as a %s with %d rules", d.Kind, len(d.Rules))
	}
	for _, sub := range subs {
		if d := a.describe(sub); d.Kind != backends.Subscription || d.ID != sub || len(d.Rules) != 1 {
			f.Errorf("the subscription %v is described as the %s %v with %d rules", sub, d.Kind, d.ID, len(d.Rules))
		}
		if e := f.entity(sub); e.Kind != backends.Subscription {
			f.Errorf("a subscription is listed as a %q", e.Kind)
		}
	}
	a.create(backends.NewEntity{ID: backends.EntityID{Name: "news-2"}, Kind: backends.Queue})
	var listed []backends.EntityID
	for _, e := range f.entities(backends.EntityQuery{Prefix: "news"}) {
		listed = append(listed, e.ID)
	}
	if want := []backends.EntityID{topic, subs[0], subs[1], {Name: "news-2"}}; !slices.Equal(listed, want) {
		f.Errorf("listed are %v, want %v: a topic is followed by its subscriptions", listed, want)
	}
	f.send(topic, texts("m1", "m2")...)
	if c := f.entity(topic).Counts; !c.Summed || c.Active != 4 && c.Active >= 0 {
		f.Errorf("two messages in each of two subscriptions make the topic count %+v", c)
	}
	f.holds(subs[0], "m1", "m2")
	a.delete(subs[1])
	f.send(topic, text("m3"))
	f.holds(subs[0], "m3")

	_, err := a.CreateEntity(f.ctx, backends.NewEntity{ID: backends.EntityID{Name: "nothing/Subscriptions/a"}, Kind: backends.Subscription})
	f.wantCode("create a subscription of nothing", err, backends.NotFound)
	a.delete(topic)
	_, err = a.DescribeEntity(f.ctx, subs[0])
	f.wantCode("describe a subscription of what is deleted", err, backends.NotFound)
}

func administerKindByName(f *fixture) {
	a := f.admin()
	topic, _ := a.topic("news")
	for name, want := range map[string]struct {
		kind backends.EntityKind
		id   string
	}{
		"plain":                {backends.Queue, "plain"},
		"nothing/a":            {backends.Queue, "nothing/a"},
		"news/a":               {backends.Subscription, "news/Subscriptions/a"},
		"news/Subscriptions/b": {backends.Subscription, "news/Subscriptions/b"},
	} {
		d := a.create(backends.NewEntity{ID: backends.EntityID{Name: name}})
		if d.Kind != want.kind || d.ID.Name != want.id {
			f.Errorf("%q without a kind became the %s %v, want the %s %s", name, d.Kind, d.ID, want.kind, want.id)
		}
		if again := a.describe(backends.EntityID{Name: name}); again.ID != d.ID {
			f.Errorf("%q is described as %v, want %v", name, again.ID, d.ID)
		}
	}
	a.delete(backends.EntityID{Name: "news/a"})
	f.send(topic, text("m"))
	f.holds(backends.EntityID{Name: "news/Subscriptions/b"}, "m")
}

func contextAdminister(f *fixture) {
	a := f.admin()
	id := f.queue()
	made := backends.EntityID{Name: "made"}
	f.canceled("create an entity", func(ctx context.Context) error {
		_, err := a.CreateEntity(ctx, backends.NewEntity{ID: made, Kind: backends.Queue})
		return err
	})
	f.canceled("describe", func(ctx context.Context) error { _, err := a.DescribeEntity(ctx, id); return err })
	f.canceled("change", func(ctx context.Context) error { return a.ChangeEntity(ctx, id) })
	f.canceled("add a rule", func(ctx context.Context) error { return a.AddRule(ctx, id, backends.Rule{Name: "r"}) })
	f.canceled("remove a rule", func(ctx context.Context) error { return a.RemoveRule(ctx, id, "r") })
	f.canceled("delete", func(ctx context.Context) error { return a.DeleteEntity(ctx, id) })
	// It exists or it does not, but not by half.
	if _, err := a.DescribeEntity(f.ctx, id); err != nil {
		f.wantCode("describe after a canceled delete", err, backends.NotFound)
		return
	}
	f.send(id, text("a"))
	f.holds(id, "a")
}
