package cmd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"dlq/backends"
	"dlq/backends/message"
)

func newBuffer(w io.Writer) *bufio.Writer { return bufio.NewWriter(w) }

// hostile is text that takes over a terminal which shows it raw: colours, a new title, the
// clipboard, C1 controls raw and as UTF-8, direction overrides, hidden characters.
const hostile = "a\x1b[31mred\x1b]0;owned\x07\x1b]52;c;ZXZpbA==\x07\u009b2J\x9b2J\x00\x7f\b\r\u202eevil\u2066\u200b\U000e0041\xff\u2028\n\tz"

// ownColours are the sequences that dlq writes itself.
var ownColours = regexp.MustCompile("\x1b\\[[0-9]{1,2}m|\r\x1b\\[K")

// checkHarmless fails if text holds a character that does not stand for itself.
func checkHarmless(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s is not UTF-8: %q", what, text)
	}
	for _, r := range ownColours.ReplaceAllString(text, "") {
		if r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Errorf("%s holds %U: %q", what, r, text)
			return
		}
	}
}

// TestHostileTextIsHarmless puts hostile text into every field that a sender controls and
// looks at what each command shows of it, in a pipe and on a terminal.
func TestHostileTextIsHarmless(t *testing.T) {
	hostileText := strings.ToValidUTF8(hostile, "") // what has to be UTF-8 on its way
	bad := text(hostile, hostile)
	bad.Subject, bad.ContentType, bad.SessionID, bad.To = &hostileText, &hostileText, &hostileText, &hostileText
	bad.UserID = []byte(hostile)
	bad.Properties.Set(hostile, message.String(hostile))
	bad.Properties.Set("list", message.List{message.String(hostile), message.Symbol(hostile)})
	bad.Annotations = message.Map{{Key: message.Symbol(hostile), Value: message.Binary(hostile)}}
	binary := &message.Message{ID: message.Binary(hostile), Body: message.DataBody([]byte(hostile + "\x80\x81"))}

	w := newWorld(t)
	w.deadLetters("orders", hostileText, hostileText, bad, binary)
	w.stdin = "n\n"
	lines := [][]string{
		{"list"},
		{"peek", "orders"},
		{"peek", "orders", "-o", "json"},
		{"show", "orders", "--seq", "1"},
		{"show", "orders", "--seq", "2"},
		{"show", "orders", "--seq", "1", "-o", "jsonl"},
		{"groups", "orders"},
		{"groups", "orders", "-o", "json"},
		{"receive", "orders/dlq", "--limit", "2"},
		{"export", "orders"},
		{"resubmit", "orders", "--all", "--dry-run"},
		{"resubmit", "orders", "--all"},
		{"complete", "orders", "--all"},
		// and in the words of errors
		{"peek", hostile},
		{hostile},
		{"peek", "orders", "--id", hostile},
		{"peek", "orders", "--where", hostile},
		{"peek", "orders", "--jq", hostile},
		{"-c", hostile, "list"},
		{"show", "orders", "--id", hostile},
		{"send", "orders", "--set", hostile},
		{"jobs", "show", hostile},
		{"completion", hostile},
	}
	for _, terminal := range []bool{false, true} {
		w.terminal = terminal
		for _, args := range lines {
			r := w.run(args...)
			checkHarmless(t, strings.Join(args, " ")+": standard output", r.out)
			checkHarmless(t, strings.Join(args, " ")+": standard error", r.err)
			if r.out == "" && r.err == "" {
				t.Errorf("dlq %q said nothing", args)
			}
		}
	}
}

// TestHostileNames: entity names come from servers, so they are no better.
func TestHostileNames(t *testing.T) {
	w := newWorld(t)
	w.b = namedBadly{backends.Decorator{Backend: w.b}}
	for _, args := range [][]string{{"list"}, {"list", "-o", "json"}, {"peek", "orders"}} {
		r := w.run(args...)
		checkHarmless(t, args[0], r.out+r.err)
	}
}

// namedBadly answers with hostile names and hostile errors.
type namedBadly struct{ backends.Decorator }

func (namedBadly) Close() error { return nil }

func (namedBadly) Entities(context.Context, backends.EntityQuery) iter.Seq2[backends.Entity, error] {
	return func(yield func(backends.Entity, error) bool) {
		yield(backends.Entity{ID: backends.EntityID{Name: hostile}, Counts: backends.Counts{Source: hostile}}, nil)
	}
}

func (namedBadly) Peek(_ context.Context, id backends.EntityID, _ backends.PeekOptions) iter.Seq2[*message.Message, error] {
	return func(yield func(*message.Message, error) bool) {
		yield(nil, &backends.Error{Op: "peek", Entity: id, Code: backends.Unavailable, Err: errors.New(hostile)})
	}
}
