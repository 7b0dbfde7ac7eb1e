package broker

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"dlq/backends/message"
)

// The benchmarks of queues of SQS work by tens, as its batches do. Their bodies are random text
// of 1 KiB, so that they do not shrink when they are stored.

// kindsSQS are the kinds of queues: a FIFO queue has many groups.
var kindsSQS = []string{"standard", "fifo"}

// ten are messages to send. n makes what must be unique so.
func ten(kind string, n uint64) []*message.Message {
	msgs := make([]*message.Message, 10)
	for i := range msgs {
		at := (n*10 + uint64(i)) * 0x9e3779b97f4a7c15
		body := make([]byte, 1024)
		for j := range body {
			at ^= at << 13
			at ^= at >> 7
			at ^= at << 17
			body[j] = byte(' ' + at%95)
		}
		msgs[i] = &message.Message{ID: message.UUID(body[:16]), Body: message.DataBody(body)}
		if kind == "fifo" {
			msgs[i].SessionID = new(fmt.Sprint(n % 1000))
			msgs[i].System = []message.Attribute{{Name: DeduplicationIDAttribute, Value: message.String(fmt.Sprint(n*10 + uint64(i)))}}
		}
	}
	return msgs
}

func createSQS(b *testing.B, e *Engine, kind string) {
	p := Defaults(Queue, SQS)
	name := benchQueue.Name
	p.setFIFO(kind == "fifo")
	if kind == "fifo" {
		name += fifoSuffix
	}
	if err := e.Create(name, Queue, p); err != nil {
		b.Fatal(err)
	}
}

func benchAddress(kind string) Address {
	if kind == "fifo" {
		return Address{Name: benchQueue.Name + fifoSuffix}
	}
	return benchQueue
}

// BenchmarkReceiveDelete receives and deletes by tens, durably. What is deleted is sent again
// when half of it is gone, which does not count. The messages of the deep queue were written
// long ago.
func BenchmarkReceiveDelete(b *testing.B) {
	for _, kind := range kindsSQS {
		for _, depth := range depths {
			dir := b.TempDir()
			e := openDisk(b, dir)
			createSQS(b, e, kind)
			a := benchAddress(kind)
			var sent atomic.Uint64
			send := func(tens int) {
				inTurn(16, tens, func() {
					errs, err := refusals(e.Send(a, ten(kind, sent.Add(1))))
					if err := errors.Join(append(errs, err)...); err != nil {
						b.Error(err)
					}
				})
			}
			send(depth / 10)
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
			e = openDisk(b, dir)
			for from := int64(0); from < int64(depth); from += 1000 { // see BenchmarkDepth
				if _, err := e.Peek(a, PeekOptions{From: from, Max: 1000}); err != nil {
					b.Fatal(err)
				}
			}
			for _, callers := range []int{1, 16} {
				b.Run(fmt.Sprintf("%s/depth=%d/callers=%d", kind, depth, callers), func(b *testing.B) {
					b.ReportAllocs()
					gone := 0
					for n := 0; n < b.N; {
						some := min(b.N-n, depth/20-gone)
						inTurn(callers, some, func() {
							if err := receiveDelete(e, a); err != nil {
								b.Error(err)
							}
						})
						n, gone = n+some, gone+some
						b.StopTimer()
						if gone == depth/20 || n == b.N {
							send(gone)
							gone = 0
						}
						b.StartTimer()
					}
					b.ReportMetric(float64(b.N)*10/b.Elapsed().Seconds(), "msg/s")
				})
			}
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// receiveDelete receives ten messages and deletes them.
func receiveDelete(e *Engine, a Address) error {
	msgs, err := e.Receive(a, ReceiveOptions{Max: 10})
	if err != nil {
		return err
	}
	deliveries := make([]Delivery, len(msgs))
	for i, m := range msgs {
		deliveries[i] = receipt(m)
	}
	if len(msgs) == 0 {
		return fmt.Errorf("%s has nothing to receive", a.Name)
	}
	errs, err := e.SettleDelivery(a, Outcome{Action: Complete}, deliveries...)
	return errors.Join(append(errs, err)...)
}

// inTurn runs f n times, by several at once.
func inTurn(callers, n int, f func()) {
	var next atomic.Int64
	done := make(chan struct{})
	for range callers {
		go func() {
			for next.Add(1) <= int64(n) {
				f()
			}
			done <- struct{}{}
		}()
	}
	for range callers {
		<-done
	}
}
