package resubmit

import (
	"time"

	"dlq/backends/message"
)

// Signature is how a message failed, without what is particular to it.
type Signature struct {
	ID     string // stable hash of the other two: 8 characters, for --group
	Reason string // dead-letter reason, with known aliases unified; may be empty
	// Detail is the normalised cause: GUIDs, numbers, times, paths, URLs and quoted ids are
	// placeholders such as {guid}; a stack trace is exception type, message and first own frame.
	Detail string
}

// SignatureOf returns the failure signature of m. It uses the dead-letter reason and description,
// and the exception headers of NServiceBus and MassTransit, since a reason like
// MaxDeliveryCountExceeded names no cause. It does not look at the body, takes time linear in the
// size of the headers, and its IDs stay the same across versions.
func SignatureOf(m *message.Message) Signature { return Signature{} }

// Group is the messages that share a signature.
type Group struct {
	Signature
	Count       int64
	First, Last time.Time // earliest and latest enqueued time
	SampleSeq   int64     // the newest message
	SampleID    string
}

// Grouper counts signatures. Its memory grows with the number of groups, not of messages.
// It is not safe for concurrent use.
type Grouper struct{}

// NewGrouper returns an empty Grouper.
func NewGrouper() *Grouper { return &Grouper{} }

// Add counts one message. Its body may be left out.
func (g *Grouper) Add(m *message.Message) {}

// Groups returns what was counted, most frequent first.
func (g *Grouper) Groups() []Group { return nil }
