package port

import (
	"cmp"
	"time"
)

// Limits bound what clients can take before anything is known of them. Fields left zero are as in
// [DefaultLimits].
type Limits struct {
	Identify     time.Duration // from accepting a connection to knowing its protocol, the TLS handshake included
	Unidentified int           // connections of which the protocol is not known
	PerAddress   int           // of them, those from one address that is not this machine's
	Connections  int           // all connections

	ReadHeader  time.Duration // HTTP: from the first bytes of a request to the end of its header
	Read        time.Duration // to the end of its body
	Write       time.Duration // to the end of the response
	Idle        time.Duration // between two requests
	HeaderBytes int           // of a request
	Message     int64         // bytes in one WebSocket message, which may hold many AMQP frames
}

// DefaultLimits are the limits of a server that is told no others.
func DefaultLimits() Limits {
	return Limits{
		Identify: 10 * time.Second, Unidentified: 1024, PerAddress: 64, Connections: 16_384,
		ReadHeader: 5 * time.Second, Read: 30 * time.Second, Write: 60 * time.Second, Idle: 60 * time.Second,
		HeaderBytes: 32 << 10, Message: 16 << 20,
	}
}

// orDefault fills in what is zero.
func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	return Limits{
		Identify: cmp.Or(l.Identify, d.Identify), Unidentified: cmp.Or(l.Unidentified, d.Unidentified),
		PerAddress: cmp.Or(l.PerAddress, d.PerAddress), Connections: cmp.Or(l.Connections, d.Connections),
		ReadHeader: cmp.Or(l.ReadHeader, d.ReadHeader), Read: cmp.Or(l.Read, d.Read),
		Write: cmp.Or(l.Write, d.Write), Idle: cmp.Or(l.Idle, d.Idle),
		HeaderBytes: cmp.Or(l.HeaderBytes, d.HeaderBytes), Message: cmp.Or(l.Message, d.Message),
	}
}
