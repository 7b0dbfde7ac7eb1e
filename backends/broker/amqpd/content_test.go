package amqpd

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"dlq/backends/amqp"
	"dlq/backends/message"
)

// recorded returns the encoding of an SDK in testdata.
func recorded(tb testing.TB, name string) []byte {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("../../../testdata/amqp", name+".hex"))
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
		tb.Fatal(err)
	}
	return b
}

func decodeOne(tb testing.TB, b []byte) *message.Message {
	tb.Helper()
	all, err := decodeSent(0, b)
	if err != nil || len(all) != 1 {
		tb.Fatalf("%d messages, error %v", len(all), err)
	}
	return all[0]
}

func appended(tb testing.TB, m *message.Message) []byte {
	tb.Helper()
	b, err := amqp.AppendMessage(nil, m)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestDecodeSentScheduled(t *testing.T) {
	m := decodeOne(t, recorded(t, "scheduled"))
	if want := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC); m.ScheduledEnqueueTime == nil || !m.ScheduledEnqueueTime.Equal(want) || m.Annotations != nil {
		t.Errorf("scheduled for %v, annotations %v", m.ScheduledEnqueueTime, m.Annotations)
	}
	m = decodeOne(t, appended(t, &message.Message{Annotations: message.Map{{Key: annScheduled, Value: message.Null{}}}}))
	if m.ScheduledEnqueueTime != nil || m.Annotations != nil {
		t.Errorf("null schedules for %v, annotations %v", m.ScheduledEnqueueTime, m.Annotations)
	}
}

func TestDecodeSentTimeToLive(t *testing.T) {
	if m := decodeOne(t, recorded(t, "usual")); m.TTL == nil || *m.TTL != time.Minute {
		t.Errorf("the header's time to live came as %v", m.TTL)
	}
	if m := decodeOne(t, recorded(t, "long-life")); m.TTL == nil || *m.TTL != 2400*time.Hour {
		t.Errorf("100 days came as %v", m.TTL)
	}
	if m := decodeOne(t, recorded(t, "minimal")); m.TTL != nil {
		t.Errorf("no time to live came as %v", *m.TTL)
	}
	// Times that no duration holds make the longest one, in whole milliseconds.
	most, first, last := time.Duration(math.MaxUint32)*time.Millisecond, message.Timestamp(math.MinInt64).Time(), message.Timestamp(math.MaxInt64).Time()
	m := decodeOne(t, appended(t, &message.Message{TTL: &most, Created: &first, AbsoluteExpiry: &last}))
	if *m.TTL <= most || *m.TTL%time.Millisecond != 0 {
		t.Errorf("the longest time to live came as %v", *m.TTL)
	}
	// The times count only where the header cannot say it.
	short := time.Second
	if m = decodeOne(t, appended(t, &message.Message{TTL: &short, Created: &first, AbsoluteExpiry: &last})); *m.TTL != short {
		t.Errorf("a second came as %v", *m.TTL)
	}
}

func TestDecodeSentStripsWhatTheBrokerOwns(t *testing.T) {
	m := decodeOne(t, recorded(t, "forged"))
	if len(m.Annotations) != 0 || len(m.DeliveryAnnotations) != 0 || m.Broker != (message.Broker{}) {
		t.Errorf("kept %v, %v, %+v", m.Annotations, m.DeliveryAnnotations, m.Broker)
	}
	if m = decodeOne(t, recorded(t, "usual")); m.Broker.DeliveryCount != 0 {
		t.Errorf("a sender set the delivery count to %d", m.Broker.DeliveryCount)
	}
	key, via := message.Pair{Key: message.PartitionKeyAnnotation, Value: message.String("p")}, message.Pair{Key: message.ViaPartitionKeyAnnotation, Value: message.String("v")}
	other := message.Pair{Key: message.Symbol("x-other"), Value: message.Long(1)}
	sent := message.Map{key, {Key: annSequence, Value: message.Long(9)}, via, other}
	if m = decodeOne(t, appended(t, &message.Message{Annotations: sent})); !message.EqualValues(m.Annotations, message.Map{key, via, other}) {
		t.Errorf("kept %v", m.Annotations)
	}
}

