package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/bubbles/help"
	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"dlq/backends"
)

// keyMap is what every screen and dialog has: its bindings in titled groups, for the help,
// the footer and the README's table. What the backend or the connection does not allow
// is disabled there, so that help and behaviour agree.
type keyMap interface {
	help.KeyMap
	groups() []keyGroup
}

// keyGroup is one column of the help.
type keyGroup struct {
	title string
	keys  []key.Binding
}

func fullHelp(m keyMap) [][]key.Binding {
	var out [][]key.Binding
	for _, g := range m.groups() {
		out = append(out, g.keys)
	}
	return out
}

// bind makes a binding; name is how the help writes its keys.
func bind(name, does string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(name, does))
}

// more returns a binding with a longer text, for the help: the footer has room for a word.
func more(b key.Binding, does string) key.Binding {
	b.SetHelp(b.Help().Key, does)
	return b
}

// moveKeys move in a list or a text.
type moveKeys struct{ up, down, pageUp, pageDown, home, end key.Binding }

func newMoveKeys() moveKeys {
	return moveKeys{
		up:       bind("↑ k", "up", "up", "k"),
		down:     bind("↓ j", "down", "down", "j"),
		pageUp:   bind("PgUp ^b", "page up", "pgup", "ctrl+b"),
		pageDown: bind("PgDn ^f", "page down", "pgdown", "ctrl+f"),
		home:     bind("Home <", "first", "home", "<"),
		end:      bind("End G", "last", "end", "G", ">"),
	}
}

func (k moveKeys) group() keyGroup {
	return keyGroup{"move", []key.Binding{k.up, k.down, k.pageUp, k.pageDown, k.home, k.end}}
}

// mover is whatever has a place in a list or a text.
type mover interface {
	Up(n int)
	Down(n int)
	PageUp()
	PageDown()
	Home()
	End()
}

// move moves m and reports whether the key was one of these.
func (k moveKeys) move(msg tea.KeyMsg, m mover) bool {
	switch {
	case key.Matches(msg, k.up):
		m.Up(1)
	case key.Matches(msg, k.down):
		m.Down(1)
	case key.Matches(msg, k.pageUp):
		m.PageUp()
	case key.Matches(msg, k.pageDown):
		m.PageDown()
	case key.Matches(msg, k.home):
		m.Home()
	case key.Matches(msg, k.end):
		m.End()
	default:
		return false
	}
	return true
}

// globalKeys work on every screen, unless something is being typed.
type globalKeys struct{ help, jobs, watch, back, quit, suspend key.Binding }

func newGlobalKeys() globalKeys {
	return globalKeys{
		help:    bind("?", "help", "?"),
		jobs:    bind("J", "jobs", "J"),
		watch:   bind("w", "watch the running job", "w"),
		back:    bind("q Esc", "back, at last leave", "q", "esc"),
		quit:    bind("^c", "leave", "ctrl+c"),
		suspend: bind("^z", "to the shell and back", "ctrl+z"),
	}
}

func (k globalKeys) group() keyGroup {
	return keyGroup{"everywhere", []key.Binding{k.help, k.jobs, k.watch, k.back, k.quit, k.suspend}}
}

// entitiesKeys are those of the list of entities.
type entitiesKeys struct {
	moveKeys
	open, active, transfer, filter, refresh, order key.Binding
}

func newEntitiesKeys() entitiesKeys {
	return entitiesKeys{
		moveKeys: newMoveKeys(),
		open:     bind("Enter", "dead letters", "enter", "right", "l"),
		active:   bind("a", "active", "a"),
		transfer: bind("t", "transfer", "t"),
		filter:   bind("/", "find", "/"),
		refresh:  bind("r", "refresh", "r"),
		order:    bind("o", "order", "o"),
	}
}

func (k entitiesKeys) ShortHelp() []key.Binding {
	return []key.Binding{k.open, k.active, k.transfer, k.filter, k.order, k.refresh}
}

func (k entitiesKeys) FullHelp() [][]key.Binding { return fullHelp(k) }

func (k entitiesKeys) groups() []keyGroup {
	return []keyGroup{k.moveKeys.group(), {"look", []key.Binding{
		more(k.open, "its dead letters"),
		more(k.active, "active messages"),
		more(k.transfer, "transfer dead letters"),
		more(k.filter, "find a part of a name"),
		more(k.order, "by dead letters or name"),
		k.refresh,
	}}}
}

