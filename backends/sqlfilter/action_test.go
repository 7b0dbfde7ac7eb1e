package sqlfilter

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"dlq/backends/message"
)

// The places that the rules of these tables come from, beside the wire notes.
const (
	actionSyntax   = "SQL rule action syntax"       // learn.microsoft.com, service-bus-messaging-sql-rule-action
	filterExamples = "subscription filter examples" // service-bus-filter-examples
	topicFilters   = "topic filters and actions"    // topic-filters
)

// show writes every property of a message that an action can change.
func show(m *message.Message) string {
	var b strings.Builder
	for _, p := range m.Properties {
		fmt.Fprintf(&b, "%s=%s:%s ", p.Name, message.KindOf(p.Value), message.FormatValue(p.Value))
	}
	for _, f := range []struct {
		name string
		v    *string
	}{
		{"ContentType", m.ContentType},
		{"Label", m.Subject},
		{"ReplyTo", m.ReplyTo},
		{"To", m.To},
		{"SessionId", m.SessionID},
		{"ReplyToSessionId", m.ReplyToSessionID},
	} {
		if f.v != nil {
			fmt.Fprintf(&b, "sys.%s=%s ", f.name, *f.v)
		}
	}
	if m.ID != nil {
		fmt.Fprintf(&b, "sys.MessageId=%s:%s ", message.KindOf(m.ID), message.FormatValue(m.ID))
	}
	if m.CorrelationID != nil {
		fmt.Fprintf(&b, "sys.CorrelationId=%s ", message.FormatValue(m.CorrelationID))
	}
	if m.TTL != nil {
		fmt.Fprintf(&b, "sys.TimeToLive=%s ", m.TTL)
	}
	if len(m.Annotations) > 0 {
		fmt.Fprintf(&b, "annotations=%s ", message.FormatValue(m.Annotations))
	}
	return strings.TrimSpace(b.String())
}

// order is a message with few properties, so that a table can show all of it.
func order() *message.Message {
	m := &message.Message{Subject: new("red"), ID: message.String("m-1")}
	m.Properties = message.Properties{
		{Name: "Color", Value: message.String("red")},
		{Name: "quantity", Value: message.Int(10)},
		{Name: "priority", Value: message.String("high")},
	}
	return m
}

