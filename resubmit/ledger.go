package resubmit

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"dlq/backends/message"
)

// itemSum identifies the content of a message: half of it stands for everything but the body,
// half for the body. The second half is zero where the body was not read.
type itemSum [16]byte

// sumOf leaves out what the broker owns and what may differ between two readings.
func sumOf(m *message.Message) itemSum {
	head := *m
	head.System, head.DeliveryAnnotations = nil, nil
	var sum itemSum
	h := sha256.Sum256(message.AppendHead(nil, &head))
	copy(sum[:8], h[:])
	if m.Broker.BodyOmitted {
		return sum
	}
	b := sha256.New()
	b.Write([]byte{byte(m.Body.Kind)})
	for _, s := range m.Body.Sections {
		b.Write(s)
	}
	copy(sum[8:], b.Sum(nil))
	return sum
}

// matches reports whether two readings show the same message, as far as both were read.
func (s itemSum) matches(o itemSum) bool {
	noBody := [8]byte{}
	return [8]byte(s[:8]) == [8]byte(o[:8]) &&
		([8]byte(s[8:]) == noBody || [8]byte(o[8:]) == noBody || [8]byte(s[8:]) == [8]byte(o[8:]))
}

// item is one message of a plan.
type item struct {
	seq int64
	id  string
	sum itemSum

	state  itemState
	atomic bool  // of the latest intent
	sent   bool  // acknowledged by the destination at some time
	stored int64 // offset of the journal record with the original; 0: none
}

type itemState uint8

const (
	planned itemState = iota
	intent
	sent
	done
	uncertain
	skipped
	failed
	itemStates // how many there are
)

func (s itemState) public() ItemState {
	return [...]ItemState{ItemPlanned, ItemIntent, ItemSent, ItemDone, ItemUncertain, ItemSkipped, ItemFailed}[s]
}

// ledger is what a journal says: the job, and what became of each message. The running job
// keeps one beside the file it writes; everyone else builds one by reading the file.
type ledger struct {
	header  jobHeader
	items   []item
	notes   map[int]string // why an item is uncertain, skipped or failed
	edited  map[int64]int64
	counts  [itemStates]int64
	begun   bool
	starts  []jobStart
	end     *jobEnd // nil while running, and when cut off
	updated time.Time
}

func newLedger() *ledger {
	return &ledger{notes: map[int]string{}, edited: map[int64]int64{}}
}

func (l *ledger) plan(items []item) {
	l.items = append(l.items, items...)
	l.counts[planned] += int64(len(items))
}

// set records what became of an item.
func (l *ledger) set(index int, s itemState, note string) {
	it := &l.items[index]
	l.counts[it.state]--
	l.counts[s]++
	it.state = s
	it.sent = it.sent || s == sent
	if note == "" {
		delete(l.notes, index)
	} else {
		l.notes[index] = note
	}
}

// halfSent reports whether a message was sent whose original is perhaps still there.
func (l *ledger) halfSent() bool {
	return slices.ContainsFunc(l.items, func(it item) bool { return it.sent && it.state != done })
}

// readLedger reads a journal up to its sound end, which it returns. The originals of messages
// are read and checked only if whole is set; else they are stepped over. A process that died while it
// wrote the plan leaves a ledger that is not begun, at worst an empty one.
func readLedger(r io.ReaderAt, size int64, whole bool) (l *ledger, salt uint32, end int64, err error) {
	j, err := newJournalReader(r, size)
	if errors.Is(err, errTooShort) {
		return newLedger(), 0, 0, nil
	}
	if err != nil {
		return nil, 0, 0, err
	}
	skip := func(first []byte) bool { return len(first) > 0 && first[0] == recIntent }
	if whole {
		skip = nil
	}
	l = newLedger()
	for {
		off, payload, err := j.next(skip)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = l.apply(off, payload)
		}
		if err != nil {
			return nil, 0, 0, err
		}
	}
	if l.header.ID == "" && !j.endsInFirst() {
		return nil, 0, 0, fmt.Errorf("%w: it has no header", errDamaged)
	}
	return l, j.salt, j.off, nil
}

// apply takes in one record.
func (l *ledger) apply(off int64, payload []byte) error {
	if len(payload) == 0 {
		return fmt.Errorf("%w: empty record at offset %d", errDamaged, off)
	}
	kind, c := payload[0], &cursor{b: payload[1:]}
	switch kind {
	case recHeader:
		return l.applyJSON(c, &l.header)
	case recPlanned:
		l.applyPlanned(c)
	case recEdited:
		l.edited[c.varint()] = off
	case recBegun:
		l.begun = true
	case recIntent:
		l.applyIntent(c, off)
	case recSent, recDone:
		for len(c.b) > 0 {
			if i, ok := l.index(c); ok {
				l.set(i, stateOf(kind), "")
			}
		}
	case recUncertain, recSkipped, recFailed:
		if i, ok := l.index(c); ok {
			l.set(i, stateOf(kind), string(c.b))
		}
	case recResumed:
		var s jobStart
		err := l.applyJSON(c, &s)
		l.starts, l.end, l.updated = append(l.starts, s), nil, s.At
		return err
	case recFinished:
		l.end = &jobEnd{}
		err := l.applyJSON(c, l.end)
		l.updated = l.end.At
		return err
	default:
		return fmt.Errorf("%w: unknown record kind %d; a newer dlq wrote it", errDamaged, kind)
	}
	return c.err(kind)
}

// stateOf returns the state that a record of that kind puts items in.
func stateOf(kind byte) itemState {
	switch kind {
	case recSent:
		return sent
	case recDone:
		return done
	case recUncertain:
		return uncertain
	case recSkipped:
		return skipped
	}
	return failed
}

func (l *ledger) applyJSON(c *cursor, v any) error {
	if err := json.Unmarshal(c.b, v); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

func (l *ledger) applyPlanned(c *cursor) {
	for len(c.b) > 0 {
		it := item{seq: c.varint()}
		copy(it.sum[:], c.take(uint64(len(it.sum))))
		it.id = string(c.take(c.uvarint()))
		if !c.bad {
			l.plan([]item{it})
		}
	}
}

func (l *ledger) applyIntent(c *cursor, off int64) {
	i, ok := l.index(c)
	flags := c.take(1)
	if ok && !c.bad {
		l.intend(i, flags[0], off)
	}
}

// intend records that something is about to happen to an item.
func (l *ledger) intend(index int, flags byte, off int64) {
	l.items[index].atomic = flags&intentAtomic != 0
	if flags&intentNoMessage == 0 {
		l.items[index].stored = off
	}
	l.set(index, intent, "")
}

// index reads an item's index.
func (l *ledger) index(c *cursor) (int, bool) {
	i := c.uvarint()
	if c.bad || i >= uint64(len(l.items)) {
		c.bad, c.b = true, nil
		return 0, false
	}
	return int(i), true
}

// storedMessage reads the message in an intent or edited record.
func storedMessage(payload []byte) (*message.Message, error) {
	c := &cursor{b: payload}
	switch kind := c.take(1); {
	case c.bad:
	case kind[0] == recIntent:
		c.uvarint()
		c.take(1)
	case kind[0] == recEdited:
		c.varint()
	default:
		c.bad = true
	}
	if c.bad {
		return nil, fmt.Errorf("%w: no message where one should be", errDamaged)
	}
	return message.Decode(c.b)
}
