package tui

import (
	"context"
	"fmt"
	"iter"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

const (
	// firstBatch is small so that a screen fills at once; later batches are large so that
	// a million rows are two thousand messages to Update and not a million.
	firstBatch = 64
	fullBatch  = 512
	// batchAge is how long a row waits at most for its batch to fill, so that a slow
	// service still shows what it has sent.
	batchAge = 100 * time.Millisecond
)

// stream brings what an iterator yields into Update. One goroutine reads the iterator and
// makes batches; next is a Cmd that waits for one of them, and Update asks for the
// following one when it has dealt with that. So batches arrive in order, and a fast
// source cannot flood the UI.
//
// Its pointer is its generation: a screen compares batch.from with the stream that it
// waits for, and drops what an earlier one had under way.
type stream[T any] struct {
	cancel context.CancelFunc
	ch     chan batch[T]
}

// batch is one message from a stream. The last one has done set, and err if the iterator
// ended with an error.
type batch[T any] struct {
	from  *stream[T]
	items []T
	done  bool
	err   error
}

// startStream begins to read the iterator that open returns, with a context that stop
// cancels. It is open that the goroutine runs, so that nothing of it happens in Update.
func startStream[T any](ctx context.Context, open func(context.Context) iter.Seq2[T, error]) *stream[T] {
	ctx, cancel := context.WithCancel(ctx)
	s := &stream[T]{cancel: cancel, ch: make(chan batch[T])}
	go s.read(ctx, open)
	return s
}

// next waits for one batch. After stop its message is nil, which bubbletea drops.
func (s *stream[T]) next() tea.Cmd {
	return func() tea.Msg {
		b, ok := <-s.ch
		if !ok {
			return nil
		}
		return b
	}
}

// stop ends the stream. It may be called twice, and on nil.
func (s *stream[T]) stop() {
	if s != nil {
		s.cancel()
	}
}

func (s *stream[T]) read(ctx context.Context, open func(context.Context) iter.Seq2[T, error]) {
	defer close(s.ch)
	defer s.cancel()
	err := guard(func() error { return s.pump(ctx, open(ctx)) })
	if ctx.Err() == nil {
		s.send(ctx, batch[T]{from: s, done: true, err: err})
	}
}

// pump sends full batches; the last, partial one too, even when the iterator then fails.
func (s *stream[T]) pump(ctx context.Context, seq iter.Seq2[T, error]) error {
	size := firstBatch
	var items []T
	begun := time.Now()
	flush := func() bool {
		if len(items) == 0 {
			return true
		}
		ok := s.send(ctx, batch[T]{from: s, items: items})
		items, size, begun = make([]T, 0, fullBatch), fullBatch, time.Now()
		return ok
	}
	for item, err := range seq {
		if err != nil {
			flush()
			return err
		}
		items = append(items, item)
		if (len(items) >= size || time.Since(begun) > batchAge) && !flush() {
			return ctx.Err()
		}
	}
	flush()
	return nil
}

func (s *stream[T]) send(ctx context.Context, b batch[T]) bool {
	select {
	case s.ch <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

// guard calls f and returns a panic as an error: bubbletea restores the terminal when its
// own goroutines panic, but a panic in one of ours would leave it raw.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	return f()
}
