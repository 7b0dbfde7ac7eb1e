package resubmit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"dlq/backends/message"
)

// Signature is how a message failed, without what is particular to it.
type Signature struct {
	ID     string // stable hash of the other two: 8 characters, for --group
	Reason string // dead-letter reason, normalised, with known aliases unified; may be empty
	// Detail is the normalised cause: GUIDs, numbers, times, paths, URLs and quoted ids are
	// placeholders such as {guid}; a stack trace is its exception and first own frame.
	Detail string
}

// signatureVersion goes into every ID. It changes when the same message would get another
// Detail, so that an ID never quietly means something else.
const signatureVersion = "1"

// The parts of a message that go into a signature, at most, in bytes.
const (
	maxCause  = 16 << 10 // read
	maxDetail = 300      // kept
)

// maxDeliveries is the reason that Service Bus gives when a message was delivered too often. It
// says nothing about why each delivery failed.
const maxDeliveries = "MaxDeliveryCountExceeded"

// SignatureOf returns the failure signature of m. It uses the dead-letter reason and
// description, and the exception headers of NServiceBus and MassTransit, since a reason like
// MaxDeliveryCountExceeded names no cause. It does not look at the body, takes time linear in
// the size of the headers, and its IDs stay the same across versions.
func SignatureOf(m *message.Message) Signature {
	s := Signature{Reason: m.DeadLetterReason()}
	switch s.Reason {
	case "MaxDeliveryCountExceededExceptionMessage":
		// The documentation's name for it, which some emulators and older brokers write:
		// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues
		s.Reason = maxDeliveries
	}
	cause := exceptionOf(m)
	if cause == "" && s.Reason != maxDeliveries {
		cause = m.DeadLetterDescription()
	}
	if cause != "" {
		s.Detail = reduceTrace(cause)
	} else if kind := messageType(m); kind != "" {
		s.Detail = "message type " + normalise(kind)
	}
	s.Reason = clip(normalise(s.Reason), maxDetail)
	s.Detail = clip(s.Detail, maxDetail)
	sum := sha256.Sum256([]byte(signatureVersion + "\x00" + s.Reason + "\x00" + s.Detail))
	s.ID = hex.EncodeToString(sum[:4])
	return s
}

// exceptionOf returns what the application's framework noted about the last failure, in the form
// "Type: message" with the stack trace below, or "".
func exceptionOf(m *message.Message) string {
	for _, h := range [...]struct{ kind, text, trace string }{
		{"NServiceBus.ExceptionInfo.ExceptionType", "NServiceBus.ExceptionInfo.Message", "NServiceBus.ExceptionInfo.StackTrace"},
		{"MT-Fault-ExceptionType", "MT-Fault-Message", "MT-Fault-StackTrace"},
	} {
		kind, text, trace := textProperty(m, h.kind), textProperty(m, h.text), textProperty(m, h.trace)
		if kind == "" && text == "" && trace == "" {
			continue
		}
		cause := kind
		// A trace often begins with type and message itself.
		if text != "" && !strings.HasPrefix(trace, kind+": ") {
			cause = strings.TrimPrefix(cause+": "+text, ": ")
		}
		if strings.HasPrefix(trace, kind) && kind != "" {
			return trace
		}
		return strings.TrimPrefix(cause+"\n"+trace, "\n")
	}
	return ""
}

// messageType names the kind of message, for failures that say nothing about their cause.
func messageType(m *message.Message) string {
	for _, name := range [...]string{"NServiceBus.EnclosedMessageTypes", "MT-MessageType", "ce-type", "cloudEvents:type", "cloudEvents_type"} {
		if kind := textProperty(m, name); kind != "" {
			kind, _, _ = strings.Cut(kind, ",") // without assembly, version and base types
			kind, _, _ = strings.Cut(kind, ";")
			return kind
		}
	}
	return message.Str(m.Subject)
}

func textProperty(m *message.Message, name string) string {
	switch v, _ := m.Properties.Get(name); v := v.(type) {
	case message.String:
		return string(v)
	case message.Symbol:
		return string(v)
	}
	return ""
}

// reduceTrace normalises a cause. Of a stack trace it keeps the exception and the first frame
// that is the application's own.
func reduceTrace(cause string) string {
	cause = clip(cause, maxCause)
	var head []string
	frame, first := "", ""
	for line := range strings.Lines(cause) {
		line = strings.TrimSpace(line)
		method, isFrame := frameOf(line)
		switch {
		case isFrame && first == "":
			first = method
		case isFrame || line == "":
		case first == "":
			head = append(head, line)
		}
		if isFrame && frame == "" && ownFrame(method) {
			frame = method
		}
	}
	if frame == "" {
		frame = first
	}
	detail := normalise(strings.Join(head, " "))
	if frame == "" {
		return detail
	}
	return strings.TrimPrefix(clip(detail, maxDetail-len(" at ")-min(len(frame), maxDetail/2))+" at "+clip(frame, maxDetail/2), " ")
}

// frameOf returns the method of a line of a .NET, Java or JavaScript stack trace ("at
// Acme.Orders.Handler.Handle(Order o) in Handler.cs:line 12"), without arguments and place, or
// the function of a Python one (`File "app.py", line 3, in handle`).
func frameOf(line string) (method string, ok bool) {
	if rest, found := strings.CutPrefix(line, "at "); found {
		if i := strings.IndexAny(rest, "( "); i > 0 {
			rest = rest[:i]
		}
		return strings.TrimPrefix(rest, "async "), rest != ""
	}
	if strings.HasPrefix(line, `File "`) {
		if i := strings.LastIndex(line, ", in "); i > 0 {
			return line[i+len(", in "):], true
		}
	}
	return "", false
}

// ownFrame reports whether a method is the application's, not a framework's.
func ownFrame(method string) bool {
	for _, prefix := range [...]string{
		"System.", "Microsoft.", "Azure.", "NServiceBus.", "MassTransit.", "Newtonsoft.",
		"Polly.", "java.", "javax.", "jdk.", "sun.", "org.springframework.", "com.azure.", "com.microsoft.", "node:", "Object.<anonymous>",
		"Promise.", "process.", "async",
	} {
		if strings.HasPrefix(method, prefix) {
			return false
		}
	}
	return true
}

// clip cuts s to at most n bytes, at a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
