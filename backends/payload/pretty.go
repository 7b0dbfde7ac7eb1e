package payload

// Pretty lays the content out for reading: JSON and XML indented, with numbers and the order
// of keys as they are, protobuf as a tree of field numbers. Anything else, and what would
// become much longer than it is, comes back as it is with ok false.
func (p Payload) Pretty() (b []byte, ok bool) {
	out := layout{limit: maxPretty(len(p.Content))}
	switch {
	case p.Truncated:
	case p.json && p.Kind == JSON:
		ok = out.json(p.Content)
	case p.Kind == XML:
		ok = out.xml(p.Content)
	case p.Kind == Protobuf:
		ok = out.protobuf(p.Content, 0)
	}
	if !ok {
		return p.Content, false
	}
	return out.b, true
}

// maxPretty bounds the layout of n bytes: deep nesting could make it longer without limit.
func maxPretty(n int) int { return 1<<20 + 8*n }

// layout collects indented lines up to a limit.
type layout struct {
	b     []byte
	limit int
}

// line starts a new line at a depth. Beyond maxIndent levels it does not move further to
// the right, where nobody could read it.
func (l *layout) line(depth int) bool {
	const maxIndent = 32
	if len(l.b) > 0 {
		l.b = append(l.b, '\n')
	}
	for range min(depth, maxIndent) {
		l.b = append(l.b, ' ', ' ')
	}
	return len(l.b) <= l.limit
}

// json lays out valid JSON.
func (l *layout) json(doc []byte) bool {
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; c {
		case ' ', '\t', '\n', '\r':
		case '"':
			end := textEnd(doc, i)
			l.b = append(l.b, doc[i:end]...)
			i = end - 1
		case '{', '[':
			l.b = append(l.b, c)
			if next := i + 1 + blank(doc[i+1:]); doc[next] == c+2 { // '}' and ']' are two behind in ASCII
				l.b = append(l.b, c+2)
				i = next
				continue
			}
			depth++
			if !l.line(depth) {
				return false
			}
		case '}', ']':
			depth--
			if !l.line(depth) {
				return false
			}
			l.b = append(l.b, c)
		case ',':
			l.b = append(l.b, c)
			if !l.line(depth) {
				return false
			}
		case ':':
			l.b = append(l.b, ':', ' ')
		default:
			l.b = append(l.b, c)
		}
	}
	return true
}

// textEnd returns the index behind the string that begins at i of valid JSON.
func textEnd(doc []byte, i int) int {
	for i++; doc[i] != '"'; i++ {
		if doc[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// blank returns how many white space bytes b begins with.
func blank(b []byte) int {
	for i, c := range b {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return i
		}
	}
	return len(b)
}
