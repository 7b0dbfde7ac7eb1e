package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/message"
)

// Store is an open database. Its methods may be called concurrently; the order of Apply
// calls is the order of the writes.
type Store struct {
	db *pebble.DB

	mu     sync.Mutex
	failed error // first failed write or sync; sticky
}

// FS is where the files are: [vfs.Default], or one of pebble's in memory.
type FS = vfs.FS

// Open opens the database in dir, which it creates if it is missing, with everything that
// was synced before. A directory has one owner at a time; the second Open fails.
func Open(fs FS, dir string) (*Store, error) {
	s := &Store{}
	opts := &pebble.Options{
		FS:                 fs,
		FormatMajorVersion: pebble.FormatNewest,
		Logger:             quietLogger{},
		MemTableSize:       16 << 20,
		MaxOpenFiles:       256,
	}
	opts.EnsureDefaults()
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", dir, err)
	}
	s.db = db
	return s, nil
}

// OpenMemory opens an empty database that lives as long as the process.
func OpenMemory() (*Store, error) { return Open(vfs.NewMem(), "store") }

// Close syncs what is not yet synced and closes the files.
func (s *Store) Close() error {
	if s.Failure() != nil {
		// What could not be written before is not tried again; the files are let go.
		_ = guard(s.db.Close)
		return nil
	}
	err := guard(func() error { return s.db.LogData(nil, pebble.Sync) })
	return errors.Join(err, guard(s.db.Close))
}

// ErrFailed is wrapped by the error of a write to a store that had failed before: nothing of
// that write has happened.
var ErrFailed = errors.New("the store failed and takes no more writes; restart to recover")

// Batch collects writes that happen all or not at all. It is used by one goroutine.
type Batch struct {
	b   *pebble.Batch
	buf []byte
	err error
}

// NewBatch returns an empty batch.
func (s *Store) NewBatch() *Batch { return &Batch{b: s.db.NewBatch()} }

// Empty reports whether the batch holds no writes.
func (b *Batch) Empty() bool { return b.b.Empty() }

// PutEntity writes an entity.
func (b *Batch) PutEntity(e *Entity) {
	b.set(entityKey(e.ID), e.append(b.buf[:0]))
}

// PutNext writes the bound that all sequence numbers used by a queue lie below.
func (b *Batch) PutNext(queue uint32, bound uint64) {
	b.set(nextKey(queue), binary.AppendUvarint(b.buf[:0], bound))
}

// PutState writes the state of a message.
func (b *Batch) PutState(k Key, s *State) { b.set(k.bytes(), s.append(b.buf[:0])) }

// DeleteState removes the state of a message, and with it the message.
func (b *Batch) DeleteState(k Key) { b.delete(k.bytes()) }

// PutHead writes every section of m but its body under the id.
func (b *Batch) PutHead(id uint64, m *message.Message) {
	b.set(contentKey(prefixHead, id), message.AppendHead(b.buf[:0], m))
}

// PutBody writes a body under the id.
func (b *Batch) PutBody(id uint64, body message.Body) {
	b.set(contentKey(prefixBody, id), message.AppendBody(b.buf[:0], body))
}

// DeleteHead removes a head.
func (b *Batch) DeleteHead(id uint64) { b.delete(contentKey(prefixHead, id)) }

// DeleteBody removes a body.
func (b *Batch) DeleteBody(id uint64) { b.delete(contentKey(prefixBody, id)) }

func (b *Batch) set(key, value []byte) {
	b.buf = sealed(key, value)
	b.err = errors.Join(b.err, b.b.Set(key, b.buf, nil))
}

func (b *Batch) delete(key []byte) { b.err = errors.Join(b.err, b.b.Delete(key, nil)) }

// Apply puts the batch behind all earlier ones and makes it visible. The batch is durable
// when the returned function returns nil; it must be called once, from any goroutine, and
// may block for the time of a sync. After an error of either, whether the batch took effect
// shows when the store is opened again, unless the error wraps [ErrFailed]; the store fails
// from then on.
func (s *Store) Apply(b *Batch) (wait func() error, err error) {
	if err := s.Failure(); err != nil {
		return nil, err
	}
	if b.err != nil {
		return nil, s.fail(b.err)
	}
	if err := guard(func() error { return s.db.ApplyNoSyncWait(b.b, pebble.Sync) }); err != nil {
		return nil, s.fail(err)
	}
	return func() error {
		if err := b.b.SyncWait(); err != nil {
			return s.fail(err)
		}
		return b.b.Close()
	}, nil
}

// ApplyLazily puts the batch behind all earlier ones without asking for a sync: it becomes
// durable with a later one, or is lost in a crash.
func (s *Store) ApplyLazily(b *Batch) error {
	if err := s.Failure(); err != nil {
		return err
	}
	if b.err != nil {
		return s.fail(b.err)
	}
	if err := guard(func() error { return s.db.Apply(b.b, pebble.NoSync) }); err != nil {
		return s.fail(err)
	}
	return b.b.Close()
}

// Failure returns the error of the first write or sync that failed, wrapping [ErrFailed], or
// nil.
func (s *Store) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *Store) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return err
}

// guard turns pebble's end of the process on a failed write into an error: a panic would
// leave the engine locked.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return f()
}

// quietLogger drops pebble's chatter: what matters comes back as an error.
type quietLogger struct{}

func (quietLogger) Infof(string, ...any)  {}
func (quietLogger) Errorf(string, ...any) {}
func (quietLogger) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
