package namespace

import (
	"strings"

	"dlq/backends/broker"
	"dlq/backends/broker/sas"
)

// Config is what a file says about a namespace. The format is that of the official emulator's
// Config.json:
//
//	{"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Queues": […], "Topics": […]}], "Logging": {…}}}
//
// It may say more than that emulator reads, always by additional names:
//
//   - in Properties every property that dlq entity set knows, such as Status, AutoDeleteOnIdle,
//     MaxSizeInMegabytes and MaxMessageSizeInKilobytes;
//   - FilterType True and False, and Parameters of an SQL filter or an action;
//   - values of any type among the Properties of a correlation filter and the Parameters: a number
//     is a long or a double, true and false are booleans, and {"Type": "int", "Value": "5"} is
//     whatever AMQP type is named;
//   - AuthorizationRules of the namespace, a queue or a topic: {"Name", "Rights", "PrimaryKey",
//     "SecondaryKey"}.
//
// Names compare without case. One that is not known is an error.
type Config struct {
	Namespace string
	Entities  []Entity  // in the order of the file, a topic before its subscriptions
	Keys      []sas.Key // the authorization rules
}

// Entity is a queue, topic or subscription that a file describes.
type Entity struct {
	Name string // of a subscription "topic/Subscriptions/name"
	Kind broker.Kind
	// Rules are those of a subscription, if RulesGiven.
	Rules      []broker.Rule
	RulesGiven bool

	settings []setting
	place    place
}

// setting is a property that the file gives a value.
type setting struct {
	place
	name, value string
}

// ParseConfig reads a file and checks it against what a tier allows. Errors are [*SyntaxError].
func ParseConfig(src []byte, tier Tier) (*Config, error) {
	root, err := parseJSON(src)
	if err != nil {
		return nil, err
	}
	r := reader{tier: tier}
	err = root.object(fields{
		"$schema":    anything, // editors look for it
		"UserConfig": r.userConfig,
	})
	if err == nil && r.config.Namespace == "" {
		err = root.errorf("there is no UserConfig with Namespaces in it")
	}
	if err != nil {
		return nil, err
	}
	return &r.config, nil
}

// reader collects what a file says.
type reader struct {
	tier   Tier
	config Config
}

func (r *reader) userConfig(n *node) error {
	return n.object(fields{
		"Namespaces": r.namespaces,
		"Logging": func(n *node) error { // read, so that a typing error shows; serve logs to standard error
			return n.object(fields{"Type": anything})
		},
	})
}

func (r *reader) namespaces(n *node) error {
	return n.list(func(i int, n *node) error {
		if i > 0 {
			return n.errorf("there is one namespace; start another server for the next")
		}
		var name *node
		err := n.object(fields{
			"Name":               into(&name),
			"Queues":             func(n *node) error { return n.list(r.queue) },
			"Topics":             func(n *node) error { return n.list(r.topic) },
			"AuthorizationRules": func(n *node) error { return r.keys(n, "") },
		})
		if err != nil {
			return err
		}
		r.config.Namespace, err = n.required("Name", name)
		if err == nil && (len(r.config.Namespace) > 50 || strings.ContainsAny(r.config.Namespace, "/:@ ")) {
			err = name.errorf("%q is no name of a namespace: at most 50 letters, digits and hyphens", r.config.Namespace)
		}
		return err
	})
}

func (r *reader) queue(_ int, n *node) error {
	e, parts, err := r.entity(n, broker.Queue, "")
	if err != nil {
		return err
	}
	r.config.Entities = append(r.config.Entities, e)
	return r.keysOf(parts, e)
}

func (r *reader) topic(_ int, n *node) error {
	e, parts, err := r.entity(n, broker.Topic, "")
	if err != nil {
		return err
	}
	r.config.Entities = append(r.config.Entities, e)
	if err := r.keysOf(parts, e); err != nil || parts.subscriptions == nil {
		return err
	}
	return parts.subscriptions.list(func(_ int, n *node) error {
		sub, parts, err := r.entity(n, broker.Subscription, e.Name)
		if err != nil {
			return err
		}
		if parts.rules != nil {
			sub.RulesGiven = true
			err = parts.rules.list(func(_ int, n *node) error {
				rule, err := readRule(n)
				sub.Rules = append(sub.Rules, rule)
				return err
			})
		}
		r.config.Entities = append(r.config.Entities, sub)
		return err
	})
}

