package cmd

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/backends/broker/amqpd"
	"dlq/backends/broker/namespace"
	"dlq/backends/broker/sas"
)

// Where clients of the emulators that people come from look for them.
const (
	usualServiceBus = "127.0.0.1:5672"
	usualAdmin      = "127.0.0.1:5300"
	usualSQS        = "127.0.0.1:9324"
)

type serveOptions struct {
	data, config      string
	memory            bool
	serviceBus, admin string
	sqs, flavor       string
	tls               bool
	hosts             []string
	allowPlaintext    bool
	auth              string
	limits            string
	limit             []string
	fault             string
	createOnAttach    bool

	printLimits bool
	format      format
}

func (o *serveOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.data, "data", "", "keep the data in this `DIRECTORY` (default that of --conn, else the user's data directory)")
	fs.BoolVar(&o.memory, "memory", false, "keep the data in memory; it is gone at the end")
	fs.StringVar(&o.config, "config", "", "make the entities of this `FILE`, in the format of the official emulator's Config.json")
	fs.StringVar(&o.serviceBus, "servicebus", usualServiceBus, "`ADDR` for AMQP, WebSocket, HTTP and, with --tls, TLS; port 0 takes a free one")
	fs.StringVar(&o.admin, "admin", usualAdmin, "`ADDR` for the management API and /health; none for no second port")
	fs.StringVar(&o.sqs, "sqs", usualSQS, "`ADDR` for Amazon SQS over HTTP and, with --tls, TLS; none for no such port")
	fs.StringVar(&o.flavor, "flavor", "aws", "which service answers there: `aws|ymq`, Amazon SQS or Yandex Message Queue")
	fs.BoolVar(&o.tls, "tls", false, "answer TLS too, with a certificate of a local authority that is made once")
	fs.StringArrayVar(&o.hosts, "host", nil, "`NAME` by which clients reach the server (repeatable; default localhost, or the host of ADDR)")
	fs.BoolVar(&o.allowPlaintext, "allow-plaintext", false, "listen beyond this machine without TLS")
	fs.StringVar(&o.auth, "auth", "keys", "what is accepted: `keys|any|require`")
	fs.StringVar(&o.limits, "limits", "none", "whose limits Service Bus has: `none|basic|standard|premium|emulator`")
	fs.StringArrayVar(&o.limit, "limit", nil, "a limit of the servers, as `NAME=VALUE` (repeatable; --print-limits lists them)")
	fs.StringVar(&o.fault, "fault", "", "what goes wrong on purpose, such as throttle=10%,delay=200ms (a `SPEC`, see above)")
	fs.BoolVar(&o.createOnAttach, "create-on-attach", false, "make a queue that a client of Service Bus asks for and that is not there")
	fs.BoolVar(&o.printLimits, "print-limits", false, "list the limits and end")
	addFormatFlag(fs, &o.format)
}

func newServeCommand(a *app) *cobra.Command {
	var opts serveOptions
	c := a.command(about{
		use:   "serve",
		short: "an emulator of Azure Service Bus and Amazon SQS for any SDK",
		long: `Serve the broker to the SDKs of Azure Service Bus and of AWS. Service Bus is messaging over AMQP and
WebSocket and the management API, all on one port, so that one connection string does for both
clients; Amazon SQS, in both its protocols, or Yandex Message Queue has another. It prints what to
set, a line each, then "dlq: ready", and runs until it is interrupted; what was acknowledged is kept in
the data directory. While it runs, other commands work on the same directory through it. Either
service lists its own queues.

--config makes the entities of a file. The official emulator's Config.json is read as it is, and may hold
every property that dlq entity set knows, AuthorizationRules, and typed values. What is there already
keeps its messages and is changed to what the file says; nothing is deleted.

--auth keys verifies signatures against generated keys. On this machine only, it takes what everybody
knows, too: for Service Bus the published development key SAS_KEY_VALUE and any bearer token, for SQS
the access key test with the secret test, and calls without a signature. any accepts everything, on
this machine only. require takes the AuthorizationRules of --config alone. For SQS a key's name is the
access key and its primary value the secret: sending needs Send, receiving, settling and looking
Listen, the rest Manage. An access key of 12 digits is the account of that number (its secret is test).

--flavor ymq is Yandex Message Queue: its ARNs and URLs, 256 KiB, one message of a group at a time, no
move tasks, its errors. A queue keeps what it was made with.

--fault is for testing what a client does when something fails. SPEC is
` + indent(amqpd.FaultSyntax),
		effects: "entities are made and changed as --config says; what clients do",
		exits:   []exitCode{exitFailed, exitUsage, exitRefused},
		example: `dlq serve --memory
dlq serve --data ./bus --config Config.json --limits emulator
dlq serve --tls --servicebus 127.0.0.1:0 --admin none --sqs none
dlq serve --memory --flavor ymq
dlq serve --memory --fault throttle/send=every:5@orders,delay=200ms:10%`,
	}, exactly(), func(c *cobra.Command, _ []string) error {
		if opts.printLimits {
			return runPrintLimits(a, opts)
		}
		return runServe(c.Context(), a, opts)
	})
	opts.addFlags(c.Flags())
	for flag, words := range map[string][]string{"auth": {"keys", "any", "require"}, "flavor": {"aws", "ymq"}, "limits": tierNames()} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there
	}
	return c
}

