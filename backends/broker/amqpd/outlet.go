package amqpd

import (
	"errors"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// outlet is a link on which the peer receives.
type outlet struct {
	end
	settles bool // what is sent is settled already: receive and delete
	drain   bool // the peer wants its credit back if there is nothing
	open    bool // the attach was answered

	waiter  *broker.Waiter
	pumping bool // a goroutine fetches messages
	again   bool // something changed while it did
	pending int  // deliveries that are not settled
	stuck   bool // there are too many of them

	session *heldSession // nil: it receives from no session
	accept  *acceptance  // it waits for a session

	replies [][]byte // of a node that answers requests
	age     uint64   // the latest such link has the highest

	decided backlog[decision] // what has become of deliveries
}

// attachOutlet attaches a link on which the peer receives.
func (s *session) attachOutlet(a *amqp.Attach, e end) {
	address := ""
	if a.Source != nil {
		address, _ = text(a.Source.Address)
	}
	o := &outlet{end: e, settles: a.SenderMode.Or(amqp.SenderMixed) == amqp.SenderSettled}
	o.addr, o.node = s.c.srv.resolve(address)
	if a.Target != nil {
		o.reply, _ = text(a.Target.Address)
	}
	if o.node != entityNode {
		s.attachReplies(a, o)
		return
	}
	o.right = sas.Listen
	info, err := s.c.entity(o.addr, o.right)
	if err == nil {
		err = receivable(info)
	}
	if err == nil {
		err = s.c.mayLocked(path(o.addr), o.right)
	}
	filter, wanted := sessionFilter(a)
	if err == nil {
		err = sessionful(info, o.addr, wanted)
	}
	if err != nil {
		s.refuse(a, o, s.c.srv.failed(err, path(o.addr)))
		return
	}
	s.add(o)
	o.watch(info)
	o.waiter = s.c.srv.engine.NewWaiter(o.addr, func() { go o.wake() })
	if wanted {
		o.accept = newAcceptance(o, a, filter, info)
		s.c.begin(o.accept.try)
		return
	}
	o.answer(a, nil)
}

func receivable(info broker.Info) error {
	switch {
	case info.Kind == broker.Topic:
		return notAllowed("Cannot create a message receiver for a topic; attach to one of its subscriptions.")
	case info.Status == broker.Disabled || info.Status == broker.ReceiveDisabled:
		return broker.ErrDisabled
	}
	return nil
}

// sessionful checks that a receiver asks for a session where the entity requires that, and
// only there. The sub-queues of such an entity have none.
func sessionful(info broker.Info, a broker.Address, wanted bool) error {
	required := info.RequiresSession && a.Sub == broker.Main
	switch {
	case required && !wanted:
		return notAllowed("It is not possible for an entity that requires sessions to create a non-sessionful message receiver.")
	case wanted && !required:
		return notAllowed("It is not possible for an entity that does not require sessions to create a sessionful message receiver.")
	}
	return nil
}

// answer grants the attach. properties are added to those of the peer.
func (o *outlet) answer(a *amqp.Attach, properties message.Map) {
	reply := echo(a)
	reply.Properties = append(append(message.Map(nil), a.Properties...), properties...)
	o.open = true
	o.s.send(reply, nil)
}

// onFlow takes the credit that the peer gives.
func (o *outlet) onFlow(f *amqp.Flow) {
	if f.LinkCredit.Set {
		// Serial numbers: what was sent since the peer counted is taken off.
		o.credit = f.DeliveryCount.Or(0) + f.LinkCredit.Value - o.count
		if int32(o.credit) < 0 && f.LinkCredit.Value < 1<<31 {
			o.credit = 0
		}
	}
	o.drain = f.Drain
	o.kick()
}

// wake is what the engine calls when there may be something to deliver.
func (o *outlet) wake() {
	c := o.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.accept != nil {
		o.accept.woken()
		return
	}
	o.kick()
	if !o.pumping {
		c.begin(o.waiter.Pass) // it takes nothing now: another may
	}
}

// kick has the link deliver what it can. The caller holds the lock.
func (o *outlet) kick() {
	switch {
	case o.refused || o.left || !o.open:
	case o.pumping:
		o.again = true
	case o.node != entityNode:
		o.sendReplies()
	case o.credit > 0 || o.drain:
		o.pumping = true
		o.s.c.begin(o.pump)
	}
}

// pump fetches and sends messages as long as there are some and the peer takes them.
func (o *outlet) pump() {
	c := o.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		o.again = false
		n := o.fetchable()
		if n == 0 {
			break
		}
		c.fetching += fetchBytes
		c.mu.Unlock()
		got, err := o.fetch(n)
		c.mu.Lock()
		c.fetching -= fetchBytes
		if !c.writing && len(c.out) == 0 { // nothing came of it: nobody else is going to look
			c.goOn()
		}
		if err != nil {
			o.detach(c.srv.failed(err, path(o.addr)))
			break
		}
		c.flushLocked()
		if got == 0 && !o.again {
			o.drained()
			o.pumping = false
			o.arm()
			return
		}
	}
	if o.credit == 0 {
		o.drained()
	}
	o.pumping = false
	o.waiter.Pass() // what is left is for others
	c.flushLocked()
}

