package resubmit

import (
	"time"
)

// Selection says which messages, as text: what the flags of a command or the filter line of the
// UI say. All that is set must hold at once. The zero value selects nothing by itself:
// see [Selection.Empty].
type Selection struct {
	Where  string // Service Bus SQL filter with the names of sqlfilter.SelectionNames
	Text   string // words, each of which must occur in body, reason, description, id or subject, without case
	Reason string // dead-letter reason: exact or a LIKE pattern, without case
	JQ     string // keep messages whose JSON body makes it true
	Group  string // ID of a Signature
	Since  string // RFC 3339 time, date, or age such as "2h" or "3d": enqueued at or after
	Until  string // the same: enqueued before
	// Session keeps the messages of one session; a pointer, because "" is a session too.
	Session *string
	IDs     []string // message ids in text form; any of them
	Seqs    []int64  // sequence numbers; any of them
	Limit   int      // at most that many, in sequence order; 0: no bound
	All     bool     // everything is meant: stands for "no narrowing on purpose"
}

// Empty reports whether nothing narrows the selection and All is not set: then a command that
// changes something must refuse. A limit alone does not narrow.
func (s Selection) Empty() bool {
	return !s.All && !s.narrows()
}

func (s Selection) narrows() bool {
	return s.Where != "" || s.Text != "" || s.Reason != "" || s.JQ != "" || s.Group != "" || s.Since != "" ||
		s.Until != "" || s.Session != nil || len(s.IDs) > 0 || len(s.Seqs) > 0
}

// String returns the selection as the flags that make it, such as `--reason 'Max%' --limit 5`.
// It may hold text from a message (an id, a reason).
func (s Selection) String() string { return "" }

// Compile checks the texts and freezes relative times against now. An error in an expression
// carries the position and, where known, the nearest valid form. The result may be used
// concurrently.
func (s Selection) Compile(now time.Time) (*Query, error) { return nil, nil }

// ParseFilter reads the filter line of the UI, which is the same language: shorthands
// (reason:TEXT group:ID id:ID seq:N session:ID since:2h until:1h limit:N, with a value in double
// quotes where it holds spaces), and the rest either a --where expression or words to search for.
// Words become [Selection.Text]. The empty line is the zero Selection with All set.
func ParseFilter(line string) (Selection, error) { return Selection{}, nil }
