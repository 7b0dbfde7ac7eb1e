package resubmit

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dlq/backends/message"
)

func TestNormalise(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"no variable parts":              "no variable parts",
		"order 4711 not found":           "order {n} not found",
		"order4711 not found":            "order{n} not found",
		"Int32 overflow in utf8":         "Int32 overflow in utf8",
		"3.14 of 1,024 at 10.0.0.1:5671": "{n} of {n} at {n}",
		"id 6f9619ff-8b86-d011-b42d-00c04fc964ff!":                "id {guid}!",
		"{6F9619FF-8B86-D011-B42D-00C04FC964FF}":                  "{{guid}}",
		"hash 0xDEADBEEF and deadbeef01":                          "hash {hex} and {hex}",
		"added to facade":                                         "added to facade",
		"at 2026-01-02T15:04:05.123Z it failed":                   "at {time} it failed",
		"on 2026-01-02 15:04:05 +02:00, on 2026-01-02":            "on {time} +{n}, on {time}",
		"GET https://api.acme.example/orders/17?x=1 returned 503": "GET {url} returned {n}",
		"see amqps://bus.example:5671/q.":                         "see {url}.",
		"cannot open /var/lib/app/17.json: denied":                "cannot open {path}: denied",
		`cannot open C:\temp\a.txt or \\host\share\b`:             "cannot open {path} or {path}",
		"either/or and a / b":                                     "either/or and a / b",
		"key 'cust-00017' is taken":                               "key '{id}' is taken",
		"key 'customer' is taken":                                 "key 'customer' is taken",
		"it's 5 o'clock":                                          "it's {n} o'clock",
		"a   b\t\nc ":                                             "a b c",
		"token abcdefghij1234567890XYZ":                           "token {id}",
		"größe 12 überschritten":                                  "größe {n} überschritten",
		"bad \xff bytes 7":                                        "bad \xff bytes {n}",
	} {
		if got := normalise(in); got != want {
			t.Errorf("normalise(%q) is %q, want %q", in, got, want)
		}
		// What is normal stays as it is, or two runs would not agree.
		if once := normalise(in); normalise(once) != once && !strings.Contains(once, "'{id}'") {
			t.Errorf("normalise(%q) is %q, and of that %q", in, once, normalise(once))
		}
	}
}

// dotNetTrace is a stack trace whose first frames are a framework's.
const dotNetTrace = `System.TimeoutException: The operation timed out after 00:00:30
 ---> System.IO.IOException: Unable to read data
   at System.Net.Http.HttpClient.Send(HttpRequestMessage request)
   at Polly.Retry.AsyncRetry.Run[T](Func` + "`" + `1 action)
   at Acme.Payments.Gateway.Charge(Card card, Decimal amount) in /src/Gateway.cs:line 42
   at Acme.Payments.Handler.Handle(OrderPlaced e) in /src/Handler.cs:line 17
   at NServiceBus.Pipeline.Invoke()`

// TestSignatures pins IDs: they are typed, noted in tickets and compared across versions.
func TestSignatures(t *testing.T) {
	for _, c := range []struct {
		name                string
		reason, description string
		headers             []string // name, value
		subject             string
		want                Signature
	}{
		{
			"description", "PaymentFailed", "card 4711 of customer 'c-99' was declined", nil, "",
			Signature{"", "PaymentFailed", "card {n} of customer '{id}' was declined"},
		},
		{
			"trace in the description", "System.TimeoutException", dotNetTrace, nil, "",
			Signature{"", "System.TimeoutException", "System.TimeoutException: The operation timed out after {n} ---> System.IO.IOException: Unable to read data at Acme.Payments.Gateway.Charge"},
		},
		{
			"delivery count says nothing", "MaxDeliveryCountExceeded", "Message could not be consumed after 10 delivery attempts.", nil, "OrderPlaced",
			Signature{"", "MaxDeliveryCountExceeded", "message type OrderPlaced"},
		},
		{
			"its alias", "MaxDeliveryCountExceededExceptionMessage", "whatever", nil, "OrderPlaced",
			Signature{"", "MaxDeliveryCountExceeded", "message type OrderPlaced"},
		},
		{
			"NServiceBus", "MaxDeliveryCountExceeded", "",
			[]string{
				"NServiceBus.ExceptionInfo.ExceptionType", "System.TimeoutException",
				"NServiceBus.ExceptionInfo.Message", "The operation timed out after 00:00:30", "NServiceBus.ExceptionInfo.StackTrace", dotNetTrace,
			},
			"",
			Signature{"", "MaxDeliveryCountExceeded", "System.TimeoutException: The operation timed out after {n} ---> System.IO.IOException: Unable to read data at Acme.Payments.Gateway.Charge"},
		},
		{
			"MassTransit", "fault", "",
			[]string{
				"MT-Fault-ExceptionType", "Acme.StockException", "MT-Fault-Message", "sku 17 is out of stock",
				"MT-Fault-StackTrace", "   at Acme.Stock.Reserve() in C:\\src\\Stock.cs:line 8",
			},
			"",
			Signature{"", "fault", "Acme.StockException: sku {n} is out of stock at Acme.Stock.Reserve"},
		},
		{
			"Java", "handler", "java.lang.IllegalStateException: no rate for EUR\n\tat java.util.Optional.orElseThrow(Optional.java:403)\n\tat com.acme.Rates.find(Rates.java:31)", nil, "",
			Signature{"", "handler", "java.lang.IllegalStateException: no rate for EUR at com.acme.Rates.find"},
		},
		{"nothing at all", "", "", nil, "", Signature{"", "", ""}},
	} {
		m := &message.Message{}
		if c.reason != "" {
			m.Properties.Set(message.DeadLetterReasonProperty, message.String(c.reason))
			m.Properties.Set(message.DeadLetterDescriptionProperty, message.String(c.description))
		}
		for i := 0; i < len(c.headers); i += 2 {
			m.Properties.Set(c.headers[i], message.String(c.headers[i+1]))
		}
		if c.subject != "" {
			m.Subject = &c.subject
		}
		got := SignatureOf(m)
		if id := pinned[c.name]; got.ID != id {
			t.Errorf("%s: the ID is %s, and was %s before: signatureVersion has to change with what makes it", c.name, got.ID, id)
		}
		if got.Reason != c.want.Reason || got.Detail != c.want.Detail {
			t.Errorf("%s: %q, %q; want %q, %q", c.name, got.Reason, got.Detail, c.want.Reason, c.want.Detail)
		}
	}
}

