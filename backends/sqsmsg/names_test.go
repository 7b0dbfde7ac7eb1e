package sqsmsg

import (
	"slices"
	"testing"
)

func TestMatchNames(t *testing.T) {
	names := []string{"Hello", "Help.Me", "help", "Foo", "Foo.bar", "All.x", "*"}
	for _, tt := range []struct {
		patterns []string
		want     []string
	}{
		{nil, nil},
		{[]string{}, nil},
		{[]string{""}, nil},
		{[]string{"All"}, names},
		{[]string{".*"}, names},
		{[]string{"*"}, names},
		{[]string{"nothing", "All"}, names},
		{[]string{"all"}, nil},
		{[]string{"Foo"}, []string{"Foo"}},
		{[]string{"foo"}, nil},
		{[]string{"Fo"}, nil},
		{[]string{"Foo.bar", "Hello", "Hello"}, []string{"Hello", "Foo.bar"}},
		{[]string{"Hel.*"}, []string{"Hello", "Help.Me"}},
		{[]string{"Foo.*"}, []string{"Foo", "Foo.bar"}},
		{[]string{"Foo..*"}, []string{"Foo.bar"}},
		{[]string{"All.*"}, []string{"All.x"}},
		{[]string{"Hel.*", "Foo"}, []string{"Hello", "Help.Me", "Foo"}},
		// Neither wildcards elsewhere nor regular expressions.
		{[]string{"Hel*", "H.*lo", ".*lo", "^Foo$", "F?o", "**", ".*.*x"}, nil},
	} {
		matches := MatchNames(tt.patterns)
		var got []string
		for _, name := range names {
			if matches(name) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q match %q, want %q", tt.patterns, got, tt.want)
		}
	}
}
