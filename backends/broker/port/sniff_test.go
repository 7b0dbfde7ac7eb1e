package port

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/iotest"
)

func TestSniff(t *testing.T) {
	for first, want := range map[string]protocol{
		"": undecided, "A": undecided, "AM": undecided, "AMQ": undecided, "AMQP": amqpProtocol, amqpHeader: amqpProtocol,
		"AMQX": httpProtocol, "ACL ": httpProtocol, "G": httpProtocol, "PUT /": httpProtocol, "\x16": tlsProtocol, "\x16\x03": tlsProtocol,
		"\x00": unknown, "g": unknown, "\r\n": unknown, "\x15\x03": unknown, "\x80": unknown,
	} {
		if got := sniff([]byte(first)); got != want {
			t.Errorf("sniff(%q) = %d, want %d", first, got, want)
		}
	}
}

// FuzzSniff checks that what was decided stays so with more bytes, that four bytes decide, and
// that all bytes are read afterwards as they came, in whatever portions.
func FuzzSniff(f *testing.F) {
	for _, seed := range []string{"", "A", "AMQ", amqpHeader, "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), 64)] // four decide
		decision := undecided
		for i := range min(len(b), 8) + 1 {
			now := sniff(b[:i])
			if decision != undecided && now != decision {
				t.Fatalf("%q is %d, and %q is %d", b[:i-1], decision, b[:i], now)
			}
			if decision = now; i >= 4 && now == undecided {
				t.Fatalf("%q decides nothing", b[:i])
			}
		}
		for _, r := range []io.Reader{bytes.NewReader(b), iotest.OneByteReader(bytes.NewReader(b)), iotest.DataErrReader(bytes.NewReader(b))} {
			c := &conn{Conn: readConn{Reader: r}}
			is, err := c.peek()
			if (err == nil && is != decision) || (err != nil && decision != undecided) {
				t.Fatalf("peek = %d, %v, want %d", is, err, decision)
			}
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, b) {
				t.Fatalf("read %q, %v, want %q", got, err, b)
			}
		}
	})
}

type readConn struct {
	net.Conn
	io.Reader
}

func (c readConn) Read(b []byte) (int, error) { return c.Reader.Read(b) }
