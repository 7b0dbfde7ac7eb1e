package amqp

import "dlq/backends/message"

// State is the state of a delivery: one of the types of this package with that in their
// comment (part 3, 3.4; part 4, 4.5).
type State interface {
	composite
	state()
}

// Accepted is an outcome: the delivery was taken. A state.
type Accepted struct{}

// Released is an outcome: the delivery was not and will not be looked at. A state.
type Released struct{}

// Rejected is an outcome: the delivery is invalid, or refused. A state.
type Rejected struct{ Error *Error }

// Modified is an outcome: the delivery was not taken, and is to be changed. A state.
type Modified struct {
	DeliveryFailed    Optional[bool]
	UndeliverableHere Optional[bool]
	Annotations       message.Map
}

// Received tells how much of a delivery has arrived. A state.
type Received struct {
	SectionNumber uint32
	SectionOffset uint64
}

// Declared is an outcome: a transaction has begun (part 4, 4.5.4). A state.
type Declared struct{ ID []byte }

// Transactional ties a transfer or an outcome to a transaction (part 4, 4.5.5). A state.
type Transactional struct {
	ID      []byte
	Outcome State // nil: none yet
}

func (*Accepted) state()      {}
func (*Released) state()      {}
func (*Rejected) state()      {}
func (*Modified) state()      {}
func (*Received) state()      {}
func (*Declared) state()      {}
func (*Transactional) state() {}

func (*Accepted) code() uint64      { return codeAccepted }
func (*Released) code() uint64      { return codeReleased }
func (*Rejected) code() uint64      { return codeRejected }
func (*Modified) code() uint64      { return codeModified }
func (*Received) code() uint64      { return codeReceived }
func (*Declared) code() uint64      { return codeDeclared }
func (*Transactional) code() uint64 { return codeTransactional }

func (*Accepted) write(*listWriter) {}
func (*Accepted) read(*listReader)  {}
func (*Released) write(*listWriter) {}
func (*Released) read(*listReader)  {}

func (s *Rejected) write(w *listWriter) { w.failure(s.Error) }
func (s *Rejected) read(r *listReader)  { s.Error = r.failure() }

func (s *Modified) write(w *listWriter) {
	w.optBoolean(s.DeliveryFailed)
	w.optBoolean(s.UndeliverableHere)
	w.fieldMap(s.Annotations)
}

func (s *Modified) read(r *listReader) {
	s.DeliveryFailed, s.UndeliverableHere, s.Annotations = r.optBoolean(), r.optBoolean(), r.fieldMap()
}

func (s *Received) write(w *listWriter) {
	w.uint(s.SectionNumber)
	w.value(message.Ulong(s.SectionOffset))
}

func (s *Received) read(r *listReader) {
	s.SectionNumber, s.SectionOffset = r.uint("section-number"), r.ulong().Value
}

func (s *Declared) write(w *listWriter) { w.binary(s.ID) }
func (s *Declared) read(r *listReader)  { s.ID = r.binary() }

func (s *Transactional) write(w *listWriter) {
	w.binary(s.ID)
	w.state(s.Outcome)
}

func (s *Transactional) read(r *listReader) { s.ID, s.Outcome = r.binary(), r.state() }

func (w *listWriter) optBoolean(o Optional[bool]) {
	if !o.Set {
		w.null()
		return
	}
	w.flag(o.Value)
}

func (w *listWriter) state(s State) {
	if s == nil {
		w.null()
		return
	}
	w.composite(s)
}

func (r *listReader) state() State {
	code, ok := r.described()
	if !ok {
		return nil
	}
	var s State
	switch code {
	case codeAccepted:
		s = acceptedState
	case codeReleased:
		s = releasedState
	case codeRejected:
		s = new(Rejected)
	case codeModified:
		s = new(Modified)
	case codeReceived:
		s = new(Received)
	case codeDeclared:
		s = new(Declared)
	case codeTransactional:
		s = new(Transactional)
	default:
		r.fail(malformed("no state has the descriptor %#x", code))
		return nil
	}
	r.fill(s)
	return s
}

// The states without fields, which need no memory of their own.
var (
	acceptedState = &Accepted{}
	releasedState = &Released{}
)

// Error says why a link, session or connection ends, or a delivery is rejected (part 2,
// 2.8.14).
type Error struct {
	Condition   message.Symbol
	Description string // "": absent
	Info        message.Map
}

func (*Error) code() uint64 { return codeError }

func (e *Error) write(w *listWriter) {
	w.value(e.Condition)
	w.value(optionalString(e.Description))
	w.fieldMap(e.Info)
	w.keep() // the Python SDK looks for all three
}

func (e *Error) read(r *listReader) {
	e.Condition, e.Description, e.Info = message.Symbol(r.text()), r.text(), r.fieldMap()
}

// Error makes it a Go error.
func (e *Error) Error() string {
	if e.Description == "" {
		return string(e.Condition)
	}
	return string(e.Condition) + ": " + e.Description
}

func (w *listWriter) failure(e *Error) {
	if e == nil {
		w.null()
		return
	}
	w.composite(e)
}

func (r *listReader) failure() *Error {
	code, ok := r.described()
	if !ok {
		return nil
	}
	if code != codeError {
		r.fail(malformed("an error cannot have the descriptor %#x", code))
		return nil
	}
	e := new(Error)
	r.fill(e)
	return e
}

// Declare asks for a transaction (part 4, 4.5.2): the value of a message to a coordinator.
type Declare struct{}

// Discharge ends a transaction (part 4, 4.5.3): the value of a message to a coordinator.
type Discharge struct {
	ID   []byte
	Fail bool // roll back
}

func (*Declare) code() uint64      { return codeDeclare }
func (*Declare) write(*listWriter) {}
func (*Declare) read(r *listReader) {
	r.value() // the global id of a distributed transaction, of which there are none
}

func (*Discharge) code() uint64          { return codeDischarge }
func (d *Discharge) write(w *listWriter) { w.binary(d.ID); w.flag(d.Fail) }
func (d *Discharge) read(r *listReader)  { d.ID, d.Fail = r.binary(), r.boolean() }

// DecodeControl reads the value of a message to a coordinator: a *Declare or a *Discharge,
// whose id is a slice of b. The errors wrap [ErrMalformed] or [ErrLimit].
func DecodeControl(b []byte) (any, error) {
	d := decoder{b: b, slots: len(b) + MaxZeroWidth}
	code, err := d.descriptor()
	if err != nil {
		return nil, err
	}
	switch code {
	case codeDeclare:
		c := new(Declare)
		return c, d.composite(c)
	case codeDischarge:
		c := new(Discharge)
		return c, d.composite(c)
	}
	return nil, malformed("no message to a coordinator has the descriptor %#x", code)
}
