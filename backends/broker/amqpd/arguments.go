package amqpd

import (
	"fmt"
	"strings"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/message"
)

// arguments are the entries of a request's body by name.
type arguments map[string]message.Value

// readArguments reads the body of a request: a map, or nothing.
func readArguments(req *message.Message) (arguments, error) {
	v, err := bodyValue(req)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case message.Map:
		return argumentsOf(v), nil
	case nil, message.Null:
		return arguments{}, nil
	}
	return nil, argumentError(fmt.Sprintf("the body has to be a map, not a %s", message.KindOf(v)))
}

// argumentsOf takes names as strings or symbols: peers differ.
func argumentsOf(m message.Map) arguments {
	a := make(arguments, len(m))
	for _, p := range m {
		if name, ok := text(p.Key); ok && p.Value != (message.Null{}) {
			a[name] = p.Value
		}
	}
	return a
}

// bodyValue returns the value that is the body of a message; nil: it has none.
func bodyValue(m *message.Message) (message.Value, error) {
	if len(m.Body.Sections) == 0 {
		return nil, nil
	}
	if m.Body.Kind != message.ValueBody {
		return nil, argumentError("the body has to be an amqp-value")
	}
	v, _, err := amqp.DecodeValue(m.Body.Sections[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return v, nil
}

// bodyText returns the string that is the body of a message.
func bodyText(m *message.Message) (string, error) {
	v, err := bodyValue(m)
	if err != nil {
		return "", err
	}
	if s, ok := text(v); ok {
		return s, nil
	}
	if b, ok := v.(message.Binary); ok {
		return string(b), nil
	}
	return "", argumentError("the body has to be a string")
}

// argumentError says which argument of a request cannot be used.
type argumentError string

func (e argumentError) Error() string { return string(e) }

// integer takes an integer of any width.
func (a arguments) integer(name string) (int64, bool) { return message.Integer(a[name]) }

func (a arguments) boolean(name string) (value, ok bool) {
	v, ok := a[name].(message.Bool)
	return bool(v), ok
}

// text returns nil for what is not there. A value of another type is refused and not passed
// over: a session that is not understood must not become all sessions.
func (a arguments) text(name string) (*string, error) {
	v, there := a[name]
	if !there {
		return nil, nil
	}
	s, ok := text(v)
	if !ok {
		return nil, argumentError(fmt.Sprintf("%s has to be a string, not a %s", name, message.KindOf(v)))
	}
	return &s, nil
}

// needed returns a string that has to be there.
func (a arguments) needed(name string) (string, error) {
	s, err := a.text(name)
	if err == nil && s == nil {
		err = argumentError(name + " is missing")
	}
	return message.Str(s), err
}

// fields returns the entries of a map, by name and as they are; nil: it is not there.
func (a arguments) fields(name string) (arguments, message.Map, error) {
	switch v := a[name].(type) {
	case nil:
		return nil, nil, nil
	case message.Map:
		return argumentsOf(v), v, nil
	default:
		return nil, nil, argumentError(fmt.Sprintf("%s has to be a map, not a %s", name, message.KindOf(v)))
	}
}

// time takes a timestamp, or its milliseconds as an integer; ok is false for what is not there.
func (a arguments) time(name string) (t time.Time, ok bool, err error) {
	v, there := a[name]
	if !there {
		return t, false, nil
	}
	if at, ok := v.(message.Timestamp); ok {
		return at.Time(), true, nil
	}
	if ms, ok := message.Integer(v); ok {
		return message.Timestamp(ms).Time(), true, nil
	}
	return t, false, argumentError(fmt.Sprintf("%s has to be a timestamp, not a %s", name, message.KindOf(v)))
}

// items returns the items of an array or a list: peers differ.
func (a arguments) items(name string) ([]message.Value, error) {
	var items []message.Value
	switch v := a[name].(type) {
	case message.Array:
		items = v.Items
	case message.List:
		items = v
	}
	if len(items) == 0 {
		return nil, argumentError(name + " has to be an array that is not empty")
	}
	return items, nil
}

func (a arguments) uuids(name string) ([]message.UUID, error) {
	items, err := a.items(name)
	if err != nil {
		return nil, err
	}
	out := make([]message.UUID, len(items))
	for i, item := range items {
		u, ok := item.(message.UUID)
		if !ok {
			return nil, argumentError(fmt.Sprintf("an item of %s is a %s, not a uuid", name, message.KindOf(item)))
		}
		out[i] = u
	}
	return out, nil
}

func (a arguments) longs(name string) ([]int64, error) {
	items, err := a.items(name)
	if err != nil {
		return nil, err
	}
	out := make([]int64, len(items))
	for i, item := range items {
		n, ok := message.Integer(item)
		if !ok {
			return nil, argumentError(fmt.Sprintf("an item of %s is a %s, not a long", name, message.KindOf(item)))
		}
		out[i] = n
	}
	return out, nil
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}
