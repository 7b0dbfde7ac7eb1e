package resubmit

import (
	"fmt"
	"slices"
	"strings"

	"dlq/backends/message"
)

// LostEdits reports an edit that would not be sent, since a resubmit takes off what it changes
// (see [Outgoing]): a person who wrote it must not believe that it went out. The error wraps
// [ErrRefused] and names the fields.
func LostEdits(original, edited *message.Message) error {
	sent := Outgoing(edited)
	stripped := message.Diff(edited, sent)
	var lost []string
	for _, name := range message.Diff(original, edited) {
		switch {
		case !slices.Contains(stripped, name):
		case name == "Annotations" && !addsTo(original.Annotations, edited.Annotations, sent.Annotations):
		case name == "DeliveryAnnotations" && !addsTo(original.DeliveryAnnotations, edited.DeliveryAnnotations, sent.DeliveryAnnotations):
		case name == "ScheduledEnqueueTime":
			lost = append(lost, "scheduled (use dlq resubmit --delay)")
		case name == "AbsoluteExpiry":
			lost = append(lost, "absolute-expiry (use ttl)")
		default:
			lost = append(lost, strings.TrimPrefix(name, "Properties."))
		}
	}
	if lost == nil {
		return nil
	}
	return fmt.Errorf("%w, nothing was sent: a resubmit clears %s", ErrRefused, strings.Join(lost, ", "))
}

// addsTo reports whether an edited map holds something new that is not sent.
func addsTo(original, edited, sent message.Map) bool {
	return slices.ContainsFunc(edited, func(p message.Pair) bool {
		same := func(q message.Pair) bool {
			return message.EqualValues(p.Key, q.Key) && message.EqualValues(p.Value, q.Value)
		}
		return !slices.ContainsFunc(sent, same) && !slices.ContainsFunc(original, same)
	})
}
