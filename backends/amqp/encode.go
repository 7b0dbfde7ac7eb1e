package amqp

import (
	"encoding/binary"
	"fmt"
	"math"

	"dlq/backends/message"
)

// AppendValue appends the encoding of v to dst, in the shortest form for its value. On an
// error dst comes back as it was. A nil value (also inside a compound) and an array whose
// items are not all of its kind are refused with [ErrUnencodable], as is an array of
// described items: their descriptor belongs into message.Array.Descriptor.
func AppendValue(dst []byte, v message.Value) ([]byte, error) {
	var e encoder
	out, err := e.value(dst, v)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// encoder counts what the limits are about.
type encoder struct {
	depth     int
	zeroWidth int
}

func (e *encoder) value(dst []byte, v message.Value) ([]byte, error) {
	switch v := v.(type) {
	case message.Bool:
		if v {
			return append(dst, codeTrue), nil
		}
		return append(dst, codeFalse), nil
	case message.Uint:
		switch {
		case v == 0:
			return append(dst, codeUint0), nil
		case v <= math.MaxUint8:
			return append(dst, codeSmallUint, byte(v)), nil
		}
	case message.Ulong:
		switch {
		case v == 0:
			return append(dst, codeUlong0), nil
		case v <= math.MaxUint8:
			return append(dst, codeSmallUlong, byte(v)), nil
		}
	case message.Int:
		if v == message.Int(int8(v)) {
			return append(dst, codeSmallInt, byte(v)), nil
		}
	case message.Long:
		if v == message.Long(int8(v)) {
			return append(dst, codeSmallLong, byte(v)), nil
		}
	case message.List:
		if len(v) == 0 {
			return append(dst, codeList0), nil
		}
	case message.Described:
		return e.described(dst, v)
	}
	code, err := longCode(message.KindOf(v))
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst, err = e.payload(append(dst, code), v)
	if err != nil {
		return dst, err
	}
	return shorten(dst, start), nil
}

// longCode returns the constructor of kind k with the widest payload: the one that fits all
// its values.
func longCode(k message.Kind) (byte, error) {
	switch k {
	case message.KindNull:
		return codeNull, nil
	case message.KindBool:
		return codeBool, nil
	case message.KindUbyte:
		return codeUbyte, nil
	case message.KindByte:
		return codeByte, nil
	case message.KindUshort:
		return codeUshort, nil
	case message.KindShort:
		return codeShort, nil
	case message.KindUint:
		return codeUint, nil
	case message.KindInt:
		return codeInt, nil
	case message.KindUlong:
		return codeUlong, nil
	case message.KindLong:
		return codeLong, nil
	case message.KindFloat:
		return codeFloat, nil
	case message.KindDouble:
		return codeDouble, nil
	case message.KindChar:
		return codeChar, nil
	case message.KindTimestamp:
		return codeTimestamp, nil
	}
	return longWideCode(k)
}

func longWideCode(k message.Kind) (byte, error) {
	switch k {
	case message.KindDecimal32:
		return codeDecimal32, nil
	case message.KindDecimal64:
		return codeDecimal64, nil
	case message.KindDecimal128:
		return codeDecimal128, nil
	case message.KindUUID:
		return codeUUID, nil
	case message.KindBinary:
		return codeBinary32, nil
	case message.KindString:
		return codeString32, nil
	case message.KindSymbol:
		return codeSymbol32, nil
	case message.KindList:
		return codeList32, nil
	case message.KindMap:
		return codeMap32, nil
	case message.KindArray:
		return codeArray32, nil
	}
	return 0, fmt.Errorf("%w: %s", ErrUnencodable, k)
}

// payload appends v without its constructor, in the form of longCode.
func (e *encoder) payload(dst []byte, v message.Value) ([]byte, error) {
	switch v := v.(type) {
	case message.Null:
		return dst, nil
	case message.Bool:
		if v {
			return append(dst, 1), nil
		}
		return append(dst, 0), nil
	case message.Ubyte:
		return append(dst, byte(v)), nil
	case message.Byte:
		return append(dst, byte(v)), nil
	case message.Ushort:
		return binary.BigEndian.AppendUint16(dst, uint16(v)), nil
	case message.Short:
		return binary.BigEndian.AppendUint16(dst, uint16(v)), nil
	case message.Uint:
		return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
	case message.Int:
		return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
	case message.Float:
		return binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(v))), nil
	case message.Char:
		return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
	case message.Ulong:
		return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
	case message.Long:
		return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
	case message.Double:
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(float64(v))), nil
	case message.Timestamp:
		return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
	case message.Decimal32:
		return append(dst, v[:]...), nil
	case message.Decimal64:
		return append(dst, v[:]...), nil
	case message.Decimal128:
		return append(dst, v[:]...), nil
	case message.UUID:
		return append(dst, v[:]...), nil
	}
	return e.widePayload(dst, v)
}

