package sqsd

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"dlq/backends/broker"
	"dlq/backends/message"
	"dlq/backends/sqsmsg"
)

// System attributes of a message that a sender or the server sets, as the model of a message keeps
// them.
const (
	senderID    = "SenderId"
	traceHeader = "AWSTraceHeader"
)

const (
	maxDelay     = 900 // seconds
	maxGroupID   = 128 // characters of the ids of a FIFO queue
	maxTrace     = 4096
	anySender    = "AIDA00000000000000000"
	invalidChars = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
)

// sendMessage puts a message into the queue.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
func (c *call) sendMessage() error {
	if err := c.room(); err != nil {
		return err
	}
	e := &c.in.entry
	c.traceHeader(e)
	if bad := c.checkMessage(e); bad != nil {
		return bad
	}
	if int64(sqsmsg.Size([]byte(str(e.body)), e.attrs)) > c.info.MaxMessageBytes {
		return c.tooLarge("One or more parameters are invalid. Reason: Message")
	}
	m := c.message(e)
	sent, err := c.s.Engine.Send(broker.Address{Name: c.entity}, []*message.Message{m})
	if err != nil {
		return err
	}
	if sent[0].Err != nil {
		return sent[0].Err
	}
	c.sent(e, &sent[0])
	return nil
}

// room is an error if the server can keep nothing more at the moment.
func (c *call) room() error {
	if c.s.Short != nil && c.s.Short() {
		return throttled()
	}
	return nil
}

// tooLarge says that a message has too many bytes, in words that differ.
func (c *call) tooLarge(what string) *apiError {
	return invalidParameter("%s must be shorter than %d bytes.", what, c.info.MaxMessageBytes)
}

// sent writes what became of a message.
func (c *call) sent(e *entry, sent *broker.Sent) {
	c.out.str("MessageId", message.FormatValue(sent.ID))
	c.out.str("MD5OfMessageBody", sqsmsg.MD5([]byte(str(e.body))))
	c.out.opt("MD5OfMessageAttributes", sqsmsg.AttributesMD5(e.attrs))
	c.out.opt("MD5OfMessageSystemAttributes", sqsmsg.AttributesMD5(e.system))
	if c.info.Groups {
		c.out.str("SequenceNumber", sequenceNumber(sent.Seq))
	}
}

// sequenceNumber has twenty digits, as those of the service.
func sequenceNumber(seq int64) string { return fmt.Sprintf("1%019d", seq) }

// sendMessageBatch puts up to ten messages into the queue: those that are sound.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
func (c *call) sendMessageBatch() error {
	if err := c.room(); err != nil {
		return err
	}
	if err := c.checkBatch(); err != nil {
		return err
	}
	errs, err := c.checkEntries()
	if err != nil {
		return err
	}
	var msgs []*message.Message
	var of []int
	for i := range c.in.entries {
		if errs[i] == nil {
			msgs, of = append(msgs, c.message(&c.in.entries[i])), append(of, i)
		}
	}
	sent := make([]broker.Sent, len(errs))
	if len(msgs) > 0 {
		if err := c.sendAll(msgs, of, sent, errs); err != nil {
			return err
		}
	}
	c.succeeded(errs, func(i int) { c.sent(&c.in.entries[i], &sent[i]) })
	c.failed(errs)
	return nil
}

// sendAll sends messages in one commit. If the engine refuses some of them after all, the others
// are sent without those.
func (c *call) sendAll(msgs []*message.Message, of []int, sent []broker.Sent, errs []error) error {
	for len(msgs) > 0 {
		result, err := c.s.Engine.Send(broker.Address{Name: c.entity}, msgs)
		if err != nil {
			return err
		}
		var left []*message.Message
		var leftOf []int
		for i, s := range result {
			if errors.Is(s.Err, broker.ErrNotSent) {
				left, leftOf = append(left, msgs[i]), append(leftOf, of[i])
				continue
			}
			sent[of[i]], errs[of[i]] = s, s.Err
		}
		if len(left) == len(msgs) {
			return internal("None of the messages was sent, and none was refused.")
		}
		msgs, of = left, leftOf
	}
	return nil
}

// checkEntries checks the messages of a batch: each alone, then what makes the batch fail.
func (c *call) checkEntries() ([]error, error) {
	errs := make([]error, len(c.in.entries))
	total := 0
	for i := range c.in.entries {
		e := &c.in.entries[i]
		if bad := c.missingID(e); bad != nil && !c.s.flavor.idsMissing {
			return nil, asInvalidParameter(bad)
		}
		size := sqsmsg.Size([]byte(str(e.body)), e.attrs)
		total += size
		bad := c.checkMessage(e)
		switch {
		case bad != nil:
			errs[i] = bad
		case int64(size) > c.info.MaxMessageBytes && c.s.flavor.tooLargeAtOnce:
			return nil, invalidParameter("Each message must be shorter than %d bytes.", c.info.MaxMessageBytes)
		case int64(size) > c.info.MaxMessageBytes:
			errs[i] = c.tooLarge("One or more parameters cannot be validated. Reason: Message")
		}
	}
	if most := c.s.flavor.maxMessage; int64(total) > most {
		return nil, modeled("BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", most, total)
	}
	return errs, nil
}

