package sqlfilter

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"dlq/backends/message"
)

// sample is a dead letter with every system property and application properties of every type.
func sample() *message.Message {
	at := time.Date(2026, 1, 2, 15, 4, 5, 123e6, time.UTC)
	m := &message.Message{
		Durable: true, TTL: new(90 * time.Second), ID: message.String("m-1"), CorrelationID: message.UUID{0xab, 15: 1},
		To: new("to"), Subject: new("order.created"), ReplyTo: new("reply"), ContentType: new("application/json"),
		SessionID: new("s1"), ReplyToSessionID: new("rs"), ScheduledEnqueueTime: new(at.Add(time.Hour)),
		Annotations: message.Map{
			{Key: message.PartitionKeyAnnotation, Value: message.String("pk")},
			{Key: message.ViaPartitionKeyAnnotation, Value: message.String("via")},
		},
		Body: message.DataBody([]byte("12345")),
		Broker: message.Broker{
			SequenceNumber: 42, EnqueuedSequenceNumber: 41, EnqueuedTime: at, ExpiresAt: at.Add(time.Minute),
			DeliveryCount: 3, State: message.Deferred, LockToken: message.UUID{0xcd, 15: 2}, LockedUntil: at.Add(time.Second),
			DeadLetterSource: "orders", BodySize: 5,
		},
	}
	for _, p := range []message.Attribute{
		{Name: "DeadLetterReason", Value: message.String("MaxDeliveryCountExceeded")},
		{Name: "DeadLetterErrorDescription", Value: message.String("gave up")},
		{Name: "tenant", Value: message.String("acme")},
		{Name: "Mixed", Value: message.String("folded")},
		{Name: "mixed", Value: message.String("exact")},
		{Name: "amount", Value: message.Int(5)},
		{Name: "big", Value: message.Ulong(math.MaxUint64)},
		{Name: "least", Value: message.Long(math.MinInt64)},
		{Name: "price", Value: message.Double(2.5)},
		{Name: "ratio", Value: message.Float(0.5)},
		{Name: "nan", Value: message.Double(math.NaN())},
		{Name: "vip", Value: message.Bool(true)},
		{Name: "off", Value: message.Bool(false)},
		{Name: "nothing", Value: message.Null{}},
		{Name: "letter", Value: message.Char('é')},
		{Name: "sym", Value: message.Symbol("sym")},
		{Name: "at", Value: message.TimestampOf(at)},
		{Name: "guid", Value: message.UUID{0x80, 15: 1}},
		{Name: "lowguid", Value: message.UUID{0x7f}},
		{Name: "raw", Value: message.Binary("acme")},
		{Name: "span", Value: message.Described{Descriptor: message.Symbol("com.microsoft:timespan"), Value: message.Long(3e9)}},
		{Name: "offset", Value: message.Described{Descriptor: message.Symbol("com.microsoft:datetime-offset"), Value: message.Long(ticksToUnix)}},
		{Name: "uri", Value: message.Described{Descriptor: message.Symbol("com.microsoft:uri"), Value: message.String("http://a")}},
		{Name: "cost", Value: message.Described{Descriptor: message.Symbol("sqs:Number"), Value: message.String("1.50")}},
		{Name: "tries", Value: message.Described{Descriptor: message.Symbol("sqs:Number.int"), Value: message.String("07")}},
		{Name: "zone", Value: message.Described{Descriptor: message.Symbol("sqs:String.zone"), Value: message.String("eu")}},
		{Name: "image", Value: message.Described{Descriptor: message.Symbol("sqs:Binary.png"), Value: message.Binary("eu")}},
		{Name: "strange", Value: message.Described{Descriptor: message.Symbol("x"), Value: message.String("acme")}},
		{Name: "list", Value: message.List{message.Int(1)}},
		{Name: "odd name", Value: message.String("o")},
		{Name: "NServiceBus.ExceptionInfo.Message", Value: message.String("timeout after 30 s")},
		{Name: "a]b\"c", Value: message.String("quoted")},
		{Name: "body", Value: message.String("a property")},
		{Name: "path", Value: message.String("sys.Label")},
		{Name: "nopath", Value: message.String("sys.Nope")},
	} {
		m.Properties = append(m.Properties, p)
	}
	return m
}

