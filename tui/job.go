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
	done     chan jobDoneMsg
	ended    chan struct{}
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
	j.done = make(chan jobDoneMsg, 1)
	j.ended = make(chan struct{})
	go func() {
		defer close(j.ended)
		defer j.cancel()
		msg := jobDoneMsg{job: j}
		msg.err = guard(func() (err error) {
			msg.outcome, err = j.work(ctx, j.report)
			return err
		})
		j.done <- msg
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
		case d := <-j.done:
			return d
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

// wait stops the job and returns when it has ended.
func (j *job) wait() {
	j.cancel()
	<-j.ended
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
		cmds = append(cmds, msg.notice())
	}
	if msg.job.changes {
		cmds = append(cmds, func() tea.Msg { return queuesChangedMsg{} })
	}
	return tea.Batch(cmds...)
}

// notice is the end of a job in one line.
func (m jobDoneMsg) notice() tea.Cmd {
	switch {
	case m.err != nil:
		return notify(failure, "%s: %s", m.job.title, oneLine(m.err))
	case m.outcome.report == nil:
		return notify(success, "%s", m.outcome.text)
	case m.outcome.report.Partly() || m.outcome.report.Left > 0:
		return notify(warning, "%s (J shows the job)", m.outcome.report.Summary())
	}
	return notify(success, "%s (J shows the job)", m.outcome.report.Summary())
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
	return l
}
