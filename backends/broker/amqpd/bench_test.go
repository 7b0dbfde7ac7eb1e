package amqpd

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker"
	"dlq/backends/broker/store"
)

// benchServer serves an engine on disk and returns a session of go-amqp.
func benchServer(b *testing.B) *amqp.Session {
	b.Helper()
	s, err := store.Open(vfs.Default, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	engine, err := broker.Open(broker.Options{Store: s})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = engine.Close() })
	if err := engine.Create("orders", broker.Queue, broker.Defaults(broker.Queue, broker.ServiceBus)); err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	server := New(Options{Engine: engine})
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(nc)
		}
	}()
	conn, err := amqp.Dial(context.Background(), "amqp://"+l.Addr().String(), &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	session, err := conn.NewSession(context.Background(), nil)
	if err != nil {
		b.Fatal(err)
	}
	return session
}

// send sends n messages of 1 KiB from so many goroutines.
func send(b *testing.B, session *amqp.Session, n, flight int) {
	b.Helper()
	sender, err := session.NewSender(context.Background(), "orders", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer sender.Close(context.Background())
	body := make([]byte, 1024)
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for range flight {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := sender.Send(context.Background(), amqp.NewMessage(body), nil); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkSend(b *testing.B) {
	for _, flight := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint("flight=", flight), func(b *testing.B) {
			session := benchServer(b)
			b.ResetTimer()
			send(b, session, b.N, flight)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

func BenchmarkReceive(b *testing.B) {
	session := benchServer(b)
	send(b, session, b.N, 1000)
	receiver, err := session.NewReceiver(context.Background(), "orders", &amqp.ReceiverOptions{
		Credit: 1000, SettlementMode: amqp.ReceiverSettleModeFirst.Ptr(),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	var all sync.WaitGroup
	for range b.N {
		m, err := receiver.Receive(context.Background(), nil)
		if err != nil {
			b.Fatal(err)
		}
		all.Go(func() {
			if err := receiver.AcceptMessage(context.Background(), m); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
