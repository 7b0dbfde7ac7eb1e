package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"dlq/backends"
	"dlq/resubmit"
	"dlq/tui/textview"
)

// Deps is what the UI needs from the process around it. Only Backend and Journals are
// required.
type Deps struct {
	Backend backends.Backend
	// Conn is the connection as its user calls it. It is shown, and recorded in journals.
	Conn string
	// ReadOnly disables everything that changes a queue, visibly.
	ReadOnly bool
	// Journals is where jobs are recorded before they do anything.
	Journals *resubmit.Journals
	// Start is the entity to open with; nil opens the list of entities. A main queue
	// opens its dead letters.
	Start *backends.EntityID
	// Notice is one line to show at the start, such as what a demo is. It may be empty.
	Notice string
	// ExportDir is where an export goes whose file name has no directory; "" is the
	// working directory.
	ExportDir string
	// Version is the version of the program, for journals.
	Version string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// In and Out are the terminal; nil is that of the process.
	In  io.Reader
	Out io.Writer
	// Err is where is said, after the UI was left, how a job ended that still ran then; nil
	// is standard error.
	Err io.Writer
	// Getenv looks up the environment ($VISUAL, $EDITOR, $XDG_RUNTIME_DIR, $NO_COLOR,
	// $COLORFGBG, $DLQ_THEME); nil is os.Getenv.
	Getenv func(string) string
	// Editor returns the command that edits the file at path and ends when its user is
	// done; nil takes $VISUAL or $EDITOR, else the platform's usual one.
	Editor func(path string) (*exec.Cmd, error)
}

// Run shows the UI and returns when its user has left it, or when ctx is done. It takes
// over the terminal's alternate screen and gives it back on every way out. A job that runs
// at that moment is stopped at the next safe point, as its journal records, and Run waits
// for that. Leaving is not an error; ctx being done is, and wraps ctx.Err().
func Run(ctx context.Context, d Deps) error {
	m := newApp(ctx, d)
	opts := []tea.ProgramOption{tea.WithAltScreen()}
	if m.deps.In != nil {
		opts = append(opts, tea.WithInput(m.deps.In))
	}
	if m.deps.Out != nil {
		opts = append(opts, tea.WithOutput(m.deps.Out))
	}
	p := tea.NewProgram(m, opts...)
	// Not tea.WithContext: that kills the program, which then does not wait for its reader.
	defer context.AfterFunc(ctx, p.Quit)()
	_, err := p.Run()
	if end, ran := m.close(); ran { // the screen that would have shown it is gone
		_, _ = fmt.Fprintf(m.deps.Err, "dlq: %s\n", textview.Sanitise(end.notice().text))
	}
	if err == nil || errors.Is(err, tea.ErrInterrupted) {
		return ctx.Err()
	}
	return err
}
