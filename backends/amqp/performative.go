package amqp

import "dlq/backends/message"

// The roles of a link's end.
const (
	RoleSender   = false
	RoleReceiver = true
)

// The settle modes of a link (part 2, 2.8.2 and 2.8.3).
const (
	SenderUnsettled = 0
	SenderSettled   = 1
	SenderMixed     = 2

	ReceiverFirst  = 0
	ReceiverSecond = 1
)

// Open begins a connection (part 2, 2.7.1). A performative.
type Open struct {
	ContainerID         string
	Hostname            string // "": absent
	MaxFrameSize        Optional[uint32]
	ChannelMax          Optional[uint16]
	IdleTimeout         Optional[uint32] // milliseconds
	OutgoingLocales     message.Value
	IncomingLocales     message.Value
	OfferedCapabilities message.Value
	DesiredCapabilities message.Value
	Properties          message.Map
}

func (*Open) performative() {}
func (*Open) code() uint64  { return codeOpen }

func (o *Open) write(w *listWriter) {
	w.value(message.String(o.ContainerID))
	w.value(optionalString(o.Hostname))
	w.optUint(o.MaxFrameSize)
	w.ushort(o.ChannelMax)
	w.optUint(o.IdleTimeout)
	w.value(o.OutgoingLocales)
	w.value(o.IncomingLocales)
	w.value(o.OfferedCapabilities)
	w.value(o.DesiredCapabilities)
	w.fieldMap(o.Properties)
	w.keep()
}

func (o *Open) read(r *listReader) {
	*o = Open{
		ContainerID: r.str("container-id"), Hostname: r.text(),
		MaxFrameSize: r.optUint(), ChannelMax: r.ushort(), IdleTimeout: r.optUint(),
		OutgoingLocales: r.value(), IncomingLocales: r.value(),
		OfferedCapabilities: r.value(), DesiredCapabilities: r.value(), Properties: r.fieldMap(),
	}
}

func optionalString(s string) message.Value {
	if s == "" {
		return nil
	}
	return message.String(s)
}

// Begin begins a session (part 2, 2.7.2). A performative.
type Begin struct {
	RemoteChannel       Optional[uint16]
	NextOutgoingID      uint32
	IncomingWindow      uint32 // transfer frames
	OutgoingWindow      uint32 // transfer frames
	HandleMax           Optional[uint32]
	OfferedCapabilities message.Value
	DesiredCapabilities message.Value
	Properties          message.Map
}

func (*Begin) performative() {}
func (*Begin) code() uint64  { return codeBegin }

func (b *Begin) write(w *listWriter) {
	w.ushort(b.RemoteChannel)
	w.uint(b.NextOutgoingID)
	w.uint(b.IncomingWindow)
	w.uint(b.OutgoingWindow)
	w.optUint(b.HandleMax)
	w.value(b.OfferedCapabilities)
	w.value(b.DesiredCapabilities)
	w.fieldMap(b.Properties)
	w.keep()
}

func (b *Begin) read(r *listReader) {
	*b = Begin{
		RemoteChannel: r.ushort(), NextOutgoingID: r.uint("next-outgoing-id"),
		IncomingWindow: r.uint("incoming-window"), OutgoingWindow: r.uint("outgoing-window"),
		HandleMax: r.optUint(), OfferedCapabilities: r.value(), DesiredCapabilities: r.value(), Properties: r.fieldMap(),
	}
}

// Attach attaches a link (part 2, 2.7.3). A performative.
type Attach struct {
	Name                 string
	Handle               uint32
	Role                 bool // RoleSender or RoleReceiver
	SenderMode           Optional[uint8]
	ReceiverMode         Optional[uint8]
	Source               *Source
	Target               *Target
	Coordinator          *Coordinator // in the place of a target
	Unsettled            message.Value
	IncompleteUnsettled  bool
	InitialDeliveryCount Optional[uint32]
	MaxMessageSize       Optional[uint64] // bytes; 0 or absent: no limit
	OfferedCapabilities  message.Value
	DesiredCapabilities  message.Value
	Properties           message.Map
}

