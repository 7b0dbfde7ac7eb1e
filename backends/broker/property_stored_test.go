package broker

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dlq/backends/message"
)

// anyProperties draws a value for every field, in range or not.
func anyProperties(t *rapid.T) Properties {
	name := rapid.StringMatching(`[a-z]{1,8}(/[a-z]{1,8})?`)
	maybeName := rapid.OneOf(rapid.Just(""), name)
	var p Properties
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		field, label := v.Field(i).Addr().Interface(), v.Type().Field(i).Name
		switch field := field.(type) {
		case *bool:
			*field = rapid.Bool().Draw(t, label)
		case *int:
			*field = rapid.Int().Draw(t, label)
		case *int64:
			*field = rapid.Int64Range(-1<<62, 1<<62).Draw(t, label)
		case *time.Duration:
			*field = time.Duration(rapid.Int64Range(-1<<62, 1<<62).Draw(t, label))
		case *Dialect:
			*field = rapid.SampledFrom([]Dialect{"", ServiceBus, SQS}).Draw(t, label)
		case *Status:
			*field = rapid.SampledFrom([]Status{"", Enabled, Disabled, SendDisabled, ReceiveDisabled}).Draw(t, label)
		case *string:
			*field = maybeName.Draw(t, label)
		case *Redrive:
			*field = rapid.SampledFrom([]Redrive{{}, {name.Draw(t, label), rapid.Int().Draw(t, label)}}).Draw(t, label)
		case *RedriveAllow:
			field.Permission = rapid.SampledFrom([]Permission{"", AllowAll, DenyAll, AllowByQueue}).Draw(t, label)
			if field.Permission != "" {
				field.Sources = rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfN(name, 1, 3)).Draw(t, label)
			}
		case *map[string]string:
			*field = rapid.OneOf(rapid.Just(map[string]string(nil)), rapid.MapOfN(rapid.String(), rapid.String(), 1, 3)).Draw(t, label)
		default:
			t.Fatalf("%s has a type that the test does not draw", label)
		}
	}
	return p
}

// TestStoredPropertiesRoundTrip: what is written is read back, whatever the values.
func TestStoredPropertiesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyProperties(t)
		got, err := decodeProperties(p.attributes())
		if err != nil {
			t.Fatal(err)
		}
		if want := p; !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%+v, want\n%+v", got, want)
		}
	})
}

func TestDecodePropertiesRefuses(t *testing.T) {
	for want, a := range map[string]message.Attribute{
		`property "Mood" is not known: a later version of dlq wrote it`: {Name: "Mood", Value: message.String("good")},
		`property "LockDuration" is a long, not text`:                   {Name: "LockDuration", Value: message.Long(1)},
		`property "Groups": want true or false`:                         {Name: "Groups", Value: message.String("1")},
		`property "VisibilityTimeout" is not known`:                     {Name: "VisibilityTimeout", Value: message.String("1")},
		`property "" is not known`:                                      {Value: message.String("1")},
	} {
		if _, err := decodeProperties([]message.Attribute{a}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// FuzzDecodeProperties: whatever is read is written so that it reads as the same.
func FuzzDecodeProperties(f *testing.F) {
	for _, n := range natures {
		p := Defaults(n.kind, n.dialect)
		p.Redrive = Redrive{"a", 3}
		p.RedriveAllow = RedriveAllow{AllowByQueue, []string{"b", "c"}}
		var lines []string
		for _, a := range p.attributes() {
			lines = append(lines, a.Name+"="+message.FormatValue(a.Value))
		}
		f.Add(strings.Join(lines, "\n"))
	}
	f.Fuzz(func(t *testing.T, stored string) {
		var attrs []message.Attribute
		for line := range strings.SplitSeq(stored, "\n") {
			name, value, _ := strings.Cut(line, "=")
			attrs = append(attrs, message.Attribute{Name: name, Value: message.String(value)})
		}
		p, err := decodeProperties(attrs)
		if err != nil {
			return
		}
		again, err := decodeProperties(p.attributes())
		if err != nil {
			t.Fatalf("%+v is not read again: %v", p, err)
		}
		if !slices.Equal(p.attributes(), again.attributes()) {
			t.Errorf("got\n%+v, want\n%+v", again, p)
		}
	})
}

// What a server keeps with an entity stays, belongs to the engine alone, and is no property
// that anybody sets by name.
func TestExtra(t *testing.T) {
	b := newBench(t)
	given := map[string]string{"LockDuration": "PT60S", "Tag": "blue"}
	b.make("q", Queue, func(p *Properties) { p.Extra = given })
	given["Tag"] = "red"
	b.info("q").Extra["Tag"] = "green"
	var late *Properties
	b.change("q", func(p *Properties) { p.Extra["AutoDeleteOnIdle"] = "PT6H"; late = p })
	late.Extra["Tag"] = "yellow"
	for range 2 {
		p := b.info("q").Properties
		if want := map[string]string{"LockDuration": "PT60S", "Tag": "blue", "AutoDeleteOnIdle": "PT6H"}; !maps.Equal(p.Extra, want) {
			t.Errorf("it keeps %v, want %v", p.Extra, want)
		}
		if p.LockDuration != time.Minute || p.AutoDeleteOnIdle != 0 {
			t.Errorf("it has become effective: %+v", p)
		}
		for _, x := range p.List(Queue) {
			if x.Name == "Tag" || strings.HasPrefix(x.Name, "Extra") {
				t.Errorf("%s is listed", x.Name)
			}
		}
		for _, name := range []string{"Tag", "Extra", "Extra.Tag"} {
			b.want(p.Set(Queue, name, "x"), ErrInvalid)
		}
		b.restart()
	}
	b.change("q", func(p *Properties) { p.Extra = nil })
	b.crash()
	if p := b.info("q").Properties; len(p.Extra) > 0 {
		t.Errorf("it keeps %v after all was taken away", p.Extra)
	}
}
