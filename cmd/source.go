package cmd

import (
	"context"
	"iter"

	"github.com/spf13/pflag"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/resubmit"
)

// source are the flags of the commands that read a selection: which queue, which messages.
type source struct {
	place
	selectionFlags
}

func (s *source) addFlags(fs *pflag.FlagSet) {
	s.place.addFlags(fs)
	s.selectionFlags.addFlags(fs)
}

// reading is an opened source.
type reading struct {
	backend backends.Backend
	id      backends.EntityID
	query   *resubmit.Query
}

// open checks the flags, and then opens the backend.
func (s *source) open(ctx context.Context, a *app, fs *pflag.FlagSet, arg string) (*reading, error) {
	id, err := s.id(arg)
	if err != nil {
		return nil, err
	}
	sel, err := s.selection(fs)
	if err != nil {
		return nil, err
	}
	query, err := a.compile(sel)
	if err != nil {
		return nil, err
	}
	b, err := a.existing(ctx)
	if err != nil {
		return nil, err
	}
	if id, err = s.locate(ctx, a, b, id); err != nil {
		return nil, err
	}
	return &reading{backend: b, id: id, query: query}, nil
}

// locate returns where the messages lie that id names. It warns where they lie among those of
// other queues, which a reader would take for those of the queue that was named.
func (s *source) locate(ctx context.Context, a *app, b backends.Backend, id backends.EntityID) (backends.EntityID, error) {
	named, err := resubmit.Find(ctx, b, id)
	if err != nil {
		return id, nil //nolint:nilerr // reading says what is wrong
	}
	at := named.Resolve(id.Sub)
	if at.Sub == backends.DeadLetterQueue && named.Kind == backends.Queue && named.DeadLetters == (backends.EntityID{}) {
		return id, fail(exitFailed, "", "%s has no redrive policy, so it has no dead-letter queue; --active acts on its own messages", named.ID)
	}
	if at.Name == named.ID.Name || s.BySource() {
		return at, nil
	}
	if there, err := resubmit.Find(ctx, b, at); err == nil {
		if text := resubmit.Shared(named, there); text != "" {
			a.say("warning: %s; --where \"sys.DeadLetterSource = '%s'\" tells them apart", text, named.ID)
		}
	}
	return at, nil
}

// messages yields what is selected, page by page.
func (r *reading) messages(ctx context.Context) iter.Seq2[*message.Message, error] {
	return r.query.Select(ctx, r.backend, r.id)
}

// end says what could not be judged, and that nothing was found if so.
func (r *reading) end(a *app, n int64) error {
	if bad, first := r.query.Unjudged(); bad > 0 {
		a.say("warning: %s could not be judged and are left out; the first: %v", plural(bad, "message"), first)
	}
	if n == 0 {
		return fail(exitNothing, "", "nothing matched in %s", r.id)
	}
	return nil
}
