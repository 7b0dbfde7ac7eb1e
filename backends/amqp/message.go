package amqp

import (
	"encoding/binary"
	"math"
	"time"

	"dlq/backends/message"
)

// MaxSections is how many sections a message may have.
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
// The delivery count of the header is that of Broker. The errors wrap [ErrMalformed] or
// [ErrLimit].
func DecodeMessage(b []byte) (*message.Message, error) {
	d := decoder{b: b, slots: len(b) + MaxZeroWidth}
	m := new(message.Message)
	last, footer := uint64(0), false
	for n := 1; len(d.b) > 0; n++ {
		if n > MaxSections {
			return nil, overLimit("more than %d sections", MaxSections)
		}
		if err := d.enter(); err != nil {
			return nil, err
		}
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
		d.depth--
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
		return d.composite((*header)(m))
	case codeProperties:
		return d.composite((*properties)(m))
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

func (d *decoder) application(m *message.Message) error {
	pairs, err := d.sectionMap()
	if err != nil {
		return err
	}
	if len(pairs) > 0 {
		m.Properties = make(message.Properties, len(pairs))
	}
	for i, p := range pairs {
		switch key := p.Key.(type) {
		case message.String:
			m.Properties[i] = message.Attribute{Name: string(key), Value: p.Value}
		case message.Symbol: // some peers write it so
			m.Properties[i] = message.Attribute{Name: string(key), Value: p.Value}
		default:
			return malformed("the name of an application property is a %s", message.KindOf(p.Key))
		}
	}
	return nil
}

// body takes one body section as the bytes that it is.
func (d *decoder) body(m *message.Message, code uint64) error {
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
	out, err := appendComposite(dst, (*header)(m))
	if err != nil {
		return dst, err
	}
	if out, err = appendSection(out, codeDeliveryAnnotations, m.DeliveryAnnotations); err != nil {
		return dst, err
	}
	if out, err = appendSection(out, codeMessageAnnotations, m.Annotations); err != nil {
		return dst, err
	}
	if out, err = appendComposite(out, (*properties)(m)); err != nil {
		return dst, err
	}
	if out, err = appendApplication(out, m.Properties); err != nil {
		return dst, err
	}
	if out, err = appendBody(out, m.Body); err != nil {
		return dst, err
	}
	if out, err = appendSection(out, codeFooter, m.Footer); err != nil {
		return dst, err
	}
	return out, nil
}

func appendSection(dst []byte, code byte, m message.Map) ([]byte, error) {
	if len(m) == 0 {
		return dst, nil
	}
	return AppendValue(append(dst, codeDescribed, codeSmallUlong, code), m)
}

// appendApplication writes the properties as a map without making one.
func appendApplication(dst []byte, properties message.Properties) ([]byte, error) {
	if len(properties) == 0 {
		return dst, nil
	}
	var e encoder
	dst = append(dst, codeDescribed, codeSmallUlong, codeApplication)
	start := len(dst)
	dst, err := e.compound(append(dst, codeMap32), 2*len(properties), func(dst []byte) ([]byte, error) {
		var err error
		for _, p := range properties {
			if dst, err = e.value(dst, message.String(p.Name)); err != nil {
				return dst, err
			}
			if dst, err = e.value(dst, p.Value); err != nil {
				return dst, err
			}
		}
		return dst, nil
	})
	if err != nil {
		return dst, err
	}
	return shorten(dst, start), nil
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

func (*header) code() uint64 { return codeHeader }

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
		h.Priority = &p.Value
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

func (*properties) code() uint64 { return codeProperties }

func (p *properties) write(w *listWriter) {
	w.value(p.ID)
	w.binary(p.UserID)
	w.text(p.To)
	w.text(p.Subject)
	w.text(p.ReplyTo)
	w.value(p.CorrelationID)
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
	p.ID = r.value()
	if id := r.binary(); id != nil {
		p.UserID = append([]byte{}, id...)
	}
	p.To, p.Subject, p.ReplyTo = r.optText(), r.optText(), r.optText()
	p.CorrelationID = r.value()
	p.ContentType, p.ContentEncoding = r.optText(), r.optText()
	p.AbsoluteExpiry, p.Created = r.timestamp(), r.timestamp()
	p.SessionID = r.optText()
	if n := r.optUint(); n.Set {
		p.GroupSequence = &n.Value
	}
	p.ReplyToSessionID = r.optText()
}

func (w *listWriter) text(s *string) {
	if s == nil {
		w.null()
		return
	}
	w.value(message.String(*s))
}

func (w *listWriter) symbol(s *string) {
	if s == nil {
		w.null()
		return
	}
	w.value(message.Symbol(*s))
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
	switch code {
	case codeString8, codeSymbol8, codeString32, codeSymbol32:
	default:
		r.fail(malformed("a string was expected, not the constructor 0x%02x", code))
		return nil
	}
	n, err := r.d.number(code >= codeString32)
	if err != nil {
		r.fail(err)
		return nil
	}
	p, err := r.d.take(n)
	if err != nil {
		r.fail(err)
		return nil
	}
	s := string(p)
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
