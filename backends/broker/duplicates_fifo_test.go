package broker

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"dlq/backends/message"
)

// sendUnique sends a message with a message id and a deduplication id; "" leaves that to the
// queue.
func (b *bench) sendUnique(group, dedup, id, body string) Sent {
	b.Helper()
	m := &message.Message{ID: message.String(id), SessionID: &group, Body: message.DataBody([]byte(body))}
	if dedup != "" {
		m.System = []message.Attribute{{Name: DeduplicationIDAttribute, Value: message.String(dedup)}}
	}
	sent, err := b.e.Send(b.queue, []*message.Message{m})
	if err != nil || sent[0].Err != nil {
		b.Fatal(err, sent)
	}
	return sent[0]
}

// A deduplication id is remembered for five minutes from the first send, which duplicates do
// not prolong. A duplicate is accepted, dropped, and answered with the id and number of the first.
// Source: sqs-wire.md 2.7 [REC2], 4.4.
func TestDeduplicationWindow(t *testing.T) {
	b := newFIFO(t, nil)
	first := b.sendUnique("g", "x", "first", "a")
	for _, pass := range []time.Duration{0, 4 * time.Minute, time.Minute - time.Millisecond} {
		b.pass(pass)
		again := b.sendUnique("g", "x", "again", "b")
		if !again.Duplicate || again.Seq != first.Seq || again.ID != message.String("first") {
			t.Errorf("after %v the duplicate is answered with %+v", b.now.Sub(epoch), again)
		}
	}
	b.wantContents(b.queue, "a/0")
	b.pass(2 * time.Millisecond)
	if s := b.sendUnique("g", "x", "new", "c"); s.Duplicate || s.Seq <= first.Seq {
		t.Errorf("after the window the id is answered with %+v", s)
	}
	b.wantContents(b.queue, "a/0", "c/0")
}

// The id is remembered when the message is gone and the queue opened anew; also after a crash.
// Source: sqs-wire.md 4.4.
func TestDeduplicationOutlivesTheMessage(t *testing.T) {
	b := newFIFO(t, nil)
	b.sendUnique("g", "x", "first", "a")
	b.want(b.remove(b.receive(b.queue)), nil)
	b.crash()
	if s := b.sendUnique("g", "x", "again", "a"); !s.Duplicate || s.ID != message.String("first") {
		t.Errorf("answered with %+v", s)
	}
	b.wantContents(b.queue)
}

// With ContentBasedDeduplication the id is the SHA-256 of the body alone, in lower-case
// hexadecimal digits: attributes do not matter, an explicit id wins, and one that is equal to
// the hash of a body is its duplicate.
// Source: sqs-wire.md 4.4 [SDK].
func TestContentDeduplication(t *testing.T) {
	b := newFIFO(t, nil)
	b.sendUnique("g", "", "1", "body")
	with := &message.Message{
		SessionID: new("g"), Body: message.DataBody([]byte("body")),
		Properties: message.Properties{{Name: "p", Value: message.String("v")}},
	}
	if sent, err := b.e.Send(b.queue, []*message.Message{with}); err != nil || !sent[0].Duplicate {
		t.Errorf("the same body with an attribute: %+v, %v", sent, err)
	}
	if s := b.sendUnique("g", "explicit", "2", "body"); s.Duplicate {
		t.Error("an explicit id did not win over the hash")
	}
	sum := sha256.Sum256([]byte("body"))
	if s := b.sendUnique("g", hex.EncodeToString(sum[:]), "3", "other"); !s.Duplicate || s.ID != message.String("1") {
		t.Errorf("an explicit id that is the hash is answered with %+v", s)
	}
	if s := b.sendUnique("other group", "", "4", "body"); !s.Duplicate {
		t.Error("the scope is the queue, and another group had the body")
	}
}

// With DeduplicationScope=messageGroup an id is that of its group.
// Source: sqs-wire.md 2.1, 4.4.
func TestDeduplicationPerGroup(t *testing.T) {
	b := newFIFO(t, func(p *Properties) { p.DeduplicationPerGroup = true })
	b.sendUnique("g1", "x", "1", "a")
	if s := b.sendUnique("g2", "x", "2", "b"); s.Duplicate {
		t.Error("another group's id counted")
	}
	if s := b.sendUnique("g1", "x", "3", "c"); !s.Duplicate || s.ID != message.String("1") {
		t.Errorf("the group's own id is answered with %+v", s)
	}
	// Group and id are not one text: neither can pass for a part of the other.
	b.sendUnique("a", "b/c", "4", "d")
	if s := b.sendUnique("a/b", "c", "5", "e"); s.Duplicate {
		t.Error("group a/b with id c counted as group a with id b/c")
	}
}

// Two duplicates in one call: the second is that of the first.
func TestDuplicatesInOneSend(t *testing.T) {
	b := newFIFO(t, nil)
	twice := func() *message.Message {
		return &message.Message{SessionID: new("g"), Body: message.DataBody([]byte("a"))}
	}
	sent, err := b.e.Send(b.queue, []*message.Message{twice(), twice()})
	if err != nil || sent[0].Duplicate || !sent[1].Duplicate || sent[0].Seq != sent[1].Seq {
		t.Errorf("sent %+v, %v", sent, err)
	}
	b.wantContents(b.queue, "a/0")
}

// A purge forgets the ids, and a restart does not bring them back.
// Source: sqs-wire.md 2.12, [LS test_purge_queue_clears_fifo_deduplication_cache].
func TestPurgeForgetsDuplicates(t *testing.T) {
	b := newFIFO(t, nil)
	b.sendUnique("g", "x", "1", "a")
	if n, err := b.e.Purge(t.Context(), b.queue, PurgeOptions{InFlight: true, ForgetDuplicates: true}); err != nil || n != 1 {
		t.Fatalf("purged %d, %v", n, err)
	}
	b.crash()
	if s := b.sendUnique("g", "x", "2", "b"); s.Duplicate {
		t.Error("the id was still known")
	}
}

// A queue keeps the scope that it was created with.
// Source: sqs-wire.md 2.6 [LS]: the service accepts a change of DeduplicationScope, which changes
// nothing about which messages are duplicates.
func TestDeduplicationScopeStays(t *testing.T) {
	b := newFIFO(t, nil)
	b.want(b.e.Change(b.queue.Name, func(p *Properties) error { return p.Set(Queue, "DeduplicationScope", "messageGroup") }), ErrInvalid)
	b.sendUnique("g1", "x", "1", "a")
	if s := b.sendUnique("g2", "x", "2", "b"); !s.Duplicate {
		t.Error("the refused change changed the scope")
	}
}
