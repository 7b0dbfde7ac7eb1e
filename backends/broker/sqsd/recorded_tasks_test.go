package sqsd_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func (x *exam) permit(url, label string, accounts, actions []string) error {
	_, err := x.api.AddPermission(x.ctx(), &sqs.AddPermissionInput{QueueUrl: &url, Label: &label, AWSAccountIds: accounts, Actions: actions})
	return err
}

func (x *exam) forbid(url, label string) error {
	_, err := x.api.RemovePermission(x.ctx(), &sqs.RemovePermissionInput{QueueUrl: &url, Label: &label})
	return err
}

// 2.13: tags and permissions.
var recordedPermissions = []statement{
	{"2.13", recorded, inBoth, "tags are added and overwritten", func(x *exam) {
		q := x.queue("orders")
		x.ok(x.tag(q, "tag1", "value1", "tag2", "value2", "tag3", ""))
		x.equal("tags", x.tags(q), map[string]string{"tag1": "value1", "tag2": "value2", "tag3": ""})
		x.ok(x.tag(q, "tag1", "VALUE1", "tag4", "value4"))
		x.equal("tags", x.tags(q), map[string]string{"tag1": "VALUE1", "tag2": "value2", "tag3": "", "tag4": "value4"})
	}},
	{"2.13", recorded, inBoth, "tags compare with case", func(x *exam) {
		q := x.queue("orders")
		x.ok(x.tag(q, "tag1", "value1", "Tag1", "VALUE1"))
		x.equal("tags", x.tags(q), map[string]string{"tag1": "value1", "Tag1": "VALUE1"})
	}},
	{"2.13", recorded, inBoth, "tags that are not there may be taken away", func(x *exam) {
		q := x.queue("orders")
		x.ok(x.tag(q, "tag1", "value1", "tag2", "value2"))
		_, err := x.api.UntagQueue(x.ctx(), &sqs.UntagQueueInput{QueueUrl: &q, TagKeys: []string{"tag2", "none"}})
		x.ok(err)
		x.equal("tags", x.tags(q), map[string]string{"tag1": "value1"})
	}},
	{"2.13", inferred, inBoth, "fifty tags at most", func(x *exam) {
		q := x.queue("orders")
		var tags []string
		for i := range 51 {
			tags = append(tags, fmt.Sprint("tag", i), "v")
		}
		x.ok(x.tag(q, tags[:100]...))
		x.refused(x.tag(q, tags[100:]...), invalidParameter(""))
		x.equal("tags", len(x.tags(q)), 50)
	}},
	{"2.13", recorded, inBoth, "permissions make a policy", func(x *exam) {
		q := x.queue("orders")
		x.ok(x.permit(q, "crossaccountpermission", []string{"668614515564"}, []string{"ReceiveMessage"}))
		x.policyIs(q, `{"Version":"2008-10-17","Id":"ARN/SQSDefaultPolicy","Statement":[{"Sid":"crossaccountpermission","Effect":"Allow",
			"Principal":{"AWS":"arn:aws:iam::668614515564:root"},"Action":"SQS:ReceiveMessage","Resource":"ARN"}]}`)
		x.ok(x.permit(q, "two", []string{"668614515564", "668614515565"}, []string{"ReceiveMessage", "DeleteMessage"}))
		x.policyIs(q, `{"Version":"2008-10-17","Id":"ARN/SQSDefaultPolicy","Statement":[{"Sid":"crossaccountpermission","Effect":"Allow",
			"Principal":{"AWS":"arn:aws:iam::668614515564:root"},"Action":"SQS:ReceiveMessage","Resource":"ARN"},
			{"Sid":"two","Effect":"Allow","Principal":{"AWS":["arn:aws:iam::668614515564:root","arn:aws:iam::668614515565:root"]},
			"Action":["SQS:ReceiveMessage","SQS:DeleteMessage"],"Resource":"ARN"}]}`)
	}},
	{"2.13", recorded, inBoth, "a label that is there", func(x *exam) {
		q := x.queue("orders")
		x.ok(x.permit(q, "crossaccountpermission", []string{"668614515564"}, []string{"ReceiveMessage"}))
		x.refused(x.permit(q, "crossaccountpermission", []string{"668614515564"}, []string{"ReceiveMessage"}), badValue("crossaccountpermission", "Label", "Already exists."))
	}},
	{"2.13", recorded, inBoth, "a label that is not there", func(x *exam) {
		x.refused(x.forbid(x.queue("orders"), "crossaccountpermission"), badValue("crossaccountpermission", "Label", "can't find label."))
	}},
	{"2.13", recorded, inBoth, "a policy goes with its last statement", func(x *exam) {
		q := x.queue("orders")
		x.ok(x.permit(q, "one", []string{"668614515564"}, []string{"ReceiveMessage"}))
		x.ok(x.permit(q, "two", []string{"668614515564"}, []string{"SendMessage"}))
		x.ok(x.forbid(q, "one"))
		x.policyIs(q, `{"Version":"2008-10-17","Id":"ARN/SQSDefaultPolicy","Statement":[{"Sid":"two","Effect":"Allow",
			"Principal":{"AWS":"arn:aws:iam::668614515564:root"},"Action":"SQS:SendMessage","Resource":"ARN"}]}`)
		x.ok(x.forbid(q, "two"))
		x.has(q, "Policy", "")
	}},
	{"2.13", documented, inBoth, "seven actions at most", func(x *exam) {
		actions := []string{"SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes", "GetQueueUrl", "ListDeadLetterSourceQueues", "PurgeQueue"}
		q := x.queue("orders")
		x.refused(x.permit(q, "many", []string{"668614515564"}, actions), plainly(403, "OverLimit", "8 Actions were found, maximum allowed is 7."))
		x.ok(x.permit(q, "many", []string{"668614515564"}, actions[:7]))
	}},
	{"2.13", documented, inBoth, "an action that is none", func(x *exam) {
		x.refused(x.permit(x.queue("orders"), "l", []string{"668614515564"}, []string{"X"}),
			badValue("SQS:X", "ActionName", "Please refer to the appropriate WSDL for a list of valid actions. "))
	}},
}

