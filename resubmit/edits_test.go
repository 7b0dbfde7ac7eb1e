package resubmit

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"dlq/backends/message"
)

func ptr[T any](v T) *T { return &v }

// richMessage has something in every section, as a broker hands it out from a dead-letter queue.
func richMessage() *message.Message {
	m := &message.Message{
		Durable: true, Priority: ptr(uint8(7)), TTL: ptr(time.Hour), FirstAcquirer: true,
		DeliveryAnnotations: message.Map{{Key: message.Symbol("x-opt-lock-token"), Value: message.UUID{1}}, {Key: message.Symbol("hop"), Value: message.Int(1)}},
		Annotations: message.Map{
			{Key: message.Symbol("x-opt-partition-key"), Value: message.String("p1")},
			{Key: message.Symbol("x-opt-sequence-number"), Value: message.Long(5)},
			{Key: message.Symbol("x-opt-enqueued-time"), Value: message.Timestamp(5)},
			{Key: message.Symbol("x-opt-locked-until"), Value: message.Timestamp(5)},
			{Key: message.Symbol("x-opt-lock-token"), Value: message.UUID{1}},
			{Key: message.Symbol("x-opt-enqueue-sequence-number"), Value: message.Long(5)},
			{Key: message.Symbol("x-opt-deadletter-source"), Value: message.String("other")},
			{Key: message.Symbol("x-opt-message-state"), Value: message.Int(0)},
			{Key: message.Symbol("x-opt-scheduled-enqueue-time"), Value: message.Timestamp(5)},
			{Key: message.Symbol("x-opt-own"), Value: message.List{message.Null{}}},
			{Key: message.Ulong(9), Value: message.String("by number")},
		},
		ID: message.Ulong(17), UserID: []byte("me\x00"), To: ptr("to"), Subject: ptr("OrderPlaced"), ReplyTo: ptr("reply"),
		CorrelationID: message.UUID{3}, ContentType: ptr("application/json"), ContentEncoding: ptr(""),
		SessionID: ptr(" s 1"), GroupSequence: ptr(uint32(3)), ReplyToSessionID: ptr("rs"),
		Created: ptr(time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)),
		Properties: message.Properties{
			{Name: "tries", Value: message.Int(3)},
			{Name: "DeadLetterReason", Value: message.String("R")},
			{Name: "big", Value: message.Ulong(1 << 63)},
			{Name: "span", Value: message.Described{Descriptor: message.Symbol("com.microsoft:timespan"), Value: message.Long(1)}},
			{Name: "DeadLetterErrorDescription", Value: message.String("D")},
			{Name: "text", Value: message.String("a=b:c \x1b[31m\u202e")},
			{Name: "null", Value: message.Null{}},
			{Name: "raw", Value: message.Binary{0, 255}},
			{Name: "odd name:int", Value: message.Bool(true)},
			{Name: "#", Value: message.String("")},
			{Name: "at", Value: message.String("@keep")},
			{Name: "bad\xff", Value: message.String("bad\xfe")},
		},
		Body:   message.DataBody([]byte("{\r\n  \"order\": 17\n}")),
		Footer: message.Map{{Key: message.Symbol("sig"), Value: message.Binary("x")}},
		System: []message.Attribute{{Name: "AWSTraceHeader", Value: message.String("t")}},
	}
	m.Broker = message.Broker{SequenceNumber: 5, EnqueuedTime: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), DeliveryCount: 10}
	return m
}

