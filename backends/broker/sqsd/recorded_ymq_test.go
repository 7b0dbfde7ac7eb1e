package sqsd_test

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"dlq/backends/broker"
	"dlq/backends/broker/sqsd"
)

// What Yandex Message Queue does otherwise than Amazon SQS, by subject: 5.1 are the forms of its
// names, 5.2 the differences. Source: https://yandex.cloud/docs/message-queue/api-ref and the
// open server of YMQ.
//
// Differences that are not tested, and why:
//
//   - rate: no rate is imposed here. What is said when one is exceeded is tested.
//   - receive poll: here a message wakes a poll at once, which is within what the service does.
//   - price: nothing is charged.
//   - 5.1, that ids of messages are no RFC UUIDs: clients are told not to parse them.

// ymqFolder is the folder, as YMQ calls an account, of keys that belong to none.
const ymqFolder = "b1g00000000000000000"

func TestRecordedYMQ(t *testing.T) {
	examine(t, recordedYMQ, func(t *testing.T, protocol string) *exam {
		return openExam(t, protocol, sqsd.Options{Flavor: sqsd.YMQ})
	})
}

// noYMQQueue is a missing queue in the words of YMQ.
func noYMQQueue() refusal {
	want := noQueue()
	want.text, want.query = "The specified queue doesn't exist.", ""
	return want
}

// unknownAction is an action that the service lacks.
func unknownAction(name string) refusal {
	return refusal{status: 400, shape: coral + "UnknownOperationException", code: "InvalidAction", text: "The action " + name + " is not valid for this endpoint."}
}

