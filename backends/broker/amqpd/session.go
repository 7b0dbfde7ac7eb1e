package amqpd

import (
	"fmt"

	"dlq/backends/amqp"
	"dlq/backends/message"
)

const (
	window    = 5000  // transfer frames that a peer may send ahead
	handleMax = 65535 // more than the links of a session, for peers that do not use handles again
)

// session is one session (part 2, 2.5). The lock of its connection guards it.
type session struct {
	c       *conn
	channel uint16
	ended   bool // an end was sent

	nextIn    uint32 // id of the transfer that is to come next
	inWindow  uint32 // transfers that the peer may send
	nextOut   uint32 // id of the next transfer that is sent
	outWindow uint32 // transfers that the peer takes
	delivery  uint32 // id of the next delivery that is sent

	links     map[uint32]link      // by handle: ours is always the peer's
	unsettled map[uint32]unsettled // deliveries that the peer has not settled, by id
	blocked   []frame              // transfers that the window keeps back
}

// link is one end of a link: an *intake or an *outlet.
type link interface {
	common() *end
	onFlow(f *amqp.Flow)
	// leave gives back what the link holds, once. It is done before the peer is told that the
	// link is detached, since it may ask for the same again at once.
	leave()
}

type frame struct {
	p       amqp.Transfer
	payload []byte
}

// unsettled is a delivery that was sent and is not settled.
type unsettled struct {
	from  *outlet
	token message.UUID
}

func (c *conn) onBegin(channel uint16, b *amqp.Begin) (bool, error) {
	switch {
	case c.sessions[channel] != nil:
		return c.failLocked("amqp:illegal-state", fmt.Sprintf("a second begin on channel %d", channel))
	case int(channel) >= c.srv.limits.Sessions:
		return c.failLocked("amqp:connection:framing-error", fmt.Sprintf("channel %d is above channel-max", channel))
	}
	s := &session{
		c: c, channel: channel, nextIn: b.NextOutgoingID, inWindow: window, outWindow: b.IncomingWindow,
		links: map[uint32]link{}, unsettled: map[uint32]unsettled{},
	}
	c.sessions[channel] = s
	c.send(channel, &amqp.Begin{
		RemoteChannel: amqp.Some(channel), NextOutgoingID: s.nextOut, IncomingWindow: window,
		OutgoingWindow: window, HandleMax: amqp.Some[uint32](handleMax),
	}, nil)
	return false, nil
}

// frame acts on a frame of the session.
func (s *session) frame(p amqp.Performative, payload []byte) {
	if end, ok := p.(*amqp.End); ok {
		s.onEnd(end)
		return
	}
	if s.ended {
		return // on its way before the peer knew
	}
	switch p := p.(type) {
	case *amqp.Attach:
		s.onAttach(p)
	case *amqp.Flow:
		s.onFlow(p)
	case *amqp.Transfer:
		s.onTransfer(p, payload)
	case *amqp.Disposition:
		s.onDisposition(p)
	case *amqp.Detach:
		s.onDetach(p)
	default:
		s.end("amqp:illegal-state", "a frame that has no place in a session")
	}
}

func (s *session) send(p amqp.Performative, payload []byte) {
	if !s.ended {
		s.c.send(s.channel, p, payload)
	}
}

// end ends the session for an error.
func (s *session) end(condition message.Symbol, description string) {
	if s.ended {
		return
	}
	s.c.send(s.channel, &amqp.End{Error: &amqp.Error{Condition: condition, Description: description}}, nil)
	s.leave()
}

func (s *session) onEnd(*amqp.End) {
	answer := !s.ended
	s.leave()
	delete(s.c.sessions, s.channel)
	if answer {
		s.c.send(s.channel, &amqp.End{}, nil)
	}
}

// leave gives back what the links hold.
func (s *session) leave() {
	s.ended = true
	for _, l := range s.links {
		l.leave()
	}
	s.c.links -= len(s.links)
	clear(s.links)
	clear(s.unsettled)
	s.blocked = nil
}

