package tui

import (
	"context"
	"errors"
	"iter"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/resubmit"
)

// troubled is a backend whose listing and peeking end as a test wants.
type troubled struct {
	fakePeeker
	entities error
	peek     func() error // called after the messages
}

func (b troubled) Entities(context.Context, backends.EntityQuery) iter.Seq2[backends.Entity, error] {
	return func(yield func(backends.Entity, error) bool) {
		id := backends.EntityID{Name: "orders"}
		if yield(backends.Entity{ID: id, Kind: backends.Queue, DeadLetters: id.DeadLetters()}, nil) && b.entities != nil {
			yield(backends.Entity{}, b.entities)
		}
	}
}

func (b troubled) Peek(ctx context.Context, id backends.EntityID, o backends.PeekOptions) iter.Seq2[*message.Message, error] {
	return func(yield func(*message.Message, error) bool) {
		for m, err := range b.fakePeeker.Peek(ctx, id, o) {
			if !yield(m, err) {
				return
			}
		}
		if err := b.peek(); err != nil {
			yield(nil, err)
		}
	}
}

func (b troubled) Close() error { return nil }

func TestListingFailsHalfWay(t *testing.T) {
	c := &clock{begin}
	err := &backends.Error{Op: "list", Code: backends.Unavailable, Err: errors.New("no route\x1b[2J to host")}
	d := drive(t, Deps{Backend: troubled{entities: err}, Now: c.Now}, 80, 24)
	d.has("orders", "error: list: unavailable: no route^[[2J to host")
}

func TestReadingFailsHalfWay(t *testing.T) {
	c := &clock{begin}
	fails := true
	d := drive(t, Deps{Backend: troubled{fakePeeker: fakePeeker{n: 100}, peek: func() error {
		if fails {
			return errors.New("connection reset")
		}
		return nil
	}}, Now: c.Now}, 80, 24)
	d.press("enter")
	d.has("100 messages", "error: connection reset (r tries again)")
	d.press("down", " ", "r")
	d.has("1 marked")
	fails = false
	d.press("r")
	d.has("100 messages", "1 marked", "3/100")
	d.hasNot("error")
}

func TestPanicInABackend(t *testing.T) {
	c := &clock{begin}
	d := drive(t, Deps{Backend: troubled{peek: func() error { panic("nil map\x1b") }}, Now: c.Now}, 80, 24)
	d.press("enter")
	d.has("cannot be read", "internal error: nil map^[", "r tries again")
}

// noPeek hides what a backend can do beyond the core.
type noPeek struct{ backends.Backend }

func TestWithoutPeek(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: noPeek{b}, Now: c.Now}, 80, 24)
	d.press("enter")
	d.golden("no-peek-80x24")
	d.press("R")
	d.has("cannot be browsed without side effects")
}

func TestStart(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now, Start: &backends.EntityID{Name: "billing"}}, 80, 24)
	d.has("billing › dead letters", "TTLExpired")
	d.press("q")
	d.has("3 entities")
	d.press("q")
	if !d.quit {
		t.Error("q on the first screen does not leave")
	}
}

func TestEntitiesFindAndOrder(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	d.press("/")
	d.typeText("SHIP")
	d.has("1 entity", "shipping")
	d.hasNot("billing")
	d.press("enter", "esc")
	d.has("3 entities")
	if d.quit {
		t.Fatal("Esc has left instead of showing all")
	}
	d.press("/")
	d.typeText("nothing")
	d.has("No entity's name contains", "Esc shows all")
	d.press("esc", "o")
	v := d.view()
	if strings.Index(v, "billing") > strings.Index(v, "orders") {
		t.Errorf("not in the order of names:\n%s", v)
	}
}

