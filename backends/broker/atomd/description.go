package atomd

import (
	"strconv"
	"strings"
	"time"

	"dlq/backends/broker"
)

// immutable are the elements that cannot be changed once an entity is there.
var immutable = map[string]string{
	"RequiresSession":            "The value for the RequiresSession property of an existing %s cannot be changed.",
	"RequiresDuplicateDetection": "The value for the RequiresDuplicateDetection property of an existing %s cannot be changed.",
	"EnablePartitioning":         "Partitioning cannot be changed for %s. ",
}

var kindNames = map[broker.Kind]string{broker.Queue: "Queue", broker.Topic: "Topic", broker.Subscription: "Subscription"}

// apply sets what a description says, of an entity that is to be made or is there. What it
// leaves out stays as it is.
func (c *call) apply(p *broker.Properties, kind broker.Kind, name string, d *element, isNew bool) error {
	for _, e := range d.children {
		text := strings.TrimSpace(e.text)
		if err := c.set(p, kind, e, text, isNew); err != nil {
			return err
		}
	}
	if isNew && p.Partitioning {
		p.SupportOrdering = d.str("SupportOrdering") != nil && p.SupportOrdering
		if p.MaxSize > 0 && p.MaxSize <= 5<<30 {
			p.MaxSize *= partitions
		}
	}
	own := strings.ToLower(name)
	if strings.ToLower(p.ForwardTo) == own || strings.ToLower(p.ForwardDeadLettersTo) == own {
		return badRequest("An entity cannot forward to itself.")
	}
	if c.s.Tier != nil {
		if err := c.s.Tier.Check(kind, p); err != nil {
			return badRequest("%v.", err)
		}
	}
	return nil
}

// partitions is how many a partitioned entity has, each with the size that was asked for.
const partitions = 16

// set sets one element. Those that are the service's to say, such as counts, are passed over:
// clients send back what they got.
func (c *call) set(p *broker.Properties, kind broker.Kind, e *element, text string, isNew bool) error {
	name := e.name
	switch name {
	case "AuthorizationRules":
		return c.setRules(p, e)
	case "MaxSizeInMegabytes":
		if kind == broker.Subscription {
			return nil
		}
		return setSize(p, kind, text, isNew)
	case "UserMetadata", "ForwardTo", "ForwardDeadLetteredMessagesTo":
	case "DefaultMessageTimeToLive", "AutoDeleteOnIdle", "LockDuration", "DuplicateDetectionHistoryTimeWindow", "Status",
		"RequiresSession", "RequiresDuplicateDetection", "EnablePartitioning", "MaxDeliveryCount", "EnableBatchedOperations",
		"DeadLetteringOnMessageExpiration", "DeadLetteringOnFilterEvaluationExceptions", "FilteringMessagesBeforePublishing",
		"SupportOrdering", "MaxMessageSizeInKilobytes":
		if text == "" {
			return nil
		}
	default:
		for _, other := range unused {
			if name == other {
				keep(p, name, text)
			}
		}
		return nil
	}
	before := value(p, kind, name)
	if err := p.Set(kind, name, text); err != nil {
		return worded(name, err)
	}
	if format, fixed := immutable[name]; fixed && !isNew && value(p, kind, name) != before {
		return badRequest(format, kindNames[kind])
	}
	for _, one := range textual {
		if one == name {
			keep(p, name, text)
		}
	}
	return nil
}

// worded says what is wrong with a value in the words of the service where they are known.
func worded(name string, err error) error {
	if name == "LockDuration" && strings.Contains(err.Error(), "out of range") {
		return badRequest("The supplied lock time exceeds the allowed maximum of '5' minutes. %v.", err)
	}
	return badRequest("%v.", err)
}

// setSize sets the size of an entity. That of one that is partitioned is multiplied when it is
// made.
func setSize(p *broker.Properties, kind broker.Kind, text string, isNew bool) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return badRequest("MaxSizeInMegabytes '%s' is no number.", text)
	}
	if !isNew && n<<20 == p.MaxSize {
		return nil
	}
	if n <= 0 || n%1024 != 0 || n > 5120 && n%(1024*10) != 0 || n > 81920 {
		return badRequest("The specified value %d is invalid. The property 'MaxSizeInMegabytes', must be one of the following values: 1024;2048;3072;4096;5120.", n)
	}
	if !isNew && p.Partitioning {
		n *= partitions
	}
	return p.Set(kind, "MaxSizeInMegabytes", strconv.FormatInt(n, 10))
}

