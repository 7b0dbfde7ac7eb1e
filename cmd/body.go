package cmd

import (
	"fmt"
	"strings"

	"dlq/backends/message"
	"dlq/backends/payload"
	"dlq/tui/textview"
)

// previewBytes is how much of a body a table shows.
const previewBytes = 120

// preview returns the beginning of a body for a table: its text, or what it is.
func preview(m *message.Message) string {
	p := payload.InspectMessage(m)
	text, ok := p.Text()
	if !ok {
		return "(" + p.Describe() + ")"
	}
	if len(text) > previewBytes {
		text = strings.ToValidUTF8(text[:previewBytes], "") + "…"
	}
	return text
}

// printBody writes the body decoded and laid out, or as a hex dump where that is all one
// can say. A body that was sent wrapped says in what.
func (a *app) printBody(m *message.Message) {
	p := payload.InspectMessage(m)
	a.out.WriteByte('\n')
	a.printHeading(fmt.Sprintf("body  %s, %s", p.Describe(), bytesText(bodySize(m))))
	for _, line := range bodyLines(p) {
		a.out.WriteString("  " + line + "\n")
	}
}

// bodyLines returns the harmless lines of a body.
func bodyLines(p payload.Payload) []string {
	content, laidOut := p.Pretty()
	if laidOut || p.Kind != payload.Protobuf && p.Kind != payload.Binary {
		return textview.SanitiseLines(string(content))
	}
	const width, perRow = 80, 16
	dump := textview.NewHex(content)
	dump.SetSize(width, len(content)/perRow+1)
	return dump.Lines()
}
