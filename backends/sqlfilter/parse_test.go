package sqlfilter

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"dlq/backends/message"
)

func TestString(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{" a=1 ", "a = 1"},
		{"(a = 1)and(b != 2)Or not(c=3)", "a = 1 AND b <> 2 OR NOT c = 3"},
		{"(a = 1 OR b = 2) AND c = 3", "(a = 1 OR b = 2) AND c = 3"},
		{"(a = 1 AND b = 2) AND (c = 3 AND (d = 4))", "a = 1 AND b = 2 AND c = 3 AND d = 4"},
		{"NOT (a = 1 OR b = 2)", "NOT (a = 1 OR b = 2)"},
		{"NOT NOT a = 1", "NOT NOT a = 1"},
		{"a is not null", "a IS NOT NULL"},
		{"a not in(1,'x',-2)", "a NOT IN (1, 'x', -2)"},
		{"a not like 'x' escape 'y'", "a NOT LIKE 'x' ESCAPE 'y'"},
		{"exists ( [odd name] )", "EXISTS([odd name])"},
		{`"a""b" = 'it''s'`, `[a"b] = 'it''s'`},
		{"[a]]b] = 1", "[a]]b] = 1"},
		{"[ a] = 1", "[ a] = 1"},
		{"[set] = 1", "[set] = 1"},
		{"user.Tenant = 1", "Tenant = 1"},
		{"user.[and] = 1", "[and] = 1"},
		{"SYS.label = 'x'", "sys.Label = 'x'"},
		{"[body] = 'x'", "[body] = 'x'"},
		{"Body.$['a'].b[0]['x y'] = 1", "body.$.a.b[0]['x y'] = 1"},
		{"a+b*c-d/(e-f)-(g-h)", ""},
		{"a+b*c-d/(e-f)-(g-h) = 0", "a + b * c - d / (e - f) - (g - h) = 0"},
		{"a - - - b = - 5", "a - - -b = -5"},
		{"-(5) = -(-5) and -(a+b) = +a", "-(5) = -(-5) AND -(a + b) = +a"},
		{"1.50 = 1e3 or 2.0 = 1e30", "1.5 = 1000.0 OR 2.0 = 1E+30"},
		{"P( 'x' ) = NewID ( )", "property('x') = newid()"},
		{"@Who = 'x'", "@Who = 'x'"},
		{"(a)", "a"},
		{"\ta\n=\r\n1", "a = 1"},
		{"été_1 = 'ü'", "été_1 = 'ü'"},
	} {
		e, err := Compile(tt.src, SelectionNames(), testParams())
		if tt.want == "" {
			if err == nil {
				t.Errorf("%s compiled to %s", tt.src, e)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		if got := e.String(); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.src, got, tt.want)
		}
	}
}

