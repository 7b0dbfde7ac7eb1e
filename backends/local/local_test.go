package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends"
	"dlq/backends/backendtest"
	"dlq/backends/broker"
	"dlq/backends/message"
)

func TestConformanceInMemory(t *testing.T) {
	backendtest.Run(t, func(t testing.TB) backendtest.Harness {
		fs := vfs.NewCrashableMem()
		return harness(func(now func() time.Time) Options {
			return Options{Dir: "data", FS: fs, Now: now}
		}, func() {
			fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
		}, nil)
	})
}

func TestConformanceOnDisk(t *testing.T) {
	backendtest.Run(t, func(t testing.TB) backendtest.Harness { return onDisk(t, false, nil) })
}

// TestConformanceSocket: who works through the owner's socket sees no difference.
func TestConformanceSocket(t *testing.T) {
	backendtest.Run(t, func(t testing.TB) backendtest.Harness {
		return onDisk(t, true, func(t testing.TB, o Options) backends.Backend {
			b, err := Connect(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := b.(*connection); !ok {
				t.Fatalf("connected to a %T, want the socket of the owner", b)
			}
			return b
		})
	})
}

func onDisk(t testing.TB, stay bool, connect func(testing.TB, Options) backends.Backend) backendtest.Harness {
	dir := t.TempDir()
	return harness(func(now func() time.Time) Options {
		return Options{Dir: dir, Now: now, Command: "test", Stay: stay}
	}, func() {
		// What a killed process leaves behind is what is in its files now.
		copied := t.TempDir()
		if err := os.CopyFS(filepath.Join(copied, storeDir), os.DirFS(filepath.Join(dir, storeDir))); err != nil {
			t.Fatal(err)
		}
		dir = copied
	}, connect)
}

// harness runs a backend on a clock of its own. crash makes the next Open see what a crash
// at this moment would leave. connect returns what the suite is to work with, if that is not
// the owner itself.
func harness(options func(now func() time.Time) Options, crash func(), connect func(testing.TB, Options) backends.Backend) backendtest.Harness {
	var mu sync.Mutex
	clock := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return clock
	}
	advance := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		clock = clock.Add(d)
	}
	var b *Backend
	queues := 0
	open := func(t testing.TB) backends.Backend {
		var err error
		if b, err = Open(t.Context(), options(now)); err != nil {
			t.Fatal(err)
		}
		if connect == nil {
			return b
		}
		t.Cleanup(func() { _ = b.Close() })
		return connect(t, options(now))
	}
	return backendtest.Harness{
		Open: open,
		Queue: func(t testing.TB, o backendtest.QueueOptions) backends.EntityID {
			queues++
			id := backends.EntityID{Name: fmt.Sprintf("queue-%d", queues)}
			if err := b.CreateQueueWith(t.Context(), id.Name, properties(o)); err != nil {
				t.Fatal(err)
			}
			return id
		},
		Now:     now,
		Advance: func(_ testing.TB, d time.Duration) { advance(d) },
		AdvanceSlowly: func(_ testing.TB, d time.Duration) {
			const steps = 20
			for range steps {
				advance(d / steps)
				for l := range b.leases { // as their tickers would
					l.renew()
				}
			}
		},
		Restart: func(t testing.TB, old backends.Backend, kill bool) backends.Backend {
			owner := b
			if kill {
				crash()
				t.Cleanup(func() { _ = errors.Join(old.Close(), owner.Close()) }) // the dead one lets go of its files
				return open(t)
			}
			if err := errors.Join(old.Close(), owner.Close()); err != nil {
				t.Fatal(err)
			}
			return open(t)
		},
	}
}

// TestLeaseRenewsByItself: a lease keeps its locks though nobody calls it.
func TestLeaseRenewsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		b, err := Open(ctx, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = b.Close() }()
		id := backends.EntityID{Name: "q"}
		if err := errors.Join(b.CreateQueue(ctx, id.Name), b.Send(ctx, id, []*message.Message{{}})); err != nil {
			t.Fatal(err)
		}
		l, err := b.Lease(ctx, id, backends.LeaseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := l.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute) // of virtual time: ten lock durations
		if err := l.Settle(ctx, backends.Outcome{Action: backends.Complete}, m); err != nil {
			t.Errorf("after ten lock durations: %v", err)
		}
	})
}

func TestDirectoryHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(t.Context(), Options{Dir: dir, Command: "dlq tui"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Options{Dir: dir, Command: "dlq list"})
	if !backends.IsCode(err, backends.Locked) {
		t.Fatalf("second owner: err = %v, want locked", err)
	}
	for _, want := range []string{`"dlq tui"`, fmt.Sprintf("pid %d", os.Getpid()), "-c local:DIR"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, Options{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while waiting: err = %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatalf("after the owner let go: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDataIsPrivate: bodies may hold secrets.
func TestDataIsPrivate(t *testing.T) {
	dir := t.TempDir() + "/data"
	b, err := Open(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the data directory has mode %v, want 0700", info.Mode().Perm())
	}
}

// properties are those of a queue with what the suite asks for; zero means the default.
func properties(o backendtest.QueueOptions) broker.Properties {
	p := broker.Defaults(broker.Queue, broker.ServiceBus)
	p.LockDuration = cmp.Or(o.LockDuration, p.LockDuration)
	p.MaxDeliveryCount = cmp.Or(o.MaxDeliveryCount, p.MaxDeliveryCount)
	p.MaxMessageBytes = cmp.Or(o.MaxBodyBytes, p.MaxMessageBytes)
	p.RequiresSession = o.Sessions
	p.DetectDuplicates = o.DuplicateWindow > 0
	p.DuplicateWindow = cmp.Or(o.DuplicateWindow, p.DuplicateWindow)
	return p
}
