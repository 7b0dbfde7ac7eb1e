package sqsd_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// The calls that most statements make, with their ends checked.

// pairs makes a map of names and values.
func pairs(list []string) map[string]string {
	if len(list) == 0 {
		return nil
	}
	out := map[string]string{}
	for i := 0; i < len(list); i += 2 {
		out[list[i]] = list[i+1]
	}
	return out
}

func (x *exam) create(name string, attributes ...string) (string, error) {
	out, err := x.api.CreateQueue(x.ctx(), &sqs.CreateQueueInput{QueueName: &name, Attributes: pairs(attributes)})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.QueueUrl), nil
}

// queue makes a queue.
func (x *exam) queue(name string, attributes ...string) string {
	x.Helper()
	url, err := x.create(name, attributes...)
	x.ok(err)
	return url
}

// fifo makes a FIFO queue that takes the body for the deduplication id.
func (x *exam) fifo(name string, attributes ...string) string {
	x.Helper()
	return x.queue(name+".fifo", append([]string{"FifoQueue", "true", "ContentBasedDeduplication", "true"}, attributes...)...)
}

func (x *exam) arn(name string) string { return x.arns + name }

// policy is a redrive policy.
func (x *exam) policy(target string, count int) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":"%s","maxReceiveCount":%d}`, x.arn(target), count)
}

// withDLQ makes a queue "source" with a dead-letter queue "dlq".
func (x *exam) withDLQ(count int) (source, dlq string) {
	x.Helper()
	dlq = x.queue("dlq")
	return x.queue("source", "RedrivePolicy", x.policy("dlq", count)), dlq
}

func (x *exam) fifoWithDLQ(count int) (source, dlq string) {
	x.Helper()
	dlq = x.fifo("dlq")
	return x.fifo("source", "RedrivePolicy", x.policy("dlq.fifo", count)), dlq
}

