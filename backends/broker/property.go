package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"dlq/backends/message"
	"dlq/backends/sqlfilter"
)

// Property is one property of an entity as text.
type Property struct {
	Name      string // as the dialect of the entity calls it
	Value     string
	Default   string // what a new entity of its kind has
	Range     string // what [Properties.Set] takes
	Immutable bool   // fixed when the entity is created
}

// clone returns a copy that shares nothing.
func (p *Properties) clone() Properties {
	c := *p
	c.Extra, c.RedriveAllow.Sources = maps.Clone(p.Extra), slices.Clone(p.RedriveAllow.Sources)
	return c
}

// List returns all properties that apply to the entity, in an order that does not change:
// what the entity is, what may be sent to it, how it is received, how long it is kept, where
// it goes then, and what is kept without effect.
func (p *Properties) List(kind Kind) []Property {
	fresh := p.fresh(kind)
	var list []Property
	for i := range propertySpecs {
		if s := &propertySpecs[i]; s.applies(kind, p) {
			list = append(list, Property{
				Name: s.name, Value: s.get(p), Default: s.get(&fresh), Range: s.bounds, Immutable: s.immutable,
			})
		}
	}
	return list
}

// Set gives one property a value. Names and words compare without case; durations are as Go
// or ISO 8601 write them ("30s", "PT30S", "P14D"), or a number of seconds where the service
// counts in seconds; sizes take a unit ("2GB"). On an error, which wraps [ErrInvalid] and
// states range and default, nothing has changed. FifoQueue brings along what belongs to a
// FIFO queue, so it is the first to be set. Whether an existing entity may change is not
// looked at, nor what several properties mean together.
func (p *Properties) Set(kind Kind, name, value string) error {
	s, err := p.find(kind, name)
	if err != nil {
		return err
	}
	changed := *p
	if err := s.parse(&changed, value); err != nil {
		return fmt.Errorf("%w: %s %q: %w (default %s)", ErrInvalid, s.name, value, err, p.standard(kind, s))
	}
	if !s.within(&changed, true) {
		return p.outOfRange(kind, s, &changed)
	}
	switch {
	case s.field == "Dialect" && changed.Dialect != p.Dialect:
		return fmt.Errorf("%w: the dialect is chosen before any property", ErrInvalid)
	case s.field == "Groups" && changed.Groups != p.Groups:
		changed.setFIFO(changed.Groups)
	}
	*p = changed
	return nil
}

// find returns the property of that name which applies to the kind and the dialect, on
// a FIFO queue or not: a queue may become one.
func (p *Properties) find(kind Kind, name string) (*propertySpec, error) {
	elsewhere := ""
	for i := range propertySpecs {
		s := &propertySpecs[i]
		if !s.called(name) {
			continue
		}
		if s.reaches(kind, p.Dialect) {
			return s, nil
		}
		elsewhere = s.field
	}
	if elsewhere == "" {
		return nil, fmt.Errorf("%w: no property is named %q; the nearest is %s", ErrInvalid, name, p.nearest(kind, name))
	}
	for i := range propertySpecs {
		if s := &propertySpecs[i]; s.field == elsewhere && s.reaches(kind, p.Dialect) {
			return nil, fmt.Errorf("%w: a %s of %s has no %s; here it is %s", ErrInvalid, kind, p.Dialect, name, s.name)
		}
	}
	return nil, fmt.Errorf("%w: a %s of %s has no %s", ErrInvalid, kind, p.Dialect, name)
}

func (s *propertySpec) called(name string) bool {
	return name != "" && (strings.EqualFold(name, s.name) || strings.EqualFold(name, s.alias))
}

func (s *propertySpec) reaches(kind Kind, dialect Dialect) bool {
	return s.kinds&kind.set() != 0 && (s.dialect == "" || s.dialect == dialect)
}

func (s *propertySpec) applies(kind Kind, p *Properties) bool {
	return s.reaches(kind, p.Dialect) && (!s.fifo || p.Groups)
}

// fresh returns the properties of a new entity of the same nature.
func (p *Properties) fresh(kind Kind) Properties {
	fresh := Defaults(kind, p.Dialect)
	if p.Dialect == SQS {
		fresh.setFIFO(p.Groups)
	}
	return fresh
}

func (p *Properties) standard(kind Kind, s *propertySpec) string {
	fresh := p.fresh(kind)
	if text := s.get(&fresh); text != "" {
		return text
	}
	return "none"
}

func (p *Properties) outOfRange(kind Kind, s *propertySpec, changed *Properties) error {
	return fmt.Errorf("%w: %s %s is out of range: %s (default %s)", ErrInvalid, s.name, s.get(changed), s.bounds, p.standard(kind, s))
}

