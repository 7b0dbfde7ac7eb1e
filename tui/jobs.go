package tui

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"dlq/resubmit"
	"dlq/tui/table"
)

// jobs lists what ran, runs or was cut off, here or in any other process.
type jobs struct {
	*ui
	keys  jobsKeys
	table *table.Table
	width int

	all     []resubmit.JobInfo
	request *request[[]resubmit.JobInfo]
	shown   *request[*resubmit.Job] // the job whose report is being read
	loading bool
	err     error
}

func newJobs(u *ui) *jobs {
	s := &jobs{ui: u, keys: newJobsKeys(u.deps.ReadOnly)}
	s.table = table.New([]table.Column{
		{Title: right("AGE", ageWidth), Width: ageWidth},
		{Title: "KIND", Width: jobKindWidth},
		{Title: "STATE", Width: jobStateWidth},
		{Title: right("DONE", doneWidth), Width: doneWidth},
		{Title: right("LEFT", doneWidth), Width: doneWidth},
		{Title: "LOOK", Width: lookWidth},
		{Title: "ID", Width: jobIDWidth},
		{Title: "FROM", Width: minTextWidth, Min: minTextWidth, Flex: true},
	}, u.tableStyles())
	s.table.SetRows(s)
	return s
}

func (s *jobs) Init() tea.Cmd { return s.reload() }

func (s *jobs) reload() tea.Cmd {
	s.request.stop()
	s.loading = true
	journals := s.deps.Journals
	var cmd tea.Cmd
	s.request, cmd = ask(s.ctx, func(context.Context) ([]resubmit.JobInfo, error) { return journals.List() })
	return cmd
}

func (s *jobs) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case answer[[]resubmit.JobInfo]:
		if msg.from == s.request {
			s.loading, s.err = false, msg.err
			if msg.err == nil {
				s.all = msg.value
				s.table.SetRows(s)
			}
		}
	case answer[*resubmit.Job]:
		if msg.from == s.shown {
			return s.showReport(msg)
		}
	case queuesChangedMsg:
		return s.reload()
	case tea.KeyMsg:
		return s.key(msg)
	}
	return nil
}

func (s *jobs) key(msg tea.KeyMsg) tea.Cmd {
	if s.keys.move(msg, tableNav{s.table}) {
		return nil
	}
	if key.Matches(msg, s.keys.refresh) {
		return s.reload()
	}
	i := s.table.Cursor()
	if i >= len(s.all) {
		return nil
	}
	j := s.all[i]
	switch {
	case key.Matches(msg, s.keys.open):
		journals := s.deps.Journals
		var cmd tea.Cmd
		s.shown, cmd = ask(s.ctx, func(context.Context) (*resubmit.Job, error) { return journals.Job(j.ID) })
		return cmd
	case key.Matches(msg, s.keys.resume):
		return s.resume(j)
	case key.Matches(msg, s.keys.stop):
		return s.stopJob(j)
	case key.Matches(msg, s.keys.restore):
		return s.restore(j)
	}
	return nil
}

func (s *jobs) showReport(a answer[*resubmit.Job]) tea.Cmd {
	if a.err != nil {
		return notifyError(a.err)
	}
	r := a.value.Report
	title := string(a.value.Kind) + " " + plural(a.value.Matched, "message", "messages") + ": " + string(a.value.State)
	return openDialog(newReport(s.ui, jobDoneMsg{job: &job{title: title}, outcome: outcome{report: &r}}))
}

func (s *jobs) resume(j resubmit.JobInfo) tea.Cmd {
	if !j.State.Resumable() {
		return notify(info, "this job is %s: there is nothing to resume", j.State)
	}
	env := s.env()
	start := &job{
		title:   "resume " + string(j.Kind) + " of " + plural(j.Matched, "message", "messages"),
		changes: true,
		work: func(ctx context.Context, report func(resubmit.Progress)) (outcome, error) {
			r, err := resubmit.Resume(ctx, env, j.ID, report)
			return outcome{report: &r}, err
		},
	}
	return openDialog(newConfirm(s.ui, "Resume job "+j.ID, "resume", func() tea.Msg { return startJobMsg{start} },
		fmt.Sprintf("%s from %s: %s of %s done.", j.Kind, j.From, grouped(j.Done), plural(j.Matched, "message", "messages")),
		"What is left is done, and what failed is tried again. What is possibly twice is not sent again."))
}

