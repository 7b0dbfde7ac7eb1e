package backendtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"dlq/backends"
	"dlq/backends/message"
)

// TestReference runs the suite on a second engine that shares nothing with dlq's own, so
// that the suite states the contract and not the habits of one engine.
func TestReference(t *testing.T) { Run(t, referenceHarness) }

// TestDecorated runs it through a decorator that does nothing.
func TestDecorated(t *testing.T) {
	Run(t, func(t testing.TB) Harness {
		return Decorate(referenceHarness(t), func(b backends.Backend) backends.Backend {
			return backends.Decorator{Backend: b}
		})
	})
}

// TestBare runs it on a backend that has nothing but the interface.
func TestBare(t *testing.T) {
	Run(t, func(t testing.TB) Harness { return Decorate(referenceHarness(t), bare) })
}

// bare hides every optional interface of b.
func bare(b backends.Backend) backends.Backend { return struct{ backends.Backend }{b} }

// world is the data of the reference backend: it outlives the handles on it.
type world struct {
	mu     sync.Mutex
	now    time.Time
	tokens uint64
	queues map[string]*queue
	leases map[*refLease]bool
}

// queue is a queue, a subscription, or a topic, which holds nothing.
type queue struct {
	name  string
	kind  backends.EntityKind
	opts  QueueOptions
	last  int64 // sequence number
	items []*item

	seen              map[string]time.Time // by message id, when it was sent
	note              string
	ordered           bool
	rules             []backends.Rule
	created, modified time.Time
}

// item is a message at rest. Its place is told by sub and the state in m.
type item struct {
	sub    backends.Sub
	m      *message.Message
	holder *refLease // nil: free
}

// reference is the reference backend: a mutex, slices, and the contract read literally.
type reference struct {
	*world
	closed bool
}

func referenceHarness(testing.TB) Harness {
	w := &world{
		now:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		queues: map[string]*queue{}, leases: map[*refLease]bool{},
	}
	return Harness{
		Open: func(testing.TB) backends.Backend { return &reference{world: w} },
		Queue: func(_ testing.TB, opts QueueOptions) backends.EntityID {
			opts.LockDuration = cmp.Or(opts.LockDuration, time.Minute)
			opts.MaxDeliveryCount = cmp.Or(opts.MaxDeliveryCount, 10)
			opts.MaxBodyBytes = cmp.Or(opts.MaxBodyBytes, 256<<10)
			name := fmt.Sprintf("queue%d", len(w.queues)+1)
			w.queues[name] = &queue{name: name, kind: backends.Queue, opts: opts, created: w.now, modified: w.now}
			return backends.EntityID{Name: name}
		},
		Now:     func() time.Time { return w.now },
		Advance: func(_ testing.TB, d time.Duration) { w.now = w.now.Add(d) },
		AdvanceSlowly: func(_ testing.TB, d time.Duration) {
			for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(time.Second) {
				w.renew()
			}
		},
		Restart: func(_ testing.TB, b backends.Backend, kill bool) backends.Backend {
			if kill {
				b.(*reference).closed = true
			} else {
				_ = b.Close()
			}
			return &reference{world: w}
		},
	}
}

// renew does what the leases of a living process do by themselves.
func (w *world) renew() {
	for _, q := range w.queues {
		for _, it := range q.items {
			if it.holder != nil {
				it.m.Broker.LockedUntil = w.now.Add(q.opts.LockDuration)
			}
		}
	}
}

func fail(op string, id backends.EntityID, code backends.Code, cause error) error {
	return &backends.Error{Op: op, Entity: id, Code: code, Err: cause}
}

// enter begins every call, with the mutex held: it lets what time has done happen.
func (r *reference) enter(ctx context.Context, op string, id backends.EntityID) (*queue, error) {
	if err := ctx.Err(); err != nil {
		return nil, fail(op, id, backends.Unknown, err)
	}
	if r.closed {
		return nil, fail(op, id, backends.Unavailable, errors.New("the backend is closed"))
	}
	q := r.find(id.Name)
	if q == nil || id.Sub == backends.TransferDeadLetterQueue {
		return nil, fail(op, id, backends.NotFound, nil)
	}
	for _, it := range q.items {
		if it.m.Broker.State == message.Scheduled && !it.m.ScheduledEnqueueTime.After(r.now) {
			it.m.Broker.State = message.Active
		}
		if it.holder != nil && !it.m.Broker.LockedUntil.After(r.now) {
			q.fail(it)
		}
	}
	return q, nil
}

// fail ends a lock without success.
func (q *queue) fail(it *item) {
	q.unlock(it)
	if it.sub != backends.Main {
		return
	}
	it.m.Broker.DeliveryCount++
	if n := q.opts.MaxDeliveryCount; int(it.m.Broker.DeliveryCount) >= n {
		q.bury(it, "MaxDeliveryCountExceeded", fmt.Sprintf("Message could not be consumed after %d delivery attempts.", n))
	}
}

func (q *queue) unlock(it *item) {
	it.holder, it.m.Broker.LockToken, it.m.Broker.LockedUntil = nil, message.UUID{}, time.Time{}
}

