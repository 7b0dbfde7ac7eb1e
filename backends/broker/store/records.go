package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"dlq/backends/message"
)

// The records that belong to an entity beside its messages. Their keys are a prefix, the
// entity's id and a name, so that all of them go with the entity.

func ownedKey(prefix byte, entity uint32, name []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{prefix}, entity), name...)
}

const ownedNameAt = 5 // where the name begins in such a key

// PutLastEntity writes the highest id that an entity ever had, so that none is used twice.
func (b *Batch) PutLastEntity(id uint32) {
	b.set([]byte{prefixLastEntity}, binary.AppendUvarint(b.buf[:0], uint64(id)))
}

// LastEntity returns what [Batch.PutLastEntity] wrote, or 0.
func (s *Store) LastEntity() (uint32, error) {
	b, err := get(s.db, []byte{prefixLastEntity})
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	r := reader{b: b}
	id := r.uvarint()
	if r.bad {
		return 0, fmt.Errorf("%w: last entity id", ErrCorrupt)
	}
	return uint32(id), nil
}

// DeleteEntity removes the record of an entity and everything that belongs to it but its
// messages, whose states have to be deleted one by one because their heads and bodies lie
// elsewhere.
func (b *Batch) DeleteEntity(id uint32) {
	b.delete(entityKey(id))
	b.delete(nextKey(id))
	for _, prefix := range [...]byte{prefixRule, prefixSession} {
		b.deleteOwned(prefix, id)
	}
	b.ForgetSeen(id)
}

func (b *Batch) deleteOwned(prefix byte, entity uint32) {
	b.err = errors.Join(b.err, b.b.DeleteRange(ownedKey(prefix, entity, nil), ownedKey(prefix, entity+1, nil), nil))
}

// Named is a record with a name: a rule of a subscription, or a task.
type Named struct {
	Entity     uint32
	Name       string
	Attributes []message.Attribute
}

// PutRule writes a rule.
func (b *Batch) PutRule(r Named) {
	b.set(ownedKey(prefixRule, r.Entity, []byte(r.Name)), message.AppendAttributes(b.buf[:0], r.Attributes))
}

// DeleteRule removes a rule.
func (b *Batch) DeleteRule(entity uint32, name string) {
	b.delete(ownedKey(prefixRule, entity, []byte(name)))
}

// PutTask writes a task. Its entity is the one that it works on.
func (b *Batch) PutTask(t Named) {
	b.set(ownedKey(prefixTask, t.Entity, []byte(t.Name)), message.AppendAttributes(b.buf[:0], t.Attributes))
}

// DeleteTask removes a task.
func (b *Batch) DeleteTask(entity uint32, name string) {
	b.delete(ownedKey(prefixTask, entity, []byte(name)))
}

// Rules yields every rule in the order of entities and names. It yields (Named{}, err) once
// and stops.
func (s *Store) Rules() iter.Seq2[Named, error] { return named(s.db, prefixRule) }

// Tasks yields every task, as [Store.Rules] does.
func (s *Store) Tasks() iter.Seq2[Named, error] { return named(s.db, prefixTask) }

func named(r pebble.Reader, prefix byte) iter.Seq2[Named, error] {
	return func(yield func(Named, error) bool) {
		for kv, err := range scan(r, []byte{prefix}, []byte{prefix + 1}) {
			n := Named{}
			if err = errors.Join(err, kv.damage); err == nil {
				n, err = decodeNamed(kv.key, kv.value)
			}
			if !yield(n, err) || err != nil {
				return
			}
		}
	}
}

func decodeNamed(key, value []byte) (Named, error) {
	if len(key) < ownedNameAt {
		return Named{}, fmt.Errorf("%w: key %x", ErrCorrupt, key)
	}
	attrs, err := message.DecodeAttributes(bytes.Clone(value))
	if err != nil {
		return Named{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return Named{binary.BigEndian.Uint32(key[1:]), string(key[ownedNameAt:]), attrs}, nil
}

// Session is what is kept of a session beside its messages.
type Session struct {
	Entity      uint32
	ID          string
	HasState    bool // a state can be empty
	State       []byte
	Updated     time.Time // when the state was set
	Token       message.UUID
	LockedUntil time.Time // zero: not locked
}

const sessionVersion = 1

// PutSession writes a session.
func (b *Batch) PutSession(s Session) {
	v := append(b.buf[:0], sessionVersion)
	v = appendTime(v, s.Updated)
	v = appendTime(v, s.LockedUntil)
	v = append(v, s.Token[:]...)
	if s.HasState {
		v = append(append(v, 1), s.State...)
	}
	b.set(ownedKey(prefixSession, s.Entity, []byte(s.ID)), v)
}

// DeleteSession removes a session.
func (b *Batch) DeleteSession(entity uint32, id string) {
	b.delete(ownedKey(prefixSession, entity, []byte(id)))
}

// Sessions yields every session that is kept, without the bytes of its state. It yields
// (Session{}, err) once and stops.
func (s *Store) Sessions() iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		for kv, err := range scan(s.db, []byte{prefixSession}, []byte{prefixSession + 1}) {
			x := Session{}
			if err = errors.Join(err, kv.damage); err == nil {
				x, err = decodeSession(kv.key, kv.value)
				x.State = nil
			}
			if !yield(x, err) || err != nil {
				return
			}
		}
	}
}

