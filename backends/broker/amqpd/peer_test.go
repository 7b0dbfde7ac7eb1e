package amqpd

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/message"
)

// patience is how long a test waits for what comes at once; only one that fails waits so long.
const patience = 20 * time.Second

// peer is a client that says exactly what a test wants, frame by frame.
type peer struct {
	testing.TB
	nc  net.Conn
	buf []byte
}

// dial connects and sends so many bytes as they are.
func (b *bench) dial(raw string) *peer {
	b.Helper()
	nc, err := net.Dial("tcp", b.addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = nc.Close() })
	p := &peer{TB: b.TB, nc: nc}
	p.write([]byte(raw))
	return p
}

// open connects without SASL and opens the connection.
func (b *bench) open() *peer {
	b.Helper()
	p := b.dial(amqp.ProtocolHeader)
	p.header(amqp.ProtocolHeader)
	p.send(0, &amqp.Open{ContainerID: "test"}, nil)
	want[*amqp.Open](p)
	return p
}

// begin connects and begins a session on channel 0.
func (b *bench) begin() *peer {
	b.Helper()
	p := b.open()
	p.send(0, &amqp.Begin{IncomingWindow: 1000, OutgoingWindow: 1000}, nil)
	want[*amqp.Begin](p)
	return p
}

func (p *peer) write(b []byte) {
	p.Helper()
	if _, err := p.nc.Write(b); err != nil {
		p.Fatal(err)
	}
}

func (p *peer) header(want string) {
	p.Helper()
	_ = p.nc.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(want))
	if _, err := io.ReadFull(p.nc, got); err != nil || string(got) != want {
		p.Fatalf("the protocol header is %q (%v), want %q", got, err, want)
	}
}

func (p *peer) send(channel uint16, f amqp.Performative, payload []byte) {
	p.Helper()
	b, err := amqp.AppendFrame(nil, amqp.FrameAMQP, channel, f, payload)
	if err != nil {
		p.Fatal(err)
	}
	p.write(b)
}

// next returns the next frame that says something; nil: the connection has ended.
func (p *peer) next() (amqp.Performative, []byte) {
	p.Helper()
	for {
		_ = p.nc.SetReadDeadline(time.Now().Add(patience))
		var head [amqp.FrameHeaderSize]byte
		_, err := io.ReadFull(p.nc, head[:])
		if errors.Is(err, io.EOF) || isReset(err) {
			return nil, nil
		}
		if err != nil {
			p.Fatalf("read a frame: %v", err)
		}
		h, err := amqp.ParseFrameHeader(head[:], 1<<20)
		if err != nil {
			p.Fatal(err)
		}
		body := make([]byte, h.Size-amqp.FrameHeaderSize)
		if _, err := io.ReadFull(p.nc, body); err != nil {
			p.Fatal(err)
		}
		if len(body) == 0 {
			continue
		}
		f, payload, err := amqp.DecodePerformative(body)
		if err != nil {
			p.Fatal(err)
		}
		return f, payload
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}

// want returns the next frame of a type. Flows, which the server sends as it sees fit, are
// passed over.
func want[T amqp.Performative](p *peer) T {
	p.Helper()
	f, _ := wantWith[T](p)
	return f
}

func wantWith[T amqp.Performative](p *peer) (T, []byte) {
	p.Helper()
	for {
		f, payload := p.next()
		if got, ok := f.(T); ok {
			return got, payload
		}
		if _, ok := f.(*amqp.Flow); !ok {
			var none T
			p.Fatalf("got %T %+v, want %T", f, f, none)
		}
	}
}

// wantError checks the condition of an error.
func (p *peer) wantError(e *amqp.Error, condition message.Symbol) {
	p.Helper()
	if e == nil || e.Condition != condition {
		p.Fatalf("the error is %v, want %s", e, condition)
	}
}

// sender attaches a link on which the peer sends.
func (p *peer) sender(handle uint32, address string) *amqp.Attach {
	p.Helper()
	p.send(0, &amqp.Attach{
		Name: "s", Handle: handle, Role: amqp.RoleSender, Source: &amqp.Source{}, Target: &amqp.Target{Address: message.String(address)},
		InitialDeliveryCount: amqp.Some[uint32](0),
	}, nil)
	return want[*amqp.Attach](p)
}

// receiver attaches a link on which the peer receives, and gives it credit.
func (p *peer) receiver(handle uint32, address string, credit uint32) *amqp.Attach {
	p.Helper()
	p.send(0, &amqp.Attach{
		Name: "r", Handle: handle, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: message.String(address)}, Target: &amqp.Target{},
		ReceiverMode: amqp.Some[uint8](amqp.ReceiverSecond),
	}, nil)
	a := want[*amqp.Attach](p)
	if credit > 0 {
		p.credit(handle, 0, credit, false)
	}
	return a
}

func (p *peer) credit(handle, count, credit uint32, drain bool) {
	p.Helper()
	p.send(0, &amqp.Flow{
		NextIncomingID: amqp.Some[uint32](0), IncomingWindow: 1000, OutgoingWindow: 1000, Handle: amqp.Some(handle),
		DeliveryCount: amqp.Some(count), LinkCredit: amqp.Some(credit), Drain: drain,
	}, nil)
}

// transfer sends a delivery in one frame.
func (p *peer) transfer(handle, id uint32, payload []byte) {
	p.Helper()
	p.send(0, &amqp.Transfer{
		Handle: handle, DeliveryID: amqp.Some(id), DeliveryTag: []byte{byte(id)}, MessageFormat: amqp.Some[uint32](0),
	}, payload)
}

// encoded is a message with a body as it goes over the wire.
func encoded(t testing.TB, body string) []byte {
	t.Helper()
	b, err := amqp.AppendMessage(nil, &message.Message{ID: message.String(body[:min(len(body), 10)]), Body: message.DataBody([]byte(body))})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