// validate checks the whole: ranges, what applies, and what goes together. The engine's
// ranges are the services' but for a few that a test may want to go beyond.
func (p *Properties) validate(kind Kind) error {
	if kind.set() == 0 || p.Dialect != ServiceBus && p.Dialect != SQS {
		return fmt.Errorf("%w: no entity is a %q of %q", ErrInvalid, kind, p.Dialect)
	}
	if p.Dialect == SQS && kind != Queue {
		return fmt.Errorf("%w: %s has queues only, no %s", ErrInvalid, SQS, kind)
	}
	fresh := p.fresh(kind)
	applies := map[string]bool{}
	for i := range propertySpecs {
		s := &propertySpecs[i]
		if !s.applies(kind, p) {
			continue
		}
		applies[s.field] = true
		if !s.within(p, false) {
			return p.outOfRange(kind, s, p)
		}
	}
	for i := range propertySpecs {
		if s := &propertySpecs[i]; !applies[s.field] && s.get(p) != s.get(&fresh) {
			return p.inapplicable(kind, s)
		}
	}
	if p.ForwardTo != "" && p.RequiresSession {
		return fmt.Errorf("%w: an entity that requires sessions cannot forward its messages: leave ForwardTo or RequiresSession out", ErrInvalid)
	}
	return nil
}

// inapplicable says why a property cannot have the value that it has.
func (p *Properties) inapplicable(kind Kind, s *propertySpec) error {
	for i := range propertySpecs {
		if own := &propertySpecs[i]; own.field == s.field && own.reaches(kind, p.Dialect) {
			return fmt.Errorf("%w: %s is for FIFO queues: create the queue with FifoQueue=true", ErrInvalid, own.name)
		}
	}
	name := s.name
	if name == "" {
		name = s.field
	}
	return fmt.Errorf("%w: a %s of %s has no %s", ErrInvalid, kind, p.Dialect, name)
}

// changed refuses to change what is fixed when an entity is created.
func (p *Properties) changed(from *Properties, kind Kind) error {
	for i := range propertySpecs {
		s := &propertySpecs[i]
		if s.immutable && s.reaches(kind, from.Dialect) && s.get(p) != s.get(from) {
			return fmt.Errorf("%w: %s is fixed when a %s is created: it stays %s", ErrInvalid, s.name, kind, s.get(from))
		}
	}
	return nil
}

// nearest returns the name of the property that is most like a name.
func (p *Properties) nearest(kind Kind, name string) string {
	var names []string
	for i := range propertySpecs {
		if s := &propertySpecs[i]; s.name != "" && s.reaches(kind, p.Dialect) {
			names = append(names, s.name)
		}
	}
	best, _ := sqlfilter.Nearest(name, names)
	return best
}

// extraPrefix stands before the names of [Properties.Extra] in the store.
const extraPrefix = "Extra."

// attributes returns the stored form: every property that is not zero, by the name of its
// field, whether or not it applies to the entity's kind.
func (p *Properties) attributes() []message.Attribute {
	var zero Properties
	var attrs []message.Attribute
	seen := map[string]bool{}
	for i := range propertySpecs {
		s := &propertySpecs[i]
		if !seen[s.field] && s.get(p) != s.get(&zero) {
			attrs = append(attrs, message.Attribute{Name: s.field, Value: message.String(s.get(p))})
		}
		seen[s.field] = true
	}
	for _, name := range slices.Sorted(maps.Keys(p.Extra)) {
		attrs = append(attrs, message.Attribute{Name: extraPrefix + name, Value: message.String(p.Extra[name])})
	}
	return attrs
}

// decodeProperties reads the stored form. A name that it does not know is that of a later
// version, whose entities this one would not treat as they ask for: it is an error.
func decodeProperties(attrs []message.Attribute) (Properties, error) {
	var p Properties
	for _, a := range attrs {
		value, ok := a.Value.(message.String)
		if !ok {
			return Properties{}, fmt.Errorf("property %q is a %v, not text", a.Name, message.KindOf(a.Value))
		}
		if name, ok := strings.CutPrefix(a.Name, extraPrefix); ok {
			if p.Extra == nil {
				p.Extra = map[string]string{}
			}
			p.Extra[name] = string(value)
			continue
		}
		i := slices.IndexFunc(propertySpecs[:], func(s propertySpec) bool { return s.field == a.Name })
		if i < 0 {
			return Properties{}, fmt.Errorf("property %q is not known: a later version of dlq wrote it", a.Name)
		}
		if err := propertySpecs[i].parse(&p, string(value)); err != nil {
			return Properties{}, fmt.Errorf("property %q: %w", a.Name, err)
		}
	}
	return p, nil
}
