package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"dlq/backends"
)

const (
	dialWait = time.Second // for an owner to take a connection and to say hello
	maxIdle  = 16          // connections kept for later calls
)

// client is the broker of another process, which owns the directory.
type client struct {
	path  string // of the socket
	owner owner

	mu     sync.Mutex
	idle   []*wire
	open   map[*wire]struct{} // all connections, the idle ones too
	leases map[*remoteLease]struct{}
	gone   bool // the owner is; nothing can be done through it any more
	closed bool
}

// ownerGone is wrapped by the error of a call that the owner did not begin: it can be made
// again, elsewhere.
type ownerGone struct{ owner owner }

func (e *ownerGone) Error() string {
	return fmt.Sprintf("%v, through which this went, has ended; nothing was done", e.owner)
}

// dial reaches the owner of dir. joined is nil if none answers; an error means that one does
// but cannot be worked with.
func dial(ctx context.Context, dir string) (joined *client, err error) {
	by, err := readOwner(dir)
	if err != nil || by.Socket == "" {
		return nil, nil // it does not stay, or has still to begin
	}
	c := &client{path: by.Socket, open: map[*wire]struct{}{}, leases: map[*remoteLease]struct{}{}}
	w, theirs, err := c.dial(ctx)
	if err != nil {
		return nil, nil
	}
	if theirs.Magic != magic || theirs.Protocol != protocolVersion {
		_ = w.Close()
		return nil, openError(backends.Locked, fmt.Errorf(
			"%s is in use by %v, a dlq of another version (%q, this is %q); end it, or use the same",
			dir, theirs.Owner, theirs.Build, build()))
	}
	c.owner = theirs.Owner
	c.open[w] = struct{}{}
	c.idle = append(c.idle, w)
	return c, nil
}

// errNoAnswer is of an owner that is there and does not answer. It may have been stopped.
var errNoAnswer = errors.New("it does not answer")

// dial makes a connection and exchanges hellos on it.
func (c *client) dial(ctx context.Context) (*wire, hello, error) {
	// A deadline would end the dialing a moment before ctx says that it is over.
	dialing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	defer time.AfterFunc(dialWait, cancel).Stop()
	var d net.Dialer
	conn, err := d.DialContext(dialing, "unix", c.path)
	var theirs hello
	if err == nil {
		w := newWire(conn)
		if theirs, err = greet(dialing, w); err == nil {
			return w, theirs, nil
		}
		_ = conn.Close()
	}
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case dialing.Err() != nil:
		err = errNoAnswer
	}
	return nil, theirs, err
}

func greet(ctx context.Context, w *wire) (theirs hello, err error) {
	stop := context.AfterFunc(ctx, func() { _ = w.SetDeadline(time.Now()) })
	defer stop()
	ours, err := encode(&hello{Magic: magic, Protocol: protocolVersion, Build: build()})
	if err != nil {
		return theirs, err
	}
	if err := w.send(helloFrame, ours); err != nil {
		return theirs, err
	}
	kind, frame, err := w.receive(maxHello)
	if err != nil {
		return theirs, err
	}
	if kind != helloFrame {
		return theirs, errors.New("no hello")
	}
	err = decode(frame, &theirs)
	if err == nil && !stop() {
		err = ctx.Err() // the deadline may come any moment
	}
	return theirs, err
}

// take returns a connection that nobody uses.
func (c *client) take(ctx context.Context) (*wire, error) {
	c.mu.Lock()
	if c.gone || c.closed {
		c.mu.Unlock()
		return nil, &ownerGone{c.owner}
	}
	if n := len(c.idle); n > 0 {
		w := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return w, nil
	}
	c.mu.Unlock()
	w, theirs, err := c.dial(ctx)
	if err == nil && theirs.Owner != c.owner {
		err = errors.Join(errors.New("another owner listens there"), w.Close())
	}
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, errNoAnswer):
		return nil, err
	default:
		return nil, &ownerGone{c.owner}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.Join(&ownerGone{c.owner}, w.Close())
	}
	c.open[w] = struct{}{}
	return w, nil
}

// put gives a connection back.
func (c *client) put(w *wire) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.gone || len(c.idle) >= maxIdle {
		delete(c.open, w)
		_ = w.Close()
		return
	}
	c.idle = append(c.idle, w)
}

