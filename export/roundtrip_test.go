package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"dlq/backends/message"
)

func float32frombits(b uint32) float32 { return math.Float32frombits(b) }
func float64frombits(b uint64) float64 { return math.Float64frombits(b) }

// oddValues has every type, and what JSON would lose if it could.
func oddValues() []message.Value {
	return []message.Value{
		message.Null{},
		message.Bool(true), message.Bool(false),
		message.Ubyte(255), message.Ushort(65535), message.Uint(math.MaxUint32), message.Ulong(math.MaxUint64), message.Ulong(1 << 53),
		message.Byte(-128), message.Short(-32768), message.Int(math.MinInt32), message.Long(math.MinInt64), message.Long(math.MaxInt64), message.Long(0),
		message.Float(0.1), message.Float(math.Copysign(0, -1)), message.Float(math.Inf(1)), message.Float(math.NaN()),
		message.Float(float32frombits(0x7f800001)), message.Float(math.MaxFloat32), message.Float(math.SmallestNonzeroFloat32),
		message.Double(0.1), message.Double(math.Copysign(0, -1)), message.Double(math.Inf(-1)), message.Double(math.NaN()),
		message.Double(float64frombits(0xfff8000000000001)), message.Double(math.MaxFloat64), message.Double(1e21),
		message.Decimal32{0x22, 0x50},
		message.Decimal64{7: 1},
		message.Decimal128{15: 1},
		message.Char('é'), message.Char('"'), message.Char(0), message.Char('5'), message.Char(0x1f600), message.Char(0xd800), message.Char(-1), message.Char(utf8.RuneError),
		message.Timestamp(0), message.Timestamp(1767225845123), message.Timestamp(-62135596800000), message.Timestamp(-62135596800001),
		message.Timestamp(253402300799999), message.Timestamp(253402300800000), message.Timestamp(math.MaxInt64), message.Timestamp(math.MinInt64),
		message.UUID{},
		message.UUID{1, 15: 2},
		message.Binary{},
		message.Binary("text"), message.Binary("\x00\xff"),
		message.String(""), message.String("plain"), message.String("\xff\xfe"), message.String("\x1b]0;x\x07\u202e"), message.String(`{"type":"int"}`),
		message.Symbol(""), message.Symbol("x-opt"), message.Symbol("\xff"),
		message.List{},
		message.List{message.Null{}, message.String("a"), message.List{message.Uint(0)}},
		message.Map{},
		message.Map{{Key: message.String("z"), Value: message.Int(1)}, {Key: message.String("a"), Value: message.Null{}}},
		message.Map{{Key: message.Symbol("k"), Value: message.Int(1)}},
		message.Map{{Key: message.String("\xff"), Value: message.Int(1)}},
		message.Map{{Key: message.String("k"), Value: message.Int(1)}, {Key: message.String("k"), Value: message.Int(2)}},
		message.Map{{Key: message.Int(7), Value: message.Described{Descriptor: message.Symbol("com.microsoft:uri"), Value: message.String("https://example.com")}}},
		message.Array{Elem: message.KindInt},
		message.Array{Elem: message.KindDescribed},
		message.Array{Elem: message.KindInt, Items: []message.Value{message.Int(1), message.Int(-1)}},
		message.Array{Elem: message.KindNull, Items: []message.Value{message.Null{}}},
		message.Array{Elem: message.KindDouble, Items: []message.Value{message.Double(math.NaN()), message.Double(1)}},
		message.Array{Elem: message.KindString, Items: []message.Value{message.String("a"), message.String("\xff")}},
		message.Array{Elem: message.KindBinary, Descriptor: message.Ulong(5), Items: []message.Value{message.Binary{1}}},
		message.Array{Elem: message.KindMap, Items: []message.Value{message.Map{}, message.Map{{Key: message.Null{}, Value: message.Null{}}}}},
		message.Described{Descriptor: message.Ulong(0x137000000c), Value: message.List{message.Null{}}},
		message.Described{Descriptor: message.Symbol("com.microsoft:timespan"), Value: message.Long(36000000000)},
	}
}