// pinned are the IDs of the signatures above.
var pinned = map[string]string{
	"description": "5a269aac", "trace in the description": "cd331b1e", "delivery count says nothing": "2d2eda3e",
	"its alias": "2d2eda3e", "NServiceBus": "cd9062fc", "MassTransit": "6318f45b", "Java": "f6f33167", "nothing at all": "5e9da77a",
}

func TestGrouper(t *testing.T) {
	g := NewGrouper()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 10 {
		m := &message.Message{ID: message.String("id")}
		m.Broker.SequenceNumber, m.Broker.EnqueuedTime = int64(i+1), at.Add(time.Duration((i*7)%10)*time.Minute)
		m.Properties.Set(message.DeadLetterReasonProperty, message.String(map[bool]string{true: "rare", false: "often"}[i%5 == 0]))
		g.Add(m)
	}
	groups := g.Groups()
	if len(groups) != 2 || groups[0].Reason != "often" || groups[0].Count != 8 || groups[1].Count != 2 {
		t.Fatalf("%+v", groups)
	}
	// The rare ones are messages 1 and 6, enqueued at minutes 0 and 5; the newest of the others is message 8, at minute 9.
	if r := groups[1]; !r.First.Equal(at) || !r.Last.Equal(at.Add(5*time.Minute)) || r.SampleSeq != 6 {
		t.Errorf("%+v", r)
	}
	if groups[0].SampleSeq != 8 || groups[0].SampleID != "id" {
		t.Errorf("%+v", groups[0])
	}
}

func FuzzSignature(f *testing.F) {
	f.Add("MaxDeliveryCountExceeded", dotNetTrace)
	f.Add("", strings.Repeat("/a'1\"0x", 5000))
	f.Fuzz(func(t *testing.T, reason, description string) {
		m := &message.Message{}
		m.Properties.Set(message.DeadLetterReasonProperty, message.String(reason))
		m.Properties.Set(message.DeadLetterDescriptionProperty, message.String(description))
		s := SignatureOf(m)
		if len(s.ID) != 8 || len(s.Reason) > maxDetail || len(s.Detail) > maxDetail {
			t.Fatalf("%+v", s)
		}
		if utf8.ValidString(description) && utf8.ValidString(reason) && !utf8.ValidString(s.Detail+s.Reason) {
			t.Fatalf("a character was cut: %q %q", s.Reason, s.Detail)
		}
		if SignatureOf(m) != s {
			t.Fatal("the same message has another signature")
		}
	})
}

// BenchmarkSignature shows that the time grows with the length alone, also for texts made to hurt.
func BenchmarkSignature(b *testing.B) {
	for name, unit := range map[string]string{"words": "order not found ", "paths": "/a", "quotes": "'a1 ", "colons": "a:", "digits": "1.2,", "hex": "deadbeef01 "} {
		m := &message.Message{}
		m.Properties.Set(message.DeadLetterDescriptionProperty, message.String(strings.Repeat(unit, maxCause/len(unit))))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(maxCause)
			for b.Loop() {
				SignatureOf(m)
			}
		})
	}
}