// Session returns one session, or [ErrNotFound].
func (s *Store) Session(entity uint32, id string) (Session, error) {
	key := ownedKey(prefixSession, entity, []byte(id))
	b, err := get(s.db, key)
	if err != nil {
		return Session{}, err
	}
	return decodeSession(key, b)
}

func decodeSession(key, value []byte) (Session, error) {
	if len(key) < ownedNameAt || len(value) < 1 || value[0] != sessionVersion {
		return Session{}, fmt.Errorf("%w: session %x", ErrCorrupt, key)
	}
	r := reader{b: value[1:]}
	s := Session{Entity: binary.BigEndian.Uint32(key[1:]), ID: string(key[ownedNameAt:]), Updated: r.time(), LockedUntil: r.time()}
	copy(s.Token[:], r.take(len(s.Token)))
	if r.bad || len(r.b) > 0 && r.b[0] != 1 {
		return Session{}, fmt.Errorf("%w: session %x", ErrCorrupt, key)
	}
	if s.HasState = len(r.b) > 0; s.HasState {
		s.State = bytes.Clone(r.b[1:])
	}
	return s, nil
}

// Seen is the first of the messages that had an id, for duplicate detection.
type Seen struct {
	At  time.Time
	Seq uint64
	ID  message.Value // its message id
}

// PutSeen notes that a message with the id was seen.
func (b *Batch) PutSeen(entity uint32, id []byte, s Seen) {
	v := appendTime(b.buf[:0], s.At)
	v = binary.AppendUvarint(v, s.Seq)
	if s.ID != nil {
		v = message.AppendAttributes(v, []message.Attribute{{Value: s.ID}})
	}
	b.set(ownedKey(prefixSeen, entity, id), v)
	b.set(seenAtKey(entity, s.At, id), b.buf[:0])
}

// DeleteSeen forgets what [Store.SeenBefore] yielded.
func (b *Batch) DeleteSeen(entity uint32, id []byte, at time.Time) {
	b.delete(ownedKey(prefixSeen, entity, id))
	b.delete(seenAtKey(entity, at, id))
}

// ForgetSeen forgets every id of an entity.
func (b *Batch) ForgetSeen(entity uint32) {
	b.deleteOwned(prefixSeen, entity)
	b.deleteOwned(prefixSeenAt, entity)
}

func seenAtKey(entity uint32, at time.Time, id []byte) []byte {
	k := binary.BigEndian.AppendUint64(ownedKey(prefixSeenAt, entity, nil), uint64(at.UnixMilli()))
	return append(k, id...)
}

// Seen returns the note about an id, or [ErrNotFound].
func (s *Store) Seen(entity uint32, id []byte) (Seen, error) {
	b, err := get(s.db, ownedKey(prefixSeen, entity, id))
	if err != nil {
		return Seen{}, err
	}
	return decodeSeen(b)
}

func decodeSeen(b []byte) (Seen, error) {
	r := reader{b: b}
	seen := Seen{At: r.time(), Seq: r.uvarint()}
	if r.bad {
		return Seen{}, fmt.Errorf("%w: seen id", ErrCorrupt)
	}
	if len(r.b) > 0 {
		id, err := message.DecodeAttributes(bytes.Clone(r.b))
		if err != nil || len(id) != 1 {
			return Seen{}, fmt.Errorf("%w: seen id: %w", ErrCorrupt, err)
		}
		seen.ID = id[0].Value
	}
	return seen, nil
}

// SeenBefore yields the ids of an entity that were seen before t, the oldest first.
func (s *Store) SeenBefore(entity uint32, t time.Time) iter.Seq2[time.Time, []byte] {
	return func(yield func(time.Time, []byte) bool) {
		const idAt = ownedNameAt + 8
		for kv, err := range scan(s.db, ownedKey(prefixSeenAt, entity, nil), seenAtKey(entity, t, nil)) {
			if err != nil || len(kv.key) < idAt {
				return // they stay, and are looked for again
			}
			at := time.UnixMilli(int64(binary.BigEndian.Uint64(kv.key[ownedNameAt:]))).UTC()
			if !yield(at, bytes.Clone(kv.key[idAt:])) {
				return
			}
		}
	}
}
