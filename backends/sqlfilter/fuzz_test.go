package sqlfilter

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"dlq/backends/message"
)

// outcome is what an expression says about a message, in words that compare.
func outcome(e *Expr, env *Env) string {
	t, err := e.root.truth(env)
	if err != nil {
		return err.Error()
	}
	return [...]string{"false", "unknown", "true"}[t+1]
}

func FuzzCompile(f *testing.F) {
	for _, tt := range evalTests {
		f.Add(tt.expr)
	}
	for _, tt := range mistakes {
		f.Add(tt.src)
	}
	envs := []*Env{sampleEnv(), {Message: &message.Message{}, NewID: func() message.UUID { return message.UUID{} }}}
	f.Fuzz(func(t *testing.T, src string) {
		for _, names := range []Names{RuleNames(), SelectionNames()} {
			e, err := Compile(src, names, testParams())
			if err != nil {
				checkError(t, src, err)
				continue
			}
			for _, w := range e.Warnings() {
				checkDiagnostic(t, src, w)
			}
			canonical := e.String()
			if len(canonical) > names.maxLength {
				continue // spaces make it longer
			}
			again, err := Compile(canonical, names, testParams())
			if err != nil {
				t.Fatalf("%q has the canonical form %q: %v", src, canonical, err)
			}
			if again.String() != canonical || again.NeedsBody() != e.NeedsBody() {
				t.Fatalf("%q: %q became %q", src, canonical, again)
			}
			for _, env := range envs {
				if a, b := outcome(e, env), outcome(again, env); a != b {
					t.Fatalf("%q is %s, and %q is %s", src, a, canonical, b)
				}
			}
		}
	})
}

func FuzzAction(f *testing.F) {
	for _, tt := range evalTests {
		f.Add("SET a = " + tt.expr + " REMOVE tenant")
	}
	for _, src := range []string{
		"SET quantity = quantity / 2; REMOVE priority;SET sys.CorrelationId = 'low';", "SET A=@who SET B=@n", "SET a = 1, b = 2",
		"SET amount = 'x' SET sys.Label = 5", "set [set] = remove", "SET sys.TimeToLive = 'PT1S' SET sys.MessageId = newid()",
		"REMOVE sys.DeliveryCount", "SET price = ratio SET ratio = at - offset SET at = p(path)", "SET a = 'it's",
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		a, err := CompileAction(src, RuleNames(), testParams())
		if err != nil {
			checkError(t, src, err)
			return
		}
		for _, w := range a.Warnings() {
			checkDiagnostic(t, src, w)
		}
		original := sampleEnv().Message
		before := message.Append(nil, original)
		got := applied(t, a, original)
		if string(message.Append(nil, original)) != string(before) {
			t.Fatalf("%q changed the original", src)
		}
		canonical := a.String()
		if len(canonical) > MaxRuleLength {
			return // spaces make it longer
		}
		again, err := CompileAction(canonical, RuleNames(), testParams())
		if err != nil || again.String() != canonical {
			t.Fatalf("%q has the canonical form %q, that has %v, %v", src, canonical, again, err)
		}
		if other := applied(t, again, original); other != got {
			t.Fatalf("%q made\n%q, and %q\n%q", src, got, canonical, other)
		}
	})
}

// applied is what an action makes of a message, and its error.
func applied(t *testing.T, a *Action, original *message.Message) string {
	t.Helper()
	m := original.Clone()
	err := a.Apply(&Env{Message: m, NewID: func() message.UUID { return message.UUID{1} }})
	out := string(message.Append(nil, m))
	if err != nil {
		checkActionException(t, a.String(), err)
		out += err.Error()
	}
	if string(message.Append(nil, &message.Message{Body: m.Body, Broker: m.Broker, ScheduledEnqueueTime: m.ScheduledEnqueueTime})) !=
		string(message.Append(nil, &message.Message{Body: original.Body, Broker: original.Broker, ScheduledEnqueueTime: original.ScheduledEnqueueTime})) {
		t.Fatalf("%s changed what an action cannot", a)
	}
	if _, err := message.Decode([]byte(out[:len(message.Append(nil, m))])); err != nil {
		t.Fatalf("%s made a message that cannot be stored: %v", a, err)
	}
	return out
}

func checkError(t *testing.T, src string, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%q: %T", src, err)
	}
	checkDiagnostic(t, src, e.Diagnostic)
}

func checkDiagnostic(t *testing.T, src string, d Diagnostic) {
	t.Helper()
	if d.Pos < 0 || d.Pos > len(src) || d.Len < 1 || d.Column > d.Pos || d.Column > len(d.Line) || !strings.Contains(src, d.Line) || d.Msg == "" {
		t.Fatalf("%q: %+v", src, d)
	}
	lines := strings.Split(d.Underline(30), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], "^") || cells(lines[0]) > 31 || cells(lines[1]) > 31 {
		t.Fatalf("%q: %q", src, lines)
	}
	if s := d.String() + strings.Join(lines, ""); visible(s) != s || !utf8.ValidString(s) {
		t.Fatalf("%q: unsafe text %q", src, s)
	}
}

