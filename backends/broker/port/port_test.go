package port

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	amqpHeader = "AMQP\x00\x01\x00\x00"
	patience   = 10 * time.Second // for what is to happen at once; only a failing test waits so long
)

// A fixture is a server on loopback that answers AMQP with an echo, and HTTP with what it was
// asked.
type fixture struct {
	*Server
	addr  string
	roots *x509.CertPool
}

// start serves until the test ends, and then checks that nothing goes on.
func start(t testing.TB, configure func(*Server)) *fixture {
	t.Helper()
	before := runtime.NumGoroutine()
	authority, err := OpenAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config, err := authority.Config("dlq.example")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{AMQP: echo, HTTP: http.HandlerFunc(report), TLS: config, Hosts: []string{"DLQ.example."}, Log: t.Logf}
	if configure != nil {
		configure(s)
	}
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		await(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.conns) != 0 || s.lobby.waiting.Len() != 0 || len(s.lobby.from) != 0 {
			t.Errorf("%d connections are left, %d not identified, from %v", len(s.conns), s.lobby.waiting.Len(), s.lobby.from)
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(authority.cert)
	return &fixture{s, l.Addr().String(), roots}
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// echo sends back what it gets.
func echo(c net.Conn) { io.Copy(c, c) } //nolint:errcheck // the client sees it

// report answers with what the request was.
func report(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s tls=%v %d %v", r.Method, r.URL, r.Host, r.TLS != nil && r.TLS.HandshakeComplete, len(body), err)
}

func await(t testing.TB, what string, met func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !met(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("waited in vain for %s\n%s", what, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// dial connects, over TLS if asked.
func (f *fixture) dial(t testing.TB, secure bool, alpn ...string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", f.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // then the test hangs
	if secure {
		return tls.Client(c, &tls.Config{RootCAs: f.roots, ServerName: "localhost", NextProtos: alpn})
	}
	return c
}

// client returns an HTTP client that trusts the server.
func (f *fixture) client(t testing.TB) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: f.roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// echoes checks that AMQP is at the other end.
func echoes(t *testing.T, c io.ReadWriter) {
	t.Helper()
	for _, text := range []string{amqpHeader, "and more", strings.Repeat("much more", 20_000)} {
		go io.WriteString(c, text) //nolint:errcheck // the read fails then
		got := make([]byte, len(text))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
			t.Fatalf("read %.40q, %v, want %.40q", got, err, text)
		}
	}
}

// An answer is what the tests look at in a response.
type answer struct {
	status  int
	header  http.Header
	body    string
	closing bool // the connection ends with it
}

// ask sends a request as it is written, and reads the response.
func ask(t *testing.T, c net.Conn, request string) answer {
	t.Helper()
	go io.WriteString(c, request) //nolint:errcheck // the read fails then
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	return answer{res.StatusCode, res.Header, string(body), res.Close}
}

// closed checks that the server closes the connection without a word.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	if b, err := io.ReadAll(c); len(b) != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %q, %v, want that it is closed", b, err)
	}
}

func TestOnePortServesAMQP(t *testing.T) {
	f := start(t, nil)
	for name, c := range map[string]net.Conn{
		"plain": f.dial(t, false), "TLS": f.dial(t, true), "TLS that offers another protocol": f.dial(t, true, "amqp"),
		"TLS that offers HTTP": f.dial(t, true, "h2", "http/1.1"),
	} {
		t.Run(name, func(t *testing.T) { echoes(t, c) })
	}
}

// The configuration may choose a certificate by the name that a client asks for.
func TestTLSChoosesACertificateByName(t *testing.T) {
	f := start(t, func(s *Server) {
		odd := s.TLS.Clone()
		odd.NextProtos = []string{"h2"} // not for it to say
		odd.Certificates = nil
		odd.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &s.TLS.Certificates[0], nil }
		s.TLS.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			switch hello.ServerName {
			case "dlq.example":
				return odd, nil
			case "other.example":
				return nil, errors.New("no such name")
			}
			return nil, nil
		}
	})
	for _, test := range []struct {
		name string
		alpn []string
		want string // negotiated; "-": refused
	}{
		{"localhost", nil, ""},
		{"localhost", []string{"h2"}, ""},
		{"localhost", []string{"h2", "http/1.1"}, "http/1.1"},
		{"dlq.example", nil, ""},
		{"dlq.example", []string{"h2"}, ""},
		{"dlq.example", []string{"h2", "http/1.1"}, "http/1.1"},
		{"other.example", nil, "-"},
	} {
		c := tls.Client(f.dial(t, false), &tls.Config{RootCAs: f.roots, ServerName: test.name, NextProtos: test.alpn})
		got := "-"
		if err := c.Handshake(); err == nil {
			got = c.ConnectionState().NegotiatedProtocol
			echoes(t, c)
		}
		if got != test.want {
			t.Errorf("%s, offering %q: %q, want %q", test.name, test.alpn, got, test.want)
		}
	}
}