func TestAction(t *testing.T) {
	const rest = "priority=string:high sys.Label=red sys.MessageId=string:m-1"
	const start = "Color=string:red quantity=int:10 " + rest
	for _, tt := range []struct{ rule, src, want string }{
		{topicFilters + ": the example", "SET quantity = quantity / 2;", "Color=string:red quantity=int:5 " + rest},
		{
			filterExamples + ": the example", "SET quantity = quantity / 2; REMOVE priority;SET sys.CorrelationId = 'low';",
			"Color=string:red quantity=int:5 sys.Label=red sys.MessageId=string:m-1 sys.CorrelationId=low",
		},
		{actionSyntax + ": SET creates a property", "SET a = 'x'", "Color=string:red quantity=int:10 priority=string:high a=string:x sys.Label=red sys.MessageId=string:m-1"},
		{actionSyntax + ": SET updates a property", "SET Color = 'blue'", "Color=string:blue quantity=int:10 " + rest},
		{actionSyntax + ": SET converts to the type that is there", "SET quantity = '7'", "Color=string:red quantity=int:7 " + rest},
		{actionSyntax + ": REMOVE removes", "REMOVE quantity", "Color=string:red " + rest},
		{actionSyntax + ": a missing user property is no failure", "SET a = missing + 1", "Color=string:red quantity=int:10 priority=string:high a=null:null sys.Label=red sys.MessageId=string:m-1"},
		{actionSyntax + ": statements with commas", "SET Color = 'a', REMOVE priority;, SET quantity = 1", "Color=string:a quantity=int:1 sys.Label=red sys.MessageId=string:m-1"},
		{"11.1 statements without separators", "SET Color=@who SET priority=@n", "Color=string:acme quantity=int:10 priority=string:5 sys.Label=red sys.MessageId=string:m-1"},
		{"11.1 statements without separators, after a property", "set Color = priority remove priority", "Color=string:high quantity=int:10 sys.Label=red sys.MessageId=string:m-1"},
		{"11.1 names without case", "SET COLOR = 'blue' REMOVE PRIORITY", "Color=string:blue quantity=int:10 sys.Label=red sys.MessageId=string:m-1"},
		{"11.1 keywords as names", "SET [set] = 1 REMOVE [remove] REMOVE [SET]", start},
		{"11.1 odd names", `SET "a b" = 1 REMOVE [a b]`, start},
		{"11.1 scopes", "SET user.Color = sys.Label + '!' SET sys.To = user.Color", "Color=string:red! quantity=int:10 priority=string:high sys.Label=red sys.To=red! sys.MessageId=string:m-1"},
		{"11.2 integers are long", "SET quantity = NULL SET quantity = 7", "Color=string:red quantity=long:7 " + rest},
		{"11.3 each statement sees those before", "SET a = 1 SET a = a + 1 SET quantity = a REMOVE a", "Color=string:red quantity=int:2 " + rest},
		{"11.3 REMOVE of a missing one", "REMOVE missing REMOVE sys.ReplyTo REMOVE sys.PartitionKey", start},
		{"11.3 REMOVE of a system property", "REMOVE sys.Label REMOVE sys.MessageId", "Color=string:red quantity=int:10 priority=string:high"},
		{"11.3 SET of a system property to NULL", "SET sys.Label = NULL SET sys.MessageId = missing", "Color=string:red quantity=int:10 priority=string:high"},
		{
			"11.3 the settable system properties",
			"SET sys.Label='l' SET sys.To='t' SET sys.ReplyTo='r' SET sys.ReplyToSessionId='rs' SET sys.SessionId='s' SET sys.ContentType='c' " +
				"SET sys.CorrelationId='i' SET sys.MessageId='m' SET sys.TimeToLive=@span SET sys.PartitionKey='p' SET sys.ViaPartitionKey='v'",
			"Color=string:red quantity=int:10 priority=string:high sys.ContentType=c sys.Label=l sys.ReplyTo=r sys.To=t sys.SessionId=s " +
				"sys.ReplyToSessionId=rs sys.MessageId=string:m sys.CorrelationId=i sys.TimeToLive=5m0s " +
				"annotations={x-opt-partition-key: p, x-opt-via-partition-key: v}",
		},
		{"11.3 Subject is Label", "SET sys.Subject = 'x'", "Color=string:red quantity=int:10 priority=string:high sys.Label=x sys.MessageId=string:m-1"},
		{"11.3 a key is replaced", "SET sys.PartitionKey = 'a' SET sys.PartitionKey = 'b'", start + " annotations={x-opt-partition-key: b}"},
		{"11.3 an id from newid()", "SET sys.MessageId = newid()", strings.Replace(start, "m-1", "01000000-0000-0000-0000-000000000000", 1)},
		{"11.3 a duration as text", "SET sys.TimeToLive = 'PT1M30.0019S'", start + " sys.TimeToLive=1m30.001s"},
		{topicFilters + ": scheduling is ignored", "SET sys.ScheduledEnqueueTimeUtc = @when REMOVE sys.ScheduledEnqueueTimeUtc", start},
	} {
		a, err := CompileAction(tt.src, RuleNames(), testParams())
		if err != nil {
			t.Errorf("%s: %s: %v", tt.rule, tt.src, err)
			continue
		}
		m := order()
		if err := a.Apply(&Env{Message: m, NewID: func() message.UUID { return message.UUID{1} }}); err != nil {
			t.Errorf("%s: %s: %v", tt.rule, tt.src, err)
		}
		if got := show(m); got != tt.want {
			t.Errorf("%s: %s\n got %s\nwant %s", tt.rule, tt.src, got, tt.want)
		}
		if m.ScheduledEnqueueTime != nil {
			t.Errorf("%s: %s schedules", tt.rule, tt.src)
		}
	}
}

