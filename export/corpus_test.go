package export

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dlq/backends"
	"dlq/backends/local"
	"dlq/backends/message"
	"dlq/backends/payload"
)

const corpusDir = "../testdata/messages"

// corpus reads the real-world messages, one a file, by the name of their file.
func corpus(t *testing.T) (names []string, ms map[string]*message.Message) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(corpusDir, "*.json"))
	if err != nil || len(paths) < 50 {
		t.Fatalf("%d files in %s: %v", len(paths), corpusDir, err)
	}
	ms = map[string]*message.Message{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		checkPlain(t, b)
		list, err := readAll(bytes.NewReader(b))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d messages, %v", path, len(list), err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		names = append(names, name)
		ms[name] = list[0]
	}
	return names, ms
}

func TestCorpusIsDescribed(t *testing.T) {
	names, ms := corpus(t)
	readme, err := os.ReadFile(filepath.Join(corpusDir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !bytes.Contains(readme, []byte("| `"+name+".json` |")) {
			t.Errorf("%s.json is not in the README", name)
		}
		for _, property := range []string{message.DeadLetterReasonProperty, message.DeadLetterDescriptionProperty} {
			if v, ok := ms[name].Properties.Get(property); !ok || message.KindOf(v) != message.KindString {
				t.Errorf("%s.json has no %s", name, property)
			}
		}
	}
	if got := bytes.Count(readme, []byte(".json` |")); got != len(names) {
		t.Errorf("the README lists %d files, there are %d", got, len(names))
	}
}

func TestCorpusRoundTrip(t *testing.T) {
	names, ms := corpus(t)
	var list []*message.Message
	for _, name := range names {
		list = append(list, ms[name])
	}
	for _, f := range []Format{JSONL, JSON} {
		back, err := readAll(bytes.NewReader(write(t, f, list...)))
		if err != nil || len(back) != len(list) {
			t.Fatalf("%s: %d of %d messages came back: %v", f, len(back), len(list), err)
		}
		for i, m := range list {
			if d := message.Diff(m, back[i]); len(d) != 0 {
				t.Errorf("%s: %s differs in %q", f, names[i], d)
			}
			if m.Broker != back[i].Broker {
				t.Errorf("%s: %s: broker %+v became %+v", f, names[i], m.Broker, back[i].Broker)
			}
		}
	}
}

// The corpus goes through a queue, out to a file and back in as it is.
func TestCorpusThroughABroker(t *testing.T) {
	ctx := context.Background()
	b, err := local.Open(ctx, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	from, to := backends.EntityID{Name: "from"}, backends.EntityID{Name: "to"}
	for _, id := range []backends.EntityID{from, to} {
		if err := b.CreateQueue(ctx, id.Name); err != nil {
			t.Fatal(err)
		}
	}
	names, ms := corpus(t)
	var sent []*message.Message
	for _, name := range names {
		m := ms[name].Clone()
		m.TTL, m.ScheduledEnqueueTime = nil, nil // it must not die or wait meanwhile
		sent = append(sent, m)
		if err := b.Send(ctx, from, []*message.Message{m}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	file := write(t, JSONL, peek(t, b, from)...)
	imported, err := readAll(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Send(ctx, to, imported); err != nil {
		t.Fatal(err)
	}
	back := peek(t, b, to)
	if len(back) != len(sent) {
		t.Fatalf("%d of %d messages came back", len(back), len(sent))
	}
	for i, m := range sent {
		if d := message.Diff(m, back[i]); len(d) != 0 {
			t.Errorf("%s differs in %q", names[i], d)
		}
	}
}

func peek(t *testing.T, b *local.Backend, id backends.EntityID) (ms []*message.Message) {
	t.Helper()
	for m, err := range b.Peek(context.Background(), id, backends.PeekOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m)
	}
	return ms
}

// What a person sees of the bodies that need reading.
func TestCorpusPayloads(t *testing.T) {
	_, ms := corpus(t)
	const orderID = "O-48300"
	for _, tt := range []struct{ name, want, contains string }{
		{"order-payment-timeout-contoso", "JSON", "O-48211"},
		{"poison-truncated-json", "text", "O-48266"},
		{"poison-deep-json", "JSON", "leaf"},
		{"soap-invoice", "XML", "INV-2026-00817"},
		{"xml-shipment-one-line", "XML", "Utrecht"},
		{"xml-utf16", "UTF-16 → XML", "KÄSE-3"},
		{"protobuf-stock-level", "protobuf", "LAMP-11"},
		{"protobuf-undeclared", "protobuf", "sensor-0042"},
		{"gzip-order", "gzip → JSON", orderID},
		{"gzip-undeclared-batch", "gzip → JSON", "page.viewed"},
		{"zlib-event", "zlib → JSON", "cart.abandoned"},
		{"base64-order", "base64 → JSON", orderID},
		{"json-string-base64-gzip", "JSON string → base64 → gzip → JSON", orderID},
		{"json-in-json-string", "JSON string → JSON", orderID},
		{"datacontract-string", "DataContract string → JSON", orderID},
		{"datacontract-bytes", "DataContract bytes → binary", "\x16\x17"},
		{"amqp-value-string", "AMQP value → JSON", orderID},
		{"amqp-value-map", "AMQP value → JSON", `"temperature":81.25`},
		{"amqp-value-null", "AMQP value → text", "null"},
		{"amqp-sequence", "AMQP sequence → JSON", `"com.microsoft:timespan":36000000000`},
		{"amqp-two-data-sections", "JSON", "O-48310"},
		{"nservicebus-place-order", "JSON", "DESK-40"},
		{"masstransit-fault", "JSON", "T-2217"},
		{"latin1-text", "binary", "Hamburg"},
		{"binary-png", "binary", "IHDR"},
		{"attack-ansi", "text", "red"},
		{"attack-bidi", "JSON", "admin only"},
		{"attack-not-utf8", "binary", "overlong"},
		{"empty-body", "empty", ""},
		{"no-body-section", "empty", ""},
		{"one-byte-body", "text", "1"},
		{"large-1-mib", "JSON", "catalogue"},
	} {
		m := ms[tt.name]
		if m == nil {
			t.Errorf("%s is gone", tt.name)
			continue
		}
		p := payload.InspectMessage(m)
		if p.Describe() != tt.want || !bytes.Contains(p.Content, []byte(tt.contains)) {
			t.Errorf("%s: %s: %.200q", tt.name, p.Describe(), p.Content)
		}
		if pretty, ok := p.Pretty(); ok != slices.Contains([]payload.Kind{payload.JSON, payload.XML, payload.Protobuf}, p.Kind) || !bytes.Contains(pretty, []byte(tt.contains)) && p.Kind != payload.JSON {
			t.Errorf("%s: laid out %v: %.200q", tt.name, ok, pretty)
		}
	}
}
