package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"dlq/backends/message"
)

// Key names one message: an entity, one of its sub-queues, and a sequence number.
type Key struct {
	Queue uint32
	Sub   uint8
	Seq   uint64
}

// Entity is the stored form of a queue, topic or subscription.
type Entity struct {
	ID                uint32
	Kind              string
	Name              string // as it was written when it was created
	Created, Modified time.Time
	Properties        []message.Attribute
}

// State is everything about a message that changes after it arrived, and where its
// unchanging parts are.
type State struct {
	Head, Body  uint64 // ids of its H and B records
	HeadSize    int64  // bytes of the record
	BodySize    int64  // bytes of the body alone
	Shared      bool   // other messages may have the same head or body
	State       message.State
	Deliveries  uint32 // as the entity counts them
	Hops        uint8  // how often it was forwarded
	Enqueued    time.Time
	EnqueuedSeq uint64    // number before it was moved from another entity; 0: never moved
	Expires     time.Time // zero: never
	Due         time.Time // when a scheduled message becomes active
	Received    time.Time // when it was first received; zero: never, or its entity does not tell
	Token       message.UUID
	LockedUntil time.Time // zero: not locked; a token without it is the last that there was
	Session     *string   // session or message group
	Source      string    // entity that dead-lettered it into this one
	// Overlay holds application properties set after it arrived, such as DeadLetterReason:
	// they win over those of the head.
	Overlay []message.Attribute
}

// ErrCorrupt is wrapped by the error of every record that fails its checksum or does not
// decode. The record is not served.
var ErrCorrupt = errors.New("stored record is corrupt")

const (
	prefixBody       = 'B'
	prefixLastEntity = 'C'
	prefixSeen       = 'D'
	prefixEntity     = 'E'
	prefixHead       = 'H'
	prefixState      = 'M'
	prefixIndex      = 'I'
	prefixNext       = 'N'
	prefixRule       = 'R'
	prefixSession    = 'S'
	prefixTask       = 'T'
	prefixSeenAt     = 'X'
)

func entityKey(id uint32) []byte { return binary.BigEndian.AppendUint32([]byte{prefixEntity}, id) }
func nextKey(id uint32) []byte   { return binary.BigEndian.AppendUint32([]byte{prefixNext}, id) }

func contentKey(prefix byte, id uint64) []byte { return appendContentKey(nil, prefix, id) }

func appendContentKey(b []byte, prefix byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, prefix), id)
}

func (k Key) bytes() []byte { return k.append(make([]byte, 0, 14)) }

func (k Key) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(append(b, prefixState), k.Queue)
	return binary.BigEndian.AppendUint64(append(b, k.Sub), k.Seq)
}

// parseKey reads what bytes made; nothing else writes such keys.
func parseKey(b []byte) Key {
	if len(b) != 14 {
		return Key{}
	}
	return Key{binary.BigEndian.Uint32(b[1:]), b[5], binary.BigEndian.Uint64(b[6:])}
}

// castagnoli is a lookup table, built once and only read.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealed appends the checksum of key and value to value.
func sealed(key, value []byte) []byte {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
	return binary.BigEndian.AppendUint32(value, sum)
}

// unsealed checks and cuts the checksum. The result is a slice of value.
func unsealed(key, value []byte) ([]byte, error) {
	n := len(value) - crc32.Size
	if n < 0 {
		return nil, fmt.Errorf("%w: record %x is cut short", ErrCorrupt, key)
	}
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value[:n])
	if binary.BigEndian.Uint32(value[n:]) != sum {
		return nil, fmt.Errorf("%w: checksum of record %x", ErrCorrupt, key)
	}
	return value[:n:n], nil
}

// The records are encoded as the message package encodes values: a list of named
// attributes would cost too much for State, which is written with every lock, so that one
// packs its fields behind a version byte.
const stateVersion = 1

// The flags of a state tell which of its rarer fields are written.
const (
	flagShared = 1 << iota
	flagToken
	flagSession
	flagSource
	flagHops
	flagTimes // Expires, Due, Received or LockedUntil
	flagMoved // EnqueuedSeq
	flagOverlay
)

func (s *State) flags() (f byte) {
	set := func(flag byte, on bool) {
		if on {
			f |= flag
		}
	}
	set(flagShared, s.Shared)
	set(flagToken, !s.Token.IsZero())
	set(flagSession, s.Session != nil)
	set(flagSource, s.Source != "")
	set(flagHops, s.Hops != 0)
	set(flagTimes, !s.Expires.IsZero() || !s.Due.IsZero() || !s.Received.IsZero() || !s.LockedUntil.IsZero())
	set(flagMoved, s.EnqueuedSeq != 0)
	set(flagOverlay, len(s.Overlay) > 0)
	return f
}

