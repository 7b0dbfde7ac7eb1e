package payload

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"

	"dlq/backends/amqp"
	"dlq/backends/message"
)

// renderAMQP returns what a person would take for the content of a value or sequence body:
// the text of a string, the bytes of a binary, and JSON for everything else.
func renderAMQP(b message.Body) ([]byte, bool) {
	var items message.List
	for _, section := range b.Sections {
		v, rest, err := amqp.DecodeValue(section)
		if err != nil || len(rest) > 0 {
			return nil, false
		}
		if list, ok := v.(message.List); ok && b.Kind == message.Sequence {
			items = append(items, list...) // the sections of a sequence are one list (part 3, 3.2.7)
		} else {
			items = append(items, v)
		}
	}
	if b.Kind == message.Sequence {
		return appendJSON(nil, items), true
	}
	if len(items) != 1 {
		return nil, false
	}
	switch v := items[0].(type) {
	case message.String:
		return []byte(v), true
	case message.Symbol:
		return []byte(v), true
	case message.Binary:
		return v, true
	}
	return appendJSON(nil, items[0]), true
}

// appendJSON renders v as the JSON that a person would write for it. Types get lost; it is
// for reading and searching only. The depth of v is bounded by its decoder.
func appendJSON(dst []byte, v message.Value) []byte {
	switch v := v.(type) {
	case message.Bool, message.Null:
		return append(dst, message.FormatValue(v)...)
	case message.Ulong:
		return strconv.AppendUint(dst, uint64(v), 10)
	case message.Float:
		return appendFloat(dst, float64(v), 32)
	case message.Double:
		return appendFloat(dst, float64(v), 64)
	case message.Binary:
		return appendQuoted(dst, base64.StdEncoding.EncodeToString(v))
	case message.List:
		return appendArray(dst, v)
	case message.Array:
		return appendArray(dst, v.Items)
	case message.Map:
		dst = append(dst, '{')
		for i, p := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendQuoted(dst, message.FormatValue(p.Key)), ':')
			dst = appendJSON(dst, p.Value)
		}
		return append(dst, '}')
	case message.Described:
		dst = append(appendQuoted(append(dst, '{'), message.FormatValue(v.Descriptor)), ':')
		return append(appendJSON(dst, v.Value), '}')
	}
	if n, ok := message.Integer(v); ok {
		return strconv.AppendInt(dst, n, 10)
	}
	return appendQuoted(dst, message.FormatValue(v))
}

func appendArray(dst []byte, items []message.Value) []byte {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(dst, item)
	}
	return append(dst, ']')
}

func appendFloat(dst []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return appendQuoted(dst, strconv.FormatFloat(f, 'g', -1, bits))
	}
	return strconv.AppendFloat(dst, f, 'g', -1, bits)
}

func appendQuoted(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		return append(dst, `""`...)
	}
	return append(dst, b...)
}
