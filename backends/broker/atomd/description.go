package atomd

import (
	"net/url"
	"strings"
	"time"

	"dlq/backends/broker"
)

var kindNames = map[broker.Kind]string{broker.Queue: "Queue", broker.Topic: "Topic", broker.Subscription: "Subscription"}

// description writes the description of an entity, every element in the order of the service:
// some clients fail where one is missing.
func (c *call) description(w *writer, info broker.Info) {
	name := kindNames[info.Kind] + "Description"
	w.open(name, "xmlns", busSpace, "xmlns:i", instanceSpace)
	switch info.Kind {
	case broker.Queue:
		c.queue(w, &info)
	case broker.Topic:
		c.topic(w, &info)
	default:
		c.subscription(w, &info)
	}
	w.close(name)
}

// span writes a duration, as it was given if it was. One without end is the longest of .NET.
func span(w *writer, info *broker.Info, name string, d time.Duration) {
	text := broker.MaxTimeSpan
	if d > 0 {
		text = broker.FormatISODuration(d)
	}
	w.text(name, kept(&info.Properties, info.Kind, name, text))
}

// destination writes where to an entity forwards, as it was given if it was.
func destination(w *writer, info *broker.Info, name, to string) {
	w.optional(name, kept(&info.Properties, info.Kind, name, to))
}

func (c *call) queue(w *writer, info *broker.Info) {
	span(w, info, "LockDuration", info.LockDuration)
	w.number("MaxSizeInMegabytes", megabytes(&info.Properties))
	w.flag("RequiresDuplicateDetection", info.DetectDuplicates)
	w.flag("RequiresSession", info.RequiresSession)
	span(w, info, "DefaultMessageTimeToLive", info.DefaultTTL)
	w.flag("DeadLetteringOnMessageExpiration", info.DeadLetterOnExpiration)
	span(w, info, "DuplicateDetectionHistoryTimeWindow", info.DuplicateWindow)
	w.number("MaxDeliveryCount", int64(info.MaxDeliveryCount))
	w.flag("EnableBatchedOperations", info.BatchedOperations)
	w.number("SizeInBytes", info.Size)
	w.number("MessageCount", messages(info))
	keptFlag(w, info, "IsAnonymousAccessible")
	writeKeys(w, info)
	w.text("Status", string(info.Status))
	destination(w, info, "ForwardTo", info.ForwardTo)
	metadata(w, info)
	w.time("CreatedAt", info.Created)
	w.time("UpdatedAt", info.Modified)
	accessed(w, info)
	w.flag("SupportOrdering", info.SupportOrdering)
	counts(w, info)
	span(w, info, "AutoDeleteOnIdle", info.AutoDeleteOnIdle)
	w.flag("EnablePartitioning", info.Partitioning)
	destination(w, info, "ForwardDeadLetteredMessagesTo", info.ForwardDeadLettersTo)
	w.text("EntityAvailabilityStatus", "Available")
	keptFlag(w, info, "EnableExpress")
	w.number("MaxMessageSizeInKilobytes", info.MaxMessageBytes>>10)
}

func (c *call) topic(w *writer, info *broker.Info) {
	span(w, info, "DefaultMessageTimeToLive", info.DefaultTTL)
	w.number("MaxSizeInMegabytes", megabytes(&info.Properties))
	w.flag("RequiresDuplicateDetection", info.DetectDuplicates)
	span(w, info, "DuplicateDetectionHistoryTimeWindow", info.DuplicateWindow)
	w.flag("EnableBatchedOperations", info.BatchedOperations)
	w.number("SizeInBytes", info.Size)
	w.flag("FilteringMessagesBeforePublishing", info.FilterBeforePublishing)
	keptFlag(w, info, "IsAnonymousAccessible")
	writeKeys(w, info)
	w.text("Status", string(info.Status))
	metadata(w, info)
	w.time("CreatedAt", info.Created)
	w.time("UpdatedAt", info.Modified)
	accessed(w, info)
	w.flag("SupportOrdering", info.SupportOrdering)
	scheduledOnly := *info // a topic holds nothing else; its subscriptions tell their own
	scheduledOnly.Active, scheduledOnly.Deferred, scheduledOnly.DeadLetter, scheduledOnly.TransferDeadLetter = 0, 0, 0, 0
	counts(w, &scheduledOnly)
	subscriptions, _ := c.subscriptionsOf(info.Name) // fails where the next request will fail, too
	w.number("SubscriptionCount", int64(len(subscriptions)))
	span(w, info, "AutoDeleteOnIdle", info.AutoDeleteOnIdle)
	w.flag("EnablePartitioning", info.Partitioning)
	w.text("EntityAvailabilityStatus", "Available")
	keptFlag(w, info, "EnableSubscriptionPartitioning")
	keptFlag(w, info, "EnableExpress")
	w.number("MaxMessageSizeInKilobytes", info.MaxMessageBytes>>10)
	if c.api >= "2024-05" {
		sql, correlation := c.filters(subscriptions)
		w.number("SqlFilterCount", sql)
		w.number("CorrelationFilterCount", correlation)
	}
}