func sampleEnv() *Env {
	json := map[string]message.Value{
		"$.id": message.Long(7), "$.order.items[0].sku": message.String("A-1"), "$['odd name']": message.Bool(true),
		"$.none": message.Null{}, "$.total": message.Double(9.5),
	}
	return &Env{
		Message:  sample(),
		BodyText: func() (string, bool) { return `{"id":7,"note":"timeout"}`, true },
		BodyJSON: func(p Path) (message.Value, bool) { v, ok := json[p.String()]; return v, ok },
		NewID:    func() message.UUID { return message.UUID{1} },
	}
}

// dialects for the tables: both unless the row says otherwise.
const (
	both = iota
	inRule
	inSelection
)

var evalTests = []struct {
	rule    string // section of the wire notes, or what a selection adds
	dialect int
	expr    string
	want    truth
}{
	{"11.1 comparison", both, "tenant = 'acme'", yes},
	{"11.1 comparison", both, "tenant <> 'acme'", no},
	{"11.1 comparison", both, "tenant != 'acme'", no},
	{"11.1 comparison", both, "amount > 4 AND amount >= 5 AND amount < 6 AND amount <= 5", yes},
	{"11.1 comparison", both, "amount > 5 OR amount < 5", no},
	{"11.1 comparison", both, "amount >= 6 OR amount <= 4", no},
	{"11.1 keywords without case", both, "tenant Like 'a%' aNd nOt amount = 4 oR faLse = tRue", yes},
	{"11.1 names without case", both, "TENANT = 'acme' AND SYS.LABEL = 'order.created' AND User.Tenant = 'acme'", yes},
	{"11.1 names without case: exact first", both, "mixed = 'exact' AND Mixed = 'folded'", yes},
	{"11.1 names without case: else the first", both, "MIXED = 'folded'", yes},
	{"11.1 unscoped is user", both, "Label IS NULL AND sys.Label IS NOT NULL", yes},
	{"11.1 delimited", both, "[odd name] = 'o' AND \"odd name\" = 'o' AND user.[odd name] = 'o'", yes},
	{"11.1 doubled ]", both, `[a]]b"c] = 'quoted'`, yes},
	{"11.1 doubled \"", both, `"a]b""c" = 'quoted'`, yes},
	{"11.1 delimited scope", both, "[sys].[Label] = 'order.created'", yes},
	{"11.1 doubled '", both, "'it''s' = 'it' + '''' + 's'", yes},
	{"11.1 literals", both, "TRUE = TRUE AND 1.5E3 = 1500 AND 1E2 = 100 AND 2.50 = 2.5 AND -7 = 0 - 7 AND +7 = 7", yes},
	{"11.1 smallest integer", both, "least = -9223372036854775808", yes},
	{"11.1 bare boolean", both, "vip", yes},
	{"11.1 bare boolean", both, "NOT off AND TRUE", yes},
	{"11.1 bare boolean that is none", both, "tenant", unknown},
	{"11.1 precedence: AND before OR", both, "TRUE OR TRUE AND FALSE", yes},
	{"11.1 precedence: parentheses", both, "(TRUE OR TRUE) AND FALSE", no},
	{"11.1 precedence: NOT before AND", both, "NOT FALSE AND FALSE", no},
	{"11.1 precedence: comparison before NOT", both, "NOT amount = 4", yes},
	{"11.1 precedence: * before +", both, "1 + 2 * 3 = 7 AND (1 + 2) * 3 = 9", yes},
	{"11.1 precedence: from the left", both, "10 - 3 - 2 = 5 AND 100 / 10 / 5 = 2 AND 10 - (3 - 2) = 9", yes},
	{"11.1 precedence: sign before *", both, "-amount * 2 = -10 AND - -amount = 5 AND +amount = 5", yes},
	{"11.1 newid", both, "newid() = newid()", yes},
	{"11.1 newid is a guid", both, "newid() < guid", yes},
	{"11.1 property()", both, "property('tenant') = 'acme' AND p('TENANT') = 'acme'", yes},
	{"11.1 property() with a scope", both, "property('sys.Label') = 'order.created' AND p('user.tenant') = 'acme'", yes},
	{"11.1 property() with points", both, "property('NServiceBus.ExceptionInfo.Message') LIKE 'timeout%'", yes},
	{"11.1 property() of a value", both, "property(path) = 'order.created'", yes},
	{"11.1 property() of a sum", both, "property('ten' + 'ant') = 'acme'", yes},
	{"11.1 property() of null", both, "property(missing) = 'acme'", unknown},
	{"11.1 property() of nothing", both, "property(NULL) IS NULL", yes},
	{"11.1 parameters", both, "tenant = @who AND amount = @N AND at = @when", yes},
	{"11.1 p is a name too", both, "p IS NULL AND property IS NULL", yes},
	{"11.1 two properties compare", both, "MessageID = rule1", unknown},

	{"11.2 integers are long, decimals double", both, "amount = 5.0 AND price = 2.5 AND ratio = 0.5", yes},
	{"11.2 promotion", both, "amount + price = 7.5 AND amount * 1.0 / 2 = 2.5", yes},
	{"11.2 integer division", both, "amount / 2 = 2 AND -7 / 2 = -3 AND amount % 3 = 2 AND 7.5 % 2 = 1.5", yes},
	{"11.2 large unsigned", both, "big > 9223372036854775807", yes},
	{"11.2 NaN", both, "nan = nan OR nan <> nan OR nan < 1", unknown},
	{"11.2 division of doubles by zero", both, "1.0 / 0 > 1000000", yes},
	{"11.2 ordinal and with case", both, "tenant = 'ACME'", no},
	{"11.2 ordinal order", both, "'Z' < 'a' AND 'a' < 'é'", yes},
	{"11.2 text and number", inRule, "tenant = 5", unknown},
	{"11.2 text and number", both, "NOT amount = @who", unknown},
	{"11.2 text and boolean", both, "vip = tenant", unknown},
	{"11.2 booleans are equal or not", both, "vip = TRUE AND vip <> FALSE", yes},
	{"11.2 booleans have no order", both, "vip > FALSE", unknown},
	{"11.2 char and symbol are text", both, "letter = 'é' AND sym = 'sym' AND sym LIKE 's_m'", yes},
	{"11.2 guid", both, "guid = @guid AND lowguid < guid", yes},
	{"11.2 datetime", both, "at = @when AND at > offset", yes},
	{"11.2 duration", both, "span > sys.TimeToLive AND span = @span", yes},
	{"11.2 guid and text, in a rule", inRule, "guid = '80000000-0000-0000-0000-000000000001'", unknown},
	{"11.2 datetime and text, in a rule", inRule, "sys.EnqueuedTimeUtc > '2020-01-01'", unknown},
	{"11.2 uri is text", both, "uri LIKE 'http:%'", yes},
	{"SQS: a number is one in whatever way it is written", both, "cost = 1.5 AND cost < tries AND tries = 7", yes},
	{"SQS: text with a label is text", both, "zone = 'eu' AND zone LIKE 'e_'", yes},
	{"SQS: bytes with a label are bytes", both, "image = 'eu'", unknown},
	{"11.2 binary compares with nothing", both, "raw = 'acme' OR raw = raw OR strange = 'acme' OR list = 1", unknown},
	{"11.2 arithmetic on unknown", both, "missing + 1 = 1", unknown},
	{"11.2 arithmetic on text", both, "tenant * 2 IS NULL AND -tenant IS NULL AND +tenant IS NULL", yes},
	{"11.2 texts add up", both, "tenant + '-' + sym = 'acme-sym'", yes},
	{"11.2 text and number do not add up", both, "tenant + amount IS NULL", yes},

	{"filter examples: times and @parameters", both, "at <= @when AND at >= @when AND NOT at > @when", yes},
	{"filter examples: difference of times", both, "(sys.ExpiresAtUtc-at) <= @span AND sys.ExpiresAtUtc-at <= @span", yes},
	{"filter examples: difference of times", both, "at-offset <= @span", no},
	{"filter examples: names in double quotes", both, "\"http://schemas.example/a/EntityLogicalName\" IS NULL", yes},
	{"filter syntax: arithmetic of C#", both, "at + span > sys.ExpiresAtUtc AND at - span < at AND span + span - span = span AND -span < span", yes},
	{"filter syntax: arithmetic of C#", both, "at + at IS NULL AND span + at IS NULL AND span * 2 IS NULL AND span - at IS NULL AND tenant - sym IS NULL", yes},
	{"filter syntax: arithmetic with unknown", both, "at - missing = span OR missing - at = span OR -missing < span", unknown},

	{"11.2 missing is unknown", both, "missing = 1", unknown},
	{"11.2 missing is unknown", both, "missing <> 1", unknown},
	{"11.2 null is unknown", both, "nothing = 1", unknown},
	{"11.2 comparison with NULL", inRule, "tenant = NULL OR NULL = NULL OR NULL <> NULL", unknown},
	{"11.2 NOT unknown", both, "NOT missing = 1", unknown},
	{"11.2 TRUE OR unknown", both, "missing = 1 OR TRUE", yes},
	{"11.2 FALSE AND unknown", both, "missing = 1 AND FALSE", no},
	{"11.2 FALSE OR unknown", both, "FALSE OR missing = 1", unknown},
	{"11.2 TRUE AND unknown", both, "TRUE AND missing = 1", unknown},
	{"11.2 bare NULL", both, "NULL", unknown},
	{"11.2 IS NULL", both, "missing IS NULL AND nothing IS NULL AND sys.ReplyTo IS NOT NULL", yes},
	{"11.2 IS NOT NULL", both, "missing IS NOT NULL OR nothing IS NOT NULL OR tenant IS NULL", no},
	{"11.2 IS NULL of an expression", both, "(missing + 1) IS NULL AND raw IS NOT NULL", yes},
	{"11.2 EXISTS", both, "EXISTS(tenant) AND EXISTS(nothing) AND EXISTS([odd name]) AND EXISTS(sys.Label)", yes},
	{"11.2 EXISTS", both, "EXISTS(missing)", no},

	{"11.2 LIKE", both, "tenant LIKE 'a%' AND tenant LIKE '%me' AND tenant LIKE 'a__e' AND tenant LIKE 'acme'", yes},
	{"11.2 LIKE with case", both, "tenant LIKE 'A%'", no},
	{"11.2 NOT LIKE", both, "tenant NOT LIKE 'b%'", yes},
	{"11.2 LIKE of null", both, "missing LIKE '%'", unknown},
	{"11.2 NOT LIKE of null", both, "nothing NOT LIKE 'a%'", unknown},
	{"11.2 LIKE of a number", both, "amount LIKE '5%'", unknown},
	{"11.2 LIKE null", both, "tenant LIKE NULL", unknown},
	{"11.2 LIKE ESCAPE", both, `'50%' LIKE '50\%' ESCAPE '\'`, yes},
	{"11.2 LIKE ESCAPE", both, `'500' LIKE '50\%' ESCAPE '\'`, no},
	{"11.2 LIKE ESCAPE NULL", both, "'50' LIKE '50%' ESCAPE NULL", unknown},
	{"11.2 LIKE a property", both, "tenant LIKE sym + '%' OR tenant LIKE 'a' + '%'", yes},
	{"11.2 IN", both, "amount IN (1, 2 + 3) AND tenant IN ('x', 'acme')", yes},
	{"11.2 IN", both, "amount IN (1, 2)", no},
	{"11.2 IN with an unknown", both, "amount IN (1, missing)", unknown},
	{"11.2 IN with an unknown, found", both, "amount IN (missing, 5)", yes},
	{"11.2 NOT IN", both, "amount NOT IN (1, 2)", yes},
	{"11.2 NOT IN", both, "amount NOT IN (1, 5)", no},
	{"11.2 NOT IN with an unknown", both, "amount NOT IN (1, NULL)", unknown},
	{"11.2 IN of null", both, "missing IN (1, NULL)", unknown},

	{"11.2 system properties", both, "sys.ContentType = 'application/json' AND sys.DeadLetterSource = 'orders' AND sys.DeliveryCount = 3", yes},
	{"11.2 system properties", both, "sys.EnqueuedSequenceNumber = 41 AND sys.SequenceNumber = 42 AND sys.ForcePersistence AND sys.Size = 5", yes},
	{"11.2 Label and Subject", both, "sys.Label = 'order.created' AND sys.Subject = sys.Label", yes},
	{"11.2 times", both, "sys.EnqueuedTimeUtc = at AND sys.ExpiresAtUtc > at AND sys.LockedUntilUtc < sys.ExpiresAtUtc AND sys.ScheduledEnqueueTimeUtc > at", yes},
	{"11.2 ids are text", both, "sys.MessageId = 'm-1' AND sys.CorrelationId = 'ab000000-0000-0000-0000-000000000001'", yes},
	{"11.2 keys", both, "sys.PartitionKey = 'pk' AND sys.ViaPartitionKey = 'via' AND sys.LockToken > guid", yes},
	{"11.2 addresses", both, "sys.To = 'to' AND sys.ReplyTo = 'reply' AND sys.ReplyToSessionId = 'rs' AND sys.SessionId = 's1'", yes},
	{"11.2 State", inRule, "sys.State = 1", yes},

	{"selection: State", inSelection, "sys.State = 'deferred'", yes},
	{"selection: why it died", inSelection, "sys.DeadLetterReason LIKE 'Max%' AND sys.DeadLetterErrorDescription = 'gave up'", yes},
	{"selection: why it died, unscoped", both, "DeadLetterReason = 'MaxDeliveryCountExceeded'", yes},
	{"selection: body", inSelection, "body LIKE '%timeout%' AND EXISTS(body)", yes},
	{"selection: body as a property", inSelection, "user.body = 'a property' AND [body] = 'a property'", yes},
	{"selection: body in a rule is a property", inRule, "body = 'a property'", yes},
	{"selection: body path", inSelection, "body.$.id = 7 AND Body.$.order.items[0].sku = 'A-1' AND body.$['odd name'] AND body.$.total > 9", yes},
	{"selection: body path that leads nowhere", inSelection, "body.$.missing = 7", unknown},
	{"selection: body path that exists", inSelection, "EXISTS(body.$.none) AND body.$.none IS NULL AND NOT EXISTS(body.$.missing)", yes},
	{"selection: time and text", inSelection, "sys.EnqueuedTimeUtc < '2026-01-02T15:04:06Z' AND sys.EnqueuedTimeUtc >= '2026-01-02'", yes},
	{"selection: text and time", inSelection, "'2026-01-02 15:04' < sys.EnqueuedTimeUtc AND at < '2026-01-02T18:04:06+01:00'", yes},
	{"selection: time in a list", inSelection, "at IN ('2026-01-02T15:04:05.123Z') AND sys.EnqueuedTimeUtc IN ('2026-01-02T15:04:05.123Z')", yes},
	{"selection: no time", inSelection, "at < 'yesterday'", unknown},
	{"selection: duration and text", inSelection, "sys.TimeToLive = 'PT90S' AND sys.TimeToLive = '1m30s' AND span = 'PT5M'", yes},
	{"selection: difference and text", inSelection, "sys.ExpiresAtUtc - sys.EnqueuedTimeUtc > 'PT59S' AND at - offset > 'P1D' AND (at - span) < '2026-01-02T15:00Z'", yes},
	{"selection: guid and text", inSelection, "guid = '80000000-0000-0000-0000-000000000001' AND sys.LockToken = '{CD000000-0000-0000-0000-000000000002}'", yes},
}

