package resubmit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
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

// ErrRefused is wrapped by errors that say: a check forbids it, and nothing was sent.
var ErrRefused = errors.New("refused")

// ErrNoSelection: the selection is empty, and only All means everything.
var ErrNoSelection = errors.New("nothing is selected; narrow it (--reason, --where, --seq, …) or use --all")

// Env is what jobs work with.
type Env struct {
	Backend  backends.Backend
	Journals *Journals
	Conn     string           // the connection's URL or name, for the journal; never a secret
	Version  string           // the tool's version, for the journal
	Now      func() time.Time // nil: time.Now
	// Sleep waits for d or until ctx is done, then with its error. It is used while the
	// locks of a dead process expire. nil: real time.
	Sleep func(ctx context.Context, d time.Duration) error
}

func (e Env) now() time.Time {
	if e.Now == nil {
		return time.Now()
	}
	return e.Now()
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
	Copy   bool // leave the originals where they are
	// AllowUnrouted sends also what no rule of a topic lets through, so that nobody gets it.
	AllowUnrouted bool
	Delay         time.Duration // messages become visible that much later
	Rate          float64       // messages per second at most; 0: no bound
	Concurrency   int           // batches in flight; 0: 4
	Max           int           // refuse a plan with more messages; 0: no bound

	// Backup is the file to which a purge was exported before; the journal then refers to
	// it and keeps no messages of its own.
	Backup string
	// Discard makes a purge keep nothing at all.
	Discard bool

	Command string // what the user typed, for the journal
}

// keepsNothing reports whether the originals do not go into the journal.
func (s Spec) keepsNothing() bool { return s.Kind == Purge && (s.Backup != "" || s.Discard) }

// Plan is what a job would do: the frozen set of messages, where they would go, and what
// speaks against it.
type Plan struct {
	Spec         Spec // with relative times frozen
	Matched      int64
	Bytes        int64 // of bodies
	Destinations []Destination
	Warnings     []Finding // to be shown, not in the way
	Vetoes       []Finding // Run refuses

	query  *Query
	items  []item // in sequence order
	at     time.Time
	count  int64 // messages in the source, as far as known
	maxSeq int64
}

// Refused returns the vetoes as one error that wraps [ErrRefused], or nil.
func (p *Plan) Refused() error {
	if len(p.Vetoes) == 0 {
		return nil
	}
	err := fmt.Errorf("%w: %s", ErrRefused, p.Vetoes[0].Text)
	for _, v := range p.Vetoes[1:] {
		err = fmt.Errorf("%w; %s", err, v.Text)
	}
	return err
}

// Items yields the messages of the plan, in sequence order.
func (p *Plan) Items() []Item {
	out := make([]Item, len(p.items))
	for i, it := range p.items {
		out[i] = Item{Seq: it.seq, ID: it.id}
	}
	return out
}

// NewPlan looks at what matches, checks it against the destinations, and freezes the set of
// messages: what arrives later is not part of it. It has no side effects where the backend can
// peek; where it cannot, it leases and releases. A bad selection or edit is an error; what
// speaks against running is in [Plan.Vetoes]; a plan without matches is no error. It reads page
// by page; memory grows by about 100 bytes for each matching message.
func NewPlan(ctx context.Context, env Env, spec Spec) (*Plan, error) {
	p := &Plan{Spec: spec, at: env.now()}
	if err := p.compile(); err != nil {
		return nil, err
	}
	named, err := entity(ctx, env.Backend, spec.From)
	if err != nil {
		return nil, err
	}
	// As the service writes it: a subscription that was named in short has a topic.
	p.Spec.From = named.Resolve(spec.From.Sub)
	source := named
	if p.Spec.From.Name != named.ID.Name {
		if source, err = entity(ctx, env.Backend, p.Spec.From); err != nil {
			return nil, err
		}
	}
	spec = p.Spec
	transform, err := spec.Edits.Compile("", spec.From)
	if err != nil {
		return nil, err
	}
	switch spec.From.Sub {
	case backends.DeadLetterQueue:
		p.count = source.Counts.DeadLetter
	case backends.TransferDeadLetterQueue:
		p.count = source.Counts.TransferDeadLetter
	default:
		p.count = source.Counts.Active
	}
	check := &preflight{ctx: ctx, env: env, plan: p, source: source, transform: transform}
	check.capabilities()
	check.shared(named)
	if err := p.scan(ctx, env, check); err != nil {
		return nil, err
	}
	check.conclude()
	return p, nil
}

