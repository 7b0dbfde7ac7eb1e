package cmd

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// memoryGuard knows when the memory runs short.
type memoryGuard struct{ isShort atomic.Bool }

// short reports whether more than four fifths of the memory that the process may have are in use.
func (g *memoryGuard) short() bool { return g.isShort.Load() }

// watch looks at the memory until ctx ends.
func (g *memoryGuard) watch(ctx context.Context) {
	const often = 100 * time.Millisecond
	limit := debug.SetMemoryLimit(-1) // changes nothing, and returns it
	if limit == math.MaxInt64 {
		return
	}
	ticker := time.NewTicker(often)
	defer ticker.Stop()
	for {
		g.isShort.Store(memoryInUse() > uint64(limit)/5*4)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// memoryInUse is what counts against the limit of the runtime: all but what was given back.
func memoryInUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// limitMemory makes the garbage collector work harder before the memory runs out, which would end
// the server with everything in it. Where the user has set GOMEMLIMIT, that holds.
func limitMemory(getenv func(string) string) {
	if getenv("GOMEMLIMIT") != "" {
		return
	}
	const cgroup, machine = "/sys/fs/cgroup/memory.max", "/proc/meminfo" // Linux
	limit := int64(math.MaxInt64)
	if text, err := os.ReadFile(cgroup); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // else "max"
			limit = n
		}
	}
	if text, err := os.ReadFile(machine); err == nil {
		limit = min(limit, totalMemory(string(text)))
	}
	if limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 10 * 8) // the rest is for what the collector does not see
	}
}

// totalMemory reads the memory of the machine, in bytes.
func totalMemory(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		fields := strings.Fields(line) // MemTotal: 4015940 kB
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			if n, err := strconv.ParseInt(fields[1], 10, 53); err == nil {
				return n << 10
			}
		}
	}
	return math.MaxInt64
}