// TestOutgoingStripsExactlyTheBrokers compares all names that are left.
func TestOutgoingStripsExactlyTheBrokers(t *testing.T) {
	m := richMessage()
	m.ScheduledEnqueueTime = ptr(time.Now())
	m.AbsoluteExpiry = ptr(m.Created.Add(time.Hour))
	before := richMessage()
	before.ScheduledEnqueueTime, before.AbsoluteExpiry = m.ScheduledEnqueueTime, m.AbsoluteExpiry
	out := Outgoing(m)
	if d := message.Diff(before, m); d != nil {
		t.Fatalf("the original has changed in %v", d)
	}
	want := []string{
		"DeliveryAnnotations", "Annotations", "AbsoluteExpiry", "Properties.DeadLetterReason",
		"Properties.DeadLetterErrorDescription", "ScheduledEnqueueTime",
	}
	if d := message.Diff(m, out); !slices.Equal(d, want) {
		t.Errorf("it differs in %v, want %v", d, want)
	}
	if out.Broker != (message.Broker{}) {
		t.Errorf("it still has %+v of the broker", out.Broker)
	}
	var keys []string
	for _, p := range out.Annotations {
		keys = append(keys, message.FormatValue(p.Key))
	}
	if want := []string{"x-opt-partition-key", "x-opt-own", "9"}; !slices.Equal(keys, want) {
		t.Errorf("the annotations that are left are %v, want %v", keys, want)
	}
	if len(out.DeliveryAnnotations) != 1 || *out.TTL != time.Hour {
		t.Errorf("delivery annotations %v, time to live %v", out.DeliveryAnnotations, *out.TTL)
	}
	if &out.Body.Sections[0][0] != &m.Body.Sections[0][0] {
		t.Error("the body was copied")
	}
}

func TestOutgoingTimeToLive(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name        string
		ttl, expiry *time.Duration // expiry is counted from creation
		want        *time.Duration
	}{
		{"none", nil, nil, nil},
		{"its own", ptr(time.Minute), ptr(time.Hour), ptr(time.Minute)},
		{"expiry alone says how long", nil, ptr(time.Hour), ptr(time.Hour)},
		{"longer than the header can say", ptr(4294967295 * time.Millisecond), ptr(60 * 24 * time.Hour), ptr(60 * 24 * time.Hour)},
		{"expired before it was made", nil, ptr(-time.Hour), nil},
	} {
		m := &message.Message{TTL: c.ttl, Created: &created}
		if c.expiry != nil {
			m.AbsoluteExpiry = ptr(created.Add(*c.expiry))
		}
		out := Outgoing(m)
		if out.AbsoluteExpiry != nil || (out.TTL == nil) != (c.want == nil) || c.want != nil && *out.TTL != *c.want {
			t.Errorf("%s: time to live %v, expiry %v; want %v and none", c.name, out.TTL, out.AbsoluteExpiry, c.want)
		}
	}
}

func apply(t *testing.T, e Edits, m *message.Message) (*message.Message, error) {
	t.Helper()
	tr, err := e.Compile("job1", dead)
	if err != nil {
		t.Fatal(err)
	}
	return tr.Apply(m)
}

func TestEdits(t *testing.T) {
	m := richMessage()
	out, err := apply(t, Edits{Set: []message.Attribute{
		{Name: "tries", Value: message.Int(0)},
		{Name: "new", Value: message.String("x")},
		{Name: "DeadLetterReason", Value: message.String("mine")},
	}, Unset: []string{"raw", "absent"}, MessageID: IDNew}, m)
	if err != nil {
		t.Fatal(err)
	}
	get := func(name string) message.Value { v, _ := out.Properties.Get(name); return v }
	if get("tries") != message.Value(message.Int(0)) || get("new") != message.Value(message.String("x")) || get("raw") != nil ||
		get("DeadLetterReason") != message.Value(message.String("mine")) || get(OriginalIDProperty) != message.Value(message.Ulong(17)) {
		t.Errorf("the properties are %v", out.Properties)
	}
	again, _ := apply(t, Edits{MessageID: IDNew}, m)
	other := m.Clone()
	other.Broker.SequenceNumber++
	next, _ := apply(t, Edits{MessageID: IDNew}, other)
	if !message.EqualValues(out.ID, again.ID) || message.EqualValues(out.ID, next.ID) || message.KindOf(out.ID) != message.KindString {
		t.Errorf("new ids %v, the same again %v, of the next message %v", out.ID, again.ID, next.ID)
	}
	for _, policy := range []IDPolicy{"", IDAuto, IDKeep} {
		if out, _ := apply(t, Edits{MessageID: policy}, m); !message.EqualValues(out.ID, m.ID) {
			t.Errorf("policy %q changes the id to %v", policy, out.ID)
		}
	}
	body := []byte("new")
	if out, err := apply(t, Edits{Body: &body}, m); err != nil || string(out.Body.Bytes()) != "new" || out.Body.Kind != message.Data {
		t.Errorf("with a new body: %+v, %v", out, err)
	}
	m.Broker.BodyOmitted = true
	if out, err := apply(t, Edits{}, m); err == nil {
		t.Errorf("a message without its body goes out as %+v", out.Body)
	}
}

