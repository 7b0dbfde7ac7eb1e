package amqp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dlq/backends/message"
)

func ptr[T any](v T) *T { return &v }

// recorded returns the encodings of real SDKs in testdata, by their names.
func recorded(tb testing.TB) map[string][]byte {
	tb.Helper()
	files, err := filepath.Glob("../../testdata/amqp/*.hex")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no recorded messages: %v", err)
	}
	all := make(map[string][]byte)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var digits strings.Builder
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") {
				digits.WriteString(strings.TrimSpace(line))
			}
		}
		b, err := hex.DecodeString(digits.String())
		if err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".hex")] = b
	}
	return all
}

func TestDecodeRecordedMessages(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	want := map[string]*message.Message{
		"usual": {
			Durable: true, TTL: ptr(time.Minute), Broker: message.Broker{DeliveryCount: 2},
			Annotations: message.Map{{Key: message.PartitionKeyAnnotation, Value: message.String("acme")}},
			ID:          message.String("id-1"), To: ptr("to"), Subject: ptr("subject"), ReplyTo: ptr("reply"), CorrelationID: message.String("corr"),
			ContentType: ptr("application/json"), SessionID: ptr("session"), ReplyToSessionID: ptr("reply-session"),
			AbsoluteExpiry: ptr(at.Add(time.Minute)), Created: ptr(at),
			Properties: message.Properties{{Name: "tenant", Value: message.String("acme")}},
			Body:       message.DataBody([]byte(`{"n":1}`)),
		},
		"minimal": {Body: message.DataBody([]byte("x"))},
		"value": {
			ID: message.Ulong(7), CorrelationID: message.UUID{1, 2, 3, 15: 16},
			Body: message.Body{Kind: message.ValueBody, Sections: [][]byte{{codeMap32, 0, 0, 0, 9, 0, 0, 0, 2, codeString8, 1, 'k', codeSmallInt, 5}}},
		},
		"sequence": {
			DeliveryAnnotations: message.Map{{Key: message.Symbol("x-hop"), Value: message.Long(1)}},
			Body: message.Body{Kind: message.Sequence, Sections: [][]byte{
				{codeList32, 0, 0, 0, 11, 0, 0, 0, 2, codeSmallInt, 1, codeString8, 3, 't', 'w', 'o'},
				{codeList32, 0, 0, 0, 5, 0, 0, 0, 1, codeTrue},
			}},
			Footer: message.Map{{Key: message.Symbol("x-sum"), Value: message.String("abc")}},
		},
	}
	all := recorded(t)
	for name, want := range want {
		t.Run(name, func(t *testing.T) {
			m, err := DecodeMessage(all[name])
			if err != nil {
				t.Fatal(err)
			}
			if d := message.Diff(want, m); len(d) != 0 || m.Broker.DeliveryCount != want.Broker.DeliveryCount {
				t.Errorf("%v differ in %+v", d, m)
			}
		})
	}
	for name, b := range all {
		t.Run("back "+name, func(t *testing.T) { roundTrip(t, b) })
	}
}

// roundTrip decodes, encodes and decodes again. Both messages are to be equal.
func roundTrip(tb testing.TB, b []byte) {
	tb.Helper()
	m, err := DecodeMessage(b)
	if err != nil {
		tb.Fatal(err)
	}
	again, err := AppendMessage(nil, m)
	if err != nil {
		tb.Fatalf("what was decoded cannot be encoded: %v", err)
	}
	m2, err := DecodeMessage(again)
	if err != nil {
		tb.Fatalf("what was encoded cannot be decoded: %v", err)
	}
	if d := message.Diff(m, m2); len(d) != 0 || m.Broker.DeliveryCount != m2.Broker.DeliveryCount {
		tb.Fatalf("%v differ", d)
	}
}

func section(code byte, b ...byte) []byte {
	return append([]byte{codeDescribed, codeSmallUlong, code}, b...)
}

func symbolic(name string, b ...byte) []byte {
	return append(append([]byte{codeDescribed, codeSymbol8, byte(len(name))}, name...), b...)
}

func joined(sections ...[]byte) []byte { return bytes.Join(sections, nil) }

var (
	dataSection   = section(codeData, codeBinary8, 1, 'x')
	footerSection = section(codeFooter, codeMap8, 5, 2, codeSymbol8, 1, 'f', codeTrue)
)

