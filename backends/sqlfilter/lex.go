package sqlfilter

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind says what a token is.
type tokenKind uint8

const (
	endToken       tokenKind = iota
	badToken                 // a problem; nothing follows it
	wordToken                // a regular identifier or a keyword
	delimitedToken           // [name]
	quotedToken              // "name"
	textToken                // 'text'
	integerToken
	decimalToken // with a fraction or an exponent
	paramToken   // @name; text is the name
	pathToken    // $.path, behind body.
	opToken
)

// token is one lexical unit; text is its meaning, without quotes and with escapes resolved.
type token struct {
	kind     tokenKind
	pos, end int
	text     string
	problem  *problem // of a badToken
}

// is reports whether the token is that keyword. Keywords compare without case.
func (t token) is(keyword string) bool {
	return t.kind == wordToken && strings.EqualFold(t.text, keyword)
}

func (t token) isOp(op string) bool { return t.kind == opToken && t.text == op }

// keyword returns the keyword that the token is, in upper case, or "".
func (t token) keyword() string {
	if t.kind != wordToken {
		return ""
	}
	return keywordOf(t.text)
}

func keywordOf(word string) string {
	for _, k := range [...]string{"AND", "OR", "NOT", "IS", "NULL", "IN", "LIKE", "ESCAPE", "EXISTS", "TRUE", "FALSE"} {
		if strings.EqualFold(word, k) {
			return k
		}
	}
	return ""
}

// isVerb reports whether the word begins a statement of an action, where it is a keyword.
func isVerb(word string) bool {
	return strings.EqualFold(word, "SET") || strings.EqualFold(word, "REMOVE")
}

// lexer cuts a source into tokens. It stops at the first thing it cannot read.
type lexer struct {
	src    string
	action bool // statements can end in a semicolon
	pos    int
	tokens []token
}

// lex returns the tokens of an expression. The last is an endToken, or a badToken with the
// problem.
func lex(src string) []token { return (&lexer{src: src}).all() }

func (l *lexer) all() []token {
	for {
		t := l.next()
		l.tokens = append(l.tokens, t)
		if t.kind == endToken || t.kind == badToken {
			return l.tokens
		}
	}
}

func (l *lexer) next() token {
	for l.pos < len(l.src) && strings.IndexByte(" \t\r\n\v\f", l.src[l.pos]) >= 0 {
		l.pos++
	}
	if l.pos == len(l.src) {
		return token{kind: endToken, pos: l.pos, end: l.pos}
	}
	r, size := utf8.DecodeRuneInString(l.src[l.pos:])
	switch {
	case unicode.IsLetter(r):
		end := wordEnd(l.src, l.pos)
		return l.take(wordToken, end, l.src[l.pos:end])
	case r >= '0' && r <= '9':
		return l.number()
	case r == '\'':
		return l.enclosed(textToken, '\'')
	case r == '"':
		return l.enclosed(quotedToken, '"')
	case r == '[':
		return l.enclosed(delimitedToken, ']')
	case r == '@':
		end := wordEnd(l.src, l.pos+1)
		if end == l.pos+1 {
			return l.bad(end, &problem{msg: "a parameter has a name behind the @", hint: "tenant = @tenant"})
		}
		return l.take(paramToken, end, l.src[l.pos+1:end])
	case r == '$':
		return l.path()
	}
	return l.operator(r, size)
}

func (l *lexer) take(k tokenKind, end int, text string) token {
	t := token{kind: k, pos: l.pos, end: end, text: text}
	l.pos = end
	return t
}

func (l *lexer) bad(end int, p *problem) token {
	p.pos, p.end = l.pos, end
	return token{kind: badToken, pos: l.pos, end: end, problem: p}
}

// wordEnd returns the end of the run of letters, digits and underscores at pos.
func wordEnd(src string, pos int) int {
	for pos < len(src) {
		r, size := utf8.DecodeRuneInString(src[pos:])
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		pos += size
	}
	return pos
}

// enclosed reads up to the closing quote; a doubled one stands for itself.
func (l *lexer) enclosed(k tokenKind, closing byte) token {
	var text strings.Builder
	for i := l.pos + 1; i < len(l.src); {
		n := strings.IndexByte(l.src[i:], closing)
		if n < 0 {
			break
		}
		text.WriteString(l.src[i : i+n])
		i += n + 1
		if i == len(l.src) || l.src[i] != closing {
			if k != textToken && text.Len() == 0 {
				return l.bad(i, &problem{msg: "the name of a property is empty", hint: "name = 'text'"})
			}
			return l.take(k, i, text.String())
		}
		text.WriteByte(closing)
		i++
	}
	msg, end := fmt.Sprintf("the %c has no closing %c", l.src[l.pos], closing), len(l.src)
	if k != textToken {
		end = wordEnd(l.src, l.pos+1)
	}
	return l.bad(l.pos+1, &problem{msg: msg, fix: insert(end, string(closing))})
}

