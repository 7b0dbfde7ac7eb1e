package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// checkManifest looks for damage in the file that names all tables. Pebble takes any record
// of it that it cannot read for the torn end of what a crash interrupted, forgets the
// tables that come behind, and removes them. A torn end cannot be told from every damage,
// but a record is no torn end when it is followed by sound ones, or complete and
// wrong, or sound but for its length.
func checkManifest(disk FS, dir string) error {
	name, err := atomicfs.ReadMarker(disk, dir, "manifest")
	if errors.Is(err, fs.ErrNotExist) || err == nil && name == "" {
		return nil // a new store
	}
	if err != nil {
		return err
	}
	f, err := disk.Open(disk.PathJoin(dir, name))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was read
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if at := firstBadChunk(b); at < len(b) && !isTorn(b, at) {
		return fmt.Errorf("%s is not what was written at byte %d", name, at)
	}
	return nil
}

// The file is a sequence of blocks, and a block one of chunks: a masked checksum of what
// follows the length, the length, a type, and so many bytes.
// Source: https://github.com/cockroachdb/pebble/blob/v2.1.7/record/record.go
const (
	chunkHeader = 7
	blockSize   = 32 << 10
	lastType    = 4
)

// chunk returns where the chunk at b[at:] ends, or 0 when it is not sound.
func chunk(b []byte, at int) (end int) {
	if at+chunkHeader > len(b) || b[at+6] == 0 || b[at+6] > lastType {
		return 0
	}
	end = at + chunkHeader + int(binary.LittleEndian.Uint16(b[at+4:]))
	if end > len(b) || end > at-at%blockSize+blockSize || !summed(b, at, end) {
		return 0
	}
	return end
}

// summed reports whether the chunk at b[at:end] has the checksum that it says.
func summed(b []byte, at, end int) bool {
	sum := crc32.Checksum(b[at+6:end], castagnoli)
	return binary.LittleEndian.Uint32(b[at:]) == (sum>>15|sum<<17)+0xa282ead8
}

func firstBadChunk(b []byte) (at int) {
	for at < len(b) {
		if left := blockSize - at%blockSize; left < chunkHeader {
			at += left // padding
			continue
		}
		end := chunk(b, at)
		if end == 0 {
			return at
		}
		at = end
	}
	return at
}

// isTorn reports whether a crash can have left b with what is unsound at b[at:].
func isTorn(b []byte, at int) bool {
	for next := at + 1; next+chunkHeader <= len(b); next++ {
		if chunk(b, next) > next+chunkHeader {
			return false // more was written behind it
		}
	}
	if at+chunkHeader > len(b) {
		return true
	}
	const sector = 512
	if bytes.Contains(b[at:], make([]byte, min(sector, len(b)-at))) {
		return true // sectors that were never written
	}
	complete := at+chunkHeader+int(binary.LittleEndian.Uint16(b[at+4:])) <= len(b)
	return !complete && !summed(b, at, len(b))
}
