package cmd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"dlq/backends/broker/amqpd"
	"dlq/backends/broker/namespace"
	"dlq/backends/broker/port"
	"dlq/backends/broker/sas"
)

func TestTotalMemory(t *testing.T) {
	for meminfo, want := range map[string]int64{
		"MemTotal:        4015940 kB\nMemFree:          100 kB\n": 4015940 << 10,
		"":                    math.MaxInt64,
		"MemTotal: many kB\n": math.MaxInt64,
	} {
		if got := totalMemory(meminfo); got != want {
			t.Errorf("%q: %d, want %d", meminfo, got, want)
		}
	}
}

// TestServeAddresses: what only this machine reaches may be lenient, everything else needs TLS.
func TestServeAddresses(t *testing.T) {
	for _, c := range []struct {
		name     string
		o        serveOptions
		mode     sas.Mode
		want     exitCode
		loopback bool
		hosts    []string
	}{
		{"as it comes", serveOptions{serviceBus: "127.0.0.1:5672", admin: "127.0.0.1:5300"}, sas.Keys, exitDone, true, []string{"localhost"}},
		{"by name", serveOptions{serviceBus: "localhost:0", admin: "none"}, sas.Any, exitDone, true, []string{"localhost"}},
		{"of IPv6", serveOptions{serviceBus: "[::1]:0", admin: "None"}, sas.Any, exitDone, true, []string{"localhost"}},
		{"in clear to everybody", serveOptions{serviceBus: "0.0.0.0:0", admin: "none"}, sas.Keys, exitRefused, false, nil},
		{"SQS to everybody", serveOptions{serviceBus: "127.0.0.1:0", admin: "none", sqs: ":9324"}, sas.Keys, exitRefused, false, nil},
		{"SQS anywhere, with any key", serveOptions{serviceBus: "127.0.0.1:0", admin: "none", sqs: "10.0.0.1:0", tls: true}, sas.Any, exitRefused, false, nil},
		{"SQS with TLS under its own name", serveOptions{serviceBus: "127.0.0.1:0", admin: "none", sqs: "sqs.example:443", tls: true}, sas.Keys, exitDone, false, []string{"localhost", "sqs.example"}},
		{"no SQS", serveOptions{serviceBus: "127.0.0.1:0", admin: "none", sqs: "None"}, sas.Any, exitDone, true, []string{"localhost"}},
		{"SQS without a port", serveOptions{serviceBus: "127.0.0.1:0", admin: "none", sqs: "localhost"}, sas.Keys, exitUsage, true, nil},
		{"the second port to everybody", serveOptions{serviceBus: "127.0.0.1:0", admin: ":5300"}, sas.Keys, exitRefused, false, nil},
		{"in clear because it is wanted", serveOptions{serviceBus: "10.0.0.1:0", admin: "none", allowPlaintext: true}, sas.Keys, exitDone, false, []string{"10.0.0.1"}},
		{"with TLS", serveOptions{serviceBus: "bus.example:0", admin: "none", tls: true}, sas.Require, exitDone, false, []string{"bus.example"}},
		{"under another name", serveOptions{serviceBus: "0.0.0.0:0", admin: "none", tls: true, hosts: []string{"bus"}}, sas.Keys, exitDone, false, []string{"bus"}},
		{"everybody may do anything", serveOptions{serviceBus: "10.0.0.1:0", admin: "none", tls: true, allowPlaintext: true}, sas.Any, exitRefused, false, nil},
		{"no port", serveOptions{serviceBus: "127.0.0.1", admin: "none"}, sas.Keys, exitUsage, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serving{mode: c.mode}
			err := c.o.resolveAddresses(&s)
			if code, _ := outcome(err); code != c.want || s.loopback != c.loopback {
				t.Fatalf("exit code %d, loopback %t: %v", code, s.loopback, err)
			}
			if c.want == exitDone && !slices.Equal(s.hosts, c.hosts) {
				t.Errorf("it is reached by %q, want %q", s.hosts, c.hosts)
			}
		})
	}
}

func TestConnectionStrings(t *testing.T) {
	keys := []sas.Key{
		{Name: "orders-only", Entity: "orders", Primary: sas.NewSecret("no"), Rights: sas.Manage},
		{Name: "Root", Primary: sas.NewSecret("r"), Rights: sas.Manage},
		{Name: "Other", Primary: sas.NewSecret("no"), Rights: sas.Manage},
		{Name: "Both", Primary: sas.NewSecret("no"), Rights: sas.Send | sas.Listen},
		{Name: "In", Primary: sas.NewSecret("s"), Rights: sas.Send},
	}
	at := endpoint("localhost", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5672})
	got := connectionStrings(at, keys, true)
	want := []string{
		"SERVICEBUS_CONNECTION_STRING=Endpoint=sb://localhost:5672;SharedAccessKeyName=Root;SharedAccessKey=r;UseDevelopmentEmulator=true",
		"SERVICEBUS_CONNECTION_STRING_SEND_ONLY=Endpoint=sb://localhost:5672;SharedAccessKeyName=In;SharedAccessKey=s;UseDevelopmentEmulator=true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if tls := connectionStrings(at, keys, false); strings.Contains(tls[0], "UseDevelopmentEmulator") {
		t.Error("with TLS the emulator's flag would switch it off:", tls[0])
	}
}

