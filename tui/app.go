package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
)

// app is the root model: a stack of screens, a dialog or none, a job or none.
type app struct {
	*ui
	cancel context.CancelFunc
	global globalKeys

	width, height int // zero until the terminal has told
	stack         []screen
	dialog        dialog
	notice        notice
	job           *job
}

// tickEvery is how old an age on the screen may be.
const tickEvery = 5 * time.Second

func newApp(ctx context.Context, d Deps) *app {
	ctx, cancel := context.WithCancel(ctx)
	a := &app{ui: newUI(ctx, d), cancel: cancel, global: newGlobalKeys()}
	a.notice = notice{text: d.Notice}
	a.stack = []screen{newEntities(a.ui)}
	if d.Start != nil {
		a.stack = append(a.stack, newLetters(a.ui, startingEntity(*d.Start)))
	}
	return a
}

// close ends everything that is under way, and waits for a job to stop in order. It
// returns how that ended, if there was one.
func (a *app) close() (jobDoneMsg, bool) {
	a.cancel()
	if a.dialog != nil {
		a.dialog.Close()
	}
	for _, s := range a.stack {
		s.Close()
	}
	if a.job == nil {
		return jobDoneMsg{}, false
	}
	return a.job.wait(), true
}

// Init begins what the screens begin with.
func (a *app) Init() tea.Cmd { return tea.Batch(a.start(), tick()) }

// start is Init without the clock.
func (a *app) start() tea.Cmd {
	var cmds []tea.Cmd
	for _, s := range a.stack {
		cmds = append(cmds, s.Init())
	}
	return tea.Batch(cmds...)
}

func tick() tea.Cmd {
	return tea.Tick(tickEvery, func(time.Time) tea.Msg { return tickMsg{} })
}

func (a *app) top() screen { return a.stack[len(a.stack)-1] }

// Update deals with what is the app's own, and passes on the rest.
func (a *app) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyMsg:
		return a, a.keys(msg)
	case tea.WindowSizeMsg:
		a.resize(msg.Width, msg.Height)
	case pushMsg:
		a.stack = append(a.stack, msg.screen)
		a.resize(a.width, a.height)
		return a, msg.screen.Init()
	case replaceMsg:
		a.top().Close()
		a.stack[len(a.stack)-1] = msg.screen
		a.resize(a.width, a.height)
		return a, msg.screen.Init()
	case popMsg:
		return a, a.pop()
	case openMsg:
		a.setDialog(msg.dialog)
		return a, msg.dialog.Init()
	case closeMsg:
		if msg.dialog == nil || msg.dialog == a.dialog {
			a.setDialog(nil)
		}
	case noticeMsg:
		a.notice = msg.notice
	case startJobMsg:
		return a, a.startJob(msg.job)
	case jobProgressMsg:
		if msg.job == a.job {
			a.job.last = msg.progress
			return a, a.job.next()
		}
	case jobDoneMsg:
		return a, a.jobDone(msg)
	case tickMsg:
		return a, tick()
	default:
		return a, a.broadcast(msg)
	}
	return a, nil
}

// broadcast gives a message to everybody: whose it is drops out by its generation.
func (a *app) broadcast(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	if a.dialog != nil {
		cmds = append(cmds, a.dialog.Update(msg))
	}
	for _, s := range slices.Clone(a.stack) {
		cmds = append(cmds, s.Update(msg))
	}
	return tea.Batch(cmds...)
}

func (a *app) resize(width, height int) {
	a.width, a.height = width, height
	w, h := bodySize(width, height)
	for _, s := range a.stack {
		s.SetSize(w, h)
	}
}

func (a *app) setDialog(d dialog) {
	if a.dialog != nil && a.dialog != d {
		a.dialog.Close()
	}
	a.dialog = d
}

// keys takes apart what arrived in one read: a key that is held down, or typed ahead on a
// slow line, comes as several characters at once. A paste is one text for a line that is
// being typed, and nothing elsewhere: pasted characters must not act.
func (a *app) keys(msg tea.KeyMsg) tea.Cmd {
	typing := a.top().Prompt() != nil || a.dialog != nil
	switch {
	case msg.Paste && !typing:
		return notify(info, "pasted text does nothing here; / opens a line to paste into")
	case msg.Paste, msg.Type != tea.KeyRunes, len(msg.Runes) < 2:
		return a.key(msg)
	}
	var cmds []tea.Cmd
	for _, r := range msg.Runes {
		cmds = append(cmds, a.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}, Alt: msg.Alt}))
	}
	return tea.Batch(cmds...)
}

