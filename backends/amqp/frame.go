package amqp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"dlq/backends/message"
)

// The protocol headers by which a connection begins (part 2, 2.2; part 5, 5.2.1 and 5.3.2).
const (
	ProtocolHeader = "AMQP\x00\x01\x00\x00"
	SASLHeader     = "AMQP\x03\x01\x00\x00"
	TLSHeader      = "AMQP\x02\x01\x00\x00"
)

// The types of frames.
const (
	FrameAMQP = 0
	FrameSASL = 1
)

const (
	// FrameHeaderSize is how many bytes of a frame say what it is.
	FrameHeaderSize = 8
	// MinMaxFrameSize is the size that every peer takes (part 2, 2.8.19), and that a SASL
	// frame may not exceed (part 5, 5.3.1).
	MinMaxFrameSize = 512
)

// ErrFraming says that the bytes are not a frame, or one that is longer than agreed.
var ErrFraming = errors.New("malformed amqp frame")

// FrameHeader is what the first eight bytes of a frame say.
type FrameHeader struct {
	Size    uint32 // of the whole frame
	Offset  int    // where the body begins
	Type    uint8
	Channel uint16
}

// ParseFrameHeader reads a header from the first [FrameHeaderSize] bytes of b. It refuses a
// frame above limit, so that nobody sets memory aside for it. The errors wrap [ErrFraming].
func ParseFrameHeader(b []byte, limit uint32) (FrameHeader, error) {
	h := FrameHeader{
		Size: binary.BigEndian.Uint32(b), Offset: int(b[4]) * 4, Type: b[5], Channel: binary.BigEndian.Uint16(b[6:]),
	}
	switch {
	case h.Size > limit:
		return h, fmt.Errorf("%w: %d bytes, at most %d", ErrFraming, h.Size, limit)
	case h.Offset < FrameHeaderSize:
		return h, fmt.Errorf("%w: the body begins inside the header", ErrFraming)
	case uint32(h.Offset) > h.Size:
		return h, fmt.Errorf("%w: the body begins behind the end", ErrFraming)
	case h.Type > FrameSASL:
		return h, fmt.Errorf("%w: unknown type %d", ErrFraming, h.Type)
	}
	return h, nil
}

// AppendFrame appends a frame with a performative and a payload. It looks at no limit: a
// transfer is to be cut before. On an error dst comes back as it was.
func AppendFrame(dst []byte, frameType uint8, channel uint16, p Performative, payload []byte) ([]byte, error) {
	start := len(dst)
	out := append(dst, 0, 0, 0, 0, FrameHeaderSize/4, frameType, byte(channel>>8), byte(channel))
	out, err := appendComposite(out, p)
	if err != nil {
		return dst, err
	}
	out = append(out, payload...)
	binary.BigEndian.PutUint32(out[start:], uint32(len(out)-start))
	return out, nil
}

// AppendEmptyFrame appends a frame without a body, which says that the connection is alive.
func AppendEmptyFrame(dst []byte) []byte {
	return append(dst, 0, 0, 0, FrameHeaderSize, FrameHeaderSize/4, FrameAMQP, 0, 0)
}

// DecodePerformative reads the body of a frame. The payload, and the delivery tag and
// transaction ids of p, are slices of b. The errors wrap [ErrMalformed] or [ErrLimit].
func DecodePerformative(b []byte) (p Performative, payload []byte, err error) {
	d := decoder{b: b, slots: len(b) + MaxZeroWidth}
	code, err := d.descriptor()
	if err != nil {
		return nil, nil, err
	}
	if p = newPerformative(code); p == nil {
		return nil, nil, malformed("no performative has the descriptor %#x", code)
	}
	if err := d.composite(p); err != nil {
		return nil, nil, err
	}
	return p, d.b, nil
}

// Performative is what a frame says: one of the types of this package with that in their
// comment. Close and End are as in part 2, 2.7.
type Performative interface {
	composite
	performative()
}

func newPerformative(code uint64) Performative {
	switch code {
	case codeTransfer:
		return new(Transfer)
	case codeDisposition:
		return new(Disposition)
	case codeFlow:
		return new(Flow)
	case codeOpen:
		return new(Open)
	case codeBegin:
		return new(Begin)
	case codeAttach:
		return new(Attach)
	case codeDetach:
		return new(Detach)
	case codeEnd:
		return new(End)
	case codeClose:
		return new(Close)
	case codeSASLMechanisms:
		return new(SASLMechanisms)
	case codeSASLInit:
		return new(SASLInit)
	case codeSASLOutcome:
		return new(SASLOutcome)
	}
	return nil
}

// Symbols returns the symbols of a field that may hold one or several (part 1, 1.4: a field
// with multiple="true").
func Symbols(v message.Value) []message.Symbol {
	switch v := v.(type) {
	case message.Symbol:
		return []message.Symbol{v}
	case message.Array:
		var all []message.Symbol
		for _, item := range v.Items {
			if s, ok := item.(message.Symbol); ok {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}

// SymbolArray returns the value of such a field.
func SymbolArray(symbols ...message.Symbol) message.Value {
	a := message.Array{Elem: message.KindSymbol}
	for _, s := range symbols {
		a.Items = append(a.Items, s)
	}
	return a
}
