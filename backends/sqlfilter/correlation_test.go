package sqlfilter

import (
	"math"
	"strings"
	"testing"
	"time"

	"dlq/backends/message"
)

// labelled are values with a name for what they are equal to. Without one, a value equals
// nothing, not even itself.
var labelled = []struct {
	v     message.Value
	label string
}{
	{message.Int(1), "1"},
	{message.Long(1), "1"},
	{message.Ubyte(1), "1"},
	{message.Ushort(1), "1"},
	{message.Uint(1), "1"},
	{message.Ulong(1), "1"},
	{message.Byte(1), "1"},
	{message.Short(1), "1"},
	{message.Float(1), "1"},
	{message.Double(1), "1"},
	{message.Decimal32{0x32, 0x80, 0x00, 0x01}, "1"},
	{message.Decimal128{0x30, 0x40, 15: 1}, "1"},
	{message.Double(1.5), "1.5"},
	{message.Decimal32{0x32, 0x00, 0x00, 0x0f}, "1.5"},
	{message.Ulong(math.MaxUint64), "max"},
	{message.Ulong(math.MaxUint64 - 1), "max - 1"},
	{message.Double(math.NaN()), ""},
	{message.Null{}, ""},
	{message.String("1"), "'1'"},
	{message.Symbol("1"), "'1'"},
	{message.Char('1'), "'1'"},
	{message.String("Red"), "'Red'"},
	{message.String("red"), "'red'"},
	{message.Bool(true), "true"},
	{message.Bool(false), "false"},
	{message.UUID{1}, "guid"},
	{message.String(message.UUID{1}.String()), "text of a guid"},
	{message.Timestamp(0), "1970"},
	{message.Described{Descriptor: message.Symbol("com.microsoft:datetime-offset"), Value: message.Long(ticksToUnix)}, "1970"},
	{message.Timestamp(1), "a millisecond later"},
	{message.Described{Descriptor: message.Symbol("com.microsoft:timespan"), Value: message.Long(1)}, "100 ns"},
	{message.Binary("1"), "binary"},
	{message.List{message.Int(1)}, "list"},
}

func TestCorrelationValues(t *testing.T) {
	for _, want := range labelled {
		for _, have := range labelled {
			c := Correlation{Properties: message.Properties{{Name: "p", Value: want.v}}}
			m := &message.Message{Properties: message.Properties{{Name: "p", Value: have.v}}}
			if got, equal := c.Match(m), want.label == have.label && want.label != ""; got != equal {
				t.Errorf("a filter for %s %v matches %s %v: %v", typeName(want.v), want.v, typeName(have.v), have.v, got)
			}
		}
	}
}

