package resubmit

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/message"
	"dlq/backends/sqlfilter"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// selectable is a dead letter with something for every kind of selection.
func selectable() *message.Message {
	m := &message.Message{
		ID: message.String("id-7"), Subject: ptr("OrderPlaced"), SessionID: ptr("s1"), ContentType: ptr("application/json"),
		Body: message.DataBody([]byte(`{"total": 12345678901234567890, "lines": [{"sku": "A-1", "qty": 3}], "note": "Über timeout"}`)),
	}
	m.Broker.SequenceNumber, m.Broker.EnqueuedTime = 42, noon.Add(-time.Hour)
	m.Properties = message.Properties{
		{Name: "tenant", Value: message.String("acme")},
		{Name: "DeadLetterReason", Value: message.String("PaymentFailed")},
		{Name: "DeadLetterErrorDescription", Value: message.String("card 4711 declined")},
	}
	return m
}

func TestSelection(t *testing.T) {
	group := SignatureOf(selectable()).ID
	for _, c := range []struct {
		s    Selection
		want bool
	}{
		{Selection{All: true}, true},
		{Selection{Where: "tenant = 'acme' AND sys.DeadLetterReason LIKE 'Pay%'"}, true},
		{Selection{Where: "body LIKE '%timeout%'"}, true},
		{Selection{Where: "body.$.lines[0].qty > 2"}, true},
		{Selection{Where: "body.$.lines[0].sku = 'A-2'"}, false},
		{Selection{Where: "nosuch = 1"}, false},
		{Selection{Reason: "paymentfailed"}, true},
		{Selection{Reason: "PAY%"}, true},
		{Selection{Reason: "Payment"}, false},
		{Selection{Text: "über DECLINED orderplaced"}, true},
		{Selection{Text: `"card 4711" id-7`}, true},
		{Selection{Text: `"4711 card"`}, false},
		{Selection{JQ: ".total == 12345678901234567890"}, true},
		{Selection{JQ: ".lines[] | select(.qty > 5)"}, false},
		{Selection{JQ: ".nosuch"}, false},
		{Selection{JQ: "empty"}, false},
		{Selection{Group: strings.ToUpper(group)}, true},
		{Selection{Group: "00000000"}, false},
		{Selection{Since: "2h"}, true},
		{Selection{Since: "30m"}, false},
		{Selection{Until: "30m"}, true},
		{Selection{Since: "2026-03-01", Until: "2026-03-01T11:00:00Z"}, false},
		{Selection{Since: "2026-03-01T12:00:00+01:00"}, true},
		{Selection{Session: ptr("s1")}, true},
		{Selection{Session: ptr("")}, false},
		{Selection{IDs: []string{"x", "id-7"}}, true},
		{Selection{Seqs: []int64{41, 43}}, false},
		{Selection{Seqs: []int64{42}, Reason: "other"}, false},
	} {
		q, err := c.s.Compile(noon)
		if err != nil {
			t.Errorf("%s: %v", c.s, err)
			continue
		}
		for range 2 {
			if got, err := q.Match(selectable()); got != c.want || err != nil {
				t.Errorf("%s: %v, %v; want %v", c.s, got, err, c.want)
			}
			// Frozen and compiled a year later it is still the same.
			if q, err = q.Selection().Compile(noon.AddDate(1, 0, 0)); err != nil {
				t.Fatal(err)
			}
		}
		without := selectable()
		without.Broker.BodyOmitted, without.Body = true, message.Body{}
		if got, err := q.Match(without); q.NeedsBody() != (err != nil) || err == nil && got != c.want {
			t.Errorf("%s, without the body: %v, %v; it needs the body: %v", c.s, got, err, q.NeedsBody())
		}
	}
}

func TestSelectionLooksThroughCompression(t *testing.T) {
	m := selectable()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(m.Body.Bytes())
	_ = w.Close()
	m.Body = message.DataBody(b.Bytes())
	for _, s := range []Selection{{Where: "body LIKE '%timeout%'"}, {JQ: `.note | test("timeout")`}, {Text: "timeout"}, {Where: "body.$.lines[0].sku = 'A-1'"}} {
		q, err := s.Compile(noon)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := q.Match(m); !ok || err != nil {
			t.Errorf("%s: %v, %v", s, ok, err)
		}
	}
}

