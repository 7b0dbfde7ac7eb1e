package resubmit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dlq/backends/message"
)

// entry is one line name:type=value of a document.
type entry struct {
	name    string
	kind    message.Kind // 0: not written
	sqsType string       // of an attribute of SQS; "": it has none
	text    string
}

func parseEntry(line string) (entry, error) {
	var e entry
	rest := line
	if strings.HasPrefix(line, `"`) {
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			return e, errors.New("a name in double quotes does not end")
		}
		e.name, _ = strconv.Unquote(quoted)
		rest = line[len(quoted):]
	} else {
		i := strings.IndexAny(line, ":=")
		if i <= 0 {
			return e, fmt.Errorf("%q: write name=value or name:type=value", line)
		}
		e.name, rest = line[:i], line[i:]
	}
	if typed, ok := strings.CutPrefix(rest, ":"); ok {
		name, value, ok := strings.Cut(typed, "=")
		if !ok {
			return e, fmt.Errorf("%q: write name=value or name:type=value", line)
		}
		switch e.kind, ok = message.ParseKind(name); {
		case ok:
		case message.IsSQSType(name):
			e.kind, e.sqsType = message.KindDescribed, name
		default:
			return e, fmt.Errorf("%q is no type", name)
		}
		rest = "=" + value
	}
	text, ok := strings.CutPrefix(rest, "=")
	if !ok {
		return e, fmt.Errorf("%q: write name=value or name:type=value", line)
	}
	e.text = text
	return e, nil
}

