package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"dlq/backends/message"
)

// ErrNotFound is returned for a record that is not there.
var ErrNotFound = errors.New("no such record")

// Reader reads records of messages as they are now, those that lie next to one another cheaply.
// It is used by one goroutine, which knows that what it reads stays. Close it.
type Reader struct {
	s                     *Store
	states, heads, bodies cursor
}

// Reader returns a reader of about n messages.
func (s *Store) Reader(n int) *Reader {
	several := n > 2 // else finding one by one costs less
	of := func(prefix byte) cursor { return cursor{prefix: prefix, used: several} }
	return &Reader{s, of(prefixState), of(prefixHead), of(prefixBody)}
}

// Close lets go of what the reader has used.
func (r *Reader) Close() error {
	return errors.Join(r.states.close(), r.heads.close(), r.bodies.close())
}

// State returns the state of one message.
func (r *Reader) State(k Key) (State, error) {
	if b, ok := r.s.recent.get(stateSlot(k)); ok {
		return decodeState(b)
	}
	b, err := r.states.get(r.s.db, k.bytes())
	if err != nil {
		return State{}, err
	}
	return decodeState(b)
}

// Head is [Store.Head].
func (r *Reader) Head(id uint64) (*message.Message, int, error) {
	if b, ok := r.s.recent.get(contentSlot(prefixHead, id)); ok {
		return decodeHead(b, nil)
	}
	return decodeHead(r.heads.get(r.s.db, contentKey(prefixHead, id)))
}

// Body is [Store.Body].
func (r *Reader) Body(id uint64) (message.Body, error) {
	if b, ok := r.s.recent.get(contentSlot(prefixBody, id)); ok {
		return decodeBody(b, nil)
	}
	return decodeBody(r.bodies.get(r.s.db, contentKey(prefixBody, id)))
}

// Snapshot is the store as it stood at one moment, so that a message is never read half
// before and half after a change. It is used by one goroutine. Close it.
type Snapshot struct {
	s             *pebble.Snapshot
	heads, bodies *cursor
}

// Snapshot returns a view of what is applied now. It holds back no writer.
func (s *Store) Snapshot() Snapshot {
	return Snapshot{s.db.NewSnapshot(), &cursor{prefix: prefixHead}, &cursor{prefix: prefixBody}}
}

// Close lets the snapshot go.
func (v Snapshot) Close() error { return errors.Join(v.heads.close(), v.bodies.close(), v.s.Close()) }

// cursor reads the records of one kind. The first is looked up; from the second on it is a
// page that is read, whose records are neighbours as a rule, and an iterator finds the
// next of them close to the last.
type cursor struct {
	prefix byte
	used   bool
	it     *pebble.Iterator
}

// get returns a copy of a record, checked.
func (c *cursor) get(s pebble.Reader, key []byte) ([]byte, error) {
	if !c.used {
		c.used = true
		return get(s, key)
	}
	if c.it == nil {
		it, err := s.NewIter(&pebble.IterOptions{LowerBound: []byte{c.prefix}, UpperBound: []byte{c.prefix + 1}})
		if err != nil {
			return nil, err
		}
		c.it = it
	}
	if !c.find(key) {
		if err := c.it.Error(); err != nil {
			return nil, damaged(key, err)
		}
		return nil, fmt.Errorf("%w: %x", ErrNotFound, key)
	}
	v, err := c.it.ValueAndErr()
	if err != nil {
		return nil, damaged(key, err)
	}
	return unsealed(key, bytes.Clone(v))
}

// find moves to a record. From one close by it is a step or two, which cost a tenth of a search;
// what was removed in between is passed over.
func (c *cursor) find(key []byte) bool {
	for c.it.Valid() && follows(c.it.Key(), key) {
		if c.it.Next() && bytes.Equal(c.it.Key(), key) {
			return true
		}
	}
	return c.it.SeekGE(key) && bytes.Equal(c.it.Key(), key)
}

// follows reports whether the number at the end of a key is a little higher than that of
// another, which is the same else. Heads and bodies are numbered in turn.
func follows(before, key []byte) bool {
	const near = 4
	n := len(key) - 8
	if n < 0 || len(before) != len(key) || !bytes.Equal(before[:n], key[:n]) {
		return false
	}
	a, b := binary.BigEndian.Uint64(before[n:]), binary.BigEndian.Uint64(key[n:])
	return b > a && b-a <= near
}

func (c *cursor) close() error {
	if c.it == nil {
		return nil
	}
	return c.it.Close()
}

