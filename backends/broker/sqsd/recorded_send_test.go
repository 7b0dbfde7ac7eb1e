package sqsd_test

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// What is said of messages.
const (
	badCharacters = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
	noDedup       = "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
	notOfType     = "The request include parameter that is not valid for this queue type."
)

// tooLarge is a message that is larger than its queue takes.
func tooLarge(limit int) refusal {
	return invalidParameter(fmt.Sprintf("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", limit))
}

// badValue is a parameter with a value that is wrong.
func badValue(value, parameter, reason string) refusal {
	return invalidParameter("Value " + value + " for parameter " + parameter + " is invalid. Reason: " + reason)
}

// 2.7: sending.
var recordedSend = []statement{
	{"2.7", recorded, inBoth, "a message of exactly the limit passes, one byte more does not", func(x *exam) {
		q := x.queue("orders", "MaximumMessageSize", "1024", "VisibilityTimeout", "0")
		x.send(q, strings.Repeat("a", 1024))
		x.send(q, strings.Repeat("é", 512))
		_, err := x.trySend(q, strings.Repeat("a", 1025))
		x.refused(err, tooLarge(1024))
		x.equal("received", len(x.receive(q)), 2)
	}},
	{"2.7", recorded, inBoth, "a message of 1 MiB", func(x *exam) {
		q := x.queue("orders")
		x.send(q, strings.Repeat("a", 1<<20))
		_, err := x.trySend(q, strings.Repeat("a", 1<<20+1))
		x.refused(err, tooLarge(1<<20))
		x.equal("received", len(*x.one(q).Body), 1<<20)
	}},
	{"2.7", documented, inBoth, "names, types and values of attributes count, system attributes do not", func(x *exam) {
		q := x.queue("orders", "MaximumMessageSize", "1024")
		const rest = 1024 - len("name") - len("String.label") - len("value") - len("n2") - len("Binary") - 3
		more := []sending{text("name", "String.label", "value"), bytesOf("n2", "Binary", []byte{1, 2, 3}), trace(strings.Repeat("t", 100))}
		x.send(q, strings.Repeat("a", rest), more...)
		_, err := x.trySend(q, strings.Repeat("a", rest+1), more...)
		x.refused(err, tooLarge(1024))
	}},
	{"2.7", recorded, inBoth, "a body that is empty or missing", func(x *exam) {
		q := x.queue("orders")
		_, err := x.trySend(q, "")
		x.refused(err, missingParameter("MessageBody"))
		_, err = x.api.SendMessage(x.ctx(), &sqs.SendMessageInput{QueueUrl: &q})
		x.refused(err, missingParameter("MessageBody"))
	}},
	{"2.7", recorded, inBoth, "characters that are not allowed in a body", func(x *exam) {
		q := x.queue("orders")
		for _, body := range []string{"Invalid-\x00-\x08-\x13-\uffff", "\x0b", "\x0c", "\x1f", "\ufffe", "a\uffff"} {
			_, err := x.trySend(q, body)
			x.refused(err, plainly(400, "InvalidMessageContents", badCharacters))
		}
		x.send(q, "\t\n\r \x7f\u0080\ud7ff\ue000\ufffd\U00010000\U0010ffff")
		x.one(q)
	}},
	{"2.7", recorded, inBoth, "letters that are no ASCII in an attribute's name", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a", text("attr.1øßä", "String", "Valida"))
		m := x.one(q, messageNames("attr.1øßä"))
		x.equal("value", *m.MessageAttributes["attr.1øßä"].StringValue, "Valida")
	}},
	{"2.7", recorded, inBoth, "an empty String attribute", func(x *exam) {
		_, err := x.trySend(x.queue("orders"), "test", text("ErrorDetails", "String", ""))
		x.refused(err, invalidParameter("Message (user) attribute 'ErrorDetails' must contain a non-empty value of type 'String'."))
	}},
	{"2.7", recorded, inBoth, "characters that are not allowed in an attribute's value", func(x *exam) {
		_, err := x.trySend(x.queue("orders"), "test", text("attr1", "String", "Invalid-\x08,\x0b"))
		x.refused(err, invalidParameter(""))
	}},
	{"2.7", recorded, inBoth, "names and types of attributes that are not allowed", func(x *exam) {
		q := x.queue("orders")
		for _, name := range []string{
			"aWs.-Invalid-attr", "AMAZON.-Invalid-attr", ".-Invalid-attr", "Invalid-!-attr", `Invalid-"-attr`, "Invalid-§-attr", "Invalid-(-attr",
			"Invalid-?-attr", strings.Repeat("L", 257), "Invalid.",
		} {
			_, err := x.trySend(q, "test", text(name, "String", "Valid"))
			if err == nil {
				x.Errorf("the name %q passes", name)
				continue
			}
			x.refused(err, invalidParameter(""))
		}
		for _, dataType := range []string{"Invalid", "Number." + strings.Repeat("L", 256), "string"} {
			_, err := x.trySend(q, "test", text("Attribute_name", dataType, "1"))
			x.refused(err, invalidParameter(""))
		}
		x.send(q, "test", text(strings.Repeat("L", 256), "Number."+strings.Repeat("l", 249), "1"))
	}},
	{"2.7", documented, inBoth, "ten attributes at most", func(x *exam) {
		q := x.queue("orders")
		var more []sending
		for i := range 10 {
			more = append(more, text(fmt.Sprint("a", i), "Number", fmt.Sprint(i)))
		}
		x.send(q, "a", more...)
		_, err := x.trySend(q, "a", append(more, text("b", "String", "c"))...)
		x.refused(err, invalidParameter(""))
	}},
	{"2.7", inferred, inBoth, "a delay out of range", func(x *exam) {
		q := x.queue("orders")
		_, err := x.trySend(q, "a", delay(901))
		x.refused(err, badValue("901", "DelaySeconds", "DelaySeconds must be >= 0 and <= 900."))
		_, err = x.trySend(q, "a", delay(-1))
		x.refused(err, badValue("-1", "DelaySeconds", "DelaySeconds must be >= 0 and <= 900."))
	}},
	{"2.7", recorded, inBoth, "a delay, from when the message was sent", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "foobar", delay(1))
		x.gives(q)
		x.wait(time.Second)
		x.gives(q, "foobar")
		late := x.queue("late", "DelaySeconds", "2")
		x.send(late, "queue")
		x.with("DelaySeconds", 0).send(late, "message")
		x.gives(late, "message")
		x.wait(2 * time.Second)
		x.gives(late, "queue")
	}},
	{"2.7", recorded, inBoth, "AWSTraceHeader is a system attribute", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a", trace("Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1"))
		m := x.one(q, allSystem)
		x.equal("AWSTraceHeader", m.Attributes["AWSTraceHeader"], "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1")
	}},
	{"2.7", recorded, inBoth, "the header X-Amzn-Trace-Id becomes AWSTraceHeader", func(x *exam) {
		q := x.queue("orders")
		const header = "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1"
		if x.query() {
			x.raw("POST", "/", map[string]string{"Content-Type": "application/x-www-form-urlencoded", "X-Amzn-Trace-Id": header},
				"Action=SendMessage&MessageBody=a&QueueUrl="+url.QueryEscape(q))
		} else {
			x.raw("POST", "/", map[string]string{"X-Amz-Target": "AmazonSQS.SendMessage", "Content-Type": "application/x-amz-json-1.0", "X-Amzn-Trace-Id": header},
				`{"QueueUrl":"`+q+`","MessageBody":"a"}`)
		}
		x.equal("AWSTraceHeader", x.one(q, allSystem).Attributes["AWSTraceHeader"], header)
	}},
	{"2.7", documented, inBoth, "no other system attribute is taken, nor AWSTraceHeader of another type", func(x *exam) {
		q := x.queue("orders")
		for _, a := range []struct{ name, dataType, value string }{{"SenderId", "String", "me"}, {"AWSTraceHeader", "Number", "1"}, {"AWSTraceHeader", "String", ""}} {
			_, err := x.trySend(q, "a", func(in *sqs.SendMessageInput) {
				in.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{a.name: {DataType: &a.dataType, StringValue: &a.value}}
			})
			x.refused(err, invalidParameter(""))
		}
	}},
	{"2.7", recorded, inBoth, "a standard queue takes a message group, and gives it back", func(x *exam) {
		q := x.queue("orders")
		out := x.send(q, "a", group("tenant"))
		x.equal("SequenceNumber", out.SequenceNumber, (*string)(nil))
		m := x.one(q, allSystem)
		x.equal("MessageGroupId", m.Attributes["MessageGroupId"], "tenant")
		if _, there := m.Attributes["SequenceNumber"]; there {
			x.Error("a sequence number")
		}
		x.send(q, "b", group("tenant"))
		x.gives(q, "b")
	}},
	{"2.7", secondHand, inBoth, "a standard queue takes no deduplication id", func(x *exam) {
		_, err := x.trySend(x.queue("orders"), "a", dedup("1"))
		x.refused(err, invalidParameter("Value 1 for parameter MessageDeduplicationId is invalid. Reason: "+notOfType))
	}},
	{"2.7", documented, inBoth, "members of the answer", func(x *exam) {
		q := x.queue("orders")
		first := x.send(q, "a")
		x.equal("length of the id", len(*first.MessageId), 36)
		if !x.query() {
			x.equal("members", x.members(), []string{"MD5OfMessageBody", "MessageId"})
		}
		m := x.one(q)
		x.equal("id received", m.MessageId, first.MessageId)
		if len(aws.ToString(m.ReceiptHandle)) == 0 || len(*m.ReceiptHandle) > 1024 {
			x.Errorf("a receipt handle of %d bytes", len(*m.ReceiptHandle))
		}
	}},
}