func TestCorrelation(t *testing.T) {
	red := message.Properties{{Name: "color", Value: message.String("red")}}
	for _, tt := range []struct {
		rule string
		c    Correlation
		want bool
	}{
		{"11.4 empty", Correlation{}, true},
		{"11.4 CorrelationId, a GUID as text", Correlation{CorrelationID: new("ab000000-0000-0000-0000-000000000001")}, true},
		{"11.4 with case", Correlation{CorrelationID: new("AB000000-0000-0000-0000-000000000001")}, false},
		{"11.4 MessageId", Correlation{MessageID: new("m-1")}, true},
		{"11.4 MessageId", Correlation{MessageID: new("m-")}, false},
		{"11.4 To", Correlation{To: new("to")}, true},
		{"11.4 To", Correlation{To: new("TO")}, false},
		{"11.4 ReplyTo", Correlation{ReplyTo: new("reply")}, true},
		{"11.4 ReplyTo", Correlation{ReplyTo: new("")}, false},
		{"11.4 Label", Correlation{Subject: new("order.created")}, true},
		{"11.4 Label", Correlation{Subject: new("Order.created")}, false},
		{"11.4 SessionId", Correlation{SessionID: new("s1")}, true},
		{"11.4 SessionId", Correlation{SessionID: new("s2")}, false},
		{"11.4 ReplyToSessionId", Correlation{ReplyToSessionID: new("rs")}, true},
		{"11.4 ReplyToSessionId", Correlation{ReplyToSessionID: new("r")}, false},
		{"11.4 ContentType", Correlation{ContentType: new("application/json")}, true},
		{"11.4 ContentType", Correlation{ContentType: new("text/plain")}, false},
		{"11.4 AND", Correlation{To: new("to"), MessageID: new("m-1"), Properties: message.Properties{{Name: "tenant", Value: message.String("acme")}}}, true},
		{"11.4 AND", Correlation{To: new("to"), MessageID: new("m-2")}, false},
		{"11.4 AND", Correlation{To: new("to"), Properties: message.Properties{
			{Name: "tenant", Value: message.String("acme")}, {Name: "amount", Value: message.Long(6)},
		}}, false},
		{"11.4 value with case", Correlation{Properties: message.Properties{{Name: "tenant", Value: message.String("Acme")}}}, false},
		{"11.4 int matches long", Correlation{Properties: message.Properties{{Name: "amount", Value: message.Long(5)}}}, true},
		{"11.4 missing property", Correlation{Properties: red}, false},
		{"11.4 null property", Correlation{Properties: message.Properties{{Name: "nothing", Value: message.Null{}}}}, false},
		{filterExamples + ": equivalent to names without case", Correlation{Properties: message.Properties{{Name: "TENANT", Value: message.String("acme")}}}, true},
		{"11.1 exact name first", Correlation{Properties: message.Properties{{Name: "mixed", Value: message.String("exact")}}}, true},
	} {
		if err := tt.c.Validate(); err != nil {
			t.Errorf("%s: %v", tt.rule, err)
		}
		if got := tt.c.Match(sample()); got != tt.want {
			t.Errorf("%s: %+v is %v", tt.rule, tt.c, got)
		}
		if got := tt.c.Match(&message.Message{}); got != (tt.rule == "11.4 empty") {
			t.Errorf("%s: %+v of an empty message is %v", tt.rule, tt.c, got)
		}
	}
}

// An empty text that is there is not one that is absent.
func TestCorrelationEmptyText(t *testing.T) {
	c := Correlation{Subject: new("")}
	if !c.Match(&message.Message{Subject: new("")}) || c.Match(&message.Message{}) {
		t.Error("a filter for an empty label")
	}
}

func TestCorrelationIDs(t *testing.T) {
	for _, id := range []message.Value{
		message.String("a"), message.Ulong(math.MaxUint64),
		message.UUID{0xfe, 15: 9},
		message.Binary{0xff, 0},
		message.Binary(strings.Repeat("x", 500)),
		message.Symbol("other"),
	} {
		text := message.FormatValue(id)
		for want, match := range map[string]bool{text: true, text + " ": false, strings.Replace(text, "-", "_", 1): !strings.Contains(text, "-"), "": false} {
			if got := (Correlation{MessageID: &want}).Match(&message.Message{ID: id}); got != match {
				t.Errorf("a filter for %q matches the id %s %q: %v", want, typeName(id), text, got)
			}
		}
	}
	if (Correlation{MessageID: new("null")}).Match(&message.Message{ID: message.Null{}}) {
		t.Error("a null id matches")
	}
}

func TestCorrelationValidate(t *testing.T) {
	for _, tt := range []struct {
		want string
		p    message.Properties
	}{
		{"", message.Properties{{Name: "a", Value: message.Null{}}, {Name: "b", Value: message.Binary("x")}, {Name: "c", Value: message.Decimal64{0x7c}}}},
		{"the name of a property is empty", message.Properties{{Value: message.Int(1)}}},
		{`property "a" has no value`, message.Properties{{Name: "a"}}},
		{`property "a" is list, which does not compare`, message.Properties{{Name: "a", Value: message.List{}}}},
		{`property "a" is map`, message.Properties{{Name: "a", Value: message.Map{}}}},
		{`property "a" is x, which`, message.Properties{{Name: "a", Value: message.Described{Descriptor: message.Symbol("x")}}}},
		{`properties "Red" and "red" have one name`, message.Properties{{Name: "Red", Value: message.Int(1)}, {Name: "red", Value: message.Int(1)}}},
	} {
		err := Correlation{Properties: tt.p}.Validate()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want %q", tt.p, err, tt.want)
		}
	}
}

