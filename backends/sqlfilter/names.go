package sqlfilter

import (
	"strings"
	"time"

	"dlq/backends/message"
)

// Names is the set of names that an expression may use, and with it the dialect: see the
// package comment. Make one with [RuleNames] or [SelectionNames]; it is immutable and may be
// shared. The zero value is a rule's, without any system property.
type Names struct {
	system    []systemProperty
	selection bool
	maxLength int
}

// systemProperty is one name in the sys scope.
type systemProperty struct {
	name string
	kind kind // of its value where there is one
	get  func(*message.Message) value
}

// The longest source texts, in bytes.
const (
	// MaxRuleLength is the service's limit for the text of a rule.
	MaxRuleLength = 1024
	// MaxSelectionLength is dlq's own limit for a selection.
	MaxSelectionLength = 64 << 10
)

// RuleNames returns what a subscription rule may name, as the service has it.
func RuleNames() Names {
	return Names{maxLength: MaxRuleLength, system: append(commonProperties(),
		systemProperty{"State", longKind, func(m *message.Message) value { return longValue(int64(m.Broker.State)) }})}
}

// SelectionNames returns what a selection of dlq may name: more than a rule may.
func SelectionNames() Names {
	return Names{selection: true, maxLength: MaxSelectionLength, system: append(commonProperties(),
		systemProperty{"State", textKind, func(m *message.Message) value { return textValue(m.Broker.State.String()) }},
		systemProperty{"DeadLetterReason", textKind, func(m *message.Message) value {
			return applicationText(m, message.DeadLetterReasonProperty)
		}},
		systemProperty{"DeadLetterErrorDescription", textKind, func(m *message.Message) value {
			return applicationText(m, message.DeadLetterDescriptionProperty)
		}})}
}

// Name is one name that an expression may use, for completion and help.
type Name struct {
	Text string // as it is written, such as "sys.Label"
	Type string // what it holds, in words, such as "text"
}

// All returns the fixed names, those of the sys scope first. Application properties and
// paths into the body are not among them: they depend on the messages.
func (n Names) All() []Name {
	var out []Name
	for _, p := range n.system {
		out = append(out, Name{"sys." + p.name, strings.TrimPrefix(p.kind.noun(), "a ")})
	}
	if n.selection {
		out = append(out, Name{bodyName, textKind.noun()})
	}
	return out
}

// systemNames are the names of the system properties, without the scope.
func (n Names) systemNames() []string {
	var names []string
	for _, p := range n.system {
		names = append(names, p.name)
	}
	return names
}

// bodyName is the unscoped name of the body's text in a selection.
const bodyName = "body"

// lookup finds a system property by its name, without case.
func (n Names) lookup(name string) (systemProperty, bool) {
	for _, p := range n.system {
		if strings.EqualFold(p.name, name) {
			return p, true
		}
	}
	return systemProperty{}, false
}

// commonProperties are the system properties of rules and selections alike. A field that the
// message lacks is null. ExpiresAtUtc of a message that never expires is the end of year
// 9999, so that it compares as later than any time.
func commonProperties() []systemProperty {
	type m = *message.Message
	never := time.Date(9999, 12, 31, 23, 59, 59, 999999900, time.UTC)
	return []systemProperty{
		{"ContentType", textKind, func(m m) value { return optionalText(m.ContentType) }},
		{"CorrelationId", textKind, func(m m) value { return idText(m.CorrelationID) }},
		{"DeadLetterSource", textKind, func(m m) value { return nonEmpty(m.Broker.DeadLetterSource) }},
		{"DeliveryCount", longKind, func(m m) value { return longValue(int64(m.Broker.DeliveryCount)) }},
		{"EnqueuedSequenceNumber", longKind, func(m m) value { return longValue(m.Broker.EnqueuedSequenceNumber) }},
		{"EnqueuedTimeUtc", timeKind, func(m m) value { return timeValue(m.Broker.EnqueuedTime) }},
		{"ExpiresAtUtc", timeKind, func(m m) value {
			if m.Broker.ExpiresAt.IsZero() {
				return timeValue(never)
			}
			return timeValue(m.Broker.ExpiresAt)
		}},
		{"ForcePersistence", boolKind, func(m m) value { return boolValue(m.Durable) }},
		{"Label", textKind, func(m m) value { return optionalText(m.Subject) }},
		{"Subject", textKind, func(m m) value { return optionalText(m.Subject) }},
		{"LockedUntilUtc", timeKind, func(m m) value { return timeValue(m.Broker.LockedUntil) }},
		{"LockToken", guidKind, func(m m) value {
			if m.Broker.LockToken.IsZero() {
				return value{}
			}
			return guidValue(m.Broker.LockToken)
		}},
		{"MessageId", textKind, func(m m) value { return idText(m.ID) }},
		{"PartitionKey", textKind, func(m m) value { return annotation(m, message.PartitionKeyAnnotation) }},
		{"ReplyTo", textKind, func(m m) value { return optionalText(m.ReplyTo) }},
		{"ReplyToSessionId", textKind, func(m m) value { return optionalText(m.ReplyToSessionID) }},
		{"ScheduledEnqueueTimeUtc", timeKind, func(m m) value {
			if m.ScheduledEnqueueTime == nil {
				return value{}
			}
			return timeValue(*m.ScheduledEnqueueTime)
		}},
		{"SequenceNumber", longKind, func(m m) value {
			if m.Broker.SequenceNumber == 0 { // the service has none
				return value{}
			}
			return longValue(m.Broker.SequenceNumber)
		}},
		{"SessionId", textKind, func(m m) value { return optionalText(m.SessionID) }},
		{"Size", longKind, func(m m) value { return longValue(max(m.Broker.BodySize, int64(m.Body.Len()))) }},
		{"TimeToLive", durationKind, func(m m) value {
			if m.TTL == nil {
				return value{}
			}
			return durationValue(*m.TTL)
		}},
		{"To", textKind, func(m m) value { return optionalText(m.To) }},
		{"ViaPartitionKey", textKind, func(m m) value { return annotation(m, message.ViaPartitionKeyAnnotation) }},
	}
}

// idText is an identifier as the service compares it: a text, whatever AMQP type it had.
func idText(v message.Value) value {
	switch v := v.(type) {
	case nil, message.Null:
		return value{}
	case message.String:
		return textValue(string(v))
	}
	return textValue(message.FormatValue(v))
}

func nonEmpty(s string) value {
	if s == "" {
		return value{}
	}
	return textValue(s)
}

func annotation(m *message.Message, key message.Symbol) value {
	v, _ := m.Annotations.Get(key)
	return fromMessage(v)
}

func applicationText(m *message.Message, name string) value {
	v, _ := m.Properties.Get(name)
	return fromMessage(v)
}

// userProperty finds an application property: by its exact name first, then without case.
func userProperty(m *message.Message, name string) (message.Value, bool) {
	i := userIndex(m, name)
	if i < 0 {
		return nil, false
	}
	return m.Properties[i].Value, true
}

// userIndex is userProperty as an index, or -1.
func userIndex(m *message.Message, name string) int {
	folded := -1
	for i := range m.Properties {
		p := &m.Properties[i]
		if p.Name == name {
			return i
		}
		if folded < 0 && strings.EqualFold(p.Name, name) {
			folded = i
		}
	}
	return folded
}
