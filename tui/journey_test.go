package tui

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dlq/backends"
	"dlq/resubmit"
)

// counts returns how many messages an entity's queue and dead letters hold.
func counts(t *testing.T, b backends.Backend, name string) (active, dead int64) {
	t.Helper()
	for e, err := range b.Entities(t.Context(), backends.EntityQuery{Names: []string{name}}) {
		if err != nil {
			t.Fatal(err)
		}
		return e.Counts.Active, e.Counts.DeadLetter
	}
	t.Fatalf("no entity %q", name)
	return 0, 0
}

func TestResubmitMarked(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	d.press("enter", " ", " ", "R")
	d.has("Resubmit 2 marked messages", "orders/$DeadLetterQueue", "y resubmit")
	d.golden("plan-80x24")
	d.press("enter") // a habit does not confirm
	if _, dead := counts(t, b, "orders"); dead != 9 {
		t.Fatalf("Enter has moved messages: %d dead letters", dead)
	}
	d.press("y")
	d.has("moved 2, left 0, lost 0", "Resubmit 2 messages")
	d.golden("report-80x24")
	if active, dead := counts(t, b, "orders"); active != 4 || dead != 7 {
		t.Errorf("%d active and %d dead letters, want 4 and 7", active, dead)
	}
	d.press("esc")
	d.has("7 messages")
	d.hasNot("marked")
	d.press("J")
	d.has("resubmit", "finished", "orders/dlq")
	d.golden("jobs-80x24")
	d.press("enter")
	d.has("moved 2")
}

func TestResubmitElsewhereWithAProperty(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	d.press("enter", "R", "t")
	d.typeText("shipping")
	d.press("enter", "p")
	d.typeText("retry:int=x")
	d.press("enter")
	d.has("error:", "int")
	d.press("ctrl+u")
	d.typeText("retry:int=1")
	d.press("enter", "c")
	d.has("Resubmit a copy of this message", "shipping", "set retry:int = 1", "the originals stay where they are")
	d.press("y")
	d.has("copied 1")
	if active, _ := counts(t, b, "shipping"); active != 2 {
		t.Errorf("%d messages in shipping, want 2", active)
	}
	if _, dead := counts(t, b, "orders"); dead != 9 {
		t.Errorf("%d dead letters, want 9: it was a copy", dead)
	}
}

func TestCompleteAndBringBack(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	d.press("enter", "a", "C")
	d.has("Complete 9 marked messages", "brings them back", "y complete")
	d.press("y")
	d.has("completed 9")
	d.press("esc")
	d.has("No dead letters here.")
	d.golden("letters-empty-80x24")
	d.press("J", "B")
	d.has("Bring back 9 messages")
	d.press("y")
	d.has("restored 9")
	if _, dead := counts(t, b, "orders"); dead != 9 {
		t.Errorf("%d dead letters, want 9 again", dead)
	}
}

func TestExportAsksForAName(t *testing.T) {
	b, c := incident(t)
	dir := t.TempDir()
	d := drive(t, Deps{Backend: b, Now: c.Now, ExportDir: dir}, 80, 24)
	d.press("enter", "a", "X", "ctrl+u")
	d.typeText("letters.txt")
	d.press("enter")
	d.has("must end in .jsonl")
	d.press("ctrl+w")
	d.typeText("letters.jsonl")
	d.press("enter")
	d.has("wrote 9 messages to")
	d.press("esc")
	info, err := os.Stat(filepath.Join(dir, "letters.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the file's mode is %v", mode)
	}
	d.press("X", "ctrl+u")
	d.typeText("letters.jsonl")
	d.press("enter")
	d.has("there is a file of that name")
}

func TestEditThenResubmit(t *testing.T) {
	b, c := incident(t)
	tmp := t.TempDir()
	editor := func(script string) func(string) (*exec.Cmd, error) {
		return func(path string) (*exec.Cmd, error) { return exec.Command("sed", "-i", script, path), nil }
	}
	env := func(name string) string {
		if name == "XDG_RUNTIME_DIR" {
			return tmp
		}
		return noColour(name)
	}
	d := drive(t, Deps{Backend: b, Now: c.Now, Getenv: env, Editor: editor("s/acme/umbrella/")}, 80, 24)
	d.press("enter", "E")
	d.has("What you changed", "umbrella")
	d.golden("diff-80x24")
	if left, _ := filepath.Glob(tmp + "/*"); len(left) != 1 {
		t.Errorf("%d files while editing, want 1", len(left))
	}
	d.press("y")
	d.has("as edited")
	if left, _ := filepath.Glob(tmp + "/*"); len(left) != 0 {
		t.Errorf("the file stays: %v", left)
	}
	d.press("y")
	d.has("moved 1")
	var body string
	peeker, _ := backends.As[backends.Peeker](b)
	for m, err := range peeker.Peek(t.Context(), backends.EntityID{Name: "orders"}, backends.PeekOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		body = string(m.Body.Bytes())
	}
	if !strings.Contains(body, "umbrella") {
		t.Errorf("what was sent is %s", body)
	}
}

func TestEditWithoutAChangeSendsNothing(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now, Editor: func(path string) (*exec.Cmd, error) { return exec.Command("true", path), nil }}, 80, 24)
	d.press("enter", "E")
	d.has("nothing was changed")
	d.hasNot("What you changed")
}