// actionKeys act on a queue. They are capital, but for those that only read.
type actionKeys struct{ resubmit, edit, complete, export key.Binding }

func newActionKeys(readOnly bool) actionKeys {
	k := actionKeys{
		resubmit: bind("R", "resubmit", "R"),
		edit:     bind("E", "edit", "E"),
		complete: bind("C", "complete", "C"),
		export:   bind("X", "export", "X"),
	}
	for _, b := range []*key.Binding{&k.resubmit, &k.edit, &k.complete} {
		b.SetEnabled(!readOnly)
	}
	return k
}

// described are all of them with what they do in words. X only reads, but it writes a file.
func (k actionKeys) described() []key.Binding {
	return []key.Binding{
		more(k.resubmit, "resubmit here or elsewhere"),
		more(k.edit, "edit, then resubmit"),
		more(k.complete, "complete: can be restored"),
		more(k.export, "export to a file"),
	}
}

// lettersKeys are those of the list of messages.
type lettersKeys struct {
	moveKeys
	actionKeys
	open, mark, markAll, invert, unmark, filter, groupView, order, next, refresh key.Binding
}

func newLettersKeys(caps backends.Capabilities, readOnly bool) lettersKeys {
	k := lettersKeys{
		moveKeys:   newMoveKeys(),
		actionKeys: newActionKeys(readOnly),
		open:       bind("Enter", "open", "enter", "right", "l"),
		mark:       bind("Space", "mark", " "),
		markAll:    bind("a", "mark all", "a"),
		invert:     bind("i", "invert marks", "i"),
		unmark:     bind("u", "unmark all", "u"),
		filter:     bind("/", "filter", "/"),
		groupView:  bind("g", "group", "g"),
		order:      bind("o", "order", "o"),
		next:       bind("Tab", "active", "tab"),
		refresh:    bind("r", "refresh", "r"),
	}
	for _, b := range []*key.Binding{&k.open, &k.mark, &k.markAll, &k.invert, &k.unmark, &k.filter, &k.groupView, &k.order, &k.refresh, &k.export} {
		b.SetEnabled(caps.Peek)
	}
	for _, b := range []*key.Binding{&k.resubmit, &k.edit, &k.complete} {
		b.SetEnabled(b.Enabled() && caps.Peek)
	}
	return k
}

func (k lettersKeys) ShortHelp() []key.Binding {
	return []key.Binding{k.resubmit, k.edit, k.complete, k.export, k.mark, k.filter, k.groupView, k.markAll, k.order, k.open, k.next, k.refresh}
}

func (k lettersKeys) FullHelp() [][]key.Binding { return fullHelp(k) }

func (k lettersKeys) groups() []keyGroup {
	return []keyGroup{
		k.moveKeys.group(),
		{"look", []key.Binding{
			more(k.open, "open the message"),
			k.filter,
			more(k.groupView, "group by what went wrong"),
			more(k.order, "oldest or newest first"),
			more(k.next, "active, then transfer"),
			k.refresh,
		}},
		{"mark", []key.Binding{k.mark, more(k.markAll, "all that the filter shows"), k.invert, k.unmark}},
		{"act on the marked, else on this one", k.actionKeys.described()},
	}
}

// groupsKeys are those of the failure signatures.
type groupsKeys struct {
	moveKeys
	actionKeys
	open, order key.Binding
}

func newGroupsKeys(readOnly bool) groupsKeys {
	k := groupsKeys{
		moveKeys:   newMoveKeys(),
		actionKeys: newActionKeys(readOnly),
		open:       bind("Enter", "its messages", "enter", "right", "l"),
		order:      bind("o", "order", "o"),
	}
	k.edit.Unbind()
	return k
}

func (k groupsKeys) ShortHelp() []key.Binding {
	return []key.Binding{k.resubmit, k.complete, k.export, k.open, k.order}
}

func (k groupsKeys) FullHelp() [][]key.Binding { return fullHelp(k) }

func (k groupsKeys) groups() []keyGroup {
	return []keyGroup{
		k.moveKeys.group(),
		{"look", []key.Binding{more(k.open, "show its messages"), more(k.order, "frequent or latest first")}},
		{"act on the whole group", slices.DeleteFunc(k.described(), func(b key.Binding) bool { return !b.Enabled() && len(b.Keys()) == 0 })},
	}
}