func testParams() map[string]message.Value {
	at := time.Date(2026, 1, 2, 15, 4, 5, 123e6, time.UTC)
	return map[string]message.Value{
		"@who": message.String("acme"), "n": message.Int(5), "@WHEN": message.TimestampOf(at),
		"guid": message.UUID{0x80, 15: 1}, "none": nil,
		"span": message.Described{Descriptor: message.Symbol("com.microsoft:timespan"), Value: message.Long(3e9)},
	}
}

func TestEval(t *testing.T) {
	env := sampleEnv()
	for _, tt := range evalTests {
		for dialect, names := range map[int]Names{inRule: RuleNames(), inSelection: SelectionNames()} {
			if tt.dialect != both && tt.dialect != dialect {
				continue
			}
			e, err := Compile(tt.expr, names, testParams())
			if err != nil {
				t.Errorf("%s, dialect %d: %s: %v", tt.rule, dialect, tt.expr, err)
				continue
			}
			if got, err := e.root.truth(env); got != tt.want || err != nil {
				t.Errorf("%s, dialect %d: %s is %d, %v; want %d", tt.rule, dialect, tt.expr, got, err, tt.want)
			}
			if got, err := e.Match(env); got != (tt.want == yes) || err != nil {
				t.Errorf("%s, dialect %d: Match(%s) = %v, %v", tt.rule, dialect, tt.expr, got, err)
			}
		}
	}
}

