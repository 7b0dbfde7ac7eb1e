package amqpd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// conn is one connection. One goroutine reads its frames and acts on them; others come and
// go: they store what was sent, fetch what is to be delivered, and write. mu guards all
// state of the protocol, of sessions and links too, and is never held while something
// waits for the disk or the peer.
type conn struct {
	srv     *Server
	nc      net.Conn
	counted bool // under srv.mu: no longer as one that has not said who it is

	mu       sync.Mutex
	out      []byte // to be written
	writing  bool   // a goroutine writes
	unsent   int    // bytes that are being written
	fetching int    // bytes that fetches under way may bring, at most
	slow     bool   // more is waiting to be written than the limits allow
	opened   bool
	closing  bool // a close was sent: nothing may follow
	stopping bool // nothing new is begun
	over     bool // the socket is closed
	reason   error
	peerMax  int // bytes in a frame that the peer takes
	peerIdle time.Duration
	lastOut  time.Time
	lastIn   time.Time
	ticker   *time.Timer
	sessions map[uint16]*session // by the peer's channel, which is ours too
	claims   map[claimKey]sas.Claim
	txns     map[string]*transaction
	attached uint64 // links that answer requests, so far
	orphans  []orphan
	waiting  int           // bytes of replies that no link takes yet
	links    int           // in all sessions
	held     int64         // bytes that have arrived and are not stored
	partial  int64         // those of deliveries that are not whole
	room     *sync.Cond    // of mu: held has fallen
	working  int           // pieces of work that a graceful stop waits for
	done     chan struct{} // closed when the socket is
}

// ServeConn answers one connection and returns when it has ended.
func (s *Server) ServeConn(nc net.Conn) {
	c := &conn{srv: s, nc: nc, peerMax: amqp.MinMaxFrameSize, sessions: map[uint16]*session{}, done: make(chan struct{})}
	c.room = sync.NewCond(&c.mu)
	if err := s.admit(c); err != nil {
		if errors.Is(err, errBusy) {
			c.refuse(err)
		}
		_ = nc.Close()
		return
	}
	defer s.forget(c)
	err := c.serve()
	c.abort(err)
	c.cleanUp()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		s.log("connection from %s: %v", nc.RemoteAddr(), err)
	}
}

// refuse tells a peer that there is no place for it.
func (c *conn) refuse(err error) {
	out := []byte(amqp.ProtocolHeader)
	out, _ = amqp.AppendFrame(out, amqp.FrameAMQP, 0, &amqp.Open{ContainerID: c.srv.containerID}, nil)
	out, _ = amqp.AppendFrame(out, amqp.FrameAMQP, 0, &amqp.Close{Error: &amqp.Error{
		Condition: "amqp:resource-limit-exceeded", Description: err.Error(),
	}}, nil)
	_ = c.nc.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.nc.Write(out)
}

// serve reads until the connection ends.
func (c *conn) serve() error {
	_ = c.nc.SetDeadline(time.Now().Add(c.srv.limits.OpenTimeout))
	r := &frameReader{nc: c.nc, limit: amqp.MinMaxFrameSize}
	if err := c.authenticate(r); err != nil {
		return err
	}
	r.limit = 16 << 10 // until it has opened
	for {
		h, body, err := r.next(c.flush)
		if err != nil {
			if errors.Is(err, amqp.ErrFraming) {
				c.fail("amqp:connection:framing-error", err.Error())
			}
			return err
		}
		if h.Type != amqp.FrameAMQP {
			c.fail("amqp:connection:framing-error", "a SASL frame behind the outcome")
			return errors.New("a SASL frame behind the outcome")
		}
		done, err := c.frame(h.Channel, body)
		if done || err != nil {
			return err
		}
		if c.opened {
			r.limit = c.srv.limits.MaxFrameSize
		}
	}
}