func TestEditsThatContradictThemselves(t *testing.T) {
	for name, e := range map[string]Edits{
		"two bodies": {Body: &[]byte{}, BodyJQ: "."}, "unknown policy": {MessageID: "sometimes"},
		"set and unset": {Set: []message.Attribute{{Name: "a"}}, Unset: []string{"a"}},
		"jq syntax":     {BodyJQ: ".["}, "jq function": {BodyJQ: "nosuch"},
	} {
		if _, err := e.Compile("", dead); err == nil {
			t.Errorf("%s: compiles", name)
		}
	}
}

func TestBodyJQ(t *testing.T) {
	big := `{"n":12345678901234567890123,"d":0.1000000000000000055511151231257827,"e":1e400,"s":"x"}`
	for _, c := range []struct {
		name, jq string
		body     message.Body
		encoding *string
		want     string // "": refused
	}{
		{
			"numbers that it leaves alone keep their digits", ".s = \"y\"", message.DataBody([]byte(big)), nil,
			`{"d":0.1000000000000000055511151231257827,"e":1e400,"n":12345678901234567890123,"s":"y"}`,
		},
		{"a value of any type", ".n | tostring | length", message.DataBody([]byte(`{"n":"abc"}`)), nil, "3"},
		{"no result", "empty", message.DataBody([]byte("1")), nil, ""},
		{"two results", "1,2", message.DataBody([]byte("1")), nil, ""},
		{"an error", ".a.b", message.DataBody([]byte("1")), nil, ""},
		{"endless", "def f: f; f", message.DataBody([]byte("1")), nil, ""},
		{"no JSON", ".", message.DataBody([]byte("hello")), nil, ""},
		{"more than one value", ".", message.DataBody([]byte("1 2")), nil, ""},
		{"no UTF-8", ".", message.DataBody([]byte("\"\xff\"")), nil, ""},
		{"compressed", ".", message.DataBody([]byte("1")), ptr("gzip"), ""},
		{"an AMQP value", ".", message.Body{Kind: message.ValueBody, Sections: [][]byte{{0x40}}}, nil, ""},
	} {
		if c.name == "endless" && testing.Short() {
			continue
		}
		out, err := apply(t, Edits{BodyJQ: c.jq}, &message.Message{Body: c.body, ContentEncoding: c.encoding})
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%s: becomes %s, want a refusal", c.name, out.Body.Bytes())
		case c.want != "" && (err != nil || string(out.Body.Bytes()) != c.want):
			t.Errorf("%s: %v, %v; want %s", c.name, out, err, c.want)
		}
	}
}