func TestSelectionErrors(t *testing.T) {
	for _, s := range []Selection{{JQ: ".["}, {Since: "soon"}, {Until: "-3h"}, {Since: "1h", Until: "2h"}, {Limit: -1}} {
		if _, err := s.Compile(noon); err == nil {
			t.Errorf("%s compiles", s)
		}
	}
	var syntax *sqlfilter.Error
	if _, err := (Selection{Where: "tenant = "}).Compile(noon); !errors.As(err, &syntax) {
		t.Errorf("a syntax error is %T, want one with a position", err)
	}
	for s, want := range map[string]time.Duration{"90s": 90 * time.Second, "3d": 72 * time.Hour, "1w2d": 9 * 24 * time.Hour, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour} {
		if got, err := ParseAge(s); got != want || err != nil {
			t.Errorf("age %q: %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "3", "d", "-1d", "1d-2h", "1e99d", "tomorrow", "nand", "nanw", "infd", "15000w15000w", "30000d2562000h"} {
		if d, err := ParseAge(s); err == nil {
			t.Errorf("age %q: %v", s, d)
		}
	}
}

func TestEmptySelection(t *testing.T) {
	if !(Selection{}).Empty() || !(Selection{Limit: 5}).Empty() || (Selection{All: true}).Empty() || (Selection{Session: ptr("")}).Empty() {
		t.Error("empty is what narrows nothing and does not say all")
	}
	f := newFixture(t)
	if _, err := NewPlan(f.ctx, f.env, Spec{Kind: Resubmit, From: dead}); !errors.Is(err, ErrNoSelection) {
		t.Errorf("a plan without a selection: %v", err)
	}
}

func TestSelectionString(t *testing.T) {
	s := Selection{Where: "a = 'x'", Reason: "Max%", Session: ptr(""), IDs: []string{"a b"}, Seqs: []int64{1, 2}, Limit: 5}
	if got, want := s.String(), `--where 'a = '\''x'\''' --reason Max% --session '' --id 'a b' --seq 1 --seq 2 --limit 5`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestParseFilter(t *testing.T) {
	for line, want := range map[string]Selection{
		"":                             {All: true},
		"  ":                           {All: true},
		"timeout":                      {Text: "timeout"},
		"service is down":              {Text: "service is down"},
		`"a = b" c`:                    {Text: `"a = b" c`},
		"tenant = 'acme corp'":         {Where: "tenant = 'acme corp'"},
		"tenant IS NOT NULL":           {Where: "tenant IS NOT NULL"},
		"reason:Max% tenant='x'":       {Reason: "Max%", Where: "tenant='x'"},
		`reason:"payment failed" card`: {Reason: "payment failed", Text: "card"},
		"group:0a1b2c3d":               {Group: "0a1b2c3d"},
		"id:a id:b seq:7":              {IDs: []string{"a", "b"}, Seqs: []int64{7}},
		"session:s since:2h until:1h":  {Session: ptr("s"), Since: "2h", Until: "1h"},
		"limit:5":                      {Limit: 5, All: true},
		"http://x":                     {Text: "http://x"},
		"reason:":                      {Text: "reason:"},
	} {
		got, err := ParseFilter(line)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{"seq:x", "limit:0", "limit:many"} {
		if got, err := ParseFilter(line); err == nil {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, line := range []string{"", "timeout", `reason:"a b" x = 'y'`, "[a] is null", "since:2h limit:3 seq:9"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s, err := ParseFilter(line)
		if err != nil {
			return
		}
		if s.Empty() {
			t.Fatalf("%q selects nothing and does not say so", line)
		}
		if q, err := s.Compile(noon); err == nil {
			_, _ = q.Match(selectable())
		}
	})
}

// TestSelect sweeps with a limit, sparse numbers, and messages that cannot be judged.
func TestSelect(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			f.bury(400)
			all := f.peek(dead)
			seq := func(i int) int64 { return all[i].Broker.SequenceNumber }
			for _, c := range []struct {
				s    Selection
				want []int
			}{
				{Selection{Where: "n >= 390", Limit: 3}, []int{390, 391, 392}},
				{Selection{Seqs: []int64{seq(399), seq(0), seq(200), 1 << 40, seq(201), seq(200)}}, []int{0, 200, 201, 399}},
				{Selection{Seqs: []int64{seq(5)}, Limit: 1}, []int{5}},
				{Selection{Seqs: []int64{1 << 40}}, nil},
				{Selection{JQ: ". == 7"}, []int{7}},
			} {
				q, err := c.s.Compile(noon)
				if err != nil {
					t.Fatal(err)
				}
				var got []int
				for m, err := range q.Select(f.ctx, f.env.Backend, dead) {
					if err != nil {
						t.Fatal(err)
					}
					n, _ := m.Properties.Get("n")
					got = append(got, int(n.(message.Int)))
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%s: %v, want %v", c.s, got, c.want)
				}
			}
			q, err := Selection{JQ: ".x.y"}.Compile(noon)
			if err != nil {
				t.Fatal(err)
			}
			for m, err := range q.Select(f.ctx, f.env.Backend, dead) {
				t.Errorf("a number has .x.y: %v, %v", m, err)
			}
			if n, first := q.Unjudged(); n != 400 || first == nil || !strings.Contains(first.Error(), fmt.Sprint("seq ", seq(0))) {
				t.Errorf("%d could not be judged, the first: %v", n, first)
			}
			if free := f.sweep(dead); free != 400 {
				t.Errorf("%d are free afterwards", free)
			}
		})
	}
}

func TestPreflight(t *testing.T) {
	elsewhere := backends.EntityID{Name: "elsewhere"}
	spec := Spec{Kind: Resubmit, From: dead, Selection: Selection{All: true}}
	with := func(change func(*Spec)) Spec { s := spec; change(&s); return s }
	for _, c := range []struct {
		name     string
		spec     Spec
		msg      func(*message.Message)
		bare     bool // the core interface alone
		warnings []string
		vetoes   []string
	}{
		{"nothing to say", spec, nil, false, nil, nil},
		{"a destination that is made", with(func(s *Spec) { s.To = &elsewhere }), nil, false, []string{FindCreates}, nil},
		{"a destination that cannot be", with(func(s *Spec) { s.To = &elsewhere }), nil, true, []string{FindLeases, FindPossiblyTwice}, []string{FindDestinationMissing}},
		{"to itself", with(func(s *Spec) { s.To = &dead }), nil, false, []string{FindSkips}, []string{FindSameEntity, FindNothingToSend}},
		{"too many", with(func(s *Spec) { s.Max = 1 }), nil, false, nil, []string{FindTooMany}},
		{"as many as allowed", with(func(s *Spec) { s.Max = 2 }), nil, false, nil, nil},
		{"nothing can be sent", with(func(s *Spec) { s.Edits.BodyJQ = ".a.b" }), nil, false, []string{FindSkips}, []string{FindNothingToSend}},
		{"it expires again", with(func(s *Spec) { s.Selection = Selection{Reason: reasonTTLExpired} }), func(m *message.Message) { m.TTL = ptr(30 * time.Hour) }, false, []string{FindTimeToLive}, nil},
		{"unjudged", with(func(s *Spec) { s.Selection = Selection{JQ: ".a.b"} }), nil, false, []string{FindUnjudged}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			if c.bare {
				f.leaseOnly()
			}
			var msgs []*message.Message
			for i := range 2 {
				m := &message.Message{ID: message.Ulong(i), Body: message.DataBody([]byte("1"))}
				if c.msg != nil {
					c.msg(m)
				}
				msgs = append(msgs, m)
			}
			if slices.Contains(c.warnings, FindTimeToLive) {
				f.cause.Reason = reasonTTLExpired
			}
			f.buryAll(msgs...)
			p, err := NewPlan(f.ctx, f.env, c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := codes(p.Warnings); !slices.Equal(got, c.warnings) {
				t.Errorf("warnings %v, want %v", p.Warnings, c.warnings)
			}
			if got := codes(p.Vetoes); !slices.Equal(got, c.vetoes) {
				t.Errorf("vetoes %v, want %v", p.Vetoes, c.vetoes)
			}
			f.holds(dead, 2)
			f.holds(orders, 0)
			if jobs, err := f.env.Journals.List(); err != nil || len(jobs) > 0 {
				t.Errorf("a plan leaves %v, %v", jobs, err)
			}
			r, err := Run(f.ctx, f.env, p, nil)
			if refused := errors.Is(err, ErrRefused); refused != (len(c.vetoes) > 0) || refused && (r.Done != 0 || len(f.peek(dead)) != 2) {
				t.Errorf("run: %s, %v", r.Summary(), err)
			}
		})
	}
}

func codes(findings []Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Code)
	}
	return out
}

