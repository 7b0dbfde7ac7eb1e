package message

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// The binary form is dlq's own: the engine's stored record and the journal of a job are
// made of it. It loses nothing of a [Message], its time is milliseconds in the sections
// that AMQP defines and nanoseconds in [Broker], and it is decoded with bounds, because
// a file may be damaged.
//
//	head   = version fields end     every section but Broker and the body
//	body   = kind count {length bytes}
//	broker = version fields end
//	fields = {tag value}            absent fields are not written; end is tag 0
//
// Tags and kinds are never reused for another meaning.

const (
	headVersion   = 1
	brokerVersion = 1
	maxDepth      = 64 // of nested values; AMQP decoders of dlq refuse more than 32
)

// ErrCorrupt is wrapped by every error of the decoding functions.
var ErrCorrupt = errors.New("corrupt message record")

// Append appends the binary form of m, all sections and Broker, to dst.
func Append(dst []byte, m *Message) []byte {
	dst = appendBytes(dst, AppendBroker(nil, &m.Broker))
	dst = appendBytes(dst, AppendHead(nil, m))
	return AppendBody(dst, m.Body)
}

// Decode reads what [Append] wrote. The message keeps slices of b.
func Decode(b []byte) (*Message, error) {
	d := &decoder{b: b}
	broker, head := d.bytes(), d.bytes()
	if d.err != nil {
		return nil, d.err
	}
	m, err := DecodeHead(head)
	if err != nil {
		return nil, err
	}
	if m.Broker, err = DecodeBroker(broker); err != nil {
		return nil, err
	}
	m.Body, err = DecodeBody(d.b)
	return m, err
}

const (
	tagEnd byte = iota
	tagDurable
	tagPriority
	tagTTL
	tagFirstAcquirer
	tagDeliveryAnnotations
	tagAnnotations
	tagID
	tagUserID
	tagTo
	tagSubject
	tagReplyTo
	tagCorrelationID
	tagContentType
	tagContentEncoding
	tagAbsoluteExpiry
	tagCreated
	tagSessionID
	tagGroupSequence
	tagReplyToSessionID
	tagProperties
	tagFooter
	tagScheduled
	tagSystem
)

// AppendHead appends every section of m but its body and [Broker].
func AppendHead(dst []byte, m *Message) []byte {
	dst = append(dst, headVersion)
	if m.Durable {
		dst = append(dst, tagDurable)
	}
	if m.Priority != nil {
		dst = append(dst, tagPriority, *m.Priority)
	}
	if m.TTL != nil {
		dst = binary.AppendVarint(append(dst, tagTTL), int64(*m.TTL))
	}
	if m.FirstAcquirer {
		dst = append(dst, tagFirstAcquirer)
	}
	dst = appendMapField(dst, tagDeliveryAnnotations, m.DeliveryAnnotations)
	dst = appendMapField(dst, tagAnnotations, m.Annotations)
	dst = appendValueField(dst, tagID, m.ID)
	if m.UserID != nil {
		dst = appendBytes(append(dst, tagUserID), m.UserID)
	}
	dst = appendStringField(dst, tagTo, m.To)
	dst = appendStringField(dst, tagSubject, m.Subject)
	dst = appendStringField(dst, tagReplyTo, m.ReplyTo)
	dst = appendValueField(dst, tagCorrelationID, m.CorrelationID)
	dst = appendStringField(dst, tagContentType, m.ContentType)
	dst = appendStringField(dst, tagContentEncoding, m.ContentEncoding)
	dst = appendTimeField(dst, tagAbsoluteExpiry, m.AbsoluteExpiry)
	dst = appendTimeField(dst, tagCreated, m.Created)
	dst = appendStringField(dst, tagSessionID, m.SessionID)
	if m.GroupSequence != nil {
		dst = binary.AppendUvarint(append(dst, tagGroupSequence), uint64(*m.GroupSequence))
	}
	dst = appendStringField(dst, tagReplyToSessionID, m.ReplyToSessionID)
	dst = appendAttributesField(dst, tagProperties, m.Properties)
	dst = appendMapField(dst, tagFooter, m.Footer)
	dst = appendTimeField(dst, tagScheduled, m.ScheduledEnqueueTime)
	dst = appendAttributesField(dst, tagSystem, m.System)
	return append(dst, tagEnd)
}

