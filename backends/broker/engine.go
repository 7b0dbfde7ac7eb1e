package broker

import (
	"cmp"
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
	// NewID makes lock tokens and the ids of moved messages. nil: random version 4 UUIDs.
	NewID func() message.UUID
	// Reserve is how many bytes of the disk are kept free for receiving and settling: sends
	// are refused below it. 0: [store.Reserve].
	Reserve uint64
}

// Engine is an open set of entities. Its methods may be called concurrently.
type Engine struct {
	store *store.Store
	clock func() time.Time
	newID func() message.UUID

	reserve uint64 // bytes of the disk

	readers sync.WaitGroup // of the store, without mu; added to under mu

	mu          sync.Mutex
	closed      bool
	done        chan struct{}        // closed when Close is through
	latest      time.Time            // of all times seen, in milliseconds
	byName      map[string][]*entity // those whose names are equal without case
	byID        map[uint32]*entity
	lastEntity  uint32
	nextContent uint64            // id of the next head or body
	refs        map[uint64]uint32 // users beyond one of heads and bodies that have several
	locks       map[message.UUID]*lock
	sessions    map[message.UUID]*sessionLock
	asked       bool    // the disk had room
	unasked     int64   // bytes that were sent since
	tasks       []*task // move tasks, the oldest first
	timers      timers

	stirred   []*queue      // there may be something for those who wait
	changed   []func()      // to be called when the lock is let go
	runsUntil time.Time     // what Run waits for; zero: it does not run
	earlier   chan struct{} // something is due earlier than that

	sabotage string // a bug that a test of the tests asks for
}

// Open reads the index of what is in the store.
func Open(o Options) (*Engine, error) {
	e := &Engine{
		store: o.Store, clock: o.Now, newID: o.NewID, reserve: cmp.Or(o.Reserve, store.Reserve),
		byName: map[string][]*entity{}, byID: map[uint32]*entity{}, refs: map[uint64]uint32{},
		locks: map[message.UUID]*lock{}, sessions: map[message.UUID]*sessionLock{},
		nextContent: 1, done: make(chan struct{}), earlier: make(chan struct{}, 1),
	}
	if e.clock == nil {
		e.clock = time.Now
	}
	if e.newID == nil {
		e.newID = message.RandomUUID
	}
	if err := e.load(); err != nil {
		return nil, fmt.Errorf("read the store: %w", err)
	}
	return e, nil
}

// Close syncs and closes the store. Locks stay written: an engine opened later on the same
// store knows them. Run ends, and who waits is woken. It is idempotent.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		<-e.done // another Close is at work
		return nil
	}
	e.closed = true
	e.hurry()
	for _, ent := range e.byID {
		e.wakeAll(ent)
	}
	e.unlock()
	defer close(e.done)
	e.readers.Wait() // each reads one page at most
	batch := e.store.NewBatch()
	for _, ent := range e.byID {
		if ent.reserved != ent.next { // exact, so that a clean stop leaves no gap
			batch.PutNext(ent.id, ent.next)
		}
	}
	e.putIndexes(batch)
	err := e.store.ApplyLazily(batch) // Close syncs
	return errors.Join(err, e.store.Close())
}

// tx is one command: it holds the engine's lock and gathers writes.
type tx struct {
	e     *Engine
	now   time.Time
	batch *store.Batch
	// urgent: what is gathered must be synced before it is acted upon.
	urgent bool
	// What this command has written and reads again; nil where none does.
	changed map[store.Key]*store.State // nil: removed
	heads   map[uint64][]byte
	seen    map[string]store.Seen
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
	t := &tx{e: e, now: e.readClock(), batch: e.store.NewBatch()}
	if first := e.timers.first(); first != nil && !first.at.After(t.now) {
		if err := t.advance(); err != nil {
			t.end()
			return nil, err
		}
	}
	return t, nil
}

// readClock returns the time, which never goes back.
func (e *Engine) readClock() time.Time {
	// The store keeps milliseconds, and so does every time that the engine compares. Truncate
	// strips the monotonic reading, too, by which a clock that was set back would still seem to
	// have gone forward.
	if now := e.clock().Truncate(time.Millisecond).UTC(); now.After(e.latest) {
		e.latest = now
	}
	return e.latest
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
	q.of.accessed = t.now
	return t, q, nil
}

// end lets go of the lock; nothing was gathered.
func (t *tx) end() { t.e.unlock() }

// flush writes what is gathered without waiting for the sync, and lets go of the lock.
func (t *tx) flush() error {
	defer t.e.unlock()
	if t.batch.Empty() {
		return nil
	}
	return t.apply()
}

// apply writes what is gathered, and waits for the sync only if that is urgent.
func (t *tx) apply() error {
	if !t.urgent {
		return unavailable(t.e.store.ApplyLazily(t.batch))
	}
	t.urgent = false
	wait, err := t.e.store.Apply(t.batch)
	if err == nil {
		err = wait()
	}
	return unavailable(err)
}

// commit writes what is gathered, lets go of the lock, and waits until it is durable.
func (t *tx) commit() error {
	if t.batch.Empty() {
		t.e.unlock()
		return nil
	}
	wait, err := t.e.store.Apply(t.batch)
	t.e.unlock()
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

// reader returns a reader of about n messages, and what ends the reading. The caller holds the
// lock.
func (e *Engine) reader(n int) (*store.Reader, func()) {
	e.readers.Add(1)
	r := e.store.Reader(n)
	return r, func() {
		_ = r.Close() // it only lets go
		e.readers.Done()
	}
}

func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// number returns the next sequence number of the entity. The store is told in blocks, and
// before a number of the block is used, so that none is used again after a crash and yet
// most cost no write of their own.
func (t *tx) number(ent *entity) uint64 {
	const block = 1024
	seq := ent.next
	if !t.e.sabotaged("seq-reused") || seq%7 != 0 {
		ent.next++
	}
	if ent.next > ent.reserved {
		ent.reserved = ent.next + block
		t.batch.PutNext(ent.id, ent.reserved)
		t.urgent = true
	}
	return seq
}

// sabotaged reports whether a test has asked for this bug, to see that it is found.
func (e *Engine) sabotaged(bug string) bool { return e.sabotage == bug }
