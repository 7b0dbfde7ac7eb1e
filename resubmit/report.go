package resubmit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dlq/backends"
)

// Item names one message of a job, and why it is named.
type Item struct {
	Seq    int64 // 0: the service has none
	ID     string
	Reason string // empty when it was simply done or is left; may hold text from a server
}

// Progress is how far a run is.
type Progress struct {
	Job                        string
	Done, Total                int64 // of the whole job, also when it was resumed
	Skipped, Uncertain, Failed int64
	Rate                       float64       // messages per second since this process began
	ETA                        time.Duration // 0: not known
}

// Report accounts for every message of a job:
//
//	Matched = Done + Left + len(Skipped) + len(Failed) + len(Uncertain) + Lost
//
// It is computed from the journal as it is on disk.
type Report struct {
	Job     string
	Kind    Kind
	Copy    bool
	From    backends.EntityID
	State   State
	Matched int64
	Done    int64
	Left    int64  // not tried, or moved in one step whose outcome Resume finds out: never in two places
	Skipped []Item // left alone for a reason: gone, changed, an edit does not apply, refused by the destination
	Failed  []Item // tried in vain: still where they were; Resume tries them again
	// Uncertain are possibly twice: sent or maybe sent, and not certainly removed at the source.
	Uncertain []Item
	// Lost is how many messages are neither accounted for by the journal nor where the journal says they
	// are; LostItems names those that are known by name. Checked says whether the source
	// was looked at for that; where it was not, Lost is what the journal alone shows.
	Lost      int64
	LostItems []Item
	Checked   bool

	Newcomers    int64 // messages that match but arrived after the plan; not touched
	Destinations []Destination
	Created      []backends.EntityID // destinations that were made
	Backup       string
	Restores     string // the job that this one restores
	Elapsed      time.Duration
	Interrupted  bool   // by a cancelled context
	Cancelled    bool   // by Journals.Cancel
	Stopped      string // the error that ended the run early; empty if none
}

// Partly reports whether there is something to look at: messages that were skipped, failed, uncertain or lost.
func (r Report) Partly() bool {
	return len(r.Skipped)+len(r.Failed)+len(r.Uncertain) > 0 || r.Lost != 0
}

// Summary says the report in one line, such as
// "moved 812, left 188, lost 0, possibly twice 1 (seq 77)".
func (r Report) Summary() string {
	parts := []string{
		fmt.Sprintf("%s %d%s", r.verb(), r.Done, r.toNobody()), fmt.Sprintf("left %d", r.Left),
		fmt.Sprintf("lost %d%s", r.Lost, names(r.LostItems)),
	}
	if n := len(r.Uncertain); n > 0 {
		parts = append(parts, fmt.Sprintf("possibly twice %d%s", n, names(r.Uncertain)))
	}
	if n := len(r.Failed); n > 0 {
		parts = append(parts, fmt.Sprintf("failed %d%s", n, names(r.Failed)))
	}
	if n := len(r.Skipped); n > 0 {
		parts = append(parts, fmt.Sprintf("skipped %d%s", n, names(r.Skipped)))
	}
	if r.Newcomers > 0 {
		parts = append(parts, fmt.Sprintf("arrived meanwhile %d (not touched)", r.Newcomers))
	}
	return strings.Join(parts, ", ")
}

// toNobody says how many of the messages a topic has dropped.
func (r Report) toNobody() string {
	var n int64
	for _, d := range r.Destinations {
		n += d.Unrouted
	}
	switch {
	case n == 0 || r.Done == 0:
		return ""
	case r.Done < r.Matched:
		return fmt.Sprintf(" (up to %d of them to nobody, since no rule lets them through)", min(n, r.Done))
	}
	return fmt.Sprintf(" (%d of them to nobody, since no rule lets them through)", n)
}