func TestOnePortServesHTTP(t *testing.T) {
	f := start(t, nil)
	_, port, _ := net.SplitHostPort(f.addr)
	for _, scheme := range []string{"http", "https"} {
		for _, method := range []string{"GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS"} {
			url := fmt.Sprintf("%s://localhost:%s/orders?x=1", scheme, port)
			req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			res, err := f.client(t).Do(req)
			if err != nil {
				t.Fatalf("%s %s: %v", method, url, err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			want := fmt.Sprintf("%s /orders?x=1 localhost:%s tls=%v 4 <nil>", method, port, scheme == "https")
			if method == "HEAD" {
				want = ""
			}
			if res.StatusCode != http.StatusOK || string(body) != want || res.ProtoMajor != 1 {
				t.Errorf("%s %s: %s %s %q, want %q", method, url, res.Proto, res.Status, body, want)
			}
			if allow := res.Header["Access-Control-Allow-Origin"]; allow != nil {
				t.Errorf("other origins are allowed: %q", allow)
			}
		}
	}
}

// What comes byte by byte is served like what comes at once.
func TestFirstBytesMayComeSlowly(t *testing.T) {
	f := start(t, nil)
	for _, secure := range []bool{false, true} {
		c := f.dial(t, secure)
		for _, b := range []byte(amqpHeader) {
			if _, err := c.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]byte, len(amqpHeader))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != amqpHeader {
			t.Errorf("TLS %v: read %q, %v", secure, got, err)
		}
	}
}

func TestWhatNobodyServesIsClosed(t *testing.T) {
	f := start(t, func(s *Server) { s.AMQP = nil })
	for name, first := range map[string]string{"no protocol": "\x00\x01\x02\x03", "lower case": "get / HTTP/1.1\r\n", "no AMQP": amqpHeader} {
		t.Run(name, func(t *testing.T) {
			c := f.dial(t, false)
			io.WriteString(c, first) //nolint:errcheck // the read fails then
			closed(t, c)
		})
	}
	t.Run("TLS within TLS", func(t *testing.T) {
		c := f.dial(t, true)
		c.Write([]byte{tlsHandshakeRecord, 3, 1, 0, 1}) //nolint:errcheck // the read fails then
		closed(t, c)
	})
}

func TestWithoutTLSItIsClosed(t *testing.T) {
	told := make(chan string, 10)
	f := start(t, func(s *Server) {
		s.TLS, s.HTTP = nil, nil
		s.Log = func(format string, args ...any) { told <- fmt.Sprintf(format, args...) }
	})
	c := f.dial(t, false)
	if err := tls.Client(c, &tls.Config{RootCAs: f.roots, ServerName: "localhost"}).Handshake(); err == nil {
		t.Error("TLS is off, and yet it works")
	}
	closed(t, c)
	if log := <-told; !strings.Contains(log, "speaks TLS, which is off here") {
		t.Errorf("logged %q", log)
	}
	c = f.dial(t, false)
	if got := ask(t, c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); got.status != http.StatusNotFound {
		t.Errorf("without a handler for HTTP: %d", got.status)
	}
}

func TestUnwrap(t *testing.T) {
	unwrapped := make(chan error, 1)
	f := start(t, func(s *Server) {
		s.AMQP = func(c net.Conn) {
			w := c.(interface{ Unwrap() net.Conn })
			early := w.Unwrap()
			_, err := io.ReadFull(c, make([]byte, 8))
			_, late := w.Unwrap().(*net.TCPConn)
			if err == nil && (early != c || !late) {
				err = fmt.Errorf("early %T, late %T", early, w.Unwrap())
			}
			unwrapped <- err
		}
	})
	io.WriteString(f.dial(t, false), amqpHeader) //nolint:errcheck // the read fails then
	if err := <-unwrapped; err != nil {
		t.Error(err)
	}
}

func TestSeveralListenersAndShutdown(t *testing.T) {
	f := start(t, nil)
	second := listen(t)
	served := make(chan error, 1)
	go func() { served <- f.Serve(second) }()
	c, err := net.Dial("tcp", second.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	echoes(t, c)
	silent := f.dial(t, false)
	idle := f.dial(t, false)
	ask(t, idle, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")

	// The AMQP connection is there still, so Shutdown waits until its time is over.
	ctx, cancel := context.WithCancel(t.Context())
	down := make(chan error, 1)
	go func() { down <- f.Shutdown(ctx) }()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	closed(t, silent)
	closed(t, idle)
	select {
	case err := <-down:
		t.Fatalf("Shutdown did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	echoes(t, c)
	cancel()
	if err := <-down; !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	closed(t, c)
	if err := f.Serve(listen(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

func TestShutdownWaitsForAMQP(t *testing.T) {
	f := start(t, nil)
	c := f.dial(t, false)
	echoes(t, c)
	down := make(chan error, 1)
	go func() { down <- f.Shutdown(t.Context()) }()
	await(t, "Shutdown to begin", f.isClosed)
	c.Close()
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

func TestServeReportsABrokenListener(t *testing.T) {
	s := &Server{}
	l := listen(t)
	l.Close()
	if err := s.Serve(l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}
