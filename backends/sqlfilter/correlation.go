package sqlfilter

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"dlq/backends/message"
)

// Correlation is a correlation filter: it matches a message that has every field that is set.
// The zero value matches all messages.
type Correlation struct {
	CorrelationID    *string
	MessageID        *string
	To               *string
	ReplyTo          *string
	Subject          *string // Label
	SessionID        *string
	ReplyToSessionID *string
	ContentType      *string

	// Properties are application properties that the message must have, with these values.
	Properties message.Properties
}

// Match reports whether the message has all that the filter asks for. Text compares ordinal
// and with case, an id that is no text by its text form. The name of an application property
// compares without case, as in the expression that the service documents as its equivalent;
// its value must be the same in type and value, where all numbers are of one type, as are
// strings, symbols and characters. A null and a NaN match nothing. Match may be called concurrently.
// It does not allocate, unless it compares a decimal of more than 64 bits.
func (c Correlation) Match(m *message.Message) bool {
	return sameText(c.Subject, m.Subject) &&
		sameText(c.To, m.To) &&
		sameText(c.SessionID, m.SessionID) &&
		sameText(c.ReplyTo, m.ReplyTo) &&
		sameText(c.ReplyToSessionID, m.ReplyToSessionID) &&
		sameText(c.ContentType, m.ContentType) &&
		sameID(c.CorrelationID, m.CorrelationID) &&
		sameID(c.MessageID, m.ID) &&
		c.matchProperties(m)
}

func (c *Correlation) matchProperties(m *message.Message) bool {
	for i := range c.Properties {
		want := &c.Properties[i]
		have, ok := userProperty(m, want.Name)
		if !ok || !sameValue(want.Value, have) {
			return false
		}
	}
	return true
}

// Validate refuses what can never match as it was meant: a property without a name, two of
// one name, and a value of a type that does not compare.
func (c Correlation) Validate() error {
	for i, p := range c.Properties {
		v := fromMessage(p.Value)
		_, isBinary := p.Value.(message.Binary)
		switch {
		case p.Name == "":
			return errors.New("correlation filter: the name of a property is empty")
		case p.Value == nil:
			return fmt.Errorf("correlation filter: property %q has no value", p.Name)
		case v.kind == otherKind && !isBinary && !isDecimal(p.Value):
			return fmt.Errorf("correlation filter: property %q is %s, which does not compare; give it a text, number, boolean, time, duration or GUID",
				p.Name, typeName(p.Value))
		}
		for _, other := range c.Properties[:i] {
			if strings.EqualFold(other.Name, p.Name) {
				return fmt.Errorf("correlation filter: properties %q and %q have one name; case does not count", other.Name, p.Name)
			}
		}
	}
	return nil
}

func sameText(want, have *string) bool {
	return want == nil || have != nil && *want == *have
}

// sameID compares an id with its text form, which is idText without making it.
func sameID(want *string, have message.Value) bool {
	if want == nil {
		return true
	}
	var buf [192]byte // holds the base64 form of the longest id
	switch have := have.(type) {
	case message.String:
		return *want == string(have)
	case message.UUID:
		return isUUIDText(*want, have)
	case message.Ulong:
		return *want == string(strconv.AppendUint(buf[:0], uint64(have), 10))
	case message.Binary:
		return *want == string(base64.StdEncoding.AppendEncode(buf[:0], have))
	case nil, message.Null:
		return false
	}
	return *want == idText(have).s // a type that AMQP does not have for ids
}

// isUUIDText reports whether s is u.String().
func isUUIDText(s string, u message.UUID) bool {
	const digits = "0123456789abcdef"
	if len(s) != 36 {
		return false
	}
	at := 0
	for i, b := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			if s[at] != '-' {
				return false
			}
			at++
		}
		if s[at] != digits[b>>4] || s[at+1] != digits[b&15] {
			return false
		}
		at += 2
	}
	return true
}

func sameValue(want, have message.Value) bool {
	if w, ok := want.(message.String); ok {
		if h, ok := have.(message.String); ok { // nearly always
			return w == h
		}
	}
	if w, ok := want.(message.Ulong); ok {
		if h, ok := have.(message.Ulong); ok { // all 64 bits of it
			return w == h
		}
	}
	x, y := fromMessage(want), fromMessage(have)
	if x.kind == otherKind {
		return message.EqualValues(want, have)
	}
	order, ok := compareValues(x, y, false)
	return ok && order == 0
}
