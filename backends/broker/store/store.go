package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/message"
)

// Store is an open database. Its methods may be called concurrently; the order of Apply
// calls is the order of the writes.
type Store struct {
	db   *pebble.DB
	fs   *failStop
	pace pace

	recent  recent
	batches sync.Pool // of *Batch
}

// FS is where the files are: [vfs.Default], or one of pebble's in memory.
type FS = vfs.FS

// Open opens the database in dir, which it creates if it is missing, with everything that
// was synced before. A directory has one owner at a time; the second Open fails. An error
// that wraps [ErrDamaged] says that the files are not what was written, or not by this
// version; nothing was removed.
func Open(fs FS, dir string, o ...Option) (*Store, error) {
	s := &Store{fs: newFailStop(fs, dir)}
	opts := options(s.fs)
	for _, set := range o {
		set(opts)
	}
	opts.EnsureDefaults()
	fresh := isFresh(fs, dir)
	err := guard(func() (err error) {
		if err := checkManifest(fs, dir); err != nil {
			return err
		}
		s.db, err = pebble.Open(dir, opts)
		return err
	})
	if err == nil && fresh {
		s.fs.syncAncestors(dir)
	}
	if cause := s.fs.failure(); cause != nil {
		if s.db != nil {
			_ = guard(s.db.Close) // the files are let go
		}
		err = cause
	}
	if err != nil {
		if refused := syscall.Errno(0); !errors.As(err, &refused) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return nil, fmt.Errorf("open the store in %s: %w", dir, err)
	}
	return s, nil
}

// ErrDamaged is wrapped by the error of an Open that the operating system has no part in: the
// files are not what was written.
var ErrDamaged = errors.New("the store is damaged; nothing was changed or removed: " +
	"copy the directory, check the disk, and restore it from a backup")

// Option changes how a store works.
type Option func(*pebble.Options)

// MemTable sets how many bytes of writes gather in memory before they become a table.
// Tests make it small, to see tables written, logs begun and tables compacted.
func MemTable(bytes int) Option {
	return func(o *pebble.Options) { o.MemTableSize = uint64(bytes) }
}

