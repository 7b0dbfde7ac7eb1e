package amqpd

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// failure is what a peer is told: an AMQP error, or the status of a reply.
type failure struct {
	status    int32
	condition message.Symbol
	text      string // ends with what support asks for: see suffixed
}

// Error makes it a Go error.
func (f failure) Error() string { return string(f.condition) + ": " + f.text }

// A known pairs an error with what a peer is told. Peers decide by condition and status
// whether they try again. Source:
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-troubleshoot
type known struct {
	err       error
	status    int32
	condition message.Symbol
	text      string // "": that of the error; %s is the entity
}

// knownErrors are looked at in this order.
var knownErrors = []known{
	{errThrottled, 503, "com.microsoft:server-busy", "The request was terminated because the entity is being throttled. Error code : 50002. Please wait 10 seconds and try again."},
	{errInjected, 500, "amqp:internal-error", "The service was unable to process the request; please retry the operation."},
	{errForced, 500, "amqp:link:detach-forced", "The link is force detached by the broker."},
	{errTimeout, 408, "com.microsoft:timeout", "The operation did not complete within the allotted timeout of 00:01:00. The time allotted to this operation may have been a portion of a longer timeout."},
	{errUnknownTransaction, 404, "amqp:transaction:unknown-id", ""},
	{errMalformed, 400, "amqp:decode-error", ""},
	{errRolledBack, 400, "amqp:transaction:rollback", ""},
	{errOutcome, 400, "amqp:not-allowed", ""},
	{broker.ErrSessionLockLost, 410, "com.microsoft:session-lock-lost", "The session lock was lost. Request a new session receiver."},
	{broker.ErrLockLost, 410, "com.microsoft:message-lock-lost", "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue, or was received by a different receiver instance."},
	{broker.ErrNoEntity, 404, "amqp:not-found", "The messaging entity '%s' could not be found. To know more visit https://aka.ms/sbResourceMgrExceptions."},
	{broker.ErrDisabled, 403, "com.microsoft:entity-disabled", "Messaging entity '%s' is currently disabled."},
	{broker.ErrNoMessage, 404, "com.microsoft:message-not-found", "Failed to lock one or more specified messages. Either the message is already locked or does not exist."},
	{broker.ErrLocked, 404, "com.microsoft:message-not-found", "Failed to lock one or more specified messages. Either the message is already locked or does not exist."},
	{broker.ErrNoSession, 404, "com.microsoft:session-not-found", ""},
	{broker.ErrExists, 409, "com.microsoft:entity-already-exists", ""},
	{broker.ErrQuota, 403, "amqp:resource-limit-exceeded", ""},
	{broker.ErrFull, 403, "amqp:resource-limit-exceeded", ""},
	{broker.ErrInFlight, 403, "amqp:resource-limit-exceeded", ""},
	{broker.ErrTooLarge, 413, "amqp:link:message-size-exceeded", ""},
	{broker.ErrFilter, 400, "amqp:invalid-field", ""},
	{broker.ErrTransaction, 404, "amqp:transaction:unknown-id", ""},
	{broker.ErrNeedsSession, 400, "amqp:not-allowed", "The SessionId was not set on a message, and it cannot be sent to the entity. Entities that have session support enabled can only receive messages that have the SessionId set to a valid value."},
	{broker.ErrInvalid, 400, "com.microsoft:argument-error", ""},
	{broker.ErrUnsupported, 400, "amqp:not-allowed", ""},
	{broker.ErrDamaged, 500, "amqp:internal-error", ""},
}

// failed says what a peer is told about an error. An error that nobody foresaw is the
// server's: the peer may try again.
func (s *Server) failed(err error, entity string) failure {
	var f failure
	if errors.As(err, &f) {
		return f
	}
	var word notAllowed
	if errors.As(err, &word) {
		return failure{400, "amqp:not-allowed", s.suffixed(string(word), entity)}
	}
	var argument argumentError
	if errors.As(err, &argument) {
		return failure{400, "com.microsoft:argument-error", s.suffixed(string(argument), entity)}
	}
	var taken *takenError
	if errors.As(err, &taken) {
		return failure{409, "com.microsoft:session-cannot-be-locked", s.suffixed(taken.Error(), entity)}
	}
	var large *tooLarge
	if errors.As(err, &large) {
		return failure{413, "amqp:link:message-size-exceeded", s.suffixed(large.Error(), entity)}
	}
	for _, k := range knownErrors {
		if !errors.Is(err, k.err) {
			continue
		}
		text := k.text
		switch {
		case errors.Is(err, broker.ErrQuota):
			text = s.quotaText(err, entity)
		case text == "":
			text = err.Error()
		case strings.Contains(text, "%s"):
			text = fmt.Sprintf(text, s.uri(entity))
		}
		return failure{k.status, k.condition, s.suffixed(text, entity)}
	}
	return failure{500, "amqp:internal-error", s.suffixed(err.Error(), entity)}
}

// quotaText says how full an entity is, in the words of the service.
func (s *Server) quotaText(err error, entity string) string {
	a, _ := parseAddress(entity)
	info, unknown := s.engine.Entity(a.Name)
	if unknown != nil || info.MaxSize == 0 { // it is another quota
		return err.Error()
	}
	kinds := map[broker.Kind]string{broker.Queue: "Queue", broker.Topic: "Topic", broker.Subscription: "Subscription"}
	return fmt.Sprintf("The maximum entity size has been reached or exceeded for %s: '%s'. Size of entity in bytes:%d, Max entity size in bytes:%d.",
		kinds[info.Kind], info.Name, info.Size, info.MaxSize)
}

// suffixed appends what users of the service put into reports, and what its clients look
// for.
func (s *Server) suffixed(text, entity string) string {
	return fmt.Sprintf("%s TrackingId:%s_G0, SystemTracker:%s:%s, Timestamp:%s",
		text, newID(), s.namespace, entity, s.now().UTC().Format(time.DateOnly+"T"+time.TimeOnly))
}

// rightNames are how the texts call the rights.
var rightNames = map[sas.Rights]string{sas.Send: "Send", sas.Listen: "Listen", sas.Manage: "Manage"}

// unauthorized says which claim is missing.
func (s *Server) unauthorized(entity string, right sas.Rights) failure {
	text := fmt.Sprintf("Unauthorized access. '%s' claim(s) are required to perform this operation. Resource: '%s'.",
		rightNames[right], s.uri(entity))
	return failure{401, "amqp:unauthorized-access", s.suffixed(text, entity)}
}

// amqpError is the failure as AMQP tells it.
func (f failure) amqpError() *amqp.Error {
	return &amqp.Error{Condition: f.condition, Description: f.text}
}
