package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/resubmit"
	"dlq/tui/theme"
)

// editing takes one message through an editor and shows the difference before anything
// is sent. Its file lies in a directory of its own, which Close removes.
type editing struct {
	*ui
	target target
	phase  editPhase

	original *message.Message
	edited   *message.Message
	diff     []string
	err      error
	file     string // "" until it is made
	top      int

	prepared *request[editFile]
	read     *request[editResult]

	proceed, again, cancel key.Binding
	scroll                 moveKeys
}

// editPhase is how far an editing is.
type editPhase uint8

const (
	preparing editPhase = iota
	inEditor
	reading
	showingDiff
	failed
)

type (
	// editFile is the message and the file that it was written to.
	editFile struct {
		original *message.Message
		path     string
	}
	// editResult is what came back from the editor.
	editResult struct {
		edited *message.Message
		diff   []string
	}
	editorDoneMsg struct {
		of  *editing
		err error
	}
)

func newEditing(u *ui, t target) *editing {
	return &editing{
		ui:      u,
		target:  t,
		proceed: bind("y", "go on: choose where to send it", "y", "Y", "enter"),
		again:   bind("e", "edit again", "e", "E"),
		cancel:  bind("Esc", "discard", "esc", "q", "n"),
		scroll:  newMoveKeys(),
	}
}

// Init reads the message and writes its document.
func (d *editing) Init() tea.Cmd {
	peeker, ok := backends.As[backends.Peeker](d.deps.Backend)
	if !ok || len(d.target.seqs) != 1 {
		return closeDialog(d)
	}
	from, seq, dir := d.target.from, d.target.seqs[0], d.deps.Getenv("XDG_RUNTIME_DIR")
	var cmd tea.Cmd
	d.prepared, cmd = ask(d.ctx, func(ctx context.Context) (editFile, error) {
		m, err := readMessage(ctx, peeker, from, seq)
		if err != nil {
			return editFile{}, err
		}
		path, err := writeDocument(dir, fmt.Sprintf("message-%d.txt", seq), resubmit.FormatDocument(m))
		return editFile{m, path}, err
	})
	return cmd
}

// writeDocument writes a file that only its owner can read, in a new directory (0700)
// below dir, or below the usual place if that cannot be used.
func writeDocument(dir, name string, doc []byte) (path string, err error) {
	home, err := os.MkdirTemp(dir, "dlq-edit-")
	if err != nil && dir != "" {
		home, err = os.MkdirTemp("", "dlq-edit-")
	}
	if err != nil {
		return "", err
	}
	path = filepath.Join(home, name)
	if err := os.WriteFile(path, doc, 0o600); err != nil {
		return "", errors.Join(err, os.RemoveAll(home))
	}
	return path, nil
}

func (d *editing) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case answer[editFile]:
		if msg.from != d.prepared {
			return nil
		}
		if msg.err != nil {
			d.fail(msg.err)
			return nil
		}
		d.original, d.file = msg.value.original, msg.value.path
		return d.openEditor()
	case editorDoneMsg:
		if msg.of == d {
			return d.readBack(msg.err)
		}
	case answer[editResult]:
		if msg.from == d.read {
			return d.judge(msg)
		}
	case tea.KeyMsg:
		return d.key(msg)
	}
	return nil
}

func (d *editing) openEditor() tea.Cmd {
	command, err := d.deps.Editor(d.file)
	if err != nil {
		d.fail(err)
		return nil
	}
	d.phase = inEditor
	return d.exec(command, func(err error) tea.Msg { return editorDoneMsg{d, err} })
}

// readBack reads what the editor has left.
func (d *editing) readBack(err error) tea.Cmd {
	if err != nil {
		d.fail(fmt.Errorf("the editor failed, so nothing was taken from it: %w", err))
		return nil
	}
	d.phase = reading
	original, path := d.original, d.file
	var cmd tea.Cmd
	d.read, cmd = ask(d.ctx, func(context.Context) (editResult, error) {
		doc, err := os.ReadFile(path)
		if err != nil {
			return editResult{}, err
		}
		edited, err := resubmit.ParseDocument(original, doc)
		if err == nil {
			err = resubmit.LostEdits(original, edited)
		}
		if err != nil {
			return editResult{}, err
		}
		return editResult{edited, resubmit.DiffText(original, edited)}, nil
	})
	return cmd
}

