package port

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"
)

const http11 = "http/1.1"

// ErrClosed says that the server was shut down before it was to serve.
var ErrClosed = errors.New("the server is shut down")

// Server answers by the first bytes of a connection. Set its fields before the first Serve and
// not after.
type Server struct {
	AMQP   func(net.Conn) // serves a connection until it ends, plain, over TLS or over WebSocket; nil: there is no AMQP
	HTTP   http.Handler   // serves requests that passed the checks of Host and origin; nil: there is no HTTP
	TLS    *tls.Config    // nil: there is no TLS
	Hosts  []string       // names or addresses allowed in Host, besides localhost and loopback addresses
	Limits Limits
	Log    func(format string, args ...any) // told what an operator would ask about; nil: nobody

	once   sync.Once
	limits Limits
	hosts  map[string]bool
	tls    *tls.Config
	http   *http.Server
	inbox  *inbox // from where http accepts

	mu        sync.Mutex
	closed    bool
	done      chan struct{} // closed with closed
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{} // all that are open
	lobby     lobby              // those not yet identified
	running   sync.WaitGroup     // what serves connections, but for http
}

// Serve accepts connections until [Server.Shutdown] ends it, and then returns nil. It closes l.
// It may be called for several listeners at the same time.
func (s *Server) Serve(l net.Listener) error {
	s.once.Do(s.start)
	defer l.Close() // nothing more is wanted of it
	if !s.listen(l) {
		return ErrClosed
	}
	for pause := time.Duration(0); ; {
		raw, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.admit(raw)
		case s.isClosed():
			return nil
		case !transient(err):
			return fmt.Errorf("accept connections: %w", err)
		default: // it may be long until another connection ends
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.logf("accept connections: %v; again in %v", err, pause)
			select {
			case <-time.After(pause):
			case <-s.done:
			}
		}
	}
}

// transient reports whether accepting can work again.
func transient(err error) bool {
	for _, errno := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func (s *Server) start() {
	s.limits = s.Limits.orDefault()
	s.hosts = make(map[string]bool, len(s.Hosts))
	for _, host := range s.Hosts {
		s.hosts[normalHost(host)] = true
	}
	s.done = make(chan struct{})
	s.listeners = make(map[net.Listener]struct{})
	s.conns = make(map[*conn]struct{})
	if s.TLS != nil {
		s.tls = serverTLS(s.TLS)
	}
	s.inbox = newInbox()
	s.http = s.httpServer()
	go s.http.Serve(s.inbox) //nolint:errcheck // ends when it is shut down, and only then
}

// serverTLS makes clients that offer several protocols take HTTP/1.1 if they can: over HTTP/2 there
// is no WebSocket, and nothing to be gained. Those that do not offer it, which AMQP clients do not,
// are not asked. Which certificate a client gets is still for c to say.
func serverTLS(c *tls.Config) *tls.Config {
	speaking := func(c *tls.Config, protocols ...string) *tls.Config {
		c = c.Clone()
		c.NextProtos = protocols
		c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
		return c
	}
	plain, withHTTP := speaking(c), speaking(c, http11)
	plain.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		var chosen *tls.Config
		if c.GetConfigForClient != nil {
			var err error
			if chosen, err = c.GetConfigForClient(hello); err != nil {
				return nil, err
			}
		}
		offersHTTP := slices.Contains(hello.SupportedProtos, http11)
		switch {
		case chosen != nil && offersHTTP:
			return speaking(chosen, http11), nil
		case chosen != nil:
			return speaking(chosen), nil
		case offersHTTP:
			return withHTTP, nil
		}
		return nil, nil // plain itself
	}
	return plain
}

// listen remembers a listener, so that Shutdown can close it.
func (s *Server) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// admit begins to serve a connection, or closes it.
func (s *Server) admit(raw net.Conn) {
	c := &conn{Conn: raw, server: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= s.limits.Connections {
		raw.Close() // it is refused
		return
	}
	s.conns[c] = struct{}{}
	place := s.lobby.enter(c, s.limits)
	s.running.Go(func() { s.receive(c, place) })
}

// forget is told when a connection is closed.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// receive finds out what a connection speaks, and has it served or closes it.
func (s *Server) receive(c *conn, place *list.Element) {
	spoken, is, err := s.identify(c)
	s.mu.Lock()
	stays := s.lobby.leave(place)
	s.mu.Unlock()
	if stays && err == nil && spoken.SetDeadline(time.Time{}) == nil {
		switch {
		case is == amqpProtocol && s.AMQP != nil:
			s.running.Go(func() { s.serveAMQP(spoken) })
			return
		case is == httpProtocol && s.inbox.put(spoken):
			return
		}
	}
	spoken.Close()
}

// serveAMQP runs the handler. It does so in a goroutine of its own: a TLS handshake or a request
// has made the stack of the one before large, which would stay so for all of an idle connection.
func (s *Server) serveAMQP(c net.Conn) {
	defer c.Close()
	s.AMQP(c)
}

// identify finds out what a connection speaks. The result is the connection in which it does,
// which is c or one inside of it.
func (s *Server) identify(c *conn) (*conn, protocol, error) {
	if err := c.SetDeadline(time.Now().Add(s.limits.Identify)); err != nil {
		return c, unknown, err
	}
	is, err := c.peek()
	if err != nil || is != tlsProtocol {
		return c, is, err
	}
	if s.tls == nil {
		s.logf("%s speaks TLS, which is off here", c.RemoteAddr())
		return c, unknown, nil
	}
	inner := tls.Server(c, s.tls)
	if err := inner.Handshake(); err != nil { //nolint:noctx // the deadline of c bounds it
		if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
			s.logf("TLS handshake with %s: %v; does the client trust the certificate?", c.RemoteAddr(), err)
		}
		return c, unknown, err
	}
	c = &conn{Conn: inner}
	is, err = c.peek() // TLS inside of TLS is served by nobody
	return c, is, err
}

// Shutdown stops accepting, closes what is idle in HTTP or has not said anything, and waits for
// the others: requests that are being answered, and AMQP connections, which end when their handler
// ends them. When ctx ends before them, it closes them and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.once.Do(s.start)
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	for l := range s.listeners {
		l.Close() // nothing more is wanted of it
	}
	clear(s.listeners)
	s.lobby.clear()
	s.mu.Unlock()

	err := s.http.Shutdown(ctx)
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		s.http.Close() // its listener is closed already
		s.closeAll()
	}
	return err
}

func (s *Server) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Conn.Close() // in mid-sentence anyway
	}
	clear(s.conns)
}

// adopt has AMQP served on a connection that HTTP has let go. Shutdown waits for it, or closes it
// if it has begun.
func (s *Server) adopt(c net.Conn) {
	s.mu.Lock()
	open := !s.closed
	if open {
		s.running.Go(func() { s.serveAMQP(c) })
	}
	s.mu.Unlock()
	if !open {
		c.Close()
	}
}

func (s *Server) logf(format string, args ...any) {
	if s.Log != nil {
		s.Log(format, args...)
	}
}
