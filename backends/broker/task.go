package broker

import (
	"fmt"
	"slices"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// TaskStatus is how far a move task is.
type TaskStatus string

// The states of a move task, as SQS names them.
const (
	TaskRunning   TaskStatus = "RUNNING"
	TaskCompleted TaskStatus = "COMPLETED"
	TaskCancelled TaskStatus = "CANCELLED"
	TaskFailed    TaskStatus = "FAILED"
)

// MoveTask moves the messages that are in a dead-letter queue when it begins by and by, the
// oldest first, to one queue or each to where it came from. They arrive as new messages with
// new ids. What is locked or delayed it moves once that has ended, and of a message group
// nothing before what stands before it. After 36 hours it fails.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
type MoveTask struct {
	ID          string
	Source      string // a queue that a redrive policy names
	Destination string // "": where each message came from
	Rate        int    // messages a second, 1 to 500; 0: as fast as it goes

	// Owned by the engine.

	Status        TaskStatus
	Moved, ToMove int64 // ToMove: how many there were when it began
	Started       time.Time
	Failure       string // why it failed
}

const (
	maxTaskRate  = 500
	keptTasks    = 10                    // finished ones of a queue that are remembered
	taskStep     = 100                   // messages at once without a rate
	taskPause    = 10 * time.Millisecond // between steps
	taskPatience = time.Second           // between looks for messages that are locked

	// Of a task, and of those that run at once.
	// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
	taskLife, maxTasks = 36 * time.Hour, 100
)

// task is a move task with its source.
type task struct {
	MoveTask
	source  *entity
	through uint64 // the highest number of those that were there when it began: it moves no others
}

// StartMoveTask begins a move task and returns its id when it is durable. A queue has one
// running task at most: [ErrExists].
func (e *Engine) StartMoveTask(m MoveTask) (string, error) {
	t, q, err := e.on(Address{Name: m.Source})
	if err != nil {
		return "", err
	}
	if err := t.admitsTask(q.of, m); err != nil {
		t.end()
		return "", err
	}
	x := &task{MoveTask: MoveTask{
		ID: e.newID().String(), Source: q.of.name, Destination: m.Destination, Rate: m.Rate,
		Status: TaskRunning, ToMove: int64(q.ready.Len() + len(q.locked) + len(q.scheduled)), Started: t.now,
	}, source: q.of, through: q.of.next - 1}
	t.forgetTasks(q.of)
	e.tasks = append(e.tasks, x)
	e.timers.add(t.now, x)
	t.batch.PutTask(x.stored())
	return x.ID, t.commit()
}

func (t *tx) admitsTask(source *entity, m MoveTask) error {
	if len(t.e.sources()[source]) == 0 {
		return fmt.Errorf("%w: no redrive policy names %s as its dead-letter queue", ErrInvalid, source.name)
	}
	if m.Rate < 0 || m.Rate > maxTaskRate {
		return fmt.Errorf("%w: a move task moves 1 to %d messages a second, or 0 for as many as it can", ErrInvalid, maxTaskRate)
	}
	if m.Destination != "" {
		to := t.e.entity(m.Destination)
		switch {
		case to == nil:
			return fmt.Errorf("%w: %s", ErrNoEntity, m.Destination)
		case to == source:
			return fmt.Errorf("%w: a move task cannot move messages to their own queue", ErrInvalid)
		case !to.like(source):
			return fmt.Errorf("%w: %s is of another type than %s", ErrInvalid, to.name, source.name)
		}
	}
	running := 0
	for _, x := range t.e.tasks {
		if x.Status != TaskRunning {
			continue
		}
		if running++; x.source == source {
			return fmt.Errorf("%w: task %s is moving the messages of %s", ErrExists, x.ID, source.name)
		}
	}
	if running >= maxTasks {
		return fmt.Errorf("%w: %d move tasks are running; wait for one of them", ErrInvalid, running)
	}
	return nil
}

// forgetTasks forgets the oldest finished tasks of a queue.
func (t *tx) forgetTasks(source *entity) {
	n := 0
	for _, x := range slices.Backward(slices.Clone(t.e.tasks)) {
		if x.source == source && x.Status != TaskRunning {
			if n++; n >= keptTasks {
				t.dropTask(x)
			}
		}
	}
}

func (t *tx) dropTask(x *task) {
	t.e.tasks = slices.DeleteFunc(t.e.tasks, func(y *task) bool { return x == y })
	t.batch.DeleteTask(x.source.id, x.ID)
}

// CancelMoveTask ends a running task and returns how many messages it has moved; they stay
// moved. The error is [ErrNoEntity] for an unknown task and [ErrInvalid] for one that has ended.
func (e *Engine) CancelMoveTask(id string) (moved int64, err error) {
	t, err := e.begin()
	if err != nil {
		return 0, err
	}
	for _, x := range e.tasks {
		if x.ID != id {
			continue
		}
		if x.Status != TaskRunning {
			t.end()
			return x.Moved, fmt.Errorf("%w: the task is %s", ErrInvalid, x.Status)
		}
		x.Status = TaskCancelled
		t.batch.PutTask(x.stored())
		moved := x.Moved
		return moved, t.commit()
	}
	t.end()
	return 0, fmt.Errorf("%w: task %s", ErrNoEntity, id)
}

// MoveTasks returns the running task of a queue and its last finished ones, the newest first.
func (e *Engine) MoveTasks(source string) ([]MoveTask, error) {
	t, q, err := e.on(Address{Name: source})
	if err != nil {
		return nil, err
	}
	defer t.end()
	var out []MoveTask
	for _, x := range slices.Backward(e.tasks) {
		if x.source == q.of {
			out = append(out, x.MoveTask)
		}
	}
	return out, nil
}

// happen moves the next messages.
func (x *task) happen(t *tx) error {
	if x.Status != TaskRunning || t.e.byID[x.source.id] != x.source {
		return nil
	}
	if t.now.Sub(x.Started) >= taskLife {
		x.fail("it has run for 36 hours")
		t.batch.PutTask(x.stored())
		return nil
	}
	n, pause := taskStep, taskPause
	if x.Rate > 0 {
		n, pause = 1, time.Second/time.Duration(x.Rate)
	}
	q := x.source.subs[Main]
	before := x.MoveTask
	defer func() {
		if x.MoveTask != before {
			t.batch.PutTask(x.stored())
		}
	}()
	for ; n > 0 && x.Status == TaskRunning; n-- {
		seq, ok := q.oldest()
		if !ok || seq > x.through {
			break
		}
		if err := t.moveBack(x, q, seq); err != nil {
			return err
		}
	}
	seq, ok := q.oldest()
	switch {
	case x.Status != TaskRunning:
	case ok && seq <= x.through:
		t.e.timers.add(t.now.Add(pause), x)
	case x.waits(q):
		t.e.timers.add(t.now.Add(taskPatience), x)
	default:
		x.Status = TaskCompleted
	}
	return nil
}

func (x *task) fail(why string) { x.Status, x.Failure = TaskFailed, why }

// waits reports whether some of what the task moves is there and cannot be had now.
func (x *task) waits(q *queue) bool {
	if seq, ok := q.ready.Min(); ok && seq <= x.through {
		return true // behind others of its group
	}
	for seq := range q.locked {
		if seq <= x.through {
			return true
		}
	}
	for seq := range q.scheduled {
		if seq <= x.through {
			return true
		}
	}
	return false
}

// oldest returns the first message that a receive could have.
func (q *queue) oldest() (first uint64, ok bool) {
	if q.of.p.Groups {
		return q.firsts.Min()
	}
	return q.ready.Min()
}

// moveBack moves one message, or says why the task fails.
func (t *tx) moveBack(x *task, q *queue, seq uint64) error {
	st, err := t.state(q.key(seq))
	var m *message.Message
	if err == nil {
		m, err = t.headAlone(&st)
	}
	if isDamage(err) {
		t.e.quarantine(q, seq, nil)
		return nil
	}
	if err != nil {
		return unavailable(err)
	}
	name := x.Destination
	if name == "" {
		name = st.Source
	}
	to := t.e.entity(name)
	switch {
	case name == "":
		x.fail("CouldNotDetermineMessageSource")
		return nil
	case to == nil || !to.like(x.source):
		x.fail("AWS.SimpleQueueService.NonExistentQueue")
		return nil
	}
	t.e.leave(q, seq, &st)
	t.unlist(q, seq, &st)
	m.ID = message.String(t.e.newID().String())
	if to.p.DeduplicationID {
		setSystem(m, DeduplicationIDAttribute, m.ID)
	}
	l := landing{copyOf: copyOf{m: m, own: true, overlay: st.Overlay, from: seq}, q: to.subs[Main]}
	t.settleDown(&l, st, func(*store.State) {})
	x.Moved++
	return nil
}

// The names in the stored form of a task.
const (
	taskDestination, taskRate, taskState            = "destination", "rate", "status"
	taskMoved, taskToMove, taskStarted, taskFailure = "moved", "toMove", "started", "failure"
	taskThrough                                     = "through"
)

func (x *task) stored() store.Named {
	return store.Named{Entity: x.source.id, Name: x.ID, Attributes: []message.Attribute{
		{Name: taskDestination, Value: message.String(x.Destination)},
		{Name: taskRate, Value: message.Long(x.Rate)},
		{Name: taskState, Value: message.String(x.Status)},
		{Name: taskMoved, Value: message.Long(x.Moved)},
		{Name: taskToMove, Value: message.Long(x.ToMove)},
		{Name: taskStarted, Value: message.Long(x.Started.UnixMilli())},
		{Name: taskFailure, Value: message.String(x.Failure)},
		{Name: taskThrough, Value: message.Long(x.through)},
	}}
}

// loadTasks reads the tasks, and goes on with those that were running.
func (e *Engine) loadTasks() error {
	for n, err := range e.store.Tasks() {
		if err != nil {
			return err
		}
		ent := e.byID[n.Entity]
		if ent == nil {
			continue
		}
		x := &task{source: ent, MoveTask: MoveTask{ID: n.Name, Source: ent.name}}
		for _, a := range n.Attributes {
			text, _ := a.Value.(message.String)
			number, _ := a.Value.(message.Long)
			switch a.Name {
			case taskDestination:
				x.Destination = string(text)
			case taskRate:
				x.Rate = int(number)
			case taskState:
				x.Status = TaskStatus(text)
			case taskMoved:
				x.Moved = int64(number)
			case taskToMove:
				x.ToMove = int64(number)
			case taskStarted:
				x.Started = time.UnixMilli(int64(number)).UTC()
			case taskFailure:
				x.Failure = string(text)
			case taskThrough:
				x.through = uint64(number)
			}
		}
		e.tasks = append(e.tasks, x)
		if x.Status == TaskRunning {
			e.timers.add(e.latest, x)
		}
	}
	slices.SortStableFunc(e.tasks, func(a, b *task) int { return a.Started.Compare(b.Started) })
	return nil
}
