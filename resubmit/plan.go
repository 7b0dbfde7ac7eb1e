package resubmit

import (
	"context"
	"errors"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// Kind is what a job does.
type Kind string

const (
	// Resubmit sends messages to where they came from or elsewhere, and removes them here.
	Resubmit Kind = "resubmit"
	// Complete removes messages; the journal keeps them.
	Complete Kind = "complete"
	// Purge removes everything that is there when it is planned.
	Purge Kind = "purge"
	// Restoring puts back what another job removed: see [Restore].
	Restoring Kind = "restore"
)

// ErrRefused is wrapped by errors that say: nothing was sent, a check forbids it.
var ErrRefused = errors.New("refused")

// Env is what jobs work with.
type Env struct {
	Backend  backends.Backend
	Journals *Journals
	Conn     string // the connection's URL or name, for the journal; never a secret
	Version  string // the tool's version, for the journal
	Now      func() time.Time
	// Sleep waits for d or until ctx is done, then with its error. nil: real time.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Spec says what to do.
type Spec struct {
	Kind      Kind
	From      backends.EntityID
	To        *backends.EntityID // nil: where each message came from
	Selection Selection          // not looked at for Purge, which always means all
	Edits     Edits
	// Edited holds, by sequence number, what to send instead of the original, as `dlq edit`
	// made it. Selection must select them.
	Edited map[int64]*message.Message
	Copy   bool          // leave the originals where they are
	Delay  time.Duration // messages become visible that much later
	// Rate bounds messages per second. 0: no bound.
	Rate        float64
	Concurrency int // batches in flight; 0: 4
	Max         int // refuse a plan with more messages. 0: no bound

	// Backup is the file to which a purge was exported before; the journal then refers to
	// it and keeps no messages of its own.
	Backup string
	// Discard makes a purge keep nothing at all.
	Discard bool

	Command string // what the user typed, for the journal
}

// Plan is what a job would do: the frozen set of messages, where they would go, and
// what speaks against it.
type Plan struct {
	Spec         Spec // with relative times frozen
	Matched      int64
	Bytes        int64 // of bodies
	Destinations []Destination
	Warnings     []Finding // to be shown, not in the way
	Vetoes       []Finding // Run refuses
}

// Destination is one entity that messages would go to.
type Destination struct {
	Entity backends.EntityID
	Count  int64
	Create bool // it does not exist and would be made with defaults
}

// Finding is one result of the preflight.
type Finding struct {
	Code    string // stable, such as "destination-missing"
	Text    string // one sentence that says what to do next; may hold text from a server
	Count   int64  // messages concerned; 0: the whole plan
	Samples []Item // the first few of them
}

// Refused returns the vetoes as one error that wraps [ErrRefused], or nil.
func (p *Plan) Refused() error { return nil }

// Preview returns what the first selected messages would be sent as, before and after, for
// showing the diff. At most n.
func (p *Plan) Preview(ctx context.Context, env Env, n int) ([]Change, error) { return nil, nil }

// Change is one message before and after the edits.
type Change struct {
	Before, After *message.Message
	To            backends.EntityID
	Err           error // why it would be skipped; After is nil then
}

// NewPlan looks at what matches, checks it against the destinations, and freezes the set of
// messages: what arrives later is not part of it. It has no side effects where the backend
// can peek; where it cannot, it leases and releases. A bad selection or edit is an error,
// what speaks against running is in [Plan.Vetoes], and a plan without matches is no error.
// Memory: about 100 bytes for each matching message.
func NewPlan(ctx context.Context, env Env, spec Spec) (*Plan, error) { return nil, nil }
