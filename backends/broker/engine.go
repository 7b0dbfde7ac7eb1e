package broker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// Options configure an engine.
type Options struct {
	Store *store.Store // required; the engine closes it
	// Now is the clock. It may stand still or jump forward; when it goes back, the engine
	// stays at the latest time it has seen. nil: time.Now.
	Now func() time.Time
	// NewID makes lock tokens. nil: random version 4 UUIDs.
	NewID func() message.UUID
}

// Engine is an open set of queues. Its methods may be called concurrently.
type Engine struct {
	store *store.Store
	clock func() time.Time
	newID func() message.UUID

	readers sync.WaitGroup // of the store, without mu; added to under mu

	mu          sync.Mutex
	closed      bool
	done        chan struct{} // closed when Close is through
	latest      time.Time     // of all times seen
	byName      map[string]*entity
	byID        map[uint32]*entity
	nextEntity  uint32
	nextContent uint64 // id of the next head or body
	locks       map[message.UUID]*lock
	timers      timers
}

// Open reads the index of what is in the store.
func Open(o Options) (*Engine, error) {
	e := &Engine{
		store: o.Store, clock: o.Now, newID: o.NewID,
		byName: map[string]*entity{}, byID: map[uint32]*entity{}, locks: map[message.UUID]*lock{},
		nextEntity: 1, nextContent: 1, done: make(chan struct{}),
	}
	if e.clock == nil {
		e.clock = time.Now
	}
	if e.newID == nil {
		e.newID = randomUUID
	}
	if err := e.load(); err != nil {
		return nil, fmt.Errorf("read the store: %w", err)
	}
	return e, nil
}

func randomUUID() (id message.UUID) {
	_, _ = rand.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

func (e *Engine) load() error {
	for se, err := range e.store.Entities() {
		if err != nil {
			return err
		}
		next, err := e.store.Next(se.ID)
		if err != nil {
			return err
		}
		e.add(newEntity(se, max(next, 1)))
		e.nextEntity = max(e.nextEntity, se.ID+1)
	}
	for m, err := range e.store.States() {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			e.setAside(m.Key)
		case err != nil:
			return err
		default:
			e.index(m)
		}
	}
	head, body, err := e.store.LastContent()
	e.nextContent = max(head, body) + 1
	return err
}

// setAside notes that there is a message which cannot be read. It is shown and never delivered.
func (e *Engine) setAside(k store.Key) {
	ent := e.byID[k.Queue]
	if ent == nil || k.Sub >= uint8(subs) {
		return // of no queue: nothing can show it
	}
	ent.next = max(ent.next, k.Seq+1)
	ent.reserved = max(ent.reserved, ent.next)
	ent.subs[k.Sub].damaged[k.Seq] = struct{}{}
}

func (e *Engine) add(ent *entity) {
	e.byName[fold(ent.Name)] = ent
	e.byID[ent.ID] = ent
}

// index puts a stored message where its state says.
func (e *Engine) index(m store.Message) {
	ent := e.byID[m.Queue]
	if ent == nil || m.Sub >= uint8(subs) {
		return // of no queue: nothing can show it
	}
	q := ent.subs[m.Sub]
	ent.next = max(ent.next, m.Seq+1)
	ent.reserved = max(ent.reserved, ent.next)
	switch {
	case m.State.State == message.Scheduled:
		e.schedule(q, m.Seq, m.Due)
	case !m.LockedUntil.IsZero():
		until := m.LockedUntil
		if longest := e.clock().Add(ent.LockDuration); until.After(longest) {
			until = longest // it was taken under a clock that ran ahead
		}
		e.hold(q, m.Seq, m.State.State, m.Token, until)
	default:
		q.free(m.State.State).Insert(m.Seq)
	}
}

