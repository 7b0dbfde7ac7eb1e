package tui

import (
	"cmp"
	"math"
	"time"
	"unicode/utf8"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/resubmit"
)

// rowData is what the list keeps of one message, before it is packed.
type rowData struct {
	seq         int64
	enqueued    time.Time
	id          string
	reason      string
	description string
	subject     string
	size        int64
	deliveries  uint32
	state       message.State
	signature   resubmit.Signature
	matches     bool     // the filter shows it
	unjudged    bool     // the filter could not tell
	properties  []string // names of its application properties, for completion
}

// How much of a text a row keeps: enough for a wide terminal. The message itself is
// loaded whole when it is opened.
const (
	maxID          = 256
	maxDescription = 160
	maxSubject     = 64
)

// rowStore holds the rows of one load, packed: about 100 bytes a message, with no
// pointers for the garbage collector to follow. It only grows, so a row keeps its
// position for the life of the store.
type rowStore struct {
	chunks  [][]packedRow
	n       int
	ids     arena
	texts   internTable
	groups  []resubmit.Signature
	tallies []tally           // of all rows, by group
	byID    map[string]uint32 // signature ID → index in groups
}

// packedRow is a rowData without strings.
type packedRow struct {
	seq         int64
	enqueued    int64 // Unix milliseconds; math.MinInt64: not known
	id          span
	reason      uint32 // in texts
	description uint32
	subject     uint32
	group       uint32 // in groups
	size        uint32 // saturates
	deliveries  uint16 // saturates
	state       message.State
}

const chunkRows = 8192

func newRowStore() *rowStore { return &rowStore{byID: make(map[string]uint32)} }

func (s *rowStore) Len() int { return s.n }

func (s *rowStore) at(i int) *packedRow { return &s.chunks[i/chunkRows][i%chunkRows] }

// add appends a row and returns its position.
func (s *rowStore) add(r rowData) int {
	if s.n%chunkRows == 0 {
		s.chunks = append(s.chunks, make([]packedRow, 0, chunkRows))
	}
	last := &s.chunks[len(s.chunks)-1]
	enqueued := int64(math.MinInt64)
	if !r.enqueued.IsZero() {
		enqueued = r.enqueued.UnixMilli()
	}
	*last = append(*last, packedRow{
		seq:         r.seq,
		enqueued:    enqueued,
		id:          s.ids.add(prefix(r.id, maxID)),
		reason:      s.texts.add(prefix(r.reason, maxDescription)),
		description: s.texts.add(prefix(r.description, maxDescription)),
		subject:     s.texts.add(prefix(r.subject, maxSubject)),
		group:       s.group(r.signature),
		size:        uint32(min(max(r.size, 0), math.MaxUint32)),
		deliveries:  uint16(min(r.deliveries, math.MaxUint16)),
		state:       r.state,
	})
	s.n++
	s.tallies = s.count(s.tallies, s.n-1)
	return s.n - 1
}

// tally is how many rows a group has, and when the first and the last of them came, in
// Unix milliseconds.
type tally struct{ n, first, last int64 }

// count adds the row at position i to the tallies of the groups, and returns them.
func (s *rowStore) count(tallies []tally, i int) []tally {
	r := s.at(i)
	for int(r.group) >= len(tallies) {
		tallies = append(tallies, tally{first: math.MaxInt64, last: math.MinInt64})
	}
	t := &tallies[r.group]
	t.n++
	if r.enqueued != math.MinInt64 {
		t.first, t.last = min(t.first, r.enqueued), max(t.last, r.enqueued)
	}
	return tallies
}

func (s *rowStore) group(sig resubmit.Signature) uint32 {
	if g, ok := s.byID[sig.ID]; ok {
		return g
	}
	g := uint32(len(s.groups))
	s.groups = append(s.groups, sig)
	s.byID[sig.ID] = g
	return g
}

