package broker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"dlq/backends/message"
)

// failing is an event that fails some times.
type failing struct {
	times *int
	at    *[]time.Time
}

var errRead = errors.New("a sector cannot be read")

func (f failing) happen(t *tx) error {
	*f.at = append(*f.at, t.now)
	if *f.times--; *f.times >= 0 {
		return unavailable(errRead)
	}
	return nil
}

// What fails because something cannot be read is tried again, but not by every command.
func TestFailedEventComesBack(t *testing.T) {
	b := newBench(t)
	b.send("m")
	times, at := 2, []time.Time(nil)
	b.e.timers.add(b.now.Add(time.Minute), failing{&times, &at})
	b.pass(time.Minute)
	for range 2 {
		b.want(b.e.Tick(), errRead)
		for range 3 {
			b.ok(nil, b.e.Tick())
		}
		b.pass(time.Second)
	}
	b.ok(nil, b.e.Tick())
	b.pass(time.Hour)
	b.ok(nil, b.e.Tick())
	if len(at) != 3 || !at[0].Equal(epoch.Add(time.Minute)) {
		t.Errorf("it happened at %v, want three times", at)
	}
}

// Run goes on when something cannot be read, and ends when the engine does.
func TestRunOutlivesReadErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		start := time.Now()
		b.e.clock = func() time.Time { return epoch.Add(time.Since(start)) }
		times, at := 3, []time.Time(nil)
		b.e.timers.add(epoch.Add(time.Minute), failing{&times, &at})
		ended := make(chan error)
		go func() { ended <- b.e.Run(context.Background()) }()
		time.Sleep(2 * time.Minute)
		b.e.mu.Lock()
		if n := len(at); n != 4 || at[3].Sub(epoch).Round(time.Second) != time.Minute+3*time.Second {
			t.Errorf("it happened at %v, want four times, a second apart", at)
		}
		b.e.mu.Unlock()
		b.ok(nil, b.e.Close())
		closed := time.Now()
		b.want(<-ended, ErrUnavailable)
		if late := time.Since(closed); late > 0 {
			t.Errorf("it ended %v after the engine", late)
		}
	})
}

// However much is due when somebody comes, it is written in parts.
func TestMuchIsDue(t *testing.T) {
	b := newBench(t)
	const many = 12_000
	largest := 0
	for part := range many / 1000 {
		var msgs []*message.Message
		for n := range 1000 {
			msgs = append(msgs, b.scheduled("m", time.Duration(part*1000+n)*time.Second+time.Second))
		}
		b.ok(refusals(b.e.Send(b.queue, msgs)))
		b.e.timers.add(b.now.Add(time.Duration(part)*1000*time.Second), probe(func(t *tx) { largest = max(largest, t.batch.Size()) }))
	}
	b.pass(many * time.Second)
	b.ok(nil, b.e.Tick())
	if i := b.info("orders"); i.Active != many || i.Scheduled != 0 {
		t.Errorf("%d messages are active and %d scheduled", i.Active, i.Scheduled)
	}
	if largest < maxGathered/4 || largest > maxGathered+maxGathered/4 {
		t.Errorf("%d bytes were gathered at once, want %d at most, about", largest, maxGathered)
	}
	b.crash()
	if i := b.info("orders"); i.Active+i.Scheduled != many {
		t.Errorf("after a crash there are %d messages", i.Active+i.Scheduled)
	}
}

// forget takes what is stored of a session away, as damage would.
func (b *bench) forget(name, session string) {
	b.Helper()
	batch := b.e.store.NewBatch()
	batch.DeleteSession(b.e.entity(name).id, session)
	b.ok(nil, b.e.store.ApplyLazily(batch))
}

// A session whose state cannot be read is refused, and what the call has done on the way stays
// done.
func TestAcceptOfUnreadableSession(t *testing.T) {
	b, a := newSessions(t)
	b.change("sessions", func(p *Properties) { p.DeadLetterOnExpiration = true })
	s := b.accept(a, new("x"))
	b.ok(nil, b.e.SetSessionState(a, s.Token, []byte("state")))
	b.ok(nil, b.e.ReleaseSession(a, s.Token))
	short := inSession("x", "short")
	short.TTL = new(time.Minute)
	b.post("sessions", short)
	b.post("sessions", inSession("x", "long"))
	b.forget("sessions", "x")
	b.pass(time.Minute)
	_, err := b.e.AcceptSession(a, nil)
	b.want(err, ErrUnavailable)
	b.wantContents(dead(a), "short/0")
	b.restart()
	b.wantContents(dead(a), "short/0")
	b.wantContents(a, "long/0")
}

// A lock of a session whose state cannot be read ends all the same.
func TestLockOfUnreadableSessionEnds(t *testing.T) {
	b, a := newSessions(t)
	b.post("sessions", inSession("x", "m"))
	s := b.accept(a, new("x"))
	b.ok(nil, b.e.SetSessionState(a, s.Token, []byte("state")))
	m := b.takeWith(a, ReceiveOptions{Session: s.Token})
	b.forget("sessions", "x")
	if _, err := b.e.RenewSession(a, s.Token); !errors.Is(err, ErrUnavailable) {
		t.Errorf("renewing it: %v", err)
	}
	b.pass(time.Minute) // as long as before
	errs, err := b.e.Settle(a, Outcome{Action: Complete}, m[0].Broker.LockToken)
	b.wantRefused(ErrSessionLockLost, errs, err)
	b.wantContents(a, "m/1")
	var none message.UUID
	w, woken := b.waiting(a, none)
	defer w.Close()
	b.wantWoken(woken, 1, "the end of the lock")
}