// parts are what an entity holds beside its properties.
type parts struct{ subscriptions, rules, keys *node }

// entity reads the name and the properties of an entity and checks them against the tier.
func (r *reader) entity(n *node, kind broker.Kind, topic string) (Entity, parts, error) {
	e := Entity{Kind: kind, place: n.place}
	var p parts
	var name *node
	known := fields{"Name": into(&name), "Properties": func(n *node) error { return e.properties(n) }}
	switch kind {
	case broker.Queue:
		known["AuthorizationRules"] = into(&p.keys)
	case broker.Topic:
		known["AuthorizationRules"], known["Subscriptions"] = into(&p.keys), into(&p.subscriptions)
	case broker.Subscription:
		known["Rules"] = into(&p.rules)
	}
	err := n.object(known)
	if err == nil {
		e.Name, err = n.required("Name", name)
	}
	if err != nil {
		return e, p, err
	}
	if kind == broker.Subscription {
		e.Name = topic + "/Subscriptions/" + e.Name
	}
	for _, other := range r.config.Entities {
		if strings.EqualFold(other.Name, e.Name) {
			return e, p, name.errorf("%s stands here twice", e.Name)
		}
	}
	props := r.tier.Defaults(kind)
	if err := e.apply(&props); err != nil {
		return e, p, err
	}
	if err := r.tier.Check(kind, &props); err != nil {
		return e, p, n.errorf("%s %s: %w", kind, e.Name, err)
	}
	return e, p, nil
}

// properties remembers what the file gives a value.
func (e *Entity) properties(n *node) error {
	return n.eachMember(func(m member) error {
		switch m.value.kind {
		case null: // as if it was not there
			return nil
		case object, list:
			return m.value.errorf("want a value of %s, not %s", m.name, m.value.kind)
		}
		e.settings = append(e.settings, setting{m.place, m.name, m.value.text})
		return nil
	})
}

// apply gives properties the values that the file says.
func (e *Entity) apply(p *broker.Properties) error {
	for _, s := range e.settings {
		if err := s.apply(e.Kind, p); err != nil {
			return s.errorf("%w", err)
		}
	}
	return nil
}

func (s *setting) apply(kind broker.Kind, p *broker.Properties) error {
	const window = "DuplicateDetectionHistoryTimeWindow"
	if strings.EqualFold(s.name, window) && kind != broker.Subscription {
		// The emulator takes shorter ones than the service; the tier checks them.
		if d, err := broker.ParseISODuration(s.value); err == nil {
			p.DuplicateWindow = d
			return nil
		}
	}
	return p.Set(kind, s.name, s.value)
}

func (r *reader) keysOf(p parts, e Entity) error {
	if p.keys == nil {
		return nil
	}
	return r.keys(p.keys, e.Name)
}

// keys reads authorization rules.
func (r *reader) keys(n *node, entity string) error {
	return n.list(func(_ int, n *node) error {
		var name, primary, secondary, rights *node
		err := n.object(fields{
			"Name": into(&name), "KeyName": into(&name), "Rights": into(&rights),
			"PrimaryKey": into(&primary), "SecondaryKey": into(&secondary),
		})
		if err != nil {
			return err
		}
		k, err := readKey(n, name, primary, secondary, rights)
		k.Entity = entity
		r.config.Keys = append(r.config.Keys, k)
		return err
	})
}

// readKey reads an authorization rule from the values of its members.
func readKey(n, name, primary, secondary, rights *node) (k sas.Key, err error) {
	if k.Name, err = n.required("Name", name); err != nil {
		return k, err
	}
	value, err := n.required("PrimaryKey", primary)
	if err != nil {
		return k, err
	}
	k.Primary = sas.NewSecret(value)
	if secondary != nil {
		if value, err = secondary.string(); err != nil {
			return k, err
		}
		k.Secondary = sas.NewSecret(value)
	}
	if rights == nil || len(rights.items) == 0 {
		return k, n.errorf("Rights are missing, such as [\"Listen\", \"Send\"]")
	}
	return k, rights.list(func(_ int, n *node) error {
		right, err := sas.ParseRights(n.text)
		if err != nil {
			return n.errorf("%w", err)
		}
		k.Rights |= right
		return nil
	})
}
