package tui

import (
	"dlq/backends/message"
	"dlq/backends/payload"
	"dlq/tui/textview"
)

// bodyMode is how a body is shown.
type bodyMode uint8

const (
	decodedBody bodyMode = iota // its layers taken off, and laid out for reading
	textBody                    // its bytes as text
	hexBody                     // its bytes
	bodyModes
)

func (m bodyMode) String() string { return [...]string{"decoded", "text", "hex"}[m] }

// window shows bytes of any length, as much of them as fits on the screen.
type window interface {
	mover
	SetSize(width, height int)
	Lines() []string
}

// bodyPane shows a body in one of three ways.
type bodyPane struct {
	mode    bodyMode
	about   string // what the body is, in words
	windows [bodyModes]window
}

// newBodyPane takes a body apart. It may take as long as the body is large, so it is
// called outside Update.
func newBodyPane(m *message.Message) *bodyPane {
	raw := m.Body.Bytes()
	p := payload.InspectMessage(m)
	pane := &bodyPane{about: bytesText(int64(m.Body.Len())) + "  " + p.Describe()}
	switch {
	case m.Broker.BodyOmitted:
		pane.about = "not loaded"
	case len(m.Body.Sections) == 0:
		pane.about = "no body"
	}
	content, _ := p.Pretty()
	pane.windows = [bodyModes]window{textview.NewView(content), textview.NewView(raw), textview.NewHex(raw)}
	if p.Kind == payload.Binary { // as text it would be noise
		pane.windows[decodedBody] = textview.NewHex(content)
	}
	return pane
}

func (p *bodyPane) nextMode() { p.mode = (p.mode + 1) % bodyModes }

func (p *bodyPane) setSize(width, height int) {
	for _, w := range p.windows {
		w.SetSize(width, height)
	}
}

func (p *bodyPane) window() window { return p.windows[p.mode] }
