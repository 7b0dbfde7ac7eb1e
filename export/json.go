package export

import (
	"encoding/base64"
	"fmt"
	"time"
	"unicode/utf8"

	"dlq/backends/message"
)

// AppendJSON appends m as one JSON object without line breaks, in the form that the
// package documentation describes. It fails only on what the message model rules out: a
// property without a value, an array of mixed kinds, nesting beyond [MaxDepth], a time
// further away than milliseconds can count; dst then comes back as it was.
func AppendJSON(dst []byte, m *message.Message) ([]byte, error) {
	w := objectWriter{dst: append(dst, '{')}
	w.broker(&m.Broker)
	w.value("messageId", m.ID)
	w.value("correlationId", m.CorrelationID)
	for _, f := range textFields(m) {
		if *f.p != nil {
			w.text(f.key, **f.p)
		}
	}
	if m.UserID != nil {
		w.text("userId", string(m.UserID))
	}
	w.header(m)
	if m.GroupSequence != nil {
		w.int("groupSequence", int64(*m.GroupSequence))
	}
	for _, f := range timeFields(m) {
		if *f.p != nil {
			w.time(f.key, **f.p)
		}
	}
	w.section("deliveryAnnotations", m.DeliveryAnnotations)
	w.section("annotations", m.Annotations)
	w.attributes("properties", m.Properties)
	w.section("footer", m.Footer)
	w.attributes("system", m.System)
	w.body(m.Body)
	if w.err != nil {
		return dst, w.err
	}
	return append(w.dst, '}'), nil
}

// textFields lists the optional texts of a message with their keys.
func textFields(m *message.Message) [7]struct {
	key string
	p   **string
} {
	return [...]struct {
		key string
		p   **string
	}{
		{"subject", &m.Subject},
		{"contentType", &m.ContentType},
		{"contentEncoding", &m.ContentEncoding},
		{"sessionId", &m.SessionID},
		{"to", &m.To},
		{"replyTo", &m.ReplyTo},
		{"replyToSessionId", &m.ReplyToSessionID},
	}
}

// timeFields lists the optional instants of a message with their keys.
func timeFields(m *message.Message) [3]struct {
	key string
	p   **time.Time
} {
	return [...]struct {
		key string
		p   **time.Time
	}{{"absoluteExpiry", &m.AbsoluteExpiry}, {"created", &m.Created}, {"scheduledEnqueueTime", &m.ScheduledEnqueueTime}}
}

// objectWriter appends the members of an object. The first error sticks.
type objectWriter struct {
	dst []byte
	err error
}

func (w *objectWriter) key(name string) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(append(append(w.dst, '"'), name...), '"', ':')
}

func (w *objectWriter) int(key string, n int64) {
	w.key(key)
	w.dst = appendInt(w.dst, n)
}

func (w *objectWriter) flag(key string, set bool) {
	if set {
		w.key(key)
		w.dst = append(w.dst, "true"...)
	}
}

// text appends s, under another key if it is not UTF-8.
func (w *objectWriter) text(key, s string) {
	if utf8.ValidString(s) {
		w.key(key)
		w.dst = appendString(w.dst, s)
		return
	}
	w.key(key + "Base64")
	w.dst = appendBase64(w.dst, s)
}

func (w *objectWriter) time(key string, t time.Time) {
	var err error
	w.key(key)
	w.dst, err = appendTime(w.dst, t)
	w.fail(key, err)
}

// fail keeps the first error, with the key it is about.
func (w *objectWriter) fail(key string, err error) {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("%s: %w", key, err)
	}
}

func (w *objectWriter) value(key string, v message.Value) {
	if v == nil {
		return
	}
	var err error
	w.key(key)
	w.dst, err = appendValue(w.dst, v, 0)
	w.fail(key, err)
}

func (w *objectWriter) section(key string, m message.Map) {
	if len(m) == 0 {
		return
	}
	var err error
	w.key(key)
	w.dst, err = appendMap(w.dst, m, message.KindSymbol, 0)
	w.fail(key, err)
}