var recordedYMQ = []statement{
	{"5.1", yandexSays, inBoth, "a queue's URL has three segments, and is another one for the next queue of the name", func(x *exam) {
		q := x.queue("orders")
		segments := strings.Split(strings.TrimPrefix(q, x.base+"/"), "/")
		if len(segments) != 3 || segments[0] != ymqFolder || !strings.HasPrefix(segments[1], "dj6") || segments[2] != "orders" {
			x.Fatalf("the URL is %s", q)
		}
		x.send(q, "a")
		x.gives(q, "a")
		x.ok(x.drop(q))
		x.wait(time.Second)
		again := x.queue("orders")
		if again == q {
			x.Errorf("the same URL %s again", again)
		}
		_, err := x.trySend(q, "a")
		x.refused(err, noYMQQueue())
		x.send(again, "b")
		x.gives(again, "b")
	}},
	{"5.1", yandexSays, inBoth, "ARNs", func(x *exam) {
		x.has(x.queue("orders"), "QueueArn", "yrn:yc:ymq:ru-central1:b1g00000000000000000:orders")
	}},
	{"5.2 protocol", yandexSays, inBoth, "both protocols are there", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a", text("Foo", "String", "Bar"))
		x.delete(q, x.gives(q, "a")...)
		x.equal("queues", x.list(""), []string{q})
	}},
	{"5.2 actions", yandexSays, inBoth, "the other actions are there", func(x *exam) {
		source, dlq := x.withDLQ(1)
		x.ok(x.tag(source, "a", "b"))
		x.equal("tags", x.tags(source), map[string]string{"a": "b"})
		_, err := x.api.UntagQueue(x.ctx(), &sqs.UntagQueueInput{QueueUrl: &source, TagKeys: []string{"a"}})
		x.ok(err)
		out, err := x.api.ListDeadLetterSourceQueues(x.ctx(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dlq})
		x.ok(err)
		x.equal("sources", out.QueueUrls, []string{source})
		u, err := x.api.GetQueueUrl(x.ctx(), &sqs.GetQueueUrlInput{QueueName: aws.String("dlq")})
		x.ok(err)
		x.equal("URL", *u.QueueUrl, dlq)
		x.ok(x.set(source, "VisibilityTimeout", "31"))
		_, err = x.batch(source, entry("a"), entry("b"))
		x.ok(err)
		x.ok(x.tryPurge(source))
		x.ok(x.drop(source))
	}},
	{"5.2 missing", yandexSays, inBoth, "no move tasks and no permissions", func(x *exam) {
		x.withDLQ(1)
		q := x.base + "/" + ymqFolder + "/dj6/dlq"
		_, err := x.startTask(x.arn("dlq"), "", 0)
		x.refused(err, unknownAction("StartMessageMoveTask"))
		_, err = x.cancel("handle")
		x.refused(err, unknownAction("CancelMessageMoveTask"))
		_, err = x.api.ListMessageMoveTasks(x.ctx(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(x.arn("dlq"))})
		x.refused(err, unknownAction("ListMessageMoveTasks"))
		x.refused(x.permit(q, "label", []string{"1"}, []string{"SendMessage"}), unknownAction("AddPermission"))
		x.refused(x.forbid(q, "label"), unknownAction("RemovePermission"))
	}},
	{"5.2 message size", yandexSays, inBoth, "256 KiB with the attributes, also of a batch", func(x *exam) {
		q := x.queue("orders")
		x.has(q, "MaximumMessageSize", "262144")
		x.send(q, strings.Repeat("a", 262144-len("nString1")), text("n", "String", "1"))
		_, err := x.trySend(q, strings.Repeat("a", 262144-len("nString1")+1), text("n", "String", "1"))
		x.refused(err, invalidParameter(""))
		_, err = x.batch(q, entry(strings.Repeat("a", 131072)), entry(strings.Repeat("b", 131073)))
		x.refused(err, prefixed(400, "BatchRequestTooLong", ""))
		_, err = x.batch(q, entry(strings.Repeat("a", 131072)), entry(strings.Repeat("b", 131072)))
		x.ok(err)
		_, err = x.create("large", "MaximumMessageSize", "262145")
		x.refused(err, badAttribute("MaximumMessageSize"))
	}},
	{"5.2 throttling error", yandexSays, inBoth, "ThrottlingException with status 403", func(x *exam) {
		struck := openExam(x.T, x.protocol, sqsd.Options{Flavor: sqsd.YMQ, Fault: func(op sqsd.FaultOp, _ string) (sqsd.Fault, bool) {
			return sqsd.Fault{Kind: sqsd.FaultThrottle}, op == sqsd.OpSend
		}})
		_, err := struck.trySend(struck.queue("orders"), "a")
		struck.refused(err, refusal{status: 403, shape: coral + "ThrottlingException", code: "ThrottlingException"})
	}},
	{"5.2 in flight", yandexSays, inBoth, "120,000 of a standard queue and 20,000 of a FIFO queue, then OverLimit", func(x *exam) {
		for name, most := range map[string]int{"orders": 120_000, "orders.fifo": 20_000} {
			q := x.queue(name, ifFIFO(name)...)
			x.equal("limit of "+name, x.lowerInFlight(name, 2), most)
			for i := range 3 {
				x.send(q, strconv.Itoa(i), ifFIFOSending(name, strconv.Itoa(i))...)
			}
			x.equal("received", len(x.receive(q)), 2)
			_, err := x.tryReceive(q)
			x.refused(err, plainly(403, "OverLimit", ""))
		}
	}},
	{"5.2 FIFO receive", yandexSays, inBoth, "one message of a group in a receive", func(x *exam) {
		q := x.fifo("orders")
		x.sendGroups(q, "g1-m1", "g1-m2", "g2-m1", "g2-m2", "g3-m1")
		x.gives(q, "g1-m1", "g2-m1", "g3-m1")
		x.gives(q)
	}},
	{"5.2 attributes", yandexSays, inBoth, "all attributes", func(x *exam) {
		now := strconv.FormatInt(x.time().Unix(), 10)
		standard := map[string]string{
			"QueueArn": x.arn("orders"), "ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0",
			"ApproximateNumberOfMessagesDelayed": "0", "CreatedTimestamp": now, "VisibilityTimeout": "30", "MaximumMessageSize": "262144",
			"MessageRetentionPeriod": "345600", "DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "0",
		}
		x.equal("standard", x.attributes(x.queue("orders"), "All"), standard)
		standard["QueueArn"], standard["FifoQueue"], standard["ContentBasedDeduplication"] = x.arn("orders.fifo"), "true", "true"
		x.equal("FIFO", x.attributes(x.fifo("orders"), "All"), standard)
	}},
	{"5.2 attributes", yandexSays, inBoth, "those that it has not fail the whole call", func(x *exam) {
		q := x.queue("orders")
		for _, name := range []types.QueueAttributeName{
			"Policy", "RedriveAllowPolicy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled", "DeduplicationScope", "FifoThroughputLimit", "LastModifiedTimestamp",
		} {
			_, err := x.api.GetQueueAttributes(x.ctx(), &sqs.GetQueueAttributesInput{QueueUrl: &q, AttributeNames: []types.QueueAttributeName{"QueueArn", name}})
			x.refused(err, refusal{status: 400, shape: modeled + "InvalidAttributeName", code: "InvalidAttributeName"})
		}
	}},
	{"5.2 RedrivePolicy", yandexSays, inBoth, "as it is returned, with a number", func(x *exam) {
		x.queue("dlq")
		q := x.queue("orders", "RedrivePolicy", `{"deadLetterTargetArn":"`+x.arn("dlq")+`","maxReceiveCount":"5"}`)
		x.has(q, "RedrivePolicy", `{"maxReceiveCount":5,"deadLetterTargetArn":"`+x.arn("dlq")+`"}`)
		x.ok(x.set(q, "RedrivePolicy", x.policy("dlq", 1000)))
	}},
	{"5.2 RedrivePolicy", yandexSays, inBoth, "what is wrong with one", func(x *exam) {
		x.queue("dlq")
		x.fifo("dlq")
		for policy, text := range map[string]string{
			x.policy("dlq", 0):      "maxReceiveCount must be greater than 0 and less than 1001.",
			x.policy("dlq", 1001):   "maxReceiveCount must be greater than 0 and less than 1001.",
			"{":                     "RedrivePolicy attribute is ill-constructed.",
			`{"maxReceiveCount":1}`: "RedrivePolicy attribute is ill-constructed.",
			x.policy("dlq.fifo", 1): "Target dead letter queue should have the same type as source queue.",
			`{"deadLetterTargetArn":"yrn:yc:ymq:other:` + ymqFolder + `:dlq","maxReceiveCount":1}`: "Invalid deadLetterTargetArn.",
			`{"deadLetterTargetArn":"dummy","maxReceiveCount":1}`:                                  "Invalid deadLetterTargetArn.",
		} {
			_, err := x.create("orders", "RedrivePolicy", policy)
			if err == nil {
				x.Fatalf("%s passes", policy)
			}
			x.refused(err, invalidParameter(text))
		}
	}},
	{"5.2 system attributes", yandexSays, inBoth, "no origin and no trace", func(x *exam) {
		source, dlq := x.withDLQ(1)
		x.send(source, "a", trace("Root=1-5759e988-bd862e3fe1be46a994272793"))
		x.equal("names in the source", namesOf(x.open(source, allSystem)[0].Attributes), []string{"ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "SenderId", "SentTimestamp"})
		x.open(source)
		x.equal("names of a dead letter", namesOf(x.one(dlq, allSystem).Attributes), []string{"ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "SenderId", "SentTimestamp"})
		q := x.fifo("orders")
		x.send(q, "a", group("g"))
		x.equal("names of FIFO", namesOf(x.one(q, allSystem).Attributes), []string{
			"ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "MessageDeduplicationId", "MessageGroupId", "SenderId", "SentTimestamp", "SequenceNumber",
		})
	}},
	{"5.2 move to DLQ", yandexSays, inBoth, "the id stays, time and count begin anew", func(x *exam) {
		for _, fifo := range []bool{false, true} {
			source, dlq, more := "", "", []sending(nil)
			if fifo {
				source, dlq = x.fifoWithDLQ(1)
				more = []sending{group("g")}
			} else {
				source, dlq = x.withDLQ(1)
			}
			sent := x.send(source, "a", more...)
			x.wait(90 * time.Second)
			x.open(source)
			x.open(source)
			m := x.one(dlq, allSystem)
			x.equal("id", m.MessageId, sent.MessageId)
			x.equal("SentTimestamp", m.Attributes["SentTimestamp"], x.millis())
			x.equal("count", m.Attributes["ApproximateReceiveCount"], "1")
		}
	}},
	{"5.2 missing dedup id or group", yandexSays, inBoth, "both are missing parameters", func(x *exam) {
		q := x.queue("orders.fifo", "FifoQueue", "true")
		missing := func(name string) refusal {
			want := missingParameter(name)
			want.text = "No " + name + " parameter."
			return want
		}
		_, err := x.trySend(q, "a", dedup("1"))
		x.refused(err, missing("MessageGroupId"))
		_, err = x.trySend(q, "a", group("g"))
		x.refused(err, missing("MessageDeduplicationId"))
	}},
	{"5.2 bad characters", yandexSays, inBoth, "are an invalid value", func(x *exam) {
		_, err := x.trySend(x.queue("orders"), "a\x01")
		x.refused(err, invalidParameter(""))
		x.contains(x.wire.last(), "Message body validation failed: ")
	}},
	{"5.2 >10 attributes", yandexSays, inBoth, "are an invalid combination", func(x *exam) {
		var more []sending
		for i := range 11 {
			more = append(more, text(fmt.Sprint("a", i), "String", "v"))
		}
		_, err := x.trySend(x.queue("orders"), "a", more...)
		x.refused(err, refusal{status: 400, shape: coral + "InvalidParameterCombinationException", code: "InvalidParameterCombination"})
	}},
	{"5.2 batch entry too big", yandexSays, inBoth, "fails the batch", func(x *exam) {
		q := x.queue("orders", "MaximumMessageSize", "1024")
		_, err := x.batch(q, entry("a"), entry(strings.Repeat("b", 1025)))
		x.refused(err, invalidParameter("Each message must be shorter than 1024 bytes."))
		x.gives(q)
	}},
	{"5.2 change visibility", yandexSays, inBoth, "of what is not in flight, and of what is gone", func(x *exam) {
		q := x.queue("orders", "VisibilityTimeout", "1")
		x.send(q, "a")
		m := x.one(q)
		x.wait(2 * time.Second)
		x.refused(x.tryHide(q, m, 10), prefixed(400, "MessageNotInflight", ""))
		m = x.one(q)
		x.delete(q, m)
		x.refused(x.tryHide(q, m, 10), invalidParameter("No such message."))
	}},
	{"5.2 ReceiptHandleIsInvalid", yandexSays, inBoth, "has status 400", func(x *exam) {
		q := x.queue("orders")
		x.refused(x.tryDelete(q, garbage()), plainly(400, "ReceiptHandleIsInvalid", ""))
		x.refused(x.tryHide(q, garbage(), 1), plainly(400, "ReceiptHandleIsInvalid", ""))
	}},
	{"5.2 error XML", yandexSays, onlyQuery, "Message and Code alone, no namespace", func(x *exam) {
		e := x.rawForm("/", "Action=SendMessage&MessageBody=a&QueueUrl="+url.QueryEscape(x.base+"/"+ymqFolder+"/dj6/none"))
		x.equal("status", e.status, 400)
		x.contains(e, "<ErrorResponse><Error><Message>The specified queue doesn't exist.</Message><Code>AWS.SimpleQueueService.NonExistentQueue</Code></Error><RequestId>")
		x.lacks(e, "xmlns", "<Type>", "<Detail")
	}},
	{"5.2 error XML", yandexSays, onlyQuery, "failed entries of a batch have Code, Id, Message", func(x *exam) {
		q := x.queue("orders")
		_, err := x.api.DeleteMessageBatch(x.ctx(), &sqs.DeleteMessageBatchInput{QueueUrl: &q, Entries: []types.DeleteMessageBatchRequestEntry{
			{Id: aws.String("bad"), ReceiptHandle: aws.String("garbage")},
		}})
		x.ok(err)
		root, err := parseXML(x.wire.last().body)
		x.ok(err)
		x.equal("elements", root.kid("DeleteMessageBatchResult").kid("BatchResultErrorEntry").names(), []string{"Code", "Id", "Message"})
	}},
	{"5.2 NonExistentQueue text", yandexSays, inBoth, "says doesn't", func(x *exam) {
		_, err := x.trySend(x.base+"/"+ymqFolder+"/dj6/none", "a")
		x.refused(err, noYMQQueue())
	}},
	{"5.2 ListQueues", yandexSays, inBoth, "has no pages", func(x *exam) {
		var all []string
		for i := range 5 {
			all = append(all, x.queue("q"+strconv.Itoa(i)))
		}
		out, err := x.api.ListQueues(x.ctx(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String("q"), MaxResults: aws.Int32(2)})
		x.ok(err)
		x.equal("queues", out.QueueUrls, all)
		x.equal("token", out.NextToken, (*string)(nil))
	}},
}

func namesOf(m map[string]string) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func ifFIFO(name string) []string {
	if strings.HasSuffix(name, ".fifo") {
		return []string{"FifoQueue", "true", "ContentBasedDeduplication", "true"}
	}
	return nil
}

func ifFIFOSending(name, id string) []sending {
	if strings.HasSuffix(name, ".fifo") {
		return []sending{group(id)}
	}
	return nil
}

// lowerInFlight returns how many messages of a queue may be in flight, and makes it fewer.
func (x *exam) lowerInFlight(entity string, to int) (before int) {
	x.Helper()
	x.ok(x.engine.Change(entity, func(p *broker.Properties) error {
		before, p.MaxInFlight = p.MaxInFlight, to
		return nil
	}))
	return before
}
