package amqpd

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"dlq/backends/amqp"
	"dlq/backends/message"
)

// floor is as little of a server as a client can be measured against: it takes every
// transfer, delivers one message over and over, and remembers neither. With a log, it
// appends what it takes and what is settled, and answers when that is synced, all that came
// meanwhile by one sync.
type floor struct {
	nc   net.Conn
	body []byte   // of a delivery
	log  *os.File // nil: none

	mu        sync.Mutex
	out       []byte // frames that are not written
	delivered uint32
	credit    uint32 // of the receiver, until all of it is used
	taken     int    // transfers since credit was given

	todo, doing work
	more        *sync.Cond
	closed      bool
}

// work is what came since the last sync.
type work struct {
	record  []byte
	answers []amqp.Disposition
}

// serveFloor serves floors, and returns their address.
func serveFloor(b *testing.B, synced bool) string {
	b.Helper()
	body, err := amqp.AppendMessage(nil, &message.Message{Body: message.DataBody(make([]byte, benchBody))})
	if err != nil {
		b.Fatal(err)
	}
	var log *os.File
	if synced {
		if log, err = os.Create(filepath.Join(b.TempDir(), "log")); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = log.Close() })
	}
	return listenAndServe(b, func(nc net.Conn) {
		f := &floor{nc: nc, body: body, log: log}
		f.more = sync.NewCond(&f.mu)
		if err := f.serve(); err != nil && !errors.Is(err, io.EOF) {
			b.Log("floor:", err)
		}
	})
}

// serve answers one connection.
func (f *floor) serve() error {
	defer f.nc.Close()
	r := &frameReader{nc: f.nc, limit: 1 << 16}
	if err := f.begin(r); err != nil {
		return err
	}
	var syncing sync.WaitGroup
	if f.log != nil {
		syncing.Go(f.sync)
	}
	err := f.read(r)
	f.mu.Lock()
	f.closed = true
	f.more.Signal()
	f.mu.Unlock()
	syncing.Wait()
	return err
}

func (f *floor) read(r *frameReader) error {
	for {
		_, b, err := r.next(f.idle)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			continue
		}
		p, payload, err := amqp.DecodePerformative(b)
		if err != nil {
			return err
		}
		f.mu.Lock()
		ended := f.take(p, payload)
		f.mu.Unlock()
		if ended {
			f.idle()
			return nil
		}
	}
}

// begin is the exchange of headers and SASL.
func (f *floor) begin(r *frameReader) error {
	if _, err := r.header(); err != nil {
		return err
	}
	out, err := amqp.AppendFrame([]byte(amqp.SASLHeader), amqp.FrameSASL, 0, &amqp.SASLMechanisms{Mechanisms: []message.Symbol{"ANONYMOUS"}}, nil)
	if err != nil {
		return err
	}
	if _, err := f.nc.Write(out); err != nil {
		return err
	}
	if _, _, err := r.next(func() {}); err != nil {
		return err
	}
	if out, err = amqp.AppendFrame(nil, amqp.FrameSASL, 0, &amqp.SASLOutcome{}, nil); err != nil {
		return err
	}
	if _, err := f.nc.Write(out); err != nil {
		return err
	}
	if _, err := r.header(); err != nil {
		return err
	}
	_, err = f.nc.Write([]byte(amqp.ProtocolHeader))
	return err
}