func (p *Plan) compile() (err error) {
	switch p.Spec.Kind {
	case Resubmit, Complete:
		if p.Spec.Selection.Empty() {
			return ErrNoSelection
		}
	case Purge:
		p.Spec.Selection = Selection{All: true}
	default:
		return fmt.Errorf("a plan cannot be of kind %q", p.Spec.Kind)
	}
	if p.Spec.Kind != Resubmit && (p.Spec.To != nil || !p.Spec.Edits.Empty() || p.Spec.Copy || p.Spec.Edited != nil) {
		return fmt.Errorf("%s neither sends nor changes messages", p.Spec.Kind)
	}
	if !(p.Spec.Rate >= 0) || math.IsInf(p.Spec.Rate, 1) { // not a number is not below 0 either
		return fmt.Errorf("rate %v is no number of messages a second", p.Spec.Rate)
	}
	if p.Spec.Concurrency < 0 || p.Spec.Max < 0 || p.Spec.Delay < 0 {
		return errors.New("concurrency, max and delay cannot be below 0")
	}
	if p.query, err = p.Spec.Selection.Compile(p.at); err != nil {
		return err
	}
	p.Spec.Selection = p.query.Selection()
	return nil
}

// scan reads the source once.
func (p *Plan) scan(ctx context.Context, env Env, check *preflight) error {
	noBody := p.Spec.Kind != Resubmit && !p.query.NeedsBody()
	for m, err := range p.query.selectFrom(ctx, env.Backend, p.Spec.From, noBody) {
		if err != nil {
			return err
		}
		it := item{seq: m.Broker.SequenceNumber, id: message.FormatValue(m.ID), sum: sumOf(m)}
		p.items = append(p.items, it)
		p.maxSeq = max(p.maxSeq, it.seq)
		p.Bytes += max(m.Broker.BodySize, int64(m.Body.Len()))
		if err := check.message(m); err != nil {
			return err
		}
	}
	p.Matched = int64(len(p.items))
	slices.SortStableFunc(p.items, func(a, b item) int { return cmp.Compare(a.seq, b.seq) })
	return nil
}

// destination returns what the plan knows of a destination.
func (p *Plan) destination(id backends.EntityID) Destination {
	for _, d := range p.Destinations {
		if d.Entity == id {
			return d
		}
	}
	return Destination{Entity: id}
}

// Change is one message before and after the edits.
type Change struct {
	Before, After *message.Message
	To            backends.EntityID
	Err           error // why it would be skipped; After is nil then
}

// Preview returns the first n messages of the plan as they are and as they would be sent, for
// showing the difference. It is empty where the backend cannot peek.
func (p *Plan) Preview(ctx context.Context, env Env, n int) ([]Change, error) {
	peeker, ok := backends.As[backends.Peeker](env.Backend)
	if !ok || p.Spec.Kind != Resubmit {
		return nil, nil
	}
	transform, err := p.Spec.Edits.Compile("", p.Spec.From)
	if err != nil {
		return nil, err
	}
	source, err := entity(ctx, env.Backend, p.Spec.From)
	if err != nil {
		return nil, err
	}
	var seqs []int64
	for _, it := range p.items[:min(n, len(p.items))] {
		seqs = append(seqs, it.seq)
	}
	var out []Change
	for m, err := range peekSeqs(ctx, peeker, p.Spec.From, seqs, false) {
		if err != nil {
			return out, err
		}
		c := Change{Before: m}
		if c.To, c.Err = destinationOf(p.Spec, source, m); c.Err == nil {
			c.After, c.Err = transform.outgoing(p.destination(c.To), m, p.Spec.Edited[m.Broker.SequenceNumber])
		}
		out = append(out, c)
	}
	return out, nil
}
