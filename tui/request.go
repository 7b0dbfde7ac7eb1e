package tui

import (
	"context"

	tea "github.com/charmbracelet/bubbletea"
)

// request is one question that is answered once. Like a stream, its pointer tells a
// current answer from a stale one.
type request[T any] struct{ cancel context.CancelFunc }

// answer is what a request brings back.
type answer[T any] struct {
	from  *request[T]
	value T
	err   error
}

// ask returns a request and the Cmd that answers it by calling f outside Update.
func ask[T any](ctx context.Context, f func(context.Context) (T, error)) (*request[T], tea.Cmd) {
	ctx, cancel := context.WithCancel(ctx)
	r := &request[T]{cancel}
	return r, func() tea.Msg {
		defer cancel()
		a := answer[T]{from: r}
		a.err = guard(func() (err error) {
			a.value, err = f(ctx)
			return err
		})
		return a
	}
}

// stop gives the request up. It may be called twice, and on nil.
func (r *request[T]) stop() {
	if r != nil {
		r.cancel()
	}
}