func (q *queue) bury(it *item, reason, description string) {
	it.sub, it.m.Broker.State = backends.DeadLetterQueue, message.Active
	it.m.Properties.Set(message.DeadLetterReasonProperty, message.String(reason))
	it.m.Properties.Set(message.DeadLetterDescriptionProperty, message.String(description))
}

func (q *queue) add(m *message.Message, now time.Time) {
	q.last++
	m = m.Clone()
	m.Broker = message.Broker{SequenceNumber: q.last, EnqueuedTime: now, BodySize: int64(m.Body.Len())}
	if m.ScheduledEnqueueTime != nil && m.ScheduledEnqueueTime.After(now) {
		m.Broker.State = message.Scheduled
	}
	q.items = append(q.items, &item{m: m})
}

// duplicate reports whether the queue has seen the id of a message, which it notes otherwise.
func (q *queue) duplicate(m *message.Message, now time.Time, note bool) bool {
	id := message.FormatValue(m.ID)
	at, seen := q.seen[id]
	if q.opts.DuplicateWindow == 0 || id == "" {
		return false
	}
	if seen && !now.After(at.Add(q.opts.DuplicateWindow)) {
		return true
	}
	if q.seen == nil {
		q.seen = map[string]time.Time{}
	}
	if note {
		q.seen[id] = now
	}
	return false
}

func (q *queue) remove(it *item) {
	q.items = slices.DeleteFunc(q.items, func(other *item) bool { return other == it })
}

func (q *queue) find(sub backends.Sub, seq int64) *item {
	for _, it := range q.items {
		if it.sub == sub && it.m.Broker.SequenceNumber == seq {
			return it
		}
	}
	return nil
}

// refuse is what Send says against a message.
func (q *queue) refuse(op string, m *message.Message) error {
	if int64(m.Body.Len()) > q.opts.MaxBodyBytes {
		return fail(op, backends.EntityID{Name: q.name}, backends.TooLarge, nil)
	}
	return nil
}

func (r *reference) Entities(ctx context.Context, query backends.EntityQuery) iter.Seq2[backends.Entity, error] {
	return func(yield func(backends.Entity, error) bool) {
		r.mu.Lock()
		names := slices.SortedFunc(maps.Keys(r.queues), func(a, b string) int {
			return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
		})
		r.mu.Unlock()
		if query.Names != nil {
			names = slices.Sorted(slices.Values(query.Names))
		}
		for _, name := range names {
			if !strings.HasPrefix(name, query.Prefix) {
				continue
			}
			e, err := r.describe(ctx, name)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (r *reference) describe(ctx context.Context, name string) (e backends.Entity, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := backends.EntityID{Name: name}
	q, err := r.enter(ctx, "describe", id)
	if err != nil {
		return e, err
	}
	id.Name = q.name
	e = backends.Entity{ID: id, Kind: q.kind, DeadLetters: id.DeadLetters(), Limits: limits(q.opts)}
	e.RequiresSession, e.Deduplication.Window = q.opts.Sessions, q.opts.DuplicateWindow
	e.Counts.Source, e.Counts.AsOf = "exact", r.now
	items := q.items
	if q.kind == backends.Topic {
		e.Counts.Summed = true
		for _, sub := range r.subscriptions(q.name) {
			items = append(items, sub.items...)
		}
	}
	for _, it := range items {
		switch b := it.m.Broker; {
		case it.sub == backends.DeadLetterQueue:
			e.Counts.DeadLetter++
			if e.Oldest.IsZero() || b.EnqueuedTime.Before(e.Oldest) {
				e.Oldest = b.EnqueuedTime
			}
		case b.State == message.Scheduled:
			e.Counts.Scheduled++
		case b.State == message.Deferred:
			e.Counts.Deferred++
		default:
			e.Counts.Active++
		}
	}
	return e, nil
}

func limits(o QueueOptions) backends.Limits {
	return backends.Limits{MaxBodyBytes: o.MaxBodyBytes, LockDuration: o.LockDuration, MaxDeliveryCount: o.MaxDeliveryCount}
}

func (r *reference) Send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := r.enter(ctx, "send", id)
	if err != nil {
		return err
	}
	errs := make([]error, len(msgs))
	for i, m := range msgs {
		errs[i] = q.refuse("send", m)
	}
	if backends.Batch(errs) != nil {
		for i := range errs {
			if errs[i] == nil {
				errs[i] = fail("send", id, backends.Invalid, errors.New("not sent: another message of the batch was refused"))
			}
		}
		return backends.Batch(errs)
	}
	for _, m := range msgs {
		if q.kind == backends.Topic {
			r.publish(q.name, m)
		} else if !q.duplicate(m, r.now, true) {
			q.add(m, r.now)
		}
	}
	return nil
}

func (r *reference) ValidateSend(ctx context.Context, id backends.EntityID, m *message.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := r.enter(ctx, "validate", id)
	if err != nil {
		return err
	}
	return q.refuse("validate", m)
}

func (r *reference) CreateQueue(ctx context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := backends.EntityID{Name: name}
	_, err := r.enter(ctx, "create", id)
	switch {
	case err == nil:
		return fail("create", id, backends.AlreadyExists, nil)
	case !backends.IsCode(err, backends.NotFound):
		return err
	case name == "":
		return fail("create", id, backends.Invalid, errors.New("a queue needs a name"))
	}
	r.queues[name] = &queue{name: name, kind: backends.Queue, opts: standard, created: r.now, modified: r.now}
	return nil
}

func (r *reference) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		for l := range r.leases {
			l.release()
		}
	}
	r.closed = true
	return nil
}