// checkMessage checks everything of a message but its size.
func (c *call) checkMessage(e *entry) *apiError {
	if str(e.body) == "" {
		return missingParameter("MessageBody")
	}
	if !sqsmsg.ValidText([]byte(*e.body)) {
		if c.s.flavor.badTextIsValue {
			return invalidParameter("Message body validation failed: %s.", sqsmsg.InvalidTextYMQ([]byte(*e.body)))
		}
		return plain(http.StatusBadRequest, "InvalidMessageContents", invalidChars)
	}
	if bad := c.checkAttributes(e); bad != nil {
		return bad
	}
	if e.delay != nil && !e.delay.within(0, maxDelay) {
		return invalidValue(e.delay.text, "DelaySeconds", fmt.Sprintf("DelaySeconds must be >= 0 and <= %d.", maxDelay))
	}
	return c.checkIDs(e)
}

// checkIDs checks group and deduplication id.
func (c *call) checkIDs(e *entry) *apiError {
	const wrongType = "The request include parameter that is not valid for this queue type."
	for _, id := range []struct {
		name  string
		value *string
	}{{"MessageGroupId", e.group}, {"MessageDeduplicationId", e.dedup}} {
		if id.value != nil && !validID(*id.value) {
			return invalidValue(*id.value, id.name, id.name+" can only include alphanumeric and punctuation characters. 1 to 128 in length.")
		}
	}
	switch {
	case !c.info.Groups && e.dedup != nil:
		return invalidValue(*e.dedup, "MessageDeduplicationId", wrongType)
	case c.info.Groups && e.delay != nil && e.delay.n > 0:
		return invalidValue(e.delay.text, "DelaySeconds", wrongType)
	}
	return c.missingID(e)
}

// missingID says which id a FIFO queue needs and the message lacks. On a standard queue a group is
// a tenant, and may be absent.
func (c *call) missingID(e *entry) *apiError {
	switch {
	case !c.info.Groups:
		return nil
	case e.group == nil && c.s.flavor.idsMissing:
		return idMissing("MessageGroupId")
	case e.group == nil:
		return missingParameter("MessageGroupId")
	case e.dedup == nil && !c.info.ContentDeduplication && c.s.flavor.idsMissing:
		return idMissing("MessageDeduplicationId")
	case e.dedup == nil && !c.info.ContentDeduplication:
		return invalidParameter("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
	}
	return nil
}

func idMissing(name string) *apiError {
	e := missingParameter(name)
	e.text = "No " + name + " parameter."
	return e
}

// validID reports whether an id has 1 to 128 printable characters of ASCII without a space.
func validID(id string) bool {
	if id == "" || len(id) > maxGroupID {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

func (c *call) checkAttributes(e *entry) *apiError {
	if e.badAttribute != nil {
		return e.badAttribute
	}
	var bad *sqsmsg.InvalidError
	if err := c.s.flavor.checkAttributes(e.attrs); errors.As(err, &bad) {
		out := invalidParameter("%s", bad.Text)
		if bad.Combination {
			out.code, out.shape = "InvalidParameterCombination", "InvalidParameterCombinationException"
		}
		return out
	}
	for i, a := range e.system {
		if a.Name != traceHeader || a.Type != "String" || i > 0 {
			return invalidParameter("Message system attribute name '%s' is invalid; there is one AWSTraceHeader of the type String.", a.Name)
		}
		if !validTrace(a.Value) {
			return invalidParameter("Message system attribute '%s' must be a text of 1 to %d bytes.", a.Name, maxTrace)
		}
	}
	return nil
}

// traceHeader takes the trace header of the HTTP request, unless the message has its own.
func (c *call) traceHeader(e *entry) {
	if h := c.r.Header.Get("X-Amzn-Trace-Id"); len(e.system) == 0 && validTrace([]byte(h)) {
		e.trace = h
	}
}

// validTrace reports whether a trace header can be kept: it comes on top of the size of a message.
func validTrace(h []byte) bool { return len(h) > 0 && len(h) <= maxTrace && sqsmsg.ValidText(h) }

// message is an entry as the engine keeps it.
func (c *call) message(e *entry) *message.Message {
	m := &message.Message{
		ID: message.String(message.RandomUUID().String()), Body: message.DataBody([]byte(*e.body)), SessionID: e.group,
		Properties: make(message.Properties, 0, len(e.attrs)),
		System:     append(make([]message.Attribute, 0, 3), message.Attribute{Name: senderID, Value: message.String(c.sender())}),
	}
	for _, a := range e.attrs {
		m.Properties = append(m.Properties, sqsmsg.FromAttribute(a))
	}
	if e.trace != "" {
		m.System = append(m.System, message.Attribute{Name: traceHeader, Value: message.String(e.trace)})
	}
	for _, a := range e.system {
		m.System = append(m.System, message.Attribute{Name: a.Name, Value: message.String(a.Value)})
	}
	if e.dedup != nil {
		m.System = append(m.System, message.Attribute{Name: broker.DeduplicationIDAttribute, Value: message.String(*e.dedup)})
	}
	if e.delay != nil && !c.info.Groups { // zero, too: it takes the place of the queue's
		at := c.s.Now().Add(time.Duration(e.delay.n) * time.Second)
		m.ScheduledEnqueueTime = &at
	}
	return m
}

// sender is who sends, as the attribute SenderId says it.
func (c *call) sender() string {
	if c.accessKey == "" {
		return anySender
	}
	return c.accessKey
}