func (s *jobs) stopJob(j resubmit.JobInfo) tea.Cmd {
	if j.State != resubmit.Running {
		return notify(info, "this job is %s: there is nothing to stop", j.State)
	}
	journals := s.deps.Journals
	return openDialog(newConfirm(s.ui, "Stop job "+j.ID, "stop it", func() tea.Msg {
		if err := journals.Cancel(j.ID); err != nil {
			return noticeMsg{notice{failure, oneLine(err)}}
		}
		return noticeMsg{notice{success, "the job was asked to stop; it finishes what is in flight"}}
	}, "The process that runs it finishes what is in flight and leaves the rest where it is."))
}

func (s *jobs) restore(j resubmit.JobInfo) tea.Cmd {
	if j.Kind != resubmit.Complete && j.Kind != resubmit.Purge {
		return notify(info, "only completed messages can be brought back; this job did: %s", j.Kind)
	}
	env := s.env()
	start := &job{
		title:   "bring back " + plural(j.Done, "message", "messages"),
		changes: true,
		work: func(ctx context.Context, report func(resubmit.Progress)) (outcome, error) {
			r, err := resubmit.Restore(ctx, env, j.ID, resubmit.RestoreOptions{Command: "tui: restore " + j.ID}, report)
			return outcome{report: &r}, err
		},
	}
	return openDialog(newConfirm(s.ui, "Bring back "+plural(j.Done, "message", "messages"), "bring them back",
		func() tea.Msg { return startJobMsg{start} },
		fmt.Sprintf("They are put into %s again, as this job's journal kept them. They get new sequence numbers.", j.From)))
}

func (s *jobs) SetSize(width, height int) {
	s.width = width
	s.table.SetSize(width, height)
}

func (s *jobs) View() []string {
	lines := strings.Split(s.table.View(), "\n")
	if len(s.all) == 0 {
		h := hint{"No job has run yet.", "Resubmitting and completing are jobs: each accounts for every message here.", "q goes back"}
		if s.err != nil {
			h = hint{"The jobs cannot be listed.", oneLine(s.err), "r tries again, q goes back"}
		} else if s.loading {
			h = hint{"Reading the jobs…"}
		}
		h.over(lines, s.width, s.theme)
	}
	return lines
}

func (s *jobs) Crumb() string { return "jobs" }

func (s *jobs) Context() (left, rightSide line) {
	left = plain(plural(int64(len(s.all)), "job", "jobs"))
	open := 0
	for _, j := range s.all {
		if j.State.Resumable() {
			open++
		}
	}
	if open > 0 {
		left = left.add(s.theme.Muted, " · ").add(s.theme.Warning, plural(int64(open), "is", "are")+" not finished")
	}
	return left, line{{"newest first", s.theme.Muted}}
}

func (s *jobs) Status() line {
	if s.err != nil && len(s.all) > 0 {
		return line{{"error: " + oneLine(s.err), s.theme.Danger}}
	}
	if i := s.table.Cursor(); i < len(s.all) {
		return line{{cmp.Or(s.all[i].Err, s.all[i].Command, s.all[i].Selection), s.theme.Muted}}
	}
	return nil
}

func (s *jobs) Keys() keyMap          { return s.keys }
func (s *jobs) Prompt() *prompt       { return nil }
func (s *jobs) Back() (tea.Cmd, bool) { return nil, false }

func (s *jobs) Close() {
	s.request.stop()
	s.shown.stop()
}

// Len and Row make the screen the source of its table.
func (s *jobs) Len() int { return len(s.all) }

func (s *jobs) Row(i int, dst []string) []string {
	j := s.all[i]
	look := ""
	if n := j.Skipped + j.Failed + j.Uncertain; n > 0 {
		look = "! " + grouped(n)
	}
	return append(dst, right(age(s.deps.Now(), j.Started), ageWidth), string(j.Kind), string(j.State),
		right(grouped(j.Done), doneWidth), right(count(j.Left), doneWidth), look, j.ID, shortPath(j.From))
}
