package sqsd

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	"dlq/backends/broker"
)

// taskHandle is what a client gets for a move task.
type taskHandle struct {
	ID     string `json:"taskId"`
	Source string `json:"sourceArn"`
}

func (h taskHandle) String() string { return base64.StdEncoding.EncodeToString(marshal(h)) }

const maxTaskRate = 500

// startMoveTask begins to move the messages of a dead-letter queue.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
func (c *call) startMoveTask() error {
	source, err := c.resource("SourceArn", c.in.source)
	if err != nil {
		return err
	}
	all, err := c.s.Engine.Entities()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(info broker.Info) bool { return info.Redrive.Target == source.Name }) {
		return invalidParameter("Source queue must be configured as a Dead Letter Queue.")
	}
	task := broker.MoveTask{Source: source.Name}
	if c.in.rate != nil {
		if !c.in.rate.within(1, maxTaskRate) {
			return invalidParameter("Value for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: You must enter a number that's between 1 and %d.", maxTaskRate)
		}
		task.Rate = int(c.in.rate.n)
	}
	if c.in.destination != nil {
		to, err := c.resource("DestinationArn", c.in.destination)
		switch {
		case err != nil:
			return err
		case to.Name == source.Name:
			return invalidParameter("Source queue arn and destination queue arn cannot be the same.")
		case to.Groups != source.Groups:
			return invalidParameter("The source queue and destination queue must be of the same queue type.")
		}
		task.Destination = to.Name
	}
	id, err := c.s.Engine.StartMoveTask(task)
	if errors.Is(err, broker.ErrExists) {
		return invalidParameter("There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
	}
	if err != nil {
		return err
	}
	c.out.str("TaskHandle", taskHandle{id, *c.in.source}.String())
	return nil
}

// resource finds the queue that an ARN names.
func (c *call) resource(parameter string, arn *string) (broker.Info, error) {
	if str(arn) == "" {
		return broker.Info{}, missingParameter(parameter)
	}
	q, ok := parseARN(*arn)
	if !ok {
		return broker.Info{}, invalidParameter("You must use this format to specify the %s: arn:<partition>:<service>:<region>:<account-id>:<resource-id>", parameter)
	}
	info, err := c.lookUp(q)
	if errors.Is(err, broker.ErrNoEntity) {
		err = noResource("The resource that you specified for the %s parameter doesn't exist.", parameter)
	}
	return info, err
}

const maxTasksListed = 10

// listMoveTasks lists the last move tasks of a queue.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListMessageMoveTasks.html
func (c *call) listMoveTasks() error {
	source, err := c.resource("SourceArn", c.in.source)
	if err != nil {
		return err
	}
	most := int64(1)
	if c.in.maxResults != nil {
		if !c.in.maxResults.within(1, maxTasksListed) {
			return invalidParameter("Value for parameter MaxResults is invalid. Reason: You must enter a number that's between 1 and %d.", maxTasksListed)
		}
		most = c.in.maxResults.n
	}
	tasks, err := c.s.Engine.MoveTasks(source.Name)
	if err != nil {
		return err
	}
	tasks = tasks[:min(int64(len(tasks)), most)]
	c.out.list("Results", "ListMessageMoveTasksResultEntry", len(tasks), func(i int) {
		t := tasks[i]
		if t.Status == broker.TaskRunning { // nothing can be done to the others
			c.out.str("TaskHandle", taskHandle{t.ID, *c.in.source}.String())
		}
		c.out.str("Status", string(t.Status))
		c.out.str("SourceArn", *c.in.source)
		if t.Destination != "" {
			c.out.str("DestinationArn", c.s.arn(c.s.idOf(t.Destination)))
		}
		if t.Rate > 0 {
			c.out.num("MaxNumberOfMessagesPerSecond", int64(t.Rate))
		}
		c.out.num("ApproximateNumberOfMessagesMoved", t.Moved)
		c.out.num("ApproximateNumberOfMessagesToMove", t.ToMove)
		if t.Status == broker.TaskFailed {
			c.out.str("FailureReason", t.Failure)
		}
		c.out.num("StartedTimestamp", t.Started.UnixMilli())
	})
	return nil
}

// cancelMoveTask ends a task. What it has moved stays moved.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CancelMessageMoveTask.html
func (c *call) cancelMoveTask() error {
	if c.in.handle == nil {
		return missingParameter("TaskHandle")
	}
	var h taskHandle
	raw, err := base64.StdEncoding.DecodeString(*c.in.handle)
	if err != nil || json.Unmarshal(raw, &h) != nil || h.ID == "" {
		return invalidParameter("Value for parameter TaskHandle is invalid.")
	}
	if _, err := c.resource("SourceArn", &h.Source); err != nil {
		return err
	}
	moved, err := c.s.Engine.CancelMoveTask(h.ID)
	switch {
	case errors.Is(err, broker.ErrNoEntity):
		return noResource("Task does not exist.")
	case errors.Is(err, broker.ErrInvalid):
		return invalidParameter("Only active tasks can be cancelled: this one has ended after %d messages.", moved)
	case err != nil:
		return err
	}
	c.out.num("ApproximateNumberOfMessagesMoved", moved)
	return nil
}