func (*Attach) performative() {}
func (*Attach) code() uint64  { return codeAttach }

func (a *Attach) write(w *listWriter) {
	w.value(message.String(a.Name))
	w.uint(a.Handle)
	w.flag(a.Role)
	w.ubyte(a.SenderMode)
	w.ubyte(a.ReceiverMode)
	if a.Source != nil {
		w.composite(a.Source)
	} else {
		w.null()
	}
	switch {
	case a.Coordinator != nil:
		w.composite(a.Coordinator)
	case a.Target != nil:
		w.composite(a.Target)
	default:
		w.null()
	}
	w.value(a.Unsettled)
	w.boolean(a.IncompleteUnsettled)
	w.optUint(a.InitialDeliveryCount)
	if a.MaxMessageSize.Set {
		w.value(message.Ulong(a.MaxMessageSize.Value))
	} else {
		w.null()
	}
	w.value(a.OfferedCapabilities)
	w.value(a.DesiredCapabilities)
	w.fieldMap(a.Properties)
	w.keep()
}

func (a *Attach) read(r *listReader) {
	a.Name, a.Handle = r.str("name"), r.uint("handle")
	role := r.optBoolean()
	if !role.Set {
		r.fail(malformed("the field role is missing"))
	}
	a.Role, a.SenderMode, a.ReceiverMode = role.Value, r.ubyte(), r.ubyte()
	if code, ok := r.described(); ok {
		if code != codeSource {
			r.fail(malformed("a source cannot have the descriptor %#x", code))
			return
		}
		a.Source = new(Source)
		r.fill(a.Source)
	}
	if code, ok := r.described(); ok {
		switch code {
		case codeTarget:
			a.Target = new(Target)
			r.fill(a.Target)
		case codeCoordinator:
			a.Coordinator = new(Coordinator)
			r.fill(a.Coordinator)
		default:
			r.fail(malformed("a target cannot have the descriptor %#x", code))
			return
		}
	}
	a.Unsettled, a.IncompleteUnsettled, a.InitialDeliveryCount = r.value(), r.boolean(), r.optUint()
	a.MaxMessageSize, a.OfferedCapabilities, a.DesiredCapabilities = r.ulong(), r.value(), r.value()
	a.Properties = r.fieldMap()
}

// Source says where the messages of a link come from (part 3, 3.5.3). Absent fields are nil.
type Source struct {
	Address               message.Value
	Durable, ExpiryPolicy message.Value
	Timeout               message.Value
	Dynamic               message.Value
	DynamicProperties     message.Value
	DistributionMode      message.Value
	Filter                message.Map
	DefaultOutcome        message.Value
	Outcomes              message.Value
	Capabilities          message.Value
}

func (*Source) code() uint64 { return codeSource }

func (s *Source) write(w *listWriter) {
	for _, v := range []message.Value{s.Address, s.Durable, s.ExpiryPolicy, s.Timeout, s.Dynamic, s.DynamicProperties, s.DistributionMode} {
		w.value(v)
	}
	w.fieldMap(s.Filter)
	w.value(s.DefaultOutcome)
	w.value(s.Outcomes)
	w.value(s.Capabilities)
}

func (s *Source) read(r *listReader) {
	*s = Source{
		Address: r.value(), Durable: r.value(), ExpiryPolicy: r.value(), Timeout: r.value(), Dynamic: r.value(),
		DynamicProperties: r.value(), DistributionMode: r.value(), Filter: r.fieldMap(),
		DefaultOutcome: r.value(), Outcomes: r.value(), Capabilities: r.value(),
	}
}

// Target says where the messages of a link go (part 3, 3.5.4). Absent fields are nil.
type Target struct {
	Address               message.Value
	Durable, ExpiryPolicy message.Value
	Timeout               message.Value
	Dynamic               message.Value
	DynamicProperties     message.Value
	Capabilities          message.Value
}