// DecodeHead reads what [AppendHead] wrote into a new message. It keeps slices of b.
func DecodeHead(b []byte) (*Message, error) {
	d := &decoder{b: b}
	d.version(headVersion)
	m := &Message{}
	last := tagEnd
	for d.err == nil {
		tag := d.byte()
		if tag == tagEnd {
			break
		}
		if tag <= last { // fields ascend, so that there is one form of each message
			return nil, fmt.Errorf("%w: field %d after %d", ErrCorrupt, tag, last)
		}
		last = tag
		d.headField(tag, m)
	}
	return m, d.done()
}

func (d *decoder) headField(tag byte, m *Message) {
	switch tag {
	case tagDurable:
		m.Durable = true
	case tagPriority:
		m.Priority = new(d.byte())
	case tagTTL:
		m.TTL = new(time.Duration(d.varint()))
	case tagFirstAcquirer:
		m.FirstAcquirer = true
	case tagDeliveryAnnotations:
		m.DeliveryAnnotations = d.mapValue(0)
	case tagAnnotations:
		m.Annotations = d.mapValue(0)
	case tagID:
		m.ID = d.value(0)
	case tagUserID:
		m.UserID = d.bytes()
	case tagTo:
		m.To = new(d.string())
	case tagSubject:
		m.Subject = new(d.string())
	case tagReplyTo:
		m.ReplyTo = new(d.string())
	case tagCorrelationID:
		m.CorrelationID = d.value(0)
	case tagContentType:
		m.ContentType = new(d.string())
	case tagContentEncoding:
		m.ContentEncoding = new(d.string())
	case tagAbsoluteExpiry:
		m.AbsoluteExpiry = d.millis()
	case tagCreated:
		m.Created = d.millis()
	case tagSessionID:
		m.SessionID = new(d.string())
	case tagGroupSequence:
		m.GroupSequence = new(uint32(d.uvarintMax(math.MaxUint32)))
	case tagReplyToSessionID:
		m.ReplyToSessionID = new(d.string())
	case tagProperties:
		m.Properties = d.attributes()
	case tagFooter:
		m.Footer = d.mapValue(0)
	case tagScheduled:
		m.ScheduledEnqueueTime = d.millis()
	case tagSystem:
		m.System = d.attributes()
	default:
		d.fail("unknown field %d", tag)
	}
}

// AppendBody appends the binary form of a body.
func AppendBody(dst []byte, b Body) []byte {
	dst = append(dst, byte(b.Kind))
	dst = binary.AppendUvarint(dst, uint64(len(b.Sections)))
	for _, s := range b.Sections {
		dst = appendBytes(dst, s)
	}
	return dst
}

// DecodeBody reads what [AppendBody] wrote. The body keeps slices of b.
func DecodeBody(b []byte) (Body, error) {
	d := &decoder{b: b}
	body := Body{Kind: BodyKind(d.byte())}
	if body.Kind > Sequence {
		d.fail("body kind %d", body.Kind)
	}
	if n := d.count(); n > 0 {
		body.Sections = make([][]byte, 0, min(n, 64))
		for range n {
			body.Sections = append(body.Sections, d.bytes())
		}
	}
	return body, d.done()
}

const (
	tagSequenceNumber byte = iota + 1
	tagEnqueuedSequence
	tagEnqueuedTime
	tagExpiresAt
	tagDeliveryCount
	tagState
	tagLockToken
	tagLockedUntil
	tagDeadLetterSource
	tagBodyOmitted
	tagBodySize
	tagFirstReceived
)

