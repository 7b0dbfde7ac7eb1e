package sqsmsg

import (
	"strconv"
	"strings"

	"dlq/backends/message"
)

// Attribute is a message attribute as it is on the wire.
type Attribute struct {
	Name  string
	Type  string // String, Number or Binary, with or without a label behind a dot
	Value []byte // the text, or the decoded bytes
}

// Binary reports whether the value is bytes and not text, whatever the label says.
func (a Attribute) Binary() bool { return kindOf(a.Type) == typeBinary }

// The types without their labels.
const (
	typeString = "String"
	typeNumber = "Number"
	typeBinary = "Binary"
)

// kindOf is a type without its label.
func kindOf(t string) string {
	kind, _, _ := strings.Cut(t, ".")
	return kind
}

// descriptorPrefix stands before the type of an attribute that has no value of its own.
const descriptorPrefix = "sqs:"

// FromAttribute returns the property that an attribute is kept as.
func FromAttribute(a Attribute) message.Attribute {
	return message.Attribute{Name: a.Name, Value: fromValue(a)}
}

func fromValue(a Attribute) message.Value {
	switch a.Type {
	case typeString:
		return message.String(a.Value)
	case typeBinary:
		return message.Binary(a.Value)
	case typeNumber:
		n, err := strconv.ParseInt(string(a.Value), 10, 64)
		if err == nil && strconv.FormatInt(n, 10) == string(a.Value) {
			return message.Long(n)
		}
	}
	d := message.Described{Descriptor: message.Symbol(descriptorPrefix + a.Type), Value: message.String(a.Value)}
	if a.Binary() {
		d.Value = message.Binary(a.Value)
	}
	return d
}

// ToAttribute returns the attribute that a property is on the wire. What SQS did not make becomes
// a String or Number that means the same; ok is false for what has no such form: lists, maps,
// arrays, null, and described values of others.
func ToAttribute(p message.Attribute) (a Attribute, ok bool) {
	a.Name = p.Name
	switch v := p.Value.(type) {
	case message.String:
		a.Type, a.Value = typeString, []byte(v)
		return a, true
	case message.Binary:
		a.Type, a.Value = typeBinary, v
		return a, true
	case message.Described:
		return a.described(v)
	case nil, message.Null, message.List, message.Map, message.Array:
		return a, false
	}
	a.Type, a.Value = typeString, []byte(message.FormatValue(p.Value))
	if numeric(message.KindOf(p.Value)) {
		a.Type = typeNumber
	}
	return a, true
}

// described gives the attribute back that was kept as a described value.
func (a Attribute) described(d message.Described) (Attribute, bool) {
	symbol, _ := d.Descriptor.(message.Symbol)
	t, ours := strings.CutPrefix(string(symbol), descriptorPrefix)
	if !ours {
		return a, false
	}
	a.Type = t
	switch v := d.Value.(type) {
	case message.String:
		a.Value = []byte(v)
	case message.Binary:
		a.Value = v
	default:
		return a, false
	}
	return a, true
}

// numeric reports whether the text form of a kind is a number of SQS.
func numeric(k message.Kind) bool {
	switch k {
	case message.KindUbyte, message.KindUshort, message.KindUint, message.KindUlong,
		message.KindByte, message.KindShort, message.KindInt, message.KindLong,
		message.KindFloat, message.KindDouble:
		return true
	}
	return false
}