func (r Report) verb() string {
	switch {
	case r.Copy:
		return "copied"
	case r.Kind == Complete:
		return "completed"
	case r.Kind == Purge:
		return "purged"
	case r.Kind == Restoring:
		return "restored"
	}
	return "moved"
}

// names lists the first few items by sequence number, or by id where there is none.
func names(items []Item) string {
	const shown = 5
	if len(items) == 0 {
		return ""
	}
	var b strings.Builder
	for i, it := range items[:min(len(items), shown)] {
		switch {
		case i > 0:
			b.WriteString(", ")
		case it.Seq != 0:
			b.WriteString(" (seq ")
		default:
			b.WriteString(" (id ")
		}
		if it.Seq != 0 {
			b.WriteString(strconv.FormatInt(it.Seq, 10))
		} else {
			b.WriteString(strconv.Quote(it.ID))
		}
	}
	if len(items) > shown {
		b.WriteString(", …")
	}
	return b.String() + ")"
}

// neverBegun is why a job stopped whose plan is not whole.
const neverBegun = "the death of the process while it wrote the plan: never begun, no message was touched"

// Reasons for items whose journal ends before their outcome.
const (
	reasonSent    = "sent, but the original was not removed yet; dlq jobs resume removes it"
	reasonUnknown = "begun, but the outcome is not known; dlq jobs resume finds out"
)

// item names an item of the ledger.
func (l *ledger) item(i int) Item {
	it := l.items[i]
	return Item{Seq: it.seq, ID: it.id, Reason: l.notes[i]}
}

// report accounts for every item of the ledger. What is in flight of a running job counts as left.
func (l *ledger) report(running bool) Report {
	h := l.header
	r := Report{
		Job: h.ID, Kind: h.Kind, Copy: h.Copy, From: h.From, Matched: h.Matched, Destinations: h.Destinations,
		Backup: h.Backup, Restores: h.Restores,
	}
	if !l.begun {
		r.Left = r.Matched
		if l.judge(&r, running); !running {
			r.Stopped = neverBegun
		}
		return r
	}
	missing := map[int]bool{}
	if l.end != nil {
		r.Newcomers, r.Checked, r.Created, r.Stopped = l.end.Newcomers, l.end.Checked, l.end.Created, l.end.Stopped
		for _, i := range l.end.Lost {
			missing[i] = true
		}
	}
	for i, it := range l.items {
		named := l.item(i)
		switch {
		case missing[i]:
			named.Reason = "neither done by this job nor where it was; somebody else may have taken it"
			r.LostItems = append(r.LostItems, named)
		case it.state == done:
			r.Done++
		case it.state == planned, it.state == intent && it.atomic, running && (it.state == intent || it.state == sent):
			r.Left++
		case it.state == skipped:
			r.Skipped = append(r.Skipped, named)
		case it.state == failed:
			r.Failed = append(r.Failed, named)
		default:
			named.Reason = openReason(it.state, named.Reason)
			r.Uncertain = append(r.Uncertain, named)
		}
	}
	r.Lost = r.Matched - r.Done - r.Left - int64(len(r.Skipped)+len(r.Failed)+len(r.Uncertain))
	l.judge(&r, running)
	return r
}

func openReason(s itemState, note string) string {
	switch {
	case note != "":
		return note
	case s == sent:
		return reasonSent
	}
	return reasonUnknown
}

// judge derives the state of the job.
func (l *ledger) judge(r *Report, running bool) {
	switch {
	case running:
		r.State = Running
	case l.end == nil:
		r.State = CutOff
	case l.end.State == Cancelled || l.end.State == Interrupted:
		r.State = l.end.State
	case r.Partly():
		r.State = Partly
	default:
		r.State = Finished
	}
	r.Cancelled = r.State == Cancelled
	r.Interrupted = r.State == Interrupted && r.Stopped == ""
	if l.end != nil && len(l.starts) > 0 {
		r.Elapsed = l.end.At.Sub(l.starts[len(l.starts)-1].At)
	}
}