// AppendBroker appends what the broker owns.
func AppendBroker(dst []byte, b *Broker) []byte {
	dst = append(dst, brokerVersion)
	dst = appendIntField(dst, tagSequenceNumber, b.SequenceNumber)
	dst = appendIntField(dst, tagEnqueuedSequence, b.EnqueuedSequenceNumber)
	dst = appendInstantField(dst, tagEnqueuedTime, b.EnqueuedTime)
	dst = appendInstantField(dst, tagExpiresAt, b.ExpiresAt)
	dst = appendIntField(dst, tagDeliveryCount, int64(b.DeliveryCount))
	dst = appendIntField(dst, tagState, int64(b.State))
	if !b.LockToken.IsZero() {
		dst = append(append(dst, tagLockToken), b.LockToken[:]...)
	}
	dst = appendInstantField(dst, tagLockedUntil, b.LockedUntil)
	if b.DeadLetterSource != "" {
		dst = appendStringField(dst, tagDeadLetterSource, &b.DeadLetterSource)
	}
	if b.BodyOmitted {
		dst = append(dst, tagBodyOmitted)
	}
	dst = appendIntField(dst, tagBodySize, b.BodySize)
	dst = appendInstantField(dst, tagFirstReceived, b.FirstReceived)
	return append(dst, tagEnd)
}

// DecodeBroker reads what [AppendBroker] wrote.
func DecodeBroker(b []byte) (Broker, error) {
	d := &decoder{b: b}
	d.version(brokerVersion)
	var out Broker
	for d.err == nil {
		switch tag := d.byte(); tag {
		case tagEnd:
			return out, d.done()
		case tagSequenceNumber:
			out.SequenceNumber = d.varint()
		case tagEnqueuedSequence:
			out.EnqueuedSequenceNumber = d.varint()
		case tagEnqueuedTime:
			out.EnqueuedTime = d.instant()
		case tagFirstReceived:
			out.FirstReceived = d.instant()
		case tagExpiresAt:
			out.ExpiresAt = d.instant()
		case tagDeliveryCount:
			out.DeliveryCount = uint32(d.varint())
		case tagState:
			out.State = State(d.varint())
		case tagLockToken:
			copy(out.LockToken[:], d.take(len(out.LockToken)))
		case tagLockedUntil:
			out.LockedUntil = d.instant()
		case tagDeadLetterSource:
			out.DeadLetterSource = d.string()
		case tagBodyOmitted:
			out.BodyOmitted = true
		case tagBodySize:
			out.BodySize = d.varint()
		default:
			d.fail("unknown broker field %d", tag)
		}
	}
	return out, d.err
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendStringField(dst []byte, tag byte, s *string) []byte {
	if s == nil {
		return dst
	}
	return appendString(append(dst, tag), *s)
}

func appendIntField(dst []byte, tag byte, n int64) []byte {
	if n == 0 {
		return dst
	}
	return binary.AppendVarint(append(dst, tag), n)
}

func appendTimeField(dst []byte, tag byte, t *time.Time) []byte {
	if t == nil {
		return dst
	}
	return binary.AppendVarint(append(dst, tag), t.UnixMilli())
}

// appendInstantField writes seconds and nanoseconds, since UnixNano overflows beyond 2262.
func appendInstantField(dst []byte, tag byte, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	dst = binary.AppendVarint(append(dst, tag), t.Unix())
	return binary.AppendUvarint(dst, uint64(t.Nanosecond()))
}

func appendMapField(dst []byte, tag byte, m Map) []byte {
	if len(m) == 0 {
		return dst
	}
	return appendMap(append(dst, tag), m)
}

func appendValueField(dst []byte, tag byte, v Value) []byte {
	if v == nil {
		return dst
	}
	return AppendValue(append(dst, tag), v)
}

func appendAttributesField(dst []byte, tag byte, as []Attribute) []byte {
	if len(as) == 0 {
		return dst
	}
	return AppendAttributes(append(dst, tag), as)
}

// AppendAttributes appends a list of named values.
func AppendAttributes(dst []byte, as []Attribute) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(as)))
	for _, a := range as {
		dst = AppendValue(appendString(dst, a.Name), a.Value)
	}
	return dst
}

// DecodeAttributes reads what [AppendAttributes] wrote. It keeps slices of b.
func DecodeAttributes(b []byte) ([]Attribute, error) {
	d := &decoder{b: b}
	as := d.attributes()
	return as, d.done()
}
