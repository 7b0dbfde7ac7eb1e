package local

import (
	"context"
	"errors"
	"iter"

	"dlq/backends"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// peekPage is how many messages are read at once: a page is bounded in bytes as well.
const peekPage = 256

// Peek browses page by page.
func (b *Backend) Peek(ctx context.Context, id backends.EntityID, opts backends.PeekOptions) iter.Seq2[*message.Message, error] {
	return func(yield func(*message.Message, error) bool) {
		from, left := opts.From, opts.Max
		for {
			a, err := address(ctx, "peek", id)
			if err != nil {
				yield(nil, err)
				return
			}
			size := peekPage
			if opts.Max > 0 {
				size = min(size, left)
			}
			page, err := b.engine.Peek(a, broker.PeekOptions{From: from, Max: size, NoBody: opts.NoBody})
			for _, m := range page {
				if !yield(m, nil) {
					return
				}
				from = m.Broker.SequenceNumber + 1
			}
			if err != nil {
				yield(nil, wrap("peek", id, err))
				return
			}
			if left -= len(page); len(page) == 0 || opts.Max > 0 && left <= 0 {
				return
			}
		}
	}
}

// SettleDirect settles by sequence number, in one commit.
func (b *Backend) SettleDirect(ctx context.Context, id backends.EntityID, o backends.Outcome, seqs ...int64) error {
	op := o.Action.String()
	a, err := address(ctx, op, id)
	if err != nil {
		return err
	}
	errs, err := b.engine.SettleBySequence(a, outcome(o), seqs...)
	return wrapAll(op, id, errs, err)
}

// Move moves messages in one commit. What comes into a queue of SQS, or is changed in one, has to
// be what SQS takes.
func (b *Backend) Move(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
	return b.move(ctx, from, moves, b.checkMove)
}

// move moves what check lets through.
func (b *Backend) move(ctx context.Context, from backends.EntityID, moves []backends.Move, check func(context.Context, broker.Address, backends.Move) error) error {
	a, err := address(ctx, "move from", from)
	if err != nil {
		return err
	}
	errs := make([]error, len(moves))
	var ours []broker.Move
	var index []int // of ours in moves
	for i, m := range moves {
		to, err := address(ctx, "move to", m.To)
		if err == nil {
			err = check(ctx, a, m)
		}
		if err != nil {
			errs[i] = err
			continue
		}
		ours = append(ours, broker.Move{Seq: m.Seq, To: to, As: m.As, Keep: m.Keep, AllowUnrouted: m.AllowUnrouted})
		index = append(index, i)
	}
	moved, err := b.engine.Move(a, ours)
	if err != nil {
		return wrap("move from", from, err)
	}
	for i, err := range moved {
		if errors.Is(err, broker.ErrNoMessage) || errors.Is(err, broker.ErrLocked) {
			errs[index[i]] = wrap("move from", from, err)
		} else { // the source is there, so it is the destination
			errs[index[i]] = wrap("move to", moves[index[i]].To, err)
		}
	}
	return backends.Batch(errs)
}

// Route tells who would hold the message.
func (b *Backend) Route(ctx context.Context, to backends.EntityID, m *message.Message) ([]backends.EntityID, error) {
	const op = "route to"
	a, err := address(ctx, op, to)
	if err != nil {
		return nil, err
	}
	addresses, err := b.engine.Route(a, m)
	if err != nil {
		return nil, wrap(op, to, err)
	}
	out := make([]backends.EntityID, len(addresses))
	for i, a := range addresses {
		out[i] = backends.EntityID{Name: a.Name, Sub: subOf(a.Sub)}
	}
	return out, nil
}

// subOf is the other way of address.
func subOf(s broker.Sub) backends.Sub {
	switch s {
	case broker.DeadLetter:
		return backends.DeadLetterQueue
	case broker.TransferDeadLetter:
		return backends.TransferDeadLetterQueue
	}
	return backends.Main
}

// Purge removes what is there, in commits of a thousand.
func (b *Backend) Purge(ctx context.Context, id backends.EntityID) (int64, error) {
	a, err := address(ctx, "purge", id)
	if err != nil {
		return 0, err
	}
	n, err := b.engine.Purge(ctx, a, broker.PurgeOptions{})
	return n, wrap("purge", id, err)
}
