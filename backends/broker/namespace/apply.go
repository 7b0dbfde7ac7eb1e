package namespace

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"dlq/backends/broker"
)

// Apply makes the entities of a file in an engine that nobody else uses yet. What is there already
// keeps its messages and is changed to what the file says, where that can be changed; what the file
// does not name stays as it is, and nothing is deleted but rules of a subscription whose rules the
// file lists. It returns in words what was done and what could not be, a line each. Errors name the
// place in the file; the file was applied up to there.
func (c *Config) Apply(e *broker.Engine, tier Tier) (report []string, err error) {
	a := applying{engine: e, tier: tier}
	a.all, err = e.Entities()
	if err != nil {
		return nil, err
	}
	created := make([]bool, len(c.Entities))
	for i := range c.Entities {
		if created[i], err = a.create(&c.Entities[i]); err != nil {
			return a.report, c.Entities[i].place.errorf("%s: %w", c.Entities[i].Name, err)
		}
	}
	// Only now is everything there that forwarding may name.
	for i := range c.Entities {
		if err := a.change(&c.Entities[i], created[i]); err != nil {
			return a.report, c.Entities[i].place.errorf("%s: %w", c.Entities[i].Name, err)
		}
	}
	return a.report, nil
}

// applying is one run of Apply.
type applying struct {
	engine *broker.Engine
	tier   Tier
	all    []broker.Info // what there is
	report []string
}

func (a *applying) say(format string, args ...any) {
	a.report = append(a.report, fmt.Sprintf(format, args...))
}

// create makes an entity that is not there yet, without what it forwards to.
func (a *applying) create(ent *Entity) (bool, error) {
	info, err := a.engine.Entity(ent.Name)
	switch {
	case err == nil && info.Kind != ent.Kind:
		return false, fmt.Errorf("it is a %s already; give this %s another name, or delete that one", info.Kind, ent.Kind)
	case err == nil:
		return false, nil
	case !errors.Is(err, broker.ErrNoEntity):
		return false, err
	}
	if err := a.tier.Room(ent.Kind, ent.Name, a.all); err != nil {
		return false, err
	}
	p := a.tier.Defaults(ent.Kind)
	if err := ent.apply(&p); err != nil {
		return false, err
	}
	p.ForwardTo, p.ForwardDeadLettersTo = "", ""
	if err := a.engine.Create(ent.Name, ent.Kind, p, ent.Rules...); err != nil {
		return false, err
	}
	a.all = append(a.all, broker.Info{Name: ent.Name, Kind: ent.Kind})
	a.say("%s %s created", ent.Kind, ent.Name)
	return true, nil
}

// change gives an entity the properties and rules that the file says.
func (a *applying) change(ent *Entity, created bool) error {
	info, err := a.engine.Entity(ent.Name)
	if err != nil {
		return err
	}
	wanted := info.Properties
	for _, s := range ent.settings {
		next := wanted
		if err := s.apply(ent.Kind, &next); err != nil {
			return err
		}
		if fixed, was, says := fixedProperty(ent.Kind, &wanted, &next); fixed != "" {
			a.say("%s: %s is fixed when a %s is created and stays %s; the file says %s", info.Name, fixed, ent.Kind, was, says)
			continue
		}
		wanted = next
	}
	if changes := differences(ent.Kind, &info.Properties, &wanted); len(changes) > 0 {
		err := a.engine.Change(info.Name, func(p *broker.Properties) error { *p = wanted; return nil })
		if err != nil {
			return err
		}
		for _, c := range changes {
			if !created { // a new one has its forwarding as the file says, of which nobody need hear
				a.say("%s: %s is now %s, was %s", info.Name, c.Name, orNone(c.Value), orNone(c.Default))
			}
		}
	}
	if created || !ent.RulesGiven {
		return nil
	}
	return a.changeRules(info.Name, ent.Rules)
}

// fixedProperty returns the property that differs and cannot be changed, if there is one.
func fixedProperty(kind broker.Kind, from, to *broker.Properties) (name, was, says string) {
	for _, d := range differences(kind, from, to) {
		if d.Immutable {
			return d.Name, orNone(d.Default), orNone(d.Value)
		}
	}
	return "", "", ""
}

// differences returns the properties that differ, with the old value as their default.
func differences(kind broker.Kind, from, to *broker.Properties) []broker.Property {
	var out []broker.Property
	before := from.List(kind)
	for i, p := range to.List(kind) {
		if p.Value != before[i].Value {
			p.Default = before[i].Value
			out = append(out, p)
		}
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// changeRules gives a subscription exactly these rules. The new ones come first, so that no
// message is let go by in between.
func (a *applying) changeRules(subscription string, wanted []broker.Rule) error {
	have, err := a.engine.Rules(subscription)
	if err != nil {
		return err
	}
	if len(wanted) == 0 { // as for a new subscription
		wanted = []broker.Rule{{Name: broker.DefaultRule}}
	}
	named := func(rules []broker.Rule, name string) int {
		return slices.IndexFunc(rules, func(r broker.Rule) bool { return strings.EqualFold(r.Name, name) })
	}
	for _, w := range wanted {
		what := "added to"
		if i := named(have, w.Name); i >= 0 {
			if sameRule(have[i], w) {
				continue
			}
			if err := a.engine.RemoveRule(subscription, w.Name); err != nil {
				return err
			}
			what = "changed in"
		}
		if err := a.engine.AddRule(subscription, w); err != nil {
			return err
		}
		a.say("rule %s %s %s", w.Name, what, subscription)
	}
	for _, h := range have {
		if named(wanted, h.Name) >= 0 {
			continue
		}
		if err := a.engine.RemoveRule(subscription, h.Name); err != nil {
			return err
		}
		a.say("rule %s removed from %s", h.Name, subscription)
	}
	return nil
}

// sameRule reports whether two rules do the same.
func sameRule(a, b broker.Rule) bool {
	if a.Filter.Kind == "" {
		a.Filter.Kind = broker.TrueFilter
	}
	if b.Filter.Kind == "" {
		b.Filter.Kind = broker.TrueFilter
	}
	return a.Action == b.Action && reflect.DeepEqual(a.Filter, b.Filter) && reflect.DeepEqual(a.ActionParams, b.ActionParams)
}
