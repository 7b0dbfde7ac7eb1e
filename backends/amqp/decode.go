package amqp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"dlq/backends/message"
)

// DecodeValue decodes the value at the start of b and returns the bytes behind it. The
// value shares no memory with b. Strings that are not UTF-8 and symbols that are not ASCII
// are kept as they came. The errors wrap [ErrMalformed] or [ErrLimit].
//
// It allocates at most 32 bytes for each byte of b, plus 64 KiB.
func DecodeValue(b []byte) (v message.Value, rest []byte, err error) {
	d := decoder{b: b, slots: len(b) + MaxZeroWidth}
	if v, err = d.value(); err != nil {
		return nil, b, err
	}
	return v, d.b, nil
}

// decoder reads one value from the front of b.
type decoder struct {
	b         []byte
	depth     int
	zeroWidth int
	// slots is how many more items the compounds may announce in total. An item takes at
	// least a byte, so an honest value never runs out, and a compound that announces what
	// only its children could hold is refused before memory is set aside for it.
	slots int
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

func overLimit(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrLimit}, args...)...)
}

// take returns the next n bytes.
func (d *decoder) take(n int) ([]byte, error) {
	if n > len(d.b) {
		return nil, malformed("%d bytes missing at the end", n-len(d.b))
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p, nil
}

func (d *decoder) value() (message.Value, error) {
	p, err := d.take(1)
	if err != nil {
		return nil, err
	}
	if p[0] == codeDescribed {
		return d.described()
	}
	return d.payload(p[0])
}

func (d *decoder) described() (message.Value, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	descriptor, err := d.value()
	if err != nil {
		return nil, err
	}
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	d.depth--
	return message.Described{Descriptor: descriptor, Value: v}, nil
}

func (d *decoder) enter() error {
	d.depth++
	if d.depth > MaxDepth {
		return overLimit("nested deeper than %d", MaxDepth)
	}
	return nil
}

// payload decodes what follows the constructor code.
func (d *decoder) payload(code byte) (message.Value, error) {
	switch code >> 4 {
	case 0x4:
		return zeroWidthValue(code)
	case 0x5, 0x6, 0x7, 0x8, 0x9:
		p, err := d.take(1 << (code>>4 - 5))
		if err != nil {
			return nil, err
		}
		return fixedValue(code, p)
	case 0xa, 0xb:
		return d.variable(code)
	case 0xc, 0xd:
		return d.compound(code)
	case 0xe, 0xf:
		return d.array(code)
	}
	return nil, unknownCode(code)
}

func unknownCode(code byte) error { return malformed("unknown constructor 0x%02x", code) }

func zeroWidthValue(code byte) (message.Value, error) {
	switch code {
	case codeNull:
		return message.Null{}, nil
	case codeTrue:
		return message.Bool(true), nil
	case codeFalse:
		return message.Bool(false), nil
	case codeUint0:
		return message.Uint(0), nil
	case codeUlong0:
		return message.Ulong(0), nil
	case codeList0:
		return message.List(nil), nil
	}
	return nil, unknownCode(code)
}

// fixedValue decodes a payload of one to sixteen bytes; p is as long as code wants.
func fixedValue(code byte, p []byte) (message.Value, error) {
	switch code {
	case codeUbyte:
		return message.Ubyte(p[0]), nil
	case codeByte:
		return message.Byte(p[0]), nil
	case codeSmallUint:
		return message.Uint(p[0]), nil
	case codeSmallUlong:
		return message.Ulong(p[0]), nil
	case codeSmallInt:
		return message.Int(int8(p[0])), nil
	case codeSmallLong:
		return message.Long(int8(p[0])), nil
	case codeBool:
		if p[0] > 1 {
			return nil, malformed("boolean with the value %d", p[0])
		}
		return message.Bool(p[0] == 1), nil
	case codeUshort:
		return message.Ushort(binary.BigEndian.Uint16(p)), nil
	case codeShort:
		return message.Short(binary.BigEndian.Uint16(p)), nil
	case codeUint:
		return message.Uint(binary.BigEndian.Uint32(p)), nil
	case codeInt:
		return message.Int(binary.BigEndian.Uint32(p)), nil
	case codeFloat:
		return message.Float(math.Float32frombits(binary.BigEndian.Uint32(p))), nil
	case codeChar:
		return message.Char(binary.BigEndian.Uint32(p)), nil
	case codeDecimal32:
		return message.Decimal32(p), nil
	case codeUlong:
		return message.Ulong(binary.BigEndian.Uint64(p)), nil
	case codeLong:
		return message.Long(binary.BigEndian.Uint64(p)), nil
	case codeDouble:
		return message.Double(math.Float64frombits(binary.BigEndian.Uint64(p))), nil
	case codeTimestamp:
		return message.Timestamp(binary.BigEndian.Uint64(p)), nil
	case codeDecimal64:
		return message.Decimal64(p), nil
	case codeDecimal128:
		return message.Decimal128(p), nil
	case codeUUID:
		return message.UUID(p), nil
	}
	return nil, unknownCode(code)
}

// number reads a length, size or count: one byte wide in the short forms of a
// constructor, four in the long ones, whose high half byte is odd.
func (d *decoder) number(long bool) (int, error) {
	if !long {
		p, err := d.take(1)
		if err != nil {
			return 0, err
		}
		return int(p[0]), nil
	}
	p, err := d.take(4)
	if err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint32(p)
	if n > math.MaxInt32 { // an int may be 32 bits
		return 0, overLimit("length %d", n)
	}
	return int(n), nil
}

// emptyBinary saves the slice header that each empty binary would cost: in an array it may
// stand for a single byte of input.
var emptyBinary message.Value = message.Binary{}

func (d *decoder) variable(code byte) (message.Value, error) {
	n, err := d.number(code >= codeBinary32)
	if err != nil {
		return nil, err
	}
	p, err := d.take(n)
	if err != nil {
		return nil, err
	}
	switch code {
	case codeBinary8, codeBinary32:
		if n == 0 {
			return emptyBinary, nil
		}
		return message.Binary(bytes.Clone(p)), nil
	case codeString8, codeString32:
		return message.String(p), nil
	case codeSymbol8, codeSymbol32:
		if n > MaxSymbol {
			return nil, overLimit("symbol of %d bytes, at most %d", n, MaxSymbol)
		}
		return message.Symbol(p), nil
	}
	return nil, unknownCode(code)
}

// open reads the size and count of a compound or array and narrows d.b to its items.
// What it returns as rest is to be handed to closeCompound.
func (d *decoder) open(code byte) (count int, rest []byte, err error) {
	if err := d.enter(); err != nil {
		return 0, nil, err
	}
	long := code>>4&1 == 1
	size, err := d.number(long)
	if err != nil {
		return 0, nil, err
	}
	body, err := d.take(size)
	if err != nil {
		return 0, nil, err
	}
	rest, d.b = d.b, body
	if count, err = d.number(long); err != nil {
		return 0, nil, err
	}
	if count > MaxCount {
		return 0, nil, overLimit("%d items, at most %d", count, MaxCount)
	}
	if d.slots -= count; d.slots < 0 {
		return 0, nil, malformed("more items announced than there are bytes")
	}
	return count, rest, nil
}

func (d *decoder) closeCompound(rest []byte) error {
	if len(d.b) != 0 {
		return malformed("%d bytes behind the last item", len(d.b))
	}
	d.b = rest
	d.depth--
	return nil
}

func (d *decoder) compound(code byte) (message.Value, error) {
	count, rest, err := d.open(code)
	if err != nil {
		return nil, err
	}
	if count > len(d.b) {
		return nil, malformed("%d items in %d bytes", count, len(d.b))
	}
	var v message.Value
	switch code {
	case codeList8, codeList32:
		v, err = d.list(count)
	case codeMap8, codeMap32:
		v, err = d.mapping(count)
	default:
		err = unknownCode(code)
	}
	if err != nil {
		return nil, err
	}
	return v, d.closeCompound(rest)
}

func (d *decoder) list(count int) (message.Value, error) {
	if count == 0 {
		return message.List(nil), nil
	}
	l := make(message.List, count)
	for i := range l {
		var err error
		if l[i], err = d.value(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (d *decoder) mapping(count int) (message.Value, error) {
	if count%2 != 0 {
		return nil, malformed("map with a key that has no value")
	}
	if count == 0 {
		return message.Map(nil), nil
	}
	m := make(message.Map, count/2)
	for i := range m {
		var err error
		if m[i].Key, err = d.value(); err != nil {
			return nil, err
		}
		if m[i].Value, err = d.value(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (d *decoder) array(code byte) (message.Value, error) {
	if code != codeArray8 && code != codeArray32 {
		return nil, unknownCode(code)
	}
	count, rest, err := d.open(code)
	if err != nil {
		return nil, err
	}
	a := message.Array{}
	item, err := d.itemCode(&a)
	if err != nil {
		return nil, err
	}
	switch {
	case item>>4 == 0x4:
		if d.zeroWidth += count; d.zeroWidth > MaxZeroWidth {
			return nil, overLimit("more than %d array items without bytes", MaxZeroWidth)
		}
	case count > len(d.b):
		return nil, malformed("%d items in %d bytes", count, len(d.b))
	}
	if count > 0 {
		a.Items = make([]message.Value, count)
	}
	for i := range a.Items {
		if a.Items[i], err = d.payload(item); err != nil {
			return nil, err
		}
	}
	return a, d.closeCompound(rest)
}

// itemCode reads the constructor that the items of an array share, descriptor included.
func (d *decoder) itemCode(a *message.Array) (byte, error) {
	p, err := d.take(1)
	if err != nil {
		return 0, err
	}
	if p[0] == codeDescribed {
		if err := d.enter(); err != nil {
			return 0, err
		}
		if a.Descriptor, err = d.value(); err != nil {
			return 0, err
		}
		d.depth--
		if p, err = d.take(1); err != nil {
			return 0, err
		}
	}
	if a.Elem = kindOfCode(p[0]); a.Elem == 0 {
		return 0, unknownCode(p[0])
	}
	return p[0], nil
}
