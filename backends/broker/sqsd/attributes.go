package sqsd

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dlq/backends/broker"
)

// What a queue has beside what the engine knows of it, by its name in broker.Properties.Extra.
const (
	extraPolicy     = "sqs.Policy"
	extraKMSKey     = "sqs.KmsMasterKeyId"
	extraKMSReuse   = "sqs.KmsDataKeyReusePeriodSeconds"
	extraManagedSSE = "sqs.SqsManagedSseEnabled"
	extraScope      = "sqs.DeduplicationScope"
	extraThroughput = "sqs.FifoThroughputLimit"
	extraTag        = "sqs.tag."
	extraResource   = "sqs.ymq.resource"
)

// attribute is an attribute of queues.
type attribute struct {
	name string
	fifo bool                                     // only FIFO queues have it
	get  func(c *call) string                     // "": the queue has none
	set  func(x *setting, value string) *apiError // nil: nobody sets it
	same func(c *call, now, given string) bool    // of a value that is given when the queue is there; nil: equal
}

// maxAttributeBytes is how long the value of an attribute is at most: as long as a policy.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-policies.html
const maxAttributeBytes = 8192

// setting is attributes on their way into the properties of a queue.
type setting struct {
	c        *call
	p        *broker.Properties
	fifo     bool
	creating bool
	exists   bool // the queue is there already, and is asked for with attributes
	looked   bool // the queues that policies name have been looked up before
}

// queueAttributes are all of them, in the order of an answer to All.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
var queueAttributes = []attribute{
	{name: "QueueArn", get: func(c *call) string { return c.s.arn(c.queue) }},
	{name: "ApproximateNumberOfMessages", get: func(c *call) string { return itoa(c.info.Active - c.info.InFlight) }},
	{name: "ApproximateNumberOfMessagesNotVisible", get: func(c *call) string { return itoa(c.info.InFlight) }},
	{name: "ApproximateNumberOfMessagesDelayed", get: func(c *call) string { return itoa(c.info.Delayed + c.info.Scheduled) }},
	{name: "CreatedTimestamp", get: func(c *call) string { return itoa(c.info.Created.Unix()) }},
	{name: "LastModifiedTimestamp", get: func(c *call) string { return itoa(c.info.Modified.Unix()) }},
	span("VisibilityTimeout", 0, 43_200, func(p *broker.Properties) *time.Duration { return &p.LockDuration }),
	{
		name: "MaximumMessageSize",
		get:  func(c *call) string { return itoa(c.info.MaxMessageBytes) },
		set: func(x *setting, value string) *apiError {
			n := parseNumber(value)
			if !n.within(1024, x.c.s.flavor.maxMessage) {
				return invalidAttribute("MaximumMessageSize")
			}
			x.p.MaxMessageBytes = n.n
			return nil
		},
		same: sameNumber,
	},
	span("MessageRetentionPeriod", 60, 1_209_600, func(p *broker.Properties) *time.Duration { return &p.Retention }),
	span("DelaySeconds", 0, 900, func(p *broker.Properties) *time.Duration { return &p.Delay }),
	span("ReceiveMessageWaitTimeSeconds", 0, 20, func(p *broker.Properties) *time.Duration { return &p.ReceiveWait }),
	kept("Policy", extraPolicy, func(value string) bool { return json.Valid([]byte(value)) }, sameJSON),
	{name: "RedrivePolicy", get: redrivePolicy, set: setRedrivePolicy, same: sameJSON},
	{name: "RedriveAllowPolicy", get: redriveAllowPolicy, set: setRedriveAllowPolicy, same: sameJSON},
	{name: "KmsMasterKeyId", get: func(c *call) string { return c.info.Extra[extraKMSKey] }, set: setKMSKey},
	{
		name: "KmsDataKeyReusePeriodSeconds",
		get:  func(c *call) string { return c.info.Extra[extraKMSReuse] },
		set: func(x *setting, value string) *apiError {
			if n := parseNumber(value); !n.within(60, 86_400) {
				return invalidAttribute("KmsDataKeyReusePeriodSeconds")
			} else if n.n == 300 { // the default is not shown
				delete(x.p.Extra, extraKMSReuse)
			} else {
				x.p.Extra[extraKMSReuse] = itoa(n.n)
			}
			return nil
		},
		same: func(_ *call, now, given string) bool { return now == given || now == "" && given == "300" },
	},
	{name: "SqsManagedSseEnabled", get: managedSSE, set: setManagedSSE, same: sameFold},
	{
		name: "FifoQueue", fifo: true,
		get: func(*call) string { return "true" },
		set: func(x *setting, value string) *apiError {
			if !strings.EqualFold(value, "true") {
				e := invalidAttribute("FifoQueue")
				e.text += " Reason: Modifying queue type is not supported."
				return e
			}
			return nil
		},
		same: sameFold,
	},
	{
		name: "ContentBasedDeduplication", fifo: true,
		get: func(c *call) string { return strconv.FormatBool(c.info.ContentDeduplication) },
		set: func(x *setting, value string) *apiError {
			on, ok := parseBool(value)
			if !ok {
				return invalidAttribute("ContentBasedDeduplication")
			}
			x.p.ContentDeduplication = on
			return nil
		},
		same: sameFold,
	},
	{
		name: "DeduplicationScope", fifo: true,
		get: func(c *call) string {
			if scope := c.info.Extra[extraScope]; scope != "" {
				return scope
			}
			return scopeQueue
		},
		set: setDeduplicationScope,
	},
	{
		name: "FifoThroughputLimit", fifo: true,
		get: func(c *call) string {
			if limit := c.info.Extra[extraThroughput]; limit != "" {
				return limit
			}
			return perQueue
		},
		set: func(x *setting, value string) *apiError {
			if value != perQueue && value != perGroup {
				return invalidAttribute("FifoThroughputLimit")
			}
			x.p.Extra[extraThroughput] = value
			return nil
		},
	},
}

