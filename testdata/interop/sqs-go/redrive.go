package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

var contentBased = map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}

func (t *trial) sendTo(url, group, body string) (*sqs.SendMessageOutput, error) {
	return t.SendMessage(t.ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageGroupId: &group})
}

func fifo(t *trial) error {
	url, _, err := t.queue(".fifo", contentBased)
	if err != nil {
		return err
	}
	for _, m := range [][2]string{{"g1", "a"}, {"g1", "b"}, {"g1", "c"}, {"g2", "d"}} {
		if _, err := t.sendTo(url, m[0], m[1]); err != nil {
			return err
		}
	}
	two := func(in *sqs.ReceiveMessageInput) { in.MaxNumberOfMessages = 2 }
	first, err := t.receive(url, two)
	if err := errors.Join(err, same("first", bodies(first), "a b")); err != nil {
		return err
	}
	second, err := t.receive(url) // c waits for a and b
	if err := errors.Join(err, same("second", bodies(second), "d")); err != nil {
		return err
	}
	for _, m := range first {
		if _, err := t.DeleteMessage(t.ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return err
		}
	}
	third, err := t.receive(url)
	return errors.Join(err, same("third", bodies(third), "c"))
}

func deduplication(t *trial) error {
	url, _, err := t.queue(".fifo", contentBased)
	if err != nil {
		return err
	}
	first, err := t.sendTo(url, "g", "x")
	if err != nil {
		return err
	}
	second, err := t.sendTo(url, "g", "x")
	if err != nil {
		return err
	}
	m, err := t.one(url)
	return errors.Join(err, same("id", *second.MessageId, *first.MessageId), same("number", *second.SequenceNumber, *first.SequenceNumber),
		same("received", aws.ToString(m.MessageId), *first.MessageId))
}

// highThroughput: a deduplication id counts within its group.
func highThroughput(t *trial) error {
	url, _, err := t.queue(".fifo", map[string]string{"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"})
	if err != nil {
		return err
	}
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageDeduplicationId: aws.String("id")}
	for _, m := range [][2]string{{"g1", "a"}, {"g1", "b"}, {"g2", "c"}} {
		in.MessageGroupId, in.MessageBody = aws.String(m[0]), aws.String(m[1])
		if _, err := t.SendMessage(t.ctx, in); err != nil {
			return err
		}
	}
	got, err := t.receive(url)
	if err := errors.Join(err, same("received", bodies(got), "a c")); err != nil {
		return err
	}
	_, noID := t.sendTo(url, "g1", "x")
	in.MessageGroupId = nil
	_, noGroup := t.SendMessage(t.ctx, in)
	return errors.Join(
		same("group", got[1].Attributes["MessageGroupId"], "g2"), same("id", got[1].Attributes["MessageDeduplicationId"], "id"),
		same("in order", got[0].Attributes["SequenceNumber"] < got[1].Attributes["SequenceNumber"], true),
		refused[smithy.APIError](noID, "InvalidParameterValue"), refused[smithy.APIError](noGroup, "MissingParameter"))
}

func receiveAgain(t *trial) error {
	url, _, err := t.queue(".fifo", contentBased)
	if err != nil {
		return err
	}
	if _, err := t.sendTo(url, "g", "x"); err != nil {
		return err
	}
	attempt := func(in *sqs.ReceiveMessageInput) { in.ReceiveRequestAttemptId = aws.String("attempt") }
	first, err := t.one(url, attempt)
	if err != nil {
		return err
	}
	second, err := t.one(url, attempt)
	return errors.Join(err, same("handle", aws.ToString(second.ReceiptHandle), *first.ReceiptHandle))
}

// pair makes a queue with a dead-letter queue.
func (t *trial) pair(suffix string, attributes map[string]string) (source, dead, sourceARN, deadARN string, err error) {
	if dead, deadARN, err = t.queue("-dead"+suffix, attributes); err != nil {
		return
	}
	with := map[string]string{"VisibilityTimeout": "0", "RedrivePolicy": `{"deadLetterTargetArn":"` + deadARN + `","maxReceiveCount":1}`}
	for name, value := range attributes {
		with[name] = value
	}
	source, sourceARN, err = t.queue(suffix, with)
	return
}

