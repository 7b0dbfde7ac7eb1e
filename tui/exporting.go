package tui

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"dlq/export"
	"dlq/resubmit"
)

// exporting asks for the name of a file and writes messages to it.
type exporting struct {
	*ui
	target target
	prompt *prompt
	check  *request[string]
	format export.Format
}

func newExport(u *ui, t target) *exporting {
	name := export.SafeName(shortPath(t.from)) + u.deps.Now().Format("-20060102-150405") + ".jsonl"
	return &exporting{
		ui:     u,
		target: t,
		prompt: &prompt{label: "file", edit: newLineEdit(name), hint: ".jsonl and .json can be imported again, .csv is for spreadsheets"},
	}
}

func (d *exporting) Init() tea.Cmd { return nil }

func (d *exporting) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case answer[string]:
		if msg.from == d.check {
			return d.begin(msg)
		}
	case tea.KeyMsg:
		switch d.prompt.key(msg) {
		case promptCancelled:
			return closeDialog(d)
		case promptDone:
			return d.try()
		}
	}
	return nil
}

// try makes the file and drops it again: a bad name is to be corrected here, where it
// was typed.
func (d *exporting) try() tea.Cmd {
	name := strings.TrimSpace(d.prompt.edit.String())
	format, ok := export.FormatOf(name)
	if !ok {
		d.prompt.fail("the name must end in .jsonl, .json or .csv", -1)
		return nil
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = filepath.Join(d.deps.Getenv("HOME"), rest)
	} else if !filepath.IsAbs(name) {
		name = filepath.Join(d.deps.ExportDir, name)
	}
	d.format = format
	var cmd tea.Cmd
	d.check, cmd = ask(d.ctx, func(context.Context) (string, error) {
		file, err := export.CreateFile(name, false)
		if err == nil {
			file.Abort()
		}
		return name, err
	})
	return cmd
}

func (d *exporting) begin(a answer[string]) tea.Cmd {
	switch {
	case errors.Is(a.err, fs.ErrExist):
		d.prompt.fail("there is a file of that name; choose another", -1)
		return nil
	case a.err != nil:
		d.prompt.fail(oneLine(a.err), -1)
		return nil
	}
	u, t, path, format := d.ui, d.target, a.value, d.format
	j := &job{
		title: "export " + plural(t.count, "message", "messages"),
		work: func(ctx context.Context, report func(resubmit.Progress)) (outcome, error) {
			n, err := u.export(ctx, t, path, format, report)
			return outcome{text: "wrote " + plural(n, "message", "messages") + " to " + path}, err
		},
	}
	return func() tea.Msg { return startJobMsg{j} }
}

// export writes the target to a file, which appears under its name only when all is in it.
func (u *ui) export(ctx context.Context, t target, path string, f export.Format, report func(resubmit.Progress)) (int64, error) {
	file, err := export.CreateFile(path, false)
	if err != nil {
		return 0, err
	}
	defer file.Abort()
	query, err := t.selection().Compile(u.deps.Now())
	if err != nil {
		return 0, err
	}
	w := export.NewWriter(file, f)
	for m, err := range query.Select(ctx, u.deps.Backend, t.from) {
		if err != nil {
			return 0, err
		}
		if err := w.Write(m); err != nil {
			return 0, err
		}
		report(resubmit.Progress{Done: int64(w.Count()), Total: t.count})
	}
	if err := errors.Join(ctx.Err(), w.Close()); err != nil {
		return 0, err
	}
	return int64(w.Count()), file.Commit()
}

func (d *exporting) Title() string { return "Export " + d.target.what }

func (d *exporting) View(width, _ int) []line {
	out := append([]line{nil}, d.prompt.lines(d.theme, width)...)
	if d.target.note != "" {
		out = append(out, line{{d.target.note, d.theme.Warning}})
	}
	return append(out, nil, line{{"The messages stay where they are. The file is readable by you alone.", d.theme.Muted}})
}

func (d *exporting) Keys() keyMap {
	return simpleKeys{bind("Enter", "export", "enter"), bind("Esc", "cancel", "esc")}
}

func (d *exporting) Danger() bool { return false }
func (d *exporting) Close()       { d.check.stop() }