// onFlow takes the peer's view of the session, and of one link.
func (s *session) onFlow(f *amqp.Flow) {
	// Serial numbers: the difference is right even when they wrap around.
	s.outWindow = f.NextIncomingID.Or(0) + f.IncomingWindow - s.nextOut
	if int32(s.outWindow) < 0 && f.IncomingWindow < 1<<31 {
		s.outWindow = 0 // the peer shrank its window below what was sent
	}
	s.unblock()
	if f.Handle.Set {
		l := s.links[f.Handle.Value]
		if l == nil {
			s.end("amqp:session:unattached-handle", fmt.Sprintf("no link is attached to handle %d", f.Handle.Value))
			return
		}
		if e := l.common(); !e.refused {
			l.onFlow(f)
			if f.Echo {
				s.sendFlow(l)
			}
		}
	} else if f.Echo {
		s.sendFlow(nil)
	}
	s.resume()
}

// sendFlow tells the peer the state of the session and of a link; nil is none.
func (s *session) sendFlow(l link) {
	f := amqp.Flow{
		NextIncomingID: amqp.Some(s.nextIn), IncomingWindow: s.inWindow, NextOutgoingID: s.nextOut, OutgoingWindow: window,
	}
	if l != nil {
		e := l.common()
		f.Handle, f.DeliveryCount, f.LinkCredit = amqp.Some(e.handle), amqp.Some(e.count), amqp.Some(e.credit)
		if o, ok := l.(*outlet); ok {
			f.Drain = o.drain
		}
	}
	s.send(&f, nil)
}

// onTransfer counts a transfer and hands it to its link.
func (s *session) onTransfer(t *amqp.Transfer, payload []byte) {
	if s.inWindow == 0 {
		s.end("amqp:session:window-violation", "a transfer beyond the incoming window")
		return
	}
	s.nextIn++
	if s.inWindow--; s.inWindow <= window/2 {
		s.inWindow = window
		s.sendFlow(nil)
	}
	switch l := s.links[t.Handle].(type) {
	case nil:
		s.end("amqp:session:unattached-handle", fmt.Sprintf("no link is attached to handle %d", t.Handle))
	case *intake:
		l.onTransfer(t, payload)
	default:
		s.end("amqp:not-allowed", "a transfer on a link that receives")
	}
}

// transfer sends a message on a link, in as many frames as it takes, or keeps back what the
// peer's window has no room for.
func (s *session) transfer(t amqp.Transfer, payload []byte) {
	// What a frame holds beside the payload: its header, the fields, and the tag.
	most := s.c.peerMax - amqp.FrameHeaderSize - 48 - len(t.DeliveryTag)
	for first := true; first || len(payload) > 0; first = false {
		part := payload[:min(most, len(payload))]
		payload = payload[len(part):]
		if !first {
			t = amqp.Transfer{Handle: t.Handle, Settled: t.Settled}
		}
		t.More = len(payload) > 0
		if s.outWindow == 0 || len(s.blocked) > 0 {
			s.blocked = append(s.blocked, frame{t, append([]byte(nil), part...)})
			continue
		}
		s.put(t, part)
	}
}

func (s *session) put(t amqp.Transfer, part []byte) {
	s.outWindow--
	s.nextOut++
	s.send(&t, part)
}

// unblock sends what the window has room for again.
func (s *session) unblock() {
	for len(s.blocked) > 0 && s.outWindow > 0 {
		s.put(s.blocked[0].p, s.blocked[0].payload)
		if s.blocked = s.blocked[1:]; len(s.blocked) == 0 {
			s.blocked = nil
		}
	}
}

// resume has the links that deliver look whether they can go on.
func (s *session) resume() {
	for _, l := range s.links {
		if o, ok := l.(*outlet); ok {
			o.kick()
		}
	}
}

// full reports whether nothing more is to be fetched for the session now.
func (s *session) full() bool {
	if c := s.c; len(c.out)+c.unsent+c.fetching > c.srv.limits.Outgoing {
		s.c.slow = true
		return true
	}
	return s.outWindow == 0 || len(s.blocked) > 0
}

func (s *session) onDetach(d *amqp.Detach) {
	l := s.links[d.Handle]
	if l == nil {
		s.end("amqp:session:unattached-handle", fmt.Sprintf("no link is attached to handle %d", d.Handle))
		return
	}
	e := l.common()
	answer := !e.refused
	e.refused = true
	l.leave()
	delete(s.links, d.Handle)
	s.c.links--
	for id, u := range s.unsettled {
		if link(u.from) == l {
			delete(s.unsettled, id)
		}
	}
	if answer {
		s.send(&amqp.Detach{Handle: d.Handle, Closed: true}, nil)
	}
}
