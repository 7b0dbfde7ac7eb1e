package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends"
	"dlq/backends/backendtest"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// A sweep over dead letters keeps its locks by the timeout of the queue that they lie in, also
// where that is 0: a sweep hides what it goes through.
func TestSweepByTheTimeoutOfTheDeadLetterQueue(t *testing.T) {
	for _, timeout := range []time.Duration{30 * time.Second, 0} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			b, err := Open(ctx, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = b.Close() }()
			p := broker.Defaults(broker.Queue, broker.SQS)
			p.LockDuration = timeout
			dlq := backends.EntityID{Name: "jobs-dlq"}
			err = b.CreateQueueWith(ctx, dlq.Name, p)
			p.LockDuration, p.Redrive = 12*time.Hour, broker.Redrive{Target: dlq.Name, MaxReceives: 1}
			err = errors.Join(err, b.CreateQueueWith(ctx, "jobs", p), b.send(ctx, dlq, []*message.Message{{}, {}}))
			if err != nil {
				t.Fatal(err)
			}
			l, err := b.Lease(ctx, backends.EntityID{Name: "jobs"}.DeadLetters(), backends.LeaseOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var msgs []*message.Message
			for m, err := l.Next(ctx); !errors.Is(err, io.EOF); m, err = l.Next(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				msgs = append(msgs, m)
			}
			time.Sleep(10 * time.Minute) // of virtual time
			if err := l.Settle(ctx, backends.Outcome{Action: backends.Complete}, msgs...); err != nil || len(msgs) != 2 {
				t.Errorf("settling %d messages after ten minutes: %v", len(msgs), err)
			}
		})
	}
}

// unchecked puts any message into any queue, as the engine does.
type unchecked struct{ *Backend }

func (b unchecked) Send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	return b.send(ctx, id, msgs)
}

func (b unchecked) ValidateSend(ctx context.Context, id backends.EntityID, m *message.Message) error {
	return b.validateSend(ctx, id, m)
}

func (b unchecked) Move(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
	return b.move(ctx, from, moves, func(context.Context, broker.Address, backends.Move) error { return nil })
}

// TestConformanceOfSQSQueues runs the suite on queues of the SQS dialect, each with a dead-letter queue
// that its redrive policy names. The messages of the suite have everything that AMQP has, so what
// SQS does not take is not refused here.
func TestConformanceOfSQSQueues(t *testing.T) {
	backendtest.Run(t, func(t testing.TB) backendtest.Harness {
		fs := vfs.NewCrashableMem()
		h := harness(func(now func() time.Time) Options {
			return Options{Dir: "data", FS: fs, Now: now}
		}, func() {
			fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
		}, nil)
		open, restart := h.Open, h.Restart
		var b *Backend
		h.Open = func(t testing.TB) backends.Backend {
			b = open(t).(*Backend)
			return unchecked{b}
		}
		h.Restart = func(t testing.TB, old backends.Backend, kill bool) backends.Backend {
			b = restart(t, old.(unchecked).Backend, kill).(*Backend)
			return unchecked{b}
		}
		n := 0
		h.Queue = func(t testing.TB, o backendtest.QueueOptions) backends.EntityID {
			n++
			id := backends.EntityID{Name: fmt.Sprintf("queue-%d", n)}
			p := broker.Defaults(broker.Queue, broker.SQS)
			p.LockDuration = cmp.Or(o.LockDuration, p.LockDuration)
			p.MaxMessageBytes = max(min(cmp.Or(o.MaxBodyBytes, p.MaxMessageBytes), p.MaxMessageBytes), 1024)
			if err := b.CreateQueueWith(t.Context(), id.Name+"-dlq", p); err != nil {
				t.Fatal(err)
			}
			p.Redrive = broker.Redrive{Target: id.Name + "-dlq", MaxReceives: cmp.Or(o.MaxDeliveryCount, 10)}
			if err := b.CreateQueueWith(t.Context(), id.Name, p); err != nil {
				t.Fatal(err)
			}
			return id
		}
		h.CountsReceives = true
		return h
	})
}