// A message without anything: all of the optional fields are null.
func TestEvalEmptyMessage(t *testing.T) {
	env := &Env{Message: &message.Message{}}
	for _, name := range SelectionNames().All() {
		e, err := Compile(name.Text+" IS NULL", SelectionNames(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Match(env)
		if err != nil {
			t.Fatal(err)
		}
		has := map[string]bool{
			"sys.DeliveryCount": true, "sys.EnqueuedSequenceNumber": true, "sys.ExpiresAtUtc": true,
			"sys.ForcePersistence": true, "sys.Size": true, "sys.State": true,
		}[name.Text]
		if got == has {
			t.Errorf("%s IS NULL is %v on an empty message", name.Text, got)
		}
	}
	for expr, want := range map[string]bool{
		"sys.ExpiresAtUtc > '9999-01-01'": true, // never
		"EXISTS(sys.Label)":               false,
		"EXISTS(body)":                    false,
		"EXISTS(body.$.a)":                false,
		"body.$.a IS NULL":                true,
		"newid() <> newid()":              true,
	} {
		e, err := Compile(expr, SelectionNames(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.Match(env); got != want || err != nil {
			t.Errorf("%s = %v, %v on an empty message", expr, got, err)
		}
	}
}

func TestEvalErrors(t *testing.T) {
	for _, tt := range []struct{ expr, want string }{
		{"amount / (amount - 5) = 1", "integer division by zero in amount / (amount - 5)"},
		{"amount % 0 = 1", "integer division by zero"},
		{"9223372036854775807 + amount > 0", "integer overflow"},
		{"-9223372036854775808 - amount < 0", "integer overflow"},
		{"least * -1 > 0", "integer overflow"},
		{"-1 * least > 0", "integer overflow"},
		{"least / -1 > 0", "integer overflow"},
		{"-least > 0", "integer overflow in -least"},
		{"-sys.TimeToLive = span", "integer overflow in -sys.TimeToLive"},
		{"sys.TimeToLive - span = span", "integer overflow"},
		{"at - sys.TimeToLive = at", "integer overflow"},
		{"property(nopath) = 'x'", "there is no system property sys.Nope"},
		{"property(amount) = 'x'", "the name of a property is not a text"},
		{"tenant LIKE 'a' ESCAPE sym", "ESCAPE takes one character"},
		{"tenant LIKE sym + '!' ESCAPE '!'", "the pattern ends in its escape character"},
		{"tenant = 'no' OR amount / 0 = 1", "integer division by zero"},
		{"missing = 1 AND amount / 0 = 1", "integer division by zero"}, // unknown does not decide
		{"amount IN (1, 1 / 0)", "integer division by zero"},
		{"1 / 0 IS NULL", "integer division by zero"},
		{"1 / 0 IN (1)", "integer division by zero"},
		{"property('a' + tenant) LIKE property(nopath)", ""},
	} {
		e, err := Compile(tt.expr, RuleNames(), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.expr, err)
			continue
		}
		env := sampleEnv()
		env.Message.TTL = new(time.Duration(math.MinInt64))
		got, err := e.Match(env)
		var ee *EvalError
		switch {
		case tt.want == "":
			if err != nil {
				t.Errorf("%s: %v; the left side is null, so the pattern does not matter", tt.expr, err)
			}
		case got || !errors.As(err, &ee) || ee.Exception() != FilterException || !strings.Contains(ee.Msg, tt.want):
			t.Errorf("%s = %v, %v; want %q", tt.expr, got, err, tt.want)
		}
	}
}

// What cannot change the outcome is not evaluated.
func TestShortCircuit(t *testing.T) {
	for expr, want := range map[string]bool{
		"tenant = 'acme' OR 1 / 0 = 1":        true,
		"tenant = 'no' AND 1 / 0 = 1":         false,
		"amount IN (5, 1 / 0)":                true,
		"NOT (tenant = 'no' AND 1 / 0 = 1)":   true,
		"FALSE AND missing = 1 OR amount = 5": true,
	} {
		e, err := Compile(expr, RuleNames(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.Match(sampleEnv()); got != want || err != nil {
			t.Errorf("%s = %v, %v; want %v", expr, got, err, want)
		}
	}
}

func TestNeedsBody(t *testing.T) {
	for expr, want := range map[string]bool{
		"tenant = 'acme'": false,
		"user.body = 'x' OR property('body') = 'x'": false,
		"tenant = 'acme' AND body LIKE '%x%'":       true,
		"EXISTS(body.$.a)":                          true,
	} {
		e, err := Compile(expr, SelectionNames(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.NeedsBody(); got != want {
			t.Errorf("NeedsBody of %s = %v", expr, got)
		}
		called := false
		env := &Env{
			Message: sample(), BodyText: func() (string, bool) { called = true; return "", false },
			BodyJSON: func(Path) (message.Value, bool) { called = true; return nil, false },
		}
		if _, err := e.Match(env); err != nil || called != want {
			t.Errorf("%s: body asked for: %v, %v", expr, called, err)
		}
	}
	e, err := Compile("body = 'x'", RuleNames(), nil)
	if err != nil || e.NeedsBody() {
		t.Errorf("a rule reads the body: %v", err)
	}
}

func TestDecimals(t *testing.T) {
	for _, tt := range []struct {
		v    message.Value
		want float64
	}{
		{message.Decimal32{0x32, 0x80, 0x00, 0x01}, 1},              // exponent 0
		{message.Decimal32{0xb2, 0x80, 0x00, 0x0f}, -15},            //
		{message.Decimal32{0x32, 0x00, 0x00, 0x0f}, 1.5},            // exponent -1
		{message.Decimal32{0x6c, 0xb8, 0x96, 0x7f}, 9999999},        // large coefficient
		{message.Decimal64{0x31, 0x60, 7: 0x19}, 0.025},             // 25e-3
		{message.Decimal64{0x31, 0xc0, 7: 1}, 1},                    //
		{message.Decimal128{0x30, 0x40, 15: 1}, 1},                  //
		{message.Decimal128{0x30, 0x3c, 14: 0x04, 15: 0xd2}, 12.34}, // 1234e-2
	} {
		if got := fromMessage(tt.v); got.kind != doubleKind || math.Abs(got.double()-tt.want) > 1e-9 {
			t.Errorf("%x is %v, want %v", tt.v, got.double(), tt.want)
		}
	}
	for _, v := range []message.Value{message.Decimal32{0x78}, message.Decimal64{0x7c}, message.Decimal128{0xf8}} {
		if got := fromMessage(v); got.kind != otherKind {
			t.Errorf("%x, which is no number, became %v", v, got)
		}
	}
}

// What is written as a decimal reads back, rounded to the digits that it has.
func TestDecimalRoundTrip(t *testing.T) {
	for _, x := range []value{
		longValue(0), longValue(1), longValue(-9999999), longValue(8388608), longValue(1000000000000), longValue(math.MaxInt64), longValue(math.MinInt64),
		doubleValue(0.1), doubleValue(-1e-300), doubleValue(1.0 / 3), doubleValue(1e22), doubleValue(1e308), doubleValue(9007199254740993e1),
		doubleValue(math.SmallestNonzeroFloat64),
	} {
		for size, digits := range map[int]int{4: 7, 8: 16, 16: 34} {
			b := toDecimal(x, size)
			s := strconv.FormatFloat(math.Abs(x.asDouble()), 'e', -1, 64)
			significant := len(strings.TrimRight(strings.TrimPrefix(strconv.FormatInt(x.a, 10), "-"), "0"))
			_, power, _ := strings.Cut(s, "e")
			exponent, _ := strconv.Atoi(power)
			fits := x.kind == doubleKind || significant <= digits
			switch size {
			case 4:
				fits = fits && exponent > -90 && exponent < 90
			case 8:
				fits = fits && exponent > -380 && exponent < 380
			}
			if (b != nil) != fits {
				t.Errorf("%v as a decimal of %d bytes: %x", x, size, b)
			}
			if b == nil {
				continue
			}
			got, want := fromDecimal(b).double(), x.asDouble()
			if tolerance := math.Abs(want) * math.Pow10(1-digits); math.Abs(got-want) > tolerance || len(b) != size {
				t.Errorf("%v came back from %x as %v", want, b, got)
			}
		}
	}
	if v := fromDecimal([]byte{0x30, 0x40, 1, 14: 0, 15: 0}); v.double() != math.Ldexp(1, 104) { // a coefficient beyond 64 bits
		t.Errorf("%v", v.double())
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "PT0S", 90 * time.Second: "PT90S", 1500 * time.Millisecond: "PT1.5S", -time.Nanosecond: "-PT0.000000001S",
		math.MinInt64: "-PT9223372036.854775808S",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"PT5M": 5 * time.Minute, "P1D": 24 * time.Hour, "P2DT3H4M5.5S": 51*time.Hour + 4*time.Minute + 5500*time.Millisecond,
		"PT0.25S": 250 * time.Millisecond, "90s": 90 * time.Second, "-1h": -time.Hour,
	} {
		if got, ok := parseDuration(s); !ok || got != want {
			t.Errorf("%q = %v, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "P", "PT", "P1", "P1Y", "PT-5M", "PT5", "PTD", "5", "PT5ms", "P-1D", "P1DT"} {
		if got, ok := parseDuration(s); ok {
			t.Errorf("%q = %v, want an error", s, got)
		}
	}
}
