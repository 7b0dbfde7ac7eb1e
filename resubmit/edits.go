package resubmit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"dlq/backends"
	"dlq/backends/message"

	"github.com/itchyny/gojq"
)

// IDPolicy says what message id a resubmitted message gets.
type IDPolicy string

const (
	// IDAuto keeps the id unless the destination detects duplicates, which may know it. There it
	// makes a new one, of the message or, where the destination goes by that, of deduplication.
	IDAuto IDPolicy = "auto"
	// IDKeep keeps the id.
	IDKeep IDPolicy = "keep"
	// IDNew makes an id from job, entity and sequence number: within a job the same each
	// time. The old one is kept in the application property [OriginalIDProperty].
	IDNew IDPolicy = "new"
)

// OriginalIDProperty is the application property that keeps the id which a message had
// before it first got a new one.
const OriginalIDProperty = "DlqOriginalMessageId"

// Edits are the changes to make to each message on its way. The zero value changes nothing.
type Edits struct {
	Set       []message.Attribute // application properties to set, in order
	Unset     []string            // application properties to remove; one that is not there is no error
	BodyJQ    string              // jq program that makes the new JSON body from the old one
	Body      *[]byte             // new body, as one data section; not together with BodyJQ
	MessageID IDPolicy            // "" is IDAuto
}

// Empty reports whether messages go out as they are.
func (e Edits) Empty() bool {
	return len(e.Set) == 0 && len(e.Unset) == 0 && e.BodyJQ == "" && e.Body == nil && e.MessageID != IDNew
}

