package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dlq/backends"
	"dlq/backends/broker"
	"dlq/backends/message"
	"dlq/backends/sqsmsg"
)

// What a client puts into a queue of SQS has to be a message of SQS: a consumer would otherwise meet
// here what the service could never deliver. The engine keeps any message in any queue.

const (
	// Sources: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
	maxSQSDelay = 15 * time.Minute
	maxSQSID    = 128 // characters of a group or deduplication id
)

// checkAll refuses, by index, the messages that a queue of SQS does not take; nil: it takes them all,
// or the entity is none of SQS, or not there, which the engine says.
func (b *Backend) checkAll(id backends.EntityID, msgs []*message.Message) error {
	info, err := b.engine.Entity(id.Name)
	if err != nil || info.Dialect != broker.SQS {
		return nil
	}
	errs := make([]error, len(msgs))
	refused := false
	for i, m := range msgs {
		errs[i] = &backends.Error{Op: "send to", Entity: id, Code: backends.NotTried}
		if m == nil {
			continue // the engine refuses it
		}
		if err := b.checkSQS(info, m, nil); err != nil {
			errs[i], refused = notCarried("send to", id, err), true
		}
	}
	if !refused {
		return nil
	}
	return backends.Batch(errs)
}

func notCarried(op string, id backends.EntityID, err error) error {
	return &backends.Error{Op: op, Entity: id, Code: backends.NotCarried, Err: err}
}

// checkMove refuses a move into a queue of SQS that it would not take. What lies in one already and
// is not changed by the move is not looked at, however it came there.
func (b *Backend) checkMove(ctx context.Context, from broker.Address, m backends.Move) error {
	to, err := b.engine.Entity(m.To.Name)
	if err != nil || to.Dialect != broker.SQS {
		return nil // if it is missing, the engine says so
	}
	if m.As == nil || b.checkSQS(to, m.As, nil) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	source, err := b.engine.Entity(from.Name)
	if err != nil {
		return nil
	}
	found, err := b.engine.Peek(from, broker.PeekOptions{From: m.Seq, Max: 1})
	if err != nil || len(found) == 0 || found[0].Broker.SequenceNumber != m.Seq {
		return nil // it has gone, as the engine will say
	}
	was := found[0]
	if source.Dialect != broker.SQS {
		was = nil
	}
	if err := b.checkSQS(to, m.As, was); err != nil {
		return notCarried("move to", m.To, err)
	}
	return nil
}

// checkSQS says what of a message its queue's service does not take. Parts that are as they were are
// not looked at. was may be nil.
func (b *Backend) checkSQS(info broker.Info, m, was *message.Message) error {
	same := func(equal func() bool) bool { return was != nil && equal() }
	sameBody := same(func() bool { return m.Body.Kind == was.Body.Kind && bytes.Equal(m.Body.Bytes(), was.Body.Bytes()) })
	sameProperties := same(func() bool { return slices.EqualFunc(m.Properties, was.Properties, equalAttributes) })
	var attributes []sqsmsg.Attribute
	if !sameBody {
		if err := checkBody(m.Body); err != nil {
			return err
		}
	}
	if !sameProperties {
		var err error
		if attributes, err = sqsAttributes(m.Properties); err != nil {
			return err
		}
	}
	if size := int64(sqsmsg.Size(m.Body.Bytes(), attributes)); size > info.MaxMessageBytes && !(sameBody && sameProperties) {
		return fmt.Errorf("body and attributes have %d bytes, %s takes %d", size, info.Name, info.MaxMessageBytes)
	}
	if m.TTL != nil && !same(func() bool { return was.TTL != nil && *was.TTL == *m.TTL }) {
		return fmt.Errorf("TTL %v: SQS has no time to live of a message; its queue has a MessageRetentionPeriod", *m.TTL)
	}
	if m.SessionID != nil && !validID(*m.SessionID) && !same(func() bool { return message.Str(was.SessionID) == *m.SessionID }) {
		return fmt.Errorf("SessionID %q: a message group has 1 to %d letters, digits and punctuation characters of ASCII", *m.SessionID, maxSQSID)
	}
	if id, ok := deduplicationID(m); ok && info.Groups && !validID(id) && !same(func() bool { old, _ := deduplicationID(was); return old == id }) {
		return fmt.Errorf("%s %q: want 1 to %d letters, digits and punctuation characters of ASCII", broker.DeduplicationIDAttribute, id, maxSQSID)
	}
	return b.checkDelay(info, m)
}

func equalAttributes(a, b message.Attribute) bool {
	return a.Name == b.Name && message.EqualValues(a.Value, b.Value)
}

func checkBody(body message.Body) error {
	switch text := body.Bytes(); {
	case body.Kind != message.Data:
		return errors.New("body: SQS carries text, and no values of AMQP")
	case len(text) == 0:
		return errors.New("body: SQS takes no empty one")
	case !sqsmsg.ValidText(text):
		return errors.New("body: SQS takes UTF-8 text alone, without control characters but tab, line feed and carriage return")
	}
	return nil
}

// sqsAttributes returns what properties are on the wire.
func sqsAttributes(properties message.Properties) ([]sqsmsg.Attribute, error) {
	attributes := make([]sqsmsg.Attribute, len(properties))
	for i, p := range properties {
		var ok bool
		if attributes[i], ok = sqsmsg.ToAttribute(p); !ok {
			return nil, fmt.Errorf("property %s: SQS cannot carry a value of type %v", p.Name, message.KindOf(p.Value))
		}
	}
	if err := sqsmsg.CheckAttributes(attributes); err != nil {
		return nil, errors.New(strings.TrimSuffix(err.Error(), "."))
	}
	return attributes, nil
}

func (b *Backend) checkDelay(info broker.Info, m *message.Message) error {
	if m.ScheduledEnqueueTime == nil {
		return nil
	}
	switch delay := m.ScheduledEnqueueTime.Sub(b.now()); {
	case delay > 0 && info.Groups:
		return errors.New("delay: a FIFO queue delays no single message; set its DelaySeconds")
	case delay > maxSQSDelay:
		return fmt.Errorf("delay %v: SQS delays a message by %v at most", delay.Round(time.Second), maxSQSDelay)
	}
	return nil
}

func deduplicationID(m *message.Message) (string, bool) {
	for _, a := range m.System {
		if id, ok := a.Value.(message.String); ok && a.Name == broker.DeduplicationIDAttribute {
			return string(id), true
		}
	}
	return "", false
}

// validID reports whether an id has 1 to 128 printable characters of ASCII without a space.
func validID(id string) bool {
	return id != "" && len(id) <= maxSQSID && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}
