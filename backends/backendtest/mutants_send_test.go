package backendtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"dlq/backends"
	"dlq/backends/message"
)

func sendMutants() []mutant {
	return slices.Concat(sendingMutants(), errorMutants())
}

func sendingMutants() []mutant {
	return []mutant{
		{name: "loses a message", caught: []string{"send/receive-complete", "concurrency/all-accounted-for"}, fault: func(b *faulty) {
			b.send = func(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
				return b.real.Send(ctx, id, msgs[:max(0, len(msgs)-1)])
			}
		}},
		{name: "doubles a message", caught: []string{"send/receive-complete", "concurrency/all-accounted-for", "entities/counts"}, fault: func(b *faulty) {
			b.send = func(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
				return errors.Join(b.real.Send(ctx, id, msgs), b.real.Send(ctx, id, msgs[:min(1, len(msgs))]))
			}
		}},
		{name: "sends twice when canceled", caught: []string{"context/send"}, fault: func(b *faulty) {
			b.send = func(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
				if ctx.Err() != nil {
					msgs = slices.Repeat(msgs, 2)
				}
				return errors.Join(ctx.Err(), b.real.Send(context.Background(), id, msgs))
			}
		}},
		{name: "reorders", caught: []string{"send/order"}, fault: func(b *faulty) {
			b.send = func(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
				slices.Reverse(msgs)
				return b.real.Send(ctx, id, msgs)
			}
		}},
		{
			name: "puts what is abandoned at the end", caught: []string{"send/order"},
			fault: onSettle(func(l *faultyLease, settle settleFunc) settleFunc {
				return func(ctx context.Context, o backends.Outcome, msgs ...*message.Message) error {
					if o.Action == backends.Abandon {
						_ = l.b.real.Send(ctx, l.id, msgs)
						o.Action = backends.Complete
					}
					return settle(ctx, o, msgs...)
				}
			}),
		},
		{name: "refuses to send nothing", caught: []string{"send/nothing"}, fault: func(b *faulty) {
			b.send = func(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
				if len(msgs) == 0 {
					return fail("send", id, backends.Invalid, nil)
				}
				return b.real.Send(ctx, id, msgs)
			}
		}},
		{name: "takes the broker part from the sender", caught: []string{"send/ignores-broker-part"}, fault: func(b *faulty) {
			var source string
			b.sent = func(m *message.Message) *message.Message { source = m.Broker.DeadLetterSource; return m }
			b.received = func(_ backends.EntityID, m *message.Message) { m.Broker.DeadLetterSource = source }
		}},
		{name: "changes the message of its caller", caught: []string{"send/keeps-its-own-copy"}, fault: func(b *faulty) {
			b.sent = func(m *message.Message) *message.Message {
				m.Broker.SequenceNumber = 7
				return m
			}
		}},
		{name: "keeps the message of its caller", caught: []string{"send/keeps-its-own-copy"}, fault: func(b *faulty) {
			var last *message.Message
			b.sent = func(m *message.Message) *message.Message { last = m; return m }
			b.received = func(_ backends.EntityID, m *message.Message) {
				broker := m.Broker
				*m = *last.Clone()
				m.Broker = broker
			}
		}},
		{name: "truncates a body at the limit", caught: []string{"send/body-limit", "move/refused", "validate/agrees-with-send"}, fault: func(b *faulty) {
			cut := func(m *message.Message) *message.Message {
				m = m.Clone()
				m.Body.Sections = [][]byte{m.Body.Bytes()[:min(m.Body.Len(), 4<<10)]}
				return m
			}
			b.sent = cut
			b.move = func(ctx context.Context, from backends.EntityID, moves []backends.Move) error {
				for i := range moves {
					moves[i].As = cut(moves[i].As)
				}
				return b.real.Move(ctx, from, moves)
			}
		}},
		{name: "refuses a body at the limit", caught: []string{"send/body-limit"}, fault: func(b *faulty) {
			b.send = func(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
				for _, m := range msgs {
					if m.Body.Len() >= 4<<10 {
						return fail("send", id, backends.TooLarge, nil)
					}
				}
				return b.real.Send(ctx, id, msgs)
			}
		}},
		{name: "sends the rest of a refused batch", caught: []string{"send/body-limit"}, fault: func(b *faulty) {
			b.send = func(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
				errs := make([]error, len(msgs))
				for i, m := range msgs {
					errs[i] = b.real.Send(ctx, id, []*message.Message{m})
				}
				return backends.Batch(errs)
			}
		}},
		{name: "names only the fault of a batch that was not sent", caught: []string{"send/body-limit"}, fault: func(b *faulty) {
			b.send = func(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
				return dropItems(b.real.Send(ctx, id, msgs), backends.Invalid)
			}
		}},
	}
}

