package cmd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/export"
	"dlq/tui/textview"
)

type showOptions struct {
	oneMessage
	format format
	raw    bool
}

func (o *showOptions) addFlags(fs *pflag.FlagSet) {
	o.oneMessage.addFlags(fs)
	addFormatFlag(fs, &o.format)
	fs.BoolVar(&o.raw, "raw", false, "only the bytes of the body, not for a terminal")
}

func newShowCommand(a *app) *cobra.Command {
	var opts showOptions
	c := a.command(about{
		use:   "show ENTITY --seq N|--id ID",
		short: "show one message whole",
		long: `Show one dead letter with its properties, why it died, and its body, decoded where its format is
known. --raw writes the bytes of the body as they are.`,
		effects: "none: no lock is taken and no delivery is counted",
		exits:   []exitCode{exitFailed, exitUsage, exitRefused, exitNothing},
		example: "dlq show orders --seq 42\ndlq show orders --id order-7 --raw > body.bin",
	}, exactly("ENTITY"), func(c *cobra.Command, args []string) error {
		return runShow(c.Context(), a, opts, args[0])
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeEntity
	return c
}

func runShow(ctx context.Context, a *app, opts showOptions, arg string) error {
	if opts.raw && a.outTTY {
		return fail(exitRefused, "add > FILE, or leave --raw out", "raw bytes could take over the terminal")
	}
	id, m, err := opts.find(ctx, a, arg)
	if err != nil {
		return err
	}
	switch {
	case opts.raw:
		_, err := a.out.Write(m.Body.Bytes())
		return err
	case opts.format != table:
		out := newListing(a, opts.format, nil, export.AppendJSON)
		return out.all(succeeding(slices.Values([]*message.Message{m})))
	}
	a.printMessage(id, m)
	return nil
}

// printMessage writes a message for reading, section by section. A section that is empty
// is left out.
func (a *app) printMessage(id backends.EntityID, m *message.Message) {
	a.printHeading(fmt.Sprintf("%s  seq %d", id, m.Broker.SequenceNumber))
	if reason := m.DeadLetterReason(); reason != "" {
		a.printSection("dead-lettered", []field{{"reason", reason}, {"description", m.DeadLetterDescription()}})
	}
	a.printSection("broker", a.brokerFields(m))
	a.printSection("message", headerFields(m))
	a.printSection("application properties", attributeFields(ownProperties(m)))
	a.printSection("annotations", mapFields(m.Annotations))
	a.printSection("delivery annotations", mapFields(m.DeliveryAnnotations))
	a.printSection("footer", mapFields(m.Footer))
	a.printSection("system", attributeFields(m.System))
	a.printBody(m)
}

// field is one line of a section.
type field struct{ name, text string }

// maxFieldName bounds the column of names: a longer one pushes its value aside.
const maxFieldName = 40

// printHeading writes a heading, which is sanitised before it is coloured.
func (a *app) printHeading(text string) {
	a.out.WriteString(a.paint(bold, textview.Sanitise(text)) + "\n")
}

// printSection writes a section with its heading, or nothing when it has no fields.
func (a *app) printSection(title string, fields []field) {
	if len(fields) == 0 {
		return
	}
	a.out.WriteByte('\n')
	a.printHeading(title)
	width := 0
	for _, f := range fields {
		width = max(width, min(textview.Width(f.name), maxFieldName))
	}
	for _, f := range fields {
		lines := textview.SanitiseLines(f.text)
		if len(lines) == 0 {
			lines = []string{""}
		}
		name := textview.Pad(f.name, max(width, textview.Width(f.name)))
		for _, line := range lines {
			a.out.WriteString("  " + strings.TrimRight(name+"  "+line, " ") + "\n")
			name = strings.Repeat(" ", textview.Width(name))
		}
	}
}

// brokerFields is what the broker knows of a message.
func (a *app) brokerFields(m *message.Message) []field {
	b := m.Broker
	out := []field{{"sequence number", strconv.FormatInt(b.SequenceNumber, 10)}}
	if b.EnqueuedSequenceNumber != 0 && b.EnqueuedSequenceNumber != b.SequenceNumber {
		out = append(out, field{"enqueued as", strconv.FormatInt(b.EnqueuedSequenceNumber, 10)})
	}
	if !b.EnqueuedTime.IsZero() {
		out = append(out, field{"enqueued", timeText(b.EnqueuedTime) + ", " + a.age(b.EnqueuedTime) + " ago"})
	}
	if !b.ExpiresAt.IsZero() {
		out = append(out, field{"expires", timeText(b.ExpiresAt)})
	}
	out = append(out, field{"deliveries", strconv.FormatUint(uint64(b.DeliveryCount), 10)}, field{"state", b.State.String()})
	if b.DeadLetterSource != "" {
		out = append(out, field{"dead-lettered by", b.DeadLetterSource})
	}
	return out
}

// headerFields is what the sender said of a message, in the order of AMQP's sections.
func headerFields(m *message.Message) []field {
	var out []field
	add := func(name, text string, there bool) {
		if there {
			out = append(out, field{name, text})
		}
	}
	text := func(name string, s *string) { add(name, message.Str(s), s != nil) }
	when := func(name string, t *time.Time) {
		if t != nil {
			add(name, timeText(*t), true)
		}
	}
	add("id", message.FormatValue(m.ID), m.ID != nil)
	add("correlation id", message.FormatValue(m.CorrelationID), m.CorrelationID != nil)
	text("subject", m.Subject)
	text("session", m.SessionID)
	text("content type", m.ContentType)
	text("content encoding", m.ContentEncoding)
	text("to", m.To)
	text("reply to", m.ReplyTo)
	text("reply to session", m.ReplyToSessionID)
	add("user id", string(m.UserID), m.UserID != nil)
	if m.TTL != nil {
		add("time to live", m.TTL.String(), true)
	}
	if m.Priority != nil {
		add("priority", strconv.Itoa(int(*m.Priority)), true)
	}
	if m.GroupSequence != nil {
		add("group sequence", strconv.FormatUint(uint64(*m.GroupSequence), 10), true)
	}
	add("durable", "yes", m.Durable)
	when("created", m.Created)
	when("absolute expiry", m.AbsoluteExpiry)
	when("scheduled for", m.ScheduledEnqueueTime)
	return out
}

// ownProperties are the application properties without those that are shown as the reason.
func ownProperties(m *message.Message) message.Properties {
	own := slices.Clone(m.Properties)
	if m.DeadLetterReason() != "" {
		own.Delete(message.DeadLetterReasonProperty)
		own.Delete(message.DeadLetterDescriptionProperty)
	}
	return own
}

// attributeFields writes typed values; a string, which most are, without its type.
func attributeFields(list []message.Attribute) []field {
	out := make([]field, len(list))
	for i, at := range list {
		out[i] = typedField(at.Name, at.Value)
	}
	return out
}

func mapFields(m message.Map) []field {
	out := make([]field, len(m))
	for i, p := range m {
		out[i] = typedField(message.FormatValue(p.Key), p.Value)
	}
	return out
}

func typedField(name string, v message.Value) field {
	if kind := message.KindOf(v); kind != message.KindString {
		name += ":" + kind.String()
	}
	return field{name, message.FormatValue(v)}
}

func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
