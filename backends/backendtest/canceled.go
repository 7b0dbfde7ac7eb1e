package backendtest

import (
	"context"
	"errors"
	"io"
	"iter"

	"dlq/backends"
	"dlq/backends/message"
)

func contextCases() []testCase {
	return []testCase{
		{"context/entities", contextEntities},
		{"context/send", contextSend},
		{"context/lease", contextLease},
		{"context/settle", contextSettle},
		{"context/release", contextRelease},
		{"context/peek", contextPeek},
		{"context/settle-direct", contextSettleDirect},
		{"context/receive-deferred", contextReceiveDeferred},
		{"context/move", contextMove},
		{"context/purge", contextPurge},
		{"context/create", contextCreate},
		{"context/validate", contextValidate},
		{"context/administer", contextAdminister},
	}
}

// canceled calls with a context that is done already, and checks that the answer comes soon
// and says so.
func (f *fixture) canceled(what string, call func(ctx context.Context) error) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	err := f.promptly(what+" with a canceled context", func() error { return call(ctx) })
	if !errors.Is(err, context.Canceled) {
		f.Errorf("%s with a canceled context: got %v, want an error that wraps context.Canceled", what, err)
	}
}

// midway cancels in the middle of an iteration, and checks that it ends with that error.
func midway[T any](f *fixture, what string, seq func(ctx context.Context) iter.Seq2[T, error]) {
	f.Helper()
	f.canceled(what, func(ctx context.Context) error {
		for _, err := range seq(ctx) {
			return err
		}
		return nil
	})
	err := f.promptly(what+", canceled midway", func() (last error) {
		ctx, cancel := context.WithCancel(f.ctx)
		defer cancel()
		for _, last = range seq(ctx) {
			cancel()
		}
		return last
	})
	if !errors.Is(err, context.Canceled) {
		f.Errorf("%s, canceled midway: ended with %v, want an error that wraps context.Canceled", what, err)
	}
}

func contextEntities(f *fixture) {
	f.queue()
	f.queue()
	midway(f, "entities", func(ctx context.Context) iter.Seq2[backends.Entity, error] {
		return f.b.Entities(ctx, backends.EntityQuery{})
	})
}

func contextPeek(f *fixture) {
	p := capability[backends.Peeker](f)
	id := f.queue()
	f.send(id, texts("a", "b", "c")...)
	midway(f, "peek", func(ctx context.Context) iter.Seq2[*message.Message, error] {
		return p.Peek(ctx, id, backends.PeekOptions{})
	})
	f.holds(id, "a", "b", "c")
}

// contextSend: whether the message was sent is not known, but it is there once or not at all.
func contextSend(f *fixture) {
	id := f.queue()
	f.canceled("send", func(ctx context.Context) error { return f.b.Send(ctx, id, texts("a")) })
	if n := len(f.drain(id)); n > 1 {
		f.Errorf("one message was sent, %d have arrived", n)
	}
}

func contextLease(f *fixture) {
	id := f.queue()
	f.send(id, texts("a", "b")...)
	f.canceled("lease", func(ctx context.Context) error {
		l, err := f.b.Lease(ctx, id, backends.LeaseOptions{})
		if err != nil {
			return err
		}
		_, err = f.sweep(l).Next(ctx)
		return err
	})
	s := f.lease(id, backends.LeaseOptions{})
	first := s.next()
	f.canceled("next", func(ctx context.Context) error { _, err := s.Next(ctx); return err })
	s.settle(complete, first) // the sweep goes on
	s.settle(complete, s.rest()...)
	s.release()
	f.holds(id)
}

func contextSettle(f *fixture) {
	id := f.queue()
	f.send(id, text("a"))
	s := f.lease(id, backends.LeaseOptions{})
	m := s.next()
	f.canceled("settle", func(ctx context.Context) error { return s.Settle(ctx, complete, m) })
	if err := s.Settle(f.ctx, complete, m); err != nil {
		f.wantCode("complete again after a cancellation", err, backends.LockLost)
	}
	s.release()
	f.holds(id)
}

// contextRelease: a release that was cut short is done by the next.
func contextRelease(f *fixture) {
	id := f.queue()
	f.send(id, text("a"))
	s := f.lease(id, backends.LeaseOptions{})
	s.next()
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	err := f.promptly("release with a canceled context", func() error { return s.Release(ctx) })
	if err != nil && !errors.Is(err, context.Canceled) {
		f.Errorf("release with a canceled context: %v", err)
	}
	s.release()
	f.holds(id, "a")
}

func contextSettleDirect(f *fixture) {
	d := capability[backends.DirectSettler](f)
	id := f.queue()
	seq := f.sent(id, text("a"))[0]
	f.canceled("settle directly", func(ctx context.Context) error { return d.SettleDirect(ctx, id, complete, seq) })
	if err := d.SettleDirect(f.ctx, id, complete, seq); err != nil {
		f.wantCode("complete directly after a cancellation", err, backends.NotFound)
	}
	f.holds(id)
}

func contextReceiveDeferred(f *fixture) {
	r := capability[backends.DeferredReceiver](f)
	id := f.queue()
	seq := f.deferred(id, text("a"))
	f.canceled("receive deferred", func(ctx context.Context) error {
		l, err := r.LeaseDeferred(ctx, id, seq)
		if err != nil {
			return err
		}
		_, err = l.Next(ctx)
		return errors.Join(err, l.Release(f.ctx))
	})
	s := f.leaseDeferred(id, seq)
	s.settle(complete, s.next())
	if _, err := s.Next(f.ctx); !errors.Is(err, io.EOF) {
		f.Errorf("next: got %v, want io.EOF", err)
	}
}

// contextMove: it is not known where the message is, but it is in one of the two places.
func contextMove(f *fixture) {
	m := capability[backends.Mover](f)
	from, to := f.queue(), f.queue()
	seq := f.sent(from, text("a"))[0]
	f.canceled("move", func(ctx context.Context) error {
		return m.Move(ctx, from, []backends.Move{{Seq: seq, To: to, As: text("a")}})
	})
	if here, there := len(f.drain(from)), len(f.drain(to)); here+there != 1 {
		f.Errorf("after a canceled move the message is there %d times", here+there)
	}
}

func contextPurge(f *fixture) {
	p := capability[backends.Purger](f)
	id := f.queue()
	f.send(id, texts("a", "b")...)
	var n int64
	f.canceled("purge", func(ctx context.Context) (err error) { n, err = p.Purge(ctx, id); return err })
	if left := int64(len(f.drain(id))); n+left != 2 {
		f.Errorf("a canceled purge of two messages says that it removed %d, and left %d", n, left)
	}
}

func contextCreate(f *fixture) {
	c := capability[backends.QueueCreator](f)
	name := f.queue().Name + "-2"
	f.canceled("create", func(ctx context.Context) error { return c.CreateQueue(ctx, name) })
	if err := c.CreateQueue(f.ctx, name); err != nil {
		f.wantCode("create after a cancellation", err, backends.AlreadyExists)
	}
}

func contextValidate(f *fixture) {
	v := capability[backends.SendValidator](f)
	id := f.queue()
	f.canceled("validate", func(ctx context.Context) error { return v.ValidateSend(ctx, id, text("a")) })
}
