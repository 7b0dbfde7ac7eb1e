package payload

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// MaxDecoded is how many bytes one body is decompressed to at most.
	MaxDecoded = 64 << 20

	// A body that expands more than maxRatio times beyond the first expandFreely bytes is
	// taken for a bomb. Logs and JSON reach 50, and only runs of one byte more than 256.
	maxRatio     = 256
	expandFreely = 1 << 20
)

func isGzip(b []byte) bool { return len(b) >= 18 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8 }

// isZlib looks at the header (RFC 1950) and, since that is two bytes, at the first bytes
// behind it.
func isZlib(b []byte) bool {
	if len(b) < 8 || b[0]&0x0f != 8 || b[0]>>4 > 7 || binary.BigEndian.Uint16(b)%31 != 0 || b[1]&0x20 != 0 {
		return false
	}
	r := flate.NewReader(bytes.NewReader(b[2:]))
	_, err := io.ReadFull(r, make([]byte, 16))
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && len(b) < 64
}

// decompress takes off gzip and zlib by their headers, and deflate, which has none, where
// it is declared.
func (in *inspector) decompress(b []byte) (inner []byte, layer string) {
	switch {
	case isGzip(b):
		if inner, ok := in.inflate(len(b), func() (io.Reader, error) { return gzip.NewReader(bytes.NewReader(b)) }); ok {
			return inner, "gzip"
		}
	case isZlib(b):
		if inner, ok := in.inflate(len(b), func() (io.Reader, error) { return zlib.NewReader(bytes.NewReader(b)) }); ok {
			return inner, "zlib"
		}
	case in.encoding == "deflate" && len(b) > 0 && len(in.layers) == 0:
		if inner, ok := in.inflate(len(b), func() (io.Reader, error) { return flate.NewReader(bytes.NewReader(b)), nil }); ok {
			return inner, "deflate"
		}
	}
	return nil, ""
}

// inflate reads what open decompresses from size bytes, up to the limits. ok is false for a
// damaged stream: half of one is not shown as if it were the whole.
func (in *inspector) inflate(size int, open func() (io.Reader, error)) (out []byte, ok bool) {
	r, err := open()
	if err != nil {
		return nil, false
	}
	limit := in.budget
	if size < (limit-expandFreely)/maxRatio {
		limit = expandFreely + maxRatio*size
	}
	out, err = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, false
	}
	if len(out) > limit {
		out, in.truncated = out[:limit], true
	}
	in.budget -= len(out)
	return out, true
}

// .NET's BrokeredMessage and Functions wrap what is not a stream into binary XML
// ([MC-NBFX]): an element, its namespace, then text records. These are the two that occur.
const (
	dataContractString = "@\x06string\x083http://schemas.microsoft.com/2003/10/Serialization/"
	dataContractBytes  = "@\x0cbase64Binary\x083http://schemas.microsoft.com/2003/10/Serialization/"
)

// dataContract takes off the element around a string or a byte array. Its text may come in
// several records; a record of an odd number ends the element.
func dataContract(b []byte) (inner []byte, layer string) {
	const (
		endElement = 0x01
		chars8     = 0x98 // UTF-8 with a length of 1, 2 or 4 bytes: 98, 9A, 9C
		bytes8     = 0x9e // the same for bytes: 9E, A0, A2
		emptyText  = 0xa8
	)
	first := byte(chars8)
	if rest, ok := bytes.CutPrefix(b, []byte(dataContractString)); ok {
		b, layer = rest, "DataContract string"
	} else if rest, ok := bytes.CutPrefix(b, []byte(dataContractBytes)); ok {
		b, layer, first = rest, "DataContract bytes", bytes8
	} else {
		return nil, ""
	}
	for ended := false; !ended; {
		if len(b) == 0 {
			return nil, ""
		}
		record := b[0]
		b, ended = b[1:], record&1 == 1
		var n, width int
		switch even := record &^ 1; {
		case record == endElement, even == emptyText:
			continue
		case even == first:
			width = 1
		case even == first+2:
			width = 2
		case even == first+4:
			width = 4
		default:
			return nil, ""
		}
		if len(b) < width {
			return nil, ""
		}
		for i := width - 1; i >= 0; i-- {
			n = n<<8 | int(b[i])
		}
		if b = b[width:]; n < 0 || n > len(b) {
			return nil, ""
		}
		inner = append(inner, b[:n]...)
		b = b[n:]
	}
	if len(b) > 0 { // something else is behind: not the plain wrapper
		return nil, ""
	}
	return inner, layer
}

// fromUTF16 decodes UTF-16 with a byte order mark, or declared, or (.NET writes it without
// either) obviously the ASCII of something structured.
func fromUTF16(b []byte, contentType string) ([]byte, bool) {
	if len(b) < 4 || len(b)%2 != 0 {
		return nil, false
	}
	var order binary.ByteOrder = binary.LittleEndian
	marked := true
	switch {
	case b[0] == 0xff && b[1] == 0xfe:
		b = b[2:]
	case b[0] == 0xfe && b[1] == 0xff:
		order, b = binary.BigEndian, b[2:]
	default:
		marked = strings.Contains(contentType, "utf-16")
		if !marked && (b[1] != 0 || strings.IndexByte("<{[\"", b[0]) < 0) {
			return nil, false
		}
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	out := make([]byte, 0, len(b))
	for _, r := range utf16.Decode(units) {
		if r == utf8.RuneError || r == 0 {
			return nil, false
		}
		out = utf8.AppendRune(out, r)
	}
	return out, marked || recognised(out)
}

// unquote returns the text of a JSON string that stands alone.
func unquote(b []byte) ([]byte, bool) {
	b = trimText(b)
	if len(b) < 2 || b[0] != '"' || !validJSON(b) {
		return nil, false
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return nil, false
	}
	return []byte(s), true
}

// minBase64 is how long a text must be before it is tried as base64: any word of the
// right length is base64 of something.
const minBase64 = 24

// decodeBase64 decodes b if all of it is base64 of the usual or the URL alphabet, padded or
// not, perhaps broken into lines.
func decodeBase64(b []byte) ([]byte, bool) {
	b = bytes.TrimSpace(b)
	if len(b) < minBase64 {
		return nil, false
	}
	clean, url, lines := len(b), false, false
	for i, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/':
		case c == '-', c == '_':
			url = true
		case c == '\n', c == '\r':
			lines = true
		case c == '=' && i >= len(b)-2:
			clean--
		default:
			return nil, false
		}
	}
	text := b[:clean]
	if lines {
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\n"), nil), []byte("\r"), nil)
	}
	encoding := base64.RawStdEncoding
	if url {
		encoding = base64.RawURLEncoding
	}
	out := make([]byte, encoding.DecodedLen(len(text)))
	n, err := encoding.Strict().Decode(out, text)
	return out[:n], err == nil && n > 0
}
