package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dlq/backends/message"
)

// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration
func TestTimeToLive(t *testing.T) {
	for name, c := range map[string]struct {
		message, entity time.Duration
		lives           time.Duration
	}{
		"of the message": {message: time.Minute, lives: time.Minute},
		"of the entity":  {entity: time.Minute, lives: time.Minute},
		"the lesser":     {message: time.Hour, entity: time.Minute, lives: time.Minute},
		"none":           {lives: 1000 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.make("q", Queue, func(p *Properties) { p.DefaultTTL, p.DeadLetterOnExpiration = c.entity, true })
			m := says("a")
			if c.message > 0 {
				m.TTL = &c.message
			}
			b.post("q", m)
			b.pass(c.lives - time.Millisecond)
			if got := b.receive(Address{Name: "q"}); got == nil {
				t.Fatal("it is gone a millisecond too early")
			} else if err := b.e.Release(Address{Name: "q"}, got.Broker.LockToken); err != nil {
				t.Fatal(err)
			}
			if c.message+c.entity == 0 {
				return
			}
			b.pass(time.Millisecond)
			b.wantDead(dead(Address{Name: "q"})) // nobody has received: it moves only then
			if got := b.receive(Address{Name: "q"}); got != nil {
				t.Errorf("received %v after its time", got.ID)
			}
			b.wantDead(dead(Address{Name: "q"}), cause{"TTLExpiredException", "The message expired and was dead lettered."})
		})
	}
}

// Without dead-lettering what expires is removed; locked and deferred messages do not expire,
// and nothing does in a dead-letter queue.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration
func TestWhatDoesNotExpire(t *testing.T) {
	b := newBench(t)
	for _, s := range []string{"removed", "locked", "deferred", "dead"} {
		m := says(s)
		m.TTL = new(time.Minute)
		b.post("orders", m)
	}
	if _, err := b.e.SettleBySequence(b.queue, Outcome{Action: Defer}, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.SettleBySequence(b.queue, Outcome{Action: Bury}, 4); err != nil {
		t.Fatal(err)
	}
	b.pass(30 * time.Second)
	held := b.takeWith(b.queue, ReceiveOptions{Max: 1, After: 1})
	b.pass(45 * time.Second)
	if got := b.receive(b.queue); got != nil {
		t.Errorf("received %v, which had expired", got.ID)
	}
	b.wantContents(b.queue, "locked/0", "deferred/0")
	b.wantContents(dead(b.queue), "dead/0")
	b.settle(b.queue, Abandon, held[0]) // no longer locked, it expires like any other
	if got := b.receive(b.queue); got != nil {
		t.Errorf("received %v, which had expired", got.ID)
	}
	b.wantContents(b.queue, "deferred/0")
}

// A scheduled message lives from its activation on, by its own time to live and by that of the
// entity.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration
func TestTimeToLiveOfScheduled(t *testing.T) {
	for name, set := range map[string]func(*message.Message, *Properties){
		"of the message": func(m *message.Message, _ *Properties) { m.TTL = new(time.Minute) },
		"of the entity":  func(_ *message.Message, p *Properties) { p.DefaultTTL = time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			m := says("a")
			m.ScheduledEnqueueTime = new(b.now.Add(time.Hour))
			b.make("q", Queue, func(p *Properties) { set(m, p); p.DeadLetterOnExpiration = true })
			b.post("q", m)
			b.crash()
			b.pass(time.Hour + time.Minute - time.Millisecond)
			got := b.receive(at("q"))
			if got == nil || !got.Broker.ExpiresAt.Equal(epoch.Add(time.Hour+time.Minute)) {
				t.Fatalf("received %+v", got)
			}
			b.ok(nil, b.e.Release(at("q"), got.Broker.LockToken))
			b.pass(time.Millisecond)
			b.receive(at("q"))
			b.wantDead(dead(at("q")), causeExpired)
		})
	}
}

// What has expired under its lock is handled normally, and completed if it is completed.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration
func TestExpiredUnderItsLock(t *testing.T) {
	b := newBench(t)
	b.change("orders", func(p *Properties) { p.DefaultTTL, p.DeadLetterOnExpiration = time.Second, true })
	b.send("a")
	m := b.receive(b.queue)
	b.pass(30 * time.Second)
	b.ok(b.e.Renew(b.queue, m.Broker.LockToken))
	b.pass(59 * time.Second)
	b.receive(b.queue)
	b.settle(b.queue, Complete, m)
	b.wantContents(b.queue)
	b.wantContents(dead(b.queue))
}

// When the lock of an expired message ends, the expiration takes effect at once: nobody needs
// to receive for it to move.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration
func TestExpiresWithItsLock(t *testing.T) {
	for name, end := range map[string]func(*bench, *message.Message){
		"abandoned": func(b *bench, m *message.Message) { b.settle(b.queue, Abandon, m) },
		"expired":   func(b *bench, _ *message.Message) { b.pass(30 * time.Second) },
	} {
		for bury, want := range map[bool][]cause{true: {causeExpired}, false: nil} {
			t.Run(fmt.Sprint(name, bury), func(t *testing.T) {
				b := newBench(t)
				b.change("orders", func(p *Properties) { p.DefaultTTL, p.DeadLetterOnExpiration = 31*time.Second, bury })
				b.send("a")
				m := b.receive(b.queue)
				b.pass(31 * time.Second)
				end(b, m)
				if name == "abandoned" {
					b.crash()
				}
				b.wantContents(b.queue)
				b.wantDead(dead(b.queue), want...)
			})
		}
	}
}