// What each kind of value becomes where there was no property, and what a copy keeps.
func TestActionTypes(t *testing.T) {
	timespan := func(ticks int64) message.Value {
		return message.Described{Descriptor: message.Symbol("com.microsoft:timespan"), Value: message.Long(ticks)}
	}
	at := message.TimestampOf(time.Date(2026, 1, 2, 15, 4, 5, 123e6, time.UTC))
	for expr, want := range map[string]message.Value{
		"5": message.Long(5), "amount + 0": message.Long(5), "2.50": message.Double(2.5), "1E3": message.Double(1000),
		"'x'": message.String("x"), "sym + ''": message.String("sym"), "TRUE": message.Bool(true), "NULL": message.Null{},
		"newid()": message.UUID{1}, "sys.EnqueuedTimeUtc": at, "sys.TimeToLive": timespan(900e6),
		"sys.EnqueuedTimeUtc - at": timespan(0), "at + span": at + 300_000, "- -span": timespan(3e9),
		"sys.DeliveryCount": message.Long(3), "sys.State": message.Long(1), "sys.LockToken": message.UUID{0xcd, 15: 2},
		"sys.CorrelationId": message.String("ab000000-0000-0000-0000-000000000001"), "sys.ForcePersistence": message.Bool(true),

		// A property or a parameter alone keeps its type.
		"amount": message.Int(5), "(amount)": message.Int(5), "property('amount')": message.Int(5), "p('am' + 'ount')": message.Int(5),
		"ratio": message.Float(0.5), "big": message.Ulong(math.MaxUint64), "sym": message.Symbol("sym"), "raw": message.Binary("acme"),
		"list": message.List{message.Int(1)}, "span": timespan(3e9), "@n": message.Int(5), "@none": message.Null{},
		"nothing": message.Null{}, "p(missing)": message.Null{}, "p('sys.Label')": message.String("order.created"),
	} {
		a, err := CompileAction("SET fresh = "+expr, RuleNames(), testParams())
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		env := sampleEnv()
		if err := a.Apply(env); err != nil {
			t.Errorf("%s: %v", expr, err)
		}
		if got, _ := env.Message.Properties.Get("fresh"); !message.EqualValues(got, want) {
			t.Errorf("%s is %v %v, want %v %v", expr, message.KindOf(got), got, message.KindOf(want), want)
		}
	}
}