// The mistakes that people make, and what the answer must hold. hint "" asks for none.
var mistakes = []struct {
	dialect int
	src     string
	pos     int
	msg     string
	hint    string
}{
	// Other languages.
	{both, "sys.Label contains 'send'", 11, `unknown word "contains"`, "sys.Label LIKE '%send%'"},
	{both, "a starts with 'x_y'", 3, `unknown word "starts"`, `a LIKE 'x\_y%' ESCAPE '\'`},
	{both, "a endswith 'x'", 3, `unknown word "endswith"`, "a LIKE '%x'"},
	{both, "a ILIKE '%x%'", 3, `unknown word "ILIKE"`, "a LIKE '%x%'"},
	{both, "contains(tenant, 'ac')", 1, "no function", "tenant LIKE '%ac%'"},
	{both, "a ge 5", 3, `unknown word "ge"`, "a >= 5"},
	{both, "a equal to 5", 3, `unknown word "equal"`, "a = 5"},
	{both, "a BETWEEN 1 AND 5", 3, `unknown word "BETWEEN"`, "a >= 1 AND a <= 5"},
	{both, "tenant == 'acme'", 8, "== is written = here", "tenant = 'acme'"},
	{both, "a === 5", 3, "=== is written = here", "a = 5"},
	{both, "a=1&&b=2||!c", 4, "&& is written AND here", "a=1 AND b=2 OR NOT c"},
	{both, "a = 1 | b = 2", 7, "| is written OR here", "a = 1 OR b = 2"},
	{both, "!(a = 1)", 1, "! is written NOT here", "NOT (a = 1)"},
	{both, "a => 5 AND b =< 5", 3, "=> is written >= here", "a >= 5 AND b <= 5"},
	{both, "a = 1;", 6, "no ; at its end", "a = 1"},
	{both, "WHERE a = 1", 1, "no word in front", "a = 1"},
	{both, "a NOT = 5", 3, "not equal is written <>", "a <> 5"},
	{both, "upper(a) = 'X'", 1, "no function \"upper\"", ""},
	{both, "*", 1, "1 = 1 is true for all messages", "1 = 1"},

	// Quotes.
	{inSelection, `DeadLetterReason = "TTL"`, 20, "double quotes name a property", "DeadLetterReason = 'TTL'"},
	{inSelection, `tenant IN ("acme", "b")`, 12, "double quotes name a property", "tenant IN ('acme', 'b')"},
	{inSelection, `tenant LIKE "a%"`, 13, "double quotes name a property", "tenant LIKE 'a%'"},
	{both, `sys.Label contains "send"`, 11, "unknown word", "sys.Label LIKE '%send%'"},
	{both, "DeadLetterReason = Max delivery count", 20, "text stands in single quotes", "DeadLetterReason = 'Max delivery count'"},
	{both, "id = 3f25-4f89-ab", 6, "text stands in single quotes", "id = '3f25-4f89-ab'"},
	{both, "id = a3-4f89-ab", 9, "text stands in single quotes", "id = 'a3-4f89-ab'"},
	{both, "reason = 'it's late'", 14, "doubled", "reason = 'it''s late'"},
	{both, "tenant = 'acme", 10, "no closing '", "tenant = 'acme'"},
	{both, "[odd = 1", 1, "no closing ]", "[odd] = 1"},
	{both, "tenant = ‘acme’", 10, "plain single quotes", "tenant = 'acme'"},
	{both, "tenant = “acme”", 10, "plain single quotes", "tenant = 'acme'"},
	{both, "99999999999999999999 = a", 1, "64 bits", "'99999999999999999999' = a"},
	{both, "a = 1e999", 5, "range of a double", ""},

	// NULL.
	{inSelection, "tenant = NULL", 8, "never true", "tenant IS NULL"},
	{inSelection, "tenant <> null", 8, "never true", "tenant IS NOT NULL"},
	{inSelection, "NULL = tenant", 6, "never true", "tenant IS NULL"},
	{inSelection, "tenant > NULL", 8, "never true", "tenant IS NULL"},
	{both, "a NOT NULL", 3, "needs IS", "a IS NOT NULL"},
	{both, "a NULL", 3, "needs IS", "a IS NULL"},
	{both, "a IS", 3, "IS asks for NULL", "a IS NULL"},
	{both, "a IS missing", 3, "IS asks for NULL", "a IS NULL"},
	{both, "a IS NOT 'x'", 3, "IS asks for NULL", "a <> 'x'"},
	{both, "a IS EMPTY", 3, "IS asks for NULL", "a = ''"},

	// Parentheses and loose ends.
	{both, "(a = 1", 1, "not closed", "(a = 1)"},
	{both, "((a = 1) AND b IN (1, 2)", 1, "not closed", "((a = 1) AND b IN (1, 2))"},
	{both, "a = 1)", 6, "closes nothing", "a = 1"},
	{both, "a IN (1, 2", 3, "not closed", "a IN (1, 2)"},
	{both, "a IN (1 2)", 9, "comma is missing", "a IN (1, 2)"},
	{both, "a IN (1,)", 9, "missing behind the comma", "a IN (1)"},
	{both, "a IN 'x', 'y'", 3, "parentheses", "a IN ('x', 'y')"},
	{both, "a IN ['x', 'y']", 3, "parentheses", "a IN ('x', 'y')"},
	{both, "a IN ()", 7, "a value is missing", "tenant = 'acme'"},
	{both, "EXISTS tenant AND a = 1", 1, "parentheses", "EXISTS (tenant) AND a = 1"},
	{both, "EXISTS('x')", 8, "asks about a property", "EXISTS(tenant)"},
	{both, "a = 1 AND", 7, "needs a condition", "a = 1"},
	{both, "a = 1 AND OR b = 2", 7, "needs a condition", "a = 1 OR b = 2"},
	{both, "AND a = 1", 1, "no condition in front", "a = 1"},
	{both, "a = 1 AND NOT", 14, "NOT needs a condition", "NOT tenant = 'acme'"},
	{both, "a =", 3, "needs a value", "a = 'text'"},
	{both, "a LIKE", 3, "needs a pattern", "a LIKE '%text%'"},
	{both, "a = 1 b = 2", 7, "AND or OR is missing", "a = 1 AND b = 2"},
	{both, "a = 'x', b = 'y'", 8, "joined by AND or OR", "a = 'x' AND b = 'y'"},
	{both, "1 < a < 5", 7, "two sides", "amount > 1 AND amount < 5"},
	{both, "(a = 1) = (b = 2)", 1, "where a value is needed", "tenant = 'acme' AND amount > 5"},
	{both, "a = NOT b", 5, "in front of a whole condition", "NOT tenant = 'acme'"},
	{both, "a = + ", 7, "missing at the end", "tenant = 'acme'"},
	{both, "", 1, "empty", "sys.Label = 'text'"},
	{both, "a = .5", 5, "before the point", "a = 0.5"},
	{both, "a = 5.", 5, "behind the point", "a = 5.0"},
	{both, "a # b", 3, `unexpected character '#'`, "[odd-name] = 'text'"},
	{both, "a ESCAPE 'x'", 3, "belongs to LIKE", `name LIKE '50\%%' ESCAPE '\'`},

	// Names.
	{both, "sys.Lable = 'x'", 5, `no system property "Lable"`, "sys.Label = 'x'"},
	{
		both, "sys.messageid = 'x' AND sys.EnqueuedTime IS NULL", 29, `no system property "EnqueuedTime"`,
		"sys.messageid = 'x' AND sys.EnqueuedTimeUtc IS NULL",
	},
	{both, "sys.[Lable] = 'x'", 5, `no system property "Lable"`, "sys.Label = 'x'"},
	{both, "property('sys.Lable') = 'x'", 10, `no system property "Lable"`, "property('sys.Label') = 'x'"},
	{both, "property(5) = 'x'", 10, "is a text", "property('name')"},
	{both, "newid(1) = a", 1, "no arguments", "newid()"},
	{both, "sys.Foo = 1", 5, "there are ContentType, CorrelationId,", ""},
	{both, "sys. = 1", 6, "a name must follow sys.", "sys.Label or user.tenant"},
	{both, "system.Label = 'x'", 1, "a scope is sys or user", "sys.Label = 'x'"},
	{both, "Properties.tenant = 'x'", 1, "a scope is sys or user", "user.tenant = 'x'"},
	{both, "NServiceBus.ExceptionInfo.Message LIKE '%timeout%'", 1, "a point in it", "[NServiceBus.ExceptionInfo.Message] LIKE '%timeout%'"},
	{both, "user.a.b-c = 1", 1, "a point in it", "[a.b-c] = 1"},
	{both, "EXISTS(x-tenant)", 8, "brackets", "EXISTS([x-tenant])"},
	{inSelection, "x-tenant = 'acme'", 1, "is a subtraction", "[x-tenant] = 'acme'"},
	{inSelection, "x-tenant LIKE 'acme%'", 1, "is a subtraction", "[x-tenant] LIKE 'acme%'"},
	{both, "in = 5", 1, "IN is a keyword", "[in] = 5"},
	{both, "[] = 5", 1, "empty", "name = 'text'"},
	{both, "@ = 5", 1, "has a name", "tenant = @tenant"},
	{both, "@nobody = 5", 1, "@nobody has no value", "tenant = 'acme'"},

	// What only a selection may name.
	{inRule, "sys.DeadLetterReason = 'x'", 5, "in a subscription rule", "DeadLetterReason LIKE '%text%'"},
	{inRule, "body.$.id = 5", 1, "cannot read the body", ""},
	{inRule, "$.id = 5", 1, "cannot read the body", ""},
	{inSelection, "sys.DeadLeterReason = 'x'", 5, "no system property", "sys.DeadLetterReason = 'x'"},
	{inSelection, "sys.Reason = 'x'", 5, "no system property", "sys.DeadLetterReason = 'x'"},
	{inSelection, "body.order.id = 5", 1, "begins with $", "body.$.order.id = 5"},
	{inSelection, "$.order.id = 5", 1, "behind body.", "body.$.order.id = 5"},
	{inSelection, "body.$.items[*].x = 1", 13, "one value", "body.$.items[0].sku or body.$['odd name']"},
	{inSelection, "body.$. = 1", 7, "a name must follow", "body.$.order.id or body.$['odd name']"},
	{inSelection, "body.$.items.0 = 1", 13, "a name must follow", "body.$.order.id or body.$['odd name']"},

	// Types.
	{inSelection, "sys.DeliveryCount > '5'", 21, "a number and '5' is text", "sys.DeliveryCount > 5"},
	{inSelection, "sys.DeliveryCount = 'x'", 21, "they never compare", "sys.DeliveryCount = 5"},
	{inSelection, "sys.Label = 5", 13, "they never compare", "sys.Label = '5'"},
	{inSelection, "sys.Label IN ('a', 5)", 20, "they never compare", "sys.Label IN ('a', '5')"},
	{inSelection, "sys.ForcePersistence = 'true'", 24, "they never compare", "sys.ForcePersistence = true"},
	{inSelection, "sys.EnqueuedTimeUtc < 2026-01-02", 23, "they never compare", "sys.EnqueuedTimeUtc < '2026-01-02'"},
	{both, "sys.EnqueuedTimeUtc < 2026-01-02T15:04:05Z", 31, "single quotes", "sys.EnqueuedTimeUtc < '2026-01-02T15:04:05Z'"},
	{inSelection, "sys.EnqueuedTimeUtc < 'yesterday'", 23, "they never compare", "sys.EnqueuedTimeUtc < '2026-01-02T15:04:05Z'"},
	{inSelection, "sys.TimeToLive > 'long'", 18, "they never compare", "sys.TimeToLive > 'PT5M'"},
	{inSelection, "sys.State = 1", 13, "they never compare", "sys.State = 'deferred'"},
	{inSelection, "sys.DeliveryCount LIKE '5%'", 1, "LIKE compares text", "sys.DeliveryCount = 5"},
	{inSelection, "a LIKE 5", 8, "a pattern is a text", "a LIKE '5'"},
	{inSelection, "sys.DeadLetterReason LIKE 'Max*'", 27, "wildcards of LIKE are % and _", "sys.DeadLetterReason LIKE 'Max%'"},
	{both, "a LIKE 'x%' ESCAPE 'ab'", 8, "one character", `name LIKE '50\%%' ESCAPE '\'`},
	{both, `a LIKE 'x\' ESCAPE '\'`, 8, "ends in its escape character", `name LIKE '50\%%' ESCAPE '\'`},
	{both, "5", 1, "not a condition", "amount = 5"},
	{both, "a = 1 AND sys.Label", 11, "not a condition", "a = 1 AND sys.Label = 'text'"},
	{inSelection, "'timeout'", 1, "not a condition", "body LIKE '%timeout%'"},
	{inRule, "'timeout'", 1, "not a condition", "tenant = 'timeout'"},

	// Several at once, and where in the text.
	{inSelection, "sys.Lable contains \"send\" && tenant == \"acme\"", 5, "no system property", "sys.Label LIKE '%send%' AND tenant = 'acme'"},
	{both, "été = 'ü' && a = 1", 11, "&&", "été = 'ü' AND a = 1"},
	{both, "a = 1 AND\n  b == 2", 15, "==", "a = 1 AND   b = 2"},
}

