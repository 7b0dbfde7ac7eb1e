package resubmit

import (
	"strings"

	"dlq/backends/message"
)

// CauseOf returns the exception that the application's framework left in the headers of m, as
// "type: message" in one line without the stack trace, or "". A reason such as
// MaxDeliveryCountExceeded says only that there was one. The text is the sender's: sanitise it
// before a terminal sees it.
func CauseOf(m *message.Message) string {
	line, _, _ := strings.Cut(exceptionOf(m), "\n")
	return strings.TrimSuffix(line, "\r")
}
