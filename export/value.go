package export

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"dlq/backends/message"
)

// MaxDepth is how deep values may be nested, in both directions.
const MaxDepth = 64

// maxExactInt is the largest integer that every JSON reader keeps exact: beyond 2^53 those
// that use floating point round it.
const maxExactInt = 1<<53 - 1

var (
	errNoValue = errors.New("there is no value, not even null")
	errDepth   = fmt.Errorf("values are nested deeper than %d", MaxDepth)
)

// AppendValueJSON appends v in the form that the package documentation describes. On an
// error (a nil Value inside of v, an array of mixed kinds, nesting beyond [MaxDepth]) dst
// comes back as it was.
func AppendValueJSON(dst []byte, v message.Value) ([]byte, error) {
	out, err := appendValue(dst, v, 0)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func appendValue(dst []byte, v message.Value, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return dst, errNoValue
	case message.Null, message.Bool:
		return appendPlain(dst, v), nil
	case message.String:
		if utf8.ValidString(string(v)) {
			return appendString(dst, string(v)), nil
		}
	}
	kind := message.KindOf(v)
	dst = append(append(append(dst, `{"type":"`...), kind.String()...), '"')
	var err error
	switch v := v.(type) {
	case message.Binary:
		dst = appendBase64(append(dst, `,"base64":`...), string(v))
	case message.Float, message.Double:
		dst = appendFloat(dst, v)
	case message.List, message.Map, message.Array, message.Described:
		if depth >= MaxDepth {
			return dst, errDepth
		}
		dst, err = appendCompound(dst, v, depth+1)
	default:
		if s, ok := notUTF8(v); ok {
			dst = appendBase64(append(dst, `,"base64":`...), s)
		} else {
			dst = appendPlain(append(dst, `,"value":`...), v)
		}
	}
	return append(dst, '}'), err
}

// notUTF8 returns the bytes of a string or symbol that JSON cannot hold as text.
func notUTF8(v message.Value) (string, bool) {
	switch v := v.(type) {
	case message.String:
		return string(v), !utf8.ValidString(string(v))
	case message.Symbol:
		return string(v), !utf8.ValidString(string(v))
	}
	return "", false
}

// appendPlain appends what stands behind "value" for a primitive that has such a form.
func appendPlain(dst []byte, v message.Value) []byte {
	switch v := v.(type) {
	case message.Null:
		return append(dst, "null"...)
	case message.Bool:
		return strconv.AppendBool(dst, bool(v))
	case message.String:
		return appendString(dst, string(v))
	case message.Symbol:
		return appendString(dst, string(v))
	case message.Ulong:
		if v > maxExactInt {
			return append(strconv.AppendUint(append(dst, '"'), uint64(v), 10), '"')
		}
		return strconv.AppendUint(dst, uint64(v), 10)
	case message.Char:
		if utf8.ValidRune(rune(v)) {
			return appendString(dst, string(rune(v)))
		}
		return strconv.AppendInt(dst, int64(v), 10)
	}
	if n, ok := message.Integer(v); ok {
		return appendInt(dst, n)
	}
	return appendString(dst, message.FormatValue(v)) // decimals, timestamp, uuid
}

func appendInt(dst []byte, n int64) []byte {
	if n > maxExactInt || n < -maxExactInt {
		return append(strconv.AppendInt(append(dst, '"'), n, 10), '"')
	}
	return strconv.AppendInt(dst, n, 10)
}

// appendFloat appends the member that holds a float: its value, or the bits of a NaN that
// is not the usual one.
func appendFloat(dst []byte, v message.Value) []byte {
	var f float64
	bits := 64
	switch v := v.(type) {
	case message.Float:
		if b := math.Float32bits(float32(v)); v != v && b != math.Float32bits(float32(math.NaN())) {
			return fmt.Appendf(dst, `,"bits":"%08x"`, b)
		}
		f, bits = float64(v), 32
	case message.Double:
		if b := math.Float64bits(float64(v)); v != v && b != math.Float64bits(math.NaN()) {
			return fmt.Appendf(dst, `,"bits":"%016x"`, b)
		}
		f = float64(v)
	}
	dst = append(dst, `,"value":`...)
	switch {
	case f != f:
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, bits)
}

func appendBase64(dst []byte, s string) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), []byte(s)), '"')
}

