package tui

import (
	"context"
	"errors"
	"slices"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"dlq/backends"
	"dlq/backends/message"
)

// detail shows one message whole: why it died, what it carries, its body. It goes through
// the list that it was opened from.
type detail struct {
	*ui
	of   *letters
	keys detailKeys

	name    rowName          // which message is to be shown
	message *message.Message // what is shown; nil until it is loaded
	request *request[loadedMessage]
	err     error // why the message that is to be shown is not

	facts []line // of the message, wrapped for the pane
	top   int    // first line of facts on the screen
	body  *bodyPane

	bodyFocused   bool
	width, height int
}

// rowName names a message in its entity: by its number, or by its id where the service
// has no numbers.
type rowName struct {
	seq int64
	id  string
}

// loadedMessage is a message, ready to be shown.
type loadedMessage struct {
	message *message.Message
	body    *bodyPane
}

var errGone = errors.New("this message is no longer here: it was completed, moved or has expired")

func newDetail(u *ui, of *letters) *detail {
	d := &detail{ui: u, of: of, keys: newDetailKeys(u.deps.ReadOnly)}
	d.name, _ = of.currentName()
	return d
}

// currentName names the message under the cursor.
func (s *letters) currentName() (rowName, bool) {
	i, ok := s.current()
	if !ok {
		return rowName{}, false
	}
	return rowName{s.rows.at(i).seq, s.rows.id(i)}, true
}

func (d *detail) Init() tea.Cmd { return d.load() }

// load reads the message with its body. What is on the screen stays until it is there.
func (d *detail) load() tea.Cmd {
	d.request.stop()
	peeker, ok := backends.As[backends.Peeker](d.deps.Backend)
	if !ok {
		return nil
	}
	name, entity := d.name, d.of.entity
	var cmd tea.Cmd
	d.request, cmd = ask(d.ctx, func(ctx context.Context) (loadedMessage, error) {
		m, err := readMessage(ctx, peeker, entity, name.seq)
		if err != nil {
			return loadedMessage{}, err
		}
		return loadedMessage{m, newBodyPane(m)}, nil
	})
	return cmd
}

// readMessage peeks at one message.
func readMessage(ctx context.Context, p backends.Peeker, id backends.EntityID, seq int64) (*message.Message, error) {
	for m, err := range p.Peek(ctx, id, backends.PeekOptions{From: seq, Max: 1}) {
		if err != nil {
			return nil, err
		}
		if m.Broker.SequenceNumber == seq {
			return m, nil
		}
	}
	return nil, errGone
}

func (d *detail) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case answer[loadedMessage]:
		if msg.from == d.request {
			d.show(msg.value, msg.err)
		}
	case queuesChangedMsg:
		return d.load()
	case tea.KeyMsg:
		return d.key(msg)
	}
	return nil
}

func (d *detail) show(loaded loadedMessage, err error) {
	d.err = err
	if err != nil {
		return
	}
	if d.body != nil {
		loaded.body.mode = d.body.mode
	}
	d.message, d.body, d.top = loaded.message, loaded.body, 0
	d.arrange()
}

func (d *detail) key(msg tea.KeyMsg) tea.Cmd {
	switch {
	case key.Matches(msg, d.keys.next):
		return d.step(1)
	case key.Matches(msg, d.keys.previous):
		return d.step(-1)
	case key.Matches(msg, d.keys.pane):
		d.bodyFocused = !d.bodyFocused
		d.arrange()
	case key.Matches(msg, d.keys.mark):
		d.of.toggleAt(d.name)
	case d.message == nil:
	case key.Matches(msg, d.keys.view):
		d.body.nextMode()
		d.arrange()
	case d.bodyFocused && d.keys.move(msg, d.body.window()):
	case d.keys.move(msg, d):
	default:
		return d.of.actOn(msg, d.keys.actionKeys, d.target())
	}
	return nil
}

// step goes to the next message of the list, or the one before.
func (d *detail) step(by int) tea.Cmd {
	before := d.of.table.Cursor()
	d.of.table.SetCursor(before + by)
	name, ok := d.of.currentName()
	if !ok || name == d.name {
		return notify(info, "there are no more messages in this direction")
	}
	d.name = name
	return d.load()
}

// toggleAt marks the message with that name, or unmarks it.
func (s *letters) toggleAt(name rowName) {
	if current, ok := s.currentName(); ok && current == name {
		i, _ := s.current()
		s.marks.set(i, !s.marks.has(i))
	}
}

func (d *detail) marked() bool {
	i, ok := d.of.current()
	return ok && d.of.marks.has(i)
}