func TestMistakes(t *testing.T) {
	for _, tt := range mistakes {
		for dialect, names := range map[int]Names{inRule: RuleNames(), inSelection: SelectionNames()} {
			if tt.dialect != both && tt.dialect != dialect {
				continue
			}
			_, err := Compile(tt.src, names, nil)
			var e *Error
			if !errors.As(err, &e) {
				t.Errorf("%q, dialect %d: %v, want an *Error", tt.src, dialect, err)
				continue
			}
			if e.position != tt.pos || !strings.Contains(e.Msg, tt.msg) || e.Hint != tt.hint {
				t.Errorf("%q, dialect %d:\n got %d %s | %s\nwant %d %s | %s", tt.src, dialect, e.position, e.Msg, e.Hint, tt.pos, tt.msg, tt.hint)
			}
			if utf8.RuneCountInString(tt.src[:e.Pos])+1 != e.position || e.Line[:e.Column] != tt.src[e.Pos-e.Column:e.Pos] {
				t.Errorf("%q: position %d is not byte %d, column %d of %q", tt.src, e.position, e.Pos, e.Column, e.Line)
			}
			if e.Hint == "" || strings.Contains(e.Hint, " or ") || e.Hint == "newid()" || strings.Contains(e.Hint, "@tenant") {
				continue // a list of forms, or a part of one
			}
			if hint, err := Compile(e.Hint, names, nil); err != nil && e.Hint != "property('name')" {
				t.Errorf("%q: the hint %s is %v, %v", tt.src, e.Hint, hint, err)
			}
		}
	}
}

