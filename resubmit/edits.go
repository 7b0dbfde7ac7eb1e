package resubmit

import (
	"dlq/backends"
	"dlq/backends/message"
)

// IDPolicy says what message id a resubmitted message gets.
type IDPolicy string

const (
	// IDAuto keeps the id unless the destination detects duplicates and would drop it.
	IDAuto IDPolicy = "auto"
	// IDKeep keeps the id.
	IDKeep IDPolicy = "keep"
	// IDNew makes a new id from job, entity and sequence number: the same each time for
	// the same job. The old one is kept in the application property [OriginalIDProperty].
	IDNew IDPolicy = "new"
)

// OriginalIDProperty is the application property that keeps the id a message had before it got a new one.
const OriginalIDProperty = "DlqOriginalMessageId"

// Edits are the changes to make to each message on its way. The zero value changes nothing.
type Edits struct {
	Set       []message.Attribute // application properties to set, in order
	Unset     []string            // application properties to remove; removing what is not there is no error
	BodyJQ    string              // jq program that makes the new JSON body from the old one
	Body      *[]byte             // new body, as one data section; not together with BodyJQ
	MessageID IDPolicy            // "" is IDAuto
}

// Empty reports whether messages go out as they are.
func (e Edits) Empty() bool {
	return len(e.Set) == 0 && len(e.Unset) == 0 && e.BodyJQ == "" && e.Body == nil && e.MessageID != IDNew
}

// Compile checks the edits. job and from go into new message ids.
func (e Edits) Compile(job string, from backends.EntityID) (*Transform, error) { return nil, nil }

// Transform is compiled [Edits]. It may be used concurrently.
type Transform struct{}

// Apply returns the message to send for m, which is not changed: [Outgoing], then the edits. An error
// means that an edit cannot be applied to this message; it must then be left alone.
func (t *Transform) Apply(m *message.Message) (*message.Message, error) { return nil, nil }

// Outgoing returns m as it is to be sent again.
func Outgoing(m *message.Message) *message.Message { return nil }
