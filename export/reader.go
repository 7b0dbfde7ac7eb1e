package export

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"dlq/backends/message"
)

// DefaultMaxMessage is the default of [Reader.MaxMessage]: enough for a body of 100 MiB of
// which every byte is escaped.
const DefaultMaxMessage = 1 << 30

// Reader reads messages one by one from NDJSON, a JSON array, or single JSON objects one
// behind the other, indented or not; it finds out which by itself. It holds one message in
// memory, whatever the length of its input. A Reader is not safe for concurrent use.
type Reader struct {
	// MaxMessage is how many bytes the JSON of one message may take. Change it before the
	// first Read.
	MaxMessage int

	src        io.Reader
	buf        []byte
	start, end int // the unread part of buf
	line       int // of buf[start]
	column     int // of buf[start]
	srcErr     error
	err        error // what Read returns from now on
	begun      bool
	array      bool
	count      int
}

// NewReader returns a reader of the messages in src. It reads ahead.
func NewReader(src io.Reader) *Reader {
	return &Reader{MaxMessage: DefaultMaxMessage, src: src, line: 1, column: 1}
}

// Read returns the next message, or io.EOF behind the last. What is wrong with the input is
// a [*SyntaxError] with its line; reading cannot go on after an error, which comes again.
func (r *Reader) Read() (*message.Message, error) {
	if r.err != nil {
		return nil, r.err
	}
	m, err := r.read()
	if err != nil {
		r.err = err
		return nil, err
	}
	r.count++
	return m, nil
}

func (r *Reader) read() (*message.Message, error) {
	if !r.begun {
		if err := r.begin(); err != nil {
			return nil, err
		}
	}
	if err := r.separator(); err != nil {
		return nil, err
	}
	n, err := r.span()
	if err != nil {
		return nil, err
	}
	m, err := ParseJSON(r.buf[r.start : r.start+n])
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		if syntax.Line == 1 {
			syntax.Column += r.column - 1
		}
		syntax.Line += r.line - 1
	}
	r.advance(n)
	return m, err
}

// begin looks at the first bytes: a byte order mark, and the bracket of an array.
func (r *Reader) begin() error {
	r.begun = true
	c, err := r.peek()
	if err == nil && c >= 0xef {
		for r.end-r.start < 3 && r.fill() == nil {
		}
		switch b := r.buf[r.start:r.end]; {
		case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
			r.start += 3
		case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("\xfe\xff")):
			return r.fail("the file is UTF-16; save it as UTF-8")
		}
		c, err = r.peek()
	}
	if err == nil && c == '[' {
		r.array = true
		r.advance(1)
	}
	return err
}

// separator moves to the next message, or returns io.EOF.
func (r *Reader) separator() error {
	c, err := r.peek()
	switch {
	case errors.Is(err, io.EOF) && r.array:
		return r.fail("the array of messages is not closed by ']'; is the file whole?")
	case err != nil:
		return err
	case r.array && c == ']':
		r.advance(1)
		if c, err = r.peek(); err == nil {
			return r.fail("unexpected %q behind the array of messages", c)
		}
		return err
	case r.array && r.count > 0:
		if c != ',' {
			return r.fail("want ',' or ']' behind a message, found %q", c)
		}
		r.advance(1)
		if c, err = r.peek(); errors.Is(err, io.EOF) {
			return r.fail("the array of messages is not closed by ']'; is the file whole?")
		} else if err != nil {
			return err
		}
	}
	if c != '{' {
		return r.fail("want a message, which begins with '{', found %q; the file must be NDJSON or one JSON array", c)
	}
	return nil
}

// span returns the length of the object at start, once all of it is in the buffer. It
// knows only strings and brackets; the parser does the rest.
func (r *Reader) span() (int, error) {
	depth, inText, escaped := 0, false, false
	for n := 0; ; n++ {
		if r.start+n == r.end {
			if err := r.fill(); errors.Is(err, io.EOF) {
				r.advance(n)
				return 0, r.fail("the input ends in the middle of a message; is the file whole?")
			} else if err != nil {
				return 0, err
			}
		}
		if inText && !escaped { // nearly all bytes are inside of texts: pass them by quickly
			rest := r.buf[r.start+n : r.end]
			run := 0
			for run < len(rest) && rest[run] != '"' && rest[run] != '\\' && rest[run] != '\n' {
				run++
			}
			if n += run; run == len(rest) {
				n--
				continue
			}
		}
		c := r.buf[r.start+n]
		switch {
		case escaped:
			escaped = false
		case inText && c == '\\':
			escaped = true
		case inText && c == '\n':
			r.advance(n)
			return 0, r.fail("the line ends in the middle of a text; is the line cut off?")
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return n + 1, nil
			}
		}
	}
}

// peek skips white space and returns the byte there.
func (r *Reader) peek() (byte, error) {
	for {
		for r.start < r.end {
			switch c := r.buf[r.start]; c {
			case ' ', '\t', '\r', '\n':
				r.advance(1)
			default:
				return c, nil
			}
		}
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
}

// advance moves past n bytes of the buffer and counts their lines.
func (r *Reader) advance(n int) {
	b := r.buf[r.start : r.start+n]
	if lines := bytes.Count(b, []byte{'\n'}); lines > 0 {
		r.line += lines
		r.column = len(b) - bytes.LastIndexByte(b, '\n')
	} else {
		r.column += n
	}
	r.start += n
}

// fill reads more bytes behind end, or returns why there are none.
func (r *Reader) fill() error {
	const chunk = 64 << 10
	if r.srcErr != nil {
		return r.srcErr
	}
	if unread := r.end - r.start; unread >= r.MaxMessage {
		return r.fail("the message takes more than %d bytes, which is the limit", r.MaxMessage)
	} else if oversized := len(r.buf) > 16*chunk && unread < chunk; oversized || r.end == len(r.buf) {
		// Room by moving what is unread to the front; by growing if it fills the half. A
		// buffer that one large message has grown is given back.
		buf := r.buf
		if oversized || unread >= len(buf)/2 {
			buf = make([]byte, max(chunk, 2*unread))
		}
		r.end = copy(buf, r.buf[r.start:r.end])
		r.buf, r.start = buf, 0
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.srcErr = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.srcErr = io.ErrNoProgress
	return r.srcErr
}

func (r *Reader) fail(format string, args ...any) error {
	return &SyntaxError{Line: r.line, Column: r.column, Msg: fmt.Sprintf(format, args...)}
}
