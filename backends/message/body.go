package message

// BodyKind is the AMQP section kind of a body (AMQP 1.0 part 3, 3.2.6 to 3.2.8).
type BodyKind uint8

const (
	// Data is opaque binary: what nearly every sender uses, and all that SQS has.
	Data BodyKind = iota
	// ValueBody is one AMQP value, kept as its encoded bytes.
	ValueBody
	// Sequence is one or more AMQP lists, each kept as its encoded bytes.
	Sequence
)

func (k BodyKind) String() string {
	switch k {
	case Data:
		return "data"
	case ValueBody:
		return "value"
	case Sequence:
		return "sequence"
	}
	return "unknown"
}

// Body is the payload as the bytes that arrived. No section at all and one empty
// section are different things, and stay different.
type Body struct {
	Kind BodyKind
	// Sections are the payloads of the body's sections: for [Data] the binary itself,
	// for [ValueBody] and [Sequence] the AMQP encoding of each value. Read-only.
	Sections [][]byte
}

// DataBody returns the usual body: one data section. A nil b makes an empty section.
func DataBody(b []byte) Body {
	if b == nil {
		b = []byte{}
	}
	return Body{Kind: Data, Sections: [][]byte{b}}
}

// Len returns the number of payload bytes in all sections.
func (b Body) Len() int {
	n := 0
	for _, s := range b.Sections {
		n += len(s)
	}
	return n
}

// Bytes returns the payload: the section itself when there is one, else a fresh
// concatenation. The result is read-only.
func (b Body) Bytes() []byte {
	if len(b.Sections) == 1 {
		return b.Sections[0]
	}
	out := make([]byte, 0, b.Len())
	for _, s := range b.Sections {
		out = append(out, s...)
	}
	return out
}