// A deferred message outlives its time: it can be received by its number, and expires neither
// then nor when it is deferred or abandoned again.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#time-to-live
func TestDeferredDoesNotExpire(t *testing.T) {
	b := newBench(t)
	b.change("orders", func(p *Properties) { p.DefaultTTL, p.DeadLetterOnExpiration = time.Second, true })
	b.send("a")
	b.ok(b.e.SettleBySequence(b.queue, Outcome{Action: Defer}, 1))
	for _, action := range []Action{Abandon, Defer} {
		b.pass(time.Hour)
		b.receive(b.queue)
		m, err := b.e.ReceiveDeferred(b.queue, ReceiveOptions{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		b.settle(b.queue, action, m[0])
		b.crash()
	}
	b.wantContents(b.queue, "a/1")
}

// Only a receiver makes what has expired move: not time, sends, peeks, settlements of others or
// a restart, each of which still shows it. To accept the next session is to receive.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration
func TestOnlyReceiversExpire(t *testing.T) {
	b := newBench(t)
	b.make("q", Queue, func(p *Properties) { p.DefaultTTL, p.DeadLetterOnExpiration = time.Minute, true })
	b.post("q", says("a"))
	b.pass(2 * time.Minute)
	b.ok(nil, b.e.Tick())
	b.post("q", says("b"))
	b.restart()
	b.wantContents(at("q"), "a/0", "b/0")
	if info := b.info("q"); info.Active != 2 || info.DeadLetter != 0 {
		t.Errorf("counts %+v", info)
	}
	if m := b.receive(at("q")); string(m.Body.Bytes()) != "b" {
		t.Errorf("received %s", m.Body.Bytes())
	}
	b.wantDead(dead(at("q")), causeExpired)

	b.make("sessions", Queue, func(p *Properties) {
		p.RequiresSession, p.DefaultTTL, p.DeadLetterOnExpiration = true, time.Minute, true
	})
	b.post("sessions", inSession("s", "a"))
	b.pass(time.Minute)
	_, err := b.e.AcceptSession(at("sessions"), nil)
	b.want(err, ErrNoSession)
	b.wantDead(dead(at("sessions")), causeExpired)
}

// What a receive finds expired costs what expired, not what is there.
// Source: issue 3, "the sweep's cost does not depend on the queue's depth".
func TestSweepPassesOverTheRest(t *testing.T) {
	b := newBench(t)
	msgs := make([]*message.Message, 5000)
	for i := range msgs {
		msgs[i] = &message.Message{TTL: new(time.Hour)}
	}
	msgs[4999].TTL = new(time.Second)
	b.ok(refusals(b.e.Send(b.queue, msgs)))
	b.pass(time.Second)
	q := b.e.entity("orders").subs[Main]
	if n := q.expiring.Len(); n != 5000 {
		t.Errorf("%d messages are filed under the end of their lives", n)
	}
	b.receive(b.queue) // takes the first, and yet finds the last
	if n, ok := q.expiring.Len(), q.ready.Contains(5000); n != 4998 || ok {
		t.Errorf("%d are left, the last is there: %t", n, ok)
	}
}

// The time to live of a topic bounds that of its subscriptions, and the other way round.
// Source: servicebus-wire.md section 10, "Topic TTL caps subscription TTL".
func TestTimeToLiveOfTopics(t *testing.T) {
	b := newBench(t)
	b.make("topic", Topic, func(p *Properties) { p.DefaultTTL = time.Hour })
	b.make("topic/Subscriptions/longer", Subscription, func(p *Properties) { p.DefaultTTL = 2 * time.Hour })
	b.make("topic/Subscriptions/none", Subscription, nil)
	b.make("topic/Subscriptions/shorter", Subscription, func(p *Properties) { p.DefaultTTL = time.Minute })
	b.post("topic", says("a"))
	for name, want := range map[string]time.Duration{"longer": time.Hour, "none": time.Hour, "shorter": time.Minute} {
		if got := b.peek(at("topic/" + name))[0].Broker.ExpiresAt; !got.Equal(b.now.Add(want)) {
			t.Errorf("%s expires at %v, want in %v", name, got, want)
		}
	}
}

// A new default holds for what is sent from then on.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/message-expiration, "before being enqueued".
func TestDefaultTimeToLiveChanges(t *testing.T) {
	b := newBench(t)
	b.send("a")
	b.change("orders", func(p *Properties) { p.DefaultTTL = time.Minute })
	b.send("b")
	b.change("orders", func(p *Properties) { p.DefaultTTL = 0 })
	b.send("c")
	b.restart()
	b.pass(time.Minute)
	if got := bodies(b.takeWith(b.queue, ReceiveOptions{Max: 5})); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("received %v", got)
	}
}

// A time to live that is over before it begins is refused.
// Source: servicebus-wire.md section 9.6, "> 0".
func TestNoTimeToLive(t *testing.T) {
	b := newBench(t)
	for _, ttl := range []time.Duration{0, -time.Second} {
		m := says("a")
		m.TTL = &ttl
		b.want(b.e.ValidateSend(b.queue, m), ErrInvalid)
	}
}