func (x *exam) attributes(url string, names ...types.QueueAttributeName) map[string]string {
	x.Helper()
	out, err := x.api.GetQueueAttributes(x.ctx(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
	x.ok(err)
	return out.Attributes
}

// has checks attributes of a queue; "" means that it has none of that name.
func (x *exam) has(url string, want ...string) {
	x.Helper()
	got := x.attributes(url, "All")
	for name, value := range pairs(want) {
		x.equal(name, got[name], value)
		if _, there := got[name]; there && value == "" {
			x.Errorf("%s is there", name)
		}
	}
}

func (x *exam) set(url string, attributes ...string) error {
	_, err := x.api.SetQueueAttributes(x.ctx(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: pairs(attributes)})
	return err
}

// counts are how many messages are visible, in flight and delayed.
func (x *exam) counts(url, visible, inFlight, delayed string) {
	x.Helper()
	x.has(url, "ApproximateNumberOfMessages", visible, "ApproximateNumberOfMessagesNotVisible", inFlight, "ApproximateNumberOfMessagesDelayed", delayed)
}

// sending says more about a message.
type sending func(*sqs.SendMessageInput)

func group(id string) sending {
	return func(in *sqs.SendMessageInput) { in.MessageGroupId = &id }
}

func dedup(id string) sending {
	return func(in *sqs.SendMessageInput) { in.MessageDeduplicationId = &id }
}

func delay(seconds int32) sending {
	return func(in *sqs.SendMessageInput) { in.DelaySeconds = seconds }
}

// text adds a message attribute with a text.
func text(name, dataType, value string) sending {
	return func(in *sqs.SendMessageInput) {
		if in.MessageAttributes == nil {
			in.MessageAttributes = map[string]types.MessageAttributeValue{}
		}
		in.MessageAttributes[name] = types.MessageAttributeValue{DataType: &dataType, StringValue: &value}
	}
}

func bytesOf(name, dataType string, value []byte) sending {
	return func(in *sqs.SendMessageInput) {
		if in.MessageAttributes == nil {
			in.MessageAttributes = map[string]types.MessageAttributeValue{}
		}
		in.MessageAttributes[name] = types.MessageAttributeValue{DataType: &dataType, BinaryValue: value}
	}
}

func trace(header string) sending {
	return func(in *sqs.SendMessageInput) {
		in.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{
			"AWSTraceHeader": {DataType: aws.String("String"), StringValue: &header},
		}
	}
}

func (x *exam) trySend(url, body string, more ...sending) (*sqs.SendMessageOutput, error) {
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}
	for _, say := range more {
		say(in)
	}
	return x.api.SendMessage(x.ctx(), in)
}

// send sends a message, and checks its MD5s.
func (x *exam) send(url, body string, more ...sending) *sqs.SendMessageOutput {
	x.Helper()
	out, err := x.trySend(url, body, more...)
	x.ok(err)
	in := &sqs.SendMessageInput{}
	for _, say := range more {
		say(in)
	}
	x.equal("MD5OfMessageBody", aws.ToString(out.MD5OfMessageBody), md5Hex(body))
	x.equal("MD5OfMessageAttributes", aws.ToString(out.MD5OfMessageAttributes), md5Of(in.MessageAttributes))
	return out
}

// sendGroups sends messages whose bodies begin with the group, as in "g1-m1".
func (x *exam) sendGroups(url string, bodies ...string) {
	x.Helper()
	for _, body := range bodies {
		g, _, _ := strings.Cut(body, "-")
		x.send(url, body, group(g))
	}
}

// receiving says more about a receive.
type receiving func(*sqs.ReceiveMessageInput)

// allSystem asks for all system attributes.
func allSystem(in *sqs.ReceiveMessageInput) { system("All")(in) }

// system asks for system attributes by name, as older clients do.
func system(names ...types.QueueAttributeName) receiving {
	return func(in *sqs.ReceiveMessageInput) { in.AttributeNames = names } //nolint:staticcheck // it is what is tested
}

func messageNames(names ...string) receiving {
	return func(in *sqs.ReceiveMessageInput) { in.MessageAttributeNames = names }
}

func most(n int32) receiving {
	return func(in *sqs.ReceiveMessageInput) { in.MaxNumberOfMessages = n }
}

func hidden(seconds int32) receiving {
	return func(in *sqs.ReceiveMessageInput) { in.VisibilityTimeout = seconds }
}

func attempt(id string) receiving {
	return func(in *sqs.ReceiveMessageInput) { in.ReceiveRequestAttemptId = &id }
}

func (x *exam) tryReceive(url string, more ...receiving) ([]types.Message, error) {
	in := &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10}
	for _, say := range more {
		say(in)
	}
	out, err := x.api.ReceiveMessage(x.ctx(), in)
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// receive receives up to ten messages, and checks their MD5s.
func (x *exam) receive(url string, more ...receiving) []types.Message {
	x.Helper()
	messages, err := x.tryReceive(url, more...)
	x.ok(err)
	for _, m := range messages {
		x.equal("MD5OfBody", aws.ToString(m.MD5OfBody), md5Hex(aws.ToString(m.Body)))
		x.equal("MD5OfMessageAttributes", aws.ToString(m.MD5OfMessageAttributes), md5Of(m.MessageAttributes))
	}
	return messages
}

// one receives the one message that there is.
func (x *exam) one(url string, more ...receiving) types.Message {
	x.Helper()
	messages := x.receive(url, more...)
	if len(messages) != 1 {
		x.Fatalf("received %v, want one message", bodies(messages))
	}
	return messages[0]
}

// open receives without hiding what it receives.
func (x *exam) open(url string, more ...receiving) []types.Message {
	x.Helper()
	return x.with("VisibilityTimeout", 0).receive(url, more...)
}

// gives checks what a receive gives, in order.
func (x *exam) gives(url string, want ...string) []types.Message {
	x.Helper()
	messages := x.receive(url)
	x.equal("received", bodies(messages), want)
	return messages
}

func bodies(messages []types.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, aws.ToString(m.Body))
	}
	return out
}

func (x *exam) tryDelete(url string, m types.Message) error {
	_, err := x.api.DeleteMessage(x.ctx(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle})
	return err
}

func (x *exam) delete(url string, messages ...types.Message) {
	x.Helper()
	for _, m := range messages {
		x.ok(x.tryDelete(url, m))
	}
}

func (x *exam) tryHide(url string, m types.Message, seconds int32) error {
	_, err := x.api.ChangeMessageVisibility(x.ctx(), &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds,
	})
	return err
}

func (x *exam) hide(url string, m types.Message, seconds int32) {
	x.Helper()
	x.ok(x.tryHide(url, m, seconds))
}

