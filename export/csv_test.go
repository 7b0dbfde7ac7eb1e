package export

import (
	"bytes"
	"encoding/csv"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dlq/backends/message"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n got %s\nwant %s", path, got, want)
	}
}

func write(t interface{ Fatal(...any) }, f Format, ms ...*message.Message) []byte {
	var out bytes.Buffer
	w := NewWriter(&out, f)
	for _, m := range ms {
		if err := w.Write(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sample is a few messages that between them use what the formats treat specially.
func sample() []*message.Message {
	text := func(s string) *string { return &s }
	at := time.Date(2026, 3, 1, 9, 15, 2, 123e6, time.UTC)
	plain := &message.Message{
		ID: message.String("order-7"), Subject: text("OrderPlaced"), ContentType: text("application/json"), SessionID: text("acme"),
		Properties: message.Properties{
			{Name: "attempt", Value: message.Int(3)},
			{Name: "DeadLetterReason", Value: message.String("MaxDeliveryCountExceeded")},
			{Name: "DeadLetterErrorDescription", Value: message.String("Message could not be consumed after 10 delivery attempts.")},
		},
		Body:   message.DataBody([]byte("{\"orderId\":7,\n \"note\":\"say \\\"hi\\\"\"}")),
		Broker: message.Broker{SequenceNumber: 42, EnqueuedTime: at, DeliveryCount: 10, DeadLetterSource: "orders"},
	}
	hostile := &message.Message{
		ID: message.String("=HYPERLINK(\"http://example.com\")"), Subject: text("＝1+1"), To: text("\ufeff@SUM(A1)"), ReplyTo: text(" leading"),
		Properties: message.Properties{
			{Name: "DeadLetterReason", Value: message.String("\x1b[31mred\u202e")},
			{Name: "DeadLetterErrorDescription", Value: message.String("-2+3")},
		},
		Body:   message.DataBody([]byte{0xff, 0}),
		Broker: message.Broker{SequenceNumber: 43, EnqueuedTime: at},
	}
	value := &message.Message{
		ID:     message.UUID{15: 7},
		Body:   message.Body{Kind: message.Sequence, Sections: [][]byte{{0x45}, {0x40}}},
		Broker: message.Broker{SequenceNumber: 44, State: message.Deferred},
	}
	return []*message.Message{plain, hostile, value, {}}
}

func TestGoldens(t *testing.T) {
	for _, f := range []Format{JSONL, JSON, CSV} {
		golden(t, "sample."+f.String(), write(t, f, sample()...))
	}
}

func TestEmptyFiles(t *testing.T) {
	for f, want := range map[Format]string{JSONL: "", JSON: "[]\n", CSV: strings.Join(csvColumns(), ",") + "\r\n"} {
		if got := string(write(t, f)); got != want {
			t.Errorf("%s: %q, want %q", f, got, want)
		}
	}
}

func TestCSVDisarmsFormulas(t *testing.T) {
	for _, s := range []string{"=1+1", "+1", "-1", "@A", "\t=1", "\r=1", "\n=1", "\x00=1", "＝1", "＋1", "－1", "＠A", " =1", "\u200b=1", "\ufeff=1", "\u00a0=1"} {
		b := appendCell(nil, s)
		rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
		if err != nil || len(rows) != 1 || !strings.HasPrefix(rows[0][0], "'") {
			t.Errorf("%q became %q, %v", s, b, err)
		}
	}
	for _, s := range []string{"", "a=1", "1-1", "mail@example.com", `{"a":-1}`} {
		if b := appendCell(nil, s); strings.HasPrefix(strings.Trim(string(b), `"`), "'") {
			t.Errorf("%q became %q", s, b)
		}
	}
}

// Whatever a message holds, the table keeps its shape, no cell is a formula, and nothing
// in it steers a terminal.
func TestCSVProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.SliceOfN(rapid.Custom(anyMessage), 1, 3).Draw(t, "messages")
		out := write(t, CSV, ms...)
		if bytes.IndexByte(out, '\t') < 0 { // a tab is left as it is
			checkPlain(t, out)
		}
		rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
		if err != nil || len(rows) != len(ms)+1 {
			t.Fatalf("%d rows for %d messages: %v", len(rows), len(ms), err)
		}
		for i, row := range rows[1:] {
			for j, cell := range row {
				if number := j == 0 || j == 2; !number && startsFormula(cell) {
					t.Fatalf("row %d: formula in %s: %q", i, rows[0][j], cell)
				}
			}
		}
	})
}

func TestParseFormat(t *testing.T) {
	for _, f := range []Format{JSONL, JSON, CSV} {
		if got, err := ParseFormat(strings.ToUpper(f.String())); err != nil || got != f {
			t.Errorf("%s: %v, %v", f, got, err)
		}
		if got, ok := FormatOf("dir/dead letters." + f.String()); !ok || got != f {
			t.Errorf("%s: %v, %v", f, got, ok)
		}
	}
	if _, err := ParseFormat("xml"); err == nil {
		t.Error("xml is a format")
	}
	if _, ok := FormatOf("messages"); ok {
		t.Error("no extension is a format")
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, os.ErrClosed
	}
	return len(p), nil
}

func TestWriterKeepsItsError(t *testing.T) {
	w := NewWriter(&failing{after: 100_000}, JSONL)
	big := &message.Message{Body: message.DataBody(bytes.Repeat([]byte("x"), 50_000))}
	var err error
	for range 10 {
		if err = w.Write(big); err != nil {
			break
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil || !errors.Is(w.Write(big), err) || !errors.Is(w.Close(), err) {
		t.Errorf("the error was lost: %v", err)
	}
}