const (
	scopeQueue, scopeGroup = "queue", "messageGroup"
	perQueue, perGroup     = "perQueue", "perMessageGroupId"
)

// span is an attribute in seconds.
func span(name string, low, high int64, field func(*broker.Properties) *time.Duration) attribute {
	return attribute{
		name: name,
		get:  func(c *call) string { return itoa(int64(field(&c.info.Properties).Seconds())) },
		set: func(x *setting, value string) *apiError {
			n := parseNumber(value)
			if !n.within(low, high) {
				return invalidAttribute(name)
			}
			*field(x.p) = time.Duration(n.n) * time.Second
			return nil
		},
		same: sameNumber,
	}
}

// kept is an attribute that is kept and has no effect. Empty takes it away.
func kept(name, extra string, valid func(string) bool, same func(*call, string, string) bool) attribute {
	return attribute{
		name: name,
		get:  func(c *call) string { return c.info.Extra[extra] },
		set: func(x *setting, value string) *apiError {
			if value == "" {
				delete(x.p.Extra, extra)
				return nil
			}
			if !valid(value) {
				return invalidAttribute(name)
			}
			x.p.Extra[extra] = value
			return nil
		},
		same: same,
	}
}

func setKMSKey(x *setting, value string) *apiError {
	if value == "" {
		delete(x.p.Extra, extraKMSKey)
		return nil
	}
	x.p.Extra[extraKMSKey] = value
	x.p.Extra[extraManagedSSE] = "false" // and stays so when the key is taken away
	return nil
}

// managedSSE is on unless something switched it off; YMQ has none.
func managedSSE(c *call) string {
	if on := c.info.Extra[extraManagedSSE]; on != "" {
		return on
	}
	return "true"
}

func setManagedSSE(x *setting, value string) *apiError {
	on, ok := parseBool(value)
	if !ok {
		return invalidAttribute("SqsManagedSseEnabled")
	}
	x.p.Extra[extraManagedSSE] = strconv.FormatBool(on)
	return nil
}

func setDeduplicationScope(x *setting, value string) *apiError {
	if value != scopeQueue && value != scopeGroup {
		return invalidAttribute("DeduplicationScope")
	}
	if x.creating { // a later change is shown, and has no effect
		x.p.DeduplicationPerGroup = value == scopeGroup
	}
	x.p.Extra[extraScope] = value
	return nil
}

