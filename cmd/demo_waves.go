package cmd

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"dlq/backends/message"
)

// The incident, as hours before now: at 3h10m the payment provider began to time out, at
// 1h25m it was back. Payments died of ten deliveries each, orders gave up on payments, and
// one-time passwords waited longer than they lived. A deployment five hours ago broke the
// labels, and one order has been poisonous all the time.
const (
	outageBegin = 3*time.Hour + 10*time.Minute
	outageEnd   = time.Hour + 25*time.Minute
)

// waves is the story, queue by queue. The messages are those of the corpus with other
// numbers.
func (s *incident) waves() []wave {
	orders := []string{"order-payment-timeout-contoso", "order-payment-timeout-fabrikam", "order-payment-timeout-contoso", "order-payment-timeout-northwind"}
	out := []wave{
		{
			queue: "payments", count: 187, from: outageBegin, until: outageEnd, lives: 4 * time.Minute, together: 11,
			make: s.variations(orders...), end: exhausted(s.providerTimeout),
		},
		{
			queue: "payments", count: 52, from: outageBegin - 2*time.Minute, until: outageEnd + 3*time.Minute, lives: 4 * time.Minute, together: 11,
			make: s.variations(orders...), end: exhausted(s.circuitOpen),
		},
		{
			queue: "payments", count: 9, from: 22 * time.Hour, until: 40 * time.Minute, lives: time.Second,
			make: s.variations(orders...), end: buried(s.cardDeclined),
		},
		{queue: "payments", count: 7, from: 90 * time.Second, until: 5 * time.Second, make: s.variations(orders...)},

		{
			queue: "orders", count: 88, from: outageBegin - 5*time.Minute, until: outageEnd + 4*time.Minute, lives: 2 * time.Second,
			make: s.variations("order-gateway-exception"), end: buried(s.sampleCause("order-gateway-exception")),
		},
		{
			queue: "orders", count: 6, from: 20 * time.Hour, until: 20 * time.Minute, lives: time.Second,
			make: s.variations("order-validation-failed"), end: buried(s.sampleCause("order-validation-failed")),
		},
		{
			queue: "orders", count: 3, from: 9 * time.Hour, until: 30 * time.Minute, lives: 90 * time.Second,
			make: s.variations("poison-truncated-json"), end: exhausted(s.poison),
		},
		{queue: "orders", count: 14, from: 4 * time.Minute, until: 3 * time.Second, make: s.variations("order-gateway-exception")},

		{
			queue: "notifications", count: 46, from: outageBegin - 20*time.Minute, until: outageEnd + 10*time.Minute, lives: 29 * time.Second,
			make: s.variations("ttl-expired"), end: buried(s.sampleCause("ttl-expired")),
		},
		{queue: "notifications", count: 5, from: time.Minute, until: 2 * time.Second, make: s.later(s.variations("ttl-expired"), 6*time.Hour)},

		{
			queue: "shipping", count: 41, from: 5 * time.Hour, until: 15 * time.Minute, lives: time.Second,
			make: s.variations("node-type-error"), end: buried(s.sampleCause("node-type-error")),
		},
		{
			queue: "shipping", count: 11, from: 8 * time.Hour, until: 50 * time.Minute, lives: time.Second,
			make: s.variations("masstransit-fault"), end: buried(s.sampleCause("masstransit-fault")),
		},
		{queue: "shipping", count: 3, from: 2 * time.Minute, until: 20 * time.Second, make: s.variations("xml-shipment-one-line")},

		{
			queue: "billing/invoices", count: 17, from: 26 * time.Hour, until: 50 * time.Minute, lives: time.Second,
			make: s.variations("soap-invoice"), end: buried(s.sampleCause("soap-invoice")),
		},
		{queue: "audit", count: 64, from: 20 * time.Minute, until: 10 * time.Second, make: s.variations("trace-context")},
	}
	return append(out, s.imports()...)
}

// imports is a queue for what other systems throw over the wall: every message of the
// corpus once, as it is.
func (s *incident) imports() []wave {
	var names []string
	for name := range s.samples {
		names = append(names, name)
	}
	slices.Sort(names)
	const each = 7 * time.Minute
	var out []wave
	for i, name := range names {
		from := time.Duration(len(names)-i)*each + 35*time.Minute
		out = append(out, wave{
			queue: "imports", count: 1, from: from, until: from - each, lives: time.Second,
			make: func(int) *message.Message { return s.alive(name) }, end: s.sampleEnd(name),
		})
	}
	return out
}

