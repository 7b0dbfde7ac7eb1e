package broker

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"dlq/backends/message"
)

// The actions of the machine that bring messages in or move them on. An action that does not
// apply is skipped before it draws anything, so that another takes its place.

// pick draws one of xs; an action without any is skipped.
func pick[T any](t *rapid.T, label string, xs []T) T {
	if len(xs) == 0 {
		t.SkipNow()
	}
	return xs[rapid.IntRange(0, len(xs)-1).Draw(t, label)]
}

func (m *machine) entities(f func(*refEntity) bool) (out []*refEntity) {
	for _, e := range m.ref.entities {
		if f(e) {
			out = append(out, e)
		}
	}
	return out
}

// messages returns the messages that f accepts and whose numbers are known.
func (m *machine) messages(f func(*refMessage) bool) (out []*refMessage) {
	for _, e := range m.ref.entities {
		for _, sub := range e.subs() {
			out = append(out, e.in(sub, func(x *refMessage) bool { return x.no.n != 0 && f(x) })...)
		}
	}
	return out
}

func (x *refMessage) address() Address { return Address{x.of.name, x.sub} }

// want fails unless an error is the expected one; nil expects none.
func want(t judge, what string, got, want error) {
	if want == nil && got != nil || want != nil && !errors.Is(got, want) {
		t.Fatalf("%s: error %v, want %v", what, got, want)
	}
}

func wantEach(t judge, what string, got []error, wants ...error) {
	if len(got) != len(wants) {
		t.Fatalf("%s: %d results, want %d", what, len(got), len(wants))
	}
	for i := range got {
		want(t, what, got[i], wants[i])
	}
}

// message makes one for an entity. All that rules and entities look at varies.
func (m *machine) message(t *rapid.T, e *refEntity) *message.Message {
	m.made++
	name := fmt.Sprint("m", m.made)
	msg := &message.Message{ID: message.String(name), Body: message.DataBody([]byte("body of " + name))}
	bits := rapid.Uint16().Draw(t, "message")
	if bits&1 != 0 {
		msg.Properties.Set("n", message.Int(bits>>8%10))
	}
	if bits&2 != 0 {
		msg.Properties.Set("colour", message.String([]string{"red", "green"}[bits>>12&1]))
	}
	if bits&4 != 0 {
		label := "x"
		msg.Subject = &label
	}
	if bits&0x18 == 0 && !e.grouped() && e.p.SubQueues {
		msg.ID = nil
	}
	if e.grouped() || bits&0x20 != 0 {
		session := []string{"s1", "s2", "s3", ""}[bits>>10&3]
		msg.SessionID = &session
	}
	if bits&0xc0 == 0 && e.p.SubQueues {
		ttl := time.Duration(1+bits>>9) * time.Second
		msg.TTL = &ttl
	}
	if e.p.Groups && (!e.p.ContentDeduplication || bits&0x40 != 0) {
		msg.System = []message.Attribute{{Name: DeduplicationIDAttribute, Value: message.String("d-" + name)}}
	}
	return msg
}

func (m *machine) destination(t *rapid.T) *refEntity {
	return pick(t, "to", m.entities(func(e *refEntity) bool { return e.kind != Subscription }))
}

func (m *machine) send(t *rapid.T) {
	e := m.destination(t)
	m.sendAll(t, Address{Name: e.name}, m.message(t, e))
}

func (m *machine) sendBatch(t *rapid.T) {
	e := m.destination(t)
	var msgs []*message.Message
	for range rapid.IntRange(2, 5).Draw(t, "n") {
		msgs = append(msgs, m.message(t, e))
	}
	m.sendAll(t, Address{Name: e.name}, msgs...)
}

func (m *machine) sendScheduled(t *rapid.T) {
	e := m.destination(t)
	msg := m.message(t, e)
	due := m.now.Add(time.Duration(rapid.IntRange(-5, 60).Draw(t, "in")) * time.Second)
	msg.ScheduledEnqueueTime = &due
	m.sendAll(t, Address{Name: e.name}, msg)
}