func (r *reference) Peek(ctx context.Context, id backends.EntityID, opts backends.PeekOptions) iter.Seq2[*message.Message, error] {
	return func(yield func(*message.Message, error) bool) {
		from := opts.From
		for n := 0; opts.Max == 0 || n < opts.Max; n++ {
			m, err := r.peekOne(ctx, id, from, opts.NoBody)
			if m == nil && err == nil || !yield(m, err) || err != nil {
				return
			}
			from = m.Broker.SequenceNumber + 1
		}
	}
}

func (r *reference) peekOne(ctx context.Context, id backends.EntityID, from int64, noBody bool) (*message.Message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := r.enter(ctx, "peek", id)
	if err != nil {
		return nil, err
	}
	for _, it := range q.items { // in the order of their numbers
		if it.sub == id.Sub && it.m.Broker.SequenceNumber >= from {
			m := it.m.Clone()
			m.Broker.LockToken, m.Broker.LockedUntil = message.UUID{}, time.Time{}
			if noBody {
				m.Body, m.Broker.BodyOmitted = message.Body{}, true
			}
			return m, nil
		}
	}
	return nil, nil
}

func (r *reference) Purge(ctx context.Context, id backends.EntityID) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := r.enter(ctx, "purge", id)
	if err != nil {
		return 0, err
	}
	before := len(q.items)
	q.items = slices.DeleteFunc(q.items, func(it *item) bool { return it.sub == id.Sub && it.holder == nil })
	return int64(before - len(q.items)), nil
}

func (r *reference) SettleDirect(ctx context.Context, id backends.EntityID, o backends.Outcome, seqs ...int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, err := r.enter(ctx, "settle", id)
	if err != nil {
		return err
	}
	errs := make([]error, len(seqs))
	for i, seq := range seqs {
		it, err := q.free("settle", id, seq)
		if err == nil {
			err = q.settle(it, o)
		}
		errs[i] = err
	}
	return backends.Batch(errs)
}

// free returns a message that nobody holds.
func (q *queue) free(op string, id backends.EntityID, seq int64) (*item, error) {
	it := q.find(id.Sub, seq)
	switch {
	case it == nil:
		return nil, fail(op, id, backends.NotFound, fmt.Errorf("no message %d", seq))
	case it.holder != nil:
		return nil, fail(op, id, backends.Locked, nil)
	}
	return it, nil
}

func (q *queue) settle(it *item, o backends.Outcome) error {
	id := backends.EntityID{Name: q.name, Sub: it.sub}
	const longest = 4096
	if utf8.RuneCountInString(o.Reason) > longest || utf8.RuneCountInString(o.Description) > longest {
		return fail("settle", id, backends.Invalid, errors.New("reason or description is too long"))
	}
	if o.Action == backends.DeadLetter && it.sub != backends.Main {
		return fail("settle", id, backends.Invalid, errors.New("it is a dead letter"))
	}
	for _, a := range o.Set {
		it.m.Properties.Set(a.Name, a.Value)
	}
	switch o.Action {
	case backends.Complete:
		q.remove(it)
	case backends.Abandon:
		q.fail(it)
	case backends.Defer:
		q.unlock(it)
		it.m.Broker.State = message.Deferred
	case backends.DeadLetter:
		q.unlock(it)
		q.bury(it, o.Reason, o.Description)
	}
	return nil
}

func (r *reference) Move(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	source, err := r.enter(ctx, "move", from)
	if err != nil {
		return err
	}
	errs := make([]error, len(moves))
	for i, mv := range moves {
		errs[i] = r.moveOne(ctx, source, from, mv)
	}
	return backends.Batch(errs)
}

func (r *reference) moveOne(ctx context.Context, source *queue, from backends.EntityID, mv backends.Move) error {
	it, err := source.free("move", from, mv.Seq)
	if err != nil {
		return err
	}
	to, err := r.enter(ctx, "move", mv.To)
	if err != nil {
		return err
	}
	if err := to.refuse("move", mv.As); err != nil {
		return err
	}
	switch {
	case to.kind == backends.Topic && len(r.routes(to.name, mv.As)) == 0 && !mv.AllowUnrouted:
		return fail("move", mv.To, backends.Unrouted, nil)
	case to.kind == backends.Topic:
		r.publish(to.name, mv.As)
	case to.duplicate(mv.As, r.now, true):
		return fail("move", mv.To, backends.Duplicate, nil)
	default:
		to.add(mv.As, r.now)
	}
	if !mv.Keep {
		source.remove(it)
	}
	return nil
}
