package storetest

import (
	"io"
	"os"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Kind says what an operation does.
type Kind string

// The kinds of operations.
const (
	Create  Kind = "create" // also the reuse of a file for writing
	Write   Kind = "write"
	Sync    Kind = "sync" // of a file
	SyncDir Kind = "sync directory"
	Close   Kind = "close" // of a file that was written, or of a directory
	Rename  Kind = "rename"
	Remove  Kind = "remove"
	MkDir   Kind = "make directory"
	OpenDir Kind = "open directory"
	Open    Kind = "open"
	Read    Kind = "read"
	Stat    Kind = "stat"
	List    Kind = "list"
	Lock    Kind = "lock"
)

// Changes reports whether an operation of the kind changes what is on the disk, or makes
// it durable.
func (k Kind) Changes() bool {
	switch k {
	case Create, Write, Sync, SyncDir, Close, Rename:
		return true
	}
	return false
}

// Op is one operation.
type Op struct {
	N     int // from 1, in the order of arrival
	Kind  Kind
	Path  string
	Bytes int // that a write brings
}

// Fault is what becomes of an operation. The zero value lets it pass.
type Fault struct {
	Err  error // it fails and changes nothing
	Half bool  // a write that fails leaves half of its bytes behind
	Lie  bool  // it does nothing and reports success: for syncs
}

// Faults is a file system whose operations pass through a function.
type Faults struct {
	vfs.FS
	decide func(Op) Fault
	n      atomic.Int64
}

// NewFaults wraps fs. decide is called for every operation, by many goroutines at once.
func NewFaults(fs vfs.FS, decide func(Op) Fault) *Faults { return &Faults{FS: fs, decide: decide} }

// Count returns how many operations there were.
func (fs *Faults) Count() int { return int(fs.n.Load()) }

// Unwrap is part of [vfs.FS].
func (fs *Faults) Unwrap() vfs.FS { return fs.FS }

// do runs f unless the operation has a fault.
func (fs *Faults) do(k Kind, path string, f func() error) error {
	fault := fs.decide(Op{N: int(fs.n.Add(1)), Kind: k, Path: path})
	switch {
	case fault.Lie:
		return nil
	case fault.Err != nil:
		return fault.Err
	}
	return f()
}

func (fs *Faults) open(k Kind, path string, f func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	err := fs.do(k, path, func() (err error) {
		file, err = f()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &faultFile{File: file, fs: fs, path: path, opened: k}, nil
}

// Create is part of [vfs.FS].
func (fs *Faults) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.open(Create, name, func() (vfs.File, error) { return fs.FS.Create(name, c) })
}

// ReuseForWrite is part of [vfs.FS].
func (fs *Faults) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.open(Create, to, func() (vfs.File, error) { return fs.FS.ReuseForWrite(from, to, c) })
}

// OpenReadWrite is part of [vfs.FS].
func (fs *Faults) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return fs.open(Create, name, func() (vfs.File, error) { return fs.FS.OpenReadWrite(name, c, o...) })
}

// Open is part of [vfs.FS].
func (fs *Faults) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	return fs.open(Open, name, func() (vfs.File, error) { return fs.FS.Open(name, o...) })
}

// OpenDir is part of [vfs.FS].
func (fs *Faults) OpenDir(name string) (vfs.File, error) {
	return fs.open(OpenDir, name, func() (vfs.File, error) { return fs.FS.OpenDir(name) })
}

// Remove is part of [vfs.FS].
func (fs *Faults) Remove(name string) error {
	return fs.do(Remove, name, func() error { return fs.FS.Remove(name) })
}

// Rename is part of [vfs.FS].
func (fs *Faults) Rename(from, to string) error {
	return fs.do(Rename, to, func() error { return fs.FS.Rename(from, to) })
}

// MkdirAll is part of [vfs.FS].
func (fs *Faults) MkdirAll(dir string, perm os.FileMode) error {
	return fs.do(MkDir, dir, func() error { return fs.FS.MkdirAll(dir, perm) })
}

// Lock is part of [vfs.FS].
func (fs *Faults) Lock(name string) (c io.Closer, err error) {
	err = fs.do(Lock, name, func() (err error) {
		c, err = fs.FS.Lock(name)
		return err
	})
	return c, err
}

// List is part of [vfs.FS].
func (fs *Faults) List(dir string) (names []string, err error) {
	err = fs.do(List, dir, func() (err error) {
		names, err = fs.FS.List(dir)
		return err
	})
	return names, err
}

// Stat is part of [vfs.FS].
func (fs *Faults) Stat(name string) (info vfs.FileInfo, err error) {
	err = fs.do(Stat, name, func() (err error) {
		info, err = fs.FS.Stat(name)
		return err
	})
	return info, err
}

type faultFile struct {
	vfs.File
	fs     *Faults
	path   string
	opened Kind
}

// Write is part of [vfs.File].
func (f *faultFile) Write(p []byte) (int, error) {
	switch fault := f.fs.decide(Op{int(f.fs.n.Add(1)), Write, f.path, len(p)}); {
	case fault.Err == nil:
		return f.File.Write(p)
	case fault.Half:
		n, _ := f.File.Write(p[:len(p)/2])
		return n, fault.Err
	default:
		return 0, fault.Err
	}
}

// Read is part of [vfs.File].
func (f *faultFile) Read(p []byte) (n int, err error) {
	err = f.fs.do(Read, f.path, func() (err error) {
		n, err = f.File.Read(p)
		return err
	})
	return n, err
}

// ReadAt is part of [vfs.File].
func (f *faultFile) ReadAt(p []byte, at int64) (n int, err error) {
	err = f.fs.do(Read, f.path, func() (err error) {
		n, err = f.File.ReadAt(p, at)
		return err
	})
	return n, err
}

func (f *faultFile) syncKind() Kind {
	if f.opened == OpenDir {
		return SyncDir
	}
	return Sync
}

// Sync is part of [vfs.File].
func (f *faultFile) Sync() error { return f.fs.do(f.syncKind(), f.path, f.File.Sync) }

// SyncData is part of [vfs.File].
func (f *faultFile) SyncData() error { return f.fs.do(f.syncKind(), f.path, f.File.SyncData) }

// SyncTo is part of [vfs.File].
func (f *faultFile) SyncTo(length int64) (full bool, err error) {
	err = f.fs.do(f.syncKind(), f.path, func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Close is part of [vfs.File]. The file is closed whether or not this fails.
func (f *faultFile) Close() error {
	err := f.File.Close()
	if f.opened == Open {
		return err
	}
	return f.fs.do(Close, f.path, func() error { return err })
}
