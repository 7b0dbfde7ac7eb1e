package atomd

import (
	"bytes"
	"fmt"
	"time"
	"unicode/utf8"
)

const (
	atomSpace     = "http://www.w3.org/2005/Atom"
	busSpace      = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
	instanceSpace = "http://www.w3.org/2001/XMLSchema-instance"
	schemaSpace   = "http://www.w3.org/2001/XMLSchema"
	countSpace    = "http://schemas.microsoft.com/netservices/2011/06/servicebus"
)

// writer writes XML. Clients depend on the order of elements and on prefixes, which an
// encoder of structs would choose by itself.
type writer struct{ buf bytes.Buffer }

func newWriter() *writer { return &writer{} }

func (w *writer) bytes() []byte { return w.buf.Bytes() }

// open writes a start tag; attributes are names and values in turn.
func (w *writer) open(name string, attributes ...string) {
	w.buf.WriteByte('<')
	w.buf.WriteString(name)
	for i := 0; i < len(attributes); i += 2 {
		w.buf.WriteString(" " + attributes[i] + `="`)
		w.escape(attributes[i+1])
		w.buf.WriteByte('"')
	}
	w.buf.WriteByte('>')
}

func (w *writer) close(name string) { w.buf.WriteString("</" + name + ">") }

// escape writes text that means itself. Apostrophes stay: clients look for texts in the bytes
// of an answer. What XML cannot hold is shown as a replacement character.
func (w *writer) escape(s string) {
	for _, r := range s {
		switch {
		case r == '&':
			w.buf.WriteString("&amp;")
		case r == '<':
			w.buf.WriteString("&lt;")
		case r == '>':
			w.buf.WriteString("&gt;")
		case r == '"':
			w.buf.WriteString("&quot;")
		case r == '\t', r == '\n', r == '\r': // a reader would change them
			fmt.Fprintf(&w.buf, "&#%d;", r)
		case r < ' ', r == 0xfffe, r == 0xffff:
			w.buf.WriteRune(utf8.RuneError)
		default:
			w.buf.WriteRune(r) // of what is not UTF-8, range has made a replacement character
		}
	}
}

// text writes an element that holds text.
func (w *writer) text(name, text string, attributes ...string) {
	w.open(name, attributes...)
	w.escape(text)
	w.close(name)
}

// optional writes the element only if there is something to say.
func (w *writer) optional(name, text string) {
	if text != "" {
		w.text(name, text)
	}
}

func (w *writer) flag(name string, v bool) { w.text(name, fmt.Sprint(v)) }

func (w *writer) number(name string, n int64) { w.text(name, fmt.Sprint(n)) }

// timeFormat has as many digits as .NET shows.
const timeFormat = "2006-01-02T15:04:05.0000000Z"

func (w *writer) time(name string, t time.Time) { w.text(name, t.UTC().Format(timeFormat)) }