// 2.7: sending to FIFO queues.
var recordedFIFOSend = []statement{
	{"2.7", recorded, inBoth, "a message group is required", func(x *exam) {
		q := x.queue("orders.fifo", "FifoQueue", "true")
		_, err := x.trySend(q, "a", dedup("1"))
		x.refused(err, missingParameter("MessageGroupId"))
	}},
	{"2.7", recorded, inBoth, "a deduplication id is required", func(x *exam) {
		q := x.queue("orders.fifo", "FifoQueue", "true")
		_, err := x.trySend(q, "a", group("g"))
		x.refused(err, invalidParameter(noDedup))
	}},
	{"2.7", recorded, inBoth, "no delay of its own", func(x *exam) {
		_, err := x.trySend(x.fifo("orders"), "message-1", group("1"), delay(2))
		x.refused(err, badValue("2", "DelaySeconds", notOfType))
	}},
	{"2.7", recorded, inBoth, "a delay of zero is taken, and the queue's delay applies", func(x *exam) {
		q := x.fifo("orders", "DelaySeconds", "2")
		x.with("DelaySeconds", 0).send(q, "message-1", group("1"))
		x.send(q, "message-2", group("1"))
		x.gives(q)
		x.wait(3 * time.Second)
		x.gives(q, "message-1", "message-2")
	}},
	{"2.7", recorded, inBoth, "ids that are not allowed", func(x *exam) {
		q := x.fifo("orders")
		const reason = " can only include alphanumeric and punctuation characters. 1 to 128 in length."
		_, err := x.trySend(q, "a", group("group 123"))
		x.refused(err, badValue("group 123", "MessageGroupId", "MessageGroupId"+reason))
		_, err = x.trySend(q, "a", group("g"), dedup("dedup 123"))
		x.refused(err, badValue("dedup 123", "MessageDeduplicationId", "MessageDeduplicationId"+reason))
		long := strings.Repeat("a", 129)
		_, err = x.trySend(q, "a", group(long))
		x.refused(err, badValue(long, "MessageGroupId", "MessageGroupId"+reason))
		_, err = x.trySend(q, "a", group("é"))
		x.refused(err, badValue("é", "MessageGroupId", "MessageGroupId"+reason))
		x.send(q, "a", group(long[:128]), dedup("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~az09"))
	}},
	{"2.7", recorded, inBoth, "sequence numbers grow", func(x *exam) {
		q := x.fifo("orders")
		last := ""
		for i := range 3 {
			got := aws.ToString(x.send(q, fmt.Sprint("message-", i), group("g")).SequenceNumber)
			if len(got) < len(last) || len(got) == len(last) && got <= last || got == "" {
				x.Errorf("%q after %q", got, last)
			}
			last = got
		}
	}},
	{"2.7", secondHand, inBoth, "a duplicate is answered as the first", func(x *exam) {
		q := x.fifo("orders")
		first, second := x.send(q, "a", group("g"), dedup("1")), x.send(q, "b", group("g"), dedup("1"))
		x.equal("id", second.MessageId, first.MessageId)
		x.equal("sequence number", second.SequenceNumber, first.SequenceNumber)
		x.gives(q, "a")
	}},
}

