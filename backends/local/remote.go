package local

import (
	"context"
	"iter"

	"dlq/backends"
	"dlq/backends/message"
)

// everything is what a broker of dlq can do, wherever it is.
type everything interface {
	backends.Backend
	backends.Peeker
	backends.DirectSettler
	backends.DeferredReceiver
	backends.Mover
	backends.Purger
	backends.QueueCreator
	backends.SendValidator
	backends.EntityAdmin
	backends.Router
}

var _ everything = (*client)(nil)

// parts iterates over what comes in several replies, one value in each.
func parts[T any](ctx context.Context, c *client, req *request, of func(reply) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		enough := false
		w, _, err := c.stream(ctx, req, func(r reply) bool {
			if err := ctx.Err(); err != nil { // what is underway is not shown any more
				enough = true
				yield(none, err)
				return false
			}
			for _, v := range of(r) {
				if !yield(v, nil) {
					enough = true
					return false
				}
			}
			return true
		})
		if w != nil {
			c.put(w)
		}
		if err != nil && !enough {
			yield(none, err)
		}
	}
}

func (c *client) Entities(ctx context.Context, q backends.EntityQuery) iter.Seq2[backends.Entity, error] {
	return parts(ctx, c, &request{Op: opEntities, Query: q}, func(r reply) []backends.Entity { return r.Entities })
}

func (c *client) Peek(ctx context.Context, id backends.EntityID, o backends.PeekOptions) iter.Seq2[*message.Message, error] {
	req := &request{Op: opPeek, Entity: id, From: o.From, Max: o.Max, NoBody: o.NoBody}
	return parts(ctx, c, req, func(r reply) []*message.Message { return r.Messages })
}

func (c *client) Send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	req := &request{Op: opSend, Entity: id, Messages: msgs}
	if err := carried(req, msgs); err != nil {
		return err
	}
	return c.change(ctx, req)
}

func (c *client) change(ctx context.Context, req *request) error {
	_, err := c.ask(ctx, req)
	return err
}

// checked says whether a message has a binary form. What is none is the owner's to refuse.
func checked(m *message.Message) error {
	if m == nil {
		return nil
	}
	return message.Check(m)
}

// carried refuses messages that have no binary form, as the engine would: all of them, and each
// by name.
func carried(req *request, msgs []*message.Message) error {
	errs := make([]error, len(msgs))
	refused := false
	for i, m := range msgs {
		errs[i] = failed(req, backends.NotTried, nil)
		if err := checked(m); err != nil {
			errs[i], refused = failed(req, backends.Invalid, err), true
		}
	}
	if !refused {
		return nil
	}
	return backends.Batch(errs)
}

func (c *client) ValidateSend(ctx context.Context, id backends.EntityID, m *message.Message) error {
	req := &request{Op: opValidateSend, Entity: id, Messages: []*message.Message{m}}
	if err := checked(m); err != nil {
		return failed(req, backends.Invalid, err)
	}
	return c.change(ctx, req)
}

func (c *client) Route(ctx context.Context, to backends.EntityID, m *message.Message) ([]backends.EntityID, error) {
	req := &request{Op: opRoute, Entity: to, Messages: []*message.Message{m}}
	if err := checked(m); err != nil {
		return nil, failed(req, backends.Invalid, err)
	}
	r, err := c.ask(ctx, req)
	return r.IDs, err
}

func (c *client) SettleDirect(ctx context.Context, id backends.EntityID, o backends.Outcome, seqs ...int64) error {
	req := &request{Op: opSettleDirect, Entity: id, Outcome: o, Seqs: seqs}
	if err := message.Check(&message.Message{Properties: o.Set}); err != nil {
		return failed(req, backends.Invalid, err)
	}
	return c.change(ctx, req)
}

func (c *client) Move(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
	req := &request{Op: opMove, Entity: from, Moves: moves}
	msgs := make([]*message.Message, len(moves))
	for i, m := range moves {
		msgs[i] = m.As
	}
	if err := carried(req, msgs); err != nil {
		return err
	}
	return c.change(ctx, req)
}

func (c *client) Purge(ctx context.Context, id backends.EntityID) (int64, error) {
	r, err := c.ask(ctx, &request{Op: opPurge, Entity: id})
	return r.Count, err
}

func (c *client) CreateQueue(ctx context.Context, name string) error {
	return c.change(ctx, &request{Op: opCreateQueue, Entity: backends.EntityID{Name: name}})
}

func (c *client) CreateEntity(ctx context.Context, e backends.NewEntity) (backends.EntityDescription, error) {
	r, err := c.ask(ctx, &request{Op: opCreateEntity, Entity: e.ID, Kind: e.Kind, Settings: e.Settings, Rules: e.Rules})
	return r.Description, err
}

func (c *client) DescribeEntity(ctx context.Context, id backends.EntityID) (backends.EntityDescription, error) {
	r, err := c.ask(ctx, &request{Op: opDescribeEntity, Entity: id})
	return r.Description, err
}

func (c *client) ChangeEntity(ctx context.Context, id backends.EntityID, settings ...backends.Setting) error {
	return c.change(ctx, &request{Op: opChangeEntity, Entity: id, Settings: settings})
}

func (c *client) DeleteEntity(ctx context.Context, id backends.EntityID) error {
	return c.change(ctx, &request{Op: opDeleteEntity, Entity: id})
}

func (c *client) AddRule(ctx context.Context, subscription backends.EntityID, r backends.Rule) error {
	return c.change(ctx, &request{Op: opAddRule, Entity: subscription, Rules: []backends.Rule{r}})
}

func (c *client) RemoveRule(ctx context.Context, subscription backends.EntityID, name string) error {
	return c.change(ctx, &request{Op: opRemoveRule, Entity: subscription, Name: name})
}