// key gives a key to whoever has the keyboard: the dialog, the line that is being typed,
// the app, the screen.
func (a *app) key(msg tea.KeyMsg) tea.Cmd {
	if a.width > 0 && tooSmall(a.width, a.height) {
		if key.Matches(msg, a.global.back, a.global.quit) {
			return a.quit()
		}
		return nil // nobody acts on what cannot be seen
	}
	a.notice = notice{}
	switch top := a.top(); {
	case a.dialog != nil:
		return a.dialogKey(msg)
	case top.Prompt() != nil:
		return top.Update(msg)
	case key.Matches(msg, a.global.help):
		return openDialog(newHelp(a.ui, top, a.global))
	case key.Matches(msg, a.global.jobs):
		return a.openJobs()
	case key.Matches(msg, a.global.watch):
		return a.watch()
	case key.Matches(msg, a.global.quit):
		return a.quit()
	case key.Matches(msg, a.global.suspend):
		return tea.Suspend
	case key.Matches(msg, a.global.back):
		if cmd, did := top.Back(); did {
			return cmd
		}
		return a.pop()
	default:
		if b, ok := disabled(top.Keys(), msg); ok {
			return notify(warning, "%s is off: %s", b.Help().Key, a.why())
		}
		return top.Update(msg)
	}
}

// dialogKey gives a key to the dialog. Ctrl-C leaves, but where a job is watched it stops that.
func (a *app) dialogKey(msg tea.KeyMsg) tea.Cmd {
	_, watching := a.dialog.(*progress)
	if key.Matches(msg, a.global.quit) && !watching {
		return a.quit()
	}
	return a.dialog.Update(msg)
}

// pop leaves the top screen, and the program with the last one.
func (a *app) pop() tea.Cmd {
	if len(a.stack) == 1 {
		return a.quit()
	}
	a.top().Close()
	a.stack = a.stack[:len(a.stack)-1]
	return nil
}

// quit leaves, but asks first while a job runs.
func (a *app) quit() tea.Cmd {
	if a.job == nil {
		return tea.Quit
	}
	return openDialog(newQuitting(a.ui, a.job))
}

func (a *app) openJobs() tea.Cmd {
	if _, there := a.top().(*jobs); there {
		return nil
	}
	return push(newJobs(a.ui))
}

// View draws the frame, the screen in it and the dialog on top. Before the terminal has
// told its size there is nothing to draw in.
func (a *app) View() string {
	if a.width == 0 || a.height == 0 {
		return ""
	}
	if tooSmall(a.width, a.height) {
		return a.smallView()
	}
	f := frame{a.theme, a.width}
	top := a.top()
	left, right := top.Context()
	foot := a.foot(f)
	lines := append(make([]string, 0, a.height), f.header(a.deps.Conn, a.crumbs(), a.badge()), f.context(left, right))
	body := top.View()
	for i := range a.height - len(lines) - len(foot) {
		if i < len(body) {
			lines = append(lines, body[i])
		} else {
			lines = append(lines, strings.Repeat(" ", a.width))
		}
	}
	lines = append(lines, foot...)
	if a.dialog != nil {
		lines = a.withDialog(f, lines)
	}
	return strings.Join(lines, "\n")
}

// foot is the last lines of the screen. A dialog has its own, and needs no others.
func (a *app) foot(f frame) []string {
	top := a.top()
	if p := top.Prompt(); p != nil && a.dialog == nil {
		return p.draw(a.theme, a.width)
	}
	foot := []string{f.status(a.notice, top.Status(), a.jobLine()), f.keys(top.Keys().ShortHelp(), a.global.help)}
	if a.dialog != nil {
		foot[1] = strings.Repeat(" ", a.width)
	}
	return foot
}

// smallView is the one line for a terminal without room.
func (a *app) smallView() string {
	return plain("dlq needs 60×15 cells; make the window larger, or press q to leave").draw(a.width)
}

func (a *app) withDialog(f frame, lines []string) []string {
	border := a.theme.Accent
	if a.dialog.Danger() {
		border = a.theme.Danger
	}
	w, h := dialogSize(a.width, a.height)
	return f.overlay(lines, f.box(a.dialog.Title(), a.dialog.View(w, h), a.dialog.Keys().ShortHelp(), w, h, border))
}

func (a *app) crumbs() []string {
	crumbs := make([]string, len(a.stack))
	for i, s := range a.stack {
		crumbs[i] = s.Crumb()
	}
	return crumbs
}

func (a *app) badge() line {
	if a.deps.ReadOnly {
		return line{{"READ-ONLY ", a.theme.Warning}}
	}
	return nil
}
