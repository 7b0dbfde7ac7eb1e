package broker

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// How long names may be.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
const (
	maxPath     = 260 // a queue or topic
	maxSegment  = 50  // a subscription in its topic, or a rule
	maxSQSQueue = 80
	maxOwner    = 40 // a region or an account

	fifoSuffix          = ".fifo"
	subscriptionSegment = "/Subscriptions/"
)

// validateName applies the dialect's rules for the name of an entity. A subscription's is
// "topic/Subscriptions/name". The suffix .fifo and FifoQueue go together.
func validateName(name string, kind Kind, p *Properties) error {
	if p.Dialect == SQS {
		return validateSQSName(name, p.Groups)
	}
	topic, subscription, ok := cutSubscription(name)
	switch {
	case kind == Subscription && !ok:
		return fmt.Errorf("%w: a subscription is named topic%sname, not %q", ErrInvalid, subscriptionSegment, name)
	case kind == Subscription:
		if err := validateSegment("a subscription", subscription); err != nil {
			return err
		}
	case ok:
		return fmt.Errorf("%w: %q is the name of a subscription, not of a %s", ErrInvalid, name, kind)
	default:
		topic = name
	}
	if n := utf8.RuneCountInString(topic); n < 1 || n > maxPath {
		return fmt.Errorf("%w: the name of a queue or topic has 1 to %d characters, this has %d", ErrInvalid, maxPath, n)
	}
	for segment := range strings.SplitSeq(topic, "/") {
		if err := validateCharacters(segment, "._-"); err != nil {
			return err
		}
	}
	return nil
}

// validateRuleName applies the rules for the name of a rule, of which "$Default" is one.
func validateRuleName(name string) error {
	return validateSegment("a rule", strings.TrimPrefix(name, "$"))
}

func validateSegment(what, name string) error {
	if n := utf8.RuneCountInString(name); n < 1 || n > maxSegment {
		return fmt.Errorf("%w: the name of %s has 1 to %d characters, this has %d", ErrInvalid, what, maxSegment, n)
	}
	return validateCharacters(name, "._-")
}

// validateSQSName accepts "name", which is that of the server's own region and account, and
// "REGION/ACCOUNT/name".
func validateSQSName(name string, fifo bool) error {
	owner, name := cutOwner(name)
	if err := validateOwner(owner); err != nil {
		return err
	}
	stem, suffixed := strings.CutSuffix(name, fifoSuffix)
	switch {
	case len(name) > maxSQSQueue || stem == "":
		return fmt.Errorf("%w: the name of a queue of %s has 1 to %d characters, this has %d", ErrInvalid, SQS, maxSQSQueue, utf8.RuneCountInString(name))
	case fifo && !suffixed:
		return fmt.Errorf("%w: the name of a FIFO queue ends in %s: call it %s%s", ErrInvalid, fifoSuffix, name, fifoSuffix)
	case suffixed && !fifo:
		return fmt.Errorf("%w: a name that ends in %s is that of a FIFO queue: create it with FifoQueue=true", ErrInvalid, fifoSuffix)
	}
	return validateCharacters(stem, "_-")
}

// cutOwner splits "REGION/ACCOUNT/", which stays empty in a name that does not begin with them,
// from the name of a queue of SQS.
func cutOwner(name string) (owner, queue string) {
	if strings.Count(name, "/") != 2 {
		return "", name
	}
	i := strings.LastIndexByte(name, '/') + 1
	return name[:i], name[i:]
}

func validateOwner(owner string) error {
	if owner == "" {
		return nil
	}
	region, account, _ := strings.Cut(strings.TrimSuffix(owner, "/"), "/")
	switch {
	case !isOwner(region, isRegion):
		return fmt.Errorf("%w: the region of a queue of %s has 1 to %d small letters, digits and hyphens; %q has not", ErrInvalid, SQS, maxOwner, region)
	case !isOwner(account, isAlphanumeric) || isSubscriptionWord(account):
		return fmt.Errorf("%w: the account of a queue of %s has 1 to %d letters and digits and is no keyword; %q is not that", ErrInvalid, SQS, maxOwner, account)
	}
	return nil
}

func isOwner(s string, allowed func(rune) bool) bool {
	return len(s) >= 1 && len(s) <= maxOwner && strings.IndexFunc(s, func(r rune) bool { return !allowed(r) }) < 0
}

func isRegion(r rune) bool { return r == '-' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// isSubscriptionWord reports whether a segment in the middle of a path makes it that of a
// subscription.
func isSubscriptionWord(segment string) bool {
	return strings.EqualFold(segment, "subscriptions") || strings.EqualFold(segment, "subscription")
}

// isSQSName reports whether a queue of SQS, standard or FIFO, could have the name.
func isSQSName(name string) bool {
	return validateSQSName(name, strings.HasSuffix(name, fifoSuffix)) == nil
}

// validateCharacters accepts letters, digits and the marks. They are ASCII, so that names
// can be compared without case byte by byte.
func validateCharacters(name, marks string) error {
	if name == "" {
		return fmt.Errorf("%w: a slash in a name stands between two segments", ErrInvalid)
	}
	for _, r := range name {
		if !isAlphanumeric(r) && !strings.ContainsRune(marks, r) {
			return fmt.Errorf("%w: %q in the name %q; use letters, digits and %s", ErrInvalid, r, name, marks)
		}
	}
	return nil
}

// cutSubscription splits the name of a subscription. The keyword compares without case.
func cutSubscription(name string) (topic, subscription string, ok bool) {
	last := strings.LastIndexByte(name, '/')
	topic, subscription = name[:max(last, 0)], name[last+1:]
	stem := len(topic) + 1 - len(subscriptionSegment)
	if last < 0 || stem < 0 || !strings.EqualFold(topic[stem:]+"/", subscriptionSegment) {
		return "", "", false
	}
	return topic[:stem], subscription, true
}