func TestValueRoundTrip(t *testing.T) {
	for _, v := range oddValues() {
		b, err := AppendValueJSON([]byte("before"), v)
		if err != nil {
			t.Errorf("%s %v: %v", message.KindOf(v), v, err)
			continue
		}
		b = b[len("before"):]
		if !json.Valid(b) {
			t.Errorf("%s is not JSON", b)
		}
		got, err := ReadValueJSON(b)
		if err != nil || !message.EqualValues(got, v) {
			t.Errorf("%s came back as %#v, %v", b, got, err)
		}
		// Tools that sort keys put "base64" and "elem" before and "value" behind "type"; some put "value" first.
		var generic map[string]json.RawMessage
		if json.Unmarshal(b, &generic) == nil && generic["value"] != nil {
			flipped := []byte(`{"value":` + string(generic["value"]))
			for k, raw := range generic {
				if k != "value" {
					flipped = append(append(append(flipped, `,"`+k+`":`...), raw...), ' ')
				}
			}
			got, err := ReadValueJSON(append(flipped, '}'))
			if err != nil || !message.EqualValues(got, v) {
				t.Errorf("%s} came back as %#v, %v", flipped, got, err)
			}
		}
	}
}

// The JSON of typed values is a file format: what is written must not change.
func TestValueForm(t *testing.T) {
	for _, tt := range []struct {
		v    message.Value
		want string
	}{
		{message.String("a\x1b\u202e\u00e9"), `"a\u001b\u202eé"`},
		{message.Bool(true), `true`},
		{message.Null{}, `null`},
		{message.Int(5), `{"type":"int","value":5}`},
		{message.Long(1<<53 - 1), `{"type":"long","value":9007199254740991}`},
		{message.Long(1 << 53), `{"type":"long","value":"9007199254740992"}`},
		{message.Ulong(math.MaxUint64), `{"type":"ulong","value":"18446744073709551615"}`},
		{message.Float(0.1), `{"type":"float","value":0.1}`},
		{message.Double(math.Inf(-1)), `{"type":"double","value":"-Infinity"}`},
		{message.Double(math.NaN()), `{"type":"double","value":"NaN"}`},
		{message.Double(float64frombits(0xfff8000000000001)), `{"type":"double","bits":"fff8000000000001"}`},
		{message.Decimal32{0x22, 0x50}, `{"type":"decimal32","value":"22500000"}`},
		{message.Char('é'), `{"type":"char","value":"é"}`},
		{message.Char(0xd800), `{"type":"char","value":55296}`},
		{message.Timestamp(0), `{"type":"timestamp","value":"1970-01-01T00:00:00.000Z"}`},
		{message.Timestamp(253402300800000), `{"type":"timestamp","value":"253402300800000"}`},
		{message.UUID{15: 1}, `{"type":"uuid","value":"00000000-0000-0000-0000-000000000001"}`},
		{message.Symbol("s"), `{"type":"symbol","value":"s"}`},
		{message.String("\xff"), `{"type":"string","base64":"/w=="}`},
		{message.Binary{0xff}, `{"type":"binary","base64":"/w=="}`},
		{message.List{message.String("a"), message.Int(1)}, `{"type":"list","value":["a",{"type":"int","value":1}]}`},
		{message.Map{{Key: message.String("a"), Value: message.Null{}}}, `{"type":"map","value":{"a":null}}`},
		{message.Map{{Key: message.Int(1), Value: message.Null{}}}, `{"type":"map","value":[{"key":{"type":"int","value":1},"value":null}]}`},
		{message.Array{Elem: message.KindInt, Items: []message.Value{message.Int(1)}}, `{"type":"array","elem":"int","value":[1]}`},
		{
			message.Described{Descriptor: message.Symbol("com.microsoft:timespan"), Value: message.Long(1)},
			`{"type":"described","descriptor":{"type":"symbol","value":"com.microsoft:timespan"},"value":{"type":"long","value":1}}`,
		},
	} {
		if b, err := AppendValueJSON(nil, tt.v); err != nil || string(b) != tt.want {
			t.Errorf("%#v:\n got %s, %v\nwant %s", tt.v, b, err, tt.want)
		}
	}
}

