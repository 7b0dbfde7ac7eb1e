package sqsmsg

import (
	"slices"
	"strings"
)

// MatchNames returns what reports whether a receive asks for an attribute by its
// MessageAttributeNames: "All", ".*" and "*" ask for all, "prefix.*" for the names that begin with
// the prefix, dot or no dot behind it, and every other pattern for the name that it is. A name
// that no attribute can have asks for nothing. No patterns match nothing.
func MatchNames(patterns []string) func(name string) bool {
	var exact, prefixes []string
	for _, p := range patterns {
		prefix, isPrefix := strings.CutSuffix(p, ".*")
		switch {
		case p == "All" || p == "*" || p == ".*":
			return func(string) bool { return true }
		case isPrefix:
			prefixes = append(prefixes, prefix)
		default:
			exact = append(exact, p)
		}
	}
	return func(name string) bool {
		return slices.Contains(exact, name) ||
			slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}
}
