package sqsd_test

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// 4.1: visibility and retention.
var recordedDelivery = []statement{
	{"4.1", recorded, inBoth, "a message that is visible again comes before later ones", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "test1")
		x.one(q, hidden(3))
		x.wait(1500 * time.Millisecond)
		x.send(q, "test2")
		x.wait(3 * time.Second)
		x.equal("first", bodies(x.receive(q, most(1))), []string{"test1"})
	}},
	{"4.1", recorded, inBoth, "a message is hidden for its timeout, and each receive has its own handle", func(x *exam) {
		q := x.queue("orders", "VisibilityTimeout", "1")
		x.send(q, "foobar")
		first := x.one(q)
		x.gives(q)
		x.wait(time.Second)
		if second := x.one(q); *second.ReceiptHandle == *first.ReceiptHandle {
			x.Error("the same handle twice")
		}
	}},
	{"4.1", recorded, inBoth, "each receive counts", func(x *exam) {
		q := x.queue("orders", "VisibilityTimeout", "0")
		x.send(q, "a")
		first := x.millis()
		for i := range 3 {
			m := x.one(q, allSystem)
			x.equal("count", m.Attributes["ApproximateReceiveCount"], strconv.Itoa(i+1))
			x.equal("first receive", m.Attributes["ApproximateFirstReceiveTimestamp"], first)
			x.wait(time.Second)
		}
	}},
	{"4.1", recorded, inBoth, "retention takes what is visible, and what is delayed counts from the send", func(x *exam) {
		q := x.queue("orders", "MessageRetentionPeriod", "60")
		x.send(q, "a")
		x.send(q, "b", delay(50))
		x.wait(61 * time.Second)
		x.gives(q)
		x.counts(q, "0", "0", "0")
	}},
	{"4.1", recorded, inBoth, "retention takes what is in flight, and its handle still deletes", func(x *exam) {
		q := x.queue("orders", "MessageRetentionPeriod", "60")
		x.send(q, "foobar1")
		m := x.one(q, hidden(120))
		x.wait(61 * time.Second)
		x.counts(q, "0", "0", "0")
		x.delete(q, m)
		x.wait(2 * time.Minute)
		x.gives(q)
	}},
}

