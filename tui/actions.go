package tui

import (
	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"dlq/backends"
	"dlq/resubmit"
)

// target is what an action is about: messages of one entity, by their numbers or ids, as
// they were on the screen when the key was pressed. What arrives later is not part of it.
type target struct {
	from  backends.EntityID
	what  string // in words, such as "3 marked messages"
	seqs  []int64
	ids   []string // of those that have no number
	count int64
	note  string // what to be aware of, or ""
}

// selection is the target for package resubmit.
func (t target) selection() resubmit.Selection {
	return resubmit.Selection{Seqs: t.seqs, IDs: t.ids}
}

// act deals with an action key on the marked messages, or else on the one under the cursor.
func (s *letters) act(msg tea.KeyMsg) tea.Cmd {
	return s.actOn(msg, s.keys.actionKeys, s.target())
}

// target is the marked messages, else the one under the cursor.
func (s *letters) target() target {
	if s.marks.n == 0 {
		i, ok := s.current()
		if !ok {
			return target{}
		}
		return s.rowsOf("this message", func(yield func(int) bool) { yield(i) })
	}
	t := s.rowsOf(plural(int64(s.marks.n), "marked message", "marked messages"), s.marks.all)
	if hidden := s.marks.n - s.markedInView(); hidden > 0 {
		t.note = plural(int64(hidden), "marked message is", "marked messages are") + " not shown by the filter, and included"
	}
	return t
}

func (s *letters) markedInView() int {
	if s.query == nil {
		return s.marks.n
	}
	n := 0
	for _, i := range s.view {
		if s.marks.has(int(i)) {
			n++
		}
	}
	return n
}

// rowsTarget is the rows on display that want picks.
func (s *letters) rowsTarget(what string, want func(i int) bool) target {
	return s.rowsOf(what, func(yield func(int) bool) {
		for n := range s.Len() {
			if i := s.at(n); want(i) && !yield(i) {
				return
			}
		}
	})
}

// rowsOf makes a target of positions in the store.
func (s *letters) rowsOf(what string, positions func(func(int) bool)) target {
	t := target{from: s.entity, what: what}
	for i := range positions {
		if seq := s.rows.at(i).seq; seq != 0 {
			t.seqs = append(t.seqs, seq)
		} else {
			t.ids = append(t.ids, s.rows.id(i))
		}
		t.count++
	}
	return t
}

// actOn begins the action of a key. Nothing happens to a message before a dialog was
// answered.
func (s *letters) actOn(msg tea.KeyMsg, k actionKeys, t target) tea.Cmd {
	if t.count == 0 {
		return nil
	}
	switch {
	case key.Matches(msg, k.resubmit):
		return openDialog(newPlan(s.ui, t, resubmit.Spec{Kind: resubmit.Resubmit}))
	case key.Matches(msg, k.complete):
		return openDialog(newPlan(s.ui, t, resubmit.Spec{Kind: resubmit.Complete}))
	case key.Matches(msg, k.export):
		return openDialog(newExport(s.ui, t))
	case key.Matches(msg, k.edit):
		if t.count > 1 {
			return notify(info, "an editor takes one message: unmark all (u), or resubmit (R) and set properties there")
		}
		return openDialog(newEditing(s.ui, t))
	}
	return nil
}