func (d *detail) target() target {
	t := target{from: d.of.entity, what: "this message", count: 1}
	if d.name.seq != 0 {
		t.seqs = []int64{d.name.seq}
	} else {
		t.ids = []string{d.name.id}
	}
	return t
}

// Up and its like scroll the facts; the body scrolls itself.
func (d *detail) Up(n int)   { d.top = max(d.top-n, 0) }
func (d *detail) Down(n int) { d.top = min(d.top+n, max(len(d.facts)-d.factsHeight(), 0)) }
func (d *detail) PageUp()    { d.Up(d.factsHeight()) }
func (d *detail) PageDown()  { d.Down(d.factsHeight()) }
func (d *detail) Home()      { d.top = 0 }
func (d *detail) End()       { d.Down(len(d.facts)) }

func (d *detail) SetSize(width, height int) {
	d.width, d.height = width, height
	d.arrange()
}

// arrange gives each pane its room.
func (d *detail) arrange() {
	if d.message == nil || d.width == 0 {
		return
	}
	beside, first, second := panes(d.width, d.height, d.bodyFocused)
	if beside {
		d.facts = messageFacts(d.theme, d.message, d.deps.Now(), first-2*paneIndent)
		d.body.setSize(second-paneIndent, d.height-1)
	} else {
		d.facts = messageFacts(d.theme, d.message, d.deps.Now(), d.width-2*paneIndent)
		d.body.setSize(d.width-2*paneIndent, second-1)
	}
	d.Down(0)
}

// factsHeight is how many facts there is room for, below the head of the pane.
func (d *detail) factsHeight() int {
	beside, first, _ := panes(d.width, d.height, d.bodyFocused)
	if beside {
		return max(d.height-1, 1)
	}
	return max(first-1, 1)
}

func (d *detail) Crumb() string { return "message " + seqText(d.name.seq) }

func (d *detail) Context() (left, right line) {
	left = plain(d.of.table.Position())
	if d.marked() {
		left = left.add(d.theme.Muted, " · ").add(d.theme.Marked, "* marked")
	}
	if d.of.filter != "" {
		left = left.add(d.theme.Muted, " · ").add(d.theme.Accent, "[/ "+d.of.filter+"]")
	}
	return left, line{{d.sideEffects(), d.theme.Muted}}
}

func (d *detail) Status() line {
	switch {
	case d.err != nil:
		return line{{"error: " + oneLine(d.err), d.theme.Danger}}
	case d.message == nil || d.message.Broker.SequenceNumber != d.name.seq:
		return line{{"reading…", d.theme.Muted}}
	}
	return nil
}

func (d *detail) Keys() keyMap          { return d.keys }
func (d *detail) Prompt() *prompt       { return nil }
func (d *detail) Back() (tea.Cmd, bool) { return nil, false }
func (d *detail) Close()                { d.request.stop() }

// View draws the two panes.
func (d *detail) View() []string {
	if d.message == nil {
		return nil
	}
	beside, first, second := panes(d.width, d.height, d.bodyFocused)
	if !beside {
		return slices.Concat(d.factsPane(d.width, first), d.bodyLines(d.width, second))
	}
	left, right := d.factsPane(first, d.height), d.bodyLines(second, d.height)
	out := make([]string, d.height)
	gap := d.theme.Muted.Render("│")
	for i := range out {
		out[i] = left[i] + gap + right[i]
	}
	return out
}

// factsPane draws the upper or left pane in exactly that size.
func (d *detail) factsPane(width, height int) []string {
	more := ""
	if hidden := len(d.facts) - d.top - (height - 1); hidden > 0 {
		more = plural(int64(hidden), "more line", "more lines") + " ↓"
	}
	out := []string{d.paneHead("MESSAGE", "", more, !d.bodyFocused, width)}
	for i := range height - 1 {
		var l line
		if at := d.top + i; at < len(d.facts) {
			l = append(plain(" "), d.facts[at]...)
		}
		out = append(out, l.draw(width))
	}
	return out
}

func (d *detail) bodyLines(width, height int) []string {
	out := []string{d.paneHead("BODY", d.body.about, d.body.mode.String(), d.bodyFocused, width)}
	rows := d.body.window().Lines()
	for i := range height - 1 {
		text := ""
		if i < len(rows) {
			text = " " + rows[i]
		}
		out = append(out, fixed(text, width))
	}
	return out
}

// paneHead is the line above a pane. The pane that the move keys move has a marker.
func (d *detail) paneHead(name, about, at string, focused bool, width int) string {
	mark, style := " ", d.theme.Muted
	if focused {
		mark, style = ">", d.theme.Accent
	}
	left := line{{mark + name, style}, {"  " + about, d.theme.Muted}}
	return spread(width, left, line{{at + " ", d.theme.Muted}})
}
