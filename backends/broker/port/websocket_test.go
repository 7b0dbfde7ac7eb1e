package port

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// dialSocket upgrades a connection with the library's own client. It also returns the status of
// the response.
func (f *fixture) dialSocket(t testing.TB, url string, o websocket.DialOptions) (*websocket.Conn, int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o.HTTPClient = f.client(t)
	ws, res, err := websocket.Dial(ctx, url, &o) //nolint:bodyclose // the library says that it does
	if res == nil {
		return nil, 0, err
	}
	if err == nil {
		t.Cleanup(func() { ws.CloseNow() })
	}
	return ws, res.StatusCode, err
}

func (f *fixture) url(scheme string) string {
	_, port, _ := net.SplitHostPort(f.addr)
	return scheme + "://localhost:" + port + websocketPath
}

func TestWebSocket(t *testing.T) {
	f := start(t, nil)
	for _, scheme := range []string{"ws", "wss"} {
		for _, test := range []struct {
			path    string
			offered []string
			chosen  string
		}{
			{"", []string{"AMQPWSB10"}, "AMQPWSB10"},
			{"/", []string{"amqp"}, "amqp"},
			{"", []string{"amqp", "AMQPWSB10"}, "AMQPWSB10"},
			{"", []string{"mqtt", "AMQP"}, "AMQP"}, // echoed as it was offered
		} {
			t.Run(fmt.Sprint(scheme, test.path, test.offered), func(t *testing.T) {
				ws, _, err := f.dialSocket(t, f.url(scheme)+test.path, websocket.DialOptions{Subprotocols: test.offered})
				if err != nil {
					t.Fatal(err)
				}
				if got := ws.Subprotocol(); got != test.chosen {
					t.Errorf("subprotocol %q, want %q", got, test.chosen)
				}
				ws.SetReadLimit(-1)
				echoes(t, websocket.NetConn(t.Context(), ws, websocket.MessageBinary))
				if err := ws.Close(websocket.StatusNormalClosure, ""); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
	}
}

// One frame may come in several messages and in fragments, and one message may hold several.
func TestMessagesAreAStream(t *testing.T) {
	f := start(t, nil)
	ws, _, err := f.dialSocket(t, f.url("ws"), websocket.DialOptions{Subprotocols: []string{"amqp"}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := ws.Writer(t.Context(), websocket.MessageBinary)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"AM", "", "QP"} { // fragments of one message
		io.WriteString(w, part) //nolint:errcheck // the read fails then
	}
	w.Close()
	for _, message := range []string{"", "\x00", "\x01\x00\x00and more"} {
		ws.Write(t.Context(), websocket.MessageBinary, []byte(message)) //nolint:errcheck // the read fails then
	}
	want := amqpHeader + "and more"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(websocket.NetConn(t.Context(), ws, websocket.MessageBinary), got); err != nil || string(got) != want {
		t.Errorf("read %q, %v, want %q", got, err, want)
	}
}

func TestUnknownSubprotocolsAreRefused(t *testing.T) {
	f := start(t, nil)
	for _, offered := range [][]string{nil, {"mqtt"}, {"AMQPWSB100", "xamqp"}} {
		_, status, err := f.dialSocket(t, f.url("ws"), websocket.DialOptions{Subprotocols: offered})
		if err == nil || status != http.StatusBadRequest {
			t.Errorf("offering %q: %d, %v", offered, status, err)
		}
	}
	_, status, err := f.dialSocket(t, f.url("ws"), websocket.DialOptions{
		Subprotocols: []string{"amqp"}, HTTPHeader: http.Header{"Origin": {"http://evil.example"}},
	})
	if err == nil || status != http.StatusForbidden {
		t.Errorf("from a foreign origin: %d, %v", status, err)
	}
}

func TestTextAndEndlessMessagesEndTheSocket(t *testing.T) {
	f := start(t, func(s *Server) { s.Limits = Limits{Message: 100} })
	for _, test := range []struct {
		kind websocket.MessageType
		size int
		want websocket.StatusCode
	}{
		{websocket.MessageText, 5, websocket.StatusUnsupportedData},
		{websocket.MessageBinary, 100, websocket.StatusNormalClosure},
		{websocket.MessageBinary, 101, websocket.StatusMessageTooBig},
	} {
		ws, _, err := f.dialSocket(t, f.url("ws"), websocket.DialOptions{Subprotocols: []string{"amqp"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := ws.Write(ctx, test.kind, []byte(strings.Repeat("x", test.size))); err != nil {
			t.Fatal(err)
		}
		if test.want == websocket.StatusNormalClosure {
			if _, b, err := ws.Read(ctx); err != nil || len(b) != test.size {
				t.Errorf("a message of %d bytes: %q, %v", test.size, b, err)
			}
			continue
		}
		for err == nil { // what came before may be echoed
			_, _, err = ws.Read(ctx)
		}
		if got := websocket.CloseStatus(err); got != test.want {
			t.Errorf("closed with %v, want %v: %v", got, test.want, err)
		}
	}
}

// A deadline ends a read and not the connection, as with TCP; Close does not wait for a client
// that does not answer.
func TestSocketsHaveDeadlines(t *testing.T) {
	result := make(chan error, 1)
	f := start(t, func(s *Server) {
		s.AMQP = func(c net.Conn) {
			result <- func() error {
				c.SetReadDeadline(time.Now().Add(time.Millisecond)) //nolint:errcheck // the read fails then
				_, err := c.Read(make([]byte, 1))
				var timeout net.Error
				if !errors.As(err, &timeout) || !timeout.Timeout() {
					return fmt.Errorf("read: %w, want a timeout", err)
				}
				c.SetDeadline(time.Time{}) //nolint:errcheck // the write fails then
				if _, err := io.WriteString(c, "go on"); err != nil {
					return err
				}
				got := make([]byte, 8)
				if _, err := io.ReadFull(c, got); err != nil || string(got) != amqpHeader {
					return fmt.Errorf("read %q, %w", got, err)
				}
				c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)) //nolint:errcheck // the write fails then
				for err = nil; err == nil; {
					_, err = c.Write(make([]byte, 1<<20))
				}
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					return fmt.Errorf("write: %w, want a timeout", err)
				}
				if c.RemoteAddr().String() == "" || c.LocalAddr().Network() != "tcp" {
					return fmt.Errorf("addresses %v and %v", c.LocalAddr(), c.RemoteAddr())
				}
				return c.Close()
			}()
		}
	})
	ws, _, err := f.dialSocket(t, f.url("ws"), websocket.DialOptions{Subprotocols: []string{"amqp"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, b, err := ws.Read(t.Context()); err != nil || string(b) != "go on" {
		t.Fatalf("read %q, %v", b, err)
	}
	if err := ws.Write(t.Context(), websocket.MessageBinary, []byte(amqpHeader)); err != nil {
		t.Fatal(err)
	}
	select { // without reading any more
	case err := <-result:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("it hangs")
	}
}

func TestShutdownWaitsForSockets(t *testing.T) {
	f := start(t, nil)
	ws, _, err := f.dialSocket(t, f.url("wss"), websocket.DialOptions{Subprotocols: []string{"amqp"}})
	if err != nil {
		t.Fatal(err)
	}
	c := websocket.NetConn(t.Context(), ws, websocket.MessageBinary)
	echoes(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := f.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the socket is open still")
	}
}
