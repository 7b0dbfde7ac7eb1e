package sqsd

import (
	"net/http"
	"slices"

	"dlq/backends/broker"
	"dlq/backends/sqsmsg"
)

// Flavor is the service that the server imitates.
type Flavor uint8

// The flavors.
const (
	AWS Flavor = iota // Amazon SQS
	YMQ               // Yandex Message Queue
)

// flavor holds what differs between the services, but for what a queue's properties say.
type flavor struct {
	region, account string // of those who say none
	arnPrefix       string
	path            func(q queueID, info broker.Info) string // of a queue's URL
	xmlRoot         string                                   // attributes of the root of an answer in XML
	errorXML        func(code, side, text, id string) []byte

	checkAttributes func([]sqsmsg.Attribute) error // of a message: an [sqsmsg.InvalidError]

	missing     []string // actions that it lacks
	maxMessage  int64    // bytes, also of a batch
	maxFIFOHeld int      // messages in flight
	attributes  []string // of a queue, those it knows; nil: all
	system      []string // of a message, those it knows; nil: all

	movedIsNew     bool // a dead letter's time and receive count begin anew
	groupHeadOnly  bool // a receive gives one message of a group
	tooLargeAtOnce bool // an entry of a batch that is too large fails the batch
	idsMissing     bool // a missing deduplication id is a missing parameter, and so is a missing group
	notInFlight    bool // only what is in flight can be changed in its visibility
	badTextIsValue bool // characters that are not allowed are an invalid parameter value
	fullSaid       bool // a FIFO queue with too much in flight says so, as a standard queue does
	senderFault    bool // failed entries of a batch say whose fault it is
	pages          bool // lists of queues have pages

	translate map[string]apiError // by code: what it says instead, where that is another thing
}

func (f Flavor) spec() *flavor {
	if f == YMQ {
		return &yandex
	}
	return &amazon
}

var amazon = flavor{
	region: "us-east-1", account: "000000000000", arnPrefix: "arn:aws:sqs",
	path:    func(q queueID, _ broker.Info) string { return q.account + "/" + q.name },
	xmlRoot: ` xmlns="` + namespace + `"`, errorXML: errorXML, maxMessage: 1 << 20, maxFIFOHeld: 120_000, senderFault: true, pages: true, checkAttributes: sqsmsg.CheckAttributes,
}

// yandex is as the documentation of YMQ and its own open server say.
// Source: https://yandex.cloud/docs/message-queue/api-ref
var yandex = flavor{
	region: "ru-central1", account: "b1g00000000000000000", arnPrefix: "yrn:yc:ymq",
	path: func(q queueID, info broker.Info) string {
		return q.account + "/" + resourceID(q, info) + "/" + q.name
	},
	errorXML: errorXMLOfYMQ, maxMessage: 256 << 10, maxFIFOHeld: 20_000,
	missing: []string{"StartMessageMoveTask", "ListMessageMoveTasks", "CancelMessageMoveTask", "AddPermission", "RemovePermission"},
	attributes: []string{
		"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible",
		"CreatedTimestamp", "DelaySeconds", "MaximumMessageSize", "MessageRetentionPeriod",
		"ReceiveMessageWaitTimeSeconds", "RedrivePolicy", "VisibilityTimeout", "FifoQueue",
		"ContentBasedDeduplication", "QueueArn",
	},
	system: []string{
		"SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp",
		"MessageDeduplicationId", "MessageGroupId", "SequenceNumber",
	},
	movedIsNew: true, groupHeadOnly: true, tooLargeAtOnce: true, idsMissing: true, notInFlight: true,
	badTextIsValue: true, fullSaid: true, checkAttributes: sqsmsg.CheckAttributesYMQ,
	translate: map[string]apiError{
		"RequestThrottled":               {status: http.StatusForbidden, shape: "ThrottlingException", coral: true, code: "ThrottlingException"},
		"ReceiptHandleIsInvalid":         {status: http.StatusBadRequest},
		simpleQueue + "NonExistentQueue": {text: "The specified queue doesn't exist."},
	},
}

// has reports whether the service has an action.
func (f *flavor) has(action string) bool { return !slices.Contains(f.missing, action) }

// say puts an error into the service's own words.
func (f *flavor) say(e *apiError) *apiError {
	other, ok := f.translate[e.code]
	if !ok {
		return e
	}
	said := *e
	if other.status != 0 {
		said.status = other.status
	}
	if other.code != "" {
		said.code, said.shape, said.coral = other.code, other.shape, other.coral
	}
	if other.text != "" {
		said.text, said.query = other.text, ""
	}
	return &said
}

// defaults are the properties of a new queue.
func (f *flavor) defaults(fifo bool) (broker.Properties, error) {
	p := broker.Defaults(broker.Queue, broker.SQS)
	p.MaxMessageBytes = f.maxMessage
	if fifo {
		if err := p.Set(broker.Queue, "FifoQueue", "true"); err != nil {
			return p, err
		}
		p.GroupHeadOnly, p.MaxInFlight = f.groupHeadOnly, f.maxFIFOHeld
	}
	if f.movedIsNew {
		p.RedriveKeepsAge, p.RedriveKeepsCount = false, false
	}
	return p, nil
}
