package resubmit

import "dlq/backends/message"

// FormatDocument writes m as text for an editor: its fields, its typed properties and its body,
// a binary body as base64. It is for an editor, not for a terminal: a text body is as it is,
// except that one with control characters counts as binary.
func FormatDocument(m *message.Message) []byte { return nil }

// ParseDocument reads what [FormatDocument] wrote for original and a person changed. What was not
// changed is taken from original, the body byte for byte; so is what has no text form. The
// result's broker-owned part is that of original. Errors name the line.
func ParseDocument(original *message.Message, doc []byte) (*message.Message, error) { return nil, nil }

// DiffText returns what differs between two versions of a message, as lines that begin with "-" or
// "+", in the form of [FormatDocument]. It is empty if nothing differs but what the broker
// owns. The lines hold text from the message: sanitise them before a terminal sees them.
func DiffText(before, after *message.Message) []string { return nil }
