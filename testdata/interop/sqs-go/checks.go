package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

func checks() []check {
	return []check{
		{"send and receive", sendAndReceive},
		{"attributes of messages", attributes},
		{"attributes that are asked for", asked},
		{"batches, with an entry that fails", batches},
		{"large messages", large},
		{"batches of 1 MiB", largeBatch},
		{"long poll", longPoll},
		{"long poll of a client that goes away", abandoned},
		{"long poll for what is delayed, and what is released", wake},
		{"visibility", visibility},
		{"FIFO order and groups", fifo},
		{"FIFO deduplication", deduplication},
		{"FIFO with high throughput", highThroughput},
		{"FIFO receive again", receiveAgain},
		{"redrive to the dead-letter queue", redrive},
		{"redrive allow policy", allowPolicy},
		{"move task to the sources", moveTask},
		{"move task to two sources", twoSources},
		{"move task that is cancelled", cancelledTask},
		{"purge", purge},
		{"tags", tags},
		{"permissions", permissions},
		{"pages of queues", pages},
		{"errors by type", typedErrors},
		{"settings of queues", settings},
		{"regions and accounts", regions},
		{"signed GET", signedGET},
		{"another secret", wrongSecret},
	}
}

func sendAndReceive(t *trial) error {
	url, _, err := t.queue("", nil)
	if err != nil {
		return err
	}
	for _, body := range []string{"hello", "a\r\nb\tc \"<&>' é 😀", strings.Repeat("x", 100_000)} {
		if err := t.send(url, body); err != nil {
			return err
		}
		m, err := t.one(url)
		if err != nil {
			return err
		}
		if err := errors.Join(same("body", *m.Body, body), same("count", m.Attributes["ApproximateReceiveCount"], "1")); err != nil {
			return err
		}
		if _, err := t.DeleteMessage(t.ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return err
		}
	}
	left, err := t.receive(url)
	return errors.Join(err, same("left", len(left), 0))
}

func attributes(t *trial) error {
	url, _, err := t.queue("", nil)
	if err != nil {
		return err
	}
	sent := map[string]types.MessageAttributeValue{
		"text": {DataType: aws.String("String"), StringValue: aws.String("é")}, "count": {DataType: aws.String("Number.int"), StringValue: aws.String("007")},
		"bytes": {DataType: aws.String("Binary.png"), BinaryValue: []byte{0, 255, 1}}, "n": {DataType: aws.String("Number"), StringValue: aws.String("42")},
	}
	trace := "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
	out, err := t.SendMessage(t.ctx, &sqs.SendMessageInput{
		QueueUrl: &url, MessageBody: aws.String("x"), MessageAttributes: sent,
		MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: aws.String("String"), StringValue: &trace}},
	})
	if err != nil {
		return err
	}
	m, err := t.one(url)
	if err != nil {
		return err
	}
	for name, want := range sent {
		got := m.MessageAttributes[name]
		if *got.DataType != *want.DataType || aws.ToString(got.StringValue) != aws.ToString(want.StringValue) || !bytes.Equal(got.BinaryValue, want.BinaryValue) {
			return fmt.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	return errors.Join(
		same("MD5 of the attributes", aws.ToString(m.MD5OfMessageAttributes), aws.ToString(out.MD5OfMessageAttributes)),
		same("MD5 of the system attributes", aws.ToString(out.MD5OfMessageSystemAttributes), "5ae4d5d7636402d80f4eb6d213245a88"),
		same("trace", m.Attributes["AWSTraceHeader"], trace))
}

// asked: what was not asked for is not there, and the MD5 is that of what is.
func asked(t *trial) error {
	url, _, err := t.queue("", nil)
	if err != nil {
		return err
	}
	text := func(s string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
	}
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x"), MessageAttributes: map[string]types.MessageAttributeValue{
		"trace.id": text("1"), "tracer": text("2"), "exact": text("3"),
	}}
	three, err := t.SendMessage(t.ctx, in)
	if err != nil {
		return err
	}
	in.MessageAttributes["other"] = text("4")
	if _, err := t.SendMessage(t.ctx, in); err != nil {
		return err
	}
	got, err := t.receive(url, func(in *sqs.ReceiveMessageInput) {
		in.MessageAttributeNames = []string{"trace.*", "exact", "never"}
		in.MessageSystemAttributeNames = []types.MessageSystemAttributeName{"SentTimestamp", "SequenceNumber"}
	})
	if err := errors.Join(err, same("messages", len(got), 2)); err != nil {
		return err
	}
	for _, m := range got {
		err = errors.Join(err, same("attributes", len(m.MessageAttributes), 3), same("system attributes", len(m.Attributes), 1),
			same("MD5", aws.ToString(m.MD5OfMessageAttributes), *three.MD5OfMessageAttributes))
	}
	return err
}