func TestDestinations(t *testing.T) {
	sub := backends.EntityID{Name: "billing/Subscriptions/invoices"}
	for _, c := range []struct {
		name    string
		from    backends.EntityID
		source  string
		sources []backends.EntityID
		want    string
	}{
		{"its own sub-queue", dead, "", nil, "orders"},
		{"the transfer sub-queue", backends.EntityID{Name: "orders", Sub: backends.TransferDeadLetterQueue}, "", nil, "orders"},
		{"a subscription's goes to the topic", sub.DeadLetters(), "", nil, "billing"},
		{"forwarded dead letters know", orders, "billing/Subscriptions/invoices/$DeadLetterQueue", nil, "billing"},
		{"a queue named by one policy", orders, "", []backends.EntityID{{Name: "source"}}, "source"},
		{"named by several", orders, "", []backends.EntityID{{Name: "a"}, {Name: "b"}}, ""},
		{"nonsense", orders, "//", nil, ""},
	} {
		m := &message.Message{}
		m.Broker.DeadLetterSource = c.source
		got, err := destinationOf(Spec{From: c.from}, backends.Entity{Sources: c.sources}, m)
		if got.String() != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

func TestCreatesDestinationAndDelays(t *testing.T) {
	f := newFixture(t)
	f.bury(3)
	to := backends.EntityID{Name: "later"}
	r := f.run(Spec{To: &to, Delay: time.Hour, Copy: true})
	f.want(r, "copied 3, left 0, lost 0")
	if len(r.Created) != 1 || r.Created[0] != to {
		t.Errorf("made %v, want %s", r.Created, to)
	}
	f.holds(dead, 3)
	for _, m := range f.peek(to) {
		if m.Broker.State != message.Scheduled || !m.ScheduledEnqueueTime.Equal(f.clock.Now().Add(time.Hour)) {
			t.Errorf("%v: %v, due %v", m.ID, m.Broker.State, m.ScheduledEnqueueTime)
		}
	}
}

func TestPreview(t *testing.T) {
	f := newFixture(t)
	f.bury(5)
	p := f.plan(Spec{Edits: Edits{BodyJQ: "if . == 1 then error else . + 10 end"}})
	changes, err := p.Preview(f.ctx, f.env, 2)
	if err != nil || len(changes) != 2 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	if c := changes[0]; c.Err != nil || string(c.After.Body.Bytes()) != "10" || string(c.Before.Body.Bytes()) != "0" || c.To != orders {
		t.Errorf("%+v", c)
	}
	if c := changes[1]; c.Err == nil || c.After != nil {
		t.Errorf("%+v", c)
	}
}

// TestEndlessJQ: a program that does not end costs its time once, not for every message.
func TestEndlessJQ(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			f.buryAll(slices.Repeat([]*message.Message{{Body: message.DataBody([]byte("{}"))}}, 20)...)
			q, err := (Selection{JQ: "last(repeat(1))"}).Compile(noon)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			var errs []error
			for m, err := range q.Select(f.ctx, f.env.Backend, dead) {
				if errs = append(errs, err); err == nil {
					t.Errorf("it selects %v", m)
				}
			}
			if len(errs) != 1 || !errors.Is(errs[0], errJQTime) || !strings.HasSuffix(errs[0].Error(), "the jq program took longer than 1s") {
				t.Errorf("the errors are %v", errs)
			}
			if n, _ := q.Unjudged(); n != 1 {
				t.Errorf("%d messages were tried, in %v", n, time.Since(began))
			}
		})
	}
}

func TestTextFindsExceptions(t *testing.T) {
	m := selectable()
	m.Properties.Set("NServiceBus.ExceptionInfo.ExceptionType", message.String("System.TimeoutException"))
	m.Properties.Set("NServiceBus.ExceptionInfo.Message", message.String("no answer from ledger-db"))
	for text, want := range map[string]bool{"timeoutexception LEDGER-DB": true, `"no answer" card`: true, "ledger-dc": false} {
		q, err := (Selection{Text: text}).Compile(noon)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := q.Match(m); got != want || err != nil {
			t.Errorf("text %q: %v, %v; want %v", text, got, err, want)
		}
	}
}
