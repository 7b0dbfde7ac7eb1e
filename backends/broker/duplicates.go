package broker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// note is an id that an entity which detects duplicates looks at.
type note struct {
	key   []byte
	id    message.Value // of the message, to tell those who send it again
	first *store.Seen   // who had it in the window; nil: nobody
	old   *store.Seen   // who had it before the window
}

// note looks an id up. It returns nil when the entity detects no duplicates or the message
// has no id, which is never a duplicate.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection
func (t *tx) note(ent *entity, m *message.Message) *note {
	if !ent.p.DetectDuplicates {
		return nil
	}
	key := duplicateKey(&ent.p, m)
	if key == nil {
		return nil
	}
	n := &note{key: key, id: m.ID}
	seen, ok := t.seen[string(sightingKey(ent, key))]
	if !ok {
		var err error
		if seen, err = t.e.store.Seen(ent.id, key); err != nil {
			// Not there; or it cannot be read: then a message too many is better than one
			// too few.
			return n
		}
	}
	if t.now.After(seen.At.Add(ent.p.DuplicateWindow)) || t.e.sabotaged("dedup-forgets") {
		n.old = &seen
	} else {
		n.first = &seen
	}
	return n
}

// sight notes the id of a message that has arrived.
func (t *tx) sight(a *arrival) {
	seen := store.Seen{At: t.now, Seq: a.seq, ID: a.note.id}
	if a.note.old != nil {
		t.batch.DeleteSeen(a.ent.id, a.note.key, a.note.old.At)
	}
	t.batch.PutSeen(a.ent.id, a.note.key, seen)
	if t.seen == nil {
		t.seen = map[string]store.Seen{}
	}
	t.seen[string(sightingKey(a.ent, a.note.key))] = seen
	// Old ids are forgotten some at a time, which keeps pace with the new ones.
	const every = 64
	if a.ent.sightings++; a.ent.sightings%every == 0 {
		left := 2 * every
		for at, key := range t.e.store.SeenBefore(a.ent.id, t.now.Add(-a.ent.p.DuplicateWindow)) {
			if _, again := t.seen[string(sightingKey(a.ent, key))]; !again {
				t.batch.DeleteSeen(a.ent.id, key, at)
			}
			if left--; left == 0 {
				break
			}
		}
	}
}

func sightingKey(ent *entity, key []byte) []byte {
	return fmt.Appendf(nil, "%d/%s", ent.id, key)
}

// duplicateKey is what tells two messages apart; nil: there is nothing.
func duplicateKey(p *Properties, m *message.Message) []byte {
	var key []byte
	if p.DeduplicationPerGroup {
		key = fmt.Appendf(key, "%d/%s/", len(message.Str(m.SessionID)), message.Str(m.SessionID))
	}
	if p.Partitioning {
		partition, _ := m.Annotations.Get(message.PartitionKeyAnnotation)
		if s, ok := partition.(message.String); ok {
			key = fmt.Appendf(key, "%d/%s/", len(s), string(s))
		}
	}
	if id := deduplicationID(p, m); id != "" {
		return append(key, id...)
	}
	return nil
}

// deduplicationID is the id by which an entity detects duplicates, as text; "": none.
func deduplicationID(p *Properties, m *message.Message) string {
	if !p.DeduplicationID {
		if m.ID == nil {
			return ""
		}
		return message.FormatValue(m.ID)
	}
	for _, a := range m.System {
		if s, ok := a.Value.(message.String); ok && a.Name == DeduplicationIDAttribute {
			return string(s)
		}
	}
	if !p.ContentDeduplication {
		return ""
	}
	// Of the body alone, in lower-case hexadecimal digits: an id given as such is the same.
	// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-exactly-once-processing.html
	sum := sha256.New()
	for _, section := range m.Body.Sections {
		_, _ = sum.Write(section) // never fails
	}
	return hex.EncodeToString(sum.Sum(nil))
}
