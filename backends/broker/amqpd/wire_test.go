package amqpd

import (
	"strings"
	"testing"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// A peer need not wait for an answer before it goes on (part 2, 2.4.1).
func TestPipelinedOpen(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, nil)
	all := []byte(amqp.ProtocolHeader)
	for _, f := range []struct {
		p       amqp.Performative
		payload []byte
	}{
		{&amqp.Open{ContainerID: "test"}, nil},
		{&amqp.Begin{IncomingWindow: 10, OutgoingWindow: 10}, nil},
		{&amqp.Attach{Name: "s", Role: amqp.RoleSender, Source: &amqp.Source{}, Target: &amqp.Target{Address: message.String("orders")}}, nil},
		{&amqp.Transfer{DeliveryID: amqp.Some[uint32](0), DeliveryTag: []byte("a"), MessageFormat: amqp.Some[uint32](0)}, encoded(t, "a")},
	} {
		var err error
		if all, err = amqp.AppendFrame(all, amqp.FrameAMQP, 0, f.p, f.payload); err != nil {
			t.Fatal(err)
		}
	}
	p := b.dial(string(all))
	p.header(amqp.ProtocolHeader)
	want[*amqp.Open](p)
	want[*amqp.Begin](p)
	want[*amqp.Attach](p)
	d := want[*amqp.Disposition](p)
	if _, ok := d.State.(*amqp.Accepted); !ok || !d.Settled || d.Role != amqp.RoleReceiver {
		t.Errorf("the disposition is %+v", d)
	}
}

func TestSASL(t *testing.T) {
	b := newBench(t, nil)
	for _, test := range []struct {
		mechanism string
		response  []byte
		outcome   uint8
	}{
		{"ANONYMOUS", []byte("anonymous"), 0},
		{"ANONYMOUS", nil, 0},
		{"MSSBCBS", nil, 0},
		{"EXTERNAL", nil, 0},
		{"PLAIN", []byte("\x00user\x00pass"), 0},
		{"PLAIN", []byte("user"), 1},
		{"SCRAM-SHA-1", nil, 1},
	} {
		p := b.dial(amqp.SASLHeader)
		p.header(amqp.SASLHeader)
		offered := want[*amqp.SASLMechanisms](p)
		if len(offered.Mechanisms) != 4 || offered.Mechanisms[3] != "EXTERNAL" {
			t.Errorf("the mechanisms are %v", offered.Mechanisms)
		}
		f, err := amqp.AppendFrame(nil, amqp.FrameSASL, 0, &amqp.SASLInit{Mechanism: test.mechanism, InitialResponse: test.response}, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.write(f)
		if got := want[*amqp.SASLOutcome](p); got.Code != test.outcome {
			t.Errorf("%s %q: outcome %d, want %d", test.mechanism, test.response, got.Code, test.outcome)
		}
	}
	p := b.dial(amqp.TLSHeader)
	p.header(amqp.SASLHeader) // what it is to say instead
	if f, _ := p.next(); f != nil {
		t.Errorf("after an unknown protocol came %T", f)
	}
}

// A link that is refused is attached without source and target, and detached at once.
func TestRefusedAttach(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, nil)
	b.create("off", broker.Queue, func(p *broker.Properties) { p.Status = broker.Disabled })
	b.create("steps", broker.Queue, func(p *broker.Properties) { p.RequiresSession = true })
	b.create("news", broker.Topic, nil)
	b.create("news/Subscriptions/all", broker.Subscription, nil)
	filter := func(v message.Value) *amqp.Source {
		return &amqp.Source{Filter: message.Map{{Key: sessionFilterName, Value: v}}}
	}
	for _, test := range []struct {
		name      string
		role      bool
		address   string
		source    *amqp.Source
		condition message.Symbol
		text      string
	}{
		{"send to nothing", amqp.RoleSender, "none", nil, "amqp:not-found", "could not be found"},
		{"receive from nothing", amqp.RoleReceiver, "none/$DeadLetterQueue", nil, "amqp:not-found", "could not be found"},
		{"send to a disabled queue", amqp.RoleSender, "off", nil, "com.microsoft:entity-disabled", "disabled"},
		{"receive from a disabled queue", amqp.RoleReceiver, "off", nil, "com.microsoft:entity-disabled", "disabled"},
		{"send to a subscription", amqp.RoleSender, "news/Subscriptions/all", nil, "amqp:not-allowed", "message sender for a subscription"},
		{"send to dead letters", amqp.RoleSender, "orders/$deadletterqueue", nil, "amqp:not-allowed", ""},
		{"receive from a topic", amqp.RoleReceiver, "news", nil, "amqp:not-allowed", ""},
		{"receive without a session", amqp.RoleReceiver, "steps", nil, "amqp:not-allowed", "non-sessionful message receiver"},
		{"a session of a queue without", amqp.RoleReceiver, "orders", filter(message.String("a")), "amqp:not-allowed", "to create a sessionful message receiver"},
		{"a session of dead letters", amqp.RoleReceiver, "steps/$DeadLetterQueue", filter(message.String("a")), "amqp:not-allowed", "sessionful"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := b.begin()
			a := &amqp.Attach{Name: "l", Handle: 3, Role: test.role, Source: test.source, Target: &amqp.Target{}}
			if a.Source == nil {
				a.Source = &amqp.Source{}
			}
			a.Source.Address, a.Target.Address = message.String(test.address), message.String(test.address)
			p.send(0, a, nil)
			got := want[*amqp.Attach](p)
			if got.Source != nil || got.Target != nil || got.Role == test.role || got.Handle != 3 || got.Name != "l" {
				t.Errorf("the attach is %+v", got)
			}
			d := want[*amqp.Detach](p)
			p.wantError(d.Error, test.condition)
			if !d.Closed || !strings.Contains(d.Error.Description, test.text) || !strings.Contains(d.Error.Description, " TrackingId:") {
				t.Errorf("the detach is %+v", d.Error)
			}
			// The peer answers, and can use the handle again.
			p.send(0, &amqp.Detach{Handle: 3, Closed: true}, nil)
			if a := p.receiver(3, "/ORDERS", 0); a.Source == nil || a.Source.Address != message.String("/ORDERS") {
				t.Errorf("the address came back as %+v", a.Source)
			}
		})
	}
}

