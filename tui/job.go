package tui

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"dlq/resubmit"
)

// job is something long that runs beside the UI: at most one at a time, watched in a
// dialog or from the status line.
type job struct {
	title   string // what it does, such as "resubmit 812 messages"
	changes bool   // it changes queues, so that the screens are to be read anew after it
	work    func(ctx context.Context, report func(resubmit.Progress)) (outcome, error)

	started  time.Time
	last     resubmit.Progress
	stopping bool

	cancel   context.CancelFunc
	progress chan resubmit.Progress
	ended    chan struct{}
	result   jobDoneMsg // once ended is closed
}

// outcome is how a job ended: with a report, or with a sentence.
type outcome struct {
	report *resubmit.Report
	text   string
}

type (
	startJobMsg    struct{ job *job }
	jobProgressMsg struct {
		job      *job
		progress resubmit.Progress
	}
	jobDoneMsg struct {
		job     *job
		outcome outcome
		err     error
	}
)

// start runs the job in a goroutine of its own.
func (j *job) start(ctx context.Context) {
	ctx, j.cancel = context.WithCancel(ctx)
	j.progress = make(chan resubmit.Progress, 1)
	j.ended = make(chan struct{})
	go func() {
		defer close(j.ended)
		defer j.cancel()
		j.result.job = j
		j.result.err = guard(func() (err error) {
			j.result.outcome, err = j.work(ctx, j.report)
			return err
		})
	}()
}

// report keeps the latest progress for next to fetch, and never blocks.
func (j *job) report(p resubmit.Progress) {
	select {
	case <-j.progress:
	default:
	}
	select {
	case j.progress <- p:
	default:
	}
}

// next waits for progress or the end.
func (j *job) next() tea.Cmd {
	return func() tea.Msg {
		select {
		case <-j.ended:
			return j.result
		case p := <-j.progress:
			return jobProgressMsg{j, p}
		}
	}
}

// stop asks the job to end; what is in flight is finished in order.
func (j *job) stop() {
	j.stopping = true
	j.cancel()
}

// wait stops the job and returns how it has ended.
func (j *job) wait() jobDoneMsg {
	j.cancel()
	<-j.ended
	return j.result
}

// startJob begins a job and shows it, unless there is one already.
func (a *app) startJob(j *job) tea.Cmd {
	if a.job != nil {
		return notify(warning, "a job is running (%s); wait for it, or stop it first", a.job.title)
	}
	j.started = a.deps.Now()
	j.start(a.ctx)
	a.job = j
	a.setDialog(newProgress(a.ui, j))
	return j.next()
}

// jobDone shows how a job ended: in place of its progress, or in the status line.
func (a *app) jobDone(msg jobDoneMsg) tea.Cmd {
	if msg.job != a.job {
		return nil
	}
	a.job = nil
	watching := false
	switch d := a.dialog.(type) {
	case *progress:
		watching = d.job == msg.job
	case *confirm:
		if d.about == msg.job { // the question whether to leave it has answered itself
			a.setDialog(nil)
		}
	}
	var cmds []tea.Cmd
	if watching {
		cmds = append(cmds, openDialog(newReport(a.ui, msg)))
	} else {
		cmds = append(cmds, func() tea.Msg { return noticeMsg{msg.notice()} })
	}
	if msg.job.changes {
		cmds = append(cmds, func() tea.Msg { return queuesChangedMsg{} })
	}
	return tea.Batch(cmds...)
}

// notice is the end of a job in one line.
func (m jobDoneMsg) notice() notice {
	r := m.outcome.report
	switch {
	case m.err != nil:
		return notice{failure, m.job.title + ": " + m.err.Error()}
	case r == nil:
		return notice{success, m.outcome.text}
	case r.Partly() || r.Left > 0:
		return notice{warning, r.Summary() + " (job " + r.Job + ")"}
	}
	return notice{success, r.Summary() + " (job " + r.Job + ")"}
}

// watch shows the job that went on in the background.
func (a *app) watch() tea.Cmd {
	if a.job == nil {
		return notify(info, "no job is running; J lists those that did")
	}
	return openDialog(newProgress(a.ui, a.job))
}

// jobLine is the job in the status line.
func (a *app) jobLine() line {
	if a.job == nil {
		return nil
	}
	l := line{{a.job.title + " ", a.theme.Accent}}
	if p := a.job.last; p.Total > 0 {
		l = l.add(a.theme.Accent, percent(p.Done, p.Total))
	}
	if a.job.stopping {
		l = l.add(a.theme.Warning, " stopping")
	}
	if a.dialog == nil {
		l = l.add(a.theme.Key, "  w").add(a.theme.Muted, " watch")
	}
	return l
}
