package message

import "fmt"

// Check reports what no backend of dlq could store and give back: a body of an unknown kind,
// and values nested too deep for the binary form.
func Check(m *Message) error {
	if m.Body.Kind > Sequence {
		return fmt.Errorf("the body has the unknown kind %d", m.Body.Kind)
	}
	for _, section := range [...]struct {
		name string
		m    Map
	}{{"the delivery annotations", m.DeliveryAnnotations}, {"the annotations", m.Annotations}, {"the footer", m.Footer}} {
		if tooDeep(section.m, 0) {
			return fmt.Errorf("%s are nested deeper than %d", section.name, maxDepth)
		}
	}
	for _, list := range [...][]Attribute{m.Properties, m.System} {
		for _, a := range list {
			if tooDeep(a.Value, 0) {
				return fmt.Errorf("the property %q is nested deeper than %d", a.Name, maxDepth)
			}
		}
	}
	if tooDeep(m.ID, 0) || tooDeep(m.CorrelationID, 0) {
		return fmt.Errorf("an id is nested deeper than %d", maxDepth)
	}
	return nil
}

// tooDeep counts levels as the decoder does, and stops at the first that is too many.
func tooDeep(v Value, depth int) bool {
	if depth > maxDepth {
		return true
	}
	switch v := v.(type) {
	case List:
		return anyTooDeep(v, depth)
	case Array:
		return tooDeep(v.Descriptor, depth+1) || anyTooDeep(v.Items, depth)
	case Described:
		return tooDeep(v.Descriptor, depth+1) || tooDeep(v.Value, depth+1)
	case Map:
		for _, p := range v {
			if tooDeep(p.Key, depth+1) || tooDeep(p.Value, depth+1) {
				return true
			}
		}
	}
	return false
}

func anyTooDeep(vs []Value, depth int) bool {
	for _, v := range vs {
		if tooDeep(v, depth+1) {
			return true
		}
	}
	return false
}