// errorMutants answer with other errors than they should.
func errorMutants() []mutant {
	batches := []string{"settle/batch-by-index", "direct/batch-by-index", "move/batch-by-index"}
	onBatch := func(change func(batch *backends.BatchError) error) func(*faulty) {
		return func(b *faulty) {
			b.errs = func(err error) error {
				var batch *backends.BatchError
				if errors.As(err, &batch) {
					return change(batch)
				}
				return err
			}
		}
	}
	return []mutant{
		{name: "finds whatever is missing", caught: []string{
			"send/missing-entity", "lease/missing-entity", "entities/names", "peek/missing-entity", "direct/missing-entity",
			"direct/locked", "direct/batch-by-index", "deferred/missing", "move/missing-source", "move/missing-destination",
			"move/once", "purge/missing-entity",
		}, fault: func(b *faulty) {
			b.errs = func(err error) error {
				if backends.IsCode(err, backends.NotFound) {
					return nil
				}
				return dropItems(err, backends.NotFound)
			}
		}},
		{name: "uses another code", caught: []string{
			"lease/after-release", "lease/expired-lock", "settle/twice", "settle/not-ours", "deferred/competing",
			"move/locked", "direct/locked", "create/queue",
		}, fault: func(b *faulty) {
			b.errs = func(err error) error {
				if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) {
					return err
				}
				return backends.Batch([]error{fail("try", backends.EntityID{}, backends.Denied, errors.New(err.Error()))})
			}
		}},
		{name: "numbers the errors of a batch wrongly", caught: batches, fault: onBatch(func(batch *backends.BatchError) error {
			for i := range batch.Failed {
				batch.Failed[i].Index++
			}
			return batch
		})},
		{name: "names a message twice", caught: batches, fault: onBatch(func(batch *backends.BatchError) error {
			batch.Failed = append(batch.Failed, batch.Failed[0])
			return batch
		})},
		{name: "names the first fault of a batch alone", caught: batches, fault: onBatch(func(batch *backends.BatchError) error {
			return &backends.BatchError{Failed: batch.Failed[:1]}
		})},
		{name: "fails a batch as a whole", caught: batches, fault: onBatch(func(batch *backends.BatchError) error {
			return batch.Failed[0].Err
		})},
	}
}

// dropItems returns err without the messages that failed with the code.
func dropItems(err error, code backends.Code) error {
	var batch *backends.BatchError
	if !errors.As(err, &batch) {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(batch.Failed), func(f backends.ItemError) bool { return backends.IsCode(f.Err, code) })
	if len(left) == 0 {
		return nil
	}
	return &backends.BatchError{Failed: left}
}

