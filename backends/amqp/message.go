package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"dlq/backends/message"
)

// MaxSections is how many sections the body of a message may have. Every other section is
// there at most once.
const MaxSections = 10_000

// The descriptors of the sections, in their order (part 3, 3.2).
const (
	codeHeader              = 0x70
	codeDeliveryAnnotations = 0x71
	codeMessageAnnotations  = 0x72
	codeProperties          = 0x73
	codeApplication         = 0x74
	codeData                = 0x75
	codeSequence            = 0x76
	codeValueSection        = 0x77
	codeFooter              = 0x78
)

// codeOfSection returns the number of a section's symbolic descriptor.
func codeOfSection(name string) (uint64, bool) {
	switch name {
	case "amqp:header:list":
		return codeHeader, true
	case "amqp:delivery-annotations:map":
		return codeDeliveryAnnotations, true
	case "amqp:message-annotations:map":
		return codeMessageAnnotations, true
	case "amqp:properties:list":
		return codeProperties, true
	case "amqp:application-properties:map":
		return codeApplication, true
	case "amqp:data:binary":
		return codeData, true
	case "amqp:amqp-sequence:list":
		return codeSequence, true
	case "amqp:amqp-value:*":
		return codeValueSection, true
	case "amqp:footer:map":
		return codeFooter, true
	}
	return 0, false
}

