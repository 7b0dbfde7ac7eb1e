package cmd

import (
	"bufio"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dlq/backends/message"
	"dlq/tui/textview"
)

func TestListForms(t *testing.T) {
	w := newWorld(t)
	w.deadLetters("orders", "Broken", "no street", text("order-1", "{}"), text("order-2", "{}"))
	w.queue("audit", text("a-1", "x"))
	w.clock = w.clock.Add(90 * time.Minute)

	if got, want := w.must("list"), `NAME    KIND   ACTIVE  DEAD  TRANSFER  SCHEDULED  DEFERRED  OLDEST  COUNTS
audit   queue       1     0         0          0         0       -  exact
orders  queue       0     2         0          0         0      1h  exact
`; got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
	if got, want := w.must("list", "ord", "-o", "jsonl"),
		`{"name":"orders","kind":"queue","active":0,"deadLetter":2,"transferDeadLetter":0,"scheduled":0,"deferred":0,`+
			`"delayed":0,"inFlight":0,"summed":false,"oldest":"2026-03-01T12:00:00Z","deadLetters":"orders/$DeadLetterQueue","sources":[],`+
			`"source":"exact","asOf":"2026-03-01T13:30:00Z"}`+"\n"; got != want {
		t.Errorf("jsonl:\n%s\nwant:\n%s", got, want)
	}
	var rows []entityRow
	if err := json.Unmarshal([]byte(w.must("list", "-o", "json")), &rows); err != nil || len(rows) != 2 || rows[0].Name != "audit" {
		t.Errorf("json: %v, %+v", err, rows)
	}
}

// TestNothingMatchedIsStillJSON: a script that pipes into jq gets a document in every case.
func TestNothingMatchedIsStillJSON(t *testing.T) {
	w := newWorld(t)
	w.deadLetters("orders", "Broken", "", text("order-1", "{}"))
	for _, line := range []string{"peek orders --id x -o json", "groups orders --id x -o json", "list zzz -o json"} {
		r := w.run(strings.Fields(line)...)
		if r.code != exitNothing || r.out != "[]\n" {
			t.Errorf("dlq %s: exit code %d, output %q", line, r.code, r.out)
		}
	}
	if got := w.must("jobs", "list", "-o", "json"); got != "[]\n" {
		t.Errorf("jobs list of nothing: %q", got)
	}
}

// TestKeys pins what scripts read.
func TestKeys(t *testing.T) {
	tests := []struct {
		row  any
		keys string
	}{
		{entityRow{}, "active asOf deadLetter deadLetters deferred delayed inFlight kind name oldest scheduled source sources summed transferDeadLetter"},
		{groupRow{}, "count detail first id last reason sampleId sampleSeq"},
		{jobRow{}, "command conn done entity failed id kind left lost matched selection skipped started state uncertain updated"},
		{itemRow{}, "id seq state"},
		{entitySheet{Rules: []ruleSheet{{}}}, "created kind modified name properties rules"},
		{propertySheet{}, "default immutable range value"},
		{ruleSheet{Filter: "1=1", Correlation: []string{"a=1"}, Action: "REMOVE a"}, "action correlation filter name"},
	}
	for _, tt := range tests {
		b, err := appendJSON(nil, tt.row)
		if err != nil {
			t.Fatal(err)
		}
		var keys map[string]any
		if err := json.Unmarshal(b, &keys); err != nil {
			t.Fatal(err)
		}
		for _, key := range strings.Fields(tt.keys) {
			if _, ok := keys[key]; !ok {
				t.Errorf("%T has lost the key %q", tt.row, key)
			}
			delete(keys, key)
		}
		for key := range keys {
			t.Errorf("%T has the key %q, which this test and dlq help json do not know", tt.row, key)
		}
	}
}

