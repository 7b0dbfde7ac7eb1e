package sqsd

import (
	"cmp"
	"time"
)

// Limits bound what clients can take, beside those of the service. Fields left zero are as in
// [DefaultLimits].
type Limits struct {
	BodyBytes int64 // of a request. A message of 1 MiB can be six times as large in JSON
	FormKeys  int   // parameters of a Query request
	Waiting   int   // receives that wait at the same time; more of them answer at once

	// Calls and FIFOCalls are how often in a second messages of a standard and of a FIFO queue are
	// sent, received, and deleted or changed, each of the three. Zero, the default, is any number;
	// 300 and 30 are YMQ's.
	Calls, FIFOCalls int

	// AfterDelete is how long a queue's name cannot be used again after the queue was deleted. The
	// service wants 60 seconds; zero, the default, does not wait.
	AfterDelete time.Duration
}

// DefaultLimits are the limits of a server that is told no others.
func DefaultLimits() Limits {
	return Limits{BodyBytes: 8 << 20, FormKeys: 2_000, Waiting: 10_000}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	l.BodyBytes, l.FormKeys, l.Waiting = cmp.Or(l.BodyBytes, d.BodyBytes), cmp.Or(l.FormKeys, d.FormKeys), cmp.Or(l.Waiting, d.Waiting)
	return l
}
