package backends

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"testing"

	"dlq/backends/message"
)

// capable has every optional interface, and answers each call with its own error.
type capable struct{ Backend }

func called(name string) error { return &Error{Op: name, Code: Denied} }

func (capable) Peek(context.Context, EntityID, PeekOptions) iter.Seq2[*message.Message, error] {
	return func(yield func(*message.Message, error) bool) { yield(nil, called("Peek")) }
}

func (capable) SettleDirect(context.Context, EntityID, Outcome, ...int64) error {
	return called("SettleDirect")
}

func (capable) LeaseDeferred(context.Context, EntityID, ...int64) (Lease, error) {
	return nil, called("LeaseDeferred")
}
func (capable) Move(context.Context, EntityID, []Move) error   { return called("Move") }
func (capable) Purge(context.Context, EntityID) (int64, error) { return 3, called("Purge") }
func (capable) CreateQueue(context.Context, string) error      { return called("CreateQueue") }
func (capable) ValidateSend(context.Context, EntityID, *message.Message) error {
	return called("ValidateSend")
}

func (capable) Route(context.Context, EntityID, *message.Message) ([]EntityID, error) {
	return nil, called("Route")
}

func (capable) CreateEntity(context.Context, NewEntity) (EntityDescription, error) {
	return EntityDescription{}, called("CreateEntity")
}

func (capable) DescribeEntity(context.Context, EntityID) (EntityDescription, error) {
	return EntityDescription{}, called("DescribeEntity")
}

func (capable) ChangeEntity(context.Context, EntityID, ...Setting) error {
	return called("ChangeEntity")
}
func (capable) DeleteEntity(context.Context, EntityID) error       { return called("DeleteEntity") }
func (capable) AddRule(context.Context, EntityID, Rule) error      { return called("AddRule") }
func (capable) RemoveRule(context.Context, EntityID, string) error { return called("RemoveRule") }

// mover can move and nothing else.
type mover struct{ Backend }

func (mover) Move(context.Context, EntityID, []Move) error { return called("Move") }

// opaque is a decorator that lets none but Mover through.
type opaque struct {
	Backend
	inner Backend
}

func (o opaque) Unwrap() Backend                              { return o.inner }
func (o opaque) Move(context.Context, EntityID, []Move) error { return called("opaque Move") }

func TestProbe(t *testing.T) {
	all := Capabilities{true, true, true, true, true, true, true, true, true}
	onlyMove := Capabilities{Move: true}
	for name, c := range map[string]struct {
		b    Backend
		want Capabilities
	}{
		"capable":                           {capable{}, all},
		"bare":                              {struct{ Backend }{}, Capabilities{}},
		"mover":                             {mover{}, onlyMove},
		"decorated capable":                 {Decorator{capable{}}, all},
		"decorated twice":                   {Decorator{Decorator{capable{}}}, all},
		"decorated bare":                    {Decorator{struct{ Backend }{}}, Capabilities{}},
		"decorated mover":                   {Decorator{Decorator{mover{}}}, onlyMove},
		"opaque decorator of capable":       {opaque{inner: capable{}}, onlyMove},
		"opaque decorator of bare":          {opaque{inner: struct{ Backend }{}}, Capabilities{}},
		"decorated opaque":                  {Decorator{opaque{inner: capable{}}}, onlyMove},
		"opaque decorator of decorated one": {opaque{inner: Decorator{capable{}}}, onlyMove},
	} {
		if got := Probe(c.b); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestAsGivesTheOutermost: reaching through a decorator would go round it.
func TestAsGivesTheOutermost(t *testing.T) {
	m, ok := As[Mover](opaque{inner: capable{}})
	if !ok {
		t.Fatal("no Mover")
	}
	if err := m.Move(t.Context(), EntityID{}, nil); err.Error() != "opaque Move: denied" {
		t.Errorf("the decorator was passed over: %v", err)
	}
}

// optionalMethods is how many methods the optional interfaces have together.
func optionalMethods() int {
	return reflect.TypeFor[Decorator]().NumMethod() - reflect.TypeFor[Backend]().NumMethod() - 1 // Unwrap
}

// TestCapabilitiesAreComplete: a new optional interface has to be probed and forwarded.
func TestCapabilitiesAreComplete(t *testing.T) {
	// All but one of the optional interfaces have one method.
	optional := optionalMethods() - reflect.TypeFor[EntityAdmin]().NumMethod() + 1
	if fields := reflect.TypeFor[Capabilities]().NumField(); fields != optional {
		t.Errorf("the decorator forwards %d optional interfaces, and %d capabilities are probed", optional, fields)
	}
}

// calls are all optional methods, as an error from each.
func calls(ctx context.Context, d Decorator) map[string]error {
	out := map[string]error{
		"SettleDirect": d.SettleDirect(ctx, EntityID{}, Outcome{}, 1),
		"Move":         d.Move(ctx, EntityID{}, nil),
		"CreateQueue":  d.CreateQueue(ctx, "q"),
		"ValidateSend": d.ValidateSend(ctx, EntityID{}, nil),
		"ChangeEntity": d.ChangeEntity(ctx, EntityID{}),
		"DeleteEntity": d.DeleteEntity(ctx, EntityID{}),
		"AddRule":      d.AddRule(ctx, EntityID{}, Rule{}),
		"RemoveRule":   d.RemoveRule(ctx, EntityID{}, "r"),
	}
	for _, err := range d.Peek(ctx, EntityID{}, PeekOptions{}) {
		out["Peek"] = err
	}
	_, out["LeaseDeferred"] = d.LeaseDeferred(ctx, EntityID{}, 1)
	_, out["CreateEntity"] = d.CreateEntity(ctx, NewEntity{})
	_, out["DescribeEntity"] = d.DescribeEntity(ctx, EntityID{})
	_, out["Route"] = d.Route(ctx, EntityID{}, nil)
	_, out["Purge"] = d.Purge(ctx, EntityID{})
	return out
}

func TestDecoratorForwards(t *testing.T) {
	errs := calls(t.Context(), Decorator{Decorator{capable{}}})
	if len(errs) != optionalMethods() {
		t.Fatalf("%d methods were called", len(errs))
	}
	for name, err := range errs {
		var e *Error
		if !errors.As(err, &e) || e.Op != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, _ := (Decorator{capable{}}).Purge(t.Context(), EntityID{}); n != 3 {
		t.Errorf("purge: %d, want 3", n)
	}
}

func TestDecoratorOfBare(t *testing.T) {
	for name, err := range calls(t.Context(), Decorator{struct{ Backend }{}}) {
		if !errors.Is(err, errors.ErrUnsupported) || !IsCode(err, Unsupported) {
			t.Errorf("%s: %v, want errors.ErrUnsupported with its code", name, err)
		}
	}
}
