package amqpd

import (
	"errors"
	"fmt"
	"strings"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// intakeCredit is how many deliveries a peer may send before the next flow.
const intakeCredit = 1000

// intake is a link on which the peer sends.
type intake struct {
	end
	via        *broker.Address // the entity that forwards to addr
	maxMessage int64           // bytes; 0: no bound
	maxBatch   int64
	makesIDs   bool // an empty id counts as none

	arriving *arrival // parts are still to come
	whole    backlog[*arrival]
	done     uint32 // deliveries dealt with since the last grant of credit
}

// arrival is a delivery that came, or is coming.
type arrival struct {
	id       uint32
	format   uint32
	settled  bool
	state    amqp.State
	payload  []byte
	size     int64 // also what was not kept because it is too large
	aborted  bool
	failed   error
	outcome  amqp.State // nil until it is known
	messages []*message.Message
}

// attachIntake attaches a link on which the peer sends.
func (s *session) attachIntake(a *amqp.Attach, e end) {
	l := &intake{end: e}
	l.count = a.InitialDeliveryCount.Value // the peer counts from here
	reply := echo(a)
	if why := s.openIntake(a, l); why != nil {
		s.refuse(a, l, *why)
		return
	}
	s.add(l)
	if l.maxMessage > 0 {
		reply.MaxMessageSize = amqp.Some(uint64(l.maxMessage))
		reply.Properties = append(append(message.Map(nil), a.Properties...), message.Pair{
			Key: message.Symbol("com.microsoft:max-message-batch-size"), Value: message.Ulong(l.maxBatch),
		})
	}
	s.send(reply, nil)
	l.credit = intakeCredit
	s.sendFlow(l)
}

// openIntake finds out what is at the other end of the link.
func (s *session) openIntake(a *amqp.Attach, l *intake) *failure {
	srv := s.c.srv
	l.maxMessage, l.maxBatch = 1<<20, 1<<20 // of a request
	if a.Coordinator != nil {
		l.node = coordinatorNode
		return nil
	}
	address := ""
	if a.Target != nil {
		address, _ = text(a.Target.Address)
	}
	l.addr, l.node = srv.resolve(address)
	switch l.node {
	case cbsNode:
		if s.c.puts(l) {
			return &failure{condition: "amqp:not-allowed", text: srv.suffixed("Only one link to $cbs may send on a connection.", "$cbs")}
		}
		return nil
	case managementNode:
		l.maxMessage = 64 << 20 // scheduled messages come in requests
		if l.addr.Name == "" {
			return nil
		}
		if _, err := s.c.entity(l.addr, sas.Send, sas.Listen); err != nil {
			why := srv.failed(err, path(l.addr))
			return &why
		}
		return nil
	}
	l.right = sas.Send
	info, err := s.c.entity(l.addr, l.right)
	if err == nil {
		err = sendable(info, l.addr)
	}
	if err == nil {
		err = s.c.mayLocked(path(l.addr), l.right)
	}
	if err == nil {
		err = s.forwarded(a, l)
	}
	if err != nil {
		why := srv.failed(err, path(l.addr))
		return &why
	}
	l.maxMessage, l.makesIDs = info.MaxMessageBytes, info.Partitioning
	l.maxBatch = srv.batchLimit(info.MaxMessageBytes)
	l.watch(info)
	return nil
}

// forwarded makes a link whose peer names a second destination one that sends to that, by
// way of the entity it is attached to. Source:
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-transactions
func (s *session) forwarded(a *amqp.Attach, l *intake) error {
	v, ok := a.Properties.Get("com.microsoft:transfer-destination-address")
	if !ok {
		return nil
	}
	name, ok := text(v)
	if !ok {
		return nil // null: none
	}
	to, what := parseAddress(name)
	info, err := s.c.entity(to, sas.Send)
	if err == nil && what != entityNode {
		err = broker.ErrNoEntity
	}
	if err == nil {
		err = sendable(info, to)
	}
	if err == nil {
		err = s.c.mayLocked(path(to), sas.Send)
	}
	if err != nil {
		return fmt.Errorf("the destination %s: %w", path(to), err)
	}
	via := l.addr
	l.via, l.addr = &via, to
	return nil
}

// notAllowed says what an entity is not for, in the words of the service.
type notAllowed string

func (e notAllowed) Error() string { return string(e) }

func sendable(info broker.Info, a broker.Address) error {
	switch {
	case info.Kind == broker.Subscription && a.Sub == broker.Main:
		return notAllowed("Cannot create a message sender for a subscription.")
	case a.Sub != broker.Main:
		return notAllowed("Cannot create a message sender for a dead-letter queue.")
	case info.Status == broker.Disabled || info.Status == broker.SendDisabled:
		return broker.ErrDisabled
	}
	return nil
}

// onFlow is the peer's view of its credit, which is ours to give.
func (l *intake) onFlow(*amqp.Flow) {}

// onTransfer takes one part of a delivery.
func (l *intake) onTransfer(t *amqp.Transfer, payload []byte) {
	if l.refused {
		return // on its way before the peer knew
	}
	c := l.s.c
	in := l.arriving
	if in == nil {
		if !t.DeliveryID.Set || t.DeliveryTag == nil && !t.Settled.Value {
			l.s.end("amqp:invalid-field", "the first transfer of a delivery needs a delivery-id and a delivery-tag")
			return
		}
		if l.credit == 0 {
			l.detach(failure{condition: "amqp:link:transfer-limit-exceeded", text: "a delivery beyond the link's credit"})
			return
		}
		l.credit--
		l.count++
		in = &arrival{id: t.DeliveryID.Value, format: t.MessageFormat.Value}
		l.arriving = in
	}
	if in.state = firstState(t.State, in.state); t.Settled.Set {
		in.settled = t.Settled.Value
	}
	in.size += int64(len(payload))
	if in.size <= l.most(in.format) {
		in.payload = append(in.payload, payload...)
		c.partial += int64(len(payload))
		c.held += int64(len(payload))
	} else if in.payload != nil { // it will be refused: nothing of it is kept
		c.partial -= int64(len(in.payload))
		c.held -= int64(len(in.payload))
		in.payload = nil
	}
	if c.partial > c.srv.limits.Partial+l.most(in.format) {
		c.hangUp("amqp:resource-limit-exceeded", "too many deliveries are incomplete at once")
		return
	}
	if t.More && !t.Aborted {
		return
	}
	l.arriving = nil
	c.partial -= int64(len(in.payload))
	in.aborted = t.Aborted
	l.arrived(in)
}

func firstState(a, b amqp.State) amqp.State {
	if a != nil {
		return ownState(a)
	}
	return b
}

// ownState copies what of a state is a slice of the frame it came in.
func ownState(s amqp.State) amqp.State {
	if tx, ok := s.(*amqp.Transactional); ok {
		return &amqp.Transactional{ID: append([]byte(nil), tx.ID...), Outcome: tx.Outcome}
	}
	return s
}

// most is how many bytes a delivery of a format may have.
func (l *intake) most(format uint32) int64 {
	if format == batchFormat {
		return max(l.maxBatch, l.maxMessage)
	}
	if l.maxMessage == 0 {
		return 1 << 40
	}
	return l.maxMessage
}

// arrived takes a delivery that is whole.
func (l *intake) arrived(in *arrival) {
	if in.aborted {
		l.s.c.held -= int64(len(in.payload))
		l.grant(1)
		return
	}
	// What belongs to a transaction has to be part of it before the frame that ends it, which
	// may be the next one.
	if tx, ok := in.state.(*amqp.Transactional); ok && l.node == entityNode {
		l.stage(in, tx)
		l.finish([]*arrival{in})
		return
	}
	if l.whole.add(in) {
		l.s.c.begin(l.store)
	}
}

// store deals with the deliveries that are whole until there are none.
func (l *intake) store() {
	c := l.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	l.whole.work(c, l.deal, l.finish)
}

// deal gives every delivery its outcome.
func (l *intake) deal(batch []*arrival) {
	switch l.node {
	case cbsNode, managementNode:
		for _, in := range batch {
			l.request(in)
		}
	case coordinatorNode:
		for _, in := range batch {
			l.control(in)
		}
	default:
		l.send(batch)
	}
}

// finish answers deliveries, in as few frames as it takes, and grants credit anew. The
// caller holds the lock.
func (l *intake) finish(batch []*arrival) {
	for i := 0; i < len(batch); {
		in := batch[i]
		n := 1
		if _, ok := in.outcome.(*amqp.Accepted); ok {
			for i+n < len(batch) && sameAnswer(in, batch[i+n], n) {
				n++
			}
		}
		if !in.settled && !l.refused {
			d := &amqp.Disposition{Role: amqp.RoleReceiver, First: in.id, Settled: true, State: in.outcome}
			if n > 1 {
				d.Last = amqp.Some(in.id + uint32(n) - 1)
			}
			l.s.send(d, nil)
		}
		i += n
	}
	for _, in := range batch {
		l.s.c.held -= int64(len(in.payload))
	}
	l.s.c.room.Broadcast()
	l.grant(uint32(len(batch)))
}

// sameAnswer reports whether b, n deliveries after a, can be answered together with it.
func sameAnswer(a, b *arrival, n int) bool {
	_, accepted := b.outcome.(*amqp.Accepted)
	return accepted && b.settled == a.settled && b.id == a.id+uint32(n)
}

// grant gives back credit that deliveries took, by halves.
func (l *intake) grant(done uint32) {
	l.done += done
	if l.done >= intakeCredit/2 || l.credit == 0 {
		l.credit += l.done
		l.done = 0
		if !l.refused {
			l.s.sendFlow(l)
		}
	}
}

// send stores the messages of a batch of deliveries in one commit if it can.
func (l *intake) send(batch []*arrival) {
	var all []*message.Message
	for _, in := range batch {
		if l.decode(in); in.failed == nil {
			in.failed = l.strike(OpSend)
		}
		if in.failed == nil {
			all = append(all, in.messages...)
		}
	}
	var err error
	if len(all) > 0 {
		err = l.sendAll(all)
	}
	together := err == nil || l.s.c.unsure(err)
	for _, in := range batch {
		// One of them was refused, so that none was stored.
		if !together && in.failed == nil && len(in.messages) > 0 {
			in.failed = l.sendAll(in.messages)
			l.s.c.unsure(in.failed)
		}
		l.decide(in, in.failed)
	}
}

// sendAll sends all messages or none.
func (l *intake) sendAll(all []*message.Message) error {
	engine := l.s.c.srv.engine
	if l.via != nil {
		tx := engine.Begin()
		if err := l.sendIn(tx, all); err != nil {
			_ = tx.Rollback()
			return err
		}
		return tx.Commit()
	}
	sent, err := engine.Send(l.addr, all)
	if err != nil {
		return err
	}
	for _, one := range sent {
		if one.Err != nil && !errors.Is(one.Err, broker.ErrNotSent) {
			return one.Err
		}
	}
	for _, one := range sent {
		if one.Err != nil {
			return one.Err
		}
	}
	return nil
}

func (l *intake) sendIn(tx *broker.Transaction, all []*message.Message) error {
	errs, err := tx.Send(l.addr, l.via, all)
	for _, one := range errs {
		if err == nil && !errors.Is(one, broker.ErrNotSent) {
			err = one
		}
	}
	return err
}

// decode reads the messages of a delivery and looks at what the engine does not see.
func (l *intake) decode(in *arrival) {
	if in.size > l.most(in.format) {
		in.failed = &tooLarge{delivery: in.id, size: in.size, limit: l.most(in.format)}
		return
	}
	in.messages, in.failed = decodeSent(in.format, in.payload)
	if in.failed != nil {
		in.failed = fmt.Errorf("%w: %w", errMalformed, in.failed)
	}
	for _, m := range in.messages {
		// The JavaScript SDK cannot complete a message without an id, and a partition is chosen
		// by it.
		if m.ID == nil || l.makesIDs && m.ID == message.String("") {
			m.ID = message.String(strings.ReplaceAll(newID(), "-", ""))
		}
	}
}

// errMalformed says that a delivery holds no message.
var errMalformed = errors.New("the delivery is no message")

// tooLarge says that a delivery is larger than its link takes.
type tooLarge struct {
	delivery    uint32
	size, limit int64
}

func (e *tooLarge) Error() string {
	return fmt.Sprintf("The received message (delivery-id:%d, size:%d bytes) exceeds the limit (%d bytes) currently allowed on the link.",
		e.delivery, e.size, e.limit)
}

func (e *tooLarge) Unwrap() error { return broker.ErrTooLarge }

// accepted is the outcome of what was taken.
var accepted amqp.State = &amqp.Accepted{}

// decide gives a delivery its outcome.
func (l *intake) decide(in *arrival, err error) {
	if err == nil {
		in.outcome = accepted
		return
	}
	in.outcome = &amqp.Rejected{Error: l.s.c.srv.failed(err, path(l.addr)).amqpError()}
}

func (l *intake) leave() {
	if l.leaveEnd() && l.arriving != nil {
		l.s.c.partial -= int64(len(l.arriving.payload))
		l.s.c.held -= int64(len(l.arriving.payload))
		l.arriving = nil
	}
	l.s.c.disown(l)
	l.rollBack()
}
