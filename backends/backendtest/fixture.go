package backendtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// fixture is what a case works with: an open backend and shorthands for calls that must
// succeed, which end the case when they do not.
type fixture struct {
	testing.TB
	h   Harness
	b   backends.Backend
	ctx context.Context
}

func newFixture(t testing.TB, h Harness) *fixture {
	t.Helper()
	f := &fixture{TB: t, h: h, b: h.Open(t), ctx: t.Context()}
	t.Cleanup(func() {
		if err := f.b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

// queue makes a queue with the usual wishes: a lock of a minute and five deliveries.
func (f *fixture) queue() backends.EntityID {
	f.Helper()
	return f.h.Queue(f, QueueOptions{LockDuration: time.Minute, MaxDeliveryCount: 5, MaxBodyBytes: 256 << 10})
}

// text returns a message that is known by its body, and by its id where one survives.
func text(body string) *message.Message {
	return &message.Message{ID: message.String("id-" + body), Body: message.DataBody([]byte(body))}
}

func texts(bodies ...string) []*message.Message {
	msgs := make([]*message.Message, len(bodies))
	for i, b := range bodies {
		msgs[i] = text(b)
	}
	return msgs
}

func bodies(msgs []*message.Message) []string {
	out := make([]string, len(msgs))
	for i, m := range msgs {
		out[i] = string(m.Body.Bytes())
	}
	return out
}

func (f *fixture) send(id backends.EntityID, msgs ...*message.Message) {
	f.Helper()
	if err := f.b.Send(f.ctx, id, msgs); err != nil {
		f.Fatalf("send to %v: %v", id, err)
	}
}

// lease begins a sweep that is released when the case ends, if not before.
func (f *fixture) lease(id backends.EntityID, opts backends.LeaseOptions) *sweep {
	f.Helper()
	l, err := f.b.Lease(f.ctx, id, opts)
	if err != nil {
		f.Fatalf("lease %v: %v", id, err)
	}
	return f.sweep(l)
}

func (f *fixture) sweep(l backends.Lease) *sweep {
	f.Cleanup(func() { _ = l.Release(context.Background()) })
	return &sweep{f: f, Lease: l}
}

// sweep is a lease whose calls must succeed.
type sweep struct {
	backends.Lease
	f *fixture
}

// next returns the next message; there must be one.
func (s *sweep) next() *message.Message {
	s.f.Helper()
	m, err := s.Next(s.f.ctx)
	if err != nil {
		s.f.Fatalf("next: %v", err)
	}
	if m == nil {
		s.f.Fatalf("next: neither a message nor an error")
	}
	return m
}

// rest returns what is left of the sweep. It stops at a number that no case sends, so that
// a sweep without an end fails instead of running on.
func (s *sweep) rest() []*message.Message {
	s.f.Helper()
	const tooMany = 1000
	var msgs []*message.Message
	for len(msgs) < tooMany {
		m, err := s.Next(s.f.ctx)
		if errors.Is(err, io.EOF) {
			return msgs
		}
		if err != nil {
			s.f.Fatalf("next: %v", err)
		}
		msgs = append(msgs, m)
	}
	s.f.Fatalf("the sweep has handed out %d messages and does not end", tooMany)
	return nil
}

// end checks that the sweep has nothing more.
func (s *sweep) end(why string) {
	s.f.Helper()
	if m, err := s.Next(s.f.ctx); !errors.Is(err, io.EOF) {
		s.f.Fatalf("next: got %s, %v, want io.EOF: %s", describe(m), err, why)
	}
}

func (s *sweep) settle(o backends.Outcome, msgs ...*message.Message) {
	s.f.Helper()
	if err := s.Settle(s.f.ctx, o, msgs...); err != nil {
		s.f.Fatalf("%v: %v", o.Action, err)
	}
}

func (s *sweep) release() {
	s.f.Helper()
	if err := s.f.promptly("release", func() error { return s.Release(s.f.ctx) }); err != nil {
		s.f.Fatalf("release: %v", err)
	}
}

var (
	complete = backends.Outcome{Action: backends.Complete}
	abandon  = backends.Outcome{Action: backends.Abandon}
)

// first returns the first of msgs; there must be one.
func (f *fixture) first(msgs []*message.Message) *message.Message {
	f.Helper()
	if len(msgs) == 0 {
		f.Fatalf("there is no message, where at least one must be")
	}
	return msgs[0]
}

// drain removes what a sweep finds, and returns it.
func (f *fixture) drain(id backends.EntityID) []*message.Message {
	f.Helper()
	s := f.lease(id, backends.LeaseOptions{})
	msgs := s.rest()
	s.settle(complete, msgs...)
	s.release()
	return msgs
}

// holds checks that the entity holds exactly the messages with these bodies for a receiver,
// and removes them. The order is not looked at: not every service has one.
func (f *fixture) holds(id backends.EntityID, want ...string) {
	f.Helper()
	got := bodies(f.drain(id))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		f.Errorf("%v holds %s, want %s", id, list(got), list(want))
	}
}

// dead makes dead letters of messages in an empty queue and returns where they lie. Where the
// service cannot be told to, they are received as often as it takes.
func (f *fixture) dead(id backends.EntityID, msgs ...*message.Message) backends.EntityID {
	f.Helper()
	dlq := f.entity(id).DeadLetters
	if dlq == (backends.EntityID{}) {
		f.Skipf("%v has no place for dead letters", id)
	}
	f.send(id, msgs...)
	s := f.lease(id, backends.LeaseOptions{})
	for _, m := range s.rest() {
		f.bury(id, s, backends.Outcome{Action: backends.DeadLetter, Reason: "Tested"}, m)
	}
	s.release()
	return dlq
}

// bury dead-letters a message that s holds, or all in the queue where the service dead-letters
// only what was received too often.
func (f *fixture) bury(id backends.EntityID, s *sweep, o backends.Outcome, m *message.Message) {
	f.Helper()
	limit := f.entity(id).Limits.MaxDeliveryCount
	if !f.h.CountsReceives || limit == 0 {
		f.canSettle(s, o, m)
		return
	}
	s.release()
	for range limit {
		s := f.lease(id, backends.LeaseOptions{})
		s.rest()
		s.release()
	}
}

// deferred sets one message aside and returns its sequence number, or skips the case where
// the service cannot.
func (f *fixture) deferred(id backends.EntityID, m *message.Message) int64 {
	f.Helper()
	f.send(id, m)
	s := f.lease(id, backends.LeaseOptions{})
	var seq int64
	for _, got := range s.rest() {
		if string(got.Body.Bytes()) == string(m.Body.Bytes()) {
			seq = got.Broker.SequenceNumber
			f.canSettle(s, backends.Outcome{Action: backends.Defer}, got)
		}
	}
	s.release()
	return seq
}

// wantCount checks how often a message counts as delivered that was received so often, with
// so many of these deliveries having failed.
func (f *fixture) wantCount(m *message.Message, received, failed uint32) {
	f.Helper()
	want := failed
	if f.h.CountsReceives {
		want = received
	}
	if got := m.Broker.DeliveryCount; got != want {
		f.Errorf("%s was received %d times, of which %d failed, and counts %d, want %d", describe(m), received, failed, got, want)
	}
}

// canSettle settles, or skips the case where the service has no such outcome.
func (f *fixture) canSettle(s *sweep, o backends.Outcome, m *message.Message) {
	f.Helper()
	err := s.Settle(f.ctx, o, m)
	if errors.Is(err, errors.ErrUnsupported) {
		s.settle(complete, m) // still held, and nothing has happened to it
		f.Skipf("the service cannot %v", o.Action)
	}
	if err != nil {
		f.Fatalf("%v: %v", o.Action, err)
	}
}

// entity returns what the backend tells about one entity.
func (f *fixture) entity(id backends.EntityID) backends.Entity {
	f.Helper()
	es := f.entities(backends.EntityQuery{Names: []string{id.Name}})
	if len(es) != 1 {
		f.Fatalf("entities named %q: got %d, want 1", id.Name, len(es))
	}
	return es[0]
}

func (f *fixture) entities(q backends.EntityQuery) []backends.Entity {
	f.Helper()
	var es []backends.Entity
	for e, err := range f.b.Entities(f.ctx, q) {
		if err != nil {
			f.Fatalf("entities: %v", err)
		}
		es = append(es, e)
	}
	return es
}

// expire lets the locks of id run out.
func (f *fixture) expire(id backends.EntityID) {
	f.Helper()
	d := f.entity(id).Limits.LockDuration
	if d <= 0 {
		f.Fatalf("%v declares no lock duration", id)
	}
	f.h.Advance(f, d+time.Second)
}

// wantCode checks that err has the code.
func (f *fixture) wantCode(what string, err error, want backends.Code) {
	f.Helper()
	if !backends.IsCode(err, want) {
		f.Errorf("%s: got %v, want an error with the code %q", what, err, want)
	}
}

// wantItems checks that err is a batch error that names exactly these indexes.
func (f *fixture) wantItems(what string, err error, want map[int]backends.Code) {
	f.Helper()
	var batch *backends.BatchError
	if !errors.As(err, &batch) {
		f.Errorf("%s: got %v, want a BatchError", what, err)
		return
	}
	last := -1
	for _, item := range batch.Failed {
		code, named := want[item.Index]
		if !named || item.Index <= last {
			f.Errorf("%s: the error names index %d out of order or without need: %v", what, item.Index, item.Err)
			continue
		}
		last = item.Index
		f.wantCode(fmt.Sprintf("%s, index %d", what, item.Index), item.Err, code)
	}
	if len(batch.Failed) != len(want) {
		f.Errorf("%s: the error names %d messages, want %d", what, len(batch.Failed), len(want))
	}
}

// patience is how long a call may take that must return at once or "in a few seconds". It
// decides only how soon a hanging driver fails.
const patience = 10 * time.Second

// promptly returns what call returns; a call that panics or does not return ends the case.
func (f *fixture) promptly(what string, call func() error) error {
	f.Helper()
	type result struct {
		err      error
		panicked any
		stack    []byte
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if r.panicked = recover(); r.panicked != nil {
				r.stack = debug.Stack()
			}
			done <- r
		}()
		r.err = call()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r := <-done:
		if r.panicked != nil {
			f.Fatalf("%s: panic: %v\n%s", what, r.panicked, r.stack)
		}
		return r.err
	case <-timer.C:
		f.Fatalf("%s: no answer in %v", what, patience)
		return nil
	}
}

// capability returns the optional interface T, or skips the case. That what is lacking
// says so is the business of the case "capabilities".
func capability[T any](f *fixture) T {
	f.Helper()
	t, ok := backends.As[T](f.b)
	if !ok {
		f.Skipf("the backend is no %T", (*T)(nil))
	}
	return t
}

// diff names what differs between a message that was sent and the same one received,
// leaving out what the contract lets a service add or drop.
func diff(sent, got *message.Message) []string {
	return slices.DeleteFunc(message.Diff(sent, got), func(name string) bool {
		return name == "System" || name == "DeliveryAnnotations" && len(got.DeliveryAnnotations) == 0
	})
}

// list shows bodies in a failure, shortened.
func list(bodies []string) string {
	out := make([]string, len(bodies))
	for i, b := range bodies {
		out[i] = fmt.Sprintf("%.40q", b)
	}
	return "[" + strings.Join(out, " ") + "]"
}

func describe(m *message.Message) string {
	if m == nil {
		return "no message"
	}
	return fmt.Sprintf("message %d %.40q", m.Broker.SequenceNumber, m.Body.Bytes())
}