// sendDuplicate sends what an entity that detects duplicates has seen, now or long ago.
func (m *machine) sendDuplicate(t *rapid.T) {
	type duplicate struct {
		e *refEntity
		m *message.Message
	}
	var all []duplicate
	for _, e := range m.ref.entities {
		for _, s := range e.seen {
			if msg, ok := duplicateOf(e, s); ok {
				all = append(all, duplicate{e, msg})
			}
		}
	}
	d := pick(t, "seen", all)
	m.sendAll(t, Address{Name: d.e.name}, d.m)
}

// duplicateOf makes another message with an id that an entity has seen; ok is false if the id
// is that of a body.
func duplicateOf(e *refEntity, s refSeen) (msg *message.Message, ok bool) {
	msg = &message.Message{ID: s.id, Body: message.DataBody([]byte("again"))}
	group, id, scoped := strings.Cut(s.key, "\x00")
	if !scoped {
		group, id = "s1", s.key
	}
	if e.grouped() {
		msg.SessionID = &group
	}
	if e.p.DeduplicationID {
		msg.System = []message.Attribute{{Name: DeduplicationIDAttribute, Value: message.String(id)}}
	}
	return msg, e.p.DetectDuplicates
}

// sendTwice sends one message with an equal body again, which content deduplication drops.
func (m *machine) sendTwice(t *rapid.T) {
	e := pick(t, "to", m.entities(func(e *refEntity) bool { return e.p.DetectDuplicates }))
	msg := m.message(t, e)
	m.sendAll(t, Address{Name: e.name}, msg, msg.Clone())
	again := msg.Clone()
	again.System = nil
	if e.p.ContentDeduplication {
		m.sendAll(t, Address{Name: e.name}, again)
	}
}

// sendRefused sends a message that the entity does not take, in the middle of others.
func (m *machine) sendRefused(t *rapid.T) {
	e := m.destination(t)
	msgs := []*message.Message{m.message(t, e), m.message(t, e), m.message(t, e)}
	bad := msgs[rapid.IntRange(0, 2).Draw(t, "bad")]
	switch {
	case e.p.SubQueues:
		bad.Properties.Set("large", message.String(strings.Repeat("x", 65<<10)))
	case e.grouped():
		bad.SessionID = nil
	default:
		bad.Body = message.DataBody(make([]byte, e.p.MaxMessageBytes+1))
	}
	m.sendAll(t, Address{Name: e.name}, msgs...)
}

// sendNowhere sends to what cannot be sent to.
func (m *machine) sendNowhere(t *rapid.T) {
	e := pick(t, "to", m.ref.entities)
	a := Address{e.name, DeadLetter}
	if e.kind == Subscription {
		a.Sub = Main
	}
	if !e.p.SubQueues || rapid.Bool().Draw(t, "unknown") {
		a = Address{Name: "unknown"}
	}
	m.sendAll(t, a, m.message(t, e))
}

// sendAll sends to the engine and to the model, and compares what they say of it.
func (m *machine) sendAll(t judge, a Address, msgs ...*message.Message) {
	refused := m.ref.opens(a)
	if refused == nil {
		refused = m.ref.accepts(m.ref.entity(a.Name), msgs[0])
	}
	want(t, "validate", m.e.ValidateSend(a, msgs[0]), refused)
	m.ref.stored = false
	wanted, wantErr := m.ref.send(a, msgs)
	sent, err := m.e.Send(a, msgs)
	want(t, "send to "+a.Name, err, wantErr)
	if wantErr != nil {
		return
	}
	e := m.ref.entity(a.Name)
	highest := max(e.highest, e.given)
	for i, w := range wanted {
		got := sent[i]
		m.saw("sent %d %v;", got.Seq, got.Duplicate)
		want(t, fmt.Sprintf("message %d of %d to %s", i, len(msgs), a.Name), got.Err, w.err)
		if got.Duplicate != (w.dup != nil) {
			t.Fatalf("message %v to %s: duplicate %v, want %v", msgs[i].ID, a.Name, got.Duplicate, w.dup != nil)
		}
		switch {
		case w.dup != nil:
			if got.Seq != w.dup.no.n && w.dup.no.n != 0 || !message.EqualValues(got.ID, w.dup.id) {
				t.Fatalf("the duplicate of %v, number %d, is said to be of %v, number %d", w.dup.id, w.dup.no.n, got.ID, got.Seq)
			}
		case w.no != nil:
			if got.Seq <= highest {
				t.Fatalf("message %v to %s has number %d, and %d was used before", msgs[i].ID, a.Name, got.Seq, highest)
			}
			highest, w.no.n = got.Seq, got.Seq
			m.durable = m.durable || m.ref.stored
		}
	}
	e.given = highest
}