// TestEditThatDoesNotApply: the message is skipped and named, and not changed at all.
func TestEditThatDoesNotApply(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			f.buryAll(&message.Message{ID: message.String("good"), Body: message.DataBody([]byte(`{"a":1}`))},
				&message.Message{ID: message.String("bad"), Body: message.DataBody([]byte("no json"))})
			r := f.run(Spec{Edits: Edits{BodyJQ: ".a += 1", Set: []message.Attribute{{Name: "p", Value: message.Int(1)}}}})
			if r.Done != 1 || len(r.Skipped) != 1 || r.Skipped[0].ID != "bad" || r.State != Partly {
				t.Errorf("%s %+v", r.Summary(), r.Skipped)
			}
			if left := f.peek(dead); len(left) != 1 || string(left[0].Body.Bytes()) != "no json" || left[0].DeadLetterReason() != "PaymentFailed" {
				t.Errorf("left is %+v", left)
			}
			if got := f.peek(orders); len(got) != 1 || string(got[0].Body.Bytes()) != `{"a":2}` {
				t.Errorf("moved is %+v", got)
			}
		})
	}
}

// TestRoundTrip resubmits messages with everything in them, unedited and through the editor.
func TestRoundTrip(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			sent := Outgoing(richMessage())
			sent.Broker = message.Broker{}
			f.buryAll(sent)
			letter := f.peek(dead)[0]
			edited, err := ParseDocument(letter, FormatDocument(letter))
			if err != nil {
				t.Fatal(err)
			}
			seq := letter.Broker.SequenceNumber
			f.run(Spec{Selection: Selection{Seqs: []int64{seq}}, Edited: map[int64]*message.Message{seq: edited}})
			got := f.peek(orders)
			if len(got) != 1 {
				t.Fatalf("%d arrived", len(got))
			}
			if d := message.Diff(sent, got[0]); d != nil {
				t.Errorf("it came through different in %v", d)
			}
		})
	}
}

func TestDocument(t *testing.T) {
	bodies := map[string]message.Body{
		"none": {}, "empty": message.DataBody(nil), "text": message.DataBody([]byte("a\n[body]\n# b\n\n")),
		"binary": message.DataBody(bytes.Repeat([]byte{0, 1, 255}, 100)), "escape": message.DataBody([]byte("\x1b[2J")),
		"sections": {Kind: message.Data, Sections: [][]byte{[]byte("a"), {}, []byte("b")}},
		"value":    {Kind: message.ValueBody, Sections: [][]byte{{0xa1, 1, 'x'}}},
		"sequence": {Kind: message.Sequence, Sections: [][]byte{{0x45}, {0x45}}}, "no value": {Kind: message.ValueBody},
	}
	for name, body := range bodies {
		m := richMessage()
		m.Body = body
		for _, doc := range [][]byte{FormatDocument(m), bytes.TrimSuffix(FormatDocument(m), []byte("\n"))} {
			if name == "text" && !bytes.HasSuffix(doc, []byte("\n\n\n")) {
				continue // whoever takes off a line end from that body has changed it
			}
			got, err := ParseDocument(m, doc)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if d := message.Diff(m, got); d != nil || len(DiffText(m, got)) > 0 {
				t.Errorf("%s: unchanged, it differs in %v", name, d)
			}
		}
		if doc := FormatDocument(m); bytes.ContainsAny(doc, "\x00\x1b\u202e") {
			t.Errorf("%s: the document holds control characters: %q", name, doc)
		}
	}
	m := richMessage()
	m.Broker.BodyOmitted = true
	if _, err := ParseDocument(m, FormatDocument(m)); err == nil {
		t.Error("a message whose body was not loaded can be edited")
	}
}

