package export

import (
	"fmt"
	"strings"
	"time"

	"dlq/backends/message"
)

// ParseJSON reads one message that [AppendJSON] wrote, or that a person wrote by the same
// rules. The message shares no memory with b. An error is a [*SyntaxError].
func ParseJSON(b []byte) (*message.Message, error) {
	p := parser{b: b}
	m, err := p.message()
	if err != nil {
		return nil, err
	}
	return m, p.end()
}

// members reads members of a group that it knows; it reports whether it knew the key.
type members func(p *parser, m *message.Message, key string) (known bool, err error)

func (p *parser) message() (*message.Message, error) {
	m := &message.Message{}
	body := bodyParts{}
	if p.next() != '{' {
		return nil, p.fail(p.i, "want a message, which begins with '{'")
	}
	groups := [...]members{headerMember, textMember, timeMember, sectionMember, brokerMember, brokerTimeMember, body.member}
	start := p.i
	err := p.object(func(key string) error {
		at := p.i
		for _, member := range groups {
			if known, err := member(p, m, key); known || err != nil {
				return err
			}
		}
		return p.fail(at, "unknown key %q; messages have the keys that `dlq export` writes, and application properties go under \"properties\"", key)
	})
	if err != nil {
		return nil, err
	}
	if m.Body, err = body.assemble(); err != nil {
		return nil, p.fail(start, "%v", err)
	}
	return m, nil
}

func headerMember(p *parser, m *message.Message, key string) (bool, error) {
	var err error
	switch key {
	case "durable":
		m.Durable, err = p.boolean()
	case "firstAcquirer":
		m.FirstAcquirer, err = p.boolean()
	case "priority":
		var n uint64
		n, err = p.unsigned(8)
		priority := uint8(n)
		m.Priority = &priority
	case "groupSequence":
		var n uint64
		n, err = p.unsigned(32)
		sequence := uint32(n)
		m.GroupSequence = &sequence
	case "ttl":
		at := p.i
		var s string
		if s, err = p.text(); err != nil {
			return true, err
		}
		d, bad := time.ParseDuration(s)
		if bad != nil {
			return true, p.fail(at, "%q is not a duration; write it as 1h2m3s", s)
		}
		m.TTL = &d
	case "messageId":
		m.ID, err = p.value(0)
	case "correlationId":
		m.CorrelationID, err = p.value(0)
	default:
		return false, nil
	}
	return true, err
}

// baseText reads the text of key, which may be Base64 as its suffix says.
func (p *parser) baseText(key string) (string, error) {
	if strings.HasSuffix(key, "Base64") {
		b, err := p.base64()
		return string(b), err
	}
	return p.text()
}

func textMember(p *parser, m *message.Message, key string) (bool, error) {
	name := strings.TrimSuffix(key, "Base64")
	at := p.i
	for _, f := range textFields(m) {
		if f.key != name {
			continue
		}
		if *f.p != nil {
			return true, p.fail(at, "%s and %sBase64 say the same; keep one of them", name, name)
		}
		s, err := p.baseText(key)
		*f.p = &s
		return true, err
	}
	if name != "userId" {
		return false, nil
	}
	if m.UserID != nil {
		return true, p.fail(at, "userId and userIdBase64 say the same; keep one of them")
	}
	s, err := p.baseText(key)
	m.UserID = []byte(s)
	return true, err
}

func timeMember(p *parser, m *message.Message, key string) (bool, error) {
	for _, f := range timeFields(m) {
		if f.key == key {
			t, err := p.time()
			*f.p = &t
			return true, err
		}
	}
	return false, nil
}

func sectionMember(p *parser, m *message.Message, key string) (bool, error) {
	var err error
	switch key {
	case "deliveryAnnotations":
		m.DeliveryAnnotations, err = p.mapping(message.KindSymbol, 0)
	case "annotations":
		m.Annotations, err = p.mapping(message.KindSymbol, 0)
	case "footer":
		m.Footer, err = p.mapping(message.KindSymbol, 0)
	case "properties":
		m.Properties, err = p.attributes()
	case "system":
		m.System, err = p.attributes()
	default:
		return false, nil
	}
	return true, err
}

