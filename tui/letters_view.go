package tui

import (
	"strings"

	"dlq/backends"
)

func (s *letters) View() []string {
	lines := strings.Split(s.table.View(), "\n")
	if s.Len() == 0 {
		s.empty().over(lines, s.width, s.theme)
	}
	return lines
}

// empty says why there is nothing to see, and what to do.
func (s *letters) empty() hint {
	what := entityTitle(s.entity)
	switch {
	case !s.caps.Peek:
		return hint{
			"This service cannot show messages without side effects.",
			"Looking at them hides them from others and raises their receive counts.",
			"dlq peek " + s.entity.MainQueue().String() + " --lease does that, and says what it costs.",
		}
	case s.err != nil:
		return hint{"The " + what + " cannot be read.", oneLine(s.err), "r tries again, q goes back"}
	case s.loading && s.query != nil:
		return hint{"Looking for messages that match…", grouped(int64(s.rows.Len())) + " read so far"}
	case s.loading:
		return hint{"Reading the " + what + "…"}
	case s.query != nil:
		return hint{
			"None of " + plural(int64(s.rows.Len()), "message", "messages") + " matches the filter.",
			"/ changes it, Esc takes it away",
		}
	case s.entity.Sub == backends.DeadLetterQueue:
		return hint{"No dead letters here.", "r looks again, Tab shows the active messages, q goes back"}
	}
	return hint{"No " + what + " here.", "r looks again, Tab goes on to the entity's other messages, q goes back"}
}

func (s *letters) Crumb() string {
	return s.entity.Name + " › " + entityTitle(s.entity)
}

// Context says what is shown of how much, and by which filter.
func (s *letters) Context() (left, right line) {
	total := int64(s.rows.Len())
	if s.query != nil {
		left = plain(grouped(int64(len(s.view))) + " of " + plural(total, "message", "messages"))
	} else {
		left = plain(plural(total, "message", "messages"))
	}
	if s.loading {
		left = left.add(s.theme.Muted, " so far")
	}
	if s.marks.n > 0 {
		left = left.add(s.theme.Muted, " · ").add(s.theme.Marked, grouped(int64(s.marks.n))+" marked")
	}
	if s.filter != "" {
		left = left.add(s.theme.Muted, " · ").add(s.theme.Accent, "[/ "+s.filter+"]")
	}
	return left, line{{s.sideEffects(), s.theme.Muted}}
}

func (s *letters) order() string {
	if s.newestFirst {
		return ", newest first"
	}
	return ", oldest first"
}

func (s *letters) Status() line {
	switch {
	case s.err != nil && s.Len() > 0:
		return line{{"error: " + oneLine(s.err) + " (r tries again)", s.theme.Danger}}
	case s.loading:
		return line{{"reading… " + grouped(int64(s.rows.Len())), s.theme.Muted}}
	case s.unjudged > 0:
		return line{{"! " + plural(s.unjudged, "message", "messages") + " could not be judged by the filter", s.theme.Warning}}
	case s.Len() > 0:
		return line{{s.table.Position() + s.order(), s.theme.Muted}}
	}
	return nil
}