func batches(t *trial) error {
	url, _, err := t.queue("", map[string]string{"MaximumMessageSize": "1024"})
	if err != nil {
		return err
	}
	var entries []types.SendMessageBatchRequestEntry
	for i := range 10 {
		body := "m" + strconv.Itoa(i)
		if i == 4 {
			body = strings.Repeat("x", 1025)
		}
		entries = append(entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &body})
	}
	sent, err := t.SendMessageBatch(t.ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
	if err != nil {
		return err
	}
	if len(sent.Successful) != 9 || len(sent.Failed) != 1 || *sent.Failed[0].Id != "4" || *sent.Failed[0].Code != "InvalidParameterValue" || !sent.Failed[0].SenderFault {
		return fmt.Errorf("%d sent, failed %+v", len(sent.Successful), sent.Failed)
	}
	got, err := t.receive(url)
	if err != nil {
		return err
	}
	del := []types.DeleteMessageBatchRequestEntry{{Id: aws.String("bad"), ReceiptHandle: aws.String("garbage")}}
	for i, m := range got {
		del = append(del, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	deleted, err := t.DeleteMessageBatch(t.ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: del})
	if err != nil {
		return err
	}
	return errors.Join(same("received", len(got), 9), same("deleted", len(deleted.Successful), 9), same("failed", len(deleted.Failed), 1))
}

func large(t *trial) error {
	url, _, err := t.queue("", nil)
	if err != nil {
		return err
	}
	body := strings.Repeat("é", 1<<19)
	if err := t.send(url, body); err != nil {
		return err
	}
	m, err := t.one(url)
	if err != nil {
		return err
	}
	return errors.Join(same("body", *m.Body == body, true), refused[smithy.APIError](t.send(url, body+"x"), "InvalidParameterValue"))
}

func largeBatch(t *trial) error {
	url, _, err := t.queue("", nil)
	if err != nil {
		return err
	}
	var entries []types.SendMessageBatchRequestEntry
	for i := range 8 {
		entries = append(entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(strings.Repeat("x", 1<<17))})
	}
	batch := &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries}
	if _, err := t.SendMessageBatch(t.ctx, batch); err != nil {
		return err
	}
	got, err := t.receive(url)
	if err := errors.Join(err, same("received", len(got), 8)); err != nil {
		return err
	}
	*entries[7].MessageBody += "x"
	_, long := t.SendMessageBatch(t.ctx, batch)
	entries[1].Id = entries[0].Id
	_, twice := t.SendMessageBatch(t.ctx, batch)
	entries[1].Id = aws.String("not an id")
	_, id := t.SendMessageBatch(t.ctx, batch)
	batch.Entries = append(entries, entries[:3]...)
	_, many := t.SendMessageBatch(t.ctx, batch)
	return errors.Join(
		refused[*types.BatchRequestTooLong](long, "AWS.SimpleQueueService.BatchRequestTooLong"),
		refused[*types.BatchEntryIdsNotDistinct](twice, "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"),
		refused[*types.InvalidBatchEntryId](id, "AWS.SimpleQueueService.InvalidBatchEntryId"),
		refused[*types.TooManyEntriesInBatchRequest](many, "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"))
}

func longPoll(t *trial) error {
	url, _, err := t.queue("", nil)
	if err != nil {
		return err
	}
	began := time.Now()
	sent := make(chan error, 1)
	go func() {
		time.Sleep(300 * time.Millisecond)
		sent <- t.send(url, "hello")
	}()
	_, err = t.one(url, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 20 })
	took := time.Since(began)
	if err := errors.Join(err, <-sent); err != nil {
		return err
	}
	return same("between 0.3 and 5 s", took > 290*time.Millisecond && took < 5*time.Second, true)
}

// abandoned: what comes after a client has gone is not hidden for it.
func abandoned(t *trial) error {
	url, _, err := t.queue("", nil)
	if err != nil {
		return err
	}
	if _, err := t.ReceiveMessage(t.ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 20}, gone(200*time.Millisecond)); err == nil {
		return errors.New("the client did not go away")
	}
	time.Sleep(100 * time.Millisecond)
	if err := t.send(url, "hello"); err != nil {
		return err
	}
	m, err := t.one(url)
	return errors.Join(err, same("count", m.Attributes["ApproximateReceiveCount"], "1"))
}