// 2.8: sending several messages.
var recordedBatch = []statement{
	{"2.8", recorded, inBoth, "an empty batch", func(x *exam) {
		_, err := x.batch(x.queue("orders"))
		x.refused(err, prefixed(400, "EmptyBatchRequest", "There should be at least one SendMessageBatchRequestEntry in the request."))
	}},
	{"2.8", recorded, inBoth, "more than ten entries", func(x *exam) {
		_, err := x.batch(x.queue("orders"), repeated(20)...)
		x.refused(err, prefixed(400, "TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent 20."))
	}},
	{"2.8", recorded, inBoth, "ids that are not allowed", func(x *exam) {
		q := x.queue("orders")
		for _, id := range []string{"message:1", "", strings.Repeat("a", 81), "é", "a b"} {
			_, err := x.batch(q, entryWith(id, "a"))
			x.refused(err, prefixed(400, "InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."))
		}
		_, err := x.batch(q, entryWith(strings.Repeat("-", 80), "a"), entryWith("_aZ9", "b"))
		x.ok(err)
	}},
	{"2.8", recorded, inBoth, "an id that is there twice", func(x *exam) {
		_, err := x.batch(x.queue("orders"), entryWith("id_1", "a"), entryWith("id_2", "b"), entryWith("id_2", "c"))
		x.refused(err, prefixed(400, "BatchEntryIdsNotDistinct", "Id id_2 repeated."))
	}},
	{"2.8", recorded, inBoth, "the order of those checks", func(x *exam) {
		q := x.queue("orders")
		many := repeated(11)
		many[0].Id, many[3].Id = aws.String(""), aws.String("id_2")
		_, err := x.batch(q, many...)
		x.refused(err, prefixed(400, "TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent 11."))
		_, err = x.batch(q, entryWith("a", "x"), entryWith("a", "y"), entryWith("a:", strings.Repeat("z", 1<<20)))
		x.refused(err, prefixed(400, "InvalidBatchEntryId", ""))
		_, err = x.batch(q, entryWith("a", "x"), entryWith("a", strings.Repeat("z", 1<<20)))
		x.refused(err, prefixed(400, "BatchEntryIdsNotDistinct", "Id a repeated."))
	}},
	{"2.8", recorded, inBoth, "a missing deduplication id fails all", func(x *exam) {
		q := x.queue("orders.fifo", "FifoQueue", "true")
		one, two := entry("a"), entry("b")
		one.MessageGroupId, one.MessageDeduplicationId, two.MessageGroupId = aws.String("g"), aws.String("1"), aws.String("g")
		_, err := x.batch(q, one, two)
		x.refused(err, invalidParameter(noDedup))
		x.gives(q)
	}},
	{"2.8", recorded, inBoth, "a missing message group fails all, as an invalid value", func(x *exam) {
		q := x.queue("orders.fifo", "FifoQueue", "true")
		one, two := entry("a"), entry("b")
		one.MessageGroupId, one.MessageDeduplicationId, two.MessageDeduplicationId = aws.String("g"), aws.String("1"), aws.String("2")
		_, err := x.batch(q, one, two)
		x.refused(err, invalidParameter("The request must contain the parameter MessageGroupId."))
		x.gives(q)
	}},
	{"2.8", recorded, inBoth, "a batch that is too large as a whole", func(x *exam) {
		q := x.queue("orders")
		_, err := x.batch(q, entry(strings.Repeat("a", 1<<19)), entry(strings.Repeat("b", 1<<19+1)))
		x.refused(err, prefixed(400, "BatchRequestTooLong", "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes."))
		out, err := x.batch(q, entry(strings.Repeat("a", 1<<19)), entry(strings.Repeat("b", 1<<19)))
		x.ok(err)
		x.equal("successful", len(out.Successful), 2)
	}},
	{"2.8", recorded, inBoth, "the limit of a batch is not the queue's", func(x *exam) {
		q := x.queue("orders", "MaximumMessageSize", "1024")
		out, err := x.batch(q, entry(strings.Repeat("a", 1024)), entry(strings.Repeat("b", 1024)), entry("c"))
		x.ok(err)
		x.equal("successful", len(out.Successful), 3)
	}},
	{"2.8", recorded, inBoth, "an entry that is too large fails alone", func(x *exam) {
		q := x.queue("orders", "MaximumMessageSize", "1024")
		out, err := x.batch(q, entry("a"), entry(strings.Repeat("b", 1025)), entry("c"))
		x.ok(err)
		x.equal("status", x.wire.last().status, 200)
		x.equal("failed", out.Failed, []types.BatchResultErrorEntry{{
			Id: aws.String("id_2"), SenderFault: true, Code: aws.String("InvalidParameterValue"),
			Message: aws.String("One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."),
		}})
		x.equal("successful", []string{*out.Successful[0].Id, *out.Successful[1].Id}, []string{"id_1", "id_3"})
		x.gives(q, "a", "c")
	}},
	{"2.8", recorded, inBoth, "an entry with bad characters fails alone", func(x *exam) {
		q := x.queue("orders")
		entries := append(repeated(9), entry("\x01"))
		out, err := x.batch(q, entries...)
		x.ok(err)
		x.equal("successful", len(out.Successful), 9)
		x.equal("failed", out.Failed, []types.BatchResultErrorEntry{{
			Id: aws.String("id_10"), SenderFault: true, Code: aws.String("InvalidMessageContents"), Message: aws.String(badCharacters),
		}})
		x.equal("received", len(x.receive(q)), 9)
	}},
	{"2.8", recorded, inBoth, "what a batch answers, and that it keeps its order", func(x *exam) {
		q := x.fifo("orders")
		var entries []types.SendMessageBatchRequestEntry
		for i := range 10 {
			e := entry(fmt.Sprint("message-", i))
			e.MessageGroupId = aws.String("g")
			e.MessageAttributes = map[string]types.MessageAttributeValue{"n": {DataType: aws.String("Number"), StringValue: aws.String(fmt.Sprint(i))}}
			entries = append(entries, e)
		}
		out, err := x.batch(q, entries...)
		x.ok(err)
		messages := x.receive(q, messageNames("All"), allSystem)
		x.equal("successful", len(out.Successful), 10)
		x.equal("received", len(messages), 10)
		for i, m := range messages {
			s := out.Successful[i]
			x.equal("body", *m.Body, fmt.Sprint("message-", i))
			x.equal("id", s.MessageId, m.MessageId)
			x.equal("MD5OfMessageBody", s.MD5OfMessageBody, m.MD5OfBody)
			x.equal("MD5OfMessageAttributes", s.MD5OfMessageAttributes, m.MD5OfMessageAttributes)
			x.equal("SequenceNumber", *s.SequenceNumber, m.Attributes["SequenceNumber"])
		}
	}},
}
