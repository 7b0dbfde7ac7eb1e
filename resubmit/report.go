package resubmit

import (
	"time"

	"dlq/backends"
)

// Item names one message of a job, and why it is named.
type Item struct {
	Seq    int64
	ID     string
	Reason string // empty when it was simply done or is left; may hold text from a server
}

// Progress is how far a run is.
type Progress struct {
	Job                        string
	Done, Total                int64
	Skipped, Uncertain, Failed int64
	Rate                       float64       // messages per second lately
	ETA                        time.Duration // 0: not known
}

// Report accounts for every message of a job:
// Matched = Done + Left + len(Skipped) + len(Uncertain) + len(Failed) + Lost.
// It is computed from the journal as it is on disk.
type Report struct {
	Job       string
	Kind      Kind
	From      backends.EntityID
	State     State
	Matched   int64
	Done      int64
	Left      int64  // not tried: still where they were
	Skipped   []Item // not tried for a reason: gone, changed, an edit does not apply, refused by the destination
	Failed    []Item // tried in vain: still where they were; Resume tries them again
	Uncertain []Item // possibly twice: sent or maybe sent, and not certainly removed at the source
	// Lost is how many messages are neither accounted for by the journal nor where they should
	// be. LostItems names them. Checked says whether the source was looked at for that.
	Lost      int64
	LostItems []Item
	Checked   bool

	Newcomers    int64 // messages that match but arrived after the plan; not touched
	Destinations []Destination
	Created      []backends.EntityID // destinations that were made
	Backup       string
	Restored     string // the job that this one restores
	Elapsed      time.Duration
	Interrupted  bool   // by a cancelled context
	Cancelled    bool   // by Journals.Cancel
	Stopped      string // the error that ended the run early; empty if none. Resume goes on
}

// Partly reports whether something is to be looked at: skipped, failed, uncertain or lost.
func (r Report) Partly() bool {
	return len(r.Skipped)+len(r.Failed)+len(r.Uncertain) > 0 || r.Lost != 0
}

// Summary says the report in one line, such as "moved 812, left 188, lost 0, possibly twice 1 (seq 77)".
func (r Report) Summary() string { return "" }
