package resubmit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/backends/sqlfilter"

	"github.com/itchyny/gojq"
)

// Query is a compiled [Selection]. It may be used concurrently.
type Query struct {
	selection    Selection // with times frozen
	where        *sqlfilter.Expr
	words        []string
	reason       *sqlfilter.Pattern
	jq           *gojq.Code
	since, until time.Time
	ids          map[string]bool
	seqs         map[int64]bool

	unjudged struct {
		sync.Mutex
		n      int64
		first  error
		gaveUp error // ends all sweeps
	}
}

// jqTime bounds one run of a --jq program: a program that loops must not hang a sweep.
const jqTime = time.Second

// errJQTime ends a whole selection: each further message would cost as much again.
var errJQTime = fmt.Errorf("the jq program took longer than %v", jqTime)

// Selection returns the text that the query was compiled from, with relative times replaced by the
// instants they were frozen to: compiled again later it gives the same query.
func (q *Query) Selection() Selection { return q.selection }

// Warnings returns what is legal in the --where expression and hardly meant, in the order of the
// source, such as an application property that is named like a system property.
func (q *Query) Warnings() []sqlfilter.Diagnostic {
	if q.where == nil {
		return nil
	}
	return q.where.Warnings()
}

// NeedsBody reports whether Match looks into bodies; if not, messages may be read without.
func (q *Query) NeedsBody() bool {
	return q.jq != nil || len(q.words) > 0 || q.where != nil && q.where.NeedsBody()
}

// Match reports whether m is selected, leaving the limit aside. An error means that m could
// not be judged, as when its body was left out or --jq fails on it: it counts as not
// selected. A body that is not JSON is no error: nothing in it can be true.
func (q *Query) Match(m *message.Message) (bool, error) {
	if q.NeedsBody() && m.Broker.BodyOmitted {
		return false, errors.New("the body was not loaded, and the selection looks into it")
	}
	if !q.matchFields(m) {
		return false, nil
	}
	body := newBodyView(m)
	if q.where != nil {
		ok, err := q.where.Match(&sqlfilter.Env{Message: m, BodyText: body.text, BodyJSON: body.path})
		if !ok || err != nil {
			return false, err
		}
	}
	if len(q.words) > 0 && !q.matchWords(m, body) {
		return false, nil
	}
	if q.jq != nil {
		return matchJQ(q.jq, body)
	}
	return true, nil
}

// matchFields looks at what needs no body, cheapest first.
func (q *Query) matchFields(m *message.Message) bool {
	at := m.Broker.EnqueuedTime
	switch {
	case q.seqs != nil && !q.seqs[m.Broker.SequenceNumber],
		!q.since.IsZero() && at.Before(q.since),
		!q.until.IsZero() && !at.Before(q.until),
		q.selection.Session != nil && (m.SessionID == nil || *m.SessionID != *q.selection.Session),
		q.ids != nil && !q.ids[message.FormatValue(m.ID)],
		q.reason != nil && !q.reason.Match(m.DeadLetterReason()),
		q.selection.Group != "" && !strings.EqualFold(SignatureOf(m).ID, q.selection.Group):
		return false
	}
	return true
}

// matchWords looks for every word in what a person sees of a message.
func (q *Query) matchWords(m *message.Message, body *bodyView) bool {
	fields := []string{
		strings.ToLower(m.DeadLetterReason()), strings.ToLower(m.DeadLetterDescription()),
		strings.ToLower(message.FormatValue(m.ID)), strings.ToLower(message.Str(m.Subject)),
		strings.ToLower(exceptionOf(m)),
	}
	for _, word := range q.words {
		found := slices.ContainsFunc(fields, func(f string) bool { return strings.Contains(f, word) })
		if !found && !strings.Contains(body.lower(), word) {
			return false
		}
	}
	return true
}

// matchJQ reports whether the program's first result is true in jq's sense: neither false nor null.
func matchJQ(code *gojq.Code, body *bodyView) (bool, error) {
	v, ok := body.json()
	if !ok {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), jqTime)
	defer cancel()
	result, ok := code.RunWithContext(ctx, v).Next()
	if err, bad := result.(error); bad {
		if ctx.Err() != nil {
			err = errJQTime
		}
		return false, fmt.Errorf("jq: %w", err)
	}
	return ok && result != nil && result != false, nil
}

