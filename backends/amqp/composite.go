package amqp

import (
	"encoding/binary"

	"dlq/backends/message"
)

// The descriptors of the composite types, in the order of the standard.
const (
	codeOpen           = 0x10
	codeBegin          = 0x11
	codeAttach         = 0x12
	codeFlow           = 0x13
	codeTransfer       = 0x14
	codeDisposition    = 0x15
	codeDetach         = 0x16
	codeEnd            = 0x17
	codeClose          = 0x18
	codeError          = 0x1d
	codeReceived       = 0x23
	codeAccepted       = 0x24
	codeRejected       = 0x25
	codeReleased       = 0x26
	codeModified       = 0x27
	codeSource         = 0x28
	codeTarget         = 0x29
	codeCoordinator    = 0x30
	codeDeclare        = 0x31
	codeDischarge      = 0x32
	codeDeclared       = 0x33
	codeTransactional  = 0x34
	codeSASLMechanisms = 0x40
	codeSASLInit       = 0x41
	codeSASLOutcome    = 0x44
)

// codeOfName returns the number of a symbolic descriptor, which a peer may use as well.
func codeOfName(name string) (uint64, bool) {
	switch name {
	case "amqp:open:list":
		return codeOpen, true
	case "amqp:begin:list":
		return codeBegin, true
	case "amqp:attach:list":
		return codeAttach, true
	case "amqp:flow:list":
		return codeFlow, true
	case "amqp:transfer:list":
		return codeTransfer, true
	case "amqp:disposition:list":
		return codeDisposition, true
	case "amqp:detach:list":
		return codeDetach, true
	case "amqp:end:list":
		return codeEnd, true
	case "amqp:close:list":
		return codeClose, true
	case "amqp:error:list":
		return codeError, true
	case "amqp:received:list":
		return codeReceived, true
	case "amqp:accepted:list":
		return codeAccepted, true
	case "amqp:rejected:list":
		return codeRejected, true
	case "amqp:released:list":
		return codeReleased, true
	case "amqp:modified:list":
		return codeModified, true
	case "amqp:source:list":
		return codeSource, true
	case "amqp:target:list":
		return codeTarget, true
	}
	return codeOfRareName(name)
}

func codeOfRareName(name string) (uint64, bool) {
	switch name {
	case "amqp:coordinator:list":
		return codeCoordinator, true
	case "amqp:declare:list":
		return codeDeclare, true
	case "amqp:discharge:list":
		return codeDischarge, true
	case "amqp:declared:list":
		return codeDeclared, true
	case "amqp:transactional-state:list":
		return codeTransactional, true
	case "amqp:sasl-mechanisms:list":
		return codeSASLMechanisms, true
	case "amqp:sasl-init:list":
		return codeSASLInit, true
	case "amqp:sasl-outcome:list":
		return codeSASLOutcome, true
	}
	return 0, false
}

// composite is a described list with typed fields (part 1, 1.4).
type composite interface {
	code() uint64
	write(w *listWriter)
	read(r *listReader)
}

// Optional is a field that may be absent.
type Optional[T any] struct {
	Value T
	Set   bool
}

// Some returns a field that is there.
func Some[T any](v T) Optional[T] { return Optional[T]{v, true} }

// Or returns the field, or what it is when absent.
func (o Optional[T]) Or(absent T) T {
	if o.Set {
		return o.Value
	}
	return absent
}

// listWriter appends the fields of a composite. The first error stays.
type listWriter struct {
	dst   []byte
	start int // of the list
	n     int // fields so far
	// Behind the last field that is not null: those after it may be left out.
	end, count int
	err        error
}

func appendComposite(dst []byte, c composite) ([]byte, error) {
	w := openComposite(dst, byte(c.code()))
	c.write(&w)
	out, err := w.finish()
	if err != nil {
		return dst, err
	}
	return out, nil
}

// openComposite begins a described list, which finish ends.
func openComposite(dst []byte, code byte) listWriter {
	start := len(dst) + 3
	dst = append(dst, codeDescribed, codeSmallUlong, code, codeList32, 0, 0, 0, 0, 0, 0, 0, 0)
	return listWriter{dst: dst, start: start, end: len(dst)}
}

func (w *listWriter) finish() ([]byte, error) {
	out, start := w.dst[:w.end], w.start
	if w.err != nil {
		return out, w.err
	}
	if w.count == 0 {
		return append(out[:start], codeList0), nil
	}
	binary.BigEndian.PutUint32(out[start+1:], uint32(len(out)-start-5))
	binary.BigEndian.PutUint32(out[start+5:], uint32(w.count))
	return shorten(out, start), nil
}

// put marks what was appended as a field that is there.
func (w *listWriter) put() {
	w.n++
	w.end, w.count = len(w.dst), w.n
}

func (w *listWriter) null() {
	w.dst = append(w.dst, codeNull)
	w.n++
}

// keep writes the nulls before it even if nothing follows: some peers look for every field
// of open, begin and attach.
func (w *listWriter) keep() { w.end, w.count = len(w.dst), w.n }

func (w *listWriter) uint(v uint32) {
	switch {
	case v == 0:
		w.dst = append(w.dst, codeUint0)
	case v <= 0xff:
		w.dst = append(w.dst, codeSmallUint, byte(v))
	default:
		w.dst = binary.BigEndian.AppendUint32(append(w.dst, codeUint), v)
	}
	w.put()
}

func (w *listWriter) optUint(o Optional[uint32]) {
	if !o.Set {
		w.null()
		return
	}
	w.uint(o.Value)
}

func (w *listWriter) ushort(o Optional[uint16]) {
	if !o.Set {
		w.null()
		return
	}
	w.dst = append(w.dst, codeUshort, byte(o.Value>>8), byte(o.Value))
	w.put()
}

func (w *listWriter) ubyte(o Optional[uint8]) {
	if !o.Set {
		w.null()
		return
	}
	w.dst = append(w.dst, codeUbyte, o.Value)
	w.put()
}

// boolean writes a field whose absence means false.
func (w *listWriter) boolean(v bool) {
	if !v {
		w.null()
		return
	}
	w.flag(v)
}

// flag writes a boolean field that is always there.
func (w *listWriter) flag(v bool) {
	if v {
		w.dst = append(w.dst, codeTrue)
	} else {
		w.dst = append(w.dst, codeFalse)
	}
	w.put()
}

func (w *listWriter) binary(b []byte) {
	if b == nil {
		w.null()
		return
	}
	if len(b) <= 0xff {
		w.dst = append(append(w.dst, codeBinary8, byte(len(b))), b...)
	} else {
		w.dst = append(binary.BigEndian.AppendUint32(append(w.dst, codeBinary32), uint32(len(b))), b...)
	}
	w.put()
}

// value writes any value; nil is null.
func (w *listWriter) value(v message.Value) {
	if v == nil || v == (message.Null{}) {
		w.null()
		return
	}
	out, err := AppendValue(w.dst, v)
	if w.dst = out; err != nil && w.err == nil {
		w.err = err
	}
	w.put()
}

// fieldMap writes a map; one without pairs is null.
func (w *listWriter) fieldMap(m message.Map) {
	if len(m) == 0 {
		w.null()
		return
	}
	w.value(m)
}

func (w *listWriter) composite(c composite) {
	if c == nil {
		w.null()
		return
	}
	out, err := appendComposite(w.dst, c)
	if w.dst = out; err != nil && w.err == nil {
		w.err = err
	}
	w.put()
}

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
