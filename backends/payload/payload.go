package payload

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"dlq/backends/message"
)

// MaxLayers is how many layers are taken off at most.
const MaxLayers = 4

// Kind is what a payload is once its layers are off.
type Kind uint8

const (
	Empty    Kind = iota // no bytes at all
	JSON                 // an object or array, or any JSON value that is declared as JSON
	XML                  // well-formed as far as its tags go
	Text                 // any other UTF-8
	Protobuf             // bytes that read as protobuf fields; a guess, as the format has no mark
	Binary               // anything else
)

func (k Kind) String() string {
	switch k {
	case Empty:
		return "empty"
	case JSON:
		return "JSON"
	case XML:
		return "XML"
	case Text:
		return "text"
	case Protobuf:
		return "protobuf"
	case Binary:
		return "binary"
	}
	return "unknown"
}

// Payload is a body without its layers.
type Payload struct {
	Kind Kind
	// Layers names what was taken off, outermost first: "AMQP value", "DataContract string",
	// "DataContract bytes", "gzip", "zlib", "deflate", "base64", "JSON string", "UTF-16".
	Layers []string
	// Content is what was inside of the innermost layer. Read-only: it may share memory
	// with the body.
	Content []byte
	// Truncated says that Content is only the beginning, because it expands beyond the
	// limits. Such a payload is shown, but neither searched nor read as JSON: an answer from
	// half of it would be wrong.
	Truncated bool

	json bool // Content is one JSON value
}

// Inspect takes the layers off a body. The content type and encoding are what the sender
// declared, or "": they are believed only as far as the bytes agree. It never fails; a body
// that makes no sense is [Binary].
func Inspect(b message.Body, contentType, contentEncoding string) Payload {
	in := inspector{
		contentType: strings.ToLower(contentType),
		encoding:    strings.ToLower(strings.TrimSpace(contentEncoding)),
		budget:      MaxDecoded,
	}
	content := b.Bytes()
	if b.Kind != message.Data {
		if decoded, ok := renderAMQP(b); ok {
			in.layers = append(in.layers, "AMQP "+b.Kind.String())
			content = decoded
		}
	}
	return in.inspect(content)
}

// InspectMessage is [Inspect] for the body of m and what m declares about it.
func InspectMessage(m *message.Message) Payload {
	return Inspect(m.Body, message.Str(m.ContentType), message.Str(m.ContentEncoding))
}

// Describe names the layers and the kind: "gzip → JSON".
func (p Payload) Describe() string {
	s := strings.Join(append(slices.Clone(p.Layers), p.Kind.String()), " → ")
	if p.Truncated {
		s += " (the beginning)"
	}
	return s
}

// Text returns the content for a text search; ok is false if it is not text, or not whole.
func (p Payload) Text() (s string, ok bool) {
	switch {
	case p.Kind == Empty:
		return "", true
	case p.Truncated, p.Kind == Protobuf, p.Kind == Binary, !utf8.Valid(p.Content):
		return "", false
	}
	return string(p.Content), true
}

// JSON returns the content if it is one JSON value, as it is written: numbers have all
// their digits. Also a bare number or string counts, which Kind calls text unless it is
// declared as JSON.
func (p Payload) JSON() (raw []byte, ok bool) {
	if !p.json {
		return nil, false
	}
	return p.Content, true
}

// inspector takes off one layer after the other.
type inspector struct {
	contentType, encoding string
	layers                []string
	budget                int // bytes that may still be decompressed
	truncated             bool
}

func (in *inspector) inspect(content []byte) Payload {
	for len(in.layers) < MaxLayers {
		inner, layer := in.unwrap(content)
		if layer == "" {
			break
		}
		in.layers = append(in.layers, layer)
		content = inner
	}
	p := Payload{Layers: in.layers, Content: content, Truncated: in.truncated}
	p.Kind, p.json = in.classify(content)
	p.json = p.json && !p.Truncated
	if p.Kind == JSON || p.Kind == XML || p.Kind == Text {
		p.Content = bytes.TrimPrefix(content, []byte(byteOrderMark))
	}
	return p
}

// unwrap takes the outermost layer off, or returns "" if there is none.
func (in *inspector) unwrap(b []byte) (inner []byte, layer string) {
	if inner, layer := in.decompress(b); layer != "" {
		return inner, layer
	}
	if inner, layer := dataContract(b); layer != "" {
		return inner, layer
	}
	if inner, ok := fromUTF16(b, in.contentType); ok {
		return inner, "UTF-16"
	}
	if inner, ok := unquote(b); ok && wrapped(inner) {
		return inner, "JSON string"
	}
	if inner, ok := decodeBase64(b); ok && (recognised(inner) || isPlainText(inner)) {
		return inner, "base64"
	}
	return nil, ""
}

// recognised reports whether b is beyond doubt something that a sender would have wrapped.
func recognised(b []byte) bool {
	return isGzip(b) || isZlib(b) || bytes.HasPrefix(b, []byte(dataContractString)) || bytes.HasPrefix(b, []byte(dataContractBytes)) || isStructured(b)
}

// wrapped is recognised for the content of a JSON string, in which bytes are base64.
func wrapped(b []byte) bool {
	if recognised(b) {
		return true
	}
	inner, ok := decodeBase64(b)
	return ok && recognised(inner)
}

// isStructured reports whether b is a JSON object or array, or XML.
func isStructured(b []byte) bool {
	b = trimText(b)
	if len(b) == 0 {
		return false
	}
	switch b[0] {
	case '{', '[':
		return validJSON(b)
	case '<':
		return isXML(b)
	}
	return false
}

const byteOrderMark = "\ufeff"

// trimText drops the byte order mark and the white space before a text.
func trimText(b []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(b, []byte(byteOrderMark)), " \t\r\n")
}

// classify says what content is, and whether it is JSON.
func (in *inspector) classify(content []byte) (kind Kind, isJSON bool) {
	trimmed := trimText(content)
	switch isJSON = validJSON(trimmed); {
	case len(content) == 0:
		return Empty, false
	case isJSON && (trimmed[0] == '{' || trimmed[0] == '[' || strings.Contains(in.contentType, "json")):
		return JSON, true
	case len(trimmed) > 0 && trimmed[0] == '<' && isXML(trimmed):
		return XML, false
	case strings.Contains(in.contentType, "protobuf") && isProtobuf(content):
		return Protobuf, false
	case isPlainText(content):
		return Text, isJSON
	case isProtobuf(content):
		return Protobuf, false
	case utf8.Valid(content) && bytes.IndexByte(content, 0) < 0:
		return Text, isJSON
	}
	return Binary, false
}

// isPlainText reports whether b is UTF-8 whose only control characters are those of a
// text file.
func isPlainText(b []byte) bool {
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\r' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(b)
}