// die sends a message and receives it until it is a dead letter.
func (t *trial) die(source, dead string, in *sqs.SendMessageInput) (sent string, m types.Message, err error) {
	in.QueueUrl = &source
	out, err := t.SendMessage(t.ctx, in)
	if err != nil {
		return "", m, err
	}
	first, err := t.receive(source)
	if err := errors.Join(err, same("first", len(first), 1)); err != nil {
		return "", m, err
	}
	second, err := t.receive(source)
	if err := errors.Join(err, same("second", len(second), 0)); err != nil {
		return "", m, err
	}
	m, err = t.one(dead, func(in *sqs.ReceiveMessageInput) { in.VisibilityTimeout = 30 })
	return *out.MessageId, m, err
}

func redrive(t *trial) error {
	for suffix, attributes := range map[string]map[string]string{"": nil, ".fifo": contentBased} {
		source, dead, sourceARN, _, err := t.pair(suffix, attributes)
		if err != nil {
			return err
		}
		in := &sqs.SendMessageInput{MessageBody: aws.String("poison")}
		if suffix != "" {
			in.MessageGroupId = aws.String("g")
		}
		id, m, err := t.die(source, dead, in)
		if err != nil {
			return fmt.Errorf("queue %s: %w", suffix, err)
		}
		sources, err := t.ListDeadLetterSourceQueues(t.ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead})
		if err != nil {
			return err
		}
		if err := errors.Join(same("id", *m.MessageId, id), same("source", m.Attributes["DeadLetterQueueSourceArn"], sourceARN),
			same("count", m.Attributes["ApproximateReceiveCount"], "2"), same("sources", fmt.Sprint(sources.QueueUrls), "["+source+"]")); err != nil {
			return err
		}
	}
	return nil
}

func allowPolicy(t *trial) error {
	dead, deadARN, err := t.queue("-dead", map[string]string{"RedriveAllowPolicy": `{"redrivePermission":"denyAll"}`})
	if err != nil {
		return err
	}
	policy := map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + deadARN + `","maxReceiveCount":1}`}
	_, _, err = t.queue("", policy)
	if err := refused[smithy.APIError](err, "InvalidParameterValue"); err != nil {
		return err
	}
	_, sourceARN, err := t.queue("-source", nil)
	if err != nil {
		return err
	}
	if _, err := t.SetQueueAttributes(t.ctx, &sqs.SetQueueAttributesInput{QueueUrl: &dead, Attributes: map[string]string{
		"RedriveAllowPolicy": `{"redrivePermission":"byQueue","sourceQueueArns":["` + sourceARN + `"]}`,
	}}); err != nil {
		return err
	}
	source, err := t.GetQueueUrl(t.ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(t.name + "-source")})
	if err != nil {
		return err
	}
	if _, err := t.SetQueueAttributes(t.ctx, &sqs.SetQueueAttributesInput{QueueUrl: source.QueueUrl, Attributes: policy}); err != nil {
		return err
	}
	_, _, err = t.queue("-third", policy)
	return refused[smithy.APIError](err, "InvalidParameterValue")
}

func moveTask(t *trial) error {
	source, dead, _, deadARN, err := t.pair("", nil)
	if err != nil {
		return err
	}
	id, m, err := t.die(source, dead, &sqs.SendMessageInput{MessageBody: aws.String("poison")})
	if err != nil {
		return err
	}
	if _, err := t.ChangeMessageVisibility(t.ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &dead, ReceiptHandle: m.ReceiptHandle}); err != nil {
		return err
	}
	if _, err := t.StartMessageMoveTask(t.ctx, &sqs.StartMessageMoveTaskInput{SourceArn: &deadARN}); err != nil {
		return err
	}
	if err := t.eventually(func() error {
		list, err := t.ListMessageMoveTasks(t.ctx, &sqs.ListMessageMoveTasksInput{SourceArn: &deadARN})
		if err != nil {
			return err
		}
		return errors.Join(same("status", aws.ToString(list.Results[0].Status), "COMPLETED"), same("moved", list.Results[0].ApproximateNumberOfMessagesMoved, 1))
	}); err != nil {
		return err
	}
	back, err := t.one(source)
	if err != nil {
		return err
	}
	return errors.Join(same("a new id", *back.MessageId != id, true), same("count", back.Attributes["ApproximateReceiveCount"], "1"))
}