// detailKeys are those of one message.
type detailKeys struct {
	moveKeys
	actionKeys
	next, previous, pane, view, mark key.Binding
}

func newDetailKeys(readOnly bool) detailKeys {
	return detailKeys{
		moveKeys:   newMoveKeys(),
		actionKeys: newActionKeys(readOnly),
		next:       bind("n →", "next", "n", "right"),
		previous:   bind("p ←", "previous", "p", "left"),
		pane:       bind("Tab", "to the body", "tab"),
		view:       bind("v", "view", "v"),
		mark:       bind("Space", "mark", " "),
	}
}

func (k detailKeys) ShortHelp() []key.Binding {
	return []key.Binding{k.resubmit, k.edit, k.complete, k.export, k.view, k.next, k.previous, k.pane}
}

func (k detailKeys) FullHelp() [][]key.Binding { return fullHelp(k) }

func (k detailKeys) groups() []keyGroup {
	return []keyGroup{
		k.moveKeys.group(),
		{"look", []key.Binding{
			more(k.next, "next message"),
			more(k.previous, "previous message"),
			more(k.pane, "to the body and back"),
			more(k.view, "decoded, text, hex"),
			k.mark,
		}},
		{"act on this message", k.described()},
	}
}

// jobsKeys are those of the list of jobs.
type jobsKeys struct {
	moveKeys
	open, refresh, resume, stop, restore key.Binding
}

func newJobsKeys(readOnly bool) jobsKeys {
	k := jobsKeys{
		moveKeys: newMoveKeys(),
		open:     bind("Enter", "report", "enter", "right", "l"),
		refresh:  bind("r", "refresh", "r"),
		resume:   bind("R", "resume", "R"),
		stop:     bind("S", "stop", "S"),
		restore:  bind("B", "bring back", "B"),
	}
	for _, b := range []*key.Binding{&k.resume, &k.restore} {
		b.SetEnabled(!readOnly)
	}
	return k
}

func (k jobsKeys) ShortHelp() []key.Binding {
	return []key.Binding{k.open, k.resume, k.stop, k.restore, k.refresh}
}

func (k jobsKeys) FullHelp() [][]key.Binding { return fullHelp(k) }

func (k jobsKeys) groups() []keyGroup {
	return []keyGroup{
		k.moveKeys.group(),
		{"look", []key.Binding{more(k.open, "show its report"), k.refresh}},
		{"act on this job", []key.Binding{
			more(k.resume, "resume: do what is left"),
			more(k.stop, "stop it, wherever it runs"),
			more(k.restore, "bring messages back"),
		}},
	}
}

// simpleKeys are the bindings of a dialog, as they are.
type simpleKeys []key.Binding

func (k simpleKeys) ShortHelp() []key.Binding  { return k }
func (k simpleKeys) FullHelp() [][]key.Binding { return [][]key.Binding{k} }
func (k simpleKeys) groups() []keyGroup        { return []keyGroup{{"", k}} }

// disabled returns the binding of a screen that the key belongs to and that cannot be used.
func disabled(m keyMap, msg tea.KeyMsg) (key.Binding, bool) {
	for _, g := range m.groups() {
		for _, b := range g.keys {
			if !b.Enabled() && slices.Contains(b.Keys(), msg.String()) {
				return b, true
			}
		}
	}
	return key.Binding{}, false
}

// KeyTable returns the keys of every screen as a Markdown table, for the README.
func KeyTable() string {
	all := backends.Capabilities{Peek: true}
	var b strings.Builder
	b.WriteString("| Where | Key | Does |\n|---|---|---|\n")
	section := func(name string, groups ...keyGroup) {
		for _, g := range groups {
			for _, k := range g.keys {
				if k.Enabled() {
					b.WriteString("| " + name + " | `" + k.Help().Key + "` | " + k.Help().Desc + " |\n")
					name = ""
				}
			}
		}
	}
	section("everywhere", newGlobalKeys().group(), newMoveKeys().group())
	for _, s := range []struct {
		name string
		keys keyMap
	}{
		{"entities", newEntitiesKeys()},
		{"dead letters", newLettersKeys(all, false)},
		{"groups", newGroupsKeys(false)},
		{"one message", newDetailKeys(false)},
		{"jobs", newJobsKeys(false)},
	} {
		section(s.name, s.keys.groups()[1:]...)
	}
	return b.String()
}
