package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dlq/backends/message"
)

// startTask begins a move task and fails the test if that is refused.
func (b *bench) startTask(m MoveTask) string {
	b.Helper()
	id, err := b.e.StartMoveTask(m)
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// task returns the newest move task of a queue.
func (b *bench) task(source string) MoveTask {
	b.Helper()
	tasks, err := b.e.MoveTasks(source)
	if err != nil || len(tasks) == 0 {
		b.Fatal(tasks, err)
	}
	return tasks[0]
}

func (b *bench) wantTask(source string, status TaskStatus, moved int64, failure string) {
	b.Helper()
	if x := b.task(source); x.Status != status || x.Moved != moved || x.Failure != failure {
		b.Errorf("the task is %s after %d messages (%s), want %s after %d (%s)", x.Status, x.Moved, x.Failure, status, moved, failure)
	}
}

// kill sends messages to a queue whose redrive policy allows one receive, and lets them die.
func (b *bench) kill(queue Address, bodies ...string) {
	b.Helper()
	b.queue = queue
	b.send(bodies...)
	b.take(queue, 10)
	b.pass(30 * time.Second)
	b.wantBodies(queue)
}

// newTask opens an engine with dead letters in "jobs-dlq", and with "spare".
func newTask(t testing.TB, bodies ...string) *bench {
	t.Helper()
	b := newRedrive(t, 1, nil)
	b.create("spare", nil)
	b.kill(b.queue, bodies...)
	return b
}

// A task starts only from a queue that a redrive policy names, at 1 to 500 messages a second, to
// another queue of the same type that exists, and once at a time for a queue.
// Source: sqs-wire.md 2.14, checks in order.
func TestStartMoveTask(t *testing.T) {
	b := newTask(t, "a", "b")
	b.createFIFO("spare.fifo", nil)
	if err := b.e.Create("topic", Topic, Defaults(Topic, ServiceBus)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		task MoveTask
		want error
	}{
		{MoveTask{Source: "missing"}, ErrNoEntity},
		{MoveTask{Source: "jobs"}, ErrInvalid},
		{MoveTask{Source: "spare"}, ErrInvalid},
		{MoveTask{Source: "orders"}, ErrInvalid}, // of Service Bus
		{MoveTask{Source: "jobs-dlq", Rate: -1}, ErrInvalid},
		{MoveTask{Source: "jobs-dlq", Rate: 501}, ErrInvalid},
		{MoveTask{Source: "jobs-dlq", Destination: "missing"}, ErrNoEntity},
		{MoveTask{Source: "jobs-dlq", Destination: "jobs-dlq"}, ErrInvalid},
		{MoveTask{Source: "jobs-dlq", Destination: "spare.fifo"}, ErrInvalid},
		{MoveTask{Source: "jobs-dlq", Destination: "topic"}, ErrInvalid},
		{MoveTask{Source: "jobs-dlq", Destination: "orders"}, ErrInvalid},
		{MoveTask{Source: "jobs-dlq", Destination: "spare", Rate: 1}, nil},
		{MoveTask{Source: "jobs-dlq", Destination: "spare"}, ErrExists},
	} {
		if _, err := b.e.StartMoveTask(c.task); c.want != nil || err != nil {
			b.want(err, c.want)
		}
	}
	b.pass(500 * time.Second)
	b.wantTask("jobs-dlq", TaskCompleted, 2, "")
	b.startTask(MoveTask{Source: "jobs-dlq", Rate: 500}) // the other has ended
}

// What moves is a new message: with a new id, a new sent time and hence a retention of its own,
// count 0, no first receive and no source. Body, attributes and group stay; the oldest goes first.
// Source: sqs-wire.md 2.14 [DOC].
func TestMovedByATask(t *testing.T) {
	b := newRedrive(t, 1, nil)
	var sent []*message.Message
	for _, body := range []string{"a", "b"} {
		sent = append(sent, &message.Message{
			ID: message.String(body), SessionID: new("tenant"), Body: message.DataBody([]byte(body)),
			Properties: message.Properties{{Name: "p", Value: message.String("v")}},
		})
	}
	b.ok(refusals(b.e.Send(b.queue, sent)))
	b.take(b.queue, 2)
	b.pass(time.Hour)
	b.wantBodies(b.queue)
	id := b.startTask(MoveTask{Source: "jobs-dlq"})
	if x := b.task("jobs-dlq"); x.ID != id || x.Source != "jobs-dlq" || x.Destination != "" || x.ToMove != 2 || !x.Started.Equal(b.now) {
		t.Errorf("%+v", x)
	}
	b.wantTask("jobs-dlq", TaskCompleted, 2, "")
	msgs := b.wantBodies(b.queue, "a", "b")
	for i, m := range msgs {
		if c := m.Broker; c.DeliveryCount != 1 || !c.EnqueuedTime.Equal(b.now) || !c.FirstReceived.Equal(b.now) || c.DeadLetterSource != "" {
			t.Errorf("%s: count %d, sent %v, first received %v, source %q", m.Body.Bytes(), c.DeliveryCount, c.EnqueuedTime, c.FirstReceived, c.DeadLetterSource)
		}
		if m.ID == sent[i].ID || m.ID == msgs[1-i].ID {
			t.Errorf("%s has the id %v", m.Body.Bytes(), m.ID)
		}
		m.Broker, m.ID = message.Broker{}, sent[i].ID
		if d := message.Diff(sent[i], m); len(d) > 0 {
			t.Errorf("the task changed %v", d)
		}
	}
}

// Without a destination each message goes to the queue that it came from.
// Source: sqs-wire.md 2.14, [LS] several sources.
func TestTaskToSeveralOrigins(t *testing.T) {
	b := newTask(t, "a")
	b.create("more", func(p *Properties) { p.Redrive = Redrive{"jobs-dlq", 1} })
	b.kill(Address{Name: "more"}, "b")
	b.kill(Address{Name: "jobs"}, "c")
	b.startTask(MoveTask{Source: "jobs-dlq"})
	b.wantTask("jobs-dlq", TaskCompleted, 3, "")
	b.wantContents(Address{Name: "jobs"}, "a/0", "c/0")
	b.wantContents(Address{Name: "more"}, "b/0")
}

// With a destination all go there, also those that nothing tells the origin of.
// Source: API_StartMessageMoveTask, DestinationArn.
func TestTaskToADestination(t *testing.T) {
	b := newTask(t, "a")
	b.queue = jobsDLQ
	b.send("sent there")
	b.startTask(MoveTask{Source: "jobs-dlq", Destination: "spare"})
	b.wantTask("jobs-dlq", TaskCompleted, 2, "")
	b.wantContents(Address{Name: "spare"}, "a/0", "sent there/0")
}

// A message whose origin is not known ends the task and stays where it is; those before it have moved.
// Source: sqs-wire.md 2.14 [EMU].
func TestTaskWithoutOrigin(t *testing.T) {
	b := newTask(t, "a")
	b.queue = jobsDLQ
	b.send("sent there")
	b.startTask(MoveTask{Source: "jobs-dlq"})
	b.wantTask("jobs-dlq", TaskFailed, 1, "CouldNotDetermineMessageSource")
	b.wantContents(jobsDLQ, "sent there/0")
	b.wantContents(Address{Name: "jobs"}, "a/0")
}

// The rate paces: at 1/s four messages take three seconds.
// Source: sqs-wire.md 2.14 [LS].
func TestTaskRate(t *testing.T) {
	b := newTask(t, "a", "b", "c", "d")
	b.startTask(MoveTask{Source: "jobs-dlq", Rate: 1})
	for moved := range int64(3) {
		b.wantTask("jobs-dlq", TaskRunning, moved+1, "")
		b.pass(time.Second - time.Millisecond)
		b.wantTask("jobs-dlq", TaskRunning, moved+1, "")
		b.pass(time.Millisecond)
	}
	b.wantTask("jobs-dlq", TaskCompleted, 4, "")
}

// A cancelled task moves nothing more, and what it has moved stays moved. Only a running task
// can be cancelled.
// Source: sqs-wire.md 2.14.
func TestCancelMoveTask(t *testing.T) {
	b := newTask(t, "a", "b", "c")
	id := b.startTask(MoveTask{Source: "jobs-dlq", Rate: 1})
	b.pass(time.Second)
	if moved, err := b.e.CancelMoveTask(id); err != nil || moved != 2 {
		t.Errorf("cancelled after %d, %v; want 2", moved, err)
	}
	b.pass(time.Hour)
	b.crash() // durable
	b.wantTask("jobs-dlq", TaskCancelled, 2, "")
	b.wantContents(jobsDLQ, "c/1")
	b.wantContents(Address{Name: "jobs"}, "a/0", "b/0")
	_, err := b.e.CancelMoveTask(id)
	b.want(err, ErrInvalid)
	_, err = b.e.CancelMoveTask("unknown")
	b.want(err, ErrNoEntity)
	b.startTask(MoveTask{Source: "jobs-dlq"})
}

// A destination that is deleted while the task runs ends it; what it has not moved stays.
// Source: sqs-wire.md 2.14 [LS].
func TestTaskLosesItsDestination(t *testing.T) {
	for _, destination := range []string{"spare", ""} {
		b := newTask(t, "a", "b")
		b.startTask(MoveTask{Source: "jobs-dlq", Destination: destination, Rate: 1})
		b.wantTask("jobs-dlq", TaskRunning, 1, "")
		gone := destination
		if gone == "" {
			gone = "jobs"
		}
		if err := b.e.Delete(gone); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Second)
		b.wantTask("jobs-dlq", TaskFailed, 1, "AWS.SimpleQueueService.NonExistentQueue")
		b.wantContents(jobsDLQ, "b/1")
	}
}

