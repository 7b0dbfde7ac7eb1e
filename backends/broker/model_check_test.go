package broker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"dlq/backends/message"
)

// What the machine compares after every step: everything that can be seen.

// judge is who is told of a difference: a test, or somebody who tries several expectations.
type judge interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func (m *machine) check(t judge) {
	m.ref.advance(m.now)
	m.checkDue(t)
	for _, e := range m.ref.entities {
		m.checkEntity(t, e)
	}
	m.checkInfos(t)
}

// checkDue: the engine wakes no later than the next thing that happens by itself.
func (m *machine) checkDue(t judge) {
	at, ok := m.e.Due()
	for _, h := range m.ref.due() {
		if h.at.After(m.now) && (!ok || at.After(h.at)) {
			t.Fatalf("something happens at %v, and the engine wants to be woken at %v, %v", h.at, at, ok)
		}
	}
}

func (e *refEntity) subs() []Sub {
	if e.kind == Topic || !e.p.SubQueues {
		return []Sub{Main}
	}
	return []Sub{Main, DeadLetter, TransferDeadLetter}
}

// checkEntity compares an entity with its sub-queues, and learns the numbers that were given.
func (m *machine) checkEntity(t judge, e *refEntity) {
	e.accessed = m.now
	known := make(map[int64]*refMessage, len(e.msgs))
	var fresh []*refMessage
	for _, x := range e.msgs {
		if x.no.n == 0 {
			fresh = append(fresh, x)
		} else {
			known[x.no.n] = x
		}
	}
	var news []*message.Message
	var subs []Sub
	for _, sub := range e.subs() {
		page, visible := m.peekAll(t, e, sub)
		if !visible {
			return
		}
		for _, got := range page {
			x := known[got.Broker.SequenceNumber]
			if x == nil {
				news, subs = append(news, got), append(subs, sub)
				continue
			}
			delete(known, got.Broker.SequenceNumber)
			if why := x.differs(got, sub); why != "" {
				t.Fatalf("%s/%d: message %v: %s; it is %+v %v", e.name, sub, got.ID, why, got.Broker, got.Properties)
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(known)) {
		t.Fatalf("%s has lost message %v, number %d", e.name, known[n].m.ID, n)
	}
	m.checkFresh(t, e, fresh, news, subs)
}

// peekAll returns everything in a sub-queue, or that it does not show.
func (m *machine) peekAll(t judge, e *refEntity, sub Sub) (all []*message.Message, visible bool) {
	var last int64
	noBody := m.steps%8 != 0
	for {
		page, err := m.e.Peek(Address{e.name, sub}, PeekOptions{From: last + 1, Max: 50, NoBody: noBody})
		if e.p.Status == Disabled || e.p.Status == ReceiveDisabled {
			if !errors.Is(err, ErrDisabled) {
				t.Fatalf("peek of %s, which is %s: %v", e.name, e.p.Status, err)
			}
			return nil, false
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range page {
			if n := got.Broker.SequenceNumber; n <= last {
				t.Fatalf("%s/%d shows number %d after %d", e.name, sub, n, last)
			}
			last = got.Broker.SequenceNumber
			m.saw("%d %v %v;", sub, got.ID, got.Broker)
		}
		if all = append(all, page...); len(page) < 50 {
			return all, true
		}
	}
}

// checkFresh finds the messages that the model expects and that have no number yet. Their
// numbers are above all earlier ones, and in the order in which they were made.
func (m *machine) checkFresh(t judge, e *refEntity, fresh []*refMessage, news []*message.Message, subs []Sub) {
	order := make([]int, len(news))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return int(news[i].Broker.SequenceNumber - news[j].Broker.SequenceNumber) })
	wave, highest := 0, max(e.highest, e.given)
	for _, i := range order {
		got, n := news[i], news[i].Broker.SequenceNumber
		var why []string
		at := slices.IndexFunc(fresh, func(x *refMessage) bool {
			d := x.differs(got, subs[i])
			why = append(why, d)
			return d == ""
		})
		switch {
		case at < 0:
			t.Fatalf("%s/%d holds %v, number %d, which it should not: %+v %v; differs from what it should hold: %q", e.name, subs[i], got.ID, n, got.Broker, got.Properties, why)
		case n <= e.highest:
			t.Fatalf("%s: message %v has number %d, and %d was used before", e.name, got.ID, n, e.highest)
		case fresh[at].wave < wave:
			t.Fatalf("%s: message %v, number %d, stands behind later ones", e.name, got.ID, n)
		}
		wave, highest = fresh[at].wave, max(highest, n)
		fresh[at].no.n = n
		fresh = slices.Delete(fresh, at, at+1)
	}
	if len(fresh) > 0 {
		t.Fatalf("%s lacks %d messages; the first is %v in sub-queue %d", e.name, len(fresh), fresh[0].m.ID, fresh[0].sub)
	}
	e.highest = highest
}

// differs says how a message is not what it should be, or "".
func (x *refMessage) differs(got *message.Message, sub Sub) string {
	b := got.Broker
	switch {
	case x.sub != sub:
		return fmt.Sprintf("it should be in sub-queue %d", x.sub)
	case b.State != x.state:
		return fmt.Sprintf("it is %v, want %v", b.State, x.state)
	case b.DeliveryCount != x.count:
		return fmt.Sprintf("delivery count %d, want %d", b.DeliveryCount, x.count)
	case !b.LockedUntil.Equal(x.until):
		return fmt.Sprintf("locked until %v, want %v", b.LockedUntil, x.until)
	case !b.EnqueuedTime.Equal(x.enqueued):
		return fmt.Sprintf("enqueued %v, want %v", b.EnqueuedTime, x.enqueued)
	case x.of.p.Retention == 0 && x.sub == Main && !b.ExpiresAt.Equal(x.expires):
		return fmt.Sprintf("expires %v, want %v", b.ExpiresAt, x.expires)
	case !b.FirstReceived.Equal(x.received):
		return fmt.Sprintf("first received %v, want %v", b.FirstReceived, x.received)
	case b.DeadLetterSource != x.source && x.sub != TransferDeadLetter:
		return fmt.Sprintf("dead-lettered by %q, want %q", b.DeadLetterSource, x.source)
	case int(b.BodySize) != x.m.Body.Len():
		return fmt.Sprintf("body of %d bytes, want %d", b.BodySize, x.m.Body.Len())
	case !b.BodyOmitted && !message.EqualBodies(got.Body, x.m.Body):
		return "another body"
	case !b.LockToken.IsZero():
		return "a peek shows a lock token"
	case x.from != nil && x.from.n != 0 && x.from.n != b.EnqueuedSequenceNumber, x.from == nil && b.EnqueuedSequenceNumber != 0:
		return fmt.Sprintf("it had number %d before, want %v", b.EnqueuedSequenceNumber, x.from)
	}
	if why := x.sectionsDiffer(got); why != "" {
		return why
	}
	if x.from != nil {
		x.from.n = b.EnqueuedSequenceNumber // what was at a topic or on its way shows only here
	}
	if x.m.ID == anyID {
		x.m = x.m.Clone()
		x.m.ID = got.ID
	}
	return ""
}

// sectionsDiffer compares what the sender has sent and settlements have set.
func (x *refMessage) sectionsDiffer(got *message.Message) string {
	want := x.m
	switch {
	case want.ID != anyID && !message.EqualValues(got.ID, want.ID):
		return fmt.Sprintf("message id %v, want %v", got.ID, want.ID)
	case message.Str(got.SessionID) != message.Str(want.SessionID) || (got.SessionID == nil) != (want.SessionID == nil):
		return fmt.Sprintf("session %q, want %q", message.Str(got.SessionID), message.Str(want.SessionID))
	case message.Str(got.Subject) != message.Str(want.Subject):
		return fmt.Sprintf("subject %q, want %q", message.Str(got.Subject), message.Str(want.Subject))
	case (got.TTL == nil) != (want.TTL == nil) || got.TTL != nil && *got.TTL != *want.TTL:
		return "another time to live"
	case (got.ScheduledEnqueueTime == nil) != (want.ScheduledEnqueueTime == nil):
		return "another scheduled time"
	case !equalAttributes(got.Properties, want.Properties):
		return fmt.Sprintf("properties %v, want %v", got.Properties, want.Properties)
	case !equalAttributes(got.System, want.System):
		return fmt.Sprintf("system attributes %v, want %v", got.System, want.System)
	}
	return ""
}

// anyID stands for an id that the engine makes.
const anyID = message.Symbol("any")

func equalAttributes(got, want []message.Attribute) bool {
	open := message.String(anyReason)
	return slices.EqualFunc(got, want, func(a, b message.Attribute) bool {
		return a.Name == b.Name && (b.Value == open || message.EqualValues(a.Value, b.Value))
	})
}

// checkInfos: what is reported of every entity equals a full scan.
func (m *machine) checkInfos(t judge) {
	infos, err := m.e.Entities()
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) != len(m.ref.entities) {
		t.Fatalf("there are %d entities, want %d", len(infos), len(m.ref.entities))
	}
	for _, info := range infos {
		e := m.ref.entity(info.Name)
		if e == nil {
			t.Fatalf("there is an entity %s", info.Name)
		}
		want := m.ref.info(e)
		got := refInfo{
			info.Active, info.Scheduled, info.Deferred, info.DeadLetter, info.TransferDeadLetter, info.Delayed, info.InFlight,
			info.Summed, info.OldestDeadLetter,
		}
		if got != want {
			t.Fatalf("%s reports %+v, want %+v", e.name, got, want)
		}
		if (info.Size == 0) != (m.ref.messages(e) == 0) || info.Size < 0 {
			t.Fatalf("%s reports %d bytes with %d messages", e.name, info.Size, m.ref.messages(e))
		}
		if want := m.ref.sources(e); !slices.Equal(info.Sources, want) {
			t.Fatalf("%s is the dead-letter queue of %v, want %v", e.name, info.Sources, want)
		}
		m.saw("%+v;", got)
		m.checkSessions(t, e)
	}
}

