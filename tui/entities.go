package tui

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"dlq/backends"
	"dlq/tui/table"
	"dlq/tui/theme"
)

// entities is the first screen: what there is, and where it hurts.
type entities struct {
	*ui
	keys  entitiesKeys
	table *table.Table
	width int

	all    []backends.Entity // as loaded, in the service's order
	byID   map[backends.EntityID]backends.Entity
	shown  []backends.Entity // those that match the filter, in the order of the screen
	filter string
	byName bool
	prompt *prompt

	load    *stream[backends.Entity]
	fresh   []backends.Entity // what the load under way has brought so far
	loading bool
	loaded  time.Time // when all was loaded; zero: not yet
	err     error
}

func newEntities(u *ui) *entities {
	s := &entities{ui: u, keys: newEntitiesKeys()}
	s.table = table.New([]table.Column{
		{Title: "ENTITY", Width: entityWidth, Min: entityWidth, Flex: true},
		{Title: "DEAD LETTERS", Width: deadWidth},
		{Title: right("OLDEST", ageWidth+1), Width: ageWidth + 1},
		{Title: right("ACTIVE", countWidth), Width: countWidth},
		{Title: "TRANSFER", Width: countWidth},
		{Title: "SCHEDULED", Width: countWidth + 1},
		{Title: "DEFERRED", Width: countWidth},
		{Title: "KIND", Width: kindWidth},
	}, u.tableStyles())
	s.table.SetCellStyle(s.look)
	s.table.SetRows(s)
	return s
}

func (s *entities) Init() tea.Cmd { return s.reload() }

// reload reads the list anew. The present one stays on the screen until the first part of
// the new one is there.
func (s *entities) reload() tea.Cmd {
	s.load.stop()
	s.err, s.fresh, s.loading = nil, nil, true
	s.load = startStream(s.ctx, func(ctx context.Context) iter.Seq2[backends.Entity, error] {
		return s.deps.Backend.Entities(ctx, backends.EntityQuery{})
	})
	return s.load.next()
}

func (s *entities) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case batch[backends.Entity]:
		if msg.from == s.load {
			return s.take(msg)
		}
	case queuesChangedMsg:
		return s.reload()
	case tea.KeyMsg:
		if s.prompt != nil {
			return s.typed(msg)
		}
		return s.key(msg)
	}
	return nil
}

func (s *entities) take(b batch[backends.Entity]) tea.Cmd {
	s.fresh = append(s.fresh, b.items...)
	if b.done {
		s.loading, s.err = false, b.err
		if b.err == nil {
			s.loaded = s.deps.Now()
		}
	}
	if b.err == nil || len(s.fresh) > 0 {
		s.all = s.fresh
		s.arrange()
	}
	if b.done {
		return nil
	}
	return s.load.next()
}

// arrange filters and sorts, and keeps the cursor on its entity.
func (s *entities) arrange() {
	current, had := s.current()
	s.byID = make(map[backends.EntityID]backends.Entity, len(s.all))
	for _, e := range s.all {
		s.byID[e.ID] = e
	}
	s.shown = s.shown[:0]
	for _, e := range s.all {
		if strings.Contains(strings.ToLower(e.ID.Name), strings.ToLower(s.filter)) {
			s.shown = append(s.shown, e)
		}
	}
	slices.SortStableFunc(s.shown, func(a, b backends.Entity) int {
		if s.byName {
			return 0 // the service's order, in which a topic is followed by its subscriptions
		}
		return cmp.Compare(s.dead(b), s.dead(a))
	})
	if had {
		if i := slices.IndexFunc(s.shown, func(e backends.Entity) bool { return e.ID == current.ID }); i >= 0 && s.table.Cursor() > 0 {
			s.table.SetCursor(i)
		}
	}
}

func (s *entities) current() (e backends.Entity, ok bool) {
	i := s.table.Cursor()
	if i >= len(s.shown) {
		return e, false
	}
	return s.shown[i], true
}

func (s *entities) key(msg tea.KeyMsg) tea.Cmd {
	if s.keys.move(msg, tableNav{s.table}) {
		return nil
	}
	switch {
	case key.Matches(msg, s.keys.filter):
		s.prompt = &prompt{label: "find", edit: newLineEdit(s.filter), hint: "part of a name. Enter keeps it, Esc shows all"}
	case key.Matches(msg, s.keys.refresh):
		return s.reload()
	case key.Matches(msg, s.keys.order):
		s.byName = !s.byName
		s.arrange()
	case key.Matches(msg, s.keys.open):
		return s.open(func(e backends.Entity) backends.EntityID { return e.DeadLetters })
	case key.Matches(msg, s.keys.active):
		return s.open(func(e backends.Entity) backends.EntityID { return e.ID })
	case key.Matches(msg, s.keys.transfer):
		return s.open(func(e backends.Entity) backends.EntityID {
			return backends.EntityID{Name: e.ID.Name, Sub: backends.TransferDeadLetterQueue}
		})
	}
	return nil
}

func (s *entities) open(which func(backends.Entity) backends.EntityID) tea.Cmd {
	e, ok := s.current()
	if !ok {
		return nil
	}
	id := which(e)
	switch {
	case e.Kind == backends.Topic && id != e.ID:
		return notify(info, "a topic has no dead letters of its own: they are in its subscriptions")
	case id.Name == "":
		return notify(info, "%s has no dead-letter queue", e.ID)
	}
	return push(newLetters(s.ui, id))
}

// typed narrows the list with each key: it is a pass over names in memory.
func (s *entities) typed(msg tea.KeyMsg) tea.Cmd {
	result := s.prompt.key(msg)
	s.filter = s.prompt.edit.String()
	if result == promptCancelled {
		s.filter = ""
	}
	if result != promptOpen {
		s.prompt = nil
	}
	s.arrange()
	return nil
}