// With its source a task ends and is forgotten.
// Source: sqs-wire.md 2.14.
func TestTaskLosesItsSource(t *testing.T) {
	b := newTask(t, "a", "b")
	id := b.startTask(MoveTask{Source: "jobs-dlq", Rate: 1})
	if err := b.e.Delete("jobs-dlq"); err != nil {
		t.Fatal(err)
	}
	b.pass(time.Hour)
	_, err := b.e.CancelMoveTask(id)
	b.want(err, ErrNoEntity)
	_, err = b.e.MoveTasks("jobs-dlq")
	b.want(err, ErrNoEntity)
	b.create("jobs-dlq", nil)
	if tasks, err := b.e.MoveTasks("jobs-dlq"); err != nil || len(tasks) > 0 {
		t.Errorf("a new queue of the name has tasks: %v, %v", tasks, err)
	}
}

// Only what is visible moves. What is in flight when the task begins moves when it is visible
// again, if it was not deleted; what arrives later is left.
// Source: sqs-wire.md 2.14 [INF].
func TestTaskWaitsForWhatIsInFlight(t *testing.T) {
	b := newTask(t, "a", "b", "c")
	held := b.take(jobsDLQ, 2)
	b.startTask(MoveTask{Source: "jobs-dlq"})
	b.wantTask("jobs-dlq", TaskRunning, 1, "")
	b.queue = jobsDLQ
	b.send("late")
	b.want(b.visible(held[1], 0), nil)
	b.pass(time.Second)
	b.wantTask("jobs-dlq", TaskRunning, 2, "")
	b.pass(30 * time.Second)
	b.wantTask("jobs-dlq", TaskCompleted, 3, "")
	b.wantContents(jobsDLQ, "late/0")
	b.wantContents(Address{Name: "jobs"}, "c/0", "b/0", "a/0")
}

