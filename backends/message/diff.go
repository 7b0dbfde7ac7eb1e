package message

import (
	"bytes"
	"slices"
	"time"
)

// Diff returns the names of the sections and fields in which a and b differ, leaving
// out what the broker owns (see [Broker]). It is empty for a faithful round trip. The
// names are those of the fields of [Message]; an application property is named
// "Properties.NAME", and "Properties order" is a difference of its own.
func Diff(a, b *Message) []string {
	var out []string
	add := func(name string, equal bool) {
		if !equal {
			out = append(out, name)
		}
	}
	add("Durable", a.Durable == b.Durable)
	add("Priority", equalPtr(a.Priority, b.Priority))
	add("TTL", equalPtr(a.TTL, b.TTL))
	add("FirstAcquirer", a.FirstAcquirer == b.FirstAcquirer)
	add("DeliveryAnnotations", equalMaps(a.DeliveryAnnotations, b.DeliveryAnnotations))
	add("Annotations", equalMaps(a.Annotations, b.Annotations))
	add("ID", EqualValues(a.ID, b.ID))
	add("UserID", bytes.Equal(a.UserID, b.UserID) && (a.UserID == nil) == (b.UserID == nil))
	add("To", equalPtr(a.To, b.To))
	add("Subject", equalPtr(a.Subject, b.Subject))
	add("ReplyTo", equalPtr(a.ReplyTo, b.ReplyTo))
	add("CorrelationID", EqualValues(a.CorrelationID, b.CorrelationID))
	add("ContentType", equalPtr(a.ContentType, b.ContentType))
	add("ContentEncoding", equalPtr(a.ContentEncoding, b.ContentEncoding))
	add("AbsoluteExpiry", equalTime(a.AbsoluteExpiry, b.AbsoluteExpiry))
	add("Created", equalTime(a.Created, b.Created))
	add("SessionID", equalPtr(a.SessionID, b.SessionID))
	add("GroupSequence", equalPtr(a.GroupSequence, b.GroupSequence))
	add("ReplyToSessionID", equalPtr(a.ReplyToSessionID, b.ReplyToSessionID))
	out = append(out, diffProperties(a.Properties, b.Properties)...)
	add("Body", EqualBodies(a.Body, b.Body))
	add("Footer", equalMaps(a.Footer, b.Footer))
	add("ScheduledEnqueueTime", equalTime(a.ScheduledEnqueueTime, b.ScheduledEnqueueTime))
	add("System", slices.EqualFunc(a.System, b.System, equalAttributes))
	return out
}

// EqualBodies reports whether two bodies have the same kind and the same sections.
func EqualBodies(a, b Body) bool {
	return a.Kind == b.Kind && slices.EqualFunc(a.Sections, b.Sections, bytes.Equal)
}

func diffProperties(a, b Properties) []string {
	if slices.EqualFunc(a, b, equalAttributes) {
		return nil
	}
	var out []string
	for _, p := range a {
		if v, ok := b.Get(p.Name); !ok || !EqualValues(p.Value, v) {
			out = append(out, "Properties."+p.Name)
		}
	}
	for _, p := range b {
		if _, ok := a.Get(p.Name); !ok {
			out = append(out, "Properties."+p.Name)
		}
	}
	if out == nil {
		out = append(out, "Properties order")
	}
	return out
}

func equalAttributes(a, b Attribute) bool {
	return a.Name == b.Name && EqualValues(a.Value, b.Value)
}

func equalPtr[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func equalTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}
