package broker

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestDeterminism runs random histories of about 50 steps twice each: 100 seeds, 1,000 with
// DLQ_FULL=1, 20 with -short. With the clock and the ids given from outside, one seed has one
// trace: every number, token, state, time and count that the engine shows.
func TestDeterminism(t *testing.T) {
	seeds := size(20, 100, 1000)
	traces := map[string]bool{}
	for seed := 1; seed <= seeds; seed++ {
		first, second := traceOf(t, seed), traceOf(t, seed)
		if first != second {
			t.Errorf("seed %d has two traces, %s and %s", seed, first, second)
		}
		traces[first] = true
	}
	if len(traces) < seeds*4/5 { // some histories end before they have begun
		t.Errorf("%d seeds have only %d traces: too little is traced", seeds, len(traces))
	}
}

func traceOf(t *testing.T, seed int) (trace string) {
	setFlags(t, map[string]string{
		"rapid.seed": strconv.Itoa(seed), "rapid.checks": strconv.Itoa(size(5, 1, 1)), "rapid.steps": strconv.Itoa(size(100, 50, 50)),
		"rapid.nofailfile": "true",
	})
	if why := finds(t, func(t *rapid.T) {
		m := newMachine(t, "")
		m.trace = sha256.New()
		defer func() { _ = m.e.Close() }()
		defer func() { trace = hex.EncodeToString(m.trace.Sum(nil)) }()
		m.run(t)
	}); why != "" {
		t.Fatal(why)
	}
	return trace
}