func TestFilter(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	d.press("enter", "/")
	d.golden("filter-open-80x24")
	d.typeText("sys.DeadLetterReasn = 'InvalidCountry'")
	d.press("enter")
	d.has("error:", "^", "write sys.DeadLetterReason")
	d.golden("filter-error-80x24")
	d.press("ctrl+u")
	d.typeText("sys.DeadLetterReason = 'InvalidCountry'")
	d.press("enter")
	d.has("2 of 9 messages", "[/ sys.DeadLetterReason = 'Inv", "peek: no side effects")
	d.golden("filtered-80x24")
	d.press("a")
	d.has("2 marked")
	d.press("esc")
	d.has("9 messages", "2 marked")
	d.press("/")
	d.typeText("MessageId = 'x'")
	d.press("enter")
	d.has("! ", "sys.MessageId")
	d.press("esc")
	d.press("/")
	d.typeText("nothing-says-this")
	d.press("enter")
	d.has("None of 9 messages matches", "Esc takes it away")
	d.press("/", "up", "up", "up")
	d.has("/ sys.DeadLetterReason = 'InvalidCountry'")
}

func TestFilterCompletesNames(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	d.press("enter", "/")
	d.typeText("ten")
	d.press("tab")
	d.has("/ tenant")
	d.press("ctrl+u")
	d.typeText("sys.deadletterr")
	d.press("tab")
	d.has("/ sys.DeadLetterReason")
}

func TestGroupNarrowsTheList(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	d.press("enter", "g")
	d.has("messages", "WHAT HAPPENED")
	d.press("enter")
	d.has("7 of 9 messages", "[/ group:")
	d.press("r")
	d.has("7 of 9 messages")
	d.press("g", "R")
	d.has("Resubmit group")
	d.press("y")
	d.has("moved 7")
}

func TestMarksStayThroughRefreshAndReturn(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	d.press("enter", "down", " ", " ")
	d.has("2 marked")
	d.press("r")
	d.has("2 marked", "4/9") // the cursor stays on its message too
	d.press("q", "enter")
	d.has("2 marked")
	d.press("i")
	d.has("7 marked")
	d.press("u")
	d.hasNot("marked")
}

func TestOrderKeepsTheMessage(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	d.press("enter", "down", "o")
	d.has("8/9, newest first")
	d.press("enter")
	d.has("message 2")
	d.press("n")
	d.has("message 1")
	d.press("n")
	d.has("no more messages")
	d.press("p", "p")
	d.has("message 3")
}

func TestReadOnly(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now, ReadOnly: true}, 80, 24)
	d.press("enter")
	d.has("READ-ONLY")
	d.hasNot("R resubmit")
	for _, k := range []string{"R", "E", "C"} {
		d.press(k)
		d.has("this connection is read-only")
		if d.app.dialog != nil {
			t.Fatalf("%s opens a dialog", k)
		}
	}
	d.press("?")
	d.has("read-only")
	d.press("esc", "X")
	d.has("Export this message")
}

func TestQuitAsksWhileAJobRuns(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	release := make(chan struct{})
	j := &job{title: "slow work", work: func(ctx context.Context, _ func(resubmit.Progress)) (outcome, error) {
		select {
		case <-ctx.Done():
		case <-release:
		}
		return outcome{text: "it is over"}, nil
	}}
	_, wait := d.app.Update(startJobMsg{j}) // not run: the job would have to end first
	d.has("slow work", "Esc stop in order")
	d.press("enter", "ctrl+c")
	d.has("A job is running", "Leaving stops it in order")
	d.press("n", "w")
	d.has("Esc stop in order")
	d.press("enter")
	d.has("w watch")
	if d.quit {
		t.Fatal("it left without a yes")
	}
	d.has("slow work")
	close(release)
	d.run(wait)
	d.has("it is over")
	d.press("ctrl+c")
	if !d.quit {
		t.Error("without a job Ctrl-C leaves")
	}
}

func TestEscStopsAJob(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	j := &job{title: "slow work", work: func(ctx context.Context, _ func(resubmit.Progress)) (outcome, error) {
		<-ctx.Done()
		return outcome{text: "stopped in order"}, nil
	}}
	_, wait := d.app.Update(startJobMsg{j})
	d.press("ctrl+c")
	d.has("stopping")
	d.run(wait)
	d.has("stopped in order")
	if d.quit {
		t.Error("Ctrl-C on a watched job has left the program")
	}
}

func TestResizeInTheMiddleOfALoad(t *testing.T) {
	a := newApp(t.Context(), Deps{Backend: fakePeeker{n: 2000}, Getenv: noColour})
	t.Cleanup(func() { _, _ = a.close() })
	a.stack = []screen{newLetters(a.ui, backends.EntityID{Name: "orders", Sub: backends.DeadLetterQueue})}
	a.Update(msgSize(80, 24))
	s := a.top().(*letters)
	sizes := [][2]int{{120, 40}, {60, 15}, {40, 10}, {200, 50}, {1, 1}, {80, 24}}
	cmd := s.Init()
	for i := 0; cmd != nil; i++ {
		size := sizes[i%len(sizes)]
		a.Update(msgSize(size[0], size[1]))
		checkFrame(t, a.View(), size[0], size[1])
		cmd = s.Update(cmd())
	}
	if s.Len() != 2000 {
		t.Errorf("%d rows", s.Len())
	}
}