// What the peer asks for is echoed as it is; what the server adds has fixed types.
func TestAttachEchoes(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, func(p *broker.Properties) { p.MaxMessageBytes = 262144 })
	p := b.begin()
	p.send(0, &amqp.Attach{
		Name: "s", Handle: 1, Role: amqp.RoleSender, SenderMode: amqp.Some[uint8](amqp.SenderMixed), ReceiverMode: amqp.Some[uint8](amqp.ReceiverFirst),
		Source: &amqp.Source{Address: message.String("me")}, Target: &amqp.Target{Address: message.String("amqps://host:1/Orders")},
	}, nil)
	a := want[*amqp.Attach](p)
	size, _ := a.Properties.Get("com.microsoft:max-message-batch-size")
	if a.MaxMessageSize.Value != 262144 || size != message.Ulong(1<<20) || a.SenderMode.Value != amqp.SenderMixed || !a.ReceiverMode.Set ||
		a.Target.Address != message.String("amqps://host:1/Orders") || a.Source.Address != message.String("me") {
		t.Errorf("the attach is %+v", a)
	}
	f, _ := p.next()
	if flow, ok := f.(*amqp.Flow); !ok || flow.LinkCredit.Value == 0 || !flow.NextIncomingID.Set {
		t.Errorf("after the attach came %+v, want credit", f)
	}
	a = p.receiver(2, "sb://host/orders/$DeadLetterQueue", 0)
	if a.InitialDeliveryCount != amqp.Some[uint32](0) || a.ReceiverMode.Value != amqp.ReceiverSecond {
		t.Errorf("the attach is %+v", a)
	}
}

