package sqsd_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"dlq/backends/broker/sqsd"
)

// What is said of names and of FIFO queues.
const (
	badName     = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
	badFIFOName = "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length."
	onlyOneSSE  = "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."
)

// badAttribute is an attribute's value out of its range.
func badAttribute(name string) refusal {
	return plainly(400, "InvalidAttributeValue", "Invalid value for the parameter "+name+".")
}

func unknownAttribute(name string) refusal {
	return plainly(400, "InvalidAttributeName", "Unknown Attribute "+name+".")
}

// differs is that a queue is there with another value of an attribute.
func differs(name string) refusal {
	return refusal{
		status: 400, shape: modeled + "QueueNameExists", code: "QueueAlreadyExists",
		text: "A queue already exists with the same name and a different value for attribute " + name,
	}
}

// 2.1 to 2.4: making, finding and deleting queues.
var recordedCreate = []statement{
	{"2.1", inferred, inBoth, "ranges of attributes", func(x *exam) {
		for name, values := range map[string][]string{
			"DelaySeconds": {"-1", "901", "x", ""}, "MaximumMessageSize": {"1023", "1048577", "x"}, "MessageRetentionPeriod": {"59", "1209601"},
			"ReceiveMessageWaitTimeSeconds": {"-1", "21"}, "VisibilityTimeout": {"-1", "43201", "1.5"}, "KmsDataKeyReusePeriodSeconds": {"59", "86401"},
		} {
			for _, value := range values {
				_, err := x.create("orders", name, value)
				x.refused(err, badAttribute(name))
			}
		}
		x.equal("queues", len(x.list("")), 0)
		x.queue("low", "DelaySeconds", "0", "MaximumMessageSize", "1024", "MessageRetentionPeriod", "60", "ReceiveMessageWaitTimeSeconds", "0", "VisibilityTimeout", "0")
		x.queue("high", "DelaySeconds", "900", "MaximumMessageSize", "1048576", "MessageRetentionPeriod", "1209600", "ReceiveMessageWaitTimeSeconds", "20", "VisibilityTimeout", "43200")
	}},
	{"2.1", recorded, inBoth, "the largest message is of 1 MiB unless said otherwise", func(x *exam) {
		x.has(x.queue("orders"), "MaximumMessageSize", "1048576")
	}},
	{"2.1", recorded, inBoth, "KmsMasterKeyId and KmsDataKeyReusePeriodSeconds at their defaults are not shown", func(x *exam) {
		q := x.queue("orders", "KmsMasterKeyId", "testKeyId", "KmsDataKeyReusePeriodSeconds", "6000")
		x.has(q, "KmsMasterKeyId", "testKeyId", "KmsDataKeyReusePeriodSeconds", "6000")
		x.ok(x.set(q, "KmsMasterKeyId", "", "KmsDataKeyReusePeriodSeconds", "300"))
		x.has(q, "KmsMasterKeyId", "", "KmsDataKeyReusePeriodSeconds", "")
	}},
	{"2.1", recorded, inBoth, "SqsManagedSseEnabled is off with a key of KMS, and stays off", func(x *exam) {
		q := x.queue("orders")
		x.has(q, "SqsManagedSseEnabled", "true")
		x.ok(x.set(q, "KmsMasterKeyId", "testKeyId"))
		x.has(q, "SqsManagedSseEnabled", "false", "KmsMasterKeyId", "testKeyId")
		x.ok(x.set(q, "KmsMasterKeyId", ""))
		x.has(q, "SqsManagedSseEnabled", "false", "KmsMasterKeyId", "")
		x.ok(x.set(q, "SqsManagedSseEnabled", "true", "VisibilityTimeout", "31"))
		x.has(q, "SqsManagedSseEnabled", "true", "VisibilityTimeout", "31")
	}},
	{"2.1", recorded, inBoth, "two kinds of encryption at a time", func(x *exam) {
		_, err := x.create("orders", "SqsManagedSseEnabled", "true", "KmsMasterKeyId", "testKeyId")
		x.refused(err, plainly(400, "InvalidAttributeName", onlyOneSSE))
		q := x.queue("orders")
		x.refused(x.set(q, "SqsManagedSseEnabled", "true", "KmsMasterKeyId", "testKeyId"), plainly(400, "InvalidAttributeName", onlyOneSSE))
		x.has(q, "SqsManagedSseEnabled", "true", "KmsMasterKeyId", "")
	}},
	{"2.1", recorded, inBoth, "truth values are taken in any case and shown in lower case", func(x *exam) {
		q := x.queue("orders.fifo", "FifoQueue", "True", "ContentBasedDeduplication", "TRUE", "SqsManagedSseEnabled", "False")
		x.has(q, "FifoQueue", "true", "ContentBasedDeduplication", "true", "SqsManagedSseEnabled", "false")
	}},
	{"2.1", recorded, inBoth, "DeduplicationScope messageGroup needs no FifoThroughputLimit", func(x *exam) {
		q := x.queue("orders.fifo", "FifoQueue", "true", "DeduplicationScope", "messageGroup")
		x.has(q, "DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perQueue")
	}},
	{"2.1", documented, inBoth, "FifoThroughputLimit perMessageGroupId needs DeduplicationScope messageGroup", func(x *exam) {
		_, err := x.create("orders.fifo", "FifoQueue", "true", "FifoThroughputLimit", "perMessageGroupId")
		if err == nil {
			x.Error("no error")
		}
		x.equal("status", x.wire.last().status, 400)
		x.queue("orders.fifo", "FifoQueue", "true", "FifoThroughputLimit", "perMessageGroupId", "DeduplicationScope", "messageGroup")
	}},
	{"2.1", recorded, inBoth, "a standard queue knows no FifoQueue, even false", func(x *exam) {
		_, err := x.create("orders", "FifoQueue", "false")
		x.refused(err, unknownAttribute("FifoQueue"))
		x.refused(x.set(x.queue("orders"), "FifoQueue", "true"), unknownAttribute("FifoQueue"))
	}},
	{"2.1", recorded, inBoth, "a standard queue knows no ContentBasedDeduplication", func(x *exam) {
		_, err := x.create("orders", "ContentBasedDeduplication", "false")
		x.refused(err, unknownAttribute("ContentBasedDeduplication"))
	}},
	{"2.1", recorded, inBoth, "DeduplicationScope and FifoThroughputLimit of a standard queue", func(x *exam) {
		for name, value := range map[string]string{"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"} {
			_, err := x.create("orders", name, value)
			x.refused(err, plainly(400, "InvalidAttributeName", "You can specify the "+name+" only when FifoQueue is set to true."))
		}
	}},
	{"2.1", recorded, inBoth, "FifoQueue and the suffix go together", func(x *exam) {
		_, err := x.create("orders", "FifoQueue", "true")
		x.refused(err, invalidParameter(badFIFOName))
		_, err = x.create("orders.fifo")
		x.refused(err, invalidParameter("")) // the text is of other emulators
	}},
	{"2.1", recorded, inBoth, "names that are not allowed", func(x *exam) {
		for _, name := range []string{"a b", "queue!", "é", strings.Repeat("a", 81), "a.b"} {
			_, err := x.create(name)
			x.refused(err, invalidParameter(badName))
		}
		x.queue(strings.Repeat("a", 80))
		x.queue(strings.Repeat("a", 75)+".fifo", "FifoQueue", "true")
		_, err := x.create(strings.Repeat("a", 76)+".fifo", "FifoQueue", "true")
		x.refused(err, invalidParameter(badFIFOName))
	}},
	{"2.1", recorded, inBoth, "a name with slashes", func(x *exam) {
		_, err := x.create("queue/name/")
		x.refused(err, invalidParameter(""))
	}},
	{"2.1", recorded, inBoth, "a queue that is there may be made again with what it has", func(x *exam) {
		q := x.queue("orders", "VisibilityTimeout", "69")
		x.equal("without attributes", x.queue("orders"), q)
		x.equal("with the same", x.queue("orders", "VisibilityTimeout", "69"), q)
		x.equal("with a default", x.queue("orders", "DelaySeconds", "0"), q)
		x.send(q, "counts do not matter")
		x.equal("with a message", x.queue("orders", "VisibilityTimeout", "69"), q)
	}},
	{"2.1", recorded, inBoth, "what it has is what it has now", func(x *exam) {
		q := x.queue("orders", "VisibilityTimeout", "69")
		x.ok(x.set(q, "VisibilityTimeout", "42"))
		x.equal("with the new value", x.queue("orders", "VisibilityTimeout", "42"), q)
		_, err := x.create("orders", "VisibilityTimeout", "69")
		x.refused(err, differs("VisibilityTimeout"))
	}},
	{"2.1", recorded, inBoth, "a queue that is there with another value", func(x *exam) {
		x.queue("orders", "DelaySeconds", "1")
		_, err := x.create("orders", "DelaySeconds", "2")
		x.refused(err, differs("DelaySeconds"))
		_, err = x.create("orders", "VisibilityTimeout", "31")
		x.refused(err, differs("VisibilityTimeout"))
		f := x.fifo("orders")
		x.equal("FIFO", x.fifo("orders"), f)
		_, err = x.create("orders.fifo", "FifoQueue", "true", "ContentBasedDeduplication", "false")
		x.refused(err, differs("ContentBasedDeduplication"))
		x.equal("with a scope", x.fifo("orders", "DeduplicationScope", "queue", "FifoThroughputLimit", "perQueue"), f)
		_, err = x.create("orders.fifo", "FifoQueue", "true", "DeduplicationScope", "messageGroup")
		x.refused(err, differs("DeduplicationScope"))
		x.queue("secret", "KmsMasterKeyId", "one", "Policy", `{"Version":"2012-10-17"}`)
		x.queue("secret", "KmsMasterKeyId", "one", "Policy", `{ "Version": "2012-10-17" }`)
		_, err = x.create("secret", "KmsMasterKeyId", "other")
		x.refused(err, differs("KmsMasterKeyId"))
		x.queue("secret", "KmsDataKeyReusePeriodSeconds", "300")
		_, err = x.create("secret", "KmsDataKeyReusePeriodSeconds", "301")
		x.refused(err, differs("KmsDataKeyReusePeriodSeconds"))
	}},
	{"2.1", inferred, inBoth, "policies compare as JSON, with numbers in quotes; tags do not count", func(x *exam) {
		source, _ := x.withDLQ(3)
		again, err := x.create("source", "RedrivePolicy", `{ "maxReceiveCount" : "3", "deadLetterTargetArn" : "`+x.arn("dlq")+`" }`)
		x.ok(err)
		x.equal("URL", again, source)
		_, err = x.create("source", "RedrivePolicy", x.policy("dlq", 4))
		x.refused(err, differs("RedrivePolicy"))
		_, err = x.api.CreateQueue(x.ctx(), &sqs.CreateQueueInput{QueueName: aws.String("source"), Tags: map[string]string{"a": "b"}})
		x.ok(err)
	}},
	{"2.1", recorded, inBoth, "a name is not free for 60 seconds after its queue was deleted", func(x *exam) {
		late := openExam(x.T, x.protocol, sqsd.Options{Limits: sqsd.Limits{AfterDelete: time.Minute}})
		q := late.queue("orders")
		late.ok(late.drop(q))
		_, err := late.create("orders")
		late.refused(err, prefixed(400, "QueueDeletedRecently", "You must wait 60 seconds after deleting a queue before you can create another with the same name."))
		late.wait(time.Minute)
		late.queue("orders")
		now := x.queue("orders")
		x.ok(x.drop(now))
		x.queue("orders") // unless it is asked for, nobody waits
	}},
	{"2.1", documented, inBoth, "tags of creation", func(x *exam) {
		out, err := x.api.CreateQueue(x.ctx(), &sqs.CreateQueueInput{QueueName: aws.String("orders"), Tags: map[string]string{"team": "a", "empty": ""}})
		x.ok(err)
		x.equal("tags", x.tags(*out.QueueUrl), map[string]string{"team": "a", "empty": ""})
	}},
	{"2.2", recorded, inBoth, "a deleted queue is missing", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		x.ok(x.drop(q))
		x.refused(x.drop(q), noQueue())
		_, err := x.tryReceive(q)
		x.refused(err, noQueue())
		x.equal("messages of the next", len(x.receive(x.queue("orders"))), 0)
	}},
	{"2.3", documented, inBoth, "ListQueues has pages for who asks for them", func(x *exam) {
		var all []string
		for i := range 5 {
			all = append(all, x.queue("q"+strconv.Itoa(i)))
		}
		x.queue("other")
		x.equal("with a prefix", x.list("q"), all)
		var got []string
		var token *string
		for range 3 {
			out, err := x.api.ListQueues(x.ctx(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String("q"), MaxResults: aws.Int32(2), NextToken: token})
			x.ok(err)
			got = append(got, out.QueueUrls...)
			token = out.NextToken
		}
		x.equal("pages", got, all)
		x.equal("token of the last", token, (*string)(nil))
	}},
	{"2.3", inferred, inBoth, "a MaxResults out of range", func(x *exam) {
		for _, n := range []int32{-1, 1001} {
			_, err := x.api.ListQueues(x.ctx(), &sqs.ListQueuesInput{MaxResults: &n})
			x.refused(err, invalidParameter(""))
		}
	}},
	{"2.3", recorded, inBoth, "ListDeadLetterSourceQueues", func(x *exam) {
		dlq := x.queue("dlq")
		one, two := x.queue("one", "RedrivePolicy", x.policy("dlq", 50)), x.queue("two", "RedrivePolicy", x.policy("dlq", 50))
		x.queue("three")
		out, err := x.api.ListDeadLetterSourceQueues(x.ctx(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dlq})
		x.ok(err)
		x.equal("queues", out.QueueUrls, []string{one, two})
		if !x.query() {
			x.equal("members", x.members(), []string{"queueUrls"})
		}
	}},
	{"2.4", recorded, inBoth, "GetQueueUrl", func(x *exam) {
		q := x.queue("orders")
		out, err := x.api.GetQueueUrl(x.ctx(), &sqs.GetQueueUrlInput{QueueName: aws.String("orders"), QueueOwnerAWSAccountId: aws.String("000000000000")})
		x.ok(err)
		x.equal("URL", *out.QueueUrl, q)
		_, err = x.api.GetQueueUrl(x.ctx(), &sqs.GetQueueUrlInput{QueueName: aws.String("none")})
		x.refused(err, noQueue())
	}},
	{"2.4", secondHand, inBoth, "GetQueueUrl without a name", func(x *exam) {
		_, err := x.api.GetQueueUrl(x.ctx(), &sqs.GetQueueUrlInput{})
		x.refused(err, invalidParameter(""))
	}},
}