// Entities yields every entity in the order of their ids. It yields (Entity{}, err) once and
// stops.
func (s *Store) Entities() iter.Seq2[Entity, error] {
	return func(yield func(Entity, error) bool) {
		for kv, err := range scan(s.db, []byte{prefixEntity}, []byte{prefixEntity + 1}) {
			if err != nil {
				yield(Entity{}, err)
				return
			}
			e, err := Entity{}, kv.damage
			if err == nil {
				e, err = decodeEntity(binary.BigEndian.Uint32(kv.key[1:]), kv.value)
			}
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

// States yields the messages of all queues in the order of their keys. A record that is
// damaged comes with its key and an error that wraps [ErrCorrupt]; any other error ends it.
func (s *Store) States() iter.Seq2[Message, error] {
	return states(s.db, []byte{prefixState}, []byte{prefixState + 1})
}

// StatesFrom yields the messages of one sub-queue from k.Seq on, as [Store.States] does.
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
			k, st, err := parseKey(kv.key), State{}, kv.damage
			if err == nil {
				st, err = decodeState(kv.value)
			}
			if !yield(Message{k, st}, err) {
				return
			}
		}
	}
}

// State returns the state of one message.
func (s *Store) State(k Key) (State, error) {
	if b, ok := s.recent.get(stateSlot(k)); ok {
		return decodeState(b)
	}
	return state(s.db, k)
}

// State returns the state of one message.
func (v Snapshot) State(k Key) (State, error) { return state(v.s, k) }

func state(r pebble.Reader, k Key) (State, error) {
	b, err := get(r, k.bytes())
	if err != nil {
		return State{}, err
	}
	return decodeState(b)
}

// LastContent returns the highest ids of a head and of a body that are stored, or 0.
func (s *Store) LastContent() (head, body uint64, err error) {
	if head, err = s.last(prefixHead); err == nil {
		body, err = s.last(prefixBody)
	}
	return head, body, err
}

func (s *Store) last(prefix byte) (uint64, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefix}, UpperBound: []byte{prefix + 1}})
	if err != nil {
		return 0, err
	}
	var id uint64
	if it.Last() && len(it.Key()) == 9 {
		id = binary.BigEndian.Uint64(it.Key()[1:])
	}
	return id, it.Close()
}

// Head returns a new message with every section but the body, and how many bytes are stored
// for it.
func (v Snapshot) Head(id uint64) (*message.Message, int, error) {
	return decodeHead(v.heads.get(v.s, contentKey(prefixHead, id)))
}

// Head is [Snapshot.Head] of what is applied now. Heads and bodies never change, so that
// whoever knows that a message stays needs no snapshot to read it.
func (s *Store) Head(id uint64) (*message.Message, int, error) {
	if b, ok := s.recent.get(contentSlot(prefixHead, id)); ok {
		return decodeHead(b, nil)
	}
	return decodeHead(get(s.db, contentKey(prefixHead, id)))
}

func decodeHead(b []byte, err error) (*message.Message, int, error) {
	if err != nil {
		return nil, 0, err
	}
	m, err := message.DecodeHead(b)
	return m, len(b), err
}

// Body returns a body.
func (v Snapshot) Body(id uint64) (message.Body, error) {
	return decodeBody(v.bodies.get(v.s, contentKey(prefixBody, id)))
}

// Body is [Snapshot.Body] of what is applied now.
func (s *Store) Body(id uint64) (message.Body, error) {
	if b, ok := s.recent.get(contentSlot(prefixBody, id)); ok {
		return decodeBody(b, nil)
	}
	return decodeBody(get(s.db, contentKey(prefixBody, id)))
}

func decodeBody(b []byte, err error) (message.Body, error) {
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
		return nil, damaged(key, err)
	}
	value, err := unsealed(key, bytes.Clone(v))
	return value, errors.Join(err, closer.Close())
}

// damaged names the record whose table pebble found damaged.
func damaged(key []byte, err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: record %x: %w", ErrCorrupt, key, err)
	}
	return err
}

// keyValue is valid until the next one.
type keyValue struct {
	key, value []byte
	damage     error // the value is not what was written
}

func scan(r pebble.Reader, from, to []byte) iter.Seq2[keyValue, error] {
	return func(yield func(keyValue, error) bool) {
		it, err := r.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
		if err != nil {
			yield(keyValue{}, err)
			return
		}
		defer func() { _ = it.Close() }() // its error is it.Error(), which is looked at
		for it.First(); it.Valid(); it.Next() {
			value, damage := unsealed(it.Key(), it.Value())
			if !yield(keyValue{it.Key(), value, damage}, nil) {
				return
			}
		}
		if err := it.Error(); err != nil {
			if pebble.IsCorruptionError(err) {
				err = fmt.Errorf("%w: %w", ErrDamaged, err) // what comes behind cannot be told
			}
			yield(keyValue{}, err)
		}
	}
}

// Content yields the ids of all heads, then of all bodies. It yields (0, err) once and stops.
func (s *Store) Content() iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		for _, prefix := range [...]byte{prefixHead, prefixBody} {
			for kv, err := range scan(s.db, []byte{prefix}, []byte{prefix + 1}) {
				if err != nil || len(kv.key) != 9 {
					yield(0, err)
					return
				}
				if !yield(binary.BigEndian.Uint64(kv.key[1:]), nil) {
					return
				}
			}
		}
	}
}