// refInfo is what an entity reports.
type refInfo struct {
	active, scheduled, deferred, dead, transfer, delayed, inFlight int64
	summed                                                         bool
	oldest                                                         time.Time
}

func (r *ref) info(e *refEntity) (i refInfo) {
	if e.kind == Topic {
		for _, sub := range r.subscriptions(e) {
			s := r.info(sub)
			i.active += s.active
			i.deferred += s.deferred
			i.dead += s.dead
			i.transfer += s.transfer
			i.inFlight += s.inFlight
		}
		i.summed, i.scheduled = true, int64(len(e.msgs))
		return i
	}
	count := func(sub Sub, f func(*refMessage) bool) int64 { return int64(len(e.in(sub, f))) }
	scheduled := count(Main, func(x *refMessage) bool { return x.state == message.Scheduled })
	if e.p.DelayKeepsPlace {
		i.delayed = scheduled
	} else {
		i.scheduled = scheduled
	}
	i.active, i.deferred, i.inFlight = count(Main, (*refMessage).active), count(Main, deferred), count(Main, held)
	i.dead, i.transfer = count(DeadLetter, all), count(TransferDeadLetter, all)
	letters := e.in(DeadLetter, all)
	if len(r.sources(e)) > 0 {
		letters = e.in(Main, all)
	}
	if len(letters) > 0 {
		i.oldest = letters[0].enqueued
	}
	return i
}