func (c *call) subscription(w *writer, info *broker.Info) {
	span(w, info, "LockDuration", info.LockDuration)
	w.flag("RequiresSession", info.RequiresSession)
	span(w, info, "DefaultMessageTimeToLive", info.DefaultTTL)
	w.flag("DeadLetteringOnMessageExpiration", info.DeadLetterOnExpiration)
	w.flag("DeadLetteringOnFilterEvaluationExceptions", info.DeadLetterOnFilterError)
	w.number("MessageCount", messages(info))
	w.number("MaxDeliveryCount", int64(info.MaxDeliveryCount))
	w.flag("EnableBatchedOperations", info.BatchedOperations)
	w.text("Status", string(info.Status))
	destination(w, info, "ForwardTo", info.ForwardTo)
	metadata(w, info)
	destination(w, info, "ForwardDeadLetteredMessagesTo", info.ForwardDeadLettersTo)
	w.time("CreatedAt", info.Created)
	w.time("UpdatedAt", info.Modified)
	if used := info.Accessed; used.After(info.Created) {
		w.time("AccessedAt", used)
	} else {
		w.time("AccessedAt", info.Created)
	}
	counts(w, info)
	span(w, info, "AutoDeleteOnIdle", info.AutoDeleteOnIdle)
	w.text("EntityAvailabilityStatus", "Available")
}

// megabytes is the size that an entity may have; one without a bound says the largest of the
// service.
func megabytes(p *broker.Properties) int64 {
	if p.MaxSize == 0 {
		return 81920
	}
	return p.MaxSize >> 20
}

// metadata writes the text that the entity's owner gave it, which may be empty.
func metadata(w *writer, info *broker.Info) {
	if _, given := info.Extra[extraPrefix+"UserMetadata"]; given || info.UserMetadata != "" {
		w.text("UserMetadata", info.UserMetadata)
	}
}

// accessed is when the entity was last used; clients know the text for never.
func accessed(w *writer, info *broker.Info) {
	if !info.Accessed.After(info.Modified) {
		w.text("AccessedAt", "0001-01-01T00:00:00")
		return
	}
	w.time("AccessedAt", info.Accessed)
}

// messages is how many an entity holds, whatever their state.
func messages(info *broker.Info) int64 {
	return info.Active + info.Deferred + info.DeadLetter + info.Scheduled + info.TransferDeadLetter
}

// counts writes how many there are of each kind. Deferred messages count as active.
func counts(w *writer, info *broker.Info) {
	w.open("CountDetails", "xmlns:d2p1", countSpace)
	w.number("d2p1:ActiveMessageCount", info.Active+info.Deferred)
	w.number("d2p1:DeadLetterMessageCount", info.DeadLetter)
	w.number("d2p1:ScheduledMessageCount", info.Scheduled)
	w.number("d2p1:TransferMessageCount", 0)
	w.number("d2p1:TransferDeadLetterMessageCount", info.TransferDeadLetter)
	w.close("CountDetails")
}

// filters counts the rules of subscriptions by their filters. Those that are always true or
// false count as SQL.
func (c *call) filters(subscriptions []broker.Info) (sql, correlation int64) {
	for _, info := range subscriptions {
		rules, err := c.s.Engine.Rules(info.Name)
		if err != nil {
			continue // it went just now
		}
		for _, r := range rules {
			if r.Filter.Kind == broker.CorrelationFilter {
				correlation++
			} else {
				sql++
			}
		}
	}
	return sql, correlation
}

// head is what an entry says about an entity beside its description.
type head struct {
	path, title        string
	published, updated time.Time
}

func (c *call) entityHead(info broker.Info) head {
	title := info.Name
	if info.Kind == broker.Subscription {
		title = title[strings.LastIndexByte(title, '/')+1:]
	}
	return head{info.Name, title, info.Created, info.Modified}
}

func (c *call) url(path, query string) string {
	if c.api != "" {
		query = strings.TrimPrefix(query+"&api-version="+url.QueryEscape(c.api), "&")
	}
	if query != "" {
		query = "?" + query
	}
	return c.base + "/" + path + query
}

// openEntry begins an entry up to its description.
func (c *call) openEntry(w *writer, h head, root bool) {
	if root {
		w.open("entry", "xmlns", atomSpace)
	} else {
		w.open("entry")
	}
	w.text("id", c.url(h.path, ""))
	w.text("title", h.title, "type", "text")
	w.text("published", h.published.UTC().Format(time.RFC3339))
	w.text("updated", h.updated.UTC().Format(time.RFC3339))
	w.open("author")
	w.text("name", c.s.Namespace)
	w.close("author")
	w.text("link", "", "rel", "self", "href", c.url(h.path, ""))
	w.open("content", "type", "application/xml")
}

func (c *call) closeEntry(w *writer) {
	w.close("content")
	w.close("entry")
}

// namespaceInfo describes the namespace.
func (c *call) namespaceInfo() error {
	if c.r.Method != "GET" {
		return notAllowed(c.r.Method)
	}
	ok, err := c.allowed("")
	if err != nil {
		return err
	}
	if !ok {
		return problem{401, "Manage,EntityRead claims required for this operation."}
	}
	made := time.Unix(1_600_000_000, 0) // a namespace has no time of its own here
	w := newWriter()
	c.openEntry(w, head{"$namespaceinfo", c.s.Namespace, made, made}, true)
	w.open("NamespaceInfo", "xmlns", busSpace, "xmlns:i", instanceSpace)
	w.time("CreatedTime", made)
	w.text("MessagingSKU", c.s.SKU)
	if c.s.SKU == "Premium" {
		w.number("MessagingUnits", 1)
	}
	w.time("ModifiedTime", made)
	w.text("Name", c.s.Namespace)
	w.text("NamespaceType", "Messaging")
	w.close("NamespaceInfo")
	c.closeEntry(w)
	c.answer(200, "entry", w)
	return nil
}