// sampleEnd lets a message die as the sample did.
func (s *incident) sampleEnd(name string) ending {
	if s.samples[name].DeadLetterReason() == reasonMaxDeliveries {
		return exhausted(func() []message.Attribute { return nil })
	}
	return buried(s.sampleCause(name))
}

// alive returns a sample as it was before it died. What it was scheduled for lies behind it.
func (s *incident) alive(name string) *message.Message {
	m := s.samples[name].Clone()
	m.Broker = message.Broker{}
	if m.ScheduledEnqueueTime != nil {
		at := s.now.Add(-24 * time.Hour).UTC().Truncate(time.Millisecond)
		m.ScheduledEnqueueTime = &at
	}
	m.Properties.Delete(message.DeadLetterReasonProperty)
	m.Properties.Delete(message.DeadLetterDescriptionProperty)
	return m
}

// number is the part of the samples that tells one order from the next.
var number = regexp.MustCompile(`O-[0-9]{5}`)

// variations makes messages like the samples, in turn, each with an ID and an order of its own.
func (s *incident) variations(names ...string) func(int) *message.Message {
	return func(i int) *message.Message {
		m := s.alive(names[i%len(names)])
		m.ID = message.String(s.uuid())
		order := fmt.Appendf(nil, "O-%05d", 50000+s.rng.IntN(40000))
		m.Body = message.Body{Kind: m.Body.Kind}
		for _, section := range s.samples[names[i%len(names)]].Body.Sections {
			m.Body.Sections = append(m.Body.Sections, number.ReplaceAll(section, order))
		}
		return m
	}
}

// later makes messages that are scheduled, an hour between one and the next.
func (s *incident) later(next func(int) *message.Message, from time.Duration) func(int) *message.Message {
	return func(i int) *message.Message {
		m := next(i)
		at := s.now.Add(from + time.Duration(i)*time.Hour).UTC().Truncate(time.Millisecond)
		m.ScheduledEnqueueTime = &at
		return m
	}
}

// sampleCause is what the sample died of, said of the order at hand.
func (s *incident) sampleCause(name string) func(*message.Message) (reason, description string) {
	sample := s.samples[name]
	return func(m *message.Message) (string, string) {
		order := number.Find(m.Body.Bytes())
		return sample.DeadLetterReason(), number.ReplaceAllString(sample.DeadLetterDescription(), string(order))
	}
}

func (s *incident) cardDeclined(*message.Message) (reason, description string) {
	return "CardDeclined", fmt.Sprintf("the issuer declined charge %d: %s", s.rng.Uint32(), s.pick("insufficient_funds", "expired_card"))
}

// providerTimeout is what NServiceBus notes when the payment provider does not answer. The
// broker's own reason names no cause.
func (s *incident) providerTimeout() []message.Attribute {
	return exception("System.TimeoutException",
		fmt.Sprintf("POST https://psp.example/v2/charges/%d gave no answer within 00:00:30 (10.4.2.%d:443)", s.rng.Uint32(), 10+s.rng.IntN(4)),
		"   at Contoso.Payments.ProviderClient.AuthorizeAsync(Charge charge) in /src/Payments/ProviderClient.cs:line 88\n"+
			"   at Contoso.Payments.AuthorizeHandler.Handle(Authorize message) in /src/Payments/AuthorizeHandler.cs:line 41")
}

func (s *incident) circuitOpen() []message.Attribute {
	return exception("Contoso.Resilience.CircuitOpenException",
		fmt.Sprintf("circuit 'psp' stays open for another %d ms", 1000+s.rng.IntN(29000)),
		"   at Contoso.Resilience.Circuit.Guard() in /src/Resilience/Circuit.cs:line 57")
}

// poison is what MassTransit notes of a body that no consumer can read.
func (s *incident) poison() []message.Attribute {
	sample := s.samples["poison-truncated-json"]
	return []message.Attribute{
		{Name: "MT-Fault-ExceptionType", Value: message.String(sample.DeadLetterReason())},
		{Name: "MT-Fault-Message", Value: message.String(sample.DeadLetterDescription())},
		{Name: "MT-Fault-ConsumerType", Value: message.String("Contoso.Orders.PlaceOrderConsumer")},
	}
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