// TestEveryLimitCanBeSet: under the name that is printed.
func TestEveryLimitCanBeSet(t *testing.T) {
	tier := namespace.Tiers()[0]
	for _, k := range knobs() {
		taken := 0
		for _, value := range []string{"600", "600s"} { // it is a number or a duration
			o := serveOptions{limit: []string{k.name + "=" + value}}
			l, err := o.serverLimits(tier)
			if err != nil {
				continue
			}
			taken++
			if got := limitText(k.at(&l)); got != "600" && got != "10m0s" {
				t.Errorf("--limit %s=%s sets %s", k.name, value, got)
			}
		}
		if taken != 1 {
			t.Errorf("--limit %s takes %d of a number and a duration", k.name, taken)
		}
		for _, bad := range []string{"", "0", "-1", "x", "99999999999999999999"} {
			o := serveOptions{limit: []string{k.name + "=" + bad}}
			if _, err := o.serverLimits(tier); err == nil {
				t.Errorf("--limit %s=%s is taken", k.name, bad)
			}
		}
	}
	o := serveOptions{}
	emulator, err := namespace.TierNamed("emulator")
	if err != nil {
		t.Fatal(err)
	}
	if l, err := o.serverLimits(emulator); err != nil || l.amqp.Connections != 10 {
		t.Errorf("the emulator has %d connections, %v", l.amqp.Connections, err)
	}
}

// TestCertificateOfANameWithAPort: the Azure SDK for Go asks for "localhost:5672" when the endpoint
// has a port, and everybody else for "localhost".
func TestCertificateOfANameWithAPort(t *testing.T) {
	dir := t.TempDir()
	authority, err := port.OpenAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config, err := certificates(authority, []string{"localhost", "bus"}, []net.Listener{l})
	if err != nil {
		t.Fatal(err)
	}
	front := &port.Server{TLS: config, HTTP: http.NotFoundHandler()}
	done := make(chan error, 1)
	go func() { done <- front.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(front.Shutdown(context.Background()), <-done); err != nil {
			t.Error(err)
		}
	})
	pem, err := os.ReadFile(authority.CertFile())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	_, number, _ := net.SplitHostPort(l.Addr().String())
	for name, ok := range map[string]bool{
		"localhost": true, "localhost:" + number: true, "bus": true, "bus:" + number: true, "127.0.0.1": true,
		"localhost:1": false, "other": false,
	} {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: roots, ServerName: name})
		if (err == nil) != ok {
			t.Errorf("a client that asks for %s: %v", name, err)
		}
		if err == nil {
			_ = c.Close()
		}
	}
}

// TestHTTPFaults: what the management API answers instead.
func TestHTTPFaults(t *testing.T) {
	if httpFault(nil) != nil {
		t.Error("there are faults without a specification")
	}
	faults, err := amqpd.ParseFaults("throttle=at:1,error=at:2,disconnect=at:3,delay/http=50ms:at:4,throttle/send=always")
	if err != nil {
		t.Fatal(err)
	}
	ask := httpFault(faults)
	for i, want := range []struct {
		status int
		after  time.Duration
		aborts bool
	}{{status: 503}, {status: 500}, {aborts: true}, {after: 50 * time.Millisecond}, {}} {
		func() {
			defer func() {
				if aborted := recover() != nil; aborted != want.aborts {
					t.Errorf("request %d breaks: %t", i, aborted)
				}
			}()
			if status, after := ask("orders"); status != want.status || after != want.after {
				t.Errorf("request %d: %d after %s", i, status, after)
			}
		}()
	}
}

// TestMemoryGuard: it tells when little of what the process may have is left.
func TestMemoryGuard(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, c := range []struct {
		limit int64
		short bool
	}{{int64(memoryInUse()) * 100, false}, {int64(memoryInUse()), true}} {
		debug.SetMemoryLimit(c.limit)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // it looks once
		var g memoryGuard
		g.watch(ctx)
		if g.short() != c.short {
			t.Errorf("of %d bytes %d are in use, and memory is short: %t", c.limit, memoryInUse(), g.short())
		}
	}
}
