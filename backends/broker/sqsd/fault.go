package sqsd

import (
	"context"
	"net/http"
	"time"
)

// FaultOp is what a client asked for when a fault strikes.
type FaultOp uint8

// The operations.
const (
	OpSend    FaultOp = iota // SendMessage and its batch
	OpReceive                // ReceiveMessage
	OpSettle                 // DeleteMessage, ChangeMessageVisibility and their batches
	OpManage                 // every other action
)

// FaultKind is what goes wrong.
type FaultKind uint8

// The kinds of faults. All but FaultDelay and FaultDuplicate take the place of what was asked for,
// which then has not happened.
const (
	FaultDelay      FaultKind = iota // it is late, and then as always
	FaultThrottle                    // RequestThrottled
	FaultError                       // InternalFailure, with status 500
	FaultDisconnect                  // the connection breaks without a word
	FaultLockLost                    // the receipt handle counts no more
	FaultDuplicate                   // what is received is not hidden, so that it comes again
)

// Fault is something that is to go wrong: after Delay, what Kind says.
type Fault struct {
	Kind  FaultKind
	Delay time.Duration
}

// strike has a fault happen, if one is due.
func (c *call) strike() error {
	if c.s.Fault == nil {
		return nil
	}
	fault, struck := c.s.Fault(c.action.op, c.entity)
	if !struck {
		return nil
	}
	c.fault = fault
	if fault.Delay > 0 {
		ctx, cancel := context.WithTimeout(c.r.Context(), fault.Delay)
		defer cancel()
		select {
		case <-ctx.Done():
		case <-c.s.stopping.Done():
		}
	}
	switch fault.Kind {
	case FaultThrottle:
		return throttled()
	case FaultError:
		return internal("A failure on purpose.")
	case FaultDisconnect:
		return http.ErrAbortHandler
	case FaultLockLost:
		if c.action.op == OpSettle {
			return invalidValue(str(c.in.receipt), "ReceiptHandle", "The receipt handle has expired.")
		}
	}
	return nil
}
