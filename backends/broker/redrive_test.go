package broker

import (
	"slices"
	"testing"
	"time"

	"dlq/backends/message"
)

var jobsDLQ = Address{Name: "jobs-dlq"}

// newRedrive opens an engine with the queue "jobs", whose redrive policy names "jobs-dlq".
func newRedrive(t testing.TB, maxReceives int, change func(*Properties)) *bench {
	t.Helper()
	b := newBench(t)
	b.create(jobsDLQ.Name, change)
	b.queue.Name = "jobs"
	b.create(b.queue.Name, func(p *Properties) {
		if change != nil {
			change(p)
		}
		p.Redrive = Redrive{jobsDLQ.Name, maxReceives}
	})
	return b
}

// newRedriveFIFO is newRedrive with "jobs.fifo" and "jobs-dlq.fifo".
func newRedriveFIFO(t testing.TB, maxReceives int) (*bench, Address) {
	t.Helper()
	b := newBench(t)
	dlq := Address{Name: "jobs-dlq.fifo"}
	b.createFIFO(dlq.Name, nil)
	b.queue.Name = "jobs.fifo"
	b.createFIFO(b.queue.Name, func(p *Properties) { p.Redrive = Redrive{dlq.Name, maxReceives} })
	return b, dlq
}

// A message that was received maxReceiveCount times moves when a receive selects it again. That
// receive does not return it, and nothing moves because a timeout ran out.
// Source: sqs-wire.md 4.2, [LS test_dead_letter_queue_max_receive_count].
func TestRedriveOnReceive(t *testing.T) {
	b := newRedrive(t, 1, nil)
	b.send("a")
	if m := b.receive(b.queue); m == nil || m.Broker.DeliveryCount != 1 {
		t.Fatalf("the first receive gave %+v", m)
	}
	b.pass(time.Hour)
	if err := b.e.Tick(); err != nil {
		t.Fatal(err)
	}
	b.wantContents(b.queue, "a/1") // a timeout alone moves nothing
	b.wantBodies(b.queue)
	b.wantContents(b.queue)
	b.wantContents(jobsDLQ, "a/1")
}

// The receive that moves a message may return others.
// Source: sqs-wire.md 4.2.
func TestRedriveAmongOthers(t *testing.T) {
	b := newRedrive(t, 2, nil)
	b.send("a")
	for range 2 {
		b.wantBodies(b.queue, "a")
		b.pass(30 * time.Second)
	}
	b.send("b", "c")
	if got := bodies(b.take(b.queue, 1)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("received %v, want the first that is not moved", got)
	}
	b.wantContents(jobsDLQ, "a/2")
}

// A receive comes to what lies behind very many that it moves, and they do not keep others from
// the engine for long: they move some at a time.
func TestRedriveOfMany(t *testing.T) {
	const many = 2500
	b := newRedrive(t, 1, nil)
	b.send(slices.Repeat([]string{"dead"}, many)...)
	b.takeWith(b.queue, ReceiveOptions{Max: many, Lock: new(time.Duration)})
	b.send("alive")
	clock, commands := b.e.clock, 0 // each command reads the clock once
	b.e.clock = func() time.Time { commands++; return clock() }
	b.wantBodies(b.queue, "alive")
	if commands < 3 {
		t.Errorf("it was done in %d commands", commands)
	}
	if i := b.info(jobsDLQ.Name); i.Active != many {
		t.Errorf("%d of %d have moved", i.Active, many)
	}

	b = newSQS(t, func(p *Properties) { p.Redrive = Redrive{"jobs", 1} }) // to itself: it ends
	b.send(slices.Repeat([]string{"again"}, many)...)
	b.takeWith(b.queue, ReceiveOptions{Max: many, Lock: new(time.Duration)})
	b.wantBodies(b.queue)
	if i := b.info("jobs"); i.Active != many {
		t.Errorf("%d of %d are left", i.Active, many)
	}
}

// A released message, and one received with VisibilityTimeout 0, has been received: the next
// receive that selects it moves it.
// Source: sqs-wire.md 4.2.
func TestRedriveCountsEveryReceive(t *testing.T) {
	b := newRedrive(t, 2, nil)
	b.send("a")
	b.takeWith(b.queue, ReceiveOptions{Lock: new(time.Duration)})
	b.want(b.visible(b.receive(b.queue), 0), nil)
	b.wantContents(b.queue, "a/2")
	b.wantBodies(b.queue)
	b.wantContents(jobsDLQ, "a/2")
}