// value reads the value of a line that was changed.
func (e entry) value(usual message.Kind) (message.Value, error) {
	kind, text := e.kind, e.text
	if kind == 0 {
		kind = usual
	}
	if kind >= message.KindList && e.sqsType == "" || text == keepMark {
		return nil, fmt.Errorf("%s: a %s has no text form; leave the line as it was, or delete it", e.name, kind)
	}
	if strings.HasPrefix(text, `"`) {
		var err error
		if text, err = strconv.Unquote(text); err != nil {
			return nil, fmt.Errorf(`%s: what begins with " has to be quoted as a whole, with \" and \\ inside`, e.name)
		}
	}
	v, err := e.parse(kind, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	return v, nil
}

func (e entry) parse(kind message.Kind, text string) (message.Value, error) {
	if e.sqsType != "" {
		return message.ParseSQSValue(e.sqsType, text)
	}
	return message.ParseValue(kind, text)
}

// documentField is one fixed field of a message as a document shows it.
type documentField struct {
	name string
	kind message.Kind                                // that is not written
	get  func(*message.Message) message.Value        // nil: absent
	set  func(*message.Message, message.Value) error // nil removes
	copy func(to, from *message.Message)
}

// documentFields are all fields, in the order of a document.
var documentFields = [...]documentField{
	idField("id", func(m *message.Message) *message.Value { return &m.ID }),
	textField("subject", func(m *message.Message) **string { return &m.Subject }),
	textField("session-id", func(m *message.Message) **string { return &m.SessionID }),
	idField("correlation-id", func(m *message.Message) *message.Value { return &m.CorrelationID }),
	textField("content-type", func(m *message.Message) **string { return &m.ContentType }),
	textField("content-encoding", func(m *message.Message) **string { return &m.ContentEncoding }),
	textField("to", func(m *message.Message) **string { return &m.To }),
	textField("reply-to", func(m *message.Message) **string { return &m.ReplyTo }),
	textField("reply-to-session-id", func(m *message.Message) **string { return &m.ReplyToSessionID }),
	ttlField(),
	timeField("scheduled", func(m *message.Message) **time.Time { return &m.ScheduledEnqueueTime }),
	timeField("created", func(m *message.Message) **time.Time { return &m.Created }),
	timeField("absolute-expiry", func(m *message.Message) **time.Time { return &m.AbsoluteExpiry }),
	priorityField(),
	groupSequenceField(),
	flagField("durable", func(m *message.Message) *bool { return &m.Durable }),
	flagField("first-acquirer", func(m *message.Message) *bool { return &m.FirstAcquirer }),
	userIDField(),
}

// wrongType says that a field does not take that type.
func wrongType(name string, v message.Value) error {
	return fmt.Errorf("%s cannot be a %s", name, message.KindOf(v))
}

func textField(name string, at func(*message.Message) **string) documentField {
	return documentField{
		name: name, kind: message.KindString,
		get: func(m *message.Message) message.Value {
			if p := *at(m); p != nil {
				return message.String(*p)
			}
			return nil
		},
		set: func(m *message.Message, v message.Value) error {
			switch v := v.(type) {
			case nil:
				*at(m) = nil
			case message.String:
				s := string(v)
				*at(m) = &s
			default:
				return wrongType(name, v)
			}
			return nil
		},
		copy: func(to, from *message.Message) { *at(to) = *at(from) },
	}
}

func idField(name string, at func(*message.Message) *message.Value) documentField {
	return documentField{
		name: name, kind: message.KindString,
		get: func(m *message.Message) message.Value { return *at(m) },
		set: func(m *message.Message, v message.Value) error {
			switch v.(type) {
			case nil, message.String, message.Ulong, message.UUID, message.Binary:
				*at(m) = v
				return nil
			}
			return wrongType(name, v)
		},
		copy: func(to, from *message.Message) { *at(to) = *at(from) },
	}
}

func timeField(name string, at func(*message.Message) **time.Time) documentField {
	return documentField{
		name: name, kind: message.KindTimestamp,
		get: func(m *message.Message) message.Value {
			if t := *at(m); t != nil {
				return message.TimestampOf(*t)
			}
			return nil
		},
		set: func(m *message.Message, v message.Value) error {
			switch v := v.(type) {
			case nil:
				*at(m) = nil
			case message.Timestamp:
				t := v.Time()
				*at(m) = &t
			default:
				return wrongType(name, v)
			}
			return nil
		},
		copy: func(to, from *message.Message) { *at(to) = *at(from) },
	}
}

func flagField(name string, at func(*message.Message) *bool) documentField {
	return documentField{
		name: name, kind: message.KindBool,
		get: func(m *message.Message) message.Value {
			if *at(m) {
				return message.Bool(true)
			}
			return nil
		},
		set: func(m *message.Message, v message.Value) error {
			b, ok := v.(message.Bool)
			if v != nil && !ok {
				return wrongType(name, v)
			}
			*at(m) = bool(b)
			return nil
		},
		copy: func(to, from *message.Message) { *at(to) = *at(from) },
	}
}

func ttlField() documentField {
	return documentField{
		name: "ttl", kind: message.KindString,
		get: func(m *message.Message) message.Value {
			if m.TTL != nil {
				return message.String(m.TTL.String())
			}
			return nil
		},
		set: func(m *message.Message, v message.Value) error {
			if v == nil {
				m.TTL = nil
				return nil
			}
			s, _ := v.(message.String)
			d, err := time.ParseDuration(string(s))
			if err != nil || d < 0 {
				return fmt.Errorf("ttl %q is no duration; write 90s, 15m or 1h30m", s)
			}
			m.TTL = &d
			return nil
		},
		copy: func(to, from *message.Message) { to.TTL = from.TTL },
	}
}

func priorityField() documentField {
	return documentField{
		name: "priority", kind: message.KindUbyte,
		get: func(m *message.Message) message.Value {
			if m.Priority != nil {
				return message.Ubyte(*m.Priority)
			}
			return nil
		},
		set: func(m *message.Message, v message.Value) error {
			m.Priority = nil
			if n, ok := v.(message.Ubyte); ok {
				m.Priority = (*uint8)(&n)
			} else if v != nil {
				return wrongType("priority", v)
			}
			return nil
		},
		copy: func(to, from *message.Message) { to.Priority = from.Priority },
	}
}

func groupSequenceField() documentField {
	return documentField{
		name: "group-sequence", kind: message.KindUint,
		get: func(m *message.Message) message.Value {
			if m.GroupSequence != nil {
				return message.Uint(*m.GroupSequence)
			}
			return nil
		},
		set: func(m *message.Message, v message.Value) error {
			m.GroupSequence = nil
			if n, ok := v.(message.Uint); ok {
				m.GroupSequence = (*uint32)(&n)
			} else if v != nil {
				return wrongType("group-sequence", v)
			}
			return nil
		},
		copy: func(to, from *message.Message) { to.GroupSequence = from.GroupSequence },
	}
}

func userIDField() documentField {
	return documentField{
		name: "user-id", kind: message.KindBinary,
		get: func(m *message.Message) message.Value {
			if m.UserID != nil {
				return message.Binary(m.UserID)
			}
			return nil
		},
		set: func(m *message.Message, v message.Value) error {
			b, ok := v.(message.Binary)
			if v != nil && !ok {
				return wrongType("user-id", v)
			}
			m.UserID = b
			return nil
		},
		copy: func(to, from *message.Message) { to.UserID = from.UserID },
	}
}