func (w *objectWriter) attributes(key string, list []message.Attribute) {
	if len(list) == 0 {
		return
	}
	var err error
	w.key(key)
	w.dst, err = appendAttributes(w.dst, list)
	w.fail(key, err)
}

// appendAttributes appends list as an object if all its names are different UTF-8 texts,
// else as an array.
func appendAttributes(dst []byte, list []message.Attribute) ([]byte, error) {
	open, end := byte('{'), byte('}')
	object := uniqueText(len(list), func(i int) (string, bool) { return list[i].Name, true })
	if !object {
		open, end = '[', ']'
	}
	w := objectWriter{dst: append(dst, open)}
	for i, a := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if object {
			w.dst = append(appendString(w.dst, a.Name), ':')
		} else {
			w.dst = append(w.dst, '{')
			w.text("name", a.Name)
			w.key("value")
		}
		var err error
		if w.dst, err = appendValue(w.dst, a.Value, 0); err != nil {
			return dst, fmt.Errorf("%q: %w", a.Name, err)
		}
		if !object {
			w.dst = append(w.dst, '}')
		}
	}
	return append(w.dst, end), nil
}

func (w *objectWriter) header(m *message.Message) {
	w.flag("durable", m.Durable)
	if m.Priority != nil {
		w.int("priority", int64(*m.Priority))
	}
	if m.TTL != nil {
		w.key("ttl")
		w.dst = appendString(w.dst, m.TTL.String())
	}
	w.flag("firstAcquirer", m.FirstAcquirer)
}

// broker appends what is set. A numbered message always has its count and state, which
// readers of the output look for.
func (w *objectWriter) broker(b *message.Broker) {
	if b.SequenceNumber != 0 {
		w.int("sequenceNumber", b.SequenceNumber)
	}
	if b.EnqueuedSequenceNumber != 0 {
		w.int("enqueuedSequenceNumber", b.EnqueuedSequenceNumber)
	}
	w.instant("enqueuedTime", b.EnqueuedTime)
	w.instant("expiresAt", b.ExpiresAt)
	if b.DeliveryCount != 0 || b.SequenceNumber != 0 {
		w.int("deliveryCount", int64(b.DeliveryCount))
	}
	if b.State > message.Scheduled {
		w.int("state", int64(b.State)) // one that has no name here
	} else if b.State != message.Active || b.SequenceNumber != 0 {
		w.text("state", b.State.String())
	}
	if !b.LockToken.IsZero() {
		w.text("lockToken", b.LockToken.String())
	}
	w.instant("lockedUntil", b.LockedUntil)
	if b.DeadLetterSource != "" {
		w.text("deadLetterSource", b.DeadLetterSource)
	}
	w.flag("bodyOmitted", b.BodyOmitted)
	if b.BodySize != 0 {
		w.int("bodySize", b.BodySize)
	}
}

func (w *objectWriter) instant(key string, t time.Time) {
	if !t.IsZero() {
		w.time(key, t)
	}
}

func (w *objectWriter) body(b message.Body) {
	if b.Kind == message.Data && len(b.Sections) == 0 {
		return
	}
	if b.Kind == message.Data && len(b.Sections) == 1 {
		s := b.Sections[0]
		if utf8.Valid(s) {
			w.key("body")
			w.dst = appendText(w.dst, s)
			return
		}
		w.key("bodyBase64")
		w.dst = append(base64.StdEncoding.AppendEncode(append(w.dst, '"'), s), '"')
		return
	}
	if b.Kind > message.Sequence {
		w.fail("bodyKind", fmt.Errorf("unknown kind %d", b.Kind))
		return
	}
	w.text("bodyKind", b.Kind.String())
	w.key("bodySectionsBase64")
	w.dst = append(w.dst, '[')
	for i, s := range b.Sections {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(base64.StdEncoding.AppendEncode(append(w.dst, '"'), s), '"')
	}
	w.dst = append(w.dst, ']')
}