// SET converts to the type that the property has; where that is not the same value, it fails.
func TestActionConverts(t *testing.T) {
	described := func(name string, v message.Value) message.Value {
		return message.Described{Descriptor: message.Symbol(name), Value: v}
	}
	guid := message.UUID{0x80, 15: 1}
	for _, tt := range []struct {
		like message.Value
		expr string
		want message.Value // nil: RuleActionException
	}{
		{message.Int(0), "7", message.Int(7)},
		{message.Int(0), "7.0", message.Int(7)},
		{message.Int(0), "-0.0", message.Int(0)},
		{message.Int(0), "7.5", nil},
		{message.Int(0), "2147483648", nil},
		{message.Int(0), "'-7'", message.Int(-7)},
		{message.Int(0), "'1e3'", message.Int(1000)},
		{message.Int(0), "'0x10'", nil},
		{message.Int(0), "'seven'", nil},
		{message.Int(0), "TRUE", nil},
		{message.Int(0), "raw", nil},
		{message.Int(0), "NULL", message.Null{}},
		{message.Int(0), "1.0 / 0", nil},
		{message.Ubyte(0), "255", message.Ubyte(255)},
		{message.Ubyte(0), "256", nil},
		{message.Ubyte(0), "-1", nil},
		{message.Ushort(0), "65535", message.Ushort(65535)},
		{message.Uint(0), "amount", message.Uint(5)},
		{message.Byte(0), "-128", message.Byte(-128)},
		{message.Short(0), "32768", nil},
		{message.Long(0), "-9223372036854775808", message.Long(math.MinInt64)},
		{message.Long(0), "9223372036854775808.0", nil},
		{message.Ulong(0), "9223372036854775808.0", message.Ulong(1 << 63)},
		{message.Ulong(0), "big", message.Ulong(math.MaxUint64)},
		{message.Float(0), "0.1", message.Float(0.1)},
		{message.Float(0), "1E300", nil},
		{message.Float(0), "'Inf'", nil},
		{message.Double(0), "7", message.Double(7)},
		{message.Double(0), "ratio", message.Double(0.5)},
		{message.Decimal128{0x30, 0x3c, 15: 1}, "12.34", message.Decimal128{0x30, 0x3c, 14: 0x04, 15: 0xd2}},
		{message.Decimal64{}, "20", message.Decimal64{0x31, 0xc0, 7: 20}},
		{message.Decimal32{}, "-1.5", message.Decimal32{0xb2, 0x00, 0x00, 0x0f}},
		{message.Decimal32{}, "9999999", message.Decimal32{0x6c, 0xb8, 0x96, 0x7f}},
		{message.Decimal32{}, "99999999", nil},
		{message.Decimal32{}, "1E300", nil},
		{message.Decimal64{}, "nan", nil},
		{message.Bool(false), "TRUE", message.Bool(true)},
		{message.Bool(true), "'False'", message.Bool(false)},
		{message.Bool(true), "'yes'", nil},
		{message.Bool(true), "1", nil},
		{message.String(""), "7", message.String("7")},
		{message.String(""), "2.5", message.String("2.5")},
		{message.String(""), "vip", message.String("true")},
		{message.String(""), "guid", message.String("80000000-0000-0000-0000-000000000001")},
		{message.String(""), "at", message.String("2026-01-02T15:04:05.123Z")},
		{message.String(""), "span", message.String("PT300S")},
		{message.String(""), "raw", nil},
		{message.Symbol(""), "'ascii'", message.Symbol("ascii")},
		{message.Symbol(""), "'é'", nil},
		{message.Char('a'), "'é'", message.Char('é')},
		{message.Char('a'), "'ab'", nil},
		{guid, "'{80000000-0000-0000-0000-000000000001}'", guid},
		{guid, "'no'", nil},
		{guid, "5", nil},
		{message.Timestamp(0), "'1970-01-01T00:00:01Z'", message.Timestamp(1000)},
		{message.Timestamp(0), "offset", message.Timestamp(0)},
		{message.Timestamp(0), "'yesterday'", nil},
		{message.Timestamp(0), "5", nil},
		{described("com.microsoft:timespan", message.Long(0)), "'PT1S'", described("com.microsoft:timespan", message.Long(1e7))},
		{described("com.microsoft:timespan", message.Long(0)), "5", nil},
		{described("com.microsoft:datetime-offset", message.Long(5)), "'1970-01-01'", described("com.microsoft:datetime-offset", message.Long(ticksToUnix))},
		{described("com.microsoft:datetime-offset", message.Long(5)), "far", nil},
		{described("com.microsoft:uri", message.String("a")), "'http://b'", described("com.microsoft:uri", message.String("http://b"))},
		{described("com.microsoft:uri", message.String("a")), "5", nil},
		{described("sqs:Number.int", message.String("5")), "cost", described("sqs:Number.int", message.String("1.5"))},
		{described("sqs:Number.int", message.String("5")), "'0012'", described("sqs:Number.int", message.String("0012"))},
		{described("sqs:Number.int", message.String("5")), "'twelve'", nil},
		{described("sqs:Number.int", message.String("5")), "TRUE", nil},
		{described("sqs:String.zone", message.String("eu")), "'us'", described("sqs:String.zone", message.String("us"))},
		{described("sqs:String.zone", message.String("eu")), "5", nil},
		{described("sqs:Binary.png", message.Binary("eu")), "'us'", nil},
		{described("x", message.String("a")), "strange", described("x", message.String("acme"))},
		{described("x", message.String("a")), "'b'", nil},
		{message.Binary("x"), "raw", message.Binary("acme")},
		{message.Binary("x"), "'b'", nil},
		{message.List{}, "list", message.List{message.Int(1)}},
		{message.Null{}, "5", message.Long(5)},
	} {
		env := sampleEnv()
		env.Message.Properties.Set("there", tt.like)
		env.Message.Properties.Set("far", message.Timestamp(math.MaxInt64))
		a, err := CompileAction("SET THERE = "+tt.expr, RuleNames(), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = a.Apply(env)
		got, _ := env.Message.Properties.Get("there")
		want := tt.want
		if want == nil {
			checkActionException(t, tt.expr, err)
			want = tt.like // what it was
		} else if err != nil {
			t.Errorf("SET of %s to %s: %v", typeName(tt.like), tt.expr, err)
		}
		if !message.EqualValues(got, want) {
			t.Errorf("SET of %s to %s made it %s %v", typeName(tt.like), tt.expr, typeName(got), got)
		}
	}
}

func checkActionException(t *testing.T, what string, err error) {
	t.Helper()
	var e *EvalError
	if !errors.As(err, &e) {
		t.Errorf("%s: %v, want an EvalError", what, err)
		return
	}
	if e.Exception() != RuleActionException || e.Msg == "" || visible(e.Msg) != e.Msg || len(e.Msg) > 1024 {
		t.Errorf("%s: %q: %q", what, e.Exception(), e.Msg)
	}
}

func TestActionFails(t *testing.T) {
	for _, tt := range []struct{ rule, src, want string }{
		{"11.3 type of a system property", "SET sys.Label = 5", "long 5 does not fit sys.Label, which is text"},
		{"11.3 type of a system property", "SET sys.TimeToLive = 5", "which is a duration"},
		{"11.3 type of a system property", "SET sys.TimeToLive = 'soon'", "string soon does not fit"},
		{"11.3 type of a system property", "SET sys.ForcePersistence = 'x'", "which is TRUE or FALSE"},
		{"11.3 type of a system property", "SET sys.ScheduledEnqueueTimeUtc = 'soon'", "which is a time"},
		{"11.3 type of a system property", "SET sys.To = raw", "binary does not fit"},
		{"11.3 conversion", "SET amount = tenant", "string acme does not convert to int, the type that the property has in SET amount = tenant"},
		{"9.6 limits", "SET sys.MessageId = @long", "the value has 129 characters; the limit is 128"},
		{"9.6 limits", "SET sys.SessionId = @long", "129 characters"},
		{"9.6 limits", "SET sys.ReplyToSessionId = @long", "129 characters"},
		{"9.6 limits", "SET sys.PartitionKey = @long", "129 characters"},
		{"9.6 DefaultMessageTimeToLive > 0", "SET sys.TimeToLive = 'PT0.0001S'", "at least a millisecond"},
		{"11.2 division", "SET a = amount / 0", "integer division by zero in amount / 0"},
		{"11.2 a system property that does not exist", "SET a = property(nopath)", "there is no system property sys.Nope"},
		{"11.2 types of arithmetic", "SET a = tenant * 2", "the types do not fit the operator in tenant * 2"},
		{"11.2 types of arithmetic", "SET a = -tenant", "the types do not fit"},
		{"11.2 types of arithmetic", "SET a = +vip", "the types do not fit"},
		{"11.2 types of arithmetic", "SET a = at + at", "the types do not fit"},
		{"untrusted text", "SET amount = hostile", "string a b\ufffd[31m\ufffd does not convert"},
		{"untrusted text", "SET a = property(hostilepath)", "there is no system property sys.\ufffd"},
	} {
		a, err := CompileAction(tt.src, RuleNames(), map[string]message.Value{"long": message.String(strings.Repeat("é", 129))})
		if err != nil {
			t.Errorf("%s: %s: %v", tt.rule, tt.src, err)
			continue
		}
		env := sampleEnv()
		env.Message.Properties.Set("hostile", message.String("a\nb\x1b[31m\u202e"))
		env.Message.Properties.Set("hostilepath", message.String("sys.\x1b]0;"+strings.Repeat("x", 5000)))
		before := message.Append(nil, env.Message)
		err = a.Apply(env)
		checkActionException(t, tt.src, err)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s: %v, want %q", tt.rule, tt.src, err, tt.want)
		}
		if string(message.Append(nil, env.Message)) != string(before) {
			t.Errorf("%s: a statement that failed changed the message", tt.src)
		}
	}
}

