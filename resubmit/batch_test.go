package resubmit

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"dlq/backends"
	"dlq/backends/message"
)

// picky refuses a whole call because of some of its messages, as services do.
type picky struct {
	backends.Backend
	refuse func(*message.Message) error
	calls  int
}

func (b *picky) Send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	b.calls++
	errs := make([]error, len(msgs))
	refused := false
	for i, m := range msgs {
		errs[i] = b.refuse(m)
		refused = refused || errs[i] != nil
	}
	if !refused {
		return b.Backend.Send(ctx, id, msgs)
	}
	for i := range errs {
		if errs[i] == nil {
			errs[i] = &backends.Error{Op: "send", Entity: id, Code: backends.NotTried}
		}
	}
	return backends.Batch(errs)
}

// TestOneRefusedMessage costs no other message of its batch anything.
func TestOneRefusedMessage(t *testing.T) {
	for _, c := range []struct {
		name    string
		code    backends.Code
		culprit string
		summary string
		failed  bool // the run ends with an error
	}{
		{"refused", backends.TooLarge, "2", "moved 4, left 0, lost 0, skipped 1 (seq 3)", false},
		{"service down", backends.Unavailable, "2", "moved 0, left 0, lost 0, failed 5 (seq 1, 2, 3, 4, 5)", true},
		{"nobody at fault", backends.NotTried, "2", "moved 0, left 0, lost 0, failed 5 (seq 1, 2, 3, 4, 5)", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.bury(5)
			b := &picky{Backend: f.local, refuse: func(m *message.Message) error {
				if string(m.Body.Bytes()) == c.culprit {
					return &backends.Error{Op: "send", Code: c.code}
				}
				return nil
			}}
			f.env.Backend = b
			r, err := Run(f.ctx, f.env, f.plan(Spec{}), nil)
			if (err != nil) != c.failed {
				t.Errorf("the run ends with %v", err)
			}
			f.accounted(r)
			f.want(r, c.summary)
			f.holds(orders, int(r.Done))
			f.holds(dead, 5-int(r.Done))
			if b.calls > 2 {
				t.Errorf("%d calls for one culprit, want two", b.calls)
			}
		})
	}
}

// TestSessionWaitsForItsFirst: while the first message of a session is held by somebody, the later ones stay
// behind it, and others do not.
func TestSessionWaitsForItsFirst(t *testing.T) {
	f := newFixture(t)
	s, other := "s", "other"
	var msgs []*message.Message
	for i := range 8 {
		m := &message.Message{SessionID: &s, Body: message.DataBody(fmt.Append(nil, i))}
		if i%2 == 1 {
			m.SessionID = &other
		}
		msgs = append(msgs, m)
	}
	f.buryAll(msgs...)
	held, err := f.local.Lease(f.ctx, dead, backends.LeaseOptions{Max: 1})
	if err == nil {
		_, err = held.Next(f.ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := f.plan(Spec{Concurrency: 1})
	r, err := runWithBatches(f, p, 6) // the last message of the session is in a later batch
	if err != nil {
		t.Fatal(err)
	}
	f.accounted(r)
	if got := bodies(f.peek(orders)); !slices.Equal(got, []string{"1", "3", "5", "7"}) || len(r.Failed) != 4 {
		t.Errorf("%s; %v arrived", r.Summary(), got)
	}
	if err := held.Release(f.ctx); err != nil {
		t.Fatal(err)
	}
	if r, err = Resume(f.ctx, f.env, r.Job, nil); err != nil {
		t.Fatal(err)
	}
	f.want(r, "moved 8, left 0, lost 0")
	if got := bodies(f.peek(orders)); !slices.Equal(got[4:], []string{"0", "2", "4", "6"}) {
		t.Errorf("resumed, %v arrived", got)
	}
}

// TestSessionStaysBehindAFailedSend: what a failed send leaves is not overtaken by a later batch.
func TestSessionStaysBehindAFailedSend(t *testing.T) {
	f := newFixture(t)
	s := "s"
	var msgs []*message.Message
	for i := range 6 {
		msgs = append(msgs, &message.Message{SessionID: &s, Body: message.DataBody(fmt.Append(nil, i))})
	}
	f.buryAll(msgs...)
	locked := true
	f.env.Backend = &picky{Backend: plainBackend{f.local}, refuse: func(m *message.Message) error {
		if locked && string(m.Body.Bytes()) == "1" {
			return &backends.Error{Op: "send", Code: backends.Locked}
		}
		return nil
	}}
	r, err := runWithBatches(f, f.plan(Spec{Concurrency: 1}), 4)
	if err != nil {
		t.Fatal(err)
	}
	if got := bodies(f.peek(orders)); len(got) != 0 || len(r.Failed) != 6 {
		t.Errorf("%s; %v arrived", r.Summary(), got)
	}
	locked = false
	if r, err = Resume(f.ctx, f.env, r.Job, nil); err != nil {
		t.Fatal(err)
	}
	f.want(r, "moved 6, left 0, lost 0")
	if got := bodies(f.peek(orders)); !slices.Equal(got, []string{"0", "1", "2", "3", "4", "5"}) {
		t.Errorf("resumed, %v arrived", got)
	}
}