// carryMutants do not carry what they are given.
func carryMutants() []mutant {
	onValues := func(change func(v message.Value) message.Value) func(*faulty) {
		return sending(func(m *message.Message) {
			for i, p := range m.Properties {
				m.Properties[i].Value = change(p.Value)
			}
		})
	}
	return []mutant{
		{
			name: "repairs UTF-8 in bodies", caught: []string{"carry/bodies", "deadletter/settle", "move/unedited", "peek/whole-message"},
			fault: sending(func(m *message.Message) {
				for i, s := range m.Body.Sections {
					m.Body.Sections[i] = bytes.ToValidUTF8(s, []byte("?"))
				}
			}),
		},
		{name: "joins body sections", caught: []string{"carry/bodies"}, fault: sending(func(m *message.Message) {
			m.Body.Sections = [][]byte{m.Body.Bytes()}
		})},
		{name: "drops empty body sections", caught: []string{"carry/bodies"}, fault: sending(func(m *message.Message) {
			m.Body.Sections = slices.DeleteFunc(m.Body.Sections, func(s []byte) bool { return len(s) == 0 })
		})},
		{name: "makes every body data", caught: []string{"carry/bodies"}, fault: sending(func(m *message.Message) {
			m.Body.Kind = message.Data
		})},
		{name: "widens integers", caught: []string{"carry/properties"}, fault: onValues(func(v message.Value) message.Value {
			if n, ok := message.Integer(v); ok {
				return message.Long(n)
			}
			return v
		})},
		{name: "writes properties as text", caught: []string{"carry/properties", "settle/sets-properties"}, fault: onValues(func(v message.Value) message.Value {
			return message.String(message.FormatValue(v))
		})},
		{name: "takes symbols for strings", caught: []string{"carry/properties"}, fault: onValues(func(v message.Value) message.Value {
			if s, ok := v.(message.Symbol); ok {
				return message.String(s)
			}
			return v
		})},
		{name: "drops null properties", caught: []string{"carry/properties"}, fault: sending(func(m *message.Message) {
			m.Properties = slices.DeleteFunc(m.Properties, func(a message.Attribute) bool { return a.Value == message.Null{} })
		})},
		{name: "refuses a property without its name", caught: []string{"carry/properties"}, fault: func(b *faulty) {
			b.send = func(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
				for _, p := range msgs[0].Properties {
					if message.KindOf(p.Value) == message.KindMap {
						return fail("send", id, backends.NotCarried, errors.New("maps are not supported"))
					}
				}
				return b.real.Send(ctx, id, msgs)
			}
		}},
		{name: "refuses a property and sends the message", caught: []string{"carry/properties"}, fault: func(b *faulty) {
			b.send = func(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
				for _, p := range msgs[0].Properties {
					if message.KindOf(p.Value) == message.KindDescribed {
						_ = b.real.Send(ctx, id, msgs)
						return fail("send", id, backends.NotCarried, fmt.Errorf("property %s", p.Name))
					}
				}
				return b.real.Send(ctx, id, msgs)
			}
		}},
		{name: "sorts properties", caught: []string{"carry/property-order"}, fault: sending(func(m *message.Message) {
			slices.SortFunc(m.Properties, func(a, b message.Attribute) int { return strings.Compare(a.Name, b.Name) })
		})},
		{name: "drops annotations", caught: []string{"carry/annotations"}, fault: sending(func(m *message.Message) { m.Annotations = nil })},
		{name: "changes delivery annotations", caught: []string{"carry/annotations"}, fault: sending(func(m *message.Message) {
			for i := range m.DeliveryAnnotations {
				m.DeliveryAnnotations[i].Value = message.Int(2)
			}
		})},
		{name: "drops the footer", caught: []string{"carry/annotations"}, fault: sending(func(m *message.Message) { m.Footer = nil })},
		{name: "takes every id for a string", caught: []string{"carry/identifiers"}, fault: sending(func(m *message.Message) {
			if m.CorrelationID != nil {
				m.CorrelationID = message.String(message.FormatValue(m.CorrelationID))
			}
		})},
		{name: "takes empty for absent", caught: []string{"carry/sections"}, fault: sending(func(m *message.Message) {
			if message.Str(m.ReplyToSessionID) == "" {
				m.ReplyToSessionID = nil
			}
		})},
		{name: "fills in what is absent", caught: []string{"carry/sections"}, fault: sending(func(m *message.Message) {
			if m.Priority == nil {
				m.Priority = new(uint8(4))
			}
		})},
	}
}
