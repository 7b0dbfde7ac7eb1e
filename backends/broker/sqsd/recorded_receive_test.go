package sqsd_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"dlq/backends/broker/sqsd"
)

// 2.9: receiving.
var recordedReceive = []statement{
	{"2.9", recorded, inBoth, "a number of messages out of range", func(x *exam) {
		q := x.queue("orders")
		for _, n := range []int{11, 0, -1} {
			_, err := x.with("MaxNumberOfMessages", n).tryReceive(q)
			x.refused(err, badValue(strconv.Itoa(n), "MaxNumberOfMessages", "Must be between 1 and 10, if provided."))
		}
	}},
	{"2.9", recorded, inBoth, "a wait out of range", func(x *exam) {
		q := x.queue("orders")
		for _, n := range []int{21, -1} {
			_, err := x.with("WaitTimeSeconds", n).tryReceive(q)
			x.refused(err, badValue(strconv.Itoa(n), "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided."))
		}
	}},
	{"2.9", inferred, inBoth, "a visibility timeout out of range", func(x *exam) {
		q := x.queue("orders")
		for _, n := range []int{43201, -1} {
			_, err := x.with("VisibilityTimeout", n).tryReceive(q)
			x.refused(err, badValue(strconv.Itoa(n), "VisibilityTimeout", "Must be >= 0 and <= 43200, if provided."))
		}
	}},
	{"2.9", recorded, inBoth, "one message unless said otherwise", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		x.send(q, "b")
		x.equal("received", len(x.receive(q, most(0))), 1)
	}},
	{"2.9", recorded, inBoth, "a visibility timeout of zero is a value", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "foobar")
		first := x.open(q)
		second := x.one(q)
		if *first[0].ReceiptHandle == *second.ReceiptHandle {
			x.Error("the same handle twice")
		}
		x.gives(q)
		x.wait(30 * time.Second)
		x.one(q, hidden(3))
		x.wait(2 * time.Second)
		x.gives(q)
		x.wait(time.Second)
		x.gives(q, "foobar")
	}},
	{"2.9", documented, inBoth, "a wait of zero is a value", func(x *exam) {
		q := x.queue("orders", "ReceiveMessageWaitTimeSeconds", "20")
		begin := time.Now()
		_, err := x.with("WaitTimeSeconds", 0).tryReceive(q)
		x.ok(err)
		if took := time.Since(begin); took > 10*time.Second {
			x.Errorf("it waited %v", took)
		}
	}},
	{"2.9", documented, inBoth, "a long poll returns with the first message", func(x *exam) {
		for range 10 { // mostly, the poll waits when the message is sent
			v, come := x.announcing()
			q := v.queue("orders")
			got := make(chan []types.Message)
			go func() {
				out, err := v.api.ReceiveMessage(v.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q, WaitTimeSeconds: 20})
				if err != nil {
					v.Error(err)
					out = &sqs.ReceiveMessageOutput{}
				}
				got <- out.Messages
			}()
			<-come
			v.send(q, "a")
			v.equal("received", bodies(<-got), []string{"a"})
		}
	}},
	{"2.9", recorded, inBoth, "all system attributes of a message in a standard queue", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		sent := x.millis()
		x.wait(3 * time.Second)
		m := x.one(q, allSystem)
		if m.Attributes["SenderId"] == "" {
			x.Error("no SenderId")
		}
		delete(m.Attributes, "SenderId")
		x.equal("attributes", m.Attributes, map[string]string{
			"SentTimestamp": sent, "ApproximateReceiveCount": "1", "ApproximateFirstReceiveTimestamp": x.millis(),
		})
	}},
	{"2.9", recorded, inBoth, "all system attributes of a message in a FIFO queue", func(x *exam) {
		q := x.fifo("orders", "VisibilityTimeout", "0", "DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId")
		out := x.send(q, "message-body-1", group("group-1"), dedup("dedup-1"))
		first := x.millis()
		x.one(q, allSystem)
		x.wait(time.Second)
		m := x.one(q, allSystem)
		delete(m.Attributes, "SenderId")
		x.equal("attributes", m.Attributes, map[string]string{
			"SentTimestamp": first, "ApproximateReceiveCount": "2", "ApproximateFirstReceiveTimestamp": first,
			"MessageGroupId": "group-1", "MessageDeduplicationId": "dedup-1", "SequenceNumber": *out.SequenceNumber,
		})
	}},
	{"2.9", recorded, inBoth, "all system attributes of a dead letter", func(x *exam) {
		source, dlq := x.withDLQ(1)
		x.send(source, "a", trace("Root=1-5759e988-bd862e3fe1be46a994272793"))
		x.open(source)
		x.open(source)
		m := x.one(dlq, allSystem)
		x.equal("names", slices.Sorted(maps.Keys(m.Attributes)), []string{
			"AWSTraceHeader", "ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "DeadLetterQueueSourceArn", "SenderId", "SentTimestamp",
		})
		x.equal("DeadLetterQueueSourceArn", m.Attributes["DeadLetterQueueSourceArn"], x.arn("source"))
	}},
	{"2.9", recorded, onlyJSON, "both lists of names of system attributes count", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		m := x.one(q, func(in *sqs.ReceiveMessageInput) {
			system("SenderId")(in)
			in.MessageSystemAttributeNames = []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll}
		})
		x.equal("names", slices.Sorted(maps.Keys(m.Attributes)), []string{"ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "SenderId", "SentTimestamp"})
	}},
	{"2.9", recorded, inBoth, "the new and the old list of names alone", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		m := x.open(q, func(in *sqs.ReceiveMessageInput) {
			in.MessageSystemAttributeNames = []types.MessageSystemAttributeName{"SentTimestamp", "ApproximateReceiveCount"}
		})[0]
		x.equal("new", slices.Sorted(maps.Keys(m.Attributes)), []string{"ApproximateReceiveCount", "SentTimestamp"})
		m = x.open(q, system("SentTimestamp"))[0]
		x.equal("old", slices.Sorted(maps.Keys(m.Attributes)), []string{"SentTimestamp"})
	}},
	{"2.9", recorded, inBoth, "system attributes that are unknown or that the message has not are ignored", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		m := x.open(q, system("SequenceNumber", "MessageGroupId", "AWSTraceHeader", "Foobar", "SentTimestamp"))[0]
		x.equal("names", slices.Sorted(maps.Keys(m.Attributes)), []string{"SentTimestamp"})
		m = x.open(q, system("SequenceNumber"))[0]
		x.equal("attributes", len(m.Attributes), 0)
	}},
	{"2.9", recorded, inBoth, "who asks for no attributes gets none", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a", text("Foo", "String", "Bar"))
		m := x.one(q)
		x.equal("system attributes", m.Attributes, map[string]string(nil))
		x.equal("attributes", m.MessageAttributes, map[string]types.MessageAttributeValue(nil))
		x.lacks(x.wire.last(), "Attribute")
	}},
	{"2.9", recorded, inBoth, "message attributes by name and by prefix", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a", text("Foo", "String", "1"), text("Help.Me", "String", "2"), text("Hello", "String", "3"), text("Help", "String", "4"), text("Bar", "String", "5"))
		for _, c := range []struct{ names, want []string }{
			{[]string{"All"}, []string{"Bar", "Foo", "Hello", "Help", "Help.Me"}},
			{[]string{".*"}, []string{"Bar", "Foo", "Hello", "Help", "Help.Me"}},
			{[]string{"*"}, []string{"Bar", "Foo", "Hello", "Help", "Help.Me"}},
			{[]string{"Foo", "Help.Me"}, []string{"Foo", "Help.Me"}},
			{[]string{"Hel.*"}, []string{"Hello", "Help", "Help.Me"}},
			{[]string{"Help.*"}, []string{"Help", "Help.Me"}},
			{[]string{"Foo", "Hel.*", "All"}, []string{"Bar", "Foo", "Hello", "Help", "Help.Me"}},
			{[]string{"foo", "Hel", "Hel*"}, nil},
		} {
			m := x.open(q, messageNames(c.names...))[0]
			x.equal(fmt.Sprint(c.names), slices.Sorted(maps.Keys(m.MessageAttributes)), c.want)
		}
	}},
	{"2.9", recorded, inBoth, "names of message attributes that are not allowed are ignored", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a", text("Foo", "String", "1"))
		m := x.one(q, messageNames("Foo", "AWS.", ".foo", "..", "a!", " ", strings.Repeat("x", 300)))
		x.equal("names", slices.Sorted(maps.Keys(m.MessageAttributes)), []string{"Foo"})
	}},
	{"2.9", recorded, inBoth, "attributes stay with a message that comes again", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "test", text("attr1", "String", "test1"))
		x.open(q, messageNames("All"))
		m := x.one(q, messageNames("All"))
		x.equal("value", *m.MessageAttributes["attr1"].StringValue, "test1")
		x.equal("type", *m.MessageAttributes["attr1"].DataType, "String")
	}},
	{"2.9", documented, inBoth, "120,000 in flight: a standard queue says so, a FIFO queue gives nothing", func(x *exam) {
		for _, name := range []string{"orders", "orders.fifo"} {
			q := x.queue(name, ifFIFO(name)...)
			x.equal("limit of "+name, x.lowerInFlight(name, 2), 120_000)
			for i := range 3 {
				x.send(q, strconv.Itoa(i), ifFIFOSending(name, strconv.Itoa(i))...)
			}
			x.equal("received", len(x.receive(q)), 2)
			if name == "orders.fifo" {
				x.gives(q)
				continue
			}
			_, err := x.tryReceive(q)
			x.refused(err, plainly(403, "OverLimit", ""))
		}
	}},
	{"2.9", documented, inBoth, "a repeated receive by its attempt id gives the same", func(x *exam) {
		q := x.fifo("orders")
		x.sendGroups(q, "g-1", "g-2", "g-3")
		first := x.receive(q, most(2), attempt("once"))
		x.wait(20 * time.Second)
		again := x.receive(q, most(2), attempt("once"))
		x.equal("again", show(again), show(first))
		x.wait(20 * time.Second) // the timeout of 30 s began anew
		x.gives(q)
		x.delete(q, first[0])
		x.equal("after a deletion", len(x.receive(q, most(2), attempt("once"))), 0)
	}},
}