// A purge of the source ends a task, and one of the destination does not.
func TestTaskAndPurge(t *testing.T) {
	for _, queue := range []string{"jobs-dlq", "jobs"} {
		b := newTask(t, "a", "b", "c")
		b.startTask(MoveTask{Source: "jobs-dlq", Rate: 1})
		b.wantTask("jobs-dlq", TaskRunning, 1, "")
		if _, err := b.e.Purge(t.Context(), Address{Name: queue}, PurgeOptions{InFlight: true, ForgetDuplicates: true}); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Minute)
		b.wantTask("jobs-dlq", TaskCompleted, map[string]int64{"jobs-dlq": 1, "jobs": 3}[queue], "")
	}
}

// What a task moves is visible at once where it arrives, whatever the delay of the queue, and
// wakes who waits there.
// Source: sqs-wire.md 4.2 [INF]: the delay of a queue is not applied to moved messages.
func TestTaskWakes(t *testing.T) {
	b := newTask(t, "a")
	b.change("jobs", func(p *Properties) { p.Delay = time.Minute })
	_, woken := b.waiting(at("jobs"), message.UUID{})
	b.startTask(MoveTask{Source: "jobs-dlq"})
	b.wantTask("jobs-dlq", TaskCompleted, 1, "")
	b.wantWoken(woken, 1, "a move task")
	b.wantBodies(at("jobs"), "a")
}

// A deleted message is not waited for.
func TestTaskAndDeletes(t *testing.T) {
	b := newTask(t, "a", "b")
	b.queue = jobsDLQ
	m := b.receive(jobsDLQ)
	b.startTask(MoveTask{Source: "jobs-dlq"})
	b.wantTask("jobs-dlq", TaskRunning, 1, "")
	b.want(b.remove(m), nil)
	b.pass(time.Second)
	b.wantTask("jobs-dlq", TaskCompleted, 1, "")
	b.startTask(MoveTask{Source: "jobs-dlq"}) // of nothing
	b.wantTask("jobs-dlq", TaskCompleted, 0, "")
}