func (r *ref) messages(e *refEntity) int {
	n := len(e.msgs)
	if e.kind == Topic {
		for _, sub := range r.subscriptions(e) {
			n += len(sub.msgs)
		}
	}
	return n
}

// sources are the queues whose redrive policy names this one.
func (r *ref) sources(target *refEntity) (names []string) {
	for _, e := range r.entities {
		if e.p.Redrive.Target == target.name {
			names = append(names, e.name)
		}
	}
	slices.Sort(names)
	return names
}

// checkSessions: the sessions with active messages or a state are listed. Locks and states,
// which only the holder of a session sees, are looked up where they are kept.
func (m *machine) checkSessions(t judge, e *refEntity) {
	if !e.p.RequiresSession {
		return
	}
	var want []string
	for _, g := range e.groups {
		active := e.in(Main, func(x *refMessage) bool { return x.group() == g.id && x.active() })
		if len(active) > 0 || g.state != nil {
			want = append(want, g.id)
		}
	}
	slices.Sort(want)
	got, err := m.e.Sessions(Address{Name: e.name}, time.Time{})
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%s lists the sessions %v, want %v; %v", e.name, got, want, err)
	}
	ent := m.e.entity(e.name)
	for _, g := range e.groups {
		var kept group
		if k := ent.subs[Main].groups[g.id]; k != nil {
			kept.token, kept.until = k.token, k.until
		}
		if kept.token != g.token || !kept.until.Equal(g.until) {
			t.Fatalf("session %q of %s is locked until %v by %v, want %v by %v", g.id, e.name, kept.until, kept.token, g.until, g.token)
		}
		if kept, err := m.e.store.Session(ent.id, g.id); (err == nil && kept.HasState) != (g.state != nil) || string(kept.State) != string(g.state) {
			t.Fatalf("session %q of %s keeps %q, want %q; %v", g.id, e.name, kept.State, g.state, err)
		}
	}
}
