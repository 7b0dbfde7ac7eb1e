package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"dlq/backends"
	"dlq/backends/message"
)

// TestDeleteEntityAsks: what is to go is named with what it holds, and only a yes lets it go.
func TestDeleteEntityAsks(t *testing.T) {
	for answer, want := range map[string]exitCode{"y\n": exitDone, "n\n": exitRefused, "": exitRefused} {
		w := newWorld(t)
		w.must("entity", "create", "news", "--kind", "topic")
		w.must("entity", "create", "news/a")
		w.must("entity", "create", "news/b")
		w.must("send", "news", "--body", "x")
		w.terminal, w.stdin = true, answer
		r := w.run("entity", "delete", "news", "--force")
		question := "Delete topic news with 2 subscriptions, which holds 2 active messages, for good? [y/N] "
		if r.code != want || !strings.Contains(r.err, question) {
			t.Errorf("answered %q: exit code %d: %s", answer, r.code, r.err)
		}
		w.terminal = false
		left := "news"
		if want == exitDone {
			left = ""
		}
		if got := w.run("list", "-o", "jsonl").out; strings.Contains(got, "news") != (left != "") {
			t.Errorf("answered %q, left %s", answer, got)
		}
	}
}

// TestSetRuleUnderItsOwnName: a rule is replaced in one command.
func TestSetRuleUnderItsOwnName(t *testing.T) {
	w := newWorld(t)
	w.must("entity", "create", "news", "--kind", "topic")
	w.must("entity", "create", "news/a", "--rule", "r", "--filter", "a = 1")
	w.must("entity", "set", "news/a", "--remove-rule", "R", "--add-rule", "r", "--correlation", "a:b:string=x", "--correlation", "n:long=2", "--action", "REMOVE a")
	var sheet entitySheet
	if err := json.Unmarshal([]byte(w.must("entity", "show", "news/a", "-o", "jsonl")), &sheet); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(sheet.Rules)
	if want := `[{"name":"r","correlation":["a:b:string=x","n:long=2"],"action":"REMOVE a"}]`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	w.must("entity", "set", "news/a", "--remove-rule", "r")
	if got := w.must("entity", "show", "news/a"); !strings.Contains(got, "\nno rules: nothing is let through\n") {
		t.Errorf("without rules:\n%s", got)
	}
}

// TestCorrelationIsWrittenAsItIsRead: what show prints can be given to --correlation again.
func TestCorrelationIsWrittenAsItIsRead(t *testing.T) {
	for _, value := range []message.Value{
		message.String("x"), message.String(""), message.Int(-1), message.Bool(true), message.UUID{1}, message.Timestamp(5), message.Binary("\x00"),
	} {
		for _, name := range []string{"n", "sys.Label", "a:b", "a:int", "a b"} {
			want := message.Attribute{Name: name, Value: value}
			text := correlationTexts(backends.Rule{Correlation: []message.Attribute{want}})[0]
			flags := ruleFlags{name: "r", correlation: []string{text}}
			rules, err := flags.rule("rule")
			if err != nil || len(rules) != 1 {
				t.Errorf("%q: %v", text, err)
				continue
			}
			if got := rules[0].Correlation[0]; got.Name != want.Name || !message.EqualValues(got.Value, want.Value) {
				t.Errorf("%q is read as %v, want %v", text, got, want)
			}
		}
	}
}

// TestEntityNeedsAdministration: a backend without it says so.
func TestEntityNeedsAdministration(t *testing.T) {
	w := newWorld(t)
	w.b = struct{ backends.Backend }{w.b}
	for _, line := range []string{"create orders", "show orders", "set orders LockDuration=30s", "delete orders --yes"} {
		if r := w.run(append([]string{"entity"}, strings.Fields(line)...)...); r.code != exitFailed || !strings.Contains(r.err, "cannot administer entities") {
			t.Errorf("entity %s: exit code %d: %s", line, r.code, r.err)
		}
	}
}

// uncounted is a backend that does not count.
type uncounted struct{ backends.Decorator }

func (u uncounted) Entities(ctx context.Context, q backends.EntityQuery) iter.Seq2[backends.Entity, error] {
	q.NoCounts = true
	return u.Decorator.Entities(ctx, q)
}

// TestUnknownCountsAreNotNone: what may hold messages is not deleted by accident.
func TestUnknownCountsAreNotNone(t *testing.T) {
	w := newWorld(t)
	w.queue("orders")
	w.b = uncounted{backends.Decorator{Backend: w.b}}
	r := w.run("entity", "delete", "orders", "--yes")
	if r.code != exitRefused || !strings.Contains(r.err, "an unknown number of active messages") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	w.must("entity", "delete", "orders", "--yes", "--force")
}

// TestHostileEntity: what a server tells of an entity does not reach the terminal raw.
func TestHostileEntity(t *testing.T) {
	w := newWorld(t)
	w.b = telltale{backends.Decorator{Backend: w.b}}
	for _, form := range []string{"table", "jsonl"} {
		if got := w.must("entity", "show", "x", "-o", form); strings.ContainsAny(got, "\x1b\u202e") {
			t.Errorf("%s: %q", form, got)
		}
	}
	w.terminal, w.stdin = true, "n\n"
	if r := w.run("entity", "set", "x", "a=b"); strings.Contains(r.err, "\x1b[2J") {
		t.Errorf("set: %q", r.err)
	}
}

// telltale describes an entity with texts that would take a terminal over.
type telltale struct{ backends.Decorator }

func (telltale) DescribeEntity(context.Context, backends.EntityID) (backends.EntityDescription, error) {
	const bad = "a\x1b[2J\u202eb"
	return backends.EntityDescription{
		ID: backends.EntityID{Name: bad}, Kind: backends.Subscription,
		Properties: []backends.Property{{Name: bad, Value: bad, Default: bad, Range: bad}},
		Rules: []backends.Rule{
			{Name: bad, Filter: bad, Action: bad},
			{Name: bad, Correlation: []message.Attribute{{Name: bad, Value: message.String(bad)}}},
		},
	}, nil
}

func (telltale) ChangeEntity(context.Context, backends.EntityID, ...backends.Setting) error {
	return errors.New("\x1b[2J")
}

// TestCauseOfTooManyDeliveries: the documented name of the reason says as little as the real one.
func TestCauseOfTooManyDeliveries(t *testing.T) {
	for _, reason := range []string{"MaxDeliveryCountExceeded", "MaxDeliveryCountExceededExceptionMessage"} {
		m := &message.Message{Properties: message.Properties{
			{Name: message.DeadLetterReasonProperty, Value: message.String(reason)},
			{Name: message.DeadLetterDescriptionProperty, Value: message.String("Message could not be consumed after 10 delivery attempts.")},
			{Name: "MT-Fault-ExceptionType", Value: message.String("Acme.OutOfStock")},
		}}
		if got := cause(m); got != "Acme.OutOfStock" {
			t.Errorf("%s: the cause is %q", reason, got)
		}
	}
}
