package local

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// grouped is a backend with one queue, and messages of two sessions or groups in it, in turn.
func grouped(t *testing.T, name string, p broker.Properties) (*Backend, backends.EntityID) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	b, err := Open(t.Context(), Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if err := b.CreateQueueWith(t.Context(), name, p); err != nil {
		t.Fatal(err)
	}
	id := backends.EntityID{Name: name}
	for i, body := range []string{"x1", "y1", "x2", "y2"} {
		m := &message.Message{SessionID: new([]string{"x", "y"}[i%2]), Body: message.DataBody([]byte(body))}
		if err := b.Send(t.Context(), id, []*message.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	return b, id
}

func withSessions() broker.Properties {
	p := broker.Defaults(broker.Queue, broker.ServiceBus)
	p.RequiresSession, p.MaxDeliveryCount = true, 1
	return p
}

func withGroups(t *testing.T) broker.Properties {
	t.Helper()
	p := broker.Defaults(broker.Queue, broker.SQS)
	if err := errors.Join(p.Set(broker.Queue, "FifoQueue", "true"), p.Set(broker.Queue, "ContentBasedDeduplication", "true")); err != nil {
		t.Fatal(err)
	}
	return p
}

func sweep(t *testing.T, l backends.Lease) (got []string) {
	t.Helper()
	for {
		m, err := l.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(m.Body.Bytes()))
	}
}

// A sweep goes through one free session after the other, and meets none twice.
func TestLeaseSweepsSessions(t *testing.T) {
	b, id := grouped(t, "orders", withSessions())
	l, err := b.Lease(t.Context(), id, backends.LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sweep(t, l), []string{"x1", "x2", "y1", "y2"}; !slices.Equal(got, want) {
		t.Errorf("swept %v, want %v", got, want)
	}
	other, err := b.Lease(t.Context(), id, backends.LeaseOptions{Session: new("x")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Next(t.Context()); !backends.IsCode(err, backends.Locked) {
		t.Errorf("a session that another holds: %v", err)
	}
	// Given back, everything is free at once and no delivery has failed: here one is the most.
	if err := l.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, want := sweep(t, other), []string{"x1", "x2"}; !slices.Equal(got, want) {
		t.Errorf("then swept %v, want %v", got, want)
	}
}

// A sweep over message groups gets all of them in their order, though what it holds would
// hold back for others what lies behind.
func TestLeaseSweepsGroups(t *testing.T) {
	b, id := grouped(t, "orders.fifo", withGroups(t))
	l, err := b.Lease(t.Context(), id, backends.LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sweep(t, l), []string{"x1", "x2", "y1", "y2"}; !slices.Equal(got, want) {
		t.Errorf("swept %v, want %v", got, want)
	}
	if err := l.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	l, err = b.Lease(t.Context(), id, backends.LeaseOptions{Max: 3})
	if err != nil {
		t.Fatal(err)
	}
	if got := sweep(t, l); len(got) != 3 {
		t.Errorf("swept %v, want three", got)
	}
}

// What a sweep gives back to its message group is free for others and does not come to the
// sweep again.
func TestLeaseMeetsGroupsOnce(t *testing.T) {
	b, id := grouped(t, "orders.fifo", withGroups(t))
	l, err := b.Lease(t.Context(), id, backends.LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 10 { // each is given back as soon as it comes
		m, err := l.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			got = append(got, string(m.Body.Sections[0]))
			err = l.Settle(t.Context(), backends.Outcome{Action: backends.Abandon}, m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"x1", "x2", "y1", "y2"}; !slices.Equal(got, want) {
		t.Errorf("swept %v, want %v", got, want)
	}
	other, err := b.Lease(t.Context(), id, backends.LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(sweep(t, other)); n != 4 {
		t.Errorf("another sweep meets %d messages, want all four", n)
	}
}
