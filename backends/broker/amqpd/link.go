package amqpd

import (
	"errors"
	"fmt"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// end is what both kinds of links have in common.
type end struct {
	s       *session
	name    string
	handle  uint32
	node    node
	addr    broker.Address
	right   sas.Rights // what the peer needs for it
	refused bool       // a detach was sent: nothing may follow
	left    bool
	count   uint32 // deliveries so far
	credit  uint32 // deliveries that may come or be sent
	reply   string // an outlet's target address, by which replies find it
	changed func() // ends the watching of the entity; nil: it is not watched
}

func (e *end) common() *end { return e }

// detach ends the link for a reason.
func (e *end) detach(why failure) {
	if e.refused {
		return
	}
	e.refused = true
	if l := e.s.links[e.handle]; l != nil && l.common() == e {
		l.leave()
	}
	e.s.send(&amqp.Detach{Handle: e.handle, Closed: true, Error: why.amqpError()}, nil)
}

// onAttach attaches a link, or refuses it.
func (s *session) onAttach(a *amqp.Attach) {
	switch {
	case s.links[a.Handle] != nil:
		s.end("amqp:session:handle-in-use", fmt.Sprintf("handle %d is in use", a.Handle))
		return
	case a.Handle > handleMax:
		s.c.hangUp("amqp:connection:framing-error", fmt.Sprintf("handle %d is above handle-max", a.Handle))
		return
	}
	e := end{s: s, name: a.Name, handle: a.Handle}
	if why := s.strikeAttach(a, &e); why != nil {
		s.refuse(a, &intake{end: e}, *why)
		return
	}
	if s.ended || s.c.over {
		return
	}
	if len(s.links) >= s.c.srv.limits.Links || s.c.links >= maxLinks {
		s.refuse(a, &intake{end: e}, failure{condition: "amqp:resource-limit-exceeded", text: "too many links in one session"})
		return
	}
	if a.Role == amqp.RoleSender {
		s.attachIntake(a, e)
	} else {
		s.attachOutlet(a, e)
	}
}

// strikeAttach lets happen what the fault option has in mind for an attach. Who waits for it
// is this connection alone.
func (s *session) strikeAttach(a *amqp.Attach, e *end) *failure {
	address := ""
	switch {
	case a.Role == amqp.RoleSender && a.Target != nil:
		address, _ = text(a.Target.Address)
	case a.Role == amqp.RoleReceiver && a.Source != nil:
		address, _ = text(a.Source.Address)
	}
	c := s.c
	if e.addr, e.node = c.srv.resolve(address); e.node != entityNode || a.Coordinator != nil || c.srv.faults == nil {
		return nil
	}
	c.mu.Unlock()
	err := e.strike(OpAttach)
	c.mu.Lock()
	if err == nil || c.over {
		return nil
	}
	why := c.srv.failed(err, path(e.addr))
	return &why
}

// maxLinks is how many links all sessions of a connection may have.
const maxLinks = 8192

// add makes a link known. The caller has looked that its handle is free.
func (s *session) add(l link) {
	if s.links[l.common().handle] == nil {
		s.c.links++
	}
	s.links[l.common().handle] = l
}

// refuse answers an attach and detaches at once (part 2, 2.6.3).
func (s *session) refuse(a *amqp.Attach, l link, why failure) {
	s.send(&amqp.Attach{
		Name: a.Name, Handle: a.Handle, Role: !a.Role, SenderMode: a.SenderMode, ReceiverMode: a.ReceiverMode,
		InitialDeliveryCount: initialCount(a), MaxMessageSize: amqp.Some[uint64](0),
	}, nil)
	s.add(l)
	l.common().detach(why)
}

// initialCount is the delivery count that an end that sends begins with.
func initialCount(a *amqp.Attach) (o amqp.Optional[uint32]) {
	if a.Role == amqp.RoleReceiver {
		o = amqp.Some[uint32](0)
	}
	return o
}

// echo is the answer to an attach that is granted: what was asked for, from our side.
func echo(a *amqp.Attach) *amqp.Attach {
	return &amqp.Attach{
		Name: a.Name, Handle: a.Handle, Role: !a.Role, SenderMode: a.SenderMode, ReceiverMode: a.ReceiverMode,
		Source: a.Source, Target: a.Target, Coordinator: a.Coordinator, InitialDeliveryCount: initialCount(a),
		MaxMessageSize: amqp.Some[uint64](0), Properties: a.Properties,
	}
}

// entity returns the description of the entity at an address, which is made if the server
// does that.
func (s *Server) entity(a broker.Address) (broker.Info, error) {
	info, err := s.engine.Entity(a.Name)
	if errors.Is(err, broker.ErrNoEntity) && s.createOnAttach && a.Sub == broker.Main {
		err = s.engine.Create(a.Name, broker.Queue, s.defaults(broker.Queue))
		if err == nil || errors.Is(err, broker.ErrExists) {
			info, err = s.engine.Entity(a.Name)
		}
	}
	if err == nil && info.Kind != broker.Topic {
		err = s.engine.Exists(a)
	}
	if err == nil && info.Kind == broker.Topic && a.Sub != broker.Main {
		err = broker.ErrNoEntity
	}
	return info, err
}

// entity is that of the server, which makes one only for a peer that has one of some rights on
// it. The caller holds the lock.
func (c *conn) entity(a broker.Address, rights ...sas.Rights) (broker.Info, error) {
	if c.srv.createOnAttach {
		var refused error
		for _, right := range rights {
			if refused = c.mayLocked(path(a), right); refused == nil {
				break
			}
		}
		if _, err := c.srv.engine.Entity(a.Name); errors.Is(err, broker.ErrNoEntity) && refused != nil {
			return broker.Info{}, refused
		}
	}
	return c.srv.entity(a)
}

// watch has the link end when its entity changes or goes: a peer attaches again then, and
// sees what is new. Source:
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-messaging-exceptions
func (e *end) watch(info broker.Info) {
	e.changed = e.s.c.srv.engine.OnChange(info.Name, func() {
		go e.entityChanged()
	})
}

func (e *end) entityChanged() {
	c := e.s.c
	why := c.srv.changed(e.addr, e.name, e.right)
	if why.condition == detachForced {
		// The service takes its time, too: what is under way over the link comes to its end.
		c.pause(250 * time.Millisecond)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.detach(why)
	c.flushLocked()
}

// changed says why a link, for which the peer needs a right, cannot go on after its entity has
// changed. A peer that is told that the entity is disabled does not attach again.
func (s *Server) changed(a broker.Address, link string, right sas.Rights) failure {
	off := broker.ReceiveDisabled
	if right == sas.Send {
		off = broker.SendDisabled
	}
	info, err := s.engine.Entity(a.Name)
	if err == nil && (info.Status == broker.Disabled || info.Status == off) {
		err = broker.ErrDisabled
	}
	if err != nil {
		return s.failed(err, path(a))
	}
	f := s.failed(errDetached, path(a))
	f.condition = detachForced
	f.text = s.suffixed("The link '"+link+"' is force detached by the broker because the entity was changed. Attach again.", path(a))
	return f
}

const detachForced = message.Symbol("amqp:link:detach-forced")

var errDetached = errors.New("the entity was changed")

// leaveEnd ends what both kinds of links have, and reports whether it was not done before.
func (e *end) leaveEnd() (first bool) {
	if e.left {
		return false
	}
	e.left = true
	if e.changed != nil {
		e.changed()
	}
	return true
}

// timeout returns how long a peer wants to wait for the answer to an attach.
func timeout(properties message.Map) time.Duration {
	const usual = 60 * time.Second
	v, ok := properties.Get("com.microsoft:timeout")
	if !ok {
		return usual
	}
	ms, ok := message.Integer(v)
	if !ok || ms <= 0 || ms > int64(time.Hour/time.Millisecond) {
		return usual
	}
	return time.Duration(ms) * time.Millisecond
}
