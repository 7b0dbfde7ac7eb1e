package port

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestForeignPagesAreRefused sends what a page of another site can make a browser send. None may
// reach the handler, and none is answered with what another origin could read.
func TestForeignPagesAreRefused(t *testing.T) {
	var reached atomic.Int32
	f := start(t, func(s *Server) {
		s.HTTP = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) })
		s.AMQP = nil // below a WebSocket, too
	})
	upgrade := "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\nSec-WebSocket-Protocol: AMQPWSB10\r\n"
	var requests []string
	for _, line := range []string{"GET /orders", "PUT /orders", "POST /?Action=PurgeQueue", "DELETE /orders", "OPTIONS /orders", "OPTIONS *", "GET /health"} {
		for _, headers := range []string{
			"Host: evil.example\r\n",
			"Host: localhost.evil.example:5300\r\n",
			"Host: 192.0.2.1\r\n",
			"Host: localhost\r\nOrigin: http://evil.example\r\n",
			"Host: localhost\r\nOrigin: null\r\n",
			"Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
			"Host: localhost\r\nSec-Fetch-Site: same-site\r\n",
		} {
			requests = append(requests, line+" HTTP/1.1\r\n"+headers)
		}
	}
	get := "GET / HTTP/1.1\r\n"
	requests = append(requests,
		"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n",
		"GET / HTTP/1.0\r\n",
		get+"Host: \r\n",
		get+"Host: 0.0.0.0\r\n",
		get+"Host: 128.0.0.1\r\n",
		get+"Host: [::2]:80\r\n",
		get+"Host: dlq.example.evil.example\r\n",
		get+"Host: localhost:5300\r\nOrigin: http://localhost:3000\r\n", // another program of this machine
		get+"Host: localhost\r\nOrigin: https://localhost\r\n",          // we were asked without TLS
		get+"Host: localhost\r\nOrigin: localhost\r\n",
		get+"Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n",
		get+"Host: localhost\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n",
		"GET /$servicebus/websocket HTTP/1.1\r\nHost: evil.example\r\n"+upgrade,
		"GET /$servicebus/websocket HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"+upgrade,
	)
	for _, request := range requests {
		got := ask(t, f.dial(t, false), request+"\r\n")
		if got.status != http.StatusForbidden || got.header.Values("Access-Control-Allow-Origin") != nil || got.body == "" {
			t.Errorf("%q: %+v", request, got)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d of %d requests reached the handler", n, len(requests))
	}
	t.Logf("%d requests refused", len(requests))
}

// The answer comes while the body is still on its way.
func TestRefusedBeforeTheBody(t *testing.T) {
	f := start(t, nil)
	got := ask(t, f.dial(t, false), "PUT /orders HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 1000000000\r\n\r\n")
	if got.status != http.StatusForbidden || !got.closing {
		t.Errorf("%+v", got)
	}
}

func TestOurOwnNamesAreServed(t *testing.T) {
	f := start(t, nil)
	for _, headers := range []string{
		"Host: localhost", "Host: LOCALHOST.:5300", "Host: 127.0.0.1:1", "Host: 127.8.9.1", "Host: [::1]", "Host: [::1]:5300",
		"Host: dlq.example", "Host: DLQ.Example:443", "Host: [::ffff:127.0.0.1]",
		"Host: localhost\r\nOrigin: http://localhost", "Host: localhost:5300\r\nOrigin: http://LOCALHOST:5300",
		"Host: localhost\r\nSec-Fetch-Site: same-origin", "Host: localhost\r\nSec-Fetch-Site: none",
	} {
		if got := ask(t, f.dial(t, false), "GET / HTTP/1.1\r\n"+headers+"\r\n\r\n"); got.status != http.StatusOK {
			t.Errorf("%q: %+v", headers, got)
		}
	}
}

func TestHeadersAreBounded(t *testing.T) {
	f := start(t, nil)
	for _, secure := range []bool{false, true} {
		got := ask(t, f.dial(t, secure), "GET / HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 40<<10)+"\r\n\r\n")
		if got.status != http.StatusRequestHeaderFieldsTooLarge || got.body == "" {
			t.Errorf("TLS %v: %+v", secure, got)
		}
	}
}
