package message

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
)

// edits change one field of a message each. The field is named as Diff names it.
func edits() map[string]func(m *Message) {
	at := time.UnixMilli(1)
	return map[string]func(m *Message){
		"Durable":              func(m *Message) { m.Durable = !m.Durable },
		"Priority":             func(m *Message) { m.Priority = nil },
		"TTL":                  func(m *Message) { m.TTL = new(time.Hour) },
		"FirstAcquirer":        func(m *Message) { m.FirstAcquirer = !m.FirstAcquirer },
		"DeliveryAnnotations":  func(m *Message) { m.DeliveryAnnotations = nil },
		"Annotations":          func(m *Message) { m.Annotations = append(m.Annotations, Pair{Symbol("x"), Null{}}) },
		"ID":                   func(m *Message) { m.ID = String("7") }, // was Ulong(7)
		"UserID":               func(m *Message) { m.UserID = nil },     // was empty
		"To":                   func(m *Message) { m.To = nil },         // was ""
		"Subject":              func(m *Message) { m.Subject = new("t") },
		"ReplyTo":              func(m *Message) { m.ReplyTo = new("") },
		"CorrelationID":        func(m *Message) { m.CorrelationID = nil },
		"ContentType":          func(m *Message) { m.ContentType = nil },
		"ContentEncoding":      func(m *Message) { m.ContentEncoding = nil },
		"AbsoluteExpiry":       func(m *Message) { m.AbsoluteExpiry = &at },
		"Created":              func(m *Message) { m.Created = nil },
		"SessionID":            func(m *Message) { m.SessionID = new("s2") },
		"GroupSequence":        func(m *Message) { m.GroupSequence = new(uint32(0)) },
		"ReplyToSessionID":     func(m *Message) { m.ReplyToSessionID = nil },
		"Body":                 func(m *Message) { m.Body.Kind = Data },
		"Footer":               func(m *Message) { m.Footer = Map{{Symbol("f"), Bool(false)}} },
		"ScheduledEnqueueTime": func(m *Message) { m.ScheduledEnqueueTime = nil },
		"System":               func(m *Message) { m.System[0].Value = Int(1) }, // was Long(1)
	}
}

func TestDiffNamesWhatDiffers(t *testing.T) {
	for name, edit := range edits() {
		a, b := fullMessage(), fullMessage()
		edit(b)
		if got := Diff(a, b); !slices.Equal(got, []string{name}) {
			t.Errorf("%s was changed, Diff names %v", name, got)
		}
		if got := Diff(b, a); !slices.Equal(got, []string{name}) {
			t.Errorf("%s was changed, Diff names the other way round %v", name, got)
		}
	}
}

// TestDiffKnowsEveryField: a field that is added to Message has to be compared.
func TestDiffKnowsEveryField(t *testing.T) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Message]()) {
		if _, ok := edits()[field.Name]; !ok && field.Name != "Broker" && field.Name != "Properties" {
			t.Errorf("the field %s is in no test of Diff", field.Name)
		}
	}
}

func TestDiffOfEqualMessages(t *testing.T) {
	for _, m := range []*Message{{}, fullMessage()} {
		if got := Diff(m, m.Clone()); got != nil {
			t.Errorf("a clone differs in %v", got)
		}
	}
	a, b := fullMessage(), fullMessage()
	b.Broker = Broker{DeliveryCount: 3}
	b.Created = new(a.Created.In(time.FixedZone("", 3600)))
	if got := Diff(a, b); got != nil {
		t.Errorf("what the broker owns, and the zone of a time, differ in %v", got)
	}
}

func TestDiffOfProperties(t *testing.T) {
	base := Properties{{"a", Int(1)}, {"b", String("x")}, {"c", Null{}}}
	for _, c := range []struct {
		name  string
		other Properties
		want  []string
	}{
		{"the same", Properties{{"a", Int(1)}, {"b", String("x")}, {"c", Null{}}}, nil},
		{"another type", Properties{{"a", Long(1)}, {"b", String("x")}, {"c", Null{}}}, []string{"Properties.a"}},
		{"one missing", Properties{{"a", Int(1)}, {"b", String("x")}}, []string{"Properties.c"}},
		{"one more", Properties{{"a", Int(1)}, {"b", String("x")}, {"c", Null{}}, {"d", Int(1)}}, []string{"Properties.d"}},
		{"another case", Properties{{"A", Int(1)}, {"b", String("x")}, {"c", Null{}}}, []string{"Properties.a", "Properties.A"}},
		{"another order", Properties{{"b", String("x")}, {"a", Int(1)}, {"c", Null{}}}, []string{"Properties order"}},
		{"none", nil, []string{"Properties.a", "Properties.b", "Properties.c"}},
	} {
		if got := Diff(&Message{Properties: base}, &Message{Properties: c.other}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestEqualBodies(t *testing.T) {
	for name, c := range map[string]struct {
		a, b Body
		want bool
	}{
		"both without sections":         {Body{}, Body{Sections: [][]byte{}}, true},
		"none and an empty section":     {Body{}, DataBody(nil), false},
		"one and two empty sections":    {DataBody(nil), Body{Sections: [][]byte{{}, {}}}, false},
		"the same bytes, cut otherwise": {Body{Sections: [][]byte{{1}, {2}}}, DataBody([]byte{1, 2}), false},
		"another kind":                  {Body{Kind: ValueBody, Sections: [][]byte{{0x40}}}, DataBody([]byte{0x40}), false},
		"the same":                      {DataBody([]byte{1}), DataBody([]byte{1}), true},
	} {
		if EqualBodies(c.a, c.b) != c.want || EqualBodies(c.b, c.a) != c.want {
			t.Errorf("%s: want %v", name, c.want)
		}
	}
}

// TestEqualValues: every value equals itself alone.
func TestEqualValues(t *testing.T) {
	values := append(everyValue(), Int(1), Uint(1), Long(1), String("1"), Symbol("1"), Binary("1"), Double(0), Double(1), Float(1),
		Float(float32(math.Copysign(0, -1))), Float(0), List{Int(1)}, List{Uint(1)}, List{nil}, Array{Elem: KindUint},
		Array{Elem: KindInt, Descriptor: Symbol("d")}, Map{{Symbol("k"), Long(2)}}, Map{{String("k"), Long(1)}},
		Described{Symbol("com.microsoft:timespan"), Long(6)}, Described{Ulong(5), Long(5)}, Null{})
	for i, a := range values {
		for j, b := range values {
			// Null{} is there twice.
			same := i == j || KindOf(a) == KindNull && KindOf(b) == KindNull
			if EqualValues(a, b) != same {
				t.Errorf("%v %v and %v %v: equal is %v", KindOf(a), a, KindOf(b), b, !same)
			}
		}
	}
}