// number reads digits with an optional fraction and exponent.
func (l *lexer) number() token {
	kind, end := integerToken, digitsEnd(l.src, l.pos)
	if end < len(l.src) && l.src[end] == '.' {
		kind = decimalToken
		fraction := digitsEnd(l.src, end+1)
		if fraction == end+1 {
			return l.bad(fraction, &problem{msg: "a decimal has digits behind the point", fix: insert(fraction, "0")})
		}
		end = fraction
	}
	if end < len(l.src) && l.src[end]|0x20 == 'e' {
		start := end + 1
		if start < len(l.src) && (l.src[start] == '+' || l.src[start] == '-') {
			start++
		}
		if exp := digitsEnd(l.src, start); exp > start {
			kind, end = decimalToken, exp
		}
	}
	if wordEnd(l.src, end) > end {
		start, end := bareRun(l.src, l.pos)
		return l.bad(end, &problem{
			msg: "a number runs into letters; text stands in single quotes",
			fix: &edit{start, end, quote(l.src[start:end])},
		})
	}
	return l.take(kind, end, l.src[l.pos:end])
}

func digitsEnd(src string, pos int) int {
	for pos < len(src) && src[pos] >= '0' && src[pos] <= '9' {
		pos++
	}
	return pos
}

// bareRun returns the bounds of what looks like one unquoted value around pos: a GUID, a
// time, an order number.
func bareRun(src string, pos int) (start, end int) {
	inRun := func(b byte) bool {
		return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' || b >= utf8.RuneSelf || strings.IndexByte("_-:.+", b) >= 0
	}
	for start = pos; start > 0 && inRun(src[start-1]); start-- {
	}
	for end = pos; end < len(src) && inRun(src[end]); end++ {
	}
	return start, end
}

// operator reads the operators, and recognises those of other languages.
func (l *lexer) operator(r rune, size int) token {
	rest := l.src[l.pos:]
	for _, foreign := range [...]struct{ text, fix string }{
		{"===", "="},
		{"!==", "<>"},
		{"==", "="},
		{"=>", ">="},
		{"=<", "<="},
		{"=~", "LIKE"},
		{"!~", "NOT LIKE"},
		{"&&", "AND"},
		{"||", "OR"},
		{"&", "AND"},
		{"|", "OR"},
		{"~", "LIKE"},
	} {
		if strings.HasPrefix(rest, foreign.text) {
			return l.foreign(foreign.text, foreign.fix)
		}
	}
	for _, op := range [...]string{"<>", "!=", ">=", "<="} {
		if strings.HasPrefix(rest, op) {
			return l.take(opToken, l.pos+2, strings.Replace(op, "!=", "<>", 1))
		}
	}
	if strings.ContainsRune("=<>+-*/%(),.", r) {
		if r == '.' && digitsEnd(l.src, l.pos+1) > l.pos+1 && !l.afterName() {
			return l.bad(l.pos+1, &problem{msg: "a decimal has digits before the point", fix: insert(l.pos, "0")})
		}
		return l.take(opToken, l.pos+size, string(r))
	}
	switch {
	case r == '!':
		return l.foreign("!", "NOT")
	case r == ';' && l.action:
		return l.take(opToken, l.pos+size, ";")
	case r == ';':
		return l.bad(l.pos+1, &problem{msg: "an expression has no ; at its end", fix: &edit{l.pos, l.pos + 1, ""}})
	case strings.ContainsRune("\u2018\u2019\u201c\u201d", r):
		return l.typographic(size)
	}
	return l.bad(l.pos+size, &problem{
		hint: "[odd-name] = 'text'",
		msg:  fmt.Sprintf("unexpected character %q; a name with special characters stands in brackets, text in single quotes", r),
	})
}

// afterName reports whether the last token ends right here and can be a scope.
func (l *lexer) afterName() bool {
	if len(l.tokens) == 0 {
		return false
	}
	last := l.tokens[len(l.tokens)-1]
	return last.end == l.pos && (last.kind == wordToken || last.kind == delimitedToken || last.kind == quotedToken)
}

func (l *lexer) foreign(op, ours string) token {
	fixed := ours
	if l.pos > 0 && l.src[l.pos-1] != ' ' && unicode.IsLetter(rune(ours[0])) && l.src[l.pos-1] != '(' {
		fixed = " " + fixed
	}
	if after := l.pos + len(op); unicode.IsLetter(rune(ours[0])) && after < len(l.src) && l.src[after] != ' ' {
		fixed += " "
	}
	return l.bad(l.pos+len(op), &problem{
		msg: fmt.Sprintf("%s is written %s here", op, ours),
		fix: &edit{l.pos, l.pos + len(op), fixed},
	})
}

// typographic handles text that a word processor has quoted.
func (l *lexer) typographic(size int) token {
	p := &problem{msg: "text stands in plain single quotes", hint: "name = 'text'"}
	start := l.pos + size
	if n := strings.IndexAny(l.src[start:], "\u2018\u2019\u201c\u201d"); n >= 0 {
		_, closing := utf8.DecodeRuneInString(l.src[start+n:])
		p.fix = &edit{l.pos, start + n + closing, quote(l.src[start : start+n])}
	}
	return l.bad(start, p)
}
