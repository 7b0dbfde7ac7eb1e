package tui

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"dlq/resubmit"
	"dlq/tui/table"
)

// groups shows the failure signatures of a list of messages: what went wrong how often.
// It counts what the list shows when it is opened and whenever that may have changed.
type groups struct {
	*ui
	of    *letters
	keys  groupsKeys
	table *table.Table
	width int

	all         []groupCount
	total       int64
	newestFirst bool
}

// groupCount is one signature and the messages that have it.
type groupCount struct {
	resubmit.Signature
	count       int64
	first, last int64 // earliest and latest enqueued time, in Unix milliseconds
}

// groupChosenMsg asks a list to show one group.
type groupChosenMsg struct {
	of        *letters
	signature resubmit.Signature
}

func newGroups(u *ui, of *letters) *groups {
	s := &groups{ui: u, of: of, keys: newGroupsKeys(u.deps.ReadOnly)}
	s.table = table.New([]table.Column{
		{Title: right("COUNT", countWidth), Width: countWidth},
		{Title: "SHARE", Width: shareWidth},
		{Title: right("FIRST", ageWidth), Width: ageWidth},
		{Title: right("LAST", ageWidth), Width: ageWidth},
		{Title: "REASON", Width: reasonWidth, Min: minReasonWidth},
		{Title: "WHAT HAPPENED", Width: minDescriptionWidth, Min: minDescriptionWidth, Flex: true},
		{Title: "ID", Width: groupIDWidth},
	}, u.tableStyles())
	s.table.SetRows(s)
	return s
}

func (s *groups) Init() tea.Cmd {
	s.count()
	return nil
}

// count goes over the rows that the list shows.
func (s *groups) count() {
	rows := s.of.rows
	byGroup := make([]groupCount, len(rows.groups))
	for i := range byGroup {
		byGroup[i] = groupCount{Signature: rows.groups[i], first: math.MaxInt64, last: math.MinInt64}
	}
	s.total = int64(s.of.Len())
	for n := range s.of.Len() {
		r := rows.at(s.of.at(n))
		g := &byGroup[r.group]
		g.count++
		if r.enqueued != math.MinInt64 {
			g.first, g.last = min(g.first, r.enqueued), max(g.last, r.enqueued)
		}
	}
	s.all = slices.DeleteFunc(byGroup, func(g groupCount) bool { return g.count == 0 })
	s.arrange()
}

func (s *groups) arrange() {
	slices.SortStableFunc(s.all, func(a, b groupCount) int {
		if s.newestFirst {
			return cmp.Or(cmp.Compare(b.last, a.last), cmp.Compare(b.count, a.count))
		}
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(b.last, a.last))
	})
}

func (s *groups) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case batch[rowData]:
		// The list is below on the stack, so it has taken the batch already. Counting
		// at each doubling keeps the whole work linear.
		if msg.from == s.of.load && (msg.done || int64(s.of.Len()) >= 2*s.total) {
			s.count()
		}
	case tea.KeyMsg:
		return s.key(msg)
	}
	return nil
}

func (s *groups) key(msg tea.KeyMsg) tea.Cmd {
	if s.keys.move(msg, tableNav{s.table}) {
		return nil
	}
	if key.Matches(msg, s.keys.order) {
		s.newestFirst = !s.newestFirst
		s.arrange()
		return nil
	}
	i := s.table.Cursor()
	if i >= len(s.all) {
		return nil
	}
	if key.Matches(msg, s.keys.open) {
		return tea.Sequence(
			func() tea.Msg { return popMsg{} },
			func() tea.Msg { return groupChosenMsg{s.of, s.all[i].Signature} },
		)
	}
	return s.of.actOn(msg, s.keys.actionKeys, s.target(s.all[i]))
}

// target is all messages of a group that the list shows.
func (s *groups) target(g groupCount) target {
	return s.of.rowsTarget("group "+g.ID, func(i int) bool {
		return s.of.rows.groups[s.of.rows.at(i).group].ID == g.ID
	})
}

func (s *groups) SetSize(width, height int) {
	s.width = width
	s.table.SetSize(width, height)
}

func (s *groups) View() []string {
	lines := strings.Split(s.table.View(), "\n")
	if len(s.all) == 0 {
		hint{"There is nothing to group.", "q goes back"}.over(lines, s.width, s.theme)
	}
	return lines
}

func (s *groups) Crumb() string { return "groups" }

func (s *groups) Context() (left, rightSide line) {
	left = plain(plural(int64(len(s.all)), "failure signature", "failure signatures") + " in " + plural(s.total, "message", "messages"))
	if s.of.loading {
		left = left.add(s.theme.Muted, " so far")
	}
	if s.of.filter != "" {
		left = left.add(s.theme.Muted, " · ").add(s.theme.Accent, "[/ "+s.of.filter+"]")
	}
	return left, line{{s.sideEffects(), s.theme.Muted}}
}

func (s *groups) Status() line          { return s.of.Status() }
func (s *groups) Keys() keyMap          { return s.keys }
func (s *groups) Prompt() *prompt       { return nil }
func (s *groups) Back() (tea.Cmd, bool) { return nil, false }
func (s *groups) Close()                {}

// Len and Row make the screen the source of its table.
func (s *groups) Len() int { return len(s.all) }

func (s *groups) Row(i int, dst []string) []string {
	g := s.all[i]
	since := func(ms int64) string {
		if ms == math.MaxInt64 || ms == math.MinInt64 {
			return right("?", ageWidth)
		}
		return right(age(s.deps.Now(), time.UnixMilli(ms)), ageWidth)
	}
	detail := cmp.Or(g.Detail, "(no description)")
	return append(dst, right(grouped(g.count), countWidth), bar(g.count, s.total, shareWidth),
		since(g.first), since(g.last), cmp.Or(g.Reason, "(no reason)"), detail, g.ID)
}

// bar draws a part of a whole in so many cells, in eighths of a cell.
func bar(part, whole int64, width int) string {
	if whole <= 0 {
		return ""
	}
	eighths := int(math.Round(float64(part) / float64(whole) * float64(8*width)))
	if eighths == 0 && part > 0 {
		eighths = 1
	}
	b := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		b += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return b
}
