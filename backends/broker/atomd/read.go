package atomd

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Bounds of a request's body.
const (
	maxBody   = 1 << 20 // bytes
	maxDepth  = 64
	maxTokens = 10_000
)

// element is one XML element. Clients differ in prefixes and in the order of elements, so
// names are looked up by their local part.
type element struct {
	name     string
	typ      string // the i:type attribute, without its prefix
	none     bool   // marked with i:nil: it says nothing
	children []*element
	text     string
	parts    []byte // of the text, until it ends
}

// child returns the first child of a name; nil: there is none.
func (e *element) child(name string) *element {
	if e == nil {
		return nil
	}
	for _, c := range e.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// find returns the first element of a name in the tree.
func (e *element) find(name string) *element {
	if e.name == name {
		return e
	}
	for _, c := range e.children {
		if found := c.find(name); found != nil {
			return found
		}
	}
	return nil
}

// str returns the text of a child; nil: there is none.
func (e *element) str(name string) *string {
	c := e.child(name)
	if c == nil {
		return nil
	}
	return &c.text
}

// get returns the text of a child; "": there is none, or it is empty.
func (e *element) get(name string) string {
	if c := e.child(name); c != nil {
		return c.text
	}
	return ""
}

// list returns the children.
func (e *element) list() []*element {
	if e == nil {
		return nil
	}
	return e.children
}

// readBody reads the description in the body of a request.
func (c *call) readBody(description string) (*element, error) {
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("The body has more than %d bytes.", maxBody)}
	}
	if err != nil {
		return nil, err
	}
	root, err := parse(b)
	if err != nil {
		return nil, badRequest("The body is not the XML that is expected here: %v.", err)
	}
	d := root.find(description)
	if d == nil {
		return nil, badRequest("The body has no %s.", description)
	}
	return d, nil
}

func badRequest(format string, args ...any) error {
	return problem{http.StatusBadRequest, "SubCode=40000. " + fmt.Sprintf(format, args...)}
}

// parse reads a whole document within the bounds.
func parse(b []byte) (*element, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	d := xml.NewDecoder(bytes.NewReader(b))
	d.Strict = true
	root := &element{}
	stack := []*element{root}
	for n := 0; ; n++ {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if n > maxTokens || len(stack) > maxDepth {
			return nil, errors.New("it has too many elements, or too many in each other")
		}
		top := stack[len(stack)-1]
		switch t := t.(type) {
		case xml.StartElement:
			e := &element{name: t.Name.Local}
			for _, a := range t.Attr { // of whatever prefix: some clients bind none
				switch a.Name.Local {
				case "type":
					e.typ = local(a.Value)
				case "nil":
					e.none = a.Value == "true" || a.Value == "1"
				}
			}
			top.children = append(top.children, e)
			stack = append(stack, e)
		case xml.EndElement:
			top.text, top.parts = string(top.parts), nil
			stack = stack[:len(stack)-1]
		case xml.CharData:
			top.parts = append(top.parts, t...)
		case xml.Directive:
			return nil, errors.New("a document type is not taken")
		}
	}
	if len(root.children) != 1 {
		return nil, errors.New("it has no element, or several")
	}
	return root.children[0], nil
}

// local returns a name without its prefix.
func local(name string) string {
	return name[strings.LastIndexByte(name, ':')+1:]
}
