package cmd

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/local"
	"dlq/export"
	"dlq/resubmit"
	"dlq/tui"
)

var update = flag.Bool("update", false, "write the screen and the keys of the UI into the README")

// TestReadmeShowsTheUI: the screen and the key table of the README are what the program
// draws.
func TestReadmeShowsTheUI(t *testing.T) {
	const readme = "../README.md"
	b, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := os.ReadFile("../tui/testdata/golden/keytable.txt") // which a test of tui holds to be right
	if err != nil {
		t.Fatal(err)
	}
	blocks := []struct{ begin, end, want string }{
		{"<!-- screen: dead letters -->\n```text\n", "```\n", incidentScreen(t, "enter", "down", "down", "down")},
		{"<!-- keys -->\n", "<!-- end of keys -->\n", string(keys)},
	}
	text := string(b)
	for _, block := range blocks {
		before, rest, ok := strings.Cut(text, block.begin)
		got, after, ends := strings.Cut(rest, block.end)
		if !ok || !ends {
			t.Fatalf("the README has no %q", block.begin)
		}
		if *update {
			text = before + block.begin + block.want + block.end + after
		} else if got != block.want {
			t.Errorf("the README shows\n%s\nthe program draws\n%s", got, block.want)
		}
	}
	if *update {
		if err := os.WriteFile(readme, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// incidentScreen draws the UI on the incident of the demo after some keys.
func incidentScreen(t *testing.T, keys ...string) string {
	t.Helper()
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	live := func() time.Time { return now }
	b := incidentInMemory(t, live)
	journals, err := resubmit.OpenJournals(t.TempDir(), live)
	if err != nil {
		t.Fatal(err)
	}
	screen := tui.Screenshot(t.Context(), tui.Deps{Backend: b, Journals: journals, Conn: "demo", Now: live}, 100, 20, keys...)
	var out strings.Builder
	for line := range strings.Lines(screen) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}

func incidentInMemory(t *testing.T, live func() time.Time) backends.Backend {
	t.Helper()
	clock := &demoClock{live: live}
	b, err := local.Open(t.Context(), local.Options{Now: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if err := seedIncident(t.Context(), b, clock, os.DirFS("../testdata/messages"), live()); err != nil {
		t.Fatal(err)
	}
	clock.release()
	return b
}

// TestIncidentIsDeterministic: the same corpus and the same hour give the same messages.
func TestIncidentIsDeterministic(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	live := func() time.Time { return now }
	first, second := incidentText(t, live), incidentText(t, live)
	if first != second {
		t.Error("two demos of the same hour differ")
	}
	if n := strings.Count(first, "\n"); n < 450 || n > 600 {
		t.Errorf("the incident has %d dead letters", n)
	}
}

// incidentText lists every dead letter of the incident with its time.
func incidentText(t *testing.T, live func() time.Time) string {
	t.Helper()
	b := incidentInMemory(t, live)
	peeker, _ := backends.As[backends.Peeker](b)
	var out []byte
	for e, err := range b.Entities(t.Context(), backends.EntityQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		for m, err := range peeker.Peek(context.Background(), e.DeadLetters, backends.PeekOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Broker.EnqueuedTime.After(live()) {
				t.Errorf("message %d of %s is from the future", m.Broker.SequenceNumber, e.ID)
			}
			if out, err = export.AppendJSON(out, m); err != nil {
				t.Fatal(err)
			}
			out = append(out, '\n')
		}
	}
	return string(out)
}