// arm asks to be woken when there is something. The engine wakes at once if there is by now,
// and never calls back from inside.
func (o *outlet) arm() {
	if !o.refused && !o.left && o.credit > 0 {
		o.waiter.Arm(o.sessionToken())
	}
}

// sessionToken is the lock of the session that the link receives from; zero: none.
func (o *outlet) sessionToken() message.UUID {
	if o.session == nil {
		return zeroUUID
	}
	return o.session.token
}

// drained gives the peer its credit back if it wants that: there is nothing for it.
func (o *outlet) drained() {
	if !o.drain || o.refused || o.left {
		return
	}
	o.count += o.credit
	o.credit = 0
	o.s.sendFlow(o)
	o.drain = false
	o.s.c.flushLocked()
}

// fetchable is how many messages are to be fetched now.
func (o *outlet) fetchable() int {
	if o.refused || o.left || o.credit == 0 || o.s.c.over || o.s.c.closing || o.s.c.stopping || o.s.full() {
		return 0
	}
	room := o.s.c.srv.limits.Unsettled - o.pending
	if room <= 0 {
		o.stuck = true
		return 0
	}
	return int(min(o.credit, o.s.outWindow, uint32(min(fetchMost, room))))
}

// What is fetched at once, about.
const (
	fetchMost  = 256
	fetchBytes = 1 << 20
)

// fetch fetches up to n messages and sends them.
func (o *outlet) fetch(n int) (got int, err error) {
	if err := o.strike(OpReceive); err != nil {
		return 0, err
	}
	c := o.s.c
	msgs, err := c.srv.engine.Receive(o.addr, broker.ReceiveOptions{Max: n, Bytes: fetchBytes, Delete: o.settles, Session: o.sessionToken()})
	if err != nil || len(msgs) == 0 {
		return 0, err
	}
	payload := getBuffer()
	ends := make([]int, len(msgs))
	for i, m := range msgs {
		if payload, err = appendDelivery(payload, m, deliveryOptions{}); err != nil {
			// A message that cannot be written stays locked, and goes to the dead-letter queue in
			// time; the link goes on.
			c.srv.log("message %d of %s cannot be sent: %v", m.Broker.SequenceNumber, path(o.addr), err)
		}
		ends[i] = len(payload)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.refused || o.left {
		if !o.settles {
			c.begin(func() { o.release(msgs) })
		}
		return 0, nil
	}
	start := 0
	for i, m := range msgs {
		if start != ends[i] {
			o.deliver(m, payload[start:ends[i]])
		}
		start = ends[i]
	}
	putBuffer(payload)
	return len(msgs), nil
}

// release frees messages that nobody has seen.
func (o *outlet) release(msgs []*message.Message) {
	tokens := make([]message.UUID, len(msgs))
	for i, m := range msgs {
		tokens[i] = m.Broker.LockToken
	}
	if err := o.s.c.srv.engine.Release(o.addr, tokens...); err != nil && !errors.Is(err, broker.ErrNoEntity) {
		o.s.c.srv.log("release messages of %s: %v", path(o.addr), err)
	}
}

// deliver sends one message. The caller holds the lock.
func (o *outlet) deliver(m *message.Message, payload []byte) {
	id := o.s.delivery
	o.s.delivery++
	o.count++
	if o.credit > 0 { // the peer may have taken credit back meanwhile
		o.credit--
	}
	tag := lockTag(m.Broker.LockToken)
	if o.settles {
		tag = lockTag(message.RandomUUID())
	} else {
		o.s.unsettled[id] = unsettled{o, m.Broker.LockToken}
		o.pending++
	}
	o.s.transfer(amqp.Transfer{
		Handle: o.handle, DeliveryID: amqp.Some(id), DeliveryTag: tag[:], MessageFormat: amqp.Some[uint32](0),
		Settled: amqp.Some(o.settles),
	}, payload)
}

// leave ends what the link holds: a session, a wait. Messages stay locked until their locks
// expire, and can be settled over another link, unless the entity frees them.
func (o *outlet) leave() {
	if !o.leaveEnd() {
		return
	}
	if o.waiter != nil {
		o.waiter.Close()
	}
	if o.accept != nil {
		o.accept.cancel()
	}
	for _, reply := range o.replies {
		o.s.c.waiting -= len(reply)
	}
	o.replies = nil
	switch {
	case o.session != nil:
		for o.decided.working { // what the peer has decided counts, also if it waits for no answer
			o.s.c.room.Wait()
		}
		o.session.release()
	case o.node == entityNode && o.pending > 0:
		o.releaseIfSo(o.unsettledTokens())
	}
}

func (o *outlet) unsettledTokens() []message.UUID {
	var tokens []message.UUID
	for _, u := range o.s.unsettled {
		if u.from == o {
			tokens = append(tokens, u.token)
		}
	}
	return tokens
}

// releaseIfSo frees what the peer has not settled, if the entity is one that does so.
func (o *outlet) releaseIfSo(tokens []message.UUID) {
	engine := o.s.c.srv.engine
	if info, err := engine.Entity(o.addr.Name); err == nil && info.LocksEndWithConnection {
		_ = engine.Release(o.addr, tokens...) // a lock that is gone is passed over
	}
}

// lockCheck is how often a link looks whether its session is still its own, at least.
const lockCheck = time.Second