func tierNames() []string {
	var names []string
	for _, t := range namespace.Tiers() {
		names = append(names, t.Name)
	}
	return names
}

// serving is what the flags of serve mean.
type serving struct {
	dir      string // "": memory
	tier     namespace.Tier
	config   *namespace.Config // nil: none
	bounds   serverLimits
	faults   *amqpd.Faults
	mode     sas.Mode
	flavor   flavor
	loopback bool // every address is of this machine alone
	hosts    []string
}

// lenient reports whether what cannot be verified counts.
func (s serving) lenient() bool { return s.mode != sas.Require && s.loopback }

func runServe(ctx context.Context, a *app, opts serveOptions) error {
	s, err := opts.resolve(a)
	if err != nil {
		return err
	}
	return s.run(ctx, a, opts)
}

// resolve checks the flags and reads the configuration, before anything is opened.
func (o *serveOptions) resolve(a *app) (serving, error) {
	var s serving
	var err error
	if s.mode, err = sas.ParseMode(o.auth); err != nil {
		return s, usagef("--auth: %w", err)
	}
	if s.flavor, err = flavorNamed(o.flavor); err != nil {
		return s, err
	}
	if s.tier, err = namespace.TierNamed(o.limits); err != nil {
		return s, usagef("--limits: %w", err)
	}
	if s.bounds, err = o.serverLimits(s.tier); err != nil {
		return s, err
	}
	if o.fault != "" {
		if s.faults, err = amqpd.ParseFaults(o.fault); err != nil {
			return s, fail(exitUsage, "dlq serve --help describes them", "--fault: %w", err)
		}
	}
	if s.dir, err = o.directory(a); err != nil {
		return s, err
	}
	if o.config != "" {
		if s.config, err = readConfig(o.config, s.tier); err != nil {
			return s, err
		}
	}
	if s.mode == sas.Require && (s.config == nil || len(s.config.Keys) == 0) {
		return s, fail(exitUsage, "add AuthorizationRules to the namespace in the file of --config", "--auth require takes configured keys alone, and there are none")
	}
	return s, o.resolveAddresses(&s)
}

// directory returns where the data is kept; "" for memory.
func (o *serveOptions) directory(a *app) (string, error) {
	switch {
	case o.memory && o.data != "":
		return "", usagef("--memory and --data exclude each other")
	case o.memory:
		return "", nil
	case o.data != "":
		return resolveLocal(a, o.data, false)
	}
	scheme, dir, _ := strings.Cut(a.connection(), ":")
	if !strings.EqualFold(scheme, "local") {
		return "", fail(exitUsage, "write --data DIRECTORY or --memory", "serve serves a local broker, not the connection %q", scheme)
	}
	return resolveLocal(a, dir, false)
}

func readConfig(file string, tier namespace.Tier) (*namespace.Config, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, fail(exitUsage, "", "--config: %w", err)
	}
	c, err := namespace.ParseConfig(src, tier)
	if err != nil {
		return nil, fail(exitUsage, "", "%s: %w", file, err)
	}
	return c, nil
}

// resolveAddresses checks where the server is to listen.
func (o *serveOptions) resolveAddresses(s *serving) error {
	s.loopback, s.hosts = true, o.hosts
	for _, flag := range []struct{ name, addr, usual string }{
		{"servicebus", o.serviceBus, usualServiceBus}, {"admin", portAddr(o.admin), usualAdmin}, {"sqs", portAddr(o.sqs), usualSQS},
	} {
		if flag.addr == "" {
			continue
		}
		host, _, err := net.SplitHostPort(flag.addr)
		if err != nil {
			return usagef("--%s: %w; write HOST:PORT, such as %s", flag.name, err, flag.usual)
		}
		if !isLoopback(host) {
			s.loopback = false
		}
		for _, name := range hostNames(host) {
			if len(o.hosts) == 0 && !slices.Contains(s.hosts, name) {
				s.hosts = append(s.hosts, name)
			}
		}
	}
	switch {
	case s.loopback:
	case s.mode == sas.Any:
		return fail(exitRefused, "leave --auth any out, or listen on 127.0.0.1", "--auth any lets everybody in, so it is for addresses of this machine alone")
	case !o.tls && !o.allowPlaintext:
		return fail(exitRefused, "add --tls; --allow-plaintext does it without", "an address beyond this machine needs TLS")
	}
	return nil
}

// portAddr is the address of a port that there need not be; "" for none.
func portAddr(addr string) string {
	if strings.EqualFold(addr, "none") {
		return ""
	}
	return addr
}

// calledBy is the name by which clients reach a listener on an address that was checked.
func (o *serveOptions) calledBy(addr string) string {
	if len(o.hosts) > 0 {
		return o.hosts[0]
	}
	host, _, _ := net.SplitHostPort(addr)
	return hostNames(host)[0]
}

// isLoopback reports whether only this machine reaches a host.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// hostNames returns the names by which clients reach a listener on a host.
func hostNames(host string) []string {
	ip := net.ParseIP(host)
	switch {
	case isLoopback(host):
		return []string{"localhost"}
	case host != "" && (ip == nil || !ip.IsUnspecified()):
		return []string{host}
	}
	if name, err := os.Hostname(); err == nil {
		return []string{name, "localhost"}
	}
	return []string{"localhost"}
}
