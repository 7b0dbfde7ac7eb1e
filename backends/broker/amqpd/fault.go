package amqpd

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Op is what a client asked for when a fault strikes.
type Op uint8

// The operations. What goes over a management link counts as what it does: an
// update-disposition is OpSettle, a scheduled send OpSend, everything else OpManage. Other
// servers that are given faults count what they do likewise.
const (
	OpSend    Op = iota // one transfer, or one batch
	OpReceive           // one delivery
	OpSettle            // one disposition
	OpManage            // one request to $management
	OpAttach            // one link
	OpHTTP              // one request to the management API
	ops
)

var opNames = [ops]string{"send", "receive", "settle", "manage", "attach", "http"}

func (o Op) String() string { return opNames[o] }

// FaultKind is what goes wrong.
type FaultKind uint8

// The kinds of faults. All but FaultDelay and FaultDuplicate take the place of what was asked
// for, which then has not happened.
const (
	FaultDelay      FaultKind = iota // it is late, and then as always
	FaultThrottle                    // com.microsoft:server-busy, over HTTP 503
	FaultError                       // amqp:internal-error, over HTTP 500
	FaultDetach                      // the link ends with amqp:link:detach-forced
	FaultDisconnect                  // the connection breaks without a word
	FaultLockLost                    // com.microsoft:message-lock-lost; the lock itself stays until it expires
	FaultDuplicate                   // what is received is not locked, and so comes again; this server has none
	faultKinds
)

var faultNames = [faultKinds]string{"delay", "throttle", "error", "detach", "disconnect", "lock-lost", "duplicate"}

func (k FaultKind) String() string { return faultNames[k] }

// strikes reports whether a kind of fault can happen to an operation.
func (k FaultKind) strikes(o Op) bool {
	switch k {
	case FaultLockLost:
		return o == OpSettle
	case FaultDuplicate:
		return o == OpReceive
	case FaultDetach:
		return o != OpHTTP
	}
	return true
}

// Fault is something that is to go wrong: after Delay, what Kind says.
type Fault struct {
	Kind  FaultKind
	Delay time.Duration
}

// Faults decide which operations fail, for people who test that their clients try again. They
// depend on how many operations there were, not on chance or time: the same operations in the same
// order meet the same faults. A nil Faults has none. Its methods may be called concurrently.
type Faults struct {
	rules []*faultRule
	seed  uint64
}

// faultRule is one part of a specification.
type faultRule struct {
	kind   FaultKind
	delay  time.Duration
	hits   [ops]bool
	entity string // in lower case; "": all
	when   schedule
	seen   atomic.Uint64 // operations that it was asked about
}

// schedule says which of the operations a rule strikes, counted from 1.
type schedule struct {
	every   uint64  // each so-manieth
	first   uint64  // the first so many
	at      uint64  // only this one
	percent float64 // so many of a hundred
}

// Without returns the same faults but for some kinds, which another server cannot have happen.
// It counts for itself. Of nil it is nil.
func (f *Faults) Without(kinds ...FaultKind) *Faults {
	if f == nil {
		return nil
	}
	out := &Faults{seed: f.seed}
	for _, r := range f.rules {
		if !slices.Contains(kinds, r.kind) {
			out.rules = append(out.rules, &faultRule{kind: r.kind, delay: r.delay, hits: r.hits, entity: r.entity, when: r.when})
		}
	}
	return out
}

// Next counts an operation on an entity (a sub-queue or a subscription belongs to what it is part
// of) and reports what is to go wrong with it, if anything. Where several rules strike, the delays
// add up and the first other kind counts.
func (f *Faults) Next(op Op, entity string) (Fault, bool) {
	if f == nil {
		return Fault{}, false
	}
	var out Fault
	struck := false
	for i, r := range f.rules {
		if !r.hits[op] || !r.covers(entity) {
			continue
		}
		if n := r.seen.Add(1); !r.when.strikes(n, f.seed+uint64(i)) {
			continue
		}
		struck = true
		out.Delay += r.delay
		if out.Kind == FaultDelay {
			out.Kind = r.kind
		}
	}
	return out, struck
}

func (r *faultRule) covers(entity string) bool {
	if r.entity == "" {
		return true
	}
	n := len(r.entity)
	return len(entity) >= n && strings.EqualFold(entity[:n], r.entity) && (len(entity) == n || entity[n] == '/')
}

// strikes decides about the n-th operation.
func (s schedule) strikes(n, seed uint64) bool {
	switch {
	case s.every > 0:
		return n%s.every == 0
	case s.first > 0:
		return n <= s.first
	case s.at > 0:
		return n == s.at
	}
	return s.percent >= 100 || float64(scatter(seed, n))/math.MaxUint64 < s.percent/100
}

// scatter spreads numbers evenly and without a pattern (splitmix64).
func scatter(seed, n uint64) uint64 {
	z := (seed<<32 ^ n) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