// twoSources: every message goes back to the queue that it came from.
func twoSources(t *trial) error {
	first, dead, _, deadARN, err := t.pair("", nil)
	if err != nil {
		return err
	}
	second, _, err := t.queue("-second", map[string]string{"VisibilityTimeout": "0", "RedrivePolicy": `{"deadLetterTargetArn":"` + deadARN + `","maxReceiveCount":1}`})
	if err != nil {
		return err
	}
	var letters []types.Message
	for _, source := range []string{first, second} {
		_, m, err := t.die(source, dead, &sqs.SendMessageInput{MessageBody: &source})
		if err != nil {
			return err
		}
		letters = append(letters, m)
	}
	for _, m := range letters {
		if _, err := t.ChangeMessageVisibility(t.ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &dead, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return err
		}
	}
	if _, err := t.StartMessageMoveTask(t.ctx, &sqs.StartMessageMoveTaskInput{SourceArn: &deadARN}); err != nil {
		return err
	}
	for _, source := range []string{first, second} {
		m, err := t.one(source, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 10 })
		if err := errors.Join(err, same("body", aws.ToString(m.Body), source)); err != nil {
			return err
		}
	}
	return nil
}

func cancelledTask(t *trial) error {
	_, dead, _, deadARN, err := t.pair("", nil)
	if err != nil {
		return err
	}
	other, otherARN, err := t.queue("-other", nil)
	if err != nil {
		return err
	}
	for i := range 20 {
		if err := t.send(dead, strconv.Itoa(i)); err != nil {
			return err
		}
	}
	started, err := t.StartMessageMoveTask(t.ctx, &sqs.StartMessageMoveTaskInput{SourceArn: &deadARN, DestinationArn: &otherARN, MaxNumberOfMessagesPerSecond: aws.Int32(2)})
	if err != nil {
		return err
	}
	_, again := t.StartMessageMoveTask(t.ctx, &sqs.StartMessageMoveTaskInput{SourceArn: &deadARN})
	if err := refused[smithy.APIError](again, "InvalidParameterValue"); err != nil {
		return err
	}
	if _, err := t.one(other, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds, in.MaxNumberOfMessages = 5, 1 }); err != nil {
		return err
	}
	tasks := func() (types.ListMessageMoveTasksResultEntry, error) {
		list, err := t.ListMessageMoveTasks(t.ctx, &sqs.ListMessageMoveTasksInput{SourceArn: &deadARN})
		if err != nil {
			return types.ListMessageMoveTasksResultEntry{}, err
		}
		return list.Results[0], nil
	}
	running, err := tasks()
	if err := errors.Join(err, same("status", aws.ToString(running.Status), "RUNNING"), same("handle", aws.ToString(running.TaskHandle), *started.TaskHandle),
		same("to move", aws.ToInt64(running.ApproximateNumberOfMessagesToMove), 20), same("rate", aws.ToInt32(running.MaxNumberOfMessagesPerSecond), 2),
		same("destination", aws.ToString(running.DestinationArn), otherARN)); err != nil {
		return err
	}
	out, err := t.CancelMessageMoveTask(t.ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: started.TaskHandle})
	if err != nil {
		return err
	}
	if n := out.ApproximateNumberOfMessagesMoved; n < 1 || n > 15 {
		return fmt.Errorf("%d were moved", n)
	}
	if err := t.eventually(func() error {
		task, err := tasks()
		return errors.Join(err, same("status", aws.ToString(task.Status), "CANCELLED"), same("handle", aws.ToString(task.TaskHandle), ""))
	}); err != nil {
		return err
	}
	_, missing := t.StartMessageMoveTask(t.ctx, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(deadARN + "-never")})
	if err := refused[*types.ResourceNotFoundException](missing, "ResourceNotFoundException"); err != nil {
		return err
	}
	_, none := t.CancelMessageMoveTask(t.ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: aws.String("e30=")})
	return refused[smithy.APIError](none, "InvalidParameterValue")
}