func (s *entities) SetSize(width, height int) {
	s.width = width
	s.table.SetSize(width, height)
}

func (s *entities) View() []string {
	lines := strings.Split(s.table.View(), "\n")
	if len(s.shown) == 0 {
		s.empty().over(lines, s.width, s.theme)
	}
	return lines
}

// empty says why there is nothing to see, and what to do.
func (s *entities) empty() hint {
	switch {
	case s.err != nil:
		return hint{"The entities cannot be listed.", oneLine(s.err), "r tries again, q leaves"}
	case s.loading:
		return hint{"Reading the entities…"}
	case s.filter != "":
		return hint{"No entity's name contains “" + s.filter + "”.", "Esc shows all"}
	}
	return hint{"There are no queues here yet.", "dlq send ENTITY --body TEXT puts a message and makes the queue.", "r refreshes"}
}

func (s *entities) Crumb() string { return "entities" }

func (s *entities) Context() (left, right line) {
	dead := s.deadLetters(s.shown)
	left = plain(plural(int64(len(s.shown)), "entity", "entities") + " · ")
	if dead > 0 {
		left = left.add(s.theme.Danger, plural(dead, "dead letter", "dead letters"))
	} else {
		left = left.add(s.theme.OK, "no dead letters")
	}
	if s.filter != "" {
		left = left.add(s.theme.Muted, " ").add(s.theme.Accent, "["+s.filter+"]")
	}
	if e, ok := s.current(); ok {
		source := "counts: " + cmp.Or(e.Counts.Source, "source unknown")
		if !e.Counts.AsOf.IsZero() {
			source += ", " + age(s.deps.Now(), e.Counts.AsOf) + " ago"
		}
		right = line{{source, s.theme.Muted}}
	}
	return left, right
}

// elsewhere returns the queue that a redrive policy of e names. Its active messages are e's dead
// letters, and those of its other sources.
func (s *entities) elsewhere(e backends.Entity) (there backends.Entity, ok bool) {
	if e.DeadLetters.Sub != backends.Main || e.DeadLetters.Name == "" {
		return there, false
	}
	there, ok = s.byID[e.DeadLetters]
	return there, ok
}

// dead returns how many dead letters there are of e, in it or in the queue that its policy names.
func (s *entities) dead(e backends.Entity) int64 {
	if there, ok := s.elsewhere(e); ok {
		return there.Counts.Active
	}
	return e.Counts.DeadLetter
}

// deadLetters returns how many dead letters there are, as far as the counts are known. What a
// topic shows lies in its subscriptions, which count themselves; what several queues share
// counts once.
func (s *entities) deadLetters(in []backends.Entity) (n int64) {
	counted := map[backends.EntityID]bool{}
	queue := func(e backends.Entity) {
		if !counted[e.ID] {
			counted[e.ID] = true
			n += max(e.Counts.Active, 0)
		}
	}
	for _, e := range in {
		if !e.Counts.Summed {
			n += max(e.Counts.DeadLetter, 0)
		}
		if there, ok := s.elsewhere(e); ok {
			queue(there)
		}
		if len(e.Sources) > 0 {
			queue(e)
		}
	}
	return n
}

func (s *entities) Status() line {
	switch {
	case s.err != nil && len(s.shown) > 0:
		return line{{"error: " + oneLine(s.err), s.theme.Danger}}
	case s.loading:
		return line{{"reading entities… " + grouped(int64(len(s.fresh))), s.theme.Muted}}
	case len(s.all) > 0 && s.deadLetters(s.all) == 0:
		return line{{"✓ no dead letters in any entity", s.theme.OK}, {"; r looks again", s.theme.Muted}}
	}
	return nil
}

func (s *entities) Keys() keyMap    { return s.keys }
func (s *entities) Prompt() *prompt { return s.prompt }
func (s *entities) Close()          { s.load.stop() }

func (s *entities) Back() (tea.Cmd, bool) {
	if s.filter == "" {
		return nil, false
	}
	s.filter = ""
	s.arrange()
	return nil, true
}

// Len and Row make the screen the source of its table.
func (s *entities) Len() int { return len(s.shown) }

func (s *entities) Row(i int, dst []string) []string {
	e := s.shown[i]
	c := e.Counts
	oldest := ""
	dead, from := count(s.dead(e)), e
	if there, ok := s.elsewhere(e); ok {
		from = there
		if len(there.Sources) > 1 && there.Counts.Active > 0 {
			dead = "shared " + dead
		}
	}
	if !from.Oldest.IsZero() && s.dead(e) > 0 {
		oldest = age(s.deps.Now(), from.Oldest)
	}
	kind := string(e.Kind)
	if c.Summed {
		kind += ", sums"
	}
	return append(dst, e.ID.String(), right(dead, deadWidth), right(oldest, ageWidth+1), right(count(c.Active), countWidth),
		right(count(c.TransferDeadLetter), countWidth), right(count(c.Scheduled), countWidth+1), right(count(c.Deferred), countWidth), kind)
}

// look lets the eye find what is wrong: an entity without dead letters steps back.
func (s *entities) look(i, column int) theme.Style {
	e := s.shown[i]
	c, dead := e.Counts, s.dead(e)
	switch {
	case column == 1 && dead > 0, column == 3 && c.Active > 0 && len(e.Sources) > 0:
		return s.theme.Danger
	case column == 4 && c.TransferDeadLetter > 0:
		return s.theme.Warning
	case column > 2 || dead == 0:
		return s.theme.Muted
	}
	return theme.Style{}
}
