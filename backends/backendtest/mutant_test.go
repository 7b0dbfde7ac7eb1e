package backendtest

import (
	"context"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"dlq/backends"
	"dlq/backends/message"
)

// mutant is a backend with one fault, and the cases that must notice it.
type mutant struct {
	name   string
	caught []string
	fault  func(b *faulty)
	// harness is for faults that lie in how time passes or data survives.
	harness func(h *Harness)
}

func mutants() []mutant {
	return slices.Concat(sendMutants(), leaseMutants(), settleMutants(), carryMutants(), entityMutants(),
		peekMutants(), directMutants(), moveMutants(), routeMutants(), adminMutants(), administerMutants(), lifecycleMutants())
}

// TestMutants proves the suite: each mutant fails the cases that are there to catch it.
func TestMutants(t *testing.T) {
	cases := map[string]testCase{}
	for _, c := range suite() {
		cases[c.name] = c
	}
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			for _, name := range m.caught {
				c, ok := cases[name]
				if !ok {
					t.Fatalf("there is no case %q", name)
				}
				r := record(t, c, m.open)
				if !r.failed {
					t.Errorf("the mutant survives the case %q (skipped: %v)", name, r.skipped)
				}
				for _, line := range r.lines {
					t.Logf("%s: %.300s", name, line)
				}
			}
		})
	}
}

// TestEveryCaseHasAMutant: a case that no mutant fails proves nothing.
func TestEveryCaseHasAMutant(t *testing.T) {
	proved := map[string]bool{}
	for _, m := range mutants() {
		for _, name := range m.caught {
			proved[name] = true
		}
	}
	for _, c := range suite() {
		if !proved[c.name] {
			t.Errorf("no mutant is caught by the case %q", c.name)
		}
	}
}

// TestRecorder: where there is no fault, the way in which mutants are run finds none.
func TestRecorder(t *testing.T) {
	faultless := mutant{fault: func(*faulty) {}}
	for _, c := range suite() {
		if r := record(t, c, faultless.open); r.failed || r.skipped {
			t.Errorf("%s: failed %v, skipped %v: %q", c.name, r.failed, r.skipped, r.lines)
		}
	}
}

func (m mutant) open(t testing.TB) Harness {
	h := referenceHarness(t)
	if m.harness != nil {
		m.harness(&h)
	}
	return Decorate(h, func(b backends.Backend) backends.Backend {
		f := newFaulty(t, b)
		if m.fault != nil {
			m.fault(f)
		}
		return f
	})
}

// recorder is a testing.TB that keeps failures to itself.
type recorder struct {
	testing.TB
	ctx             context.Context
	mu              sync.Mutex
	failed, skipped bool
	lines           []string
	cleanups        []func()
}

// record runs one case. It does so in a bubble of synctest, where a call that hangs costs
// no time.
func record(t *testing.T, c testCase, open func(testing.TB) Harness) *recorder {
	t.Helper()
	r := &recorder{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r.TB, r.ctx = t, ctx
		r.guard(func() { c.run(r, open) })
		cancel()
		for _, cleanup := range slices.Backward(r.cleanups) {
			r.guard(cleanup)
		}
	})
	return r
}

// guard runs call so that it can end early, by FailNow or by a panic.
func (r *recorder) guard(call func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v", p)
			}
		}()
		call()
	}()
	<-done
}

func (r *recorder) note(failed, skipped bool, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed, r.skipped = r.failed || failed, r.skipped || skipped
	if line != "" {
		r.lines = append(r.lines, line)
	}
}