// What a message is stays over the move: id, body, attributes, group, first receive, and on a
// standard queue the sent time. It tells where it came from, its count goes on, and the delay of
// the dead-letter queue does not hold for it. All of that is still so after a crash.
// Source: sqs-wire.md 4.2, [LS]: one receive before the move and one after show "2".
func TestRedriveKeeps(t *testing.T) {
	b := newRedrive(t, 1, nil)
	if err := b.e.Change(jobsDLQ.Name, func(p *Properties) error { p.Delay = time.Minute; return nil }); err != nil {
		t.Fatal(err)
	}
	sent := &message.Message{
		ID: message.String("id"), SessionID: new("tenant"), Body: message.DataBody([]byte("a")),
		Properties: message.Properties{{Name: "p", Value: message.Binary("\x00v")}},
		System:     []message.Attribute{{Name: "AWSTraceHeader", Value: message.String("Root=1")}},
	}
	b.ok(refusals(b.e.Send(b.queue, []*message.Message{sent})))
	b.pass(time.Second)
	first := b.now
	b.receive(b.queue)
	b.pass(time.Hour)
	b.wantBodies(b.queue)
	b.send("its sync covers the move")
	b.crash()
	m := b.receive(jobsDLQ)
	if m == nil {
		t.Fatal("nothing is in the dead-letter queue")
	}
	if c := m.Broker; c.DeliveryCount != 2 || c.DeadLetterSource != "jobs" || !c.EnqueuedTime.Equal(epoch) || !c.FirstReceived.Equal(first) {
		t.Errorf("count %d, source %q, sent %v, first received %v", c.DeliveryCount, c.DeadLetterSource, c.EnqueuedTime, c.FirstReceived)
	}
	m.Broker = message.Broker{}
	if d := message.Diff(sent, m); len(d) > 0 {
		t.Errorf("the move changed %v", d)
	}
}

// YMQ begins anew with the move: sent time and count.
// Source: sqs-wire.md 5.2 [YDB].
func TestRedriveOfYMQ(t *testing.T) {
	b := newRedrive(t, 1, func(p *Properties) { p.RedriveKeepsAge, p.RedriveKeepsCount = false, false })
	b.send("a")
	b.receive(b.queue)
	b.pass(time.Hour)
	b.wantBodies(b.queue)
	m := b.receive(jobsDLQ)
	if m == nil || m.Broker.DeliveryCount != 1 || !m.Broker.EnqueuedTime.Equal(b.now) || m.ID != message.String("a") {
		t.Errorf("received %+v", m)
	}
}

// On FIFO queues the group stays, the sent time is that of the move, and the deduplication id
// becomes the message id. The group is free for its next message, in the same receive.
// Source: sqs-wire.md 4.2 [DOC], [LS test_dead_letter_queue_with_fifo_…].
func TestRedriveFIFO(t *testing.T) {
	b, dlq := newRedriveFIFO(t, 1)
	b.group("g", "a", "b")
	b.take(b.queue, 1)
	b.pass(time.Minute)
	b.wantBodies(b.queue, "b")
	m := b.receive(dlq)
	if m == nil {
		t.Fatal("nothing is in the dead-letter queue")
	}
	if c := m.Broker; c.DeliveryCount != 2 || c.DeadLetterSource != "jobs.fifo" || !c.EnqueuedTime.Equal(b.now) {
		t.Errorf("count %d, source %q, sent %v", c.DeliveryCount, c.DeadLetterSource, c.EnqueuedTime)
	}
	dedup, _ := message.Properties(m.System).Get(DeduplicationIDAttribute)
	if message.Str(m.SessionID) != "g" || m.ID != message.String("id of a") || dedup != message.String("id of a") {
		t.Errorf("group %q, id %v, deduplication id %v", message.Str(m.SessionID), m.ID, dedup)
	}
}

