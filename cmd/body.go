package cmd

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"dlq/backends/message"
	"dlq/tui/textview"
)

// previewBytes is how much of a body a table looks at.
const previewBytes = 120

// preview returns the beginning of a body for a table.
func preview(m *message.Message) string {
	b := m.Body.Bytes()
	text := string(b[:min(len(b), previewBytes)])
	if len(text) < len(b) {
		text = strings.ToValidUTF8(text, "") + "…"
	}
	return text
}

// printBody writes the body: as text where it is one, else as a hex dump.
func (a *app) printBody(m *message.Message) {
	a.out.WriteByte('\n')
	a.printHeading(fmt.Sprintf("body  %s, %s", m.Body.Kind, bytesText(bodySize(m))))
	b := m.Body.Bytes()
	if !utf8.Valid(b) {
		dump := textview.NewHex(b)
		dump.SetSize(80, len(b)/16+1)
		for _, line := range dump.Lines() {
			a.out.WriteString("  " + line + "\n")
		}
		return
	}
	for _, line := range textview.SanitiseLines(string(b)) {
		a.out.WriteString("  " + line + "\n")
	}
}
