package amqpd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// Options configure a server.
type Options struct {
	Engine *broker.Engine // required; the caller runs and closes it
	// Gate decides which claims a token or a password is good for. nil: everybody may do
	// everything.
	Gate      *sas.Gate
	Namespace string           // as errors call it; "": dlq
	Now       func() time.Time // nil: time.Now
	Limits    Limits           // zero fields: as of DefaultLimits
	// MaxBatchBytes bounds the transfer that carries a batch; 0: as much as the entity takes
	// in one message, and at least 1 MiB.
	MaxBatchBytes int64
	// BatchDeleteMax bounds the messages that one batch delete removes; 0: 4000.
	BatchDeleteMax int
	// CreateOnAttach makes a queue of each address that a link asks for and nobody has, with
	// the properties that Defaults returns; nil: those of the service.
	CreateOnAttach bool
	Defaults       func(broker.Kind) broker.Properties
	Faults         *Faults // nil: none
	// Short reports whether memory runs short. Then nothing more is read from a connection
	// while something that it sent is not stored; those that only receive and settle are served
	// as always. It is asked often. nil: it never does.
	Short func() bool
	Log   func(format string, args ...any) // nil: nowhere
}

// Server answers AMQP connections with one engine. Its methods may be called concurrently.
type Server struct {
	engine         *broker.Engine
	gate           *sas.Gate
	namespace      string
	now            func() time.Time
	limits         Limits
	maxBatch       int64
	batchDeleteMax int
	createOnAttach bool
	defaults       func(broker.Kind) broker.Properties
	faults         *Faults
	short          func() bool
	log            func(format string, args ...any)
	containerID    string

	mu       sync.Mutex
	conns    map[*conn]struct{}
	opening  map[string]int // connections that have not said who they are, by address
	nOpening int
	stopping bool
	gone     sync.WaitGroup // of conns
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{
		engine: o.Engine, gate: o.Gate, namespace: o.Namespace, now: o.Now, limits: o.Limits.orDefaults(),
		maxBatch: o.MaxBatchBytes, batchDeleteMax: o.BatchDeleteMax, createOnAttach: o.CreateOnAttach,
		faults: o.Faults, log: o.Log, containerID: newID(),
		conns: map[*conn]struct{}{}, opening: map[string]int{},
	}
	if s.namespace == "" {
		s.namespace = "dlq"
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.short = o.Short; s.short == nil {
		s.short = func() bool { return false }
	}
	if s.defaults = o.Defaults; s.defaults == nil {
		s.defaults = func(kind broker.Kind) broker.Properties { return broker.Defaults(kind, broker.ServiceBus) }
	}
	if s.batchDeleteMax == 0 {
		s.batchDeleteMax = 4000
	}
	if s.log == nil {
		s.log = func(string, ...any) {}
	}
	return s
}

// errBusy: there are as many connections as the limits allow.
var errBusy = errors.New("too many connections")

// admit counts a connection that has not said who it is.
func (s *Server) admit(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	host, loopback := hostOf(c.nc)
	switch {
	case s.stopping:
		return errors.New("the server is stopping")
	case len(s.conns) >= s.limits.Connections, s.nOpening >= s.limits.Opening, !loopback && s.opening[host] >= s.limits.OpeningPerHost:
		return errBusy
	}
	s.conns[c] = struct{}{}
	s.opening[host]++
	s.nOpening++
	s.gone.Add(1)
	return nil
}

// opened counts a connection as one that has said who it is, or is over.
func (s *Server) opened(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.counted {
		return
	}
	c.counted = true
	host, _ := hostOf(c.nc)
	s.nOpening--
	if s.opening[host]--; s.opening[host] == 0 {
		delete(s.opening, host)
	}
}

func (s *Server) forget(c *conn) {
	s.opened(c)
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.gone.Done()
}

func hostOf(nc net.Conn) (host string, loopback bool) {
	tcp, ok := nc.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return "", true // a pipe, or a socket of this machine
	}
	return tcp.IP.String(), tcp.IP.IsLoopback()
}

// Shutdown lets what has begun come to its end, tells every peer that the connection ends,
// and returns when all have gone, or when ctx ends: then the rest is cut off.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		go c.goAway()
	}
	done := make(chan struct{})
	go func() {
		s.gone.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, c := range all {
		c.abort(errors.New("the server has stopped"))
	}
	<-done
	return fmt.Errorf("connections were cut off: %w", ctx.Err())
}

// newID returns a random id as text.
func newID() string { return message.RandomUUID().String() }

// batchLimit is how many bytes a batch to an entity may have.
func (s *Server) batchLimit(maxMessage int64) int64 {
	if s.maxBatch > 0 {
		return s.maxBatch
	}
	return max(maxMessage, 1<<20)
}

// heldLimit is how many bytes of a connection may wait to be stored before nothing more of it
// is read.
func (s *Server) heldLimit() int64 {
	if s.short() {
		return 0
	}
	return s.limits.Held
}

// uri is how errors name an entity.
func (s *Server) uri(entity string) string { return "sb://" + s.namespace + "/" + entity }

var zeroUUID message.UUID

// unguarded: everybody may do everything.
func (s *Server) unguarded() bool { return s.gate.Open() }