// policyIs compares a queue's policy with one in which ARN stands for the queue.
func (x *exam) policyIs(url, want string) {
	x.Helper()
	var got, wanted any
	x.ok(json.Unmarshal([]byte(x.attributes(url, "Policy")["Policy"]), &got))
	x.ok(json.Unmarshal([]byte(strings.ReplaceAll(want, "ARN", x.arn("orders"))), &wanted))
	x.equal("policy", got, wanted)
}

// settled moves the clock until a task has ended, as long as it takes, and returns it.
func (x *exam) settled(source string) types.ListMessageMoveTasksResultEntry {
	x.Helper()
	for range 100 {
		if task := x.lastTask(source); aws.ToString(task.Status) != "RUNNING" {
			return task
		}
		x.wait(time.Second)
	}
	x.Fatal("the task does not end")
	return types.ListMessageMoveTasksResultEntry{}
}

// 2.14: move tasks.
var recordedTasks = []statement{
	{"2.14", recorded, inBoth, "a task handle says the task and its source", func(x *exam) {
		x.withDLQ(1)
		handle := x.started(x.arn("dlq"), "", 0)
		raw, err := base64.StdEncoding.DecodeString(handle)
		x.ok(err)
		var said map[string]string
		x.ok(json.Unmarshal(raw, &said))
		x.equal("sourceArn", said["sourceArn"], x.arn("dlq"))
		x.equal("length of taskId", len(said["taskId"]), 36)
		x.equal("members", len(said), 2)
	}},
	{"2.14", recorded, inBoth, "a task to a destination", func(x *exam) {
		source, dlq := x.withDLQ(1)
		to := x.queue("destination")
		x.bury(source, "m1", "m2")
		x.started(x.arn("dlq"), x.arn("destination"), 0)
		begun := x.time().UnixMilli()
		x.equal("task", x.settled(x.arn("dlq")), types.ListMessageMoveTasksResultEntry{
			ApproximateNumberOfMessagesMoved: 2, ApproximateNumberOfMessagesToMove: aws.Int64(2), DestinationArn: aws.String(x.arn("destination")),
			SourceArn: aws.String(x.arn("dlq")), StartedTimestamp: begun, Status: aws.String("COMPLETED"),
		})
		x.gives(to, "m1", "m2")
		x.gives(dlq)
	}},
	{"2.14", recorded, inBoth, "a task without destination moves to where the messages came from", func(x *exam) {
		source, _ := x.withDLQ(1)
		x.bury(source, "m1", "m2")
		x.started(x.arn("dlq"), "", 0)
		begun := x.time().UnixMilli()
		x.equal("task", x.settled(x.arn("dlq")), types.ListMessageMoveTasksResultEntry{
			ApproximateNumberOfMessagesMoved: 2, ApproximateNumberOfMessagesToMove: aws.Int64(2), SourceArn: aws.String(x.arn("dlq")),
			StartedTimestamp: begun, Status: aws.String("COMPLETED"),
		})
		x.gives(source, "m1", "m2")
	}},
	{"2.14", recorded, inBoth, "a task without destination, of several sources", func(x *exam) {
		x.queue("dlq")
		one, two := x.queue("one", "RedrivePolicy", x.policy("dlq", 1)), x.queue("two", "RedrivePolicy", x.policy("dlq", 1))
		x.bury(one, "one-1", "one-2")
		x.bury(two, "two-1", "two-2")
		x.started(x.arn("dlq"), "", 0)
		task := x.settled(x.arn("dlq"))
		x.equal("moved", task.ApproximateNumberOfMessagesMoved, int64(4))
		x.equal("to move", *task.ApproximateNumberOfMessagesToMove, int64(4))
		x.gives(one, "one-1", "one-2")
		x.gives(two, "two-1", "two-2")
	}},
	{"2.14", inferred, inBoth, "a message without origin fails a task without destination, and stays", func(x *exam) {
		_, dlq := x.withDLQ(1)
		x.send(dlq, "from nowhere")
		x.started(x.arn("dlq"), "", 0)
		task := x.settled(x.arn("dlq"))
		x.equal("status", *task.Status, "FAILED")
		x.equal("reason", aws.ToString(task.FailureReason), "CouldNotDetermineMessageSource")
		x.gives(dlq, "from nowhere")
	}},
	{"2.14", documented, inBoth, "a moved message is new: id, time and count", func(x *exam) {
		source, _ := x.withDLQ(1)
		sent := x.send(source, "a", text("Foo", "Number.int", "1"))
		x.open(source)
		x.open(source)
		x.wait(time.Hour)
		x.started(x.arn("dlq"), "", 0)
		x.settled(x.arn("dlq"))
		moved := x.millis()
		m := x.one(source, allSystem, messageNames("All"))
		if *m.MessageId == *sent.MessageId {
			x.Error("the same id")
		}
		x.equal("attribute", *m.MessageAttributes["Foo"].StringValue, "1")
		delete(m.Attributes, "SenderId")
		x.equal("attributes", m.Attributes, map[string]string{
			"SentTimestamp": moved, "ApproximateReceiveCount": "1", "ApproximateFirstReceiveTimestamp": x.millis(),
		})
	}},
	{"2.14", documented, inBoth, "FIFO: groups stay", func(x *exam) {
		source, _ := x.fifoWithDLQ(1)
		x.sendGroups(source, "g1-m1", "g1-m2")
		x.open(source)
		x.open(source)
		x.started(x.arn("dlq.fifo"), "", 0)
		x.settled(x.arn("dlq.fifo"))
		got := x.receive(source, allSystem)
		x.equal("bodies", bodies(got), []string{"g1-m1", "g1-m2"})
		x.equal("group", got[0].Attributes["MessageGroupId"], "g1")
	}},
	{"2.14", recorded, inBoth, "one message a second is one message a second", func(x *exam) {
		source, _ := x.withDLQ(1)
		x.bury(source, "1", "2", "3", "4")
		begin := x.time()
		x.started(x.arn("dlq"), "", 1)
		x.settled(x.arn("dlq"))
		if took := x.time().Sub(begin); took < 3*time.Second || took > 6*time.Second {
			x.Errorf("it took %v", took)
		}
		x.gives(source, "1", "2", "3", "4") // the oldest first
	}},
	{"2.14", inferred, inBoth, "what is in flight is moved when it is visible again", func(x *exam) {
		source, dlq := x.withDLQ(1)
		x.bury(source, "held", "free")
		x.receive(dlq, most(1), hidden(20))
		x.started(x.arn("dlq"), "", 0)
		x.wait(10 * time.Second)
		x.equal("status", *x.lastTask(x.arn("dlq")).Status, "RUNNING")
		x.gives(source, "free")
		x.wait(11 * time.Second)
		x.equal("moved", x.settled(x.arn("dlq")).ApproximateNumberOfMessagesMoved, int64(2))
		x.gives(source, "held")
	}},
	{"2.14", recorded, inBoth, "a destination that is deleted while the task runs", func(x *exam) {
		source, _ := x.withDLQ(1)
		to := x.queue("destination")
		x.bury(source, "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
		x.started(x.arn("dlq"), x.arn("destination"), 1)
		x.wait(2500 * time.Millisecond)
		x.equal("status", *x.lastTask(x.arn("dlq")).Status, "RUNNING")
		x.ok(x.drop(to))
		task := x.settled(x.arn("dlq"))
		x.equal("status", *task.Status, "FAILED")
		x.equal("reason", aws.ToString(task.FailureReason), "AWS.SimpleQueueService.NonExistentQueue")
		x.equal("destination", aws.ToString(task.DestinationArn), x.arn("destination"))
		x.equal("rate", aws.ToInt32(task.MaxNumberOfMessagesPerSecond), int32(1))
		x.equal("to move", aws.ToInt64(task.ApproximateNumberOfMessagesToMove), int64(10))
		x.equal("handle", task.TaskHandle, (*string)(nil))
	}},
	{"2.14", recorded, inBoth, "a handle while the task runs, and none when it is canceled", func(x *exam) {
		source, dlq := x.withDLQ(1)
		x.queue("destination")
		x.bury(source, "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
		handle := x.started(x.arn("dlq"), x.arn("destination"), 1)
		begun := x.time().UnixMilli()
		running := x.lastTask(x.arn("dlq"))
		want := types.ListMessageMoveTasksResultEntry{
			ApproximateNumberOfMessagesMoved: running.ApproximateNumberOfMessagesMoved, ApproximateNumberOfMessagesToMove: aws.Int64(10),
			DestinationArn: aws.String(x.arn("destination")), SourceArn: aws.String(x.arn("dlq")), MaxNumberOfMessagesPerSecond: aws.Int32(1),
			StartedTimestamp: begun, Status: aws.String("RUNNING"), TaskHandle: &handle,
		}
		x.equal("running", running, want)
		x.wait(2 * time.Second)
		moved, err := x.cancel(handle)
		x.ok(err)
		if moved < 1 || moved > 3 {
			x.Errorf("%d moved in two seconds", moved)
		}
		want.ApproximateNumberOfMessagesMoved, want.Status, want.TaskHandle = moved, aws.String("CANCELLED"), nil
		x.equal("canceled", x.lastTask(x.arn("dlq")), want)
		x.wait(time.Minute)
		x.equal("left and moved", []int{len(x.receive(dlq)), len(x.receive(x.base + "/000000000000/destination"))}, []int{10 - int(moved), int(moved)})
	}},
	{"2.14", documented, inBoth, "tasks are listed newest first, one unless said otherwise", func(x *exam) {
		x.withDLQ(1)
		x.queue("destination")
		for range 3 {
			x.started(x.arn("dlq"), x.arn("destination"), 0)
			x.settled(x.arn("dlq"))
			x.wait(time.Second)
		}
		x.equal("one", len(x.tasks(x.arn("dlq"), 0)), 1)
		all := x.tasks(x.arn("dlq"), 10)
		x.equal("all", len(all), 3)
		if all[0].StartedTimestamp <= all[1].StartedTimestamp || all[1].StartedTimestamp <= all[2].StartedTimestamp {
			x.Error("not the newest first")
		}
	}},
	{"2.14", recorded, onlyJSON, "numbers of tasks are numbers", func(x *exam) {
		x.withDLQ(1)
		x.started(x.arn("dlq"), "", 500)
		x.lastTask(x.arn("dlq"))
		x.contains(x.wire.last(), `"ApproximateNumberOfMessagesMoved":0`, `"ApproximateNumberOfMessagesToMove":0`, `"MaxNumberOfMessagesPerSecond":500`,
			fmt.Sprintf(`"StartedTimestamp":%d`, x.time().UnixMilli()))
	}},
}

// 2.14: what is wrong with a move task.
var recordedTaskErrors = []statement{
	{"2.14", recorded, inBoth, "the source is required", func(x *exam) {
		_, err := x.startTask("", "", 0)
		x.refused(err, missingParameter("SourceArn"))
	}},
	{"2.14", recorded, inBoth, "the source is an ARN", func(x *exam) {
		_, err := x.startTask("dlq", "", 0)
		x.refused(err, invalidParameter("You must use this format to specify the SourceArn: arn:<partition>:<service>:<region>:<account-id>:<resource-id>"))
	}},
	{"2.14", recorded, inBoth, "the source is there", func(x *exam) {
		_, err := x.startTask(x.arn("none"), "", 0)
		x.refused(err, plainly(404, "ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist."))
	}},
	{"2.14", recorded, inBoth, "the source is a dead-letter queue", func(x *exam) {
		x.queue("orders")
		_, err := x.startTask(x.arn("orders"), "", 0)
		x.refused(err, invalidParameter("Source queue must be configured as a Dead Letter Queue."))
	}},
	{"2.14", inferred, inBoth, "a rate out of range", func(x *exam) {
		x.withDLQ(1)
		for _, rate := range []int32{-1, 501} {
			_, err := x.startTask(x.arn("dlq"), "", rate)
			x.refused(err, invalidParameter("Value for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: You must enter a number that's between 1 and 500."))
		}
	}},
	{"2.14", inferred, inBoth, "the destination is not the source", func(x *exam) {
		x.withDLQ(1)
		_, err := x.startTask(x.arn("dlq"), x.arn("dlq"), 0)
		x.refused(err, invalidParameter("Source queue arn and destination queue arn cannot be the same."))
	}},
	{"2.14", recorded, inBoth, "the destination is there", func(x *exam) {
		x.withDLQ(1)
		_, err := x.startTask(x.arn("dlq"), x.arn("none"), 0)
		x.refused(err, plainly(404, "ResourceNotFoundException", "The resource that you specified for the DestinationArn parameter doesn't exist."))
	}},
	{"2.14", inferred, inBoth, "the destination is of the same type", func(x *exam) {
		x.withDLQ(1)
		x.fifo("destination")
		_, err := x.startTask(x.arn("dlq"), x.arn("destination.fifo"), 0)
		x.refused(err, invalidParameter("The source queue and destination queue must be of the same queue type."))
	}},
	{"2.14", recorded, inBoth, "one task of a source at a time", func(x *exam) {
		source, _ := x.withDLQ(1)
		x.bury(source, "a", "b", "c")
		x.started(x.arn("dlq"), "", 1)
		_, err := x.startTask(x.arn("dlq"), "", 0)
		x.refused(err, invalidParameter("There is already a task running. Only one active task is allowed for a source queue arn at a given time."))
		x.settled(x.arn("dlq"))
		x.started(x.arn("dlq"), "", 0)
	}},
	{"2.14", recorded, inBoth, "a handle that is none", func(x *exam) {
		_, err := x.cancel("foobared")
		x.refused(err, invalidParameter("Value for parameter TaskHandle is invalid."))
	}},
	{"2.14", recorded, inBoth, "a handle whose source is gone", func(x *exam) {
		_, err := x.cancel(taskHandle("10f7d7aa-3b9b-4b1b-8b1b-1b1b1b1b1b1b", x.arn("none")))
		x.refused(err, plainly(404, "ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist."))
	}},
	{"2.14", recorded, inBoth, "a handle whose task is unknown", func(x *exam) {
		x.withDLQ(1)
		_, err := x.cancel(taskHandle("10f7d7aa-3b9b-4b1b-8b1b-1b1b1b1b1b1b", x.arn("dlq")))
		x.refused(err, plainly(404, "ResourceNotFoundException", "Task does not exist."))
	}},
	{"2.14", inferred, inBoth, "a task that has ended cannot be canceled", func(x *exam) {
		x.withDLQ(1)
		handle := x.started(x.arn("dlq"), "", 0)
		x.settled(x.arn("dlq"))
		_, err := x.cancel(handle)
		x.refused(err, invalidParameter(""))
	}},
}

func taskHandle(id, source string) string {
	return base64.StdEncoding.EncodeToString([]byte(`{"taskId":"` + id + `","sourceArn":"` + source + `"}`))
}
