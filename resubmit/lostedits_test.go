package resubmit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"dlq/backends/message"
)

func TestLostEdits(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	original := &message.Message{
		Subject:     new("order"),
		Properties:  message.Properties{{Name: "tenant", Value: message.String("a")}, {Name: message.DeadLetterReasonProperty, Value: message.String("r")}},
		Annotations: message.Map{{Key: message.Symbol("x-opt-sequence-number"), Value: message.Long(1)}},
	}
	for _, tt := range []struct {
		name string
		edit func(*message.Message)
		want string // part of the error; "": none
	}{
		{"nothing", func(*message.Message) {}, ""},
		{"what is sent", func(m *message.Message) { m.Subject = new("x"); m.Properties.Set("tenant", message.String("b")) }, ""},
		{"what is stripped anyway is removed", func(m *message.Message) { m.Annotations = nil }, ""},
		{"scheduled", func(m *message.Message) { m.ScheduledEnqueueTime = &at }, "--delay"},
		{"expiry", func(m *message.Message) { m.AbsoluteExpiry = &at }, "use ttl"},
		{"reason", func(m *message.Message) { m.Properties.Set(message.DeadLetterReasonProperty, message.String("x")) }, "DeadLetterReason"},
		{"the broker's annotation", func(m *message.Message) {
			m.Annotations = message.Map{{Key: message.Symbol("x-opt-sequence-number"), Value: message.Long(2)}}
		}, "Annotations"},
	} {
		edited := original.Clone()
		tt.edit(edited)
		err := LostEdits(original, edited)
		if (err != nil) != (tt.want != "") || err != nil && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
