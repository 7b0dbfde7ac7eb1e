package tui

import "dlq/backends/message"

// decodeBody makes a body readable.
func decodeBody(m *message.Message) decoding { return decoding{content: m.Body.Bytes()} }
