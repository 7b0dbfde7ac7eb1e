package export

import (
	"time"

	"pgregory.net/rapid"

	"dlq/backends/message"
)

// anyText draws text as it comes from a network: mostly readable, now and then hostile or
// not text at all.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "tenant", "grüße 😀", "\x1b[31m", "\u202e\u200b\U000e0041\u2028", "\xff\xfe", "\xed\xa0\x80", "\"\\/\b\f\n\r\t\x00\x7f\u0085", "\ufffd"}),
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
}

func anyPrimitive(t *rapid.T, k message.Kind) message.Value {
	switch k {
	case message.KindNull:
		return message.Null{}
	case message.KindBool:
		return message.Bool(rapid.Bool().Draw(t, "bool"))
	case message.KindUbyte:
		return message.Ubyte(rapid.Uint8().Draw(t, "ubyte"))
	case message.KindUshort:
		return message.Ushort(rapid.Uint16().Draw(t, "ushort"))
	case message.KindUint:
		return message.Uint(rapid.Uint32().Draw(t, "uint"))
	case message.KindUlong:
		return message.Ulong(rapid.Uint64().Draw(t, "ulong"))
	case message.KindByte:
		return message.Byte(rapid.Int8().Draw(t, "byte"))
	case message.KindShort:
		return message.Short(rapid.Int16().Draw(t, "short"))
	case message.KindInt:
		return message.Int(rapid.Int32().Draw(t, "int"))
	case message.KindLong:
		return message.Long(rapid.Int64().Draw(t, "long"))
	case message.KindFloat:
		return message.Float(float32frombits(rapid.Uint32().Draw(t, "float")))
	case message.KindDouble:
		return message.Double(float64frombits(rapid.Uint64().Draw(t, "double")))
	case message.KindChar:
		return message.Char(rapid.Int32().Draw(t, "char"))
	case message.KindTimestamp:
		return message.Timestamp(rapid.Int64().Draw(t, "timestamp"))
	case message.KindString:
		return message.String(anyText().Draw(t, "string"))
	case message.KindSymbol:
		return message.Symbol(anyText().Draw(t, "symbol"))
	case message.KindBinary:
		return message.Binary(anyText().Draw(t, "binary"))
	}
	b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bits")
	switch k {
	case message.KindDecimal32:
		return message.Decimal32(b[:4])
	case message.KindDecimal64:
		return message.Decimal64(b[:8])
	case message.KindDecimal128:
		return message.Decimal128(b)
	}
	return message.UUID(b)
}

func anyOfKind(t *rapid.T, k message.Kind, depth int) message.Value {
	few := rapid.IntRange(0, 3)
	switch k {
	case message.KindList:
		l := make(message.List, few.Draw(t, "items"))
		for i := range l {
			l[i] = anyValue(t, depth+1)
		}
		return l
	case message.KindMap:
		return anyMap(t, depth+1)
	case message.KindArray:
		a := message.Array{Elem: message.Kind(rapid.IntRange(int(message.KindNull), int(message.KindDescribed)).Draw(t, "elem"))}
		if depth > 3 {
			a.Elem = message.KindFloat
		}
		if rapid.Bool().Draw(t, "described") {
			a.Descriptor = anyValue(t, depth+1)
		}
		a.Items = make([]message.Value, few.Draw(t, "items"))
		for i := range a.Items {
			a.Items[i] = anyOfKind(t, a.Elem, depth+1)
		}
		return a
	case message.KindDescribed:
		return message.Described{Descriptor: anyValue(t, depth+1), Value: anyValue(t, depth+1)}
	}
	return anyPrimitive(t, k)
}

func anyValue(t *rapid.T, depth int) message.Value {
	last := message.KindDescribed
	if depth > 3 {
		last = message.KindSymbol
	}
	return anyOfKind(t, message.Kind(rapid.IntRange(int(message.KindNull), int(last)).Draw(t, "kind")), depth)
}

func anyMap(t *rapid.T, depth int) message.Map {
	m := make(message.Map, rapid.IntRange(0, 3).Draw(t, "pairs"))
	keys := rapid.SampledFrom([]message.Kind{message.KindString, message.KindSymbol, message.KindInt, 0}).Draw(t, "keys")
	for i := range m {
		k := keys
		if k == 0 {
			k = message.KindOf(anyValue(t, 4))
		}
		m[i] = message.Pair{Key: anyPrimitive(t, k), Value: anyValue(t, depth)}
	}
	return m
}

