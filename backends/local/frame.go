package local

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// A frame is its length in four bytes, big endian, its kind in one, and its content.
const (
	helloFrame   byte = iota + 1 // first, from both sides
	requestFrame                 // a call; one at a time
	replyFrame                   // its answer, or a part of that
	goodbyeFrame                 // the owner stops; a request that has no answer yet was not begun
)

const (
	maxHello = 64 << 10
	// maxFrame bounds one call. Entities take messages of up to 100 MiB.
	maxFrame = 1 << 30
	// believed is how much memory a length gets before its bytes have come.
	believed = 1 << 20
)

// wire is a connection on which frames travel. One goroutine reads, one writes.
type wire struct {
	net.Conn
	in  *bufio.Reader
	out *bufio.Writer
}

func newWire(c net.Conn) *wire {
	const buffer = 64 << 10
	return &wire{c, bufio.NewReaderSize(c, buffer), bufio.NewWriterSize(c, buffer)}
}

// put buffers a frame, and writes when the buffer is full.
func (w *wire) put(kind byte, content []byte) error {
	if len(content) >= maxFrame {
		return fmt.Errorf("%d bytes are too many for one call, it takes %d", len(content), maxFrame-1)
	}
	head := [5]byte{4: kind}
	binary.BigEndian.PutUint32(head[:], uint32(len(content)+1))
	if _, err := w.out.Write(head[:]); err != nil {
		return err
	}
	_, err := w.out.Write(content)
	return err
}

// send writes a frame.
func (w *wire) send(kind byte, content []byte) error {
	if err := w.put(kind, content); err != nil {
		return err
	}
	return w.out.Flush()
}

// receive reads a frame of at most that many bytes. What it returns is not used again.
func (w *wire) receive(most uint32) (kind byte, content []byte, err error) {
	return readFrame(w.in, most)
}

func readFrame(r io.Reader, most uint32) (kind byte, content []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > most {
		return 0, nil, fmt.Errorf("a frame of %d bytes, where at most %d are allowed", n, most)
	}
	kind, n = head[4], n-1
	if n <= believed {
		content = make([]byte, n)
		_, err = io.ReadFull(r, content)
		return kind, content, err
	}
	var grown bytes.Buffer
	if _, err := io.CopyN(&grown, r, int64(n)); err != nil {
		return 0, nil, err
	}
	return kind, grown.Bytes(), nil
}