// DecodeMessage decodes a whole message. Its body keeps slices of b, and nothing else does.
// The limits of a value hold for what each section holds: its own descriptor is not a level.
// The delivery count of the header is that of Broker. The errors wrap [ErrMalformed] or
// [ErrLimit].
func DecodeMessage(b []byte) (*message.Message, error) {
	d := decoder{b: b, slots: len(b) + MaxZeroWidth}
	m := new(message.Message)
	last, footer := uint64(0), false
	for len(d.b) > 0 {
		code, err := d.descriptor()
		if err != nil {
			return nil, err
		}
		if code < codeHeader || code > codeFooter {
			return nil, malformed("no section has the descriptor %#x", code)
		}
		switch {
		case code == codeFooter && !footer:
			footer = true // rhea, which is below the JavaScript SDK, writes it before the body
		case code == codeFooter || !follows(code, last):
			return nil, malformed("the section %#x behind the section %#x", code, last)
		default:
			last = code
		}
		if err := d.section(m, code); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// follows reports whether a section may stand behind another: each kind is there once and in
// its order, but data and sequences may be repeated, and a body is of one kind.
func follows(code, last uint64) bool {
	switch {
	case code == last:
		return code == codeData || code == codeSequence
	case code > codeData && code <= codeValueSection:
		return last < codeData
	}
	return code > last
}

// section decodes what follows the descriptor of a section.
func (d *decoder) section(m *message.Message, code uint64) (err error) {
	switch code {
	case codeHeader:
		r, err := d.fields()
		if err == nil {
			(*header)(m).read(&r)
			err = r.finish()
		}
		return err
	case codeProperties:
		r, err := d.fields()
		if err == nil {
			(*properties)(m).read(&r)
			err = r.finish()
		}
		return err
	case codeDeliveryAnnotations:
		m.DeliveryAnnotations, err = d.sectionMap()
	case codeMessageAnnotations:
		m.Annotations, err = d.sectionMap()
	case codeFooter:
		m.Footer, err = d.sectionMap()
	case codeApplication:
		err = d.application(m)
	default:
		err = d.body(m, code)
	}
	return err
}

func (d *decoder) sectionMap() (message.Map, error) {
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	m, ok := v.(message.Map)
	if !ok {
		return nil, malformed("a section of a map holds a %s", message.KindOf(v))
	}
	return m, nil
}

// application decodes the map of the application properties without making one.
func (d *decoder) application(m *message.Message) error {
	p, err := d.take(1)
	if err != nil {
		return err
	}
	if p[0] != codeMap8 && p[0] != codeMap32 {
		return malformed("a section of a map has the constructor 0x%02x", p[0])
	}
	count, rest, err := d.open(p[0])
	if err != nil {
		return err
	}
	if count > len(d.b) || count%2 != 0 {
		return malformed("a map of %d items in %d bytes", count, len(d.b))
	}
	if count > 0 {
		m.Properties = make(message.Properties, count/2)
	}
	for i := range m.Properties {
		p := &m.Properties[i]
		if p.Name, err = d.name(); err != nil {
			return err
		}
		if p.Value, err = d.value(); err != nil {
			return err
		}
	}
	return d.closeCompound(rest)
}

// name decodes the name of an application property: a string, or a symbol, which some peers
// write in its place.
func (d *decoder) name() (string, error) {
	p, err := d.take(1)
	if err != nil {
		return "", err
	}
	return d.text(p[0])
}

// text decodes what follows the constructor of a string or symbol.
func (d *decoder) text(code byte) (string, error) {
	switch code {
	case codeString8, codeSymbol8, codeString32, codeSymbol32:
	default:
		return "", malformed("a string was expected, not the constructor 0x%02x", code)
	}
	n, err := d.number(code >= codeString32)
	if err != nil {
		return "", err
	}
	p, err := d.take(n)
	return string(p), err
}

// body takes one body section as the bytes that it is.
func (d *decoder) body(m *message.Message, code uint64) error {
	if len(m.Body.Sections) == MaxSections {
		return overLimit("more than %d sections", MaxSections)
	}
	if code == codeData {
		r := listReader{d: d, left: 1}
		section := r.binary()
		if r.err == nil && section == nil {
			return malformed("a data section without a binary")
		}
		m.Body.Sections = append(m.Body.Sections, section)
		return r.err
	}
	start := d.b
	v, err := d.value()
	if err != nil {
		return err
	}
	m.Body.Kind = message.ValueBody
	if code == codeSequence {
		m.Body.Kind = message.Sequence
		if _, ok := v.(message.List); !ok {
			return malformed("a sequence section holds a %s", message.KindOf(v))
		}
	}
	n := len(start) - len(d.b)
	m.Body.Sections = append(m.Body.Sections, start[:n:n])
	return nil
}

// AppendMessage appends the sections of a message in their order. Header, with the delivery
// count of Broker, and properties are always there; other sections that are empty are left
// out. The body is written as the bytes that it is.
func AppendMessage(dst []byte, m *message.Message) ([]byte, error) {
	e := encoder{}
	out, err := e.head(dst, m)
	if err != nil {
		return dst, err
	}
	if out, err = appendBody(out, m.Body); err != nil {
		return dst, err
	}
	if out, err = e.section(out, codeFooter, m.Footer); err != nil {
		return dst, err
	}
	return out, nil
}

// head appends the sections before the body.
func (e *encoder) head(dst []byte, m *message.Message) ([]byte, error) {
	w := openComposite(dst, codeHeader)
	(*header)(m).write(&w)
	dst, err := w.finish()
	if err != nil {
		return dst, err
	}
	if dst, err = e.section(dst, codeDeliveryAnnotations, m.DeliveryAnnotations); err != nil {
		return dst, err
	}
	if dst, err = e.section(dst, codeMessageAnnotations, m.Annotations); err != nil {
		return dst, err
	}
	w = openComposite(dst, codeProperties)
	(*properties)(m).write(&w)
	if dst, err = w.finish(); err != nil {
		return dst, err
	}
	return e.application(dst, m.Properties)
}

func (e *encoder) section(dst []byte, code byte, m message.Map) ([]byte, error) {
	if len(m) == 0 {
		return dst, nil
	}
	dst = append(dst, codeDescribed, codeSmallUlong, code)
	start := len(dst)
	dst, err := e.mapping(append(dst, codeMap32), m)
	if err != nil {
		return dst, err
	}
	return shorten(dst, start), nil
}

// application writes the properties as a map without making one.
func (e *encoder) application(dst []byte, properties message.Properties) ([]byte, error) {
	if len(properties) == 0 {
		return dst, nil
	}
	dst = append(dst, codeDescribed, codeSmallUlong, codeApplication)
	start := len(dst)
	dst, err := e.open(append(dst, codeMap32), 2*len(properties))
	if err != nil {
		return dst, err
	}
	for _, p := range properties {
		dst = appendText(dst, codeString8, p.Name)
		if dst, err = e.value(dst, p.Value); err != nil {
			return dst, err
		}
	}
	if dst, err = e.close(dst, start+1); err != nil {
		return dst, err
	}
	return shorten(dst, start), nil
}

// appendText appends a string or symbol, whose short constructor is code.
func appendText(dst []byte, code byte, s string) []byte {
	if len(s) <= math.MaxUint8 {
		return append(append(dst, code, byte(len(s))), s...)
	}
	return append(binary.BigEndian.AppendUint32(append(dst, code+0x10), uint32(len(s))), s...)
}

func appendBody(dst []byte, body message.Body) ([]byte, error) {
	if len(body.Sections) > MaxSections {
		return dst, overLimit("more than %d sections", MaxSections)
	}
	for _, section := range body.Sections {
		switch body.Kind {
		case message.Data:
			dst = append(dst, codeDescribed, codeSmallUlong, codeData)
			if len(section) <= math.MaxUint8 {
				dst = append(dst, codeBinary8, byte(len(section)))
			} else {
				dst = binary.BigEndian.AppendUint32(append(dst, codeBinary32), uint32(len(section)))
			}
		case message.ValueBody:
			dst = append(dst, codeDescribed, codeSmallUlong, codeValueSection)
		case message.Sequence:
			dst = append(dst, codeDescribed, codeSmallUlong, codeSequence)
		default:
			return dst, malformed("a body of an unknown kind %d", body.Kind)
		}
		dst = append(dst, section...)
	}
	return dst, nil
}

// header is the header section of a message (part 3, 3.2.1).
type header message.Message

func (h *header) write(w *listWriter) {
	w.boolean(h.Durable)
	if h.Priority != nil {
		w.ubyte(Some(*h.Priority))
	} else {
		w.null()
	}
	if h.TTL != nil {
		w.uint(uint32(min(max(h.TTL.Milliseconds(), 0), math.MaxUint32)))
	} else {
		w.null()
	}
	w.boolean(h.FirstAcquirer)
	w.uint(h.Broker.DeliveryCount)
}

func (h *header) read(r *listReader) {
	h.Durable = r.boolean()
	if p := r.ubyte(); p.Set {
		priority := p.Value
		h.Priority = &priority
	}
	if ttl := r.optUint(); ttl.Set {
		d := time.Duration(ttl.Value) * time.Millisecond
		h.TTL = &d
	}
	h.FirstAcquirer = r.boolean()
	h.Broker.DeliveryCount = r.optUint().Value
}

// properties is the section of the immutable properties (part 3, 3.2.4).
type properties message.Message

func (p *properties) write(w *listWriter) {
	w.id(p.ID)
	w.binary(p.UserID)
	w.text(p.To)
	w.text(p.Subject)
	w.text(p.ReplyTo)
	w.id(p.CorrelationID)
	w.symbol(p.ContentType)
	w.symbol(p.ContentEncoding)
	w.timestamp(p.AbsoluteExpiry)
	w.timestamp(p.Created)
	w.text(p.SessionID)
	if p.GroupSequence != nil {
		w.uint(*p.GroupSequence)
	} else {
		w.null()
	}
	w.text(p.ReplyToSessionID)
}

func (p *properties) read(r *listReader) {
	p.ID = r.id()
	if id := r.binary(); id != nil {
		p.UserID = append([]byte{}, id...)
	}
	p.To, p.Subject, p.ReplyTo = r.optText(), r.optText(), r.optText()
	p.CorrelationID = r.id()
	p.ContentType, p.ContentEncoding = r.optText(), r.optText()
	p.AbsoluteExpiry, p.Created = r.timestamp(), r.timestamp()
	p.SessionID = r.optText()
	if n := r.optUint(); n.Set {
		sequence := n.Value
		p.GroupSequence = &sequence
	}
	p.ReplyToSessionID = r.optText()
}

// isID reports whether a value may identify a message (part 3, 3.2.11 to 3.2.14).
func isID(v message.Value) bool {
	switch v.(type) {
	case message.String, message.Ulong, message.UUID, message.Binary, nil:
		return true
	}
	return false
}

func (w *listWriter) id(v message.Value) {
	if !isID(v) && v != (message.Null{}) {
		w.err = fmt.Errorf("%w: an id is a %s", ErrUnencodable, message.KindOf(v))
	}
	w.value(v)
}

func (r *listReader) id() message.Value {
	v := r.value()
	if !isID(v) {
		r.fail(malformed("an id is a %s", message.KindOf(v)))
	}
	return v
}

func (w *listWriter) text(s *string) {
	if s == nil {
		w.null()
		return
	}
	w.dst = appendText(w.dst, codeString8, *s)
	w.put()
}

// symbol writes any text as a symbol: a content type came as long as it is.
func (w *listWriter) symbol(s *string) {
	if s == nil {
		w.null()
		return
	}
	w.dst = appendText(w.dst, codeSymbol8, *s)
	w.put()
}

func (w *listWriter) timestamp(t *time.Time) {
	if t == nil {
		w.null()
		return
	}
	w.dst = binary.BigEndian.AppendUint64(append(w.dst, codeTimestamp), uint64(message.TimestampOf(*t)))
	w.put()
}

// optText reads a string, or a symbol, which some peers write in its place; nil: absent.
func (r *listReader) optText() *string {
	code, ok := r.next()
	if !ok {
		return nil
	}
	s, err := r.d.text(code)
	if err != nil {
		r.fail(err)
		return nil
	}
	return &s
}

func (r *listReader) timestamp() *time.Time {
	code, ok := r.next()
	if !ok {
		return nil
	}
	if code != codeTimestamp {
		r.fail(malformed("a timestamp was expected, not the constructor 0x%02x", code))
		return nil
	}
	t := message.Timestamp(binary.BigEndian.Uint64(r.take(8))).Time()
	return &t
}
