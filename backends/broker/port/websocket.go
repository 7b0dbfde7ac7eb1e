package port

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
)

const (
	websocketPath = "/$servicebus/websocket"
	// pumpBuffer is small for the sake of idle connections; frames are mostly smaller still.
	pumpBuffer = 4 << 10
	// closeTime is how long a WebSocket waits for the other side to say goodbye, too.
	closeTime = time.Second
)

// subprotocols that mean AMQP. The first is of the OASIS binding and all SDKs, the other of
// clients that do not know it.
func subprotocols() []string { return []string{"AMQPWSB10", "amqp"} }

// serveWebSocket makes a request a connection that speaks AMQP.
func (s *Server) serveWebSocket(w http.ResponseWriter, r *http.Request, below net.Conn) {
	offered := strings.FieldsFunc(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), func(c rune) bool { return c == ',' || c == ' ' })
	known := slices.ContainsFunc(offered, func(p string) bool {
		return slices.ContainsFunc(subprotocols(), func(known string) bool { return strings.EqualFold(p, known) })
	})
	if !known {
		http.Error(w, "offer the subprotocol "+strings.Join(subprotocols(), " or "), http.StatusBadRequest)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: subprotocols()})
	if err != nil {
		return // it has answered
	}
	ws.SetReadLimit(s.limits.Message)
	s.adopt(newSocket(ws, below)) // all of the request is let go
}

// socket is the stream of bytes in the binary messages of a WebSocket. Where a message begins and
// ends has no meaning for it.
type socket struct {
	net.Conn // what is read; a pipe, so that reading can go on after a deadline, which it cannot in a WebSocket
	ws       *websocket.Conn
	below    net.Conn
}

func newSocket(ws *websocket.Conn, below net.Conn) *socket {
	out, in := net.Pipe()
	s := &socket{Conn: out, ws: ws, below: below}
	go s.pump(in)
	return s
}

// pump passes on what comes in, until either side ends.
func (s *socket) pump(in net.Conn) {
	defer in.Close() // a pipe
	buffer := make([]byte, pumpBuffer)
	for {
		kind, message, err := s.ws.Reader(context.Background())
		switch {
		case err != nil:
			return
		case kind != websocket.MessageBinary:
			s.goodbye(websocket.StatusUnsupportedData, "AMQP is binary")
			return
		}
		if _, err := io.CopyBuffer(in, message, buffer); err != nil {
			return
		}
	}
}

// Write sends b as one message.
func (s *socket) Write(b []byte) (int, error) {
	err := s.ws.Write(context.Background(), websocket.MessageBinary, b)
	switch {
	case err == nil:
		return len(b), nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, os.ErrDeadlineExceeded // a net.Error, as callers expect
	}
	return 0, err
}

// Close says goodbye, and waits for the other side to do so for a moment.
func (s *socket) Close() error {
	s.Conn.Close() // a pipe
	s.goodbye(websocket.StatusNormalClosure, "")
	if err := s.below.Close(); !errors.Is(err, net.ErrClosed) { // saying goodbye closes it, too
		return err
	}
	return nil
}

func (s *socket) goodbye(code websocket.StatusCode, reason string) {
	if s.below.SetDeadline(time.Now().Add(closeTime)) == nil {
		s.ws.Close(code, reason) // the other side may be gone
	}
}

func (s *socket) LocalAddr() net.Addr  { return s.below.LocalAddr() }
func (s *socket) RemoteAddr() net.Addr { return s.below.RemoteAddr() }

// SetDeadline sets both deadlines.
func (s *socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetWriteDeadline bounds writing. A message that was cut off by it is the last.
func (s *socket) SetWriteDeadline(t time.Time) error { return s.below.SetWriteDeadline(t) }
