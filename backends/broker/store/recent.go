package store

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// recent holds the records of messages that were written last, because most messages are
// received soon after they were sent, and looking into memory costs a tenth of looking into
// every layer of the database. What is not here may be there.
type recent struct {
	mu       sync.Mutex
	at       map[slot]place // without pointers, so that nobody has to follow them
	segments []*segment     // the oldest first
	gone     int            // how many there were before them
}

const (
	segmentBytes = 64 << 10
	mostSegments = 256              // 16 MB
	largest      = segmentBytes / 4 // of a record
)

// slot names a record of a message.
type slot struct {
	n      uint64 // sequence number, or id of a head or body
	queue  uint32
	sub    uint8
	prefix byte
}

// place is where the value of a record is.
type place struct {
	in       int // the segment, by its number since the store was opened
	from, to int32
}

// segment is filled once from its beginning, and emptied as a whole.
type segment struct {
	buf   []byte
	slots []slot // what is or was in it
}

// slotOf returns the slot of a key; ok is false for other records than those of messages.
func slotOf(key []byte) (s slot, ok bool) {
	switch {
	case len(key) == 9 && (key[0] == prefixHead || key[0] == prefixBody):
		return contentSlot(key[0], binary.BigEndian.Uint64(key[1:])), true
	case len(key) == 14 && key[0] == prefixState:
		return stateSlot(parseKey(key)), true
	}
	return slot{}, false
}

func contentSlot(prefix byte, id uint64) slot { return slot{n: id, prefix: prefix} }

func stateSlot(k Key) slot { return slot{k.Seq, k.Queue, k.Sub, prefixState} }

// get returns a copy of a record's value.
func (r *recent) get(s slot) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.at[s]
	if !ok {
		return nil, false
	}
	return bytes.Clone(r.segments[p.in-r.gone].buf[p.from:p.to]), true
}

// note makes what a batch is about to write readable. Nobody reads a state while it is written,
// and nobody knows of a head or body before.
func (r *recent) note(b *pebble.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for records := b.Reader(); ; {
		kind, key, value, ok, err := records.Next()
		if !ok || err != nil {
			return
		}
		s, ok := slotOf(key)
		switch {
		case !ok:
		case kind == pebble.InternalKeyKindSet && len(value) <= largest && len(value) >= crc32.Size:
			r.put(s, value[:len(value)-crc32.Size])
		default:
			delete(r.at, s)
		}
	}
}

func (r *recent) put(s slot, value []byte) {
	if r.at == nil {
		r.at = map[slot]place{}
	}
	n := len(r.segments)
	if n == 0 || len(r.segments[n-1].buf)+len(value) > segmentBytes {
		r.segments = append(r.segments, r.empty())
		n = len(r.segments)
	}
	g := r.segments[n-1]
	from := len(g.buf)
	g.buf = append(g.buf, value...)
	g.slots = append(g.slots, s)
	r.at[s] = place{r.gone + n - 1, int32(from), int32(len(g.buf))}
}

// empty returns an empty segment, which is the oldest if there are enough.
func (r *recent) empty() *segment {
	if len(r.segments) < mostSegments {
		return &segment{buf: make([]byte, 0, segmentBytes)}
	}
	g := r.segments[0]
	for _, s := range g.slots {
		if p, ok := r.at[s]; ok && p.in == r.gone {
			delete(r.at, s)
		}
	}
	g.buf, g.slots = g.buf[:0], g.slots[:0]
	copy(r.segments, r.segments[1:])
	r.segments = r.segments[:len(r.segments)-1]
	r.gone++
	return g
}