func TestDecodeMessageSections(t *testing.T) {
	emptyMap := []byte{codeMap8, 1, 0}
	for _, tt := range []struct {
		name string
		b    []byte
		bad  bool
	}{
		{"symbolic descriptors", joined(symbolic("amqp:header:list", codeList0), symbolic("amqp:delivery-annotations:map", emptyMap...),
			symbolic("amqp:message-annotations:map", emptyMap...), symbolic("amqp:properties:list", codeList0),
			symbolic("amqp:application-properties:map", emptyMap...), symbolic("amqp:data:binary", codeBinary8, 0), symbolic("amqp:footer:map", emptyMap...)), false},
		{"symbolic sequence", symbolic("amqp:amqp-sequence:list", codeList0), false},
		{"symbolic value", symbolic("amqp:amqp-value:*", codeNull), false},
		{"wide descriptor", joined([]byte{codeDescribed, codeUlong, 0, 0, 0, 0, 0, 0, 0, codeData, codeBinary8, 0}), false},
		{"two data sections", joined(dataSection, dataSection), false},
		{"footer before the body", joined(footerSection, dataSection), false},
		{"null value", section(codeValueSection, codeNull), false},
		{"fields of a later standard", section(codeHeader, codeList8, 7, 6, codeTrue, codeNull, codeNull, codeNull, codeNull, codeTrue), false},

		{"header twice", joined(section(codeHeader, codeList0), section(codeHeader, codeList0)), true},
		{"header behind properties", joined(section(codeProperties, codeList0), section(codeHeader, codeList0)), true},
		{"properties behind the body", joined(dataSection, section(codeProperties, codeList0)), true},
		{"two values", joined(section(codeValueSection, codeNull), section(codeValueSection, codeNull)), true},
		{"data and a value", joined(dataSection, section(codeValueSection, codeNull)), true},
		{"data and a sequence", joined(dataSection, section(codeSequence, codeList0)), true},
		{"footer twice", joined(footerSection, footerSection), true},
		{"unknown number", section(0x79, codeList0), true},
		{"performative", section(codeTransfer, codeList0), true},
		{"unknown name", symbolic("amqp:data:list", codeBinary8, 0), true},
		{"descriptor of another type", []byte{codeDescribed, codeSmallInt, codeData, codeBinary8, 0}, true},
		{"no descriptor", []byte{codeBinary8, 0}, true},
		{"no section behind the descriptor", section(codeData), true},
		{"null data", section(codeData, codeNull), true},
		{"data of a string", section(codeData, codeString8, 0), true},
		{"data cut off", section(codeData, codeBinary8, 2, 'x'), true},
		{"sequence of a map", section(codeSequence, emptyMap...), true},
		{"annotations of a list", section(codeMessageAnnotations, codeList0), true},
		{"property named by a number", section(codeApplication, codeMap8, 4, 2, codeSmallInt, 1, codeTrue), true},
		{"property without a value", section(codeApplication, codeMap8, 4, 1, codeString8, 1, 'a'), true},
		{"header of a map", section(codeHeader, emptyMap...), true},
		{"ttl of a string", section(codeHeader, codeList8, 5, 3, codeNull, codeNull, codeString8, 0), true},
		{"id of a list", section(codeProperties, codeList8, 2, 1, codeList0), true},
		{"id of an int", section(codeProperties, codeList8, 3, 1, codeSmallInt, 1), true},
		{"subject of a binary", section(codeProperties, codeList8, 6, 4, codeNull, codeNull, codeNull, codeBinary8, 0), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := DecodeMessage(tt.b)
			if tt.bad != (err != nil) || tt.bad && !errors.Is(err, ErrMalformed) {
				t.Fatalf("error %v", err)
			}
			if !tt.bad {
				roundTrip(t, tt.b)
			}
		})
	}
}

// TestBodySlices checks that the body is the input itself, which a caller cannot overwrite
// by appending, and that nothing else keeps the input.
func TestBodySlices(t *testing.T) {
	b := bytes.Clone(recorded(t)["usual"])
	m, err := DecodeMessage(b)
	if err != nil {
		t.Fatal(err)
	}
	body := m.Body.Sections[0]
	if cap(body) != len(body) {
		t.Errorf("the body has room for %d bytes of what follows", cap(body)-len(body))
	}
	clear(b)
	if !bytes.Equal(body, make([]byte, len(body))) {
		t.Error("the body was copied")
	}
	if m.ID != message.String("id-1") || *m.Subject != "subject" || m.Properties[0].Name != "tenant" || m.Properties[0].Value != message.String("acme") {
		t.Errorf("more than the body keeps the input: %+v", m)
	}
}

