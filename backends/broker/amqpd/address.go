package amqpd

import (
	"fmt"
	"net/url"
	"strings"

	"dlq/backends/broker"
	"dlq/backends/message"
)

// node is what stands at an address.
type node uint8

const (
	entityNode     node = iota // a queue, topic, subscription or sub-queue
	managementNode             // the $management of an entity
	cbsNode                    // $cbs, to which tokens are put
	coordinatorNode
)

const (
	deadLetterSuffix = "/$deadletterqueue"
	transferSuffix   = "/$transfer"
	managementSuffix = "/$management"
	subscriptions    = "/Subscriptions/"
)

// parseAddress reads the address of a link: a path, with or without a leading slash, or a
// whole URI, whose host is passed over. Keywords compare without case.
func parseAddress(s string) (broker.Address, node) {
	if _, path, found := strings.Cut(s, "://"); found {
		_, s, _ = strings.Cut(path, "/")
		s, _, _ = strings.Cut(s, "?")
	}
	if unescaped, err := url.PathUnescape(s); err == nil {
		s = unescaped
	}
	s = strings.Trim(s, "/")
	if strings.EqualFold(s, "$cbs") {
		return broker.Address{}, cbsNode
	}
	what := entityNode
	if rest, ok := cutSuffixFold(s, managementSuffix); ok {
		s, what = rest, managementNode
	} else if strings.EqualFold(s, managementSuffix[1:]) {
		return broker.Address{}, managementNode
	}
	a := broker.Address{Name: s}
	if rest, ok := cutSuffixFold(s, deadLetterSuffix); ok {
		a = broker.Address{Name: rest, Sub: broker.DeadLetter}
		if rest, ok := cutSuffixFold(rest, transferSuffix); ok {
			a = broker.Address{Name: rest, Sub: broker.TransferDeadLetter}
		}
	}
	if i := strings.LastIndex(strings.ToLower(a.Name), strings.ToLower(subscriptions)); i > 0 {
		a.Name = a.Name[:i] + subscriptions + a.Name[i+len(subscriptions):]
	}
	return a, what
}

// resolve is parseAddress for a server. One that makes queues for whoever attaches makes a
// name of any address: what a name cannot hold is written as its number.
func (s *Server) resolve(address string) (broker.Address, node) {
	a, what := parseAddress(address)
	if s.createOnAttach {
		var name strings.Builder
		for i := range len(a.Name) {
			switch b := a.Name[i]; {
			case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', strings.IndexByte("./-_", b) >= 0:
				name.WriteByte(b)
			default:
				fmt.Fprintf(&name, "_%02x", b)
			}
		}
		a.Name = name.String()
	}
	return a, what
}

func cutSuffixFold(s, suffix string) (string, bool) {
	if len(s) < len(suffix) || !strings.EqualFold(s[len(s)-len(suffix):], suffix) {
		return s, false
	}
	return s[:len(s)-len(suffix)], true
}

// path returns the address as claims and errors know it.
func path(a broker.Address) string {
	switch a.Sub {
	case broker.DeadLetter:
		return a.Name + "/$DeadLetterQueue"
	case broker.TransferDeadLetter:
		return a.Name + "/$Transfer/$DeadLetterQueue"
	}
	return a.Name
}

// text returns an address as a string; ok is false for what is none.
func text(v message.Value) (s string, ok bool) {
	switch v := v.(type) {
	case message.String:
		return string(v), true
	case message.Symbol:
		return string(v), true
	}
	return "", false
}