// attributeNamed finds an attribute; nil: there is none of that name.
func attributeNamed(name string) *attribute {
	i := slices.IndexFunc(queueAttributes, func(a attribute) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return &queueAttributes[i]
}

// setAll sets attributes, and checks what they mean together.
func (x *setting) setAll(list []pair) error {
	for _, a := range list {
		if err := x.set(a); err != nil {
			return err
		}
	}
	if !x.fifo {
		return nil
	}
	if x.p.Extra[extraThroughput] == perGroup && x.p.Extra[extraScope] != scopeGroup {
		return invalidAttribute("FifoThroughputLimit")
	}
	return nil
}

func (x *setting) set(a pair) error {
	spec := attributeNamed(a.name)
	switch {
	case spec != nil && spec.set == nil && x.exists:
		return nil
	case spec == nil || spec.set == nil || !x.c.s.flavor.knows(a.name):
		return unknownAttribute(a.name)
	case spec.fifo && !x.fifo && (a.name == "DeduplicationScope" || a.name == "FifoThroughputLimit"):
		return plain(http.StatusBadRequest, "InvalidAttributeName", "You can specify the %s only when FifoQueue is set to true.", a.name)
	case spec.fifo && !x.fifo:
		return unknownAttribute(a.name)
	}
	if a.name == "KmsMasterKeyId" && a.value != "" && attributeIs(x.c.in.attributes, "SqsManagedSseEnabled", "true") {
		return plain(http.StatusBadRequest, "InvalidAttributeName", "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.")
	}
	if len(a.value) > maxAttributeBytes {
		return invalidAttribute(a.name)
	}
	if bad := spec.set(x, a.value); bad != nil {
		return bad
	}
	return nil
}

// knows reports whether the service has an attribute.
func (f *flavor) knows(attribute string) bool {
	return f.attributes == nil || slices.Contains(f.attributes, attribute)
}

// value is what a queue has for an attribute; "": it has none.
func (c *call) value(a *attribute) string {
	if a.fifo && !c.info.Groups || !c.s.flavor.knows(a.name) {
		return ""
	}
	return a.get(c)
}

func (c *call) sameValue(a *attribute, given string) bool {
	now := c.value(a)
	if a.same != nil {
		return a.same(c, now, given)
	}
	return now == given
}

func sameFold(_ *call, now, given string) bool { return strings.EqualFold(now, given) }

func sameNumber(_ *call, now, given string) bool {
	a, b := parseNumber(now), parseNumber(given)
	return a.ok && b.ok && a.n == b.n
}

// sameJSON compares documents by their values, in which a number may be in quotes.
func sameJSON(_ *call, now, given string) bool {
	if now == "" || given == "" {
		return now == given
	}
	var a, b any
	if json.Unmarshal([]byte(now), &a) != nil || json.Unmarshal([]byte(given), &b) != nil {
		return now == given
	}
	return reflect.DeepEqual(unquoted(a), unquoted(b))
}

// unquoted makes the numbers of a document text, as those in quotes are.
func unquoted(v any) any {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		for i := range v {
			v[i] = unquoted(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = unquoted(v[name])
		}
	}
	return v
}

func parseBool(s string) (on, ok bool) {
	on = strings.EqualFold(s, "true")
	return on, on || strings.EqualFold(s, "false")
}

// getQueueAttributes answers with the attributes that are asked for and that the queue has.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html
func (c *call) getQueueAttributes() error {
	all := false
	for _, name := range c.in.attributeNames {
		if name == "All" {
			all = true
		} else if attributeNamed(name) == nil || !c.s.flavor.knows(name) {
			return unknownAttribute(name)
		}
	}
	var list []pair
	for i := range queueAttributes {
		a := &queueAttributes[i]
		if !all && !slices.Contains(c.in.attributeNames, a.name) {
			continue
		}
		if v := c.value(a); v != "" {
			list = append(list, pair{a.name, v})
		}
	}
	c.out.pairs("Attributes", "Attribute", "Name", "Value", list)
	return nil
}

// setQueueAttributes changes some of the attributes.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
func (c *call) setQueueAttributes() error {
	if len(c.in.attributes) == 0 {
		return nil
	}
	set := func(p *broker.Properties, looked bool) error {
		if p.Extra = maps.Clone(p.Extra); p.Extra == nil {
			p.Extra = map[string]string{}
		}
		x := setting{c: c, p: p, fifo: c.info.Groups, looked: looked}
		return x.setAll(c.in.attributes)
	}
	// The engine cannot be asked for other queues while it changes one.
	now := c.info.Properties
	if err := set(&now, false); err != nil {
		return err
	}
	return c.s.Engine.Change(c.entity, func(p *broker.Properties) error { return set(p, true) })
}

// The bounds of the tags of a queue: how many, and how many characters the parts of one have.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-tags.html
const maxTags, maxTagKey, maxTagValue = 50, 128, 256

func tagsOf(p *broker.Properties) []pair {
	var tags []pair
	for _, name := range slices.Sorted(maps.Keys(p.Extra)) {
		if key, ok := strings.CutPrefix(name, extraTag); ok {
			tags = append(tags, pair{key, p.Extra[name]})
		}
	}
	return tags
}

func addTags(p *broker.Properties, tags []pair) error {
	for _, t := range tags {
		if n := utf8.RuneCountInString(t.name); n == 0 || n > maxTagKey || utf8.RuneCountInString(t.value) > maxTagValue {
			return invalidParameter("The key of a tag has 1 to %d characters, and its value at most %d.", maxTagKey, maxTagValue)
		}
		if p.Extra == nil {
			p.Extra = map[string]string{}
		}
		p.Extra[extraTag+t.name] = t.value
	}
	if n := len(tagsOf(p)); n > maxTags {
		return invalidParameter("Too many tags added for queue: a queue has at most %d, this would be %d.", maxTags, n)
	}
	return nil
}

func (c *call) tagQueue() error {
	if len(c.in.tags) == 0 {
		return missingParameter("Tags")
	}
	return c.s.Engine.Change(c.entity, func(p *broker.Properties) error {
		p.Extra = maps.Clone(p.Extra)
		return addTags(p, c.in.tags)
	})
}

func (c *call) untagQueue() error {
	if len(c.in.tagKeys) == 0 {
		return missingParameter("TagKeys")
	}
	return c.s.Engine.Change(c.entity, func(p *broker.Properties) error {
		p.Extra = maps.Clone(p.Extra)
		for _, key := range c.in.tagKeys {
			delete(p.Extra, extraTag+key)
		}
		return nil
	})
}

func (c *call) listQueueTags() error {
	c.out.pairs("Tags", "Tag", "Key", "Value", tagsOf(&c.info.Properties))
	return nil
}
