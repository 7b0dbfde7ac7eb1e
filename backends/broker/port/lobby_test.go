package port

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSilentAndSlowConnectionsAreClosed(t *testing.T) {
	const wait = 50 * time.Millisecond
	f := start(t, func(s *Server) { s.Limits = Limits{Identify: wait, ReadHeader: wait, Read: 2 * wait} })
	for name, said := range map[string]string{
		"nothing":                     "",
		"half of a magic":             "AM",
		"half of a TLS record":        "\x16\x03\x01",
		"half of a header":            "GET / HTTP/1.1\r\nHost: loc",
		"half of a body":              "PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx",
		"half of a header of sockets": "GET /$servicebus/websocket HTTP/1.1\r\nUpgrade: websocket\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			began, c := time.Now(), f.dial(t, false)
			io.WriteString(c, said) //nolint:errcheck // the read fails then
			b, err := io.ReadAll(c)
			late := errors.Is(err, syscall.ECONNRESET) // it was closed before this was said
			if took := time.Since(began); err != nil && !late || took < wait/2 || strings.Contains(string(b), "<nil>") {
				t.Errorf("closed after %v: %q, %v", took, b, err)
			}
		})
	}
}

// A connection that says nothing within TLS is closed. How long the handshake takes depends on
// the machine, so it gets more time until it succeeds.
func TestSilentConnectionsWithinTLSAreClosed(t *testing.T) {
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		f := start(t, func(s *Server) { s.Limits = Limits{Identify: wait} })
		c := f.dial(t, true)
		err := c.(interface{ Handshake() error }).Handshake()
		if err == nil {
			closed(t, c)
			return
		}
		if wait > patience {
			t.Fatal(err)
		}
	}
}

// A byte now and then does not prolong the time: slowloris.
func TestSlowlorisIsClosed(t *testing.T) {
	f := start(t, func(s *Server) { s.Limits = Limits{Identify: 40 * time.Millisecond, ReadHeader: 40 * time.Millisecond} })
	began, c := time.Now(), f.dial(t, false)
	for _, b := range []byte("GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X: y\r\n", 10_000)) {
		if _, err := c.Write([]byte{b}); err != nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("it was heard for %v", took)
	}
}

// Many silent connections do not keep out one that speaks, and those that spoke stay.
func TestTheOldestSilentConnectionGoesFirst(t *testing.T) {
	f := start(t, func(s *Server) { s.Limits = Limits{Unidentified: 3} })
	spoken := f.dial(t, false)
	echoes(t, spoken)
	var silent []net.Conn
	for range 5 {
		silent = append(silent, f.dial(t, false))
		want := min(len(silent), 3)
		await(t, "the connection to be admitted", func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.lobby.waiting.Len() == want && len(f.conns) >= want
		})
	}
	closed(t, silent[0])
	closed(t, silent[1])
	echoes(t, f.dial(t, false))
	closed(t, silent[2])
	echoes(t, silent[3])
	echoes(t, silent[4])
	echoes(t, spoken)
}

func TestAllConnectionsAreCounted(t *testing.T) {
	f := start(t, func(s *Server) { s.Limits = Limits{Connections: 2} })
	first, second := f.dial(t, false), f.dial(t, true)
	echoes(t, first)
	echoes(t, second)
	closed(t, f.dial(t, false))
	first.Close()
	await(t, "the first to be forgotten", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.conns) == 1
	})
	echoes(t, f.dial(t, false))
}

// A remoteConn comes from where it says.
type remoteConn struct {
	net.Conn
	addr   string
	closed bool
}

func (c *remoteConn) Close() error { c.closed = true; return nil }
func (c *remoteConn) RemoteAddr() net.Addr {
	addr, err := net.ResolveTCPAddr("tcp", c.addr)
	if err != nil {
		panic(err)
	}
	return addr
}

func TestOneHostMayNotFillTheLobby(t *testing.T) {
	var l lobby
	limits := Limits{Unidentified: 100, PerAddress: 2}
	enter := func(addr string) *remoteConn {
		c := &remoteConn{addr: addr}
		l.enter(&conn{Conn: c}, limits)
		return c
	}
	first, other := enter("192.0.2.1:1"), enter("192.0.2.2:1")
	second, third := enter("[::ffff:192.0.2.1]:2"), enter("192.0.2.1:3")
	if !first.closed || other.closed || second.closed || third.closed {
		t.Error("of three connections of one address, not the oldest was closed")
	}
	six := []*remoteConn{enter("[2001:db8::1]:1"), enter("[2001:db8::2]:1"), enter("[2001:db8:0:1::1]:1"), enter("[2001:db8::3]:1")}
	if !six[0].closed || six[1].closed || six[2].closed || six[3].closed {
		t.Error("the addresses of one IPv6 network are not counted as one")
	}
	for range 10 {
		if c := enter("127.0.0.1:1"); c.closed {
			t.Error("this machine is limited like others")
		}
	}
	for l.waiting.Len() > 0 {
		if e := l.waiting.Front(); !l.leave(e) || l.leave(e) {
			t.Fatal("a connection does not leave once")
		}
	}
	if len(l.from) != 0 {
		t.Errorf("left over: %v", l.from)
	}
}
