package resubmit

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"dlq/backends/message"
	"dlq/backends/payload"
	"dlq/backends/sqlfilter"
)

// bodyView is a message's body as a selection sees it: without compression and wrapping. What
// is costly is done once, and only when it is asked for.
type bodyView struct {
	m       *message.Message
	payload *payload.Payload
	value   any // decoded JSON
	isJSON  bool
	decoded bool
	folded  *string
}

func newBodyView(m *message.Message) *bodyView { return &bodyView{m: m} }

func (b *bodyView) inspect() *payload.Payload {
	if b.payload == nil {
		p := payload.InspectMessage(b.m)
		b.payload = &p
	}
	return b.payload
}

func (b *bodyView) text() (string, bool) { return b.inspect().Text() }

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
		if raw, ok := b.inspect().JSON(); ok {
			b.value, b.isJSON = decodeJSON(raw)
		}
	}
	return b.value, b.isJSON
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

// path returns the value at a path, for the names body.$… of a selection.
func (b *bodyView) path(p sqlfilter.Path) (message.Value, bool) {
	doc, ok := b.inspect().JSON()
	if !ok {
		return nil, false
	}
	steps := make([]payload.Step, len(p))
	for i, s := range p {
		steps[i] = payload.Step(s)
	}
	raw, ok := payload.Find(doc, steps)
	if !ok {
		return nil, false
	}
	return jsonValue(raw), true
}

// jsonValue returns a JSON value as a filter compares it: an object or array is its text.
func jsonValue(raw []byte) message.Value {
	if raw[0] == '{' || raw[0] == '[' {
		return message.String(raw)
	}
	v, _ := decodeJSON(raw)
	switch v := v.(type) {
	case bool:
		return message.Bool(v)
	case string:
		return message.String(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return message.Long(n)
		}
		f, _ := v.Float64() // beyond the range it is an infinity, which compares as one
		return message.Double(f)
	}
	return message.Null{}
}
