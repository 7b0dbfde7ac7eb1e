package message

import (
	"slices"
	"testing"
	"time"
)

// TestCloneIsApart: what can be changed in place can be changed in a clone alone.
func TestCloneIsApart(t *testing.T) {
	m := fullMessage()
	c := m.Clone()
	c.Properties.Set("a", String("changed"))
	c.Properties.Set("new", String("added"))
	c.Properties.Delete("b")
	c.Annotations[0].Value = Int(2)
	c.DeliveryAnnotations[0].Value = Int(2)
	c.Footer[0].Value = Int(2)
	c.System[0].Value = Int(2)
	c.Body.Sections[0] = []byte("changed")
	c.Subject = new("changed")
	c.Broker.DeliveryCount++
	if d := Diff(m, fullMessage()); d != nil || m.Broker != fullMessage().Broker {
		t.Errorf("changing a clone has changed the original in %v", d)
	}
}

func TestProperties(t *testing.T) {
	var p Properties
	if v, ok := p.Get("a"); ok || v != nil {
		t.Errorf("from none: %v, %v", v, ok)
	}
	for _, name := range []string{"b", "a", "c"} {
		p.Set(name, String(name))
	}
	p.Set("a", Null{})
	before := slices.Clone(p)
	if v, ok := p.Get("a"); !ok || v != (Null{}) {
		t.Errorf("a null property: %v, %v", v, ok)
	}
	if _, ok := p.Get("A"); ok {
		t.Error("names compare without case")
	}
	if want := (Properties{{"b", String("b")}, {"a", Null{}}, {"c", String("c")}}); !slices.Equal(p, want) {
		t.Errorf("set: %v, want %v", p, want)
	}
	shared := p
	if !p.Delete("a") || p.Delete("a") {
		t.Error("delete says otherwise than what it did")
	}
	if want := (Properties{{"b", String("b")}, {"c", String("c")}}); !slices.Equal(p, want) {
		t.Errorf("deleted: %v, want %v", p, want)
	}
	if !slices.Equal(shared, before) {
		t.Errorf("delete has changed a list that shared its memory: %v, before %v", shared, before)
	}
}

func TestDeadLetterReason(t *testing.T) {
	for _, c := range []struct {
		v    Value
		want string
	}{
		{nil, ""}, {Null{}, ""}, {Int(4), ""}, {String("TTLExpiredException"), "TTLExpiredException"}, {Symbol("s"), "s"},
	} {
		m := &Message{}
		if c.v != nil {
			m.Properties.Set(DeadLetterReasonProperty, c.v)
			m.Properties.Set(DeadLetterDescriptionProperty, c.v)
		}
		if m.DeadLetterReason() != c.want || m.DeadLetterDescription() != c.want {
			t.Errorf("%v: %q and %q, want %q", c.v, m.DeadLetterReason(), m.DeadLetterDescription(), c.want)
		}
	}
}

func TestBody(t *testing.T) {
	one := []byte("one")
	for _, c := range []struct {
		name  string
		b     Body
		bytes string
	}{
		{"none", Body{}, ""},
		{"empty", DataBody(nil), ""},
		{"one", DataBody(one), "one"},
		{"three", Body{Sections: [][]byte{one, {}, []byte("two")}}, "onetwo"},
	} {
		if got := c.b.Bytes(); string(got) != c.bytes || c.b.Len() != len(c.bytes) {
			t.Errorf("%s: %q, length %d", c.name, got, c.b.Len())
		}
	}
	if n := len(DataBody(nil).Sections); n != 1 {
		t.Errorf("a body of no bytes has %d sections, want an empty one", n)
	}
	if b := DataBody(one).Bytes(); &b[0] != &one[0] {
		t.Error("a single section was copied")
	}
}

func TestMapGet(t *testing.T) {
	m := Map{{String("k"), Int(1)}, {Symbol("k"), Int(2)}, {Symbol("k"), Int(3)}}
	if v, ok := m.Get("k"); !ok || v != Int(2) {
		t.Errorf("got %v, %v, want the first with that symbol", v, ok)
	}
	if v, ok := m.Get("other"); ok || v != nil {
		t.Errorf("got %v, %v of what is not there", v, ok)
	}
}

func TestNames(t *testing.T) {
	for want, got := range map[string]string{
		"active": Active.String(), "deferred": Deferred.String(), "scheduled": Scheduled.String(), "unknown": State(9).String(),
		"data": Data.String(), "value": ValueBody.String(), "sequence": Sequence.String(),
		"00000000-0000-0000-0000-0000000000ff": UUID{15: 0xff}.String(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAbsent(t *testing.T) {
	if !(UUID{}).IsZero() || (UUID{1}).IsZero() {
		t.Error("a UUID is zero when all of it is, and only then")
	}
	if Str(nil) != "" || Str(new("x")) != "x" {
		t.Error("an absent string reads as the empty one, and no other does")
	}
}

// TestTimestampOf drops what is finer than a millisecond, and the zone.
func TestTimestampOf(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 123_999_999, time.FixedZone("", 7200))
	if got := TimestampOf(at).Time(); !got.Equal(at.Truncate(time.Millisecond)) || got.Location() != time.UTC {
		t.Errorf("a timestamp of %v is %v", at, got)
	}
}