// Compile checks the edits. job and from go into new message ids.
func (e Edits) Compile(job string, from backends.EntityID) (*Transform, error) {
	t := &Transform{edits: e, job: job, from: from}
	if e.Body != nil && e.BodyJQ != "" {
		return nil, errors.New("a new body and a jq program for the body exclude each other; choose one")
	}
	switch e.MessageID {
	case "", IDAuto, IDKeep, IDNew:
	default:
		return nil, fmt.Errorf("message id %q: write keep, new or auto", e.MessageID)
	}
	for _, a := range e.Set {
		if slices.Contains(e.Unset, a.Name) {
			return nil, fmt.Errorf("property %q is both set and unset; choose one", a.Name)
		}
	}
	if e.BodyJQ != "" {
		var err error
		if t.jq, err = compileJQ(e.BodyJQ); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Transform is compiled [Edits]. It may be used concurrently.
type Transform struct {
	edits Edits
	job   string
	from  backends.EntityID
	jq    *gojq.Code
}

// Apply returns the message to send for m, which is not changed: [Outgoing], then the edits.
// An error means that an edit cannot be applied to this message, which must then be left alone.
// A body that was not loaded is refused, or the message would go out empty.
func (t *Transform) Apply(m *message.Message) (*message.Message, error) {
	if m.Broker.BodyOmitted {
		return nil, errors.New("the body was not loaded; it would be sent without")
	}
	out := Outgoing(m)
	for _, name := range t.edits.Unset {
		out.Properties.Delete(name)
	}
	for _, a := range t.edits.Set {
		out.Properties.Set(a.Name, a.Value)
	}
	if t.edits.MessageID == IDNew {
		t.renew(out, m, "")
		out.ID = t.newID(m) // also of a message that had none
	}
	switch {
	case t.edits.Body != nil:
		out.Body = message.DataBody(*t.edits.Body)
	case t.jq != nil:
		body, err := t.editBody(m)
		if err != nil {
			return nil, err
		}
		out.Body = message.DataBody(body)
	}
	return out, nil
}

// renew gives a message a new id: in a system attribute, or else as its message id, of which the
// old one is kept. A message without an id needs none.
func (t *Transform) renew(out, m *message.Message, attribute string) {
	id := t.newID(m)
	if attribute != "" {
		i := slices.IndexFunc(out.System, func(a message.Attribute) bool { return a.Name == attribute })
		if i < 0 {
			i = len(out.System)
			out.System = append(out.System, message.Attribute{Name: attribute})
		}
		out.System[i].Value = id
		return
	}
	if m.ID == nil {
		return
	}
	if _, kept := out.Properties.Get(OriginalIDProperty); !kept { // by an earlier resubmit
		out.Properties.Set(OriginalIDProperty, m.ID)
	}
	out.ID = id
}

// newID is the same for the same message of the same job, however often it is resumed.
func (t *Transform) newID(m *message.Message) message.Value {
	key := fmt.Appendf(nil, "%s|%s|%d", t.job, t.from, m.Broker.SequenceNumber)
	if m.Broker.SequenceNumber == 0 { // a service without numbers
		key = append(append(key, '|'), message.FormatValue(m.ID)...)
	}
	sum := sha256.Sum256(key)
	return message.String(hex.EncodeToString(sum[:16]))
}

// editBody runs the jq program. Numbers that it does not calculate with stay as they are
// written, however long; the members of objects come out sorted by name.
func (t *Transform) editBody(m *message.Message) ([]byte, error) {
	encoding := message.Str(m.ContentEncoding)
	if m.Body.Kind != message.Data || encoding != "" && encoding != "identity" && encoding != "utf-8" {
		return nil, errors.New("the body is not plain JSON text, so jq cannot change it; write it out, change it and use --body-file")
	}
	raw := m.Body.Bytes()
	if !utf8.Valid(raw) {
		return nil, errors.New("the body is not plain JSON text: it is not UTF-8")
	}
	v, ok := decodeJSON(raw)
	if !ok {
		return nil, errors.New("the body is not plain JSON text: it does not parse")
	}
	ctx, cancel := context.WithTimeout(context.Background(), jqTime)
	defer cancel()
	results := t.jq.RunWithContext(ctx, v)
	out, ok := results.Next()
	if !ok {
		return nil, errors.New("the jq program gives no result for this body; it has to give one")
	}
	if err, bad := out.(error); bad {
		if ctx.Err() != nil {
			err = errJQTime
		}
		return nil, fmt.Errorf("jq: %w", err)
	}
	if _, again := results.Next(); again {
		return nil, errors.New("the jq program gives more than one result for this body; it has to give one")
	}
	b, err := gojq.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("jq: %w", err)
	}
	return b, nil
}

// brokerAnnotations are the annotations that Service Bus owns and sets on what it hands out.
// Everything else is the sender's, x-opt-partition-key too.
var brokerAnnotations = [...]message.Symbol{
	"x-opt-sequence-number", "x-opt-enqueued-time", "x-opt-locked-until", "x-opt-lock-token",
	"x-opt-enqueue-sequence-number", "x-opt-deadletter-source", "x-opt-message-state",
	"x-opt-scheduled-enqueue-time", "x-opt-offset", "x-opt-transfer-source", "x-opt-transfer-destination",
	"x-opt-transfer-hop-count", "x-opt-transfer-resource", "x-opt-transfer-session", "x-opt-transfer-sn",
}

// Outgoing returns m as it is to be sent again. It takes off exactly what the broker put on:
// everything in [message.Broker], the reason and description of its death, and the broker's
// annotations. They would be wrong at the destination, and they count towards the size limit.
//
// Its time to live starts anew, and the time it was scheduled for is over, so that is cleared. An
// absolute expiry time is the sender's statement about the life that has ended: kept, it
// would make some brokers drop the message on arrival. It is taken off; where it was the only
// word on how long the message lives, which is how clients express more than 49 days, the
// time from creation to expiry becomes the time to live.
func Outgoing(m *message.Message) *message.Message {
	out := m.Clone()
	out.Broker = message.Broker{}
	out.Properties.Delete(message.DeadLetterReasonProperty)
	out.Properties.Delete(message.DeadLetterDescriptionProperty)
	out.Annotations = withoutBrokers(out.Annotations)
	out.DeliveryAnnotations = withoutBrokers(out.DeliveryAnnotations)
	out.ScheduledEnqueueTime = nil
	const headerMax = math.MaxUint32 * time.Millisecond // what the AMQP header can hold
	if out.AbsoluteExpiry != nil && out.Created != nil && (out.TTL == nil || *out.TTL >= headerMax) {
		if life := out.AbsoluteExpiry.Sub(*out.Created).Truncate(time.Millisecond); life > 0 {
			out.TTL = &life
		}
	}
	out.AbsoluteExpiry = nil
	return out
}

func withoutBrokers(m message.Map) message.Map {
	return slices.DeleteFunc(m, func(p message.Pair) bool {
		key, ok := p.Key.(message.Symbol)
		return ok && slices.Contains(brokerAnnotations[:], key)
	})
}