// drop ends a connection, and with it the call and the lease that it carries.
func (c *client) drop(w *wire) {
	_ = w.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, w)
}

func (c *client) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
}

func (c *client) isGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// ask makes a call with one answer.
func (c *client) ask(ctx context.Context, req *request) (reply, error) {
	w, last, err := c.stream(ctx, req, func(reply) bool { return true })
	if w != nil {
		c.put(w)
	}
	return last, err
}

// stream makes a call, shows each part of its answer, and returns the last one. The connection
// that it returns is the caller's, to keep or to put back; there is none after an error of
// the connection, nor when each has had enough, which cancels the call.
func (c *client) stream(ctx context.Context, req *request, each func(reply) bool) (*wire, reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, reply{}, err
	}
	frame, err := encode(req)
	if err == nil && len(frame) >= maxFrame {
		err = fmt.Errorf("%d bytes are too many for one call", len(frame))
	}
	if err != nil {
		return nil, reply{}, failed(req, backends.TooLarge, err)
	}
	w, err := c.take(ctx)
	if err != nil {
		return nil, reply{}, c.failure(ctx, req, false, err)
	}
	return c.exchange(ctx, w, req, frame, each)
}

// exchange is stream on a given connection.
func (c *client) exchange(ctx context.Context, w *wire, req *request, frame []byte, each func(reply) bool) (*wire, reply, error) {
	stop := context.AfterFunc(ctx, func() { _ = w.SetDeadline(time.Now()) })
	defer stop()
	if err := w.send(requestFrame, frame); err != nil {
		c.drop(w)
		return nil, reply{}, c.failure(ctx, req, false, err)
	}
	for {
		r, begun, err := read(w)
		if err != nil {
			c.drop(w)
			return nil, reply{}, c.failure(ctx, req, begun, err)
		}
		if !r.More {
			if !stop() {
				c.drop(w) // its deadline may come any moment
				return nil, r, c.told(req, r.Err)
			}
			return w, r, c.told(req, r.Err)
		}
		if !each(r) {
			c.drop(w)
			return nil, reply{}, nil
		}
	}
}

// read reads a reply. begun is false if the owner says goodbye instead: then it has not looked at
// the request.
func read(w *wire) (r reply, begun bool, err error) {
	kind, frame, err := w.receive(maxFrame)
	switch {
	case err != nil:
		return r, true, err
	case kind == goodbyeFrame:
		return r, false, errors.New("the owner says goodbye")
	case kind != replyFrame:
		return r, true, fmt.Errorf("a frame of kind %d, where a reply is due", kind)
	}
	return r, true, decode(frame, &r)
}

// failure is what a call says whose connection failed. A change that may have been made is of
// unknown outcome; the others can be made again.
func (c *client) failure(ctx context.Context, req *request, begun bool, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errNoAnswer) {
		return failed(req, backends.Unavailable, fmt.Errorf("%v, through which this goes: %w", c.owner, err))
	}
	c.lose()
	_, changes := req.Op.about()
	switch {
	case !begun:
		return failed(req, backends.Unavailable, &ownerGone{c.owner})
	case changes:
		return failed(req, backends.Unknown, fmt.Errorf("%v, through which this went, has ended before it answered (%w); look what became of it before you do it again", c.owner, err))
	}
	return failed(req, backends.Unavailable, fmt.Errorf("%v, through which this went, has ended before it answered (%w)", c.owner, err))
}

// told is what the owner said, but for a call that it canceled because it stops.
func (c *client) told(req *request, err error) error {
	if !errors.Is(err, errStopping) {
		return err
	}
	code := backends.Unavailable
	if _, changes := req.Op.about(); changes {
		code = backends.Unknown
	}
	return failed(req, code, fmt.Errorf("%v, through which this went: %w", c.owner, err))
}

func failed(req *request, code backends.Code, err error) error {
	name, _ := req.Op.about()
	return &backends.Error{Op: name, Entity: req.Entity, Code: code, Err: err}
}

// Close releases the leases and ends all calls.
func (c *client) Close() error {
	c.mu.Lock()
	leases := make([]*remoteLease, 0, len(c.leases))
	for l := range c.leases {
		leases = append(leases, l)
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), releaseWait)
	defer cancel()
	for _, l := range leases {
		_ = l.release(ctx) // what it cannot do, the end of the connection does
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for w := range c.open {
		_ = w.Close()
	}
	c.idle = nil
	return nil
}
