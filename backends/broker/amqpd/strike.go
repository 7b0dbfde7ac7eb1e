package amqpd

import (
	"errors"
	"time"

	"dlq/backends/broker"
)

// The errors of faults that were asked for.
var (
	errThrottled = errors.New("the fault option throttles this")
	errInjected  = errors.New("the fault option fails this")
	errForced    = errors.New("the fault option detaches this")
)

// strike lets happen what the fault option has in mind for an operation on a link, and
// returns the error that takes its place; nil: it goes on as always. The caller does not
// hold the lock.
func (e *end) strike(op Op) error {
	c := e.s.c
	f, struck := c.srv.faults.Next(op, path(e.addr))
	if !struck {
		return nil
	}
	if f.Delay > 0 {
		c.pause(f.Delay)
	}
	switch f.Kind {
	case FaultThrottle:
		return errThrottled
	case FaultError:
		return errInjected
	case FaultLockLost:
		return broker.ErrLockLost
	case FaultDisconnect:
		c.abort(errInjected)
		return errInjected
	case FaultDetach:
		if op == OpAttach { // there is nothing yet to detach
			return errForced
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		f := c.srv.failed(errForced, path(e.addr))
		if op != OpSettle {
			e.detach(f)
			c.flushLocked()
			return errForced
		}
		// The end of the link waits for what settles, which is the caller.
		c.begin(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			e.detach(f)
			c.flushLocked()
		})
		return errForced
	}
	return nil
}

// pause waits, though not for a connection that is over.
func (c *conn) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.done:
	}
}