func TestMessageForm(t *testing.T) {
	text := func(s string) *string { return &s }
	ttl, priority, sequence := 90*time.Second, uint8(9), uint32(3)
	at := time.Date(2026, 3, 1, 9, 15, 2, 123e6, time.UTC)
	m := &message.Message{
		Durable: true, Priority: &priority, TTL: &ttl, FirstAcquirer: true,
		Annotations: message.Map{{Key: message.PartitionKeyAnnotation, Value: message.String("acme")}},
		ID:          message.String("order-7"), UserID: []byte("svc"), CorrelationID: message.Ulong(7),
		Subject: text("OrderPlaced"), To: text("\xff"), SessionID: text(""), GroupSequence: &sequence, Created: &at,
		Properties: message.Properties{{Name: "tenant", Value: message.String("acme")}, {Name: "attempt", Value: message.Int(3)}},
		Footer:     message.Map{{Key: message.String("not a symbol"), Value: message.Bool(true)}},
		System:     []message.Attribute{{Name: "SenderId", Value: message.String("AIDA")}},
		Body:       message.DataBody([]byte("{\"id\":7}\n")),
		Broker:     message.Broker{SequenceNumber: 42, EnqueuedTime: at, DeliveryCount: 10, DeadLetterSource: "orders", BodySize: 9},
	}
	want := `{"sequenceNumber":42,"enqueuedTime":"2026-03-01T09:15:02.123Z","deliveryCount":10,"state":"active","deadLetterSource":"orders","bodySize":9,` +
		`"messageId":"order-7","correlationId":{"type":"ulong","value":7},"subject":"OrderPlaced","sessionId":"","toBase64":"/w==","userId":"svc",` +
		`"durable":true,"priority":9,"ttl":"1m30s","firstAcquirer":true,"groupSequence":3,"created":"2026-03-01T09:15:02.123Z",` +
		`"annotations":{"x-opt-partition-key":"acme"},"properties":{"tenant":"acme","attempt":{"type":"int","value":3}},` +
		`"footer":[{"key":"not a symbol","value":true}],"system":{"SenderId":"AIDA"},"body":"{\"id\":7}\n"}`
	got, err := AppendJSON(nil, m)
	if err != nil || string(got) != want {
		t.Errorf("\n got %s, %v\nwant %s", got, err, want)
	}
	back, err := ParseJSON(got)
	if err != nil || len(message.Diff(m, back)) != 0 || back.Broker != m.Broker {
		t.Errorf("differs in %q: %v", message.Diff(m, back), err)
	}
}

func TestBodyForms(t *testing.T) {
	for _, tt := range []struct {
		body message.Body
		want string
	}{
		{message.Body{}, `{}`},
		{message.DataBody(nil), `{"body":""}`},
		{message.DataBody([]byte("é")), `{"body":"é"}`},
		{message.DataBody([]byte{0xff}), `{"bodyBase64":"/w=="}`},
		{message.Body{Sections: [][]byte{{'a'}, {}}}, `{"bodyKind":"data","bodySectionsBase64":["YQ==",""]}`},
		{message.Body{Kind: message.ValueBody, Sections: [][]byte{{0x40}}}, `{"bodyKind":"value","bodySectionsBase64":["QA=="]}`},
		{message.Body{Kind: message.Sequence}, `{"bodyKind":"sequence","bodySectionsBase64":[]}`},
	} {
		b, err := AppendJSON(nil, &message.Message{Body: tt.body})
		if err != nil || string(b) != tt.want {
			t.Errorf("%v: %s, %v; want %s", tt.body, b, err, tt.want)
		}
		m, err := ParseJSON(b)
		if err != nil || !message.EqualBodies(m.Body, tt.body) {
			t.Errorf("%s came back as %v, %v", b, m, err)
		}
	}
}

