package cmd

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"dlq/backends"
	"dlq/resubmit"
)

// forEachCommand calls f with every command of the tree.
func forEachCommand(t *testing.T, f func(t *testing.T, c *cobra.Command)) {
	t.Helper()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		t.Run(c.CommandPath(), func(t *testing.T) { f(t, c) })
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand(&app{}))
}

// TestEveryCommandIsDescribed: the help of each says what it does to messages and how it
// can end, in the voice of all.
func TestEveryCommandIsDescribed(t *testing.T) {
	forEachCommand(t, func(t *testing.T, c *cobra.Command) {
		if c.Annotations[effectsKey] == "" {
			t.Error("no side effects are named, not even none")
		}
		exits := c.Annotations[exitsKey]
		for _, code := range []string{"  0  done", "  2  wrong usage", "130  interrupted"} {
			if !strings.Contains(exits, code) {
				t.Errorf("exit codes lack %q", code)
			}
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || c.Short[0] >= 'A' && c.Short[0] <= 'Z' {
			t.Errorf("the short description %q is not in the voice of the others", c.Short)
		}
		for _, flags := range []string{c.LocalFlags().FlagUsages()} {
			for line := range strings.Lines(flags) {
				if strings.HasSuffix(strings.TrimSpace(line), ".") {
					t.Errorf("a flag's usage ends with a period: %q", line)
				}
			}
		}
	})
}

// TestEveryCommandHasASession: doc.go lists it and a script runs it.
func TestEveryCommandHasASession(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	scripts := readAll(t, filepath.Join("..", "testdata", "script"))
	forEachCommand(t, func(t *testing.T, c *cobra.Command) {
		path := c.CommandPath()
		if path == "dlq tui" { // it needs a terminal: see TestOnATerminal beside main
			return
		}
		if !regexp.MustCompile(`(exec|exits \d+|sh -c '.*) ?` + path + `\b`).MatchString(scripts) {
			t.Errorf("no script runs %q", path)
		}
		name, _, nested := strings.Cut(strings.TrimPrefix(path, "dlq "), " ")
		if !nested && name != "dlq" && !strings.Contains(string(doc), name) {
			t.Errorf("doc.go does not list %q", name)
		}
	})
}

func readAll(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSelectionFlags(t *testing.T) {
	empty := ""
	tests := []struct {
		line string
		want resubmit.Selection
	}{
		{"", resubmit.Selection{}},
		{"--where x=1 --text oops --reason Max% --jq .a --group g1", resubmit.Selection{Where: "x=1", Text: "oops", Reason: "Max%", JQ: ".a", Group: "g1"}},
		{"--id a --id b,c --seq 1 --seq 2,3", resubmit.Selection{IDs: []string{"a", "b,c"}, Seqs: []int64{1, 2, 3}}},
		{"--since 2h --until 2026-01-02 --limit 7 --all", resubmit.Selection{Since: "2h", Until: "2026-01-02", Limit: 7, All: true}},
		{"--session=", resubmit.Selection{Session: &empty}},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			var s selectionFlags
			c := &cobra.Command{}
			s.addFlags(c.Flags())
			if err := c.ParseFlags(strings.Fields(tt.line)); err != nil {
				t.Fatal(err)
			}
			got, err := s.selection(c.Flags())
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestPlace(t *testing.T) {
	dead, transfer := backends.DeadLetterQueue, backends.TransferDeadLetterQueue
	tests := []struct {
		place place
		arg   string
		want  backends.EntityID // zero: refused
	}{
		{place{}, "orders", backends.EntityID{Name: "orders", Sub: dead}},
		{place{}, "orders/dlq", backends.EntityID{Name: "orders", Sub: dead}},
		{place{}, "orders/$deadletterqueue", backends.EntityID{Name: "orders", Sub: dead}},
		{place{}, "orders/$Transfer/$DeadLetterQueue", backends.EntityID{Name: "orders", Sub: transfer}},
		{place{}, "billing/subscription/invoices", backends.EntityID{Name: "billing/Subscriptions/invoices", Sub: dead}},
		{place{active: true}, "orders", backends.EntityID{Name: "orders"}},
		{place{transfer: true}, "orders", backends.EntityID{Name: "orders", Sub: transfer}},
		{place{active: true}, "orders/dlq", backends.EntityID{}},
		{place{active: true, transfer: true}, "orders", backends.EntityID{}},
		{place{}, "", backends.EntityID{}},
	}
	for _, tt := range tests {
		got, err := tt.place.id(tt.arg)
		if (err != nil) != (tt.want == backends.EntityID{}) || err == nil && got != tt.want {
			t.Errorf("%+v of %q = %v, %v; want %v", tt.place, tt.arg, got, err, tt.want)
		}
	}
}

// TestConsent: on a terminal the question decides, and only a yes is one.
func TestConsent(t *testing.T) {
	for answer, want := range map[string]exitCode{
		"y\n": exitDone, "YES\n": exitDone, "n\n": exitRefused, "\n": exitRefused, "": exitRefused, "yes please\n": exitRefused,
	} {
		for _, line := range []string{"complete orders --all", "resubmit orders --all", "purge orders"} {
			w := newWorld(t)
			w.deadLetters("orders", "Broken", "", text("order-1", "{}"), text("order-2", "{}"))
			w.terminal, w.stdin = true, answer
			r := w.run(strings.Fields(line)...)
			if r.code != want {
				t.Errorf("dlq %s, answered %q: exit code %d, want %d: %s", line, answer, r.code, want, r.err)
			}
			if !strings.Contains(r.err, "2 messages of orders/$DeadLetterQueue") || !strings.Contains(r.err, "? [y/N] ") {
				t.Errorf("dlq %s asked %q", line, r.err)
			}
			left := "2"
			if want == exitDone {
				left = "0"
			}
			w.terminal = false
			if got := w.must("list", "-o", "jsonl"); !strings.Contains(got, `"deadLetter":`+left+`,`) {
				t.Errorf("dlq %s, answered %q, left %s", line, answer, got)
			}
		}
	}
}

// TestBackupIsPrivate: what a purge writes is readable by its owner alone, and there before
// the first message goes.
func TestBackupIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such permissions")
	}
	w := newWorld(t)
	w.deadLetters("orders", "Broken", "", text("order-1", "secret"))
	w.must("purge", "orders", "--yes")
	files, err := filepath.Glob(filepath.Join(w.state, "backups", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("backups: %q, %v", files, err)
	}
	for _, path := range []string{files[0], filepath.Dir(files[0])} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
		}
	}
	b, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(b), `"secret"`) {
		t.Errorf("backup holds %q, %v", b, err)
	}
}

