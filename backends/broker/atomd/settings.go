package atomd

import (
	"net/url"
	"slices"
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

// settings are the elements that set a property and have a text always, with the form of their
// texts in XML Schema, of which the engine reads more. An empty one says nothing.
var settings = map[string]func(text string) (plain string, ok bool){
	"DefaultMessageTimeToLive": asDuration, "AutoDeleteOnIdle": asDuration, "LockDuration": asDuration, "DuplicateDetectionHistoryTimeWindow": asDuration,
	"MaxDeliveryCount": asNumber, "MaxMessageSizeInKilobytes": asNumber,
	"RequiresSession": asFlag, "RequiresDuplicateDetection": asFlag, "EnablePartitioning": asFlag, "EnableBatchedOperations": asFlag,
	"DeadLetteringOnMessageExpiration": asFlag, "DeadLetteringOnFilterEvaluationExceptions": asFlag,
	"FilteringMessagesBeforePublishing": asFlag, "SupportOrdering": asFlag,
	"Status": func(text string) (string, bool) { return text, true },
}

func asDuration(text string) (string, bool) {
	_, err := broker.ParseISODuration(text)
	return text, err == nil
}

func asNumber(text string) (string, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return strconv.FormatInt(n, 10), err == nil
}

func asFlag(text string) (string, bool) {
	b, err := parseBool(text)
	return strconv.FormatBool(b), err == nil
}

// apply sets what a description says, of an entity that is to be made or is there. What it
// leaves out stays as it is.
func (c *call) apply(p *broker.Properties, kind broker.Kind, name string, d *element, isNew bool) error {
	for _, e := range d.children {
		if err := set(p, kind, e, isNew); err != nil {
			return err
		}
	}
	if isNew && p.Partitioning {
		p.SupportOrdering = d.child("SupportOrdering") != nil && p.SupportOrdering
		if p.MaxSize > 0 && p.MaxSize <= 5<<30 {
			p.MaxSize *= partitions
		}
	}
	if strings.EqualFold(p.ForwardTo, name) || strings.EqualFold(p.ForwardDeadLettersTo, name) {
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
func set(p *broker.Properties, kind broker.Kind, e *element, isNew bool) error {
	name, text := e.name, strings.TrimSpace(e.text)
	switch {
	case name == "AuthorizationRules" && kind != broker.Subscription:
		return setKeys(p, e)
	case name == "MaxSizeInMegabytes" && kind != broker.Subscription:
		return setSize(p, kind, text, isNew)
	case name == "UserMetadata":
		if e.none {
			return nil
		}
		text = e.text // spaces mean themselves
	case name == "ForwardTo", name == "ForwardDeadLetteredMessagesTo":
		if kind == broker.Topic {
			return nil
		}
	case settings[name] != nil:
		if text == "" {
			return nil
		}
	case slices.Contains(unused, name):
		return keepFlag(p, name, text)
	default:
		return nil
	}
	given, ok := text, true
	if form := settings[name]; form != nil {
		if given, ok = form(text); !ok {
			return badRequest("The value '%s' of %s is not of its type.", text, name)
		}
	}
	before := field(p, name)
	if err := p.Set(kind, name, plain(name, given)); err != nil {
		return worded(name, text, err)
	}
	if format, fixed := immutable[name]; fixed && !isNew && field(p, name) != before {
		return badRequest(format, kindNames[kind])
	}
	if slices.Contains(textual, name) && len(text) <= maxKept {
		keep(p, name, text)
	}
	if name == "UserMetadata" {
		keep(p, name, "") // notes that it was given, which it may be without a text
	}
	return nil
}

// plain is a text as the engine reads it: a destination is a path there, which in an absolute
// URI may be escaped.
func plain(name, text string) string {
	if name != "ForwardTo" && name != "ForwardDeadLetteredMessagesTo" {
		return text
	}
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Path
	}
	return text
}

// longestLock is the longest LockDuration.
const longestLock = 5 * time.Minute

// worded says what is wrong with a value in the words of the service where they are known.
func worded(name, text string, err error) error {
	if d, parseErr := broker.ParseISODuration(text); name == "LockDuration" && parseErr == nil && d > longestLock {
		return badRequest("The supplied lock time exceeds the allowed maximum of '%d' minutes.", int(longestLock.Minutes()))
	}
	return badRequest("%v.", err)
}

// setSize sets the size of an entity. That of one that is partitioned is multiplied when it is
// made. Which sizes there are is for the tier to say.
func setSize(p *broker.Properties, kind broker.Kind, text string, isNew bool) error {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n <= 0 {
		return badRequest("MaxSizeInMegabytes '%s' is no number of megabytes.", text)
	}
	if !isNew && n == megabytes(p) {
		return nil // sent back as it was got
	}
	if !isNew && p.Partitioning {
		n *= partitions
	}
	if err := p.Set(kind, "MaxSizeInMegabytes", strconv.FormatInt(n, 10)); err != nil {
		return badRequest("%v.", err)
	}
	return nil
}
