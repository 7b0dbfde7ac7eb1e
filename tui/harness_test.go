package tui

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"dlq/backends"
	"dlq/backends/local"
	"dlq/backends/message"
	"dlq/resubmit"
	"dlq/tui/theme"
)

var update = flag.Bool("update", false, "write the golden files anew")

// clock is a clock that a test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

var begin = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// driver is a player that can look at the screen. A test is a plain sequence of keys.
type driver struct {
	*player
	t *testing.T
}

// drive opens the UI without a terminal. Colour is off, as with NO_COLOR.
func drive(t *testing.T, d Deps, width, height int) *driver {
	t.Helper()
	if d.Getenv == nil {
		d.Getenv = noColour
	}
	if d.Journals == nil {
		j, err := resubmit.OpenJournals(filepath.Join(t.TempDir(), "jobs"), d.Now)
		if err != nil {
			t.Fatal(err)
		}
		d.Journals = j
	}
	if d.Conn == "" {
		d.Conn = "local:"
	}
	dr := &driver{newPlayer(t.Context(), d, width, height), t}
	dr.app.exec = func(c *exec.Cmd, done tea.ExecCallback) tea.Cmd {
		return func() tea.Msg { return done(c.Run()) }
	}
	t.Cleanup(func() { _, _ = dr.app.close() })
	return dr
}

func noColour(name string) string {
	if name == "NO_COLOR" {
		return "1"
	}
	return ""
}

func withColour(name string) string {
	if name == "DLQ_THEME" {
		return "dark"
	}
	return ""
}

// press sends keys by their names: "enter", "ctrl+c", or single characters.
func (d *driver) press(names ...string) {
	d.t.Helper()
	for _, n := range names {
		d.key(n)
	}
}

// typeText sends each character of a text.
func (d *driver) typeText(text string) {
	for _, r := range text {
		d.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
	}
}

// view returns the screen, after checking what must hold for every screen.
func (d *driver) view() string {
	d.t.Helper()
	v := d.app.View()
	checkFrame(d.t, v, d.app.width, d.app.height)
	return v
}

// checkFrame fails unless a frame has at most height lines, each at most as wide as the
// terminal, and holds no control but line breaks and SGR sequences.
func checkFrame(t *testing.T, frame string, width, height int) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) > height {
		t.Errorf("%d lines on a screen of %d", len(lines), height)
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > width {
			t.Errorf("line %d is %d cells wide on a screen of %d: %q", i, w, width, l)
		}
		for _, r := range sgr.ReplaceAllString(l, "") {
			if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x2028 {
				t.Errorf("line %d holds %U: %q", i, r, l)
			}
		}
	}
}

// has fails unless the screen shows each of the texts.
func (d *driver) has(texts ...string) {
	d.t.Helper()
	v := d.view()
	for _, text := range texts {
		if !strings.Contains(v, text) {
			d.t.Errorf("the screen does not show %q:\n%s", text, v)
		}
	}
}

// hasNot fails if the screen shows one of the texts.
func (d *driver) hasNot(texts ...string) {
	d.t.Helper()
	v := d.view()
	for _, text := range texts {
		if strings.Contains(v, text) {
			d.t.Errorf("the screen shows %q:\n%s", text, v)
		}
	}
}

// golden compares the screen with testdata/golden/NAME.txt.
func (d *driver) golden(name string) {
	d.t.Helper()
	golden(d.t, name, d.view())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	lines := strings.Split(got, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	got = strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./tui -update writes it)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs.\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// incident is a broker in memory with something to look at.
func incident(t *testing.T) (*local.Backend, *clock) {
	t.Helper()
	c := &clock{begin}
	b, err := local.Open(t.Context(), local.Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	for i := range 7 {
		bury(t, b, c, "orders", order(i), "MaxDeliveryCountExceeded", fmt.Sprintf("payment service timed out after %d ms", 3000+i))
	}
	bury(t, b, c, "orders", order(7), "InvalidCountry", "country 'XX' of order 1007 is not known")
	bury(t, b, c, "orders", order(8), "InvalidCountry", "country 'YY' of order 1008 is not known")
	bury(t, b, c, "billing", order(9), "TTLExpiredException", "The message expired and was dead lettered.")
	put(t, b, "orders", order(20))
	put(t, b, "orders", order(21))
	put(t, b, "shipping", order(22))
	c.now = begin.Add(26 * time.Hour)
	return b, c
}

func order(i int) *message.Message {
	m := &message.Message{
		ID:          message.String(fmt.Sprintf("order-%d", 1000+i)),
		Subject:     ptr("OrderPlaced"),
		ContentType: ptr("application/json"),
		Body:        message.DataBody(fmt.Appendf(nil, `{"orderId":%d,"tenant":"acme","lines":[{"sku":"A-%d","qty":2}]}`, 1000+i, i)),
	}
	m.Properties.Set("tenant", message.String("acme"))
	m.Properties.Set("attempt", message.Int(3))
	return m
}

func ptr[T any](v T) *T { return &v }

func put(t *testing.T, b backends.Backend, queue string, m *message.Message) {
	t.Helper()
	id := backends.EntityID{Name: queue}
	creator, _ := backends.As[backends.QueueCreator](b)
	if err := creator.CreateQueue(t.Context(), queue); err != nil && !backends.IsCode(err, backends.AlreadyExists) {
		t.Fatal(err)
	}
	if err := b.Send(t.Context(), id, []*message.Message{m}); err != nil {
		t.Fatal(err)
	}
}

// bury puts a message into a queue's dead letters.
func bury(t *testing.T, b backends.Backend, c *clock, queue string, m *message.Message, reason, description string) {
	t.Helper()
	put(t, b, queue, m)
	c.now = c.now.Add(7 * time.Minute)
	lease, err := b.Lease(t.Context(), backends.EntityID{Name: queue}, backends.LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release(context.Background())
	got, err := lease.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Settle(t.Context(), backends.Outcome{Action: backends.DeadLetter, Reason: reason, Description: description}, got); err != nil {
		t.Fatal(err)
	}
}

func msgSize(width, height int) tea.WindowSizeMsg {
	return tea.WindowSizeMsg{Width: width, Height: height}
}

// withStyle is a style that shows, so that a cursor needs no marker of its own.
func withStyle() theme.Style { return theme.New(true, theme.Dark).Selected }

// drawn is the text of a line without styles.
func drawn(l line) string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}
