package cmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"dlq/backends/broker"
	"dlq/backends/broker/amqpd"
	"dlq/backends/broker/atomd"
	"dlq/backends/broker/port"
	"dlq/backends/broker/sas"
	"dlq/backends/broker/sqsd"
	"dlq/backends/local"
)

// drainTime is how long a server that is told to stop waits for what is under way.
const drainTime = 10 * time.Second

// server is a broker with everything that listens for it.
type server struct {
	local     *local.Backend
	memory    memoryGuard
	engine    *broker.Engine
	amqp      *amqpd.Server
	front     *port.Server
	sqs       *sqsd.Server
	sqsFront  *port.Server
	authority *port.Authority // nil: no TLS
	listeners []net.Listener
	adminOn   []net.Listener // the second port
	sqsOn     []net.Listener
}

// run serves until ctx ends or something fails.
func (s serving) run(ctx context.Context, a *app, opts serveOptions) (err error) {
	limitMemory(a.getenv)
	var srv server
	defer func() { err = errors.Join(err, srv.close()) }()
	if err := srv.listen(ctx, opts); err != nil {
		return err
	}
	if err := srv.open(ctx, a, s); err != nil {
		return err
	}
	keys, err := s.keys()
	if err != nil {
		return err
	}
	if err := srv.build(a, s, opts, keys); err != nil {
		return err
	}
	failed := srv.start(ctx)
	s.announce(a, opts, &srv, keys)
	if err := a.flush(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		a.say("stopping; what is under way has %s", drainTime)
		return srv.drain()
	case err := <-failed:
		return errors.Join(err, srv.drain())
	}
}

// listen takes the ports first, so that one that is in use costs nothing.
func (srv *server) listen(ctx context.Context, opts serveOptions) error {
	var err error
	if srv.listeners, err = listenOn(ctx, "servicebus", opts.serviceBus); err != nil {
		return err
	}
	if addr := portAddr(opts.admin); addr != "" {
		if srv.adminOn, err = listenOn(ctx, "admin", addr); err != nil {
			return err
		}
	}
	if addr := portAddr(opts.sqs); addr != "" {
		srv.sqsOn, err = listenOn(ctx, "sqs", addr)
	}
	return err
}

// all are the listeners of every port.
func (srv *server) all() []net.Listener {
	return slices.Concat(srv.listeners, srv.adminOn, srv.sqsOn)
}

// listenOn listens on an address. One of 127.0.0.1 or localhost is also taken on ::1 where there
// is IPv6, because "localhost" is that for some clients.
func listenOn(ctx context.Context, flag, addr string) ([]net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("--%s: %w", flag, err)
	}
	var lc net.ListenConfig
	first, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		hint := ""
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "end what listens there, or choose another address with --" + flag + ", such as 127.0.0.1:0 for a free port"
		}
		return nil, fail(exitFailed, hint, "--%s: %w", flag, err)
	}
	all := []net.Listener{first}
	_, number, err := net.SplitHostPort(first.Addr().String())
	if err == nil && (host == "127.0.0.1" || host == "localhost") {
		if second, err := lc.Listen(ctx, "tcp6", net.JoinHostPort("::1", number)); err == nil {
			all = append(all, second)
		}
	}
	return all, nil
}

// open opens the broker and makes the entities of the configuration.
func (srv *server) open(ctx context.Context, a *app, s serving) (err error) {
	srv.local, err = local.Open(ctx, local.Options{Dir: s.dir, Now: a.now, Command: a.commandLine(), Stay: true})
	if err != nil {
		return err
	}
	srv.engine = srv.local.Engine()
	if s.config == nil {
		return nil
	}
	report, err := s.config.Apply(srv.engine, s.tier)
	for _, line := range report {
		a.say("%s", line)
	}
	if err != nil {
		return fail(exitFailed, "", "--config: %w", err)
	}
	return nil
}

