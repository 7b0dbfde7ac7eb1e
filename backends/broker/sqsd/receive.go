package sqsd

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"sync"
	"time"

	"dlq/backends/broker"
	"dlq/backends/message"
	"dlq/backends/sqsmsg"
)

const (
	maxReceived   = 10
	maxWait       = 20     // seconds
	maxVisibility = 43_200 // seconds
)

// receiveMessage takes messages, or waits for some.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
func (c *call) receiveMessage() error {
	if bad := c.checkReceive(); bad != nil {
		return bad
	}
	o := broker.ReceiveOptions{Max: int(c.in.maxMessages.or(1))}
	if c.in.visibility != nil {
		lock := time.Duration(c.in.visibility.n) * time.Second
		o.Lock = &lock
	}
	if c.fault.Kind == FaultDuplicate {
		o.Lock = new(time.Duration)
	}
	wait := c.info.ReceiveWait
	if c.in.wait != nil {
		wait = time.Duration(c.in.wait.n) * time.Second
	}
	attempt := attemptKey{c.entity, str(c.in.attemptID)}
	if c.info.Groups && attempt.id != "" {
		if msgs := c.again(attempt, o); msgs != nil {
			c.received(msgs)
			return nil
		}
	}
	msgs, err := c.take(o, wait)
	if err != nil {
		return err
	}
	if c.info.Groups && attempt.id != "" && len(msgs) > 0 {
		c.s.attempts.keep(attempt, msgs, c.s.Now())
	}
	c.received(msgs)
	return nil
}