// A message gets a number of the dead-letter queue, where others may have come before.
// Source: sqs-wire.md 4.2 [REC2].
func TestRedriveNumbersAnew(t *testing.T) {
	b, dlq := newRedriveFIFO(t, 1)
	b.group("g", "a", "b", "c")
	b.take(b.queue, 3)
	source := b.queue
	b.queue = dlq
	b.group("other", "first", "second", "third", "fourth")
	b.pass(time.Minute)
	b.wantBodies(source)
	var seqs []int64
	for _, m := range b.wantBodies(dlq, "first", "second", "third", "fourth", "a", "b", "c") {
		seqs = append(seqs, m.Broker.SequenceNumber)
	}
	if !slices.Equal(seqs, []int64{1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("the numbers are %v", seqs)
	}
}

// Messages of one group stay in their order in the dead-letter queue, which locks the group as
// every FIFO queue does.
// Source: sqs-wire.md 4.4.
func TestRedriveFIFOKeepsOrder(t *testing.T) {
	b, dlq := newRedriveFIFO(t, 1)
	b.group("g", "a", "b", "c")
	b.take(b.queue, 10)
	b.pass(time.Minute)
	b.wantBodies(b.queue)
	if got := bodies(b.take(dlq, 2)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("received %v", got)
	}
	b.wantBodies(dlq)
}

// A dead-letter queue has a policy of its own: since the count goes on, a message whose count
// has reached that policy's maximum moves at its first receive there.
// Source: sqs-wire.md 4.2 [INF from the continuity of the count].
func TestChainedDeadLetterQueues(t *testing.T) {
	b := newRedrive(t, 2, nil)
	b.create("last", nil)
	if err := b.e.Change(jobsDLQ.Name, func(p *Properties) error { p.Redrive = Redrive{"last", 2}; return nil }); err != nil {
		t.Fatal(err)
	}
	b.send("a")
	for range 2 {
		b.wantBodies(b.queue, "a")
		b.pass(time.Minute)
	}
	b.wantBodies(b.queue)
	b.wantBodies(jobsDLQ)
	last := b.wantBodies(Address{Name: "last"}, "a")
	if c := last[0].Broker; c.DeliveryCount != 3 || c.DeadLetterSource != jobsDLQ.Name {
		t.Errorf("count %d, source %q", c.DeliveryCount, c.DeadLetterSource)
	}
}

// A queue may name itself. A message that is due moves behind the others, once in a receive.
// Source: sqs-wire.md 4.2, [LS test_set_empty_redrive_policy].
func TestQueueNamesItself(t *testing.T) {
	b := newSQS(t, func(p *Properties) { p.Redrive = Redrive{"jobs", 1} })
	b.send("a", "b")
	b.take(b.queue, 1)
	b.pass(time.Minute)
	b.wantBodies(b.queue, "b")
	b.wantContents(b.queue, "b/1", "a/1")
	if i := b.info("jobs"); i.Active != 2 || i.InFlight != 1 {
		t.Errorf("active %d, in flight %d", i.Active, i.InFlight)
	}
}

// What a queue that names itself has moved once it delivers: a message does not go round for ever,
// and who waits for one is not woken for nothing again and again.
func TestQueueNamesItselfOnce(t *testing.T) {
	b := newSQS(t, func(p *Properties) { p.Redrive = Redrive{"jobs", 1} })
	b.send("a")
	b.receive(b.queue)
	b.pass(time.Minute)
	b.wantBodies(b.queue)
	for count := range uint32(3) {
		msgs := b.wantBodies(b.queue, "a")
		if c := msgs[0].Broker; c.DeliveryCount != count+2 || c.DeadLetterSource != "jobs" {
			t.Errorf("count %d, source %q", c.DeliveryCount, c.DeadLetterSource)
		}
		b.pass(time.Minute)
	}
}

// Without its dead-letter queue a queue delivers as if it had no policy. It keeps the policy, its
// other properties can be changed, and the policy holds again with a new queue of that name.
// Source: sqs-wire.md 2.2, 4.2.
func TestDeadLetterQueueIsGone(t *testing.T) {
	b := newRedrive(t, 1, nil)
	b.send("a")
	if err := b.e.Delete(jobsDLQ.Name); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b.wantBodies(b.queue, "a")
		b.pass(time.Minute)
	}
	if err := b.e.Change("jobs", func(p *Properties) error { p.LockDuration = time.Second; return nil }); err != nil {
		t.Errorf("change another property: %v", err)
	}
	if p := b.info("jobs").Redrive; p != (Redrive{jobsDLQ.Name, 1}) {
		t.Errorf("the policy is now %+v", p)
	}
	_, err := b.e.Receive(dead(b.queue), ReceiveOptions{})
	b.want(err, ErrNoEntity)
	b.create(jobsDLQ.Name, nil)
	b.wantBodies(b.queue)
	b.wantContents(jobsDLQ, "a/3")
}

