package payload

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"unicode/utf8"
)

// The wire types of protobuf. Groups, which nobody uses any more, are not recognised:
// without them a guess is wrong less often.
const (
	wireVarint = 0
	wireI64    = 1
	wireBytes  = 2
	wireI32    = 5
)

const (
	maxFieldNumber   = 100_000 // the standard has 2^29, people do not; random bytes do
	maxProtobufDepth = 16
)

// field is one protobuf field on the wire.
type field struct {
	number uint64
	wire   uint64
	n      uint64 // the value of the numeric wire types
	bytes  []byte // that of wireBytes
}

// nextField splits the first field off b.
func nextField(b []byte) (f field, rest []byte, ok bool) {
	tag, b, ok := varint(b)
	f.number, f.wire = tag>>3, tag&7
	if !ok || f.number == 0 || f.number > maxFieldNumber {
		return f, nil, false
	}
	switch f.wire {
	case wireVarint:
		f.n, rest, ok = varint(b)
		return f, rest, ok
	case wireI64:
		if len(b) < 8 {
			return f, nil, false
		}
		f.n = binary.LittleEndian.Uint64(b)
		return f, b[8:], true
	case wireI32:
		if len(b) < 4 {
			return f, nil, false
		}
		f.n = uint64(binary.LittleEndian.Uint32(b))
		return f, b[4:], true
	case wireBytes:
		n, b, ok := varint(b)
		if !ok || n > uint64(len(b)) {
			return f, nil, false
		}
		f.bytes = b[:n]
		return f, b[n:], true
	}
	return f, nil, false
}

func varint(b []byte) (n uint64, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil, false
	}
	return n, b[size:], true
}

// isProtobuf reports whether b reads as fields from the first byte to the last.
func isProtobuf(b []byte) bool {
	const shortest = 2 // a tag and a value
	if len(b) < shortest {
		return false
	}
	for len(b) > 0 {
		var ok bool
		if _, b, ok = nextField(b); !ok {
			return false
		}
	}
	return true
}

// protobuf lays out fields by number. What a run of bytes is can only be guessed: text if it
// is printable, else fields, else bytes.
func (l *layout) protobuf(b []byte, depth int) bool {
	for len(b) > 0 {
		f, rest, ok := nextField(b)
		if !ok || !l.line(depth) {
			return false
		}
		b = rest
		l.b = strconv.AppendUint(l.b, f.number, 10)
		switch {
		case f.wire != wireBytes:
			l.b = appendNumeric(append(l.b, ": "...), f)
		case isPlainText(f.bytes):
			l.b = strconv.AppendQuote(append(l.b, ": "...), string(f.bytes))
		case depth < maxProtobufDepth && isProtobuf(f.bytes):
			l.b = append(l.b, " {"...)
			if !l.protobuf(f.bytes, depth+1) || !l.line(depth) {
				return false
			}
			l.b = append(l.b, '}')
		case utf8.Valid(f.bytes):
			l.b = strconv.AppendQuote(append(l.b, ": "...), string(f.bytes))
		default:
			l.b = append(l.b, ": 0x"...)
			l.b = append(l.b, hex.EncodeToString(f.bytes)...)
		}
	}
	return len(l.b) <= l.limit
}

// appendNumeric writes the integer and, for the fixed widths, which often hold floats, the
// float as well.
func appendNumeric(dst []byte, f field) []byte {
	dst = strconv.AppendUint(dst, f.n, 10)
	switch f.wire {
	case wireI64:
		dst = strconv.AppendFloat(append(dst, " or "...), math.Float64frombits(f.n), 'g', -1, 64)
	case wireI32:
		dst = strconv.AppendFloat(append(dst, " or "...), float64(math.Float32frombits(uint32(f.n))), 'g', -1, 32)
	}
	return dst
}
