package port

import (
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
)

// inbox is the listener from which the HTTP server gets the connections that speak HTTP.
type inbox struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newInbox() *inbox {
	return &inbox{conns: make(chan net.Conn), done: make(chan struct{})}
}

// put hands a connection over. It reports false if nobody takes it any more.
func (i *inbox) put(c net.Conn) bool {
	select {
	case i.conns <- c:
		return true
	case <-i.done:
		return false
	}
}

func (i *inbox) Accept() (net.Conn, error) {
	select {
	case c := <-i.conns:
		return c, nil
	case <-i.done:
		return nil, net.ErrClosed
	}
}

func (i *inbox) Close() error {
	i.once.Do(func() { close(i.done) })
	return nil
}

func (i *inbox) Addr() net.Addr { return &net.TCPAddr{} }

// connKey is the key under which a request's context has its connection.
type connKey struct{}

func (s *Server) httpServer() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           http.HandlerFunc(s.serveHTTP),
		ReadHeaderTimeout: s.limits.ReadHeader,
		ReadTimeout:       s.limits.Read,
		WriteTimeout:      s.limits.Write,
		IdleTimeout:       s.limits.Idle,
		MaxHeaderBytes:    s.limits.HeaderBytes,
		Protocols:         protocols,
		ErrorLog:          log.New(logWriter{s}, "", 0),
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },

		DisableGeneralOptionsHandler: true, // it would answer before Host is checked
	}
}

// serveHTTP checks a request and passes it on.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connKey{}).(*conn)
	if inner, ok := c.Conn.(*tls.Conn); ok { // net/http sees it only in a connection of its own
		state := inner.ConnectionState()
		r.TLS = &state
	}
	switch why := s.refusal(r); {
	case why != "":
		w.Header().Set("Connection", "close") // its body is not worth reading
		http.Error(w, why, http.StatusForbidden)
	case strings.TrimSuffix(r.URL.Path, "/") == websocketPath && s.AMQP != nil:
		s.serveWebSocket(w, r, c)
	case s.HTTP != nil:
		s.HTTP.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// refusal tells why a request may be one that a foreign web page makes a browser send; "" if it
// is not.
func (s *Server) refusal(r *http.Request) string {
	if !s.allowed(r.Host) {
		return "this host name is not served here: use localhost, or allow the name"
	}
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" {
			return "requests from pages of other sites are refused"
		}
	}
	for _, origin := range r.Header.Values("Origin") {
		if !sameOrigin(origin, r) {
			return "requests from pages of another origin are refused"
		}
	}
	return ""
}

// allowed reports whether host, with or without a port, is a name of ours.
func (s *Server) allowed(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host // has no port
	}
	name = normalHost(name)
	if addr, err := netip.ParseAddr(name); err == nil && addr.Unmap().IsLoopback() {
		return true
	}
	return name == "localhost" || name != "" && s.hosts[name]
}

// normalHost makes the spellings of a host one.
func normalHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.String()
	}
	return host
}

// sameOrigin reports whether a page of the origin was served by this very server.
func sameOrigin(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	scheme := map[bool]string{false: "http", true: "https"}[r.TLS != nil]
	return err == nil && u.Scheme == scheme && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// logWriter passes on what net/http has to say.
type logWriter struct{ server *Server }

func (l logWriter) Write(line []byte) (int, error) {
	l.server.logf("http: %s", strings.TrimSpace(string(line)))
	return len(line), nil
}
