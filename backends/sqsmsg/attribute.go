package sqsmsg

import (
	"bytes"
	"strconv"
	"strings"

	"dlq/backends/message"
)

// Attribute is a message attribute as it is on the wire.
type Attribute struct {
	Name  string
	Type  string // String, Number or Binary, maybe with a label behind a dot: "Number.int"
	Value []byte // the text, or the decoded bytes; read-only
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

// descriptorPrefix stands before the type of an attribute that no value of its own stands for.
const descriptorPrefix = "sqs:"

// FromAttribute returns the property that an attribute is kept as. It may share the bytes of the
// value, and checks nothing: every attribute can be kept.
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
		if n, ok := canonicalInteger(a.Value); ok {
			return message.Long(n)
		}
	}
	d := message.Described{Descriptor: message.Symbol(descriptorPrefix + a.Type)}
	if a.Binary() {
		d.Value = message.Binary(a.Value)
	} else {
		d.Value = message.String(a.Value)
	}
	return d
}

// canonicalInteger reads a number that is written in just the way in which it would be written
// again: without plus, leading zero or minus zero.
func canonicalInteger(text []byte) (n int64, ok bool) {
	const longest = len("-9223372036854775808")
	if len(text) > longest {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, false
	}
	return n, bytes.Equal(text, strconv.AppendInt(make([]byte, 0, longest), n, 10))
}

// ToAttribute returns the attribute that a property is on the wire. What SQS did not make becomes
// a Number or a String that means the same, in the form of [message.FormatValue]; a number beyond
// what SQS takes for one becomes a String. ok is false for what has no text: null, lists, maps,
// arrays, and the described values of others.
//
// It may share the bytes of the value. The result has a form, but need not be one that the service
// takes: [CheckAttributes] tells.
func ToAttribute(p message.Attribute) (a Attribute, ok bool) {
	a.Name = p.Name
	switch v := p.Value.(type) {
	case message.String:
		a.Type, a.Value = typeString, []byte(v)
	case message.Binary:
		a.Type, a.Value = typeBinary, v
	case message.Long:
		a.Type, a.Value = typeNumber, strconv.AppendInt(nil, int64(v), 10)
	case message.Described:
		return fromDescribed(a, v)
	case nil, message.Null, message.List, message.Map, message.Array:
		return a, false
	default:
		a.Type, a.Value = typeString, []byte(message.FormatValue(v))
		if numeric(message.KindOf(v)) && isNumber(string(a.Value)) {
			a.Type = typeNumber
		}
	}
	return a, true
}

// fromDescribed gives a the type and the value that were kept as a described value. Text under a
// binary type and the other way round is nothing that FromAttribute makes.
func fromDescribed(a Attribute, d message.Described) (Attribute, bool) {
	symbol, _ := d.Descriptor.(message.Symbol)
	t, ours := strings.CutPrefix(string(symbol), descriptorPrefix)
	if !ours {
		return a, false
	}
	a.Type = t
	switch v := d.Value.(type) {
	case message.String:
		a.Value = []byte(v)
		return a, !a.Binary()
	case message.Binary:
		a.Value = v
		return a, a.Binary()
	}
	return a, false
}

// numeric reports whether a kind is a number whose text form is decimal. That of the decimal kinds
// is the hexadecimal digits of their bits.
func numeric(k message.Kind) bool {
	switch k {
	case message.KindUbyte, message.KindUshort, message.KindUint, message.KindUlong,
		message.KindByte, message.KindShort, message.KindInt, message.KindLong,
		message.KindFloat, message.KindDouble:
		return true
	}
	return false
}
