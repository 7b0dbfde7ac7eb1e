package resubmit

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"

	"dlq/backends/message"
	"dlq/backends/sqlfilter"
)

// bodyView is a message's body as a selection sees it; what is costly is done once.
type bodyView struct {
	m       *message.Message
	decoded bool
	value   any
	isJSON  bool
	folded  *string
}

func newBodyView(m *message.Message) *bodyView { return &bodyView{m: m} }

func (b *bodyView) text() (string, bool) {
	raw := b.m.Body.Bytes()
	return string(raw), utf8.Valid(raw)
}

// lower returns the text in lower case, "" when the body is no text.
func (b *bodyView) lower() string {
	if b.folded == nil {
		s, _ := b.text()
		s = strings.ToLower(s)
		b.folded = &s
	}
	return *b.folded
}

func (b *bodyView) json() (any, bool) {
	if !b.decoded {
		b.decoded = true
		b.value, b.isJSON = decodeJSON(b.m.Body.Bytes())
	}
	return b.value, b.isJSON
}

func (b *bodyView) path(p sqlfilter.Path) (message.Value, bool) {
	return nil, false
}

// decodeJSON reads one JSON value with its numbers as they are written.
func decodeJSON(b []byte) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return v, err == io.EOF
}