// Unjudged returns how many messages Select could not judge so far, and the first error.
func (q *Query) Unjudged() (n int64, first error) {
	q.unjudged.Lock()
	defer q.unjudged.Unlock()
	return q.unjudged.n, q.unjudged.first
}

// judge is Match for a sweep: it counts what cannot be judged and goes on, unless that took too long.
func (q *Query) judge(m *message.Message) bool {
	if q.gaveUp() != nil {
		return false
	}
	ok, err := q.Match(m)
	if err != nil {
		q.unjudged.Lock()
		if q.unjudged.n++; q.unjudged.first == nil {
			q.unjudged.first = fmt.Errorf("seq %d: %w", m.Broker.SequenceNumber, err)
		}
		if errors.Is(err, errJQTime) {
			q.unjudged.gaveUp = fmt.Errorf("seq %d: %w", m.Broker.SequenceNumber, err)
		}
		q.unjudged.Unlock()
	}
	return ok
}

// gaveUp returns why nothing more is judged, or nil.
func (q *Query) gaveUp() error {
	q.unjudged.Lock()
	defer q.unjudged.Unlock()
	return q.unjudged.gaveUp
}

// Select yields the selected messages of id with their bodies, in the order of the entity,
// at most [Selection.Limit]. It holds one page at a time in memory. Where the backend can peek
// it has no side effects; where it cannot (SQS), it leases: messages are hidden meanwhile and
// their receive count rises, so ask before. Breaking out releases what is held. It yields
// (nil, err) once and stops, also when a --jq program runs for too long.
func (q *Query) Select(ctx context.Context, b backends.Backend, id backends.EntityID) iter.Seq2[*message.Message, error] {
	return q.selectFrom(ctx, b, id, false)
}

func (q *Query) selectFrom(ctx context.Context, b backends.Backend, id backends.EntityID, noBody bool) iter.Seq2[*message.Message, error] {
	var all iter.Seq2[*message.Message, error]
	p, peeks := backends.As[backends.Peeker](b)
	switch {
	case !peeks:
		all = leaseAll(ctx, b, id, q.judge)
	case q.seqs != nil:
		all = peekSeqs(ctx, p, id, slices.Compact(slices.Sorted(slices.Values(q.selection.Seqs))), noBody)
	default:
		all = p.Peek(ctx, id, backends.PeekOptions{NoBody: noBody})
	}
	return func(yield func(*message.Message, error) bool) {
		n := 0
		for m, err := range all {
			if peeks && err == nil && !q.judge(m) {
				if q.gaveUp() != nil {
					break
				}
				continue
			}
			n++
			if !yield(m, err) || err != nil || n == q.selection.Limit {
				return
			}
		}
		if err := q.gaveUp(); err != nil {
			yield(nil, err)
		}
	}
}

// peekSkip is how many unwanted messages in a row are read before it is cheaper to start a
// new peek at the next wanted one.
const peekSkip = 64

// peekSeqs yields the messages with the given sequence numbers, which ascend, as far as they
// exist: near ones in one peek.
func peekSeqs(ctx context.Context, p backends.Peeker, id backends.EntityID, seqs []int64, noBody bool) iter.Seq2[*message.Message, error] {
	return func(yield func(*message.Message, error) bool) {
		for more := true; more && len(seqs) > 0; {
			unwanted := 0
			more = false
			for m, err := range p.Peek(ctx, id, backends.PeekOptions{From: seqs[0], NoBody: noBody}) {
				if err != nil {
					yield(nil, err)
					return
				}
				at := m.Broker.SequenceNumber
				for len(seqs) > 0 && seqs[0] < at {
					seqs = seqs[1:]
				}
				unwanted++
				if len(seqs) > 0 && seqs[0] == at {
					seqs, unwanted = seqs[1:], 0
					if !yield(m, nil) {
						return
					}
				}
				if more = unwanted >= peekSkip; more || len(seqs) == 0 {
					break
				}
			}
		}
	}
}

// leaseAll sweeps an entity and yields what want accepts.
func leaseAll(ctx context.Context, b backends.Backend, id backends.EntityID, want func(*message.Message) bool) iter.Seq2[*message.Message, error] {
	return func(yield func(*message.Message, error) bool) {
		lease, err := b.Lease(ctx, id, backends.LeaseOptions{Want: want})
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }() // what it leaves is freed when its lock expires
		for {
			m, err := lease.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}
