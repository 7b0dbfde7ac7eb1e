package amqpd

import (
	"context"
	"errors"
	"fmt"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// managementPrefix begins the names of the operations.
const managementPrefix = "com.microsoft:"

// request is one request at the $management of an entity. Source:
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-request-response
type request struct {
	ctx  context.Context
	s    *Server
	c    requester
	a    broker.Address
	tx   *broker.Transaction // nil: none
	req  *message.Message
	body arguments
}

// An operation answers a request with the entries of the reply's body; nil is no content.
type operation struct {
	right sas.Rights
	do    func(*request) (message.Map, error)
}

// operationNamed returns what an operation does; ok is false for one that is unknown. Rules can
// be changed here with the right to listen; over HTTP that takes the right to manage. Source:
// https://learn.microsoft.com/dotnet/api/azure.messaging.servicebus.servicebusrulemanager
func operationNamed(name string) (o operation, ok bool) {
	switch name {
	case "peek-message":
		o = operation{sas.Listen, (*request).peek}
	case "renew-lock":
		o = operation{sas.Listen, (*request).renewLock}
	case "renew-session-lock":
		o = operation{sas.Listen, (*request).renewSessionLock}
	case "get-session-state":
		o = operation{sas.Listen, (*request).sessionState}
	case "set-session-state":
		o = operation{sas.Listen, (*request).setSessionState}
	case "get-message-sessions":
		o = operation{sas.Listen, (*request).sessions}
	case "receive-by-sequence-number":
		o = operation{sas.Listen, (*request).receiveDeferred}
	case "update-disposition":
		o = operation{sas.Listen, (*request).updateDisposition}
	case "schedule-message":
		o = operation{sas.Send, (*request).schedule}
	case "cancel-scheduled-message":
		o = operation{sas.Send, (*request).cancelScheduled}
	case "batch-delete-messages":
		o = operation{sas.Listen, (*request).batchDelete}
	case "add-rule":
		o = operation{sas.Listen, (*request).addRule}
	case "remove-rule":
		o = operation{sas.Listen, (*request).removeRule}
	case "enumerate-rules":
		o = operation{sas.Listen, (*request).rules}
	default:
		return o, false
	}
	return o, true
}

// manage answers one request at <entity>/$management. tx is the transaction that it belongs
// to, or nil. It returns nil if nobody knows whether what was asked for took effect.
func (s *Server) manage(ctx context.Context, c requester, a broker.Address, tx *broker.Transaction, req *message.Message) *message.Message {
	name := property(req, "operation")
	short, prefixed := cutPrefixFold(name, managementPrefix)
	o, ok := operationNamed(short)
	if !ok || !prefixed {
		return s.reply(req, failure{501, "amqp:not-implemented", s.suffixed(fmt.Sprintf("The operation '%s' is not implemented.", name), path(a))}, nil)
	}
	if err := c.may(path(a), o.right); err != nil {
		return s.refusal(req, err, path(a))
	}
	body, err := readArguments(req)
	if err != nil {
		return s.refusal(req, err, path(a))
	}
	r := &request{ctx: ctx, s: s, c: c, a: a, tx: tx, req: req, body: body}
	result, err := o.do(r)
	switch {
	case errors.Is(err, broker.ErrUncertain):
		return nil
	case err != nil:
		return s.refusal(req, err, path(a))
	case result == nil:
		return s.reply(req, failure{status: 204, text: "No Content"}, message.Map{})
	}
	return s.reply(req, failure{status: 200, text: "OK"}, result)
}

// refusal answers a request with an error.
func (s *Server) refusal(req *message.Message, err error, entity string) *message.Message {
	return s.reply(req, s.failed(err, entity), nil)
}

// reply is an answer of $management. Peers look for the status under one of two names.
func (s *Server) reply(req *message.Message, f failure, body message.Map) *message.Message {
	m := &message.Message{Properties: message.Properties{
		{Name: "statusCode", Value: message.Int(f.status)},
		{Name: "status-code", Value: message.Int(f.status)},
		{Name: "statusDescription", Value: message.String(f.text)},
		{Name: "status-description", Value: message.String(f.text)},
	}}
	if f.condition != "" { // on success some peers take it for a failure
		m.Properties.Set("errorCondition", f.condition)
		m.Properties.Set("error-condition", f.condition)
	}
	if v, ok := req.Properties.Get("com.microsoft:tracking-id"); ok {
		m.Properties.Set("com.microsoft:tracking-id", v)
	}
	var value message.Value = message.Null{}
	if body != nil {
		value = body
	}
	encoded, err := amqp.AppendValue(nil, value)
	if err != nil { // an answer that is larger than a message can be
		s.log("encode an answer of $management: %v", err)
		return s.reply(req, failure{500, "amqp:internal-error", s.suffixed("The answer cannot be encoded.", "")}, nil)
	}
	m.Body = message.Body{Kind: message.ValueBody, Sections: [][]byte{encoded}}
	return m
}

// Bounds of a page of a peek. Bodies count; the first message is there however large it is.
const (
	maxPeek      = 250
	maxPeekBytes = 1 << 20
)

func (r *request) peek() (message.Map, error) {
	from, _ := r.body.integer("from-sequence-number")
	count, ok := r.body.integer("message-count")
	if !ok || count < 1 {
		return nil, argumentError("message-count has to be 1 or more")
	}
	noBody, _ := r.body.boolean("omit-message-body")
	session, err := r.body.text("session-id")
	if err != nil {
		return nil, err
	}
	o := broker.PeekOptions{From: max(from, 0), Max: int(min(count, maxPeek)), NoBody: noBody, Session: session}
	if session == nil { // of a link that receives from a session, only that
		if _, id, ok := r.c.session(r.a, nil, property(r.req, "associated-link-name")); ok {
			o.Session = &id
		}
	}
	msgs, err := r.s.engine.Peek(r.a, o)
	if err != nil || len(msgs) == 0 {
		return nil, err
	}
	list := message.List{}
	size := 0
	for _, m := range msgs {
		b, err := appendDelivery(nil, m, deliveryOptions{peeked: true, noBody: noBody})
		if err != nil {
			return nil, err
		}
		if size += len(b); size > maxPeekBytes && len(list) > 0 {
			break
		}
		list = append(list, message.Map{{Key: message.String("message"), Value: message.Binary(b)}})
	}
	return message.Map{{Key: message.String("messages"), Value: list}}, nil
}

func (r *request) renewLock() (message.Map, error) {
	tokens, err := r.body.uuids("lock-tokens")
	if err != nil {
		return nil, err
	}
	errs, err := r.s.engine.Renew(r.a, tokens...)
	if err = firstError(errs, err); err != nil {
		return nil, err
	}
	info, err := r.s.engine.Entity(r.a.Name)
	if err != nil {
		return nil, err
	}
	until := message.TimestampOf(r.s.now().Add(info.LockDuration))
	expirations := message.Array{Elem: message.KindTimestamp}
	for range tokens {
		expirations.Items = append(expirations.Items, until)
	}
	return message.Map{{Key: message.String("expirations"), Value: expirations}}, nil
}

// firstError returns why something was not done, rather than that something else was not done
// because of it.
func firstError(errs []error, err error) error {
	for _, one := range errs {
		if err == nil || one != nil && errors.Is(err, broker.ErrNotSent) {
			err = one
		}
	}
	return err
}

func (r *request) receiveDeferred() (message.Map, error) {
	seqs, err := r.body.longs("sequence-numbers")
	if err != nil {
		return nil, err
	}
	mode, given := r.body.integer("receiver-settle-mode")
	if v := r.body["receiver-settle-mode"]; v != nil && (!given || mode != amqp.ReceiverFirst && mode != amqp.ReceiverSecond) {
		return nil, argumentError("receiver-settle-mode has to be 0 or 1")
	}
	o := broker.ReceiveOptions{Delete: given && mode == amqp.ReceiverFirst}
	if r.sessionful() {
		if o.Session, err = r.held(); err != nil {
			return nil, err
		}
	}
	if err := r.replyable(seqs, maxDeferredBytes); err != nil {
		return nil, err
	}
	msgs, err := r.s.engine.ReceiveDeferred(r.a, o, seqs...)
	if err != nil {
		return nil, err
	}
	list := message.List{}
	for _, m := range msgs {
		b, err := appendDelivery(nil, m, deliveryOptions{})
		if err != nil {
			return nil, err
		}
		list = append(list, message.Map{
			{Key: message.String("lock-token"), Value: m.Broker.LockToken},
			{Key: message.String("message"), Value: message.Binary(b)},
		})
	}
	return message.Map{{Key: message.String("messages"), Value: list}}, nil
}

// Bounds of what is received by number in one reply, which has to hold all of it.
const (
	maxDeferred      = 1000
	maxDeferredBytes = 64 << 20
)

// replyable refuses to receive more than goes into a reply, unless it is a single message.
func (r *request) replyable(seqs []int64, most int64) error {
	if len(seqs) > maxDeferred {
		return argumentError(fmt.Sprintf("at most %d messages can be received by their numbers at once", maxDeferred))
	}
	var size int64
	for _, seq := range seqs {
		page, err := r.s.engine.Peek(r.a, broker.PeekOptions{From: seq, Max: 1, NoBody: true})
		if err != nil {
			return err
		}
		for _, m := range page {
			if size += m.Broker.BodySize; size > most && len(seqs) > 1 {
				return argumentError("the messages are too large to be received at once; ask for fewer")
			}
		}
	}
	return nil
}

// sessionful reports whether the messages here belong to sessions.
func (r *request) sessionful() bool {
	info, err := r.s.engine.Entity(r.a.Name)
	return err == nil && info.RequiresSession && r.a.Sub == broker.Main
}

func (r *request) updateDisposition() (message.Map, error) {
	tokens, err := r.body.uuids("lock-tokens")
	if err != nil {
		return nil, err
	}
	status, err := r.body.needed("disposition-status")
	if err != nil {
		return nil, err
	}
	switch status {
	case "renewed":
		return r.renewLock()
	case "unlocked":
		return message.Map{}, r.s.engine.Release(r.a, tokens...)
	}
	o, err := r.outcome(status)
	if err != nil {
		return nil, err
	}
	var errs []error
	if r.tx != nil {
		errs, err = r.tx.Settle(r.a, o, tokens...)
	} else {
		errs, err = r.s.engine.Settle(r.a, o, tokens...)
	}
	return message.Map{}, firstError(errs, err)
}

// outcome reads what is to become of messages.
func (r *request) outcome(status string) (o broker.Outcome, err error) {
	switch status {
	case "completed":
		o.Action = broker.Complete
	case "abandoned":
		o.Action = broker.Abandon
	case "defered", "deferred": // the service spells it with one r
		o.Action = broker.Defer
	case "suspended":
		o.Action = broker.Bury
	default:
		return o, argumentError(fmt.Sprintf("unknown disposition-status '%s'", status))
	}
	_, set, err := r.body.fields("properties-to-modify")
	if err != nil {
		return o, err
	}
	o.Set = properties(set)
	if o.Action != broker.Bury {
		return o, nil
	}
	reason, err := r.body.text("deadletter-reason")
	if err != nil {
		return o, err
	}
	description, err := r.body.text("deadletter-description")
	o.Reason, o.Description = message.Str(reason), message.Str(description)
	return o, err
}
