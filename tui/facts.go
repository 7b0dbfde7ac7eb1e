package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"dlq/backends/message"
	"dlq/resubmit"
	"dlq/tui/textview"
	"dlq/tui/theme"
)

// maxFactBytes is how much of one value the facts show; a body has a pane of its own.
const maxFactBytes = 16 << 10

// factList collects the facts about a message as lines of a given width.
type factList struct {
	theme theme.Theme
	width int
	lines []line
}

// messageFacts are all that is known of a message but its body: why it died first.
func messageFacts(t theme.Theme, m *message.Message, now time.Time, width int) []line {
	f := &factList{theme: t, width: width}
	f.why(m)
	f.fields(m)
	f.properties("APPLICATION PROPERTIES", slices.DeleteFunc(slices.Clone(m.Properties), isWhy))
	f.broker(m, now)
	f.annotations("ANNOTATIONS", m.Annotations)
	f.annotations("DELIVERY ANNOTATIONS", m.DeliveryAnnotations)
	f.annotations("FOOTER", m.Footer)
	f.properties("SYSTEM", m.System)
	return f.lines
}

// isWhy reports whether a property is one of those at the head of the facts.
func isWhy(a message.Attribute) bool {
	return message.KindOf(a.Value) == message.KindString &&
		(a.Name == message.DeadLetterReasonProperty || a.Name == message.DeadLetterDescriptionProperty)
}

func (f *factList) why(m *message.Message) {
	reason, description := m.DeadLetterReason(), m.DeadLetterDescription()
	if reason == "" && description == "" {
		return
	}
	f.text(f.theme.Danger, cmp.Or(reason, "(no reason)"))
	if description != "" {
		f.text(theme.Style{}, description)
	}
	if cause := resubmit.CauseOf(m); cause != "" {
		f.text(f.theme.Warning, cause)
	}
}

func (f *factList) broker(m *message.Message, now time.Time) {
	b := m.Broker
	f.title("BROKER")
	f.fact("sequence", seqText(b.SequenceNumber))
	if !b.EnqueuedTime.IsZero() {
		f.fact("enqueued", instant(b.EnqueuedTime)+"  ("+age(now, b.EnqueuedTime)+" ago)")
	}
	f.fact("deliveries", grouped(int64(b.DeliveryCount)))
	if b.State != message.Active {
		f.fact("state", b.State.String())
	}
	if !b.LockedUntil.IsZero() {
		f.fact("locked until", instant(b.LockedUntil))
	}
	if !b.ExpiresAt.IsZero() {
		f.fact("expires", instant(b.ExpiresAt))
	}
	f.fact("source", b.DeadLetterSource)
	if b.EnqueuedSequenceNumber != 0 {
		f.fact("seq at origin", seqText(b.EnqueuedSequenceNumber))
	}
}

func (f *factList) fields(m *message.Message) {
	f.title("PROPERTIES")
	f.value("message id", m.ID)
	f.fact("subject", message.Str(m.Subject))
	f.fact("content type", message.Str(m.ContentType))
	f.fact("encoding", message.Str(m.ContentEncoding))
	f.value("correlation", m.CorrelationID)
	f.optional("session", m.SessionID)
	f.fact("to", message.Str(m.To))
	f.fact("reply to", message.Str(m.ReplyTo))
	f.optional("reply session", m.ReplyToSessionID)
	if m.TTL != nil {
		f.fact("time to live", m.TTL.String())
	}
	if m.ScheduledEnqueueTime != nil {
		f.fact("scheduled", instant(*m.ScheduledEnqueueTime))
	}
	if m.AbsoluteExpiry != nil {
		f.fact("sender expiry", instant(*m.AbsoluteExpiry))
	}
	if m.Created != nil {
		f.fact("created", instant(*m.Created))
	}
	if m.UserID != nil {
		f.value("user id", message.Binary(m.UserID))
	}
}

func (f *factList) properties(title string, attributes []message.Attribute) {
	for i, a := range attributes {
		if i == 0 {
			f.title(title)
		}
		f.value(a.Name, a.Value)
	}
}

func (f *factList) annotations(title string, pairs message.Map) {
	for i, p := range pairs {
		if i == 0 {
			f.title(title)
		}
		f.value(message.FormatValue(p.Key), p.Value)
	}
}

// title begins a section.
func (f *factList) title(name string) {
	if len(f.lines) > 0 {
		f.lines = append(f.lines, nil)
	}
	f.lines = append(f.lines, line{{name, f.theme.Muted}})
}

// text adds a paragraph.
func (f *factList) text(style theme.Style, text string) {
	for _, row := range wrap(clipped(text), f.width) {
		f.lines = append(f.lines, line{{row, style}})
	}
}

// fact adds a name and a value of no particular type, if there is a value.
func (f *factList) fact(name, value string) {
	if value != "" {
		f.row(name, "", value)
	}
}

// optional adds a text that may be absent, which is not the same as empty.
func (f *factList) optional(name string, value *string) {
	if value != nil {
		f.row(name, "", cmp.Or(*value, `""`))
	}
}

// value adds a name and a typed value. A string does not say its type: nearly all are.
func (f *factList) value(name string, v message.Value) {
	switch kind := message.KindOf(v); kind {
	case 0:
	case message.KindString:
		f.row(name, "", cmp.Or(message.FormatValue(v), `""`))
	default:
		f.row(name, kind.String(), message.FormatValue(v))
	}
}

// row sets a name, its type and a value that wraps beside them. Where the name is long,
// the value begins on the next line.
func (f *factList) row(name, kind, value string) {
	label := line{{textview.Truncate(name, f.width), f.theme.Accent}}
	if kind != "" {
		label = label.add(f.theme.Muted, ":"+kind)
	}
	indent := factLabelWidth
	if label.width() >= factLabelWidth {
		f.lines = append(f.lines, label)
		label, indent = nil, factIndent
	}
	for _, row := range wrap(clipped(value), max(f.width-indent, minTextWidth)) {
		f.lines = append(f.lines, label.padTo(indent).add(theme.Style{}, row))
		label = nil
	}
}

// clipped cuts a value that would fill many screens, and says so.
func clipped(value string) string {
	if len(value) <= maxFactBytes {
		return value
	}
	return strings.TrimRight(prefix(value, maxFactBytes), "\n") + "\n… " + bytesText(int64(len(value)-maxFactBytes)) + " more; X exports the whole"
}

// instant writes a time so that it can be pasted into a log search.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000Z07:00") }
