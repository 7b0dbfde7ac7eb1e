package cmd

import (
	"context"
	"fmt"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// write writes the whole story down, queue by queue.
func (s *incident) write(samples []*message.Message) {
	s.payments()
	s.orders()
	s.shipping()
	s.notifications()
	s.billing()
	s.imports(samples)
	s.add(wave{queue: "audit", count: 64, from: 20 * time.Minute, until: 10 * time.Second,
		make: func(i int) *message.Message {
			return s.json("audit", i, fmt.Sprintf(`{"actor":"svc-%s","action":"login"}`, s.pick("orders", "payments", "shipping")))
		}})
}

// The window in which the payment provider did not answer.
const (
	outageBegin = 3*time.Hour + 10*time.Minute
	outageEnd   = time.Hour + 25*time.Minute
)

// payments: the provider times out, ten deliveries each, and the broker's reason names no
// cause. The cause stands in the headers that NServiceBus writes.
func (s *incident) payments() {
	charge := func(i int) *message.Message {
		m := s.json("pay", i, fmt.Sprintf(`{"paymentId":"pay_%08x","orderId":"ORD-%06d","amount":{"value":"%d.%02d","currency":"%s"},"method":"%s"}`,
			s.rng.Uint32(), 48000+i, 5+s.rng.IntN(300), s.rng.IntN(100), s.pick("EUR", "EUR", "USD", "PLN"), s.pick("card", "card", "sepa", "paypal")))
		m.Properties.Set("NServiceBus.EnclosedMessageTypes", message.String("Acme.Payments.AuthorizePayment, Acme.Payments"))
		m.Properties.Set("attempt", message.Int(1))
		return m
	}
	s.add(wave{queue: "payments", count: 212, from: outageBegin, until: outageEnd, make: charge, lives: 4 * time.Minute,
		end: exhausted(func(*message.Message) []message.Attribute {
			return exception("System.Net.Http.HttpRequestException",
				fmt.Sprintf("POST https://psp.example.com/v2/charges/ch_%08x timed out after 30000 ms (10.4.2.%d:443)", s.rng.Uint32(), 10+s.rng.IntN(4)),
				"   at Acme.Payments.PspClient.AuthorizeAsync(Charge charge) in /src/Payments/PspClient.cs:line 88\n"+
					"   at Acme.Payments.AuthorizePaymentHandler.Handle(AuthorizePayment message) in /src/Payments/AuthorizePaymentHandler.cs:line 41")
		})})
	s.add(wave{queue: "payments", count: 57, from: outageBegin + 2*time.Minute, until: outageEnd - 3*time.Minute, make: func(i int) *message.Message { return charge(1000 + i) },
		lives: 4 * time.Minute, end: exhausted(func(*message.Message) []message.Attribute {
			return exception("Acme.Payments.CircuitBrokenException",
				fmt.Sprintf("circuit 'psp' is open for another %d ms", 1000+s.rng.IntN(29000)),
				"   at Acme.Resilience.CircuitBreaker.Guard() in /src/Resilience/CircuitBreaker.cs:line 57")
		})})
	s.add(wave{queue: "payments", count: 9, from: 22 * time.Hour, until: 40 * time.Minute, make: func(i int) *message.Message { return charge(2000 + i) },
		lives: time.Second, end: buried("CardDeclined", func(*message.Message) string {
			return fmt.Sprintf("The issuer declined charge ch_%08x: %s", s.rng.Uint32(), s.pick("insufficient_funds", "expired_card"))
		})})
	s.add(wave{queue: "payments", count: 7, from: 90 * time.Second, until: 5 * time.Second, make: func(i int) *message.Message { return charge(3000 + i) }})
}

// orders: what waits for a payment is given up by name; and one poison message that was
// resubmitted twice by hand comes back each time.
func (s *incident) orders() {
	order := func(i int) *message.Message {
		m := s.json("order", i, fmt.Sprintf(`{"orderId":"ORD-%06d","customer":{"id":%d,"country":"%s"},"lines":[{"sku":"SKU-%04d","qty":%d}],"placedAt":"%s"}`,
			48000+i, 1000+s.rng.IntN(9000), s.pick("DE", "FR", "PL", "NL"), s.rng.IntN(2000), 1+s.rng.IntN(4), s.now.Add(-outageBegin).UTC().Format(time.RFC3339)))
		m.SessionID = nil
		m.Properties.Set("priority", message.Bool(s.rng.IntN(8) == 0))
		return m
	}
	s.add(wave{queue: "orders", count: 88, from: outageBegin - 5*time.Minute, until: outageEnd - 4*time.Minute, make: order, lives: 2 * time.Second,
		end: buried("PaymentUnavailable", func(m *message.Message) string {
			return fmt.Sprintf("No authorization for %s within 60 s; payments answered 503 (request %s)", message.FormatValue(m.ID), s.uuid())
		})})
	poison := []byte(`{"orderId":"ORD-031337","customer":{"id":4711},"lines":[{"sku":"` + "\x1b]0;owned\x07\x1b[31mSKU-0666\x1b[0m" + `","qty":-1}]`)
	s.add(wave{queue: "orders", count: 3, from: 9 * time.Hour, until: 30 * time.Minute, lives: 90 * time.Second,
		make: func(i int) *message.Message {
			m := s.json("order", 31337, "")
			m.ID = message.String(fmt.Sprintf("order-031337-try-%d", i+1))
			m.Body = message.DataBody(poison)
			return m
		},
		end: exhausted(func(*message.Message) []message.Attribute {
			return []message.Attribute{
				{Name: "MT-Fault-ExceptionType", Value: message.String("System.Text.Json.JsonException")},
				{Name: "MT-Fault-Message", Value: message.String("'0x1B' is invalid within a JSON string. Path: $.lines[0].sku | LineNumber: 0 | BytePositionInLine: 64.")},
				{Name: "MT-Fault-ConsumerType", Value: message.String("Acme.Orders.PlaceOrderConsumer")},
			}
		})})
	s.add(wave{queue: "orders", count: 14, from: 4 * time.Minute, until: 3 * time.Second, make: func(i int) *message.Message { return order(5000 + i) }})
}

// shipping: labels are worth something for a quarter of an hour only.
func (s *incident) shipping() {
	const life = 15 * time.Minute
	label := func(i int) *message.Message {
		m := s.json("label", i, fmt.Sprintf(`{"parcel":"P%09d","carrier":"%s","weightGrams":%d}`,
			s.rng.IntN(1e9), s.pick("dhl", "dpd", "inpost"), 100+s.rng.IntN(9000)))
		ttl := life
		m.TTL = &ttl
		return m
	}
	s.add(wave{queue: "shipping", count: 46, from: outageBegin - 20*time.Minute, until: outageEnd + 10*time.Minute, make: label,
		lives: life - time.Second, end: buried("TTLExpiredException", always("The message expired and was dead lettered."))})
	s.add(wave{queue: "shipping", count: 3, from: 2 * time.Minute, until: 20 * time.Second, make: label})
}

// notifications: a deployment made a field compulsory that half of the senders do not know.
func (s *incident) notifications() {
	mail := func(i int) *message.Message {
		return s.json("mail", i, fmt.Sprintf(`{"template":"%s","recipient":{"email":"user%d@example.com"}}`,
			s.pick("order-confirmed", "parcel-sent", "password-reset"), s.rng.IntN(5000)))
	}
	s.add(wave{queue: "notifications", count: 41, from: 5 * time.Hour, until: 15 * time.Minute, make: mail, lives: time.Second,
		end: buried("DeserializationFailed", func(m *message.Message) string {
			return fmt.Sprintf("Newtonsoft.Json.JsonSerializationException: Required property 'locale' not found in JSON. Path 'recipient', line 1, position %d.", m.Body.Len()-1)
		})})
	s.add(wave{queue: "notifications", count: 5, from: time.Minute, until: 2 * time.Second, make: func(i int) *message.Message {
		m := mail(900 + i)
		at := s.now.Add(time.Duration(6+i) * time.Hour).UTC()
		m.ScheduledEnqueueTime = &at
		return m
	}})
}

// billing: an XML interface that validates.
func (s *incident) billing() {
	s.add(wave{queue: "billing/invoices", count: 17, from: 26 * time.Hour, until: 50 * time.Minute, lives: time.Second,
		make: func(i int) *message.Message {
			m := s.json("invoice", i, "")
			kind := "application/xml"
			m.ContentType = &kind
			m.Body = message.DataBody(fmt.Appendf(nil, `<?xml version="1.0" encoding="utf-8"?><Invoice xmlns="urn:example:invoice:3"><Number>%d</Number><TaxNo>DE%09d</TaxNo><Total currency="EUR">%d.%02d</Total></Invoice>`,
				202600000+i, s.rng.IntN(1e9), 10+s.rng.IntN(900), s.rng.IntN(100)))
			return m
		},
		end: buried("SchemaValidation", func(m *message.Message) string {
			return fmt.Sprintf("cvc-complex-type.2.4.a: invalid content was found starting with element 'TaxNo' (line 1, column %d)", 96+m.Body.Len()%7)
		})})
	s.add(wave{queue: "billing/refunds", count: 2, from: 30 * time.Minute, until: time.Minute, make: func(i int) *message.Message {
		return s.json("refund", i, fmt.Sprintf(`{"refund":%d}`, i))
	}})
}

// imports: everything that other systems throw over the wall, which is the corpus.
func (s *incident) imports(samples []*message.Message) {
	if len(samples) == 0 {
		return
	}
	s.add(wave{queue: "imports", count: len(samples), from: 8 * time.Hour, until: 35 * time.Minute, lives: time.Second,
		make: func(i int) *message.Message {
			m := samples[i].Clone()
			if m.ID == nil {
				m.ID = message.String(fmt.Sprintf("import-%02d", i))
			}
			return m
		},
		end: func(ctx context.Context, b backends.Backend, id backends.EntityID, m *message.Message) error {
			reason, description := m.DeadLetterReason(), m.DeadLetterDescription()
			if reason == "" {
				reason, description = "UnreadableBody", "no parser accepted the body"
			}
			return buried(reason, always(description))(ctx, b, id, m)
		}})
}

// json makes a message as the services of the story send them.
func (s *incident) json(kind string, i int, body string) *message.Message {
	contentType, subject := "application/json", kind
	m := &message.Message{
		ID: message.String(fmt.Sprintf("%s-%06d", kind, i)), ContentType: &contentType, Subject: &subject,
		Body: message.DataBody([]byte(body)),
	}
	m.Properties.Set("tenant", message.String(s.pick("acme", "acme", "globex", "initech")))
	m.Properties.Set("traceparent", message.String(fmt.Sprintf("00-%016x%016x-%016x-01", s.rng.Uint64(), s.rng.Uint64(), s.rng.Uint64())))
	return m
}

// exception is what NServiceBus leaves in the headers of a failed message.
func exception(kind, text, stack string) []message.Attribute {
	return []message.Attribute{
		{Name: "NServiceBus.ExceptionInfo.ExceptionType", Value: message.String(kind)},
		{Name: "NServiceBus.ExceptionInfo.Message", Value: message.String(text)},
		{Name: "NServiceBus.ExceptionInfo.StackTrace", Value: message.String(kind + ": " + text + "\n" + stack)},
	}
}

func (s *incident) pick(choices ...string) string { return choices[s.rng.IntN(len(choices))] }

func (s *incident) uuid() string {
	var u message.UUID
	for i := range u {
		u[i] = byte(s.rng.UintN(256))
	}
	return u.String()
}
