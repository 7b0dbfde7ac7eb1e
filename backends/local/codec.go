package local

import (
	"encoding/binary"
	"fmt"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// codec writes values one after the other, or reads them in the same order. One description
// of a value serves both ends of the socket, which therefore cannot disagree.
//
// What it reads is not trusted: no count is believed before its bytes are there, and after the
// first error everything reads as zero.
type codec struct {
	buf     []byte // what was written, or what is still to be read
	reading bool
	err     error
}

func (c *codec) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
		c.buf = nil
	}
}

// done is the error of reading, which has to end where the frame does.
func (c *codec) done() error {
	if c.reading && len(c.buf) > 0 {
		c.fail("%d bytes too many", len(c.buf))
	}
	return c.err
}

// number takes integers of any size, and refuses what does not fit.
func number[T ~int | ~int64 | ~uint64 | ~uint8](c *codec, p *T) {
	if !c.reading {
		c.buf = binary.AppendVarint(c.buf, int64(*p))
		return
	}
	n, size := binary.Varint(c.buf)
	switch {
	case size <= 0:
		c.fail("a number is cut off")
	case int64(T(n)) != n:
		c.fail("the number %d is out of range", n)
	default:
		*p, c.buf = T(n), c.buf[size:]
	}
}

// bytes takes a text or bytes. Those that are read are slices of the frame.
func (c *codec) bytes(p *[]byte) {
	n := len(*p)
	number(c, &n)
	switch {
	case !c.reading:
		c.buf = append(c.buf, *p...)
	case n < 0 || n > len(c.buf):
		c.fail("%d bytes are announced, %d are left", n, len(c.buf))
	default:
		*p, c.buf = c.buf[:n:n], c.buf[n:]
	}
}

func (c *codec) text(p *string) {
	b := []byte(*p)
	c.bytes(&b)
	if c.reading {
		*p = string(b)
	}
}

func (c *codec) flag(p *bool) {
	var n uint8
	if *p {
		n = 1
	}
	number(c, &n)
	if n > 1 {
		c.fail("%d is neither yes nor no", n)
	}
	*p = n == 1
}

func (c *codec) instant(p *time.Time) {
	var b []byte
	if !c.reading {
		b, c.err = p.MarshalBinary() // fails for zones that no clock has
	}
	c.bytes(&b)
	if c.reading && c.err == nil {
		c.err = p.UnmarshalBinary(b)
	}
}

// optional takes what may be missing.
func optional[T any](c *codec, p **T, value func(*T)) {
	there := *p != nil
	c.flag(&there)
	if c.reading && there {
		*p = new(T)
	}
	if there && c.err == nil {
		value(*p)
	}
}

// list takes any number of values. Each has one byte at least, so that a count which the
// frame cannot hold is refused.
func list[T any](c *codec, p *[]T, value func(*T)) {
	n := len(*p)
	number(c, &n)
	if !c.reading {
		for i := range *p {
			value(&(*p)[i])
		}
		return
	}
	if n < 0 || n > len(c.buf) {
		c.fail("%d values are announced in %d bytes", n, len(c.buf))
	}
	for i := 0; i < n && c.err == nil; i++ {
		var v T
		value(&v)
		*p = append(*p, v)
	}
}

func (c *codec) entity(p *backends.EntityID) {
	c.text(&p.Name)
	number(c, &p.Sub)
}

func (c *codec) uuid(p *message.UUID) {
	b := p[:]
	c.bytes(&b)
	if c.reading && copy(p[:], b) != len(b) {
		c.fail("a UUID of %d bytes", len(b))
	}
}

// message takes a message in its binary form, or none at all.
func (c *codec) message(p **message.Message) {
	optional(c, p, func(m *message.Message) {
		var b []byte
		if !c.reading {
			b = message.Append(nil, m)
		}
		c.bytes(&b)
		if c.reading && c.err == nil {
			*p, c.err = message.Decode(b)
		}
	})
}

// attributes takes named values with their types.
func (c *codec) attributes(p *[]message.Attribute) {
	there := len(*p) > 0
	c.flag(&there)
	if !there {
		return
	}
	var b []byte
	if !c.reading {
		b = message.AppendAttributes(nil, *p)
	}
	c.bytes(&b)
	if c.reading && c.err == nil {
		*p, c.err = message.DecodeAttributes(b)
	}
}
