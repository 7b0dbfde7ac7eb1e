//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// buildDlq builds the real binary: the order in which packages are initialised is that of
// the binary, not of a test. It shares the build cache with the tests.
func buildDlq(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "dlq")
	build := exec.CommandContext(tb.Context(), "go", "build", "-ldflags=-s -w", "-o", path, ".")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// terminal is a program on a terminal of its own, and what it has written there so far.
// Nothing answers the program's questions.
type terminal struct {
	t    *testing.T
	run  *exec.Cmd
	tty  *os.File
	done chan struct{} // closed when the program has closed its side

	mu      sync.Mutex
	written bytes.Buffer
}

// patience is how long a program may take to do what it does at once.
const patience = 20 * time.Second

// onTerminal starts a program in an empty home.
func onTerminal(t *testing.T, env []string, args ...string) *terminal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	home := t.TempDir()
	run := exec.CommandContext(ctx, args[0], args[1:]...)
	run.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}, env...)
	tty, err := pty.StartWithSize(run, &pty.Winsize{Rows: 24, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	p := &terminal{t: t, run: run, tty: tty, done: make(chan struct{})}
	t.Cleanup(func() { tty.Close() })
	go p.read()
	return p
}

func (p *terminal) read() {
	defer close(p.done)
	buf := make([]byte, 4096)
	for {
		n, err := p.tty.Read(buf)
		p.mu.Lock()
		p.written.Write(buf[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *terminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

// expect waits until the program has written something.
func (p *terminal) expect(what string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(p.text(), what); {
		select {
		case <-p.done:
			if !strings.Contains(p.text(), what) {
				p.t.Fatalf("%q ended without writing %q: %q", p.run.Args, what, p.text())
			}
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%q does not write %q: %q", p.run.Args, what, p.text())
		}
	}
}

func (p *terminal) press(keys string) {
	p.t.Helper()
	if _, err := p.tty.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the program's end and returns its exit code.
func (p *terminal) end() int {
	<-p.done
	_ = p.run.Wait() // the code says it
	return p.run.ProcessState.ExitCode()
}

// TestNoTerminalQuery runs commands that draw nothing on a bare terminal. Importing
// bubbletea asks the terminal for its background and waits up to five seconds for an
// answer, unless tui/theme has answered before; nothing answers here.
func TestNoTerminalQuery(t *testing.T) {
	const query = 5 * time.Second
	dlq := buildDlq(t)
	for _, args := range [][]string{{"version"}, {"peek", "--help"}, {"nonsense"}} {
		start := time.Now()
		p := onTerminal(t, []string{"NO_COLOR=1"}, append([]string{dlq}, args...)...)
		p.end()
		if took := time.Since(start); took >= query {
			t.Errorf("dlq %v took %v, as long as waiting for a terminal's answer", args, took)
		}
		if strings.Contains(p.text(), "\x1b") || p.text() == "" {
			t.Errorf("dlq %v wrote %q", args, p.text())
		}
	}
}

// TestOnATerminal: what a pipe never gets, a terminal does: colours, a question, progress,
// and without a command the UI.
func TestOnATerminal(t *testing.T) {
	dlq := buildDlq(t)
	dir := filepath.Join(t.TempDir(), "incident")
	if out, err := exec.CommandContext(t.Context(), dlq, "demo", "--data", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	conn := "DLQ_CONN=local:" + dir

	list := onTerminal(t, []string{conn}, dlq, "list")
	if code := list.end(); code != 0 || !strings.Contains(list.text(), "\x1b[1m") {
		t.Errorf("list: exit code %d, %q", code, list.text())
	}
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		plain := onTerminal(t, []string{conn, env}, dlq, "peek", "payments", "--limit", "3")
		if code := plain.end(); code != 0 || strings.Contains(plain.text(), "\x1b") {
			t.Errorf("%s: exit code %d, %q", env, code, plain.text())
		}
	}

	no := onTerminal(t, []string{conn}, dlq, "resubmit", "payments", "--reason", "CardDeclined")
	no.expect("Move 9 messages of payments/$DeadLetterQueue to payments? [y/N] ")
	no.press("n\r")
	if code := no.end(); code != 4 {
		t.Errorf("answered n: exit code %d, %q", code, no.text())
	}
	yes := onTerminal(t, []string{conn}, dlq, "resubmit", "payments", "--reason", "CardDeclined", "--rate", "30")
	yes.expect("? [y/N] ")
	yes.press("y\r")
	if code := yes.end(); code != 0 || !strings.Contains(yes.text(), " of 9, ") || !strings.Contains(yes.text(), "moved 9, left 0, lost 0") {
		t.Errorf("answered y: exit code %d, %q", code, yes.text())
	}

	for _, args := range [][]string{{dlq}, {dlq, "tui", "payments"}, {dlq, "demo"}} {
		ui := onTerminal(t, []string{conn}, args...)
		ui.expect("payments")
		ui.press("\x03") // Ctrl-C leaves from anywhere
		if code := ui.end(); code != 0 {
			t.Errorf("%q: exit code %d: %q", args[1:], code, ui.text())
		}
		if !strings.Contains(ui.text(), "\x1b[?1049l") {
			t.Errorf("%q did not give the screen back", args[1:])
		}
	}
}

// BenchmarkVersion compares the start of dlq with that of an empty Go program; "ratio" is
// what the target of at most 8 is about.
func BenchmarkVersion(b *testing.B) {
	dlq := buildDlq(b)
	empty := buildEmpty(b)
	run := func(args ...string) time.Duration {
		start := time.Now()
		if err := exec.CommandContext(b.Context(), args[0], args[1:]...).Run(); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	run(empty)
	run(dlq, "version")
	var ours, floor time.Duration
	for b.Loop() {
		// One after the other, so that both see the same machine.
		floor += run(empty)
		ours += run(dlq, "version")
	}
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "µs/dlq")
	b.ReportMetric(float64(floor.Microseconds())/float64(b.N), "µs/empty")
	b.ReportMetric(float64(ours)/float64(floor), "ratio")
	b.ReportMetric(0, "ns/op") // the sum of both says nothing
}

func buildEmpty(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(dir, "empty")
	build := exec.CommandContext(b.Context(), "go", "build", "-ldflags=-s -w", "-o", path, source)
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}