func TestDecodeSentBatch(t *testing.T) {
	all, err := decodeSent(batchFormat, recorded(t, "batch"))
	if err != nil || len(all) != 2 {
		t.Fatalf("%d messages, error %v", len(all), err)
	}
	if want := decodeOne(t, recorded(t, "usual")); len(message.Diff(want, all[0])) != 0 {
		t.Errorf("%v of the first differ", message.Diff(want, all[0]))
	}
	if all[1].ID != message.String("id-2") || string(all[1].Body.Bytes()) != "second" {
		t.Errorf("the second is %+v", all[1])
	}
	// As one message it is its own.
	if m := decodeOne(t, recorded(t, "batch")); len(m.Body.Sections) != 2 {
		t.Errorf("%d sections", len(m.Body.Sections))
	}
	if all, err := decodeSent(batchFormat, appended(t, &message.Message{})); err != nil || len(all) != 0 {
		t.Errorf("an empty batch: %d messages, error %v", len(all), err)
	}
	if all, err := decodeSent(1, recorded(t, "minimal")); err != nil || len(all) != 1 {
		t.Errorf("an unknown format: %d messages, error %v", len(all), err)
	}
	usual := recorded(t, "usual")
	for name, body := range map[string]message.Body{
		"cut off": {Sections: [][]byte{usual, usual[:len(usual)-1]}},
		"no data": {Kind: message.ValueBody, Sections: [][]byte{{0x40}}},
	} {
		if all, err := decodeSent(batchFormat, appended(t, &message.Message{Body: body})); err == nil {
			t.Errorf("%s: %d messages", name, len(all))
		}
	}
}

