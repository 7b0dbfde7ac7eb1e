package store

import (
	"encoding/binary"
	"errors"
)

// The index of a clean stop: what the engine has in memory of each entity, in the engine's own
// form, so that opening need not read the state of every message. It is dropped by the first
// write after opening, and since writes become durable in their order, an index that is found
// is never older than the messages.

// PutIndex writes the index of an entity; 0 stands for the engine itself.
func (b *Batch) PutIndex(entity uint32, index []byte) {
	b.set(ownedKey(prefixIndex, entity, nil), append(b.buf[:0], index...))
}

// DropIndexes removes all of them.
func (b *Batch) DropIndexes() {
	b.err = errors.Join(b.err, b.b.DeleteRange([]byte{prefixIndex}, []byte{prefixIndex + 1}, nil))
}

// Index returns what [Batch.PutIndex] wrote, or [ErrNotFound].
func (s *Store) Index(entity uint32) ([]byte, error) {
	return get(s.db, ownedKey(prefixIndex, entity, nil))
}

// StatesOf yields the messages of one entity as [Store.States] does.
func (s *Store) StatesOf(entity uint32) func(yield func(Message, error) bool) {
	from := binary.BigEndian.AppendUint32([]byte{prefixState}, entity)
	to := binary.BigEndian.AppendUint32([]byte{prefixState}, entity+1)
	return states(s.db, from, to)
}
