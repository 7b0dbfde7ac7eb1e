package tui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"dlq/resubmit"
)

// terminal is a pseudo-terminal on which the UI runs as for a person.
type terminal struct {
	t      *testing.T
	master *os.File
	done   chan error

	mu     sync.Mutex
	output bytes.Buffer
	grown  chan struct{} // gets a token when there is more output
}

// openTerminal starts Run on a terminal of 80×24.
func openTerminal(ctx context.Context, t *testing.T, d Deps) *terminal {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("this machine has no pseudo-terminals: ", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Cols: 80, Rows: 24}); err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, master: master, done: make(chan error, 1), grown: make(chan struct{}, 1)}
	// The slave is left to the collector: bubbletea's reader may be about to let go of it.
	t.Cleanup(func() { _ = master.Close() })
	go term.read()
	d.In, d.Out = slave, slave
	go func() { term.done <- Run(ctx, d) }()
	return term
}

func (x *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := x.master.Read(buf)
		if err != nil {
			return
		}
		x.mu.Lock()
		x.output.Write(buf[:n])
		x.mu.Unlock()
		select {
		case x.grown <- struct{}{}:
		default:
		}
	}
}

// waitFor returns when the terminal has been sent that text.
func (x *terminal) waitFor(text string) {
	x.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		x.mu.Lock()
		found := strings.Contains(x.output.String(), text)
		x.mu.Unlock()
		if found {
			return
		}
		select {
		case <-x.grown:
		case <-deadline:
			x.t.Fatalf("the terminal never showed %q; it got %q", text, x.output.String())
		}
	}
}

func (x *terminal) typeKeys(keys string) {
	x.t.Helper()
	if _, err := io.WriteString(x.master, keys); err != nil {
		x.t.Fatal(err)
	}
}

// ended returns what Run returned.
func (x *terminal) ended() error {
	x.t.Helper()
	select {
	case err := <-x.done:
		return err
	case <-time.After(20 * time.Second):
		x.t.Fatal("the UI does not end")
		return nil
	}
}

func journals(t *testing.T) *resubmit.Journals {
	t.Helper()
	j, err := resubmit.OpenJournals(filepath.Join(t.TempDir(), "jobs"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

const leaveAltScreen = "\x1b[?1049l"

func TestRunOnATerminal(t *testing.T) {
	b, c := incident(t)
	x := openTerminal(t.Context(), t, Deps{Backend: b, Journals: journals(t), Conn: "local:", Now: c.Now, Getenv: withColour})
	x.waitFor("DEAD LETTERS")
	x.typeKeys("\r")
	x.waitFor("payment service")
	x.typeKeys("jj g") // in one read
	x.waitFor("failure signature")
	x.typeKeys("q")
	x.waitFor("1 marked")
	x.typeKeys("R")
	x.waitFor("nothing speaks against it")
	x.typeKeys("y")
	x.waitFor("moved 1, left 0, lost 0")
	x.typeKeys("\x03")
	if err := x.ended(); err != nil {
		t.Error(err)
	}
	x.waitFor(leaveAltScreen)
	if _, dead := counts(t, b, "orders"); dead != 8 {
		t.Errorf("%d dead letters, want 8", dead)
	}
	if strings.Contains(x.output.String(), "\x1b]11;?") {
		t.Error("it asks the terminal for its background")
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	b, c := incident(t)
	ctx, cancel := context.WithCancel(t.Context())
	x := openTerminal(ctx, t, Deps{Backend: b, Journals: journals(t), Now: c.Now, Getenv: noColour})
	x.waitFor("DEAD LETTERS")
	cancel()
	if err := x.ended(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
	x.waitFor(leaveAltScreen)
}

// A job that runs when the UI is ended from outside is stopped in order, and waited for.
func TestRunWaitsForItsJob(t *testing.T) {
	b, c := incident(t)
	a := newApp(t.Context(), Deps{Backend: b, Journals: journals(t), Now: c.Now, Getenv: noColour})
	stopped := false
	a.Update(startJobMsg{&job{title: "work", work: func(ctx context.Context, _ func(resubmit.Progress)) (outcome, error) {
		<-ctx.Done()
		stopped = true
		return outcome{text: "stopped half way"}, nil
	}}})
	end, ran := a.close()
	if !ran || !strings.Contains(end.notice().text, "stopped half way") {
		t.Errorf("the end of the job is %+v", end)
	}
	if !stopped {
		t.Error("the job was left behind")
	}
}
