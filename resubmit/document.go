package resubmit

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"dlq/backends/message"
)

// A document is a message as text for an editor:
//
//	# comment
//	id=order-17
//	ttl=1h0m0s
//	[properties]
//	tenant=acme
//	attempt:int=3
//	[body]
//	{"order": 17}
//
// A value is a string unless the name carries a type, as on the command line. A name or value that would
// not survive an editor is in double quotes, as a Go string. What has no text form is written
// @keep: it stays as long as the line stays. What SQS gives a type of its own has that one,
// price:sqs:Number.float=1.50 or image:sqs:Binary.png=iVBORw==. A body that is not plain text is base64, a block for
// each section: [body data], [body value] or [body sequence].
const (
	headProperties          = "[properties]"
	headAnnotations         = "[annotations]"
	headDeliveryAnnotations = "[delivery-annotations]"
	headFooter              = "[footer]"
	headBody                = "[body]"
	keepMark                = "@keep"
	base64Width             = 76
)

const documentHelp = `# Lines that begin with # are comments, down to the body. Delete a line to remove the field.
# A value is text unless its name carries a type: attempt:int=3, raw:binary=aGVsbG8=, at:timestamp=2026-01-02T15:04:05Z; of SQS price:sqs:Number.float=0.5, image:sqs:Binary.png=iVBORw==.
# What reads @keep has no text form: it stays as long as the line stays.
`

// FormatDocument writes m as text for an editor: its fields, its typed properties and its
// body. It is for an editor, not for a terminal: text is as it is, except that what holds
// control characters is quoted, or base64 in a body.
func FormatDocument(m *message.Message) []byte {
	var b bytes.Buffer
	b.WriteString(documentHelp)
	for _, line := range documentLines(m) {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// documentLines is the document without its help. The lines of a text body may hold no line
// feed, but everything else.
func documentLines(m *message.Message) []string {
	var lines []string
	for _, f := range documentFields {
		if v := f.get(m); v != nil {
			lines = append(lines, formatEntry(f.name, f.kind, v))
		}
	}
	section := func(head string, entries []string) {
		if len(entries) > 0 {
			lines = append(append(lines, head), entries...)
		}
	}
	section(headProperties, propertyLines(m.Properties))
	section(headAnnotations, mapLines(m.Annotations))
	section(headDeliveryAnnotations, mapLines(m.DeliveryAnnotations))
	section(headFooter, mapLines(m.Footer))
	return append(lines, bodyLines(m)...)
}

func propertyLines(p message.Properties) []string {
	lines := make([]string, len(p))
	for i, a := range p {
		lines[i] = formatEntry(a.Name, message.KindString, a.Value)
	}
	return lines
}

// mapLines writes the entries of an AMQP map. Its keys are symbols, or have no text form here.
func mapLines(m message.Map) []string {
	lines := make([]string, len(m))
	for i, p := range m {
		if key, ok := p.Key.(message.Symbol); ok {
			lines[i] = formatEntry(string(key), message.KindString, p.Value)
		} else {
			lines[i] = formatName(message.FormatValue(p.Key)) + ":" + message.KindOf(p.Value).String() + "=" + keepMark
		}
	}
	return lines
}

func bodyLines(m *message.Message) []string {
	if m.Broker.BodyOmitted {
		return []string{"# The body was not loaded, so this message cannot be edited."}
	}
	if s := m.Body.Sections; m.Body.Kind == message.Data && len(s) == 1 && isPlainText(s[0]) {
		return append([]string{headBody}, strings.Split(string(s[0]), "\n")...)
	}
	var lines []string
	for _, s := range m.Body.Sections {
		lines = append(lines, bodyHead(m.Body.Kind))
		text := base64.StdEncoding.EncodeToString(s)
		for ; len(text) > base64Width; text = text[base64Width:] {
			lines = append(lines, text[:base64Width])
		}
		lines = append(lines, text)
	}
	return lines
}

func bodyHead(k message.BodyKind) string { return "[body " + k.String() + "]" }

// isPlainText reports whether an editor keeps the bytes as they are.
func isPlainText(b []byte) bool {
	for i, c := range b {
		crlf := c == '\r' && i+1 < len(b) && b[i+1] == '\n'
		if c < ' ' && c != '\n' && c != '\t' && !crlf || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(b)
}

// formatEntry writes name=value, with the type where it is not the usual one.
func formatEntry(name string, usual message.Kind, v message.Value) string {
	s := formatName(name)
	if t, text, ok := message.FormatSQSValue(v); ok {
		return s + ":" + t + "=" + formatText(text)
	}
	kind := message.KindOf(v)
	if kind != usual {
		s += ":" + kind.String()
	}
	if kind >= message.KindList {
		return s + "=" + keepMark
	}
	return s + "=" + formatText(message.FormatValue(v))
}

func formatName(name string) string {
	if name == "" || strings.ContainsAny(name[:1], "#[@") || strings.ContainsAny(name, `=:"`) || quotes(name) {
		return strconv.Quote(name)
	}
	return name
}

func formatText(s string) string {
	if strings.HasPrefix(s, `"`) || strings.HasPrefix(s, "@") || quotes(s) {
		return strconv.Quote(s)
	}
	return s
}

// quotes reports whether a text has to be quoted to survive an editor.
func quotes(s string) bool {
	return strings.TrimSpace(s) != s || !utf8.ValidString(s) ||
		strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) })
}

