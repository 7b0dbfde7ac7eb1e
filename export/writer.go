package export

import (
	"errors"
	"fmt"
	"io"

	"dlq/backends/message"
)

// Writer writes messages one by one. It holds no more than the message at hand. A Writer
// is not safe for concurrent use.
type Writer struct {
	w      io.Writer
	format Format
	buf    []byte
	count  int
	err    error // sticks: what follows a failed write would be out of place
	closed bool
}

// flushAt is how many bytes Writer collects before it writes them.
const flushAt = 64 << 10

// NewWriter returns a writer of messages in format f. Nothing is complete before
// [Writer.Close]. NewWriter does not write and does not close w.
func NewWriter(w io.Writer, f Format) *Writer {
	return &Writer{w: w, format: f}
}

// Write writes m. After an error of the underlying writer every call returns that error; a
// message that cannot be written (see [AppendJSON]) leaves the output as it was.
func (w *Writer) Write(m *message.Message) error {
	switch {
	case w.err != nil:
		return w.err
	case w.closed:
		return errors.New("write on a closed export")
	}
	before := len(w.buf)
	if err := w.append(m); err != nil {
		w.buf = w.buf[:before]
		return fmt.Errorf("message %s: %w", nameOf(m), err)
	}
	w.count++
	if len(w.buf) >= flushAt {
		return w.Flush()
	}
	return nil
}

func (w *Writer) append(m *message.Message) (err error) {
	switch w.format {
	case JSON:
		if w.count == 0 {
			w.buf = append(w.buf, '[', '\n')
		} else {
			w.buf = append(w.buf, ',', '\n')
		}
		w.buf, err = AppendJSON(w.buf, m)
	case CSV:
		if w.count == 0 {
			w.buf = appendCSVHeader(w.buf)
		}
		w.buf, err = appendCSV(w.buf, m)
	default:
		if w.buf, err = AppendJSON(w.buf, m); err == nil {
			w.buf = append(w.buf, '\n')
		}
	}
	return err
}

// nameOf says which message an error is about.
func nameOf(m *message.Message) string {
	if n := m.Broker.SequenceNumber; n != 0 {
		return fmt.Sprintf("with sequence number %d", n)
	}
	return fmt.Sprintf("with id %q", message.FormatValue(m.ID))
}

// Flush hands all that was written so far to the underlying writer.
func (w *Writer) Flush() error {
	if w.err != nil || len(w.buf) == 0 {
		return w.err
	}
	n, err := w.w.Write(w.buf)
	if err == nil && n < len(w.buf) {
		err = io.ErrShortWrite
	}
	w.err = err
	w.buf = w.buf[:0]
	if cap(w.buf) > 16*flushAt { // one large message must not stay for the rest
		w.buf = nil
	}
	return err
}

// Close completes the output, also that of no messages at all, and flushes it. It does not
// close the underlying writer. A second Close returns the same error.
func (w *Writer) Close() error {
	if w.closed || w.err != nil {
		return w.err
	}
	w.closed = true
	switch {
	case w.format == JSON && w.count == 0:
		w.buf = append(w.buf, "[]\n"...)
	case w.format == JSON:
		w.buf = append(w.buf, "\n]\n"...)
	case w.format == CSV && w.count == 0:
		w.buf = appendCSVHeader(w.buf)
	}
	return w.Flush()
}

// Count returns how many messages were written.
func (w *Writer) Count() int { return w.count }