func (d *editing) judge(a answer[editResult]) tea.Cmd {
	switch {
	case a.err != nil:
		d.fail(a.err)
	case len(a.value.diff) == 0:
		return tea.Batch(closeDialog(d), notify(info, "nothing was changed, so there is nothing to send"))
	default:
		d.phase, d.edited, d.diff, d.top = showingDiff, a.value.edited, a.value.diff, 0
	}
	return nil
}

func (d *editing) fail(err error) { d.phase, d.err = failed, err }

func (d *editing) key(msg tea.KeyMsg) tea.Cmd {
	switch {
	case key.Matches(msg, d.cancel):
		return closeDialog(d)
	case key.Matches(msg, d.again) && d.file != "" && d.phase >= showingDiff:
		return d.openEditor()
	case key.Matches(msg, d.proceed) && d.phase == showingDiff:
		spec := resubmit.Spec{Kind: resubmit.Resubmit, Edited: map[int64]*message.Message{d.target.seqs[0]: d.edited}}
		return openDialog(newPlan(d.ui, d.target, spec))
	default:
		d.scroll.move(msg, d)
	}
	return nil
}

// Up and its like scroll the difference.
func (d *editing) Up(n int)   { d.top = max(d.top-n, 0) }
func (d *editing) Down(n int) { d.top += n }
func (d *editing) PageUp()    { d.Up(reportPage) }
func (d *editing) PageDown()  { d.Down(reportPage) }
func (d *editing) Home()      { d.top = 0 }
func (d *editing) End()       { d.top = len(d.diff) }

func (d *editing) Title() string {
	if d.phase == showingDiff {
		return "What you changed"
	}
	return "Edit " + d.target.what
}

func (d *editing) View(width, height int) []line {
	lines := []line{nil}
	say := func(style theme.Style, text string) {
		for _, row := range wrap(text, width) {
			lines = append(lines, line{{row, style}})
		}
	}
	switch d.phase {
	case preparing:
		say(d.theme.Muted, "reading the message…")
	case inEditor, reading:
		say(d.theme.Muted, "waiting for the editor…")
	case failed:
		say(d.theme.Danger, "error: "+d.err.Error())
		if d.file != "" {
			say(d.theme.Muted, "Your text is kept until you discard it.")
		}
	case showingDiff:
		for _, text := range d.diff {
			say(d.diffStyle(text), text)
		}
	}
	d.top = max(min(d.top, len(lines)-(height-2)), 0)
	return lines[d.top:]
}

func (d *editing) diffStyle(text string) theme.Style {
	switch {
	case strings.HasPrefix(text, "+"):
		return d.theme.OK
	case strings.HasPrefix(text, "-"):
		return d.theme.Danger
	}
	return theme.Style{}
}

func (d *editing) Keys() keyMap {
	switch {
	case d.phase == showingDiff:
		return simpleKeys{d.proceed, d.again, d.cancel}
	case d.phase == failed && d.file != "":
		return simpleKeys{d.again, d.cancel}
	}
	return simpleKeys{d.cancel}
}

func (d *editing) Danger() bool { return false }

// Close removes the file. That is IO in Update, but there must be no way out without it.
func (d *editing) Close() {
	d.prepared.stop()
	d.read.stop()
	if d.file != "" {
		_ = os.RemoveAll(filepath.Dir(d.file)) // nothing more can be done about a file that stays
	}
}

// editorFrom returns what runs the user's editor. Its variable may hold arguments, such as
// "code --wait", but is not given to a shell.
func editorFrom(ctx context.Context, getenv func(string) string, goos string) func(path string) (*exec.Cmd, error) {
	return func(path string) (*exec.Cmd, error) {
		words := strings.Fields(getenv("VISUAL"))
		if len(words) == 0 {
			words = strings.Fields(getenv("EDITOR"))
		}
		if len(words) == 0 {
			words = []string{"vi"}
			if goos == "windows" {
				words = []string{"notepad"}
			}
		}
		if _, err := exec.LookPath(words[0]); err != nil {
			return nil, fmt.Errorf("the editor %q is not found; set EDITOR", words[0])
		}
		return exec.CommandContext(ctx, words[0], append(words[1:], path)...), nil
	}
}
