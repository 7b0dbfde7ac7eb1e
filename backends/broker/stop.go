package broker

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/tidwall/btree"

	"dlq/backends/broker/store"
)

// A clean stop writes the index, so that the next start reads it in one piece instead of the
// state of every message. After a crash there is none, and the states are read. Entities with
// sessions or groups are read from their states always: their messages are few or their
// groups are many.

const indexVersion = 1

// putIndexes writes the index of everything, unless some messages wait to be removed whose
// entity is gone: only reading the states finds them.
func (e *Engine) putIndexes(batch *store.Batch) {
	for _, t := range e.timers.heap {
		if _, ok := t.what.(*remains); ok {
			return
		}
	}
	w := []byte{indexVersion}
	w = binary.AppendUvarint(w, uint64(len(e.refs)))
	for _, id := range slices.Sorted(maps.Keys(e.refs)) {
		w = binary.AppendUvarint(w, id)
		w = binary.AppendUvarint(w, uint64(e.refs[id]))
	}
	batch.PutIndex(0, w)
	for id, ent := range e.byID {
		if ent.subs[Main].groups == nil {
			batch.PutIndex(id, ent.indexed())
		}
	}
}

// indexed is the index of an entity.
func (ent *entity) indexed() []byte {
	w := []byte{indexVersion}
	w = binary.AppendVarint(w, ent.own())
	for _, q := range ent.subs {
		for _, set := range [...]*btree.Set[uint64]{&q.ready, &q.deferred} {
			w = appendAscending(w, set.Len(), set.Scan)
		}
		// The others are read from their states.
		others := slices.Concat(slices.Collect(maps.Keys(q.locked)), slices.Collect(maps.Keys(q.scheduled)), slices.Collect(maps.Keys(q.damaged)))
		slices.Sort(others)
		w = appendAscending(w, len(others), func(f func(uint64) bool) {
			for _, seq := range others {
				f(seq)
			}
		})
		w = binary.AppendUvarint(w, uint64(q.expiring.Len()))
		last := int64(0)
		q.expiring.Scan(func(x expiry) bool {
			w = binary.AppendVarint(w, x.at-last)
			w = binary.AppendUvarint(w, x.seq)
			last = x.at
			return true
		})
	}
	return w
}

func appendAscending(w []byte, n int, scan func(func(uint64) bool)) []byte {
	w = binary.AppendUvarint(w, uint64(n))
	last := uint64(0)
	scan(func(seq uint64) bool {
		w = binary.AppendUvarint(w, seq-last)
		last = seq
		return true
	})
	return w
}

// loadIndexes reads what putIndexes wrote. done holds the entities that need no more reading;
// none, if there is no index or it is damaged.
func (e *Engine) loadIndexes() (done map[uint32]bool, err error) {
	w, err := e.store.Index(0)
	if isDamage(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	refs, err := readRefs(w)
	if err != nil {
		return nil, nil
	}
	done = map[uint32]bool{}
	for _, ent := range e.inOrder() {
		if ent.subs[Main].groups != nil {
			continue
		}
		w, err := e.store.Index(ent.id)
		if err == nil {
			err = e.loadIndex(ent, w)
		}
		if err == nil {
			done[ent.id] = true
			continue
		}
		if !isDamage(err) {
			return nil, err
		}
		e.reset(ent)
	}
	e.refs = refs
	return done, nil
}

// reset forgets what was read of an entity.
func (e *Engine) reset(ent *entity) {
	for i, q := range ent.subs {
		for _, l := range q.locked {
			e.drop(l)
		}
		for _, t := range q.scheduled {
			e.timers.remove(t)
		}
		e.timers.remove(q.sweeper)
		ent.subs[i] = newQueue(ent, Sub(i))
	}
	ent.grow(-ent.own())
}

func readRefs(w []byte) (map[uint64]uint32, error) {
	r := indexReader{w: w}
	r.version()
	refs := map[uint64]uint32{}
	for range r.count() {
		id := r.uvarint()
		refs[id] = uint32(r.uvarint())
	}
	return refs, r.end()
}

// loadIndex reads the index of an entity, and from their states the messages that are held,
// scheduled or damaged.
func (e *Engine) loadIndex(ent *entity, w []byte) error {
	r := indexReader{w: w}
	r.version()
	size := r.varint()
	for _, q := range ent.subs {
		for _, set := range [...]*btree.Set[uint64]{&q.ready, &q.deferred} {
			r.ascending(set.Load)
		}
		var others []uint64
		r.ascending(func(seq uint64) { others = append(others, seq) })
		for _, seq := range others {
			st, err := e.store.State(q.key(seq))
			switch {
			case isDamage(err):
				e.setAside(q.key(seq))
			case err != nil:
				return err
			default:
				e.index(ent, store.Message{Key: q.key(seq), State: st})
			}
		}
		at := int64(0)
		for range r.count() {
			at += r.varint()
			q.expiring.Load(expiry{at, r.uvarint()})
		}
		e.timeSweep(q)
	}
	ent.grow(size - ent.own()) // which the messages with states have grown
	return r.end()
}

var errIndex = fmt.Errorf("%w: index", store.ErrCorrupt)

// indexReader reads numbers and remembers whether one was bad.
type indexReader struct {
	w   []byte
	bad bool
}

func (r *indexReader) version() {
	if len(r.w) == 0 || r.w[0] != indexVersion {
		r.bad = true
		return
	}
	r.w = r.w[1:]
}

func (r *indexReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.w)
	if n <= 0 {
		r.bad, r.w = true, nil
		return 0
	}
	r.w = r.w[n:]
	return v
}

func (r *indexReader) varint() int64 {
	v, n := binary.Varint(r.w)
	if n <= 0 {
		r.bad, r.w = true, nil
		return 0
	}
	r.w = r.w[n:]
	return v
}

// count reads how many items follow, of a byte each at least.
func (r *indexReader) count() uint64 {
	n := r.uvarint()
	if n > uint64(len(r.w)) {
		r.bad = true
		return 0
	}
	return n
}

func (r *indexReader) ascending(f func(uint64)) {
	seq := uint64(0)
	for range r.count() {
		seq += r.uvarint()
		f(seq)
	}
}

func (r *indexReader) end() error {
	if r.bad || len(r.w) > 0 {
		return errIndex
	}
	return nil
}
