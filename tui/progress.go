package tui

import (
	"fmt"
	"strconv"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
)

// progress watches the running job. It has no state of its own: the app keeps the job.
type progress struct {
	*ui
	job        *job
	stop, hide key.Binding
}

func newProgress(u *ui, j *job) *progress {
	return &progress{
		ui:   u,
		job:  j,
		stop: bind("Esc", "stop in order", "esc", "ctrl+c"),
		hide: bind("Enter", "go on in the background", "enter"),
	}
}

func (d *progress) Init() tea.Cmd { return nil }

func (d *progress) Update(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyMsg)
	switch {
	case !ok:
	case key.Matches(k, d.stop):
		d.job.stop()
	case key.Matches(k, d.hide):
		return closeDialog(d)
	}
	return nil
}

func (d *progress) Title() string { return upperFirst(d.job.title) }

func (d *progress) View(width, _ int) []line {
	p := d.job.last
	lines := []line{nil}
	if p.Total > 0 {
		lines = append(lines, line{{bar(p.Done, p.Total, width-5), d.theme.Accent}}.padTo(width-5).add(d.theme.Title, right(percent(p.Done, p.Total), 5)))
		lines = append(lines, nil, plain(grouped(p.Done)+" of "+grouped(p.Total)+" done"))
	} else {
		lines = append(lines, plain(grouped(p.Done)+" done"))
	}
	if p.Rate > 0 {
		pace := strconv.FormatFloat(p.Rate, 'f', 0, 64) + " a second"
		if p.ETA > 0 {
			pace += ", " + max(p.ETA.Round(time.Second), time.Second).String() + " to go"
		}
		lines = append(lines, line{{pace, d.theme.Muted}})
	}
	if n := p.Skipped + p.Failed + p.Uncertain; n > 0 {
		lines = append(lines, line{{fmt.Sprintf("! skipped %d, failed %d, possibly twice %d", p.Skipped, p.Failed, p.Uncertain), d.theme.Warning}})
	}
	lines = append(lines, nil)
	switch {
	case d.job.stopping:
		lines = append(lines, line{{"stopping: what is in flight is finished first", d.theme.Warning}})
	case d.job.changes:
		for _, row := range wrap("Stopping loses nothing: what is not done stays where it is, and J then R goes on with it.", width) {
			lines = append(lines, line{{row, d.theme.Muted}})
		}
	}
	return lines
}

func (d *progress) Keys() keyMap {
	if d.job.stopping {
		return simpleKeys{d.hide}
	}
	return simpleKeys{d.hide, d.stop}
}

func (d *progress) Danger() bool { return false }
func (d *progress) Close()       {}

// percent writes a part of a whole; it is 100% only when that is all.
func percent(part, whole int64) string {
	if whole <= 0 {
		return ""
	}
	return strconv.FormatInt(part*100/whole, 10) + "%"
}