// wake: a poll also ends when a delay does, and when a message is released.
func wake(t *trial) error {
	url, _, err := t.queue("", nil)
	if err != nil {
		return err
	}
	if _, err := t.SendMessage(t.ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x"), DelaySeconds: 1}); err != nil {
		return err
	}
	wait := func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 20 }
	began := time.Now()
	m, err := t.one(url, wait)
	if err != nil {
		return err
	}
	released := make(chan error, 1)
	go func() {
		time.Sleep(200 * time.Millisecond)
		out, err := t.ChangeMessageVisibilityBatch(t.ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("good"), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0},
			{Id: aws.String("bad"), ReceiptHandle: aws.String("garbage"), VisibilityTimeout: 0},
		}})
		if err == nil && (len(out.Successful) != 1 || len(out.Failed) != 1 || *out.Failed[0].Code != "ReceiptHandleIsInvalid") {
			err = fmt.Errorf("%d released, failed %+v", len(out.Successful), out.Failed)
		}
		released <- err
	}()
	_, err = t.one(url, wait)
	took := time.Since(began)
	return errors.Join(err, <-released, same("between 1 and 10 s", took > time.Second && took < 10*time.Second, true))
}

func visibility(t *trial) error {
	url, _, err := t.queue("", map[string]string{"VisibilityTimeout": "1"})
	if err != nil {
		return err
	}
	if err := t.send(url, "x"); err != nil {
		return err
	}
	if _, err := t.one(url); err != nil {
		return err
	}
	wait := func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 5 }
	m, err := t.one(url, wait) // when its time is over
	if err != nil {
		return err
	}
	change := func(seconds int32) error {
		out, err := t.ChangeMessageVisibilityBatch(t.ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("a"), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds},
		}})
		if err != nil {
			return err
		}
		return same("failed", len(out.Failed), 0)
	}
	if err := change(60); err != nil {
		return err
	}
	hidden, err := t.receive(url, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 1 })
	if err := errors.Join(err, same("hidden", len(hidden), 0), change(0)); err != nil {
		return err
	}
	m, err = t.one(url)
	return errors.Join(err, same("count", m.Attributes["ApproximateReceiveCount"], "3"))
}

func purge(t *trial) error {
	url, _, err := t.queue("", nil)
	if err != nil {
		return err
	}
	for _, body := range []string{"in flight", "visible"} {
		if err := t.send(url, body); err != nil {
			return err
		}
	}
	if _, err := t.one(url, func(in *sqs.ReceiveMessageInput) { in.MaxNumberOfMessages, in.VisibilityTimeout = 1, 1 }); err != nil {
		return err
	}
	if _, err := t.PurgeQueue(t.ctx, &sqs.PurgeQueueInput{QueueUrl: &url}); err != nil {
		return err
	}
	left, err := t.receive(url, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 2 })
	if err := errors.Join(err, same("left", len(left), 0)); err != nil {
		return err
	}
	_, err = t.PurgeQueue(t.ctx, &sqs.PurgeQueueInput{QueueUrl: &url})
	return refused[*types.PurgeQueueInProgress](err, "AWS.SimpleQueueService.PurgeQueueInProgress")
}

func tags(t *trial) error {
	url, _, err := t.queue("", nil)
	if err != nil {
		return err
	}
	if _, err := t.TagQueue(t.ctx, &sqs.TagQueueInput{QueueUrl: &url, Tags: map[string]string{"a": "1", "b": ""}}); err != nil {
		return err
	}
	if _, err := t.UntagQueue(t.ctx, &sqs.UntagQueueInput{QueueUrl: &url, TagKeys: []string{"a", "never"}}); err != nil {
		return err
	}
	got, err := t.ListQueueTags(t.ctx, &sqs.ListQueueTagsInput{QueueUrl: &url})
	if err != nil {
		return err
	}
	return same("tags", fmt.Sprint(got.Tags), "map[b:]")
}

func permissions(t *trial) error {
	url, _, err := t.queue("", nil)
	if err != nil {
		return err
	}
	add := &sqs.AddPermissionInput{QueueUrl: &url, Label: aws.String("label"), AWSAccountIds: []string{"111122223333"}, Actions: []string{"SendMessage"}}
	if _, err := t.AddPermission(t.ctx, add); err != nil {
		return err
	}
	policy := func() (string, error) {
		got, err := t.GetQueueAttributes(t.ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNamePolicy}})
		if err != nil {
			return "", err
		}
		return got.Attributes["Policy"], nil
	}
	text, err := policy()
	if err != nil || !strings.Contains(text, "arn:aws:iam::111122223333:root") {
		return fmt.Errorf("policy %q, %w", text, err)
	}
	if _, err := t.RemovePermission(t.ctx, &sqs.RemovePermissionInput{QueueUrl: &url, Label: aws.String("label")}); err != nil {
		return err
	}
	text, err = policy()
	return errors.Join(err, same("policy", text, ""))
}