func TestAMessageThatIsGone(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	d.press("enter")
	settler, _ := backends.As[backends.DirectSettler](b)
	orders := backends.EntityID{Name: "orders"}.DeadLetters()
	if err := settler.SettleDirect(t.Context(), orders, backends.Outcome{Action: backends.Complete}, 1); err != nil {
		t.Fatal(err)
	}
	d.press("enter")
	d.has("no longer here")
	d.press("q", "R")
	d.has("none of these messages is there any more")
	d.press("y")
	if _, dead := counts(t, b, "orders"); dead != 8 {
		t.Errorf("%d dead letters, want 8", dead)
	}
}

func TestResumeAJobThatWasInterrupted(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	env := d.app.env()
	plan, err := resubmit.NewPlan(t.Context(), env, resubmit.Spec{
		Kind: resubmit.Resubmit,
		From: backends.EntityID{Name: "orders"}.DeadLetters(), Selection: resubmit.Selection{All: true}, Rate: 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if r, err := resubmit.Run(ctx, env, plan, func(resubmit.Progress) { cancel() }); err != nil || !r.Interrupted || r.Left == 0 {
		t.Fatalf("the run is not interrupted: %+v, %v", r, err)
	}
	d.press("J")
	d.has("1 is not finished", "interrupted")
	d.press("R")
	d.has("Resume job")
	d.press("y")
	d.has("moved 9, left 0, lost 0")
	d.press("esc", "R")
	d.has("nothing to resume")
	d.press("S")
	d.has("nothing to stop")
	d.press("B")
	d.has("only completed messages can be brought back")
}

func TestAnEditThatCannotBeRead(t *testing.T) {
	b, c := incident(t)
	tmp := t.TempDir()
	env := func(name string) string {
		if name == "XDG_RUNTIME_DIR" {
			return tmp
		}
		return noColour(name)
	}
	d := drive(t, Deps{Backend: b, Now: c.Now, Getenv: env, Editor: func(path string) (*exec.Cmd, error) {
		return exec.Command("sed", "-i", "1,$s/^attempt.*/attempt:int=many/", path), nil
	}}, 80, 24)
	d.press("enter", "E")
	d.has("error:", "many", "e edit again")
	d.press("e")
	d.has("error:", "many")
	d.press("esc")
	if left, _ := filepath.Glob(tmp + "/*"); len(left) != 0 {
		t.Errorf("the file stays: %v", left)
	}
	if _, dead := counts(t, b, "orders"); dead != 9 {
		t.Errorf("%d dead letters, want 9", dead)
	}
}

func TestEditorIsNotFound(t *testing.T) {
	b, c := incident(t)
	env := func(name string) string {
		if name == "EDITOR" {
			return "no-such-editor --wait"
		}
		return noColour(name)
	}
	d := drive(t, Deps{Backend: b, Now: c.Now, Getenv: env}, 80, 24)
	d.press("enter", "E")
	d.has(`the editor "no-such-editor" is not found; set EDITOR`)
}

func TestLeavingWhileEditingRemovesTheFile(t *testing.T) {
	b, c := incident(t)
	tmp := t.TempDir()
	env := func(name string) string {
		if name == "XDG_RUNTIME_DIR" {
			return tmp
		}
		return noColour(name)
	}
	d := drive(t, Deps{Backend: b, Now: c.Now, Getenv: env, Editor: func(path string) (*exec.Cmd, error) {
		return exec.Command("sed", "-i", "s/acme/umbrella/", path), nil
	}}, 80, 24)
	d.press("enter", "E")
	d.has("What you changed")
	d.app.close()
	if left, _ := filepath.Glob(tmp + "/*"); len(left) != 0 {
		t.Errorf("the file stays: %v", left)
	}
}

// The same screens with colour, so that a change of what is styled how is seen.
func TestScreensInColour(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now, Getenv: withColour}, 80, 24)
	d.colours("colour-entities")
	d.press("enter", "down", " ")
	d.colours("colour-letters")
	d.press("R")
	d.colours("colour-plan")
	d.press("esc", "g")
	d.colours("colour-groups")
}

// colours is golden with ESC written so that the file can be read.
func (d *driver) colours(name string) {
	d.t.Helper()
	golden(d.t, name, strings.ReplaceAll(d.view(), "\x1b", "␛"))
}