// TestBackupThatFailsStopsThePurge: nothing is removed that could not be written down.
func TestBackupThatFailsStopsThePurge(t *testing.T) {
	w := newWorld(t)
	w.deadLetters("orders", "Broken", "", text("order-1", "secret"))
	if err := os.WriteFile(filepath.Join(w.state, "backups"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.run("purge", "orders", "--yes"); r.code != exitFailed {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	if got := w.must("list", "-o", "jsonl"); !strings.Contains(got, `"deadLetter":1,`) {
		t.Errorf("left %s", got)
	}
}

// TestRawNeedsAPipe: the bytes of a body are not for a terminal.
func TestRawNeedsAPipe(t *testing.T) {
	w := newWorld(t)
	w.deadLetters("orders", "Broken", "", text("order-1", hostile))
	if got := w.must("show", "orders", "--seq", "1", "--raw"); got != hostile {
		t.Errorf("raw = %q", got)
	}
	w.terminal = true
	if r := w.run("show", "orders", "--seq", "1", "--raw"); r.code != exitRefused || r.out != "" {
		t.Errorf("on a terminal: exit code %d, output %q", r.code, r.out)
	}
}

// brokenPipe fails as a full disk does.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestWriteErrorsAreReported: data that did not arrive is not success, and a message that
// could not be shown is not removed.
func TestWriteErrorsAreReported(t *testing.T) {
	w := newWorld(t)
	w.queue("orders", text("order-1", "{}"))
	for _, line := range []string{"list", "receive orders --complete", "version", "--help", "peek orders --active -o json"} {
		r := w.runTo(brokenPipe{}, strings.Fields(line)...)
		if r.code != exitFailed || !strings.Contains(r.err, "no space left on device") {
			t.Errorf("dlq %s: exit code %d: %s", line, r.code, r.err)
		}
	}
	if got := w.must("list", "-o", "jsonl"); !strings.Contains(got, `"active":1,`) {
		t.Errorf("left %s", got)
	}
}

// TestInterrupted: a cancelled command says so by its code.
func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	w.deadLetters("orders", "Broken", "", text("order-1", "{}"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, line := range []string{"peek orders", "receive orders/dlq", "export orders", "resubmit orders --all --yes"} {
		if r := w.runIn(ctx, strings.Fields(line)...); r.code != exitInterrupted {
			t.Errorf("dlq %s: exit code %d: %s", line, r.code, r.err)
		}
	}
	if got := w.must("list", "-o", "jsonl"); !strings.Contains(got, `"deadLetter":1,`) {
		t.Errorf("left %s", got)
	}
}

func TestConnection(t *testing.T) {
	a := &app{getenv: func(string) string { return "" }}
	if got := a.connection(); got != "local:" {
		t.Errorf("the default is %q", got)
	}
	a.getenv = func(name string) string { return map[string]string{"DLQ_CONN": "local:x"}[name] }
	if got := a.connection(); got != "local:x" {
		t.Errorf("with DLQ_CONN it is %q", got)
	}
	a.conn = "local:y"
	if got := a.connection(); got != "local:y" {
		t.Errorf("with --conn it is %q", got)
	}
}

// TestUnknownConnectionKeepsSecrets: what stands behind a scheme may be a connection string.
func TestUnknownConnectionKeepsSecrets(t *testing.T) {
	w := newWorld(t)
	w.b = nil
	for _, conn := range []string{"servicebus://x;SharedAccessKey=hunter2", "sqs+https://key:hunter2@host"} {
		r := w.run("-c", conn, "list")
		if r.code != exitUsage || strings.Contains(r.err, "hunter2") {
			t.Errorf("exit code %d: %s", r.code, r.err)
		}
	}
}

// TestInterruptedQuestion: Ctrl-C at a question leaves at once, and changes nothing.
func TestInterruptedQuestion(t *testing.T) {
	w := newWorld(t)
	w.deadLetters("orders", "Broken", "", text("order-1", "{}"))
	w.terminal = true
	ctx, cancel := context.WithCancel(t.Context())
	asked, answer := io.Pipe()
	defer answer.Close()
	w.in = readCalls{asked, cancel}
	if r := w.runIn(ctx, "complete", "orders", "--all"); r.code != exitInterrupted {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	w.terminal = false
	if got := w.must("list", "-o", "jsonl"); !strings.Contains(got, `"deadLetter":1,`) {
		t.Errorf("left %s", got)
	}
}

// TestInterruptedStdin: Ctrl-C while a message or a file is read from a terminal or a pipe.
func TestInterruptedStdin(t *testing.T) {
	for _, line := range []string{"send orders", "import - --to orders"} {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		in, open := io.Pipe()
		w.in = readCalls{in, cancel}
		r := w.runIn(ctx, strings.Fields(line)...)
		if r.code != exitInterrupted || r.err != "dlq: interrupted\n" {
			t.Errorf("dlq %s: exit code %d: %s", line, r.code, r.err)
		}
		open.Close()
	}
}

// TestCSVNeedsAPipe: its texts are as they are, and it has no escapes for a terminal.
func TestCSVNeedsAPipe(t *testing.T) {
	w := newWorld(t)
	w.deadLetters("orders", "Broken\rFine", "", text("order-1", "{}"))
	w.terminal = true
	r := w.run("export", "orders", "-f", "csv")
	if r.code != exitRefused || r.out != "" || !strings.Contains(r.err, "--out") {
		t.Errorf("exit code %d: %q %q", r.code, r.out, r.err)
	}
	w.terminal = false
	if w.must("export", "orders", "-f", "csv", "--out", "-") != w.must("export", "orders", "-f", "csv") {
		t.Error("--out - is not standard output")
	}
}

// TestImportGoesOnPastRefusals: one message that no queue takes costs the others of its batch
// nothing, and each refused one is named by its place in the file.
func TestImportGoesOnPastRefusals(t *testing.T) {
	w := newWorld(t)
	w.queue("orders")
	w.stdin = `{"messageId":"a","body":"x"}
{"messageId":true,"body":"x"}
{"messageId":"b","body":"x"}
{"messageId":"d","correlationId":true,"body":"x"}
{"messageId":"c","body":"x"}
`
	r := w.run("import", "-", "--to", "orders")
	if r.code != exitPartly {
		t.Errorf("exit code %d", r.code)
	}
	for _, want := range []string{"message 2 of the file was not sent", "message 4 of the file was not sent", "3 messages sent to orders", "2 messages of 5 refused"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("%q is not said:\n%s", want, r.err)
		}
	}
	if n := strings.Count(w.must("peek", "orders", "--active", "-o", "jsonl"), "\n"); n != 3 {
		t.Errorf("%d messages arrived", n)
	}
}

// TestCommandLineIsWords: what the journal says can be pasted into a shell.
func TestCommandLineIsWords(t *testing.T) {
	a := &app{args: []string{"resubmit", "orders", "--where", "tenant = 'a b'", ""}}
	if got, want := a.commandLine(), `dlq resubmit orders --where 'tenant = '\''a b'\''' ''`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// readCalls calls a function when it is first read from, and then reads on.
type readCalls struct {
	io.Reader
	call func()
}

func (r readCalls) Read(p []byte) (int, error) {
	r.call()
	return r.Reader.Read(p)
}