func pages(t *trial) error {
	for i := range 5 {
		if _, _, err := t.queue(strconv.Itoa(i), nil); err != nil {
			return err
		}
	}
	var names []string
	list := sqs.NewListQueuesPaginator(t.Client, &sqs.ListQueuesInput{QueueNamePrefix: aws.String(t.name), MaxResults: aws.Int32(2)})
	n := 0
	for ; list.HasMorePages(); n++ {
		page, err := list.NextPage(t.ctx)
		if err != nil {
			return err
		}
		names = append(names, page.QueueUrls...)
	}
	return errors.Join(same("pages", n, 3), same("queues", len(names), 5))
}

func typedErrors(t *trial) error {
	url, _, err := t.queue("", map[string]string{"DelaySeconds": "5"})
	if err != nil {
		return err
	}
	_, missing := t.GetQueueUrl(t.ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("never")})
	_, exists := t.CreateQueue(t.ctx, &sqs.CreateQueueInput{QueueName: aws.String(t.name), Attributes: map[string]string{"DelaySeconds": "6"}})
	_, handle := t.DeleteMessage(t.ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: aws.String("garbage")})
	_, contents := t.SendMessage(t.ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("\x00")})
	_, attribute := t.GetQueueAttributes(t.ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"Foobar"}})
	_, empty := t.SendMessageBatch(t.ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{}})
	return errors.Join(
		refused[*types.QueueDoesNotExist](missing, "AWS.SimpleQueueService.NonExistentQueue"),
		refused[*types.QueueNameExists](exists, "QueueAlreadyExists"),
		refused[*types.ReceiptHandleIsInvalid](handle, "ReceiptHandleIsInvalid"),
		refused[*types.InvalidMessageContents](contents, "InvalidMessageContents"),
		refused[*types.InvalidAttributeName](attribute, "InvalidAttributeName"),
		refused[*types.EmptyBatchRequest](empty, "AWS.SimpleQueueService.EmptyBatchRequest"))
}

func settings(t *trial) error {
	dead, deadARN, err := t.queue("-dead", nil)
	if err != nil {
		return err
	}
	policy := `{"deadLetterTargetArn":"` + deadARN + `","maxReceiveCount":3}`
	url, _, err := t.queue("", map[string]string{"DelaySeconds": "1", "RedrivePolicy": policy})
	if err != nil {
		return err
	}
	set := func(attributes map[string]string) error {
		_, err := t.SetQueueAttributes(t.ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: attributes})
		return err
	}
	all := func() map[string]string {
		got, err := t.GetQueueAttributes(t.ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
		if err != nil {
			return map[string]string{"error": err.Error()}
		}
		return got.Attributes
	}
	before := all()
	if err := errors.Join(same("policy", before["RedrivePolicy"], policy), set(map[string]string{"DelaySeconds": "0", "VisibilityTimeout": "7", "RedrivePolicy": ""})); err != nil {
		return err
	}
	after := all()
	_, kept := after["RedrivePolicy"]
	sources, err := t.ListDeadLetterSourceQueues(t.ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead})
	if err != nil {
		return err
	}
	return errors.Join(same("delay", before["DelaySeconds"]+after["DelaySeconds"], "10"), same("timeout", before["VisibilityTimeout"]+" "+after["VisibilityTimeout"], "30 7"),
		same("a policy", kept, false), same("sources", len(sources.QueueUrls), 0),
		refused[*types.InvalidAttributeName](set(map[string]string{"QueueArn": "x"}), "InvalidAttributeName"),
		refused[*types.InvalidAttributeValue](set(map[string]string{"DelaySeconds": "901"}), "InvalidAttributeValue"))
}

// regions: a name is another queue in every region and account.
func regions(t *trial) error {
	for _, who := range [][2]string{{"us-east-1", "test"}, {"eu-west-1", "test"}, {"us-east-1", "111122223333"}} {
		t.Client = client(who[0], who[1])
		url, arn, err := t.queue("", nil)
		if err != nil {
			return err
		}
		if !strings.Contains(arn, who[0]) {
			return fmt.Errorf("ARN %s in %s", arn, who[0])
		}
		if err := t.send(url, who[0]+who[1]); err != nil {
			return err
		}
		m, err := t.one(url)
		if err := errors.Join(err, same("body", aws.ToString(m.Body), who[0]+who[1])); err != nil {
			return err
		}
	}
	return nil
}
