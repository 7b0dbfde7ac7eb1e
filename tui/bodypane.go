package tui

import (
	"dlq/backends/message"
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

// bodyPane shows a body in one of three ways. It looks at no more of it than the screen
// needs, however large it is.
type bodyPane struct {
	mode    bodyMode
	raw     []byte
	size    int64
	decoded decoding

	texts [2]*textview.View // decoded and text
	hex   *textview.Hex
}

// decoding is a body made readable.
type decoding struct {
	content []byte
	layers  string // what was taken off to get there, such as "gzip → JSON"
}

func newBodyPane(m *message.Message, mode bodyMode) *bodyPane {
	p := &bodyPane{mode: mode, raw: m.Body.Bytes(), size: int64(m.Body.Len()), decoded: decodeBody(m)}
	p.texts = [2]*textview.View{textview.NewView(p.decoded.content), textview.NewView(p.raw)}
	p.hex = textview.NewHex(p.raw)
	return p
}

func (p *bodyPane) nextMode() { p.mode = (p.mode + 1) % bodyModes }

// describe says what the body is: its size and what it is made of.
func (p *bodyPane) describe() string {
	if p.size == 0 {
		return "empty"
	}
	text := bytesText(p.size)
	if p.decoded.layers != "" {
		text += "  " + p.decoded.layers
	}
	return text
}

func (p *bodyPane) setSize(width, height int) {
	for _, v := range p.texts {
		v.SetSize(width, height)
	}
	p.hex.SetSize(width, height)
}

func (p *bodyPane) view() mover {
	if p.mode == hexBody {
		return p.hex
	}
	return p.texts[p.mode]
}

func (p *bodyPane) lines() []string {
	if p.mode == hexBody {
		return p.hex.Lines()
	}
	return p.texts[p.mode].Lines()
}
