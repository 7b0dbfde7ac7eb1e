package tui

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/resubmit"
	"dlq/tui/table"
	"dlq/tui/theme"
)

// letters is the list of an entity's messages: its dead letters, as a rule.
type letters struct {
	*ui
	entity backends.EntityID
	keys   lettersKeys
	table  *table.Table
	width  int

	seqCells int  // of the longest sequence number so far
	why      bool // there are reasons to show

	rows        *rowStore
	view        []int32 // positions of the rows that match; not looked at without a filter
	tallies     []tally // of the rows in view, by group
	marks       marks
	newestFirst bool

	filter string          // the line as it was typed; "" shows everything
	query  *resubmit.Query // of the filter
	limit  int             // of the filter; 0: none
	prompt *prompt

	load     *stream[rowData]
	loading  bool
	replace  bool // the next batch begins a new list
	loaded   time.Time
	err      error
	unjudged int64 // rows that the filter could not judge
	names    map[string]struct{}

	carry  []int64 // sequence numbers to mark again while the list is read anew, ascending
	anchor int64   // sequence number to put the cursor on while the list is read anew; 0: none
	place  int     // where the cursor goes until then; negative: where it is
}

func newLetters(u *ui, id backends.EntityID) *letters {
	s := &letters{
		ui:       u,
		entity:   id,
		seqCells: seqWidth,
		keys:     newLettersKeys(u.caps, u.deps.ReadOnly),
		rows:     newRowStore(),
		names:    make(map[string]struct{}),
		carry:    u.kept[id],
		why:      id.Sub != backends.Main,
		place:    -1,
	}
	s.table = table.New(s.columns(), u.tableStyles())
	s.table.SetRows(s)
	s.table.SetCellStyle(s.look)
	s.table.SetMarked(func(i int) bool { return s.marks.has(s.at(i)) })
	return s
}

func (s *letters) columns() []table.Column {
	if !s.why {
		return []table.Column{
			{Title: right("SEQ", s.seqCells), Width: s.seqCells},
			{Title: right("AGE", ageWidth), Width: ageWidth},
			{Title: "SUBJECT", Width: subjectWidth, Min: minTextWidth, Flex: true},
			{Title: "ID", Width: idWidth, Min: minTextWidth},
			{Title: "STATE", Width: stateWidth},
			{Title: "TRIES", Width: triesWidth},
			{Title: right("SIZE", sizeWidth), Width: sizeWidth},
		}
	}
	reason := reasonWidth
	if s.width < roomyWidth {
		reason = minReasonWidth
	}
	columns := []table.Column{
		{Title: right("SEQ", s.seqCells), Width: s.seqCells},
		{Title: right("AGE", ageWidth), Width: ageWidth},
		{Title: "REASON", Width: reason, Min: minReasonWidth},
		{Title: "WHAT HAPPENED", Width: minDescriptionWidth, Min: minDescriptionWidth, Flex: true},
		{Title: "TRIES", Width: triesWidth},
		{Title: right("SIZE", sizeWidth), Width: sizeWidth},
	}
	if s.width >= sideBySideWidth {
		columns = append(columns, table.Column{Title: "SUBJECT", Width: subjectWidth})
	}
	if s.width >= wideWidth {
		columns = append(columns, table.Column{Title: "ID", Width: idWidth})
	}
	return columns
}

func (s *letters) Init() tea.Cmd { return s.reload() }

// reload reads the entity anew, and judges each message by the filter while it is at
// hand. What is on the screen stays until the first batch; marks and cursor stay with
// their messages.
func (s *letters) reload() tea.Cmd {
	s.load.stop()
	peeker, ok := backends.As[backends.Peeker](s.deps.Backend)
	if !ok {
		return nil
	}
	if !s.replace { // a load that brought nothing yet has kept all that is to be carried over
		s.carry = mergeSeqs(s.carry, s.marked())
		s.anchor, s.place = s.currentSeq(), s.table.Cursor()
	}
	s.err, s.loading, s.replace = nil, true, true
	query, entity := s.query, s.entity
	s.load = startStream(s.ctx, func(ctx context.Context) iter.Seq2[rowData, error] {
		return readRows(ctx, peeker, entity, query)
	})
	return s.load.next()
}