func (r *recorder) Cleanup(call func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, call)
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Fail()                    { r.note(true, false, "") }
func (r *recorder) FailNow()                 { r.Fail(); runtime.Goexit() }
func (r *recorder) SkipNow()                 { r.note(false, true, ""); runtime.Goexit() }
func (r *recorder) Failed() bool             { r.mu.Lock(); defer r.mu.Unlock(); return r.failed }
func (r *recorder) Skipped() bool            { r.mu.Lock(); defer r.mu.Unlock(); return r.skipped }
func (r *recorder) Log(args ...any)          { r.note(false, false, fmt.Sprint(args...)) }
func (r *recorder) Logf(f string, a ...any)  { r.note(false, false, fmt.Sprintf(f, a...)) }
func (r *recorder) Error(args ...any)        { r.note(true, false, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, a ...any) {
	r.note(true, false, fmt.Sprintf(f, a...))
}
func (r *recorder) Fatal(args ...any)         { r.Error(args...); r.FailNow() }
func (r *recorder) Fatalf(f string, a ...any) { r.Errorf(f, a...); r.FailNow() }
func (r *recorder) Skip(args ...any)          { r.Log(args...); r.SkipNow() }
func (r *recorder) Skipf(f string, a ...any)  { r.Logf(f, a...); r.SkipNow() }

// faulty is a backend each of whose methods can be replaced by a mutant. What is not
// replaced is the real one.
type faulty struct {
	real backends.Decorator
	stop <-chan struct{} // closed when the case is over: what hangs must end then

	ctx      func(context.Context) context.Context   // the context of every call
	errs     func(error) error                       // the error of every call
	sent     func(*message.Message) *message.Message // what to send in its place
	received func(id backends.EntityID, m *message.Message)
	onLease  func(l *faultyLease)

	entities func(context.Context, backends.EntityQuery) iter.Seq2[backends.Entity, error]
	send     func(context.Context, backends.EntityID, []*message.Message) error
	lease    func(context.Context, backends.EntityID, backends.LeaseOptions) (backends.Lease, error)
	close    func() error
	peek     func(context.Context, backends.EntityID, backends.PeekOptions) iter.Seq2[*message.Message, error]
	direct   func(context.Context, backends.EntityID, backends.Outcome, ...int64) error
	deferred func(context.Context, backends.EntityID, ...int64) (backends.Lease, error)
	move     func(context.Context, backends.EntityID, []backends.Move) error
	purge    func(context.Context, backends.EntityID) (int64, error)
	create   func(context.Context, string) error
	validate func(context.Context, backends.EntityID, *message.Message) error
	route    func(context.Context, backends.EntityID, *message.Message) ([]backends.EntityID, error)

	createEntity func(context.Context, backends.NewEntity) (backends.EntityDescription, error)
	described    func(*backends.EntityDescription) // what create and describe answer
	change       func(context.Context, backends.EntityID, ...backends.Setting) error
	delete       func(context.Context, backends.EntityID) error
	addRule      func(context.Context, backends.EntityID, backends.Rule) error
	removeRule   func(context.Context, backends.EntityID, string) error
}

func newFaulty(t testing.TB, b backends.Backend) *faulty {
	d := backends.Decorator{Backend: b}
	f := &faulty{
		real: d, stop: t.Context().Done(),
		ctx:      func(ctx context.Context) context.Context { return ctx },
		errs:     func(err error) error { return err },
		sent:     func(m *message.Message) *message.Message { return m },
		received: func(backends.EntityID, *message.Message) {},
		onLease:  func(*faultyLease) {},
		entities: d.Entities, send: d.Send, lease: d.Lease, close: d.Close, peek: d.Peek, direct: d.SettleDirect,
		deferred: d.LeaseDeferred, move: d.Move, purge: d.Purge, create: d.CreateQueue, validate: d.ValidateSend, route: d.Route,
		createEntity: d.CreateEntity, described: func(*backends.EntityDescription) {}, change: d.ChangeEntity,
		delete: d.DeleteEntity, addRule: d.AddRule, removeRule: d.RemoveRule,
	}
	return f
}

func (b *faulty) Entities(ctx context.Context, q backends.EntityQuery) iter.Seq2[backends.Entity, error] {
	return filterErrors(b, b.entities(b.ctx(ctx), q))
}

func (b *faulty) Peek(ctx context.Context, id backends.EntityID, opts backends.PeekOptions) iter.Seq2[*message.Message, error] {
	return filterErrors(b, b.peek(b.ctx(ctx), id, opts))
}

func filterErrors[T any](b *faulty, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		seq(func(v T, err error) bool {
			if err != nil {
				if err = b.errs(err); err == nil {
					return true
				}
			}
			return yield(v, err)
		})
	}
}

func (b *faulty) Send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	changed := make([]*message.Message, len(msgs))
	for i, m := range msgs {
		changed[i] = b.sent(m)
	}
	return b.errs(b.send(b.ctx(ctx), id, changed))
}

func (b *faulty) Lease(ctx context.Context, id backends.EntityID, opts backends.LeaseOptions) (backends.Lease, error) {
	l, err := b.lease(b.ctx(ctx), id, opts)
	return b.wrap(id, opts, l, err)
}

func (b *faulty) LeaseDeferred(ctx context.Context, id backends.EntityID, seqs ...int64) (backends.Lease, error) {
	l, err := b.deferred(b.ctx(ctx), id, seqs...)
	return b.wrap(id, backends.LeaseOptions{}, l, err)
}

func (b *faulty) wrap(id backends.EntityID, opts backends.LeaseOptions, l backends.Lease, err error) (backends.Lease, error) {
	if err != nil {
		if err = b.errs(err); err != nil {
			return nil, err
		}
		l = emptyLease{}
	}
	f := &faultyLease{b: b, id: id, opts: opts, next: l.Next, settle: l.Settle, release: l.Release}
	b.onLease(f)
	return f, nil
}

func (b *faulty) Close() error { return b.close() }