func (s *rowStore) id(i int) string          { return s.ids.text(s.at(i).id) }
func (s *rowStore) reason(i int) string      { return s.texts.text(s.at(i).reason) }
func (s *rowStore) description(i int) string { return s.texts.text(s.at(i).description) }
func (s *rowStore) subject(i int) string     { return s.texts.text(s.at(i).subject) }

// enqueued returns when the message came; ok is false if the service did not say.
func (s *rowStore) enqueued(i int) (t time.Time, ok bool) {
	ms := s.at(i).enqueued
	return time.UnixMilli(ms), ms != math.MinInt64
}

// prefix cuts s to at most n bytes, not inside a character.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// noCauseReason is the reason that says nothing about why: its description is always the
// same, so a row shows the exception in the application's headers instead, if there is one.
const noCauseReason = "MaxDeliveryCountExceeded"

// newRowData reads off a message what its row shows. It runs in a stream's goroutine.
func newRowData(m *message.Message) rowData {
	r := rowData{
		seq:         m.Broker.SequenceNumber,
		enqueued:    m.Broker.EnqueuedTime,
		id:          message.FormatValue(m.ID),
		reason:      m.DeadLetterReason(),
		description: m.DeadLetterDescription(),
		subject:     message.Str(m.Subject),
		size:        m.Broker.BodySize,
		deliveries:  m.Broker.DeliveryCount,
		state:       m.Broker.State,
		signature:   resubmit.SignatureOf(m),
	}
	if r.signature.Reason == noCauseReason {
		r.description = cmp.Or(resubmit.CauseOf(m), r.description)
	}
	if !m.Broker.BodyOmitted {
		r.size = int64(m.Body.Len())
	}
	for _, p := range m.Properties {
		r.properties = append(r.properties, p.Name)
	}
	return r
}

// span is where a text lies in an arena: the chunk and the offset above, the length below.
type span uint64

const (
	spanLen    = 16 // bits
	arenaChunk = 1 << 20
)

// arena keeps texts one behind the other in chunks that are never copied.
type arena struct{ chunks [][]byte }

func (a *arena) add(s string) span {
	if len(a.chunks) == 0 || len(a.chunks[len(a.chunks)-1])+len(s) > arenaChunk {
		a.chunks = append(a.chunks, make([]byte, 0, arenaChunk))
	}
	last := len(a.chunks) - 1
	off := len(a.chunks[last])
	a.chunks[last] = append(a.chunks[last], s...)
	return span((last*arenaChunk+off)<<spanLen | len(s))
}

func (a *arena) text(at span) string {
	n := int(at & (1<<spanLen - 1))
	if n == 0 {
		return ""
	}
	pos := int(at >> spanLen)
	chunk, off := pos/arenaChunk, pos%arenaChunk
	return string(a.chunks[chunk][off : off+n])
}

// internTable keeps each text once. An incident has few reasons and subjects, but its
// descriptions may all differ: beyond maxKnown texts, new ones are stored without being
// looked up, so that the table of known ones stays small.
type internTable struct {
	arena arena
	spans []span
	known map[string]uint32
}

const maxKnown = 1 << 15

func (t *internTable) add(s string) uint32 {
	if i, ok := t.known[s]; ok {
		return i
	}
	i := uint32(len(t.spans))
	at := t.arena.add(s)
	t.spans = append(t.spans, at)
	if len(t.known) < maxKnown {
		if t.known == nil {
			t.known = make(map[string]uint32)
		}
		t.known[t.arena.text(at)] = i // a copy of ours: s may be a slice of a whole page
	}
	return i
}

func (t *internTable) text(i uint32) string { return t.arena.text(t.spans[i]) }

// entityTitle names what an entity's messages are to a reader.
func entityTitle(id backends.EntityID) string {
	switch id.Sub {
	case backends.DeadLetterQueue:
		return "dead letters"
	case backends.TransferDeadLetterQueue:
		return "transfer dead letters"
	}
	return "messages"
}