// garbage is a message with a handle that no receive has given.
func garbage() types.Message { return types.Message{ReceiptHandle: aws.String("garbage")} }

func (x *exam) tryPurge(url string) error {
	_, err := x.api.PurgeQueue(x.ctx(), &sqs.PurgeQueueInput{QueueUrl: &url})
	return err
}

func (x *exam) drop(url string) error {
	_, err := x.api.DeleteQueue(x.ctx(), &sqs.DeleteQueueInput{QueueUrl: &url})
	return err
}

func (x *exam) tags(url string) map[string]string {
	x.Helper()
	out, err := x.api.ListQueueTags(x.ctx(), &sqs.ListQueueTagsInput{QueueUrl: &url})
	x.ok(err)
	return out.Tags
}

func (x *exam) tag(url string, list ...string) error {
	_, err := x.api.TagQueue(x.ctx(), &sqs.TagQueueInput{QueueUrl: &url, Tags: pairs(list)})
	return err
}

func (x *exam) list(prefix string) []string {
	x.Helper()
	out, err := x.api.ListQueues(x.ctx(), &sqs.ListQueuesInput{QueueNamePrefix: optional(prefix)})
	x.ok(err)
	return out.QueueUrls
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// batch sends entries, whose ids are "id_1" and so on unless they have one.
func (x *exam) batch(url string, entries ...types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	for i := range entries {
		if entries[i].Id == nil {
			entries[i].Id = aws.String(fmt.Sprint("id_", i+1))
		}
	}
	return x.api.SendMessageBatch(x.ctx(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
}

func entry(body string) types.SendMessageBatchRequestEntry {
	return types.SendMessageBatchRequestEntry{MessageBody: &body}
}

func entryWith(id, body string) types.SendMessageBatchRequestEntry {
	return types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body}
}

func repeated(n int) []types.SendMessageBatchRequestEntry {
	var out []types.SendMessageBatchRequestEntry
	for i := range n {
		out = append(out, entry(fmt.Sprint("m", i)))
	}
	return out
}

// startTask begins to move what is in a queue.
func (x *exam) startTask(source, destination string, rate int32) (string, error) {
	in := &sqs.StartMessageMoveTaskInput{SourceArn: optional(source), DestinationArn: optional(destination)}
	if rate != 0 {
		in.MaxNumberOfMessagesPerSecond = &rate
	}
	out, err := x.api.StartMessageMoveTask(x.ctx(), in)
	if err != nil {
		return "", err
	}
	return aws.ToString(out.TaskHandle), nil
}

func (x *exam) started(source, destination string, rate int32) string {
	x.Helper()
	handle, err := x.startTask(source, destination, rate)
	x.ok(err)
	return handle
}

func (x *exam) tasks(source string, most int32) []types.ListMessageMoveTasksResultEntry {
	x.Helper()
	in := &sqs.ListMessageMoveTasksInput{SourceArn: &source}
	if most != 0 {
		in.MaxResults = &most
	}
	out, err := x.api.ListMessageMoveTasks(x.ctx(), in)
	x.ok(err)
	return out.Results
}

// lastTask is the last task of a queue.
func (x *exam) lastTask(source string) types.ListMessageMoveTasksResultEntry {
	x.Helper()
	tasks := x.tasks(source, 0)
	if len(tasks) != 1 {
		x.Fatalf("%d tasks, want one", len(tasks))
	}
	return tasks[0]
}

func (x *exam) cancel(handle string) (int64, error) {
	out, err := x.api.CancelMessageMoveTask(x.ctx(), &sqs.CancelMessageMoveTaskInput{TaskHandle: &handle})
	if err != nil {
		return 0, err
	}
	return out.ApproximateNumberOfMessagesMoved, nil
}

// bury sends messages to a source queue that "dlq" is the dead-letter queue of, and has each
// received once too often.
func (x *exam) bury(source string, bodies ...string) {
	x.Helper()
	for _, body := range bodies {
		x.send(source, body)
	}
	x.open(source)
	x.open(source)
}

// members are the names of the last answer's members, in JSON.
func (x *exam) members() []string {
	x.Helper()
	var m map[string]json.RawMessage
	x.ok(json.Unmarshal(x.wire.last().body, &m))
	return slices.Sorted(maps.Keys(m))
}
