package cmd

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"dlq/backends"
	"dlq/backends/local"
	"dlq/backends/message"
)

// world is an outside for the app: a broker in memory, a clock that stands, no environment,
// and streams that are buffers. Several commands can run in it one after the other.
type world struct {
	t        *testing.T
	b        backends.Backend
	clock    time.Time
	state    string
	env      map[string]string
	terminal bool // streams are a terminal of 100 columns
	stdin    string
	in       io.Reader // instead of stdin
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), state: t.TempDir(), env: map[string]string{}}
	b, err := local.Open(t.Context(), local.Options{Now: w.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	w.b = keptOpen{backends.Decorator{Backend: b}}
	return w
}

func (w *world) now() time.Time { return w.clock }

// keptOpen outlives the command that was run on it.
type keptOpen struct{ backends.Decorator }

func (keptOpen) Close() error { return nil }

// result is what a command left behind.
type result struct {
	code     exitCode
	out, err string
}

// run runs one command line in the world.
func (w *world) run(args ...string) result {
	w.t.Helper()
	return w.runIn(w.t.Context(), args...)
}

func (w *world) runIn(ctx context.Context, args ...string) result {
	w.t.Helper()
	var out bytes.Buffer
	r := w.start(ctx, &out, args)
	r.out = out.String()
	return r
}

// runTo runs a command whose data goes to out.
func (w *world) runTo(out io.Writer, args ...string) result {
	w.t.Helper()
	return w.start(w.t.Context(), out, args)
}

func (w *world) start(ctx context.Context, out io.Writer, args []string) result {
	w.t.Helper()
	var errs bytes.Buffer
	a := &app{
		args:      args,
		getenv:    func(name string) string { return w.env[name] },
		now:       w.now,
		corpus:    fstest.MapFS{},
		opened:    w.b,
		stateRoot: w.state,
		streams: streams{
			in: strings.NewReader(w.stdin), out: bufio.NewWriter(out), err: &errs,
			inTTY: w.terminal, outTTY: w.terminal, errTTY: w.terminal,
			colour: w.terminal && w.env["NO_COLOR"] == "", progress: w.terminal,
		},
	}
	if w.in != nil {
		a.in = w.in
	}
	if w.terminal {
		a.width = 100
	}
	code := a.main(ctx)
	return result{code: code, err: errs.String()}
}

// must runs a command that has to succeed and returns its data.
func (w *world) must(args ...string) string {
	w.t.Helper()
	r := w.run(args...)
	if r.code != exitDone {
		w.t.Fatalf("dlq %s: exit code %d: %s", strings.Join(args, " "), r.code, r.err)
	}
	return r.out
}

// queue makes a queue and sends it messages.
func (w *world) queue(name string, msgs ...*message.Message) {
	w.t.Helper()
	creator, ok := backends.As[backends.QueueCreator](w.b)
	if !ok {
		w.t.Fatal("the backend cannot make queues")
	}
	if err := creator.CreateQueue(w.t.Context(), name); err != nil {
		w.t.Fatal(err)
	}
	if len(msgs) == 0 {
		return
	}
	if err := w.b.Send(w.t.Context(), backends.EntityID{Name: name}, msgs); err != nil {
		w.t.Fatal(err)
	}
}

// deadLetters makes a queue whose messages have all died for the same reason.
func (w *world) deadLetters(name, reason, description string, msgs ...*message.Message) {
	w.t.Helper()
	w.queue(name, msgs...)
	ctx := w.t.Context()
	lease, err := w.b.Lease(ctx, backends.EntityID{Name: name}, backends.LeaseOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer lease.Release(ctx)
	for range msgs {
		m, err := lease.Next(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		o := backends.Outcome{Action: backends.DeadLetter, Reason: reason, Description: description}
		if err := lease.Settle(ctx, o, m); err != nil {
			w.t.Fatal(err)
		}
	}
}

// text makes a plain message.
func text(id, body string) *message.Message {
	return &message.Message{ID: message.String(id), Body: message.DataBody([]byte(body))}
}