// build joins the servers to the engine.
func (srv *server) build(a *app, s serving, opts serveOptions, keys []sas.Key) error {
	ring := sas.NewKeyring(keys...)
	ring.SetLookup(srv.entityKey)
	gate := &sas.Gate{Mode: s.mode, Keyring: ring, Loopback: s.loopback, Now: a.now}
	name := s.namespace()
	faults := s.faults.Without(amqpd.FaultDuplicate)
	srv.amqp = amqpd.New(amqpd.Options{
		Engine: srv.engine, Gate: gate, Namespace: name, Now: a.now, Limits: s.bounds.amqp,
		MaxBatchBytes: s.tier.BatchBytes, BatchDeleteMax: s.tier.DeleteBatch,
		CreateOnAttach: opts.createOnAttach, Defaults: s.tier.Defaults, Short: srv.memory.short, Faults: faults, Log: a.say,
	})
	management := atomd.New(atomd.Options{
		Engine: srv.engine, Gate: gate, Namespace: name, SKU: s.tier.SKU, Now: a.now, Tier: &s.tier, Fault: httpFault(faults),
	})
	srv.front = &port.Server{AMQP: srv.amqp.ServeConn, HTTP: management, Hosts: s.hosts, Limits: s.bounds.port, Log: a.say}
	srv.buildSQS(a, s, newAccessKeys(keys, s.lenient()))
	if !opts.tls {
		return nil
	}
	var err error
	if srv.authority, err = a.authority(); err != nil {
		return err
	}
	srv.front.TLS, err = certificates(srv.authority, s.hosts, slices.Concat(srv.listeners, srv.adminOn))
	srv.sqsFront.TLS = srv.front.TLS
	return err
}

// entityKey finds a key among the authorization rules of an entity.
func (srv *server) entityKey(entity, name string) (sas.Key, bool) {
	info, err := srv.engine.Entity(entity)
	if err != nil {
		return sas.Key{}, false
	}
	for _, k := range atomd.AuthorizationKeys(info.Name, info.Properties) {
		if k.Name == name {
			return k, true
		}
	}
	return sas.Key{}, false
}

// httpFault is what the faults on purpose do to the management API.
func httpFault(faults *amqpd.Faults) func(entity string) (status int, after time.Duration) {
	if faults == nil {
		return nil
	}
	return func(entity string) (status int, after time.Duration) {
		fault, struck := faults.Next(amqpd.OpHTTP, entity)
		switch {
		case !struck:
		case fault.Kind == amqpd.FaultThrottle:
			status = http.StatusServiceUnavailable
		case fault.Kind == amqpd.FaultError:
			status = http.StatusInternalServerError
		case fault.Kind == amqpd.FaultDisconnect:
			panic(http.ErrAbortHandler) // which is how a handler of net/http breaks the connection
		}
		return status, fault.Delay
	}
}

// certificates make a TLS configuration for the names by which clients reach the server. The Azure
// SDK for Go takes a port that the endpoint has for a part of the name, "localhost:5672"; a client
// that asks for such a name gets a certificate with it, and no other client has to read one.
func certificates(authority *port.Authority, hosts []string, listeners []net.Listener) (*tls.Config, error) {
	config, err := authority.Config(hosts...)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	var withPorts []string
	for _, l := range listeners {
		_, number, err := net.SplitHostPort(l.Addr().String())
		for _, h := range hosts {
			if name := net.JoinHostPort(h, number); err == nil && !slices.Contains(withPorts, name) {
				withPorts = append(withPorts, name)
			}
		}
	}
	odd, err := authority.Config(withPorts...)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if strings.Contains(hello.ServerName, ":") {
			return &odd.Certificates[0], nil
		}
		return nil, nil // the usual one
	}
	return config, nil
}

// start lets the clients in. What ends before it is told to is reported.
func (srv *server) start(ctx context.Context) <-chan error {
	failed := make(chan error, 1+len(srv.all()))
	run := func(f func() error) {
		go func() {
			if err := f(); err != nil && ctx.Err() == nil {
				failed <- err
			}
		}()
	}
	go srv.memory.watch(ctx)
	run(func() error { return srv.engine.Run(ctx) })
	for _, l := range slices.Concat(srv.listeners, srv.adminOn) {
		run(func() error { return srv.front.Serve(l) })
	}
	for _, l := range srv.sqsOn {
		run(func() error { return srv.sqsFront.Serve(l) })
	}
	return failed
}

// drain lets no more clients in, and lets what is under way end for a bounded time. What does not
// is cut off.
func (srv *server) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	closed := make(chan error, 2)
	go func() { closed <- srv.front.Shutdown(ctx) }()    // waits for AMQP too, which is ended below
	go func() { closed <- srv.sqsFront.Shutdown(ctx) }() // waits for receives, too, which are ended now
	srv.sqs.Close()
	err := errors.Join(srv.amqp.Shutdown(ctx), <-closed, <-closed)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // as announced
	}
	return err
}

// close gives back what was taken.
func (srv *server) close() error {
	var err error
	for _, l := range srv.all() {
		if closed := l.Close(); !errors.Is(closed, net.ErrClosed) {
			err = errors.Join(err, closed)
		}
	}
	if srv.local != nil {
		err = errors.Join(err, srv.local.Close())
	}
	return err
}
