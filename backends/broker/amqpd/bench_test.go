package amqpd

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker"
	"dlq/backends/broker/store"
)

// The benchmarks of this file have one client of go-amqp, on one connection, send and receive
// durable messages of 1 KiB: from us on disk, and in the same run, since only ratios mean
// something, from what is in bench_floor_test.go and from RabbitMQ, if DLQ_BENCH_AMQP names
// one. For the figures of doc.go:
//
//	apt-get install -y --no-install-recommends rabbitmq-server
//	export RABBITMQ_NODENAME=bench@localhost RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT=5673 \
//		RABBITMQ_MNESIA_BASE=$PWD/bench RABBITMQ_LOG_BASE=$PWD/bench RABBITMQ_ENABLED_PLUGINS_FILE=$PWD/bench/plugins
//	mkdir bench && echo '[rabbitmq_amqp1_0].' >bench/plugins && chown -R rabbitmq bench
//	rabbitmq-server -detached
//	for kind in classic quorum; do rabbitmqctl eval "rabbit_amqqueue:declare(rabbit_misc:r(<<\"/\">>, queue, <<\"$kind\">>),
//		true, false, [{<<\"x-queue-type\">>, longstr, <<\"$kind\">>}], none, <<\"bench\">>)."; done
//	DLQ_BENCH_AMQP=amqp://guest:guest@127.0.0.1:5673 go test -run - -bench Send -benchtime 0.25s -count 3 ./backends/broker/amqpd
//	DLQ_BENCH_AMQP=amqp://guest:guest@127.0.0.1:5673 go test -run - -bench Receive -benchtime 4000x -count 3 ./backends/broker/amqpd
//	rabbitmqctl stop
//
// What was sent stays in RabbitMQ: purge its queues between the two. It stops sending after
// the 5000 deliveries of go-amqp's first session window, hence the 4000. With -count, the ratios
// printed are to the last run of the others; compare the medians.

// benchBody is the size of a message, in bytes.
const benchBody = 1024

// rival is a server to be measured.
type rival struct {
	name  string
	queue string
	serve func(b *testing.B) (url string)
	peer  bool // it is another process
}

// rivals are the servers of a run. We come last: the ratios are ours to the others.
func rivals() []rival {
	all := []rival{
		{name: "noop", queue: "orders", serve: func(b *testing.B) string { return serveFloor(b, false) }},
		{name: "log", queue: "orders", serve: func(b *testing.B) string { return serveFloor(b, true) }},
	}
	if url := os.Getenv("DLQ_BENCH_AMQP"); url != "" {
		for _, kind := range []string{"classic", "quorum"} {
			all = append(all, rival{name: kind, queue: "/amq/queue/" + kind, serve: func(*testing.B) string { return url }, peer: true})
		}
	}
	return append(all, rival{name: "dlq", queue: "orders", serve: serveBench})
}

// serveBench serves an engine on disk with one queue.
func serveBench(b *testing.B) string {
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
	return listenAndServe(b, New(Options{Engine: engine}).ServeConn)
}

// listenAndServe serves connections, and returns where.
func listenAndServe(b *testing.B, serve func(net.Conn)) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var all sync.WaitGroup
	b.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { serve(nc) })
		}
	})
	return "amqp://" + l.Addr().String()
}

// connect serves a rival and returns a session of go-amqp with it.
func (r rival) connect(b *testing.B) *amqp.Session {
	b.Helper()
	url := r.serve(b)
	o := &amqp.ConnOptions{}
	if !r.peer {
		o.SASLType = amqp.SASLTypeAnonymous()
	}
	conn, err := amqp.Dial(context.Background(), url, o)
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

// send sends n messages from so many goroutines.
func (r rival) send(b *testing.B, session *amqp.Session, n, flight int) {
	b.Helper()
	sender, err := session.NewSender(context.Background(), r.queue, nil) // it ends with the connection: RabbitMQ 3 answers no detach
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, benchBody)
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for range flight {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				m := amqp.NewMessage(body)
				m.Header = &amqp.MessageHeader{Durable: true}
				if err := sender.Send(context.Background(), m, nil); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// receive receives and accepts n messages with a credit of 1000. In the mode "second" each is
// settled only when the server has said so.
func (r rival) receive(b *testing.B, session *amqp.Session, n int, mode amqp.ReceiverSettleMode) {
	b.Helper()
	receiver, err := session.NewReceiver(context.Background(), r.queue, &amqp.ReceiverOptions{Credit: 1000, SettlementMode: mode.Ptr()})
	if err != nil {
		b.Fatal(err)
	}
	accept := func(m *amqp.Message) {
		if err := receiver.AcceptMessage(context.Background(), m); err != nil {
			b.Error(err)
		}
	}
	var all sync.WaitGroup
	for range n {
		m, err := receiver.Receive(context.Background(), nil)
		if err != nil {
			b.Fatal(err)
		}
		if mode == amqp.ReceiverSettleModeFirst {
			accept(m) // waits for nothing
		} else {
			all.Go(func() { accept(m) })
		}
	}
	all.Wait()
}

// compare runs a benchmark against all rivals, and reports how we compare.
func compare(b *testing.B, run func(b *testing.B, r rival, session *amqp.Session)) {
	b.Helper()
	rates := map[string]float64{}
	for _, r := range rivals() {
		b.Run(r.name, func(b *testing.B) {
			run(b, r, r.connect(b))
			rate := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "msg/s")
			b.ReportMetric(0, "ns/op")
			rates[r.name] = rate
			if r.name != "dlq" {
				return
			}
			for name, other := range rates {
				if name != "dlq" {
					b.ReportMetric(rate/other, "x-"+name)
				}
			}
		})
	}
}

// BenchmarkSend sends so many messages at a time.
func BenchmarkSend(b *testing.B) {
	for _, flight := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint("flight=", flight), func(b *testing.B) {
			compare(b, func(b *testing.B, r rival, session *amqp.Session) {
				b.ResetTimer()
				r.send(b, session, b.N, flight)
				b.StopTimer()
			})
		})
	}
}

// BenchmarkReceive receives and completes messages.
func BenchmarkReceive(b *testing.B) {
	modes := map[string]amqp.ReceiverSettleMode{"durable": amqp.ReceiverSettleModeSecond, "unwaited": amqp.ReceiverSettleModeFirst}
	for _, name := range []string{"durable", "unwaited"} {
		b.Run(name, func(b *testing.B) {
			compare(b, func(b *testing.B, r rival, session *amqp.Session) {
				mode := modes[name]
				if r.peer { // RabbitMQ 3 tells nobody that something is settled
					mode = amqp.ReceiverSettleModeFirst
				}
				r.send(b, session, b.N, 1000)
				b.ResetTimer()
				r.receive(b, session, b.N, mode)
				b.StopTimer()
			})
		})
	}
}
