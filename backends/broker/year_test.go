package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// TestYear lets 365 days go by on a clock that is set by hand, with locks, times to live,
// schedules, delays, retention, sessions, duplicate windows and idle entities that end at
// random moments. A millisecond before each moment nothing has happened, and at the moment
// everything has. It counts the moments by what they end, and wants at least 100,000.
func TestYear(t *testing.T) {
	days := size(20, 365, 365)
	y := newYear(t)
	for range days * 4 {
		y.plan()
		y.pass(6 * time.Hour)
		y.clean()
	}
	total := 0
	for _, kind := range []string{"lock", "time to live", "schedule", "delay", "retention", "session", "duplicate window", "idle entity"} {
		if y.ended[kind] == 0 {
			t.Errorf("no %s has ended", kind)
		}
		total += y.ended[kind]
	}
	t.Logf("%d days, %d moments: %v", days, total, y.ended)
	if want := 100_000 * days / 365; total < want {
		t.Errorf("%d things have ended, want at least %d", total, want)
	}
}

// tally is what an entity should report.
type tally struct{ active, scheduled, delayed, dead int64 }

// moment is when something ends in an entity.
type moment struct {
	at     time.Time
	entity string
	kind   string
	n      int
	apply  func(*tally)
	// probe is what tells whether it has ended where no count does.
	probe func(ended bool)
}

type year struct {
	*testing.T
	e       *Engine
	now     time.Time
	rnd     *rand.Rand
	moments []moment
	want    map[string]*tally
	ended   map[string]int
	made    int
}

// The entities of the year, and the lengths that belong to them.
const (
	yearLocks, yearLives, yearSchedules, yearTalks = "locks", "lives", "schedules", "talks"
	yearKept, yearDelays, yearOnce, yearIdle       = "kept", "delays", "once", "idle"

	yearRetention = time.Hour
	yearWindow    = 10 * time.Minute
	yearSession   = 5 * time.Minute
)

func newYear(t *testing.T) *year {
	y := &year{T: t, now: epoch, rnd: rand.New(rand.NewPCG(1, 2)), want: map[string]*tally{}, ended: map[string]int{}}
	s, err := store.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	if y.e, err = Open(Options{Store: s, Now: func() time.Time { return y.now }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = y.e.Close() })
	y.create(yearLocks, ServiceBus, func(p *Properties) { p.MaxDeliveryCount = 1 })
	y.create(yearLives, ServiceBus, func(p *Properties) { p.DeadLetterOnExpiration = true })
	y.create(yearSchedules, ServiceBus, func(*Properties) {})
	y.create(yearTalks, ServiceBus, func(p *Properties) { p.RequiresSession, p.MaxDeliveryCount, p.LockDuration = true, 1, yearSession })
	y.create(yearKept, SQS, func(p *Properties) { p.Retention = yearRetention })
	y.create(yearDelays, SQS, func(*Properties) {})
	y.create(yearOnce, ServiceBus, func(p *Properties) { p.DetectDuplicates, p.DuplicateWindow = true, yearWindow })
	return y
}

func (y *year) create(name string, d Dialect, change func(*Properties)) {
	p := Defaults(Queue, d)
	change(&p)
	if err := y.e.Create(name, Queue, p); err != nil {
		y.Fatal(err)
	}
	y.want[name] = &tally{}
}

// send sends n messages that change sets up.
func (y *year) send(name string, n int, change func(*message.Message)) []*message.Message {
	msgs := make([]*message.Message, n)
	for i := range msgs {
		y.made++
		msgs[i] = &message.Message{ID: message.String(fmt.Sprint(y.made)), Body: message.DataBody([]byte("x"))}
		change(msgs[i])
	}
	sent, err := y.e.Send(Address{Name: name}, msgs)
	for _, s := range sent {
		err = errors.Join(err, s.Err)
	}
	if err != nil {
		y.Fatal(err)
	}
	return msgs
}

// soon is a random length of less than six hours, in whole milliseconds.
func (y *year) soon() time.Duration {
	return time.Duration(1+y.rnd.IntN(6*3600*1000-2)) * time.Millisecond
}

func (y *year) ends(after time.Duration, name, kind string, n int, apply func(*tally)) {
	y.moments = append(y.moments, moment{at: y.now.Add(after), entity: name, kind: kind, n: n, apply: apply})
}

// plan begins what will end in the next six hours.
func (y *year) plan() {
	y.planLocks()
	y.planSessions()
	y.send(yearLives, 20, func(m *message.Message) {
		m.TTL = new(y.soon())
		y.want[yearLives].active++
		y.ends(*m.TTL, yearLives, "time to live", 1, func(w *tally) { w.active--; w.dead++ })
	})
	y.send(yearSchedules, 20, func(m *message.Message) {
		after := y.soon()
		m.ScheduledEnqueueTime = new(y.now.Add(after))
		y.want[yearSchedules].scheduled++
		y.ends(after, yearSchedules, "schedule", 1, func(w *tally) { w.scheduled--; w.active++ })
	})
	y.send(yearDelays, 10, func(m *message.Message) {
		after := y.soon()
		m.ScheduledEnqueueTime = new(y.now.Add(after))
		y.want[yearDelays].delayed++
		y.ends(after, yearDelays, "delay", 1, func(w *tally) { w.delayed--; w.active++ })
	})
	y.send(yearKept, 10, func(*message.Message) {})
	y.want[yearKept].active += 10
	y.ends(yearRetention+time.Millisecond, yearKept, "retention", 10, func(w *tally) { w.active -= 10 })
	y.planDuplicates()
	y.planIdle()
}