// Close syncs and closes the store. Locks stay written: an engine opened later on the same
// store knows them. It is idempotent.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		<-e.done // another Close is at work
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	defer close(e.done)
	e.readers.Wait() // each reads one page at most
	batch := e.store.NewBatch()
	for _, ent := range e.byID {
		if ent.reserved != ent.next { // exact, so that a clean stop leaves no gap
			batch.PutNext(ent.ID, ent.next)
		}
	}
	var err error
	if !batch.Empty() {
		err = e.store.ApplyLazily(batch) // Close syncs
	}
	return errors.Join(err, e.store.Close())
}

// tx is one command: it holds the engine's lock and gathers writes.
type tx struct {
	e     *Engine
	now   time.Time
	batch *store.Batch
}

// begin takes the lock and makes true what time has brought about.
func (e *Engine) begin() (*tx, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, fmt.Errorf("%w: it was closed", ErrUnavailable)
	}
	if err := e.store.Failure(); err != nil {
		// What memory and the store show now may be gone after a restart.
		e.mu.Unlock()
		return nil, unavailable(err)
	}
	// Round strips the monotonic reading, by which a clock that was set back would still
	// seem to have gone forward.
	if now := e.clock().Round(0); now.After(e.latest) {
		e.latest = now
	}
	// The store keeps milliseconds, and so does every time that the engine compares.
	t := &tx{e: e, now: e.latest.Truncate(time.Millisecond).UTC(), batch: e.store.NewBatch()}
	if err := t.advance(); err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// on begins a command on the queue that an address names.
func (e *Engine) on(a Address) (*tx, *queue, error) {
	t, err := e.begin()
	if err != nil {
		return nil, nil, err
	}
	q, err := e.find(a)
	if err != nil {
		t.end()
		return nil, nil, err
	}
	return t, q, nil
}

// end lets go of the lock; nothing was gathered.
func (t *tx) end() { t.e.mu.Unlock() }

// flush writes what is gathered without waiting for the sync, and lets go of the lock.
func (t *tx) flush() error {
	defer t.e.mu.Unlock()
	if t.batch.Empty() {
		return nil
	}
	return unavailable(t.e.store.ApplyLazily(t.batch))
}

// commit writes what is gathered, lets go of the lock, and waits until it is durable.
func (t *tx) commit() error {
	if t.batch.Empty() {
		t.e.mu.Unlock()
		return nil
	}
	wait, err := t.e.store.Apply(t.batch)
	t.e.mu.Unlock()
	if err == nil {
		err = wait()
	}
	return uncertain(err)
}

// uncertain is the error of a write that was begun.
func uncertain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, store.ErrFailed) {
		return unavailable(err) // it was refused: the store had failed before
	}
	return fmt.Errorf("%w: %w", ErrUncertain, err)
}

// view returns the store as it is now, for reading without the engine's lock, and what ends
// the reading. The caller holds the lock.
func (e *Engine) view() (store.Snapshot, func()) {
	e.readers.Add(1)
	v := e.store.Snapshot()
	return v, func() {
		_ = v.Close() // it only lets go
		e.readers.Done()
	}
}

func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// find returns the queue that an address names.
func (e *Engine) find(a Address) (*queue, error) {
	ent := e.byName[fold(a.Name)]
	if ent == nil || a.Sub >= subs {
		return nil, fmt.Errorf("%w: %s", ErrNoEntity, a.Name)
	}
	return ent.subs[a.Sub], nil
}

// number returns the next sequence number of the entity. The store is told in blocks, so
// that a number is never used again after a crash and yet costs no write of its own.
func (t *tx) number(ent *entity) uint64 {
	const block = 1024
	seq := ent.next
	ent.next++
	if ent.next > ent.reserved {
		ent.reserved = ent.next + block
		t.batch.PutNext(ent.ID, ent.reserved)
	}
	return seq
}

// content returns the id of a new head or body.
func (t *tx) content() uint64 {
	t.e.nextContent++
	return t.e.nextContent - 1
}

// remove takes a message out of the store. Its index entry is the caller's business.
func (t *tx) remove(k store.Key, s *store.State) {
	t.batch.DeleteState(k)
	t.batch.DeleteHead(s.Head)
	t.batch.DeleteBody(s.Body)
}
