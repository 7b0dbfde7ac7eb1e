package amqpd

import (
	"errors"
	"fmt"
	"io"
	"net"

	"dlq/backends/amqp"
)

// frameReader cuts a connection into frames. A connection over which little comes costs two
// kilobytes; while more comes, a pooled buffer is borrowed.
type frameReader struct {
	nc    net.Conn
	limit uint32 // bytes of a frame
	small [2048]byte
	buf   []byte // small or borrowed
	r, w  int    // unread bytes are buf[r:w]
}

// next returns the next frame. Its body is good until the call after. idle is called before
// it waits for the peer.
func (r *frameReader) next(idle func()) (amqp.FrameHeader, []byte, error) {
	if err := r.fill(amqp.FrameHeaderSize, idle); err != nil {
		return amqp.FrameHeader{}, nil, err
	}
	h, err := amqp.ParseFrameHeader(r.buf[r.r:], r.limit)
	if err != nil {
		return h, nil, err
	}
	if err := r.fill(int(h.Size), idle); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return h, nil, err
	}
	frame := r.buf[r.r : r.r+int(h.Size)]
	r.r += int(h.Size)
	return h, frame[h.Offset:], nil
}

// take returns the next n bytes.
func (r *frameReader) take(n int) ([]byte, error) {
	if err := r.fill(n, func() {}); err != nil {
		return nil, err
	}
	r.r += n
	return r.buf[r.r-n : r.r], nil
}

// fill reads until n bytes are there.
func (r *frameReader) fill(n int, idle func()) error {
	if r.buf == nil {
		r.buf = r.small[:]
	}
	if r.w-r.r >= n {
		return nil
	}
	idle()
	r.makeRoom(n)
	for r.w-r.r < n {
		got, err := r.nc.Read(r.buf[r.w:])
		r.w += got
		if err != nil && r.w-r.r < n {
			return err
		}
	}
	return nil
}

// makeRoom moves the unread bytes to the front of a buffer that n bytes fit into.
func (r *frameReader) makeRoom(n int) {
	unread := r.buf[r.r:r.w]
	switch {
	case n > bufferSize: // only with a frame size above the usual
		r.swap(make([]byte, n), unread)
	case len(r.buf) < bufferSize && (n > len(r.buf) || r.w == len(r.buf)): // more is coming
		r.swap(getBuffer()[:bufferSize], unread)
	case len(r.buf) >= bufferSize && len(unread) == 0 && r.w < len(r.buf)/2: // less is coming
		r.swap(r.small[:], nil)
	default:
		copy(r.buf, unread)
		r.w, r.r = len(unread), 0
	}
}

func (r *frameReader) swap(to, unread []byte) {
	old := r.buf
	r.w, r.r = copy(to, unread), 0
	r.buf = to
	if len(old) == bufferSize {
		putBuffer(old[:0])
	}
}

// header reads a protocol header.
func (r *frameReader) header() (string, error) {
	b, err := r.take(len(amqp.ProtocolHeader))
	if err != nil {
		return "", fmt.Errorf("read the protocol header: %w", err)
	}
	return string(b), nil
}
