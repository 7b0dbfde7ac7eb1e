package backendtest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"dlq/backends"
)

// creating is a fault in what is made.
func creating(change func(e *backends.NewEntity)) func(*faulty) {
	return func(b *faulty) {
		b.createEntity = func(ctx context.Context, e backends.NewEntity) (backends.EntityDescription, error) {
			change(&e)
			return b.real.CreateEntity(ctx, e)
		}
	}
}

// describingEntity is a fault in how an entity is described.
func describingEntity(change func(d *backends.EntityDescription)) func(*faulty) {
	return func(b *faulty) { b.described = change }
}

// changing is a fault in how settings are applied.
func changing(change func(ctx context.Context, b *faulty, id backends.EntityID, settings []backends.Setting) error) func(*faulty) {
	return func(b *faulty) {
		b.change = func(ctx context.Context, id backends.EntityID, settings ...backends.Setting) error {
			return change(ctx, b, id, settings)
		}
	}
}

// forgiving swallows the errors of one code.
func forgiving(code backends.Code) func(*faulty) {
	return func(b *faulty) {
		b.errs = func(err error) error {
			if backends.IsCode(err, code) {
				return nil
			}
			return err
		}
	}
}

func administerMutants() []mutant {
	return slices.Concat(entityAdminMutants(), topicMutants(), ruleMutants())
}

func entityAdminMutants() []mutant {
	return []mutant{
		{name: "claims to administer", caught: []string{"capabilities"}, fault: changing(
			func(context.Context, *faulty, backends.EntityID, []backends.Setting) error {
				return errors.ErrUnsupported
			})},
		{
			name: "makes a queue and calls it a topic", caught: []string{"administer/create", "administer/describe", "administer/kind-by-name"},
			fault: describingEntity(func(d *backends.EntityDescription) { d.Kind = backends.Topic }),
		},
		{name: "forgets the settings of a new entity", caught: []string{"administer/create"}, fault: creating(func(e *backends.NewEntity) { e.Settings = nil })},
		{name: "makes what it refuses", caught: []string{"administer/create-refused"}, fault: func(b *faulty) {
			b.createEntity = func(ctx context.Context, e backends.NewEntity) (backends.EntityDescription, error) {
				d, err := b.real.CreateEntity(ctx, e)
				if backends.IsCode(err, backends.Invalid) {
					_, _ = b.real.CreateEntity(ctx, backends.NewEntity{ID: e.ID, Kind: e.Kind})
				}
				return d, err
			}
		}},
		{name: "makes anew what exists", caught: []string{"administer/create-refused"}, fault: func(b *faulty) {
			b.createEntity = func(ctx context.Context, e backends.NewEntity) (backends.EntityDescription, error) {
				d, err := b.real.CreateEntity(ctx, e)
				if backends.IsCode(err, backends.AlreadyExists) {
					_ = b.real.DeleteEntity(ctx, e.ID)
					_, _ = b.real.CreateEntity(ctx, e)
				}
				return d, err
			}
		}},
		{name: "takes queues with rules", caught: []string{"administer/create-refused"}, fault: creating(func(e *backends.NewEntity) {
			if e.Kind == backends.Queue {
				e.Rules = nil
			}
		})},
		{
			name: "describes what is not there", caught: []string{"administer/describe", "administer/delete", "administer/create-refused"},
			fault: forgiving(backends.NotFound),
		},
		{name: "takes a sub-queue for its entity", caught: []string{"administer/describe"}, fault: changing(
			func(ctx context.Context, b *faulty, id backends.EntityID, settings []backends.Setting) error {
				return b.real.ChangeEntity(ctx, id.MainQueue(), settings...)
			})},
		{name: "names no range", caught: []string{"administer/describe"}, fault: describingEntity(func(d *backends.EntityDescription) {
			d.Properties = slices.Clone(d.Properties)
			for i := range d.Properties {
				d.Properties[i].Range = ""
			}
		})},
		{name: "lists a property twice", caught: []string{"administer/describe"}, fault: describingEntity(func(d *backends.EntityDescription) {
			d.Properties = append(slices.Clip(d.Properties), d.Properties[0])
		})},
		{name: "calls the value the default", caught: []string{"administer/change"}, fault: describingEntity(func(d *backends.EntityDescription) {
			d.Properties = slices.Clone(d.Properties)
			for i := range d.Properties {
				d.Properties[i].Default = d.Properties[i].Value
			}
		})},
		{name: "changes nothing", caught: []string{"administer/change"}, fault: changing(
			func(context.Context, *faulty, backends.EntityID, []backends.Setting) error { return nil })},
		{name: "changes every entity", caught: []string{"administer/change"}, fault: changing(
			func(ctx context.Context, b *faulty, id backends.EntityID, settings []backends.Setting) error {
				for e := range b.real.Entities(ctx, backends.EntityQuery{}) {
					_ = b.real.ChangeEntity(ctx, e.ID, settings...)
				}
				return b.real.ChangeEntity(ctx, id, settings...)
			})},
		{name: "changes by half", caught: []string{"administer/change-refused"}, fault: changing(
			func(ctx context.Context, b *faulty, id backends.EntityID, settings []backends.Setting) error {
				for i := range settings {
					if err := b.real.ChangeEntity(ctx, id, settings[i]); err != nil {
						return err
					}
				}
				return nil
			})},
		{name: "passes over what it cannot change", caught: []string{"administer/change-refused"}, fault: changing(
			func(ctx context.Context, b *faulty, id backends.EntityID, settings []backends.Setting) error {
				if err := b.real.ChangeEntity(ctx, id, settings...); !backends.IsCode(err, backends.Invalid) {
					return err
				}
				return nil
			})},
		{name: "deletes nothing", caught: []string{"administer/delete"}, fault: func(b *faulty) {
			b.delete = func(context.Context, backends.EntityID) error { return nil }
		}},
		{name: "deletes its messages alone", caught: []string{"administer/delete"}, fault: func(b *faulty) {
			b.delete = func(ctx context.Context, id backends.EntityID) error {
				_, err := b.real.Purge(ctx, id)
				return err
			}
		}},
		{name: "deletes everything", caught: []string{"administer/delete"}, fault: func(b *faulty) {
			b.delete = func(ctx context.Context, id backends.EntityID) error {
				for e := range b.real.Entities(ctx, backends.EntityQuery{}) {
					if e.ID != id {
						_, _ = b.real.Purge(ctx, e.ID)
					}
				}
				return b.real.DeleteEntity(ctx, id)
			}
		}},
		{name: "forgets a change", caught: []string{"administer/restart"}, harness: restarting(func(w *world) {
			for _, q := range w.queues {
				q.opts = standard
			}
		})},
		{name: "brings back what was deleted", caught: []string{"administer/restart"}, harness: restarting(func(w *world) {
			w.queues["gone"] = &queue{name: "gone", kind: backends.Queue}
		})},
		{name: "administers without a context", caught: []string{"context/administer"}, fault: func(b *faulty) { b.ctx = context.WithoutCancel }},
	}
}

