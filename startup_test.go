//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// TestNoTerminalQuery runs a command that draws nothing on a bare terminal. Importing
// bubbletea asks the terminal for its background and waits up to five seconds for an
// answer, unless tui/theme has answered before; nothing answers here.
func TestNoTerminalQuery(t *testing.T) {
	const bound = 4 * time.Second // below the wait of the query, above any start
	dlq := buildDlq(t)
	for _, args := range [][]string{{"version"}, {"peek", "--help"}, {"nonsense"}} {
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		defer cancel()
		run := exec.CommandContext(ctx, dlq, args...)
		run.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=1")
		terminal, err := pty.Start(run)
		if err != nil {
			t.Fatal(err)
		}
		out, _ := io.ReadAll(terminal) // ends with an error when the other side closes
		terminal.Close()
		_ = run.Wait()
		if ctx.Err() != nil {
			t.Errorf("dlq %v was still running after %v", args, bound)
		}
		if i := bytes.IndexByte(out, 0x1b); i >= 0 {
			t.Errorf("dlq %v wrote an escape sequence: %q", args, out[i:])
		}
		if len(out) == 0 {
			t.Errorf("dlq %v wrote nothing", args)
		}
	}
}

// BenchmarkVersion compares the start of dlq with that of an empty Go program; "ratio" is
// what the target of at most 8 is about.
func BenchmarkVersion(b *testing.B) {
	dlq := buildDlq(b)
	empty := buildEmpty(b)
	var ours, floor time.Duration
	run := func(args ...string) time.Duration {
		start := time.Now()
		if err := exec.CommandContext(b.Context(), args[0], args[1:]...).Run(); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	run(empty)
	run(dlq, "version")
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