// TestMessageLimits checks that what may be in a message when it comes may be in it when it
// goes, at each limit.
func TestMessageLimits(t *testing.T) {
	deepest := message.Value(message.List{})
	for range MaxDepth - 1 {
		deepest = message.List{deepest}
	}
	nulls := message.Array{Elem: message.KindNull, Items: make([]message.Value, MaxZeroWidth)}
	for i := range nulls.Items {
		nulls.Items[i] = message.Null{}
	}
	for name, m := range map[string]*message.Message{
		"depth":        {Annotations: message.Map{{Key: message.Symbol("k"), Value: deepest}}},
		"zero width":   {Footer: message.Map{{Key: message.Symbol("k"), Value: nulls}}},
		"sections":     {Body: message.Body{Sections: slicesOf(MaxSections)}},
		"content type": {ContentType: ptr(strings.Repeat("t", MaxSymbol+1))},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := AppendMessage(nil, m)
			if err != nil {
				t.Fatal(err)
			}
			roundTrip(t, b)
		})
	}
	for name, m := range map[string]*message.Message{
		"depth":      {Annotations: message.Map{{Key: message.Symbol("k"), Value: message.List{deepest}}}},
		"zero width": {Annotations: message.Map{{Key: message.Symbol("k"), Value: message.Array{Elem: message.KindNull, Items: nulls.Items[:1]}}}, Footer: message.Map{{Key: message.Symbol("k"), Value: nulls}}},
		"sections":   {Body: message.Body{Sections: slicesOf(MaxSections + 1)}},
		"properties": {Properties: make(message.Properties, MaxCount/2+1)},
		"id":         {ID: message.Int(1)},
	} {
		t.Run("over "+name, func(t *testing.T) {
			prefix := []byte("kept")
			b, err := AppendMessage(prefix, m)
			if want := ErrLimit; !errors.Is(err, want) && !errors.Is(err, ErrUnencodable) || string(b) != "kept" {
				t.Fatalf("error %v, %d bytes", err, len(b))
			}
		})
	}
}

func slicesOf(n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = []byte{}
	}
	return all
}

func nested(depth int) []byte {
	var b []byte
	for n := depth; n > 0; n-- {
		b = append(b, codeList32)
		size := uint32(9*(n-1) + 1 + 4)
		b = binary.BigEndian.AppendUint32(b, size)
		b = binary.BigEndian.AppendUint32(b, 1)
	}
	return append(b, codeNull)
}

func TestMessageBombs(t *testing.T) {
	wide := func(code byte) []byte { return []byte{code, 0, 0, 0, 8, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0} }
	zeroes := []byte{codeArray32, 0, 0, 0, 5, 0, 1, 0, 0, codeNull}
	for name, b := range map[string][]byte{
		"depth 33":                section(codeValueSection, nested(33)...),
		"depth of a million":      section(codeValueSection, bytes.Repeat([]byte{codeDescribed, codeSmallUlong}, 1_000_000)...),
		"descriptors in a row":    bytes.Repeat([]byte{codeDescribed}, 2<<20),
		"annotations without end": section(codeMessageAnnotations, wide(codeMap32)...),
		"properties without end":  section(codeApplication, wide(codeMap32)...),
		"header without end":      section(codeHeader, wide(codeList32)...),
		"fields without end":      section(codeProperties, wide(codeList32)...),
		"list without end":        section(codeSequence, wide(codeList32)...),
		"array of no width":       section(codeValueSection, zeroes...),
		"arrays of no width":      joined(bytes.Repeat(section(codeSequence, append([]byte{codeList8, 11, 1}, zeroes...)...), 100)),
		"10,001 sections":         bytes.Repeat(section(codeData, codeBinary8, 0), MaxSections+1),
		"long unknown descriptor": joined([]byte{codeDescribed, codeBinary32, 0, 8, 0, 0}, make([]byte, 8<<16), []byte{codeNull}),
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			got := allocated(func() { _, err = DecodeMessage(b) })
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrLimit) {
				t.Fatalf("error %v", err)
			}
			if got > 1<<20 {
				t.Errorf("%d bytes allocated for %d", got, len(b))
			}
			if len(err.Error()) > 4096 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// anyMessage draws messages with every field that a message can hold.
func anyMessage(t *rapid.T) *message.Message {
	value := rapid.SampledFrom(values())
	maps := rapid.Custom(func(t *rapid.T) message.Map {
		var m message.Map
		for range rapid.IntRange(0, 3).Draw(t, "pairs") {
			m = append(m, message.Pair{Key: message.Symbol(rapid.String().Draw(t, "key")), Value: value.Draw(t, "value")})
		}
		return m
	})
	text := rapid.Ptr(rapid.String(), true)
	id := rapid.SampledFrom([]message.Value{nil, message.String(""), message.String("id"), message.Ulong(0), message.Ulong(1 << 60), message.UUID{3}, message.Binary("b")})
	instant := rapid.Ptr(rapid.Map(rapid.Int64(), func(ms int64) time.Time { return message.Timestamp(ms).Time() }), true)
	m := &message.Message{
		Durable: rapid.Bool().Draw(t, "durable"), FirstAcquirer: rapid.Bool().Draw(t, "first"),
		Priority:            rapid.Ptr(rapid.Byte(), true).Draw(t, "priority"),
		TTL:                 rapid.Ptr(rapid.Map(rapid.Uint32(), func(ms uint32) time.Duration { return time.Duration(ms) * time.Millisecond }), true).Draw(t, "ttl"),
		DeliveryAnnotations: maps.Draw(t, "delivery annotations"), Annotations: maps.Draw(t, "annotations"), Footer: maps.Draw(t, "footer"),
		ID: id.Draw(t, "id"), CorrelationID: id.Draw(t, "correlation id"), UserID: rapid.SampledFrom([][]byte{nil, {}, {1, 2}}).Draw(t, "user"),
		To: text.Draw(t, "to"), Subject: text.Draw(t, "subject"), ReplyTo: text.Draw(t, "reply to"),
		ContentType: text.Draw(t, "content type"), ContentEncoding: text.Draw(t, "encoding"),
		AbsoluteExpiry: instant.Draw(t, "expiry"), Created: instant.Draw(t, "created"),
		SessionID: text.Draw(t, "session"), GroupSequence: rapid.Ptr(rapid.Uint32(), true).Draw(t, "sequence"), ReplyToSessionID: text.Draw(t, "reply session"),
		Broker: message.Broker{DeliveryCount: rapid.Uint32().Draw(t, "count")},
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "properties") {
		m.Properties = append(m.Properties, message.Attribute{Name: rapid.String().Draw(t, "name") + string(rune('a'+i)), Value: value.Draw(t, "value")})
	}
	m.Body.Kind = rapid.SampledFrom([]message.BodyKind{message.Data, message.ValueBody, message.Sequence}).Draw(t, "kind")
	for range rapid.IntRange(0, 3).Draw(t, "sections") {
		var b []byte
		switch m.Body.Kind {
		case message.Data:
			b = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data")
		case message.ValueBody:
			b, _ = AppendValue(nil, value.Draw(t, "body"))
			m.Body.Sections = nil
		case message.Sequence:
			b, _ = AppendValue(nil, message.List{value.Draw(t, "body")})
		}
		m.Body.Sections = append(m.Body.Sections, b)
	}
	if len(m.Body.Sections) == 0 {
		m.Body.Kind = message.Data // nothing says which kind it would be
	}
	return m
}

func TestMessageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMessage(t)
		b, err := AppendMessage(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeMessage(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := message.Diff(m, got); len(d) != 0 || got.Broker.DeliveryCount != m.Broker.DeliveryCount {
			t.Fatalf("%v differ", d)
		}
		if len(got.Body.Sections) != len(m.Body.Sections) || len(m.Body.Sections) > 0 && !reflect.DeepEqual(got.Body, m.Body) {
			t.Fatalf("the body came back as %x", got.Body.Sections)
		}
	})
}