// setRules takes the keys of an entity.
func (c *call) setRules(p *broker.Properties, list *element) error {
	rules := []authorizationRule{}
	for _, e := range list.children {
		r := authorizationRule{ClaimType: "SharedAccessKey", ClaimValue: "None"}
		if s := e.str("KeyName"); s != nil {
			r.KeyName = *s
		}
		if s := e.str("PrimaryKey"); s != nil {
			r.PrimaryKey = *s
		}
		if s := e.str("SecondaryKey"); s != nil {
			r.SecondaryKey = *s
		}
		for _, right := range e.child("Rights").list() {
			r.Rights = append(r.Rights, strings.TrimSpace(right.text))
		}
		if err := checkRule(r); err != nil {
			return err
		}
		rules = append(rules, r)
	}
	return keepRules(p, rules)
}

func (e *element) list() []*element {
	if e == nil {
		return nil
	}
	return e.children
}

func checkRule(r authorizationRule) error {
	if r.KeyName == "" || r.PrimaryKey == "" {
		return badRequest("An authorization rule needs a KeyName and a PrimaryKey.")
	}
	has := map[string]bool{}
	for _, right := range r.Rights {
		switch right {
		case "Manage", "Send", "Listen":
			has[right] = true
		default:
			return badRequest("'%s' is not one of the rights Manage, Send and Listen.", right)
		}
	}
	if has["Manage"] && !(has["Send"] && has["Listen"]) {
		return badRequest("The right Manage needs Send and Listen, too.")
	}
	return nil
}

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

// span writes a duration, as it was given if it was.
func span(w *writer, info *broker.Info, name string) {
	w.text(name, kept(&info.Properties, info.Kind, name, spanOf(value(&info.Properties, info.Kind, name))))
}

// spanOf is a duration as the service writes it: one without end is the longest of .NET.
func spanOf(s string) string {
	if d, err := broker.ParseISODuration(s); err == nil && d > 0 {
		return s
	}
	return broker.MaxTimeSpan
}

func destination(w *writer, info *broker.Info, name string) {
	w.optional(name, kept(&info.Properties, info.Kind, name, value(&info.Properties, info.Kind, name)))
}

func (c *call) queue(w *writer, info *broker.Info) {
	span(w, info, "LockDuration")
	w.number("MaxSizeInMegabytes", megabytes(info))
	w.flag("RequiresDuplicateDetection", info.DetectDuplicates)
	w.flag("RequiresSession", info.RequiresSession)
	span(w, info, "DefaultMessageTimeToLive")
	w.flag("DeadLetteringOnMessageExpiration", info.DeadLetterOnExpiration)
	span(w, info, "DuplicateDetectionHistoryTimeWindow")
	w.number("MaxDeliveryCount", int64(info.MaxDeliveryCount))
	w.flag("EnableBatchedOperations", info.BatchedOperations)
	w.number("SizeInBytes", info.Size)
	w.number("MessageCount", messages(info))
	w.flag("IsAnonymousAccessible", info.Extra[extraPrefix+"IsAnonymousAccessible"] == "true")
	c.writeRules(w, info)
	w.text("Status", string(info.Status))
	destination(w, info, "ForwardTo")
	metadata(w, info)
	w.time("CreatedAt", info.Created)
	w.time("UpdatedAt", info.Modified)
	accessed(w, info)
	w.flag("SupportOrdering", info.SupportOrdering)
	counts(w, info)
	span(w, info, "AutoDeleteOnIdle")
	w.flag("EnablePartitioning", info.Partitioning)
	destination(w, info, "ForwardDeadLetteredMessagesTo")
	w.text("EntityAvailabilityStatus", "Available")
	w.flag("EnableExpress", info.Extra[extraPrefix+"EnableExpress"] == "true")
	w.number("MaxMessageSizeInKilobytes", info.MaxMessageBytes>>10)
}

