package store

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// failStop is the file system that pebble sees. The first write, sync or creation that
// fails stops the disk: nothing below it changes any more, as if the power had gone at that
// moment, and what is there is what the next Open recovers.
//
// Pebble itself is not told. It has no way to take back a failed write: it ends the process,
// panics in the background, or waits for a flush that cannot succeed. So what it writes after
// the stop seems to succeed: its logs go nowhere, since they are never read before a restart,
// and its new tables go to memory, so that what was applied before stays readable and Close
// finds nothing in its way. Whoever waits for an acknowledgement asks the store, which
// knows (see [Store.Failure]).
//
// The order of pebble's own steps makes this a consistent moment: it removes or overwrites
// nothing before the sync of what replaces it has returned, and a step that begins after
// the stop changes nothing.
type failStop struct {
	FS
	dir    string
	keep   uint64                // bytes of the disk that rewriting tables leaves free
	cause  atomic.Pointer[error] // what failed first
	memory *vfs.MemFS            // by base name: files created after the stop
}

func newFailStop(fs FS, dir string) *failStop {
	return &failStop{FS: fs, dir: dir, keep: Reserve / 4, memory: vfs.NewMem()}
}

// failure returns what failed first, or nil.
func (fs *failStop) failure() error {
	if p := fs.cause.Load(); p != nil {
		return *p
	}
	return nil
}

func (fs *failStop) stopped() bool { return fs.cause.Load() != nil }

// stop ends all changes of the disk. Only the first cause counts.
func (fs *failStop) stop(err error) { fs.cause.CompareAndSwap(nil, &err) }

// Unwrap is part of [vfs.FS].
func (fs *failStop) Unwrap() FS { return fs.FS }

// create opens a new file with f, or in memory once the disk has stopped.
func (fs *failStop) create(name string, c vfs.DiskWriteCategory, f func() (vfs.File, error)) (vfs.File, error) {
	rewrite := c == "pebble-compaction" || c == "pebble-blob-file-rewrite"
	if !fs.stopped() {
		file, err := f()
		if err == nil {
			return &failStopFile{File: file, fs: fs, name: name, table: isTable(name), rewrite: rewrite}, nil
		}
		fs.stop(fmt.Errorf("create %s: %w", name, err))
	}
	return fs.memory.Create(fs.PathBase(name), vfs.WriteCategoryUnspecified)
}

func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// Create is part of [vfs.FS].
func (fs *failStop) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(fs.PathBase(name), "marker.") {
		// It names another file, as a rule the manifest, and its own entry in the directory
		// must not be durable before that one's.
		fs.syncDir(fs.PathDir(name))
	}
	return fs.create(name, c, func() (vfs.File, error) { return fs.FS.Create(name, c) })
}

// ReuseForWrite is part of [vfs.FS].
func (fs *failStop) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.create(to, c, func() (vfs.File, error) { return fs.FS.ReuseForWrite(from, to, c) })
}

// OpenReadWrite is part of [vfs.FS].
func (fs *failStop) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return fs.create(name, c, func() (vfs.File, error) { return fs.FS.OpenReadWrite(name, c, o...) })
}

// OpenDir is part of [vfs.FS].
func (fs *failStop) OpenDir(name string) (vfs.File, error) {
	file, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &failStopFile{File: file, fs: fs, name: name}, nil
}

// syncDir makes the entries of a directory durable. One that may not be opened was there
// before.
func (fs *failStop) syncDir(name string) {
	if dir, err := fs.OpenDir(name); err == nil {
		_ = dir.Sync() // a failure stops the disk
		_ = dir.Close()
	}
}

// syncAncestors makes the way to a new directory durable, whoever made the directories above
// it.
func (fs *failStop) syncAncestors(dir string) {
	for up := fs.PathDir(dir); up != dir; dir, up = up, fs.PathDir(up) {
		fs.syncDir(up)
	}
}

// inMemory reports whether name was created after the stop.
func (fs *failStop) inMemory(name string) bool {
	if !fs.stopped() {
		return false
	}
	_, err := fs.memory.Stat(fs.PathBase(name))
	return err == nil
}

// Open is part of [vfs.FS].
func (fs *failStop) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	if fs.inMemory(name) {
		return fs.memory.Open(fs.PathBase(name), o...)
	}
	return fs.FS.Open(name, o...)
}