// ParseDocument reads what [FormatDocument] wrote for original and a person changed. What was
// not changed is taken from original, the body byte for byte; so is what the broker owns and what
// a document does not show. Errors name the line.
func ParseDocument(original *message.Message, doc []byte) (*message.Message, error) {
	if original.Broker.BodyOmitted {
		return nil, fmt.Errorf("the body was not loaded, so the message cannot be edited")
	}
	p := newDocumentParser(original)
	lines := strings.SplitAfter(string(doc), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, " \t\r\n")
		if strings.HasPrefix(line, "[body") {
			if err := p.body(line, i+1, lines[i+1:]); err != nil {
				return nil, err
			}
			return p.out, nil
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if len(original.Body.Sections) > 0 {
		return nil, fmt.Errorf("line %d: the %s line is missing; keep it, with nothing below for an empty body", len(lines), headBody)
	}
	return p.out, nil
}

// documentParser builds the edited message from lines.
type documentParser struct {
	original, out *message.Message
	section       string
	// lines are those of the original that were not met yet, by section. Met again, a
	// line stands for its original entry, whatever that holds.
	lines map[string][]string
	seen  map[string]bool // section and name of lines that were changed or added
}

func newDocumentParser(original *message.Message) *documentParser {
	p := &documentParser{original: original, out: original.Clone(), seen: map[string]bool{}}
	p.lines = map[string][]string{
		headProperties:          propertyLines(original.Properties),
		headAnnotations:         mapLines(original.Annotations),
		headDeliveryAnnotations: mapLines(original.DeliveryAnnotations),
		headFooter:              mapLines(original.Footer),
	}
	for _, f := range documentFields {
		_ = f.set(p.out, nil) // removing never fails
	}
	p.out.Properties, p.out.Annotations, p.out.DeliveryAnnotations, p.out.Footer = nil, nil, nil, nil
	return p
}

func (p *documentParser) line(line string) error {
	switch {
	case line == "" || line[0] == '#':
		return nil
	case line[0] == '[':
		if _, ok := p.lines[line]; !ok {
			return fmt.Errorf("%q is no section; there are %s %s %s %s %s", line, headProperties, headAnnotations,
				headDeliveryAnnotations, headFooter, headBody)
		}
		p.section = line
		return nil
	}
	if p.section != "" {
		if i := slices.Index(p.lines[p.section], line); i >= 0 {
			p.lines[p.section][i] = "" // no line is empty: it is met
			p.keep(i)
			return nil
		}
	}
	e, err := parseEntry(line)
	if err != nil {
		return err
	}
	key := p.section + e.name
	if p.seen[key] || p.holds(e.name) {
		return fmt.Errorf("%q is there twice", e.name)
	}
	p.seen[key] = true
	if p.section == "" {
		return p.field(line, e)
	}
	v, err := e.value(message.KindString)
	if err != nil {
		return err
	}
	if p.section == headProperties {
		p.out.Properties = append(p.out.Properties, message.Attribute{Name: e.name, Value: v})
		return nil
	}
	to, _ := p.maps()
	*to = append(*to, message.Pair{Key: message.Symbol(e.name), Value: v})
	return nil
}

// keep takes entry i of the section from the original.
func (p *documentParser) keep(i int) {
	if p.section == headProperties {
		p.out.Properties = append(p.out.Properties, p.original.Properties[i])
		return
	}
	to, from := p.maps()
	*to = append(*to, from[i])
}

// holds reports whether the section has that name already.
func (p *documentParser) holds(name string) bool {
	switch p.section {
	case "":
		return false // a field overwrites itself; seen knows
	case headProperties:
		_, ok := p.out.Properties.Get(name)
		return ok
	}
	to, _ := p.maps()
	_, ok := to.Get(message.Symbol(name))
	return ok
}

// maps returns the map that the section stands for, of the result and of the original.
func (p *documentParser) maps() (to *message.Map, from message.Map) {
	switch p.section {
	case headAnnotations:
		return &p.out.Annotations, p.original.Annotations
	case headDeliveryAnnotations:
		return &p.out.DeliveryAnnotations, p.original.DeliveryAnnotations
	}
	return &p.out.Footer, p.original.Footer
}

func (p *documentParser) field(line string, e entry) error {
	for _, f := range documentFields {
		if f.name != e.name {
			continue
		}
		if v := f.get(p.original); v != nil && formatEntry(f.name, f.kind, v) == line {
			f.copy(p.out, p.original)
			return nil
		}
		v, err := e.value(f.kind)
		if err == nil {
			err = f.set(p.out, v)
		}
		return err
	}
	names := make([]string, len(documentFields))
	for i, f := range documentFields {
		names[i] = f.name
	}
	return fmt.Errorf("%q is no field of a message; application properties stand below %s, and the fields are %s",
		e.name, headProperties, strings.Join(names, " "))
}

// body reads everything from the first [body] line on. at is the number of that line.
func (p *documentParser) body(head string, at int, lines []string) error {
	rest := strings.TrimSuffix(strings.Join(lines, ""), "\n")
	before := bodyLines(p.original)
	if len(before) > 0 && head == before[0] && rest == strings.Join(before[1:], "\n") {
		return nil // as it was
	}
	if head == headBody {
		p.out.Body = message.DataBody([]byte(rest))
		return nil
	}
	return p.sections(head, at, lines)
}

// sections reads base64 blocks, of which the first begins at line number first.
func (p *documentParser) sections(head string, first int, lines []string) error {
	kind, ok := bodyKind(head)
	if !ok {
		return fmt.Errorf("line %d: %q is no body; there are %s %s %s %s", first, head, headBody,
			bodyHead(message.Data), bodyHead(message.ValueBody), bodyHead(message.Sequence))
	}
	body, at := message.Body{Kind: kind}, first
	var text strings.Builder
	for i := 0; ; i++ {
		line, end := "", i == len(lines)
		if !end {
			line = strings.TrimSpace(lines[i])
		}
		if !end && !strings.HasPrefix(line, "[") {
			if !strings.HasPrefix(line, "#") {
				text.WriteString(line)
			}
			continue
		}
		section, err := base64.StdEncoding.DecodeString(text.String())
		if err != nil {
			return fmt.Errorf("line %d: what stands below %s is not base64: %w", at, head, err)
		}
		body.Sections = append(body.Sections, section)
		if end {
			p.out.Body = body
			return nil
		}
		if at = first + i + 1; line != head {
			return fmt.Errorf("line %d: %q; all sections of a body are of one kind, here %s", at, line, head)
		}
		text.Reset()
	}
}

func bodyKind(head string) (message.BodyKind, bool) {
	for _, k := range [...]message.BodyKind{message.Data, message.ValueBody, message.Sequence} {
		if head == bodyHead(k) {
			return k, true
		}
	}
	return 0, false
}