func (b *faulty) SettleDirect(ctx context.Context, id backends.EntityID, o backends.Outcome, seqs ...int64) error {
	return b.errs(b.direct(b.ctx(ctx), id, o, seqs...))
}

func (b *faulty) Move(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
	return b.errs(b.move(b.ctx(ctx), from, moves))
}

func (b *faulty) Purge(ctx context.Context, id backends.EntityID) (int64, error) {
	n, err := b.purge(b.ctx(ctx), id)
	return n, b.errs(err)
}

func (b *faulty) CreateQueue(ctx context.Context, name string) error {
	return b.errs(b.create(b.ctx(ctx), name))
}

func (b *faulty) ValidateSend(ctx context.Context, id backends.EntityID, m *message.Message) error {
	return b.errs(b.validate(b.ctx(ctx), id, m))
}

func (b *faulty) Route(ctx context.Context, to backends.EntityID, m *message.Message) ([]backends.EntityID, error) {
	got, err := b.route(b.ctx(ctx), to, m)
	return got, b.errs(err)
}

func (b *faulty) CreateEntity(ctx context.Context, e backends.NewEntity) (backends.EntityDescription, error) {
	d, err := b.createEntity(b.ctx(ctx), e)
	b.described(&d)
	return d, b.errs(err)
}

func (b *faulty) DescribeEntity(ctx context.Context, id backends.EntityID) (backends.EntityDescription, error) {
	d, err := b.real.DescribeEntity(b.ctx(ctx), id)
	b.described(&d)
	return d, b.errs(err)
}

func (b *faulty) ChangeEntity(ctx context.Context, id backends.EntityID, settings ...backends.Setting) error {
	return b.errs(b.change(b.ctx(ctx), id, settings...))
}

func (b *faulty) DeleteEntity(ctx context.Context, id backends.EntityID) error {
	return b.errs(b.delete(b.ctx(ctx), id))
}

func (b *faulty) AddRule(ctx context.Context, id backends.EntityID, r backends.Rule) error {
	return b.errs(b.addRule(b.ctx(ctx), id, r))
}

func (b *faulty) RemoveRule(ctx context.Context, id backends.EntityID, name string) error {
	return b.errs(b.removeRule(b.ctx(ctx), id, name))
}

// faultyLease is to a lease what faulty is to a backend.
type faultyLease struct {
	b       *faulty
	id      backends.EntityID
	opts    backends.LeaseOptions
	next    func(context.Context) (*message.Message, error)
	settle  func(context.Context, backends.Outcome, ...*message.Message) error
	release func(context.Context) error
}

func (l *faultyLease) Next(ctx context.Context) (*message.Message, error) {
	m, err := l.next(l.b.ctx(ctx))
	if m != nil {
		l.b.received(l.id, m)
	}
	return m, l.b.errs(err)
}

func (l *faultyLease) Settle(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
	return l.b.errs(l.settle(l.b.ctx(ctx), o, msgs...))
}

func (l *faultyLease) Release(ctx context.Context) error { return l.b.errs(l.release(l.b.ctx(ctx))) }

type (
	nextFunc   = func(context.Context) (*message.Message, error)
	settleFunc = func(context.Context, backends.Outcome, ...*message.Message) error
)

// onNext, onSettle and sending are faults of that one call.
func onNext(change func(l *faultyLease, next nextFunc) nextFunc) func(*faulty) {
	return func(b *faulty) { b.onLease = func(l *faultyLease) { l.next = change(l, l.next) } }
}

func onSettle(change func(l *faultyLease, settle settleFunc) settleFunc) func(*faulty) {
	return func(b *faulty) { b.onLease = func(l *faultyLease) { l.settle = change(l, l.settle) } }
}

func sending(change func(m *message.Message)) func(*faulty) {
	return func(b *faulty) {
		b.sent = func(m *message.Message) *message.Message {
			m = m.Clone()
			change(m)
			return m
		}
	}
}

func receiving(change func(id backends.EntityID, m *message.Message)) func(*faulty) {
	return func(b *faulty) { b.received = change }
}

// describe is a fault in what Entities tells.
func (b *faulty) describe(change func(e *backends.Entity)) {
	b.entities = func(ctx context.Context, q backends.EntityQuery) iter.Seq2[backends.Entity, error] {
		return func(yield func(backends.Entity, error) bool) {
			for e, err := range b.real.Entities(ctx, q) {
				if err == nil {
					change(&e)
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// emptyLease is what a mutant hands out for an entity that it ought to have missed.
type emptyLease struct{}

func (emptyLease) Next(context.Context) (*message.Message, error) { return nil, io.EOF }

func (emptyLease) Settle(context.Context, backends.Outcome, ...*message.Message) error { return nil }

func (emptyLease) Release(context.Context) error { return nil }