func (s *State) append(b []byte) []byte {
	flags := s.flags()
	b = append(b, stateVersion, byte(s.State), flags)
	b = binary.AppendUvarint(b, s.Head)
	b = binary.AppendUvarint(b, s.Body)
	b = binary.AppendUvarint(b, uint64(s.HeadSize))
	b = binary.AppendUvarint(b, uint64(s.BodySize))
	b = binary.AppendUvarint(b, uint64(s.Deliveries))
	b = appendTime(b, s.Enqueued)
	if flags&flagTimes != 0 {
		for _, t := range [...]time.Time{s.Expires, s.Due, s.Received, s.LockedUntil} {
			b = appendTime(b, t)
		}
	}
	if flags&flagMoved != 0 {
		b = binary.AppendUvarint(b, s.EnqueuedSeq)
	}
	if flags&flagHops != 0 {
		b = append(b, s.Hops)
	}
	if flags&flagToken != 0 {
		b = append(b, s.Token[:]...)
	}
	if flags&flagSession != 0 {
		b = appendText(b, *s.Session)
	}
	if flags&flagSource != 0 {
		b = appendText(b, s.Source)
	}
	if flags&flagOverlay != 0 {
		b = message.AppendAttributes(b, s.Overlay)
	}
	return b
}

func decodeState(b []byte) (State, error) {
	if len(b) < 3 || b[0] != stateVersion || b[1] > byte(message.Scheduled) {
		return State{}, fmt.Errorf("%w: message state header", ErrCorrupt)
	}
	s, flags := State{State: message.State(b[1])}, b[2]
	r := reader{b: b[3:]}
	s.Shared = flags&flagShared != 0
	s.Head, s.Body = r.uvarint(), r.uvarint()
	s.HeadSize, s.BodySize = int64(r.uvarint()), int64(r.uvarint())
	s.Deliveries = uint32(r.uvarint())
	s.Enqueued = r.time()
	if flags&flagTimes != 0 {
		s.Expires, s.Due, s.Received, s.LockedUntil = r.time(), r.time(), r.time(), r.time()
	}
	if flags&flagMoved != 0 {
		s.EnqueuedSeq = r.uvarint()
	}
	if flags&flagHops != 0 {
		if hops := r.take(1); !r.bad {
			s.Hops = hops[0]
		}
	}
	if flags&flagToken != 0 {
		copy(s.Token[:], r.take(len(s.Token)))
	}
	if flags&flagSession != 0 {
		id := r.text()
		s.Session = &id
	}
	if flags&flagSource != 0 {
		s.Source = r.text()
	}
	if r.bad || flags&flagOverlay == 0 && len(r.b) > 0 {
		return State{}, fmt.Errorf("%w: message state has the wrong length", ErrCorrupt)
	}
	if flags&flagOverlay != 0 {
		var err error
		if s.Overlay, err = message.DecodeAttributes(bytes.Clone(r.b)); err != nil {
			return State{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	return s, nil
}

const entityVersion = 1

func (e *Entity) append(b []byte) []byte {
	b = append(b, entityVersion)
	b = appendText(b, e.Kind)
	b = appendText(b, e.Name)
	b = appendTime(b, e.Created)
	b = appendTime(b, e.Modified)
	return message.AppendAttributes(b, e.Properties)
}

func decodeEntity(id uint32, b []byte) (Entity, error) {
	if len(b) < 1 || b[0] != entityVersion {
		return Entity{}, fmt.Errorf("%w: entity header", ErrCorrupt)
	}
	r := reader{b: b[1:]}
	e := Entity{ID: id, Kind: r.text(), Name: r.text(), Created: r.time(), Modified: r.time()}
	if r.bad {
		return Entity{}, fmt.Errorf("%w: entity is cut short", ErrCorrupt)
	}
	var err error
	if e.Properties, err = message.DecodeAttributes(bytes.Clone(r.b)); err != nil {
		return Entity{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return e, nil
}

// appendText writes the length of s and s.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (r *reader) text() string {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return ""
	}
	return string(r.take(int(n)))
}

// appendTime writes milliseconds since the epoch plus one, or 0 for the zero time. No
// instant of the engine lies before 1970.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(t.UnixMilli())+1)
}

// reader reads numbers and remembers whether one was bad.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) time() time.Time {
	ms := r.uvarint()
	if ms == 0 {
		return time.Time{}
	}
	if ms > math.MaxInt64 {
		r.bad = true
		return time.Time{}
	}
	return time.UnixMilli(int64(ms - 1)).UTC()
}
