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
