package broker

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// load builds the index from what is in the store.
func (e *Engine) load() error {
	e.readClock()
	if err := e.loadEntities(); err != nil {
		return err
	}
	for s, err := range e.store.Sessions() {
		if err != nil {
			return err
		}
		if ent := e.byID[s.Entity]; ent != nil && ent.subs[Main].groups != nil {
			e.loadSession(ent.subs[Main], s)
		}
	}
	if err := e.loadMessages(); err != nil {
		return err
	}
	if err := e.loadTasks(); err != nil {
		return err
	}
	if len(e.byID) == 0 {
		e.latest = time.Time{} // nothing bears a time yet: the clock may begin where it likes
	}
	head, body, err := e.store.LastContent()
	e.nextContent = max(head, body) + 1
	return err
}

func (e *Engine) loadEntities() error {
	last, err := e.store.LastEntity()
	if err != nil {
		return err
	}
	e.lastEntity = last
	for se, err := range e.store.Entities() {
		if err != nil {
			return err
		}
		p, err := decodeProperties(se.Properties)
		if err != nil {
			return fmt.Errorf("entity %s: %w", se.Name, err)
		}
		next, err := e.store.Next(se.ID)
		if err != nil {
			return err
		}
		ent := newEntity(se.ID, se.Name, Kind(se.Kind), p, max(next, 1))
		ent.created, ent.modified, ent.accessed = se.Created, se.Modified, e.latest
		e.add(ent)
	}
	for _, ent := range e.inOrder() {
		if ent.kind == Subscription {
			if err := e.join(ent); err != nil {
				return err
			}
		}
		e.watchIdle(ent)
	}
	for r, err := range e.store.Rules() {
		if err != nil {
			return err
		}
		ent := e.byID[r.Entity]
		if ent == nil {
			continue
		}
		rule, err := decodeRule(r)
		if err != nil {
			return fmt.Errorf("rule %s of %s: %w", r.Name, ent.name, err)
		}
		ent.rules = append(ent.rules, rule) // they come in the order of their names
	}
	return nil
}

// inOrder returns the entities in the order of their ids: timers are set in that order, which
// decides between equal times.
func (e *Engine) inOrder() []*entity {
	out := make([]*entity, 0, len(e.byID))
	for _, id := range slices.Sorted(maps.Keys(e.byID)) {
		out = append(out, e.byID[id])
	}
	return out
}

// loadMessages indexes the messages. Those of entities that were deleted before are removed
// by and by.
func (e *Engine) loadMessages() error {
	done, err := e.loadIndexes()
	if err != nil {
		return err
	}
	if done == nil {
		return e.loadStates(e.store.States())
	}
	for _, ent := range e.inOrder() {
		if done[ent.id] {
			if ent.p.ForwardTo != "" && ent.subs[Main].ready.Len() > 0 {
				e.timers.add(e.latest, backlog{ent})
			}
			continue
		}
		// Whose heads and bodies have several users is known already.
		refs := e.refs
		if err := e.loadStates(e.store.StatesOf(ent.id)); err != nil {
			return err
		}
		e.refs = refs
	}
	// Written before anything else, so that no crash leaves it beside later states.
	batch := e.store.NewBatch()
	batch.DropIndexes()
	return e.store.ApplyLazily(batch)
}

// loadStates indexes messages from their states.
func (e *Engine) loadStates(states iter.Seq2[store.Message, error]) error {
	shared := map[uint64]uint32{}
	gone := map[uint32]bool{}
	for m, err := range states {
		ent := e.byID[m.Queue]
		switch {
		case err != nil && !errors.Is(err, store.ErrCorrupt):
			return err // which has no key
		case ent == nil:
			if !gone[m.Queue] {
				gone[m.Queue] = true
				e.timers.add(e.latest, &remains{store.Key{Queue: m.Queue}})
			}
		case m.Sub >= uint8(subs):
			continue // nothing writes such a record
		case err != nil:
			e.setAside(m.Key)
			continue
		default:
			e.index(ent, m)
		}
		if err == nil && m.Shared {
			shared[m.Head]++
			shared[m.Body]++
		}
	}
	e.refs = map[uint64]uint32{}
	for id, n := range shared {
		if n > 1 {
			e.refs[id] = n - 1
		}
	}
	return nil
}

// discard removes the message of an entity that is gone.
func (t *tx) discard(m *store.Message) {
	t.batch.DeleteState(m.Key)
	if m.Head != 0 { // else it cannot be read
		t.unuse(m.Head, t.batch.DeleteHead)
		t.unuse(m.Body, t.batch.DeleteBody)
	}
}

// setAside notes that there is a message which cannot be read. It is shown and never delivered.
func (e *Engine) setAside(k store.Key) {
	ent := e.byID[k.Queue]
	ent.atLeast(k.Seq + 1)
	ent.subs[k.Sub].damaged[k.Seq] = struct{}{}
}

// index puts a stored message where its state says.
func (e *Engine) index(ent *entity, m store.Message) {
	q := ent.subs[m.Sub]
	ent.atLeast(m.Seq + 1)
	ent.grow(m.HeadSize + m.BodySize)
	st := &m.State
	if st.LockedUntil.IsZero() {
		e.enter(q, m.Seq, st)
		return
	}
	g := q.group(st)
	if g != nil && q.of.p.RequiresSession && g.token.IsZero() {
		// The lock of its session is gone, and with it this one.
		st.Token, st.LockedUntil = message.UUID{}, time.Time{}
		e.enter(q, m.Seq, st)
		return
	}
	longest := e.latest.Add(maxLockDuration)
	if !ent.p.SubQueues {
		longest = e.latest.Add(maxHold) // its locks can be extended
	}
	if st.LockedUntil.After(longest) {
		st.LockedUntil = longest // it was taken under a clock that ran ahead
	}
	e.expire(q, m.Seq, st)
	e.hold(q, m.Seq, st).since = e.latest
}