// appendCompound appends the members of a compound value behind its type.
func appendCompound(dst []byte, v message.Value, depth int) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case message.List:
		return appendItems(append(dst, `,"value":`...), v, 0, depth)
	case message.Map:
		return appendMap(append(dst, `,"value":`...), v, message.KindString, depth)
	case message.Array:
		dst = append(append(append(dst, `,"elem":"`...), v.Elem.String()...), '"')
		if v.Descriptor != nil {
			if dst, err = appendValue(append(dst, `,"descriptor":`...), v.Descriptor, depth); err != nil {
				return dst, err
			}
		}
		return appendItems(append(dst, `,"value":`...), v.Items, v.Elem, depth)
	case message.Described:
		if dst, err = appendValue(append(dst, `,"descriptor":`...), v.Descriptor, depth); err != nil {
			return dst, err
		}
		return appendValue(append(dst, `,"value":`...), v.Value, depth)
	}
	return dst, fmt.Errorf("%s is not a compound type", message.KindOf(v))
}

// appendItems appends the items of a list (elem 0) or an array of elem.
func appendItems(dst []byte, items []message.Value, elem message.Kind, depth int) ([]byte, error) {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if elem != 0 && message.KindOf(item) != elem {
			return dst, fmt.Errorf("item %d of an array of %s is of another type", i, elem)
		}
		if elem != 0 && isPlain(item) {
			dst = appendPlain(dst, item)
			continue
		}
		var err error
		if dst, err = appendValue(dst, item, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// isPlain reports whether appendPlain can write v.
func isPlain(v message.Value) bool {
	switch k := message.KindOf(v); k {
	case message.KindFloat, message.KindDouble, message.KindBinary:
		return false
	default:
		_, bad := notUTF8(v)
		return k < message.KindList && !bad
	}
}

// appendMap appends m as an object if all its keys are different UTF-8 texts of kind
// keys, else as an array of pairs.
func appendMap(dst []byte, m message.Map, keys message.Kind, depth int) ([]byte, error) {
	object := uniqueText(len(m), func(i int) (string, bool) {
		switch k := m[i].Key.(type) {
		case message.String:
			return string(k), keys == message.KindString
		case message.Symbol:
			return string(k), keys == message.KindSymbol
		}
		return "", false
	})
	var err error
	if object {
		dst = append(dst, '{')
		for i, p := range m {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendPlain(dst, p.Key), ':')
			if dst, err = appendValue(dst, p.Value, depth); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
	dst = append(dst, '[')
	for i, p := range m {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendValue(append(dst, `{"key":`...), p.Key, depth); err != nil {
			return dst, err
		}
		if dst, err = appendValue(append(dst, `,"value":`...), p.Value, depth); err != nil {
			return dst, err
		}
		dst = append(dst, '}')
	}
	return append(dst, ']'), nil
}

// uniqueText reports whether the n texts are all there, UTF-8 and different.
func uniqueText(n int, text func(int) (string, bool)) bool {
	var set map[string]struct{} // for more than a few; comparing all with all is faster for them
	if n > fewNames {
		set = make(map[string]struct{}, n)
	}
	for i := range n {
		s, ok := text(i)
		if !ok || !utf8.ValidString(s) {
			return false
		}
		if set != nil {
			if _, twice := set[s]; twice {
				return false
			}
			set[s] = struct{}{}
			continue
		}
		for j := range i {
			if other, _ := text(j); other == s {
				return false
			}
		}
	}
	return true
}

// fewNames is how many names are compared one by one before a set pays.
const fewNames = 16

// appendTime appends an instant: RFC 3339 in UTC, or milliseconds since the epoch for the
// years that it cannot write.
func appendTime(dst []byte, t time.Time) ([]byte, error) {
	t = t.UTC()
	if y := t.Year(); y >= 0 && y <= 9999 {
		dst = append(dst, '"')
		return append(t.AppendFormat(dst, time.RFC3339Nano), '"'), nil
	}
	ms := t.UnixMilli()
	if !time.UnixMilli(ms).Equal(t) {
		return dst, fmt.Errorf("the time %v has no exact form in milliseconds", t)
	}
	return append(strconv.AppendInt(append(dst, '"'), ms, 10), '"'), nil
}