// What takes the name of a dead-letter queue that was deleted, and is none, gets no messages.
func TestDeadLetterQueueIsReplaced(t *testing.T) {
	b := newRedrive(t, 1, nil)
	b.send("a")
	b.wantBodies(b.queue, "a")
	b.pass(time.Minute)
	if err := b.e.Delete(jobsDLQ.Name); err != nil {
		t.Fatal(err)
	}
	if err := b.e.Create(jobsDLQ.Name, Topic, Defaults(Topic, ServiceBus)); err != nil {
		t.Fatal(err)
	}
	b.wantBodies(b.queue, "a")
	_, err := b.e.Receive(dead(b.queue), ReceiveOptions{})
	b.want(err, ErrNoEntity)
}

// A policy that is taken away holds no more; one that is set holds for what is there.
// Source: API_SetQueueAttributes, RedrivePolicy; sqs-wire.md 2.6.
func TestRedrivePolicyChanges(t *testing.T) {
	b := newRedrive(t, 1, nil)
	set := func(r Redrive) {
		t.Helper()
		if err := b.e.Change("jobs", func(p *Properties) error { p.Redrive = r; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	b.send("a")
	set(Redrive{})
	for range 3 {
		b.wantBodies(b.queue, "a")
		b.pass(time.Minute)
	}
	set(Redrive{jobsDLQ.Name, 4})
	b.wantBodies(b.queue, "a")
	b.pass(time.Minute)
	b.wantBodies(b.queue)
	b.wantContents(jobsDLQ, "a/4")
}

// The target of a redrive policy exists, is an SQS-style queue of the same type, and allows the
// queue. All of that is looked at when the policy is set, and only then.
// Source: sqs-wire.md 4.2, 4.3 [REC2].
func TestRedrivePolicyIsValidated(t *testing.T) {
	b := newSQS(t, nil)
	b.create("dlq", nil)
	b.createFIFO("dlq.fifo", nil)
	b.create("allows-jobs", func(p *Properties) { p.RedriveAllow = RedriveAllow{AllowByQueue, []string{"other", "jobs"}} })
	b.create("allows-other", func(p *Properties) { p.RedriveAllow = RedriveAllow{AllowByQueue, []string{"other"}} })
	b.create("denies", func(p *Properties) { p.RedriveAllow.Permission = DenyAll })
	b.create("allows", func(p *Properties) { p.RedriveAllow.Permission = AllowAll })
	for _, c := range []struct {
		policy Redrive
		want   error
	}{
		{Redrive{"dlq", 1}, nil},
		{Redrive{"dlq", 1000}, nil},
		{Redrive{"dlq", 0}, ErrInvalid},
		{Redrive{"dlq", 1001}, ErrInvalid},
		{Redrive{"missing", 1}, ErrInvalid},
		{Redrive{"DLQ", 1}, ErrInvalid}, // names compare with case
		{Redrive{"dlq.fifo", 1}, ErrInvalid},
		{Redrive{"orders", 1}, ErrInvalid}, // of Service Bus
		{Redrive{"allows", 1}, nil},
		{Redrive{"allows-jobs", 1}, nil},
		{Redrive{"allows-other", 1}, ErrInvalid},
		{Redrive{"denies", 1}, ErrInvalid},
	} {
		err := b.e.Change("jobs", func(p *Properties) error { p.Redrive = c.policy; return nil })
		created := b.e.Create("new", Queue, defaultsSQS(func(p *Properties) { p.Redrive = c.policy }))
		if created == nil {
			if err := b.e.Delete("new"); err != nil {
				t.Fatal(err)
			}
		}
		if want := c.policy.Target != "allows-jobs"; want {
			b.want(created, c.want)
		}
		b.want(err, c.want)
	}
	if err := b.e.Change("allows-jobs", func(p *Properties) error { p.RedriveAllow = RedriveAllow{Permission: DenyAll}; return nil }); err != nil {
		t.Fatal(err)
	}
	b.send("a")
	b.wantBodies(b.queue, "a")
	b.pass(time.Minute)
	b.wantBodies(b.queue)
	b.wantContents(Address{Name: "allows-jobs"}, "a/1") // the policy holds as it was set
	if err := b.e.Change("jobs", func(p *Properties) error { p.LockDuration = time.Second; return nil }); err != nil {
		t.Errorf("change another property: %v", err)
	}
}

// A redrive allow policy names one to ten queues for byQueue, and none else.
// Source: sqs-wire.md 4.3.
func TestRedriveAllowPolicyIsValidated(t *testing.T) {
	b := newSQS(t, nil)
	eleven := slices.Repeat([]string{"q"}, 11)
	for _, c := range []struct {
		policy RedriveAllow
		want   error
	}{
		{RedriveAllow{}, nil},
		{RedriveAllow{Permission: AllowAll}, nil},
		{RedriveAllow{Permission: DenyAll}, nil},
		{RedriveAllow{AllowByQueue, eleven[:1]}, nil},
		{RedriveAllow{AllowByQueue, eleven[:10]}, nil},
		{RedriveAllow{AllowByQueue, eleven}, ErrInvalid},
		{RedriveAllow{AllowByQueue, nil}, ErrInvalid},
		{RedriveAllow{AllowAll, eleven[:1]}, ErrInvalid},
		{RedriveAllow{DenyAll, eleven[:1]}, ErrInvalid},
		{RedriveAllow{"some", nil}, ErrInvalid},
	} {
		b.want(b.e.Change("jobs", func(p *Properties) error { p.RedriveAllow = c.policy; return nil }), c.want)
	}
}

// The dead-letter queue of a queue with a redrive policy is the queue that the policy names, and
// that of a queue which others name is the queue itself: an operator finds dead letters at the
// same address everywhere. Nothing is sent there.
func TestDeadLetterAddress(t *testing.T) {
	b := newRedrive(t, 1, nil)
	b.create("free", nil)
	b.send("a")
	b.receive(b.queue)
	b.pass(time.Minute)
	b.wantBodies(b.queue)
	for _, a := range []Address{dead(b.queue), jobsDLQ, dead(jobsDLQ)} {
		b.wantContents(a, "a/1")
	}
	errs, err := b.e.SettleBySequence(dead(b.queue), Outcome{Action: Complete}, 1)
	b.ok(errs, err)
	b.wantContents(jobsDLQ)
	_, err = b.e.Send(dead(b.queue), []*message.Message{{}})
	b.want(err, ErrInvalid)
	for _, a := range []Address{{Name: "free", Sub: DeadLetter}, {Name: "jobs", Sub: TransferDeadLetter}, {Name: "jobs-dlq", Sub: TransferDeadLetter}} {
		_, err := b.e.Receive(a, ReceiveOptions{})
		b.want(err, ErrNoEntity)
	}
	if i := b.info(jobsDLQ.Name); !slices.Equal(i.Sources, []string{"jobs"}) {
		t.Errorf("the sources are %v", i.Sources)
	}
}

// A message can be moved back by hand, with a new deduplication id where that is needed. One
// that the queue would drop as a duplicate stays.
func TestMoveBetweenSQSQueues(t *testing.T) {
	b, dlq := newRedriveFIFO(t, 1)
	b.group("g", "a")
	b.take(b.queue, 1)
	b.pass(time.Minute)
	b.wantBodies(b.queue)
	page, err := b.e.Peek(dlq, PeekOptions{Max: 1})
	if err != nil || len(page) != 1 {
		t.Fatal(err, page)
	}
	back := func(dedup string) error {
		as := page[0].Clone()
		as.System = nil
		if dedup != "" {
			setSystem(as, DeduplicationIDAttribute, message.String(dedup))
		}
		errs, err := b.e.Move(dlq, []Move{{Seq: page[0].Broker.SequenceNumber, To: b.queue, As: as}})
		if err != nil {
			t.Fatal(err)
		}
		return errs[0]
	}
	b.want(back(""), ErrDuplicate) // the hash of its body was seen a minute ago
	b.wantContents(dlq, "a/1")
	b.want(back("new"), nil)
	b.wantContents(dlq)
	m := b.receive(b.queue)
	if m == nil || m.Broker.DeliveryCount != 1 || m.Broker.DeadLetterSource != "" || message.Str(m.SessionID) != "g" {
		t.Errorf("received %+v", m)
	}
}

// An SQS-style queue neither defers nor dead-letters by request, and abandoning counts nothing:
// the receive has counted.
// Source: sqs-wire.md 2; the service has no such action.
func TestWhatSQSCannotDo(t *testing.T) {
	b := newRedrive(t, 3, nil)
	b.send("a")
	m := b.receive(b.queue)
	for _, action := range []Action{Defer, Bury} {
		errs, err := b.e.Settle(b.queue, Outcome{Action: action}, m.Broker.LockToken)
		if err != nil {
			t.Fatal(err)
		}
		b.want(errs[0], ErrUnsupported)
	}
	b.settle(b.queue, Abandon, m)
	b.wantContents(b.queue, "a/1")
}

// defaultsSQS are the properties of an SQS-style queue, changed.
func defaultsSQS(change func(*Properties)) Properties {
	p := Defaults(Queue, SQS)
	change(&p)
	return p
}