func (*Target) code() uint64 { return codeTarget }

func (t *Target) write(w *listWriter) {
	for _, v := range []message.Value{t.Address, t.Durable, t.ExpiryPolicy, t.Timeout, t.Dynamic, t.DynamicProperties, t.Capabilities} {
		w.value(v)
	}
}

func (t *Target) read(r *listReader) {
	*t = Target{
		Address: r.value(), Durable: r.value(), ExpiryPolicy: r.value(), Timeout: r.value(), Dynamic: r.value(),
		DynamicProperties: r.value(), Capabilities: r.value(),
	}
}

// Coordinator is the target of a link that controls transactions (part 4, 4.5.1).
type Coordinator struct{ Capabilities message.Value }

func (*Coordinator) code() uint64          { return codeCoordinator }
func (c *Coordinator) write(w *listWriter) { w.value(c.Capabilities) }
func (c *Coordinator) read(r *listReader)  { c.Capabilities = r.value() }

// Detach detaches a link (part 2, 2.7.7). A performative.
type Detach struct {
	Handle uint32
	Closed bool
	Error  *Error
}

func (*Detach) performative() {}
func (*Detach) code() uint64  { return codeDetach }

func (d *Detach) write(w *listWriter) {
	w.uint(d.Handle)
	w.boolean(d.Closed)
	w.failure(d.Error)
}

func (d *Detach) read(r *listReader) {
	*d = Detach{Handle: r.uint("handle"), Closed: r.boolean(), Error: r.failure()}
}

// End ends a session (part 2, 2.7.8). A performative.
type End struct{ Error *Error }

func (*End) performative()         {}
func (*End) code() uint64          { return codeEnd }
func (e *End) write(w *listWriter) { w.failure(e.Error) }
func (e *End) read(r *listReader)  { e.Error = r.failure() }

// Close ends a connection (part 2, 2.7.9). A performative.
type Close struct{ Error *Error }

func (*Close) performative()         {}
func (*Close) code() uint64          { return codeClose }
func (c *Close) write(w *listWriter) { w.failure(c.Error) }
func (c *Close) read(r *listReader)  { c.Error = r.failure() }

// SASLMechanisms announces how a peer may say who it is (part 5, 5.3.3.1). A performative.
type SASLMechanisms struct{ Mechanisms []message.Symbol }

func (*SASLMechanisms) performative() {}
func (*SASLMechanisms) code() uint64  { return codeSASLMechanisms }

func (m *SASLMechanisms) write(w *listWriter) { w.value(SymbolArray(m.Mechanisms...)) }
func (m *SASLMechanisms) read(r *listReader)  { m.Mechanisms = Symbols(r.value()) }

// SASLInit chooses a mechanism (part 5, 5.3.3.2). A performative.
type SASLInit struct {
	Mechanism       string
	InitialResponse []byte // nil: absent
	Hostname        string
}

func (*SASLInit) performative() {}
func (*SASLInit) code() uint64  { return codeSASLInit }

func (i *SASLInit) write(w *listWriter) {
	w.value(message.Symbol(i.Mechanism))
	w.binary(i.InitialResponse)
	w.value(optionalString(i.Hostname))
}

func (i *SASLInit) read(r *listReader) {
	*i = SASLInit{Mechanism: r.text(), InitialResponse: r.binary(), Hostname: r.text()}
}

// SASLOutcome says how the exchange ended (part 5, 5.3.3.6). A performative.
type SASLOutcome struct{ Code uint8 } // 0 ok, 1 auth, 2 sys

func (*SASLOutcome) performative() {}
func (*SASLOutcome) code() uint64  { return codeSASLOutcome }

func (o *SASLOutcome) write(w *listWriter) { w.ubyte(Some(o.Code)) }
func (o *SASLOutcome) read(r *listReader)  { o.Code = r.ubyte().Value }