func FuzzDecodeMessage(f *testing.F) {
	for _, b := range recorded(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMessage(b)
		if err != nil {
			if m != nil || !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrLimit) {
				t.Fatalf("%v, with %v", err, m)
			}
			return
		}
		roundTrip(t, b)
	})
}

// TestDecodeMessageMemory bounds what a sender can make the receiver set aside.
func TestDecodeMessageMemory(t *testing.T) {
	pairs := func(n int, pair ...byte) []byte {
		b := binary.BigEndian.AppendUint32([]byte{codeMap32}, uint32(n*len(pair)+4))
		return append(binary.BigEndian.AppendUint32(b, uint32(2*n)), bytes.Repeat(pair, n)...)
	}
	for name, b := range map[string][]byte{
		"data sections":     bytes.Repeat(section(codeData, codeBinary8, 0), MaxSections),
		"sequence sections": bytes.Repeat(section(codeSequence, codeList0), MaxSections),
		"properties":        section(codeApplication, pairs(MaxCount/2, codeString8, 0, codeNull)...),
		"annotations":       section(codeMessageAnnotations, pairs(MaxCount/2, codeNull, codeNull)...),
		"ubytes":            section(codeMessageAnnotations, pairs(MaxCount/2, codeSmallUlong, 255, codeSmallUlong, 255)...),
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			got := allocated(func() { _, err = DecodeMessage(b) })
			if limit := uint64(32*len(b) + 64<<10); err != nil || got > limit {
				t.Errorf("%d bytes allocated for %d, at most %d: %v", got, len(b), limit, err)
			}
		})
	}
}

func BenchmarkDecodeMessage(b *testing.B) {
	enc := recorded(b)["usual"]
	b.SetBytes(int64(len(enc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeMessage(enc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendMessage(b *testing.B) {
	m, err := DecodeMessage(recorded(b)["usual"])
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		if buf, err = AppendMessage(buf[:0], m); err != nil {
			b.Fatal(err)
		}
	}
}