// announcing is an exam whose server says when a receive has come.
func (x *exam) announcing() (v *exam, come chan struct{}) {
	come = make(chan struct{}, 10)
	v = openExam(x.T, x.protocol, sqsd.Options{Fault: func(op sqsd.FaultOp, _ string) (sqsd.Fault, bool) {
		if op == sqsd.OpReceive {
			come <- struct{}{}
		}
		return sqsd.Fault{}, false
	}})
	return v, come
}

// millis is the time now as message attributes have it.
func (x *exam) millis() string { return strconv.FormatInt(x.time().UnixMilli(), 10) }

// 2.10 and 2.11: deleting, and changing the visibility.
var recordedSettle = []statement{
	{"2.10", recorded, inBoth, "a handle that is garbage", func(x *exam) {
		q := x.queue("orders")
		want := plainly(404, "ReceiptHandleIsInvalid", `The input receipt handle "garbage" is not a valid receipt handle.`)
		x.refused(x.tryDelete(q, garbage()), want)
		x.refused(x.tryHide(q, garbage(), 60), want)
	}},
	{"2.10", secondHand, inBoth, "a handle of another queue", func(x *exam) {
		q, other := x.queue("orders"), x.queue("other")
		x.send(other, "a")
		m := x.one(other)
		x.refused(x.tryDelete(q, m), plainly(404, "ReceiptHandleIsInvalid", `The input receipt handle "`+*m.ReceiptHandle+`" is not a valid receipt handle.`))
	}},
	{"2.10", recorded, inBoth, "a message that is deleted may be deleted again", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		m := x.one(q)
		x.delete(q, m, m, m)
		x.wait(time.Hour)
		x.gives(q)
		x.delete(q, m)
	}},
	{"2.10", recorded, inBoth, "a message that is purged or expired may be deleted", func(x *exam) {
		q := x.queue("orders", "MessageRetentionPeriod", "60", "VisibilityTimeout", "120")
		x.send(q, "a")
		purged := x.one(q)
		x.ok(x.tryPurge(q))
		x.delete(q, purged)
		x.send(q, "b")
		expired := x.one(q)
		x.wait(61 * time.Second)
		x.delete(q, expired)
	}},
	{"2.10", recorded, inBoth, "standard: a handle deletes after its timeout, too", func(x *exam) {
		q := x.queue("orders", "VisibilityTimeout", "1")
		x.send(q, "foobar")
		m := x.one(q)
		x.wait(3 * time.Second)
		x.delete(q, m)
		x.gives(q)
		x.counts(q, "0", "0", "0")
	}},
	{"2.10", documented, inBoth, "standard: a handle that is not the last deletes nothing, and succeeds", func(x *exam) {
		q := x.queue("orders", "VisibilityTimeout", "1")
		x.send(q, "a")
		old := x.one(q)
		x.wait(2 * time.Second)
		x.one(q)
		x.delete(q, old)
		x.wait(2 * time.Second)
		x.gives(q, "a")
	}},
	{"2.10", recorded, inBoth, "FIFO: a handle ends with its timeout", func(x *exam) {
		q := x.fifo("orders", "VisibilityTimeout", "1")
		x.send(q, "g1-m1", group("1"))
		m := x.one(q)
		x.wait(2 * time.Second)
		x.refused(x.tryDelete(q, m), badValue(*m.ReceiptHandle, "ReceiptHandle", "The receipt handle has expired."))
		x.gives(q, "g1-m1")
	}},
	{"2.10", recorded, inBoth, "FIFO: a longer timeout keeps the handle", func(x *exam) {
		q := x.fifo("orders", "VisibilityTimeout", "2")
		x.send(q, "a", group("1"))
		m := x.one(q)
		x.wait(time.Second)
		x.hide(q, m, 10)
		x.wait(5 * time.Second)
		x.delete(q, m)
		x.wait(10 * time.Second)
		x.gives(q)
	}},
	{"2.10", recorded, inBoth, "a batch of deletions has the same errors", func(x *exam) {
		q := x.queue("orders")
		try := func(ids ...string) error {
			in := &sqs.DeleteMessageBatchInput{QueueUrl: &q}
			for _, id := range ids {
				in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: &id, ReceiptHandle: aws.String("testHandle1")})
			}
			_, err := x.api.DeleteMessageBatch(x.ctx(), in)
			return err
		}
		x.batchErrors(try, "DeleteMessageBatchRequestEntry")
	}},
	{"2.10", secondHand, inBoth, "a bad handle fails its entry alone", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		m := x.one(q)
		out, err := x.api.DeleteMessageBatch(x.ctx(), &sqs.DeleteMessageBatchInput{QueueUrl: &q, Entries: []types.DeleteMessageBatchRequestEntry{
			{Id: aws.String("good"), ReceiptHandle: m.ReceiptHandle}, {Id: aws.String("bad"), ReceiptHandle: aws.String("garbage")},
		}})
		x.ok(err)
		x.equal("successful", out.Successful, []types.DeleteMessageBatchResultEntry{{Id: aws.String("good")}})
		x.equal("failed", len(out.Failed), 1)
		f := out.Failed[0]
		x.equal("failed", []any{*f.Id, f.SenderFault, *f.Code}, []any{"bad", true, "ReceiptHandleIsInvalid"})
	}},
	{"2.11", secondHand, inBoth, "a visibility timeout is required", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		m := x.one(q)
		x.refused(x.with("VisibilityTimeout", nil).tryHide(q, m, 0), missingParameter("VisibilityTimeout"))
	}},
	{"2.11", recorded, inBoth, "the visibility of a deleted message", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		m := x.one(q)
		x.delete(q, m)
		x.refused(x.tryHide(q, m, 10), badValue(*m.ReceiptHandle, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change."))
	}},
	{"2.11", observed, inBoth, "twelve hours at most since the receive", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		m := x.one(q)
		x.wait(10 * time.Second)
		err := x.tryHide(q, m, 43200)
		x.refused(err, badValue("43200", "VisibilityTimeout", "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"))
		x.hide(q, m, 43190)
	}},
	{"2.11", recorded, inBoth, "standard: the timeout may be changed after it has ended, and hides the message again", func(x *exam) {
		q := x.queue("orders", "VisibilityTimeout", "2")
		x.send(q, "test")
		m := x.one(q)
		for range 4 { // each time just after the timeout
			x.wait(2 * time.Second)
			x.hide(q, m, 2)
			x.gives(q)
		}
		x.wait(2 * time.Second)
		x.gives(q, "test")
	}},
	{"2.11", recorded, inBoth, "a timeout of zero releases the message, for the next receive alone", func(x *exam) {
		q := x.queue("orders")
		sent := x.send(q, "test")
		x.hide(q, x.one(q), 0)
		x.equal("again", x.one(q).MessageId, sent.MessageId)
		x.gives(q)
		x.wait(29 * time.Second)
		x.gives(q)
		x.wait(time.Second)
		x.gives(q, "test")
	}},
	{"2.11", recorded, inBoth, "a batch of changes has the same errors", func(x *exam) {
		q := x.queue("orders")
		try := func(ids ...string) error {
			in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q}
			for _, id := range ids {
				in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: &id, ReceiptHandle: aws.String("h"), VisibilityTimeout: 123})
			}
			_, err := x.api.ChangeMessageVisibilityBatch(x.ctx(), in)
			return err
		}
		x.batchErrors(try, "ChangeMessageVisibilityBatchRequestEntry")
	}},
	{"2.11", documented, inBoth, "a batch of changes, entry by entry", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		x.send(q, "b")
		m := x.gives(q, "a", "b")
		out, err := x.api.ChangeMessageVisibilityBatch(x.ctx(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("1"), ReceiptHandle: m[1].ReceiptHandle},
			{Id: aws.String("2"), ReceiptHandle: m[0].ReceiptHandle, VisibilityTimeout: 43201},
			{Id: aws.String("3"), ReceiptHandle: aws.String("garbage"), VisibilityTimeout: 1},
		}})
		x.ok(err)
		x.equal("successful", out.Successful, []types.ChangeMessageVisibilityBatchResultEntry{{Id: aws.String("1")}})
		x.equal("failed", []string{*out.Failed[0].Code, *out.Failed[1].Code}, []string{"InvalidParameterValue", "ReceiptHandleIsInvalid"})
		x.gives(q, "b")
	}},
}

