package port

import (
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/coder/websocket"
)

// BenchmarkIdle tells the memory that an idle connection takes, of both its ends, with a handler
// that takes next to none.
func BenchmarkIdle(b *testing.B) {
	f := start(b, func(s *Server) {
		s.AMQP = func(c net.Conn) {
			header := make([]byte, len(amqpHeader))
			io.ReadFull(c, header) //nolint:errcheck // the client sees it
			c.Write(header)        //nolint:errcheck // the client sees it
			c.Read(header)         //nolint:errcheck // it waits for the end
		}
	})
	for _, kind := range []struct {
		name string
		open func() net.Conn
	}{
		{"plain", func() net.Conn { return f.dial(b, false) }},
		{"TLS", func() net.Conn { return f.dial(b, true) }},
		{"WebSocket", func() net.Conn {
			ws, _, err := f.dialSocket(b, f.url("ws"), websocket.DialOptions{Subprotocols: []string{"amqp"}})
			if err != nil {
				b.Fatal(err)
			}
			return websocket.NetConn(b.Context(), ws, websocket.MessageBinary)
		}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			before := memory()
			conns := make([]net.Conn, 0, b.N)
			for range b.N {
				c := kind.open()
				conns = append(conns, c)
				header := make([]byte, len(amqpHeader))
				io.WriteString(c, amqpHeader) //nolint:errcheck // the read fails then
				if _, err := io.ReadFull(c, header); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(memory()-before)/float64(b.N), "B/conn")
			for _, c := range conns {
				c.Close()
			}
		})
	}
}

// memory is what is in use in the heap and on stacks.
func memory() int64 {
	for range 3 { // each lets stacks shrink by half
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
