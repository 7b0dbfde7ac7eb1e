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

// Entity is the stored form of a queue.
type Entity struct {
	ID               uint32
	Name             string // as it was written when it was created
	LockDuration     time.Duration
	MaxDeliveryCount uint32
	MaxBodyBytes     int64
	Created          time.Time
}

// State is everything about a message that changes after it arrived, and where its
// unchanging parts are.
type State struct {
	Head, Body  uint64 // ids of its H and B records
	BodySize    int64
	State       message.State
	Deliveries  uint32 // failed deliveries
	Enqueued    time.Time
	EnqueuedSeq uint64    // number before it was moved from another entity; 0: never moved
	Expires     time.Time // zero: never
	Due         time.Time // when a scheduled message becomes active
	Token       message.UUID
	LockedUntil time.Time // zero: not locked
	// Overlay holds application properties set after it arrived, such as DeadLetterReason:
	// they win over those of the head.
	Overlay []message.Attribute
}

// ErrCorrupt is wrapped by the error of every record that fails its checksum or does not
// decode. The record is not served.
var ErrCorrupt = errors.New("stored record is corrupt")

const (
	prefixBody   = 'B'
	prefixEntity = 'E'
	prefixHead   = 'H'
	prefixState  = 'M'
	prefixNext   = 'N'
)

func entityKey(id uint32) []byte { return binary.BigEndian.AppendUint32([]byte{prefixEntity}, id) }
func nextKey(id uint32) []byte   { return binary.BigEndian.AppendUint32([]byte{prefixNext}, id) }

func contentKey(prefix byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{prefix}, id)
}

func (k Key) bytes() []byte {
	b := append(make([]byte, 0, 14), prefixState)
	b = binary.BigEndian.AppendUint32(b, k.Queue)
	b = append(b, k.Sub)
	return binary.BigEndian.AppendUint64(b, k.Seq)
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

func (s *State) append(b []byte) []byte {
	b = append(b, stateVersion, byte(s.State))
	b = binary.AppendUvarint(b, s.Head)
	b = binary.AppendUvarint(b, s.Body)
	b = binary.AppendUvarint(b, uint64(s.BodySize))
	b = binary.AppendUvarint(b, uint64(s.Deliveries))
	b = binary.AppendUvarint(b, s.EnqueuedSeq)
	for _, t := range [...]time.Time{s.Enqueued, s.Expires, s.Due, s.LockedUntil} {
		b = appendTime(b, t)
	}
	if !s.LockedUntil.IsZero() {
		b = append(b, s.Token[:]...)
	}
	if len(s.Overlay) > 0 {
		b = message.AppendAttributes(b, s.Overlay)
	}
	return b
}

func decodeState(b []byte) (State, error) {
	if len(b) < 2 || b[0] != stateVersion || b[1] > byte(message.Scheduled) {
		return State{}, fmt.Errorf("%w: message state header", ErrCorrupt)
	}
	s := State{State: message.State(b[1])}
	r := reader{b: b[2:]}
	s.Head, s.Body = r.uvarint(), r.uvarint()
	s.BodySize = int64(r.uvarint())
	s.Deliveries = uint32(r.uvarint())
	s.EnqueuedSeq = r.uvarint()
	s.Enqueued, s.Expires, s.Due, s.LockedUntil = r.time(), r.time(), r.time(), r.time()
	if !s.LockedUntil.IsZero() {
		copy(s.Token[:], r.take(len(s.Token)))
	}
	if r.bad {
		return State{}, fmt.Errorf("%w: message state is cut short", ErrCorrupt)
	}
	if len(r.b) > 0 {
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
	b = binary.AppendUvarint(b, uint64(e.LockDuration))
	b = binary.AppendUvarint(b, uint64(e.MaxDeliveryCount))
	b = binary.AppendUvarint(b, uint64(e.MaxBodyBytes))
	b = appendTime(b, e.Created)
	return append(b, e.Name...)
}

func decodeEntity(id uint32, b []byte) (Entity, error) {
	if len(b) < 1 || b[0] != entityVersion {
		return Entity{}, fmt.Errorf("%w: entity header", ErrCorrupt)
	}
	r := reader{b: b[1:]}
	e := Entity{ID: id, LockDuration: time.Duration(r.uvarint())}
	e.MaxDeliveryCount = uint32(r.uvarint())
	e.MaxBodyBytes = int64(r.uvarint())
	e.Created = r.time()
	if r.bad {
		return Entity{}, fmt.Errorf("%w: entity is cut short", ErrCorrupt)
	}
	e.Name = string(r.b)
	return e, nil
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