// batchErrors checks what is wrong with a batch as a whole.
func (x *exam) batchErrors(try func(ids ...string) error, entry string) {
	x.Helper()
	var twenty []string
	for i := range 20 {
		twenty = append(twenty, strconv.Itoa(i))
	}
	x.refused(try(), prefixed(400, "EmptyBatchRequest", "There should be at least one "+entry+" in the request."))
	x.refused(try(twenty...), prefixed(400, "TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent 20."))
	for _, id := range []string{"", strings.Repeat("testLongId", 10), "invalid:id"} {
		x.refused(try(id), prefixed(400, "InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."))
	}
	x.refused(try("a", "b", "a"), prefixed(400, "BatchEntryIdsNotDistinct", "Id a repeated."))
}

// 2.12: purging.
var recordedPurge = []statement{
	{"2.12", recorded, inBoth, "a purge takes what is visible, hidden and delayed", func(x *exam) {
		q := x.queue("orders")
		for i := range 5 {
			x.send(q, fmt.Sprint("message-", i))
			x.send(q, fmt.Sprint("late-", i), delay(2))
		}
		x.receive(q, most(2), hidden(3))
		x.counts(q, "3", "2", "5")
		x.ok(x.tryPurge(q))
		x.counts(q, "0", "0", "0")
		x.wait(10 * time.Second)
		x.gives(q)
		x.send(q, "new")
		x.gives(q, "new")
	}},
	{"2.12", recorded, inBoth, "a purge forgets deduplication ids", func(x *exam) {
		q := x.queue("orders.fifo", "FifoQueue", "true")
		x.send(q, "message-1", group("g"), dedup("1"))
		x.ok(x.tryPurge(q))
		x.send(q, "message-2", group("g"), dedup("1"))
		x.gives(q, "message-2")
	}},
	{"2.12", recorded, inBoth, "one purge in 60 seconds", func(x *exam) {
		q := x.queue("orders")
		x.ok(x.tryPurge(q))
		x.wait(59 * time.Second)
		x.refused(x.tryPurge(q), prefixed(403, "PurgeQueueInProgress", "Only one PurgeQueue operation on orders is allowed every 60 seconds."))
		x.ok(x.tryPurge(x.queue("other")))
		x.wait(time.Second)
		x.ok(x.tryPurge(q))
	}},
}