// TestDecodeSentRefuses has what could be stored, but would then stop its receivers.
func TestDecodeSentRefuses(t *testing.T) {
	many := make(message.Map, amqp.MaxCount/2)
	for i := range many {
		many[i] = message.Pair{Key: message.Ulong(i), Value: message.Null{}}
	}
	for name, tt := range map[string]struct {
		m    *message.Message
		want error
	}{
		"partition key of a number": {&message.Message{Annotations: message.Map{{Key: message.PartitionKeyAnnotation, Value: message.Int(1)}}}, amqp.ErrMalformed},
		"full annotations":          {&message.Message{Annotations: many}, amqp.ErrLimit},
	} {
		if _, err := decodeSent(0, appended(t, tt.m)); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	fits := decodeOne(t, appended(t, &message.Message{Annotations: many[:mostPairs]}))
	fits.Broker = message.Broker{SequenceNumber: 1, LockToken: message.UUID{1}, LockedUntil: time.Now(), EnqueuedSequenceNumber: 1, DeadLetterSource: "q", State: message.Deferred}
	if _, err := appendDelivery(nil, fits, deliveryOptions{}); err != nil {
		t.Errorf("what was taken cannot be delivered: %v", err)
	}
}

func TestAppendDelivery(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	token := message.UUID{1, 2, 3, 4, 5, 6, 7, 8, 9}
	stamp := message.TimestampOf(at)
	m := &message.Message{
		ID: message.Ulong(5), CorrelationID: message.UUID{9}, Durable: true, ScheduledEnqueueTime: &at,
		Annotations: message.Map{{Key: message.PartitionKeyAnnotation, Value: message.String("p")}, {Key: annSequence, Value: message.String("forged")}},
		Properties:  message.Properties{{Name: "span", Value: message.Described{Descriptor: message.Symbol("com.microsoft:timespan"), Value: message.Long(7)}}},
		Body:        message.Body{Sections: [][]byte{[]byte("a"), {}}},
		Footer:      message.Map{{Key: message.Symbol("f"), Value: message.Int(1)}},
		Broker: message.Broker{
			SequenceNumber: 7, EnqueuedSequenceNumber: 3, EnqueuedTime: at, ExpiresAt: at.Add(time.Hour), DeliveryCount: 2,
			LockToken: token, LockedUntil: at.Add(time.Minute), DeadLetterSource: "orders", State: message.Deferred,
		},
	}
	got := delivered(t, m, deliveryOptions{})
	want := message.Map{
		{Key: annSequence, Value: message.Long(7)},
		{Key: annEnqueuedTime, Value: stamp},
		{Key: annState, Value: message.Int(1)},
		{Key: annEnqueuedSequence, Value: message.Long(3)},
		{Key: annLockedUntil, Value: message.TimestampOf(at.Add(time.Minute))},
		{Key: annScheduled, Value: stamp},
		{Key: annDeadLetterSource, Value: message.String("orders")},
		{Key: message.PartitionKeyAnnotation, Value: message.String("p")},
	}
	if !message.EqualValues(got.Annotations, want) {
		t.Errorf("annotations %v", got.Annotations)
	}
	if !message.EqualValues(got.DeliveryAnnotations, message.Map{{Key: annLockToken, Value: token}}) {
		t.Errorf("delivery annotations %v", got.DeliveryAnnotations)
	}
	if got.Broker.DeliveryCount != 2 || !got.Durable || *got.TTL != time.Hour || !got.Created.Equal(at) || !got.AbsoluteExpiry.Equal(at.Add(time.Hour)) {
		t.Errorf("header %+v", got)
	}
	if got.ID != m.ID || got.CorrelationID != m.CorrelationID || !message.EqualValues(got.Properties[0].Value, m.Properties[0].Value) {
		t.Errorf("properties %+v", got)
	}
	if !message.EqualBodies(got.Body, m.Body) || !message.EqualValues(got.Footer, m.Footer) {
		t.Errorf("body %v, footer %v", got.Body, got.Footer)
	}
	if m.Annotations[1].Value != message.String("forged") || m.DeliveryAnnotations != nil || m.Created != nil {
		t.Errorf("the message itself was changed: %+v", m)
	}
	if empty := delivered(t, m, deliveryOptions{peeked: true, noBody: true}); len(empty.Body.Sections) != 0 {
		t.Errorf("the body %v is there", empty.Body)
	}
}

// TestAppendDeliveryLeavesOut checks that what a message has not is absent: an SDK takes a
// zero for a value.
func TestAppendDeliveryLeavesOut(t *testing.T) {
	m := &message.Message{Broker: message.Broker{SequenceNumber: 1, EnqueuedTime: time.UnixMilli(5)}}
	b, err := appendDelivery(nil, m, deliveryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The sections of header, with its count, and properties are there even so.
	if !bytes.HasPrefix(b, []byte{0, 0x53, 0x70, 0xc0}) || !bytes.Contains(b, []byte{0, 0x53, 0x73, 0x45}) {
		t.Errorf("no header or properties in %x", b)
	}
	got := delivered(t, m, deliveryOptions{})
	want := message.Map{{Key: annSequence, Value: message.Long(1)}, {Key: annEnqueuedTime, Value: message.Timestamp(5)}}
	if !message.EqualValues(got.Annotations, want) || got.DeliveryAnnotations != nil || got.TTL != nil || got.AbsoluteExpiry != nil {
		t.Errorf("%+v", got)
	}
	peeked := delivered(t, m, deliveryOptions{peeked: true})
	if v, ok := peeked.Annotations.Get(annState); !ok || v != message.Int(0) {
		t.Errorf("the state of a peeked message is %v", v)
	}
}

func delivered(tb testing.TB, m *message.Message, o deliveryOptions) *message.Message {
	tb.Helper()
	b, err := appendDelivery([]byte("before"), m, o)
	if err != nil || !bytes.HasPrefix(b, []byte("before")) {
		tb.Fatalf("%q, error %v", b, err)
	}
	got, err := amqp.DecodeMessage(b[len("before"):])
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

func TestLockTag(t *testing.T) {
	token := message.UUID{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	tag := message.UUID{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	if got := lockTag(token); got != tag {
		t.Errorf("tag %s", got)
	}
	if got := swapped(tag); got != token {
		t.Errorf("token %s", got)
	}
}

// FuzzDecodeSent checks that what is taken from a sender can be delivered, unchanged, and
// that it costs memory in proportion to its bytes and messages.
func FuzzDecodeSent(f *testing.F) {
	for _, name := range []string{"usual", "minimal", "scheduled", "value", "sequence", "long-life", "forged", "batch"} {
		f.Add(false, recorded(f, name))
	}
	f.Add(true, recorded(f, "batch"))
	f.Fuzz(func(t *testing.T, batch bool, b []byte) {
		format := uint32(0)
		if batch {
			format = batchFormat
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		all, err := decodeSent(format, b)
		runtime.ReadMemStats(&after)
		// A message of a few bytes costs what every message does.
		each := 2 * int(unsafe.Sizeof(message.Message{}))
		if got, limit := after.TotalAlloc-before.TotalAlloc, 32*len(b)+(len(all)+2)*each+64<<10; got > uint64(limit) {
			t.Fatalf("%d bytes allocated for %d", got, len(b))
		}
		if err != nil {
			return
		}
		for _, m := range all {
			got := delivered(t, m, deliveryOptions{peeked: true})
			again := decodeOne(t, appended(t, got))
			if d := message.Diff(m, again); len(d) != 0 {
				t.Fatalf("%v differ", d)
			}
		}
	})
}
