package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"dlq/backends"
)

const (
	maxConnections = 1024            // more are told to come back later
	greetWait      = 5 * time.Second // for the first frame of a connection
	stopWait       = 2 * time.Second // for the last answers when the owner stops
)

// server lets other processes work with a broker that this one owns.
type server struct {
	b      everything
	l      net.Listener
	remove func() error
	self   owner
	ctx    context.Context // of all calls; done when the owner stops
	stop   context.CancelFunc
	all    sync.WaitGroup

	mu        sync.Mutex
	conns     map[*session]struct{}
	leases    map[uint64]*served
	lastLease uint64
}

// serve begins to listen for others.
func serve(b everything, l net.Listener, remove func() error, self owner) *server {
	const clipped = 1 << 10 // a command line may hold a whole message
	self.Command = self.Command[:min(len(self.Command), clipped)]
	s := &server{b: b, l: l, remove: remove, self: self, conns: map[*session]struct{}{}, leases: map[uint64]*served{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.all.Go(s.accept)
	return s
}

func (s *server) accept() {
	for {
		c, err := s.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			select {
			case <-s.ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		s.begin(c)
	}
}

// begin serves a connection, unless the owner stops already.
func (s *server) begin(c net.Conn) {
	n := &session{server: s, wire: newWire(c), held: map[uint64]struct{}{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || len(s.conns) >= maxConnections || !sameUser(c) {
		_ = c.Close()
		return
	}
	s.conns[n] = struct{}{}
	s.all.Go(func() {
		n.run()
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, n)
		s.mu.Unlock()
	})
}

// close ends all calls, with an answer where the other side reads it, and lets go of all
// leases. It takes a few seconds at most.
func (s *server) close() error {
	err := s.l.Close()
	s.mu.Lock()
	s.stop()
	for n := range s.conns {
		// Who waits for a request stops waiting. Answers are still written.
		_ = n.SetReadDeadline(time.Now())
		_ = n.SetWriteDeadline(time.Now().Add(stopWait))
	}
	s.mu.Unlock()
	s.all.Wait()
	return errors.Join(err, s.remove())
}

// session is one connection, at the owner.
type session struct {
	*server
	*wire
	held map[uint64]struct{} // the leases that end with the connection
}

func (n *session) run() {
	defer n.letGo()
	if err := n.greet(); err != nil {
		return
	}
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	requests := make(chan []byte)
	go func() {
		defer close(requests)
		for {
			kind, frame, err := n.receive(maxFrame)
			if err == nil && kind != requestFrame {
				err = fmt.Errorf("a frame of kind %d, where a request is due", kind)
			}
			if err != nil {
				if n.ctx.Err() == nil { // the client has gone, and with it who wants an answer
					cancel()
				}
				return
			}
			select {
			case requests <- frame:
			case <-ctx.Done():
				return
			}
		}
	}()
	for frame := range requests {
		if n.ctx.Err() != nil {
			break
		}
		if err := n.answer(ctx, frame); err != nil {
			return
		}
	}
	if n.ctx.Err() != nil {
		_ = n.wire.send(goodbyeFrame, nil)
	}
}

// greet exchanges hellos. A client of another version is told so, by the owner's hello.
func (n *session) greet() error {
	if err := n.SetReadDeadline(time.Now().Add(greetWait)); err != nil {
		return err
	}
	kind, frame, err := n.receive(maxHello)
	if err != nil {
		return err
	}
	var theirs hello
	if kind != helloFrame || decode(frame, &theirs) != nil || theirs.Magic != magic {
		return errors.New("no hello")
	}
	ours, err := encode(&hello{magic, protocolVersion, build(), n.self})
	if err != nil {
		return err
	}
	if err := n.wire.send(helloFrame, ours); err != nil {
		return err
	}
	if theirs.Protocol != protocolVersion {
		return errors.New("another version")
	}
	n.mu.Lock() // or it would undo the deadline by which the owner stops
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return nil
	}
	return n.SetReadDeadline(time.Time{})
}

// build says which dlq this is, for messages about versions.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(info.Main.Version, "unknown")
}

// letGo releases the leases that end with the connection.
func (n *session) letGo() {
	for id := range n.held {
		_ = n.release(id) // a lock that cannot be released ends by itself
	}
}

// release ends a lease. One that has ended before is no error.
func (n *session) release(id uint64) error {
	n.mu.Lock()
	l := n.leases[id]
	delete(n.leases, id)
	n.mu.Unlock()
	delete(n.held, id)
	if l == nil {
		return nil
	}
	return l.Release(context.Background())
}

// keep makes a lease known to all connections, and lets it end with this one.
func (n *session) keep(l backends.Lease) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lastLease++
	n.leases[n.lastLease] = &served{Lease: l}
	n.held[n.lastLease] = struct{}{}
	return n.lastLease
}

func (n *session) leased(id uint64) (*served, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l, ok := n.leases[id]
	return l, ok
}