// TestTerminal: colours and a cut to the width on a terminal, neither in a pipe, and no
// colour with NO_COLOR.
func TestTerminal(t *testing.T) {
	w := newWorld(t)
	w.deadLetters("orders", "Broken", strings.Repeat("a long story ", 30), text("order-1", "{}"))
	piped := w.must("peek", "orders")
	if strings.Contains(piped, "\x1b") {
		t.Errorf("a pipe got an escape sequence: %q", piped)
	}
	if !strings.Contains(piped, strings.TrimSpace(strings.Repeat("a long story ", 30))) {
		t.Errorf("a pipe got a cut description: %q", piped)
	}
	w.terminal = true
	shown := w.must("peek", "orders")
	if !strings.Contains(shown, bold) || !strings.Contains(shown, yellow) {
		t.Errorf("a terminal got no colour: %q", shown)
	}
	w.env["NO_COLOR"] = "1"
	plain := w.must("peek", "orders")
	if strings.Contains(plain, "\x1b") {
		t.Errorf("NO_COLOR is not honoured: %q", plain)
	}
	for line := range strings.Lines(plain) {
		if n := textview.Width(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("a line of %d cells on a terminal of 100: %q", n, line)
		}
	}
}

// TestLateRows: rows after the sample keep their columns, and wider ones are not cut in a pipe.
func TestLateRows(t *testing.T) {
	r := strings.Builder{}
	a := &app{}
	a.out = newBuffer(&r)
	out := newListing(a, table, []column[string]{
		{title: "N", cell: func(s string) string { return s }},
		{title: "LEN", right: true, cell: func(s string) string { return count(int64(len(s))) }},
	}, nil)
	for range sampleRows {
		if err := out.add("abc"); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []string{"a", "abcdefgh"} {
		if err := out.add(s); err != nil {
			t.Fatal(err)
		}
	}
	out.end()
	a.flush()
	lines := strings.Split(r.String(), "\n")
	if got := lines[len(lines)-3]; got != "a      1" {
		t.Errorf("a narrow late row: %q", got)
	}
	if got := lines[len(lines)-2]; got != "abcdefgh    8" {
		t.Errorf("a wide late row: %q", got)
	}
}

func TestAppendJSONEscapes(t *testing.T) {
	got, err := appendJSON(nil, map[string]string{"k": "a<b>\x1b[31m\x7f\u009b\u202e\u200b\U000e0041é\u2028"})
	want := `{"k":"a<b>\u001b[31m\u007f\u009b\u202e\u200b\udb40\udc41é\u2028"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestSpan(t *testing.T) {
	tests := map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59 * time.Minute: "59m",
		time.Hour: "1h", 47 * time.Hour: "47h", 48 * time.Hour: "2d", 400 * 24 * time.Hour: "400d",
	}
	for d, want := range tests {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	tests := map[int64]string{0: "0", 1023: "1023", 1024: "1.0K", 1536: "1.5K", 1 << 20: "1.0M", 5 << 40: "5.0T", 5000 << 40: "5000.0T"}
	for n, want := range tests {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestPreviewCutsWholeCharacters(t *testing.T) {
	m := text("x", strings.Repeat("é", 200))
	if got := preview(m); strings.Contains(textview.Sanitise(got), "<") || !strings.HasSuffix(got, "…") {
		t.Errorf("preview = %q", got)
	}
	if got := preview(&message.Message{}); got != "" {
		t.Errorf("preview of nothing = %q", got)
	}
}

// TestSparseColumns: a column that says nothing is left out, but not when what it says may
// come later.
func TestSparseColumns(t *testing.T) {
	columns := []column[int]{
		{title: "N", cell: func(n int) string { return strconv.Itoa(n) }},
		{title: "ODD", sparse: true, cell: func(n int) string { return strings.Repeat("odd", n%2) }},
		{title: "BIG", sparse: true, cell: func(n int) string {
			if n > sampleRows {
				return "big"
			}
			return ""
		}},
	}
	for _, tt := range []struct {
		rows []int
		want string // the heading
	}{
		{[]int{2, 4}, "N"},
		{[]int{2, 3}, "N  ODD"},
		{[]int{2, sampleRows + 2}, "N    BIG"},
		{make([]int, sampleRows+1), "N  ODD  BIG"},
	} {
		var out strings.Builder
		a := &app{streams: streams{out: bufio.NewWriter(&out)}}
		if err := newListing(a, table, columns, nil).all(succeeding(slices.Values(tt.rows))); err != nil {
			t.Fatal(err)
		}
		a.flush()
		if heading, _, _ := strings.Cut(out.String(), "\n"); heading != tt.want {
			t.Errorf("%d rows: the heading is %q, want %q", len(tt.rows), heading, tt.want)
		}
	}
}
