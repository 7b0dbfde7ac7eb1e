package amqp

import (
	"encoding/binary"

	"dlq/backends/message"
)

// listReader reads the fields of a composite. The first error stays, and fields that are
// missing at the end are absent.
type listReader struct {
	d      *decoder
	rest   []byte
	left   int
	nested bool // the list is not the constructor of the empty one
	err    error
}

// descriptor reads the descriptor of a described type as a number.
func (d *decoder) descriptor() (uint64, error) {
	p, err := d.take(1)
	if err != nil {
		return 0, err
	}
	if p[0] != codeDescribed {
		return 0, malformed("a described type was expected, not the constructor 0x%02x", p[0])
	}
	if len(d.b) >= 2 && d.b[0] == codeSmallUlong {
		code := uint64(d.b[1])
		d.b = d.b[2:]
		return code, nil
	}
	v, err := d.value()
	if err != nil {
		return 0, err
	}
	switch v := v.(type) {
	case message.Ulong:
		return uint64(v), nil
	case message.Symbol:
		if code, ok := codeOfName(string(v)); ok {
			return code, nil
		}
		if code, ok := codeOfSection(string(v)); ok {
			return code, nil
		}
	}
	return 0, malformed("unknown descriptor, a %s", message.KindOf(v)) // whose text may be as long as b
}

// composite reads the list behind a descriptor.
func (d *decoder) composite(c composite) error {
	r, err := d.fields()
	if err != nil {
		return err
	}
	c.read(&r)
	return r.finish()
}

// fields begins the list behind a descriptor; finish ends it.
func (d *decoder) fields() (r listReader, err error) {
	r.d = d
	p, err := d.take(1)
	if err != nil {
		return r, err
	}
	switch p[0] {
	case codeList0:
		return r, nil
	case codeList8, codeList32:
		r.nested = true
		r.left, r.rest, err = d.open(p[0])
		return r, err
	}
	return r, malformed("a list was expected, not the constructor 0x%02x", p[0])
}

func (r *listReader) finish() error {
	for r.err == nil && r.left > 0 { // of a later version of the standard
		_, r.err = r.d.value()
		r.left--
	}
	if r.err != nil || !r.nested {
		return r.err
	}
	return r.d.closeCompound(r.rest)
}

// next begins a field. ok is false if it is absent or null.
func (r *listReader) next() (code byte, ok bool) {
	if r.err != nil || r.left == 0 {
		return 0, false
	}
	r.left--
	p, err := r.d.take(1)
	if err != nil {
		r.err = err
		return 0, false
	}
	return p[0], p[0] != codeNull
}

func (r *listReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *listReader) take(n int) []byte {
	p, err := r.d.take(n)
	if err != nil {
		r.fail(err)
		return make([]byte, n)
	}
	return p
}

func (r *listReader) optUint() (o Optional[uint32]) {
	code, ok := r.next()
	if !ok {
		return o
	}
	switch code {
	case codeUint0:
		return Some[uint32](0)
	case codeSmallUint:
		return Some(uint32(r.take(1)[0]))
	case codeUint:
		return Some(binary.BigEndian.Uint32(r.take(4)))
	}
	r.fail(malformed("a uint was expected, not the constructor 0x%02x", code))
	return o
}

// uint reads a field that has to be there.
func (r *listReader) uint(name string) uint32 {
	o := r.optUint()
	if !o.Set {
		r.fail(malformed("the field %s is missing", name))
	}
	return o.Value
}

func (r *listReader) ulong() (o Optional[uint64]) {
	code, ok := r.next()
	if !ok {
		return o
	}
	switch code {
	case codeUlong0:
		return Some[uint64](0)
	case codeSmallUlong:
		return Some(uint64(r.take(1)[0]))
	case codeUlong:
		return Some(binary.BigEndian.Uint64(r.take(8)))
	}
	r.fail(malformed("a ulong was expected, not the constructor 0x%02x", code))
	return o
}

func (r *listReader) ushort() (o Optional[uint16]) {
	code, ok := r.next()
	if !ok {
		return o
	}
	if code == codeUshort {
		return Some(binary.BigEndian.Uint16(r.take(2)))
	}
	r.fail(malformed("a ushort was expected, not the constructor 0x%02x", code))
	return o
}

func (r *listReader) ubyte() (o Optional[uint8]) {
	code, ok := r.next()
	if !ok {
		return o
	}
	if code == codeUbyte {
		return Some(r.take(1)[0])
	}
	r.fail(malformed("a ubyte was expected, not the constructor 0x%02x", code))
	return o
}

func (r *listReader) optBoolean() (o Optional[bool]) {
	code, ok := r.next()
	if !ok {
		return o
	}
	switch code {
	case codeTrue:
		return Some(true)
	case codeFalse:
		return Some(false)
	case codeBool:
		return Some(r.take(1)[0] != 0)
	}
	r.fail(malformed("a boolean was expected, not the constructor 0x%02x", code))
	return o
}

func (r *listReader) boolean() bool { return r.optBoolean().Value }

// binary reads bytes, which stay slices of the input; nil: absent.
func (r *listReader) binary() []byte {
	code, ok := r.next()
	if !ok {
		return nil
	}
	if code != codeBinary8 && code != codeBinary32 {
		r.fail(malformed("a binary was expected, not the constructor 0x%02x", code))
		return nil
	}
	n, err := r.d.number(code == codeBinary32)
	if err != nil {
		r.fail(err)
		return nil
	}
	p, err := r.d.take(n)
	if err != nil {
		r.fail(err)
		return nil
	}
	return p[:n:n]
}

// value reads any value; nil: absent.
func (r *listReader) value() message.Value {
	if r.err != nil || r.left == 0 {
		return nil
	}
	r.left--
	v, err := r.d.value()
	if err != nil {
		r.fail(err)
		return nil
	}
	if v == (message.Null{}) {
		return nil
	}
	return v
}

func (r *listReader) str(name string) string {
	switch v := r.value().(type) {
	case message.String:
		return string(v)
	case nil:
		r.fail(malformed("the field %s is missing", name))
	default:
		r.fail(malformed("the field %s is no string", name))
	}
	return ""
}

// text reads a string or symbol that may be absent.
func (r *listReader) text() string {
	switch v := r.value().(type) {
	case message.String:
		return string(v)
	case message.Symbol:
		return string(v)
	case nil:
	default:
		r.fail(malformed("a string or symbol was expected, not a %s", message.KindOf(v)))
	}
	return ""
}

func (r *listReader) fieldMap() message.Map {
	switch v := r.value().(type) {
	case message.Map:
		return v
	case nil:
	default:
		r.fail(malformed("a map was expected, not a %s", message.KindOf(v)))
	}
	return nil
}

// open begins a described list inside the field; ok is false if it is absent or null.
func (r *listReader) described() (code uint64, ok bool) {
	if r.err != nil || r.left == 0 {
		return 0, false
	}
	r.left--
	if len(r.d.b) > 0 && r.d.b[0] == codeNull {
		r.d.b = r.d.b[1:]
		return 0, false
	}
	if err := r.d.enter(); err != nil {
		r.fail(err)
		return 0, false
	}
	code, err := r.d.descriptor()
	if err != nil {
		r.fail(err)
		return 0, false
	}
	return code, true
}

// fill reads the list behind a descriptor that described has read.
func (r *listReader) fill(c composite) {
	if err := r.d.composite(c); err != nil {
		r.fail(err)
	}
	r.d.depth--
}