// 4.2: dead letters.
var recordedRedrive = []statement{
	{"4.2", recorded, inBoth, "maxReceiveCount 1: the first receive delivers, the second moves", func(x *exam) {
		dlq := x.queue("dlq", "VisibilityTimeout", "0")
		q := x.queue("source", "RedrivePolicy", x.policy("dlq", 1), "VisibilityTimeout", "0")
		sent := x.send(q, "test")
		x.gives(q, "test")
		x.gives(dlq)
		x.gives(q)
		x.equal("id", x.one(dlq).MessageId, sent.MessageId)
	}},
	{"4.2", recorded, inBoth, "nothing moves because a timeout has ended", func(x *exam) {
		source, dlq := x.withDLQ(1)
		x.send(source, "a")
		x.one(source)
		x.wait(time.Hour)
		x.counts(source, "1", "0", "0")
		x.gives(dlq)
		x.gives(source)
		x.gives(dlq, "a")
	}},
	{"4.2", documented, inBoth, "a receive that moves one gives the others", func(x *exam) {
		source, dlq := x.withDLQ(1)
		x.send(source, "old")
		x.open(source)
		x.send(source, "new")
		x.gives(source, "new")
		x.gives(dlq, "old")
	}},
	{"4.2", recorded, inBoth, "the count goes on in the dead-letter queue", func(x *exam) {
		source, dlq := x.withDLQ(1)
		x.bury(source, "a")
		x.equal("count", x.open(dlq, allSystem)[0].Attributes["ApproximateReceiveCount"], "2")
		x.equal("count", x.one(dlq, allSystem).Attributes["ApproximateReceiveCount"], "3")
	}},
	{"4.2", recorded, inBoth, "what a dead letter keeps, and where it came from", func(x *exam) {
		source, dlq := x.withDLQ(1)
		sent := x.send(source, "body", text("Foo", "String.x", "Bar"), bytesOf("Bin", "Binary", []byte{0, 1}), trace("Root=1-x"))
		before := x.open(source, allSystem, messageNames("All"))[0]
		x.open(source)
		m := x.one(dlq, allSystem, messageNames("All"))
		x.equal("id", m.MessageId, sent.MessageId)
		x.equal("body", *m.Body, "body")
		x.equal("attributes", m.MessageAttributes, before.MessageAttributes)
		x.equal("AWSTraceHeader", m.Attributes["AWSTraceHeader"], "Root=1-x")
		x.equal("SenderId", m.Attributes["SenderId"], before.Attributes["SenderId"])
		x.equal("DeadLetterQueueSourceArn", m.Attributes["DeadLetterQueueSourceArn"], x.arn("source"))
	}},
	{"4.2", documented, inBoth, "standard: the time of the send stays, and counts for the retention", func(x *exam) {
		dlq := x.queue("dlq", "MessageRetentionPeriod", "120")
		source := x.queue("source", "RedrivePolicy", x.policy("dlq", 1))
		x.send(source, "a")
		sent := x.millis()
		x.wait(90 * time.Second)
		x.open(source)
		x.open(source)
		x.equal("SentTimestamp", x.open(dlq, allSystem)[0].Attributes["SentTimestamp"], sent)
		x.wait(31 * time.Second)
		x.gives(dlq)
	}},
	{"4.2", documented, inBoth, "FIFO: the time is that of the move", func(x *exam) {
		source, dlq := x.fifoWithDLQ(1)
		x.send(source, "a", group("g"))
		x.wait(90 * time.Second)
		x.open(source)
		x.open(source)
		x.equal("SentTimestamp", x.one(dlq, allSystem).Attributes["SentTimestamp"], x.millis())
	}},
	{"4.2", recorded, inBoth, "FIFO with content-based deduplication: two receives, then the dead-letter queue", func(x *exam) {
		dlq := x.fifo("dlq", "MessageRetentionPeriod", "1209600")
		source := x.fifo("source", "RedrivePolicy", x.policy("dlq.fifo", 2), "VisibilityTimeout", "60")
		sent := x.send(source, "foobar", group("1"))
		x.equal("first", bodies(x.open(source)), []string{"foobar"})
		x.equal("second", bodies(x.open(source)), []string{"foobar"})
		x.equal("third", len(x.open(source)), 0)
		m := x.one(dlq)
		x.equal("id", m.MessageId, sent.MessageId)
		x.equal("body", *m.Body, "foobar")
	}},
	{"4.2", documented, inBoth, "FIFO: the deduplication id becomes the message's id, the group stays", func(x *exam) {
		source, dlq := x.fifoWithDLQ(1)
		sent := x.send(source, "a", group("g"), dedup("1"))
		x.open(source)
		x.open(source)
		m := x.one(dlq, allSystem)
		x.equal("deduplication id", m.Attributes["MessageDeduplicationId"], *sent.MessageId)
		x.equal("group", m.Attributes["MessageGroupId"], "g")
	}},
	{"4.2", secondHand, inBoth, "FIFO: the sequence number is one of the dead-letter queue", func(x *exam) {
		source, dlq := x.fifoWithDLQ(1)
		before := x.send(dlq, "direct", group("g"))
		sent := x.send(source, "a", group("g"))
		x.open(source)
		x.open(source)
		got := x.receive(dlq, allSystem)
		x.equal("received", bodies(got), []string{"direct", "a"})
		number := got[1].Attributes["SequenceNumber"]
		if number == *sent.SequenceNumber || number <= *before.SequenceNumber {
			x.Errorf("%s, after %s and sent as %s", number, *before.SequenceNumber, *sent.SequenceNumber)
		}
	}},
	{"4.2", recorded, inBoth, "FIFO: the group waits for the poisoned message, and goes on when it has moved", func(x *exam) {
		source, dlq := x.fifoWithDLQ(2)
		x.sendGroups(source, "g-poison", "g-next")
		for range 2 {
			m := x.one(source, most(1))
			x.equal("head", *m.Body, "g-poison")
			x.equal("the group is locked", len(x.receive(source)), 0)
			x.hide(source, m, 0)
		}
		x.gives(source, "g-next")
		x.gives(dlq, "g-poison")
	}},
	{"4.2", recorded, inBoth, "a queue may be its own dead-letter queue", func(x *exam) {
		q := x.queue("orders")
		x.ok(x.set(q, "RedrivePolicy", x.policy("orders", 1)))
		x.has(q, "RedrivePolicy", x.policy("orders", 1))
		x.send(q, "a")
		x.gives(q, "a")
	}},
	{"4.2", inferred, inBoth, "a chain of dead-letter queues: the count goes on", func(x *exam) {
		last := x.queue("last")
		dlq := x.queue("dlq", "RedrivePolicy", x.policy("last", 1))
		source := x.queue("source", "RedrivePolicy", x.policy("dlq", 1))
		x.bury(source, "a")
		x.gives(dlq)
		x.gives(last, "a")
	}},
	{"4.2", inferred, inBoth, "a dead-letter queue that is gone: the source delivers on", func(x *exam) {
		source, dlq := x.withDLQ(1)
		x.ok(x.drop(dlq))
		x.send(source, "a")
		for range 3 {
			x.equal("received", bodies(x.open(source)), []string{"a"})
		}
	}},
	{"4.2", inferred, inBoth, "the delay of the dead-letter queue does not hold a dead letter back", func(x *exam) {
		dlq := x.queue("dlq", "DelaySeconds", "900")
		source := x.queue("source", "RedrivePolicy", x.policy("dlq", 1))
		x.bury(source, "a")
		x.gives(dlq, "a")
	}},
}