func (e *encoder) widePayload(dst []byte, v message.Value) ([]byte, error) {
	switch v := v.(type) {
	case message.Binary:
		return appendBytes(dst, v)
	case message.String:
		return appendBytes(dst, v)
	case message.Symbol:
		if len(v) > MaxSymbol {
			return dst, fmt.Errorf("%w: symbol of %d bytes, at most %d", ErrLimit, len(v), MaxSymbol)
		}
		return appendBytes(dst, v)
	case message.List:
		return e.list(dst, v)
	case message.Map:
		return e.mapping(dst, v)
	case message.Array:
		start := len(dst)
		dst, err := e.open(dst, len(v.Items))
		if err != nil {
			return dst, err
		}
		if dst, err = e.array(dst, v); err != nil {
			return dst, err
		}
		return e.close(dst, start)
	}
	return dst, fmt.Errorf("%w: %s", ErrUnencodable, message.KindOf(v))
}

func appendBytes[T ~string | ~[]byte](dst []byte, s T) ([]byte, error) {
	if uint64(len(s)) > math.MaxUint32 {
		return dst, fmt.Errorf("%w: %d bytes", ErrLimit, len(s))
	}
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(s))), s...), nil
}

func (e *encoder) list(dst []byte, l message.List) ([]byte, error) {
	start := len(dst)
	dst, err := e.open(dst, len(l))
	if err != nil {
		return dst, err
	}
	for _, v := range l {
		if dst, err = e.value(dst, v); err != nil {
			return dst, err
		}
	}
	return e.close(dst, start)
}

func (e *encoder) mapping(dst []byte, m message.Map) ([]byte, error) {
	start := len(dst)
	dst, err := e.open(dst, 2*len(m))
	if err != nil {
		return dst, err
	}
	for _, p := range m {
		if dst, err = e.value(dst, p.Key); err != nil {
			return dst, err
		}
		if dst, err = e.value(dst, p.Value); err != nil {
			return dst, err
		}
	}
	return e.close(dst, start)
}

// open appends size and count of a compound with four bytes each. What it holds is to be
// appended next, and then close fills in the size.
func (e *encoder) open(dst []byte, count int) ([]byte, error) {
	if err := e.enter(); err != nil {
		return dst, err
	}
	if count > MaxCount {
		return dst, fmt.Errorf("%w: %d items, at most %d", ErrLimit, count, MaxCount)
	}
	return binary.BigEndian.AppendUint32(append(dst, 0, 0, 0, 0), uint32(count)), nil
}

// close ends the compound whose size is at start.
func (e *encoder) close(dst []byte, start int) ([]byte, error) {
	size := len(dst) - start - 4
	if uint64(size) > math.MaxUint32 {
		return dst, fmt.Errorf("%w: %d bytes", ErrLimit, size)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(size))
	e.depth--
	return dst, nil
}

func (e *encoder) enter() error {
	e.depth++
	if e.depth > MaxDepth {
		return fmt.Errorf("%w: nested deeper than %d", ErrLimit, MaxDepth)
	}
	return nil
}

func (e *encoder) described(dst []byte, v message.Described) ([]byte, error) {
	if err := e.enter(); err != nil {
		return dst, err
	}
	dst, err := e.value(append(dst, codeDescribed), v.Descriptor)
	if err != nil {
		return dst, err
	}
	dst, err = e.value(dst, v.Value)
	e.depth--
	return dst, err
}

// array appends the constructor that all items share and then their payloads. The long
// forms keep the constructor independent of the values, as peers that compare it expect.
func (e *encoder) array(dst []byte, a message.Array) ([]byte, error) {
	var err error
	if a.Descriptor != nil {
		if err := e.enter(); err != nil {
			return dst, err
		}
		if dst, err = e.value(append(dst, codeDescribed), a.Descriptor); err != nil {
			return dst, err
		}
		e.depth--
	}
	code, err := longCode(a.Elem)
	if err != nil {
		return dst, fmt.Errorf("array of %s: %w", a.Elem, err)
	}
	if a.Elem == message.KindNull {
		if e.zeroWidth += len(a.Items); e.zeroWidth > MaxZeroWidth {
			return dst, fmt.Errorf("%w: more than %d nulls in arrays", ErrLimit, MaxZeroWidth)
		}
	}
	dst = append(dst, code)
	for _, item := range a.Items {
		if message.KindOf(item) != a.Elem {
			return dst, fmt.Errorf("%w: a %s in an array of %s", ErrUnencodable, message.KindOf(item), a.Elem)
		}
		if dst, err = e.payload(dst, item); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// shorten rewrites the variable-width value that begins at start from its long into its
// short form if it fits.
func shorten(dst []byte, start int) []byte {
	const short = 1<<8 - 1
	code := dst[start]
	switch code >> 4 {
	case 0xb: // length
		if n := len(dst) - start - 5; n <= short {
			dst[start], dst[start+1] = code-0x10, byte(n)
			return dst[:start+2+copy(dst[start+2:], dst[start+5:])]
		}
	case 0xd, 0xf: // size and count; the size covers the count
		n, count := len(dst)-start-9, binary.BigEndian.Uint32(dst[start+5:])
		if n+1 <= short && count <= short {
			dst[start], dst[start+1], dst[start+2] = code-0x10, byte(n+1), byte(count)
			return dst[:start+3+copy(dst[start+3:], dst[start+9:])]
		}
	}
	return dst
}
