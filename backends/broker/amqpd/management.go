package amqpd

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// operations returns what an operation does; ok is false for one that is unknown.
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
		o = operation{sas.Manage, (*request).addRule}
	case "remove-rule":
		o = operation{sas.Manage, (*request).removeRule}
	case "enumerate-rules":
		o = operation{sas.Listen, (*request).rules}
	default:
		return o, false
	}
	return o, true
}

// manage answers one request at <entity>/$management. tx is the transaction that it belongs
// to, or nil.
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
	o := broker.PeekOptions{From: max(from, 0), Max: int(min(count, maxPeek)), NoBody: noBody, Session: r.body.text("session-id")}
	if o.Session == nil { // of a link that receives from a session, only that
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

func firstError(errs []error, err error) error {
	for _, one := range errs {
		if err == nil {
			err = one
		}
	}
	return err
}

// held returns the lock of the session that a request is about.
func (r *request) held() (message.UUID, error) {
	token, _, ok := r.c.session(r.a, r.body.text("session-id"), property(r.req, "associated-link-name"))
	if !ok {
		return token, broker.ErrSessionLockLost
	}
	return token, nil
}

func (r *request) renewSessionLock() (message.Map, error) {
	token, err := r.held()
	if err != nil {
		return nil, err
	}
	until, err := r.s.engine.RenewSession(r.a, token)
	return message.Map{{Key: message.String("expiration"), Value: message.TimestampOf(until)}}, err
}

func (r *request) sessionState() (message.Map, error) {
	token, err := r.held()
	if err != nil {
		return nil, err
	}
	state, err := r.s.engine.SessionState(r.a, token)
	var v message.Value = message.Null{}
	if state != nil {
		v = message.Binary(state)
	}
	return message.Map{{Key: message.String("session-state"), Value: v}}, err
}

func (r *request) setSessionState() (message.Map, error) {
	token, err := r.held()
	if err != nil {
		return nil, err
	}
	var state []byte
	switch v := r.body["session-state"].(type) {
	case message.Binary:
		if len(v) > 0 { // none clears it: the Azure SDK for Go has no other way to say so
			state = append([]byte{}, v...)
		}
	case nil, message.Null:
	default:
		return nil, argumentError("session-state has to be binary or null")
	}
	return message.Map{}, r.s.engine.SetSessionState(r.a, token, state)
}

// everTime is what a peer sends as last-updated-time that wants all sessions: the end of
// .NET's time, rounded one way or the other.
const everTime = 253402300799999

func (r *request) sessions() (message.Map, error) {
	var updated time.Time
	if at, ok := r.body["last-updated-time"].(message.Timestamp); ok && at < everTime {
		updated = at.Time()
	}
	skip, _ := r.body.integer("skip")
	top, ok := r.body.integer("top")
	if !ok || top > 1000 {
		top = 1000
	}
	ids, err := r.s.engine.Sessions(r.a, updated)
	if err != nil {
		return nil, err
	}
	ids = ids[min(max(skip, 0), int64(len(ids))):]
	ids = ids[:min(max(top, 0), int64(len(ids)))]
	if len(ids) == 0 {
		return nil, nil
	}
	page := message.Array{Elem: message.KindString}
	for _, id := range ids {
		page.Items = append(page.Items, message.String(id))
	}
	return message.Map{
		{Key: message.String("skip"), Value: message.Int(skip + int64(len(ids)))},
		{Key: message.String("sessions-ids"), Value: page},
	}, nil
}

func (r *request) receiveDeferred() (message.Map, error) {
	seqs, err := r.body.longs("sequence-numbers")
	if err != nil {
		return nil, err
	}
	mode, _ := r.body.integer("receiver-settle-mode")
	o := broker.ReceiveOptions{Delete: mode == amqp.ReceiverFirst}
	if r.sessionful() {
		if o.Session, err = r.held(); err != nil {
			return nil, err
		}
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
	o := broker.Outcome{}
	switch status := r.body.text("disposition-status"); {
	case status == nil:
		return nil, argumentError("disposition-status is missing")
	case *status == "completed":
		o.Action = broker.Complete
	case *status == "abandoned":
		o.Action = broker.Abandon
	case *status == "defered", *status == "deferred":
		o.Action = broker.Defer
	case *status == "suspended":
		o.Action = broker.Bury
	case *status == "renewed":
		return r.renewLock()
	case *status == "unlocked":
		return message.Map{}, r.s.engine.Release(r.a, tokens...)
	default:
		return nil, argumentError(fmt.Sprintf("unknown disposition-status '%s'", *status))
	}
	if set, ok := r.body["properties-to-modify"].(message.Map); ok {
		o.Set = properties(set)
	}
	if o.Action == broker.Bury {
		o.Reason, o.Description = message.Str(r.body.text("deadletter-reason")), message.Str(r.body.text("deadletter-description"))
	}
	var errs []error
	if r.tx != nil {
		errs, err = r.tx.Settle(r.a, o, tokens...)
	} else {
		errs, err = r.s.engine.Settle(r.a, o, tokens...)
	}
	return message.Map{}, firstError(errs, err)
}

func (r *request) schedule() (message.Map, error) {
	entries, _ := r.body["messages"].(message.List)
	if len(entries) == 0 {
		return nil, argumentError("messages has to be a list of messages")
	}
	info, err := r.s.entity(r.a)
	if err == nil {
		err = sendable(info, r.a)
	}
	if err != nil {
		return nil, err
	}
	var all []*message.Message
	for _, entry := range entries {
		fields, _ := entry.(message.Map)
		encoded, ok := argumentsOf(fields)["message"].(message.Binary)
		if !ok {
			return nil, argumentError("an entry of messages has no message")
		}
		if info.MaxMessageBytes > 0 && int64(len(encoded)) > info.MaxMessageBytes {
			return nil, &tooLarge{size: int64(len(encoded)), limit: info.MaxMessageBytes}
		}
		msgs, err := decodeSent(0, encoded)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
		all = append(all, msgs...)
	}
	if r.tx != nil {
		errs, err := r.tx.Send(r.a, nil, all)
		if err = firstError(errs, err); err != nil {
			return nil, err
		}
		return numbers(make([]int64, len(all))), nil // they get their numbers at the commit
	}
	sent, err := r.s.engine.Send(r.a, all)
	if err = refused(sent, err); err != nil {
		return nil, err
	}
	seqs := make([]int64, len(sent))
	for i := range sent {
		seqs[i] = sent[i].Seq
	}
	return numbers(seqs), nil
}

// refused returns why messages were not sent; nil: they were.
func refused(sent []broker.Sent, err error) error {
	var other error
	for _, one := range sent {
		switch {
		case one.Err == nil || err != nil:
		case errors.Is(one.Err, broker.ErrNotSent):
			other = one.Err
		default:
			err = one.Err
		}
	}
	if err == nil {
		err = other
	}
	return err
}

func numbers(seqs []int64) message.Map {
	a := message.Array{Elem: message.KindLong}
	for _, seq := range seqs {
		a.Items = append(a.Items, message.Long(seq))
	}
	return message.Map{{Key: message.String("sequence-numbers"), Value: a}}
}

func (r *request) cancelScheduled() (message.Map, error) {
	seqs, err := r.body.longs("sequence-numbers")
	if err != nil {
		return nil, err
	}
	return message.Map{}, r.s.engine.CancelScheduled(r.a, seqs...)
}

func (r *request) batchDelete() (message.Map, error) {
	count, ok := r.body.integer("message-count")
	if !ok || count < 1 {
		return nil, argumentError("message-count has to be 1 or more")
	}
	o := broker.DeleteBatchOptions{Max: int(min(count, int64(r.s.batchDeleteMax))), Session: r.body.text("session-id")}
	if at, ok := r.body["enqueued-time-utc"].(message.Timestamp); ok {
		o.Before = at.Time()
	}
	n, err := r.s.engine.DeleteBatch(r.a, o)
	if err != nil || n == 0 {
		return nil, err
	}
	return message.Map{{Key: message.String("message-count"), Value: message.Int(n)}}, nil
}