// frame acts on one frame. done: the peer has ended the connection.
func (c *conn) frame(channel uint16, body []byte) (done bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastIn = time.Now()
	if len(body) == 0 {
		return false, nil // a sign of life
	}
	p, payload, err := amqp.DecodePerformative(body)
	if err != nil {
		return c.failLocked("amqp:decode-error", err.Error())
	}
	switch p := p.(type) {
	case *amqp.Open:
		return c.onOpen(p)
	case *amqp.Close:
		return c.onClose(p)
	}
	if !c.opened {
		return c.failLocked("amqp:illegal-state", "the first frame has to be an open")
	}
	if c.closing || c.stopping {
		return false, nil // on its way before the peer knew
	}
	if begin, ok := p.(*amqp.Begin); ok {
		return c.onBegin(channel, begin)
	}
	s := c.sessions[channel]
	if s == nil {
		return c.failLocked("amqp:illegal-state", fmt.Sprintf("there is no session on channel %d", channel))
	}
	s.frame(p, payload)
	for c.held-c.partial > c.srv.heldLimit() && !c.over { // storing catches up; what is not whole waits for the peer
		c.flushLocked()
		c.room.Wait()
	}
	for len(c.out) > c.srv.limits.Outgoing && !c.over { // it is to read before it may say more
		c.flushLocked()
		c.room.Wait()
	}
	return false, nil
}

func (c *conn) onOpen(o *amqp.Open) (bool, error) {
	if c.opened {
		return c.failLocked("amqp:illegal-state", "a second open")
	}
	c.opened = true
	c.srv.opened(c)
	_ = c.nc.SetDeadline(time.Time{})
	limits := c.srv.limits
	c.peerMax = int(min(o.MaxFrameSize.Or(1<<32-1), limits.MaxFrameSize))
	if c.peerMax < amqp.MinMaxFrameSize {
		return c.failLocked("amqp:invalid-field", "max-frame-size is below 512")
	}
	c.peerIdle = time.Duration(o.IdleTimeout.Value) * time.Millisecond
	c.send(0, &amqp.Open{
		ContainerID: c.srv.containerID, Hostname: o.Hostname,
		MaxFrameSize: amqp.Some(limits.MaxFrameSize), ChannelMax: amqp.Some(uint16(min(limits.Sessions-1, 65535))),
		IdleTimeout: amqp.Some(uint32(limits.IdleTimeout.Milliseconds() / 2)),
		Properties: message.Map{
			{Key: message.Symbol("product"), Value: message.String("dlq")},
		},
	}, nil)
	c.lastOut = time.Now()
	c.tickLater()
	return false, nil
}

func (c *conn) onClose(*amqp.Close) (bool, error) {
	if !c.closing {
		c.closing = true
		c.append(0, &amqp.Close{}, nil)
		c.flushLocked()
	}
	c.waitWritten()
	return true, nil
}

// waitWritten waits until everything is written, or cannot be.
func (c *conn) waitWritten() {
	for c.writing && !c.over {
		c.room.Wait()
	}
}

// fail ends the connection for an error.
func (c *conn) fail(condition message.Symbol, description string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.failLocked(condition, description)
}

func (c *conn) failLocked(condition message.Symbol, description string) (bool, error) {
	c.hangUp(condition, description)
	c.waitWritten()
	return true, fmt.Errorf("%s: %s", condition, description)
}

// hangUp tells the peer why the connection ends. Whoever reads notices by the peer's close, or
// by the end of the socket. The caller holds the lock.
func (c *conn) hangUp(condition message.Symbol, description string) {
	if c.closing {
		return
	}
	if !c.opened { // a close needs an open before it
		c.append(0, &amqp.Open{ContainerID: c.srv.containerID}, nil)
	}
	c.append(0, &amqp.Close{Error: &amqp.Error{Condition: condition, Description: description}}, nil)
	c.closing = true
	c.flushLocked()
	time.AfterFunc(c.srv.limits.WriteTimeout, func() { c.abort(errors.New(description)) })
}

// unsure ends the connection if nobody knows whether what the peer asked for took effect: it
// must not be told an outcome. It is called without the lock.
func (c *conn) unsure(err error) bool {
	if !errors.Is(err, broker.ErrUncertain) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hangUp("amqp:internal-error", err.Error())
	return true
}

// goAway ends the connection because the server stops: what was taken is stored and
// answered before.
func (c *conn) goAway() {
	late := false
	timer := time.AfterFunc(c.srv.limits.WriteTimeout, func() {
		c.mu.Lock()
		late = true
		c.mu.Unlock()
		c.room.Broadcast()
	})
	defer timer.Stop()
	c.mu.Lock()
	c.stopping = true
	for c.working > 0 && !late {
		c.room.Wait()
	}
	c.hangUp("amqp:connection:forced", "the server is stopping")
	c.mu.Unlock()
	// The peer answers with a close of its own, which ends serve; one that does not is cut.
	time.AfterFunc(time.Second, func() { c.abort(errors.New("the server has stopped")) })
}

