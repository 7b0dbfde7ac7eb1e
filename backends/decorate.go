package backends

import (
	"context"
	"errors"
	"iter"

	"dlq/backends/message"
)

// As returns b as the optional interface T, looking through decorators: a decorator has
// T exactly when it declares T and what it wraps has T. It is the one place where an
// optional interface is asserted.
func As[T any](b Backend) (T, bool) {
	var none T
	if w, ok := b.(interface{ Unwrap() Backend }); ok && !has[T](w.Unwrap()) {
		return none, false
	}
	t, ok := b.(T)
	return t, ok
}

// Decorator is the base of a Backend around a Backend. It forwards every method, the
// optional ones too, so that a capability survives wrapping. Embed it and override what
// the decorator is about; an optional method that is not overridden is forwarded, so a
// decorator that must see every change has to override all that change something.
type Decorator struct{ Backend }

// Unwrap returns the backend that is decorated.
func (d Decorator) Unwrap() Backend { return d.Backend }

// These make the build fail when an optional interface is not forwarded.
var (
	_ Peeker           = Decorator{}
	_ DirectSettler    = Decorator{}
	_ DeferredReceiver = Decorator{}
	_ Mover            = Decorator{}
	_ Purger           = Decorator{}
	_ QueueCreator     = Decorator{}
	_ SendValidator    = Decorator{}
	_ EntityAdmin      = Decorator{}
	_ Router           = Decorator{}
)

func (d Decorator) Peek(ctx context.Context, id EntityID, opts PeekOptions) iter.Seq2[*message.Message, error] {
	p, ok := As[Peeker](d.Backend)
	if !ok {
		return func(yield func(*message.Message, error) bool) { yield(nil, unsupported("peek", id)) }
	}
	return p.Peek(ctx, id, opts)
}

func (d Decorator) SettleDirect(ctx context.Context, id EntityID, o Outcome, seqs ...int64) error {
	s, ok := As[DirectSettler](d.Backend)
	if !ok {
		return unsupported("settle by sequence number", id)
	}
	return s.SettleDirect(ctx, id, o, seqs...)
}

func (d Decorator) LeaseDeferred(ctx context.Context, id EntityID, seqs ...int64) (Lease, error) {
	r, ok := As[DeferredReceiver](d.Backend)
	if !ok {
		return nil, unsupported("receive deferred", id)
	}
	return r.LeaseDeferred(ctx, id, seqs...)
}

func (d Decorator) Move(ctx context.Context, from EntityID, moves []Move) error {
	m, ok := As[Mover](d.Backend)
	if !ok {
		return unsupported("move", from)
	}
	return m.Move(ctx, from, moves)
}

func (d Decorator) Purge(ctx context.Context, id EntityID) (int64, error) {
	p, ok := As[Purger](d.Backend)
	if !ok {
		return 0, unsupported("purge", id)
	}
	return p.Purge(ctx, id)
}

func (d Decorator) CreateQueue(ctx context.Context, name string) error {
	c, ok := As[QueueCreator](d.Backend)
	if !ok {
		return unsupported("create queue", EntityID{Name: name})
	}
	return c.CreateQueue(ctx, name)
}

func (d Decorator) ValidateSend(ctx context.Context, id EntityID, m *message.Message) error {
	v, ok := As[SendValidator](d.Backend)
	if !ok {
		return unsupported("validate", id)
	}
	return v.ValidateSend(ctx, id, m)
}

func (d Decorator) Route(ctx context.Context, to EntityID, m *message.Message) ([]EntityID, error) {
	r, ok := As[Router](d.Backend)
	if !ok {
		return nil, unsupported("route to", to)
	}
	return r.Route(ctx, to, m)
}

func (d Decorator) CreateEntity(ctx context.Context, e NewEntity) (EntityDescription, error) {
	a, ok := As[EntityAdmin](d.Backend)
	if !ok {
		return EntityDescription{}, unsupported("create", e.ID)
	}
	return a.CreateEntity(ctx, e)
}

func (d Decorator) DescribeEntity(ctx context.Context, id EntityID) (EntityDescription, error) {
	a, ok := As[EntityAdmin](d.Backend)
	if !ok {
		return EntityDescription{}, unsupported("describe", id)
	}
	return a.DescribeEntity(ctx, id)
}

func (d Decorator) ChangeEntity(ctx context.Context, id EntityID, settings ...Setting) error {
	a, ok := As[EntityAdmin](d.Backend)
	if !ok {
		return unsupported("change", id)
	}
	return a.ChangeEntity(ctx, id, settings...)
}

func (d Decorator) DeleteEntity(ctx context.Context, id EntityID) error {
	a, ok := As[EntityAdmin](d.Backend)
	if !ok {
		return unsupported("delete", id)
	}
	return a.DeleteEntity(ctx, id)
}

func (d Decorator) AddRule(ctx context.Context, subscription EntityID, r Rule) error {
	a, ok := As[EntityAdmin](d.Backend)
	if !ok {
		return unsupported("add a rule to", subscription)
	}
	return a.AddRule(ctx, subscription, r)
}

func (d Decorator) RemoveRule(ctx context.Context, subscription EntityID, name string) error {
	a, ok := As[EntityAdmin](d.Backend)
	if !ok {
		return unsupported("remove a rule from", subscription)
	}
	return a.RemoveRule(ctx, subscription, name)
}

func unsupported(op string, id EntityID) error {
	return &Error{Op: op, Entity: id, Code: Unsupported, Err: errors.ErrUnsupported}
}