func (c *call) checkReceive() *apiError {
	in := &c.in
	switch {
	case in.maxMessages != nil && !in.maxMessages.within(1, maxReceived):
		return invalidValue(in.maxMessages.text, "MaxNumberOfMessages", "Must be between 1 and 10, if provided.")
	case in.wait != nil && !in.wait.within(0, maxWait):
		return invalidValue(in.wait.text, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided.")
	case in.visibility != nil && !in.visibility.within(0, maxVisibility):
		return invalidValue(in.visibility.text, "VisibilityTimeout", "Must be >= 0 and <= 43200, if provided.")
	case c.info.Groups && in.attemptID != nil && !validID(*in.attemptID):
		return invalidValue(*in.attemptID, "ReceiveRequestAttemptId", "ReceiveRequestAttemptId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
	}
	return nil
}

// take receives, and waits for up to a while when there is nothing. It ends when the client goes
// away, so that nothing is hidden for nobody, and when the server stops.
func (c *call) take(o broker.ReceiveOptions, wait time.Duration) ([]*message.Message, error) {
	msgs, err := c.receive(o)
	if err != nil || len(msgs) > 0 || wait <= 0 || !c.s.waiting.enter(c.s.Limits.Waiting) {
		return msgs, err
	}
	defer c.s.waiting.leave()
	ctx, cancel := context.WithTimeout(c.r.Context(), wait)
	defer cancel()
	woken := make(chan struct{}, 1)
	w := c.s.Engine.NewWaiter(broker.Address{Name: c.entity}, func() { woken <- struct{}{} })
	defer w.Close()
	for {
		w.Arm(message.UUID{})
		select {
		case <-woken:
		case <-ctx.Done():
			return nil, nil
		case <-c.s.stopping.Done():
			return nil, nil
		}
		if msgs, err := c.receive(o); err != nil || len(msgs) > 0 {
			return msgs, err
		}
	}
}

// receive takes what there is.
func (c *call) receive(o broker.ReceiveOptions) ([]*message.Message, error) {
	if c.r.Context().Err() != nil {
		return nil, nil // the client has gone
	}
	a := broker.Address{Name: c.entity}
	msgs, err := c.s.Engine.Receive(a, o)
	if errors.Is(err, broker.ErrInFlight) && c.info.Groups && !c.s.flavor.fullSaid {
		return nil, nil // a FIFO queue says nothing, it gives nothing
	}
	if err == nil && len(msgs) > 0 && c.r.Context().Err() != nil {
		return nil, c.s.Engine.Release(a, tokens(msgs)...)
	}
	return msgs, err
}

func tokens(msgs []*message.Message) []message.UUID {
	out := make([]message.UUID, len(msgs))
	for i, m := range msgs {
		out[i] = m.Broker.LockToken
	}
	return out
}

// received writes messages.
func (c *call) received(msgs []*message.Message) {
	wanted := c.wantedSystem()
	matches := sqsmsg.MatchNames(c.in.messageNames)
	c.out.list("Messages", "Message", len(msgs), func(i int) {
		m := msgs[i]
		body := text(m)
		c.out.str("MessageId", messageID(m))
		c.out.str("ReceiptHandle", receiptHandle(c.entity, broker.Delivery{Seq: m.Broker.SequenceNumber, Token: m.Broker.LockToken}))
		c.out.str("MD5OfBody", sqsmsg.MD5([]byte(body)))
		c.out.str("Body", body)
		c.out.pairs("Attributes", "Attribute", "Name", "Value", c.system(m, wanted))
		var attrs []sqsmsg.Attribute
		for _, p := range m.Properties {
			if !matches(p.Name) {
				continue
			}
			a, ok := sqsmsg.ToAttribute(p)
			if !ok {
				continue
			}
			if !a.Binary() && !sqsmsg.ValidText(a.Value) { // it came by another protocol
				a.Type = "Binary"
			}
			attrs = append(attrs, a)
		}
		c.out.opt("MD5OfMessageAttributes", sqsmsg.AttributesMD5(attrs))
		c.out.attributes(attrs)
	})
}

// text is the body of a message as text. What another protocol has put into the queue and is no
// text that SQS can carry is given in base64.
func text(m *message.Message) string {
	body := m.Body.Bytes()
	if m.Body.Kind != message.Data || !sqsmsg.ValidText(body) {
		return base64.StdEncoding.EncodeToString(body)
	}
	return string(body)
}

// messageID is the id of a message. One that came without an id gets one that stays the same.
func messageID(m *message.Message) string {
	if m.ID != nil {
		return message.FormatValue(m.ID)
	}
	return sequenceNumber(m.Broker.SequenceNumber)
}

// wantedSystem reports which system attributes are asked for, in either form of the request.
func (c *call) wantedSystem() func(name string) bool {
	names := slices.Concat(c.in.systemNames, c.in.attributeNames)
	if slices.Contains(names, "All") {
		return func(string) bool { return true }
	}
	return func(name string) bool { return slices.Contains(names, name) }
}

// system are the system attributes of a message that are wanted and that it has.
func (c *call) system(m *message.Message, wanted func(string) bool) []pair {
	var out []pair
	add := func(name, value string) {
		if value != "" && wanted(name) && (c.s.flavor.system == nil || slices.Contains(c.s.flavor.system, name)) {
			out = append(out, pair{name, value})
		}
	}
	add(senderID, systemValue(m, senderID, anySender))
	add("SentTimestamp", itoa(m.Broker.EnqueuedTime.UnixMilli()))
	add("ApproximateReceiveCount", itoa(int64(m.Broker.DeliveryCount)))
	if !m.Broker.FirstReceived.IsZero() {
		add("ApproximateFirstReceiveTimestamp", itoa(m.Broker.FirstReceived.UnixMilli()))
	}
	add("MessageGroupId", message.Str(m.SessionID))
	if c.info.Groups {
		add(broker.DeduplicationIDAttribute, c.deduplicationID(m))
		add("SequenceNumber", sequenceNumber(m.Broker.SequenceNumber))
	}
	add(traceHeader, systemValue(m, traceHeader, ""))
	add(isVisible, systemValue(m, isVisible, ""))
	add(isDelayed, systemValue(m, isDelayed, ""))
	if source := m.Broker.DeadLetterSource; source != "" {
		add("DeadLetterQueueSourceArn", c.s.arn(c.s.idOf(source)))
	}
	return out
}

// deduplicationID is the id that the sender gave, or that of the content.
func (c *call) deduplicationID(m *message.Message) string {
	if id := systemValue(m, broker.DeduplicationIDAttribute, ""); id != "" {
		return id
	}
	return sqsmsg.ContentID(m.Body.Bytes())
}

func systemValue(m *message.Message, name, absent string) string {
	for _, a := range m.System {
		if s, ok := a.Value.(message.String); ok && a.Name == name {
			return string(s)
		}
	}
	return absent
}

// waiting counts the receives that wait.
type waiting struct {
	mu sync.Mutex
	n  int
}

func (w *waiting) enter(most int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n >= most {
		return false
	}
	w.n++
	return true
}

func (w *waiting) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n--
}