// Stat is part of [vfs.FS].
func (fs *failStop) Stat(name string) (vfs.FileInfo, error) {
	if fs.inMemory(name) {
		return fs.memory.Stat(fs.PathBase(name))
	}
	return fs.FS.Stat(name)
}

// Rename is part of [vfs.FS].
func (fs *failStop) Rename(from, to string) error {
	if !fs.stopped() {
		err := fs.FS.Rename(from, to)
		if err == nil {
			return nil
		}
		fs.stop(fmt.Errorf("rename %s: %w", from, err))
	}
	if fs.inMemory(from) {
		return fs.memory.Rename(fs.PathBase(from), fs.PathBase(to))
	}
	return nil
}

// Remove is part of [vfs.FS]. A file that cannot be removed costs space and nothing else:
// pebble tries again when it is opened.
func (fs *failStop) Remove(name string) error {
	switch {
	case !fs.stopped():
		return fs.FS.Remove(name)
	case fs.inMemory(name):
		return fs.memory.Remove(fs.PathBase(name))
	}
	return nil
}

// errTight is the error of a rewrite that would take the room which logs may need.
var errTight = errors.New("too little disk space to compact")

// isTight reports whether what is free on the disk belongs to the logs and what is written
// from memory: a rewrite only seems to be the way to more space, and a log that finds the disk
// full ends everything.
func (fs *failStop) isTight() bool {
	usage, err := fs.GetDiskUsage(fs.dir)
	return err == nil && usage.AvailBytes < fs.keep
}

// failStopFile is a file that is written, or a directory that is synced.
type failStopFile struct {
	vfs.File
	fs   *failStop
	name string
	// table says that pebble will read the file: a write that fails must be told, so that
	// the table is not used. Pebble then makes another, which goes to memory. A table that
	// is under way when something else fails is finished on the disk, where nothing refers
	// to it; the next Open removes it.
	table bool
	// rewrite says that pebble rewrites tables that are there already. When the disk is full
	// it can do that later: the failure is told and stops nothing.
	rewrite bool
}

// do runs f unless the disk has stopped.
func (f *failStopFile) do(what string, op func() error) error {
	if !f.table && f.fs.stopped() {
		return nil
	}
	err := op()
	if err == nil {
		return nil
	}
	if f.rewrite && vfs.IsNoSpaceError(err) {
		return err
	}
	f.fs.stop(fmt.Errorf("%s %s: %w", what, f.name, err))
	if f.table {
		return err
	}
	return nil
}

// Write is part of [vfs.File].
func (f *failStopFile) Write(p []byte) (n int, err error) {
	if f.rewrite && f.fs.isTight() {
		return 0, errTight
	}
	err = f.do("write", func() (err error) {
		if n, err = f.File.Write(p); err == nil && n < len(p) {
			err = io.ErrShortWrite
		}
		return err
	})
	if err == nil {
		n = len(p)
	}
	return n, err
}

// WriteAt is part of [vfs.File].
func (f *failStopFile) WriteAt(p []byte, at int64) (n int, err error) {
	err = f.do("write", func() (err error) {
		n, err = f.File.WriteAt(p, at)
		return err
	})
	if err == nil {
		n = len(p)
	}
	return n, err
}

// Sync is part of [vfs.File].
func (f *failStopFile) Sync() error { return f.do("sync", f.File.Sync) }

// SyncData is part of [vfs.File].
func (f *failStopFile) SyncData() error { return f.do("sync", f.File.SyncData) }

// SyncTo is part of [vfs.File].
func (f *failStopFile) SyncTo(length int64) (full bool, err error) {
	err = f.do("sync", func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Close is part of [vfs.File]. The handle is let go whether or not the disk has stopped.
func (f *failStopFile) Close() error {
	if err := f.File.Close(); err != nil {
		return f.do("close", func() error { return err })
	}
	return nil
}

// failStopLogger stops the disk where pebble would end the process. What pebble does next
// reaches no disk, so that it need not end.
type failStopLogger struct{ fs *failStop }

// Infof drops chatter.
func (failStopLogger) Infof(string, ...any) {}

// Errorf drops what comes back as an error too.
func (failStopLogger) Errorf(string, ...any) {}

// Fatalf is called where pebble cannot go on.
func (l failStopLogger) Fatalf(format string, args ...any) {
	l.fs.stop(fmt.Errorf(format, args...))
}

// guard turns a panic of pebble in the caller's goroutine into an error: it would leave the
// engine locked.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
			if e, ok := r.(error); ok {
				err = e
			}
		}
	}()
	return f()
}
