package namespace

import (
	"maps"
	"slices"
	"strings"
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
		return m.errorf("there is no %q here; did you mean %s? There are %s", m.name, nearest(m.name, names), strings.Join(names, ", "))
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

// nearest returns the name that takes the fewest changes of a letter.
func nearest(name string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int { return distance(name, a) - distance(name, b) })
}

// distance counts the insertions, deletions and replacements of letters, without case, that make b
// of a.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			row[j+1] = min(above, row[j]) + 1
			if a[i] == b[j] {
				row[j+1] = min(row[j+1], corner)
			}
			row[j+1] = min(row[j+1], corner+1)
			corner = above
		}
	}
	return row[len(b)]
}