func brokerMember(p *parser, m *message.Message, key string) (bool, error) {
	b := &m.Broker
	var err error
	switch key {
	case "sequenceNumber":
		b.SequenceNumber, err = p.integer(64)
	case "enqueuedSequenceNumber":
		b.EnqueuedSequenceNumber, err = p.integer(64)
	case "deliveryCount":
		var n uint64
		n, err = p.unsigned(32)
		b.DeliveryCount = uint32(n)
	case "state":
		b.State, err = p.state()
	case "lockToken":
		var v message.Value
		if v, err = p.primitive(message.KindUUID); err == nil {
			b.LockToken = v.(message.UUID)
		}
	case "deadLetterSource", "deadLetterSourceBase64":
		b.DeadLetterSource, err = p.baseText(key)
	case "bodyOmitted":
		b.BodyOmitted, err = p.boolean()
	case "bodySize":
		b.BodySize, err = p.integer(64)
	default:
		return false, nil
	}
	return true, err
}

func brokerTimeMember(p *parser, m *message.Message, key string) (bool, error) {
	var at *time.Time
	switch key {
	case "enqueuedTime":
		at = &m.Broker.EnqueuedTime
	case "expiresAt":
		at = &m.Broker.ExpiresAt
	case "lockedUntil":
		at = &m.Broker.LockedUntil
	default:
		return false, nil
	}
	t, err := p.time()
	*at = t
	return true, err
}

// state reads the name of a state, or the number of one that has no name here.
func (p *parser) state() (message.State, error) {
	if p.next() != '"' {
		n, err := p.unsigned(8)
		return message.State(n), err
	}
	at := p.i
	s, err := p.text()
	if err != nil {
		return 0, err
	}
	for _, state := range []message.State{message.Active, message.Deferred, message.Scheduled} {
		if s == state.String() {
			return state, nil
		}
	}
	return 0, p.fail(at, "unknown state %q; the states are active, deferred and scheduled", s)
}

// bodyParts collects the keys of a body, which exclude each other.
type bodyParts struct {
	single   []byte // "body" or "bodyBase64"; nil: neither
	twice    bool
	kind     string
	sections [][]byte // "bodySectionsBase64"; nil: none
}

func (b *bodyParts) member(p *parser, _ *message.Message, key string) (bool, error) {
	var err error
	switch key {
	case "body", "bodyBase64":
		b.twice = b.single != nil
		if key == "body" {
			b.single, err = p.textBytes()
		} else {
			b.single, err = p.base64()
		}
	case "bodyKind":
		b.kind, err = p.text()
	case "bodySectionsBase64":
		b.sections = [][]byte{}
		err = p.array(func() error {
			s, err := p.base64()
			b.sections = append(b.sections, s)
			return err
		})
	default:
		return false, nil
	}
	return true, err
}

func (b *bodyParts) assemble() (message.Body, error) {
	switch {
	case b.twice, b.single != nil && (b.sections != nil || b.kind != ""):
		return message.Body{}, fmt.Errorf("the body is given twice; keep one of body, bodyBase64 and bodyKind with bodySectionsBase64")
	case b.single != nil:
		return message.DataBody(b.single), nil
	case b.kind == "" && b.sections == nil:
		return message.Body{}, nil
	case b.kind == "" || b.sections == nil:
		return message.Body{}, fmt.Errorf("bodyKind and bodySectionsBase64 only go together")
	}
	for _, kind := range []message.BodyKind{message.Data, message.ValueBody, message.Sequence} {
		if b.kind == kind.String() {
			return message.Body{Kind: kind, Sections: b.sections}, nil
		}
	}
	return message.Body{}, fmt.Errorf("unknown bodyKind %q; the kinds are data, value and sequence", b.kind)
}
