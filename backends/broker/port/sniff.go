package port

import (
	"errors"
	"net"
)

// protocol is what a client speaks.
type protocol uint8

const (
	undecided protocol = iota // more bytes are needed
	unknown
	amqpProtocol
	httpProtocol
	tlsProtocol
)

const (
	amqpMagic          = "AMQP"
	tlsHandshakeRecord = 0x16
)

// sniff tells the protocol from the first bytes of a connection. Four are always enough.
func sniff(b []byte) protocol {
	switch {
	case len(b) == 0:
		return undecided
	case b[0] == tlsHandshakeRecord:
		return tlsProtocol
	case b[0] < 'A' || b[0] > 'Z': // of all methods known to HTTP none begins otherwise
		return unknown
	case len(b) >= len(amqpMagic):
		if string(b[:len(amqpMagic)]) == amqpMagic {
			return amqpProtocol
		}
	case string(b) == amqpMagic[:len(b)]:
		return undecided
	}
	return httpProtocol
}

// conn is a connection whose first bytes were looked at, and are read again. It is small, because
// there is one for each idle client.
type conn struct {
	net.Conn
	server      *Server // to tell that it is closed; nil for a connection inside of another
	head        [len(amqpMagic)]byte
	have, given uint8 // how many bytes of head there are, and were read
}

// Read reads what was looked at, then on from the connection.
func (c *conn) Read(b []byte) (int, error) {
	if c.given == c.have {
		return c.Conn.Read(b)
	}
	n := copy(b, c.head[c.given:c.have])
	c.given += uint8(n)
	return n, nil
}

// Close closes the connection. It may be called more than once.
func (c *conn) Close() error {
	if c.server != nil {
		c.server.forget(c)
	}
	return c.Conn.Close()
}

// CloseWrite tells the client that nothing more comes, if the connection below can. HTTP does so
// before it closes a connection with bytes unread, so that its answer is not lost with them.
func (c *conn) CloseWrite() error {
	if below, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return below.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Unwrap returns the connection below as soon as the bytes that were looked at have been read,
// and c itself until then. What is below knows more than c, such as how to write several buffers
// at once.
func (c *conn) Unwrap() net.Conn {
	if c.given < c.have {
		return c
	}
	return c.Conn
}

// peek waits for the bytes that tell the protocol.
func (c *conn) peek() (protocol, error) {
	for {
		if p := sniff(c.head[:c.have]); p != undecided {
			return p, nil
		}
		n, err := c.Conn.Read(c.head[c.have:])
		c.have += uint8(n)
		if n == 0 && err != nil {
			return unknown, err
		}
	}
}
