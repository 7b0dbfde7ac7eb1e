package export

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"dlq/backends/message"
)

// ReadValueJSON reads one value that [AppendValueJSON] wrote, or that a person wrote by the
// same rules. An error is a [*SyntaxError].
func ReadValueJSON(b []byte) (message.Value, error) {
	p := parser{b: b}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	return v, p.end()
}

func (p *parser) value(depth int) (message.Value, error) {
	switch p.next() {
	case '"':
		s, err := p.text()
		return message.String(s), err
	case '{':
		return p.typedValue(depth)
	}
	at := p.i
	lit, err := p.literal()
	if err != nil {
		return nil, err
	}
	switch lit {
	case "null":
		return message.Null{}, nil
	case "true", "false":
		return message.Bool(lit == "true"), nil
	}
	return nil, p.fail(at, `the number %s needs a type: write {"type":"int","value":%s}, or another of the number types`, lit, lit)
}

// typed is what the members of a typed value say. A member that needs the type to be
// read is kept as the offset where it begins, because the keys may come in any order.
type typed struct {
	at         int // of the object itself
	kind, elem message.Kind
	descriptor message.Value
	value      int // offset; -1: none
	base64     []byte
	bits       string
}

func (p *parser) typedValue(depth int) (message.Value, error) {
	p.next()
	if depth > MaxDepth {
		return nil, p.fail(p.i, "%v", errDepth)
	}
	t := typed{at: p.i, value: -1}
	err := p.object(func(key string) (err error) {
		at := p.i
		switch key {
		case "type":
			t.kind, err = p.kind()
		case "elem":
			t.elem, err = p.kind()
		case "descriptor":
			t.descriptor, err = p.value(depth + 1)
		case "base64":
			t.base64, err = p.base64()
		case "bits":
			t.bits, err = p.text()
		case "value":
			t.value = at
			err = p.skip(0)
		default:
			err = p.fail(at, "unknown key %q in a typed value; the keys are type, value, base64, bits, elem and descriptor", key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if msg := t.inconsistency(); msg != "" {
		return nil, p.fail(t.at, "%s", msg)
	}
	return p.assemble(t, depth)
}

// inconsistency says what is missing or too much for the type, or "".
func (t *typed) inconsistency() string {
	k := t.kind
	isText := k == message.KindString || k == message.KindSymbol
	isFloat := k == message.KindFloat || k == message.KindDouble
	switch {
	case k == 0:
		return `the value has no type: write {"type":"…","value":…}`
	case t.base64 != nil && k != message.KindBinary && !isText:
		return `only binary, string and symbol have "base64"`
	case t.bits != "" && !isFloat:
		return `only float and double have "bits"`
	case t.elem != 0 && k != message.KindArray:
		return `only an array has "elem"`
	case t.elem == 0 && k == message.KindArray:
		return `an array needs "elem", the type of its items`
	case t.descriptor != nil && k != message.KindArray && k != message.KindDescribed:
		return `only an array or a described value has a "descriptor"`
	case t.descriptor == nil && k == message.KindDescribed:
		return `a described value needs a "descriptor"`
	case k == message.KindBinary && t.base64 == nil:
		return `a binary needs "base64"`
	}
	forms := 0
	for _, there := range []bool{t.value >= 0, t.base64 != nil, t.bits != ""} {
		if there {
			forms++
		}
	}
	if forms != 1 && k != message.KindNull {
		return "the " + k.String() + ` needs exactly one "value"`
	}
	return ""
}

// assemble reads the value of t at its offset, now that its type is known, and leaves p
// where it was.
func (p *parser) assemble(t typed, depth int) (v message.Value, err error) {
	end := p.i
	defer func() { p.i = end }()
	p.i = max(t.value, 0)
	switch {
	case t.base64 != nil && t.kind == message.KindString:
		return message.String(t.base64), nil
	case t.base64 != nil && t.kind == message.KindSymbol:
		return message.Symbol(t.base64), nil
	case t.base64 != nil:
		return message.Binary(t.base64), nil
	case t.bits != "":
		return p.floatBits(t)
	}
	switch t.kind {
	case message.KindNull:
		if t.value < 0 {
			return message.Null{}, nil
		}
	case message.KindList:
		items, err := p.items(0, depth)
		return message.List(items), err
	case message.KindMap:
		m, err := p.mapping(message.KindString, depth+1)
		return m, err
	case message.KindArray:
		items, err := p.items(t.elem, depth)
		return message.Array{Elem: t.elem, Descriptor: t.descriptor, Items: items}, err
	case message.KindDescribed:
		inner, err := p.value(depth + 1)
		return message.Described{Descriptor: t.descriptor, Value: inner}, err
	}
	return p.primitive(t.kind)
}

func (p *parser) kind() (message.Kind, error) {
	p.next()
	at := p.i
	name, err := p.text()
	if err != nil {
		return 0, err
	}
	k, ok := message.ParseKind(name)
	if !ok {
		return 0, p.fail(at, "unknown type %q; the types are those of AMQP 1.0: int, long, string, uuid and so on", name)
	}
	return k, nil
}

// floatBits reads the hexadecimal bits of a NaN.
func (p *parser) floatBits(t typed) (message.Value, error) {
	b, err := hex.DecodeString(t.bits)
	switch {
	case err == nil && t.kind == message.KindFloat && len(b) == 4:
		return message.Float(math.Float32frombits(binary.BigEndian.Uint32(b))), nil
	case err == nil && t.kind == message.KindDouble && len(b) == 8:
		return message.Double(math.Float64frombits(binary.BigEndian.Uint64(b))), nil
	}
	return nil, p.fail(t.at, `"bits" needs 8 hexadecimal digits for a float, 16 for a double`)
}

// primitive reads what stands behind "value" for a primitive of kind k.
func (p *parser) primitive(k message.Kind) (message.Value, error) {
	c := p.next()
	at := p.i
	s, err := p.number()
	if err != nil {
		return nil, err
	}
	isText := c == '"'
	switch k {
	case message.KindNull, message.KindBool:
		if isText || k == message.KindNull && s != "null" {
			return nil, p.fail(at, "%q is not a %s", s, k)
		}
	case message.KindString, message.KindSymbol, message.KindUUID, message.KindDecimal32, message.KindDecimal64, message.KindDecimal128:
		if !isText {
			return nil, p.fail(at, "a %s is written as a text", k)
		}
	case message.KindBinary:
		return nil, p.fail(at, `a binary is written as {"type":"binary","base64":"…"}`)
	case message.KindChar:
		if n, err := strconv.ParseInt(s, 10, 32); err == nil && !isText {
			return message.Char(n), nil
		}
	}
	v, err := message.ParseValue(k, s)
	if err != nil {
		return nil, p.fail(at, "%v", err)
	}
	return v, nil
}

// items reads the items of a list (elem 0) or of an array of elem.
func (p *parser) items(elem message.Kind, depth int) ([]message.Value, error) {
	var out []message.Value
	err := p.array(func() error {
		c := p.next()
		at := p.i
		var v message.Value
		var err error
		if elem != 0 && c != '{' {
			v, err = p.primitive(elem)
		} else {
			v, err = p.value(depth + 1)
		}
		if err != nil {
			return err
		}
		if elem != 0 && message.KindOf(v) != elem {
			return p.fail(at, "the items of this array are of type %s", elem)
		}
		out = append(out, v)
		return nil
	})
	return out, err
}

// mapping reads a map: an object with keys of kind keys, or an array of pairs.
func (p *parser) mapping(keys message.Kind, depth int) (message.Map, error) {
	var m message.Map
	if p.next() == '{' {
		err := p.object(func(key string) error {
			v, err := p.value(depth)
			k := message.Value(message.String(key))
			if keys == message.KindSymbol {
				k = message.Symbol(key)
			}
			m = append(m, message.Pair{Key: k, Value: v})
			return err
		})
		return m, err
	}
	err := p.array(func() error {
		p.next()
		at := p.i
		var pair message.Pair
		err := p.object(func(key string) (err error) {
			switch key {
			case "key":
				pair.Key, err = p.value(depth)
			case "value":
				pair.Value, err = p.value(depth)
			default:
				err = p.fail(p.i, "unknown key %q in a pair; the keys are key and value", key)
			}
			return err
		})
		if err == nil && (pair.Key == nil || pair.Value == nil) {
			err = p.fail(at, `a pair needs "key" and "value"`)
		}
		m = append(m, pair)
		return err
	})
	return m, err
}

// attributes reads named values: an object, or an array of {"name":…,"value":…}.
func (p *parser) attributes() ([]message.Attribute, error) {
	var list []message.Attribute
	if p.next() == '{' {
		err := p.object(func(key string) error {
			v, err := p.value(0)
			list = append(list, message.Attribute{Name: key, Value: v})
			return err
		})
		return list, err
	}
	err := p.array(func() error {
		p.next()
		at, named := p.i, 0
		var a message.Attribute
		err := p.object(func(key string) (err error) {
			switch key {
			case "name":
				named++
				a.Name, err = p.text()
			case "nameBase64":
				var b []byte
				named++
				b, err = p.base64()
				a.Name = string(b)
			case "value":
				a.Value, err = p.value(0)
			default:
				err = p.fail(p.i, "unknown key %q in a property; the keys are name, nameBase64 and value", key)
			}
			return err
		})
		if err == nil && (named != 1 || a.Value == nil) {
			err = p.fail(at, `a property needs "name" and "value"`)
		}
		list = append(list, a)
		return err
	})
	return list, err
}

// time reads an instant as appendTime writes it.
func (p *parser) time() (time.Time, error) {
	p.next()
	at := p.i
	s, err := p.number()
	if err != nil {
		return time.Time{}, err
	}
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.UnixMilli(ms).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(s))
	if err != nil {
		return time.Time{}, p.fail(at, "%q is not a time; write it as 2006-01-02T15:04:05.000Z", s)
	}
	return t.UTC(), nil
}