// planLocks receives messages, some at a time, for different lengths.
func (y *year) planLocks() {
	y.send(yearLocks, 20, func(*message.Message) {})
	y.want[yearLocks].active += 20
	for range 10 {
		lock := y.soon()
		got, err := y.e.Receive(Address{Name: yearLocks}, ReceiveOptions{Max: 2, Lock: &lock})
		if err != nil || len(got) != 2 {
			y.Fatalf("received %d messages; %v", len(got), err)
		}
		y.ends(lock, yearLocks, "lock", 2, func(w *tally) { w.active -= 2; w.dead += 2 })
	}
}

// planSessions locks sessions, renews some, and holds a message in each.
func (y *year) planSessions() {
	a := Address{Name: yearTalks}
	for i := range 4 {
		id := fmt.Sprint("session ", i)
		y.send(yearTalks, 1, func(m *message.Message) { m.SessionID = &id })
		s, err := y.e.AcceptSession(a, &id)
		if err != nil {
			y.Fatal(err)
		}
		if got, err := y.e.Receive(a, ReceiveOptions{Session: s.Token}); err != nil || len(got) != 1 {
			y.Fatalf("received %d messages; %v", len(got), err)
		}
		y.want[yearTalks].active++
		y.ends(yearSession, yearTalks, "session", 1, func(w *tally) { w.active--; w.dead++ })
	}
}

// planDuplicates sends ids that are remembered to the last millisecond of the window.
func (y *year) planDuplicates() {
	for _, m := range y.send(yearOnce, 5, func(*message.Message) {}) {
		y.want[yearOnce].active++
		y.ends(yearWindow+time.Millisecond, yearOnce, "duplicate window", 1, func(w *tally) { w.active++ })
		y.moments[len(y.moments)-1].probe = func(ended bool) {
			sent, err := y.e.Send(Address{Name: yearOnce}, []*message.Message{m})
			if err != nil || sent[0].Err != nil || sent[0].Duplicate == ended {
				y.Fatalf("%v: sent again, %+v; %v", y.now, sent, err)
			}
		}
	}
}

// planIdle makes an entity that nobody uses.
func (y *year) planIdle() {
	after := 5*time.Minute + (y.soon() / 2).Truncate(time.Millisecond)
	y.create(yearIdle, ServiceBus, func(p *Properties) { p.AutoDeleteOnIdle = after })
	y.ends(after, yearIdle, "idle entity", 1, func(*tally) {})
	y.moments[len(y.moments)-1].probe = func(ended bool) {
		if _, err := y.e.Entity(yearIdle); errors.Is(err, ErrNoEntity) != ended {
			y.Fatalf("%v: the idle entity: %v", y.now, err)
		}
	}
}

// pass lets time go by, and looks on both sides of every moment.
func (y *year) pass(d time.Duration) {
	end := y.now.Add(d)
	slices.SortStableFunc(y.moments, func(a, b moment) int { return a.at.Compare(b.at) })
	for len(y.moments) > 0 && y.moments[0].at.Before(end) {
		at := y.moments[0].at
		same := 1
		for same < len(y.moments) && y.moments[same].at.Equal(at) {
			same++
		}
		now := y.moments[:same]
		y.moments = y.moments[same:]
		if before := at.Add(-time.Millisecond); before.After(y.now) {
			y.now = before
			y.look(now, false)
		}
		y.now = at
		for _, m := range now {
			m.apply(y.want[m.entity])
			y.ended[m.kind] += m.n
		}
		y.look(now, true)
	}
	y.now = end
}

// look compares the entities in which something ends.
func (y *year) look(moments []moment, ended bool) {
	for _, m := range moments {
		if m.probe != nil {
			m.probe(ended)
		}
	}
	for i, m := range moments {
		if m.entity == yearIdle || i > 0 && moments[i-1].entity == m.entity {
			continue
		}
		if m.entity == yearLives { // what has expired moves when somebody receives
			if _, err := y.e.Receive(Address{Name: yearLives}, ReceiveOptions{After: 1 << 40}); err != nil {
				y.Fatal(err)
			}
		}
		info, err := y.e.Entity(m.entity)
		if err != nil {
			y.Fatal(err)
		}
		got := tally{info.Active, info.Scheduled, info.Delayed, info.DeadLetter}
		if got != *y.want[m.entity] {
			y.Fatalf("%v: %s reports %+v, want %+v; ended %v: %s", y.now, m.entity, got, *y.want[m.entity], ended, m.kind)
		}
	}
}

// clean removes what has ended, so that a year costs no more than its moments.
func (y *year) clean() {
	for name, w := range y.want {
		if name == yearIdle {
			continue
		}
		for sub, n := range map[Sub]*int64{Main: &w.active, DeadLetter: &w.dead} {
			if *n == 0 || name == yearKept || sub == Main && name != yearSchedules && name != yearOnce && name != yearDelays {
				continue
			}
			removed, err := y.e.Purge(context.Background(), Address{name, sub}, PurgeOptions{})
			if err != nil {
				y.Fatal(err)
			}
			if sub == Main {
				removed -= w.scheduled + w.delayed
				w.scheduled, w.delayed = 0, 0
			}
			if removed != *n {
				y.Fatalf("%d messages were removed from %s/%d, want %d", removed, name, sub, *n)
			}
			*n = 0
		}
	}
}