// take answers one frame, and reports whether it was the last.
func (f *floor) take(p amqp.Performative, payload []byte) (ended bool) {
	switch p := p.(type) {
	case *amqp.Open:
		f.send(&amqp.Open{ContainerID: "floor", MaxFrameSize: amqp.Some[uint32](1 << 16)}, nil)
	case *amqp.Begin:
		f.send(&amqp.Begin{RemoteChannel: amqp.Some[uint16](0), IncomingWindow: 1 << 30, OutgoingWindow: 1 << 30}, nil)
	case *amqp.Attach:
		reply := *p
		reply.Role = !p.Role
		if reply.Role == amqp.RoleSender {
			reply.InitialDeliveryCount = amqp.Some[uint32](0)
		}
		f.send(&reply, nil)
		if reply.Role == amqp.RoleReceiver {
			f.grant(p.Handle, 0)
		}
	case *amqp.Flow:
		if p.Handle.Set && p.LinkCredit.Set {
			f.credit = p.DeliveryCount.Or(0) + p.LinkCredit.Value - f.delivered
			f.deliver(p.Handle.Value)
		}
	case *amqp.Transfer:
		f.answer(amqp.RoleReceiver, p.DeliveryID.Value, p.DeliveryID.Value, payload)
		if f.taken++; f.taken == intakeCredit/2 {
			f.grant(p.Handle, p.DeliveryID.Value+1)
		}
	case *amqp.Disposition:
		if p.Role == amqp.RoleReceiver && !p.Settled {
			f.answer(amqp.RoleSender, p.First, p.Last.Or(p.First), settlement)
		}
	case *amqp.Detach:
		f.send(&amqp.Detach{Handle: p.Handle, Closed: p.Closed}, nil)
	case *amqp.End:
		f.send(&amqp.End{}, nil)
	case *amqp.Close:
		f.send(&amqp.Close{}, nil)
		return true
	}
	return false
}

// settlement is what the log keeps of one.
var settlement = bytes.Repeat([]byte{1}, 16)

func (f *floor) send(p amqp.Performative, payload []byte) {
	f.out, _ = amqp.AppendFrame(f.out, amqp.FrameAMQP, 0, p, payload)
}

// grant gives the sender its credit, anew.
func (f *floor) grant(handle, count uint32) {
	f.taken = 0
	f.send(&amqp.Flow{
		NextIncomingID: amqp.Some(count), IncomingWindow: 1 << 30, OutgoingWindow: 1 << 30,
		Handle: amqp.Some(handle), DeliveryCount: amqp.Some(count), LinkCredit: amqp.Some[uint32](intakeCredit),
	}, nil)
}

// deliver uses up the receiver's credit.
func (f *floor) deliver(handle uint32) {
	for ; f.credit > 0; f.credit-- {
		tag := [16]byte{byte(f.delivered), byte(f.delivered >> 8), byte(f.delivered >> 16), byte(f.delivered >> 24)}
		f.send(&amqp.Transfer{
			Handle: handle, DeliveryID: amqp.Some(f.delivered), DeliveryTag: tag[:], MessageFormat: amqp.Some[uint32](0), Settled: amqp.Some(false),
		}, f.body)
		f.delivered++
		if len(f.out) > 1<<16 {
			f.flush()
		}
	}
}

// answer accepts or settles deliveries when it is time for that.
func (f *floor) answer(role bool, first, last uint32, record []byte) {
	if f.log != nil {
		f.todo.record = append(f.todo.record, record...)
	}
	n := len(f.todo.answers)
	if n > 0 && f.todo.answers[n-1].Role == role && f.todo.answers[n-1].Last.Value+1 == first {
		f.todo.answers[n-1].Last.Value = last
		return
	}
	f.todo.answers = append(f.todo.answers, amqp.Disposition{
		Role: role, First: first, Last: amqp.Some(last), Settled: true, State: accepted,
	})
}

// idle is called when all that has arrived was read.
func (f *floor) idle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.log == nil {
		f.tell(&f.todo)
	} else if len(f.todo.answers) > 0 {
		f.more.Signal()
	}
	f.flush()
}

func (f *floor) tell(w *work) {
	for i := range w.answers {
		f.send(&w.answers[i], nil)
	}
	w.answers, w.record = w.answers[:0], w.record[:0]
}

func (f *floor) flush() {
	if len(f.out) > 0 {
		_, _ = f.nc.Write(f.out) // what fails here fails to be read, too
		f.out = f.out[:0]
	}
}

// sync makes durable what has come, and answers it, until the connection has ended.
func (f *floor) sync() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		for len(f.todo.answers) == 0 && !f.closed {
			f.more.Wait()
		}
		if len(f.todo.answers) == 0 {
			return
		}
		f.todo, f.doing = f.doing, f.todo
		f.mu.Unlock()
		_, err := f.log.Write(f.doing.record)
		if err == nil {
			err = f.log.Sync()
		}
		f.mu.Lock()
		if err != nil {
			_ = f.nc.Close()
			return
		}
		f.tell(&f.doing)
		f.flush()
	}
}
