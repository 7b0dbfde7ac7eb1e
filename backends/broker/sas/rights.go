package sas

import (
	"fmt"
	"strings"
)

// Rights are what a key or a claim entitles to.
type Rights uint8

// The rights of an authorization rule. Manage implies the other two.
const (
	Listen Rights = 1 << iota
	Send

	Manage = 1<<iota | Listen | Send
)

// Has reports whether r includes all of want.
func (r Rights) Has(want Rights) bool { return r&want == want }

// Names lists the rights as authorization rules spell them.
func (r Rights) Names() []string {
	var names []string
	for _, right := range []struct {
		Rights
		name string
	}{{Manage, "Manage"}, {Send, "Send"}, {Listen, "Listen"}} {
		if r.Has(right.Rights) {
			names = append(names, right.name)
		}
	}
	return names
}

// String is the highest of the rights, or both lower ones: "Manage", "Send,Listen", "Send",
// "Listen" or "none".
func (r Rights) String() string {
	switch names := r.Names(); {
	case len(names) == 0:
		return "none"
	case r.Has(Manage):
		return names[0]
	default:
		return strings.Join(names, ",")
	}
}

// ParseRights reads the names of an authorization rule, without regard to case.
func ParseRights(names ...string) (Rights, error) {
	var r Rights
	for _, name := range names {
		switch strings.ToLower(name) {
		case "manage":
			r |= Manage
		case "send":
			r |= Send
		case "listen":
			r |= Listen
		default:
			return 0, fmt.Errorf("%q is not a right; use Manage, Send or Listen", name)
		}
	}
	return r, nil
}
