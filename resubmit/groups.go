package resubmit

import (
	"cmp"
	"slices"
	"time"

	"dlq/backends/message"
)

// Group is the messages that share a signature.
type Group struct {
	Signature
	Count       int64
	First, Last time.Time // earliest and latest enqueued time
	SampleSeq   int64     // of the newest message
	SampleID    string
}

// Grouper counts signatures. Its memory grows with the number of groups, not of messages.
// It is not safe for concurrent use.
type Grouper struct{ groups map[string]*Group }

// NewGrouper returns an empty Grouper.
func NewGrouper() *Grouper { return &Grouper{groups: map[string]*Group{}} }

// Add counts one message and returns its signature. The body may be left out.
func (g *Grouper) Add(m *message.Message) Signature {
	sig := SignatureOf(m)
	group := g.groups[sig.ID]
	if group == nil {
		group = &Group{Signature: sig}
		g.groups[sig.ID] = group
	}
	group.Count++
	at := m.Broker.EnqueuedTime
	if group.Count == 1 || at.Before(group.First) {
		group.First = at
	}
	if group.Count == 1 || !at.Before(group.Last) {
		group.Last = at
		group.SampleSeq, group.SampleID = m.Broker.SequenceNumber, message.FormatValue(m.ID)
	}
	return sig
}

// Groups returns what was counted, most frequent first, then the most recent.
func (g *Grouper) Groups() []Group {
	out := make([]Group, 0, len(g.groups))
	for _, group := range g.groups {
		out = append(out, *group)
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID))
	})
	return out
}
