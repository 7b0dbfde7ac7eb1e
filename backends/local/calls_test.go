package local

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// stuck is a broker whose purge lasts until it is canceled, or is told to end.
type stuck struct {
	everything
	began chan struct{}
	saw   chan error // why it was canceled
	end   chan struct{}
}

func (s stuck) Purge(ctx context.Context, _ backends.EntityID) (int64, error) {
	s.began <- struct{}{}
	select {
	case <-ctx.Done():
		s.saw <- ctx.Err()
		return 7, ctx.Err()
	case <-s.end:
		return 8, nil
	}
}

// stuckServer serves such a broker, and returns one who works through it.
func stuckServer(t *testing.T) (stuck, *server, *client) {
	t.Helper()
	b, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	dir := shortDir(t)
	l, remove, err := listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	st := stuck{b, make(chan struct{}, 1), make(chan error, 1), make(chan struct{})}
	self := owner{PID: os.Getpid(), Command: "stuck", Socket: l.Addr().String()}
	srv := serve(st, l, remove, self)
	t.Cleanup(func() { _ = srv.close() })
	if err := writeOwner(dir, self); err != nil {
		t.Fatal(err)
	}
	c, err := dial(t.Context(), dir)
	if err != nil || c == nil {
		t.Fatal(c, err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return st, srv, c
}

// TestCancellationReachesTheOwner: so does the end of the process that called.
func TestCancellationReachesTheOwner(t *testing.T) {
	t.Run("context", func(t *testing.T) {
		st, _, c := stuckServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-st.began
			cancel()
		}()
		if _, err := c.Purge(ctx, shared); !errors.Is(err, context.Canceled) {
			t.Errorf("a canceled call: %v", err)
		}
		if err := <-st.saw; !errors.Is(err, context.Canceled) {
			t.Errorf("the owner saw %v", err)
		}
		if c.isGone() {
			t.Error("a canceled call is taken for the end of the owner")
		}
	})
	t.Run("close", func(t *testing.T) {
		st, _, c := stuckServer(t)
		go func() {
			<-st.began
			_ = c.Close()
		}()
		if _, err := c.Purge(t.Context(), shared); !backends.IsCode(err, backends.Unknown) {
			t.Errorf("a call whose connection was closed: %v, want an unknown outcome", err)
		}
		if err := <-st.saw; !errors.Is(err, context.Canceled) {
			t.Errorf("the owner saw %v", err)
		}
	})
}

// TestOwnerStopsInTheMiddle: a call that the owner cancels has an unknown outcome, keeps what
// the owner told about it, and one that was not begun can be made again.
func TestOwnerStopsInTheMiddle(t *testing.T) {
	st, srv, c := stuckServer(t)
	idle, err := c.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-st.began
		_ = srv.close()
	}()
	n, err := c.Purge(t.Context(), shared)
	if !backends.IsCode(err, backends.Unknown) || n != 7 {
		t.Errorf("the call underway: %d, %v; want 7 and an unknown outcome", n, err)
	}
	if err != nil && !strings.Contains(err.Error(), `"stuck"`) {
		t.Errorf("%q does not name the owner", err)
	}
	c.put(idle)
	var gone *ownerGone
	if err := c.CreateQueue(t.Context(), "q"); !errors.As(err, &gone) || !backends.IsCode(err, backends.Unavailable) {
		t.Errorf("a call that was not begun: %v", err)
	}
}

// TestOwnerDiesInTheMiddle: without a word the outcome of a change is unknown, and a reading call
// has failed.
func TestOwnerDiesInTheMiddle(t *testing.T) {
	for _, test := range []struct {
		name string
		call func(ctx context.Context, c *client) error
		want backends.Code
	}{
		{"send", func(ctx context.Context, c *client) error { return c.Send(ctx, shared, []*message.Message{text("x")}) }, backends.Unknown},
		{"settle", func(ctx context.Context, c *client) error {
			return c.SettleDirect(ctx, shared, backends.Outcome{Action: backends.Complete}, 1, 2)
		}, backends.Unknown},
		{"move", func(ctx context.Context, c *client) error {
			return c.Move(ctx, shared, []backends.Move{{Seq: 1, To: shared, As: text("x")}})
		}, backends.Unknown},
		{"route", func(ctx context.Context, c *client) error { _, err := c.Route(ctx, shared, text("x")); return err }, backends.Unavailable},
		{"lease", func(ctx context.Context, c *client) error {
			_, err := c.Lease(ctx, shared, backends.LeaseOptions{})
			return err
		}, backends.Unavailable},
		{"peek", func(ctx context.Context, c *client) error {
			for _, err := range c.Peek(ctx, shared, backends.PeekOptions{}) {
				return err
			}
			return nil
		}, backends.Unavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			near, far := net.Pipe()
			w := newWire(near)
			c := &client{owner: owner{PID: 1, Command: "dead"}, open: map[*wire]struct{}{w: {}}, idle: []*wire{w}, leases: map[*remoteLease]struct{}{}}
			go func() { // the owner takes the request and dies
				_, _, _ = readFrame(far, maxFrame)
				_ = far.Close()
			}()
			err := test.call(t.Context(), c)
			if !backends.IsCode(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			var gone *ownerGone
			if errors.As(err, &gone) {
				t.Error("a call that was begun would be made again")
			}
			if !c.isGone() {
				t.Error("the end of the owner goes unnoticed")
			}
		})
	}
}

// TestCanceledNextLosesNothing: what was locked for a canceled Next is what the next one
// returns.
func TestCanceledNextLosesNothing(t *testing.T) {
	dir := t.TempDir()
	b := owned(t, Options{Dir: dir})
	if err := b.CreateQueue(t.Context(), shared.Name); err != nil {
		t.Fatal(err)
	}
	const all = 300
	send(t, b, all)
	c := through(t, Options{Dir: dir})
	l, err := c.Lease(t.Context(), shared, backends.LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for wait := time.Duration(0); ; wait += 3 * time.Microsecond {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		m, err := l.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			continue
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got++
		if err := l.Settle(t.Context(), backends.Outcome{Action: backends.Complete}, m); err != nil {
			t.Fatal(err)
		}
	}
	if got != all {
		t.Errorf("the sweep handed out %d messages, want %d", got, all)
	}
}

// TestAnotherVersionIsTold: no call is made, and the user reads who must go.
func TestAnotherVersionIsTold(t *testing.T) {
	dir := shortDir(t)
	l, remove, err := listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(l.Close(), remove()) }()
	self := owner{PID: 99, Command: "dlq serve", Socket: l.Addr().String()}
	if err := writeOwner(dir, self); err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		w := newWire(conn)
		_, _, _ = w.receive(maxHello)
		theirs, _ := encode(&hello{magic, protocolVersion + 1, "v9", self})
		_ = w.send(helloFrame, theirs)
	}()
	_, err = dial(t.Context(), dir)
	if !backends.IsCode(err, backends.Locked) || !strings.Contains(err.Error(), `"dlq serve" (pid 99)`) || !strings.Contains(err.Error(), "v9") {
		t.Errorf("an owner of another version: %v", err)
	}
}