// 2.5 and 2.6: the attributes of queues.
var recordedAttributes = []statement{
	{"2.5", secondHand, inBoth, "without names nothing is returned", func(x *exam) {
		x.equal("attributes", x.attributes(x.queue("orders")), map[string]string(nil))
	}},
	{"2.5", recorded, inBoth, "an unknown attribute", func(x *exam) {
		q := x.queue("orders")
		_, err := x.api.GetQueueAttributes(x.ctx(), &sqs.GetQueueAttributesInput{QueueUrl: &q, AttributeNames: []types.QueueAttributeName{"QueueArn", "Foobar"}})
		x.refused(err, unknownAttribute("Foobar"))
	}},
	{"2.5", recorded, inBoth, "all attributes of a new standard queue", func(x *exam) {
		now := strconv.FormatInt(x.time().Unix(), 10)
		x.equal("attributes", x.attributes(x.queue("orders"), "All"), map[string]string{
			"QueueArn": x.arn("orders"), "ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0",
			"ApproximateNumberOfMessagesDelayed": "0", "CreatedTimestamp": now, "LastModifiedTimestamp": now, "VisibilityTimeout": "30",
			"MaximumMessageSize": "1048576", "MessageRetentionPeriod": "345600", "DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "0",
			"SqsManagedSseEnabled": "true",
		})
	}},
	{"2.5", recorded, inBoth, "a FIFO queue has four more", func(x *exam) {
		standard, fifo := x.attributes(x.queue("orders"), "All"), x.attributes(x.queue("orders.fifo", "FifoQueue", "true"), "All")
		for name := range standard {
			delete(fifo, name)
		}
		x.equal("more", fifo, map[string]string{
			"FifoQueue": "true", "ContentBasedDeduplication": "false", "DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue",
		})
	}},
	{"2.5", recorded, inBoth, "some attributes by name", func(x *exam) {
		x.queue("dlq")
		q := x.queue("orders", "MessageRetentionPeriod", "604800", "DelaySeconds", "10", "RedrivePolicy", x.policy("dlq", 10))
		x.equal("two", slices.Sorted(maps.Keys(x.attributes(q, "MessageRetentionPeriod", "RedrivePolicy"))), []string{"MessageRetentionPeriod", "RedrivePolicy"})
		x.equal("one", x.attributes(q, "QueueArn"), map[string]string{"QueueArn": x.arn("orders")})
		x.equal("one that is not set", x.attributes(q, "Policy", "DelaySeconds"), map[string]string{"DelaySeconds": "10"})
	}},
	{"2.5", documented, inBoth, "counts of visible, hidden and delayed messages", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		x.send(q, "b")
		x.send(q, "c", delay(2))
		x.counts(q, "2", "0", "1")
		x.receive(q, most(1))
		x.counts(q, "1", "1", "1")
		x.wait(2 * time.Second)
		x.counts(q, "2", "1", "0")
	}},
	{"2.5", recorded, inBoth, "what is behind a hidden message of its group counts as visible", func(x *exam) {
		q := x.fifo("orders")
		x.sendGroups(q, "g1-m1", "g1-m2", "g1-m3", "g2-m1", "g3-m1")
		x.counts(q, "5", "0", "0")
		got := x.receive(q, most(4))
		x.counts(q, "1", "4", "0")
		x.delete(q, got...)
		x.counts(q, "1", "0", "0")
		x.sendGroups(q, "g3-m2", "g3-m3")
		x.receive(q, most(1))
		x.counts(q, "2", "1", "0")
	}},
	{"2.5", secondHand, inBoth, "a redrive policy is shown with a number and nothing else", func(x *exam) {
		x.queue("dlq")
		q := x.queue("orders", "RedrivePolicy", `{"maxReceiveCount":"7","extra":1,"deadLetterTargetArn":"`+x.arn("dlq")+`"}`)
		x.has(q, "RedrivePolicy", x.policy("dlq", 7))
	}},
	{"2.6", documented, inBoth, "SetQueueAttributes changes what it names", func(x *exam) {
		q := x.queue("orders", "DelaySeconds", "3")
		created := x.attributes(q, "CreatedTimestamp")["CreatedTimestamp"]
		x.wait(90 * time.Second)
		x.ok(x.set(q, "VisibilityTimeout", "9"))
		x.has(q, "DelaySeconds", "3", "VisibilityTimeout", "9", "CreatedTimestamp", created, "LastModifiedTimestamp", strconv.FormatInt(x.time().Unix(), 10))
		x.refused(x.set(q, "VisibilityTimeout", "43201"), badAttribute("VisibilityTimeout"))
		x.has(q, "VisibilityTimeout", "9")
	}},
	{"2.6", documented, inBoth, "what nobody sets", func(x *exam) {
		q := x.queue("orders")
		for _, name := range []string{"QueueArn", "ApproximateNumberOfMessages", "CreatedTimestamp", "LastModifiedTimestamp", "Foobar"} {
			x.refused(x.set(q, name, "1"), unknownAttribute(name))
		}
	}},
	{"2.6", recorded, inBoth, "FifoQueue may be set to true, and not to false", func(x *exam) {
		q := x.fifo("orders")
		x.ok(x.set(q, "FifoQueue", "true"))
		x.refused(x.set(q, "FifoQueue", "false"), plainly(400, "InvalidAttributeValue", "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."))
	}},
	{"2.6", recorded, inBoth, "an empty RedrivePolicy removes it", func(x *exam) {
		source, _ := x.withDLQ(42)
		x.has(source, "RedrivePolicy", x.policy("dlq", 42))
		x.ok(x.set(source, "RedrivePolicy", ""))
		x.has(source, "RedrivePolicy", "")
		q := x.queue("orders", "RedrivePolicy", "")
		x.has(q, "RedrivePolicy", "")
		x.ok(x.set(q, "RedrivePolicy", ""))
	}},
	{"2.6", recorded, inBoth, "an empty Policy removes it", func(x *exam) {
		const policy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sqs:SendMessage","Resource":"*"}]}`
		q := x.queue("orders")
		x.ok(x.set(q, "Policy", ""))
		x.has(q, "Policy", "")
		x.ok(x.set(q, "Policy", policy))
		var got, want any
		x.ok(json.Unmarshal([]byte(x.attributes(q, "Policy")["Policy"]), &got))
		x.ok(json.Unmarshal([]byte(policy), &want))
		x.equal("policy", got, want)
		x.ok(x.set(q, "Policy", ""))
		x.has(q, "Policy", "")
	}},
	{"2.6", recorded, inBoth, "a DeduplicationScope that is changed later has no effect", func(x *exam) {
		q := x.queue("orders.fifo", "FifoQueue", "true", "DeduplicationScope", "queue", "FifoThroughputLimit", "perQueue")
		x.ok(x.set(q, "DeduplicationScope", "messageGroup"))
		x.has(q, "DeduplicationScope", "messageGroup")
		x.send(q, "a", group("g1"), dedup("1"))
		x.send(q, "b", group("g2"), dedup("1"))
		x.gives(q, "a")
	}},
	{"2.6", recorded, inBoth, "ContentBasedDeduplication is switched off", func(x *exam) {
		q := x.fifo("orders")
		x.has(q, "ContentBasedDeduplication", "true")
		x.ok(x.set(q, "ContentBasedDeduplication", "false"))
		x.has(q, "ContentBasedDeduplication", "false")
		_, err := x.trySend(q, "a", group("g"))
		x.refused(err, invalidParameter(noDedup))
	}},
	{"2.6", documented, inBoth, "a shorter retention applies to what is there; a visibility timeout does not", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		x.one(q)
		x.ok(x.set(q, "VisibilityTimeout", "0"))
		x.equal("hidden as before", len(x.receive(q)), 0)
		x.wait(61 * time.Second)
		x.ok(x.set(q, "MessageRetentionPeriod", "60"))
		x.wait(time.Second)
		x.equal("after the retention", len(x.receive(q)), 0)
	}},
	{"3", recorded, inBoth, "a redrive policy whose target is missing", func(x *exam) {
		policy := x.policy("none", 3)
		_, err := x.create("orders", "RedrivePolicy", policy)
		x.refused(err, badPolicy(policy, "RedrivePolicy", "Dead letter target does not exist."))
	}},
	{"3", observed, inBoth, "a redrive policy whose target is of the other type", func(x *exam) {
		x.fifo("dlq")
		policy := x.policy("dlq.fifo", 3)
		_, err := x.create("orders", "RedrivePolicy", policy)
		x.refused(err, badPolicy(policy, "RedrivePolicy", "Dead-letter queue must be same type of queue as the source.."))
	}},
	{"3", recorded, inBoth, "a redrive policy whose target is no ARN", func(x *exam) {
		const policy = `{"deadLetterTargetArn": "dummy", "maxReceiveCount": 42}`
		_, err := x.create("orders", "RedrivePolicy", policy)
		x.refused(err, badPolicy(policy, "RedrivePolicy", "Invalid value for deadLetterTargetArn."))
	}},
	{"3", recorded, inBoth, "redrive policies that lack something", func(x *exam) {
		x.queue("dlq")
		q := x.queue("orders")
		for _, policy := range []string{
			`{"deadLetterTargetArn":"` + x.arn("dlq") + `"}`, `{"maxReceiveCount":"42"}`,
			`{"deadLetterTargetArn":"` + x.arn("dlq") + `","maxReceiveCount":"invalid"}`, `{`, `[]`,
		} {
			x.refused(x.set(q, "RedrivePolicy", policy), invalidParameter(""))
		}
		x.ok(x.set(q, "RedrivePolicy", `{"deadLetterTargetArn":"`+x.arn("dlq")+`","maxReceiveCount":"42"}`))
	}},
	{"3", inferred, inBoth, "redrive policies with a count out of range or another service's target", func(x *exam) {
		x.queue("dlq")
		for count, reason := range map[int]string{
			0: "Invalid value for maxReceiveCount: 0, valid values are from 1 to 1000 both inclusive.", 1001: "Invalid value for maxReceiveCount: 1001, valid values are from 1 to 1000 both inclusive.",
		} {
			_, err := x.create("orders", "RedrivePolicy", x.policy("dlq", count))
			x.refused(err, badPolicy(x.policy("dlq", count), "RedrivePolicy", reason))
		}
		policy := `{"deadLetterTargetArn":"` + x.arn("dlq") + `"}`
		_, err := x.create("orders", "RedrivePolicy", policy)
		x.refused(err, badPolicy(policy, "RedrivePolicy", "Redrive policy does not contain mandatory attribute: maxReceiveCount."))
		policy = `{"deadLetterTargetArn":"arn:aws:sns:us-east-1:000000000000:topic","maxReceiveCount":1}`
		_, err = x.create("orders", "RedrivePolicy", policy)
		x.refused(err, badPolicy(policy, "RedrivePolicy", "Only SQS queues are valid resources for deadLetterTargetArn."))
	}},
	{"3", secondHand, inBoth, "redrive allow policies that contradict themselves", func(x *exam) {
		const why = "Amazon SQS can't create the redrive allow policy. "
		for policy, reason := range map[string]string{
			`{"redrivePermission":"byQueue"}`:                                                why + "When you specify the byQueue permission type, you must also specify one or more sourceQueueArns values.",
			`{"redrivePermission":"allowAll","sourceQueueArns":["` + x.arn("source") + `"]}`: why + "To specify one or more source queue ARNs, you must set redrivePermission to byQueue.",
		} {
			_, err := x.create("orders", "RedriveAllowPolicy", policy)
			x.refused(err, badPolicy(policy, "RedriveAllowPolicy", reason))
		}
	}},
	{"4.3", secondHand, inBoth, "a redrive allow policy counts when the source's policy is set", func(x *exam) {
		x.queue("none", "RedriveAllowPolicy", `{"redrivePermission":"denyAll"}`)
		_, err := x.create("source", "RedrivePolicy", x.policy("none", 1))
		x.refused(err, invalidParameter(""))
		some := x.queue("some", "RedriveAllowPolicy", `{"redrivePermission":"byQueue","sourceQueueArns":["`+x.arn("source")+`"]}`)
		source := x.queue("source", "RedrivePolicy", x.policy("some", 1))
		_, err = x.create("other", "RedrivePolicy", x.policy("some", 1))
		x.refused(err, invalidParameter(""))
		x.ok(x.set(some, "RedriveAllowPolicy", `{"redrivePermission":"denyAll"}`))
		x.bury(source, "a")
		x.gives(some, "a")
	}},
}

// badPolicy is an attribute with a policy that is wrong.
func badPolicy(policy, name, reason string) refusal {
	return invalidParameter("Value " + policy + " for parameter " + name + " is invalid. Reason: " + reason)
}

// TestExamChecks holds the exam to what it is to find: an answer that is wrong fails it.
func TestExamChecks(t *testing.T) {
	root, err := parseXML([]byte(`<ListQueuesResponse xmlns="` + queryNamespace + `"><ListQueuesResult><Surprise/></ListQueuesResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></ListQueuesResponse>`))
	if err != nil {
		t.Fatal(err)
	}
	if err := readAnswer(root, queryNamespace, "ListQueues", outOf[sqs.ListQueuesOutput]()); err == nil {
		t.Error("an element that nobody knows passes")
	}
	if err := readAnswer(root, queryNamespace, "ListQueueTags", outOf[sqs.ListQueueTagsOutput]()); err == nil {
		t.Error("the root of another action passes")
	}
}

func outOf[Out any]() reflect.Value { return reflect.ValueOf(new(Out)).Elem() }
