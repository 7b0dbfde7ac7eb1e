package broker

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// indexOf is everything that the index of an engine says, in a form that compares: what
// opening the store anew must find again.
func indexOf(e *Engine) map[string]any {
	out := map[string]any{"heads and bodies with several users": fmt.Sprint(e.refs)}
	for _, ent := range e.byID {
		out[ent.name+" size"] = ent.size
		for sub, q := range ent.subs {
			name := fmt.Sprintf("%s/%d ", ent.name, sub)
			out[name+"ready"] = q.ready.Keys()
			out[name+"deferred"] = q.deferred.Keys()
			locked := map[uint64]time.Time{}
			for seq, l := range q.locked {
				locked[seq] = l.until
			}
			out[name+"locked"] = locked
			scheduled := map[uint64]time.Time{}
			for seq, t := range q.scheduled {
				scheduled[seq] = t.at
			}
			out[name+"scheduled"] = scheduled
			out[name+"held aside"] = q.heldAside
			out[name+"expiring"] = q.expiring.Items()
			out[name+"firsts"] = q.firsts.Keys()
			for id, g := range q.groups {
				out[name+"group "+id] = fmt.Sprint(g.ready.Keys(), g.hidden.Keys(), g.turn > 0, g.kept, g.token, g.until)
			}
		}
	}
	return out
}

// wantFirsts looks for what the message groups have to deliver first, the hard way.
func wantFirsts(t *testing.T, e *Engine) {
	for _, ent := range e.byID {
		want := []uint64{}
		for _, g := range ent.subs[Main].groups {
			if first, ok := g.ready.Min(); ok && ent.p.Groups && ent.subs[Main].open(g) {
				want = append(want, first)
			}
		}
		slices.Sort(want)
		if got := ent.subs[Main].firsts.Keys(); !slices.Equal(got, want) {
			t.Errorf("%s: the first of the groups are %v, want %v", ent.name, got, want)
		}
	}
}

// unused lists heads and bodies that are stored and that no message has.
func unused(t *testing.T, s *store.Store) (n int) {
	used := map[uint64]bool{}
	for m, err := range s.States() {
		if err != nil {
			t.Fatal(err)
		}
		used[m.Head], used[m.Body] = true, true
	}
	for id, err := range s.Content() {
		if err != nil {
			t.Fatal(err)
		}
		if !used[id] {
			n++
		}
	}
	return n
}

// TestIndexIsWhatIsStored does anything to entities of every kind and, again and again, holds
// the index against that of an engine that reads the store anew, and looks for contents that
// nobody uses.
func TestIndexIsWhatIsStored(t *testing.T) {
	for seed := range uint64(size(10, 100, 1000)) {
		b := newBench(t)
		d := &driver{bench: b, rnd: rand.New(rand.NewPCG(seed, 1))}
		d.create()
		for step := range 200 {
			d.step()
			if step%50 != 49 {
				continue
			}
			if err := b.e.Tick(); err != nil {
				t.Fatal(err)
			}
			wantFirsts(t, b.e)
			before := indexOf(b.e)
			b.flush() // so that the crash loses nothing
			live, image := b.fs, b.fs.CrashClone(vfs.CrashCloneCfg{})
			same := func(how string) {
				after := indexOf(b.e)
				for what := range before {
					if !reflect.DeepEqual(before[what], after[what]) {
						t.Errorf("seed %d, step %d: %s is %v, and after %s %v", seed, step, what, before[what], how, after[what])
					}
				}
				if err := b.e.Close(); err != nil {
					t.Fatal(err)
				}
				b.open()
			}
			same("nothing")
			same("a clean stop")
			_ = b.e.Close()
			b.fs = image
			b.open()
			same("a crash")
			_ = b.e.Close()
			b.fs = live
			b.open()
			if n := unused(t, b.e.store); n > 0 {
				t.Errorf("seed %d, step %d: %d heads and bodies belong to nobody", seed, step, n)
			}
			if t.Failed() {
				t.FailNow()
			}
		}
		_ = b.e.Close()
	}
}

// driver does things without looking at what comes of them.
type driver struct {
	*bench
	rnd      *rand.Rand
	names    []string
	held     []message.UUID
	sessions map[string]message.UUID
	made     int
}

func (d *driver) create() {
	d.sessions = map[string]message.UUID{}
	add := func(name string, kind Kind, dialect Dialect, change func(*Properties), rules ...Rule) {
		p := Defaults(kind, dialect)
		change(&p)
		if err := d.e.Create(name, kind, p, rules...); err != nil {
			d.Fatal(err)
		}
		d.names = append(d.names, name)
	}
	none := func(*Properties) {}
	add("plain", Queue, ServiceBus, func(p *Properties) { p.MaxDeliveryCount, p.DefaultTTL, p.DeadLetterOnExpiration = 2, time.Hour, true })
	add("sessions", Queue, ServiceBus, func(p *Properties) { p.RequiresSession, p.MaxDeliveryCount = true, 2 })
	add("unique", Queue, ServiceBus, func(p *Properties) { p.DetectDuplicates = true })
	add("topic", Topic, ServiceBus, none)
	add("topic/Subscriptions/all", Subscription, ServiceBus, none)
	add("topic/Subscriptions/some", Subscription, ServiceBus, none, Rule{Name: "sql", Filter: Filter{Kind: SQLFilter, SQL: "n > 5"}})
	add("topic/Subscriptions/changed", Subscription, ServiceBus, none,
		Rule{Name: "a", Action: "SET n = 1"}, Rule{Name: "b", Action: "SET n = 2"}, Rule{Name: "c"})
	add("topic/Subscriptions/on", Subscription, ServiceBus, func(p *Properties) { p.ForwardTo = "plain" })
	add("chain", Queue, ServiceBus, func(p *Properties) { p.ForwardTo = "topic" })
	add("letters", Queue, ServiceBus, func(p *Properties) { p.ForwardDeadLettersTo, p.MaxDeliveryCount = "plain", 1 })
	add("dead", Queue, SQS, none)
	add("standard", Queue, SQS, func(p *Properties) { p.Redrive = Redrive{"dead", 2} })
	add("dead.fifo", Queue, SQS, func(p *Properties) { p.setFIFO(true) })
	add("first.fifo", Queue, SQS, func(p *Properties) {
		p.setFIFO(true)
		p.Redrive = Redrive{"dead.fifo", 2}
		p.ContentDeduplication = true
	})
	d.names = append(d.names, "orders")
}

