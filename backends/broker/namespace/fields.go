package namespace

import (
	"maps"
	"slices"
	"strings"

	"dlq/backends/sqlfilter"
)

// fields are the names that an object may have, and what reads their values.
type fields map[string]func(*node) error

// anything takes every value and forgets it.
func anything(*node) error { return nil }

// into keeps a value for later.
func into(to **node) func(*node) error {
	return func(n *node) error {
		*to = n
		return nil
	}
}

// object reads an object member by member in the order in which they stand. A name that is not
// known is an error with the nearest that is. null is as if the object was not there.
func (n *node) object(known fields) error {
	return n.eachMember(func(m member) error {
		for name, read := range known {
			if !strings.EqualFold(name, m.name) {
				continue
			}
			if m.value.kind == null {
				return nil
			}
			return read(m.value)
		}
		names := slices.Sorted(maps.Keys(known))
		nearest, _ := sqlfilter.Nearest(m.name, names)
		return m.errorf("there is no %q here; did you mean %s? There are %s", m.name, nearest, strings.Join(names, ", "))
	})
}

func (n *node) eachMember(read func(member) error) error {
	if n.kind != object {
		return n.errorf("want an object in braces, not %s", n.kind)
	}
	for _, m := range n.members {
		if err := read(m); err != nil {
			return err
		}
	}
	return nil
}

// list reads a list element by element.
func (n *node) list(read func(i int, n *node) error) error {
	if n.kind != list {
		return n.errorf("want a list in brackets, not %s", n.kind)
	}
	for i, item := range n.items {
		if err := read(i, item); err != nil {
			return err
		}
	}
	return nil
}

// string returns a value that has to be text.
func (n *node) string() (string, error) {
	if n.kind != text {
		return "", n.errorf("want text in quotes, not %s", n.kind)
	}
	return n.text, nil
}

// required returns the text of a member of n that has to be there.
func (n *node) required(name string, value *node) (string, error) {
	if value == nil {
		return "", n.errorf("%s is missing", name)
	}
	s, err := value.string()
	if err == nil && s == "" {
		err = value.errorf("%s is empty", name)
	}
	return s, err
}
