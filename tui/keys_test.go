package tui

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/bubbles/key"

	"dlq/backends"
)

// everyKeyMap is each screen's keys, with everything allowed.
func everyKeyMap() map[string]keyMap {
	return map[string]keyMap{
		"entities": newEntitiesKeys(),
		"letters":  newLettersKeys(backends.Capabilities{Peek: true}, false),
		"groups":   newGroupsKeys(false),
		"detail":   newDetailKeys(false),
		"jobs":     newJobsKeys(false),
	}
}

func TestNoKeyTwice(t *testing.T) {
	for name, m := range everyKeyMap() {
		does := make(map[string]string)
		for _, g := range append(m.groups(), newGlobalKeys().group()) {
			for _, b := range g.keys {
				for _, k := range b.Keys() {
					if other, taken := does[k]; taken {
						t.Errorf("%s: %q is both %q and %q", name, k, other, b.Help().Desc)
					}
					does[k] = b.Help().Desc
				}
			}
		}
	}
}

// What acts on a queue is a capital letter, and what is a capital letter asks first; the
// others only look.
func TestCapitalsAct(t *testing.T) {
	for name, m := range everyKeyMap() {
		for _, g := range m.groups() {
			for _, b := range g.keys {
				k := b.Keys()[0]
				capital := len(k) == 1 && k[0] >= 'A' && k[0] <= 'Z'
				if acts := strings.HasPrefix(g.title, "act"); acts != capital {
					t.Errorf("%s: %q in %q", name, k, g.title)
				}
			}
		}
	}
}

func TestShortHelpIsPartOfTheFullHelp(t *testing.T) {
	for name, m := range everyKeyMap() {
		var all []string
		for _, column := range m.FullHelp() {
			for _, b := range column {
				all = append(all, b.Help().Key)
			}
		}
		for _, b := range m.ShortHelp() {
			if !slices.Contains(all, b.Help().Key) {
				t.Errorf("%s: the footer has %q, the help has not", name, b.Help().Key)
			}
		}
	}
}

func TestWhatCannotBeDoneIsDisabled(t *testing.T) {
	cases := []struct {
		name     string
		caps     backends.Capabilities
		readOnly bool
		on, off  []string
	}{
		{"everything", backends.Capabilities{Peek: true}, false, []string{"R", "E", "C", "X", "/", "enter"}, nil},
		{"read-only", backends.Capabilities{Peek: true}, true, []string{"X", "/", "enter"}, []string{"R", "E", "C"}},
		{"no peek", backends.Capabilities{}, false, []string{"tab"}, []string{"R", "E", "C", "X", "/", "enter", "g"}},
	}
	for _, c := range cases {
		k := newLettersKeys(c.caps, c.readOnly)
		enabled := func(name string) bool {
			for _, g := range k.groups() {
				for _, b := range g.keys {
					if key.Matches(keyMsg(name), b) {
						return true
					}
				}
			}
			return false
		}
		for _, name := range c.on {
			if !enabled(name) {
				t.Errorf("%s: %s is disabled", c.name, name)
			}
		}
		for _, name := range c.off {
			if enabled(name) {
				t.Errorf("%s: %s is enabled", c.name, name)
			}
			if _, ok := disabled(k, keyMsg(name)); !ok {
				t.Errorf("%s: nothing says why %s is disabled", c.name, name)
			}
		}
	}
}

func TestKeyTable(t *testing.T) { golden(t, "keytable", KeyTable()) }