// readRows peeks at everything in the entity. Bodies are read only for a query that
// looks into them, and none is kept.
func readRows(ctx context.Context, p backends.Peeker, id backends.EntityID, q *resubmit.Query) iter.Seq2[rowData, error] {
	return func(yield func(rowData, error) bool) {
		noBody := q == nil || !q.NeedsBody()
		for m, err := range p.Peek(ctx, id, backends.PeekOptions{NoBody: noBody}) {
			if err != nil {
				yield(rowData{}, err)
				return
			}
			r := newRowData(m)
			if q != nil {
				r.matches, err = q.Match(m)
				r.unjudged = err != nil
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (s *letters) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case batch[rowData]:
		if msg.from == s.load {
			return s.take(msg)
		}
	case queuesChangedMsg:
		return s.reload()
	case groupChosenMsg:
		if msg.of == s {
			return s.narrow(msg.signature)
		}
	case tea.KeyMsg:
		if s.prompt != nil {
			return s.typed(msg)
		}
		return s.key(msg)
	}
	return nil
}

// take adds a batch to the list.
func (s *letters) take(b batch[rowData]) tea.Cmd {
	if s.replace && (len(b.items) > 0 || b.done && b.err == nil) {
		s.replace = false
		s.rows, s.view, s.tallies, s.unjudged = newRowStore(), nil, nil, 0
		s.marks.clear()
	}
	before := s.Len()
	for _, r := range b.items {
		s.add(r)
	}
	switch {
	case s.place >= 0:
		s.table.SetCursor(s.place)
	case s.newestFirst && before > 0 && s.table.Cursor() > 0:
		// New rows come above the cursor in this order; it stays with its message.
		s.table.SetCursor(s.table.Cursor() + s.Len() - before)
	}
	s.settleAnchor(before)
	if !b.done {
		return s.load.next()
	}
	s.loading, s.err, s.replace = false, b.err, false
	if b.err == nil {
		s.loaded, s.carry, s.anchor, s.place = s.deps.Now(), nil, 0, -1
	}
	return nil
}

func (s *letters) add(r rowData) {
	i := s.rows.add(r)
	if s.query != nil && r.matches && (s.limit == 0 || len(s.view) < s.limit) {
		s.view = append(s.view, int32(i))
		s.tallies = s.rows.count(s.tallies, i)
	}
	if r.unjudged {
		s.unjudged++
	}
	if cells := len(seqText(r.seq)); cells > s.seqCells || r.reason != "" && !s.why {
		s.seqCells, s.why = max(cells, s.seqCells), s.why || r.reason != ""
		s.table.SetColumns(s.columns())
	}
	for len(s.carry) > 0 && s.carry[0] < r.seq {
		s.carry = s.carry[1:]
	}
	if len(s.carry) > 0 && s.carry[0] == r.seq {
		s.marks.set(i, true)
	}
	for _, name := range r.properties {
		if _, known := s.names[name]; !known && len(s.names) < maxNames {
			s.names[strings.Clone(name)] = struct{}{}
		}
	}
}

// settleAnchor puts the cursor on the message that it was on before the list was read
// anew, if that is among the rows from display position before on.
func (s *letters) settleAnchor(before int) {
	if s.anchor == 0 {
		return
	}
	for n := before; n < s.Len(); n++ {
		i := n
		if s.newestFirst {
			i = s.Len() - 1 - n
		}
		if s.rows.at(s.at(i)).seq == s.anchor {
			s.table.SetCursor(i)
			s.anchor, s.place = 0, -1
			return
		}
	}
}

// Len and Row make the screen the source of its table.
func (s *letters) Len() int {
	if s.query != nil {
		return len(s.view)
	}
	return s.rows.Len()
}

// at returns the position in the store of the row that the table shows as its i-th.
func (s *letters) at(i int) int {
	if s.newestFirst {
		i = s.Len() - 1 - i
	}
	if s.query != nil {
		return int(s.view[i])
	}
	return i
}

func (s *letters) Row(i int, dst []string) []string {
	i = s.at(i)
	r := s.rows.at(i)
	since := "?"
	if t, ok := s.rows.enqueued(i); ok {
		since = age(s.deps.Now(), t)
	}
	dst = append(dst, right(seqText(r.seq), s.seqCells), right(since, ageWidth))
	tries, size := right(grouped(int64(r.deliveries)), triesWidth), right(shortBytes(int64(r.size)), sizeWidth)
	if !s.why {
		return append(dst, s.rows.subject(i), s.rows.id(i), r.state.String(), tries, size)
	}
	what := shortType(s.rows.description(i))
	if r.state != message.Active { // a sweep would not meet it
		what = "[" + r.state.String() + "] " + what
	}
	return append(dst, s.rows.reason(i), what, tries, size, s.rows.subject(i), s.rows.id(i))
}

// look lets numbers step back behind what happened.
func (s *letters) look(_, column int) theme.Style {
	switch {
	case column == 2 && s.why:
		return s.theme.Accent
	case column == 2, column == 3:
		return theme.Style{}
	}
	return s.theme.Muted
}

// current returns the position in the store of the row under the cursor.
func (s *letters) current() (i int, ok bool) {
	if s.Len() == 0 {
		return 0, false
	}
	return s.at(s.table.Cursor()), true
}

func (s *letters) currentSeq() int64 {
	if i, ok := s.current(); ok {
		return s.rows.at(i).seq
	}
	return 0
}

// marked returns the sequence numbers of the marked rows, ascending.
func (s *letters) marked() []int64 {
	seqs := make([]int64, 0, s.marks.n)
	for i := range s.marks.all {
		seqs = append(seqs, s.rows.at(i).seq)
	}
	return seqs
}

func (s *letters) SetSize(width, height int) {
	s.width = width
	s.table.SetColumns(s.columns())
	s.table.SetSize(width, height)
}

func (s *letters) Keys() keyMap    { return s.keys }
func (s *letters) Prompt() *prompt { return s.prompt }

func (s *letters) Close() {
	s.load.stop()
	s.kept[s.entity] = mergeSeqs(s.carry, s.marked())
}

// Back takes the filter away before it leaves.
func (s *letters) Back() (tea.Cmd, bool) {
	if s.filter == "" {
		return nil, false
	}
	return s.setFilter("", nil, 0), true
}

func (s *letters) key(msg tea.KeyMsg) tea.Cmd {
	if s.keys.move(msg, tableNav{s.table}) {
		s.anchor, s.place = 0, -1
		return nil
	}
	switch {
	case key.Matches(msg, s.keys.open):
		if _, ok := s.current(); ok {
			return push(newDetail(s.ui, s))
		}
	case key.Matches(msg, s.keys.filter):
		s.openFilter()
	case key.Matches(msg, s.keys.groupView):
		return push(newGroups(s.ui, s))
	case key.Matches(msg, s.keys.order):
		s.reverse()
	case key.Matches(msg, s.keys.next):
		return s.switchTo(nextSub(s.entity))
	case key.Matches(msg, s.keys.refresh):
		return s.reload()
	case key.Matches(msg, s.keys.mark):
		s.toggle()
	case key.Matches(msg, s.keys.markAll, s.keys.invert, s.keys.unmark):
		return s.markMany(msg)
	default:
		return s.act(msg)
	}
	return nil
}

// reverse turns the order over and keeps the cursor on its message.
func (s *letters) reverse() {
	i := s.table.Cursor()
	s.newestFirst = !s.newestFirst
	if s.Len() > 0 && i > 0 && i < s.Len()-1 {
		i = s.Len() - 1 - i
	} else {
		i = 0 // from either end one looks for the other order's beginning
	}
	s.table.SetCursor(i)
}

// toggle marks the row under the cursor, or unmarks it, and goes on to the next.
func (s *letters) toggle() {
	if i, ok := s.current(); ok {
		s.marks.set(i, !s.marks.has(i))
		s.table.Down()
	}
}

func (s *letters) markMany(msg tea.KeyMsg) tea.Cmd {
	if key.Matches(msg, s.keys.unmark) {
		s.marks.clear()
		s.carry = nil
		return nil
	}
	all, filtered := key.Matches(msg, s.keys.markAll), s.query != nil
	switch {
	case all && filtered:
		s.marks.setEach(s.view)
	case all:
		s.marks.setAll(s.rows.Len())
	case filtered:
		s.marks.invertEach(s.view)
	default:
		s.marks.invert(s.rows.Len())
	}
	if s.loading {
		return notify(warning, "marked what has been read so far; the list is still being read")
	}
	return nil
}

// switchTo shows another sub-queue of the entity in the place of this screen.
func (s *letters) switchTo(id backends.EntityID) tea.Cmd {
	return func() tea.Msg { return replaceMsg{newLetters(s.ui, id)} }
}

// nextSub goes round the queues inside an entity.
func nextSub(id backends.EntityID) backends.EntityID {
	switch id.Sub {
	case backends.DeadLetterQueue:
		return id.MainQueue()
	case backends.Main:
		return backends.EntityID{Name: id.Name, Sub: backends.TransferDeadLetterQueue}
	}
	return id.DeadLetters()
}

// startingEntity is what a start with an entity's name opens: its dead letters.
func startingEntity(id backends.EntityID) backends.EntityID {
	if id.Sub == backends.Main {
		return id.DeadLetters()
	}
	return id
}

// mergeSeqs unites two ascending lists.
func mergeSeqs(a, b []int64) []int64 {
	if len(a) == 0 {
		return b
	}
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
