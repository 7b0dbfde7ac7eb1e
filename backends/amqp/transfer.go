package amqp

import "dlq/backends/message"

// Flow tells the state of a session, and of a link if it names one (part 2, 2.7.4). A
// performative.
type Flow struct {
	NextIncomingID Optional[uint32]
	IncomingWindow uint32
	NextOutgoingID uint32
	OutgoingWindow uint32
	Handle         Optional[uint32]
	DeliveryCount  Optional[uint32]
	LinkCredit     Optional[uint32]
	Available      Optional[uint32]
	Drain          bool
	Echo           bool
	Properties     message.Map
}

func (*Flow) performative() {}
func (*Flow) code() uint64  { return codeFlow }

func (f *Flow) write(w *listWriter) {
	w.optUint(f.NextIncomingID)
	w.uint(f.IncomingWindow)
	w.uint(f.NextOutgoingID)
	w.uint(f.OutgoingWindow)
	w.optUint(f.Handle)
	w.optUint(f.DeliveryCount)
	w.optUint(f.LinkCredit)
	w.optUint(f.Available)
	w.boolean(f.Drain)
	w.boolean(f.Echo)
	w.fieldMap(f.Properties)
}

func (f *Flow) read(r *listReader) {
	*f = Flow{
		NextIncomingID: r.optUint(), IncomingWindow: r.uint("incoming-window"),
		NextOutgoingID: r.uint("next-outgoing-id"), OutgoingWindow: r.uint("outgoing-window"),
		Handle: r.optUint(), DeliveryCount: r.optUint(), LinkCredit: r.optUint(), Available: r.optUint(),
		Drain: r.boolean(), Echo: r.boolean(), Properties: r.fieldMap(),
	}
}

// Transfer carries a delivery, or a part of one (part 2, 2.7.5). A performative.
type Transfer struct {
	Handle        uint32
	DeliveryID    Optional[uint32]
	DeliveryTag   []byte // nil: absent
	MessageFormat Optional[uint32]
	Settled       Optional[bool]
	More          bool
	ReceiverMode  Optional[uint8]
	State         State // nil: absent
	Resume        bool
	Aborted       bool
	Batchable     bool
}

func (*Transfer) performative() {}
func (*Transfer) code() uint64  { return codeTransfer }

func (t *Transfer) write(w *listWriter) {
	w.uint(t.Handle)
	w.optUint(t.DeliveryID)
	w.binary(t.DeliveryTag)
	w.optUint(t.MessageFormat)
	if t.Settled.Set {
		w.flag(t.Settled.Value)
	} else {
		w.null()
	}
	w.boolean(t.More)
	w.ubyte(t.ReceiverMode)
	w.state(t.State)
	w.boolean(t.Resume)
	w.boolean(t.Aborted)
	w.boolean(t.Batchable)
}

func (t *Transfer) read(r *listReader) {
	*t = Transfer{
		Handle: r.uint("handle"), DeliveryID: r.optUint(), DeliveryTag: r.binary(), MessageFormat: r.optUint(),
		Settled: r.optBoolean(), More: r.boolean(), ReceiverMode: r.ubyte(), State: r.state(),
		Resume: r.boolean(), Aborted: r.boolean(), Batchable: r.boolean(),
	}
}

// Disposition tells the state of deliveries (part 2, 2.7.6). A performative.
type Disposition struct {
	Role      bool // of who says it
	First     uint32
	Last      Optional[uint32] // absent: First
	Settled   bool
	State     State // nil: absent
	Batchable bool
}

func (*Disposition) performative() {}
func (*Disposition) code() uint64  { return codeDisposition }

func (d *Disposition) write(w *listWriter) {
	w.flag(d.Role)
	w.uint(d.First)
	w.optUint(d.Last)
	w.boolean(d.Settled)
	w.state(d.State)
	w.boolean(d.Batchable)
}

func (d *Disposition) read(r *listReader) {
	role := r.optBoolean()
	if !role.Set {
		r.fail(malformed("the field role is missing"))
	}
	*d = Disposition{
		Role: role.Value, First: r.uint("first"), Last: r.optUint(), Settled: r.boolean(), State: r.state(), Batchable: r.boolean(),
	}
}