func TestErrorText(t *testing.T) {
	_, err := Compile("sys.Label contains 'send'", SelectionNames(), nil)
	if want := `position 11: unknown word "contains"; write  sys.Label LIKE '%send%'`; err.Error() != want {
		t.Errorf("got %s", err)
	}
	_, err = Compile("upper(a) = 'x'", SelectionNames(), nil)
	if want := `position 1: there is no function "upper", only newid() and property('name')`; err.Error() != want {
		t.Errorf("got %s", err)
	}
}

// Source text never reaches a terminal as it came.
func TestErrorsAreHarmless(t *testing.T) {
	for _, src := range []string{"a = '\x1b[31m' b = '\u202e'", "sys.[\x1b]0;x\a] = 1", "'\x1b' AND x = @[", "\x1b", "a\u0085 = = 1"} {
		_, err := Compile(src, SelectionNames(), nil)
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%q: %v", src, err)
		}
		for _, s := range []string{e.Error(), e.Underline(40)} {
			if strings.ContainsAny(s, "\x1b\a\u202e\u0085") {
				t.Errorf("%q: %q", src, s)
			}
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, tt := range []struct {
		dialect   int
		src       string
		msg, hint string // of the only warning; "" for none
	}{
		{both, "tenant = 'acme' AND DeadLetterReason LIKE 'Max%'", "", ""},
		{both, "user.MessageId = 'x' AND [MessageId] = 'y'", "", ""},
		{both, "MessageId = 'x'", "sys.MessageId the system property", "sys.MessageId = 'x'"},
		{inSelection, "DeadLetterReson = 'x'", "there is a system property sys.DeadLetterReason", "sys.DeadLetterReason = 'x'"},
		{inRule, "DeliveryCont = 5", "", ""},
		{inSelection, "number = 5", "", ""},
		{both, "tenant = acme", "acme names a property", "tenant = 'acme'"},
		{both, "tenant = user.acme", "", ""},
		{both, "tenant = 'ac%'", "LIKE reads it as a wildcard", "tenant LIKE 'ac%'"},
		{both, "tenant <> '%ac'", "LIKE reads it as a wildcard", "tenant NOT LIKE '%ac'"},
		{both, "tenant LIKE 'acme'", "without a wildcard", "tenant LIKE '%acme%'"},
		{both, "x-total > 5", "is a subtraction", "[x-total] > 5"},
		{both, "x - total > 5", "", ""},
		{both, "MT-Fault-Message IS NULL", "is a subtraction", "[MT-Fault-Message] IS NULL"},
		{inSelection, "timeout", "is TRUE", "body LIKE '%timeout%'"},
		{inRule, "timeout", "is TRUE", "timeout = TRUE"},
		{inRule, "tenant = NULL", "never true", "tenant IS NULL"},
		{inRule, `tenant = "acme"`, "double quotes", "tenant = 'acme'"},
		{inRule, "sys.DeliveryCount > '5'", "never compare", "sys.DeliveryCount > 5"},
		{inRule, "sys.EnqueuedTimeUtc > '2026-01-02'", "never compare", ""},
		{inRule, "x-tenant = 'acme'", "is a subtraction", "[x-tenant] = 'acme'"},
		{inRule, "tenant LIKE 'a*'", "wildcards of LIKE", "tenant LIKE 'a%'"},
	} {
		for dialect, names := range map[int]Names{inRule: RuleNames(), inSelection: SelectionNames()} {
			if tt.dialect != both && tt.dialect != dialect {
				continue
			}
			e, err := Compile(tt.src, names, nil)
			if err != nil {
				t.Errorf("%s, dialect %d: %v", tt.src, dialect, err)
				continue
			}
			got := e.Warnings()
			switch {
			case tt.msg == "" && len(got) > 0:
				t.Errorf("%s, dialect %d: %v", tt.src, dialect, got)
			case tt.msg != "" && (len(got) != 1 || !strings.Contains(got[0].Msg, tt.msg) || got[0].Hint != tt.hint):
				t.Errorf("%s, dialect %d: %v, want %q, %q", tt.src, dialect, got, tt.msg, tt.hint)
			}
		}
	}
}

func TestUnderline(t *testing.T) {
	for _, tt := range []struct {
		src   string
		width int
		want  string
	}{
		{"tenant == 'acme'", 80, "tenant == 'acme'\n       ^^"},
		{"日本 == 'x'", 80, "日本 == 'x'\n     ^^"},
		{"a = 1 AND\n b == 2", 80, " b == 2\n   ^^"},
		{"a = 1 AND bcdefghijklm == 2 AND ccccccccccccccc = 3", 20, "…fghijklm == 2 AND …\n          ^^"},
		{"a = ", 20, "a = \n  ^"},
		{"a = 'b", 5, "a = 'b\n    ^"},
	} {
		_, err := Compile(tt.src, SelectionNames(), nil)
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", tt.src, err)
		}
		if got := e.Underline(tt.width); got != tt.want {
			t.Errorf("%s\n got %q\nwant %q", tt.src, got, tt.want)
		}
	}
}

