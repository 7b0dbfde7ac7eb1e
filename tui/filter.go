package tui

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"

	"dlq/backends/sqlfilter"
	"dlq/resubmit"
	"dlq/tui/textview"
)

// maxNames bounds how many names of application properties are kept for completion.
const maxNames = 500

// filterHint is what the filter line says before anything is typed.
const filterHint = `words, or sys.DeadLetterReason LIKE 'Max%' AND tenant = 'acme', or since:2h group:ID. Tab completes`

func (s *letters) openFilter() {
	hint := filterHint
	if s.filter != "" {
		hint = "Enter applies, ^u empties the line, ↑ earlier filters, Tab completes, Esc leaves it as it was"
	}
	s.prompt = &prompt{
		label:    "/",
		edit:     newLineEdit(s.filter),
		hint:     hint,
		history:  s.history,
		complete: s.completions,
	}
}

// typed gives a key to the filter line and applies it when it is done.
func (s *letters) typed(msg tea.KeyMsg) tea.Cmd {
	switch s.prompt.key(msg) {
	case promptCancelled:
		s.prompt = nil
	case promptDone:
		return s.applyFilter(strings.TrimSpace(s.prompt.edit.String()))
	}
	return nil
}

// applyFilter compiles the line, or says where it is wrong and leaves it open.
func (s *letters) applyFilter(text string) tea.Cmd {
	if text == "" {
		s.prompt = nil
		return s.setFilter("", nil, 0)
	}
	selection, err := resubmit.ParseFilter(text)
	var query *resubmit.Query
	if err == nil {
		query, err = selection.Compile(s.deps.Now())
	}
	if err != nil {
		s.prompt.fail(filterProblem(text, err))
		return nil
	}
	s.prompt = nil
	s.remember(text)
	apply := s.setFilter(text, query, selection.Limit)
	if doubts := query.Warnings(); len(doubts) > 0 {
		return tea.Batch(apply, notify(warning, "%s", doubts[0]))
	}
	return apply
}

// setFilter shows what matches. Taking a filter away needs no reading: all rows are here.
func (s *letters) setFilter(text string, q *resubmit.Query, limit int) tea.Cmd {
	anchor := s.currentSeq()
	s.filter, s.query, s.limit, s.view, s.tallies = text, q, limit, nil, nil
	if q == nil {
		s.unjudged = 0
		s.seek(anchor)
		return nil
	}
	s.table.SetCursor(0)
	return s.reload()
}

// seek puts the cursor on the message with that number, if it is shown. A peek is in the
// order of the numbers, and so are the rows.
func (s *letters) seek(seq int64) {
	ascending := func(i int) int { return s.at(i) }
	if s.newestFirst {
		ascending = func(i int) int { return s.at(s.Len() - 1 - i) }
	}
	i, found := sort.Find(s.Len(), func(i int) int { return cmp.Compare(seq, s.rows.at(ascending(i)).seq) })
	if !found {
		return
	}
	if s.newestFirst {
		i = s.Len() - 1 - i
	}
	s.table.SetCursor(i)
}

// narrow keeps of what is shown the messages of one group. That needs no reading: each
// row knows its group.
func (s *letters) narrow(sig resubmit.Signature) tea.Cmd {
	text := withGroup(s.filter, sig.ID)
	selection, err := resubmit.ParseFilter(text)
	if err != nil {
		return notifyError(err)
	}
	query, err := selection.Compile(s.deps.Now())
	if err != nil {
		return notifyError(err)
	}
	if s.loading {
		return s.setFilter(text, query, selection.Limit)
	}
	var view []int32
	var tallies []tally
	group, known := s.rows.byID[sig.ID]
	for n := range s.Len() {
		i := n
		if s.query != nil {
			i = int(s.view[n])
		}
		if known && s.rows.at(i).group == group {
			view = append(view, int32(i))
			tallies = s.rows.count(tallies, i)
		}
	}
	s.filter, s.query, s.limit, s.view, s.tallies = text, query, selection.Limit, view, tallies
	s.table.SetCursor(0)
	return nil
}

// withGroup adds a group to a filter, in the place of another group if there is one.
func withGroup(filter, id string) string {
	rest := filter
	if i := strings.Index(" "+filter, " group:"); i >= 0 {
		_, after, _ := strings.Cut(filter[i:], " ")
		rest = filter[:i] + after
	}
	return strings.TrimSpace(strings.TrimSpace(rest) + " group:" + id)
}

// remember puts a filter at the end of the history.
func (s *letters) remember(text string) {
	s.history = append(slices.DeleteFunc(s.history, func(h string) bool { return h == text }), text)
}

// completions returns the names that begin with word: those of the language, and the
// application properties that the messages on hand have.
func (s *letters) completions(word string) []string {
	names := slices.Sorted(maps.Keys(s.names))
	for _, n := range sqlfilter.SelectionNames().All() {
		names = append(names, n.Text)
	}
	return slices.DeleteFunc(names, func(n string) bool {
		return !strings.HasPrefix(strings.ToLower(n), strings.ToLower(word))
	})
}

// filterProblem returns what is wrong with a filter line, and where, in runes; -1 when
// there is no one place.
func filterProblem(text string, err error) (problem string, at int) {
	var e *sqlfilter.Error
	if !errors.As(err, &e) {
		return oneLine(err), -1
	}
	start := strings.Index(text, e.Line) // the expression may stand behind shorthands
	if start < 0 || e.Column > len(e.Line) {
		return oneLine(err), -1
	}
	problem = e.Msg
	if e.Hint != "" {
		problem += "; write " + e.Hint
	}
	return textview.Sanitise(problem), utf8.RuneCountInString(text[:start+e.Column])
}
