package amqpd

import (
	"time"

	"dlq/backends/broker"
	"dlq/backends/message"
)

// held returns the lock of the session that a request is about.
func (r *request) held() (message.UUID, error) {
	id, err := r.body.text("session-id")
	if err != nil {
		return message.UUID{}, err
	}
	token, _, ok := r.c.session(r.a, id, property(r.req, "associated-link-name"))
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
var everTime = message.Timestamp(253402300799999).Time()

const maxSessions = 1000 // in a page

func (r *request) sessions() (message.Map, error) {
	var updated time.Time
	at, ok, err := r.body.time("last-updated-time")
	switch {
	case err != nil:
		return nil, err
	case ok && at.IsZero(): // a time like any other, and not the engine's word for none
		updated = at.Add(time.Millisecond)
	case ok && at.Before(everTime):
		updated = at
	}
	skip, top := r.page(maxSessions)
	ids, err := r.s.engine.Sessions(r.a, updated)
	if err != nil {
		return nil, err
	}
	ids = paged(ids, skip, top)
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

// page reads which part of a list is wanted.
func (r *request) page(most int64) (skip, top int64) {
	skip, _ = r.body.integer("skip")
	top, ok := r.body.integer("top")
	if !ok || top > most {
		top = most
	}
	return max(skip, 0), max(top, 0)
}

func paged[T any](all []T, skip, top int64) []T {
	all = all[min(skip, int64(len(all))):]
	return all[:min(top, int64(len(all)))]
}