func TestDocumentEdits(t *testing.T) {
	type change struct{ old, new string }
	for _, c := range []struct {
		name    string
		changes []change
		diff    []string // DiffText
	}{
		{"a field", []change{{"subject=OrderPlaced", "subject=Order Cancelled"}}, []string{"-subject=OrderPlaced", "+subject=Order Cancelled"}},
		{"a typed property", []change{{"tries:int=3", "tries:long=4"}}, []string{"-tries:int=3", "+tries:long=4"}},
		{"a field goes", []change{{"reply-to=reply\n", ""}}, []string{"-reply-to=reply"}},
		{"an id changes its type", []change{{"id:ulong=17", "id=17"}}, []string{"-id:ulong=17", "+id=17"}},
		{"time to live", []change{{"ttl=1h0m0s", "ttl=90s"}}, []string{"-ttl=1h0m0s", "+ttl=1m30s"}},
		{"a compound goes", []change{{"span:described=@keep\n", ""}}, []string{"-span:described=@keep"}},
		{"a new property", []change{{"[annotations]", "tenant=acme\n[annotations]"}}, []string{"+tenant=acme"}},
		{"the body", []change{{`"order": 17`, `"order": 18`}}, []string{`-  "order": 17`, `+  "order": 18`}},
		{"a binary body instead", []change{{"[body]\n{\r\n  \"order\": 17\n}", "[body data]\nAAH/"}}, nil},
		{"quoted", []change{{"to=to", `to="a\tb"`}}, []string{"-to=to", `+to="a\tb"`}},
		{"comments and empty lines", []change{{"to=to\n", "to=to\n# a comment\n\n"}}, []string{}},
	} {
		m := richMessage()
		doc := string(FormatDocument(m))
		for _, ch := range c.changes {
			if strings.Count(doc, ch.old) == 0 {
				t.Fatalf("%s: the document has no %q:\n%s", c.name, ch.old, doc)
			}
			doc = strings.Replace(doc, ch.old, ch.new, 1)
		}
		got, err := ParseDocument(m, []byte(doc))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := DiffText(m, got); c.diff != nil && !slices.Equal(d, c.diff) {
			t.Errorf("%s: the difference is %q, want %q", c.name, d, c.diff)
		}
		if c.diff == nil && !bytes.Equal(got.Body.Bytes(), []byte{0, 1, 255}) {
			t.Errorf("%s: the body is %q", c.name, got.Body.Bytes())
		}
		if got.Broker != m.Broker || len(got.System) != 1 {
			t.Errorf("%s: what is not shown has changed", c.name)
		}
	}
}

