package message

// Properties is an ordered list of named values with unique names. Names compare
// byte for byte, as AMQP does.
type Properties []Attribute

// Get returns the value of name and whether it is there. A property that is there with
// a null value returns (Null{}, true).
func (p Properties) Get(name string) (Value, bool) {
	for _, a := range p {
		if a.Name == name {
			return a.Value, true
		}
	}
	return nil, false
}

// Set replaces the value of name in place, or appends it.
func (p *Properties) Set(name string, v Value) {
	for i := range *p {
		if (*p)[i].Name == name {
			(*p)[i].Value = v
			return
		}
	}
	*p = append(*p, Attribute{name, v})
}

// Delete removes name and reports whether it was there. The order of the others stays.
func (p *Properties) Delete(name string) bool {
	for i, a := range *p {
		if a.Name == name {
			*p = append((*p)[:i:i], (*p)[i+1:]...)
			return true
		}
	}
	return false
}

func (p Properties) text(name string) string {
	switch v, _ := p.Get(name); v := v.(type) {
	case String:
		return string(v)
	case Symbol:
		return string(v)
	}
	return ""
}