func (d *driver) name() string { return d.names[d.rnd.IntN(len(d.names))] }

func (d *driver) address() Address {
	return Address{d.name(), [...]Sub{Main, Main, DeadLetter, TransferDeadLetter}[d.rnd.IntN(4)]}
}

func (d *driver) message() *message.Message {
	d.made++
	m := &message.Message{
		ID: message.String(fmt.Sprint("m", d.made-d.rnd.IntN(3)*d.rnd.IntN(2))), Body: message.DataBody(fmt.Appendf(nil, "body %d", d.made)),
		SessionID:  new(fmt.Sprint("s", d.rnd.IntN(3))),
		Properties: message.Properties{{Name: "n", Value: message.Int(d.rnd.IntN(10))}},
		System:     []message.Attribute{{Name: DeduplicationIDAttribute, Value: message.String(fmt.Sprint(d.made))}},
	}
	switch d.rnd.IntN(6) {
	case 0:
		m.ScheduledEnqueueTime = new(d.now.Add(time.Duration(d.rnd.IntN(100)) * time.Second))
	case 1:
		m.TTL = new(time.Duration(1+d.rnd.IntN(100)) * time.Second)
	}
	return m
}

// step does one thing; what is refused is refused.
func (d *driver) step() {
	a := d.address()
	switch d.rnd.IntN(14) {
	case 0, 1, 2, 3:
		_, _ = d.e.Send(Address{Name: a.Name}, []*message.Message{d.message(), d.message()})
	case 4, 5, 6:
		d.take(a)
	case 7, 8:
		o := Outcome{Action: [...]Action{Complete, Abandon, Defer, Bury}[d.rnd.IntN(4)], Reason: "r"}
		for _, name := range d.names {
			_, _ = d.e.Settle(Address{Name: name, Sub: a.Sub}, o, d.held...)
		}
		d.held = nil
	case 9:
		_, _ = d.e.SettleBySequence(a, Outcome{Action: [...]Action{Complete, Abandon, Defer, Bury}[d.rnd.IntN(4)]}, d.seq(a))
	case 10:
		d.move(a)
	case 11:
		d.now = d.now.Add(time.Duration(d.rnd.IntN(40)) * time.Second)
	case 12:
		x := d.e.Begin()
		_, _ = x.Send(Address{Name: a.Name}, nil, []*message.Message{d.message()})
		_, _ = x.Send(Address{Name: "plain"}, &Address{Name: "orders"}, []*message.Message{d.message()})
		_, _ = x.Settle(a, Outcome{Action: Complete}, d.held...)
		_ = x.Commit()
	case 13:
		_, _ = d.e.StartMoveTask(MoveTask{Source: [...]string{"dead", "dead.fifo"}[d.rnd.IntN(2)]})
	}
}

func (d *driver) seq(a Address) int64 {
	page, _ := d.e.Peek(a, PeekOptions{Max: 20, NoBody: true})
	if len(page) == 0 {
		return 1
	}
	return page[d.rnd.IntN(len(page))].Broker.SequenceNumber
}

func (d *driver) take(a Address) {
	o := ReceiveOptions{Max: 1 + d.rnd.IntN(3), Delete: d.rnd.IntN(5) == 0}
	if a.Name == "sessions" && a.Sub == Main {
		if s, err := d.e.AcceptSession(a, nil); err == nil {
			d.sessions[s.ID] = s.Token
			if d.rnd.IntN(3) == 0 {
				_ = d.e.SetSessionState(a, s.Token, []byte("state"))
			}
		}
		for id, token := range d.sessions {
			o.Session = token
			if d.rnd.IntN(4) == 0 {
				_ = d.e.ReleaseSession(a, token)
				delete(d.sessions, id)
			}
			break
		}
	}
	msgs, _ := d.e.Receive(a, o)
	for _, m := range msgs {
		d.held = append(d.held, m.Broker.LockToken)
	}
}

func (d *driver) move(a Address) {
	page, _ := d.e.Peek(a, PeekOptions{Max: 20})
	if len(page) == 0 {
		return
	}
	as := page[d.rnd.IntN(len(page))].Clone()
	mv := Move{Seq: as.Broker.SequenceNumber, To: Address{Name: d.name()}, As: as, Keep: d.rnd.IntN(2) == 0, AllowUnrouted: true}
	if d.rnd.IntN(2) == 0 {
		as.Body = message.DataBody([]byte("edited"))
	}
	as.ScheduledEnqueueTime = nil
	again := mv
	again.Keep = true
	_, _ = d.e.Move(a, []Move{mv, again})
}

// flush makes durable what has been written so far.
func (b *bench) flush() {
	b.Helper()
	batch := b.e.store.NewBatch()
	batch.PutLastEntity(b.e.lastEntity)
	wait, err := b.e.store.Apply(batch)
	if err == nil {
		err = wait()
	}
	if err != nil {
		b.Fatal(err)
	}
}