// Names are unique by the standard, but a broken sender is no reason to lose what it sent.
func TestRepeatedNamesSurvive(t *testing.T) {
	m := &message.Message{Properties: message.Properties{{Name: "a", Value: message.Int(1)}, {Name: "a", Value: message.Int(2)}, {Name: "\xff", Value: message.Null{}}}}
	want := `{"properties":[{"name":"a","value":{"type":"int","value":1}},{"name":"a","value":{"type":"int","value":2}},{"nameBase64":"/w==","value":null}]}`
	b, err := AppendJSON(nil, m)
	if err != nil || string(b) != want {
		t.Errorf("got %s, %v; want %s", b, err, want)
	}
	got, err := ParseJSON(b)
	if err != nil || !reflect.DeepEqual(got.Properties, m.Properties) {
		t.Errorf("came back as %v, %v", got, err)
	}
}

func TestWriteErrors(t *testing.T) {
	deep := message.Value(message.List{})
	for range MaxDepth {
		deep = message.List{deep}
	}
	for _, tt := range []struct {
		name string
		m    message.Message
	}{
		{"property without value", message.Message{Properties: message.Properties{{Name: "p"}}}},
		{"nil in a list", message.Message{ID: message.List{nil}}},
		{"array of two kinds", message.Message{ID: message.Array{Elem: message.KindInt, Items: []message.Value{message.Long(1)}}}},
		{"too deep", message.Message{ID: deep}},
		{"unknown body kind", message.Message{Body: message.Body{Kind: 9}}},
		{"a time too far", message.Message{Broker: message.Broker{ExpiresAt: time.Unix(1<<60, 0)}}},
	} {
		var out bytes.Buffer
		for _, f := range []Format{JSONL, JSON} {
			out.Reset()
			w := NewWriter(&out, f)
			if err := w.Write(&tt.m); err == nil {
				t.Errorf("%s: was written", tt.name)
			}
			if err := w.Write(&message.Message{}); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if m, err := NewReader(&out).Read(); err != nil || len(message.Diff(m, &message.Message{})) != 0 {
				t.Errorf("%s: left a trace: %v", tt.name, err)
			}
		}
	}
}

func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(anyMessage), 0, 3).Draw(t, "messages")
		for _, f := range []Format{JSONL, JSON} {
			var out bytes.Buffer
			w := NewWriter(&out, f)
			for _, m := range want {
				if err := w.Write(m); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			checkPlain(t, out.Bytes())
			r := NewReader(&out)
			for _, m := range want {
				got, err := r.Read()
				if err != nil {
					t.Fatal(err)
				}
				if d := message.Diff(m, got); len(d) != 0 {
					t.Fatalf("differs in %q", d)
				}
				if !reflect.DeepEqual(m.Broker, got.Broker) {
					t.Fatalf("broker: got %+v, want %+v", got.Broker, m.Broker)
				}
			}
			if _, err := r.Read(); !errors.Is(err, io.EOF) {
				t.Fatalf("more messages than were written: %v", err)
			}
		}
	})
}

// checkPlain fails if out holds anything that a terminal acts on.
func checkPlain(t interface{ Fatalf(string, ...any) }, out []byte) {
	if !utf8.Valid(out) {
		t.Fatalf("output is not UTF-8: %q", out)
	}
	for _, r := range string(out) {
		if r != '\n' && r != '\r' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Fatalf("%U in the output", r)
		}
	}
}

func TestEscapesEverythingInvisible(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		if want := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp); mustEscape(r) != want {
			t.Errorf("mustEscape(%U) = %v", r, !want)
		}
	}
	var all strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) {
			all.WriteRune(r)
		}
	}
	b := appendString(nil, all.String())
	checkPlain(t, b)
	var std string
	if err := json.Unmarshal(b, &std); err != nil || std != all.String() {
		t.Errorf("encoding/json reads something else: %v", err)
	}
	if v, err := ReadValueJSON(b); err != nil || v != message.Value(message.String(all.String())) {
		t.Errorf("our own reader does: %v", err)
	}
}