// move moves a message on, edited or not, or copies it.
func (m *machine) move(t *rapid.T, keep bool) {
	x := pick(t, "message", m.messages(all))
	to := m.destination(t)
	as := m.message(t, to)
	if rapid.Bool().Draw(t, "same body") {
		as.Body = x.m.Body
	}
	if rapid.IntRange(0, 4).Draw(t, "same id") == 0 {
		as.ID = x.m.ID
	}
	mv := Move{Seq: x.no.n, To: Address{Name: to.name}, As: as, Keep: keep, AllowUnrouted: rapid.IntRange(0, 3).Draw(t, "allow") == 0}
	from := x.address()
	m.ref.stored = false
	wanted := m.ref.move(x, mv)
	errs, err := m.e.Move(from, []Move{mv})
	want(t, "move", err, nil)
	m.durable = m.durable || wanted == nil && (m.ref.stored || !keep)
	wantEach(t, fmt.Sprintf("move %d from %v to %s", mv.Seq, from, to.name), errs, wanted)
}

func (m *machine) moveMessage(t *rapid.T) { m.move(t, false) }
func (m *machine) keepMove(t *rapid.T)    { m.move(t, true) }

// route: what a message would come to is told before it is sent, and changes nothing.
func (m *machine) route(t *rapid.T) {
	e := pick(t, "to", m.entities(func(e *refEntity) bool { return m.ref.opens(Address{Name: e.name}) == nil }))
	msg := m.message(t, e)
	wanted := m.ref.routed(e, msg, nil)
	got, err := m.e.Route(Address{Name: e.name}, msg)
	if e.p.FilterBeforePublishing && wanted.fails {
		want(t, "route", err, ErrFilter)
		return
	}
	want(t, "route", err, nil)
	counts := map[Address]int{}
	for _, l := range wanted.landings {
		counts[Address{l.of.name, l.sub}]++
	}
	for _, a := range got {
		counts[a]--
	}
	for a, n := range counts {
		if n != 0 {
			t.Fatalf("of a message to %s, %v would get %d more copies than are told", e.name, a, n)
		}
	}
}

// moveTask moves dead letters back, as many as are free, or all to one queue.
func (m *machine) moveTask(t *rapid.T) {
	from := pick(t, "from", m.entities(func(e *refEntity) bool {
		return len(m.ref.sources(e)) > 0 && len(e.in(Main, all)) == len(e.in(Main, (*refMessage).ready))
	}))
	to := ""
	if rapid.IntRange(0, 2).Draw(t, "to one") == 0 {
		to = m.ref.sources(from)[0]
	}
	id, err := m.e.StartMoveTask(MoveTask{Source: from.name, Destination: to})
	want(t, "start a move task", err, nil)
	moved, failed := m.ref.moveBack(from, to)
	tasks, err := m.e.MoveTasks(from.name)
	want(t, "move tasks", err, nil)
	status := TaskCompleted
	if failed {
		status = TaskFailed
	}
	if got := tasks[0]; got.ID != id || got.Status != status || got.Moved != int64(moved) {
		t.Fatalf("the move task is %+v, want %s after %d", got, status, moved)
	}
	_, err = m.e.CancelMoveTask(id)
	want(t, "cancel a task that has ended", err, ErrInvalid)
}