func TestSessionFilterIsEchoedInKind(t *testing.T) {
	b := newBench(t, nil)
	b.create("steps", broker.Queue, func(p *broker.Properties) { p.RequiresSession = true })
	id := "one"
	if _, err := b.engine.Send(broker.Address{Name: "steps"}, []*message.Message{{SessionID: &id}}); err != nil {
		t.Fatal(err)
	}
	goFilter := func(v message.Value) message.Value {
		return message.Described{Descriptor: message.Ulong(0x137000000C), Value: v}
	}
	for _, test := range []struct{ asked, granted message.Value }{
		{message.String("two"), message.String("two")},
		{message.String(""), message.String("")},
		{goFilter(message.String("three")), goFilter(message.String("three"))},
		{goFilter(message.Null{}), goFilter(message.String("one"))},
		{message.Null{}, message.String("one")},
	} {
		p := b.begin()
		p.send(0, &amqp.Attach{Name: "r", Role: amqp.RoleReceiver, Target: &amqp.Target{}, Source: &amqp.Source{
			Address: message.String("steps"), Filter: message.Map{{Key: sessionFilterName, Value: test.asked}},
		}}, nil)
		a := want[*amqp.Attach](p)
		got, _ := a.Source.Filter.Get(sessionFilterName)
		if !message.EqualValues(got, test.granted) {
			t.Errorf("%v was granted as %v", test.asked, got)
		}
		until, _ := a.Properties.Get("com.microsoft:locked-until-utc")
		if n, ok := until.(message.Long); !ok || n < 638_000_000_000_000_000 {
			t.Errorf("locked until %v", until)
		}
		p.send(0, &amqp.Detach{Closed: true}, nil)
		want[*amqp.Detach](p)
	}
}

// Who waits for a session and goes leaves none locked; who waits too long is told.
func TestWaitForSession(t *testing.T) {
	b := newBench(t, nil)
	b.create("steps", broker.Queue, func(p *broker.Properties) { p.RequiresSession = true })
	ask := func(p *peer, handle uint32, wait message.Value) {
		p.send(0, &amqp.Attach{Name: "r", Handle: handle, Role: amqp.RoleReceiver, Target: &amqp.Target{}, Source: &amqp.Source{
			Address: message.String("steps"), Filter: message.Map{{Key: sessionFilterName, Value: message.Null{}}},
		}, Properties: message.Map{{Key: message.Symbol("com.microsoft:timeout"), Value: wait}}}, nil)
	}
	p := b.begin()
	ask(p, 0, message.Uint(20))
	if a := want[*amqp.Attach](p); a.Source != nil {
		t.Errorf("the attach is %+v", a)
	}
	p.wantError(want[*amqp.Detach](p).Error, "com.microsoft:timeout")

	ask(p, 1, message.Uint(60_000))
	p.send(0, &amqp.Detach{Handle: 1, Closed: true}, nil)
	want[*amqp.Detach](p)
	gone := b.begin()
	ask(gone, 0, message.Uint(60_000))
	_ = gone.nc.Close()

	ask(p, 2, message.Uint(60_000))
	id := "one"
	if _, err := b.engine.Send(broker.Address{Name: "steps"}, []*message.Message{{SessionID: &id}}); err != nil {
		t.Fatal(err)
	}
	if a := want[*amqp.Attach](p); a.Source == nil || a.Handle != 2 {
		t.Errorf("the attach is %+v", a)
	}
}

// Messages larger than a frame go in several, both ways.
func TestSeveralFrames(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, nil)
	body := strings.Repeat("0123456789", 20_000)
	p := b.begin()
	p.sender(0, "orders")
	payload := encoded(t, body)
	for first := true; len(payload) > 0; first = false {
		part := payload[:min(len(payload), 60_000)]
		payload = payload[len(part):]
		tr := &amqp.Transfer{More: len(payload) > 0}
		if first {
			tr.DeliveryID, tr.DeliveryTag, tr.MessageFormat = amqp.Some[uint32](0), []byte("a"), amqp.Some[uint32](0)
		}
		p.send(0, tr, part)
	}
	if state, ok := want[*amqp.Disposition](p).State.(*amqp.Rejected); ok {
		t.Fatalf("the delivery was refused: %v", state.Error)
	}

	// A peer that takes small frames gets small frames.
	small := b.dial(amqp.ProtocolHeader)
	small.header(amqp.ProtocolHeader)
	small.send(0, &amqp.Open{ContainerID: "small", MaxFrameSize: amqp.Some[uint32](512)}, nil)
	want[*amqp.Open](small)
	small.send(0, &amqp.Begin{IncomingWindow: 10, OutgoingWindow: 10}, nil)
	want[*amqp.Begin](small)
	small.receiver(0, "orders", 0)
	small.send(0, &amqp.Flow{NextIncomingID: amqp.Some[uint32](0), IncomingWindow: 10, Handle: amqp.Some[uint32](0), LinkCredit: amqp.Some[uint32](1)}, nil)
	var got []byte
	for n := uint32(1); ; n++ {
		tr, part := wantWith[*amqp.Transfer](small)
		if n == 1 != tr.DeliveryID.Set || n == 1 && (len(tr.DeliveryTag) != 16 || !tr.MessageFormat.Set) {
			t.Errorf("frame %d is %+v", n, tr)
		}
		if len(part) > 512 {
			t.Fatalf("a frame holds %d bytes", len(part))
		}
		got = append(got, part...)
		if !tr.More {
			break
		}
		if n%10 == 0 { // the window was used up
			small.send(0, &amqp.Flow{NextIncomingID: amqp.Some(n), IncomingWindow: 10}, nil)
		}
	}
	m, err := amqp.DecodeMessage(got)
	if err != nil || string(m.Body.Bytes()) != body {
		t.Errorf("%d bytes came back (%v)", len(m.Body.Bytes()), err)
	}
}

