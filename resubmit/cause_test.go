package resubmit

import (
	"testing"

	"dlq/backends/message"
)

func TestCauseOf(t *testing.T) {
	for _, tt := range []struct {
		name  string
		props message.Properties
		want  string
	}{
		{"none", message.Properties{{Name: "tenant", Value: message.String("acme")}}, ""},
		{"NServiceBus", message.Properties{
			{Name: "NServiceBus.ExceptionInfo.ExceptionType", Value: message.String("System.TimeoutException")},
			{Name: "NServiceBus.ExceptionInfo.Message", Value: message.String("no answer")},
		}, "System.TimeoutException: no answer"},
		{"trace that begins with both", message.Properties{
			{Name: "NServiceBus.ExceptionInfo.ExceptionType", Value: message.String("E")},
			{Name: "NServiceBus.ExceptionInfo.Message", Value: message.String("text")},
			{Name: "NServiceBus.ExceptionInfo.StackTrace", Value: message.String("E: text\r\n   at X()")},
		}, "E: text"},
		{"MassTransit", message.Properties{
			{Name: "MT-Fault-Message", Value: message.String("only a text")},
			{Name: "MT-Fault-StackTrace", Value: message.String("   at Y()")},
		}, "only a text"},
	} {
		if got := CauseOf(&message.Message{Properties: tt.props}); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