// What a client puts into a queue of SQS is what SQS takes, or refused by name before anything is sent.
func TestSQSQueuesTakeMessagesOfSQS(t *testing.T) {
	ctx := t.Context()
	b, err := Open(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	p := broker.Defaults(broker.Queue, broker.SQS)
	p.MaxMessageBytes = 1024
	fifo := p
	if err := fifo.Set(broker.Queue, "FifoQueue", "true"); err != nil {
		t.Fatal(err)
	}
	bus, jobs, steps := backends.EntityID{Name: "bus"}, backends.EntityID{Name: "jobs"}, backends.EntityID{Name: "steps.fifo"}
	if err := errors.Join(b.CreateQueue(ctx, bus.Name), b.CreateQueueWith(ctx, jobs.Name, p), b.CreateQueueWith(ctx, steps.Name, fifo)); err != nil {
		t.Fatal(err)
	}
	body := message.DataBody([]byte("x"))
	with := func(name string, v message.Value) *message.Message {
		return &message.Message{Body: body, Properties: message.Properties{{Name: name, Value: v}}}
	}
	eleven := &message.Message{Body: body}
	for i := range 11 {
		eleven.Properties.Set(fmt.Sprintf("p%d", i), message.Int(1))
	}
	in := func(d time.Duration) *time.Time { return new(time.Now().Add(d)) }
	id := func(s string) []message.Attribute {
		return []message.Attribute{{Name: broker.DeduplicationIDAttribute, Value: message.String(s)}}
	}
	for _, c := range []struct {
		to    backends.EntityID
		m     *message.Message
		names string // what is wrong; "": it is taken
	}{
		{jobs, &message.Message{Body: body, ContentType: new("text/plain"), ScheduledEnqueueTime: in(899 * time.Second)}, ""},
		{jobs, with("n", message.Int(5)), ""},
		{jobs, with("at", message.Timestamp(5)), ""},
		{jobs, &message.Message{}, "body"},
		{jobs, &message.Message{Body: message.DataBody([]byte{0, 1, 0xff})}, "body"},
		{jobs, &message.Message{Body: message.Body{Kind: message.ValueBody, Sections: [][]byte{{0x40}}}}, "body"},
		{jobs, eleven, "[11]"},
		{jobs, with("e", message.String("")), "'e'"},
		{jobs, with("bad name", message.String("1")), "'bad name'"},
		{jobs, with("AWS.foo", message.String("1")), "AWS."},
		{jobs, with("n", message.Described{Descriptor: message.Symbol("sqs:Number"), Value: message.String("none")}), "'n'"},
		{jobs, with("l", message.Null{}), "property l"},
		{jobs, with("big", message.String(strings.Repeat("a", 1020))), "bytes"},
		{jobs, &message.Message{Body: body, TTL: new(time.Hour)}, "TTL"},
		{jobs, &message.Message{Body: body, SessionID: new("two words")}, "SessionID"},
		{jobs, &message.Message{Body: body, ScheduledEnqueueTime: in(time.Hour)}, "delay"},
		{steps, &message.Message{Body: body, SessionID: new("g"), System: id("1")}, ""},
		{steps, &message.Message{Body: body, SessionID: new("g"), System: id("1 2")}, broker.DeduplicationIDAttribute},
		{steps, &message.Message{Body: body, SessionID: new("g"), System: id("2"), ScheduledEnqueueTime: in(time.Second)}, "delay"},
	} {
		before := b.ValidateSend(ctx, c.to, c.m)
		err := b.Send(ctx, c.to, []*message.Message{c.m, {Body: body, SessionID: new("g"), System: id("x")}})
		errs := backends.ItemErrors(err, 2)
		switch {
		case c.names == "" && (err != nil || before != nil):
			t.Errorf("%+v: %v, %v", c.m, before, err)
		case c.names != "" && (!strings.Contains(fmt.Sprint(errs[0]), c.names) || !strings.Contains(fmt.Sprint(before), c.names)):
			t.Errorf("%q: refused with %v, and before with %v", c.names, errs[0], before)
		case c.names != "" && !backends.IsCode(errs[1], backends.NotTried):
			t.Errorf("%q: the other of the call: %v", c.names, errs[1])
		}
	}
}

// A move refuses what it brings into a queue of SQS, and leaves alone what lies in one already.
func TestMoveIntoSQSQueues(t *testing.T) {
	ctx := t.Context()
	b, err := Open(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	p := broker.Defaults(broker.Queue, broker.SQS)
	bus, dead, jobs := backends.EntityID{Name: "bus"}, backends.EntityID{Name: "dead"}, backends.EntityID{Name: "jobs"}
	odd := &message.Message{Body: message.DataBody([]byte{0, 0xff}), Properties: message.Properties{{Name: "bad name", Value: message.String("")}}, TTL: new(time.Hour)}
	err = errors.Join(b.CreateQueue(ctx, bus.Name), b.CreateQueueWith(ctx, dead.Name, p), b.CreateQueueWith(ctx, jobs.Name, p),
		b.send(ctx, bus, []*message.Message{odd}), b.send(ctx, dead, []*message.Message{odd, odd, odd, odd}))
	if err != nil {
		t.Fatal(err)
	}
	text, worse := odd.Clone(), odd.Clone()
	text.Body = message.DataBody([]byte("mended"))
	worse.Properties.Set("l", message.Null{})
	for _, c := range []struct {
		from    backends.EntityID
		seq     int64
		as      *message.Message
		refused bool
	}{
		{bus, 1, odd, true},
		{dead, 2, odd, false},
		{dead, 3, text, false},
		{dead, 4, worse, true},
	} {
		err := b.Move(ctx, c.from, []backends.Move{{Seq: c.seq, To: jobs, As: c.as}})
		if backends.IsCode(backends.ItemErrors(err, 1)[0], backends.NotCarried) != c.refused || !c.refused && err != nil {
			t.Errorf("move of %s %d: %v", c.from, c.seq, err)
		}
	}
}
