package amqpd

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"dlq/backends/broker"
	"dlq/backends/message"
)

// goRecovery is what azservicebus v1.11.0 does about the status of a reply (internal/errors.go).
func goRecovery(status int32) string {
	switch status {
	case 401, 404, 410:
		return "gives up"
	case 408, 500, 503:
		return "retries"
	}
	return "reconnects"
}

// TestFailures checks every error that has a name: its status, its condition, its text, and
// whether peers try again. What the tables of the SDKs say of a condition is in the comments of
// their sources; conditions that none of them knows are as good as none.
func TestFailures(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		err       error
		status    int32
		condition message.Symbol
		recovery  string
		text      string // how it begins
	}{
		{broker.ErrNoEntity, 404, "amqp:not-found", "gives up", "The messaging entity 'sb://ns/orders' could not be found. To know more visit https://aka.ms/sbResourceMgrExceptions. TrackingId:"},
		{broker.ErrNoMessage, 404, "com.microsoft:message-not-found", "gives up", "Failed to lock one or more specified messages."},
		{broker.ErrLocked, 404, "com.microsoft:message-not-found", "gives up", "Failed to lock one or more specified messages."},
		{broker.ErrNoSession, 404, "com.microsoft:session-not-found", "gives up", ""},
		{broker.ErrLockLost, 410, "com.microsoft:message-lock-lost", "gives up", "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue, or was received by a different receiver instance."},
		{broker.ErrSessionLockLost, 410, "com.microsoft:session-lock-lost", "gives up", "The session lock was lost. Request a new session receiver."},
		{broker.ErrTransaction, 404, "amqp:transaction:unknown-id", "gives up", ""},
		{errUnknownTransaction, 404, "amqp:transaction:unknown-id", "gives up", ""},
		{errThrottled, 503, "com.microsoft:server-busy", "retries", "The request was terminated because the entity is being throttled. Error code : 50002."},
		{errTimeout, 408, "com.microsoft:timeout", "retries", "The operation did not complete within the allotted timeout of 00:01:00."},
		{errInjected, 500, "amqp:internal-error", "retries", ""},
		{errForced, 500, "amqp:link:detach-forced", "retries", ""},
		{broker.ErrDamaged, 500, "amqp:internal-error", "retries", ""},
		{broker.ErrUnavailable, 500, "amqp:internal-error", "retries", ""},
		{broker.ErrUncertain, 500, "amqp:internal-error", "retries", ""},
		{errors.New("nobody foresaw this"), 500, "amqp:internal-error", "retries", "somewhere: nobody foresaw this TrackingId:"},
		{broker.ErrDisabled, 403, "com.microsoft:entity-disabled", "reconnects", "Messaging entity 'sb://ns/orders' is currently disabled."},
		{broker.ErrFull, 403, "amqp:resource-limit-exceeded", "reconnects", ""},
		{broker.ErrInFlight, 403, "amqp:resource-limit-exceeded", "reconnects", ""},
		{broker.ErrExists, 409, "com.microsoft:entity-already-exists", "reconnects", ""},
		{&takenError{"s"}, 409, "com.microsoft:session-cannot-be-locked", "reconnects", "The requested session 's' cannot be accepted. It may be locked by another receiver."},
		{&tooLarge{7, 289349, 262144}, 413, "amqp:link:message-size-exceeded", "reconnects", "The received message (delivery-id:7, size:289349 bytes) exceeds the limit (262144 bytes) currently allowed on the link."},
		{broker.ErrTooLarge, 413, "amqp:link:message-size-exceeded", "reconnects", ""},
		{broker.ErrNeedsSession, 400, "amqp:not-allowed", "reconnects", "The SessionId was not set on a message, and it cannot be sent to the entity. Entities that have session support enabled can only receive messages that have the SessionId set to a valid value."},
		{broker.ErrInvalid, 400, "com.microsoft:argument-error", "reconnects", ""},
		{broker.ErrUnsupported, 400, "amqp:not-allowed", "reconnects", ""},
		{broker.ErrFilter, 400, "amqp:invalid-field", "reconnects", ""},
		{argumentError("top is missing"), 400, "com.microsoft:argument-error", "reconnects", "top is missing TrackingId:"},
		{errMalformed, 400, "amqp:decode-error", "reconnects", ""},
	} {
		wrapped := fmt.Errorf("somewhere: %w", c.err)
		f := d.server.failed(wrapped, "orders")
		if f.status != c.status || f.condition != c.condition {
			t.Errorf("%v is %d %s, want %d %s", c.err, f.status, f.condition, c.status, c.condition)
		}
		if got := goRecovery(f.status); got != c.recovery {
			t.Errorf("after %v the SDK for Go %s, want %s", c.err, got, c.recovery)
		}
		if !strings.HasPrefix(f.text, c.text) || !suffix.MatchString(f.text) {
			t.Errorf("%v is told as %q, want %q", c.err, f.text, c.text)
		}
		if again := d.server.failed(f, "other"); again != f {
			t.Errorf("told twice, %v becomes %v", f, again)
		}
		if e := f.amqpError(); e.Condition != f.condition || e.Description != f.text {
			t.Errorf("as an AMQP error, %v becomes %v", f, e)
		}
	}
}

// TestFailureOfQuota checks that an entity that is full says how full.
func TestFailureOfQuota(t *testing.T) {
	d := newDesk(t)
	const most = 1 << 30
	for _, kind := range []broker.Kind{broker.Queue, broker.Topic} {
		name := "full" + string(kind)
		d.create(name, kind, func(p *broker.Properties) { p.MaxSize = most })
		info, err := d.engine.Entity(name)
		if err != nil {
			t.Fatal(err)
		}
		word := map[broker.Kind]string{broker.Queue: "Queue", broker.Topic: "Topic"}[kind]
		want := fmt.Sprintf("The maximum entity size has been reached or exceeded for %s: '%s'. Size of entity in bytes:%d, Max entity size in bytes:%d. TrackingId:",
			word, name, info.Size, most)
		f := d.server.failed(fmt.Errorf("%w: so many bytes", broker.ErrQuota), name)
		if f.condition != "amqp:resource-limit-exceeded" || f.status != 403 || !strings.HasPrefix(f.text, want) {
			t.Errorf("%s is told as %v, want %q", name, f, want)
		}
	}
	f := d.server.failed(fmt.Errorf("%w: too many transactions", broker.ErrQuota), "")
	if !strings.Contains(f.text, "too many transactions") {
		t.Errorf("another quota is told as %v", f)
	}
}