// A task on a FIFO queue keeps the order of each group: nothing passes what is in flight. What
// moved is no duplicate, though its body and its old id were seen a moment ago.
// Source: sqs-wire.md 2.14 (FIFO since 2023-11), 4.4.
func TestTaskFIFO(t *testing.T) {
	b, dlq := newRedriveFIFO(t, 1)
	b.group("g1", "g1-m1", "g1-m2")
	b.group("g2", "g2-m1")
	b.take(b.queue, 10)
	b.pass(30 * time.Second)
	b.wantBodies(b.queue)
	b.take(dlq, 1)
	b.startTask(MoveTask{Source: dlq.Name})
	b.wantTask(dlq.Name, TaskRunning, 1, "")
	b.wantContents(dlq, "g1-m1/2", "g1-m2/1")
	b.pass(30 * time.Second)
	b.wantTask(dlq.Name, TaskCompleted, 3, "")
	msgs := b.wantBodies(b.queue, "g2-m1", "g1-m1", "g1-m2")
	for _, m := range msgs {
		if dedup, _ := message.Properties(m.System).Get(DeduplicationIDAttribute); dedup != m.ID {
			t.Errorf("%s has the id %v and the deduplication id %v", m.Body.Bytes(), m.ID, dedup)
		}
	}
}

// A running task goes on after a crash or a clean stop, from where it was: each message is in
// one queue, once.
func TestTaskGoesOnAfterARestart(t *testing.T) {
	for _, clean := range []bool{false, true} {
		b := newTask(t, "a", "b", "c", "d")
		id := b.startTask(MoveTask{Source: "jobs-dlq", Rate: 1})
		b.wantTask("jobs-dlq", TaskRunning, 1, "")
		b.queue = Address{Name: "spare"}
		b.send("its sync covers the step")
		if clean {
			b.ok(nil, b.e.Close())
			b.open()
		} else {
			b.crash()
		}
		b.pass(time.Hour)
		b.wantTask("jobs-dlq", TaskCompleted, 4, "")
		if x := b.task("jobs-dlq"); x.ID != id || x.Rate != 1 || x.ToMove != 4 {
			t.Errorf("%+v", x)
		}
		b.wantContents(jobsDLQ)
		b.wantContents(Address{Name: "jobs"}, "a/0", "b/0", "c/0", "d/0")
	}
}

// The last ten tasks of a queue are remembered, the newest first, over a restart as well.
// Source: sqs-wire.md 2.14: List gives at most ten.
func TestTasksAreRemembered(t *testing.T) {
	b := newTask(t)
	var ids []string
	for n := range 15 {
		if n == 14 {
			b.kill(Address{Name: "jobs"}, "a", "b", "c")
		}
		ids = append(ids, b.startTask(MoveTask{Source: "jobs-dlq", Rate: 1}))
		b.pass(time.Millisecond)
	}
	b.create("another-dlq", nil)
	slices.Reverse(ids)
	for range 2 {
		tasks, err := b.e.MoveTasks("jobs-dlq")
		var got []string
		for _, x := range tasks {
			got = append(got, x.ID)
		}
		if err != nil || !slices.Equal(got, ids[:10]) || tasks[0].Status != TaskRunning || tasks[1].Status != TaskCompleted {
			t.Errorf("tasks %v, %v; want %v", got, err, ids[:10])
		}
		b.crash()
	}
	if tasks, err := b.e.MoveTasks("another-dlq"); err != nil || len(tasks) > 0 {
		t.Errorf("another queue has tasks: %v, %v", tasks, err)
	}
}

// A task lasts 36 hours at most, and a hundred run at once.
// Source: sqs-wire.md 2.14 [DOC].
func TestTaskLimits(t *testing.T) {
	b := newTask(t, "a")
	for n := range 100 {
		dlq := fmt.Sprintf("dlq-%d", n)
		b.create(dlq, nil)
		b.create(fmt.Sprintf("source-%d", n), func(p *Properties) { p.Redrive = Redrive{dlq, 1} })
		b.queue.Name = dlq
		b.send("held")
		b.receive(b.queue)
		b.startTask(MoveTask{Source: dlq, Destination: "spare"})
	}
	b.wantTask("dlq-0", TaskRunning, 0, "")
	_, err := b.e.StartMoveTask(MoveTask{Source: "jobs-dlq"})
	b.want(err, ErrInvalid)
	if _, err := b.e.CancelMoveTask(b.task("dlq-0").ID); err != nil {
		t.Fatal(err)
	}

	held := b.takeWith(jobsDLQ, ReceiveOptions{Lock: new(12 * time.Hour)})
	b.startTask(MoveTask{Source: "jobs-dlq"})
	for range 3 {
		b.pass(12*time.Hour - time.Millisecond)
		b.wantTask("jobs-dlq", TaskRunning, 0, "")
		b.queue = jobsDLQ
		b.want(b.visible(held[0], 0), nil)
		held = b.takeWith(jobsDLQ, ReceiveOptions{Lock: new(12 * time.Hour)})
	}
	b.pass(time.Second)
	b.wantTask("jobs-dlq", TaskFailed, 0, "it has run for 36 hours")
	b.wantContents(jobsDLQ, "a/5")
}