// send appends a frame unless the connection is closing. Encoding fails for no value that
// the server makes; one that came from a peer was decoded within the same bounds.
func (c *conn) send(channel uint16, p amqp.Performative, payload []byte) {
	if !c.closing && !c.over {
		c.append(channel, p, payload)
	}
}

func (c *conn) append(channel uint16, p amqp.Performative, payload []byte) {
	if c.out == nil {
		c.out = getBuffer()
	}
	out, err := amqp.AppendFrame(c.out, amqp.FrameAMQP, channel, p, payload)
	if err != nil {
		c.srv.log("encode %T: %v", p, err)
	}
	c.out = out
}

func (c *conn) flush() {
	c.mu.Lock()
	c.flushLocked()
	c.mu.Unlock()
}

// flushLocked has everything written that was sent.
func (c *conn) flushLocked() {
	if len(c.out) > 0 && !c.writing && !c.over {
		c.writing = true
		go c.write()
	}
}

// write writes until nothing is left.
func (c *conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out) > 0 && !c.over {
		out := c.out
		c.out, c.unsent = nil, len(out)
		c.room.Broadcast()
		c.mu.Unlock()
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.srv.limits.WriteTimeout))
		_, err := c.nc.Write(out)
		putBuffer(out)
		c.mu.Lock()
		c.lastOut, c.unsent = time.Now(), 0
		if err != nil {
			c.abortLocked(fmt.Errorf("write: %w", err))
		}
	}
	c.writing = false
	c.room.Broadcast()
	c.goOn()
}

// goOn has the links look again that waited for others to be written.
func (c *conn) goOn() {
	if c.slow {
		c.slow = false
		for _, s := range c.sessions {
			s.resume()
		}
	}
}

// abort closes the socket. What goes on for the connection notices.
func (c *conn) abort(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abortLocked(reason)
}

func (c *conn) abortLocked(reason error) {
	if c.over {
		return
	}
	c.over, c.reason = true, reason
	_ = c.nc.Close()
	close(c.done)
	c.room.Broadcast()
}

// cleanUp lets go of what the connection held: sessions, waits, transactions.
func (c *conn) cleanUp() {
	c.mu.Lock()
	if c.ticker != nil {
		c.ticker.Stop()
	}
	for _, s := range c.sessions {
		s.leave()
	}
	clear(c.sessions)
	c.txns, c.orphans, c.out = nil, nil, nil
	for c.working > 0 {
		c.room.Wait()
	}
	c.mu.Unlock()
}

// begin counts a piece of work that a graceful stop waits for, and runs it. The caller
// holds mu.
func (c *conn) begin(f func()) {
	c.working++
	go func() {
		f()
		c.mu.Lock()
		c.working--
		c.mu.Unlock()
		c.room.Broadcast()
	}()
}

// tickLater sets the timer for the next look at the connection.
func (c *conn) tickLater() {
	every := c.srv.limits.IdleTimeout / 4
	if c.peerIdle > 0 {
		every = min(every, max(c.peerIdle/4, 10*time.Millisecond))
	}
	if c.srv.gate != nil {
		every = min(every, 15*time.Second) // tokens expire
	}
	c.ticker = time.AfterFunc(every, c.tick)
}

// tick shows the peer that the connection lives, ends one that is dead, and detaches the
// links whose token has expired.
func (c *conn) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	now := time.Now()
	if now.Sub(c.lastIn) > c.srv.limits.IdleTimeout {
		c.closing = true
		c.abortLocked(fmt.Errorf("nothing came for %v", now.Sub(c.lastIn).Round(time.Second)))
		return
	}
	if c.peerIdle > 0 && now.Sub(c.lastOut) >= c.peerIdle/4 && len(c.out) == 0 && !c.closing {
		c.out = amqp.AppendEmptyFrame(getBuffer())
		c.flushLocked()
	}
	c.checkClaims()
	c.tickLater()
}

// bufferSize is how much is written at once, about.
const bufferSize = 64 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// getBuffer returns an empty buffer to append to.
func getBuffer() []byte { return buffers.Get().(*[bufferSize]byte)[:0] }

func putBuffer(b []byte) {
	if cap(b) == bufferSize {
		buffers.Put((*[bufferSize]byte)(b[:bufferSize]))
	}
}