// options are pebble's, with what was decided by measurement.
func options(fs *failStop) *pebble.Options {
	o := &pebble.Options{
		FS:                 fs,
		FormatMajorVersion: pebble.FormatNewest,
		Logger:             failStopLogger{fs},
		MaxOpenFiles:       256,
		MemTableSize:       16 << 20,
		// The memory of the store, beyond which, and what was written last, it does not grow
		// with what it holds. What is written and not yet in a table counts too, up to 48 MB:
		// with a smaller cache there is none, and every read decodes an index.
		CacheSize: 96 << 20,
		// A writer that waits for a compaction waits for ever if a table cannot be read:
		// the store slows writers down instead.
		L0StopWritesThreshold: 1000,
		// What is read is checked by the store; damage that pebble finds comes back as an error.
		EventListener: &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}},
	}
	// Every message is removed one day, so that tables full of tombstones are nothing special:
	// the usual compactions drop them, and compacting them out of turn costs as much as all else.
	o.Experimental.TombstoneDenseCompactionThreshold = -1
	for i := range o.Levels {
		// Bodies are read in order more often than not. But what pebble does with a damaged
		// block takes the square of its size: it tries to find the bit that flipped.
		o.Levels[i].BlockSize = 8 << 10
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// isFresh reports whether dir holds nothing yet.
func isFresh(fs FS, dir string) bool {
	names, err := fs.List(dir)
	return err != nil || len(names) == 0
}

// OpenMemory opens an empty database that lives as long as the process.
func OpenMemory() (*Store, error) { return Open(vfs.NewMem(), "store") }

// Close syncs what is not yet synced and closes the files. A store that failed before is
// closed without an error of its own.
func (s *Store) Close() error {
	if s.fs.stopped() {
		_ = guard(s.db.Close)
		return nil
	}
	err := guard(func() error {
		if s.db.Metrics().WAL.Size > flushAtClose {
			return s.db.Flush()
		}
		return s.db.LogData(nil, pebble.Sync)
	})
	err = errors.Join(err, s.fs.failure())
	return errors.Join(err, guard(s.db.Close))
}

// flushAtClose is the size of the log from which on making a table of it now is better than
// reading it at the next Open.
const flushAtClose = 4 << 20

// ErrFailed is wrapped by the error of a write to a store that had failed before: nothing of
// that write has happened.
var ErrFailed = errors.New("the store failed and takes no more writes; restart to recover")

// Batch collects writes that happen all or not at all. It is used by one goroutine.
type Batch struct {
	b   *pebble.Batch
	key [16]byte // of the record that is written
	buf []byte   // its value
	err error
}

// NewBatch returns an empty batch. Its buffer may come from one that was applied.
func (s *Store) NewBatch() *Batch {
	b, ok := s.batches.Get().(*Batch)
	if !ok {
		b = &Batch{}
	}
	b.b = s.db.NewBatch()
	return b
}

// recycle takes back a batch that was applied.
func (s *Store) recycle(b *Batch) error {
	err := b.b.Close()
	b.b = nil
	const most = 64 << 10 // a buffer that one large body has grown is let go
	if cap(b.buf) <= most {
		s.batches.Put(b)
	}
	return err
}

// Empty reports whether the batch holds no writes.
func (b *Batch) Empty() bool { return b.b.Empty() }

// Follow has the batch be durable only when all before it are, even if it writes nothing.
func (b *Batch) Follow() {
	if err := b.b.LogData(nil, nil); err != nil && b.err == nil {
		b.err = err
	}
}

// Size returns how many bytes were gathered, about.
func (b *Batch) Size() int { return b.b.Len() }

// PutEntity writes an entity.
func (b *Batch) PutEntity(e *Entity) {
	b.set(entityKey(e.ID), e.append(b.buf[:0]))
}

// PutNext writes the bound that all sequence numbers used by a queue lie below.
func (b *Batch) PutNext(queue uint32, bound uint64) {
	b.set(nextKey(queue), binary.AppendUvarint(b.buf[:0], bound))
}

// PutState writes the state of a message.
func (b *Batch) PutState(k Key, s *State) { b.set(k.append(b.key[:0]), s.append(b.buf[:0])) }

// DeleteState removes the state of a message, and with it the message.
func (b *Batch) DeleteState(k Key) { b.delete(k.append(b.key[:0])) }

// PutHead writes every section of a message but its body under the id, as
// [message.AppendHead] encodes it.
func (b *Batch) PutHead(id uint64, head []byte) {
	b.set(appendContentKey(b.key[:0], prefixHead, id), append(b.buf[:0], head...))
}

// PutBody writes a body under the id.
func (b *Batch) PutBody(id uint64, body message.Body) {
	b.set(appendContentKey(b.key[:0], prefixBody, id), message.AppendBody(b.buf[:0], body))
}

// DeleteHead removes a head.
func (b *Batch) DeleteHead(id uint64) { b.delete(appendContentKey(b.key[:0], prefixHead, id)) }

// DeleteBody removes a body.
func (b *Batch) DeleteBody(id uint64) { b.delete(appendContentKey(b.key[:0], prefixBody, id)) }

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
	if err := s.write(b, s.db.ApplyNoSyncWait, pebble.Sync); err != nil {
		return nil, err
	}
	return func() error {
		if err := b.b.SyncWait(); err != nil {
			s.fs.stop(err)
		}
		if err := s.fs.failure(); err != nil {
			return err
		}
		return s.recycle(b)
	}, nil
}

// ApplyLazily puts the batch behind all earlier ones without asking for a sync: it becomes
// durable with a later one, or is lost in a crash.
func (s *Store) ApplyLazily(b *Batch) error {
	if err := s.write(b, s.db.Apply, pebble.NoSync); err != nil {
		return err
	}
	return s.recycle(b)
}

func (s *Store) write(b *Batch, apply func(*pebble.Batch, *pebble.WriteOptions) error, o *pebble.WriteOptions) error {
	if err := s.Failure(); err != nil {
		return err
	}
	err := b.err
	if err == nil {
		s.wait(b.b.Len())
		s.recent.note(b.b)
		err = guard(func() error { return apply(b.b, o) })
	}
	if err != nil {
		s.fs.stop(err)
	}
	return s.fs.failure()
}

// Failure returns the error of the first write or sync that failed, wrapping [ErrFailed], or
// nil.
func (s *Store) Failure() error {
	if err := s.fs.failure(); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return nil
}
