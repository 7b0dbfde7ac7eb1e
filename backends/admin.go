package backends

import (
	"context"
	"time"

	"dlq/backends/message"
)

// EntityAdmin makes, changes and deletes entities. Properties are texts that bear the
// service's own names, so that no two services have to agree on them. All methods return
// when the change is durable, and none has an effect on messages unless its comment says so.
//
// A sub-queue is no entity of its own: an id that names one is [Invalid].
type EntityAdmin interface {
	// CreateEntity makes an entity and returns what it is. One that exists already is
	// [AlreadyExists]; a name, setting or rule that the service does not take is [Invalid], and
	// then there is no entity. A kind that the service does not have is [Unsupported].
	CreateEntity(ctx context.Context, e NewEntity) (EntityDescription, error)

	// DescribeEntity tells how an entity is set up. Counts are the business of Entities.
	DescribeEntity(ctx context.Context, id EntityID) (EntityDescription, error)

	// ChangeEntity gives properties other values, all of them or, on an error, none. One that
	// is unknown, out of range or fixed since the entity was created is [Invalid].
	ChangeEntity(ctx context.Context, id EntityID, settings ...Setting) error

	// DeleteEntity removes an entity with all the messages it holds, dead letters too, whoever
	// has them under a lock; a topic goes with its subscriptions. What named it as the place
	// for its messages keeps that name.
	DeleteEntity(ctx context.Context, id EntityID) error

	// AddRule adds a rule to a subscription. A name that it has already is [AlreadyExists];
	// an expression that cannot be read is [Invalid]. Messages that arrived before stay.
	AddRule(ctx context.Context, subscription EntityID, r Rule) error

	// RemoveRule removes a rule, and one that is not there is [NotFound]. A subscription
	// without rules receives nothing more.
	RemoveRule(ctx context.Context, subscription EntityID, name string) error
}

// NewEntity is an entity to be made.
type NewEntity struct {
	ID EntityID
	// Kind is what to make. "": what the name says, a subscription where it begins with the
	// name of a topic that exists, else a queue.
	Kind EntityKind
	// Settings are the properties that are not to have their defaults.
	Settings []Setting
	// Rules are those of a subscription. None: one that lets everything through.
	Rules []Rule
}

// Setting gives one property a value. Names compare without case.
type Setting struct{ Name, Value string }

// EntityDescription is how an entity is set up.
type EntityDescription struct {
	ID   EntityID // as the service names it
	Kind EntityKind
	// Properties are all that apply to the entity, in an order that does not change.
	Properties []Property
	Rules      []Rule // of a subscription
	// Created and Modified are when it was made and last changed; zero if the service does not tell.
	Created, Modified time.Time
}

// Property is one property of an entity as text.
type Property struct {
	Name      string
	Value     string
	Default   string // what it is in a new entity
	Range     string // what it can be, in words
	Immutable bool   // fixed when the entity is created
}

// Rule lets messages of a topic into a subscription: those that match its filter.
type Rule struct {
	Name string
	// Filter is an expression in the service's language, such as "sys.Label = 'x'". "": see
	// Correlation; with neither, everything matches.
	Filter string
	// Correlation is a filter that compares for equality: properties and, with the prefix
	// "sys.", system properties, all of which a message must have. It excludes Filter.
	Correlation []message.Attribute
	// Action changes the copies that the rule lets through, in the same language. "": none.
	Action string
}
