package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"dlq/backends/message"
)

// ErrNotFound is returned for a record that is not there.
var ErrNotFound = errors.New("no such record")

// Snapshot is the store as it stood at one moment, so that a message is never read half
// before and half after a change. Close it.
type Snapshot struct{ s *pebble.Snapshot }

// Snapshot returns a view of what is applied now. It holds back no writer.
func (s *Store) Snapshot() Snapshot { return Snapshot{s.db.NewSnapshot()} }

// Close lets the snapshot go.
func (v Snapshot) Close() error { return v.s.Close() }

// Entities yields every entity in the order of their ids, with the bound of its sequence
// numbers.
func (s *Store) Entities() iter.Seq2[Entity, error] {
	return func(yield func(Entity, error) bool) {
		for kv, err := range scan(s.db, []byte{prefixEntity}, []byte{prefixEntity + 1}) {
			if err != nil {
				yield(Entity{}, err)
				return
			}
			e, err := decodeEntity(binary.BigEndian.Uint32(kv.key[1:]), kv.value)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Next returns the bound that [Batch.PutNext] wrote for a queue, or 0.
func (s *Store) Next(queue uint32) (uint64, error) {
	b, err := get(s.db, nextKey(queue))
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	r := reader{b: b}
	if n := r.uvarint(); !r.bad {
		return n, nil
	}
	return 0, fmt.Errorf("%w: sequence bound of queue %d", ErrCorrupt, queue)
}

// Message is a key with its state.
type Message struct {
	Key
	State
}

// States yields the messages of all queues, or of one sub-queue from a sequence number on,
// in the order of their keys. It yields (Message{}, err) once and stops.
func (s *Store) States() iter.Seq2[Message, error] {
	return states(s.db, []byte{prefixState}, []byte{prefixState + 1})
}

// StatesFrom yields the messages of one sub-queue from k.Seq on.
func (v Snapshot) StatesFrom(k Key) iter.Seq2[Message, error] {
	end := Key{k.Queue, k.Sub + 1, 0}
	return states(v.s, k.bytes(), end.bytes())
}

func states(r pebble.Reader, from, to []byte) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for kv, err := range scan(r, from, to) {
			if err != nil {
				yield(Message{}, err)
				return
			}
			k, err := parseKey(kv.key)
			if err != nil {
				yield(Message{}, err)
				return
			}
			st, err := decodeState(kv.value)
			if !yield(Message{k, st}, err) || err != nil {
				return
			}
		}
	}
}

// State returns the state of one message.
func (s *Store) State(k Key) (State, error) {
	b, err := get(s.db, k.bytes())
	if err != nil {
		return State{}, err
	}
	return decodeState(b)
}

// Head returns a new message with every section but the body.
func (v Snapshot) Head(id uint64) (*message.Message, error) {
	b, err := get(v.s, contentKey(prefixHead, id))
	if err != nil {
		return nil, err
	}
	return message.DecodeHead(b)
}

// Body returns a body.
func (v Snapshot) Body(id uint64) (message.Body, error) {
	b, err := get(v.s, contentKey(prefixBody, id))
	if err != nil {
		return message.Body{}, err
	}
	return message.DecodeBody(b)
}

// get returns a copy of a record's value, checked.
func get(r pebble.Reader, key []byte) ([]byte, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, fmt.Errorf("%w: %x", ErrNotFound, key)
	}
	if err != nil {
		return nil, err
	}
	value, err := unsealed(key, append([]byte(nil), v...))
	return value, errors.Join(err, closer.Close())
}

type keyValue struct{ key, value []byte } // valid until the next one

func scan(r pebble.Reader, from, to []byte) iter.Seq2[keyValue, error] {
	return func(yield func(keyValue, error) bool) {
		it, err := r.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
		if err != nil {
			yield(keyValue{}, err)
			return
		}
		defer func() { _ = it.Close() }() // its error is it.Error(), which is looked at
		for it.First(); it.Valid(); it.Next() {
			value, err := unsealed(it.Key(), it.Value())
			if !yield(keyValue{it.Key(), value}, err) || err != nil {
				return
			}
		}
		if err := it.Error(); err != nil {
			yield(keyValue{}, err)
		}
	}
}