// 4.4: message groups.
var recordedGroups = []statement{
	{"4.4", recorded, inBoth, "a receive gives several of one group, then of the next", func(x *exam) {
		q := x.fifo("orders")
		x.sendGroups(q, "g1-m1", "g2-m1", "g1-m2", "g1-m3")
		x.gives(q, "g1-m1", "g1-m2", "g1-m3", "g2-m1")
	}},
	{"4.4", recorded, inBoth, "messages of a group come one after the other", func(x *exam) {
		q := x.queue("orders.fifo", "FifoQueue", "true")
		for i := range 4 {
			x.send(q, "message"+strconv.Itoa(i), group("g"), dedup(strconv.Itoa(i)))
		}
		for i := range 4 {
			m := x.receive(q, most(1))[0]
			x.equal("body", *m.Body, "message"+strconv.Itoa(i))
			x.delete(q, m)
		}
	}},
	{"4.4", recorded, inBoth, "the order stays after a timeout", func(x *exam) {
		q := x.fifo("orders", "VisibilityTimeout", "1")
		x.sendGroups(q, "g-0", "g-1", "g-2")
		x.gives(q, "g-0", "g-1", "g-2")
		x.wait(2 * time.Second)
		x.gives(q, "g-0", "g-1", "g-2")
	}},
	{"4.4", recorded, inBoth, "a group that is in flight is locked, other groups are not", func(x *exam) {
		q := x.fifo("orders")
		x.sendGroups(q, "g1-m1", "g1-m2", "g1-m3", "g2-m1")
		x.equal("first", bodies(x.receive(q, most(2))), []string{"g1-m1", "g1-m2"})
		x.gives(q, "g2-m1")
		x.gives(q)
	}},
	{"4.4", recorded, inBoth, "after its timeout a group goes to the end: g3, g1, g2", func(x *exam) {
		q := x.fifo("orders", "VisibilityTimeout", "1")
		x.sendGroups(q, "g1-m1", "g1-m2", "g1-m3", "g1-m4", "g2-m1", "g3-m1")
		x.equal("first", bodies(x.receive(q, most(2))), []string{"g1-m1", "g1-m2"})
		x.equal("second", bodies(x.receive(q, most(1))), []string{"g2-m1"})
		x.wait(2 * time.Second)
		x.equal("all", bodies(x.open(q)), []string{"g3-m1", "g1-m1", "g1-m2", "g1-m3", "g1-m4", "g2-m1"})
	}},
	{"4.4", recorded, inBoth, "a receive with a timeout of zero leaves the groups open, at the end", func(x *exam) {
		q := x.fifo("orders")
		x.sendGroups(q, "g1-m1", "g2-m1", "g2-m2", "g3-m1", "g1-m2")
		x.equal("first", bodies(x.open(q, most(3))), []string{"g1-m1", "g1-m2", "g2-m1"})
		x.equal("all", bodies(x.open(q)), []string{"g3-m1", "g1-m1", "g1-m2", "g2-m1", "g2-m2"})
	}},
	{"4.4", recorded, inBoth, "a released message comes again though a later one of its group is hidden", func(x *exam) {
		q := x.fifo("orders")
		x.sendGroups(q, "g1-m1", "g1-m2", "g2-m1")
		got := x.receive(q, most(2))
		x.hide(q, got[0], 0)
		x.gives(q, "g2-m1", "g1-m1")
	}},
	{"4.4", recorded, inBoth, "the same with a timeout that is shortened and ends", func(x *exam) {
		q := x.fifo("orders")
		x.sendGroups(q, "g1-m1", "g1-m2", "g2-m1")
		got := x.receive(q, most(2))
		x.hide(q, got[0], 1)
		x.wait(2 * time.Second)
		x.gives(q, "g2-m1", "g1-m1")
	}},
	{"4.4", recorded, inBoth, "what is before a hidden message is given, what is after it is not", func(x *exam) {
		for hiddenOne, want := range [][]string{nil, {"g-0"}, {"g-0", "g-1"}} {
			q := x.fifo("orders" + strconv.Itoa(hiddenOne))
			x.sendGroups(q, "g-0", "g-1", "g-2")
			got := x.receive(q)
			for i, m := range got {
				if i != hiddenOne {
					x.hide(q, m, 0)
				}
			}
			x.gives(q, want...)
		}
	}},
	{"4.4", recorded, inBoth, "deleting all that was received unlocks the group at once", func(x *exam) {
		q := x.fifo("orders")
		x.sendGroups(q, "g1-m1", "g2-m1", "g1-m2", "g2-m2", "g1-m2", "g1-m3", "g1-m4", "g3-m1")
		got := x.receive(q, most(2))
		x.equal("first", bodies(got), []string{"g1-m1", "g1-m2"})
		x.delete(q, got...)
		order := bodies(x.receive(q))
		recordedOrder, other := []string{"g2-m1", "g2-m2", "g1-m3", "g1-m4", "g3-m1"}, []string{"g2-m1", "g2-m2", "g3-m1", "g1-m3", "g1-m4"}
		if !slices.Equal(order, recordedOrder) && !slices.Equal(order, other) {
			x.Errorf("received %v", order)
		}
	}},
	{"4.4", recorded, inBoth, "deleting some keeps it locked", func(x *exam) {
		q := x.fifo("orders")
		x.sendGroups(q, "g1-m1", "g2-m1", "g1-m2", "g2-m2", "g1-m2", "g1-m3", "g1-m4", "g3-m1")
		got := x.receive(q, most(2))
		x.delete(q, got[0])
		x.gives(q, "g2-m1", "g2-m2", "g3-m1")
	}},
	{"4.4", secondHand, inBoth, "a delayed message holds back what follows in its group", func(x *exam) {
		q := x.fifo("orders", "DelaySeconds", "10")
		x.sendGroups(q, "g1-m1")
		x.wait(5 * time.Second)
		x.sendGroups(q, "g1-m2", "g2-m1")
		x.ok(x.set(q, "DelaySeconds", "0"))
		x.sendGroups(q, "g1-m3")
		x.wait(6 * time.Second)
		x.equal("first", bodies(x.open(q)), []string{"g1-m1"})
		x.wait(5 * time.Second)
		got := bodies(x.receive(q))
		slices.Sort(got)
		x.equal("then", got, []string{"g1-m1", "g1-m2", "g1-m3", "g2-m1"})
	}},
}

