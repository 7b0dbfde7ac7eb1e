package amqpd

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// FuzzConnection throws bytes at the server behind an open connection with a session: it
// neither panics nor hangs, whatever they are, and what it answers are frames.
func FuzzConnection(f *testing.F) {
	s, err := store.Open(vfs.NewMem(), "data")
	if err != nil {
		f.Fatal(err)
	}
	engine, err := broker.Open(broker.Options{Store: s})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = engine.Close() })
	for name, change := range map[string]func(*broker.Properties){
		"orders": func(*broker.Properties) {}, "steps": func(p *broker.Properties) { p.RequiresSession = true },
	} {
		p := broker.Defaults(broker.Queue, broker.ServiceBus)
		change(&p)
		p.MaxSize = 1 << 20
		if err := engine.Create(name, broker.Queue, p); err != nil {
			f.Fatal(err)
		}
	}
	server := New(Options{Engine: engine, Limits: Limits{Held: 1 << 20, OpenTimeout: time.Second}})
	for _, seed := range fuzzSeeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		client, side := net.Pipe()
		ended := make(chan struct{})
		go func() {
			server.ServeConn(side)
			close(ended)
		}()
		go func() {
			begin := []byte(amqp.ProtocolHeader)
			begin, _ = amqp.AppendFrame(begin, amqp.FrameAMQP, 0, &amqp.Open{ContainerID: "fuzz"}, nil)
			begin, _ = amqp.AppendFrame(begin, amqp.FrameAMQP, 0, &amqp.Begin{IncomingWindow: 10, OutgoingWindow: 10}, nil)
			_, _ = client.Write(append(begin, b...)) // the server may have hung up
			finish, _ := amqp.AppendFrame(nil, amqp.FrameAMQP, 0, &amqp.Close{}, nil)
			_, _ = client.Write(finish)
			// What was begun and not finished would keep the server waiting.
			_ = client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		}()
		answer, err := io.ReadAll(client)
		if err != nil && len(answer) == 0 {
			t.Fatalf("the server said nothing: %v", err)
		}
		_ = client.Close()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("the server hangs")
		}
		checkFrames(t, answer[len(amqp.ProtocolHeader):])
	})
}

// checkFrames checks that an answer is made of whole frames but for the last, which may be cut
// off with the connection.
func checkFrames(t *testing.T, b []byte) {
	t.Helper()
	for len(b) >= amqp.FrameHeaderSize {
		h, err := amqp.ParseFrameHeader(b, 65536)
		if err != nil {
			t.Fatalf("the answer is no frame: %v", err)
		}
		if int(h.Size) > len(b) {
			return
		}
		if h.Size > amqp.FrameHeaderSize {
			if _, _, err := amqp.DecodePerformative(b[h.Offset:h.Size]); err != nil {
				t.Fatalf("the answer holds no performative: %v", err)
			}
		}
		b = b[h.Size:]
	}
}

// fuzzSeeds are conversations that do something.
func fuzzSeeds(f *testing.F) [][]byte {
	frames := func(all ...amqp.Performative) []byte {
		var b []byte
		for _, p := range all {
			var payload []byte
			if _, ok := p.(*amqp.Transfer); ok {
				payload = encoded(f, "message")
			}
			var err error
			if b, err = amqp.AppendFrame(b, amqp.FrameAMQP, 0, p, payload); err != nil {
				f.Fatal(err)
			}
		}
		return b
	}
	sender := func(address string) *amqp.Attach {
		return &amqp.Attach{Name: "s", Handle: 0, Source: &amqp.Source{}, Target: &amqp.Target{Address: message.String(address)}}
	}
	receiver := func(address string) *amqp.Attach {
		return &amqp.Attach{Name: "r", Handle: 1, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: message.String(address)}, Target: &amqp.Target{}}
	}
	transfer := &amqp.Transfer{DeliveryID: amqp.Some[uint32](0), DeliveryTag: []byte("t")}
	credit := &amqp.Flow{IncomingWindow: 10, Handle: amqp.Some[uint32](1), LinkCredit: amqp.Some[uint32](5), Drain: true}
	steps := receiver("steps")
	steps.Source.Filter = message.Map{{Key: sessionFilterName, Value: message.String("a")}}
	seeds := [][]byte{
		frames(sender("orders"), transfer, receiver("orders"), credit, &amqp.Disposition{Role: amqp.RoleReceiver, State: &amqp.Accepted{}}),
		frames(steps, credit, &amqp.Detach{Handle: 1}),
		frames(sender("$cbs"), receiver("$cbs"), credit, transfer),
		frames(sender("orders/$management"), receiver("orders/$management"), credit, transfer),
		frames(&amqp.Attach{Name: "c", Coordinator: &amqp.Coordinator{}}, transfer, &amqp.Transfer{DeliveryID: amqp.Some[uint32](1), DeliveryTag: []byte("u"), State: &amqp.Transactional{ID: []byte("x")}}),
		frames(&amqp.End{}, &amqp.Begin{IncomingWindow: 1}),
	}
	return append(seeds, deep(40), frameOf(1<<32-1, 2, 0, 0, nil), whole(deep(33)))
}