// kleene are the tables of three-valued logic, written out: index 0 is false, 1 unknown, 2 true.
var (
	kleeneAnd = [3][3]int{{0, 0, 0}, {0, 1, 1}, {0, 1, 2}}
	kleeneOr  = [3][3]int{{0, 1, 2}, {1, 1, 2}, {2, 2, 2}}
	kleeneNot = [3]int{2, 1, 0}
	atoms     = [3][]string{
		{"FALSE", "amount = 4", "tenant LIKE 'x%'", "missing IS NOT NULL"},
		{"missing", "NULL", "missing > 5", "nothing LIKE '%'", "amount IN (NULL)"},
		{"TRUE", "vip", "amount = 5", "EXISTS(nothing)", "tenant NOT IN ('x', 'y')"},
	}
)

// nested builds a fully parenthesised expression from a program for a stack machine, and its
// truth by the tables.
func nested(program []byte) (expr string, want int) {
	type entry struct {
		expr string
		t    int
	}
	stack := []entry{{"TRUE", 2}}
	for _, b := range program {
		top := &stack[len(stack)-1]
		switch op := b % 6; {
		case op < 3:
			of := atoms[op]
			stack = append(stack, entry{of[int(b/6)%len(of)], int(op)})
		case op == 3:
			*top = entry{"NOT (" + top.expr + ")", kleeneNot[top.t]}
		case len(stack) > 1:
			a, table, word := stack[len(stack)-2], kleeneAnd, " AND "
			if op == 5 {
				table, word = kleeneOr, " OR "
			}
			stack = append(stack[:len(stack)-2], entry{"(" + a.expr + ")" + word + "(" + top.expr + ")", table[a.t][top.t]})
		}
	}
	last := stack[len(stack)-1]
	return last.expr, last.t
}

// flat builds an expression without parentheses, and its truth by precedence: NOT, AND, OR.
func flat(program []byte) (expr string, want int) {
	and := 2
	words := []string{}
	for i, b := range program {
		t := int(b % 3)
		word := atoms[t][int(b/3)%len(atoms[t])]
		if b&0x40 != 0 {
			word, t = "NOT "+word, kleeneNot[t]
		}
		switch {
		case i == 0:
			and = t
		case b&0x80 != 0:
			words = append(words, "OR")
			want = kleeneOr[want][and]
			and = t
		default:
			words = append(words, "AND")
			and = kleeneAnd[and][t]
		}
		words = append(words, word)
	}
	return strings.Join(words, " "), kleeneOr[want][and]
}

func FuzzLogic(f *testing.F) {
	f.Add([]byte{0, 1, 4, 2, 5, 3})
	f.Add([]byte{1, 2, 5, 1, 3, 4, 6, 7, 8, 4, 5})
	f.Add([]byte{0x41, 0x82, 0xc0, 0x01, 0x45, 0x86})
	f.Fuzz(func(t *testing.T, program []byte) {
		if n := len(program); n > 0 && 2*n <= maxDepth { // NOT ( is two levels
			checkLogic(t, program)
		}
	})
}

// The same, on every run of the tests.
func TestLogic(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		program := make([]byte, 1+r.IntN(40))
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		checkLogic(t, program)
	}
}

func checkLogic(t *testing.T, program []byte) {
	t.Helper()
	env := sampleEnv()
	for _, build := range []func([]byte) (string, int){nested, flat} {
		src, want := build(program)
		e, err := Compile(src, SelectionNames(), nil)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if got, err := e.root.truth(env); int(got)+1 != want || err != nil {
			t.Fatalf("%s is %d, %v; want %d", src, got+1, err, want)
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add("$.order.items[0].sku")
	f.Add("$['odd ''name'][12].$type.@id")
	f.Fuzz(func(t *testing.T, s string) {
		if !strings.HasPrefix(s, "$") || !utf8.ValidString(s) {
			return
		}
		p, end, bad := parsePath(s, 0)
		if bad != nil {
			if bad.pos > bad.end || bad.end > len(s) {
				t.Fatalf("%q: problem at %d to %d", s, bad.pos, bad.end)
			}
			return
		}
		again, end2, bad := parsePath(p.String(), 0)
		if bad != nil || end2 != len(p.String()) || again.String() != p.String() || len(again) != len(p) || end > len(s) {
			t.Fatalf("%q: %s became %s, %v", s, p, again, bad)
		}
	})
}