// 4.4: duplicates.
var recordedDuplicates = []statement{
	{"4.4", recorded, inBoth, "the same content is a duplicate", func(x *exam) {
		q := x.fifo("orders")
		x.send(q, `{"foo": "bar"}`, group("g"))
		x.send(q, `{"foo": "bar"}`, group("g"))
		x.gives(q, `{"foo": "bar"}`)
	}},
	{"4.4", recorded, inBoth, "a duplicate is one after the first was deleted, too", func(x *exam) {
		byContent, byID := x.fifo("content"), x.queue("id.fifo", "FifoQueue", "true")
		for _, c := range []struct {
			q    string
			more []sending
		}{{byContent, []sending{group("g")}}, {byID, []sending{group("g"), dedup("dedup1")}}} {
			x.send(c.q, "item", c.more...)
			x.delete(c.q, x.gives(c.q, "item")...)
			x.send(c.q, "item", c.more...)
			x.gives(c.q)
		}
	}},
	{"4.4", recorded, inBoth, "ids are of the queue, not of the group", func(x *exam) {
		byContent, byID := x.fifo("content"), x.queue("id.fifo", "FifoQueue", "true")
		for _, c := range []struct {
			q    string
			more []sending
		}{{byContent, nil}, {byID, []sending{dedup("dedup1")}}} {
			x.send(c.q, "item", append(c.more, group("group-1"))...)
			x.send(c.q, "item", append(c.more, group("group-2"))...)
			x.gives(c.q, "item")
			x.gives(c.q)
		}
	}},
	{"4.4", recorded, inBoth, "with DeduplicationScope messageGroup they are of the group", func(x *exam) {
		q := x.queue("orders.fifo", "FifoQueue", "true", "DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId")
		x.send(q, "a", group("g1"), dedup("1"))
		x.send(q, "b", group("g2"), dedup("1"))
		x.send(q, "c", group("g1"), dedup("1"))
		x.gives(q, "a", "b")
	}},
	{"4.4", documented, inBoth, "for five minutes from the first", func(x *exam) {
		q := x.fifo("orders")
		x.send(q, "a", group("g"))
		x.wait(4 * time.Minute)
		x.send(q, "a", group("g"))
		x.wait(59 * time.Second)
		x.send(q, "a", group("g"))
		x.delete(q, x.gives(q, "a")...)
		x.wait(2 * time.Second)
		x.send(q, "a", group("g"))
		x.gives(q, "a")
	}},
	{"4.4", documented, inBoth, "content is the body alone, and an id that is given wins", func(x *exam) {
		q := x.fifo("orders")
		x.send(q, "a", group("g"), text("n", "Number", "1"))
		x.send(q, "a", group("g"), text("n", "Number", "2"))
		x.send(q, "a", group("g"), dedup("1"))
		x.gives(q, "a", "a")
	}},
	{"4.4", documented, inBoth, "an id that equals the hash of a body is a duplicate", func(x *exam) {
		q := x.fifo("orders")
		x.send(q, "a", group("g"))
		x.send(q, "b", group("g"), dedup("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"))
		m := x.one(q, allSystem)
		x.equal("id", m.Attributes["MessageDeduplicationId"], "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb")
		x.equal("names", slices.Sorted(maps.Keys(m.Attributes)), []string{
			"ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "MessageDeduplicationId", "MessageGroupId", "SenderId", "SentTimestamp", "SequenceNumber",
		})
		x.equal("body", aws.ToString(m.Body), "a")
	}},
}