// What has no form in an expression cannot come from a system property.
func TestActionOddKey(t *testing.T) {
	a, err := CompileAction("SET a = sys.PartitionKey", RuleNames(), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &message.Message{Annotations: message.Map{{Key: message.PartitionKeyAnnotation, Value: message.Binary("x")}}}
	checkActionException(t, a.String(), a.Apply(&Env{Message: m}))
	if len(m.Properties) != 0 {
		t.Errorf("the message got %v", m.Properties)
	}
}

// What was done before the failing statement stays done.
func TestActionHalfway(t *testing.T) {
	a, err := CompileAction("SET Color = 'blue' SET quantity = 'many' REMOVE priority", RuleNames(), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := order()
	clone := m.Clone()
	checkActionException(t, a.String(), a.Apply(&Env{Message: clone}))
	if show(m) != show(order()) {
		t.Errorf("the original became %s", show(m))
	}
	if got := show(clone); !strings.Contains(got, "blue") || !strings.Contains(got, "quantity=int:10") || !strings.Contains(got, "priority") {
		t.Errorf("the clone became %s", got)
	}
}

func TestActionMistakes(t *testing.T) {
	for _, tt := range []struct{ src, msg, hint string }{
		{"", "the action is empty", statementExample},
		{"  ", "the action is empty", statementExample},
		{"a = 1", "a statement is SET property = value or REMOVE property", "SET a = 1"},
		{"DELETE a", "a statement is", "REMOVE a"},
		{"UPDATE a = 1", "a statement is", "SET a = 1"},
		{"SET a = 1, b = 2", "a statement is", "SET a = 1, SET b = 2"},
		{"REMOVE a, b", "a statement is", "REMOVE a, REMOVE b"},
		{"SET a = 1;; SET b = 2", "a statement is", "SET a = 1; SET b = 2"},
		{"SET a = 1,", "a statement is missing behind the comma", "SET a = 1"},
		{"SET a TO 1", "SET needs a =", "SET a = 1"},
		{"SET a 1", "SET needs a =", "SET a = 1"},
		{"SET a", "SET needs a =", "SET a = NULL"},
		{"SET a == 1", "== is written =", "SET a = 1"},
		{"SET a = 'it's'", "a single quote inside a text is doubled", "SET a = 'it''s'"},
		{"SET a =", "a value is missing at the end", statementExample},
		{"SET", "SET needs a property behind it", statementExample},
		{"REMOVE 'a'", "REMOVE needs a property behind it", statementExample},
		{"SET set = 1", "SET is a keyword", "SET [set] = 1"},
		{"SET a = remove", "REMOVE is a keyword", "SET a = [remove]"},
		{"SET null = 1", "NULL is a keyword", "SET [null] = 1"},
		{"SET a = (b = 1)", "a condition stands where a value is needed", statementExample},
		{"SET a = b > 1", "a statement is", statementExample},
		{"SET a = \x01", "unexpected character", ""},
		{"SET \"a", "has no closing", ""},
		{"SET a 'b", "has no closing", ""},
		{"SET p('a b') = 1", "an action names the property that it changes", "SET [a b] = 1"},
		{"SET newid() = 1", "is not what an action can change", statementExample},
		{"SET sys.Labl = 'x'", `there is no system property "Labl"`, "SET sys.Label = 'x'"},
		{"REMOVE sys.Nonsense", "there is no system property", ""},
		{"SET sys.DeliveryCount = 0", "an action cannot change sys.DeliveryCount, only ContentType, CorrelationId", statementExample},
		{"SET a = @missing", "parameter @missing has no value", ""},
		{"SET a = 1 / ;", "a value is missing", statementExample},
	} {
		_, err := CompileAction(tt.src, RuleNames(), nil)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, tt.msg) || tt.hint != "" && e.Hint != tt.hint {
			t.Errorf("%q: %v; want %q and %q", tt.src, err, tt.msg, tt.hint)
			continue
		}
		checkDiagnostic(t, tt.src, e.Diagnostic)
	}
	for _, p := range RuleNames().system {
		_, err := CompileAction("REMOVE sys."+p.name, RuleNames(), nil)
		if readOnly := setter(p.name) == nil; readOnly != (err != nil) {
			t.Errorf("REMOVE sys.%s: %v", p.name, err)
		}
	}
	if _, err := CompileAction("SET body = 1 REMOVE body.$.a", SelectionNames(), nil); err == nil || !strings.Contains(err.Error(), "body is not") {
		t.Errorf("an action changes the body: %v", err)
	}
}

func TestActionLimits(t *testing.T) {
	statements := strings.Repeat("REMOVE a ", MaxStatements)
	if _, err := CompileAction(statements, RuleNames(), nil); err != nil {
		t.Error(err)
	}
	if _, err := CompileAction(statements+"REMOVE a", RuleNames(), nil); err == nil || !strings.Contains(err.Error(), "at most 32 statements") {
		t.Errorf("33 statements: %v", err)
	}
	text := func(n int) string { return "SET a = '" + strings.Repeat("x", n-10) + "'" }
	if _, err := CompileAction(text(MaxRuleLength), RuleNames(), nil); err != nil {
		t.Error(err)
	}
	if _, err := CompileAction(text(MaxRuleLength+1), RuleNames(), nil); err == nil || !strings.Contains(err.Error(), "the action has 1025 bytes; the limit is 1024") {
		t.Errorf("a long action: %v", err)
	}
	if _, err := CompileAction("SET a = '\xff'", RuleNames(), nil); err == nil || !strings.Contains(err.Error(), "the action is not valid UTF-8") {
		t.Errorf("not UTF-8: %v", err)
	}
}

func TestActionText(t *testing.T) {
	a, err := CompileAction("set  Label='x'   set [b c]=-(1+2)*sys.DeliveryCount, remove [set];", RuleNames(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.String(), "SET Label = 'x'; SET [b c] = -(1 + 2) * sys.DeliveryCount; REMOVE [set]"; got != want {
		t.Errorf("canonical form\n %s, want\n %s", got, want)
	}
	w := a.Warnings()
	if len(w) != 1 || !strings.Contains(w[0].Hint, "set  sys.Label='x'") {
		t.Errorf("warnings %v", w)
	}
}
