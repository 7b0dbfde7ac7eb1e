package storetest

import (
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Quota is a disk of a size that can change: a write that needs more fails with ENOSPC. It
// counts what was written through it, and what was removed.
type Quota struct {
	vfs.FS

	mu         sync.Mutex
	size, used int64
}

// NewQuota wraps fs, which is empty.
func NewQuota(fs vfs.FS, size int64) *Quota { return &Quota{FS: fs, size: size} }

// Resize changes the size of the disk.
func (q *Quota) Resize(size int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.size = size
}

// Used returns how many bytes are on the disk.
func (q *Quota) Used() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// take reserves n bytes, or gives back -n.
func (q *Quota) take(n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > 0 && q.used+n > q.size {
		return syscall.ENOSPC
	}
	q.used += n
	return nil
}

// Unwrap is part of [vfs.FS].
func (q *Quota) Unwrap() vfs.FS { return q.FS }

// GetDiskUsage is part of [vfs.FS].
func (q *Quota) GetDiskUsage(string) (vfs.DiskUsage, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return vfs.DiskUsage{AvailBytes: uint64(max(q.size-q.used, 0)), TotalBytes: uint64(q.size), UsedBytes: uint64(q.used)}, nil
}

func (q *Quota) sizeOf(name string) int64 {
	info, err := q.FS.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Create is part of [vfs.FS].
func (q *Quota) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	old := q.sizeOf(name)
	f, err := q.FS.Create(name, c)
	if err != nil {
		return nil, err
	}
	return &quotaFile{File: f, q: q}, q.take(-old)
}

// ReuseForWrite is part of [vfs.FS].
func (q *Quota) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := q.FS.ReuseForWrite(from, to, c)
	if err != nil {
		return nil, err
	}
	return &quotaFile{File: f, q: q}, nil
}

// Remove is part of [vfs.FS].
func (q *Quota) Remove(name string) error {
	old := q.sizeOf(name)
	if err := q.FS.Remove(name); err != nil {
		return err
	}
	return q.take(-old)
}

type quotaFile struct {
	vfs.File
	q  *Quota
	at int64
}

// Write is part of [vfs.File].
func (f *quotaFile) Write(p []byte) (int, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	grows := max(f.at+int64(len(p))-info.Size(), 0)
	if err := f.q.take(grows); err != nil {
		return 0, err
	}
	n, err := f.File.Write(p)
	f.at += int64(n)
	return n, err
}