func (c *call) topic(w *writer, info *broker.Info) {
	span(w, info, "DefaultMessageTimeToLive")
	w.number("MaxSizeInMegabytes", megabytes(info))
	w.flag("RequiresDuplicateDetection", info.DetectDuplicates)
	span(w, info, "DuplicateDetectionHistoryTimeWindow")
	w.flag("EnableBatchedOperations", info.BatchedOperations)
	w.number("SizeInBytes", info.Size)
	w.flag("FilteringMessagesBeforePublishing", info.FilterBeforePublishing)
	w.flag("IsAnonymousAccessible", info.Extra[extraPrefix+"IsAnonymousAccessible"] == "true")
	c.writeRules(w, info)
	w.text("Status", string(info.Status))
	metadata(w, info)
	w.time("CreatedAt", info.Created)
	w.time("UpdatedAt", info.Modified)
	accessed(w, info)
	w.flag("SupportOrdering", info.SupportOrdering)
	span(w, info, "AutoDeleteOnIdle")
	w.flag("EnablePartitioning", info.Partitioning)
	w.flag("EnableSubscriptionPartitioning", info.Extra[extraPrefix+"EnableSubscriptionPartitioning"] == "true")
	w.text("EntityAvailabilityStatus", "Available")
	w.flag("EnableExpress", info.Extra[extraPrefix+"EnableExpress"] == "true")
	scheduledOnly := *info // a topic holds nothing else; its subscriptions tell their own
	scheduledOnly.Active, scheduledOnly.Deferred, scheduledOnly.DeadLetter, scheduledOnly.TransferDeadLetter = 0, 0, 0, 0
	counts(w, &scheduledOnly)
	subscriptions, sql, correlation := c.filters(info.Name)
	w.number("SubscriptionCount", subscriptions)
	if c.api >= "2024-05" {
		w.number("SqlFilterCount", sql)
		w.number("CorrelationFilterCount", correlation)
	}
	w.number("MaxMessageSizeInKilobytes", info.MaxMessageBytes>>10)
}

func (c *call) subscription(w *writer, info *broker.Info) {
	span(w, info, "LockDuration")
	w.flag("RequiresSession", info.RequiresSession)
	span(w, info, "DefaultMessageTimeToLive")
	w.flag("DeadLetteringOnMessageExpiration", info.DeadLetterOnExpiration)
	w.flag("DeadLetteringOnFilterEvaluationExceptions", info.DeadLetterOnFilterError)
	w.number("MessageCount", messages(info))
	w.number("MaxDeliveryCount", int64(info.MaxDeliveryCount))
	w.flag("EnableBatchedOperations", info.BatchedOperations)
	w.text("Status", string(info.Status))
	destination(w, info, "ForwardTo")
	metadata(w, info)
	destination(w, info, "ForwardDeadLetteredMessagesTo")
	w.time("CreatedAt", info.Created)
	w.time("UpdatedAt", info.Modified)
	if used := info.Accessed; used.After(info.Created) {
		w.time("AccessedAt", used)
	} else {
		w.time("AccessedAt", info.Created)
	}
	counts(w, info)
	span(w, info, "AutoDeleteOnIdle")
	w.text("EntityAvailabilityStatus", "Available")
}

// megabytes is the size that an entity may have; one without a bound says the largest of the
// service.
func megabytes(info *broker.Info) int64 {
	if info.MaxSize == 0 {
		return 81920
	}
	return info.MaxSize >> 20
}

func metadata(w *writer, info *broker.Info) { w.optional("UserMetadata", info.UserMetadata) }

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

func (c *call) writeRules(w *writer, info *broker.Info) {
	w.open("AuthorizationRules")
	for _, r := range authorizationRules(&info.Properties) {
		w.open("AuthorizationRule", "i:type", "SharedAccessAuthorizationRule")
		w.text("ClaimType", r.ClaimType)
		w.text("ClaimValue", r.ClaimValue)
		w.open("Rights")
		for _, right := range r.Rights {
			w.text("AccessRights", right)
		}
		w.close("Rights")
		w.text("KeyName", r.KeyName)
		w.text("PrimaryKey", r.PrimaryKey)
		w.text("SecondaryKey", r.SecondaryKey)
		w.close("AuthorizationRule")
	}
	w.close("AuthorizationRules")
}

// filters counts the subscriptions of a topic and the filters of their rules.
func (c *call) filters(topic string) (subscriptions, sql, correlation int64) {
	all, err := c.subscriptionsOf(topic)
	if err != nil {
		return 0, 0, 0
	}
	for _, info := range all {
		subscriptions++
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
	return subscriptions, sql, correlation
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
		query = strings.TrimPrefix(query+"&api-version="+c.api, "&")
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
