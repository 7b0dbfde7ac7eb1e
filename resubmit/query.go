package resubmit

import (
	"context"
	"iter"

	"dlq/backends"
	"dlq/backends/message"
)

// Query is a compiled [Selection]. It may be used concurrently.
type Query struct{}

// Selection returns the text that the query was compiled from, with relative times replaced by the
// instants they were frozen to, so that compiling it again later gives the same query.
func (q *Query) Selection() Selection { return Selection{} }

// Match reports whether m is selected, leaving the limit aside. An error means that m could
// not be judged, as when --jq fails on its body or the body was not loaded: such a message is
// not selected.
func (q *Query) Match(m *message.Message) (bool, error) { return false, nil }

// NeedsBody reports whether Match looks into bodies; if not, messages may be read without.
func (q *Query) NeedsBody() bool { return false }

// Unjudged returns how many messages Select could not judge so far, and the first error.
func (q *Query) Unjudged() (n int64, first error) { return 0, nil }

// Select yields the selected messages of id with their bodies, in the order of the entity,
// at most [Selection.Limit]. It holds one page at a time in memory. Where the backend can peek it has
// no side effects; where it cannot (SQS), it leases: messages are hidden meanwhile and their
// receive count rises, so ask before. Breaking out releases what is held. It yields
// (nil, err) once and stops.
func (q *Query) Select(ctx context.Context, b backends.Backend, id backends.EntityID) iter.Seq2[*message.Message, error] {
	return nil
}
