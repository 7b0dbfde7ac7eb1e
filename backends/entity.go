package backends

import (
	"fmt"
	"strings"
)

// Sub names a queue inside an entity.
type Sub uint8

const (
	Main Sub = iota
	DeadLetterQueue
	TransferDeadLetterQueue
)

// The path segments by which Service Bus names sub-queues.
const (
	deadLetterSegment = "$DeadLetterQueue"
	transferSegment   = "$Transfer"
)

// EntityID names a queue, a topic, a subscription ("topic/Subscriptions/sub"), or one of
// their sub-queues. It is comparable; names keep the case they were written in, and
// whether case matters is the service's business.
type EntityID struct {
	Name string
	Sub  Sub
}

// String returns the path as Service Bus writes it, such as "orders/$DeadLetterQueue". A
// name that came from a server may hold anything: sanitise it before a terminal sees it.
func (id EntityID) String() string {
	switch id.Sub {
	case DeadLetterQueue:
		return id.Name + "/" + deadLetterSegment
	case TransferDeadLetterQueue:
		return id.Name + "/" + transferSegment + "/" + deadLetterSegment
	}
	return id.Name
}

// DeadLetters returns the dead-letter sub-queue of the same entity.
func (id EntityID) DeadLetters() EntityID { return EntityID{id.Name, DeadLetterQueue} }

// MainQueue returns the entity itself, without a sub-queue.
func (id EntityID) MainQueue() EntityID { return EntityID{Name: id.Name} }

// ParseEntityID reads a path as people write it: "orders", "billing/invoices" and
// "billing/Subscriptions/invoices" (also "Subscription/"), with "/$DeadLetterQueue",
// "/dlq" (which no shell expands) or "/$Transfer/$DeadLetterQueue" behind it. Keywords
// compare without case. Whether the entity exists is not looked at. A queue's own name may
// hold slashes: only a service knows, so "a/b" is kept as written and the driver decides.
func ParseEntityID(path string) (EntityID, error) {
	id := EntityID{Name: strings.Trim(path, "/")}
	if rest, ok := cutSuffixFold(id.Name, deadLetterSegment); ok {
		id.Name, id.Sub = rest, DeadLetterQueue
		if rest, ok := cutSuffixFold(rest, transferSegment); ok {
			id.Name, id.Sub = rest, TransferDeadLetterQueue
		}
	} else if rest, ok := cutSuffixFold(id.Name, "dlq"); ok {
		id.Name, id.Sub = rest, DeadLetterQueue
	}
	if id.Name == "" {
		return EntityID{}, fmt.Errorf("entity %q has no name; write queue, topic/subscription or queue/dlq", path)
	}
	for _, segment := range strings.Split(id.Name, "/") {
		if segment == "" || strings.HasPrefix(segment, "$") {
			return EntityID{}, fmt.Errorf("entity %q: %q is no name; write queue, topic/subscription or queue/dlq", path, segment)
		}
	}
	id.Name = canonicalSubscription(id.Name)
	return id, nil
}

// canonicalSubscription writes the middle segment of a subscription's path as the service does.
func canonicalSubscription(name string) string {
	parts := strings.Split(name, "/")
	for i := 1; i < len(parts)-1; i++ {
		if strings.EqualFold(parts[i], "subscriptions") || strings.EqualFold(parts[i], "subscription") {
			parts[i] = "Subscriptions"
		}
	}
	return strings.Join(parts, "/")
}

// cutSuffixFold cuts a whole last path segment, compared without case.
func cutSuffixFold(path, segment string) (string, bool) {
	i := len(path) - len(segment)
	if i > 0 && path[i-1] == '/' && strings.EqualFold(path[i:], segment) {
		return path[:i-1], true
	}
	return path, false
}
