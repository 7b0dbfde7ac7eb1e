package export

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"

	"dlq/backends/message"
)

// usual is a dead letter of the usual size: a JSON body of 1 KiB and ten properties.
func usual() *message.Message {
	text := func(s string) *string { return &s }
	m := &message.Message{
		ID: message.String("5f0c6a0e-7d0c-4b0e-9d53-0c7a3f2f9a11"), CorrelationID: message.String("c2a9f0a1"), Subject: text("OrderPlaced"),
		ContentType: text("application/json"), SessionID: text("acme"), To: text("orders"),
		Broker: message.Broker{SequenceNumber: 123456, EnqueuedTime: time.Date(2026, 3, 1, 9, 15, 2, 123e6, time.UTC), DeliveryCount: 10},
	}
	for _, name := range []string{"tenant", "Diagnostic-Id", "traceparent", "NServiceBus.EnclosedMessageTypes", "region"} {
		m.Properties.Set(name, message.String("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
		m.Properties.Set(name+".count", message.Long(len(name)))
	}
	line := `{"sku":"A-1042","quantity":3,"price":19.99,"currency":"EUR"},`
	m.Body = message.DataBody([]byte(`{"orderId":7,"lines":[` + string(bytes.Repeat([]byte(line), 1024/len(line))) + `{}]}`))
	return m
}

// document is what someone would write who exports with encoding/json.
type document struct {
	SequenceNumber int64                `json:"sequenceNumber"`
	EnqueuedTime   time.Time            `json:"enqueuedTime"`
	DeliveryCount  uint32               `json:"deliveryCount"`
	State          string               `json:"state"`
	MessageID      message.Value        `json:"messageId"`
	CorrelationID  message.Value        `json:"correlationId,omitempty"`
	Subject        *string              `json:"subject,omitempty"`
	ContentType    *string              `json:"contentType,omitempty"`
	SessionID      *string              `json:"sessionId,omitempty"`
	To             *string              `json:"to,omitempty"`
	Properties     map[string]typedJSON `json:"properties"`
	Body           string               `json:"body"`
}

type typedJSON struct {
	Type  string        `json:"type"`
	Value message.Value `json:"value"`
}

func documentOf(m *message.Message) document {
	d := document{
		m.Broker.SequenceNumber, m.Broker.EnqueuedTime, m.Broker.DeliveryCount, m.Broker.State.String(), m.ID, m.CorrelationID,
		m.Subject, m.ContentType, m.SessionID, m.To,
		map[string]typedJSON{},
		string(m.Body.Bytes()),
	}
	for _, a := range m.Properties {
		d.Properties[a.Name] = typedJSON{message.KindOf(a.Value).String(), a.Value}
	}
	return d
}

// BenchmarkExport writes the usual message, as JSONL and with encoding/json; "speedup" is
// how many times faster the former is. The target is 3.
func BenchmarkExport(b *testing.B) {
	m := usual()
	size := int64(len(write(b, JSONL, m)))
	var floor float64
	b.Run("encodingjson", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		enc := json.NewEncoder(io.Discard)
		for b.Loop() {
			if err := enc.Encode(documentOf(m)); err != nil {
				b.Fatal(err)
			}
		}
		floor = float64(b.Elapsed()) / float64(b.N)
	})
	for _, f := range []Format{JSONL, JSON, CSV} {
		b.Run(f.String(), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			w := NewWriter(io.Discard, f)
			for b.Loop() {
				if err := w.Write(m); err != nil {
					b.Fatal(err)
				}
			}
			if floor > 0 {
				b.ReportMetric(floor/(float64(b.Elapsed())/float64(b.N)), "speedup")
			}
		})
	}
}

func BenchmarkImport(b *testing.B) {
	line := write(b, JSONL, usual())
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	r := NewReader(&endless{text: line})
	for b.Loop() {
		if _, err := r.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

// endless repeats text.
type endless struct {
	text []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}
