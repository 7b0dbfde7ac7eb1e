package resubmit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
)

// A journal is one file that only grows:
//
//	journal = magic salt {record}
//	record  = length(4) sum(4) check(4) payload(length)
//
// Numbers are little endian. sum is the CRC-32C of the payload and check that of the eight bytes
// before it, both started from salt: so a message that itself holds a journal is not taken for
// one. What a payload holds is in record.go.
//
// A process that dies leaves a torn tail, which the next one cuts off. Damage with a sound record
// behind it is not a torn tail: such a journal is refused, since what it lost may be that a
// message was sent.
const (
	journalMagic    = "dlqjob1\n"
	journalHead     = len(journalMagic) + 4
	recordHead      = 12
	maxRecord       = 1 << 30
	keepBuffer      = 8 << 20 // a larger one is given back after a flush
	scanWindow      = 256 << 10
	peekOfSkipped   = 64 // bytes of a skipped payload that a light scan is shown
	journalFileMode = 0o600
)

// errDamaged is wrapped by the errors of a journal that must not be continued.
var errDamaged = errors.New("journal is damaged")

// errTooShort: the process died before the head of the journal was on disk.
var errTooShort = errors.New("journal has no head")

func checksum(salt uint32, b []byte) uint32 {
	return crc32.Update(salt, crc32.MakeTable(crc32.Castagnoli), b)
}

// journalWriter appends records. Appending is buffered; sync makes durable all that was
// appended before, for many callers with one fsync. After a failed write nothing more is
// accepted: the file's state is then unknown, and trying again could hide a loss.
type journalWriter struct {
	f    *os.File
	salt uint32

	mu      sync.Mutex
	settled sync.Cond
	buf     []byte // appended, not yet written
	spare   []byte
	end     int64 // offset behind the last appended record
	durable int64 // offset up to which the file is synced
	syncing bool
	err     error
}

// newJournalWriter starts an empty file, or continues one at end, which is cut off there.
func newJournalWriter(f *os.File, salt uint32, end int64) (*journalWriter, error) {
	w := &journalWriter{f: f, salt: salt, end: end, durable: end}
	w.settled.L = &w.mu
	if end == 0 {
		w.buf = binary.LittleEndian.AppendUint32([]byte(journalMagic), salt)
		w.end = int64(len(w.buf))
		return w, nil
	}
	if err := f.Truncate(end); err != nil {
		return nil, err
	}
	_, err := f.Seek(end, io.SeekStart)
	return w, err
}

// append adds one record and returns its offset. fill appends the payload to what it is given.
func (w *journalWriter) append(fill func([]byte) []byte) (off int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	start := len(w.buf)
	w.buf = fill(append(w.buf, make([]byte, recordHead)...))
	head, payload := w.buf[start:], w.buf[start+recordHead:]
	if len(payload) > maxRecord {
		w.buf = w.buf[:start]
		return 0, fmt.Errorf("a journal record holds at most %d bytes, not %d", maxRecord, len(payload))
	}
	binary.LittleEndian.PutUint32(head, uint32(len(payload)))
	binary.LittleEndian.PutUint32(head[4:], checksum(w.salt, payload))
	binary.LittleEndian.PutUint32(head[8:], checksum(w.salt, head[:8]))
	off = w.end
	w.end += int64(recordHead + len(payload))
	return off, nil
}

// sync returns when everything appended before the call is on disk.
func (w *journalWriter) sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	target := w.end
	for w.durable < target && w.err == nil {
		if w.syncing {
			w.settled.Wait()
			continue
		}
		w.flush()
	}
	return w.err
}

// flush writes and syncs what is buffered. It is called with mu held, and lets go of it meanwhile
// so that others can append to the next flush.
func (w *journalWriter) flush() {
	buf, end := w.buf, w.end
	w.buf, w.spare, w.syncing = w.spare[:0], nil, true
	w.mu.Unlock()
	_, err := w.f.Write(buf)
	if err == nil {
		err = w.f.Sync()
	}
	w.mu.Lock()
	w.syncing = false
	if cap(buf) <= keepBuffer {
		w.spare = buf
	}
	if err != nil {
		w.err = fmt.Errorf("write journal: %w", err)
	} else {
		w.durable = end
	}
	w.settled.Broadcast()
}

// failed returns the error that ended writing, if one did.
func (w *journalWriter) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// close syncs and closes the file.
func (w *journalWriter) close() error {
	return errors.Join(w.sync(), w.f.Close())
}

// journalReader reads records one after the other.
type journalReader struct {
	r      io.ReaderAt
	size   int64
	salt   uint32
	off    int64 // of the next record
	window []byte
	at     int64 // offset of window
}

