package backendtest

import (
	"slices"
	"testing"
	"time"

	"dlq/backends"
)

// Harness is what the suite needs of a driver. Each case gets one of its own.
type Harness struct {
	// Open opens the backend under test. It is called once for each harness, and the suite
	// closes what it returns.
	Open func(t testing.TB) backends.Backend

	// Queue makes a new and empty queue and returns its name. It is called after Open.
	Queue func(t testing.TB, opts QueueOptions) backends.EntityID

	// CountsReceives says that the service counts how often a message was received, as SQS
	// does, and not how often a delivery of it has failed.
	CountsReceives bool

	// Now is the time at the service.
	Now func() time.Time

	// Advance lets d pass at the service in one leap, as if the machine that holds the
	// leases had slept: no lease has a chance to renew a lock meanwhile.
	Advance func(t testing.TB, d time.Duration)

	// AdvanceSlowly lets d pass in steps that are short enough for a lease to renew its
	// locks. nil: the harness cannot, and the case about renewing is skipped.
	AdvanceSlowly func(t testing.TB, d time.Duration)

	// Restart ends b, which Open or Restart returned, and opens the same data anew: by Close,
	// or with kill as a crash would end it, in mid-lease and without a goodbye. nil: the data
	// does not outlive the backend, and the cases about that are skipped.
	Restart func(t testing.TB, b backends.Backend, kill bool) backends.Backend
}

// QueueOptions are what a case wishes of a queue. Zero means that any value will do. A
// harness that cannot grant a wish ignores it: the suite believes what Entities declares.
type QueueOptions struct {
	LockDuration     time.Duration
	MaxDeliveryCount int
	MaxBodyBytes     int64
	// DuplicateWindow asks for a queue that drops a message whose id it has seen that long ago.
	DuplicateWindow time.Duration
	// Sessions asks for a queue whose messages all belong to sessions, each of which one
	// receiver at a time may hold.
	Sessions bool
}

// Decorate returns h with wrap around every backend that it opens, so that the suite can
// be run through a decorator.
func Decorate(h Harness, wrap func(backends.Backend) backends.Backend) Harness {
	inner := h
	var current backends.Backend // what inner knows: Restart must be given that
	h.Open = func(t testing.TB) backends.Backend {
		current = inner.Open(t)
		return wrap(current)
	}
	if inner.Restart != nil {
		h.Restart = func(t testing.TB, _ backends.Backend, kill bool) backends.Backend {
			current = inner.Restart(t, current, kill)
			return wrap(current)
		}
	}
	return h
}

// Run runs the whole suite, each case as a subtest with a harness that open returns for it.
func Run(t *testing.T, open func(t testing.TB) Harness) {
	for _, c := range suite() {
		t.Run(c.name, func(t *testing.T) { c.run(t, open) })
	}
}

// testCase is one case. Its name is "area/what".
type testCase struct {
	name  string
	check func(f *fixture)
}

func (c testCase) run(t testing.TB, open func(t testing.TB) Harness) {
	c.check(newFixture(t, open(t)))
}

// suite returns all cases, in the order in which a new driver should make them pass.
func suite() []testCase {
	return slices.Concat(
		sendCases(), leaseCases(), settleCases(), deadLetterCases(), carryCases(), entityCases(),
		capabilityCases(), peekCases(), scheduleCases(), directCases(), deferredCases(), moveCases(), routeCases(),
		purgeCases(), createCases(), validateCases(), administerCases(), ruleCases(), contextCases(), lifecycleCases(),
	)
}
