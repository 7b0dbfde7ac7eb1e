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
	"dlq/tui/theme"
)

// groups shows the failure signatures of a list of messages: what went wrong how often.
// It shows what the list has counted while it read.
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
	tally
}

// groupChosenMsg asks a list to show one group.
type groupChosenMsg struct {
	of        *letters
	signature resubmit.Signature
}

func newGroups(u *ui, of *letters) *groups {
	s := &groups{ui: u, of: of, keys: newGroupsKeys(u.deps.ReadOnly)}
	s.table = table.New(s.columns(), u.tableStyles())
	s.table.SetCellStyle(s.look)
	s.table.SetRows(s)
	return s
}

// columns leaves out what is there to look at where there is no room to spare.
func (s *groups) columns() []table.Column {
	share, reason := shareWidth, reasonWidth
	if s.width < sideBySideWidth {
		share = 0
	}
	if s.width < roomyWidth {
		reason = minReasonWidth
	}
	columns := []table.Column{
		{Title: right("COUNT", countWidth-2), Width: countWidth - 2},
		{Title: right("FIRST", ageWidth), Width: ageWidth},
		{Title: right("LAST", ageWidth), Width: ageWidth},
		{Title: "REASON", Width: reason},
		{Title: "WHAT HAPPENED", Width: minDescriptionWidth, Min: minDescriptionWidth, Flex: true},
	}
	if share > 0 {
		columns = append(columns, table.Column{Title: "SHARE", Width: share}, table.Column{Title: "ID", Width: groupIDWidth})
	}
	return columns
}

func (s *groups) Init() tea.Cmd {
	s.count()
	return nil
}

// count takes over what the list has counted of the rows that it shows.
func (s *groups) count() {
	tallies := s.of.rows.tallies
	if s.of.query != nil {
		tallies = s.of.tallies
	}
	s.all, s.total = s.all[:0], int64(s.of.Len())
	for i, t := range tallies {
		if t.n > 0 {
			s.all = append(s.all, groupCount{s.of.rows.groups[i], t})
		}
	}
	s.arrange()
}

func (s *groups) arrange() {
	slices.SortStableFunc(s.all, func(a, b groupCount) int {
		if s.newestFirst {
			return cmp.Or(cmp.Compare(b.last, a.last), cmp.Compare(b.n, a.n))
		}
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(b.last, a.last))
	})
}

func (s *groups) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case batch[rowData]:
		// The list is below on the stack, so it has taken the batch already.
		if msg.from == s.of.load {
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
	s.table.SetColumns(s.columns())
	s.table.SetSize(width, height-previewLines)
}

func (s *groups) View() []string {
	lines := strings.Split(s.table.View(), "\n")
	if len(s.all) == 0 {
		hint{"There is nothing to group.", "q goes back"}.over(lines, s.width, s.theme)
		return lines
	}
	return append(lines, s.preview(s.all[s.table.Cursor()])...)
}

// preview is the signature under the cursor, whole.
func (s *groups) preview(g groupCount) []string {
	head := line{{" " + g.ID + " ", s.theme.Muted}, {cmp.Or(g.Reason, "(no reason)"), s.theme.Accent}}
	out := []string{s.theme.Muted.Render(strings.Repeat("─", s.width)), head.draw(s.width)}
	for _, row := range wrap(cmp.Or(g.Detail, "(no description)"), s.width-2) {
		if len(out) == previewLines {
			break
		}
		out = append(out, plain(" "+row).draw(s.width))
	}
	return out
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

func (s *groups) Status() line {
	if s.of.loading {
		return s.of.Status()
	}
	if s.Len() == 0 {
		return nil
	}
	order := ", most frequent first"
	if s.newestFirst {
		order = ", latest first"
	}
	return line{{s.table.Position() + order, s.theme.Muted}}
}

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
	detail := cmp.Or(shortType(g.Detail), "(no description)")
	return append(dst, right(grouped(g.n), countWidth-2), since(g.first), since(g.last),
		cmp.Or(g.Reason, "(no reason)"), detail, bar(g.n, s.total, shareWidth), g.ID)
}

func (s *groups) look(_, column int) theme.Style {
	switch column {
	case 0:
		return s.theme.Title
	case 1, 2, 6:
		return s.theme.Muted
	case 3, 5:
		return s.theme.Accent
	}
	return theme.Style{}
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
