package port

import (
	"container/list"
	"net"
	"net/netip"
)

// lobby holds the connections that have not yet said what they speak, the oldest first. When it is
// full the oldest goes: whoever has something to say has said it long before. The server's lock
// guards it.
type lobby struct {
	waiting list.List // of guest
	from    map[netip.Addr]int
}

type guest struct {
	conn *conn
	addr netip.Addr // zero: this machine, of which there may be any number
}

// enter adds a connection, and closes another if there are too many.
func (l *lobby) enter(c *conn, limits Limits) *list.Element {
	g := guest{c, remote(c)}
	switch {
	case g.addr.IsValid() && l.from[g.addr] >= limits.PerAddress:
		for e := l.waiting.Front(); e != nil; e = e.Next() {
			if e.Value.(guest).addr == g.addr {
				l.evict(e)
				break
			}
		}
	case l.waiting.Len() >= limits.Unidentified:
		l.evict(l.waiting.Front())
	}
	if g.addr.IsValid() {
		if l.from == nil {
			l.from = make(map[netip.Addr]int)
		}
		l.from[g.addr]++
	}
	return l.waiting.PushBack(g)
}

// leave removes a connection that has spoken. It reports false if it was closed before.
func (l *lobby) leave(e *list.Element) bool {
	g := e.Value.(guest)
	if g.conn == nil {
		return false
	}
	l.waiting.Remove(e)
	e.Value = guest{}
	if !g.addr.IsValid() {
		return true
	}
	if l.from[g.addr]--; l.from[g.addr] == 0 {
		delete(l.from, g.addr)
	}
	return true
}

// evict closes a connection that has not spoken. Whoever serves it then forgets it.
func (l *lobby) evict(e *list.Element) {
	c := e.Value.(guest).conn
	l.leave(e)
	c.Conn.Close() // it is refused
}

// clear closes all.
func (l *lobby) clear() {
	for l.waiting.Len() > 0 {
		l.evict(l.waiting.Front())
	}
}

// remote returns what stands for the host of a client: its address, or the /64 network that an
// IPv6 host commonly has to itself; zero if it is on this machine or has none.
func remote(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	addr := tcp.AddrPort().Addr().Unmap()
	switch {
	case addr.IsLoopback():
		return netip.Addr{}
	case addr.Is6():
		network, _ := addr.WithZone("").Prefix(64) // fails with more than 128 bits
		return network.Addr()
	}
	return addr
}