// A peer that drains gets what there is, and then its credit back.
func TestDrain(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, nil)
	p := b.begin()
	p.sender(0, "orders")
	p.transfer(0, 0, encoded(t, "a"))
	want[*amqp.Disposition](p)
	p.receiver(1, "orders", 0)
	p.credit(1, 0, 5, true)
	want[*amqp.Transfer](p)
	f, _ := p.next()
	flow, ok := f.(*amqp.Flow)
	if !ok || !flow.Drain || flow.LinkCredit.Value != 0 || flow.DeliveryCount.Value != 5 || flow.Handle.Value != 1 {
		t.Errorf("after draining came %+v", f)
	}
}

// A peer that asks how things stand is told.
func TestEcho(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, nil)
	p := b.begin()
	p.receiver(0, "orders", 7)
	p.send(0, &amqp.Flow{IncomingWindow: 10, Handle: amqp.Some[uint32](0), Echo: true, DeliveryCount: amqp.Some[uint32](0), LinkCredit: amqp.Some[uint32](7)}, nil)
	f, _ := p.next()
	if flow, ok := f.(*amqp.Flow); !ok || flow.LinkCredit.Value != 7 || flow.Handle != amqp.Some[uint32](0) {
		t.Errorf("the answer is %+v", f)
	}
}

// The outcomes of a receiver, what they do, and what answers them.
func TestOutcomes(t *testing.T) {
	reason := message.Map{
		{Key: message.Symbol("DeadLetterReason"), Value: message.String("because")},
		{Key: message.Symbol("DeadLetterErrorDescription"), Value: message.String("it was time")},
		{Key: message.String("extra"), Value: message.Int(1)},
	}
	for _, test := range []struct {
		name   string
		state  amqp.State
		answer amqp.State
		main   string // body, deliveries and state of what is left
		dead   string
	}{
		{"accepted", &amqp.Accepted{}, &amqp.Accepted{}, "", ""},
		{"released", &amqp.Released{}, &amqp.Released{}, "0 active", ""},
		{"abandoned", &amqp.Modified{}, &amqp.Modified{}, "1 active", ""},
		{"abandoned as failed", &amqp.Modified{DeliveryFailed: amqp.Some(true)}, &amqp.Modified{}, "1 active", ""},
		{"deferred", &amqp.Modified{UndeliverableHere: amqp.Some(true)}, &amqp.Modified{}, "0 deferred", ""},
		{"dead-lettered", &amqp.Rejected{Error: &amqp.Error{Condition: "com.microsoft:dead-letter", Info: reason}}, &amqp.Rejected{}, "", "because"},
		{"rejected", &amqp.Rejected{}, &amqp.Rejected{}, "", " "},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, nil)
			b.create("orders", broker.Queue, nil)
			p := b.begin()
			p.sender(0, "orders")
			p.transfer(0, 0, encoded(t, "a"))
			want[*amqp.Disposition](p)
			p.receiver(1, "orders", 1)
			tr := want[*amqp.Transfer](p)
			p.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: tr.DeliveryID.Value, State: test.state}, nil)
			d := want[*amqp.Disposition](p)
			if d.Role != amqp.RoleSender || !d.Settled || d.First != tr.DeliveryID.Value {
				t.Errorf("the answer is %+v", d)
			}
			switch state := d.State.(type) {
			case *amqp.Rejected:
				if _, ok := test.answer.(*amqp.Rejected); !ok || state.Error != nil {
					t.Errorf("the answer is %+v", state)
				}
			case *amqp.Accepted:
				if _, ok := test.answer.(*amqp.Accepted); !ok {
					t.Errorf("the answer is %T", state)
				}
			case *amqp.Modified:
				if _, ok := test.answer.(*amqp.Modified); !ok {
					t.Errorf("the answer is %T", state)
				}
			case *amqp.Released:
				if _, ok := test.answer.(*amqp.Released); !ok {
					t.Errorf("the answer is %T", state)
				}
			}
			b.wantLeft(test.main, test.dead)
			// The second settlement of the same delivery is of a lock that is gone.
			p.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: tr.DeliveryID.Value, State: &amqp.Accepted{}}, nil)
			lost, ok := want[*amqp.Disposition](p).State.(*amqp.Rejected)
			if !ok {
				t.Fatal("a delivery could be settled twice")
			}
			p.wantError(lost.Error, "com.microsoft:message-lock-lost")
		})
	}
}