func newJournalReader(r io.ReaderAt, size int64) (*journalReader, error) {
	j := &journalReader{r: r, size: size, off: int64(journalHead)}
	head, err := j.read(0, journalHead)
	if err != nil {
		return nil, err
	}
	if head == nil {
		return nil, errTooShort
	}
	if string(head[:len(journalMagic)]) != journalMagic {
		return nil, fmt.Errorf("%w: it does not begin like one", errDamaged)
	}
	j.salt = binary.LittleEndian.Uint32(head[len(journalMagic):])
	return j, nil
}

// read returns n bytes at off, valid until the next call; nil if the file ends before.
func (j *journalReader) read(off int64, n int) ([]byte, error) {
	if off+int64(n) > j.size {
		return nil, nil
	}
	if from := off - j.at; from >= 0 && from+int64(n) <= int64(len(j.window)) {
		return j.window[from : from+int64(n)], nil
	}
	want := min(max(int64(n), scanWindow), j.size-off)
	if int64(cap(j.window)) < want || cap(j.window) > keepBuffer {
		j.window = make([]byte, want)
	}
	j.window, j.at = j.window[:want], off
	if _, err := j.r.ReadAt(j.window, off); err != nil && err != io.EOF {
		j.window = j.window[:0]
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return j.window[:n], nil
}

// next returns the next record. The payload is valid until the next call. skip may say, from the
// first bytes of the payload, that these are enough: then only they are returned, and the
// payload's checksum is not looked at. io.EOF is the end, where off is the length of the sound part.
func (j *journalReader) next(skip func(first []byte) bool) (off int64, payload []byte, err error) {
	off = j.off
	n, sum, err := j.head(off)
	if err != nil {
		return off, nil, err
	}
	if n < 0 || off+int64(recordHead)+int64(n) > j.size {
		return off, nil, j.torn(off)
	}
	if skip != nil {
		first, err := j.read(off+recordHead, min(n, peekOfSkipped))
		if err != nil {
			return off, nil, err
		}
		if skip(first) {
			j.off = off + recordHead + int64(n)
			return off, first, nil
		}
	}
	payload, err = j.read(off+recordHead, n)
	if err != nil {
		return off, nil, err
	}
	if checksum(j.salt, payload) != sum {
		return off, nil, j.torn(off)
	}
	j.off = off + recordHead + int64(n)
	return off, payload, nil
}

// head reads a record's head. n is -1 if there is none that is sound.
func (j *journalReader) head(off int64) (n int, sum uint32, err error) {
	h, err := j.read(off, recordHead)
	if err != nil || h == nil {
		return -1, 0, err
	}
	length := binary.LittleEndian.Uint32(h)
	if binary.LittleEndian.Uint32(h[8:]) != checksum(j.salt, h[:8]) || length > maxRecord {
		return -1, 0, nil
	}
	return int(length), binary.LittleEndian.Uint32(h[4:]), nil
}

// endsInFirst reports whether the file ends before its first record does, by what is there of
// that. If it goes on, it is the head that is damaged, which no other record can show.
func (j *journalReader) endsInFirst() bool {
	h, err := j.read(int64(journalHead), recordHead)
	return err == nil && (h == nil || int64(journalHead+recordHead)+int64(binary.LittleEndian.Uint32(h)) > j.size)
}

// torn judges what begins at off and is not a sound record: io.EOF for the end of the file and
// for a torn tail, an error if a sound record follows.
func (j *journalReader) torn(off int64) error {
	for at := off + 1; at+recordHead <= j.size; at++ {
		n, sum, err := j.head(at)
		if err != nil {
			return err
		}
		if n < 0 || at+recordHead+int64(n) > j.size {
			continue
		}
		payload, err := j.read(at+recordHead, n)
		if err != nil {
			return err
		}
		if checksum(j.salt, payload) == sum {
			return fmt.Errorf("%w at offset %d: sound records follow, so it is not a torn end", errDamaged, off)
		}
	}
	return io.EOF
}

// readRecordAt reads the payload of the record at off into fresh memory.
func readRecordAt(r io.ReaderAt, salt uint32, off int64) ([]byte, error) {
	head := make([]byte, recordHead)
	if _, err := r.ReadAt(head, off); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	n := binary.LittleEndian.Uint32(head)
	if binary.LittleEndian.Uint32(head[8:]) != checksum(salt, head[:8]) || n > maxRecord {
		return nil, fmt.Errorf("%w at offset %d", errDamaged, off)
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, off+recordHead); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	if checksum(salt, b) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, fmt.Errorf("%w at offset %d", errDamaged, off)
	}
	return b, nil
}
