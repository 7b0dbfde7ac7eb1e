package amqpd

import "time"

// Limits bound what a peer can make the server hold. Fields that are zero are as of
// [DefaultLimits].
type Limits struct {
	Connections    int // at once
	Opening        int // connections at once that have not sent an open
	OpeningPerHost int // the same from one address; loopback is exempt
	// OpenTimeout is how long a peer may take from the first byte to the open.
	OpenTimeout time.Duration
	// IdleTimeout is how long a connection may be silent before it is closed: twice what the
	// server announces.
	IdleTimeout  time.Duration
	WriteTimeout time.Duration // for a peer to take what is written
	MaxFrameSize uint32        // bytes, what the server announces
	Sessions     int           // of a connection
	Links        int           // of a session
	Unsettled    int           // deliveries of a link
	// Held bounds the bytes of a connection's deliveries that have arrived and are not yet
	// stored: above it nothing is read.
	Held int64
	// Partial bounds, beyond the size of the largest message, the bytes of deliveries of
	// which parts are still to come.
	Partial  int64
	Outgoing int // bytes that wait to be written before no more messages are fetched
}

// DefaultLimits returns the limits of a server that says nothing about them.
func DefaultLimits() Limits {
	return Limits{
		Connections: 16384, Opening: 1024, OpeningPerHost: 64,
		OpenTimeout: 10 * time.Second, IdleTimeout: 240 * time.Second, WriteTimeout: 10 * time.Second,
		MaxFrameSize: 65536, Sessions: 4999, Links: 256, Unsettled: 131072,
		Held: 64 << 20, Partial: 8 << 20, Outgoing: 8 << 20,
	}
}

func (l Limits) orDefaults() Limits {
	d := DefaultLimits()
	set(&l.Connections, d.Connections)
	set(&l.Opening, d.Opening)
	set(&l.OpeningPerHost, d.OpeningPerHost)
	set(&l.OpenTimeout, d.OpenTimeout)
	set(&l.IdleTimeout, d.IdleTimeout)
	set(&l.WriteTimeout, d.WriteTimeout)
	set(&l.MaxFrameSize, d.MaxFrameSize)
	set(&l.Sessions, d.Sessions)
	set(&l.Links, d.Links)
	set(&l.Unsettled, d.Unsettled)
	set(&l.Held, d.Held)
	set(&l.Partial, d.Partial)
	set(&l.Outgoing, d.Outgoing)
	return l
}

func set[T comparable](v *T, absent T) {
	var zero T
	if *v == zero {
		*v = absent
	}
}