// wantLeft checks what is in orders and in its dead-letter queue.
func (b *bench) wantLeft(main, dead string) {
	b.Helper()
	text := func(a broker.Address, of func(*message.Message) string) string {
		page, err := b.engine.Peek(a, broker.PeekOptions{Max: 10})
		if err != nil {
			b.Fatal(err)
		}
		var all []string
		for _, m := range page {
			all = append(all, of(m))
		}
		return strings.Join(all, ",")
	}
	got := text(broker.Address{Name: "orders"}, func(m *message.Message) string {
		return string(rune('0'+m.Broker.DeliveryCount)) + " " + m.Broker.State.String()
	})
	if got != main {
		b.Errorf("the queue holds %q, want %q", got, main)
	}
	got = text(broker.Address{Name: "orders", Sub: broker.DeadLetter}, func(m *message.Message) string {
		if m.DeadLetterReason() == "" {
			return " "
		}
		return m.DeadLetterReason()
	})
	if got != dead {
		b.Errorf("the dead letters are %q, want %q", got, dead)
	}
}

// A peer that says how long it waits for signs of life gets them.
func TestHeartbeat(t *testing.T) {
	b := newBench(t, nil)
	p := b.dial(amqp.ProtocolHeader)
	p.header(amqp.ProtocolHeader)
	p.send(0, &amqp.Open{ContainerID: "test", IdleTimeout: amqp.Some[uint32](100)}, nil)
	want[*amqp.Open](p)
	_ = p.nc.SetReadDeadline(time.Now().Add(patience))
	beat := make([]byte, 16)
	for n := 0; n < len(beat); {
		got, err := p.nc.Read(beat[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += got
	}
	if string(beat[:8]) != string(amqp.AppendEmptyFrame(nil)) {
		t.Errorf("the sign of life is % x", beat)
	}
}

// A connection over which nothing comes is ended, before it was opened and after.
func TestSilentConnection(t *testing.T) {
	idle := newBench(t, func(o *Options) { o.Limits.IdleTimeout = 200 * time.Millisecond })
	if f, _ := idle.open().next(); f != nil {
		t.Errorf("a silent connection got %+v", f)
	}
	slow := newBench(t, func(o *Options) { o.Limits.OpenTimeout = 100 * time.Millisecond })
	if f, _ := slow.dial("").next(); f != nil {
		t.Errorf("a connection that never said anything got %+v", f)
	}
}

// Entities that change or go detach their links.
func TestEntityChanges(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, nil)
	b.create("other", broker.Queue, nil)
	p := b.begin()
	p.sender(0, "orders")
	p.receiver(1, "orders", 10)
	p.receiver(2, "other", 10)
	for range 2 { // after an attach, too
		if err := b.engine.Change("orders", func(p *broker.Properties) error { p.UserMetadata += "x"; return nil }); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			d := want[*amqp.Detach](p)
			p.wantError(d.Error, "amqp:link:detach-forced")
			p.send(0, &amqp.Detach{Handle: d.Handle, Closed: true}, nil)
		}
		p.sender(0, "orders")
		p.receiver(1, "orders", 10)
	}
	if err := b.engine.Delete("orders"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d := want[*amqp.Detach](p)
		p.wantError(d.Error, "amqp:not-found")
	}
}