// naiveCorrelation is Match, written for reading: fields by their text, values by their label.
func naiveCorrelation(c Correlation, m *message.Message, labels map[string]string) bool {
	have := map[string]string{}
	set := func(name string, s *string) {
		if s != nil {
			have[name] = *s
		}
	}
	set("subject", m.Subject)
	set("session", m.SessionID)
	if m.ID != nil {
		have["id"] = message.FormatValue(m.ID)
	}
	for name, want := range map[string]*string{"subject": c.Subject, "session": c.SessionID, "id": c.MessageID} {
		if got, ok := have[name]; want != nil && (!ok || got != *want) {
			return false
		}
	}
	for _, want := range c.Properties {
		exact, folded := "", ""
		for _, p := range m.Properties {
			label := labels["message "+p.Name]
			if p.Name == want.Name {
				exact = "=" + label
			} else if folded == "" && strings.EqualFold(p.Name, want.Name) {
				folded = "=" + label
			}
		}
		if exact == "" {
			exact = folded
		}
		if label := labels["filter "+want.Name]; label == "" || exact != "="+label {
			return false
		}
	}
	return true
}

func FuzzCorrelation(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte{7, 0, 1, 2, 0, 1}, []byte{7, 0, 1, 2, 1, 0})
	f.Add([]byte{4, 1, 2, 1, 1, 3, 9}, []byte{0, 1, 2, 1, 1, 3, 7})
	texts := []string{"", "a", "A", "01000000-0000-0000-0000-000000000000", "1"}
	ids := []message.Value{message.String("a"), message.UUID{1}, message.Ulong(1), message.Binary("a"), message.String("")}
	names := []string{"p", "P", "q", "Q", "r"}
	f.Fuzz(func(t *testing.T, filter, msg []byte) {
		var c Correlation
		m := &message.Message{}
		labels := map[string]string{}
		next := func(from *[]byte) int {
			if len(*from) == 0 {
				return 0
			}
			b := (*from)[0]
			*from = (*from)[1:]
			return int(b)
		}
		fields := next(&filter)
		for i, field := range []**string{&c.Subject, &c.SessionID, &c.MessageID} {
			if fields>>i&1 != 0 {
				*field = &texts[next(&filter)%len(texts)]
			}
		}
		for len(filter) > 1 {
			name, v := names[next(&filter)%len(names)], labelled[next(&filter)%len(labelled)]
			c.Properties.Set(name, v.v)
			labels["filter "+name] = v.label
		}
		fields = next(&msg)
		for i, field := range []**string{&m.Subject, &m.SessionID} {
			if fields>>i&1 != 0 {
				*field = &texts[next(&msg)%len(texts)]
			}
		}
		if fields&4 != 0 {
			m.ID = ids[next(&msg)%len(ids)]
		}
		for len(msg) > 1 {
			name, v := names[next(&msg)%len(names)], labelled[next(&msg)%len(labelled)]
			m.Properties.Set(name, v.v)
			labels["message "+name] = v.label
		}
		if got, want := c.Match(m), naiveCorrelation(c, m, labels); got != want {
			t.Fatalf("%+v matches %+v: %v, want %v", c, m, got, want)
		}
	})
}

func TestCorrelationDoesNotAllocate(t *testing.T) {
	m := sample()
	m.ID = message.UUID{1}
	m.Properties.Set("price", message.Decimal128{0x30, 0x3c, 14: 0x04, 15: 0xd2})
	at := message.TimestampOf(time.Date(2026, 1, 2, 15, 4, 5, 123e6, time.UTC))
	c := Correlation{
		CorrelationID: new("ab000000-0000-0000-0000-000000000001"), MessageID: new(message.UUID{1}.String()), Subject: new("order.created"),
		Properties: message.Properties{
			{Name: "TENANT", Value: message.String("acme")},
			{Name: "amount", Value: message.Double(5)},
			{Name: "vip", Value: message.Bool(true)},
			{Name: "guid", Value: message.UUID{0x80, 15: 1}},
			{Name: "at", Value: at},
			{Name: "raw", Value: message.Binary("acme")},
			{Name: "price", Value: message.Double(12.34)},
			{Name: "span", Value: testParams()["span"]},
		},
	}
	for _, id := range []message.Value{m.ID, message.Ulong(math.MaxUint64), message.Binary(strings.Repeat("x", 128))} {
		m.ID = id
		*c.MessageID = message.FormatValue(id)
		if n := testing.AllocsPerRun(100, func() {
			if !c.Match(m) {
				t.Fatal("no match")
			}
		}); n != 0 {
			t.Errorf("%v allocations with the id %v", n, id)
		}
	}
}