func maybe[T any](t *rapid.T, name string, g *rapid.Generator[T]) *T {
	if !rapid.Bool().Draw(t, "has "+name) {
		return nil
	}
	v := g.Draw(t, name)
	return &v
}

func anyAttributes(t *rapid.T, name string) []message.Attribute {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) message.Attribute {
		return message.Attribute{Name: anyText().Draw(t, "name"), Value: anyValue(t, 0)}
	}), 0, 4).Draw(t, name)
}

func anyProperties(t *rapid.T) (unique message.Properties) {
	for _, a := range anyAttributes(t, "properties") {
		unique.Set(a.Name, a.Value)
	}
	return unique
}

func anyTime() *rapid.Generator[time.Time] {
	return rapid.OneOf(
		rapid.Map(rapid.Int64(), func(ms int64) time.Time { return time.UnixMilli(ms) }),
		rapid.Map(rapid.Int64Range(0, 1<<62), func(ns int64) time.Time { return time.Unix(0, ns) }),
	)
}

func anyMessage(t *rapid.T) *message.Message {
	m := &message.Message{
		Durable:              rapid.Bool().Draw(t, "durable"),
		FirstAcquirer:        rapid.Bool().Draw(t, "firstAcquirer"),
		Priority:             maybe(t, "priority", rapid.Uint8()),
		TTL:                  maybe(t, "ttl", rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) })),
		DeliveryAnnotations:  anyMap(t, 0),
		Annotations:          anyMap(t, 0),
		To:                   maybe(t, "to", anyText()),
		Subject:              maybe(t, "subject", anyText()),
		ReplyTo:              maybe(t, "replyTo", anyText()),
		ContentType:          maybe(t, "contentType", anyText()),
		ContentEncoding:      maybe(t, "contentEncoding", anyText()),
		AbsoluteExpiry:       maybe(t, "absoluteExpiry", anyTime()),
		Created:              maybe(t, "created", anyTime()),
		SessionID:            maybe(t, "sessionId", anyText()),
		GroupSequence:        maybe(t, "groupSequence", rapid.Uint32()),
		ReplyToSessionID:     maybe(t, "replyToSessionId", anyText()),
		Properties:           anyProperties(t),
		Footer:               anyMap(t, 0),
		ScheduledEnqueueTime: maybe(t, "scheduledEnqueueTime", anyTime()),
		System:               anyAttributes(t, "system"),
	}
	if rapid.Bool().Draw(t, "has id") {
		m.ID, m.CorrelationID = anyValue(t, 0), anyValue(t, 0)
	}
	if rapid.Bool().Draw(t, "has user") {
		m.UserID = []byte(anyText().Draw(t, "userId"))
	}
	m.Body.Kind = message.BodyKind(rapid.IntRange(0, 2).Draw(t, "body kind"))
	for range rapid.IntRange(0, 3).Draw(t, "sections") {
		m.Body.Sections = append(m.Body.Sections, []byte(anyText().Draw(t, "section")))
	}
	if rapid.Bool().Draw(t, "was read") {
		m.Broker = anyBroker(t)
	}
	return m
}

func anyBroker(t *rapid.T) message.Broker {
	return message.Broker{
		SequenceNumber:         rapid.Int64().Draw(t, "sequenceNumber"),
		EnqueuedSequenceNumber: rapid.Int64().Draw(t, "enqueuedSequenceNumber"),
		EnqueuedTime:           anyTime().Draw(t, "enqueuedTime").UTC(),
		ExpiresAt:              anyTime().Draw(t, "expiresAt").UTC(),
		LockedUntil:            anyTime().Draw(t, "lockedUntil").UTC(),
		DeliveryCount:          rapid.Uint32().Draw(t, "deliveryCount"),
		State:                  message.State(rapid.IntRange(0, 4).Draw(t, "state")),
		LockToken:              anyPrimitive(t, message.KindUUID).(message.UUID),
		DeadLetterSource:       anyText().Draw(t, "deadLetterSource"),
		BodyOmitted:            rapid.Bool().Draw(t, "bodyOmitted"),
		BodySize:               rapid.Int64().Draw(t, "bodySize"),
	}
}