// Sizes are bounded before anything is read, and nesting while it is.
func TestLimits(t *testing.T) {
	long := func(n int) string { return "a = '" + strings.Repeat("x", n-6) + "'" }
	deep := func(open, inner, closing string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(closing, n)
	}
	for _, tt := range []struct {
		name  string
		src   string
		names Names
		want  string
	}{
		{"rule at the limit", long(MaxRuleLength), RuleNames(), ""},
		{"rule over the limit", long(MaxRuleLength + 1), RuleNames(), "1025 bytes; the limit is 1024"},
		{"selection at the limit", long(MaxSelectionLength), SelectionNames(), ""},
		{"selection over the limit", long(MaxSelectionLength + 1), SelectionNames(), "the limit is 65536"},
		{"no names over the limit", long(MaxRuleLength + 1), Names{}, "the limit is 1024"},
		{"parentheses", deep("(", "a = 1", ")", maxDepth), SelectionNames(), ""},
		{"parentheses", deep("(", "a = 1", ")", maxDepth+1), SelectionNames(), "too deep"},
		{"NOT", deep("NOT ", "a = 1", "", maxDepth), SelectionNames(), ""},
		{"NOT", deep("NOT ", "a = 1", "", maxDepth+1), SelectionNames(), "too deep"},
		{"signs", deep("- ", "a = 1", "", maxDepth+1), SelectionNames(), "too deep"},
		{"functions", deep("p(", "'x'", ")", maxDepth+1) + " = 1", SelectionNames(), "too deep"},
		{"sums", "0 = a" + strings.Repeat(" + a", maxDepth), SelectionNames(), ""},
		{"sums", "0 = a" + strings.Repeat(" + a", maxDepth+1), SelectionNames(), "too deep"},
		{"many ORs are not deep", "a = 1" + strings.Repeat(" OR a = 1", 6000), SelectionNames(), ""},
		{"steps of a path", "body.$" + strings.Repeat(".a", maxSteps-1) + " = 1", SelectionNames(), ""},
		{"steps of a path", "body.$" + strings.Repeat(".a", maxSteps) + " = 1", SelectionNames(), "too many steps"},
		{"not UTF-8", "a = 'é\xff'", SelectionNames(), "not valid UTF-8"},
	} {
		e, err := Compile(tt.src, tt.names, nil)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			} else if _, err := e.Match(sampleEnv()); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// The hint of a long expression shows the place, not all of it.
func TestLongHint(t *testing.T) {
	src := strings.Repeat("a = 1 AND ", 200) + "tenant == 'acme'" + strings.Repeat(" AND b = 2", 200)
	_, err := Compile(src, SelectionNames(), nil)
	var e *Error
	if !errors.As(err, &e) || len(e.Hint) > 250 || !strings.Contains(e.Hint, "tenant = 'acme'") ||
		!strings.HasPrefix(e.Hint, "… ") || !strings.HasSuffix(e.Hint, " …") {
		t.Errorf("%v", err)
	}
}

func TestPath(t *testing.T) {
	p, end, bad := parsePath("$.order.items[0]['odd ''name'].$type.@id.__x['a']['', rest", 0)
	if bad == nil {
		t.Errorf("read %v up to %d, want a problem with an unclosed bracket", p, end)
	}
	p, end, bad = parsePath("$.order.items[0]['odd ''name'].$type.@id.__x['a'][''] rest", 0)
	if want := "$.order.items[0]['odd ''name'].$type.@id.__x.a['']"; bad != nil || p.String() != want || end != len(want)+3 {
		t.Errorf("%v %d %v, want %s", p, end, bad, want)
	}
	if p[2] != (Step{Index: 0, IsIndex: true}) || p[3] != (Step{Key: "odd 'name"}) {
		t.Errorf("steps %+v", p)
	}
	if _, _, bad := parsePath("$[99999999999]", 0); bad == nil {
		t.Error("an index beyond 32 bits was read")
	}
}

func TestNames(t *testing.T) {
	var rule, selection []string
	for _, n := range RuleNames().All() {
		rule = append(rule, n.Text+" "+n.Type)
	}
	for _, n := range SelectionNames().All() {
		selection = append(selection, n.Text+" "+n.Type)
		if strings.HasPrefix(n.Text, "sys.") == (n.Text == bodyName) {
			t.Errorf("odd name %q", n.Text)
		}
	}
	if len(rule) != 24 || len(selection) != len(rule)+3 {
		t.Errorf("%d names in rules, %d in selections", len(rule), len(selection))
	}
	for _, want := range []string{"sys.DeadLetterReason text", "sys.EnqueuedTimeUtc time", "sys.LockToken GUID", "body text"} {
		if !strings.Contains(strings.Join(selection, ","), want) {
			t.Errorf("%q is not among the names of selections", want)
		}
		if want != "sys.EnqueuedTimeUtc time" && want != "sys.LockToken GUID" && strings.Contains(strings.Join(rule, ","), want) {
			t.Errorf("%q is among the names of rules", want)
		}
	}
}

func TestParamsWithoutCase(t *testing.T) {
	params := map[string]message.Value{"X": message.Int(1), "x": message.Int(2)}
	e, err := Compile("@x = 2 AND @X = 1", RuleNames(), params)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := e.Match(&Env{Message: &message.Message{}}); !ok || err != nil {
		t.Errorf("the exact name must win: %v, %v", ok, err)
	}
	// Of several that fit as well, it is always the same.
	params = map[string]message.Value{"@a": message.Int(1), "a": message.Int(2), "LONG": message.Int(3), "Long": message.Int(4)}
	for range 20 {
		e, err := Compile("@a = 1 AND @long = 3", RuleNames(), params)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := e.Match(&Env{Message: &message.Message{}}); !ok || err != nil {
			t.Fatalf("the first name must win: %v, %v", ok, err)
		}
	}
}