func topicMutants() []mutant {
	return []mutant{
		{name: "does not sum", caught: []string{"administer/topic"}, fault: func(b *faulty) {
			b.describe(func(e *backends.Entity) { e.Counts.Summed = false })
		}},
		{name: "keeps the subscriptions of what is deleted", caught: []string{"administer/topic"}, fault: func(b *faulty) {
			b.delete = func(ctx context.Context, id backends.EntityID) error {
				var subs []backends.EntityID
				for e := range b.real.Entities(ctx, backends.EntityQuery{Prefix: id.Name + subscriptions}) {
					subs = append(subs, e.ID)
				}
				err := b.real.DeleteEntity(ctx, id)
				_, _ = b.real.CreateEntity(ctx, backends.NewEntity{ID: id, Kind: backends.Topic})
				for _, sub := range subs {
					_, _ = b.real.CreateEntity(ctx, backends.NewEntity{ID: sub, Kind: backends.Subscription})
				}
				return err
			}
		}},
		{name: "lists subscriptions as queues", caught: []string{"administer/topic"}, fault: func(b *faulty) {
			b.describe(func(e *backends.Entity) { e.Kind = backends.Queue })
		}},
		{name: "lists by bytes", caught: []string{"administer/topic"}, fault: func(b *faulty) {
			b.entities = func(ctx context.Context, q backends.EntityQuery) iter.Seq2[backends.Entity, error] {
				return func(yield func(backends.Entity, error) bool) {
					var es []backends.Entity
					for e := range b.real.Entities(ctx, q) {
						es = append(es, e)
					}
					slices.SortFunc(es, func(a, b backends.Entity) int { return strings.Compare(a.ID.Name, b.ID.Name) })
					for _, e := range es {
						yield(e, nil)
					}
				}
			}
		}},
		{name: "makes queues of what has no kind", caught: []string{"administer/kind-by-name"}, fault: creating(func(e *backends.NewEntity) {
			if e.Kind == "" {
				e.Kind = backends.Queue
			}
		})},
		{name: "sees a subscription in every slash", caught: []string{"administer/kind-by-name"}, fault: creating(func(e *backends.NewEntity) {
			if e.Kind == "" && strings.Contains(e.ID.Name, "/") {
				e.Kind = backends.Subscription
			}
		})},
	}
}

func ruleMutants() []mutant {
	return []mutant{
		{name: "lets everything through", caught: []string{"administer/rules"}, fault: creating(func(e *backends.NewEntity) {
			for i := range e.Rules {
				e.Rules[i].Filter, e.Rules[i].Correlation = "", nil
			}
		})},
		{name: "adds the rule that lets everything through", caught: []string{"administer/rules"}, fault: creating(func(e *backends.NewEntity) {
			if len(e.Rules) > 0 {
				e.Rules = append(e.Rules, backends.Rule{Name: "$Default"})
			}
		})},
		{name: "makes subscriptions without a rule", caught: []string{"administer/topic"}, fault: describingEntity(
			func(d *backends.EntityDescription) { d.Rules = nil })},
		{name: "adds no rule", caught: []string{"administer/rules"}, fault: func(b *faulty) {
			b.addRule = func(context.Context, backends.EntityID, backends.Rule) error { return nil }
		}},
		{name: "removes no rule", caught: []string{"administer/rules", "administer/rules-refused"}, fault: func(b *faulty) {
			b.removeRule = func(context.Context, backends.EntityID, string) error { return nil }
		}},
		{name: "replaces a rule", caught: []string{"administer/rules-refused"}, fault: func(b *faulty) {
			b.addRule = func(ctx context.Context, id backends.EntityID, r backends.Rule) error {
				_ = b.real.RemoveRule(ctx, id, r.Name)
				return b.real.AddRule(ctx, id, r)
			}
		}},
		{name: "takes a rule that cannot be read", caught: []string{"administer/rules-refused"}, fault: forgiving(backends.Invalid)},
		{name: "copies once for each rule", caught: []string{"administer/rules", "administer/rule-copies"}, fault: creating(func(e *backends.NewEntity) {
			for i := range e.Rules {
				if e.Rules[i].Action == "" {
					e.Rules[i].Action = "SET mark = ''"
				}
			}
		})},
		{name: "loses the action", caught: []string{"administer/rule-copies"}, fault: creating(func(e *backends.NewEntity) {
			for i := range e.Rules {
				e.Rules[i].Action = ""
			}
		})},
	}
}