// TestDocumentOfSQS: what SQS calls a type of its own is text that can be edited, and keeps its type.
func TestDocumentOfSQS(t *testing.T) {
	typed := func(name string, v message.Value) message.Value {
		return message.Described{Descriptor: message.Symbol(name), Value: v}
	}
	m := &message.Message{Body: message.DataBody([]byte("x")), Properties: message.Properties{
		{Name: "price", Value: typed("sqs:Number.float", message.String("1.50"))},
		{Name: "zone", Value: typed("sqs:String.a b", message.String("eu"))},
		{Name: "odd", Value: typed("sqs:String.a=b", message.String("eu"))},
		{Name: "image", Value: typed("sqs:Binary.png", message.Binary("\x00"))},
		{Name: "number", Value: typed("sqs:Numbers", message.String("1"))},
	}}
	doc := string(FormatDocument(m))
	for _, line := range []string{
		"price:sqs:Number.float=1.50\n", "zone:sqs:String.a b=eu\n", "odd:described=@keep\n", "image:sqs:Binary.png=AA==\n", "number:described=@keep\n",
	} {
		if !strings.Contains(doc, line) {
			t.Errorf("the document has no %q:\n%s", line, doc)
		}
	}
	if same, err := ParseDocument(m, []byte(doc)); err != nil || message.Diff(m, same) != nil {
		t.Errorf("unchanged: %v, %v", err, message.Diff(m, same))
	}
	got, err := ParseDocument(m, []byte(strings.Replace(doc, "=1.50", "=2.75\nadded:sqs:Number=1e3", 1)))
	if err != nil {
		t.Fatal(err)
	}
	want := m.Clone()
	want.Properties[0].Value = typed("sqs:Number.float", message.String("2.75"))
	want.Properties = slices.Insert(want.Properties, 1, message.Attribute{Name: "added", Value: typed("sqs:Number", message.String("1e3"))})
	if d := message.Diff(want, got); d != nil {
		t.Errorf("edited, it differs in %v", d)
	}
	for _, bad := range []string{"price:sqs:Binary.png=A", "price:sqs:Number=one", "price:sqs:Numbers=1", "price:sqs:Number.float=@keep"} {
		if _, err := ParseDocument(m, []byte(strings.Replace(doc, "price:sqs:Number.float=1.50", bad, 1))); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if _, err := ParseDocument(m, []byte("id:sqs:String.x=a\n"+doc)); err == nil {
		t.Error("a field takes a type of SQS")
	}
}

func TestDocumentErrors(t *testing.T) {
	m := richMessage()
	doc := string(FormatDocument(m))
	for _, c := range []struct{ old, new, want string }{
		{"tries:int=3", "tries:int=three", "line 21: tries"},
		{"tries:int=3", "tries:integer=3", "line 21"},
		{"tries:int=3", "tries", "line 21"},
		{"subject=OrderPlaced", "subjekt=OrderPlaced", "line 5"},
		{"subject=OrderPlaced", "subject:int=5", "line 5"},
		{"subject=OrderPlaced", "subject=a\nsubject=b", "line 6"},
		{"ttl=1h0m0s", "ttl=soon", "is no duration"},
		{"[annotations]", "[annotation]", "is no section"},
		{"span:described=@keep", "span:list=@keep", "no text form"},
		{"[body]", "[body base64]", "is no body"},
		{"[body]\n", "", "write name=value"},
		{"[body]\n{\r\n  \"order\": 17\n}", "", "is missing"},
		{"[body]\n", "[body data]\n", "not base64"},
	} {
		if !strings.Contains(doc, c.old) {
			t.Fatalf("the document has no %q:\n%s", c.old, doc)
		}
		_, err := ParseDocument(m, []byte(strings.Replace(doc, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%q for %q: %v, want one that says %q", c.new, c.old, err, c.want)
		}
	}
}

func FuzzParseDocument(f *testing.F) {
	m := richMessage()
	f.Add(FormatDocument(m))
	m.Body = message.Body{Kind: message.Sequence, Sections: [][]byte{{0x45}, {0x45}}}
	f.Add(FormatDocument(m))
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := ParseDocument(m, doc)
		if err != nil {
			return
		}
		again, err := ParseDocument(got, FormatDocument(got))
		if err != nil {
			t.Fatalf("what it was made of does not read: %v", err)
		}
		if d := message.Diff(got, again); d != nil {
			t.Fatalf("unchanged, it differs in %v", d)
		}
	})
}

// FuzzDocument takes messages from the binary form: whatever one holds, an unchanged document is the same message.
func FuzzDocument(f *testing.F) {
	f.Add(message.Append(nil, richMessage()))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := message.Decode(b)
		if err != nil || m.Broker.BodyOmitted {
			return
		}
		got, err := ParseDocument(m, FormatDocument(m))
		if err != nil {
			t.Fatalf("%v\n%s", err, FormatDocument(m))
		}
		if d := message.Diff(m, got); d != nil {
			t.Fatalf("unchanged, it differs in %v", d)
		}
	})
}

func TestDiffLines(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", "", ""},
		{"a b c", "a b c", ""},
		{"a b c", "a x c", "-b +x"},
		{"a b c d", "a c d e", "-b +e"},
		{"a", "a b a", "+b +a"},
		{"x a y", "a", "-x -y"},
	} {
		got := strings.Join(diffLines(strings.Fields(c.a), strings.Fields(c.b)), " ")
		if got != c.want {
			t.Errorf("%q to %q: %q, want %q", c.a, c.b, got, c.want)
		}
	}
	long := make([]string, 5000)
	other := slices.Clone(long)
	for i := range long {
		long[i], other[i] = strings.Repeat("a", i%7), strings.Repeat("b", i%5+1)
	}
	if got := diffLines(long, other); len(got) != 10000 {
		t.Errorf("beyond the bound %d lines differ, want all", len(got))
	}
}
