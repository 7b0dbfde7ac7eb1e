package resubmit

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// The first byte of a record's payload. Numbers are never reused.
const (
	recHeader    byte = 1  // jobHeader as JSON
	recPlanned   byte = 2  // {seq id sum}: messages of the plan, in order
	recEdited    byte = 3  // seq message: what to send instead of the original
	recBegun     byte = 4  // the plan is whole; only behind it is a message touched
	recIntent    byte = 5  // index flags message: the original, before anything happens to it
	recSent      byte = 6  // {index}: the destination has acknowledged
	recDone      byte = 7  // {index}
	recUncertain byte = 8  // index reason
	recSkipped   byte = 9  // index reason
	recFailed    byte = 10 // index reason
	recFinished  byte = 11 // jobEnd as JSON
	recResumed   byte = 12 // jobStart as JSON: another process goes on
)

// intentAtomic marks an intent whose outcome the source shows: the message is gone from there exactly
// if it took effect. Without it (send, then complete) only a later record tells.
const intentAtomic byte = 1

// intentNoMessage marks an intent without the original, which a backup has or nobody wants.
const intentNoMessage byte = 2

// jobHeader says what a job is, so that another process can go on with it.
type jobHeader struct {
	ID, Version, Conn, Command string
	Kind                       Kind
	From                       backends.EntityID
	To                         *backends.EntityID `json:",omitempty"`
	Selection                  Selection
	Edits                      editsRecord
	Copy                       bool          `json:",omitempty"`
	AllowUnrouted              bool          `json:",omitempty"`
	Delay                      time.Duration `json:",omitempty"`
	Rate                       float64       `json:",omitempty"`
	Concurrency                int
	Backup                     string `json:",omitempty"`
	Discard                    bool   `json:",omitempty"`
	Restores                   string `json:",omitempty"`
	Planned                    time.Time
	Matched, Bytes             int64
	Destinations               []Destination
	// What the entity was like when the plan was made.
	SourceCount, MaxSeq int64
}

// editsRecord is [Edits] in a form that JSON keeps whole: values are typed.
type editsRecord struct {
	Set       []byte   `json:",omitempty"` // a message that has them as its properties
	Unset     []string `json:",omitempty"`
	BodyJQ    string   `json:",omitempty"`
	Body      *[]byte  `json:",omitempty"`
	MessageID IDPolicy `json:",omitempty"`
}

func recordEdits(e Edits) editsRecord {
	r := editsRecord{Unset: e.Unset, BodyJQ: e.BodyJQ, Body: e.Body, MessageID: e.MessageID}
	if len(e.Set) > 0 {
		r.Set = message.Append(nil, &message.Message{Properties: e.Set})
	}
	return r
}

func (r editsRecord) edits() (Edits, error) {
	e := Edits{Unset: r.Unset, BodyJQ: r.BodyJQ, Body: r.Body, MessageID: r.MessageID}
	if r.Set != nil {
		m, err := message.Decode(r.Set)
		if err != nil {
			return e, err
		}
		e.Set = m.Properties
	}
	return e, nil
}

// jobStart says who began or went on, and jobEnd how that ended.
type jobStart struct {
	At      time.Time
	PID     int
	Version string
}

type jobEnd struct {
	At        time.Time
	State     State
	Newcomers int64               `json:",omitempty"`
	Lost      []int               `json:",omitempty"` // item indexes
	Checked   bool                `json:",omitempty"`
	Created   []backends.EntityID `json:",omitempty"`
	Stopped   string              `json:",omitempty"`
}

func appendJSON(dst []byte, kind byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types above always marshal
	}
	return append(append(dst, kind), b...)
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendPlanned(dst []byte, items []item) []byte {
	dst = append(dst, recPlanned)
	for _, it := range items {
		dst = binary.AppendVarint(dst, it.seq)
		dst = append(dst, it.sum[:]...)
		dst = appendString(dst, it.id)
	}
	return dst
}

func appendEdited(dst []byte, seq int64, m *message.Message) []byte {
	return message.Append(binary.AppendVarint(append(dst, recEdited), seq), m)
}

func appendIntent(dst []byte, index int, flags byte, m *message.Message) []byte {
	dst = append(binary.AppendUvarint(append(dst, recIntent), uint64(index)), flags)
	if flags&intentNoMessage == 0 {
		dst = message.Append(dst, m)
	}
	return dst
}

func appendIndexes(dst []byte, kind byte, indexes []int) []byte {
	dst = append(dst, kind)
	for _, i := range indexes {
		dst = binary.AppendUvarint(dst, uint64(i))
	}
	return dst
}

func appendNote(dst []byte, kind byte, index int, reason string) []byte {
	return append(binary.AppendUvarint(append(dst, kind), uint64(index)), reason...)
}

var errRecord = errors.New("a record does not read")

// cursor reads the parts of a payload; the first failure sticks.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	return advance(c, v, n)
}

func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.b)
	return advance(c, v, n)
}

func advance[T any](c *cursor, v T, n int) T {
	if n <= 0 {
		c.bad, c.b = true, nil
		var zero T
		return zero
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) err(kind byte) error {
	if c.bad {
		return fmt.Errorf("%w: %w (kind %d)", errDamaged, errRecord, kind)
	}
	return nil
}
