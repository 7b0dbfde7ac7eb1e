package resubmit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dlq/backends/sqlfilter"

	"github.com/itchyny/gojq"
)

// Selection says which messages, as text: what the flags of a command or the filter line of
// the UI say. All that is set must hold at once. The zero value selects nothing by itself:
// see [Selection.Empty].
type Selection struct {
	Where  string `json:",omitempty"` // Service Bus SQL filter with the names of sqlfilter.SelectionNames
	Text   string `json:",omitempty"` // words, each of which must occur in body, reason, description, exception headers, id or subject, without case
	Reason string `json:",omitempty"` // dead-letter reason: exact or a LIKE pattern, without case
	JQ     string `json:",omitempty"` // keep messages whose JSON body makes it true
	Group  string `json:",omitempty"` // ID of a Signature
	Since  string `json:",omitempty"` // RFC 3339 time, date, or age such as "2h" or "3d": enqueued at or after
	Until  string `json:",omitempty"` // the same: enqueued before
	// Session keeps the messages of one session; a pointer, because "" is a session too.
	Session *string  `json:",omitempty"`
	IDs     []string `json:",omitempty"` // message ids in text form; any of them
	Seqs    []int64  `json:",omitempty"` // sequence numbers; any of them
	Limit   int      `json:",omitempty"` // at most that many, in the order of the entity; 0: no bound
	All     bool     `json:",omitempty"` // everything is meant: no narrowing, on purpose
}

// Empty reports whether nothing narrows the selection and All is not set: then a command
// that changes something must refuse. A limit alone does not narrow.
func (s Selection) Empty() bool {
	return !s.All && s.Where == "" && s.Text == "" && s.Reason == "" && s.JQ == "" && s.Group == "" &&
		s.Since == "" && s.Until == "" && s.Session == nil && len(s.IDs) == 0 && len(s.Seqs) == 0
}

// String returns the selection as the flags that make it, such as `--reason 'Max%' --limit 5`.
// It may hold text from a message (an id, a session).
func (s Selection) String() string {
	var b strings.Builder
	flag := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, " --%s %s", name, ShellQuote(value))
		}
	}
	if s.All {
		b.WriteString(" --all")
	}
	flag("where", s.Where)
	flag("text", s.Text)
	flag("reason", s.Reason)
	flag("jq", s.JQ)
	flag("group", s.Group)
	flag("since", s.Since)
	flag("until", s.Until)
	if s.Session != nil {
		fmt.Fprintf(&b, " --session %s", ShellQuote(*s.Session))
	}
	for _, id := range s.IDs {
		fmt.Fprintf(&b, " --id %s", ShellQuote(id))
	}
	for _, seq := range s.Seqs {
		fmt.Fprintf(&b, " --seq %d", seq)
	}
	if s.Limit > 0 {
		fmt.Fprintf(&b, " --limit %d", s.Limit)
	}
	return strings.TrimPrefix(b.String(), " ")
}

// ShellQuote writes s as one word of a POSIX shell, so that a command can be shown and typed.
func ShellQuote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/%+@,="
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Compile checks the texts and freezes relative times against now. An error in Where is a
// [*sqlfilter.Error], with the position and the nearest valid form. The result may be used
// concurrently.
func (s Selection) Compile(now time.Time) (*Query, error) {
	q := &Query{words: searchWords(s.Text)}
	var err error
	if s.Where != "" {
		if q.where, err = sqlfilter.Compile(s.Where, sqlfilter.SelectionNames(), nil); err != nil {
			return nil, err
		}
	}
	if s.Reason != "" {
		if q.reason, err = sqlfilter.CompilePattern(s.Reason, sqlfilter.PatternOptions{FoldCase: true}); err != nil {
			return nil, fmt.Errorf("reason: %w", err)
		}
	}
	if s.JQ != "" {
		if q.jq, err = compileJQ(s.JQ); err != nil {
			return nil, err
		}
	}
	if q.since, err = parseWhen("since", s.Since, now); err != nil {
		return nil, err
	}
	if q.until, err = parseWhen("until", s.Until, now); err != nil {
		return nil, err
	}
	if !q.since.IsZero() && !q.until.IsZero() && !q.since.Before(q.until) {
		return nil, fmt.Errorf("since %s is not before until %s; nothing can match", s.Since, s.Until)
	}
	if s.Limit < 0 {
		return nil, fmt.Errorf("limit %d is below 0", s.Limit)
	}
	s.Since, s.Until = formatWhen(q.since), formatWhen(q.until)
	q.selection = s
	q.ids, q.seqs = setOf(s.IDs), setOf(s.Seqs)
	return q, nil
}

func setOf[T comparable](list []T) map[T]bool {
	if len(list) == 0 {
		return nil
	}
	set := make(map[T]bool, len(list))
	for _, v := range list {
		set[v] = true
	}
	return set
}

func compileJQ(src string) (*gojq.Code, error) {
	parsed, err := gojq.Parse(src)
	if err != nil {
		return nil, fmt.Errorf("jq %q: %w", src, err)
	}
	// Neither the environment nor modules: a program sees the body and nothing else.
	code, err := gojq.Compile(parsed, gojq.WithEnvironLoader(func() []string { return nil }))
	if err != nil {
		return nil, fmt.Errorf("jq %q: %w", src, err)
	}
	return code, nil
}

// parseWhen reads a time, a date or an age before now. "" is the zero time.
func parseWhen(name, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	age, err := ParseAge(s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s %q is neither a time (2006-01-02T15:04:05Z, in UTC unless it says otherwise) nor an age (90s, 15m, 2h, 3d)", name, s)
	}
	return now.Add(-age).UTC(), nil
}

func formatWhen(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// ParseAge reads a duration as people write ages: like [time.ParseDuration], and also with days
// and weeks ("3d", "1d12h", "2w"). It is not negative.
func ParseAge(s string) (time.Duration, error) {
	var total time.Duration
	rest := s
	for _, unit := range []struct {
		letter byte
		of     time.Duration
	}{{'w', 7 * 24 * time.Hour}, {'d', 24 * time.Hour}} {
		i := strings.IndexByte(rest, unit.letter)
		if i < 0 {
			continue
		}
		n, err := strconv.ParseFloat(rest[:i], 64)
		if err != nil || !(n >= 0) || n*float64(unit.of) > float64(1<<61) { // "nan" is a number too
			return 0, fmt.Errorf("%q is no age; write 90s, 15m, 2h or 3d", s)
		}
		total += time.Duration(n * float64(unit.of))
		rest = rest[i+1:]
	}
	if rest != "" || s == "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 {
			return 0, fmt.Errorf("%q is no age; write 90s, 15m, 2h or 3d", s)
		}
		total += d
	}
	if total < 0 { // it went over the top
		return 0, fmt.Errorf("%q is too long an age", s)
	}
	return total, nil
}

// BySource reports whether the selection looks at where a dead letter came from.
func (s Selection) BySource() bool {
	return strings.Contains(strings.ToLower(s.Where), "deadlettersource")
}
